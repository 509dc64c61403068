//! Removes old rows in small steps, independently of the dispatcher: each step is one short
//! transaction, and nothing is locked between two steps.
//!
//! One process at a time does this, protected by a lock (`store::lock`). Its only state is how far
//! it has come; an interrupted pass starts over and finds the rest by the marks in the rows.

mod pass;
mod removable_batches;
mod removal_loop;
mod survey;

pub use crate::domain::id::GroupCode;
pub use crate::domain::retention::{DAY_MS, EndedBadly, GroupRetentionRule, Window};
pub use crate::store::retention::{ByTable, LeftTables};
pub use removal_loop::SweepOutcome;
pub use survey::{AgedGoes, GroupSurvey, RemovableBatches, RetentionSurvey, survey};

use crate::domain::id::NodeId;
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::cluster::heartbeat::Heart;
use crate::engine::cluster::process::ClusterProcess;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::observe::metrics::Meter;
use crate::store::audit::Operator;
use crate::store::lock::{self, RETENTION_LOCK};
use crate::store::retention::Aged;
use crate::store::{self, Db};
use anyhow::{Context as _, Result};
use pass::RetentionPass;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Pause between two passes of one process, in milliseconds.
const PASS_MS: i64 = 3_600_000;
/// Interval between two checks whether another process has released the lock, in milliseconds.
const LOOK_MS: i64 = 60_000;

/// Settings of retention, from the configuration.
#[derive(Clone, Debug)]
pub struct RetentionOptions {
    /// The rule for groups without one of their own, and for backfills.
    pub rule: GroupRetentionRule,
    /// Rules of single groups.
    pub groups: BTreeMap<GroupCode, GroupRetentionRule>,
    /// Age at which firings are removed; `None`: never.
    pub firings_ms: Option<i64>,
    /// Age at which sent notifications are removed; `None`: with their batch, or never.
    pub mails_ms: Option<i64>,
    /// Age at which audit records are removed; `None`: never.
    pub audit_ms: Option<i64>,
    /// Tables whose rows are removed by dropping partitions.
    pub left: LeftTables,
    /// The daily time window of automatic removal; `None`: at any time.
    pub window: Option<Window>,
    /// Maximum number of rows removed in one transaction.
    pub rows_per_step: u32,
    /// Minimum pause between two steps, in milliseconds.
    pub pause_ms: i64,
}

impl RetentionOptions {
    /// The retention rule of a group.
    pub fn rule_of(&self, group: &GroupCode) -> GroupRetentionRule {
        self.groups.get(group).copied().unwrap_or(self.rule)
    }

    /// Whether any setting removes rows.
    pub fn is_on(&self) -> bool {
        let mut rules = self.groups.values().chain([&self.rule]);
        rules.any(|rule| rule.batches_ms.is_some() || rule.lines_ms.is_some())
            || self.firings_ms.is_some()
            || self.mails_ms.is_some()
            || self.audit_ms.is_some()
    }

    /// The time before which rows of a kind are removed, and the states they must be in.
    fn age_limit(&self, kind: Aged, now: Millis) -> Option<(Millis, &'static [&'static str])> {
        let (ms, words): (_, &[&str]) = match (kind, self.rule.badly) {
            (Aged::Firings, EndedBadly::Stay) => {
                (self.firings_ms, &["FIRED", "SKIPPED", "MISFIRED"])
            }
            (Aged::Firings, EndedBadly::Go) => {
                (self.firings_ms, &["FIRED", "SKIPPED", "MISFIRED", "FAILED"])
            }
            (Aged::Mails, _) => (self.mails_ms, &[""]),
            (Aged::Backfills, EndedBadly::Stay) => (self.rule.batches_ms, &["SUCCESS"]),
            (Aged::Backfills, EndedBadly::Go) => (self.rule.batches_ms, &["SUCCESS", "FAILED"]),
            (Aged::Audit, _) => (self.audit_ms, &[""]),
        };
        ms.map(|ms| (now.plus_ms(-ms), words))
    }
}

/// Who removes rows and why, for the audit record of each batch.
#[derive(Clone, Debug)]
pub struct RemovalOrder {
    pub by: Operator,
    /// The reason, when a person requested it.
    pub reason: Option<String>,
    /// Maximum number of batches to remove.
    pub limit: Option<u64>,
}

/// Why nothing is removed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetentionIdleReason {
    /// Retention is switched off.
    Off,
    /// The present time is outside of the window.
    Window,
    /// A pass has ended recently.
    Done,
    /// Another process holds the lock.
    Theirs(NodeId),
    /// This process is drained.
    Drained,
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Nothing to do before this time.
    Rests(RetentionIdleReason, Millis),
    /// One step: the number of rows removed, which may be zero.
    Did(ByTable),
    /// The pass has ended: the total of removed rows.
    Ended(ByTable),
}

/// Removes old rows step by step.
pub struct Sweeper {
    db: Db,
    clock: Clock,
    meter: Arc<Meter>,
    me: NodeId,
    options: RetentionOptions,
    wish: RemovalOrder,
    heart: Option<Arc<Heart>>,
    pass: Option<RetentionPass>,
    next_at: Millis,
}

impl QueueDispatcher {
    /// The sweeper of this dispatcher's process.
    pub fn sweeper(&self, options: RetentionOptions) -> Sweeper {
        let by = Operator::new("serve".to_owned(), crate::engine::host::host_name());
        let wish = RemovalOrder { by, reason: None, limit: None };
        let ClusterProcess { db, clock, node, heart, meter, .. } = self.process().clone();
        let sweeper = Sweeper::new(db, clock, node.id().clone(), options, wish);
        Sweeper { heart: Some(heart), meter, ..sweeper }
    }
}

impl Sweeper {
    /// A sweeper outside of a serving process.
    pub fn new(
        db: Db,
        clock: Clock,
        me: NodeId,
        options: RetentionOptions,
        wish: RemovalOrder,
    ) -> Self {
        let (meter, next_at) = (Arc::default(), Millis(i64::MIN));
        Self { db, clock, meter, me, options, wish, heart: None, pass: None, next_at }
    }

    /// One step, or the reason why there is none. An error ends the pass; the next call begins
    /// another.
    pub async fn run_step(&mut self, now: Millis) -> Result<Beat> {
        if let Some((rest, until)) = self.rest_reason(now).await? {
            return Ok(Beat::Rests(rest, until));
        }
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => match RetentionPass::begin(self, now).await? {
                Ok(pass) => pass,
                Err(owner) => return Ok(theirs(owner, now)),
            },
        };
        match pass.run_step(self, now).await? {
            pass::PassStep::Did(dropped) => {
                self.meter.retention_removed(&dropped);
                self.pass = Some(pass);
                Ok(Beat::Did(dropped))
            }
            pass::PassStep::Theirs(owner) => Ok(theirs(owner, now)),
            pass::PassStep::Ended(totals) => {
                self.meter.retention_passed(now);
                self.next_at = now.plus_ms(PASS_MS);
                Ok(Beat::Ended(totals))
            }
        }
    }

    /// Why nothing is done now. A batch that is partly removed is finished even after the window
    /// has closed.
    async fn rest_reason(&mut self, now: Millis) -> Result<Option<(RetentionIdleReason, Millis)>> {
        if !self.options.is_on() {
            return Ok(Some((RetentionIdleReason::Off, now.plus_ms(PASS_MS))));
        }
        if self.pass.as_ref().is_some_and(RetentionPass::is_amidst) {
            return Ok(None);
        }
        let closed = self.options.window.filter(|window| !window.is_open(now));
        let rest = match closed {
            Some(window) => Some((RetentionIdleReason::Window, window.opens(now))),
            None if self.heart.as_ref().is_some_and(|heart| heart.is_resting()) => {
                Some((RetentionIdleReason::Drained, now.plus_ms(LOOK_MS)))
            }
            None if now < self.next_at => Some((RetentionIdleReason::Done, self.next_at)),
            None => None,
        };
        if rest.is_some() && self.pass.take().is_some() {
            self.end_turn().await?;
        }
        Ok(rest)
    }

    /// The pause after a step that took `took_ms`: at least as long again, so that half of the time
    /// is left to others.
    pub fn pause(&self, took_ms: i64) -> Duration {
        Duration::from_millis(self.options.pause_ms.max(took_ms).unsigned_abs())
    }

    /// Releases the lock at once for another process.
    pub async fn end_turn(&self) -> Result<()> {
        let mut tx = self.db.begin().await?;
        lock::end_turn(&mut tx, RETENTION_LOCK, &self.me).await?;
        tx.commit().await.context("leave the turn to others")
    }

    /// Stores when the last pass ended and what it removed, for `retention preview`.
    async fn note_last_pass(
        &self,
        tx: &mut store::Tx,
        totals: &ByTable,
        now: Millis,
    ) -> Result<()> {
        let said = serde_json::json!({"at": now.to_string(), "rows": totals}).to_string();
        store::meta_is_new(tx, LAST_PASS, &said).await.map(drop)
    }
}

/// The key in `procession_meta` under which the result of the last pass is stored.
pub const LAST_PASS: &str = "retention_last";

fn theirs(owner: NodeId, now: Millis) -> Beat {
    Beat::Rests(RetentionIdleReason::Theirs(owner), now.plus_ms(LOOK_MS))
}
