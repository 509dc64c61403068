//! Attempts of dead nodes whose session locks are still held on their data sources.
//!
//! A node that is cut off from Procession's database alone goes on with its procedures (ADR 31), and one that was
//! killed leaves them running on the server. As long as the server says that the lock of the job is held, the attempt
//! counts as running, so that its node can come back and report how it ended. Once the lock is free, the rules for a
//! dead node apply.

use crate::domain::batch::Snapshot;
use crate::domain::dag::Node as Place;
use crate::domain::id::{BatchId, NodeId, QueueId};
use crate::domain::queue::{QueueStatus, Taken};
use crate::domain::settlement::is_lost_for_good;
use crate::domain::silent_node::SilentNode;
use crate::domain::time::Millis;
use crate::engine::attempt::run::{Job, Surroundings};
use crate::engine::attempt::secret_reader::SecretReader;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::end_orphans::{orphan_context, orphan_task};
use crate::handler;
use crate::store::{Db, queue};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A row and the number of its attempt.
pub(in crate::engine) type AttemptKey = (QueueId, u32);

/// What is known of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LockState {
    /// The server has not answered yet.
    Asked,
    /// A session holds it; in words for people.
    Held(String),
    /// Nobody holds it, or the server could not be asked.
    Decided,
}

/// The locks that this process asks about.
#[derive(Default)]
pub(in crate::engine) struct HeldLocks {
    asked: HashMap<AttemptKey, watch::Receiver<LockState>>,
}

impl HeldLocks {
    /// The attempts whose locks need not be waited for.
    pub(in crate::engine) fn decided(&self) -> HashSet<AttemptKey> {
        let is_decided = |state: &watch::Receiver<LockState>| *state.borrow() == LockState::Decided;
        self.asked.iter().filter(|(_, state)| is_decided(state)).map(|(key, _)| *key).collect()
    }

    /// Whether the answer about a lock is awaited.
    pub(in crate::engine) fn is_awaited(&self, key: AttemptKey) -> bool {
        self.asked.get(&key).is_some_and(|state| *state.borrow() != LockState::Decided)
    }

    /// Asks about no other locks any more.
    pub(in crate::engine) fn keep_only(&mut self, keys: &HashSet<AttemptKey>) {
        self.asked.retain(|key, _| keys.contains(key));
    }
}

impl Active {
    /// Whether a job, if its node is dead, is waited for while its lock is held: what it did could not be told otherwise.
    /// A job that may start again, or that is looked up, need not be waited for here: its next start waits for the lock
    /// by itself.
    pub(in crate::engine) fn may_wait_for_lock(&self, place: Place) -> bool {
        let job = self.job(place);
        let kind = handler::kind_of(job);
        let source = self.snapshot.sources.iter().find(|s| Some(&s.name) == job.source.as_ref());
        kind.holds_session_lock
            && is_lost_for_good(job, kind.after_crash)
            && source.is_some_and(|source| !source.url.starts_with("sqlite:"))
    }

    /// Whether an attempt of a dead node is waited for now: it began, and no operator wants it stopped.
    pub(in crate::engine) fn waits_for_lock(&self, place: Place) -> bool {
        let row = self.row(place);
        let runs = row.status == QueueStatus::Running && row.taken != Taken::NotYet;
        runs && !self.killing && self.may_wait_for_lock(place)
    }

    /// Whether the time limit of an attempt has passed, which nobody but its node would enforce.
    pub(in crate::engine) fn is_past_time_limit(&self, place: Place, now: Millis) -> bool {
        let limit = i64::from(self.job(place).timeout_sec) * 1_000;
        self.row(place).start_time.is_some_and(|start| start.plus(limit) <= now)
    }
}

impl QueueDispatcher {
    /// Begins to ask about the locks of attempts of a batch that is now in memory.
    pub(in crate::engine) fn ask_about_locks(&mut self, id: BatchId) {
        let Some(active) = self.active.get(&id) else { return };
        let awaited: Vec<Place> = active.lock_waits.iter().copied().collect();
        for place in awaited {
            let Some((job, snapshot)) = self.job_at(id, place) else { continue };
            let owner = self.active.get(&id).and_then(|active| active.row(place).owner.clone());
            let (key, Some(owner)) = ((job.queue_id, job.attempt), owner) else { continue };
            if self.fleet.held_locks.asked.contains_key(&key) {
                continue;
            }
            let (state, states) = watch::channel(LockState::Asked);
            self.fleet.held_locks.asked.insert(key, states);
            let watcher = LockWatcher {
                owner,
                job,
                snapshot,
                around: self.around.clone(),
                // A node that ended the job just before gets this long to come back and report it.
                grace: Duration::from_millis(self.node.lease_ms().unsigned_abs()),
            };
            tokio::spawn(watcher.watch(state));
        }
    }
}

/// Asks about one lock until it is free.
struct LockWatcher {
    /// The node whose attempt it is.
    owner: NodeId,
    job: Job,
    snapshot: Arc<Snapshot>,
    around: Arc<Surroundings>,
    grace: Duration,
}

impl LockWatcher {
    /// Tells what becomes of the lock; ends when that is decided, or when nobody wants to know any more.
    async fn watch(self, state: watch::Sender<LockState>) {
        tokio::select! {
            () = self.follow(&state) => {}
            () = state.closed() => {}
        }
        if matches!(*state.borrow(), LockState::Held(_)) {
            self.write_wait(None).await;
        }
    }

    async fn follow(&self, state: &watch::Sender<LockState>) {
        let mut was_held = false;
        loop {
            match self.ask().await {
                Ok(Some(number)) if !was_held => {
                    was_held = true;
                    let node = self.owner.0.split('-').next().unwrap_or("unknown").to_owned();
                    let words = SilentNode { node, session: number }.to_string();
                    tracing::warn!(
                        queue_id = self.job.queue_id.0,
                        attempt = self.job.attempt,
                        job = self.job.def.code.as_str(),
                        "{words}: waiting for it"
                    );
                    self.write_wait(Some(&words)).await;
                    state.send_replace(LockState::Held(words));
                }
                Ok(Some(_)) => {}
                Ok(None) if was_held => {
                    tokio::time::sleep(self.grace).await;
                    break;
                }
                Ok(None) => break,
                Err(why) => {
                    tracing::warn!(
                        queue_id = self.job.queue_id.0,
                        job = self.job.def.code.as_str(),
                        "cannot learn whether its lock is still held: {why}"
                    );
                    break;
                }
            }
            tokio::time::sleep(self.around.handlers.look_every).await;
        }
        if was_held {
            self.write_wait(None).await;
        }
        state.send_replace(LockState::Decided);
    }

    /// The number of the session that holds the lock. The password of the source is read anew, as for each attempt.
    async fn ask(&self) -> Result<Option<i64>, String> {
        let mut task = orphan_task(&self.job, &self.snapshot);
        let declared = &self.snapshot.shared.secrets;
        let reader = SecretReader { job: &self.job, around: &self.around, declared };
        if let Err(outcome) = reader.read_passwords(task.source.as_mut_slice()).await {
            return Err(outcome.message.unwrap_or_default());
        }
        let context = orphan_context(&self.job, &self.snapshot, &self.around);
        handler::holder_of_lock(&task, &context).await
    }

    async fn write_wait(&self, what: Option<&str>) {
        if let Err(error) = self.try_write_wait(&self.around.db, what).await {
            tracing::warn!(
                queue_id = self.job.queue_id.0,
                "cannot say what it waits for: {error:#}"
            );
        }
    }

    async fn try_write_wait(&self, db: &Db, what: Option<&str>) -> anyhow::Result<()> {
        let mut tx = db.begin().await?;
        let (id, attempt) = (self.job.queue_id, self.job.attempt);
        queue::set_waits_on(&mut tx, id, attempt, &self.owner, what).await?;
        Ok(tx.commit().await?)
    }
}
