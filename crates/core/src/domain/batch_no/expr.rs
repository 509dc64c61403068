//! Parses and evaluates expressions that give batch numbers: `month(-1)`, `prev`, `months`, `last_day_of_month(-1)`.
//! Inputs are a date, or another batch with its business date.

use super::{DaySpan, NamedDay, Period, PeriodKind};
use crate::domain::id::BatchNo;
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The forms of an expression, for messages and help.
pub const FORMS: &str = "a batch number (202407, 2024Q3, 2024, 20240731, or up to 50 ASCII letters, \
     digits, '.', '_' and '-'), same, prev, prev(n), next, next(n), day(n), month(n), quarter(n), \
     year(n), first_day_of_month(n), last_day_of_month(n) (also with quarter or year), monday(n) to \
     sunday(n), days_of_week(n), days_of_month(n), week_to_date, month_to_date, months, months_of_quarter, months_of_year, quarters_of_year or latest";

/// Maximum shift; 100,000 days are 273 years.
const SHIFT_MAX: i64 = 100_000;

/// An expression that gives batch numbers for a date or relative to another batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BatchExpr {
    /// A fixed number: `202407`.
    Literal(BatchNo),
    /// The number of the base batch: `same`.
    Same,
    /// The number so many periods after the base batch: `prev`, `prev(2)`, `next(1)`.
    Shift(i64),
    /// The day, month, quarter or year that contains the base date, shifted by so many: `month(-1)`.
    Period(PeriodKind, i64),
    /// One day of the period that contains the base date, shifted by so many periods: `last_day_of_month(-1)`,
    /// `monday(-1)`.
    Day(NamedDay, i64),
    /// All days of the week or month that contains the base date, shifted by so many: `days_of_month(-1)`.
    DaysOf(DaySpan, i64),
    /// The days from the first of the week or month to the base date: `month_to_date`.
    ToDate(DaySpan),
    /// All months of the base batch's period: `months`.
    Months,
    /// All periods of the first kind within the period of the second kind that contains the base batch:
    /// `months_of_quarter`, `months_of_year`, `quarters_of_year`.
    Of(PeriodKind, PeriodKind),
    /// The newest existing number that is not after the base batch: `latest`.
    Latest,
}

/// The forms without an argument.
const WORDS: [(&str, BatchExpr); 10] = [
    ("same", BatchExpr::Same),
    ("prev", BatchExpr::Shift(-1)),
    ("next", BatchExpr::Shift(1)),
    ("months", BatchExpr::Months),
    ("months_of_quarter", BatchExpr::Of(PeriodKind::Month, PeriodKind::Quarter)),
    ("months_of_year", BatchExpr::Of(PeriodKind::Month, PeriodKind::Year)),
    ("quarters_of_year", BatchExpr::Of(PeriodKind::Quarter, PeriodKind::Year)),
    ("week_to_date", BatchExpr::ToDate(DaySpan::Week)),
    ("month_to_date", BatchExpr::ToDate(DaySpan::Month)),
    ("latest", BatchExpr::Latest),
];

/// A form with an argument in parentheses, counted from the base date.
#[derive(Clone, Copy)]
enum CountedForm {
    Period(PeriodKind),
    Day(NamedDay),
    DaysOf(DaySpan),
}

impl CountedForm {
    fn parse(word: &str) -> Option<Self> {
        let periods = PeriodKind::ALL.into_iter().map(Self::Period);
        let days = NamedDay::ALL.into_iter().map(Self::Day);
        let spans = DaySpan::ALL.into_iter().map(Self::DaysOf);
        let mut forms = periods.chain(days).chain(spans);
        forms.find(|form| form.to_string().eq_ignore_ascii_case(word))
    }

    /// The unit that the argument counts.
    fn unit_name(self) -> &'static str {
        match self {
            Self::Period(kind) => kind.as_str(),
            Self::Day(day) => day.unit_name(),
            Self::DaysOf(span) => span.as_str(),
        }
    }

    fn with_count(self, n: i64) -> BatchExpr {
        match self {
            Self::Period(kind) => BatchExpr::Period(kind, n),
            Self::Day(day) => BatchExpr::Day(day, n),
            Self::DaysOf(span) => BatchExpr::DaysOf(span, n),
        }
    }
}

impl fmt::Display for CountedForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Period(kind) => write!(f, "{kind}"),
            Self::Day(day) => write!(f, "{day}"),
            Self::DaysOf(span) => write!(f, "days_of_{}", span.as_str()),
        }
    }
}

/// The batch numbers that an expression gives relative to another batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RelativeBatch {
    /// These numbers.
    These(Vec<BatchNo>),
    /// The newest existing number that is not after this one (see `latest_up_to`).
    LatestUpTo(BatchNo),
}

/// Why an expression is invalid or gives no number here; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchExprError {
    /// Not one of the forms.
    #[error("'{0}' is not a batch number and not an expression for one; write {FORMS}")]
    Unknown(String),
    /// The argument is not a whole number in range.
    #[error("'{text}': {n} must be a whole number from {min} to 100000, as in {example}")]
    BadCount {
        text: String,
        /// The text between the parentheses.
        n: String,
        /// Minimum.
        min: i64,
        /// A valid example.
        example: String,
    },
    /// A form that needs an argument.
    #[error(
        "'{word}' wants a number; write {word}(0) for the {unit} itself, {word}(-1) for the one before"
    )]
    NoCount {
        word: String,
        /// The unit that the argument counts.
        unit: &'static str,
    },
    /// An expression relative to another batch, used where only a date is known.
    #[error(
        "{0} is counted from another batch, and here is only a day; write day(n), month(n), \
         quarter(n) or year(n), or the batch number itself"
    )]
    NeedsBatch(BatchExpr),
    /// The base batch number is free text.
    #[error("{expr} of batch {base}: free text has no {missing}; {cure}")]
    FreeText {
        expr: BatchExpr,
        /// The base batch.
        base: BatchNo,
        /// What the base lacks.
        missing: &'static str,
        /// The hint.
        cure: &'static str,
    },
    /// The requested period is longer than the one that should contain it.
    #[error("{expr} of batch {base}: a {kind} does not lie in one {within}; write months")]
    TooLong {
        expr: BatchExpr,
        /// The base batch.
        base: BatchNo,
        /// Kind of the base's period.
        kind: PeriodKind,
        /// The kind that would have to contain it.
        within: PeriodKind,
    },
    /// The result is outside the years 1 to 9999.
    #[error("{0} lies outside the years 1 to 9999; use a smaller number")]
    OutOfTime(BatchExpr),
    /// Several numbers, or `latest`, where exactly one number is needed.
    #[error("{0} does not give one batch number; write same, prev(n), next(n) or month(n)")]
    NotOne(BatchExpr),
    /// Several days, where exactly one number is needed.
    #[error(
        "{0} gives several batch numbers, and here one is needed; write day(n), first_day_of_month(n), \
         last_day_of_month(n) or monday(n)"
    )]
    SeveralDays(BatchExpr),
}

impl BatchExpr {
    /// Parses an expression. The name of a form is never free text: a batch cannot be called `prev`.
    pub fn parse(text: &str) -> Result<Self, BatchExprError> {
        let text = text.trim();
        let unknown = || BatchExprError::Unknown(shown(text));
        if let Some((_, expr)) = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
            return Ok(expr.clone());
        }
        if let Some(form) = CountedForm::parse(text) {
            return Err(BatchExprError::NoCount { word: form.to_string(), unit: form.unit_name() });
        }
        let Some((word, rest)) = text.split_once('(') else {
            return BatchNo::parse(text).map(Self::Literal).map_err(|_| unknown());
        };
        let n = rest.strip_suffix(')').ok_or_else(unknown)?.trim();
        let word = word.trim().to_ascii_lowercase();
        if let Some(form) = CountedForm::parse(&word) {
            return Ok(form.with_count(count(text, n, -SHIFT_MAX, &format!("{form}(-1)"))?));
        }
        match word.as_str() {
            "prev" => Ok(Self::Shift(-count(text, n, 1, "prev(2)")?)),
            "next" => Ok(Self::Shift(count(text, n, 1, "next(2)")?)),
            _ => Err(unknown()),
        }
    }

    /// The batch number for a date, as a schedule or a user uses it. Forms relative to another batch are errors here.
    pub fn batch_no_on(&self, date: NaiveDate) -> Result<BatchNo, BatchExprError> {
        match self {
            Self::DaysOf(..) | Self::ToDate(_) => Err(BatchExprError::SeveralDays(self.clone())),
            Self::Literal(_)
            | Self::Same
            | Self::Shift(_)
            | Self::Period(..)
            | Self::Day(..)
            | Self::Months
            | Self::Of(..)
            | Self::Latest => Ok(self.all_at(date)?.remove(0)),
        }
    }

    /// All batch numbers for a date, at least one.
    pub fn all_at(&self, date: NaiveDate) -> Result<Vec<BatchNo>, BatchExprError> {
        let out_of_time = || BatchExprError::OutOfTime(self.clone());
        let days = |days: Option<Vec<NaiveDate>>| {
            let number = |day| Some(Period::containing(PeriodKind::Day, day)?.batch_no());
            days.and_then(|days| days.into_iter().map(number).collect::<Option<Vec<_>>>())
                .ok_or_else(out_of_time)
        };
        match self {
            Self::Literal(no) => Ok(vec![no.clone()]),
            Self::Period(kind, n) => {
                let period = Period::containing(*kind, date).and_then(|period| period.shift(*n));
                Ok(vec![period.ok_or_else(out_of_time)?.batch_no()])
            }
            Self::Day(day, n) => days(day.date_at_offset(date, *n).map(|day| vec![day])),
            Self::DaysOf(span, n) => days(span.days_at_offset(date, *n)),
            Self::ToDate(span) => days(span.days_to_date(date)),
            Self::Same | Self::Shift(_) | Self::Months | Self::Of(..) | Self::Latest => {
                Err(BatchExprError::NeedsBatch(self.clone()))
            }
        }
    }

    /// The batch numbers relative to the batch `base`, as a dependency uses them. The base date of `month(n)` and
    /// similar forms is the business date, else the last day of the base's period.
    pub fn from(
        &self,
        base: &BatchNo,
        business_date: Option<NaiveDate>,
    ) -> Result<RelativeBatch, BatchExprError> {
        let free_text = |missing, cure| {
            let (expr, base) = (self.clone(), base.clone());
            move || BatchExprError::FreeText { expr, base, missing, cure }
        };
        let period = || {
            let cure = "use a number such as 202407 or 2024Q3, or name the batches one by one";
            Period::of_batch(base, business_date).ok_or_else(free_text("period", cure))
        };
        Ok(RelativeBatch::These(match self {
            Self::Literal(no) => vec![no.clone()],
            Self::Same => vec![base.clone()],
            Self::Latest => return Ok(RelativeBatch::LatestUpTo(base.clone())),
            Self::Shift(n) => {
                let shifted = period()?.shift(*n);
                vec![shifted.ok_or_else(|| BatchExprError::OutOfTime(self.clone()))?.batch_no()]
            }
            Self::Period(..) | Self::Day(..) | Self::DaysOf(..) | Self::ToDate(_) => {
                let cure = "give the batch a business date (--business-date YYYY-MM-DD)";
                let implied = || Period::from_batch_no(base).map(Period::last_day);
                let date = business_date.or_else(implied).ok_or_else(free_text("date", cure))?;
                self.all_at(date)?
            }
            Self::Months => period()?.months().into_iter().map(Period::batch_no).collect(),
            Self::Of(part, whole) => self.parts(base, period()?, *part, *whole)?,
        }))
    }

    /// All periods of kind `part` within the longer period that contains `own`, the period of `base`.
    fn parts(
        &self,
        base: &BatchNo,
        own: Period,
        part: PeriodKind,
        within: PeriodKind,
    ) -> Result<Vec<BatchNo>, BatchExprError> {
        if own.kind() > within {
            let (expr, base, kind) = (self.clone(), base.clone(), own.kind());
            return Err(BatchExprError::TooLong { expr, base, kind, within });
        }
        let whole = Period::containing(within, own.first_day());
        let parts = whole.map(|whole| whole.split(part)).unwrap_or_default();
        Ok(parts.into_iter().map(Period::batch_no).collect())
    }

    /// The only batch number relative to the batch `base`; an error if there are several.
    pub fn one_from(
        &self,
        base: &BatchNo,
        business_date: Option<NaiveDate>,
    ) -> Result<BatchNo, BatchExprError> {
        match self.from(base, business_date)? {
            RelativeBatch::These(mut one) if one.len() == 1 && self.gives_one() => {
                Ok(one.remove(0))
            }
            RelativeBatch::These(_) | RelativeBatch::LatestUpTo(_) => {
                Err(BatchExprError::NotOne(self.clone()))
            }
        }
    }

    /// Whether the expression always gives exactly one number.
    pub fn gives_one(&self) -> bool {
        match self {
            Self::Literal(_) | Self::Same | Self::Shift(_) | Self::Period(..) | Self::Day(..) => {
                true
            }
            Self::DaysOf(..) | Self::ToDate(_) | Self::Months | Self::Of(..) | Self::Latest => {
                false
            }
        }
    }

    /// The kind of period that the numbers name, for a base batch of kind `own`; `None` if it cannot be known.
    pub fn number_kind(&self, own: Option<PeriodKind>) -> Option<PeriodKind> {
        match self {
            Self::Literal(no) => Period::from_batch_no(no).map(Period::kind),
            Self::Same | Self::Shift(_) | Self::Latest => own,
            Self::Period(kind, _) => Some(*kind),
            Self::Day(..) | Self::DaysOf(..) | Self::ToDate(_) => Some(PeriodKind::Day),
            Self::Months => Some(PeriodKind::Month),
            Self::Of(part, _) => Some(*part),
        }
    }
}

fn count(text: &str, n: &str, min: i64, example: &str) -> Result<i64, BatchExprError> {
    let number = n.parse::<i64>().ok().filter(|number| (min..=SHIFT_MAX).contains(number));
    number.ok_or_else(|| BatchExprError::BadCount {
        text: shown(text),
        n: if n.is_empty() { "what stands in the parentheses".to_owned() } else { shown(n) },
        min,
        example: example.to_owned(),
    })
}

fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

impl fmt::Display for BatchExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(no) => fmt::Display::fmt(no, f),
            Self::Same => f.pad("same"),
            Self::Shift(-1) => f.pad("prev"),
            Self::Shift(1) => f.pad("next"),
            Self::Shift(n) if *n < 0 => f.pad(&format!("prev({})", n.unsigned_abs())),
            Self::Shift(n) => f.pad(&format!("next({n})")),
            Self::Period(kind, n) => f.pad(&format!("{kind}({n})")),
            Self::Day(day, n) => f.pad(&format!("{day}({n})")),
            Self::DaysOf(span, n) => f.pad(&format!("days_of_{}({n})", span.as_str())),
            Self::ToDate(span) => f.pad(&format!("{}_to_date", span.as_str())),
            Self::Months => f.pad("months"),
            Self::Of(part, whole) => f.pad(&format!("{part}s_of_{whole}")),
            Self::Latest => f.pad("latest"),
        }
    }
}

impl FromStr for BatchExpr {
    type Err = BatchExprError;
    fn from_str(text: &str) -> Result<Self, BatchExprError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for BatchExpr {
    type Error = BatchExprError;
    fn try_from(text: String) -> Result<Self, BatchExprError> {
        Self::parse(&text)
    }
}

impl From<BatchExpr> for String {
    fn from(expr: BatchExpr) -> String {
        expr.to_string()
    }
}
