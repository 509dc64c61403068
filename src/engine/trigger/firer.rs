//! Fires: hands due firings to their handlers.
//!
//! Firings that need nothing but their row are fired by one statement for all that wait. Those that
//! open batches take one transaction each, through two pools as in XXL-JOB: a schedule that was
//! slow more than ten times in a minute goes through the slow pool, so that it delays no other.
//! Further firings wait in memory until they count as missed; each row stays until the misfire
//! policy has decided.

use crate::domain::id::NodeId;
use crate::domain::job::Definition;
use crate::domain::schedule::firing::{Firing, FiringStatus, TriggerId};
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::{NOOP, QUEUE_DISPATCHER, Trigger};
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::observe::metrics::Meter;
use crate::engine::trigger::hand_over::{HandOverAttempt, Handed};
use crate::secret_store::SecretStores;
use crate::store::epoch::{self, Epoch};
use crate::store::firing::{self, SettledFiring};
use crate::store::{self, Db, job, trigger};
use anyhow::{Context as _, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Duration in milliseconds beyond which an attempt counts as slow; XXL-JOB's value.
const SLOW_MS: i64 = 500;
/// After more than this many slow attempts in a minute a schedule goes through the slow pool;
/// XXL-JOB's value.
const SLOW_MOST: u32 = 10;
/// How long a firing waits after a transient database error, in milliseconds; that does not count
/// as an attempt.
pub(super) const AWAY_MS: i64 = 1_000;

/// Fires due firings in one process.
pub struct Firer {
    pub(super) db: Db,
    pub(super) clock: Clock,
    pub(super) node: NodeId,
    pub(super) meter: Arc<Meter>,
    secret_stores: SecretStores,
    /// The definition, with the change counter at the time it was read.
    defs: Mutex<Option<(i64, Arc<Definition>)>>,
    slow: Mutex<Slow>,
    /// The overlap policy of each schedule, as last read.
    overlaps: Mutex<HashMap<TriggerId, Overlap>>,
}

/// Number of slow attempts of each schedule in the present minute.
#[derive(Default)]
struct Slow {
    minute: i64,
    counts: HashMap<TriggerId, u32>,
}

/// The pool that a firing goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiringLane {
    /// One statement for all of them.
    Together,
    /// The pool of fast schedules.
    Fast,
    /// The pool of schedules that were slow recently.
    Slow,
}

impl Firer {
    /// The firer of this process.
    pub fn new(db: Db, clock: Clock, node: NodeId, meter: Arc<Meter>) -> Self {
        let slow = Mutex::new(Slow::default());
        let overlaps = Mutex::default();
        let secret_stores = SecretStores::default();
        Self { db, clock, node, meter, secret_stores, defs: Mutex::new(None), slow, overlaps }
    }

    /// Sets the secret rules from the settings.
    #[must_use]
    pub fn with_secret_stores(self, secret_stores: SecretStores) -> Self {
        Self { secret_stores, ..self }
    }

    /// The pool for a firing.
    pub fn lane_of(&self, firing: &Firing) -> FiringLane {
        if firing.handler == NOOP {
            return FiringLane::Together;
        }
        let slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        let is_slow = slow.minute == minute(self.clock.now())
            && slow.counts.get(&firing.trigger_id).is_some_and(|count| *count > SLOW_MOST);
        if is_slow { FiringLane::Slow } else { FiringLane::Fast }
    }

    /// Whether the firings of a schedule must be attempted in the order of their planned times. Not
    /// if its batches may overlap; until the policy was read, yes.
    pub(super) fn keeps_order(&self, id: TriggerId) -> bool {
        let overlaps = self.overlaps.lock().unwrap_or_else(PoisonError::into_inner);
        overlaps.get(&id) != Some(&Overlap::Parallel)
    }

    pub(super) fn note_overlap(&self, id: TriggerId, overlap: Overlap) {
        let mut overlaps = self.overlaps.lock().unwrap_or_else(PoisonError::into_inner);
        overlaps.insert(id, overlap);
    }

    /// Fires all of these, which need nothing but their rows, in one statement. Returns them when
    /// the database is unavailable.
    pub async fn fire_together(&self, firings: Vec<Firing>) -> Vec<Firing> {
        match self.write_together(&firings).await {
            Ok(()) => Vec::new(),
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "firings are not written; trying on");
                let at = self.clock.now().plus_ms(AWAY_MS);
                firings.into_iter().map(|f| Firing { fire_at: at, ..f }).collect()
            }
        }
    }

    async fn write_together(&self, firings: &[Firing]) -> Result<()> {
        let mut ids: Vec<_> = firings.iter().map(|f| f.firing_id).collect();
        // Sorted in every process, so that two processes with the same rows do not deadlock.
        ids.sort_unstable();
        let mut tx = self.db.begin().await?;
        let now = self.clock.now();
        let found = firing::fire_all(&mut tx, &ids, &self.node, now).await?;
        failpoint!("fire.cas");
        tx.commit().await.context("fire")?;
        let done = self.clock.now();
        if found < u64::try_from(ids.len())? {
            tracing::debug!(found, wanted = ids.len(), "another process fired some of these");
        }
        for firing in firings {
            self.count(firing, FiringStatus::Fired, done);
        }
        tracing::debug!(found, at = now.0, took_ms = done.since(now), "fired together");
        Ok(())
    }

    /// Fires one firing. Returns it, with the time of the next attempt, when it is not settled.
    pub async fn fire_one(&self, firing: Firing) -> Option<Firing> {
        let began = self.clock.uptime();
        let left = self.try_one(&firing).await;
        let took = self.clock.uptime().since(began);
        if took > SLOW_MS {
            self.was_slow(firing.trigger_id);
        }
        match left {
            Ok(left) => left,
            Err(error) => {
                tracing::warn!(
                    firing_id = firing.firing_id.0,
                    error = format!("{error:#}"),
                    "a firing could not be settled; trying again"
                );
                let fire_at = self.clock.now().plus_ms(AWAY_MS);
                Some(Firing { fire_at, ..firing })
            }
        }
    }

    async fn try_one(&self, firing: &Firing) -> Result<Option<Firing>> {
        let Some(trigger) = self.trigger(firing.trigger_id).await? else {
            return self.drop_one(firing, "the schedule was removed").await.map(|()| None);
        };
        let now = self.clock.now();
        let this = HandOverAttempt { firer: self, trigger: &trigger, firing, now };
        if firing.handler != QUEUE_DISPATCHER {
            let said = format!("handler {} is not known to this version", firing.handler);
            this.give_up(FiringStatus::Failed, &said).await?;
            return Ok(None);
        }
        let limit = Duration::from_secs(trigger.def.timeout_sec.into());
        let tried = tokio::time::timeout(limit, this.hand_over()).await;
        let error = match tried {
            Ok(Ok(handed)) => {
                self.count_handed(firing, handed);
                return Ok(None);
            }
            Ok(Err(error)) if store::is_transient(&error) => return Err(error),
            Ok(Err(error)) => error,
            Err(_) => anyhow::anyhow!("the try took longer than {} s", trigger.def.timeout_sec),
        };
        let said = format!("{error:#}");
        if let Some(status) = HandOverAttempt::refusal(&error) {
            let handed = this.give_up(status, &said).await?;
            self.count_handed(firing, handed);
            return Ok(None);
        }
        if firing.attempt >= trigger.def.retry_count {
            let handed = this.give_up(FiringStatus::Failed, &said).await?;
            self.count_handed(firing, handed);
            return Ok(None);
        }
        self.again(firing, &trigger, &said).await
    }

    /// Stores the time of the next attempt.
    async fn again(
        &self,
        firing: &Firing,
        trigger: &Trigger,
        said: &str,
    ) -> Result<Option<Firing>> {
        let now = self.clock.now();
        let fire_at = now.plus_ms(i64::from(trigger.def.retry_delay_sec) * 1_000);
        let to = SettledFiring {
            status: FiringStatus::Pending,
            fire_at,
            attempt: firing.attempt + 1,
            batch_no: None,
            reason: Some(said),
        };
        let mut tx = self.db.begin().await?;
        let is_ours = firing::settle(&mut tx, firing, &to, &self.node, now).await?;
        tx.commit().await?;
        tracing::warn!(
            schedule = trigger.def.code.as_str(),
            error = said,
            "a firing is tried again"
        );
        let attempt = firing.attempt + 1;
        let status = FiringStatus::Pending;
        Ok(is_ours.then(|| Firing { fire_at, attempt, status, ..firing.clone() }))
    }

    async fn drop_one(&self, firing: &Firing, why: &str) -> Result<()> {
        let to = SettledFiring {
            status: FiringStatus::Skipped,
            fire_at: firing.fire_at,
            attempt: firing.attempt,
            batch_no: None,
            reason: Some(why),
        };
        let mut tx = self.db.begin().await?;
        let now = self.clock.now();
        firing::settle(&mut tx, firing, &to, &self.node, now).await?;
        tx.commit().await?;
        self.count(firing, FiringStatus::Skipped, now);
        Ok(())
    }

    /// The present schedule of a firing.
    async fn trigger(&self, id: TriggerId) -> Result<Option<Trigger>> {
        let mut tx = self.db.begin_read().await?;
        match trigger::by_ids(&mut tx, &[id]).await?.pop() {
            Some((_, Ok(found))) => {
                self.note_overlap(id, found.def.overlap);
                Ok(Some(found))
            }
            Some((_, Err(said))) => Err(anyhow::anyhow!("the schedule cannot be read: {said}")),
            None => Ok(None),
        }
    }

    /// The present definition and its change counter; read again only after a change.
    pub(super) async fn definition(&self) -> Result<(i64, Arc<Definition>)> {
        let mut tx = self.db.begin_read().await?;
        let now = epoch::read_epoch(&mut tx, Epoch::Definition).await?;
        if let Some((at, defs)) = &*self.defs.lock().unwrap_or_else(PoisonError::into_inner)
            && *at == now
        {
            return Ok((now, defs.clone()));
        }
        let defs = job::definition(&mut tx).await?;
        let defs = Arc::new(self.secret_stores.add_access(defs));
        // The counter from before the read: after a change meanwhile the definition is read again.
        *self.defs.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, defs.clone()));
        Ok((now, defs))
    }

    fn was_slow(&self, id: TriggerId) {
        let now = minute(self.clock.now());
        let mut slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        if slow.minute != now {
            *slow = Slow { minute: now, counts: HashMap::new() };
        }
        *slow.counts.entry(id).or_default() += 1;
    }

    pub(super) fn count_handed(&self, firing: &Firing, handed: Handed) {
        match handed {
            Handed::As(FiringStatus::Waiting) | Handed::Elsewhere => {}
            Handed::As(status) => self.count(firing, status, self.clock.now()),
        }
    }

    fn count(&self, firing: &Firing, status: FiringStatus, now: Millis) {
        self.meter.fired(status.as_str(), firing.source.as_str(), now.since(firing.planned_at));
    }
}

fn minute(now: Millis) -> i64 {
    now.0.div_euclid(60_000)
}
