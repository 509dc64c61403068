//! Batches of a backfill that wait for others of it.

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

/// Whether all of a batch is waited for, or one job of it, which may have ended well although the
/// batch did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededExtent {
    /// All of it, and it must end well.
    Batch,
    /// One job, or any end.
    Part,
}

/// A batch waits for another of the same backfill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillNeed {
    /// The place of the one that is waited for.
    pub place: usize,
    /// The job that waits.
    pub job: JobCode,
    /// For how much of it.
    pub whole: NeededExtent,
}

/// What each step that is run waits for within the list. `missing: fail` and `pass` do not wait for
/// what is not there, only for what somebody left open.
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
            // `latest` takes what exists, so it waits for nothing that is still to come.
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

/// Plays the backfill through, every batch ending as soon as it can, and finds the first that would
/// wait for ever.
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

/// Whether every open batch waits, itself or through others, for one of this backfill that will not
/// end well any more. `waits` says for each open place what it was last seen to wait for. Gives one
/// of them with what it waits for.
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
