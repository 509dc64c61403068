//! The pools of firings under way, with a maximum size each. Further firings wait in queues, which
//! the ring bounds (`HELD_MAX`), and from which missed firings are dropped
//! (`domain::schedule::firing_queue`).

use crate::domain::schedule::firing::{Firing, FiringId};
use crate::domain::schedule::firing_queue::FiringQueue;
use crate::engine::trigger::firer::{Firer, FiringLane};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::task::{Id, JoinSet};

/// Firings per statement. Of 20,000 that are due at once the first are durable after a few
/// milliseconds, and none waits for a statement that takes a tenth of a second.
const TOGETHER_MOST: usize = 1_024;

/// Firings that open batches in one transaction. It locks the rows of their groups, for which
/// `apply` and other firings of the same groups wait: some tens of milliseconds.
const GROUP_MOST: usize = 64;

/// Maximum number of batch-opening firings under way at once.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// For fast schedules.
    pub fast: usize,
    /// For schedules that were slow recently.
    pub slow: usize,
}

/// The firings that wait, and those under way.
pub struct FiringPools {
    firer: Arc<Firer>,
    widths: Widths,
    together: VecDeque<Firing>,
    fast: FiringQueue,
    slow: FiringQueue,
    /// Missed firings that were dropped from a queue and are not reported yet.
    left_to_policy: Vec<FiringId>,
    /// Number of tasks under way per lane.
    running: [usize; 3],
    /// The firings of each task, for one that panics.
    started: HashMap<Id, (FiringLane, Vec<FiringId>)>,
    /// Each task returns the firings to be retried.
    tasks: JoinSet<Vec<Firing>>,
}

impl FiringPools {
    /// Empty pools.
    pub fn new(firer: Arc<Firer>, widths: Widths) -> Self {
        Self {
            firer,
            widths,
            together: VecDeque::new(),
            fast: FiringQueue::default(),
            slow: FiringQueue::default(),
            left_to_policy: Vec::new(),
            running: [0; 3],
            started: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Queues a firing, and starts it when there is capacity.
    pub(super) fn enqueue(&mut self, firing: Firing) {
        match self.firer.lane_of(&firing) {
            FiringLane::Together => self.together.push_back(firing),
            FiringLane::Fast => self.fast.push(firing),
            FiringLane::Slow => self.slow.push(firing),
        }
    }

    /// Number of firings that wait.
    pub(super) fn waiting(&self) -> usize {
        self.together.len() + self.fast.len() + self.slow.len()
    }

    /// Starts firings up to the capacity, and waits for the next task to end: returns the firings
    /// that are settled or left to the misfire policy, and those to be retried. `None` when nothing
    /// is under way. May be dropped at any point.
    pub(super) async fn next(&mut self) -> Option<(Vec<FiringId>, Vec<Firing>)> {
        self.start();
        if !self.left_to_policy.is_empty() {
            return Some((std::mem::take(&mut self.left_to_policy), Vec::new()));
        }
        let (task, again) = match self.tasks.join_next_with_id().await? {
            Ok(ended) => ended,
            Err(error) => {
                // Its rows are abandoned: the next poll finds them overdue.
                tracing::error!(%error, "a firing broke down");
                (error.id(), Vec::new())
            }
        };
        let (lane, ids) = self.started.remove(&task).expect("each task was noted at its start");
        self.running[lane as usize] -= 1;
        Some((ids, again))
    }

    /// Starts no further firings.
    pub(super) fn close(&mut self) {
        self.together.clear();
        self.fast.clear();
        self.slow.clear();
    }

    fn start(&mut self) {
        while self.running[FiringLane::Together as usize] < 1 && !self.together.is_empty() {
            let size = self.together.len().min(TOGETHER_MOST);
            let group: Vec<Firing> = self.together.drain(..size).collect();
            let (firer, ids) = (self.firer.clone(), group.iter().map(|f| f.firing_id).collect());
            let task = self.tasks.spawn(async move { firer.fire_together(group).await });
            self.note_task(task.id(), FiringLane::Together, ids);
        }
        while self.running[FiringLane::Fast as usize] < self.widths.fast {
            let group = self.take_from(FiringLane::Fast, GROUP_MOST);
            let ids = group.iter().map(|firing| firing.firing_id).collect();
            let firer = self.firer.clone();
            let task = match <[Firing; 1]>::try_from(group) {
                Ok([firing]) => self
                    .tasks
                    .spawn(async move { firer.fire_one(firing).await.into_iter().collect() }),
                Err(group) if group.is_empty() => break,
                Err(group) => self.tasks.spawn(async move { firer.fire_group(group).await }),
            };
            self.note_task(task.id(), FiringLane::Fast, ids);
        }
        while self.running[FiringLane::Slow as usize] < self.widths.slow {
            let Some(firing) = self.take_from(FiringLane::Slow, 1).pop() else { break };
            let (firer, id) = (self.firer.clone(), firing.firing_id);
            let task =
                self.tasks.spawn(async move { firer.fire_one(firing).await.into_iter().collect() });
            self.note_task(task.id(), FiringLane::Slow, vec![id]);
        }
    }

    /// Takes the next firings of a pool, at most `most`.
    fn take_from(&mut self, lane: FiringLane, most: usize) -> Vec<Firing> {
        let queue = if lane == FiringLane::Slow { &mut self.slow } else { &mut self.fast };
        let now = self.firer.clock.now();
        let mut group = Vec::new();
        while group.len() < most {
            let taken = queue.take_next(now, |id| self.firer.keeps_order(id));
            self.left_to_policy.extend(taken.left_to_policy);
            let Some(firing) = taken.next else { break };
            group.push(firing);
        }
        group
    }

    fn note_task(&mut self, task: Id, lane: FiringLane, ids: Vec<FiringId>) {
        self.running[lane as usize] += 1;
        self.started.insert(task, (lane, ids));
    }
}
