//! Errors of schedules.

use super::RuleError;
use crate::domain::calendar::CalendarError;
use crate::domain::schedule::cron::CronError;
use chrono::NaiveDateTime;

/// Why a schedule cannot be parsed, saved or evaluated; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No kind of schedule, or several.
    #[error(
        "a schedule has exactly one of cron, every_sec, delay_sec, once_at, rule, event, manual and \
         after; {}",
        found(.0)
    )]
    Kinds(Vec<&'static str>),
    /// A cron expression.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// A day rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A calendar.
    #[error(transparent)]
    Calendar(#[from] CalendarError),
    /// Not a time zone.
    #[error("time_zone '{word}' is not known; {cure}")]
    Zone {
        /// What was written.
        word: String,
        /// What to write.
        cure: String,
    },
    /// No time zone given.
    #[error("time_zone is missing; write an IANA name such as Asia/Shanghai")]
    NoZone,
    /// Not a time.
    #[error("{key} '{text}' is not {wanted}")]
    Time {
        /// The key.
        key: &'static str,
        /// What was written.
        text: String,
        /// What to write.
        wanted: &'static str,
    },
    /// An interval out of bounds.
    #[error("{key} is {sec}; write whole seconds from 1 to {max}")]
    Every {
        /// The key.
        key: &'static str,
        /// What was written.
        sec: i64,
        /// The most.
        max: i64,
    },
    /// A key that belongs to another kind of schedule, or is missing.
    #[error("{what}; {cure}")]
    Key {
        /// What is wrong.
        what: String,
        /// What to write.
        cure: &'static str,
    },
    /// The window ends before it begins.
    #[error("end {end} is not after start {start}; swap them, or leave one out")]
    Window {
        /// First moment in it.
        start: NaiveDateTime,
        /// First moment behind it.
        end: NaiveDateTime,
    },
    /// The rule needs a calendar.
    #[error("{0} needs a calendar to know the days off; add calendar: CODE")]
    NeedsCalendar(String),
    /// An invalid blackout.
    #[error("blackout {what}; {cure}")]
    Blackout {
        /// What is wrong.
        what: String,
        /// What to write.
        cure: &'static str,
    },
    /// It never fires.
    #[error("the schedule never fires: {why}; {cure}")]
    NeverFires {
        /// Why not.
        why: String,
        /// What to do.
        cure: &'static str,
    },
}

fn found(kinds: &[&'static str]) -> String {
    if kinds.is_empty() {
        return "none is here".to_owned();
    }
    format!("here are {}", kinds.join(" and "))
}
