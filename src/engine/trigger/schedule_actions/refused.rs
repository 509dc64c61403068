//! Why an action on a schedule is refused.

use crate::domain::id::TriggerCode;
use crate::domain::schedule::ScheduleError;
use crate::domain::schedule::trigger::WordFault;
use crate::domain::time::Millis;

/// Why an action was refused; `Display` is the message for the user.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// No schedule has this code.
    #[error("there is no schedule {code}; {cure}")]
    Unknown {
        /// The code in the request.
        code: TriggerCode,
        /// The hint for the user.
        cure: String,
    },
    /// The code is taken.
    #[error(
        "schedule {0} is there already; change it with: procession schedule edit {0} … --reason WHY"
    )]
    Exists(TriggerCode),
    /// The schedule has errors.
    #[error("schedule {code} is not saved:{}", listed(.faults))]
    Unsound {
        code: TriggerCode,
        /// The errors.
        faults: Vec<WordFault>,
    },
    /// Nothing is suspended.
    #[error("the metadata has no gap: nothing is suspended, so there is nothing to accept")]
    NoGap,
    /// A metadata gap is on record.
    #[error(
        "the metadata has gone back to {0}: nothing is started until an operator decides; procession metadata show"
    )]
    Suspended(Millis),
    /// The schedule is in that state already.
    #[error("schedule {0} is {1} already")]
    Already(TriggerCode, &'static str),
    /// It has no planned time from now on.
    #[error(
        "schedule {0} has no planned time from now on; give it one: procession schedule edit {0} … --reason WHY"
    )]
    NeverAgain(TriggerCode),
    /// It is not planned by the clock.
    #[error("schedule {code} is not fired by the clock ({kind}), so it has no next time to skip")]
    NoClock {
        code: TriggerCode,
        /// What fires it.
        kind: &'static str,
    },
    /// No schedule waits for this event.
    #[error("no schedule waits for event {event}; {cure}")]
    NoSuchEvent {
        /// The event in the request.
        event: String,
        /// The hint for the user.
        cure: String,
    },
    /// A code in a file that belongs to another owner.
    #[error(
        "schedule {code} {whose}; rename it in the file, or: procession schedule remove {code} --reason WHY"
    )]
    Foreign {
        code: TriggerCode,
        /// Its owner.
        whose: String,
    },
    /// Its calendar is missing or invalid.
    #[error("schedule {code}: {error}")]
    Calendar {
        /// The schedule that uses the calendar.
        code: TriggerCode,
        /// What is wrong with the calendar.
        error: Box<ScheduleError>,
    },
}

fn listed(faults: &[WordFault]) -> String {
    faults.iter().map(|fault| format!("\n  {fault}")).collect()
}
