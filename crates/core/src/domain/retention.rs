//! Decides which old batches are removed: by age, by count, and by what still needs them.
//!
//! A batch is removed when no reason to keep it exists. Reasons are checked in one order, from
//! facts that nobody can change to settings, so that the displayed reason is the strongest one.

mod named;
mod window;
mod words;

pub use named::{NeededNumbers, next_numbers};
pub use window::{BadWindow, Window};

use crate::domain::batch::BatchStatus;
use crate::domain::time::Millis;
use std::collections::BTreeSet;

/// Milliseconds per day.
pub const DAY_MS: i64 = 24 * 3_600_000;

/// Retention of batches that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBadly {
    /// All of them are kept.
    Stay,
    /// They are removed like the others.
    Go,
}

/// How long the batches of a group are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRetentionRule {
    /// Age in milliseconds after its end at which a batch may be removed; none: never.
    pub batches_ms: Option<i64>,
    /// Number of newest succeeded batches that are kept regardless of age.
    pub keep: u32,
    /// Retention of batches that did not succeed.
    pub badly: EndedBadly,
    /// Age in milliseconds at which log lines of jobs are removed, if shorter; none: with their
    /// batch.
    pub lines_ms: Option<i64>,
}

/// A reason why a batch is still needed, or why its rows may not be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RetentionNeed {
    /// One of its jobs ended UNKNOWN: a user has to investigate.
    Unknown,
    /// The outcome of an attempt is open: in its row, or in `procession_ledger`.
    OpenOutcome,
    /// A notification about it has not been sent.
    UnsentMail,
    /// It belongs to a backfill that has not ended.
    Backfill,
    /// It is a sub-batch of a batch that is open, or failed and may be rerun.
    Parent,
    /// A schedule triggered by its end has an unfinished firing.
    Firing,
    /// One of its jobs is marked for having committed by itself (`tx_breach`).
    Breach,
    /// Another batch, kept or future, refers to it by its number.
    Named,
    /// It has rows in a table whose retention is left to partitions.
    Left,
}

impl RetentionNeed {
    /// Every reason, strongest first.
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::OpenOutcome,
        Self::UnsentMail,
        Self::Backfill,
        Self::Parent,
        Self::Firing,
        Self::Breach,
        Self::Named,
        Self::Left,
    ];
}

/// Why a batch is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeepReason {
    /// It has not ended.
    Open,
    /// Nothing is removed by the rule.
    Off,
    /// It ended too recently.
    Young,
    /// It did not end well.
    EndedBadly,
    /// It is one of the newest succeeded batches of its group.
    Newest,
    /// Something needs it.
    Needed(RetentionNeed),
}

/// Facts about a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Old {
    /// Its state.
    pub status: BatchStatus,
    /// When it ended.
    pub ended: Option<Millis>,
    /// Whether it is one of the newest succeeded batches that the rule keeps.
    pub is_newest: bool,
    /// Reasons why it is needed.
    pub needs: BTreeSet<RetentionNeed>,
}

impl GroupRetentionRule {
    /// Batches that ended before this moment may be removed.
    pub fn cutoff_time(&self, now: Millis) -> Option<Millis> {
        self.batches_ms.map(|ms| now.plus_ms(-ms))
    }

    /// Log lines of batches that ended before this moment are removed; none when they are removed
    /// with their batch.
    pub fn lines_cut(&self, now: Millis) -> Option<Millis> {
        let lines = self.lines_ms.filter(|ms| self.batches_ms.is_none_or(|batches| *ms < batches));
        lines.map(|ms| now.plus_ms(-ms))
    }

    /// Why the rule keeps a batch regardless of needs; none when only needs could keep it.
    pub fn keeps(&self, old: &Old, now: Millis) -> Option<KeepReason> {
        let Some(ended) = old.ended.filter(|_| old.status.is_final()) else {
            return Some(KeepReason::Open);
        };
        let Some(cut) = self.cutoff_time(now) else { return Some(KeepReason::Off) };
        if ended >= cut {
            return Some(KeepReason::Young);
        }
        if !old.status.is_success() && self.badly == EndedBadly::Stay {
            return Some(KeepReason::EndedBadly);
        }
        (old.status.is_success() && old.is_newest).then_some(KeepReason::Newest)
    }

    /// Why a batch is kept; none: it is removed.
    pub fn judge(&self, old: &Old, now: Millis) -> Option<KeepReason> {
        self.keeps(old, now).or_else(|| old.needs.first().map(|need| KeepReason::Needed(*need)))
    }

    /// Whether the log lines of a batch are removed before it: it succeeded and ended long enough
    /// ago. The output before a failure is kept with the failure.
    pub fn drops_lines(&self, status: BatchStatus, ended: Millis, now: Millis) -> bool {
        let may = status.is_success() || (status.is_final() && self.badly == EndedBadly::Go);
        may && self.lines_cut(now).is_some_and(|cut| ended < cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Millis = Millis(1_000 * DAY_MS);

    fn rule() -> GroupRetentionRule {
        GroupRetentionRule {
            batches_ms: Some(90 * DAY_MS),
            keep: 40,
            badly: EndedBadly::Stay,
            lines_ms: Some(30 * DAY_MS),
        }
    }

    fn old(status: BatchStatus, days: i64) -> Old {
        let ended = Some(NOW.plus_ms(-days * DAY_MS));
        Old { status, ended, is_newest: false, needs: BTreeSet::new() }
    }

    #[test]
    fn each_reason_keeps_a_batch_that_would_go() {
        let goes = old(BatchStatus::Success, 91);
        assert_eq!(rule().judge(&goes, NOW), None);
        assert_eq!(rule().judge(&old(BatchStatus::Warning, 91), NOW), None);
        for (kept, because) in [
            (Old { ended: None, ..goes.clone() }, KeepReason::Open),
            (old(BatchStatus::Running, 91), KeepReason::Open),
            (old(BatchStatus::Killing, 91), KeepReason::Open),
            (old(BatchStatus::Success, 90), KeepReason::Young),
            (old(BatchStatus::Failed, 910), KeepReason::EndedBadly),
            (old(BatchStatus::Killed, 910), KeepReason::EndedBadly),
            (Old { is_newest: true, ..goes.clone() }, KeepReason::Newest),
        ] {
            assert_eq!(rule().judge(&kept, NOW), Some(because), "{kept:?}");
        }
        for need in RetentionNeed::ALL {
            let needed = Old { needs: [need].into(), ..goes.clone() };
            assert_eq!(rule().judge(&needed, NOW), Some(KeepReason::Needed(need)));
        }
    }

    #[test]
    fn what_did_not_end_well_goes_only_when_told() {
        let told = GroupRetentionRule { badly: EndedBadly::Go, ..rule() };
        assert_eq!(told.judge(&old(BatchStatus::Failed, 91), NOW), None);
        // It did not succeed, so it does not count among the newest succeeded ones.
        let newest = Old { is_newest: true, ..old(BatchStatus::Killed, 91) };
        assert_eq!(told.judge(&newest, NOW), None);
        let unknown =
            Old { needs: [RetentionNeed::Unknown].into(), ..old(BatchStatus::Failed, 91) };
        assert_eq!(told.judge(&unknown, NOW), Some(KeepReason::Needed(RetentionNeed::Unknown)));
    }

    #[test]
    fn nothing_goes_when_it_is_off() {
        let off = GroupRetentionRule { batches_ms: None, ..rule() };
        assert_eq!(off.judge(&old(BatchStatus::Success, 9_999), NOW), Some(KeepReason::Off));
        assert_eq!(off.judge(&old(BatchStatus::Running, 9_999), NOW), Some(KeepReason::Open));
        // Log lines have an age of their own.
        assert!(off.drops_lines(BatchStatus::Success, NOW.plus_ms(-31 * DAY_MS), NOW));
    }

    #[test]
    fn lines_go_earlier_and_stay_with_failures() {
        let at = |days: i64| NOW.plus_ms(-days * DAY_MS);
        for (status, days, goes) in [
            (BatchStatus::Success, 31, true),
            (BatchStatus::Warning, 31, true),
            (BatchStatus::Success, 30, false),
            (BatchStatus::Failed, 31, false),
            (BatchStatus::Running, 31, false),
        ] {
            assert_eq!(rule().drops_lines(status, at(days), NOW), goes, "{status} {days}");
        }
        let told = GroupRetentionRule { badly: EndedBadly::Go, ..rule() };
        assert!(told.drops_lines(BatchStatus::Failed, at(31), NOW));
        assert!(!told.drops_lines(BatchStatus::Killing, at(31), NOW));
        // Not earlier than the batch: then they are removed with it.
        let later = GroupRetentionRule { lines_ms: Some(90 * DAY_MS), ..rule() };
        assert_eq!(later.lines_cut(NOW), None);
    }

    fn any_old() -> impl Strategy<Value = Old> {
        let status = prop::sample::select(BatchStatus::ALL.to_vec());
        let needs =
            prop::collection::btree_set(prop::sample::select(RetentionNeed::ALL.to_vec()), 0..3);
        (status, prop::option::of(0..400i64), any::<bool>(), needs).prop_map(
            |(status, days, is_newest, needs)| {
                let ended = days.map(|days| NOW.plus_ms(-days * DAY_MS));
                Old { status, ended, is_newest, needs }
            },
        )
    }

    fn any_rule() -> impl Strategy<Value = GroupRetentionRule> {
        let ms = || prop::option::of((1..400i64).prop_map(|days| days * DAY_MS));
        let badly = prop::sample::select(vec![EndedBadly::Stay, EndedBadly::Go]);
        (ms(), 1..100u32, badly, ms()).prop_map(|(batches_ms, keep, badly, lines_ms)| {
            GroupRetentionRule { batches_ms, keep, badly, lines_ms }
        })
    }

    proptest! {
        /// Monotonic: neither another need, nor a longer age, nor being among the newest, nor an
        /// earlier moment, nor "keep what failed" ever causes the removal of a kept batch.
        #[test]
        fn what_is_kept_is_kept(
            rule in any_rule(),
            old in any_old(),
            need in prop::sample::select(RetentionNeed::ALL.to_vec()),
            earlier in 0..400i64,
            longer in 0..400i64,
        ) {
            if rule.judge(&old, NOW).is_some() {
                let mut needed = old.clone();
                needed.needs.insert(need);
                prop_assert!(rule.judge(&needed, NOW).is_some());
                prop_assert!(rule.judge(&old, NOW.plus_ms(-earlier * DAY_MS)).is_some());
                let newest = Old { is_newest: true, ..old.clone() };
                prop_assert!(rule.judge(&newest, NOW).is_some());
                let gentler = GroupRetentionRule {
                    batches_ms: rule.batches_ms.map(|ms| ms + longer * DAY_MS),
                    badly: EndedBadly::Stay,
                    ..rule
                };
                prop_assert!(gentler.judge(&old, NOW).is_some());
            } else {
                prop_assert!(old.status.is_final() && old.needs.is_empty());
            }
        }
    }
}
