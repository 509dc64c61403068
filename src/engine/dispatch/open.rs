//! How a batch comes into the hands of this process: opened by an order, or resumed.

use crate::domain::action::OperatorAction;
use crate::domain::action::refusal::{ActionRefusal, Refusals};
use crate::domain::action::rerun::{RerunScope, UnknownJobs};
use crate::domain::batch::{Batch, BatchOrder, BatchStatus, Snapshot, deadline};
use crate::domain::dag::Node as Place;
use crate::domain::dispatch::deferral;
use crate::domain::id::{BatchId, JobCode};
use crate::domain::job::Definition;
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::time::Millis;
use crate::engine::cluster::registry::{Judged, RemoteAttemptTable};
use crate::engine::dispatch::acquire::OfBatch;
use crate::engine::dispatch::batch::{Active, KeptState, StoredBatch};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::look_around::refuse_overtaken;
use crate::engine::dispatch::run_loop::is_stale;
use crate::engine::dispatch::writes::Changes;
use crate::engine::observe::lateness::AlarmHistory;
use crate::engine::opening::create_batch::{OpeningResult, PackedPlan, open_as, write_plan};
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

/// How often rows that change while they are taken over are read once more.
const READ_AGAIN: u32 = 5;

/// Called with how far the opening of a batch is.
pub type ReportProgress<'a> = &'a mut (dyn FnMut(OpeningProgress) + Send);

/// A batch that was resumed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// The batch.
    pub batch_id: BatchId,
    /// Jobs that start over, when it had ended.
    pub again: Vec<JobCode>,
}

fn is_running(row: &QueueEntry) -> bool {
    matches!(row.status, QueueStatus::Running | QueueStatus::Killing)
}

impl QueueDispatcher {
    /// Opens the batches an order asks for: snapshot and one queue row per active job, in one
    /// transaction for all of them. Nothing is written when all of them exist.
    pub async fn open_batches(
        &mut self,
        defs: &Definition,
        order: &BatchOrder,
        by: &str,
    ) -> Result<Vec<BatchId>> {
        Ok(self.open_each(defs, order, by, &mut |_| ()).await?.opened)
    }

    /// As `open`, and names the batches that exist already. `report` is called after each step of a batch of many jobs.
    pub async fn open_each(
        &mut self,
        defs: &Definition,
        order: &BatchOrder,
        by: &str,
        report: ReportProgress<'_>,
    ) -> Result<OpeningResult> {
        let made = self.create_batches(defs, order, by).await?;
        self.read_opened(&made, report).await?;
        Ok(made)
    }

    /// Writes the batches of an order for this process, without reading them into memory: [`Self::read_opened`] does
    /// that, for which the definition is not needed any more.
    pub async fn create_batches(
        &self,
        defs: &Definition,
        order: &BatchOrder,
        by: &str,
    ) -> Result<OpeningResult> {
        open_as(
            &self.process.db,
            Some(self.process.node.id()),
            defs,
            order,
            by,
            self.process.clock.now(),
        )
        .await
    }

    /// Reads batches that were created into memory, and writes the queue rows that are still missing.
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
        write_plan(tx, plan, Some(self.process.node.id()), by, now).await
    }

    /// Goes on with a batch: one that a dead process left, where its rows say; one that ended
    /// badly, from its failures. A living process's batch is refused.
    /// With `latest` the batch goes on with the present bodies and settings of its jobs.
    pub async fn resume(
        &mut self,
        there: &Batch,
        unknown: UnknownJobs,
        latest: Option<&Definition>,
    ) -> Result<Resumed> {
        self.resume_by(there, unknown, latest, None, &mut |_| ()).await
    }

    /// As `resume`, and puts on record who did it. `report` is called after each step of one whose opening goes on.
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
        let again = match self.take_in(&mut tx, there, unknown, latest, by, now).await {
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

    /// Writes that a batch is ours and goes on; `load` it once that is committed. What it gives are
    /// the jobs that start over.
    pub(super) async fn take_in(
        &self,
        tx: &mut Tx,
        there: &Batch,
        unknown: UnknownJobs,
        latest: Option<&Definition>,
        by: Option<&Operator>,
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
            let present = renewed(&old, latest, there, &rows)?;
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

    /// Reads a batch that was just taken over. A body of class `same` that its last owner left behind may
    /// end its row in between, or meet us over it; then the rows are read once more.
    async fn load_taken(&mut self, id: BatchId, report: ReportProgress<'_>) -> Result<()> {
        for _ in 0..READ_AGAIN {
            match self.open_and_read(id, Judged::ByLease, report).await.context(OfBatch(id)) {
                Err(error) if store::is_transient(&error) || is_stale(&error) => {}
                other => return other,
            }
        }
        self.open_and_read(id, Judged::ByLease, report).await.context(OfBatch(id))
    }

    /// As `read_in`, and writes the queue rows of a batch before that has not all of them.
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
                // It holds the definition, which is read once more now.
                drop(opening);
                self.read_in(id, judged).await
            }
            other => other,
        }
    }

    /// Reads a batch of ours from its rows into memory, replacing what memory held of it. Memory
    /// changes only when all of it has been read and what the rows were owed is committed.
    pub(super) async fn load_batch(&mut self, id: BatchId) -> Result<()> {
        // One that is new here was somebody's whose lease had run out, or an operator wants it.
        let is_new = !self.batches.active.contains_key(&id);
        let judges = is_new || self.process.heart.may_take_over();
        let judged = if judges { Judged::ByLease } else { Judged::NotYet };
        self.open_and_read(id, judged, &mut |_| ()).await.context(OfBatch(id))
    }

    /// As `load`, of a batch that nobody had: whose jobs may run on nodes that are only silent because
    /// the database was away.
    pub(super) async fn load_nobodys(&mut self, id: BatchId) -> Result<()> {
        let judged =
            if self.process.heart.may_take_over() { Judged::ByLease } else { Judged::NotYet };
        self.read_in(id, judged).await.context(OfBatch(id))
    }

    /// Reads batches into memory that were just taken and of which nothing runs, all in one transaction:
    /// one by one each costs seven round trips, and schedules open hundreds a second. Gives those that
    /// were read; the others have to be read by themselves.
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

    /// Reads a batch without a lock, and writes what its rows were owed in a transaction of its own, which refuses when
    /// the owner or the revision changed meanwhile. The batch is read before its rows: memory is never of a later
    /// revision than the rows it was made from.
    ///
    /// On SQLite a transaction that may write keeps all others from writing. Unpacking and rebuilding 100,000 jobs within
    /// it took longer than the lease on a busy machine: the lease was lost, the batch was read again, and so on for ever.
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

    /// Writes what the rows of a batch were owed when it was read.
    async fn write_owed(
        &self,
        id: BatchId,
        owed: &Changes,
        known: &HostedReports,
        now: Millis,
    ) -> Result<()> {
        let mut tx = self.process.db.begin().await?;
        owed.write(&mut tx, self.process.node.id(), now).await?;
        // After the lock on the batch, which comes first everywhere.
        hosted::note_dispatcher(&mut tx, id, Some(self.process.node.id())).await?;
        refuse_overtaken(&mut tx, id, owed, known).await?;
        failpoint!("recover.step");
        tx.commit().await.context("write what the rows of a batch were owed")
    }

    /// Makes memory of a batch from its rows; with it, what the rows were owed and is still to be written.
    async fn rebuild(
        &self,
        tx: &mut Tx,
        stored: StoredBatch,
        others: RemoteAttemptTable,
        now: Millis,
    ) -> Result<(Active, Changes)> {
        let StoredBatch { batch, snapshot, rows } = &stored;
        let (id, revision) = (batch.batch_id, batch.revision);
        let outputs = outputs_of(tx, snapshot, rows).await?;
        let outside = cross_batch::read_awaited(tx, batch, snapshot, now).await?;
        let outside = CrossBatchDependencies::from_awaited(batch, outside);
        let before = self.batches.active.get(&id).map(|a| a.alarms.clone()).unwrap_or_default();
        let past = AlarmHistory::read_past(tx, batch, snapshot, rows, &before).await?;
        let deferrals = self.deferrals(tx, id, snapshot).await?;
        let alarms = (before, past);
        let kept = KeptState { others, alarms, deferrals, ..self.kept_state(id, snapshot, now) };
        let (active, mut owed) = compute(rows.len(), || {
            Active::rebuild(stored, outputs, outside, self.process.node.id(), kept, now)
        })?;
        owed.batches.insert(id, revision);
        Ok((active, owed))
    }

    /// By how much each job of a batch steps back for those with less slack; as long as the batch is here, by what was
    /// read first. Nothing is read for a batch whose jobs need not wait for each other.
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

    /// Takes a batch into memory once what it was owed is committed.
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
        // What an operator wants stopped, its row says since that was committed.
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

    /// What memory knows of a batch beyond its rows; of one that is new to this process, nothing yet.
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

    /// A batch that is not ours any more: its bodies here are stopped, because whoever has it now
    /// may start the same jobs. One that ended (the answer to that commit was lost) is closed.
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

/// Another process has taken a batch over while this one was not heard of.
#[derive(Debug, thiserror::Error)]
#[error(
    "batch {0} of group {1} was taken over by another process, because this one was silent for \
     longer than its lease; its jobs here were stopped"
)]
pub struct TakenOver(String, String);
