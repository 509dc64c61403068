//! A schedule: when it fires, what it hands over then, and what is done about misses, overlaps and
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

/// The handler that opens batches; the name is the user's contract.
pub const QUEUE_DISPATCHER: &str = "queueDispatcherHandler";
/// The handler that does nothing: a firing of it is a row and no more. For trying a schedule out, and
/// for measuring the trigger core by itself.
pub const NOOP: &str = "noopHandler";
/// Every handler there is.
pub const HANDLERS: [&str; 2] = [QUEUE_DISPATCHER, NOOP];

/// Tries of a firing after the first, unless its schedule says otherwise.
pub const RETRIES: u32 = 3;
/// Seconds between two tries of a firing, unless its schedule says otherwise.
pub const RETRY_DELAY_SEC: u32 = 10;
/// Seconds one try may take, unless its schedule says otherwise.
pub const TIMEOUT_SEC: u32 = 60;

/// A schedule as it is written; in JSON as [`TriggerWords`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TriggerWords", into = "TriggerWords")]
pub struct TriggerDef {
    /// Its unique code.
    pub code: TriggerCode,
    /// Its name for people.
    pub name: String,
    /// When it fires.
    pub timing: Timing,
    /// Which handler its order goes to, by the name that XXL-JOB users know.
    pub handler: String,
    /// What it hands over: `{"batchNo":"month(-1)","type":"monthly"}`; none for a handler that needs
    /// none.
    pub order: Option<ScheduledOrder>,
    /// What is done about planned times that were missed.
    pub misfire: Misfire,
    /// What a firing does while the batch before it still runs.
    pub overlap: Overlap,
    /// Tries after the first when its order cannot be carried out for a reason that may pass.
    pub retry_count: u32,
    /// Seconds between two tries.
    pub retry_delay_sec: u32,
    /// Seconds one try may take.
    pub timeout_sec: u32,
    /// Addresses that hear of misses and failures, beside those of the groups it opens.
    pub notify_email: Vec<String>,
    /// Who answers for it.
    pub owner: Option<String>,
}

impl TriggerDef {
    /// The group that its order names.
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
    /// It has no planned time any more, or cannot be planned; the reason says which.
    Ended,
}

impl TriggerStatus {
    /// Every one.
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

/// A schedule as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Key.
    pub trigger_id: TriggerId,
    /// Counts its changes.
    pub revision: i64,
    /// What it says.
    pub def: TriggerDef,
    /// Whether it fires.
    pub status: TriggerStatus,
    /// Why it does not.
    pub reason: Option<String>,
    /// Where it came from: a definition file, or a person at the command line.
    pub origin: String,
    /// When it was made.
    pub create_time: Millis,
    /// Its next planned time.
    pub next_time: Option<Millis>,
    /// Its newest planned time that has a row.
    pub last_time: Option<Millis>,
}

impl Trigger {
    /// Its first planned time later than `after`.
    pub fn next_after(
        &self,
        calendars: &Calendars,
        after: Millis,
    ) -> Result<Option<PlannedTime>, ScheduleError> {
        let anchor = Anchor { last_planned: self.last_time, ..Anchor::new(self.create_time) };
        Ok(self.def.timing.next_after(calendars, after, anchor)?.map(PlannedTime::from))
    }

    /// What the clock alone gives after a time that has just been planned: of a fixed delay nothing, for
    /// that waits for the end of a batch.
    pub fn goes_on(
        &self,
        calendars: &Calendars,
        after: Millis,
    ) -> Result<Option<PlannedTime>, ScheduleError> {
        if self.is_delay() { Ok(None) } else { self.next_after(calendars, after) }
    }

    /// The planned time that stands in its row, with what is known of it now; `None` when a change of
    /// its calendar has moved that time away.
    pub fn planned_at(
        &self,
        calendars: &Calendars,
        at: Millis,
    ) -> Result<Option<PlannedTime>, ScheduleError> {
        // A delay is counted from the end of a batch: nothing but its row knows it.
        if self.is_delay() {
            return Ok(Some(PlannedTime { at, nominal_date: None, note: None }));
        }
        self.next_after(calendars, at.plus_ms(-1))
    }

    fn is_delay(&self) -> bool {
        matches!(self.def.timing.schedule, FiringRule::FixedDelay { .. })
    }

    /// Whether a planned time of it has passed that has no row yet.
    pub fn is_overdue(&self, now: Millis) -> bool {
        self.status == TriggerStatus::Enabled && self.next_time.is_some_and(|at| at <= now)
    }

    /// Whether it is over once the clock gives it no next time. A fixed delay has none while its batch
    /// runs.
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
    /// What makes it fire, in one line, for the columns that operators read.
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
