//! The written form of a timing in JSON and YAML.

use super::{BatchEndFilter, Blackout, DayRule, FiringRule, ScheduleError, Timing, read_zone};
use crate::domain::calendar::Shift;
use crate::domain::id::CalendarCode;
use crate::domain::id::GroupCode;
use crate::domain::schedule::cron::Cron;
use crate::domain::text::truncate_text;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, Timelike as _};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest interval, ten years in seconds; anything longer is a mistake.
pub(super) const EVERY_MAX: i64 = 3_653 * 86_400;
/// Longest name of an event.
const EVENT_MAX: usize = 100;

/// The keys of a [`Timing`], flat: exactly one of `cron`, `every_sec`, `delay_sec`, `once_at`,
/// `rule` (with `at`), `event`, `manual` and `after`, and beside it `time_zone`, `calendar`,
/// `shift`, `start`, `end`, `blackouts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ScheduleTiming")]
pub struct TimingWords {
    /// `0 0 2 * * ?`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Fixed rate, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_sec: Option<i64>,
    /// Fixed delay, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_sec: Option<i64>,
    /// `2026-12-31T18:00`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub once_at: Option<String>,
    /// `last working day of quarter`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Time of day of `rule`: `18:00`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Name of an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// `true`: started by users only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual: Option<bool>,
    /// Fires when a batch of another group ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<AfterWords>,
    /// IANA name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Code of a calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub calendar: Option<CalendarCode>,
    /// `run`, `skip`, `next`, `previous`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<Shift>,
    /// Start of the window, included: `2026-12-31T18:00` or `2026-12-31`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// End of the window, excluded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Periods in which nothing fires.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blackouts: Vec<Blackout>,
}

/// `after: month_end`, or `after: {group: month_end, on: end}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "AfterGroup")]
pub enum AfterWords {
    /// The group alone: after a success.
    Group(#[schemars(with = "String")] GroupCode),
    /// The group with the ends that count.
    Full {
        /// The group.
        #[schemars(with = "String")]
        group: GroupCode,
        /// `success` or `end`.
        #[serde(default)]
        on: BatchEndFilter,
    },
}

impl TimingWords {
    /// Validates and parses; `zone` is used when `time_zone` is absent.
    ///
    /// # Errors
    /// Each names its key and what to write. What needs calendars or the present time is left to
    /// [`Timing::check`].
    pub fn parse_timing(self, zone: Option<Tz>) -> Result<Timing, ScheduleError> {
        let zone = match &self.time_zone {
            Some(word) => read_zone(word)?,
            None => zone.ok_or(ScheduleError::NoZone)?,
        };
        let moment = |key, text: &Option<String>| -> Result<_, ScheduleError> {
            text.as_deref().map(|text| wall_time(key, text)).transpose()
        };
        let (start, end) = (moment("start", &self.start)?, moment("end", &self.end)?);
        if let (Some(start), Some(end)) = (start, end)
            && end <= start
        {
            return Err(ScheduleError::Window { start, end });
        }
        Ok(Timing {
            schedule: self.schedule()?,
            zone,
            calendar: self.calendar,
            shift: self.shift.unwrap_or_default(),
            start,
            end,
            blackouts: self.blackouts,
        })
    }

    fn schedule(&self) -> Result<FiringRule, ScheduleError> {
        let manual = self.manual == Some(true);
        let kinds = [
            ("cron", self.cron.is_some()),
            ("every_sec", self.every_sec.is_some()),
            ("delay_sec", self.delay_sec.is_some()),
            ("once_at", self.once_at.is_some()),
            ("rule", self.rule.is_some()),
            ("event", self.event.is_some()),
            ("manual", manual),
            ("after", self.after.is_some()),
        ];
        let kinds: Vec<&str> =
            kinds.iter().filter(|(_, here)| *here).map(|(key, _)| *key).collect();
        if kinds.len() != 1 {
            return Err(ScheduleError::Kinds(kinds));
        }
        if self.at.is_some() && self.rule.is_none() {
            let what = "at goes with rule alone".to_owned();
            let cure = "a cron has its time in its fields, once_at in itself; leave at away";
            return Err(ScheduleError::Key { what, cure });
        }
        if let Some(cron) = &self.cron {
            return Ok(FiringRule::Cron(Cron::parse(cron)?));
        }
        if let Some(sec) = self.every_sec {
            return Ok(FiringRule::FixedRate { every_sec: every("every_sec", sec)? });
        }
        if let Some(sec) = self.delay_sec {
            return Ok(FiringRule::FixedDelay { every_sec: every("delay_sec", sec)? });
        }
        if let Some(at) = &self.once_at {
            return Ok(FiringRule::Once { at: wall_time("once_at", at)? });
        }
        if let Some(rule) = &self.rule {
            return self.parse_rule(rule);
        }
        if let Some(name) = &self.event {
            return event(name);
        }
        Ok(match &self.after {
            None => FiringRule::Manual,
            Some(AfterWords::Group(group)) => {
                FiringRule::After { group: group.clone(), on: BatchEndFilter::Success }
            }
            Some(AfterWords::Full { group, on }) => {
                FiringRule::After { group: group.clone(), on: *on }
            }
        })
    }

    fn parse_rule(&self, rule: &str) -> Result<FiringRule, ScheduleError> {
        let Some(at) = &self.at else {
            let what = format!("rule '{}' has no time of day", truncate_text(rule, 100));
            return Err(ScheduleError::Key { what, cure: "add at: \"18:00\"" });
        };
        Ok(FiringRule::Rule { rule: DayRule::parse(rule)?, at: time_of_day("at", at)? })
    }
}

fn every(key: &'static str, sec: i64) -> Result<i64, ScheduleError> {
    if (1..=EVERY_MAX).contains(&sec) {
        return Ok(sec);
    }
    Err(ScheduleError::Every { key, sec, max: EVERY_MAX })
}

fn event(name: &str) -> Result<FiringRule, ScheduleError> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > EVENT_MAX || name.chars().any(char::is_control) {
        let what = format!("event '{}' is not a name", truncate_text(name, 100));
        return Err(ScheduleError::Key { what, cure: "write 1 to 100 characters on one line" });
    }
    Ok(FiringRule::Event { name: name.to_owned() })
}

/// Parses `2026-12-31T18:00:30`, with a blank for the T, without seconds, or a date for its
/// midnight.
pub(super) fn wall_time(key: &'static str, text: &str) -> Result<NaiveDateTime, ScheduleError> {
    let text = text.trim();
    let forms = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    let found = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let found = found.or_else(|| {
        let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        Some(day.and_time(NaiveTime::MIN))
    });
    // chrono represents a leap second as second 60, which no local clock here shows.
    found.filter(|at| at.nanosecond() == 0).ok_or_else(|| ScheduleError::Time {
        key,
        text: truncate_text(text, 100),
        wanted: "a date and time of the schedule's zone; write 2026-12-31T18:00, without an offset",
    })
}

/// Parses `18:00` or `18:00:30`.
pub(super) fn time_of_day(key: &'static str, text: &str) -> Result<NaiveTime, ScheduleError> {
    let text = text.trim();
    let forms = ["%H:%M:%S", "%H:%M"];
    let found = forms.iter().find_map(|form| NaiveTime::parse_from_str(text, form).ok());
    found.filter(|at| at.nanosecond() == 0).ok_or_else(|| ScheduleError::Time {
        key,
        text: truncate_text(text, 100),
        wanted: "a time of day; write 18:00 or 18:00:30, in quotes",
    })
}

/// The form that [`wall_time`] parses.
pub(super) fn wall_text(at: NaiveDateTime) -> String {
    at.format("%Y-%m-%dT%H:%M:%S").to_string()
}

/// The form that [`time_of_day`] parses.
pub(super) fn time_text(at: NaiveTime) -> String {
    let form = if at.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    at.format(form).to_string()
}

impl TryFrom<TimingWords> for Timing {
    type Error = ScheduleError;
    fn try_from(words: TimingWords) -> Result<Self, ScheduleError> {
        words.parse_timing(None)
    }
}

impl From<Timing> for TimingWords {
    fn from(timing: Timing) -> Self {
        let mut words = Self {
            time_zone: Some(timing.zone.name().to_owned()),
            calendar: timing.calendar,
            shift: (timing.shift != Shift::Run).then_some(timing.shift),
            start: timing.start.map(wall_text),
            end: timing.end.map(wall_text),
            blackouts: timing.blackouts,
            ..Self::default()
        };
        match timing.schedule {
            FiringRule::Cron(cron) => words.cron = Some(cron.into()),
            FiringRule::FixedRate { every_sec } => words.every_sec = Some(every_sec),
            FiringRule::FixedDelay { every_sec } => words.delay_sec = Some(every_sec),
            FiringRule::Once { at } => words.once_at = Some(wall_text(at)),
            FiringRule::Rule { rule, at } => {
                words.rule = Some(rule.to_string());
                words.at = Some(time_text(at));
            }
            FiringRule::Event { name } => words.event = Some(name),
            FiringRule::Manual => words.manual = Some(true),
            FiringRule::After { group, on } => words.after = Some(AfterWords::Full { group, on }),
        }
        words
    }
}
