//! Limits the cost of reading one definition. A local file may cost more than one that another client sends.

use crate::definition::fault::{FaultReport, SourcePlace};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Limits for reading one definition. Each refusal names the limit, its setting and the place.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Total bytes of all files.
    pub bytes: usize,
    /// Levels of nesting.
    pub depth: usize,
    /// Number of values in one file.
    pub nodes: usize,
    /// Number of values repeated by aliases in one file.
    pub aliases: usize,
    /// Number of jobs.
    pub jobs: usize,
    /// Number of items in one `for_each`.
    pub for_each_items: usize,
    /// Whether the limits come from `[limits]` of a server, so that its administrator can raise them.
    pub is_of_server: bool,
    /// Set by the caller when time is up; reading then stops at its next stage.
    pub expired: Arc<AtomicBool>,
}

/// Factor between the values of one file and the values that templates and defaults may add to jobs.
const COPIES: usize = 4;

/// The prefix of each limit's setting, for refusals.
const SETTING: &str = "limits.definition_";

impl Default for Budget {
    /// For local files: about 100,000 jobs.
    fn default() -> Self {
        Self {
            bytes: 1024 * 1024 * 1024,
            depth: 24,
            nodes: 2_000_000,
            aliases: 400_000,
            jobs: 1_000_000,
            for_each_items: 100_000,
            is_of_server: false,
            expired: Arc::default(),
        }
    }
}

/// A limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Bytes,
    Depth,
    Nodes,
    Aliases,
    Jobs,
    ForEachItems,
    Time,
}

impl Limit {
    /// The suffix of the setting's name.
    fn key(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Depth => "depth",
            Self::Nodes => "nodes",
            Self::Aliases => "aliases",
            Self::Jobs => "jobs",
            Self::ForEachItems => "for_each_items",
            Self::Time => "sec",
        }
    }

    /// What exceeds the limit.
    fn limit_noun(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Depth => "levels of nesting",
            Self::Nodes => "values in one file",
            Self::Aliases => "values repeated by aliases (*name)",
            Self::Jobs => "jobs",
            Self::ForEachItems => "items of for_each",
            Self::Time => "seconds of reading",
        }
    }

    /// Who can raise the limit.
    fn whom_to_ask(self) -> String {
        format!("ask the administrator of the server to raise {SETTING}{}", self.key())
    }

    /// The hint.
    fn limit_hint(self) -> &'static str {
        match self {
            Self::Aliases => "write fewer aliases, or use a template",
            Self::ForEachItems => "let each job do several items",
            Self::Bytes | Self::Nodes | Self::Jobs | Self::Time => "split the definition",
            Self::Depth => "nest less deeply",
        }
    }
}

impl Budget {
    /// The value of a limit; the time limit belongs to the caller.
    fn limit_size(&self, limit: Limit) -> usize {
        match limit {
            Limit::Bytes => self.bytes,
            Limit::Depth => self.depth,
            Limit::Nodes => self.nodes,
            Limit::Aliases => self.aliases,
            Limit::Jobs => self.jobs,
            Limit::ForEachItems => self.for_each_items,
            Limit::Time => 0,
        }
    }

    fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }
}

impl FaultReport {
    /// Rejects what exceeds a limit of the budget.
    pub fn refuse_beyond(&mut self, limit: Limit, at: &SourcePlace) {
        let most = self.budget().limit_size(limit);
        let hint = self.with_setting(limit, limit.limit_hint());
        self.fault(at, format!("more than {most} {}", limit.limit_noun()), hint);
    }

    /// A hint; if a server sets the limit, also whom to ask to raise which setting.
    fn with_setting(&self, limit: Limit, hint: &str) -> String {
        match self.budget().is_of_server {
            true => format!("{hint}; or {}", limit.whom_to_ask()),
            false => hint.to_owned(),
        }
    }

    /// Whether `count` is within the limit; if not, it is reported.
    pub fn is_within(&mut self, limit: Limit, count: usize, at: &SourcePlace) -> bool {
        let fits = count <= self.budget().limit_size(limit);
        if !fits {
            self.refuse_beyond(limit, at);
        }
        fits
    }

    /// Whether a template or defaults may add this many values to a job; if not, it is reported.
    pub fn may_copy(&mut self, values: usize, at: &SourcePlace) -> bool {
        let most = self.budget().nodes.saturating_mul(COPIES);
        if self.add_copied(values) <= most {
            return true;
        }
        let what = format!("templates and defaults give jobs more than {most} values");
        let hint = self.with_setting(Limit::Nodes, "make the template or the defaults shorter");
        self.fault(at, what, hint);
        false
    }

    /// Whether time is left; if not, it is reported.
    pub fn has_time(&mut self, at: &SourcePlace) -> bool {
        if !self.budget().is_expired() {
            return true;
        }
        let hint = self.with_setting(Limit::Time, Limit::Time.limit_hint());
        self.fault(at, "reading this definition takes too long", hint);
        false
    }
}
