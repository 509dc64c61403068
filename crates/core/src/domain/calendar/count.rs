//! Counting working days: the n-th of a period, so many from a day, between two days, and where a
//! firing goes that falls on a day off.

use super::error::{CalendarError, RUN_MAX};
use super::{CalendarCertainty, Calendars, DayLook, Working};
use crate::domain::batch_no::Period;
use crate::domain::id::CalendarCode;
use chrono::{Datelike as _, NaiveDate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of something that is planned for a day off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "DayOffPolicy")]
pub enum Shift {
    /// It takes place all the same.
    #[default]
    Run,
    /// It does not take place.
    Skip,
    /// It takes place on the next working day.
    Next,
    /// It takes place on the working day before.
    Previous,
}

impl Shift {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Run, Self::Skip, Self::Next, Self::Previous];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Skip => "skip",
            Self::Next => "next",
            Self::Previous => "previous",
        }
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Landing {
    /// On its day.
    Stays,
    /// Not at all.
    Skipped,
    /// On this day instead.
    Moved(NaiveDate),
}

/// A working day that was counted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Nth {
    /// The day.
    pub date: NaiveDate,
    /// Whether each day on the way was known.
    pub certainty: CalendarCertainty,
}

#[derive(Clone, Copy)]
enum CountedDays {
    Later,
    Earlier,
}

impl CountedDays {
    fn step_date(self, date: NaiveDate) -> Option<NaiveDate> {
        let next = match self {
            Self::Later => date.succ_opt(),
            Self::Earlier => date.pred_opt(),
        };
        next.filter(|day| (1..=9999).contains(&day.year()))
    }
}

impl Calendars {
    /// The n-th working day of a period: 1 is the first, -1 the last; `None` when it has fewer.
    pub fn nth_working_day(
        &self,
        code: &CalendarCode,
        period: Period,
        n: i32,
    ) -> Result<Option<Nth>, CalendarError> {
        let (first, last) = (period.first_day(), period.last_day());
        let (mut day, way) = match n {
            0 => return Err(CalendarError::Zeroth),
            1.. => (first, CountedDays::Later),
            ..0 => (last, CountedDays::Earlier),
        };
        let (mut left, mut certainty) = (n.unsigned_abs(), CalendarCertainty::Known);
        while (first..=last).contains(&day) {
            let look = self.classify_day(code, day)?;
            certainty = certainty.combine(look.certainty());
            if look.working == Working::Working {
                left -= 1;
            }
            if left == 0 {
                return Ok(Some(Nth { date: day, certainty }));
            }
            let Some(next) = way.step_date(day) else { break };
            day = next;
        }
        Ok(None)
    }

    /// The working day `n` places after `date`, or before it when `n` is negative; `date` itself need
    /// not be one. 0 is `date` as it is.
    pub fn add_working_days(
        &self,
        code: &CalendarCode,
        date: NaiveDate,
        n: i64,
    ) -> Result<Nth, CalendarError> {
        let way = if n < 0 { CountedDays::Earlier } else { CountedDays::Later };
        let mut found = Nth { date, certainty: CalendarCertainty::Known };
        for _ in 0..n.unsigned_abs() {
            let next = self.next_working(code, found.date, way)?;
            let next = next.ok_or(CalendarError::OutOfTime(n, date))?;
            found = Nth { date: next.date, certainty: found.certainty.combine(next.certainty) };
        }
        Ok(found)
    }

    /// How many working days there are after `from` up to and with `to`. Backwards it is negative, and
    /// counts those from `to` up to the day before `from`; so that adding the number to `from` leads to
    /// `to`, if that is a working day.
    pub fn working_days_between(
        &self,
        code: &CalendarCode,
        from: NaiveDate,
        to: NaiveDate,
    ) -> Result<(i64, CalendarCertainty), CalendarError> {
        let way = if to < from { CountedDays::Earlier } else { CountedDays::Later };
        let (mut day, mut count, mut certainty) = (from, 0, CalendarCertainty::Known);
        while day != to {
            day = way.step_date(day).ok_or(CalendarError::OutOfTime(count, from))?;
            let look = self.classify_day(code, day)?;
            certainty = certainty.combine(look.certainty());
            count += i64::from(look.working == Working::Working);
        }
        let signed = match way {
            CountedDays::Later => count,
            CountedDays::Earlier => -count,
        };
        Ok((signed, certainty))
    }

    /// Where something planned for `date` takes place, and what the calendar says of `date`.
    pub fn shift(
        &self,
        code: &CalendarCode,
        date: NaiveDate,
        shift: Shift,
    ) -> Result<(Landing, DayLook), CalendarError> {
        let look = self.classify_day(code, date)?;
        let moved = |way, n| {
            let next = self.next_working(code, date, way)?;
            next.map(|next| Landing::Moved(next.date)).ok_or(CalendarError::OutOfTime(n, date))
        };
        let landing = match (look.working, shift) {
            (Working::Working, _) | (Working::Off, Shift::Run) => Landing::Stays,
            (Working::Off, Shift::Skip) => Landing::Skipped,
            (Working::Off, Shift::Next) => moved(CountedDays::Later, 1)?,
            (Working::Off, Shift::Previous) => moved(CountedDays::Earlier, -1)?,
        };
        Ok((landing, look))
    }

    /// The nearest working day beyond `date`; `None` where the years end.
    fn next_working(
        &self,
        code: &CalendarCode,
        date: NaiveDate,
        way: CountedDays,
    ) -> Result<Option<Nth>, CalendarError> {
        let (mut day, mut certainty) = (date, CalendarCertainty::Known);
        for _ in 0..RUN_MAX {
            let Some(next) = way.step_date(day) else { return Ok(None) };
            day = next;
            let look = self.classify_day(code, day)?;
            certainty = certainty.combine(look.certainty());
            if look.working == Working::Working {
                return Ok(Some(Nth { date: day, certainty }));
            }
        }
        Err(CalendarError::NeverWorks { code: code.clone(), from: date })
    }
}
