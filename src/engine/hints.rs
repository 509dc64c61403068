//! Waits for hints: wake-ups about rows that this or another process wrote, which replace polling
//! every second.
//!
//! A hint is never the truth: the receiver reads the rows, and also polls them at times without a
//! hint. The poll interval depends on how far hints are delivered (`poll_interval`).

use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::store::Db;
use crate::store::hint::{Ear, HintScope, HintTopic, ReceivedHint};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How many hints of each topic have arrived, and how far hints are delivered.
#[derive(Clone, Copy, Debug)]
struct HintState {
    counts: [u64; HintTopic::ALL.len()],
    reach: HintScope,
}

/// A waiter for hints. Clones wait independently: a hint that one has consumed still wakes the
/// other.
#[derive(Clone)]
pub struct Hints {
    db: Db,
    clock: Clock,
    state: Arc<watch::Sender<HintState>>,
    heard: watch::Receiver<HintState>,
    /// Per topic, the number of hints that this waiter has consumed.
    seen: [u64; HintTopic::ALL.len()],
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A hint arrived, or some may have been missed.
    Told,
    /// The time limit has passed.
    Time,
}

impl Hints {
    /// A waiter of this process. No hint arrives before `listen` is called, once per process.
    pub fn new(db: Db, clock: Clock) -> Self {
        let zero = HintState { counts: [0; HintTopic::ALL.len()], reach: HintScope::Here };
        let (state, heard) = watch::channel(zero);
        Self { db, clock, state: Arc::new(state), heard, seen: zero.counts }
    }

    /// Listens in a task of its own, for this waiter and all its clones, until the listener is
    /// ended.
    pub fn listen(&self) -> HintListener {
        let stop = CancellationToken::new();
        let task = tokio::spawn(listen_to(self.db.listen(), self.state.clone(), stop.clone()));
        HintListener { task, stop: stop.drop_guard() }
    }

    /// Waits for a hint of one of these topics, no longer than `until`; a hint since the last wait
    /// for its topic ends the wait at once. May be dropped at any point: hints that were not
    /// consumed remain.
    pub async fn wait_until(&mut self, topics: &[HintTopic], until: Millis) -> Woken {
        let left = u64::try_from(until.since(self.clock.now())).unwrap_or(0);
        tokio::select! {
            biased;
            () = self.wait_for_topic(topics) => Woken::Told,
            () = tokio::time::sleep(Duration::from_millis(left)) => Woken::Time,
        }
    }

    /// Waits for a hint of one of these topics without a time limit.
    pub async fn wait_for_topic(&mut self, topics: &[HintTopic]) {
        let seen = self.seen;
        let is_new =
            |state: &HintState| topics.iter().any(|t| state.counts[t.place()] != seen[t.place()]);
        // Copied at once: the borrowed state must not be held while this waits.
        let counts = self.heard.wait_for(is_new).await.map(|state| state.counts).ok();
        let Some(counts) = counts else { return std::future::pending().await };
        for topic in topics {
            self.seen[topic.place()] = counts[topic.place()];
        }
    }

    /// How long a poll that found nothing need not be repeated: `far` where hints of every process
    /// are delivered, else `near`.
    pub fn poll_interval(&self, near: i64, far: i64) -> i64 {
        match self.heard.borrow().reach {
            HintScope::Here => near,
            HintScope::Everywhere => far,
        }
    }
}

async fn listen_to(mut ear: Ear, state: Arc<watch::Sender<HintState>>, stop: CancellationToken) {
    loop {
        let heard = tokio::select! {
            heard = ear.next() => heard,
            () = stop.cancelled() => break,
        };
        let reach = ear.reach();
        state.send_modify(|state| {
            state.reach = reach;
            match heard {
                ReceivedHint::Word(word) => {
                    if let Some(topic) = HintTopic::parse(&word) {
                        state.counts[topic.place()] += 1;
                    }
                }
                ReceivedHint::Gap => state.counts.iter_mut().for_each(|count| *count += 1),
            }
        });
    }
    state.send_modify(|state| state.reach = HintScope::Here);
}

/// A listening task; dropping this stops it.
pub struct HintListener {
    task: JoinHandle<()>,
    stop: DropGuard,
}

impl HintListener {
    /// Stops the task and waits for its end.
    pub async fn end_and_wait(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "what listens for hints broke down");
        }
    }
}
