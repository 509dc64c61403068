//! Business calendars: the days of a year.

use crate::domain::batch_no::{Period, PeriodKind};
use crate::domain::calendar::{
    Calendar, CalendarError, Calendars, Combine, DayBasis, DayLook, Working,
};
use crate::domain::id::CalendarCode;
use anyhow::{Context as _, Result};
use chrono::{Datelike as _, NaiveDate, Weekday};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayMark {
    /// A regular working day.
    Worked,
    /// A weekend.
    Weekend,
    /// A listed day off.
    Holiday,
    /// A weekend day that is worked.
    MadeUp,
}

impl DayMark {
    /// The kind of a day, from a calendar's lookup.
    pub fn for_day(date: NaiveDate, look: &DayLook, all: &Calendars) -> Self {
        let is_weekend = all.get(&look.by).is_ok_and(|c| match c.combines {
            // A combined calendar has no weekend of its own.
            Some(_) => matches!(date.weekday(), Weekday::Sat | Weekday::Sun),
            None => c.weekend.has_day_of(date),
        });
        match (look.working, &look.basis) {
            (Working::Working, DayBasis::Listed(_)) if is_weekend => Self::MadeUp,
            (Working::Working, _) => Self::Worked,
            (Working::Off, DayBasis::Listed(_)) => Self::Holiday,
            (Working::Off, DayBasis::Weekday | DayBasis::Assumed) => Self::Weekend,
        }
    }

    /// The value in documents.
    pub fn as_word(self) -> &'static str {
        match self {
            Self::Worked => "working",
            Self::Weekend => "weekend",
            Self::Holiday => "holiday",
            Self::MadeUp => "made_up",
        }
    }
}

/// The days of a year.
pub type YearDays = BTreeMap<NaiveDate, DayLook>;

/// A year as a period.
pub fn year_of(year: i32) -> Result<Period> {
    let first = NaiveDate::from_ymd_opt(year, 1, 1);
    let period = first.and_then(|day| Period::containing(PeriodKind::Year, day));
    period.context("a year that the arguments let through")
}

/// The days of a year according to a calendar.
pub fn looks(
    all: &Calendars,
    code: &CalendarCode,
    year: Period,
) -> Result<YearDays, CalendarError> {
    let days = year.first_day().iter_days().take_while(|day| *day <= year.last_day());
    days.map(|day| Ok((day, all.classify_day(code, day)?))).collect()
}

/// A year of a calendar.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CalendarYear {
    /// The calendar code.
    pub calendar: String,
    /// The year.
    pub year: i32,
    /// Whether there is no list of days for the year, so that weekdays were assumed.
    pub assumed: bool,
    /// Number of working days.
    pub working_days: usize,
    /// The months.
    pub months: Vec<CalendarMonth>,
    /// The days.
    pub days: Vec<CalendarDay>,
}

/// A month of a calendar.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CalendarMonth {
    /// `202407`.
    pub month: String,
    /// Number of working days.
    pub working_days: usize,
    /// The first working day.
    pub first_working_day: Option<String>,
    /// The last working day.
    pub last_working_day: Option<String>,
}

/// A day of a calendar.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CalendarDay {
    /// The day: `2024-07-01`.
    pub date: String,
    /// Whether it is a working day.
    pub working: bool,
    /// The basis of that.
    pub basis: DayBasis,
    /// `working`, `weekend`, `holiday` or `made_up` (a weekend day that is worked).
    pub mark: &'static str,
    /// The calendar that decided: a member of a combined one.
    pub by: String,
}

impl CalendarYear {
    /// Every day of the year, and the counts.
    pub fn for_year(all: &Calendars, code: &CalendarCode, year: i32) -> Result<Self> {
        let period = year_of(year)?;
        let looks = looks(all, code, period)?;
        let days = looks.iter().map(|(date, look)| CalendarDay {
            date: date.to_string(),
            working: look.working == Working::Working,
            basis: look.basis.clone(),
            mark: DayMark::for_day(*date, look, all).as_word(),
            by: look.by.to_string(),
        });
        let months = period.months().into_iter().map(|month| {
            let nth = |n| all.nth_working_day(code, month, n);
            let day = |n| nth(n).map(|nth| nth.map(|nth| nth.date.to_string()));
            Ok(CalendarMonth {
                month: month.batch_no().to_string(),
                working_days: worked(&looks, month),
                first_working_day: day(1)?,
                last_working_day: day(-1)?,
            })
        });
        Ok(Self {
            calendar: code.to_string(),
            year,
            assumed: !all.missing_years(code, year..=year)?.is_empty(),
            working_days: worked(&looks, period),
            months: months.collect::<Result<_, CalendarError>>()?,
            days: days.collect(),
        })
    }
}

/// Number of working days in a period.
pub fn worked(looks: &YearDays, period: Period) -> usize {
    let within = looks.range(period.first_day()..=period.last_day());
    within.filter(|(_, look)| look.working == Working::Working).count()
}

/// A calendar in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CalendarSummary {
    /// The calendar code.
    pub code: String,
    /// The display name.
    pub name: String,
    /// Days of the week that are off: `sat,sun`.
    pub weekend: String,
    /// Number of days that differ from their weekday.
    pub days: usize,
    /// Years with a complete list of days.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub years: BTreeSet<i32>,
    /// The calendars that it combines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combines: Option<Combine>,
    /// Groups and schedules that use it.
    pub used_by: Vec<String>,
}

impl CalendarSummary {
    /// The document of a calendar, with the users of each.
    pub fn from_calendar(
        calendar: &Calendar,
        used: &BTreeMap<CalendarCode, BTreeSet<String>>,
    ) -> Self {
        let used_by = used.get(&calendar.code).into_iter().flatten().cloned();
        Self {
            code: calendar.code.to_string(),
            name: calendar.name.clone(),
            weekend: calendar.weekend.to_string(),
            days: calendar.days.len(),
            years: calendar.years.clone(),
            combines: calendar.combines.clone(),
            used_by: used_by.collect(),
        }
    }
}
