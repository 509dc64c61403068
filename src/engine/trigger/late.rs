//! Firings that were decided in time and not fired: the processes were dead or stalled. When they
//! are more than five seconds late they count as misfires, and the policy decides.

use crate::domain::schedule::firing::{Firing, FiringStatus, NewFiring, Source, TriggerId};
use crate::domain::schedule::misfire::{LATE, fires_late};
use crate::domain::time::Millis;
use crate::engine::trigger::missed_firing_notices;
use crate::engine::trigger::planner::Planner;
use crate::store::lock::{self, SCHEDULE_LOCK};
use crate::store::trigger::DueTrigger;
use crate::store::{self, firing};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};

impl Planner {
    /// Decides about late firings under the schedule lock, after a pass, so that the newest planned
    /// times have rows. Returns those that fire. A row locked by another session blocks only the
    /// firings of its own schedule.
    pub(super) async fn decide_late(&mut self, late: Vec<Firing>) -> Result<Vec<Firing>> {
        let mut by_schedule: BTreeMap<TriggerId, Vec<Firing>> = BTreeMap::new();
        for firing in &late {
            by_schedule.entry(firing.trigger_id).or_default().push(firing.clone());
        }
        let together = self.decide_together(late).await;
        let error = match together {
            Err(error) if by_schedule.len() > 1 && store::asks_again(&error) => error,
            decided => return decided,
        };
        tracing::debug!("late firings are decided for each schedule by itself: {error:#}");
        let mut fires = Vec::new();
        for (id, late) in by_schedule {
            match self.decide_together(late).await {
                Ok(decided) => fires.extend(decided),
                // They are found again by the next poll.
                Err(error) if store::asks_again(&error) => {
                    tracing::warn!(schedule = id.0, "late firings of a schedule wait: {error:#}");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(fires)
    }

    async fn decide_together(&mut self, late: Vec<Firing>) -> Result<Vec<Firing>> {
        let Some(first) = late.iter().map(|f| f.planned_at).min() else { return Ok(late) };
        let mut tx = self.door.begin().await?;
        if lock::hold_lock(&mut tx, SCHEDULE_LOCK).await?.is_none() {
            tx.rollback().await?;
            return self.repair_firings().await.map(|_| Vec::new());
        }
        let now = self.due_time(&mut tx).await?;
        let ids: BTreeSet<TriggerId> = late.iter().map(|f| f.trigger_id).collect();
        let ids: Vec<TriggerId> = ids.into_iter().collect();
        let due = |trigger_id: &TriggerId| DueTrigger {
            trigger_id: *trigger_id,
            revision: -1,
            next_time: now,
            last_time: None,
        };
        let due: Vec<DueTrigger> = ids.iter().map(due).collect();
        self.learn(&mut tx, &due, &mut Default::default()).await?;
        let mut since: BTreeMap<TriggerId, Vec<Millis>> = BTreeMap::new();
        for (id, at) in firing::planned_between(&mut tx, &ids, first, now).await? {
            since.entry(id).or_default().push(at);
        }
        let (mut fires, mut rows) = (Vec::new(), Vec::new());
        let mut left: BTreeMap<&str, Vec<Firing>> = BTreeMap::new();
        for firing in late {
            let newer = since
                .get(&firing.trigger_id)
                .map_or(0, |all| all.iter().filter(|at| **at > firing.planned_at).count());
            // The firer reports a removed schedule.
            let known = self.known(firing.trigger_id);
            let misfire = known.map(|t| t.def.misfire);
            let age = now.since(firing.planned_at);
            match misfire.map_or(Ok(()), |misfire| fires_late(misfire, age, newer)) {
                Ok(()) => {
                    rows.push(firing_notice(&firing, FiringStatus::Pending, LATE));
                    fires.push(Firing { source: Source::Misfire, ..firing });
                }
                Err(why) => {
                    rows.push(firing_notice(&firing, FiringStatus::Misfired, why));
                    left.entry(why).or_default().push(firing);
                }
            }
        }
        firing::mark_late(&mut tx, &fires, LATE, self.node_id(), now).await?;
        for (why, firings) in &left {
            firing::withhold(&mut tx, firings, FiringStatus::Misfired, why, now).await?;
        }
        missed_firing_notices::misses(&mut tx, self.all_known(), &rows, now).await?;
        self.count_missed(rows.len());
        tx.commit().await.context("decide about late firings")?;
        Ok(fires)
    }
}

/// What a mail says of one.
fn firing_notice(firing: &Firing, status: FiringStatus, why: &str) -> NewFiring {
    NewFiring {
        trigger_id: firing.trigger_id,
        planned_at: firing.planned_at,
        nominal_date: firing.nominal_date,
        source: Source::Misfire,
        handler: firing.handler.clone(),
        status,
        fire_at: firing.fire_at,
        params: None,
        parent_batch_id: None,
        missed_until: None,
        reason: Some(why.to_owned()),
    }
}
