//! Removes old rows in small steps, beside everything else: what a step does is one short transaction, and
//! between two steps nothing is locked.
//!
//! One process at a time does it, by its turn (`store::lock`). What it knows is only how far it is; a pass
//! that is broken off is begun anew and finds what is left by its marks.

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

/// Between two passes of one process.
const PASS_MS: i64 = 3_600_000;
/// Between two looks whether another process has let its turn go.
const LOOK_MS: i64 = 60_000;

/// Settings of retention.
#[derive(Clone, Debug)]
pub struct RetentionOptions {
    /// For groups that have no rule of their own, and for backfills.
    pub rule: GroupRetentionRule,
    /// Rules of single groups.
    pub groups: BTreeMap<GroupCode, GroupRetentionRule>,
    /// Age of firings that go; none: they stay.
    pub firings_ms: Option<i64>,
    /// Age of sent mails that go; none: they go with their batch, or stay.
    pub mails_ms: Option<i64>,
    /// Age of acts on record that go; none: they stay.
    pub audit_ms: Option<i64>,
    /// Tables that are left to partitions.
    pub left: LeftTables,
    /// When it is done by itself; none: at any time.
    pub window: Option<Window>,
    /// Rows that one transaction removes, at most.
    pub rows_per_step: u32,
    /// Between two steps, at least.
    pub pause_ms: i64,
}

impl RetentionOptions {
    /// The rule of a group.
    pub fn rule_of(&self, group: &GroupCode) -> GroupRetentionRule {
        self.groups.get(group).copied().unwrap_or(self.rule)
    }

    /// Whether anything is ever to go.
    pub fn is_on(&self) -> bool {
        let mut rules = self.groups.values().chain([&self.rule]);
        rules.any(|rule| rule.batches_ms.is_some() || rule.lines_ms.is_some())
            || self.firings_ms.is_some()
            || self.mails_ms.is_some()
            || self.audit_ms.is_some()
    }

    /// What rows of a kind must be older than, and the words of their states that are looked for.
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

/// Who lets rows go, and why; on record for each batch.
#[derive(Clone, Debug)]
pub struct RemovalOrder {
    /// Who.
    pub by: Operator,
    /// Why, when a person wants it.
    pub reason: Option<String>,
    /// Batches that go, at most.
    pub limit: Option<u64>,
}

/// Why nothing is done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetentionIdleReason {
    /// Nothing is ever to go.
    Off,
    /// The window is closed.
    Window,
    /// A pass has ended lately.
    Done,
    /// It is the turn of this process.
    Theirs(NodeId),
    /// This process is drained.
    Drained,
}

/// What a beat came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Nothing, before this moment.
    Rests(RetentionIdleReason, Millis),
    /// One step: the rows that it removed, which may be none.
    Did(ByTable),
    /// The pass has ended: all that it removed.
    Ended(ByTable),
}

/// Removes old rows, a step at a time.
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
    /// What removes old rows in the process that this dispatcher is.
    pub fn sweeper(&self, options: RetentionOptions) -> Sweeper {
        let by = Operator::new("serve".to_owned(), crate::engine::host::host_name());
        let wish = RemovalOrder { by, reason: None, limit: None };
        let ClusterProcess { db, clock, node, heart, meter, .. } = self.process().clone();
        let sweeper = Sweeper::new(db, clock, node.id().clone(), options, wish);
        Sweeper { heart: Some(heart), meter, ..sweeper }
    }
}

impl Sweeper {
    /// One that is part of no process which serves.
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

    /// One step, or a reason for none. What fails ends the pass; the next beat begins another.
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

    /// Why nothing is done now. What is half removed is finished, also when the window has closed.
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

    /// How long to wait after a step that took so many milliseconds: as long again, at least, so that half
    /// of the time is everybody else's.
    pub fn pause(&self, took_ms: i64) -> Duration {
        Duration::from_millis(self.options.pause_ms.max(took_ms).unsigned_abs())
    }

    /// Lets another process have the turn at once.
    pub async fn end_turn(&self) -> Result<()> {
        let mut tx = self.db.begin().await?;
        lock::end_turn(&mut tx, RETENTION_LOCK, &self.me).await?;
        tx.commit().await.context("leave the turn to others")
    }

    /// Notes when the last pass ended and what it removed, for `retention preview`.
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

/// Under this name `procession_meta` says what the last pass did.
pub const LAST_PASS: &str = "retention_last";

fn theirs(owner: NodeId, now: Millis) -> Beat {
    Beat::Rests(RetentionIdleReason::Theirs(owner), now.plus_ms(LOOK_MS))
}
