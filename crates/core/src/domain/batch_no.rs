//! The grammar of batch numbers: the period that a number means, its neighbours, and the syntax of
//! ranges.
//!
//! `20240731` is a day, `202407` a month, `2024Q3` a quarter, `2024` a year; everything else is
//! free text, which has no period, no neighbours and no dates.

mod day_expr;
mod expr;
mod grammar;

pub use day_expr::{DaySpan, NamedDay};
pub use expr::{BatchExpr, BatchExprError, FORMS, RelativeBatch};
pub use grammar::{NumberGrammar, NumberMismatch};

use crate::domain::id::{BadName, BatchNo};
use chrono::{Datelike as _, Days, Months, NaiveDate};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// Maximum number of batches in one range; 27 years of days.
pub const RANGE_MAX: usize = 10_000;

/// Kind of the period that a batch number means, shortest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeriodKind {
    /// `20240731`
    Day,
    /// `202407`
    Month,
    /// `2024Q3`
    Quarter,
    /// `2024`
    Year,
}

impl PeriodKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Day, Self::Month, Self::Quarter, Self::Year];

    /// The word, which is also the function's name in an expression: `month(-1)`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
        }
    }
}

impl fmt::Display for PeriodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A day, month, quarter or year between the years 1 and 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Period {
    kind: PeriodKind,
    first: NaiveDate,
}

impl Period {
    /// The period that `batch_no` means; `None` for free text. Only existing dates count:
    /// `20240732`, `202413` and `2024Q5` are free text.
    pub fn from_batch_no(batch_no: &BatchNo) -> Option<Self> {
        let text = batch_no.as_str();
        let number = |from: usize, to: usize| -> Option<u32> {
            let digits = text.get(from..to)?;
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let year = i32::try_from(number(0, 4)?).ok()?;
        let (kind, month, day) = match text.len() {
            4 => (PeriodKind::Year, 1, 1),
            6 if text.as_bytes()[4] == b'Q' => {
                let quarter = number(5, 6).filter(|quarter| (1..=4).contains(quarter))?;
                (PeriodKind::Quarter, quarter * 3 - 2, 1)
            }
            6 => (PeriodKind::Month, number(4, 6)?, 1),
            8 => (PeriodKind::Day, number(4, 6)?, number(6, 8)?),
            _ => return None,
        };
        Self::containing(kind, NaiveDate::from_ymd_opt(year, month, day)?)
    }

    /// The period of this kind that contains `date`; `None` outside the years 1 to 9999.
    pub fn containing(kind: PeriodKind, date: NaiveDate) -> Option<Self> {
        let (year, month) = (date.year(), date.month());
        let first = match kind {
            PeriodKind::Day => Some(date),
            PeriodKind::Month => date.with_day(1),
            PeriodKind::Quarter => NaiveDate::from_ymd_opt(year, (month - 1) / 3 * 3 + 1, 1),
            PeriodKind::Year => NaiveDate::from_ymd_opt(year, 1, 1),
        };
        first.filter(|_| (1..=9999).contains(&year)).map(|first| Self { kind, first })
    }

    /// Its batch number.
    pub fn batch_no(self) -> BatchNo {
        let (year, month, day) = (self.first.year(), self.first.month(), self.first.day());
        let text = match self.kind {
            PeriodKind::Day => format!("{year:04}{month:02}{day:02}"),
            PeriodKind::Month => format!("{year:04}{month:02}"),
            PeriodKind::Quarter => format!("{year:04}Q{}", month.div_ceil(3)),
            PeriodKind::Year => format!("{year:04}"),
        };
        BatchNo::parse(&text).expect("digits and a Q are a batch number")
    }

    /// Kind of the period.
    pub fn kind(self) -> PeriodKind {
        self.kind
    }

    /// Its first day.
    pub fn first_day(self) -> NaiveDate {
        self.first
    }

    /// Its last day, the default business date of its batch.
    pub fn last_day(self) -> NaiveDate {
        let next = match self.kind {
            PeriodKind::Day => return self.first,
            PeriodKind::Month => self.first.checked_add_months(Months::new(1)),
            PeriodKind::Quarter => self.first.checked_add_months(Months::new(3)),
            PeriodKind::Year => self.first.checked_add_months(Months::new(12)),
        };
        next.and_then(|day| day.pred_opt()).expect("chrono's years end long after 9999")
    }

    /// The period `n` places later, or earlier when `n` is negative; `None` outside the years 1 to
    /// 9999.
    pub fn shift(self, n: i64) -> Option<Self> {
        let first = match self.kind {
            PeriodKind::Day => shift_days(self.first, n)?,
            PeriodKind::Month => shift_months(self.first, n)?,
            PeriodKind::Quarter => shift_months(self.first, n.checked_mul(3)?)?,
            PeriodKind::Year => shift_months(self.first, n.checked_mul(12)?)?,
        };
        Self::containing(self.kind, first)
    }

    /// The previous period.
    pub fn previous(self) -> Option<Self> {
        self.shift(-1)
    }

    /// The next period.
    pub fn next(self) -> Option<Self> {
        self.shift(1)
    }

    /// The periods of another kind within it, in order; for a longer kind, the one that contains
    /// it.
    pub fn split(self, kind: PeriodKind) -> Vec<Self> {
        let last = self.last_day();
        let start = Self::containing(kind, self.first);
        std::iter::successors(start, |period| period.next())
            .take_while(|period| period.first <= last)
            .collect()
    }

    /// The months in it: three of a quarter, twelve of a year; of a month or day, its month.
    pub fn months(self) -> Vec<Self> {
        self.split(PeriodKind::Month)
    }
}

/// `date` plus `n` days; `None` where the calendar of chrono ends.
pub fn shift_days(date: NaiveDate, n: i64) -> Option<NaiveDate> {
    let days = Days::new(n.unsigned_abs());
    if n < 0 { date.checked_sub_days(days) } else { date.checked_add_days(days) }
}

/// `date` plus `n` months: the same day of the month, or the month's last day where it has no such
/// day (31 January plus one month is 28 or 29 February).
pub fn shift_months(date: NaiveDate, n: i64) -> Option<NaiveDate> {
    let months = Months::new(u32::try_from(n.unsigned_abs()).ok()?);
    if n < 0 { date.checked_sub_months(months) } else { date.checked_add_months(months) }
}

/// Order of two batch numbers: those of the same kind by their period, free text by its characters.
/// Numbers of different kinds have no order: is `2024Q3` before `202409`?
pub fn compare(left: &BatchNo, right: &BatchNo) -> Option<Ordering> {
    match (Period::from_batch_no(left), Period::from_batch_no(right)) {
        (Some(left), Some(right)) if left.kind == right.kind => Some(left.first.cmp(&right.first)),
        (None, None) => Some(left.as_str().cmp(right.as_str())),
        (Some(_), Some(_)) | (Some(_), None) | (None, Some(_)) => None,
    }
}

/// The newest of `existing` that is not after `base`: the meaning of `latest`.
pub fn latest_up_to<'a>(
    base: &BatchNo,
    existing: impl IntoIterator<Item = &'a BatchNo>,
) -> Option<&'a BatchNo> {
    existing
        .into_iter()
        .filter(|no| matches!(compare(no, base), Some(Ordering::Less | Ordering::Equal)))
        .max_by(|a, b| compare(a, b).unwrap_or(Ordering::Equal))
}

/// Why a text is not a range of batch numbers; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Nothing between two commas, or an empty text.
    #[error("'{0}' has an empty entry; write 202401..202412, or numbers joined by commas")]
    Empty(String),
    /// `a..b..c`
    #[error("'{0}' has more than two ends; write 202401..202412, and a comma between two ranges")]
    Ends(String),
    /// One end has no period.
    #[error(
        "'{part}' cannot be counted: {end} is not a day, month, quarter or year; write \
         202401..202412, or a list A,B,C"
    )]
    FreeText {
        /// The range.
        part: String,
        /// Its end that is free text.
        end: BatchNo,
    },
    /// The ends have different kinds.
    #[error(
        "'{part}' cannot be counted: one end is a {from}, the other a {to}; write both ends in the \
         same form"
    )]
    Kinds {
        /// The range.
        part: String,
        /// Kind of the first end.
        from: PeriodKind,
        /// Kind of the last end.
        to: PeriodKind,
    },
    /// More than `RANGE_MAX`.
    #[error("'{0}' names more than {RANGE_MAX} batch numbers; split it")]
    TooMany(String),
    /// A repeated number.
    #[error("'{0}' names {1} twice; name each batch number once")]
    Twice(String, BatchNo),
    /// Not a batch number.
    #[error(transparent)]
    BadName(#[from] BadName),
}

/// Parses the batch numbers of `text`, in its order: `202401..202412` (both ends included, either
/// direction), a list `A,B,C`, or both (`202401..202403,202407`).
pub fn range(text: &str) -> Result<Vec<BatchNo>, RangeError> {
    let mut found: Vec<BatchNo> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for part in text.split(',').map(str::trim) {
        if part.is_empty() {
            return Err(RangeError::Empty(text.trim().to_owned()));
        }
        let numbers = match part.split_once("..") {
            None => vec![BatchNo::parse(part)?],
            Some((from, to)) => between(part, from.trim(), to.trim())?,
        };
        for no in numbers {
            if !seen.insert(no.clone()) {
                return Err(RangeError::Twice(text.trim().to_owned(), no));
            }
            found.push(no);
        }
        if found.len() > RANGE_MAX {
            return Err(RangeError::TooMany(text.trim().to_owned()));
        }
    }
    Ok(found)
}

fn between(part: &str, from: &str, to: &str) -> Result<Vec<BatchNo>, RangeError> {
    if from.is_empty() || to.is_empty() {
        return Err(RangeError::Empty(part.to_owned()));
    }
    if to.contains("..") {
        return Err(RangeError::Ends(part.to_owned()));
    }
    let end = |text: &str| -> Result<Period, RangeError> {
        let end = BatchNo::parse(text)?;
        Period::from_batch_no(&end)
            .ok_or_else(|| RangeError::FreeText { part: part.to_owned(), end })
    };
    let (from, to) = (end(from)?, end(to)?);
    if from.kind != to.kind {
        let part = part.to_owned();
        return Err(RangeError::Kinds { part, from: from.kind, to: to.kind });
    }
    let step = if from.first <= to.first { 1 } else { -1 };
    let mut found = vec![from.batch_no()];
    let mut at = from;
    while at != to {
        at = at.shift(step).expect("it lies between two periods that exist");
        found.push(at.batch_no());
        if found.len() > RANGE_MAX {
            return Err(RangeError::TooMany(part.to_owned()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
