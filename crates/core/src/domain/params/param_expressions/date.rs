//! Evaluates date expressions within a batch, and formats dates.

use super::{BadReference, DateExpr, DateFormat, Reference, wrong};
use crate::domain::batch_no::{Period, shift_days, shift_months};
use crate::domain::calendar::{Landing, WorkingDays};
use crate::domain::id::{BatchNo, CalendarCode};
use chrono::{Datelike as _, NaiveDate};

/// A calendar that an expression refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CalendarQuestion {
    /// The group's.
    Own,
    /// A named one.
    Named(CalendarCode),
}

impl Reference {
    /// The calendars that it refers to.
    pub fn calendars(&self) -> Vec<CalendarQuestion> {
        match self {
            Self::Date(expr) | Self::Format(expr, _) => expr.calendars(),
            Self::BatchNo | Self::Batch(_) | Self::Group | Self::JobCode | Self::Item => Vec::new(),
            Self::IdemKey | Self::Attempt => Vec::new(),
            Self::Param(_) | Self::Output(..) | Self::Secret(_) => Vec::new(),
        }
    }
}

impl DateExpr {
    fn calendars(&self) -> Vec<CalendarQuestion> {
        let asked = |calendar: &Option<CalendarCode>| match calendar {
            Some(code) => CalendarQuestion::Named(code.clone()),
            None => CalendarQuestion::Own,
        };
        match self {
            Self::BusinessDate | Self::First(_) | Self::Last(_) => Vec::new(),
            Self::AddDays(date, _) | Self::AddMonths(date, _) => date.calendars(),
            Self::AddWorkdays(date, _, calendar) | Self::Workday(date, _, calendar) => {
                let mut found = date.calendars();
                found.push(asked(calendar));
                found
            }
            Self::NthWorkday(_, calendar) => vec![asked(calendar)],
        }
    }

    /// The date in a batch, or an error with a hint.
    pub fn evaluate(
        &self,
        batch_no: &BatchNo,
        business_date: Option<NaiveDate>,
        days: WorkingDays<'_>,
    ) -> Result<NaiveDate, String> {
        let period = |n: i64| {
            let own = Period::of_batch(batch_no, business_date).ok_or_else(|| {
                format!(
                    "batch number {batch_no} is free text and names no period; use business_date \
                     instead, or a number such as 202407"
                )
            })?;
            own.shift(n).ok_or_else(|| out_of_time(n))
        };
        let inner = |date: &Self| date.evaluate(batch_no, business_date, days);
        match self {
            Self::BusinessDate => business_date.ok_or_else(|| {
                "give the batch a business date (--business-date YYYY-MM-DD)".to_owned()
            }),
            Self::First(n) => period(*n).map(Period::first_day),
            Self::Last(n) => period(*n).map(Period::last_day),
            Self::AddDays(date, n) => within(shift_days(inner(date)?, *n), *n),
            Self::AddMonths(date, n) => within(shift_months(inner(date)?, *n), *n),
            Self::AddWorkdays(date, n, calendar) => {
                let (all, code) = days.resolve_calendar(calendar.as_ref())?;
                let found = all.add_working_days(code, inner(date)?, *n);
                found.map(|nth| nth.date).map_err(|e| e.to_string())
            }
            Self::Workday(date, shift, calendar) => {
                let ((all, code), date) = (days.resolve_calendar(calendar.as_ref())?, inner(date)?);
                match all.shift(code, date, *shift).map_err(|e| e.to_string())?.0 {
                    Landing::Stays | Landing::Skipped => Ok(date),
                    Landing::Moved(to) => Ok(to),
                }
            }
            Self::NthWorkday(n, calendar) => {
                let ((all, code), own) = (days.resolve_calendar(calendar.as_ref())?, period(0)?);
                let found = all.nth_working_day(code, own, *n).map_err(|e| e.to_string())?;
                found.map(|nth| nth.date).ok_or_else(|| {
                    format!(
                        "{batch_no} has fewer working days in calendar {code}; use a smaller number"
                    )
                })
            }
        }
    }
}

/// Restricts dates to years of four digits.
fn within(date: Option<NaiveDate>, n: i64) -> Result<NaiveDate, String> {
    date.filter(|date| (1..=9999).contains(&date.year())).ok_or_else(|| out_of_time(n))
}

fn out_of_time(n: i64) -> String {
    format!("{n} leads out of the years 1 to 9999; use a smaller number")
}

impl DateFormat {
    pub(super) fn parse(name: &str, pattern: &str) -> Result<Self, BadReference> {
        let mut chars = pattern.chars();
        let mut bad = pattern.is_empty() || pattern.chars().count() > 100;
        while let Some(c) = chars.next() {
            bad |= c == '%' && !chars.next().is_some_and(|c| "Yymdjq%".contains(c));
        }
        if bad {
            let said = format!(
                "{pattern:?} is no pattern; use %Y (2024) %y (24) %m %d %j (day of the year) %q \
                 (quarter) %% and other characters"
            );
            return Err(wrong(name, said));
        }
        Ok(Self(pattern.to_owned()))
    }

    /// The date in this format.
    pub fn write(&self, date: NaiveDate) -> String {
        let mut text = String::new();
        let mut chars = self.0.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            match chars.next() {
                Some('Y') => text.push_str(&format!("{:04}", date.year())),
                Some('y') => text.push_str(&format!("{:02}", date.year().rem_euclid(100))),
                Some('m') => text.push_str(&format!("{:02}", date.month())),
                Some('d') => text.push_str(&format!("{:02}", date.day())),
                Some('j') => text.push_str(&format!("{:03}", date.ordinal())),
                Some('q') => text.push_str(&date.month().div_ceil(3).to_string()),
                Some(other) => text.push(other),
                None => {}
            }
        }
        text
    }
}
