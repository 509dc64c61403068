//! Whether a schedule fires faster than its batches can end.

use super::TriggerFinding;
use crate::domain::batch::BatchPlan;
use crate::domain::id::GroupCode;
use crate::domain::schedule::Occurrence;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::time::span_words;
use std::collections::BTreeMap;

/// A batch may take so many times the time between two firings before that alone is refused: nobody
/// has said then how long it may take, and so many batches would wait.
const TIMES: i64 = 60;

/// What is known of how long a batch takes.
struct Length<'a> {
    group: &'a GroupCode,
    ms: i64,
    known: DurationSource,
}

/// Where that is from.
#[derive(Clone, Copy)]
enum DurationSource {
    /// From batches that ended.
    History,
    /// Somebody has written it: `batch_timeout_sec`.
    Limit,
    /// The time-outs of its jobs, the longest way through.
    Timeouts,
}

impl DurationSource {
    /// How long a batch takes or may take, and how that is known.
    fn describe(self, long: &str) -> String {
        match self {
            Self::History => format!("takes {long}, going by its history"),
            Self::Limit => format!("may take {long} (batch_timeout_sec)"),
            Self::Timeouts => format!("may take {long} (the time-outs of its jobs)"),
        }
    }
}

/// Compares the time between firings with the longest of the batches that one opens.
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

/// The median of the times between firings: a pause at night says nothing of the day.
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

/// The time-outs along the longest way through the DAG; milliseconds.
fn longest_way(plan: &BatchPlan) -> i64 {
    // It was built when the plan was made.
    let Ok(dag) = plan.snapshot.build_dag() else { return 0 };
    let mut ends = vec![0i64; dag.len()];
    for node in dag.in_order() {
        let before = dag.parents(*node).map(|parent| ends[parent.index()]).max().unwrap_or(0);
        ends[node.index()] =
            before + i64::from(plan.snapshot.jobs[node.index()].timeout_sec) * 1_000;
    }
    ends.into_iter().max().unwrap_or(0)
}
