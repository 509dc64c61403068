//! Fires many schedules in one transaction.
//!
//! A user of XXL-JOB has hundreds of schedules with one job each. Fired one by one, each costs
//! eighteen round trips, and at 300 a second a process could open the batches of only a third of
//! them. Here firings without special conditions share one transaction of about a dozen round
//! trips. Everything else (an order that is refused, a batch that exists, an overlap, a job on ice)
//! is left to [`Firer::fire_one`].

use crate::domain::batch::{Batch, BatchPlan};
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::schedule::firing::{Firing, FiringId, FiringStatus, TriggerId};
use crate::domain::schedule::overlap::{self, Overlap, OverlapDecision};
use crate::domain::schedule::trigger::{QUEUE_DISPATCHER, Trigger};
use crate::domain::time::Millis;
use crate::engine::opening::create_batch::new_entries;
use crate::engine::trigger::firer::{AWAY_MS, Firer};
use crate::engine::trigger::hand_over::{Handed, ahead, plans_of};
use crate::store::batch::FiredBatch;
use crate::store::epoch::{self, Epoch};
use crate::store::queue::{NewEntries, NewEntry};
use crate::store::{self, Tx, batch, fired, firing, queue, run_mode, trigger};
use anyhow::{Context as _, Result};
use std::collections::{HashMap, HashSet};

/// A firing that opens one batch, and the batch.
struct GroupFiring<'a> {
    firing: &'a Firing,
    trigger: &'a Trigger,
    plan: BatchPlan,
}

impl GroupFiring<'_> {
    fn key(&self) -> (&BatchNo, &GroupCode) {
        (&self.plan.values.batch_no, &self.plan.values.group)
    }
}

impl Firer {
    /// Fires all of these: together where possible, the rest one by one. Returns those to be
    /// retried.
    pub async fn fire_group(&self, firings: Vec<Firing>) -> Vec<Firing> {
        let done = match self.open_together(&firings).await {
            Ok(done) => done,
            Err(error) if store::is_transient(&error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "firings are not written; trying again"
                );
                let at = self.clock.now().plus_ms(AWAY_MS);
                return firings.into_iter().map(|f| Firing { fire_at: at, ..f }).collect();
            }
            Err(error) => {
                // The failing firing is found when they are fired one by one.
                tracing::debug!(error = format!("{error:#}"), "firings are not written together");
                HashSet::new()
            }
        };
        let mut again = Vec::new();
        for firing in firings {
            if done.contains(&firing.firing_id) {
                self.count_handed(&firing, Handed::As(FiringStatus::Fired));
            } else {
                again.extend(self.fire_one(firing).await);
            }
        }
        again
    }

    /// Opens the batches of firings without special conditions, in one transaction; returns these
    /// firings.
    async fn open_together(&self, firings: &[Firing]) -> Result<HashSet<FiringId>> {
        let (seen, defs) = self.definition().await?;
        let triggers = self.triggers(firings).await?;
        let plans = |firing: &Firing, trigger: &Trigger| plans_of(&defs, trigger, firing, None);
        let mut members = members(firings, &triggers, plans);
        if members.is_empty() {
            return Ok(HashSet::new());
        }
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        // First, because it locks the rows: another process with the same firings waits here.
        let firings: Vec<&Firing> = members.iter().map(|member| member.firing).collect();
        let ours = firing::hold_pending(&mut tx, &firings).await?;
        members.retain(|member| ours.contains(&member.firing.firing_id));
        leave_special(&mut tx, &mut members, now).await?;
        if members.is_empty() || epoch::read_epoch(&mut tx, Epoch::Definition).await? != seen {
            tx.rollback().await?;
            return Ok(HashSet::new());
        }
        failpoint!("fire.cas");
        let now = now.max(self.clock.now());
        self.write_members(&mut tx, &members, now).await?;
        failpoint!("batch.done");
        tx.commit().await.context("open the batches of firings")?;
        for member in &members {
            for warning in &member.plan.warnings {
                tracing::warn!(schedule = member.trigger.def.code.as_str(), "{warning}");
            }
        }
        Ok(members.iter().map(|member| member.firing.firing_id).collect())
    }

    /// The present schedules of firings; those that cannot be read are left out.
    async fn triggers(&self, firings: &[Firing]) -> Result<HashMap<TriggerId, Trigger>> {
        let ids: HashSet<TriggerId> = firings.iter().map(|firing| firing.trigger_id).collect();
        let ids: Vec<TriggerId> = ids.into_iter().collect();
        let mut tx = self.db.begin_read().await?;
        let found = trigger::by_ids(&mut tx, &ids).await?;
        let known: HashMap<TriggerId, Trigger> =
            found.into_iter().filter_map(|(id, found)| Some((id, found.ok()?))).collect();
        known.iter().for_each(|(id, trigger)| self.note_overlap(*id, trigger.def.overlap));
        Ok(known)
    }

    async fn write_members(
        &self,
        tx: &mut Tx,
        members: &[GroupFiring<'_>],
        now: Millis,
    ) -> Result<()> {
        let batches: Vec<FiredBatch<'_>> = members
            .iter()
            .map(|member| FiredBatch {
                plan: &member.plan,
                firing: member.firing.firing_id,
                started_by: format!("schedule {}", member.trigger.def.code),
            })
            .collect();
        let keys = batch::insert_fired(tx, &batches, now).await?;
        failpoint!("batch.mid");
        let entries: Vec<Vec<NewEntry<'_>>> =
            members.iter().map(|m| new_entries(&m.plan)).collect();
        let mut rows = Vec::new();
        for (member, entries) in members.iter().zip(&entries) {
            let batch = *keys.get(&member.firing.firing_id).context("a batch has no row")?;
            rows.push(NewEntries { batch, batch_no: member.key().0.as_str(), entries });
        }
        queue::generate_many(tx, &rows, now).await?;
        let ids: Vec<FiringId> = members.iter().map(|member| member.firing.firing_id).collect();
        let fired = firing::fire_with_batches(tx, &ids, &self.node, now).await?;
        anyhow::ensure!(
            fired == u64::try_from(ids.len())?,
            "of {} firings {fired} are pending",
            ids.len()
        );
        Ok(())
    }
}

/// The firings that open exactly one batch. Two of one group are combined only when its batches may
/// overlap: otherwise the second must see the batch of the first.
fn members<'a>(
    firings: &'a [Firing],
    triggers: &'a HashMap<TriggerId, Trigger>,
    plans: impl Fn(&Firing, &Trigger) -> Result<Vec<BatchPlan>>,
) -> Vec<GroupFiring<'a>> {
    let (mut members, mut groups, mut keys) = (Vec::new(), HashSet::new(), HashSet::new());
    for firing in firings {
        let Some(trigger) = triggers.get(&firing.trigger_id) else { continue };
        let is_plain = firing.handler == QUEUE_DISPATCHER
            && firing.status == FiringStatus::Pending
            && firing.parent_batch_id.is_none();
        let Some(Ok(mut plans)) = is_plain.then(|| plans(firing, trigger)) else { continue };
        let (Some(plan), true) = (plans.pop(), plans.is_empty()) else { continue };
        // Free text is recorded separately; of a batch with many jobs some rows are left to the
        // owner.
        if plan.is_free_text() || plan.snapshot.jobs.len() > batch::ROWS_PER_STEP {
            continue;
        }
        let member = GroupFiring { firing, trigger, plan };
        let is_first = groups.insert(member.plan.values.group.clone());
        let (no, group) = member.key();
        let is_new = keys.insert((no.clone(), group.clone()));
        if is_new && (is_first || trigger.def.overlap == Overlap::Parallel) {
            members.push(member);
        }
    }
    members
}

/// Removes firings that must be decided separately: another batch or firing precedes them, the
/// batch exists, or an operator has put a job on ice for every batch.
async fn leave_special(tx: &mut Tx, members: &mut Vec<GroupFiring<'_>>, now: Millis) -> Result<()> {
    if members.is_empty() {
        return Ok(());
    }
    let groups: HashSet<GroupCode> = members.iter().map(|m| m.plan.values.group.clone()).collect();
    let groups: Vec<GroupCode> = groups.into_iter().collect();
    let running = fired::running_of(tx, &groups).await?;
    let mut waiting = HashSet::new();
    for policy in Overlap::ALL {
        let ids = members.iter().filter(|member| member.trigger.def.overlap == policy);
        let ids: Vec<FiringId> = ids.map(|member| member.firing.firing_id).collect();
        let pending_from = overlap::pending_counts_from(policy, now);
        waiting.extend(firing::waiting_among(tx, &ids, pending_from).await?);
    }
    let keys: Vec<(&BatchNo, &GroupCode)> = members.iter().map(GroupFiring::key).collect();
    let existing = batch::existing(tx, &keys).await?;
    let standing = run_mode::standing(tx).await?;
    members.retain(|member| {
        let (no, group) = member.key();
        let its: Vec<Batch> =
            running.iter().filter(|b| b.values.group == *group).cloned().collect();
        let ahead = ahead(&its, waiting.contains(&member.firing.firing_id));
        let opens = overlap::decide(member.trigger.def.overlap, ahead) == OverlapDecision::Open;
        let is_iced = member.plan.snapshot.jobs.iter().any(|job| standing.contains_key(&job.key()));
        opens && !is_iced && !existing.contains(&(no.clone(), group.clone()))
    });
    Ok(())
}
