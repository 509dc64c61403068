//! A schedule: when it fires, which request it makes, and its policies for misfires, overlaps and
//! failures.

mod order;
mod words;

pub use order::{FiringOverrides, KNOWN, NumberRule, OrderError, PlannedInstant, ScheduledOrder};
pub use words::{TriggerWords, WordFault, WordFaults};

use crate::domain::calendar::Calendars;
use crate::domain::id::{GroupCode, TriggerCode};
use crate::domain::schedule::firing::TriggerId;
use crate::domain::schedule::misfire::{Misfire, PlannedTime};
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::{Anchor, FiringRule, Occurrence, ScheduleError, Timing, TimingWords};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use serde::{Deserialize, Serialize};

/// The handler that opens batches; users configure this name.
pub const QUEUE_DISPATCHER: &str = "queueDispatcherHandler";
/// The handler that does nothing: its firing is a row only. For trying a schedule out, and for
/// measuring the trigger core by itself.
pub const NOOP: &str = "noopHandler";
/// Every handler.
pub const HANDLERS: [&str; 2] = [QUEUE_DISPATCHER, NOOP];

/// Default number of retries of a firing.
pub const RETRIES: u32 = 3;
/// Default of the seconds between two attempts of a firing.
pub const RETRY_DELAY_SEC: u32 = 10;
/// Default timeout of one attempt in seconds.
pub const TIMEOUT_SEC: u32 = 60;

/// A schedule as defined; in JSON as [`TriggerWords`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TriggerWords", into = "TriggerWords")]
pub struct TriggerDef {
    /// Its unique code.
    pub code: TriggerCode,
    /// Its name for people.
    pub name: String,
    /// When it fires.
    pub timing: Timing,
    /// Name of the handler, as XXL-JOB users know it.
    pub handler: String,
    /// The request that it makes: `{"batchNo":"month(-1)","type":"monthly"}`; none for a handler
    /// that needs none.
    pub order: Option<ScheduledOrder>,
    /// Policy for missed planned times.
    pub misfire: Misfire,
    /// Policy for a firing while the previous batch is still running.
    pub overlap: Overlap,
    /// Retries when the request fails for a reason that may be temporary.
    pub retry_count: u32,
    /// Seconds between two attempts.
    pub retry_delay_sec: u32,
    /// Timeout of one attempt in seconds.
    pub timeout_sec: u32,
    /// Addresses notified of misfires and failures, beside those of the groups that it opens.
    pub notify_email: Vec<String>,
    /// Who is responsible for it.
    pub owner: Option<String>,
    /// Whether it is paused when it is created. Afterwards operators decide.
    pub starts_paused: bool,
}

impl TriggerDef {
    /// The group named by its request.
    pub fn group(&self) -> Option<&GroupCode> {
        self.order.as_ref()?.group.as_ref()
    }
}

/// Whether a schedule fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum TriggerStatus {
    /// It does.
    Enabled,
    /// An operator has paused it.
    Paused,
    /// It has no further planned time, or cannot be planned; the reason says which.
    Ended,
}

impl TriggerStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Enabled, Self::Paused, Self::Ended];

    /// The word in rows and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "ENABLED",
            Self::Paused => "PAUSED",
            Self::Ended => "ENDED",
        }
    }
}

/// A stored schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Key.
    pub trigger_id: TriggerId,
    /// Incremented with each change.
    pub revision: i64,
    /// Its definition.
    pub def: TriggerDef,
    /// Whether it fires.
    pub status: TriggerStatus,
    /// Why it does not fire.
    pub reason: Option<String>,
    /// Its origin: a definition file, or a user of the command line.
    pub origin: String,
    /// When it was created.
    pub create_time: Millis,
    /// Its next planned time.
    pub next_time: Option<Millis>,
    /// Its newest planned time that has a row.
    pub last_time: Option<Millis>,
}

impl Trigger {
    /// The first planned time later than `after`.
    pub fn next_after(
        &self,
        calendars: &Calendars,
        after: Millis,
    ) -> Result<Option<PlannedTime>, ScheduleError> {
        let anchor = Anchor { last_planned: self.last_time, ..Anchor::new(self.create_time) };
        Ok(self.def.timing.next_after(calendars, after, anchor)?.map(PlannedTime::from))
    }

    /// The next time given by the clock alone after a time that has just been planned: none for a
    /// fixed delay, which waits for the end of a batch.
    pub fn goes_on(
        &self,
        calendars: &Calendars,
        after: Millis,
    ) -> Result<Option<PlannedTime>, ScheduleError> {
        if self.is_delay() { Ok(None) } else { self.next_after(calendars, after) }
    }

    /// The planned time stored in its row, with its nominal day and remarks; `None` when a change
    /// of its calendar has moved that time.
    pub fn planned_at(
        &self,
        calendars: &Calendars,
        at: Millis,
    ) -> Result<Option<PlannedTime>, ScheduleError> {
        // A delay is counted from the end of a batch: only the row knows it.
        if self.is_delay() {
            return Ok(Some(PlannedTime { at, nominal_date: None, note: None }));
        }
        self.next_after(calendars, at.plus_ms(-1))
    }

    fn is_delay(&self) -> bool {
        matches!(self.def.timing.schedule, FiringRule::FixedDelay { .. })
    }

    /// Whether one of its planned times has passed without a row.
    pub fn is_overdue(&self, now: Millis) -> bool {
        self.status == TriggerStatus::Enabled && self.next_time.is_some_and(|at| at <= now)
    }

    /// Whether it ends when the clock gives it no next time. A fixed delay has none while its batch
    /// is running.
    pub fn ends_without_next(&self) -> bool {
        self.def.timing.schedule.is_clocked() && !self.is_delay()
    }
}

impl From<Occurrence> for PlannedTime {
    fn from(found: Occurrence) -> Self {
        let words: Vec<String> = found.why.iter().map(|reason| reason.words(Lang::En)).collect();
        let note = (!words.is_empty()).then(|| words.join("; "));
        Self { at: found.planned, nominal_date: Some(found.nominal), note }
    }
}

impl TriggerDef {
    /// Its rule in one line, for the columns that operators read.
    pub fn schedule_conf(&self) -> String {
        let words = TimingWords::from(self.timing.clone());
        match &self.timing.schedule {
            FiringRule::Cron(cron) => cron.as_str().to_owned(),
            FiringRule::FixedRate { every_sec } | FiringRule::FixedDelay { every_sec } => {
                every_sec.to_string()
            }
            FiringRule::Once { .. } => words.once_at.unwrap_or_default(),
            FiringRule::Rule { .. } => {
                format!("{} {}", words.rule.unwrap_or_default(), words.at.unwrap_or_default())
            }
            FiringRule::Event { name } => name.clone(),
            FiringRule::Manual => String::new(),
            FiringRule::After { group, .. } => group.to_string(),
        }
    }
}
