//! Watches session locks that attempts of dead nodes still hold on their data sources.
//!
//! A node that is cut off from Procession's database alone continues its procedures (ADR 31), and a
//! killed node leaves them running on the server. As long as the server reports that the job's lock
//! is held, the attempt counts as running, so that its node can return and report how it ended.
//! Once the lock is free, the rules for a dead node apply.

use crate::domain::batch::Snapshot;
use crate::domain::cluster::silent_node::SilentNode;
use crate::domain::id::{NodeId, QueueId};
use crate::engine::attempt::end_orphan::{orphan_context, orphan_task};
use crate::engine::attempt::run::{AttemptOrder, Surroundings};
use crate::engine::attempt::secret_reader::SecretReader;
use crate::handler;
use crate::store::{Db, queue};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A row and its attempt number.
pub(in crate::engine) type AttemptKey = (QueueId, u32);

/// The known state of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LockState {
    /// The server has not answered yet.
    Asked,
    /// A session holds it; the description is for people.
    Held(String),
    /// No session holds it, or the server could not be queried.
    Decided,
}

/// The locks that this process watches.
#[derive(Default)]
pub(in crate::engine) struct HeldLocks {
    asked: HashMap<AttemptKey, watch::Receiver<LockState>>,
}

impl HeldLocks {
    /// Begins to watch a lock, unless it is watched already.
    pub(in crate::engine) fn start_watching(&mut self, key: AttemptKey, watcher: LockWatcher) {
        if let Entry::Vacant(free) = self.asked.entry(key) {
            let (state, states) = watch::channel(LockState::Asked);
            free.insert(states);
            tokio::spawn(watcher.watch(state));
        }
    }

    /// The attempts whose locks no longer need to be awaited.
    pub(in crate::engine) fn decided(&self) -> HashSet<AttemptKey> {
        let is_decided = |state: &watch::Receiver<LockState>| *state.borrow() == LockState::Decided;
        self.asked.iter().filter(|(_, state)| is_decided(state)).map(|(key, _)| *key).collect()
    }

    /// Whether the state of a lock is still awaited.
    pub(in crate::engine) fn is_awaited(&self, key: AttemptKey) -> bool {
        self.asked.get(&key).is_some_and(|state| *state.borrow() != LockState::Decided)
    }

    /// Stops watching all other locks.
    pub(in crate::engine) fn keep_only(&mut self, keys: &HashSet<AttemptKey>) {
        self.asked.retain(|key, _| keys.contains(key));
    }
}

/// Watches one lock until it is free.
pub(in crate::engine) struct LockWatcher {
    /// The node that ran the attempt.
    pub(in crate::engine) owner: NodeId,
    pub(in crate::engine) job: AttemptOrder,
    pub(in crate::engine) snapshot: Arc<Snapshot>,
    pub(in crate::engine) around: Arc<Surroundings>,
    /// Time for that node to report after its lock is free.
    pub(in crate::engine) grace: Duration,
}

impl LockWatcher {
    /// Publishes the state of the lock; ends when it is decided, or when no receiver is left.
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
            match self.query_holder().await {
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

    /// The number of the session that holds the lock. The password of the source is read again, as
    /// for each attempt.
    async fn query_holder(&self) -> Result<Option<i64>, String> {
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
