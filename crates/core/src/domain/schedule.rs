//! When a schedule fires: its rule, time zone, calendar, window and blackouts.
//!
//! Days, windows and blackouts are written in local time of the zone; the results are moments. A
//! firing planned for a time of day (cron, rule, once) keeps that time when a calendar moves it to
//! another day, and treats clock changes as [`Cron`](crate::domain::schedule::cron) describes.
//! Where several days of a schedule land on the same moment, it fires once there.

mod blackout;
mod check;
pub mod cron;
mod days;
pub mod due;
mod error;
pub mod firing;
pub mod firing_queue;
pub mod misfire;
pub mod order;
pub mod overlap;
mod reason;
pub mod ring;
mod rule;
mod sentence;
mod skipped;
pub mod trigger;
mod walk;
mod words;
mod zone;

pub use blackout::{Blackout, BlackoutTime};
pub use error::ScheduleError;
pub use reason::{ClockPass, OccurrenceReason, Swallowed};
pub use rule::{Counted, DayPosition, DayRule, RuleError};
pub use skipped::Skipped;
pub use walk::OccurrencePreview;
pub use words::{AfterWords, TimingWords};
pub use zone::read_zone;

use crate::domain::calendar::Shift;
use crate::domain::id::CalendarCode;
use crate::domain::id::GroupCode;
use crate::domain::schedule::cron::Cron;
use crate::domain::time::Millis;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule that makes a schedule fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FiringRule {
    /// `cron: 0 0 2 * * ?`
    Cron(Cron),
    /// `every_sec: 300`: on a grid that begins at the start of the window, or one step after the
    /// schedule was created.
    FixedRate {
        /// Seconds between two firings.
        every_sec: i64,
    },
    /// `delay_sec: 300`: this long after the batch of the previous firing ended.
    FixedDelay {
        /// Seconds from the end of a batch to the next firing.
        every_sec: i64,
    },
    /// `once_at: 2026-12-31T18:00`
    Once {
        /// Local time.
        at: NaiveDateTime,
    },
    /// `rule: last working day of quarter` with `at: "18:00"`
    Rule {
        /// The days.
        rule: DayRule,
        /// Local time of day.
        at: NaiveTime,
    },
    /// `event: ledger_closed`: by a call of the API.
    Event {
        /// Name of the event.
        name: String,
    },
    /// `manual: true`: by a user only.
    Manual,
    /// `after: {group: month_end, on: success}`: when a batch of another group ends.
    After {
        /// The other group.
        group: GroupCode,
        /// The ends that count.
        on: BatchEndFilter,
    },
}

/// The ends of a batch that fire an `after` schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BatchEnding")]
pub enum BatchEndFilter {
    /// Only success.
    #[default]
    Success,
    /// Any end.
    End,
}

/// A schedule rule and everything else that decides when it fires. In JSON and YAML as
/// [`TimingWords`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TimingWords", into = "TimingWords")]
pub struct Timing {
    /// The rule.
    pub schedule: FiringRule,
    /// IANA zone of all times here.
    pub zone: Tz,
    /// Calendar of working days; required by some rules.
    pub calendar: Option<CalendarCode>,
    /// Treatment of a firing on a day off of the calendar.
    pub shift: Shift,
    /// Nothing fires before this local time.
    pub start: Option<NaiveDateTime>,
    /// Nothing fires at this local time or later.
    pub end: Option<NaiveDateTime>,
    /// Periods in which nothing fires.
    pub blackouts: Vec<Blackout>,
}

/// One planned firing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Occurrence {
    /// When it fires; a whole second.
    pub planned: Millis,
    /// The day that the schedule names, before a calendar moved it; batch numbers are derived from
    /// it.
    pub nominal: NaiveDate,
    /// Remarks for the user; empty for an ordinary firing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<OccurrenceReason>,
}

/// Origin from which a fixed rate and a fixed delay are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// When the schedule was created.
    pub created: Millis,
    /// Planned time of its last firing.
    pub last_planned: Option<Millis>,
    /// When the batch of that firing ended, or the firing was settled without one; older than
    /// `last_planned`, or none, while it has not.
    pub last_finished: Option<Millis>,
}

impl Anchor {
    /// The anchor of a schedule that has never fired.
    pub fn new(created: Millis) -> Self {
        Self { created, last_planned: None, last_finished: None }
    }
}

impl FiringRule {
    /// Whether the clock makes it fire; otherwise an event, a user or another batch does.
    pub fn is_clocked(&self) -> bool {
        match self {
            Self::Cron(_)
            | Self::FixedRate { .. }
            | Self::FixedDelay { .. }
            | Self::Once { .. }
            | Self::Rule { .. } => true,
            Self::Event { .. } | Self::Manual | Self::After { .. } => false,
        }
    }

    /// The key in its written form: `cron`, `every_sec`, `delay_sec`, `once_at`, `rule`, `event`,
    /// `manual`, `after`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cron(_) => "cron",
            Self::FixedRate { .. } => "every_sec",
            Self::FixedDelay { .. } => "delay_sec",
            Self::Once { .. } => "once_at",
            Self::Rule { .. } => "rule",
            Self::Event { .. } => "event",
            Self::Manual => "manual",
            Self::After { .. } => "after",
        }
    }
}

impl Timing {
    /// `schedule` in `zone`, without calendar, window or blackouts.
    pub fn plain(schedule: FiringRule, zone: Tz) -> Self {
        Self {
            schedule,
            zone,
            calendar: None,
            shift: Shift::Run,
            start: None,
            end: None,
            blackouts: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
