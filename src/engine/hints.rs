//! Waits for hints: what this or another process wrote, so that nobody has to ask for it every second.
//!
//! A hint is never the truth: whoever is woken looks at the rows, and looks there now and then when
//! nothing was said. How often depends on how far hints come (`pace`).

use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::store::Db;
use crate::store::hint::{Ear, HintScope, HintTopic, ReceivedHint};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often each topic was heard of, and how far it is heard.
#[derive(Clone, Copy, Debug)]
struct HintState {
    counts: [u64; HintTopic::ALL.len()],
    reach: HintScope,
}

/// One waiter for hints. Clones wait each for themselves: what one has heard the other still hears.
#[derive(Clone)]
pub struct Hints {
    db: Db,
    clock: Clock,
    state: Arc<watch::Sender<HintState>>,
    heard: watch::Receiver<HintState>,
    /// Of each topic, how much of it this waiter has answered.
    seen: [u64; HintTopic::ALL.len()],
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// By a hint, or because some may have been missed.
    Told,
    /// Its time has come.
    Time,
}

impl Hints {
    /// A waiter of this process. Nothing is heard before `listen` is called, once per process.
    pub fn new(db: Db, clock: Clock) -> Self {
        let zero = HintState { counts: [0; HintTopic::ALL.len()], reach: HintScope::Here };
        let (state, heard) = watch::channel(zero);
        Self { db, clock, state: Arc::new(state), heard, seen: zero.counts }
    }

    /// Listens in a task of its own, for this waiter and all its clones, until that is ended.
    pub fn listen(&self) -> HintListener {
        let stop = CancellationToken::new();
        let task = tokio::spawn(listen_to(self.db.listen(), self.state.clone(), stop.clone()));
        HintListener { task, stop: stop.drop_guard() }
    }

    /// Waits for one of these topics, `until` at most; a hint that came since the last wait for its
    /// topic ends it at once. May be dropped at any point: what was not answered stays.
    pub async fn wait_until(&mut self, topics: &[HintTopic], until: Millis) -> Woken {
        let left = u64::try_from(until.since(self.clock.now())).unwrap_or(0);
        tokio::select! {
            biased;
            () = self.wait_for_topic(topics) => Woken::Told,
            () = tokio::time::sleep(Duration::from_millis(left)) => Woken::Time,
        }
    }

    /// Waits for one of these topics without end.
    pub async fn wait_for_topic(&mut self, topics: &[HintTopic]) {
        let seen = self.seen;
        let is_new =
            |state: &HintState| topics.iter().any(|t| state.counts[t.place()] != seen[t.place()]);
        // Copied at once: what it is read from must not be held while this waits.
        let counts = self.heard.wait_for(is_new).await.map(|state| state.counts).ok();
        let Some(counts) = counts else { return std::future::pending().await };
        for topic in topics {
            self.seen[topic.place()] = counts[topic.place()];
        }
    }

    /// How long a look that finds nothing need not be repeated: `far` where hints of every process
    /// come through, else `near`.
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

/// A task that listens; it stops when this is dropped.
pub struct HintListener {
    task: JoinHandle<()>,
    stop: DropGuard,
}

impl HintListener {
    /// Ends it and waits for its end.
    pub async fn end_and_wait(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "what listens for hints broke down");
        }
    }
}
