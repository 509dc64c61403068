//! Why people were not let do something to a schedule.

use crate::domain::id::TriggerCode;
use crate::domain::schedule::ScheduleError;
use crate::domain::schedule::trigger::WordFault;
use crate::domain::time::Millis;

/// Why an act was refused; `Display` is the sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// No such schedule.
    #[error("there is no schedule {code}; {cure}")]
    Unknown {
        /// What was asked for.
        code: TriggerCode,
        /// What to do.
        cure: String,
    },
    /// The code is taken.
    #[error(
        "schedule {0} is there already; change it with: procession schedule edit {0} … --reason WHY"
    )]
    Exists(TriggerCode),
    /// It would not do what is meant.
    #[error("schedule {code} is not saved:{}", listed(.faults))]
    Unsound {
        /// The schedule.
        code: TriggerCode,
        /// Why.
        faults: Vec<WordFault>,
    },
    /// Nothing is suspended.
    #[error("the metadata has no gap: nothing is suspended, so there is nothing to accept")]
    NoGap,
    /// A gap is on record.
    #[error(
        "the metadata has gone back to {0}: nothing is started until an operator decides; procession metadata show"
    )]
    Suspended(Millis),
    /// Nothing to do.
    #[error("schedule {0} is {1} already")]
    Already(TriggerCode, &'static str),
    /// It cannot go on.
    #[error(
        "schedule {0} has no planned time from now on; give it one: procession schedule edit {0} … --reason WHY"
    )]
    NeverAgain(TriggerCode),
    /// It is not by the clock.
    #[error("schedule {code} is not fired by the clock ({kind}), so it has no next time to skip")]
    NoClock {
        /// The schedule.
        code: TriggerCode,
        /// What fires it.
        kind: &'static str,
    },
    /// The event means nothing.
    #[error("no schedule waits for event {event}; {cure}")]
    NoSuchEvent {
        /// What was sent.
        event: String,
        /// What to do.
        cure: String,
    },
    /// A code of a file that is somebody else's.
    #[error(
        "schedule {code} {whose}; rename it in the file, or: procession schedule remove {code} --reason WHY"
    )]
    Foreign {
        /// The schedule.
        code: TriggerCode,
        /// Whose it is.
        whose: String,
    },
    /// Its calendar.
    #[error("schedule {code}: {error}")]
    Calendar {
        /// The schedule.
        code: TriggerCode,
        /// What is wrong.
        error: Box<ScheduleError>,
    },
}

fn listed(faults: &[WordFault]) -> String {
    faults.iter().map(|fault| format!("\n  {fault}")).collect()
}
