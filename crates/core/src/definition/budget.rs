//! What reading one definition may cost. A file of ours may cost more than one that a stranger sends.

use crate::definition::fault::{FaultReport, SourcePlace};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Limits of one reading. Each refusal names the limit, the setting that holds it and the place.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Bytes of all files together.
    pub bytes: usize,
    /// Levels of nesting.
    pub depth: usize,
    /// Values of one file.
    pub nodes: usize,
    /// Values that aliases of one file repeat.
    pub aliases: usize,
    /// Jobs.
    pub jobs: usize,
    /// Items of one `for_each`.
    pub for_each_items: usize,
    /// Whether `[limits]` of a server holds the limits, so that its administrator can raise them.
    pub is_of_server: bool,
    /// Set from outside once the time is over; the reading then stops at its next stage.
    pub expired: Arc<AtomicBool>,
}

/// So many times the values of one file may be given to jobs by templates and defaults.
const COPIES: usize = 4;

/// The setting of each limit, as a refusal names it.
const SETTING: &str = "limits.definition_";

impl Default for Budget {
    /// For files of this machine: some 100,000 jobs.
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

/// One limit of a budget that was passed.
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
    /// The end of its setting's name.
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

    /// What there is too much of.
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

    /// Whom to ask for more.
    fn whom_to_ask(self) -> String {
        format!("ask the administrator of the server to raise {SETTING}{}", self.key())
    }

    /// What to do about it.
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
    /// The size of a limit; the time is the caller's.
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
    /// Refuses what passes a limit of the budget.
    pub fn refuse_beyond(&mut self, limit: Limit, at: &SourcePlace) {
        let most = self.budget().limit_size(limit);
        let hint = self.with_setting(limit, limit.limit_hint());
        self.fault(at, format!("more than {most} {}", limit.limit_noun()), hint);
    }

    /// A hint, and where a server holds the limit, whom to ask to raise which setting.
    fn with_setting(&self, limit: Limit, hint: &str) -> String {
        match self.budget().is_of_server {
            true => format!("{hint}; or {}", limit.whom_to_ask()),
            false => hint.to_owned(),
        }
    }

    /// Whether there are no more than the limit says; reported when there are.
    pub fn is_within(&mut self, limit: Limit, count: usize, at: &SourcePlace) -> bool {
        let fits = count <= self.budget().limit_size(limit);
        if !fits {
            self.refuse_beyond(limit, at);
        }
        fits
    }

    /// Whether a template, or defaults, may give so many values more to a job; reported when not.
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

    /// Whether there is time left; reported when there is none.
    pub fn has_time(&mut self, at: &SourcePlace) -> bool {
        if !self.budget().is_expired() {
            return true;
        }
        let hint = self.with_setting(Limit::Time, Limit::Time.limit_hint());
        self.fault(at, "reading this definition takes too long", hint);
        false
    }
}
