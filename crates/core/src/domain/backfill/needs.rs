//! Finds batches of a backfill that wait for other batches of the same backfill, and waits that can never end.

use super::{
    BackfillAction, BackfillEntry, BackfillError, BackfillFailurePolicy, BackfillOptions,
    BackfillSelection, BackfillStep, EntryStatus, ExistingBatchState,
};
use crate::domain::batch::implied_business_date;
use crate::domain::batch_no::RelativeBatch;
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::external::{ExternalDependency, Missing};
use crate::domain::job::trigger_rule::EdgeCondition;
use std::collections::{BTreeMap, HashMap};

/// Whether a batch waits for all of another batch or for one job, which may have succeeded although its batch did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededExtent {
    /// For the whole batch, which must end well.
    Batch,
    /// For one job, or for any end.
    Part,
}

/// A batch waits for another of the same backfill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillNeed {
    /// Index of the awaited batch.
    pub place: usize,
    /// The job that waits.
    pub job: JobCode,
    /// How much of the awaited batch must end.
    pub whole: NeededExtent,
}

/// What each batch that will run waits for within the list. With `missing: fail` or `pass`, a job waits only for a
/// batch that exists, which here is one that is still open.
pub fn needs(
    externals: &[ExternalDependency],
    group: &GroupCode,
    steps: &[BackfillStep],
) -> Result<Vec<Vec<BackfillNeed>>, BackfillError> {
    let places: HashMap<&BatchNo, usize> =
        steps.iter().enumerate().map(|(place, step)| (&step.batch_no, place)).collect();
    let mut all = vec![Vec::new(); steps.len()];
    for (place, step) in steps.iter().enumerate().filter(|(_, step)| step.action.runs_batch()) {
        for external in externals.iter().filter(|e| e.group == *group) {
            let no = &step.batch_no;
            let wanted = external.batch.from(no, implied_business_date(no)).map_err(|e| {
                BackfillError::Expr(no.clone(), external.job_code.clone(), Box::new(e))
            })?;
            // `latest` uses the batches that exist, so it never waits for a future one.
            let RelativeBatch::These(wanted) = wanted else { continue };
            for on in wanted.iter().filter_map(|no| places.get(no)).filter(|on| **on != place) {
                let left_open = matches!(steps[*on].found, ExistingBatchState::Interrupted(_));
                if external.missing == Missing::Wait || left_open {
                    let whole =
                        external.depends_on.is_none() && external.when == EdgeCondition::Success;
                    all[place].push(BackfillNeed {
                        place: *on,
                        job: external.job_code.clone(),
                        whole: if whole { NeededExtent::Batch } else { NeededExtent::Part },
                    });
                }
            }
        }
    }
    Ok(all)
}

/// Simulates the backfill with every batch ending as soon as possible, and finds the first one that would wait forever.
pub fn would_wait(
    steps: &[BackfillStep],
    needs: &[Vec<BackfillNeed>],
    parallel: u32,
    only: BackfillSelection,
) -> Result<(), BackfillError> {
    let done = |step: &BackfillStep| matches!(step.found, ExistingBatchState::Ended(status) if status.is_success());
    let mut ended: Vec<bool> = steps.iter().map(done).collect();
    let mut waiting = (0..steps.len()).filter(|place| steps[*place].action.runs_batch());
    let mut open: Vec<usize> = Vec::new();
    loop {
        let room = (parallel as usize).saturating_sub(open.len());
        open.extend(waiting.by_ref().take(room));
        let Some(&first) = open.first() else { return Ok(()) };
        let before = open.len();
        open.retain(|place| {
            let ends = needs[*place].iter().all(|need| ended[need.place]);
            ended[*place] |= ends;
            !ends
        });
        if open.len() < before {
            continue;
        }
        let Some(need) = needs[first].iter().find(|need| !ended[need.place]) else {
            return Ok(());
        };
        let on = &steps[need.place];
        let (batch_no, job) = (steps[first].batch_no.clone(), need.job.clone());
        let on_no = on.batch_no.clone();
        return Err(match on.action {
            BackfillAction::Leave | BackfillAction::Refuse => {
                BackfillError::LeftAlone { batch_no, on: on_no, job, only: only.as_str() }
            }
            BackfillAction::Open | BackfillAction::Resume | BackfillAction::GoOn => {
                BackfillError::WouldWait { batch_no, on: on_no, job, parallel }
            }
        });
    }
}

/// Whether every open batch waits, directly or indirectly, for a batch of this backfill that can no longer end well.
/// `waits` holds for each open index what the batch was last seen waiting for. Returns one such batch with the one that
/// it waits for.
pub fn hopeless(
    entries: &[BackfillEntry],
    waits: &BTreeMap<usize, Vec<usize>>,
    options: &BackfillOptions,
) -> Option<(usize, usize)> {
    let any_bad = entries.iter().any(|e| e.status.is_bad());
    let closed = any_bad && options.on_failure == BackfillFailurePolicy::Stop;
    let mut lost: Vec<bool> = entries
        .iter()
        .map(|e| e.status.is_bad() || (closed && e.status == EntryStatus::Pending))
        .collect();
    let mut found = None;
    loop {
        let newly = waits
            .iter()
            .filter(|(place, _)| !lost[**place])
            .find_map(|(place, on)| on.iter().find(|on| lost[**on]).map(|on| (*place, *on)));
        match newly {
            Some((place, on)) => {
                lost[place] = true;
                found = found.or(Some((place, on)));
            }
            None => break,
        }
    }
    found.filter(|_| waits.keys().all(|place| lost[*place]))
}
