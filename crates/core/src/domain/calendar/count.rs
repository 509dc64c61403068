//! Counts working days: the n-th of a period, a number of days from a date, the number between two dates, and the day
//! to which a firing on a day off moves.

use super::error::{CalendarError, RUN_MAX};
use super::{CalendarCertainty, Calendars, DayLook, Working};
use crate::domain::batch_no::Period;
use crate::domain::id::CalendarCode;
use chrono::{Datelike as _, NaiveDate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to a firing that is planned for a day off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "DayOffPolicy")]
pub enum Shift {
    /// It fires on that day.
    #[default]
    Run,
    /// It is skipped.
    Skip,
    /// It moves to the next working day.
    Next,
    /// It moves to the previous working day.
    Previous,
}

impl Shift {
    /// Every rule.
    pub const ALL: [Self; 4] = [Self::Run, Self::Skip, Self::Next, Self::Previous];

    /// The name in definitions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Skip => "skip",
            Self::Next => "next",
            Self::Previous => "previous",
        }
    }
}

/// The result of applying a [`Shift`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Landing {
    /// It stays on its day.
    Stays,
    /// It is skipped.
    Skipped,
    /// It moves to this day.
    Moved(NaiveDate),
}

/// The result of counting working days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Nth {
    /// The working day that was reached.
    pub date: NaiveDate,
    /// Whether every day that was counted is known.
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
    /// The n-th working day of a period: 1 is the first, -1 the last; `None` if the period has fewer.
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

    /// The working day `n` working days after `date`, or before it if `n` is negative; `date` itself may be a day off.
    /// 0 returns `date` unchanged.
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

    /// The number of working days after `from` up to and including `to`. If `to` is before `from`, the result is
    /// negative and counts from `to` up to the day before `from`. Adding the result to `from` therefore leads to `to`
    /// if `to` is a working day.
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

    /// Moves something planned for `date`, and returns what the calendar says about `date`.
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

    /// The nearest working day beyond `date`; `None` at the end of the supported years.
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
