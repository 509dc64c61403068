//! Computes what a backfill would do, and why it would be refused. Changes nothing.

use super::Request;
use crate::domain::backfill::{
    BackfillAction, BackfillError, BackfillNeed, BackfillOptions, BackfillStep, BatchHolder,
    ExistingBatchState, arrange, decide, needs, would_wait,
};
use crate::domain::batch::open_check::{check_batch_no, plan_opening};
use crate::domain::batch::{BatchOrder, plan};
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::job::Definition;
use crate::domain::time::Millis;
use crate::engine::opening::refused::OpeningRefusal;
use crate::store::backfill::BackfillBatchState;
use crate::store::{Tx, backfill};
use anyhow::Result;
use std::collections::HashMap;

/// What a backfill would do, batch by batch.
#[derive(Clone, Debug)]
pub struct BackfillSurvey {
    /// One step per batch number, in the order of execution.
    pub steps: Vec<BackfillStep>,
    /// Why it would be refused, if it would.
    pub refused: Option<BackfillError>,
    pub(super) needs: Vec<Vec<BackfillNeed>>,
}

/// Reads the present batches of a range and plans an action for each. Changes nothing.
pub async fn survey(
    tx: &mut Tx,
    defs: &Definition,
    request: &Request,
    now: Millis,
) -> Result<BackfillSurvey> {
    lay_out(defs, request, &backfill::standing(tx, &request.group).await?, now)
}

/// The same for a database without tables.
pub fn survey_of_nothing(
    defs: &Definition,
    request: &Request,
    now: Millis,
) -> Result<BackfillSurvey> {
    lay_out(defs, request, &HashMap::new(), now)
}

fn lay_out(
    defs: &Definition,
    request: &Request,
    standing: &HashMap<BatchNo, BackfillBatchState>,
    now: Millis,
) -> Result<BackfillSurvey> {
    let options = &request.options;
    let mut steps = Vec::new();
    for batch_no in arrange(request.numbers.clone(), options.order)? {
        let found = found(standing.get(&batch_no), now);
        steps.push(BackfillStep { action: decide(&found, options.only), batch_no, found });
    }
    let (needs, refused) = match weigh(defs, &request.group, &steps, options, now)? {
        Ok(needs) => (needs, None),
        Err(refused) => (vec![Vec::new(); steps.len()], Some(refused)),
    };
    Ok(BackfillSurvey { steps, refused, needs })
}

/// Which steps wait for others, or why they cannot run in this way.
pub(super) fn weigh(
    defs: &Definition,
    group: &GroupCode,
    steps: &[BackfillStep],
    options: &BackfillOptions,
    now: Millis,
) -> Result<Result<Vec<Vec<BackfillNeed>>, BackfillError>> {
    let Some(first) = steps.first() else { return Ok(Ok(Vec::new())) };
    // An invalid definition is reported before anything is written.
    let planned = plan(defs, &order(group, &first.batch_no, options), now)?;
    let mut opened = steps.iter().filter(|step| step.action == BackfillAction::Open).peekable();
    if let Some(step) = opened.peek() {
        plan_opening(defs, &order(group, &step.batch_no, options), now)?;
    }
    for step in opened {
        check_batch_no(defs, &order(group, &step.batch_no, options))?;
    }
    let externals = planned.iter().flat_map(|p| p.snapshot.externals.clone()).collect::<Vec<_>>();
    Ok(needs(&externals, group, steps).and_then(|needs| {
        would_wait(steps, &needs, options.parallel, options.only).map(|()| needs)
    }))
}

pub(super) fn order(
    group: &GroupCode,
    batch_no: &BatchNo,
    options: &BackfillOptions,
) -> BatchOrder {
    BatchOrder {
        batch_no: batch_no.clone(),
        batch_type: None,
        group: Some(group.clone()),
        business_date: None,
        params: options.params.clone(),
        free_text: options.free_text,
    }
}

pub(super) fn found(there: Option<&BackfillBatchState>, now: Millis) -> ExistingBatchState {
    let Some(there) = there else { return ExistingBatchState::Missing };
    match &there.holder {
        _ if there.status.is_final() => ExistingBatchState::Ended(there.status),
        Some(holder) if holder.until > now => {
            ExistingBatchState::Held(there.status, holder.clone())
        }
        Some(_) | None => ExistingBatchState::Interrupted(there.status),
    }
}

impl BackfillSurvey {
    /// Whether any batch is run.
    pub fn runs_any(&self) -> bool {
        self.steps.iter().any(|step| step.action.runs_batch())
    }

    /// The first reason why it is refused, as an error.
    pub fn refusal(&self, group: &GroupCode) -> Result<()> {
        for step in &self.steps {
            if let (BackfillAction::Refuse, ExistingBatchState::Held(_, holder)) =
                (step.action, &step.found)
            {
                let BatchHolder { host, pid, until } = holder.clone();
                let (batch_no, group) = (step.batch_no.to_string(), group.to_string());
                return Err(OpeningRefusal::Owned { batch_no, group, host, pid, until }.into());
            }
        }
        self.refused.clone().map_or(Ok(()), |refused| Err(refused.into()))
    }
}
