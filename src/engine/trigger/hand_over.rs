//! queueDispatcherHandler: turns the order of a firing into batches.
//!
//! The firing's row and its batches are written in one transaction, with a compare-and-set of the
//! firing first: of two processes with the same firing one waits at the row and then finds it done.
//! So a retry or a timeout of a firing never opens a second batch.

use crate::domain::batch::open_check::plan_opening;
use crate::domain::batch::{Batch, BatchError, BatchPlan, BatchStatus};
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::domain::schedule::firing::{Firing, FiringStatus};
use crate::domain::schedule::overlap::{self, OverlapDecision, PrecedingFiring};
use crate::domain::schedule::trigger::{FiringOverrides, OrderError, PlannedInstant, Trigger};
use crate::domain::time::{Millis, day_in};
use crate::engine::opening::create_batch::{PackedPlan, open_in};
use crate::engine::opening::refused::OpeningRefusal;
use crate::engine::trigger::firer::Firer;
use crate::engine::trigger::missed_firing_notices;
use crate::store::epoch::{self, Epoch};
use crate::store::firing::{self, SettledFiring};
use crate::store::{Tx, batch, fired};
use anyhow::{Context as _, Result};

/// The result of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    /// This process has settled the firing with this status.
    As(FiringStatus),
    /// Another process came first.
    Elsewhere,
}

/// The inputs of one attempt.
pub(super) struct HandOverAttempt<'a> {
    pub(super) firer: &'a Firer,
    pub(super) trigger: &'a Trigger,
    pub(super) firing: &'a Firing,
    pub(super) now: Millis,
}

impl HandOverAttempt<'_> {
    /// One attempt to fire a firing whose order opens batches. An error means a retry, unless
    /// `refusal` recognises it.
    pub(super) async fn hand_over(&self) -> Result<Handed> {
        let (plans, seen) = self.plans().await?;
        let no = plans.first().map(|packed| packed.plan.values.batch_no.to_string());
        let mut tx = self.firer.db.begin().await?;
        // First, because it locks the row: another process with this firing waits here.
        let done = self.settled(FiringStatus::Fired, no.as_deref(), None);
        if !firing::settle(&mut tx, self.firing, &done, &self.firer.node, self.now).await? {
            tx.rollback().await?;
            return Ok(Handed::Elsewhere);
        }
        failpoint!("fire.cas");
        let groups: Vec<GroupCode> =
            plans.iter().map(|packed| packed.plan.values.group.clone()).collect();
        let running = fired::running_of(&mut tx, &groups).await?;
        // A process that applies a definition locks these groups; it may have been waited for.
        if epoch::read_epoch(&mut tx, Epoch::Definition).await? != seen {
            tx.rollback().await?;
            return Box::pin(self.hand_over()).await;
        }
        let policy = self.trigger.def.overlap;
        let pending_from = overlap::pending_counts_from(policy, self.now);
        let waits = firing::waits_before(&mut tx, self.firing, pending_from).await?;
        let ahead = ahead(&running, waits);
        match overlap::decide(policy, ahead) {
            OverlapDecision::Open => self.open_batches(tx, &plans).await,
            turn @ (OverlapDecision::Wait
            | OverlapDecision::Skip
            | OverlapDecision::KillAndWait) => {
                tx.rollback().await?;
                self.step_aside(turn, &running, no.as_deref()).await
            }
        }
    }

    /// The batches of its order, with the change counter of the definition used.
    async fn plans(&self) -> Result<(Vec<PackedPlan>, i64)> {
        let (seen, defs) = self.firer.definition().await?;
        let parent = match self.firing.parent_batch_id {
            Some(id) => {
                let mut tx = self.firer.db.begin_read().await?;
                Some(batch::get(&mut tx, id).await?)
            }
            None => None,
        };
        let plans = plans_of(&defs, self.trigger, self.firing, parent.as_ref())?;
        Ok((PackedPlan::pack_plans(plans)?, seen))
    }

    async fn open_batches(&self, mut tx: Tx, plans: &[PackedPlan]) -> Result<Handed> {
        let by = format!("schedule {}", self.trigger.def.code);
        // Not the start of the attempt: the batch that it waited for may have ended since, and
        // would seem to end after this one began.
        let now = self.now.max(self.firer.clock.now());
        let made = open_in(&mut tx, None, plans, by.as_str().into(), now).await?;
        for id in made.opened {
            fired::set_firing(&mut tx, id, self.firing.firing_id).await?;
        }
        failpoint!("batch.done");
        tx.commit().await.context("open the batches of a firing")?;
        for there in &made.existing {
            let (schedule, status) = (self.trigger.def.code.as_str(), there.status);
            let (no, group) = (&there.values.batch_no, &there.values.group);
            tracing::warn!(
                schedule,
                "batch {no} of group {group} exists already ({status}) and is left as it is"
            );
        }
        for warning in plans.iter().flat_map(|packed| &packed.plan.warnings) {
            tracing::warn!(schedule = self.trigger.def.code.as_str(), "{warning}");
        }
        Ok(Handed::As(FiringStatus::Fired))
    }

    /// Another batch or firing precedes this one: it waits or is skipped, in a transaction of its
    /// own.
    async fn step_aside(
        &self,
        turn: OverlapDecision,
        running: &[Batch],
        no: Option<&str>,
    ) -> Result<Handed> {
        let what = running.first().map_or_else(
            || "an earlier firing of this schedule waits".to_owned(),
            |b| format!("batch {} of {} is {}", b.values.batch_no, b.values.group, b.status),
        );
        let (status, reason) = match turn {
            OverlapDecision::Skip => {
                (FiringStatus::Skipped, format!("{what}; overlap policy: skip"))
            }
            OverlapDecision::Open | OverlapDecision::Wait | OverlapDecision::KillAndWait => {
                (FiringStatus::Waiting, what)
            }
        };
        let is_known = self.firing.status == status && self.firing.reason.as_ref() == Some(&reason);
        if is_known && turn != OverlapDecision::KillAndWait {
            return Ok(Handed::As(status));
        }
        let mut tx = self.firer.db.begin().await?;
        let to = self.settled(status, no, Some(&reason));
        if !firing::settle(&mut tx, self.firing, &to, &self.firer.node, self.now).await? {
            tx.rollback().await?;
            return Ok(Handed::Elsewhere);
        }
        if turn == OverlapDecision::KillAndWait {
            let why = format!("replaced by the next firing of schedule {}", self.trigger.def.code);
            for batch in running.iter().filter(|b| b.status == BatchStatus::Running) {
                batch::request_kill(&mut tx, batch.batch_id, &why, self.now).await?;
            }
        }
        tx.commit().await.context("let a firing wait")?;
        Ok(Handed::As(status))
    }

    /// The final status of a firing whose order is refused; `None` when the error does not concern
    /// the order.
    pub(super) fn refusal(error: &anyhow::Error) -> Option<FiringStatus> {
        let is = |found: Option<FiringStatus>, e: &(dyn std::error::Error + 'static)| {
            found.or_else(|| match e.downcast_ref::<OpeningRefusal>() {
                Some(OpeningRefusal::Exists(..)) => Some(FiringStatus::Skipped),
                Some(_) => Some(FiringStatus::Failed),
                None if e.is::<BatchError>() || e.is::<OrderError>() || e.is::<NoOrder>() => {
                    Some(FiringStatus::Failed)
                }
                None => None,
            })
        };
        error.chain().fold(None, is)
    }

    /// Settles a firing as failed or skipped, and notifies its owners.
    pub(super) async fn give_up(&self, status: FiringStatus, why: &str) -> Result<Handed> {
        let mut tx = self.firer.db.begin().await?;
        let to = self.settled(status, None, Some(why));
        if !firing::settle(&mut tx, self.firing, &to, &self.firer.node, self.now).await? {
            tx.rollback().await?;
            return Ok(Handed::Elsewhere);
        }
        missed_firing_notices::not_fired(&mut tx, self.trigger, self.firing, status, why, self.now)
            .await?;
        tx.commit().await.context("give a firing up")?;
        Ok(Handed::As(status))
    }

    fn settled<'a>(
        &self,
        status: FiringStatus,
        batch_no: Option<&'a str>,
        reason: Option<&'a str>,
    ) -> SettledFiring<'a> {
        let Firing { fire_at, attempt, .. } = *self.firing;
        // A firing that waits for a batch has not been attempted yet.
        let attempt = attempt + u32::from(status.is_final());
        SettledFiring { status, fire_at, attempt, batch_no, reason }
    }
}

/// The batches that a firing opens with this definition; `parent` is the batch whose end caused the
/// firing.
pub(super) fn plans_of(
    defs: &Definition,
    trigger: &Trigger,
    firing: &Firing,
    parent: Option<&Batch>,
) -> Result<Vec<BatchPlan>> {
    let order = trigger.def.order.as_ref().ok_or(NoOrder)?;
    let zone = trigger.def.timing.zone;
    let at = PlannedInstant {
        schedule: trigger.def.code.as_str(),
        planned: firing.planned_at,
        nominal: firing.nominal_date.unwrap_or_else(|| day_in(firing.planned_at, zone)),
        zone,
        parent: parent.map(|b| (&b.values.batch_no, b.values.business_date)),
    };
    let mut order = order.resolve_order(at, FiringOverrides::parse(firing.params.as_deref())?)?;
    // Free text allowed for the batch that it follows is allowed here too.
    order.free_text |= parent.is_some_and(Batch::is_free_text);
    // Times of day of its jobs refer to the planned day: a job planned for last night must not wait
    // until tonight.
    Ok(plan_opening(defs, &order, firing.planned_at)?)
}

/// What precedes a firing whose group has these open batches.
pub(super) fn ahead(running: &[Batch], waits: bool) -> PrecedingFiring {
    if waits {
        return PrecedingFiring::Firing;
    }
    if running.iter().any(|b| b.status == BatchStatus::Running) {
        return PrecedingFiring::Batch;
    }
    if running.is_empty() { PrecedingFiring::Nothing } else { PrecedingFiring::Dying }
}

/// A schedule whose handler opens batches, but which names none.
#[derive(Debug, thiserror::Error)]
#[error(
    "the schedule names no group and no batch number; give it both: procession schedule edit CODE --group GROUP --batch-no EXPR --reason WHY"
)]
pub(super) struct NoOrder;
