//! Schedules and their firings.

use crate::domain::id::GroupCode;
use crate::domain::job::Group;
use crate::domain::notification::BilingualText;
use crate::domain::schedule::Timing;
use crate::domain::schedule::firing::Firing;
use crate::domain::schedule::trigger::{Trigger, TriggerDef, TriggerWords};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Serialize;

/// Local time and offset: `2026-12-31 18:00:00 +08:00`.
pub fn local(at: Millis, zone: Tz) -> String {
    let local = at.to_utc().with_timezone(&zone);
    let form = if at.0.rem_euclid(1_000) == 0 {
        "%Y-%m-%d %H:%M:%S %:z"
    } else {
        "%Y-%m-%d %H:%M:%S%.3f %:z"
    };
    local.format(form).to_string()
}

/// The groups whose batches a schedule opens.
pub fn opens<'a>(def: &TriggerDef, groups: &'a [Group]) -> Vec<&'a GroupCode> {
    let words = TriggerWords::from(def.clone());
    let opened = |g: &&Group| words.opens(&g.code, g.batch_type.as_deref());
    groups.iter().filter(opened).map(|g| &g.code).collect()
}

/// A schedule and its progress.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScheduleDetail {
    /// Its keys, as in a definition file.
    pub schedule: TriggerWords,
    /// The key of the schedule.
    pub id: i64,
    /// `ENABLED`, `PAUSED` or `ENDED`.
    pub status: &'static str,
    /// Why it does not fire, if it does not.
    pub reason: Option<String>,
    /// Its origin: a definition file, the command line, an importer.
    pub origin: String,
    /// The number of changes; send it as `if_revision` with the next one.
    pub revision: i64,
    /// When it was created, UTC.
    pub create_time: String,
    /// When it next fires, UTC.
    pub next_time: Option<String>,
    /// The same in its time zone: `2026-12-31 18:00:00 +08:00`.
    pub next_local: Option<String>,
    /// The newest planned time that has a firing, UTC.
    pub last_time: Option<String>,
    /// The result of that firing.
    pub last: Option<FiringDetail>,
}

impl ScheduleDetail {
    /// The document of a schedule with its last firing.
    pub fn from_trigger(t: &Trigger, last: Option<&Firing>) -> Self {
        let zone = t.def.timing.zone;
        Self {
            schedule: t.def.clone().into(),
            id: t.trigger_id.0,
            status: t.status.as_str(),
            reason: t.reason.clone(),
            origin: t.origin.clone(),
            revision: t.revision,
            create_time: t.create_time.to_string(),
            next_time: t.next_time.map(|at| at.to_string()),
            next_local: t.next_time.map(|at| local(at, zone)),
            last_time: t.last_time.map(|at| at.to_string()),
            last: last.map(|firing| FiringDetail::from_firing(firing, zone)),
        }
    }
}

/// The meaning of a timing, as a sentence in both languages.
pub fn describe_timing(timing: &Timing) -> BilingualText {
    BilingualText { en: timing.sentence(Lang::En), zh: timing.sentence(Lang::Zh) }
}

/// A planned time of a schedule, and its result.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FiringDetail {
    /// The key of the firing.
    pub firing_id: i64,
    /// The planned time, UTC.
    pub planned_at: String,
    /// The same in the schedule's time zone.
    pub planned_local: String,
    /// The day from which batch numbers are computed.
    pub nominal_date: Option<String>,
    /// Its source: `cron`, a misfire, an event, a person.
    pub source: &'static str,
    /// `PENDING`, `WAITING`, or the result: `FIRED`, `MISFIRED`, `SKIPPED`, `FAILED`.
    pub status: &'static str,
    /// The batch number that it opened.
    pub batch_no: Option<String>,
    /// When it is to fire, UTC.
    pub fire_at: String,
    /// When it fired, UTC.
    pub fired_at: Option<String>,
    /// Number of failed attempts to open its batches.
    pub attempt: u32,
    /// The reason given by the operator or the program.
    pub reason: Option<String>,
    /// End of the range of planned times that it stands for, UTC.
    pub missed_until: Option<String>,
}

impl FiringDetail {
    /// The document of a firing of a schedule in this zone.
    pub fn from_firing(f: &Firing, zone: Tz) -> Self {
        Self {
            firing_id: f.firing_id.0,
            planned_at: f.planned_at.to_string(),
            planned_local: local(f.planned_at, zone),
            nominal_date: f.nominal_date.map(|day| day.to_string()),
            source: f.source.as_str(),
            status: f.status.as_str(),
            batch_no: f.batch_no.clone(),
            fire_at: f.fire_at.to_string(),
            fired_at: f.fired_at.map(|at| at.to_string()),
            attempt: f.attempt,
            reason: f.reason.clone(),
            missed_until: f.missed_until.map(|at| at.to_string()),
        }
    }
}
