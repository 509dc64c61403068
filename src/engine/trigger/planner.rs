//! The pass: under the schedule lock, what falls due within seconds gets its rows and its next time.
//!
//! One transaction: the lock row, what is due in the order of time, rows of `job_firing` and next times
//! in bulk, commit. Nothing slow is under the lock: no HTTP, no job, no mail but its row. Whatever goes
//! wrong undoes all of it. The firings go on the ring only once they are rows that are committed.

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

/// How far ahead firings are decided. XXL-JOB's figure; also the longest silence that a fail-over may
/// take, because firings decided by a process that then dies are rows which wait.
pub(super) const AHEAD_MS: i64 = 5_000;
/// Schedules of one pass, so that the lock is held for a fraction of a second even at the top of an
/// hour; what is left comes with the next pass, at once.
const LIMIT: u32 = 5_000;
/// Schedules that are read under the lock; more are read before it is taken.
const UNREAD_MOST: usize = 200;
/// Schedules whose definition is kept in memory.
const KNOWN_MAX: usize = 50_000;

/// Plans firings; one per process.
pub struct Planner {
    /// A door whose sessions lose what they have locked after 5 s of silence.
    pub(super) door: Db,
    clock: Clock,
    node: NodeId,
    meter: Arc<Meter>,
    pub(super) known: HashMap<TriggerId, Trigger>,
    pub(super) calendars: (i64, Calendars),
    /// Whether the next pass looks first which of its rows are there already.
    caution: Caution,
    /// Whether the schedules that are due were read before the lock was taken.
    has_read: HasRead,
    /// Groups whose next run is to be written: after the commit, because groups are large and the lock is short.
    stale: StaleGroups,
}

/// How much was read before the lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HasRead {
    Little,
    All,
}

/// Whether a pass trusts that no row is ahead of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caution {
    Trusting,
    Careful,
}

/// What a pass has done.
#[derive(Debug, Default)]
pub struct PlannerPass {
    /// What is to fire, and when; committed.
    pub firings: Vec<Firing>,
    /// Whether more is due than one pass takes.
    pub more: bool,
}

/// The lock row was not there.
#[derive(Debug, thiserror::Error)]
#[error(
    "the row schedule_lock was gone from job_lock, so nothing was locked and nothing was planned; it has \
     been put back. Somebody or something deletes rows of that table: find out who"
)]
pub struct LockGone;

/// How far the database's clock may be from what this process takes for it.
const DOUBT_MS: i64 = 1_000;

/// The database's clock is not where this process believes it to be.
#[derive(Debug, thiserror::Error)]
#[error(
    "the clock of the database is {0} ms away from where it was; nothing is planned until that is sure"
)]
pub struct InDoubt(i64);

/// Rows that one pass writes, more or less: of a flood of missed times the rest comes with the next
/// passes, because between two statements no more may be thought than the server waits for (5 s).
const ROWS_MOST: usize = 20_000;

/// What one pass writes.
#[derive(Default)]
pub(super) struct PlannedWrites {
    pub(super) rows: Vec<NewFiring>,
    pub(super) standings: Vec<ScheduleProgress>,
    /// Schedules that cannot go on, and why.
    pub(super) ended: Vec<(TriggerId, String)>,
    /// Whether some of what is due is left to the next pass.
    pub(super) more: bool,
}

impl Planner {
    /// A planner behind `door` (see `Keeping::Brief`).
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
            // What an earlier process left between its commit and this.
            stale: StaleGroups::All,
        }
    }

    /// One pass.
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
                // Dropped and not rolled back: nothing more is asked of a connection that failed under
                // the lock, and the server undoes what it has.
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
        // On SQLite, where this door is everybody's, with what others read meanwhile.
        let statements = self.door.counts().statements - said;
        let (due_count, rows) = (u64::try_from(due.len())?, u64::try_from(firings.len())?);
        self.meter.record_pass(due_count, rows, statements);
        tracing::debug!(due = due_count, rows, statements, wait_ms, hold_ms, "a pass");
        let more = more || due.len() == usize::try_from(LIMIT)?;
        Ok(PlannerPass { firings, more })
    }

    /// A pass that leaves the lock alone until it has read the schedules that are due. After a start all
    /// of them are new, and to read 5,000 takes longer than to plan and write them.
    async fn pass_having_read(&mut self, due: &[DueTrigger]) -> Result<PlannerPass> {
        let news = self.unknown(due);
        let mut tx = self.door.begin_read().await?;
        // One that cannot be read is read once more under the lock, and ended there.
        self.read_triggers(&mut tx, &news).await?;
        tx.rollback().await?;
        self.has_read = HasRead::All;
        Box::pin(self.run_pass()).await
    }

    /// Answers the ends of batches that make something fire, or let a fixed delay begin; for whoever has
    /// seen that there are some.
    pub async fn follow(&mut self) -> Result<()> {
        let mut tx = self.door.begin().await?;
        if lock::hold_lock(&mut tx, SCHEDULE_LOCK).await?.is_none() {
            tx.rollback().await?;
            return self.repair_firings().await.map(drop);
        }
        let now = self.due_time(&mut tx).await?;
        // Under the lock, for another node may have been faster.
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
            // Ends that count for nobody; they are seen until newer ones come.
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

    /// Has the next runs of all groups compared with the schedules at the next beat: two nodes that wrote at once may
    /// have left an older one.
    pub fn doubt_next_runs(&mut self) {
        self.stale = StaleGroups::All;
    }

    fn note_stale(&mut self, moved: &[DueTrigger]) {
        let known = moved.iter().filter_map(|due| self.known.get(&due.trigger_id));
        known.for_each(|trigger| self.stale.add_schedule(&trigger.def));
    }

    /// Writes `job_def.next_run_time` of the groups whose schedules have moved. What fails is done with the next
    /// pass.
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

    /// Leaves what this process decided and has not fired to the others, at once.
    pub async fn leave(self) -> Result<()> {
        let mut tx = self.door.begin().await?;
        firing::release(&mut tx, &self.node, self.clock.now()).await?;
        hint::send_hint(&mut tx, HintTopic::Trigger).await?;
        tx.commit().await?;
        Ok(())
    }

    /// What counts as now: the database's clock, for it is the same for all nodes. Nothing is planned
    /// while what we take for it is another time; the next heartbeats settle which is right.
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

    /// Ends schedules that cannot go on, and tells their owners.
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

    /// A schedule that was read.
    pub(super) fn known(&self, id: TriggerId) -> Option<&Trigger> {
        self.known.get(&id)
    }

    pub(super) fn all_known(&self) -> &HashMap<TriggerId, Trigger> {
        &self.known
    }

    /// Reads the schedules that memory does not have, or has in another version.
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

    /// The schedules that memory does not have, or has in another version.
    fn unknown(&self, due: &[DueTrigger]) -> Vec<TriggerId> {
        let is_known = |due: &&DueTrigger| {
            self.known.get(&due.trigger_id).is_some_and(|known| known.revision == due.revision)
        };
        due.iter().filter(|due| !is_known(due)).map(|due| due.trigger_id).collect()
    }

    /// Reads these into memory; gives those that cannot be read, and why.
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

/// Leaves out what has a row.
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
