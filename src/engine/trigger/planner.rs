//! The planner pass: under the schedule lock, schedules that are due within seconds get their
//! firing rows and their next time.
//!
//! It is one transaction: the lock row, the due schedules in chronological order, rows of
//! `job_firing` and next times in bulk, commit. Nothing slow happens under the lock: no HTTP, no
//! job, no sending. An error undoes all of it. Firings are put on the ring only after the commit.

use crate::domain::calendar::Calendars;
use crate::domain::id::NodeId;
use crate::domain::schedule::firing::{Firing, NewFiring, Source, TriggerId};
use crate::domain::schedule::trigger::{Trigger, TriggerStatus};
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::observe::metrics::Meter;
use crate::engine::trigger::{follow, missed_firing_notices};
use crate::store::batch_end_schedules;
use crate::store::epoch::{self, Epoch};
use crate::store::hint::{self, HintTopic};
use crate::store::lock::{self, SCHEDULE_LOCK};
use crate::store::next_run::{self, StaleGroups};
use crate::store::trigger::{DueTrigger, ScheduleProgress};
use crate::store::{self, Db, Tx, calendar, firing, trigger};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// How far ahead firings are decided, in milliseconds; XXL-JOB's value. Also the longest delay of a
/// failover, because firings decided by a process that then dies are rows that wait.
pub(super) const AHEAD_MS: i64 = 5_000;
/// Number of schedules per pass, so that the lock is held for a fraction of a second even on the
/// hour; the rest follows in the next pass at once.
const LIMIT: u32 = 5_000;
/// Maximum number of schedules read under the lock; a larger number is read before the lock is
/// taken.
const UNREAD_MOST: usize = 200;
/// Number of schedules whose definition is kept in memory.
const KNOWN_MAX: usize = 50_000;

/// Plans firings; one per process.
pub struct Planner {
    /// A pool whose sessions lose their locks after 5 s of silence.
    pub(super) door: Db,
    clock: Clock,
    node: NodeId,
    meter: Arc<Meter>,
    pub(super) known: HashMap<TriggerId, Trigger>,
    pub(super) calendars: (i64, Calendars),
    /// Whether the next pass first checks which of its rows exist already.
    caution: Caution,
    /// Whether the due schedules were read before the lock was taken.
    has_read: HasRead,
    /// Groups whose next run is to be written: after the commit, because groups are large and the
    /// lock must be short.
    stale: StaleGroups,
}

/// How much was read before the lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HasRead {
    Little,
    All,
}

/// Whether a pass may assume that no row is ahead of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caution {
    Trusting,
    Careful,
}

/// The result of a pass.
#[derive(Debug, Default)]
pub struct PlannerPass {
    /// The committed firings, with their times.
    pub firings: Vec<Firing>,
    /// Whether more schedules are due than one pass takes.
    pub more: bool,
}

/// The lock row was missing.
#[derive(Debug, thiserror::Error)]
#[error(
    "the row schedule_lock was gone from job_lock, so nothing was locked and nothing was planned; it has \
     been put back. Somebody or something deletes rows of that table: find out who"
)]
pub struct LockGone;

/// Maximum accepted difference between the database's clock and this process's view of it, in
/// milliseconds.
const DOUBT_MS: i64 = 1_000;

/// The database's clock differs from this process's view of it.
#[derive(Debug, thiserror::Error)]
#[error(
    "the clock of the database is {0} ms away from where it was; nothing is planned until that is sure"
)]
pub struct InDoubt(i64);

/// Approximate maximum number of rows per pass: the rest of many missed times follows in the next
/// passes, because the time between two statements must not exceed the server's timeout (5 s).
const ROWS_MOST: usize = 20_000;

/// The writes of one pass.
#[derive(Default)]
pub(super) struct PlannedWrites {
    pub(super) rows: Vec<NewFiring>,
    pub(super) standings: Vec<ScheduleProgress>,
    /// Schedules that cannot continue, and why.
    pub(super) ended: Vec<(TriggerId, String)>,
    /// Whether some due schedules are left to the next pass.
    pub(super) more: bool,
}

impl Planner {
    /// A planner on the pool `door` (see `Keeping::Brief`).
    pub fn new(door: Db, clock: Clock, node: NodeId, meter: Arc<Meter>) -> Self {
        Self {
            door,
            clock,
            node,
            meter,
            known: HashMap::new(),
            calendars: (-1, Calendars::default()),
            caution: Caution::Trusting,
            has_read: HasRead::Little,
            // Left over by an earlier process between its commit and this step.
            stale: StaleGroups::All,
        }
    }

    /// Runs one pass.
    pub async fn run_pass(&mut self) -> Result<PlannerPass> {
        let (asked, said) = (self.clock.uptime(), self.door.counts().statements);
        let mut tx = self.door.begin().await?;
        let Some(held) = lock::hold_lock(&mut tx, SCHEDULE_LOCK).await? else {
            tx.rollback().await?;
            return self.repair_firings().await;
        };
        failpoint!("lock.acquired");
        let gained = self.clock.uptime();
        let now = self.due_time(&mut tx).await?;
        let due = trigger::list_due(&mut tx, now.plus_ms(AHEAD_MS), LIMIT).await?;
        if due.is_empty() {
            tx.rollback().await?;
            return Ok(PlannerPass::default());
        }
        if self.has_read == HasRead::Little && self.unknown(&due).len() > UNREAD_MOST {
            tx.rollback().await?;
            return self.pass_having_read(&due).await;
        }
        self.has_read = HasRead::Little;
        if held.owner.as_ref() != Some(&self.node) {
            lock::sign_lock(&mut tx, SCHEDULE_LOCK, &self.node, now).await?;
        }
        let (firings, more) = match self.write(&mut tx, &due, now).await {
            Ok(written) => written,
            Err(error) => {
                // Dropped without a rollback: a connection that failed under the lock gets no
                // further statement, and the server undoes the transaction.
                drop(tx);
                self.known.clear();
                if store::is_taken(&error) {
                    self.caution = Caution::Careful;
                }
                return Err(error);
            }
        };
        failpoint!("lock.before_commit");
        tx.commit().await.context("commit the pass")?;
        failpoint!("lock.after_commit");
        self.note_stale(&due);
        self.caution = Caution::Trusting;
        let (wait_ms, hold_ms) = (gained.since(asked), self.clock.uptime().since(gained));
        self.meter.record_lock(wait_ms, hold_ms);
        // On SQLite, where this pool is shared, the count includes concurrent reads.
        let statements = self.door.counts().statements - said;
        let (due_count, rows) = (u64::try_from(due.len())?, u64::try_from(firings.len())?);
        self.meter.record_pass(due_count, rows, statements);
        tracing::debug!(due = due_count, rows, statements, wait_ms, hold_ms, "a pass");
        let more = more || due.len() == usize::try_from(LIMIT)?;
        Ok(PlannerPass { firings, more })
    }

    /// A pass that reads the due schedules before it takes the lock. After a start all of them are
    /// unknown, and reading 5,000 takes longer than planning and writing them.
    async fn pass_having_read(&mut self, due: &[DueTrigger]) -> Result<PlannerPass> {
        let news = self.unknown(due);
        let mut tx = self.door.begin_read().await?;
        // A schedule that cannot be read is read again under the lock, and ended there.
        self.read_triggers(&mut tx, &news).await?;
        tx.rollback().await?;
        self.has_read = HasRead::All;
        Box::pin(self.run_pass()).await
    }

    /// Writes the firings that follow the ends of batches, and starts fixed delays; called when a
    /// poll has found some.
    pub async fn follow(&mut self) -> Result<()> {
        let mut tx = self.door.begin().await?;
        if lock::hold_lock(&mut tx, SCHEDULE_LOCK).await?.is_none() {
            tx.rollback().await?;
            return self.repair_firings().await.map(drop);
        }
        let now = self.due_time(&mut tx).await?;
        // Read again under the lock, because another node may have come first.
        let found = batch_end_schedules::find_following(&mut tx).await?;
        let due: Vec<DueTrigger> = found
            .trigger_ids()
            .map(|trigger_id| DueTrigger {
                trigger_id,
                revision: -1,
                next_time: now,
                last_time: None,
            })
            .collect();
        let mut work = PlannedWrites::default();
        self.learn(&mut tx, &due, &mut work).await?;
        follow::plan_followers(&found, &self.known, &self.calendars.1, now, &mut work);
        if work.rows.is_empty() && work.standings.is_empty() && work.ended.is_empty() {
            // Ends that concern no schedule; they are found until newer ones replace them.
            return Ok(tx.rollback().await?);
        }
        follow::shift_taken(&mut tx, &mut work.rows).await?;
        self.end_schedules(&mut tx, &work.ended, now).await?;
        firing::append(&mut tx, &work.rows, None, now).await?;
        trigger::advance(&mut tx, &work.standings, now).await?;
        hint::send_hint(&mut tx, HintTopic::Trigger).await?;
        tx.commit().await.context("follow the ends of batches")?;
        self.note_stale(&due);
        Ok(())
    }

    /// Compares the next runs of all groups with the schedules at the next tick: of two nodes that
    /// wrote at once, the older value may have been stored.
    pub fn doubt_next_runs(&mut self) {
        self.stale = StaleGroups::All;
    }

    fn note_stale(&mut self, moved: &[DueTrigger]) {
        let known = moved.iter().filter_map(|due| self.known.get(&due.trigger_id));
        known.for_each(|trigger| self.stale.add_schedule(&trigger.def));
    }

    /// Writes `job_def.next_run_time` of the groups whose schedules have changed. A failed write is
    /// repeated with the next pass.
    pub async fn write_next_runs(&mut self) -> Result<()> {
        if self.stale.is_empty() {
            return Ok(());
        }
        for part in self.stale.parts() {
            let mut tx = self.door.begin().await?;
            next_run::refresh(&mut tx, &part).await?;
            tx.commit().await.context("write the next runs of jobs")?;
        }
        self.stale = StaleGroups::default();
        Ok(())
    }

    /// Releases decided firings that have not fired to other processes, at once.
    pub async fn leave(self) -> Result<()> {
        let mut tx = self.door.begin().await?;
        firing::release(&mut tx, &self.node, self.clock.now()).await?;
        hint::send_hint(&mut tx, HintTopic::Trigger).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The present time for planning: the database's clock, which is the same for all nodes.
    /// Nothing is planned while this process's view of it differs; the next heartbeats correct
    /// that.
    pub(super) async fn due_time(&self, tx: &mut Tx) -> Result<Millis> {
        let asked = self.clock.uptime();
        let server = tx.server_time().await?.into();
        let now = self.clock.now();
        let Some(measured) = self.clock.measure(asked, server) else { return Ok(now) };
        let apart = server.since(now);
        if apart.abs() > DOUBT_MS + measured.slack_ms {
            return Err(InDoubt(apart).into());
        }
        Ok(now)
    }

    pub(super) async fn repair_firings(&self) -> Result<PlannerPass> {
        let mut tx = self.door.begin().await?;
        lock::restore_row(&mut tx, SCHEDULE_LOCK, self.clock.now()).await?;
        tx.commit().await.context("put the lock row back")?;
        Err(LockGone.into())
    }

    async fn write(
        &mut self,
        tx: &mut Tx,
        due: &[DueTrigger],
        now: Millis,
    ) -> Result<(Vec<Firing>, bool)> {
        let mut work = PlannedWrites::default();
        self.learn(tx, due, &mut work).await?;
        for due in due {
            if work.rows.len() >= ROWS_MOST {
                work.more = true;
                break;
            }
            self.plan_one(due, now, &mut work);
        }
        if self.caution == Caution::Careful {
            drop_known(tx, &mut work.rows).await?;
        }
        let newest = firing::last_key(tx).await?;
        firing::append(tx, &work.rows, Some(&self.node), now).await.context(AHEAD)?;
        failpoint_or!("fire.inserted", anyhow::anyhow!("a failpoint says so"));
        trigger::advance(tx, &work.standings, now).await?;
        self.end_schedules(tx, &work.ended, now).await?;
        missed_firing_notices::misses(tx, &self.known, &work.rows, now).await?;
        let missed =
            work.rows.iter().filter(|r| r.source == Source::Misfire || r.status.is_final());
        self.count_missed(missed.count());
        let more = work.more;
        Ok((firing::written(tx, work.rows, newest, &self.node).await?, more))
    }

    /// Ends schedules that cannot continue, and notifies their owners.
    async fn end_schedules(
        &self,
        tx: &mut Tx,
        ended: &[(TriggerId, String)],
        now: Millis,
    ) -> Result<()> {
        let mut reasons: BTreeMap<&str, Vec<TriggerId>> = BTreeMap::new();
        for (id, reason) in ended {
            reasons.entry(reason).or_default().push(*id);
            tracing::error!(trigger_id = id.0, reason, "a schedule has ended");
        }
        for (reason, ids) in reasons {
            trigger::set_status(tx, &ids, TriggerStatus::Ended, Some(reason), now).await?;
        }
        missed_firing_notices::ended(tx, &self.known, ended, now).await
    }

    pub(super) fn count_missed(&self, count: usize) {
        self.meter.misfired(u64::try_from(count).unwrap_or(u64::MAX));
    }

    pub(super) fn node_id(&self) -> &NodeId {
        &self.node
    }

    /// A schedule in memory.
    pub(super) fn known(&self, id: TriggerId) -> Option<&Trigger> {
        self.known.get(&id)
    }

    pub(super) fn all_known(&self) -> &HashMap<TriggerId, Trigger> {
        &self.known
    }

    /// Reads the schedules that memory lacks, or has in another version.
    pub(super) async fn learn(
        &mut self,
        tx: &mut Tx,
        due: &[DueTrigger],
        work: &mut PlannedWrites,
    ) -> Result<()> {
        let epoch = epoch::read_epoch(tx, Epoch::Calendars).await?;
        if self.calendars.0 != epoch {
            self.calendars = (epoch, calendar::list_calendars(tx).await?);
        }
        if self.known.len() > KNOWN_MAX {
            self.known.clear();
        }
        let news = self.unknown(due);
        for (id, said) in self.read_triggers(tx, &news).await? {
            work.ended.push((id, format!("it cannot be read: {said}")));
        }
        Ok(())
    }

    /// The schedules that memory lacks, or has in another version.
    fn unknown(&self, due: &[DueTrigger]) -> Vec<TriggerId> {
        let is_known = |due: &&DueTrigger| {
            self.known.get(&due.trigger_id).is_some_and(|known| known.revision == due.revision)
        };
        due.iter().filter(|due| !is_known(due)).map(|due| due.trigger_id).collect()
    }

    /// Reads these schedules into memory; returns those that cannot be read, and why.
    async fn read_triggers(
        &mut self,
        tx: &mut Tx,
        ids: &[TriggerId],
    ) -> Result<Vec<(TriggerId, String)>> {
        let mut unreadable = Vec::new();
        if ids.is_empty() {
            return Ok(unreadable);
        }
        for (id, found) in trigger::by_ids(tx, ids).await? {
            match found {
                Ok(found) => drop(self.known.insert(id, found)),
                Err(said) => unreadable.push((id, said)),
            }
        }
        Ok(unreadable)
    }
}

const AHEAD: &str = "write the firings of a pass (a taken key means that a schedule has a row for a time \
     ahead of it: was job_trigger_time written by hand? The next pass leaves that time out)";

/// Removes rows that exist already.
async fn drop_known(tx: &mut Tx, rows: &mut Vec<NewFiring>) -> Result<()> {
    let planned = || rows.iter().map(|row| row.planned_at);
    let (Some(first), Some(last)) = (planned().min(), planned().max()) else { return Ok(()) };
    let ids: BTreeSet<TriggerId> = rows.iter().map(|row| row.trigger_id).collect();
    let ids: Vec<TriggerId> = ids.into_iter().collect();
    let there = firing::planned_between(tx, &ids, first.plus_ms(-1), last).await?;
    let there: HashSet<_> = there.into_iter().collect();
    rows.retain(|row| !there.contains(&(row.trigger_id, row.planned_at)));
    Ok(())
}
