//! The pools that firings go through: so many at a time, the rest in queues without an end.

use crate::domain::firing::{Firing, FiringId};
use crate::engine::trigger::firer::{Firer, Lane};
use futures_util::FutureExt as _;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Firings that one statement fires. Of 20,000 that are due at once the first are durable after a few
/// milliseconds, and none waits for a statement that takes a tenth of a second.
const TOGETHER_MOST: usize = 1_024;

/// How many firings that open batches are on their way at a time.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// Of those that are quick.
    pub fast: usize,
    /// Of those that were slow lately.
    pub slow: usize,
}

/// What waits to be fired and what is on its way.
pub struct Pools {
    firer: Arc<Firer>,
    widths: Widths,
    together: VecDeque<Firing>,
    fast: VecDeque<Firing>,
    slow: VecDeque<Firing>,
    /// How many tasks of each lane are on their way.
    running: [usize; 3],
    tasks: JoinSet<(Lane, Vec<FiringId>, Vec<Firing>)>,
}

impl Pools {
    /// Empty ones.
    pub fn new(firer: Arc<Firer>, widths: Widths) -> Self {
        let (together, fast, slow) = Default::default();
        Self { firer, widths, together, fast, slow, running: [0; 3], tasks: JoinSet::new() }
    }

    /// Puts a firing in its queue, and starts it when there is room.
    pub(super) fn put(&mut self, firing: Firing) {
        match self.firer.lane(&firing) {
            Lane::Together => self.together.push_back(firing),
            Lane::Fast => self.fast.push_back(firing),
            Lane::Slow => self.slow.push_back(firing),
        }
    }

    /// Starts what there is room for, and waits for the next that ends: what is settled, and what is to
    /// be tried again. `None` when nothing is on its way. May be dropped at any point.
    pub(super) async fn next(&mut self) -> Option<(Vec<FiringId>, Vec<Firing>)> {
        self.start();
        let (lane, ids, again) = match self.tasks.join_next().await? {
            Ok(ended) => ended,
            Err(error) => {
                // Only when the runtime ends.
                tracing::error!(%error, "a firing broke down");
                return Some(Default::default());
            }
        };
        self.running[lane as usize] -= 1;
        Some((ids, again))
    }

    /// Starts nothing any more.
    pub(super) fn close(&mut self) {
        self.together.clear();
        self.fast.clear();
        self.slow.clear();
    }

    fn start(&mut self) {
        while self.running[Lane::Together as usize] < 1 && !self.together.is_empty() {
            let size = self.together.len().min(TOGETHER_MOST);
            let group: Vec<Firing> = self.together.drain(..size).collect();
            let (firer, ids) = (self.firer.clone(), group.iter().map(|f| f.firing_id).collect());
            self.running[Lane::Together as usize] += 1;
            self.tasks.spawn(async move {
                let again = AssertUnwindSafe(firer.fire_together(group)).catch_unwind().await;
                (Lane::Together, ids, again.unwrap_or_else(|_| broken()))
            });
        }
        for (lane, width) in [(Lane::Fast, self.widths.fast), (Lane::Slow, self.widths.slow)] {
            while self.running[lane as usize] < width {
                let queue = if lane == Lane::Fast { &mut self.fast } else { &mut self.slow };
                let Some(firing) = queue.pop_front() else { break };
                let firer = self.firer.clone();
                self.running[lane as usize] += 1;
                self.tasks.spawn(async move {
                    let id = firing.firing_id;
                    let again = AssertUnwindSafe(firer.fire_one(firing)).catch_unwind().await;
                    let again = again.map(|again| again.into_iter().collect());
                    (lane, vec![id], again.unwrap_or_else(|_| broken()))
                });
            }
        }
    }
}

/// A firing that broke down is in nobody's hands: its row is found again two seconds later.
fn broken() -> Vec<Firing> {
    tracing::error!("a firing broke down; its row is tried again");
    Vec::new()
}
