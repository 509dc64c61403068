//! How this process gets a batch: opened by an order, or resumed.

use crate::domain::action::OperatorAction;
use crate::domain::action::refusal::{ActionRefusal, Refusals};
use crate::domain::action::rerun::{RerunScope, UnknownJobs};
use crate::domain::batch::open_check::{plan_opening, plan_opening_moved};
use crate::domain::batch::{Batch, BatchOrder, BatchPlan, BatchStatus, Snapshot, deadline};
use crate::domain::dag::Node as Place;
use crate::domain::dispatch::deferral;
use crate::domain::id::{BatchId, JobCode};
use crate::domain::job::Definition;
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::time::Millis;
use crate::engine::cluster::registry::{Judged, RemoteAttemptTable};
use crate::engine::dispatch::acquire::OfBatch;
use crate::engine::dispatch::batch::{Active, KeptState};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::look_around::refuse_overtaken;
use crate::engine::dispatch::run_loop::is_stale;
use crate::engine::dispatch::writes::Changes;
use crate::engine::observe::lateness::AlarmHistory;
use crate::engine::opening::create_batch::{OpeningResult, PackedPlan, open_plans, write_plan};
use crate::engine::opening::cross_batch::{self, CrossBatchDependencies};
use crate::engine::opening::edge_conditions::outputs_of;
use crate::engine::opening::refresh_definition::renewed;
use crate::engine::opening::refused::OpeningRefusal;
use crate::engine::opening::unfinished_opening::{OpeningProgress, UnfinishedOpening};
use crate::engine::operate::operator_actions::{self, OperatorCommandOrigin};
use crate::store::audit::Operator;
use crate::store::batch::StillOpening;
use crate::store::hosted::HostedReports;
use crate::store::long_computation::compute;
use crate::store::{self, Tx, batch, hosted, node, queue};
use anyhow::{Context as _, Result};
use std::collections::HashMap;

/// How often rows that change while they are taken over are read again.
const READ_AGAIN: u32 = 5;

/// Called with the progress of opening a batch.
pub type ReportProgress<'a> = &'a mut (dyn FnMut(OpeningProgress) + Send);

/// A batch that was resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    pub batch_id: BatchId,
    /// Jobs that start over, if the batch had ended.
    pub again: Vec<JobCode>,
}

/// A batch as stored.
struct StoredBatch {
    batch: Batch,
    snapshot: Snapshot,
    rows: Vec<QueueEntry>,
}

fn is_running(row: &QueueEntry) -> bool {
    matches!(row.status, QueueStatus::Running | QueueStatus::Killing)
}

impl QueueDispatcher {
    /// Opens the batches of an order: snapshot and one queue row per active job, in one transaction
    /// for all of them. Writes nothing when all of them exist.
    pub async fn open_batches(
        &mut self,
        defs: &Definition,
        order: &BatchOrder,
        by: &str,
    ) -> Result<Vec<BatchId>> {
        Ok(self.open_each(defs, order, by, &mut |_| ()).await?.opened)
    }

    /// Like `open_batches`, and returns the batches that exist already. `report` is called after
    /// each step of a batch of many jobs.
    pub async fn open_each(
        &mut self,
        defs: &Definition,
        order: &BatchOrder,
        by: &str,
        report: ReportProgress<'_>,
    ) -> Result<OpeningResult> {
        let now = self.process.clock.now();
        let plans = compute(defs.jobs.len(), || plan_opening(defs, order, now))?;
        let made = self.create_planned(plans, by, now).await?;
        self.read_opened(&made, report).await?;
        Ok(made)
    }

    /// Writes the batches of an order for this process, without reading them into memory: [`Self::read_opened`] does
    /// that. The definition is not needed any more, and is not copied.
    pub async fn create_batches(
        &self,
        defs: Definition,
        order: &BatchOrder,
        by: &str,
    ) -> Result<OpeningResult> {
        let now = self.process.clock.now();
        let plans = compute(defs.jobs.len(), || plan_opening_moved(defs, order, now))?;
        self.create_planned(plans, by, now).await
    }

    async fn create_planned(
        &self,
        plans: Vec<BatchPlan>,
        by: &str,
        now: Millis,
    ) -> Result<OpeningResult> {
        open_plans(&self.process.db, Some(self.process.node.id()), plans, by, now).await
    }

    /// Reads created batches into memory, and writes the queue rows that are still missing.
    pub async fn read_opened(
        &mut self,
        made: &OpeningResult,
        report: ReportProgress<'_>,
    ) -> Result<()> {
        for id in &made.opened {
            self.open_and_read(*id, Judged::ByLease, report).await.context(OfBatch(*id))?;
        }
        Ok(())
    }

    pub(super) async fn write_plan(
        &self,
        tx: &mut Tx,
        plan: &PackedPlan,
        by: &str,
        now: Millis,
    ) -> Result<BatchId> {
        write_plan(tx, plan, Some(self.process.node.id()), by.into(), now).await
    }

    /// Resumes a batch: one that a dead process left, from the state of its rows; one that failed,
    /// from its failures. A batch of a living process is refused. With `latest` the batch continues
    /// with the present bodies and settings of its jobs.
    pub async fn resume(
        &mut self,
        there: &Batch,
        unknown: UnknownJobs,
        latest: Option<&Definition>,
    ) -> Result<Resumed> {
        self.resume_by(there, unknown, latest, None, &mut |_| ()).await
    }

    /// Like `resume`, and records who did it. `report` is called after each step of a batch whose
    /// opening continues.
    pub async fn resume_by(
        &mut self,
        there: &Batch,
        unknown: UnknownJobs,
        latest: Option<&Definition>,
        by: Option<&Operator>,
        report: ReportProgress<'_>,
    ) -> Result<Resumed> {
        let now = self.process.clock.now();
        let mut tx = self.process.db.begin().await?;
        let again = match self.take_in(&mut tx, there, unknown, (latest, by), now).await {
            Ok(again) => again,
            Err(refused) => {
                tx.rollback().await?;
                return Err(refused);
            }
        };
        tx.commit().await.context("take the batch over")?;
        failpoint!("recover.step");
        self.load_taken(there.batch_id, report).await?;
        Ok(Resumed { batch_id: there.batch_id, again })
    }

    /// Writes that the batch belongs to this process and continues; call `load_batch` once that is
    /// committed. Returns the jobs that start over.
    pub(super) async fn take_in(
        &self,
        tx: &mut Tx,
        there: &Batch,
        unknown: UnknownJobs,
        (latest, by): (Option<&Definition>, Option<&Operator>),
        now: Millis,
    ) -> Result<Vec<JobCode>> {
        let (no, group) = (there.values.batch_no.to_string(), there.values.group.to_string());
        batch::lock_batch(tx, there.batch_id).await?;
        if let Some(owner) = &there.owner
            && let Some(holder) = node::find_node(tx, owner).await?
            && holder.lease_until > now
        {
            let (host, pid, until) = (holder.host, holder.pid, holder.lease_until);
            return Err(OpeningRefusal::Owned { batch_no: no, group, host, pid, until }.into());
        }
        let (_, old) = batch::get_with_snapshot(tx, there.batch_id).await?;
        let mut timeout_sec = old.group.batch_timeout_sec;
        if let Some(latest) = latest {
            batch::refuse_opening(tx, there).await?;
            let rows = queue::of_batch(tx, there.batch_id).await?;
            let present = renewed(&old, (latest, there), &rows)?;
            batch::replace_snapshot(tx, there.batch_id, &present).await?;
            timeout_sec = present.group.batch_timeout_sec;
        }
        let deadline = there.deadline_resumed(timeout_sec, now);
        batch::set_deadline(tx, there.batch_id, deadline).await?;
        let mut again = Vec::new();
        let mut status = there.status;
        if status.is_final() {
            again = self.start_over(tx, there, unknown, by, now).await?;
            status = BatchStatus::Running;
        }
        if !batch::take_over(tx, there, self.process.node.id(), status, now).await? {
            return Err(OpeningRefusal::Hurried(no, group).into());
        }
        Ok(again)
    }

    async fn start_over(
        &self,
        tx: &mut Tx,
        there: &Batch,
        unknown: UnknownJobs,
        by: Option<&Operator>,
        now: Millis,
    ) -> Result<Vec<JobCode>> {
        let (no, group) = (there.values.batch_no.to_string(), there.values.group.to_string());
        if there.status.is_success() {
            return Err(OpeningRefusal::Ended(no, group, there.status).into());
        }
        let action = OperatorAction::Rerun(RerunScope::FromFailure, unknown);
        let planned = match operator_actions::plan_in(tx, there, None, action, &[], now).await {
            Err(error) => match error.downcast_ref::<Refusals>().map(|r| r.all.as_slice()) {
                Some([ActionRefusal::Nothing(unknown)]) => {
                    let unknown: Vec<&str> = unknown.iter().map(JobCode::as_str).collect();
                    return Err(OpeningRefusal::OnlyUnknown(no, group, unknown.join(", ")).into());
                }
                _ => return Err(error),
            },
            Ok(planned) => planned,
        };
        let nobody = Operator::new("an operator".to_owned(), String::new());
        let deed = OperatorCommandOrigin { action, by: by.unwrap_or(&nobody), reason: "--resume" };
        operator_actions::write_rows(tx, &planned, deed, now).await?;
        if by.is_some() {
            operator_actions::write_audit(tx, there, &planned, deed, now).await?;
        }
        Ok(planned.lines.iter().map(|l| l.job_code.clone()).collect())
    }

    /// Reads a batch that was just taken over. A body of class `same` that its last owner left
    /// behind may end its row in between, or hold a lock on it; then the rows are read again.
    async fn load_taken(&mut self, id: BatchId, report: ReportProgress<'_>) -> Result<()> {
        for _ in 0..READ_AGAIN {
            match self.open_and_read(id, Judged::ByLease, report).await.context(OfBatch(id)) {
                Err(error) if store::is_transient(&error) || is_stale(&error) => {}
                other => return other,
            }
        }
        self.open_and_read(id, Judged::ByLease, report).await.context(OfBatch(id))
    }

    /// Like `read_in`, and first writes the missing queue rows of a batch.
    async fn open_and_read(
        &mut self,
        id: BatchId,
        judged: Judged,
        report: ReportProgress<'_>,
    ) -> Result<()> {
        match self.read_in(id, judged).await {
            Err(error) if error.is::<StillOpening>() => {
                let mut opening = UnfinishedOpening::read_batch(&self.process.db, id).await?;
                while !opening
                    .write_step(&self.process.db, self.process.node.id(), self.process.clock.now())
                    .await?
                {
                    report(opening.progress());
                }
                // The opening holds the definition, which is now read again.
                drop(opening);
                self.read_in(id, judged).await
            }
            other => other,
        }
    }

    /// Reads a batch of this process from its rows into memory, replacing its old state. Memory
    /// changes only when all of it has been read and the changes owed to the rows are committed.
    pub(super) async fn load_batch(&mut self, id: BatchId) -> Result<()> {
        // A batch that is new here belonged to a process whose lease had expired, or an operator
        // resumes it.
        let is_new = !self.batches.active.contains_key(&id);
        let judges = is_new || self.process.heart.may_take_over();
        let judged = if judges { Judged::ByLease } else { Judged::NotYet };
        self.open_and_read(id, judged, &mut |_| ()).await.context(OfBatch(id))
    }

    /// Like `load_batch`, for a batch that no process owned: its jobs may run on nodes that are
    /// silent only because the database was unavailable.
    pub(super) async fn load_nobodys(&mut self, id: BatchId) -> Result<()> {
        let judged =
            if self.process.heart.may_take_over() { Judged::ByLease } else { Judged::NotYet };
        self.read_in(id, judged).await.context(OfBatch(id))
    }

    /// Reads just claimed batches without running jobs into memory, all in one transaction: one by
    /// one each costs seven round trips, and schedules open hundreds per second. Returns those that
    /// were read; the others must be read one by one.
    pub(super) async fn load_together(&mut self, ids: &[BatchId]) -> Result<Vec<BatchId>> {
        let now = self.process.clock.now();
        let mut tx = self.process.db.begin().await?;
        let batches = batch::lock_all(&mut tx, ids).await?;
        let Some(mut rows) = queue::of_few(&mut tx, ids).await? else { return Ok(Vec::new()) };
        let reported = hosted::reported_batches(&mut tx, ids).await?;
        let mut snapshots = batch::snapshots(&mut tx, ids).await?;
        let mut read = Vec::new();
        for batch in batches {
            let id = batch.batch_id;
            let rows = rows.remove(&id).unwrap_or_default();
            let is_quiet = !reported.contains(&id) && !rows.iter().any(is_running);
            let is_ours = batch.owner.as_ref() == Some(self.process.node.id());
            let is_quiet = is_quiet && batch.unwritten_jobs == 0;
            let Some(snapshot) = snapshots.remove(&id).filter(|_| is_quiet && is_ours) else {
                continue;
            };
            let others = self.others(id, &[], Judged::NotYet, &HostedReports::default());
            let stored = StoredBatch { batch, snapshot, rows };
            let (active, owed) = self.rebuild(&mut tx, stored, others, now).await?;
            owed.write(&mut tx, self.process.node.id(), now).await?;
            read.push((active, owed));
        }
        failpoint!("recover.step");
        tx.commit().await.context("read batches from their rows")?;
        failpoint!("recover.step");
        let mut loaded = Vec::new();
        for (active, owed) in read {
            loaded.push(active.batch.batch_id);
            self.adopt(active, owed, HostedReports::default(), now);
        }
        Ok(loaded)
    }

    /// Reads a batch without a lock, and writes the changes owed to its rows in a transaction of
    /// its own, which is refused when the owner or the revision changed meanwhile. The batch is
    /// read before its rows: memory never has a later revision than the rows it was made from.
    ///
    /// On SQLite a transaction that may write blocks all others. Unpacking and rebuilding 100,000
    /// jobs within it took longer than the lease on a busy machine: the lease was lost, the batch
    /// was read again, and so on forever.
    async fn read_in(&mut self, id: BatchId, judged: Judged) -> Result<()> {
        let now = self.process.clock.now();
        let mut tx = self.process.db.begin_read().await?;
        let (batch, packed) = batch::get_with_packed_snapshot(&mut tx, id).await?;
        let batch = batch::whole(batch)?;
        if batch.owner.as_ref() != Some(self.process.node.id()) {
            tx.rollback().await?;
            return self.let_go(&batch);
        }
        batch::refuse_opening(&mut tx, &batch).await?;
        let snapshot = packed.unpack()?;
        let rows = queue::of_batch(&mut tx, id).await?;
        let is_others = |row: &QueueEntry| row.owner.as_ref() != Some(self.process.node.id());
        let runs_elsewhere = rows.iter().any(|row| is_running(row) && is_others(row));
        let members = match runs_elsewhere {
            true => node::members(&mut tx, now).await?,
            false => Vec::new(),
        };
        let reports = hosted::reports_of(&mut tx, id).await?;
        let others = self.others(id, &members, judged, &reports);
        let stored = StoredBatch { batch, snapshot, rows };
        let (active, owed) = self.rebuild(&mut tx, stored, others, now).await?;
        tx.rollback().await?;
        failpoint!("recover.read");
        if runs_elsewhere || !owed.writes_nothing() {
            self.write_owed(id, &owed, &reports, now).await?;
        }
        failpoint!("recover.step");
        self.adopt(active, owed, reports, now);
        Ok(())
    }

    /// Writes the changes owed to the rows of a batch that was read.
    async fn write_owed(
        &self,
        id: BatchId,
        owed: &Changes,
        known: &HostedReports,
        now: Millis,
    ) -> Result<()> {
        let mut tx = self.process.db.begin().await?;
        owed.write(&mut tx, self.process.node.id(), now).await?;
        // After the lock on the batch, which is always taken first.
        hosted::note_dispatcher(&mut tx, id, Some(self.process.node.id())).await?;
        refuse_overtaken(&mut tx, id, owed, known).await?;
        failpoint!("recover.step");
        tx.commit().await.context("write what the rows of a batch were owed")
    }

    /// Builds the memory state of a batch from its rows, with the changes still to be written to
    /// them.
    async fn rebuild(
        &self,
        tx: &mut Tx,
        StoredBatch { batch, snapshot, rows }: StoredBatch,
        others: RemoteAttemptTable,
        now: Millis,
    ) -> Result<(Active, Changes)> {
        let (id, revision) = (batch.batch_id, batch.revision);
        let outputs = outputs_of(tx, &snapshot, &rows).await?;
        let outside = cross_batch::read_awaited(tx, &batch, &snapshot, now).await?;
        let outside = CrossBatchDependencies::from_awaited(&batch, outside);
        let before = self.batches.active.get(&id).map(|a| a.alarms.clone()).unwrap_or_default();
        let past = AlarmHistory::read_past(tx, &batch, &snapshot, &rows, &before).await?;
        let deferrals = self.deferrals(tx, id, &snapshot).await?;
        let alarms = (before, past);
        let kept = KeptState { others, alarms, deferrals, ..self.kept_state(id, &snapshot, now) };
        let (active, mut owed) = compute(rows.len(), || {
            Active::rebuild(
                batch,
                snapshot,
                rows,
                (outputs, outside),
                self.process.node.id(),
                kept,
                now,
            )
        })?;
        owed.batches.insert(id, revision);
        Ok((active, owed))
    }

    /// By how much each job of a batch is deferred in favour of jobs with less slack; unchanged
    /// after the first read. Reads nothing for a batch whose jobs need not wait for each other.
    async fn deferrals(&self, tx: &mut Tx, id: BatchId, snapshot: &Snapshot) -> Result<Vec<i64>> {
        if let Some(there) = self.batches.active.get(&id)
            && there.rows.len() == snapshot.jobs.len()
        {
            return Ok(there.ready.deferrals().to_vec());
        }
        if !deferral::is_worth_it(snapshot, self.fleet.max_parallel) {
            return Ok(Vec::new());
        }
        let history = store::history::of_recent_batches(tx, &snapshot.group.code).await?;
        compute(snapshot.jobs.len(), || {
            let dag = snapshot.build_dag()?;
            Ok(deferral::deferrals_by_history(snapshot, &dag, &history, self.batches.ageing_ms))
        })
    }

    /// Takes a batch into memory once the changes owed to its rows are committed.
    fn adopt(&mut self, mut active: Active, owed: Changes, reports: HostedReports, now: Millis) {
        let id = active.batch.batch_id;
        self.batches.slots.limit_as(&active.snapshot);
        let untold = |node: &Place| {
            self.running
                .bodies
                .get(&active.row_at(*node).queue_id)
                .is_some_and(|body| !body.is_told)
        };
        let untold: Vec<Place> = active.in_hand().filter(untold).collect();
        untold.into_iter().for_each(|node| active.watch(node));
        self.batches.places.extend(active.places().map(|(row, place)| (row, (id, place))));
        // A stop requested by an operator has been committed to the row.
        active.stop_bodies();
        let news = match self
            .batches
            .active
            .get(&id)
            .filter(|a| a.batch.revision != active.batch.revision)
        {
            Some(before) => active.changed_since(before, now),
            None => owed.news,
        };
        self.batches.active.insert(id, active);
        self.trace(&owed.ended, &[], now);
        self.come_home(id);
        self.hear_reports(reports);
        self.publish_events(news);
        self.end_orphans(id);
        self.ask_about_locks(id);
    }

    /// What memory knows of a batch beyond its rows; empty for a batch that is new to this process.
    fn kept_state(&self, id: BatchId, snapshot: &Snapshot, now: Millis) -> KeptState {
        let (ageing_ms, park_after) = (self.batches.ageing_ms, self.batches.park_after);
        match self.batches.active.get(&id) {
            Some(there) => KeptState {
                stops: there.stops.clone(),
                since: there.since,
                warn_at: there.watch.batch,
                ageing_ms,
                park_after,
                others: RemoteAttemptTable::default(),
                alarms: Default::default(),
                deferrals: Vec::new(),
            },
            None => KeptState {
                stops: HashMap::new(),
                since: now,
                warn_at: deadline(snapshot.group.warn_after_sec, now),
                ageing_ms,
                park_after,
                others: RemoteAttemptTable::default(),
                alarms: Default::default(),
                deferrals: Vec::new(),
            },
        }
    }

    /// Releases a batch that no longer belongs to this process: its bodies here are stopped,
    /// because the new owner may start the same jobs. A batch that has ended (the answer to that
    /// commit was lost) is closed.
    fn let_go(&mut self, batch: &Batch) -> Result<()> {
        let id = batch.batch_id;
        if batch.status.is_final() {
            self.close(id, batch.status);
            return Ok(());
        }
        self.ends.waiters.remove(&id);
        if let Some(active) = self.batches.active.remove(&id) {
            active.stop_all();
            self.keep_bodies(id, &active);
        }
        Err(TakenOver(batch.values.batch_no.to_string(), batch.values.group.to_string()).into())
    }
}

/// Another process took the batch over while this one was silent.
#[derive(Debug, thiserror::Error)]
#[error(
    "batch {0} of group {1} was taken over by another process, because this one was silent for \
     longer than its lease; its jobs here were stopped"
)]
pub struct TakenOver(String, String);
