//! Forecasts the end of a batch and its decisive jobs: past durations applied to the remaining
//! jobs, from the state at one moment.

use crate::domain::batch::history::{DurationBasis, Estimate, History};
use crate::domain::batch::{BatchPlan, Snapshot};
use crate::domain::dag::{Dag, Node};
use crate::domain::dispatch::deferral;
use crate::domain::dispatch::readiness::Rules;
use crate::domain::dispatch::slots::{SlotNeeds, Slots};
use crate::domain::forecast::certainty::{Certainty, Confidence, JudgedForecast};
use crate::domain::forecast::remaining::Remaining;
use crate::domain::forecast::simulation::{SimulatedEnds, simulate};
use crate::domain::forecast::slack::{RemainingWork, Stage, passes};
use crate::domain::forecast::timeline::{AGEING_MS, Open, Timeline, simulate_batch};
use crate::domain::id::JobCode;
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::job::trigger_rule::{EdgeTally, TriggerDecision, TriggerRule, evaluate_edge};
use crate::domain::time::Millis;
use std::collections::HashMap;

/// Progress of a job, as far as a forecast needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// Its state.
    pub status: QueueStatus,
    /// Start of the current or last attempt.
    pub start: Option<Millis>,
    /// End of the last attempt.
    pub end: Option<Millis>,
    /// Earliest start.
    pub not_before: Option<Millis>,
}

impl From<&QueueEntry> for JobProgress {
    fn from(row: &QueueEntry) -> Self {
        Self {
            status: row.status,
            start: row.start_time,
            end: row.end_time,
            not_before: row.not_before,
        }
    }
}

/// The forecast of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Estimated duration.
    pub estimate: Estimate,
    /// Expected or actual start.
    pub start: Option<Millis>,
    /// Expected or actual end.
    pub end: Option<Millis>,
    /// Milliseconds by which it may end later without delaying the batch, by dependencies only;
    /// `None` when it has ended.
    pub slack: Option<i64>,
    /// Whether it is open and has no slack.
    pub critical: bool,
    /// Position in the starting order; `None` when it has ended.
    pub turn: Option<usize>,
}

/// The forecast of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// The moment of the forecast.
    pub now: Millis,
    /// Parallel to the jobs.
    pub jobs: Vec<Expected>,
    /// Median of the end of the last job.
    pub end: Millis,
    /// End in a bad case: the 90th percentile.
    pub bad_end: Millis,
    /// Certainty.
    pub confidence: Confidence,
    /// End with unlimited slots: the end of the critical path.
    pub bound: Millis,
    /// The chain of open jobs without slack that decides `bound`, in running order.
    pub path: Vec<Node>,
    /// Number of open jobs.
    pub open: usize,
    /// Open jobs without history, whose duration is assumed.
    pub assumed: Vec<Node>,
    /// Open jobs held by an operator; treated as if they were released now.
    pub held: Vec<Node>,
    /// Jobs that have not ended and are not counted: they run only after a failure that has not
    /// happened, or not at all any more.
    pub left_out: Vec<Node>,
}

impl Forecast {
    /// Milliseconds to the expected end.
    pub fn remaining(&self) -> i64 {
        self.end.since(self.now)
    }

    /// Milliseconds to the end in a bad case.
    pub fn bad_remaining(&self) -> i64 {
        self.bad_end.since(self.now)
    }
}

/// The limits of a batch, with nothing in use: `total` jobs at once, those of its group, sources
/// and pools.
pub fn limits(snapshot: &Snapshot, total: u32) -> Slots {
    let mut slots = Slots::new(total);
    slots.limit_as(snapshot);
    slots
}

/// The forecast of a batch in the state `standing`, parallel to the jobs of `snapshot`, when at
/// most `total` jobs run at once. `None` when none of its jobs has a history.
pub fn forecast(
    snapshot: &Snapshot,
    dag: &Dag,
    standing: &[JobProgress],
    history: &History,
    total: u32,
    now: Millis,
) -> Option<Forecast> {
    let estimates = history.estimates(snapshot.jobs.iter().map(|j| &j.code))?;
    let stages = stages(snapshot, dag, standing);
    let others = medians(snapshot, history);
    let rests: Vec<Remaining<'_>> = (snapshot.jobs.iter().zip(standing).zip(&stages))
        .map(|((job, standing), stage)| {
            let tries = history.tries(&job.code);
            let tries = if tries.is_empty() { &others } else { tries };
            Remaining::from_durations(tries, elapsed(standing, *stage, now))
        })
        .collect();
    let deferrals = match deferral::is_worth_it(snapshot, total) {
        true => deferral::deferrals_by_history(snapshot, dag, history, AGEING_MS),
        false => Vec::new(),
    };
    let open: Vec<Option<Open>> = (snapshot.jobs.iter().zip(standing).enumerate())
        .map(|(at, (job, standing))| {
            let left = remaining_work(standing, &rests[at], stages[at]?, now);
            let deferral = deferrals.get(at).copied().unwrap_or(0);
            Some(Open { left, priority: job.priority, needs: SlotNeeds::for_job(job), deferral })
        })
        .collect();
    let limits = limits(snapshot, total);
    let ends = simulate(dag, &open, &rests, &limits, now);
    let timeline = simulate_batch(dag, &open, limits, now);
    let medians = Medians { estimates: &estimates, stages: &stages, standing, open: &open };
    let mut forecast = medians.lay_out(dag, &timeline, now);
    if let Some(SimulatedEnds { p50, p90 }) = ends {
        // No job ends after the batch.
        forecast.end = p50.max(timeline.end);
        forecast.bad_end = p90.max(forecast.end);
    }
    forecast.confidence = Confidence::judge(&JudgedForecast {
        snapshot,
        statuses: &standing.iter().map(|s| s.status).collect::<Vec<_>>(),
        is_open: &open.iter().map(Option::is_some).collect::<Vec<_>>(),
        rests: &rests,
        assumed: &forecast.assumed,
        held: &forecast.held,
        path: &forecast.path,
        remaining_ms: forecast.remaining(),
        bad_remaining_ms: forecast.bad_remaining(),
    });
    Some(forecast)
}

/// Inputs of a forecast by medians only; lists are parallel to the jobs.
struct Medians<'a> {
    estimates: &'a [Estimate],
    stages: &'a [Option<Stage>],
    standing: &'a [JobProgress],
    open: &'a [Option<Open>],
}

impl Medians<'_> {
    /// The forecast before its certainty is judged.
    fn lay_out(&self, dag: &Dag, timeline: &Timeline, now: Millis) -> Forecast {
        let Self { estimates, stages, standing, open } = *self;
        let left: Vec<Option<RemainingWork>> =
            open.iter().map(|o| o.as_ref().map(|o| o.left)).collect();
        let passes = passes(dag, &left, now);
        let expected = |i: usize| Expected {
            estimate: estimates[i],
            // The recorded start of a job that waits for a retry belongs to its last attempt, not
            // to the expected one.
            start: match stages[i] {
                Some(Stage::Running) | None => standing[i].start,
                Some(_) => timeline.runs[i].map(|run| run.start),
            },
            end: timeline.runs[i].map_or(standing[i].end, |run| Some(run.end)),
            slack: passes.slack[i],
            critical: passes.slack[i] == Some(0),
            turn: timeline.runs[i].map(|r| r.turn),
        };
        let which = |test: &dyn Fn(usize) -> bool| -> Vec<Node> {
            (0..left.len()).filter(|i| test(*i)).map(|i| Node(i as u32)).collect()
        };
        let is_open = |i: usize| left[i].is_some();
        Forecast {
            now,
            jobs: (0..left.len()).map(expected).collect(),
            end: timeline.end,
            bad_end: timeline.bad_end,
            confidence: Confidence { certainty: Certainty::Sure, doubt: None },
            bound: passes.end,
            path: passes.path,
            open: left.iter().flatten().count(),
            assumed: which(&|i| is_open(i) && estimates[i].basis == DurationBasis::Assumed),
            held: which(&|i| is_open(i) && standing[i].status == QueueStatus::Held),
            left_out: which(&|i| !is_open(i) && !standing[i].status.is_final()),
        }
    }
}

/// Replacement for the history of a job without one: the usual durations of the other jobs of the
/// batch.
fn medians(snapshot: &Snapshot, history: &History) -> Vec<i64> {
    let known = snapshot.jobs.iter().filter_map(|job| history.get(&job.code));
    let mut medians: Vec<i64> = known.map(|durations| durations.p50).collect();
    medians.sort_unstable();
    medians
}

/// The forecast of a batch that is opened at `now`.
pub fn of_plan(
    plan: &BatchPlan,
    dag: &Dag,
    history: &History,
    total: u32,
    now: Millis,
) -> Option<Forecast> {
    let standing = |not_before: &Option<Millis>| JobProgress {
        status: QueueStatus::Pending,
        start: None,
        end: None,
        not_before: *not_before,
    };
    let standing: Vec<JobProgress> = plan.not_before.iter().map(standing).collect();
    forecast(&plan.snapshot, dag, &standing, history, total, now)
}

/// The decisive chain of an ended batch: the job that ended last, its parent that ended last, and
/// so on back to a job without parents; in running order.
pub fn decisive(dag: &Dag, ends: &[Option<Millis>]) -> Vec<Node> {
    match last_ended(&mut dag.in_order().iter().copied(), ends) {
        Some(last) => [decisive_before(dag, ends, last), vec![last]].concat(),
        None => Vec::new(),
    }
}

/// The decisive chain before one job, without the job itself.
pub fn decisive_before(dag: &Dag, ends: &[Option<Millis>], job: Node) -> Vec<Node> {
    let mut chain = Vec::new();
    let mut at = last_ended(&mut dag.parents(job), ends);
    while let Some(node) = at {
        chain.push(node);
        at = last_ended(&mut dag.parents(node), ends);
    }
    chain.reverse();
    chain
}

/// Of two that ended in the same millisecond the first in the batch, so that a picture is stable.
fn last_ended(nodes: &mut dyn Iterator<Item = Node>, ends: &[Option<Millis>]) -> Option<Node> {
    let end = |node: &Node| ends.get(node.index()).copied().flatten();
    let ended = nodes.filter(|n| end(n).is_some());
    ended.max_by_key(|n| (end(n), std::cmp::Reverse(*n)))
}

/// What each job waits for if everything succeeds from now on: every body, every condition on an
/// output, every awaited batch. `None` for jobs that have ended, and for those that do not run in
/// this case.
fn stages(snapshot: &Snapshot, dag: &Dag, standing: &[JobProgress]) -> Vec<Option<Stage>> {
    let rules = Rules::from_jobs(&snapshot.jobs, &snapshot.dependencies);
    let mut outside: HashMap<&JobCode, u32> = HashMap::new();
    snapshot.externals.iter().for_each(|e| *outside.entry(&e.job_code).or_default() += 1);
    let mut ends: Vec<QueueStatus> = standing.iter().map(|s| s.status).collect();
    let mut stages = vec![None; standing.len()];
    for &node in dag.in_order() {
        let met = outside.get(dag.job_code(node)).copied().unwrap_or_default();
        let decided = |end: &dyn Fn(Node) -> QueueStatus| decided(dag, &rules, node, met, end);
        let well = |s: QueueStatus| if s.is_final() { s } else { QueueStatus::Success };
        stages[node.index()] = match ends[node.index()] {
            status if status.is_final() => None,
            QueueStatus::Running | QueueStatus::Killing => Some(Stage::Running),
            QueueStatus::Queued | QueueStatus::RetryWait => Some(Stage::Ready),
            _ if decided(&|p| standing[p.index()].status) == Some(TriggerDecision::Run) => {
                Some(Stage::Ready)
            }
            _ => match decided(&|p| well(ends[p.index()])) {
                Some(TriggerDecision::Run) | None => Some(waiting_stage(rules.of_job(node))),
                Some(TriggerDecision::Fail) => {
                    ends[node.index()] = QueueStatus::UpstreamFailed;
                    None
                }
                Some(TriggerDecision::NotTaken) => {
                    ends[node.index()] = QueueStatus::NotTaken;
                    None
                }
            },
        };
    }
    stages
}

/// The decision about a job whose parents end as `end` says, with `met` awaited batches having
/// succeeded.
fn decided(
    dag: &Dag,
    rules: &Rules,
    node: Node,
    met: u32,
    end: &dyn Fn(Node) -> QueueStatus,
) -> Option<TriggerDecision> {
    let mut tally = EdgeTally { met, ..EdgeTally::default() };
    for (parent, dependency) in dag.arrows_in(node) {
        tally.open += 1;
        if let Some(edge) = evaluate_edge(rules.condition(dependency), end(parent), |_| true) {
            tally.count_edge(edge);
        }
    }
    tally.decide(rules.of_job(node))
}

fn waiting_stage(rule: TriggerRule) -> Stage {
    match rule {
        TriggerRule::OneSuccess | TriggerRule::OneFailed => Stage::AfterFirst,
        TriggerRule::AllSuccess | TriggerRule::AllDone => Stage::AfterAll,
        TriggerRule::AllFailed | TriggerRule::NoneFailed => Stage::AfterAll,
    }
}

/// Milliseconds that a job has been running; 0 if it is not running.
fn elapsed(standing: &JobProgress, stage: Option<Stage>, now: Millis) -> i64 {
    match stage {
        Some(Stage::Running) => now.since(standing.start.unwrap_or(now)).max(0),
        _ => 0,
    }
}

/// The remaining work of a job that has not ended.
fn remaining_work(
    standing: &JobProgress,
    rest: &Remaining<'_>,
    stage: Stage,
    now: Millis,
) -> RemainingWork {
    let from = match stage {
        Stage::Running => now,
        _ => standing.not_before.unwrap_or(now).max(now),
    };
    let ms = rest.median();
    RemainingWork { stage, from, ms, spread: rest.percentile_90() - ms }
}

#[cfg(test)]
#[path = "eta_tests.rs"]
mod tests;
