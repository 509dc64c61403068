//! Days with the batches opened on them, the coming firings, and the working days.

use crate::domain::calendar::{Calendars, DayBasis, Working};
use crate::domain::id::{CalendarCode, GroupCode};
use crate::domain::schedule::Anchor;
use crate::domain::schedule::trigger::{PlannedInstant, Trigger, TriggerStatus};
use crate::domain::time::{Millis, at_wall_clock};
use crate::store::batch::BatchFilter;
use crate::store::{self, Tx};
use crate::view::calendar::DayMark;
use anyhow::Result;
use chrono::{NaiveDate, NaiveTime};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of batches shown for a range.
pub const BATCHES: u32 = 2_000;
/// Maximum number of firings of one schedule that are listed; on a day with more they are shown as
/// a count.
const FIRINGS: usize = 500;

/// A batch on its day.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DayBatch {
    /// The group code.
    pub group: String,
    /// The batch number.
    pub batch_no: String,
    /// RUNNING, KILLING, SUCCESS, WARNING, FAILED or KILLED.
    pub status: String,
    /// When it was opened.
    pub create_time: String,
}

/// Coming firings of a schedule on a day.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DayFiring {
    /// The schedule code.
    pub schedule: String,
    /// The groups that it opens and the caller sees.
    pub groups: Vec<String>,
    /// The first planned time of the day.
    pub planned_at: String,
    /// The batch number at that time, where it can be computed.
    pub batch_no: Option<String>,
    /// Number of firings on that day.
    pub times: u32,
}

/// A day.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MonthDay {
    /// The day.
    pub date: String,
    /// Whether it is a working day; null without a calendar.
    pub working: Option<bool>,
    /// working, weekend, holiday or made_up (a weekend day that is worked); null without a
    /// calendar.
    pub mark: Option<String>,
    /// The calendar's name of the day.
    pub label: Option<String>,
    /// Whether that is derived from weekdays, because the calendar has no list for the year.
    pub assumed: bool,
    /// Batches opened on that day.
    pub batches: Vec<DayBatch>,
    /// Firings on that day, from now on.
    pub firings: Vec<DayFiring>,
}

/// The requested range.
pub struct MonthRequest<'a> {
    pub from: NaiveDate,
    pub to: NaiveDate,
    /// The time zone in which days begin.
    pub zone: Tz,
    /// The calendar of working days.
    pub calendar: Option<&'a CalendarCode>,
    /// The groups whose batches are shown; `None` means all.
    pub groups: Option<Vec<GroupCode>>,
}

impl MonthRequest<'_> {
    fn start(&self, day: NaiveDate) -> Millis {
        at_wall_clock(day, NaiveTime::MIN, self.zone)
    }

    fn day_of(&self, at: Millis) -> NaiveDate {
        at.to_utc().with_timezone(&self.zone).date_naive()
    }
}

/// Days by date.
type DaysByDate = BTreeMap<NaiveDate, MonthDay>;

/// The days of a range, without firings.
pub async fn read_days(
    tx: &mut Tx,
    span: &MonthRequest<'_>,
    calendars: &Calendars,
) -> Result<DaysByDate> {
    let mut days = DaysByDate::new();
    for date in span.from.iter_days().take_while(|day| *day <= span.to) {
        days.insert(date, read_day(span, calendars, date)?);
    }
    let end = span.to.succ_opt().unwrap_or(span.to);
    let asked = BatchFilter {
        groups: span.groups.clone(),
        from: Some(span.start(span.from)),
        to: Some(span.start(end)),
        ..BatchFilter::default()
    };
    for batch in store::batch::list_page(tx, &asked, BATCHES).await? {
        if let Some(day) = days.get_mut(&span.day_of(batch.create_time)) {
            day.batches.push(DayBatch {
                group: batch.values.group.to_string(),
                batch_no: batch.values.batch_no.to_string(),
                status: batch.status.to_string(),
                create_time: batch.create_time.to_string(),
            });
        }
    }
    Ok(days)
}

fn read_day(span: &MonthRequest<'_>, calendars: &Calendars, date: NaiveDate) -> Result<MonthDay> {
    let look = span.calendar.map(|code| calendars.classify_day(code, date)).transpose()?;
    let basis = look.as_ref().map(|look| &look.basis);
    let label = match basis {
        Some(DayBasis::Listed(label)) => label.clone(),
        Some(DayBasis::Weekday | DayBasis::Assumed) | None => None,
    };
    Ok(MonthDay {
        date: date.to_string(),
        working: look.as_ref().map(|look| look.working == Working::Working),
        mark: look
            .as_ref()
            .map(|look| DayMark::for_day(date, look, calendars).as_word().to_owned()),
        label,
        assumed: matches!(basis, Some(DayBasis::Assumed)),
        batches: Vec::new(),
        firings: Vec::new(),
    })
}

/// Adds the firings of a schedule from `now` on; `groups` are those it opens.
pub fn add_firings(
    days: &mut DaysByDate,
    span: &MonthRequest<'_>,
    calendars: &Calendars,
    t: &Trigger,
    groups: Vec<String>,
    now: Millis,
) -> Result<()> {
    let timing = &t.def.timing;
    if t.status != TriggerStatus::Enabled || !timing.schedule.is_clocked() {
        return Ok(());
    }
    let anchor = Anchor { last_planned: t.last_time, ..Anchor::new(t.create_time) };
    let after = now.max(span.start(span.from)).plus_ms(-1);
    for found in timing.preview(calendars, after, anchor).take(FIRINGS) {
        let found = found?;
        let Some(day) = days.get_mut(&span.day_of(found.planned)) else { break };
        let schedule = t.def.code.as_str();
        if let Some(same) = day.firings.iter_mut().find(|f| f.schedule == schedule) {
            same.times += 1;
            continue;
        }
        let (planned, nominal, zone) = (found.planned, found.nominal, timing.zone);
        let at = PlannedInstant { schedule, planned, nominal, zone, parent: None };
        let number = t.def.order.as_ref().and_then(|order| order.batch_no.number(at).ok());
        day.firings.push(DayFiring {
            schedule: schedule.to_owned(),
            groups: groups.clone(),
            planned_at: found.planned.to_string(),
            batch_no: number.map(|no| no.to_string()),
            times: 1,
        });
    }
    Ok(())
}
