//! The pools that firings go through: so many at a time, the rest in queues without an end.

use crate::domain::firing::{Firing, FiringId};
use crate::engine::trigger::firer::{Firer, Lane};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::task::{Id, JoinSet};

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
    /// What each of them has, for one that panics.
    started: HashMap<Id, (Lane, Vec<FiringId>)>,
    /// Each gives what is to be tried again.
    tasks: JoinSet<Vec<Firing>>,
}

impl Pools {
    /// Empty ones.
    pub fn new(firer: Arc<Firer>, widths: Widths) -> Self {
        let (together, fast, slow) = Default::default();
        let (running, started, tasks) = ([0; 3], HashMap::new(), JoinSet::new());
        Self { firer, widths, together, fast, slow, running, started, tasks }
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
        let (task, again) = match self.tasks.join_next_with_id().await? {
            Ok(ended) => ended,
            Err(error) => {
                // Its rows are nobody's now: whoever looks next finds them overdue.
                tracing::error!(%error, "a firing broke down");
                (error.id(), Vec::new())
            }
        };
        let (lane, ids) = self.started.remove(&task).expect("each task was noted at its start");
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
            let task = self.tasks.spawn(async move { firer.fire_together(group).await });
            self.note(task.id(), Lane::Together, ids);
        }
        for (lane, width) in [(Lane::Fast, self.widths.fast), (Lane::Slow, self.widths.slow)] {
            while self.running[lane as usize] < width {
                let queue = if lane == Lane::Fast { &mut self.fast } else { &mut self.slow };
                let Some(firing) = queue.pop_front() else { break };
                let (firer, id) = (self.firer.clone(), firing.firing_id);
                let task = self
                    .tasks
                    .spawn(async move { firer.fire_one(firing).await.into_iter().collect() });
                self.note(task.id(), lane, vec![id]);
            }
        }
    }

    fn note(&mut self, task: Id, lane: Lane, ids: Vec<FiringId>) {
        self.running[lane as usize] += 1;
        self.started.insert(task, (lane, ids));
    }
}
