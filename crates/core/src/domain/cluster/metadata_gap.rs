//! Detects that the database has lost commits of this installation.
//!
//! After a restored backup, or the promotion of a replica that lacked the last commits, the rows
//! are older than what happened: schedules that fired seem due, and jobs that ran seem ready. A
//! process acting on such rows would repeat their effects. So each heartbeat increments one number
//! in the database, and each process remembers the highest committed one: a database with a lower
//! number has gone back.

use crate::domain::time::Millis;
use serde::{Deserialize, Serialize};

/// The lost part of the history. While it is recorded nothing is fired or started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataGap {
    /// The newest heartbeat in the database: later commits are missing.
    pub restored_to: Millis,
    /// The newest heartbeat that was known to be committed; later commits may be missing as well.
    pub known_until: Millis,
    /// When it was found.
    pub found_at: Millis,
    /// The process or operator that found the gap.
    pub found_by: String,
}

/// The database's record of its own history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryMark {
    /// The newest heartbeat of any process; none before the first.
    pub newest: Option<Millis>,
    /// When a process last started, which a short-lived one records instead of a heartbeat; none
    /// before the first record.
    pub newest_start: Option<Millis>,
    /// The gap that no operator has accepted yet.
    pub gap: Option<MetadataGap>,
}

/// Comparison of the database's history with what a process remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// The database holds everything that is remembered.
    Unbroken,
    /// A gap is recorded.
    Suspended(MetadataGap),
    /// The database has gone back, and this is not recorded yet.
    WentBack {
        /// The newest heartbeat in the database.
        to: Millis,
        /// The newest heartbeat remembered.
        from: Millis,
    },
}

/// Compares the database with the newest heartbeat that this process knows to be committed.
pub fn compare_history(mark: &HistoryMark, remembered: Option<Millis>) -> Continuity {
    if let Some(gap) = &mark.gap {
        return Continuity::Suspended(gap.clone());
    }
    // A database without any heartbeat is older than every heartbeat.
    let newest = mark.newest.unwrap_or(Millis(0));
    match remembered {
        Some(from) if newest < from => Continuity::WentBack { to: newest, from },
        Some(_) | None => Continuity::Unbroken,
    }
}

/// Milliseconds beyond two leases by which an attempt may begin after the newest heartbeat: the
/// clock of its machine may be ahead of the database's.
const LEDGER_TOLERANCE_MS: i64 = 60_000;

impl HistoryMark {
    /// The last time at which, by this database, a process is known to have worked.
    pub fn last_known(&self) -> Option<Millis> {
        self.newest.max(self.newest_start)
    }
}

/// Compares the last time known to the database, of a heartbeat or a start, with the starts of the
/// last attempts in the ledgers of the data sources. An attempt begins only under a lease, so a
/// ledger with a later attempt proves lost commits. Returns the time up to which history is known.
pub fn compare_ledgers(known: Millis, last_attempts: &[Millis], lease_ms: i64) -> Option<Millis> {
    let last = last_attempts.iter().copied().max()?;
    (last > known.plus_ms(2 * lease_ms + LEDGER_TOLERANCE_MS)).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_that_knows_a_later_attempt_shows_that_the_database_went_back() {
        let compare = |attempts: &[i64]| {
            let attempts: Vec<Millis> = attempts.iter().copied().map(Millis).collect();
            compare_ledgers(Millis(1_000_000), &attempts, 15_000)
        };
        assert_eq!(compare(&[]), None);
        assert_eq!(compare(&[900_000]), None);
        assert_eq!(compare(&[1_090_000]), None, "within two leases and the tolerance");
        assert_eq!(compare(&[1_090_001]), Some(Millis(1_090_001)));
        assert_eq!(compare(&[500_000, 2_000_000]), Some(Millis(2_000_000)), "the latest counts");
    }

    #[test]
    fn a_database_that_holds_less_than_is_remembered_has_gone_back() {
        let mark = |newest| HistoryMark { newest, ..HistoryMark::default() };
        let at = |ms| Some(Millis(ms));
        assert_eq!(compare_history(&mark(at(100)), None), Continuity::Unbroken);
        assert_eq!(compare_history(&mark(at(100)), at(100)), Continuity::Unbroken);
        // Another process has written since.
        assert_eq!(compare_history(&mark(at(101)), at(100)), Continuity::Unbroken);
        let back = Continuity::WentBack { to: Millis(99), from: Millis(100) };
        assert_eq!(compare_history(&mark(at(99)), at(100)), back);
        let emptied = Continuity::WentBack { to: Millis(0), from: Millis(100) };
        assert_eq!(compare_history(&mark(None), at(100)), emptied);
    }

    #[test]
    fn a_gap_on_record_suspends_every_process() {
        let gap = MetadataGap {
            restored_to: Millis(50),
            known_until: Millis(100),
            found_at: Millis(110),
            found_by: "n".to_owned(),
        };
        let mark =
            HistoryMark { newest: Some(Millis(110)), gap: Some(gap.clone()), newest_start: None };
        assert_eq!(compare_history(&mark, None), Continuity::Suspended(gap.clone()));
        assert_eq!(compare_history(&mark, Some(Millis(100))), Continuity::Suspended(gap));
    }
}
