//! Explains why a batch is late: the decisive chain of jobs, and which of them took longer than
//! usual or waited.

use crate::domain::batch::Snapshot;
use crate::domain::batch::history::History;
use crate::domain::dag::{Dag, Node};
use crate::domain::dispatch::slots::{Resource, SlotNeeds};
use crate::domain::forecast::eta::{Forecast, decisive, decisive_before, limits};
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::time::Millis;
use schemars::JsonSchema;
use serde::Serialize;

/// Delays shorter than this, in milliseconds, are ignored.
const LEAST_MS: i64 = 1_000;
/// A job took longer than usual from this fraction (1/n) of its median on.
const NOTABLE_PART: i64 = 10;
/// The job type that ends by a user's decision.
const APPROVAL: &str = "APPROVAL";

/// Times of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTimes {
    /// Its state.
    pub status: QueueStatus,
    /// Start of its first attempt in this run.
    pub first_start: Option<Millis>,
    /// Start of the current or last attempt.
    pub start: Option<Millis>,
    /// End of the last attempt.
    pub end: Option<Millis>,
    /// Earliest start.
    pub not_before: Option<Millis>,
    /// When an operator released it, if it was held.
    pub released: Option<Millis>,
    /// When an operator last started its rerun.
    pub started_over: Option<Millis>,
}

/// One state change of a job, from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// When.
    pub at: Millis,
    /// The new state.
    pub status: QueueStatus,
    /// Start of the attempt concerned.
    pub start: Option<Millis>,
}

impl JobTimes {
    /// The same times with what the job's log adds to its row: earlier attempts, holds, reruns.
    #[must_use]
    pub fn with_changes(self, changes: &[StateChange]) -> Self {
        let mut times = Self { first_start: None, released: None, started_over: None, ..self };
        let mut before = None;
        for change in changes {
            match (before, change.status) {
                (Some(_), QueueStatus::Pending) if before != Some(QueueStatus::Held) => {
                    (times.first_start, times.released) = (None, None);
                    times.started_over = Some(change.at);
                }
                (Some(QueueStatus::Held), status) if status != QueueStatus::Held => {
                    times.released = Some(change.at);
                }
                _ => {}
            }
            times.first_start = times.first_start.or(change.start);
            before = Some(change.status);
        }
        times.first_start = times.first_start.or(self.start);
        times
    }
}

impl From<&QueueEntry> for JobTimes {
    fn from(row: &QueueEntry) -> Self {
        Self {
            status: row.status,
            first_start: row.start_time,
            start: row.start_time,
            end: row.end_time,
            not_before: row.not_before,
            released: None,
            started_over: None,
        }
    }
}

/// Cause of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DelayKind {
    /// It took longer than usual, or is doing so.
    TookLonger,
    /// It waited for a user's approval.
    Approval,
    /// Failed attempts, and the delays after them.
    Retries,
    /// It was held by an operator.
    Held,
    /// It had ended, and an operator started a rerun later.
    StartedOver,
    /// It waited for another batch.
    OtherBatch,
    /// It waited for a lock.
    Lock,
    /// It waited for capacity of a pool, a data source or a host.
    Pool,
    /// It waited for a slot, of the process or of its group.
    Slot,
    /// It started late for no reason within this batch.
    LateStart,
}

/// One delay on the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayCause {
    /// The delayed job.
    pub job: Node,
    /// The cause.
    pub kind: DelayKind,
    /// Length in milliseconds; for a job that took longer, the excess.
    pub ms: i64,
    /// Its duration and its usual duration, where the duration is the cause.
    pub took: Option<(i64, i64)>,
    /// Name of the awaited resource, if it has one.
    pub resource: Option<String>,
    /// The job of this batch that held the resource last.
    pub held_by: Option<Node>,
}

/// One job of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// It.
    pub job: Node,
    /// Milliseconds from the end of its last parent to its first start.
    pub waited_ms: i64,
    /// Duration of its last attempt, so far if it is running.
    pub ran_ms: Option<i64>,
    /// Usual duration.
    pub usual_ms: Option<i64>,
}

/// The decisive chain, and its delays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayReport {
    /// The chain in running order, including jobs that have not begun.
    pub chain: Vec<ChainLink>,
    /// The delays, longest first.
    pub causes: Vec<DelayCause>,
}

/// The inputs of the explanation.
#[derive(Clone, Copy, Debug)]
pub struct DelayInput<'a> {
    /// What it runs.
    pub snapshot: &'a Snapshot,
    /// Its dependencies.
    pub dag: &'a Dag,
    /// Parallel to its jobs.
    pub times: &'a [JobTimes],
    /// Usual durations.
    pub history: &'a History,
    /// Global limit of concurrent jobs.
    pub total: u32,
    /// When it was opened.
    pub opened: Millis,
    /// Now, or the end of the batch.
    pub now: Millis,
}

impl DelayInput<'_> {
    /// The decisive jobs: those that were, followed by those that will be according to the
    /// forecast.
    pub fn decisive_chain(&self, forecast: Option<&Forecast>) -> Vec<Node> {
        let ran = |times: &JobTimes| {
            times.end.filter(|_| times.start.is_some() && times.status.is_final())
        };
        let ends: Vec<Option<Millis>> = self.times.iter().map(ran).collect();
        let running = |node: &Node| self.times[node.index()].status == QueueStatus::Running;
        let path = match forecast.map(|f| f.path.clone()).filter(|path| !path.is_empty()) {
            Some(path) => path,
            // Without a history the job that has run longest is the likeliest.
            None => {
                let nodes = self.dag.in_order().iter().copied().filter(running);
                nodes.min_by_key(|n| self.times[n.index()].start).into_iter().collect()
            }
        };
        match path.first() {
            Some(first) => [decisive_before(self.dag, &ends, *first), path].concat(),
            None => decisive(self.dag, &ends),
        }
    }

    /// The delays of the jobs of a chain.
    pub fn explain(&self, chain: &[Node]) -> DelayReport {
        let mut report = DelayReport::default();
        for &job in chain {
            self.add_job_delay(job, &mut report);
        }
        report.causes.retain(|cause| cause.ms >= LEAST_MS);
        report.causes.sort_by_key(|cause| std::cmp::Reverse(cause.ms));
        report
    }

    fn add_job_delay(&self, job: Node, report: &mut DelayReport) {
        let times = &self.times[job.index()];
        let code = &self.snapshot.jobs[job.index()].code;
        let usual_ms = self.history.get(code).map(|durations| durations.p50);
        let ready = self.ready_at(job);
        let begun = times.first_start.or(ready.map(|_| self.now));
        let waited_ms = match (ready, begun) {
            (Some(ready), Some(begun)) => {
                report.causes.extend(self.waits(job, ready, begun));
                begun.since(ready).max(0)
            }
            _ => 0,
        };
        let has_ended = times.status.is_final();
        let is_running = matches!(times.status, QueueStatus::Running | QueueStatus::Killing);
        let until = if is_running { Some(self.now) } else { times.end.filter(|_| has_ended) };
        let ran_ms = times.start.zip(until).map(|(start, end)| end.since(start).max(0));
        if let (Some(ran), Some(usual)) = (ran_ms, usual_ms)
            && ran - usual > usual / NOTABLE_PART
        {
            let is_approval = self.snapshot.jobs[job.index()].job_type.as_str() == APPROVAL;
            let kind = if is_approval { DelayKind::Approval } else { DelayKind::TookLonger };
            let took = Some((ran, usual));
            let cause = DelayCause { took, ..plain(job, kind, ran - usual) };
            report.causes.push(cause);
        }
        let last = match times.status {
            QueueStatus::RetryWait => Some(self.now),
            _ => times.start,
        };
        if let (Some(first), Some(last)) = (times.first_start, last) {
            report.causes.push(plain(job, DelayKind::Retries, last.since(first)));
        }
        report.chain.push(ChainLink { job, waited_ms, ran_ms, usual_ms });
    }

    /// When everything that a job waits for within its batch had ended; `None` while something has
    /// not.
    fn ready_at(&self, job: Node) -> Option<Millis> {
        let mut ready = self.opened;
        for parent in self.dag.parents(job) {
            let times = &self.times[parent.index()];
            if !times.status.is_final() {
                // A rule that needs one parent only lets a job start before the others end.
                return self.times[job.index()].first_start;
            }
            ready = ready.max(times.end.unwrap_or(ready));
        }
        Some(ready)
    }

    /// Why a job that was ready at `ready` began at `begun`.
    fn waits(&self, job: Node, ready: Millis, begun: Millis) -> Vec<DelayCause> {
        let times = &self.times[job.index()];
        // A time of day is as planned, and is no delay.
        let planned = self.snapshot.jobs[job.index()].schedule_time.and(times.not_before);
        let mut from = planned.map_or(ready, |at| ready.max(at));
        let mut found = Vec::new();
        if let Some(again) = times.started_over.map(|at| at.min(begun)).filter(|at| *at > from) {
            found.push(plain(job, DelayKind::StartedOver, again.since(from)));
            from = again;
        }
        let released = match times.status {
            QueueStatus::Held => Some(begun),
            _ => times.released.map(|at| at.min(begun)),
        };
        if let Some(released) = released.filter(|at| *at > from) {
            found.push(plain(job, DelayKind::Held, released.since(from)));
            from = released;
        }
        let rest = begun.since(from);
        if rest >= LEAST_MS {
            found.push(self.waited_for(job, rest, begun));
        }
        found
    }

    /// What blocked a job just before it began: the resources that other jobs of the batch held
    /// then.
    fn waited_for(&self, job: Node, ms: i64, begun: Millis) -> DelayCause {
        let needs = |node: Node| SlotNeeds::for_job(&self.snapshot.jobs[node.index()]);
        let mut slots = limits(self.snapshot, self.total);
        let before = begun.plus_ms(-1);
        let others = (0..self.times.len()).map(|i| Node(i as u32)).filter(|node| {
            let times = &self.times[node.index()];
            let end = times.end.filter(|_| times.status.is_final()).unwrap_or(Millis(i64::MAX));
            *node != job && times.start.is_some_and(|start| start <= before) && end > before
        });
        let others: Vec<Node> = others.collect();
        others.iter().for_each(|node| slots.acquire(&needs(*node)));
        let Some(full) = slots.what_is_full(&needs(job)) else {
            let def = &self.snapshot.jobs[job.index()];
            let mut outside = self.snapshot.externals.iter().filter(|e| e.job_code == def.code);
            return match outside.next() {
                Some(external) => {
                    let resource = Some(external.target());
                    DelayCause { resource, ..plain(job, DelayKind::OtherBatch, ms) }
                }
                None => plain(job, DelayKind::LateStart, ms),
            };
        };
        let uses = others.into_iter().filter(|node| needs(*node).amount_of(&full.what) > 0);
        let held_by = uses.min_by_key(|node| {
            (self.times[node.index()].end.is_none(), self.times[node.index()].end)
        });
        let (kind, resource) = match &full.what {
            Resource::Lock(name) => (DelayKind::Lock, Some(name.clone())),
            Resource::Pool(name) | Resource::Host(name) => (DelayKind::Pool, Some(name.clone())),
            Resource::Source(name) => (DelayKind::Pool, Some(name.to_string())),
            Resource::Total | Resource::Label(_) | Resource::Node(_) | Resource::Group(_) => {
                (DelayKind::Slot, None)
            }
        };
        DelayCause { resource, held_by, ..plain(job, kind, ms) }
    }
}

fn plain(job: Node, kind: DelayKind, ms: i64) -> DelayCause {
    DelayCause { job, kind, ms, took: None, resource: None, held_by: None }
}

#[cfg(test)]
#[path = "delay_tests.rs"]
mod tests;
