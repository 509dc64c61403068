//! Calendars: what each says of its days.

use crate::domain::batch_no::{Period, PeriodKind};
use crate::domain::calendar::{Basis, Calendar, CalendarError, Calendars, DayLook, Working};
use crate::domain::id::CalendarCode;
use anyhow::{Context as _, Result};
use chrono::{Datelike as _, NaiveDate, Weekday};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How a day looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// People work, as its weekday says.
    Worked,
    /// A weekend.
    Weekend,
    /// A day off of the list.
    Holiday,
    /// A weekend day that is worked.
    MadeUp,
}

impl Mark {
    /// Of a day, as a calendar looks at it.
    pub fn of(date: NaiveDate, look: &DayLook, all: &Calendars) -> Self {
        let is_weekend = all.get(&look.by).is_ok_and(|c| match c.combines {
            // A combined calendar has no weekend of its own.
            Some(_) => matches!(date.weekday(), Weekday::Sat | Weekday::Sun),
            None => c.weekend.has_day_of(date),
        });
        match (look.working, &look.basis) {
            (Working::Working, Basis::Listed(_)) if is_weekend => Self::MadeUp,
            (Working::Working, _) => Self::Worked,
            (Working::Off, Basis::Listed(_)) => Self::Holiday,
            (Working::Off, Basis::Weekday | Basis::Assumed) => Self::Weekend,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Worked => "working",
            Self::Weekend => "weekend",
            Self::Holiday => "holiday",
            Self::MadeUp => "made_up",
        }
    }
}

/// The days of a year.
pub type Looks = BTreeMap<NaiveDate, DayLook>;

/// A year as a period.
pub fn year_of(year: i32) -> Result<Period> {
    let first = NaiveDate::from_ymd_opt(year, 1, 1);
    let period = first.and_then(|day| Period::containing(PeriodKind::Year, day));
    period.context("a year that the arguments let through")
}

/// Its days.
pub fn looks(all: &Calendars, code: &CalendarCode, year: Period) -> Result<Looks, CalendarError> {
    let days = year.first_day().iter_days().take_while(|day| *day <= year.last_day());
    days.map(|day| Ok((day, all.look(code, day)?))).collect()
}

/// The year for scripts: every day that is not as its weekday says, and the counts.
pub fn as_json(all: &Calendars, code: &CalendarCode, year: i32) -> Result<Value> {
    let period = year_of(year)?;
    let looks = looks(all, code, period)?;
    let days = looks.iter().map(|(date, look)| {
        json!({
            "date": date, "working": look.working == Working::Working, "basis": look.basis,
            "mark": Mark::of(*date, look, all).word(), "by": look.by,
        })
    });
    let months = period.months().into_iter().map(|month| {
        let at = |n| all.nth_working_day(code, month, n).map(|nth| nth.map(|nth| nth.date));
        Ok(json!({
            "month": month.batch_no(), "working_days": worked(&looks, month),
            "first_working_day": at(1)?, "last_working_day": at(-1)?,
        }))
    });
    let assumed = !all.missing_years(code, year..=year)?.is_empty();
    Ok(json!({
        "calendar": code, "year": year, "assumed": assumed, "working_days": worked(&looks, period),
        "months": months.collect::<Result<Vec<_>, CalendarError>>()?,
        "days": days.collect::<Vec<_>>(),
    }))
}

/// How many of them are worked in a period.
pub fn worked(looks: &Looks, period: Period) -> usize {
    let within = looks.range(period.first_day()..=period.last_day());
    within.filter(|(_, look)| look.working == Working::Working).count()
}

/// A calendar in a list, with what uses it.
pub fn listed(
    calendar: &Calendar,
    used: &BTreeMap<CalendarCode, BTreeSet<String>>,
) -> Result<Value> {
    let mut document = serde_json::to_value(calendar)?;
    document["days"] = json!(calendar.days.len());
    document["used_by"] = json!(used.get(&calendar.code).into_iter().flatten().collect::<Vec<_>>());
    Ok(document)
}
