//! Fires: takes firings whose time has come and hands them to their handlers.
//!
//! Those that need nothing but their row are fired by one statement for all that wait. Those that open
//! batches go one transaction each, through two pools of XXL-JOB's kind: a schedule that was slow more
//! than ten times in a minute goes through the slow one, so that it delays no other. What does not fit
//! waits in memory until it is missed; its row is there until the misfire policy has decided.

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

/// Longer than this a try counts as slow. XXL-JOB's figure.
const SLOW_MS: i64 = 500;
/// After so many slow tries in a minute a schedule goes through the slow pool. XXL-JOB's figure.
const SLOW_MOST: u32 = 10;
/// How long a firing waits whose database was away or asked to try again; that is no try of its own.
pub(super) const AWAY_MS: i64 = 1_000;

/// Fires.
pub struct Firer {
    pub(super) db: Db,
    pub(super) clock: Clock,
    pub(super) node: NodeId,
    pub(super) meter: Arc<Meter>,
    secret_stores: SecretStores,
    /// The definition as it was when so many changes had been counted.
    defs: Mutex<Option<(i64, Arc<Definition>)>>,
    slow: Mutex<Slow>,
    /// What each schedule does when it fires while its last batch runs, as it was read last.
    overlaps: Mutex<HashMap<TriggerId, Overlap>>,
}

/// How often each schedule was slow in the present minute.
#[derive(Default)]
struct Slow {
    minute: i64,
    counts: HashMap<TriggerId, u32>,
}

/// Which pool a firing goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiringLane {
    /// One statement for all of them.
    Together,
    /// The pool of those that are quick.
    Fast,
    /// The pool of those that were slow lately.
    Slow,
}

impl Firer {
    /// Fires for this process.
    pub fn new(db: Db, clock: Clock, node: NodeId, meter: Arc<Meter>) -> Self {
        let slow = Mutex::new(Slow::default());
        let overlaps = Mutex::default();
        let secret_stores = SecretStores::default();
        Self { db, clock, node, meter, secret_stores, defs: Mutex::new(None), slow, overlaps }
    }

    /// The same with the rules of secrets that the settings name.
    #[must_use]
    pub fn with_secret_stores(self, secret_stores: SecretStores) -> Self {
        Self { secret_stores, ..self }
    }

    /// Which way a firing goes.
    pub fn lane_of(&self, firing: &Firing) -> FiringLane {
        if firing.handler == NOOP {
            return FiringLane::Together;
        }
        let slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        let is_slow = slow.minute == minute(self.clock.now())
            && slow.counts.get(&firing.trigger_id).is_some_and(|count| *count > SLOW_MOST);
        if is_slow { FiringLane::Slow } else { FiringLane::Fast }
    }

    /// Whether the firings of a schedule must be tried in the order of their planned times. It need not
    /// when its batches may overlap; until it was read once nobody knows.
    pub(super) fn keeps_order(&self, id: TriggerId) -> bool {
        let overlaps = self.overlaps.lock().unwrap_or_else(PoisonError::into_inner);
        overlaps.get(&id) != Some(&Overlap::Parallel)
    }

    pub(super) fn note_overlap(&self, id: TriggerId, overlap: Overlap) {
        let mut overlaps = self.overlaps.lock().unwrap_or_else(PoisonError::into_inner);
        overlaps.insert(id, overlap);
    }

    /// Fires all of these, which need nothing but their rows, in one statement. Gives them back when the
    /// database is away.
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
        // In one order everywhere, so that two processes with the same rows do not lock each other out.
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

    /// Fires one. Gives it back, with the time of its next try, when it is not settled.
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

    /// Writes that a firing is tried again later.
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

    /// The schedule of a firing as it is now.
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

    /// The definition as it is now, and how many changes of it have been counted; read anew only after
    /// one.
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
        // The count from before it was read: a change meanwhile makes it be read once more.
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
