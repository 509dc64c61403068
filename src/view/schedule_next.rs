//! Previews of firings, with reasons: of a stored schedule, or of a timing that is tried out.

use crate::domain::calendar::Calendars;
use crate::domain::id::TriggerCode;
use crate::domain::schedule::firing::{Firing, FiringStatus, Source};
use crate::domain::schedule::trigger::{
    NumberRule, PlannedInstant, Trigger, WordFault, WordFaults,
};
use crate::domain::schedule::{Anchor, Occurrence, OccurrenceReason, Skipped, Swallowed, Timing};
use crate::domain::text::lang::Lang;
use crate::domain::time::{Millis, at_wall_clock};
use crate::engine::trigger::schedule_actions;
use crate::store::{self, Tx};
use crate::view::schedule::local;
use anyhow::Result;
use chrono::{Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, Weekday};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of firings shown.
pub const MOST: u32 = 1_000;

/// The schedule to preview.
pub struct FiringPreviewRequest {
    /// Its code; empty where it has none.
    pub code: String,
    pub timing: Timing,
    /// How its batches are numbered.
    pub number: Option<NumberRule>,
    anchor: Anchor,
    /// The stored schedule.
    pub stored: Option<Trigger>,
    /// Whether the timing differs from what is stored, and so was never checked.
    news: TimingState,
    /// Planned times that a person has skipped, and why.
    left_out: BTreeMap<Millis, String>,
}

/// Whether a timing has been checked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimingState {
    /// It is stored in this form.
    Stored,
    /// It is new, at least in part.
    Written,
}

/// The result of a preview.
pub struct FiringPreview {
    /// The firings.
    pub next: Vec<Occurrence>,
    /// Times skipped by a person.
    pub left_out: Vec<Occurrence>,
    /// Times skipped by a blackout or a day off.
    pub skipped: Vec<Skipped>,
}

impl FiringPreviewRequest {
    /// The request for a stored schedule.
    pub async fn stored(tx: &mut Tx, code: &TriggerCode, now: Millis) -> Result<Self> {
        let found = schedule_actions::found(tx, code).await?;
        let firings = store::firing::of_trigger(tx, found.trigger_id, MOST).await?;
        let anchor = Anchor {
            created: found.create_time,
            last_planned: found.last_time,
            last_finished: found.last_time.map(|last| last.max(now)),
        };
        let is_left_out =
            |f: &Firing| f.status == FiringStatus::Skipped && f.source == Source::Cron;
        let reason = |f: Firing| (f.planned_at, f.reason.unwrap_or_default());
        Ok(Self {
            code: code.to_string(),
            timing: found.def.timing.clone(),
            number: found.def.order.as_ref().map(|order| order.batch_no.clone()),
            anchor,
            stored: Some(found),
            news: TimingState::Stored,
            left_out: firings.into_iter().filter(is_left_out).map(reason).collect(),
        })
    }

    /// The request for a timing that is tried out.
    pub fn written(timing: Timing, number: Option<NumberRule>, now: Millis) -> Self {
        let (code, anchor) = (String::new(), Anchor::new(now));
        let (news, left_out) = (TimingState::Written, BTreeMap::new());
        Self { code, timing, number, anchor, stored: None, news, left_out }
    }

    /// The same with another timing.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        let news = if timing == self.timing { self.news } else { TimingState::Written };
        Self { timing, news, ..self }
    }

    /// Refuses a timing that could not be saved. A past time is allowed in a preview of the past.
    pub fn check(
        &self,
        after: Millis,
        now: Millis,
        calendars: &Calendars,
    ) -> Result<(), WordFaults> {
        match self.news {
            TimingState::Stored => Ok(()),
            TimingState::Written => sound(&self.timing, after.min(now), calendars),
        }
    }

    /// Why a person has skipped a planned time, from its row.
    pub fn why_left_out(&self, planned: Millis) -> String {
        self.left_out.get(&planned).cloned().unwrap_or_default()
    }

    /// The batch number of a planned time, or why there is none.
    pub fn number(&self, planned: Millis, nominal: NaiveDate) -> Option<Result<String, String>> {
        let rule = self.number.as_ref()?;
        let (schedule, zone) = (self.code.as_str(), self.timing.zone);
        let number = rule.number(PlannedInstant { schedule, planned, nominal, zone, parent: None });
        Some(number.map(|no| no.to_string()).map_err(|error| error.to_string()))
    }
}

/// The next `count` firings after a time, and the skipped times among them.
pub fn find_firings(
    asked: &FiringPreviewRequest,
    calendars: &Calendars,
    after: Millis,
    count: usize,
) -> Result<FiringPreview> {
    let (mut next, mut left_out) = (Vec::new(), Vec::new());
    for one in asked.timing.preview(calendars, after, asked.anchor) {
        let one = one?;
        let of = if asked.left_out.contains_key(&one.planned) { &mut left_out } else { &mut next };
        of.push(one);
        if next.len() == count {
            break;
        }
    }
    let end = next.last().map_or(after.plus_ms(400 * 86_400_000), |last| last.planned);
    let skipped = asked.timing.skipped_between(calendars, after..end, asked.anchor, count)?;
    Ok(FiringPreview { next, left_out, skipped })
}

/// Refuses a timing that could not be saved.
fn sound(timing: &Timing, now: Millis, calendars: &Calendars) -> Result<(), WordFaults> {
    let kind = timing.schedule.kind();
    let fault = |e| WordFault::of_timing(&e, kind);
    timing.check(now, calendars).map_err(|all| WordFaults(all.into_iter().map(fault).collect()))
}

/// Parses a day, or a local time; `None` when it is neither.
pub fn moment(text: &str, zone: Tz) -> Option<Millis> {
    let forms = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    let time = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let day = || text.parse::<NaiveDate>().ok().map(|day| day.and_time(NaiveTime::MIN));
    let wall = time.or_else(day)?;
    Some(at_wall_clock(wall.date(), wall.time(), zone))
}

/// The local day of the week.
pub fn weekday(at: Millis, zone: Tz, lang: Lang) -> &'static str {
    let (en, zh) = match at.to_utc().with_timezone(&zone).weekday() {
        Weekday::Mon => ("Mon", "周一"),
        Weekday::Tue => ("Tue", "周二"),
        Weekday::Wed => ("Wed", "周三"),
        Weekday::Thu => ("Thu", "周四"),
        Weekday::Fri => ("Fri", "周五"),
        Weekday::Sat => ("Sat", "周六"),
        Weekday::Sun => ("Sun", "周日"),
    };
    lang.select(en, zh)
}

/// When a schedule next fires, and which times are skipped.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SchedulePreview {
    /// The schedule code; empty if it is not stored.
    pub schedule: String,
    /// The time zone of local times.
    pub time_zone: &'static str,
    /// The firings, earliest first.
    pub next: Vec<PlannedFiring>,
    /// Skipped times among them, by a person or by a calendar or blackout.
    pub skipped: Vec<SkippedFiring>,
}

/// A time at which a schedule fires.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlannedFiring {
    /// The time, UTC.
    pub planned_at: String,
    /// The same in the schedule's time zone: `2026-12-31 18:00:00 +08:00`.
    pub planned_local: String,
    /// The local day of the week: `Mon`.
    pub weekday: &'static str,
    /// The day that the schedule names, before a calendar moved it.
    pub nominal_date: String,
    /// The batch number that it opens; null where the schedule opens none.
    pub batch_no: Option<String>,
    /// Why the batch number cannot be computed.
    pub batch_no_error: Option<String>,
    /// Remarks on it; empty for an ordinary one.
    pub why: Vec<OccurrenceReason>,
    /// The remarks as text.
    pub words: Vec<String>,
}

/// A time at which a schedule does not fire.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SkippedFiring {
    /// The time, UTC.
    pub planned_at: String,
    /// The same in the schedule's time zone.
    pub planned_local: String,
    /// The day that the schedule names.
    pub nominal_date: String,
    /// Why it is skipped.
    pub why: SkipCause,
    /// The same as text; the reason given, for one that a person skipped.
    pub words: String,
}

/// Why a planned time is skipped.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SkipCause {
    /// `by_hand`: a person skipped it.
    Person(&'static str),
    /// A calendar, a blackout or the window of the schedule.
    Rule(Swallowed),
}

impl SchedulePreview {
    /// The result for a schedule that no clock fires.
    pub fn empty(asked: &FiringPreviewRequest) -> Self {
        let time_zone = asked.timing.zone.name();
        Self { schedule: asked.code.clone(), time_zone, next: Vec::new(), skipped: Vec::new() }
    }

    /// The document of a preview.
    pub fn from_firings(asked: &FiringPreviewRequest, shown: &FiringPreview) -> Self {
        let zone = asked.timing.zone;
        let by_hand = shown.left_out.iter().map(|one| SkippedFiring {
            planned_at: one.planned.to_string(),
            planned_local: local(one.planned, zone),
            nominal_date: one.nominal.to_string(),
            why: SkipCause::Person("by_hand"),
            words: asked.why_left_out(one.planned),
        });
        let by_rule = shown.skipped.iter().map(|one| SkippedFiring {
            planned_at: one.planned.to_string(),
            planned_local: local(one.planned, zone),
            nominal_date: one.nominal.to_string(),
            why: SkipCause::Rule(one.why.clone()),
            words: one.why.words(Lang::En),
        });
        Self {
            next: shown.next.iter().map(|one| PlannedFiring::from_occurrence(asked, one)).collect(),
            skipped: by_hand.chain(by_rule).collect(),
            ..Self::empty(asked)
        }
    }
}

impl PlannedFiring {
    fn from_occurrence(asked: &FiringPreviewRequest, one: &Occurrence) -> Self {
        let zone = asked.timing.zone;
        let (batch_no, batch_no_error) = match asked.number(one.planned, one.nominal) {
            None => (None, None),
            Some(Ok(no)) => (Some(no), None),
            Some(Err(error)) => (None, Some(error)),
        };
        Self {
            planned_at: one.planned.to_string(),
            planned_local: local(one.planned, zone),
            weekday: weekday(one.planned, zone, Lang::En),
            nominal_date: one.nominal.to_string(),
            batch_no,
            batch_no_error,
            why: one.why.clone(),
            words: one.why.iter().map(|why| why.words(Lang::En)).collect(),
        }
    }
}
