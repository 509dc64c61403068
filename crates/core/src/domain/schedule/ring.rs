//! The time ring: the next minute in sixty slots of one second, and everything later in a separate
//! list.
//!
//! XXL-JOB's ring keys its slots by second modulo 60 and nothing else, so that a stall of more than
//! two seconds makes a firing a minute late or loses it (shared fact sheet of its source: ticks
//! look back two slots). Here every entry keeps its moment, a slot is only an index, and a turn
//! visits every second since the last one, however long ago that was.

use crate::domain::time::Millis;

/// Slots of the ring, one second each.
const SLOTS: i64 = 60;

/// Items that wait for their moment.
#[derive(Clone, Debug)]
pub struct TimeRing<T> {
    slots: Vec<RingSlot<T>>,
    /// The second up to which all items have been taken.
    turned: i64,
    len: usize,
}

#[derive(Clone, Debug)]
struct RingSlot<T> {
    items: Vec<(Millis, T)>,
    /// The earliest moment among them, so that the wake-up time needs no search.
    first: Option<Millis>,
}

impl<T> TimeRing<T> {
    /// An empty ring at `now`.
    pub fn new(now: Millis) -> Self {
        let slots = (0..SLOTS).map(|_| RingSlot { items: Vec::new(), first: None }).collect();
        Self { slots, turned: second(now), len: 0 }
    }

    /// Adds `item` at the moment `at`; an item whose moment has passed is returned by the next
    /// turn.
    pub fn push(&mut self, at: Millis, item: T) {
        let slot = &mut self.slots[place(second(at).max(self.turned))];
        slot.first = Some(slot.first.map_or(at, |first| first.min(at)));
        slot.items.push((at, item));
        self.len += 1;
    }

    /// Takes all due items, ordered by time; items with the same moment in insertion order. After
    /// the clock went back nothing is returned twice or early.
    pub fn take_due(&mut self, now: Millis) -> Vec<(Millis, T)> {
        let to = second(now);
        if to < self.turned {
            // The clock went back: items added since are in the slots of the old seconds.
            let all = self.clear();
            self.turned = to;
            all.into_iter().for_each(|(at, item)| self.push(at, item));
        }
        let mut due = Vec::new();
        // After a whole turn every slot has been visited, however long the stall was.
        let from = self.turned.max(to.saturating_sub(SLOTS - 1)).min(to);
        for at in from..=to {
            let slot = &mut self.slots[place(at)];
            if slot.first.is_none_or(|first| first > now) {
                continue;
            }
            due.extend(slot.items.extract_if(.., |(at, _)| *at <= now));
            slot.first = slot.items.iter().map(|(at, _)| *at).min();
        }
        self.turned = self.turned.max(to);
        self.len -= due.len();
        due.sort_by_key(|(at, _)| *at);
        due
    }

    /// The earliest moment of a waiting item.
    pub fn next(&self) -> Option<Millis> {
        self.slots.iter().filter_map(|slot| slot.first).min()
    }

    /// Number of waiting items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no item waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes and returns all items, in insertion order within each moment.
    pub fn clear(&mut self) -> Vec<(Millis, T)> {
        self.len = 0;
        let slots = self.slots.iter_mut();
        slots
            .flat_map(|slot| {
                slot.first = None;
                std::mem::take(&mut slot.items)
            })
            .collect()
    }
}

fn second(at: Millis) -> i64 {
    at.0.div_euclid(1_000)
}

fn place(second: i64) -> usize {
    usize::try_from(second.rem_euclid(SLOTS)).expect("a remainder of 60 is small and not negative")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stall_of_any_length_hands_out_all_in_order() {
        for stall in [0, 900, 1_000, 4_000, 30_000, 59_999, 60_000, 61_000, 86_400_000] {
            let mut ring = TimeRing::new(Millis(10_500));
            for (at, name) in [(13_000, 'c'), (11_000, 'a'), (71_000, 'z'), (12_000, 'b')] {
                ring.push(Millis(at), name);
            }
            let now = Millis(13_000 + stall);
            let due: String = ring.take_due(now).into_iter().map(|(_, name)| name).collect();
            assert_eq!(due, if now.0 >= 71_000 { "abcz" } else { "abc" }, "stall {stall}");
        }
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_twice_or_early() {
        let mut ring = TimeRing::new(Millis(100_000));
        ring.push(Millis(101_000), 1);
        assert_eq!(ring.take_due(Millis(101_000)).len(), 1);
        ring.push(Millis(102_000), 2);
        assert!(ring.take_due(Millis(40_000)).is_empty(), "an hour or a minute back");
        assert!(ring.take_due(Millis(101_999)).is_empty());
        assert_eq!(ring.next(), Some(Millis(102_000)));
        assert_eq!(ring.take_due(Millis(102_000)), [(Millis(102_000), 2)]);
        assert!(ring.is_empty());
    }

    #[test]
    fn what_is_put_in_after_the_clock_went_back_comes_at_its_time() {
        let mut ring = TimeRing::new(Millis(101_000));
        ring.push(Millis(150_000), 'b');
        ring.take_due(Millis(40_000));
        ring.push(Millis(45_000), 'a');
        assert!(ring.take_due(Millis(44_999)).is_empty());
        assert_eq!(ring.take_due(Millis(45_000)), [(Millis(45_000), 'a')]);
        assert_eq!(ring.take_due(Millis(150_000)), [(Millis(150_000), 'b')]);
    }

    proptest! {
        #[test]
        fn never_early_never_twice_never_lost(
            steps in prop::collection::vec((0i64..200_000, -70_000i64..150_000), 1..60)
        ) {
            // Each step adds an item `ahead` of now and then lets `stall` pass.
            let mut now = Millis(1_000_000);
            let mut ring = TimeRing::new(now);
            let mut open = Vec::new();
            for (number, (ahead, stall)) in steps.into_iter().enumerate() {
                let at = now.plus_ms(ahead - 5_000);
                ring.push(at, number);
                open.push((at, number));
                now = now.plus_ms(stall);
                let mut wanted: Vec<_> = open.extract_if(.., |(at, _)| *at <= now).collect();
                wanted.sort_by_key(|(at, _)| *at);
                prop_assert_eq!(ring.take_due(now), wanted);
                prop_assert_eq!(ring.len(), open.len());
                prop_assert_eq!(ring.next(), open.iter().map(|(at, _)| *at).min());
            }
        }
    }
}
