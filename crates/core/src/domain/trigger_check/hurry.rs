//! Checks whether a schedule fires faster than its batches end.

use super::TriggerFinding;
use crate::domain::batch::BatchPlan;
use crate::domain::id::GroupCode;
use crate::domain::schedule::Occurrence;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::time::span_words;
use std::collections::BTreeMap;

/// Without a history, a schedule is refused only when a batch may take at least this many times the time between two
/// firings. A limit or a sum of time-outs is only an upper bound on the duration, and this many batches would wait.
const TIMES: i64 = 60;

/// Known duration of a batch.
struct Length<'a> {
    group: &'a GroupCode,
    ms: i64,
    known: DurationSource,
}

/// Where a duration comes from.
#[derive(Clone, Copy)]
enum DurationSource {
    /// Batches that have ended.
    History,
    /// The limit in the definition: `batch_timeout_sec`.
    Limit,
    /// The sum of the time-outs along the longest path of jobs.
    Timeouts,
}

impl DurationSource {
    /// Describes the duration and its origin.
    fn describe(self, long: &str) -> String {
        match self {
            Self::History => format!("takes {long}, going by its history"),
            Self::Limit => format!("may take {long} (batch_timeout_sec)"),
            Self::Timeouts => format!("may take {long} (the time-outs of its jobs)"),
        }
    }
}

/// Compares the time between firings with the longest duration among the batches that one firing opens.
pub(super) fn check(
    def: &TriggerDef,
    ahead: &[Occurrence],
    plans: &[BatchPlan],
    expected: &BTreeMap<GroupCode, i64>,
) -> Option<TriggerFinding> {
    let gap = usual_gap(ahead)?;
    let length = plans.iter().map(|plan| length(plan, expected)).max_by_key(|l| l.ms)?;
    if length.ms <= gap {
        return None;
    }
    let (every, long) = (span_words(gap), span_words(length.ms));
    let group = length.group;
    let what = format!(
        "it fires every {every}, and a batch of group {group} {}",
        length.known.describe(&long)
    );
    let key = def.timing.schedule.kind();
    let is_far = length.ms >= gap.saturating_mul(TIMES);
    let cure = match length.known {
        DurationSource::History => "let it fire less often, or write overlap: skip",
        DurationSource::Limit | DurationSource::Timeouts => {
            "let it fire less often, set batch_timeout_sec of the group to what a batch may take, or \
             write overlap: skip"
        }
    };
    match (def.overlap, length.known) {
        (Overlap::Queue, DurationSource::History) => Some(TriggerFinding::refused(
            key,
            format!("{what}: more and more firings would wait"),
            cure,
        )),
        (Overlap::Replace, DurationSource::History) => Some(TriggerFinding::refused(
            key,
            format!("{what}: each would be killed by the next"),
            cure,
        )),
        (Overlap::Queue | Overlap::Replace, DurationSource::Limit | DurationSource::Timeouts)
            if is_far =>
        {
            Some(TriggerFinding::refused(key, what, cure))
        }
        (Overlap::Queue | Overlap::Replace, DurationSource::Limit) => {
            Some(TriggerFinding::warned(key, what, cure))
        }
        (Overlap::Skip, DurationSource::History) => {
            let what = format!("{what}: some firings will be left out");
            Some(TriggerFinding::warned(
                key,
                what,
                "overlap: skip says so; nothing to do if that is meant",
            ))
        }
        (Overlap::Parallel, DurationSource::History) => {
            let what = format!("{what}: about {} will run at once", length.ms / gap + 1);
            Some(TriggerFinding::warned(
                key,
                what,
                "overlap: parallel says so; nothing to do if that is meant",
            ))
        }
        (Overlap::Queue | Overlap::Replace, DurationSource::Timeouts)
        | (Overlap::Skip | Overlap::Parallel, DurationSource::Limit | DurationSource::Timeouts) => {
            None
        }
    }
}

/// The median time between firings: the median ignores a pause at night.
fn usual_gap(ahead: &[Occurrence]) -> Option<i64> {
    let mut gaps: Vec<i64> =
        ahead.windows(2).map(|pair| pair[1].planned.since(pair[0].planned)).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied().filter(|gap| *gap > 0)
}

fn length<'a>(plan: &'a BatchPlan, expected: &BTreeMap<GroupCode, i64>) -> Length<'a> {
    let group = &plan.snapshot.group.code;
    if let Some(ms) = expected.get(group) {
        return Length { group, ms: *ms, known: DurationSource::History };
    }
    if let Some(sec) = plan.snapshot.group.batch_timeout_sec {
        return Length { group, ms: i64::from(sec) * 1_000, known: DurationSource::Limit };
    }
    Length { group, ms: longest_way(plan), known: DurationSource::Timeouts }
}

/// The sum of time-outs along the longest path through the DAG, in milliseconds.
fn longest_way(plan: &BatchPlan) -> i64 {
    // The plan was built from this DAG, so building it again succeeds.
    let Ok(dag) = plan.snapshot.build_dag() else { return 0 };
    let mut ends = vec![0i64; dag.len()];
    for node in dag.in_order() {
        let before = dag.parents(*node).map(|parent| ends[parent.index()]).max().unwrap_or(0);
        ends[node.index()] =
            before + i64::from(plan.snapshot.jobs[node.index()].timeout_sec) * 1_000;
    }
    ends.into_iter().max().unwrap_or(0)
}
