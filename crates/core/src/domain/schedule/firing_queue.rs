//! The queue of firings that wait for a free worker of the trigger core, and the choice of the next
//! one.
//!
//! A first-in-first-out queue collapses under overload: everything in it is late by the time it is
//! served. In version 0.1 a hundred schedules per second left 16,000 decided firings in front of
//! the new ones, and nothing fired for five minutes, even after the load had ended. So a firing
//! that falls under the misfire policy leaves the queue unserved (its row remains, and the planner
//! decides about all such rows in one transaction), and while the oldest waits too long the newest
//! goes first.

use crate::domain::schedule::firing::{Firing, FiringId, Source, TriggerId};
use crate::domain::schedule::misfire::is_missed;
use crate::domain::time::Millis;
use std::collections::VecDeque;

/// The queue is overloaded when its oldest firing has waited longer than this, in milliseconds.
const OVERLOADED_AFTER_MS: i64 = 1_000;
/// One in this many served firings is a previously missed one, so that these are served too.
const MISSED_SHARE: u32 = 4;

/// Firings that are due.
#[derive(Debug, Default)]
pub struct FiringQueue {
    /// In order of arrival.
    on_time: VecDeque<Firing>,
    /// Missed firings that the misfire policy fires anyway.
    missed: VecDeque<Firing>,
    /// Number of firings taken while both lists had some.
    turns: u32,
}

/// Result of `take_next`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TakenFiring {
    /// The firing to execute next.
    pub next: Option<Firing>,
    /// Dropped firings: the misfire policy decides about their rows.
    pub left_to_policy: Vec<FiringId>,
}

impl FiringQueue {
    /// Adds a firing.
    pub fn push(&mut self, firing: Firing) {
        match firing.source {
            Source::Misfire => self.missed.push_back(firing),
            Source::Cron | Source::Manual | Source::Api | Source::Event | Source::Parent => {
                self.on_time.push_back(firing);
            }
        }
    }

    /// Number of waiting firings.
    pub fn len(&self) -> usize {
        self.on_time.len() + self.missed.len()
    }

    /// Whether no firing waits.
    pub fn is_empty(&self) -> bool {
        self.on_time.is_empty() && self.missed.is_empty()
    }

    /// Removes all firings.
    pub fn clear(&mut self) {
        self.on_time.clear();
        self.missed.clear();
    }

    /// Takes the firing to execute at `now`. `keeps_order` tells whether a schedule's firings must
    /// be executed in the order of their planned times, which is so unless its batches may overlap.
    pub fn take_next(
        &mut self,
        now: Millis,
        keeps_order: impl Fn(TriggerId) -> bool,
    ) -> TakenFiring {
        let mut taken = TakenFiring::default();
        while let Some(firing) = self.take_any(now, &keeps_order) {
            if is_missed(&firing, now) {
                taken.left_to_policy.push(firing.firing_id);
            } else {
                taken.next = Some(firing);
                break;
            }
        }
        taken
    }

    fn take_any(&mut self, now: Millis, keeps_order: impl Fn(TriggerId) -> bool) -> Option<Firing> {
        if self.on_time.is_empty() {
            return self.missed.pop_front();
        }
        if !self.missed.is_empty() {
            self.turns = (self.turns + 1) % MISSED_SHARE;
            if self.turns == 0 {
                return self.missed.pop_front();
            }
        }
        self.take_on_time(now, keeps_order)
    }

    fn take_on_time(
        &mut self,
        now: Millis,
        keeps_order: impl Fn(TriggerId) -> bool,
    ) -> Option<Firing> {
        let oldest = self.on_time.front()?;
        if now.since(oldest.fire_at) <= OVERLOADED_AFTER_MS {
            return self.on_time.pop_front();
        }
        let newest = self.on_time.back()?.trigger_id;
        if keeps_order(newest) {
            let first = self.on_time.iter().position(|firing| firing.trigger_id == newest)?;
            return self.on_time.remove(first);
        }
        self.on_time.pop_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::schedule::firing::FiringStatus;

    const NOW: Millis = Millis(1_800_000_000_000);

    /// A firing of a schedule, planned this many milliseconds before `NOW`.
    fn firing(id: i64, schedule: i64, age_ms: i64) -> Firing {
        let planned_at = NOW.plus_ms(-age_ms);
        Firing {
            firing_id: FiringId(id),
            trigger_id: TriggerId(schedule),
            planned_at,
            nominal_date: None,
            source: Source::Cron,
            handler: "queueDispatcherHandler".to_owned(),
            status: FiringStatus::Pending,
            fire_at: planned_at,
            owner: None,
            attempt: 0,
            params: None,
            parent_batch_id: None,
            missed_until: None,
            batch_no: None,
            reason: None,
            fired_at: None,
        }
    }

    fn queue(firings: Vec<Firing>) -> FiringQueue {
        let mut queue = FiringQueue::default();
        firings.into_iter().for_each(|firing| queue.push(firing));
        queue
    }

    /// Ids of the firings served at `NOW`, and of the dropped ones.
    fn drain(queue: &mut FiringQueue, keeps_order: bool) -> (Vec<i64>, Vec<i64>) {
        let (mut served, mut left) = (Vec::new(), Vec::new());
        loop {
            let taken = queue.take_next(NOW, |_| keeps_order);
            left.extend(taken.left_to_policy.iter().map(|id| id.0));
            match taken.next {
                Some(firing) => served.push(firing.firing_id.0),
                None => return (served, left),
            }
        }
    }

    #[test]
    fn the_oldest_goes_first_while_none_waits_long() {
        let mut queue = queue(vec![firing(1, 1, 900), firing(2, 2, 500), firing(3, 1, 0)]);
        assert_eq!(drain(&mut queue, false), (vec![1, 2, 3], vec![]));
    }

    #[test]
    fn the_newest_goes_first_under_overload() {
        let mut queue = queue(vec![firing(1, 1, 3_000), firing(2, 2, 2_000), firing(3, 3, 0)]);
        assert_eq!(drain(&mut queue, false), (vec![3, 2, 1], vec![]));
    }

    #[test]
    fn a_schedule_that_keeps_its_order_is_served_from_its_oldest() {
        let mut queue = queue(vec![
            firing(1, 1, 3_000),
            firing(2, 2, 2_500),
            firing(3, 1, 2_000),
            firing(4, 1, 0),
        ]);
        assert_eq!(drain(&mut queue, true), (vec![1, 3, 4, 2], vec![]));
    }

    #[test]
    fn what_the_policy_decides_about_is_dropped_unserved() {
        let retried = Firing { attempt: 1, ..firing(3, 3, 9_000) };
        let mut queue = queue(vec![firing(1, 1, 5_001), firing(2, 2, 5_000), retried]);
        let (served, left) = drain(&mut queue, false);
        assert_eq!(left, vec![1]);
        assert_eq!(served.len(), 2, "{served:?}");
        assert!(queue.is_empty());
    }

    #[test]
    fn a_manual_firing_is_never_dropped() {
        let manual = Firing { source: Source::Manual, ..firing(1, 1, 60_000) };
        assert_eq!(drain(&mut queue(vec![manual]), false), (vec![1], vec![]));
    }

    #[test]
    fn missed_firings_have_a_quarter_of_the_turns() {
        let missed = |id| Firing { source: Source::Misfire, ..firing(id, id, 60_000) };
        let on_time = (1..=6).map(|id| firing(id, id, 0));
        let mut queue = queue(on_time.chain((11..=14).map(missed)).collect());
        let (served, left) = drain(&mut queue, false);
        assert_eq!(served, vec![1, 2, 3, 11, 4, 5, 6, 12, 13, 14]);
        assert!(left.is_empty());
    }
}
