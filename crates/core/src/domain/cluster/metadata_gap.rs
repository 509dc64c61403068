//! Whether the database still holds what this installation has committed.
//!
//! After a backup was restored, or a replica was promoted that lacked the last commits, the rows say less than what
//! happened: schedules that fired seem due, and jobs that ran seem ready. A process that fires and starts by such rows
//! has effects a second time. So each heartbeat raises one number in the database, and each process remembers the
//! highest that it has seen committed: a database that holds a lower one has gone back.

use crate::domain::time::Millis;
use serde::{Deserialize, Serialize};

/// The part of the past that the database does not hold any more. While it is on record nothing is fired or started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataGap {
    /// The newest heartbeat that the database holds: what came after it is missing.
    pub restored_to: Millis,
    /// The newest heartbeat that was known to be committed; what came after it may be missing as well.
    pub known_until: Millis,
    /// When it was found.
    pub found_at: Millis,
    /// The process or the operator that found it.
    pub found_by: String,
}

/// What the database says of its own past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryMark {
    /// The newest heartbeat of any process; none before the first.
    pub newest: Option<Millis>,
    /// When a process last started, which a short one says in place of a heartbeat; none before the first that says it.
    pub newest_start: Option<Millis>,
    /// The gap that an operator has not accepted yet.
    pub gap: Option<MetadataGap>,
}

/// How the database's past compares with what is remembered of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// It holds all that is remembered.
    Unbroken,
    /// A gap is on record.
    Suspended(MetadataGap),
    /// It has gone back, and nobody has written that down.
    WentBack {
        /// The newest heartbeat that it holds.
        to: Millis,
        /// The newest that is remembered.
        from: Millis,
    },
}

/// Compares what the database holds with the newest heartbeat that this process knows to be committed.
pub fn compare_history(mark: &HistoryMark, remembered: Option<Millis>) -> Continuity {
    if let Some(gap) = &mark.gap {
        return Continuity::Suspended(gap.clone());
    }
    // A database without any heartbeat is older than all of them.
    let newest = mark.newest.unwrap_or(Millis(0));
    match remembered {
        Some(from) if newest < from => Continuity::WentBack { to: newest, from },
        Some(_) | None => Continuity::Unbroken,
    }
}

/// Milliseconds that an attempt may have begun after the newest heartbeat, beside two leases: the clock of the machine that
/// began it may be ahead of the database's.
const LEDGER_TOLERANCE_MS: i64 = 60_000;

impl HistoryMark {
    /// The last time at which a process is known to have worked by this database.
    pub fn last_known(&self) -> Option<Millis> {
        self.newest.max(self.newest_start)
    }
}

/// Compares the last time that the database knows, of a heartbeat or a start, with when the last attempts began that the ledgers of data sources
/// know. An attempt begins only under a lease, so a ledger that knows a later one has seen what the database has lost.
/// Gives the time until which that is known.
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
