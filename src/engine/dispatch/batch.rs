//! The in-memory state of one batch that this process dispatches, changed by events. No I/O.

use crate::domain::batch::{Batch, BatchStatus, Snapshot};
use crate::domain::dag::{Dag, Node};
use crate::domain::dispatch::readiness::{Gates, Readiness, Released, Rules};
use crate::domain::dispatch::ready::{ReadyList, SetAside};
use crate::domain::dispatch::slots::{SlotNeeds, Slots};
use crate::domain::id::{JobCode, NodeId, QueueId};
use crate::domain::job::JobDef;
use crate::domain::job::outcome::JobOutputs;
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::job::trigger_rule::Edge;
use crate::domain::params;
use crate::domain::schedule::ring::TimeRing;
use crate::domain::time::Millis;
use crate::domain::value::expr::Expr;
use crate::engine::attempt::run::UpstreamOutputs;
use crate::engine::cluster::registry::RemoteAttemptTable;
use crate::engine::dispatch::claim::{needs, parents_of};
use crate::engine::dispatch::fan_out::Lists;
use crate::engine::dispatch::long_running_alerts::LongRunningWatch;
use crate::engine::dispatch::stop::Stopped;
use crate::engine::dispatch::writes::Changes;
use crate::engine::observe::lateness::{AlarmHistory, Alarms};
use crate::engine::opening::cross_batch::CrossBatchDependencies;
use crate::engine::opening::edge_conditions::{allows, holds, needed_values, wanted_outputs};
use crate::engine::opening::large_values::NamesByJob;
use crate::handler::StopReason;
use crate::store::log::ExecutionLog;
use anyhow::{Context as _, Result};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::watch;

/// A batch that this process dispatches.
pub(super) struct Active {
    pub(super) batch: Batch,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) dag: Dag,
    rules: Rules,
    pub(super) outside: CrossBatchDependencies,
    pub(super) readiness: Readiness,
    pub(super) rows: Vec<QueueEntry>,
    pub(super) ready: ReadyList,
    /// Ready since the last tick; jobs that find no slot become QUEUED rows.
    pub(super) fresh: Vec<Node>,
    /// Jobs that are ready except for the time: retries with a delay, `schedule_time`. They use the
    /// same timer ring as firings.
    timers: TimeRing<Node>,
    pub(super) stops: HashMap<Node, watch::Sender<Option<StopReason>>>,
    /// Jobs that run on other nodes, with the node.
    pub(super) away: HashMap<Node, NodeId>,
    /// Those of them whose nodes are dead and whose locks on data sources may still be held.
    pub(super) lock_waits: HashSet<Node>,
    /// Jobs of dead nodes whose time limit has passed, so that what runs of them must be ended.
    pub(super) overdue: HashSet<Node>,
    /// Labels that its jobs require.
    pub(super) labels: BTreeSet<String>,
    /// Bodies here whose rows have ended and that have not reported yet.
    pub(super) awaited: HashSet<Node>,
    /// What dead processes left running and must be ended, once the rows belong to this process.
    pub(super) to_end: Vec<(Node, StopReason)>,
    /// Outputs that parameters of other jobs refer to; all others stay in the database.
    pub(super) outputs: HashMap<JobCode, JobOutputs>,
    pub(super) wanted: HashSet<JobCode>,
    /// Outputs whose values conditions and lists need in memory, however long they are.
    pub(super) needed_values: NamesByJob,
    pub(super) killing: bool,
    /// Ready jobs whose list is still to be expanded, and lists that cannot be, with the reason.
    pub(super) lists: Lists,
    pub(super) stopped: Option<Stopped>,
    pub(super) watch: LongRunningWatch,
    pub(super) alarms: Alarms,
    /// When this process got the batch; waiting time counts from here.
    pub(super) since: Millis,
}

/// A batch as its rows say.
pub(super) struct StoredBatch {
    pub(super) batch: Batch,
    pub(super) snapshot: Snapshot,
    pub(super) rows: Vec<QueueEntry>,
}

/// What a rebuild takes over from memory, because rows do not say it.
pub(super) struct KeptState {
    pub(super) stops: HashMap<Node, watch::Sender<Option<StopReason>>>,
    pub(super) since: Millis,
    /// When the owners are notified that the batch still runs.
    pub(super) warn_at: Option<Millis>,
    /// The lateness notifications sent so far, and the history they are based on.
    pub(super) alarms: (Alarms, AlarmHistory),
    /// Waiting time that raises the priority by one point, in milliseconds.
    pub(super) ageing_ms: i64,
    /// By how much each job is deferred; empty when none is.
    pub(super) deferrals: Vec<i64>,
    /// Number of consecutive worker deaths after which a job is parked.
    pub(super) park_after: u32,
    /// What is known of attempts whose rows name other nodes, and of those that run here for
    /// others.
    pub(super) others: RemoteAttemptTable,
}

/// Sorts the rows of a batch into the order of its jobs; in place, because they are sorted already
/// unless jobs were added. Each job has one row.
fn in_order(rows: &mut Vec<QueueEntry>, snapshot: &Snapshot, batch: &Batch) -> Result<()> {
    let places: HashMap<&JobCode, usize> =
        snapshot.jobs.iter().enumerate().map(|(i, j)| (&j.code, i)).collect();
    rows.retain(|row| places.contains_key(&row.job_code));
    rows.sort_by_key(|row| places[&row.job_code]);
    for (i, job) in snapshot.jobs.iter().enumerate() {
        let row = rows.get_mut(i).filter(|row| row.job_code == job.code).with_context(|| {
            let no = &batch.values.batch_no;
            format!("job_queue has no row for job {} of batch {no}", job.code)
        })?;
        // Row and job share one string.
        row.job_code = job.code.clone();
    }
    Ok(())
}

impl Active {
    /// Builds the memory state from rows. Also returns the changes still to be written to the rows:
    /// jobs that a dead process left running, and jobs below a failure that are not marked yet.
    pub(super) fn rebuild(
        stored: StoredBatch,
        outputs: HashMap<JobCode, JobOutputs>,
        outside: CrossBatchDependencies,
        me: &NodeId,
        kept: KeptState,
        now: Millis,
    ) -> Result<(Self, Changes)> {
        let StoredBatch { batch, snapshot, mut rows } = stored;
        let dag = snapshot.build_dag()?;
        in_order(&mut rows, &snapshot, &batch)?;
        let status: Vec<QueueStatus> = rows.iter().map(|r| r.status).collect();
        let modes = rows.iter().map(|r| r.run_mode).collect();
        let rules = Rules::from_jobs(&snapshot.jobs, &snapshot.dependencies).with_modes(modes);
        let holds = |parent: Node, expr: &Expr| holds(&outputs, dag.job_code(parent), expr);
        let allows = |expr: &Expr| allows(&outputs, expr);
        let gates = Gates { dag: &dag, rules: &rules, holds: &holds, allows: &allows };
        let tallies = outside.tallies();
        let heard = |node: Node| tallies.get(&node).copied().unwrap_or_default();
        let (readiness, released) = Readiness::rebuild(gates, &status, &heard);
        let wanted = wanted_outputs(&snapshot);
        let needed_values = needed_values(&snapshot);
        let needs = snapshot.jobs.iter().zip(&rows).map(|(job, row)| needs(job, row));
        let labels = snapshot.jobs.iter().filter_map(|job| job.worker.clone()).collect();
        let ready =
            ReadyList::new(batch.batch_id, needs, kept.ageing_ms).with_deferrals(kept.deferrals);
        let killing = batch.status == BatchStatus::Killing;
        let mut this = Self {
            batch,
            snapshot: Arc::new(snapshot),
            dag,
            rules,
            outside,
            readiness,
            rows,
            ready,
            fresh: Vec::new(),
            timers: TimeRing::new(now),
            stops: kept.stops,
            away: HashMap::new(),
            lock_waits: HashSet::new(),
            overdue: HashSet::new(),
            labels,
            awaited: HashSet::new(),
            to_end: Vec::new(),
            outputs,
            wanted,
            needed_values,
            killing,
            lists: Lists::default(),
            stopped: None,
            watch: LongRunningWatch::from_batch_limit(kept.warn_at),
            alarms: Alarms::default(),
            since: kept.since,
        };
        this.come_home(me, &kept.others, now);
        this.await_reports();
        this.find_stop();
        let mut changes = Changes::default();
        this.take_in(released, &mut changes, now);
        this.adopt_orphans(me, kept.park_after, &mut changes, now);
        let (before, past) = kept.alarms;
        this.alarms = Alarms::for_batch(&this.batch, &this.snapshot, &this.rows, before, past, now);
        Ok((this, changes))
    }

    /// The job of a DAG node.
    pub(super) fn job_at(&self, node: Node) -> &JobDef {
        &self.snapshot.jobs[node.index()]
    }

    /// The row of a DAG node.
    pub(super) fn row_at(&self, node: Node) -> &QueueEntry {
        &self.rows[node.index()]
    }

    /// All DAG nodes with their row ids.
    pub(super) fn places(&self) -> impl Iterator<Item = (QueueId, Node)> + '_ {
        self.rows.iter().enumerate().map(|(i, r)| (r.queue_id, Node(i as u32)))
    }

    /// The direct dependencies of a job, and the outputs of other jobs that its parameters refer
    /// to.
    pub(super) fn asked_for(&self, node: Node) -> (Vec<JobCode>, UpstreamOutputs) {
        let parents = parents_of(&self.dag, node);
        let asked = params::outputs_asked(self.job_at(node), &parents);
        let found = asked.into_iter().filter_map(|(code, name)| {
            let value = self.outputs.get(&code)?.output(&name)?;
            Some(((code, name), value))
        });
        let given = found.collect();
        (parents, given)
    }

    /// Stores the switch that stops a running body.
    pub(super) fn started(&mut self, node: Node, stop: watch::Sender<Option<StopReason>>) {
        if self.killing {
            stop.send_replace(Some(StopReason::Killed));
        }
        self.stops.insert(node, stop);
    }

    /// Sets the state of a job in memory and applies what that releases; returns the codes of jobs
    /// that can no longer run.
    pub(super) fn set_status(
        &mut self,
        node: Node,
        to: QueueStatus,
        changes: &mut Changes,
        now: Millis,
    ) -> Vec<String> {
        self.rows[node.index()].status = to;
        let released = self.change(node, to);
        let failed = released.left.iter().filter(|(_, _, to)| *to == QueueStatus::UpstreamFailed);
        let blocked = failed.map(|(n, _, _)| self.job_at(*n).code.to_string()).collect();
        self.take_in(released, changes, now);
        blocked
    }

    /// Updates the counters for a job's new state; returns what that releases.
    pub(super) fn change(&mut self, node: Node, to: QueueStatus) -> Released {
        let (outputs, dag) = (&self.outputs, &self.dag);
        let holds = |parent: Node, expr: &Expr| holds(outputs, dag.job_code(parent), expr);
        let allows = |expr: &Expr| allows(outputs, expr);
        let gates = Gates { dag, rules: &self.rules, holds: &holds, allows: &allows };
        self.readiness.change(gates, node, to)
    }

    /// Applies the result of a dependency on another batch.
    pub(super) fn apply_edge(
        &mut self,
        node: Node,
        edge: Edge,
        changes: &mut Changes,
        now: Millis,
    ) {
        let (outputs, dag) = (&self.outputs, &self.dag);
        let holds = |parent: Node, expr: &Expr| holds(outputs, dag.job_code(parent), expr);
        let allows = |expr: &Expr| allows(outputs, expr);
        let gates = Gates { dag, rules: &self.rules, holds: &holds, allows: &allows };
        let released = self.readiness.resolve_external(gates, node, edge);
        self.take_in(released, changes, now);
    }

    fn take_in(&mut self, released: Released, changes: &mut Changes, now: Millis) {
        for (node, from, to) in released.left {
            if to == QueueStatus::UpstreamFailed
                && let Some(said) = self.outside.reason(node)
            {
                let row = &mut self.rows[node.index()];
                changes.said.entry(said.clone()).or_default().push(row.queue_id.0);
                row.error_message = Some(said);
            }
            self.move_row(node, from, to, changes, now);
        }
        for node in released.ready {
            self.ready_at(node, now);
        }
    }

    pub(super) fn ready_at(&mut self, node: Node, now: Millis) {
        match self.rows[node.index()].not_before {
            Some(at) if at > now => {
                self.timers.push(at, node);
            }
            _ => self.ready_now(node, now),
        }
    }

    pub(super) fn move_row(
        &mut self,
        node: Node,
        from: QueueStatus,
        to: QueueStatus,
        changes: &mut Changes,
        now: Millis,
    ) {
        let row = &mut self.rows[node.index()];
        row.status = to;
        changes.moved.entry((from, to)).or_default().push(row.queue_id.0);
        self.log_change(node, changes, now);
    }

    pub(super) fn log_change(&self, node: Node, changes: &mut Changes, now: Millis) {
        let row = &self.rows[node.index()];
        let tried = matches!(row.status, QueueStatus::Running) || row.end_time.is_some();
        let start_time = row.start_time.filter(|_| tried);
        let end_time = row.end_time.filter(|_| row.status != QueueStatus::Running);
        changes.batches.insert(self.batch.batch_id, self.batch.revision);
        changes.logs.push(ExecutionLog {
            queue_id: row.queue_id,
            status: row.status,
            start_time,
            end_time,
            error_message: row.error_message.clone(),
            notified: false,
            try_count: row.try_count,
            attempt: row.attempt,
            owner: row.owner.clone(),
        });
        changes.news.push(self.job_event(node, now));
    }

    /// Moves jobs whose time has come to the ready jobs.
    pub(super) fn wake_due_jobs(&mut self, now: Millis) {
        for (_, node) in self.timers.take_due(now) {
            self.ready_now(node, now);
        }
    }

    /// The next time at which a tick has work without an event.
    pub(super) fn next_wake(&self) -> Option<Millis> {
        let timer = self.timers.next().into_iter().chain(self.outside.next_deadline());
        timer.chain(self.deadline()).chain(self.next_long()).chain(self.alarms.next()).min()
    }

    /// The slots, pools and locks that a job takes while it runs.
    pub(super) fn needs(&self, node: Node) -> &SlotNeeds {
        self.ready.needs(node)
    }

    /// Reserves what its first ready jobs need, before any batch picks.
    pub(super) fn set_aside(&mut self, slots: &Slots, aside: &mut SetAside) {
        self.ready.set_aside(slots, aside);
    }

    /// Forgets all jobs of the batch that wait for a slot or a time.
    pub(super) fn forget_waiting(&mut self) {
        self.ready.clear();
        self.lists = Lists::default();
        self.fresh.clear();
        self.timers.clear();
    }

    /// The result, once every job is final.
    pub(super) fn result(&self) -> Option<BatchStatus> {
        if !self.readiness.is_done() || !self.awaited.is_empty() {
            return None;
        }
        if self.killing {
            return Some(BatchStatus::Killed);
        }
        let counted = self.rows.iter().filter(|r| !r.is_on_ice());
        Some(BatchStatus::from_job_statuses(counted.map(|r| r.status)))
    }

    /// Jobs whose bodies this process runs.
    pub(super) fn in_hand(&self) -> impl Iterator<Item = Node> + '_ {
        self.stops.keys().copied()
    }

    /// Jobs that run, here or elsewhere.
    pub(super) fn running_nodes(&self) -> impl Iterator<Item = Node> + '_ {
        self.stops.keys().chain(self.away.keys()).copied()
    }

    /// Whether a job runs, here or elsewhere.
    pub(super) fn is_out(&self, node: Node) -> bool {
        self.stops.contains_key(&node) || self.away.contains_key(&node)
    }

    /// Forgets the body of a job that is gone and whose end is committed.
    pub(super) fn forget(&mut self, node: Node) {
        self.stops.remove(&node);
        self.away.remove(&node);
    }
}
