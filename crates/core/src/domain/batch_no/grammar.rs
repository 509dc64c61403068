//! Decides which batch numbers a group accepts. The type of the group decides, so that a typing error cannot post to a
//! wrong period.

use super::{Period, PeriodKind};
use crate::domain::id::BatchNo;
use chrono::NaiveDate;
use std::fmt;

/// Separators between a period and the name of a repeated run: `202407-rerun2`.
const SEPARATORS: [char; 3] = ['-', '.', '_'];

/// Group types whose batches name periods.
const PERIOD_TYPES: [(&str, PeriodKind); 4] = [
    ("daily", PeriodKind::Day),
    ("monthly", PeriodKind::Month),
    ("quarterly", PeriodKind::Quarter),
    ("yearly", PeriodKind::Year),
];

/// The batch numbers that a group accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberGrammar {
    /// Any text.
    Free,
    /// Periods of one kind, and repeated runs of them.
    Period(PeriodKind),
}

/// Why a group does not accept a batch number; `Display` is the middle of a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberMismatch {
    pub batch_no: BatchNo,
    /// The kind of period that the number should name.
    pub kind: PeriodKind,
}

impl NumberGrammar {
    /// The grammar for the type of a group. The case of a stored type is ignored.
    pub fn of_type(batch_type: Option<&str>) -> Self {
        let fits = |(word, _): &&(&str, PeriodKind)| {
            batch_type.is_some_and(|ty| ty.eq_ignore_ascii_case(word))
        };
        PERIOD_TYPES.iter().find(fits).map_or(Self::Free, |(_, kind)| Self::Period(*kind))
    }

    /// Every group type with a grammar, for suggestions after a typing error.
    pub fn type_words() -> impl Iterator<Item = &'static str> {
        PERIOD_TYPES.iter().map(|(word, _)| *word)
    }

    /// The kind of period that the numbers name.
    pub fn kind(self) -> Option<PeriodKind> {
        match self {
            Self::Free => None,
            Self::Period(kind) => Some(kind),
        }
    }

    /// Rejects a number that does not name a period of the right kind.
    pub fn check(self, batch_no: &BatchNo) -> Result<(), NumberMismatch> {
        match self {
            Self::Period(kind) if self.period(batch_no).is_none() => {
                Err(NumberMismatch { batch_no: batch_no.clone(), kind })
            }
            Self::Period(_) | Self::Free => Ok(()),
        }
    }

    /// The period that a number, or the number of a repeated run, names in a group with this grammar.
    pub fn period(self, batch_no: &BatchNo) -> Option<Period> {
        let named = Period::from_batch_no(batch_no).or_else(|| Period::of_repeat(batch_no));
        named.filter(|period| self.kind().is_none_or(|kind| kind == period.kind()))
    }
}

impl Period {
    /// The period of a repeated run: the number of a period, one of `-._`, and a name that begins with a letter
    /// (`202407-rerun2`); after a day, any name (`20240731-1430`). `2024-07`, `2024-Q3` and `202407-31` are not
    /// repeated runs, because the second part may be meant as a period.
    fn of_repeat(batch_no: &BatchNo) -> Option<Self> {
        let (number, name) = batch_no.as_str().split_once(SEPARATORS)?;
        let period = Self::from_batch_no(&BatchNo::parse(number).ok()?)?;
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
        let fits = match period.kind {
            PeriodKind::Day => !name.is_empty(),
            PeriodKind::Month | PeriodKind::Quarter | PeriodKind::Year => begins,
        };
        let other = BatchNo::parse(&squeezed(batch_no.as_str())).ok()?;
        (fits && Self::from_batch_no(&other).is_none()).then_some(period)
    }

    /// The period of a batch: the period of its number, or of a repeated run whose business date lies in it. Free text
    /// in a group without a grammar is therefore never mistaken for a period.
    pub fn of_batch(batch_no: &BatchNo, business_date: Option<NaiveDate>) -> Option<Self> {
        let holds = |period: &Self| {
            business_date.is_some_and(|day| (period.first..=period.last_day()).contains(&day))
        };
        Self::from_batch_no(batch_no).or_else(|| Self::of_repeat(batch_no).filter(holds))
    }
}

/// The number without separators, and with two-digit months: `2024-7` becomes `202407`.
fn squeezed(text: &str) -> String {
    let parts = text.split(SEPARATORS).map(|part| match part.as_bytes() {
        [digit] if digit.is_ascii_digit() => format!("0{part}"),
        _ => part.to_ascii_uppercase(),
    });
    parts.collect()
}

impl NumberMismatch {
    /// A suggestion of the intended number.
    fn hint_text(&self) -> String {
        let kind = self.kind;
        let text = squeezed(self.batch_no.as_str());
        let meant = BatchNo::parse(&text).ok().as_ref().and_then(Period::from_batch_no);
        if let Some(meant) = meant {
            let fitting = meant.split(kind);
            return match &fitting[..] {
                [one] => format!("did you mean {}?", one.batch_no()),
                [first, .., last] => {
                    format!("write one of {} to {}", first.batch_no(), last.batch_no())
                }
                [] => self.example(),
            };
        }
        let year = text.get(..4).and_then(|year| BatchNo::parse(year).ok());
        match year.as_ref().and_then(Period::from_batch_no).map(|year| year.split(kind)).as_deref()
        {
            Some([first, .., last]) => {
                format!("write one of {} to {}", first.batch_no(), last.batch_no())
            }
            Some([one]) => format!("did you mean {}?", one.batch_no()),
            Some([]) | None => self.example(),
        }
    }

    fn example(&self) -> String {
        let example = match self.kind {
            PeriodKind::Day => "20240731",
            PeriodKind::Month => "202407",
            PeriodKind::Quarter => "2024Q3",
            PeriodKind::Year => "2024",
        };
        format!("write it as in {example}")
    }
}

impl fmt::Display for NumberMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not the number of a {}; {}", self.batch_no, self.kind, self.hint_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no(text: &str) -> BatchNo {
        BatchNo::parse(text).expect(text)
    }

    #[test]
    fn the_type_decides_which_numbers_a_group_takes() {
        for (ty, taken, refused) in [
            (
                "daily",
                &["20240731", "20240731-1430", "20240731.b"][..],
                &["202407", "2024-07-31", "20240732"][..],
            ),
            (
                "monthly",
                &["202407", "202407-rerun2", "202407_east", "202407.B"],
                &[
                    "202413",
                    "2024-07",
                    "2024-13",
                    "202407-31",
                    "202407-2",
                    "20240731",
                    "2024Q3",
                    "2024",
                    "202407-",
                    "x",
                ],
            ),
            ("quarterly", &["2024Q3", "2024Q3-fix"], &["2024q3", "2024Q5", "202407", "2024-Q3"]),
            ("yearly", &["2024", "2024-audit"], &["2024-07", "2024-Q3", "2024-13", "24", "202407"]),
            ("Monthly", &["202407"], &["202413"]),
            ("demo", &["202413", "2024-07", "x"], &[]),
        ] {
            let grammar = NumberGrammar::of_type(Some(ty));
            taken
                .iter()
                .for_each(|text| assert_eq!(grammar.check(&no(text)), Ok(()), "{ty} {text}"));
            let is_refused =
                |text: &&str| assert!(grammar.check(&no(text)).is_err(), "{ty} {text}");
            refused.iter().for_each(is_refused);
        }
        assert_eq!(NumberGrammar::of_type(None).check(&no("202413")), Ok(()));
    }

    #[test]
    fn a_refused_number_comes_with_what_was_meant() {
        for (ty, text, said) in [
            ("monthly", "2024-07", "2024-07 is not the number of a month; did you mean 202407?"),
            ("monthly", "2024-7", "did you mean 202407?"),
            ("monthly", "202413", "write one of 202401 to 202412"),
            ("monthly", "2024-13", "write one of 202401 to 202412"),
            ("monthly", "20240731", "did you mean 202407?"),
            ("monthly", "2024Q3", "write one of 202407 to 202409"),
            ("monthly", "2024", "write one of 202401 to 202412"),
            ("monthly", "close", "write it as in 202407"),
            ("quarterly", "2024q3", "did you mean 2024Q3?"),
            ("quarterly", "202407", "did you mean 2024Q3?"),
            ("quarterly", "2024Q5", "write one of 2024Q1 to 2024Q4"),
            ("yearly", "2024-13", "did you mean 2024?"),
            ("yearly", "202407", "did you mean 2024?"),
            ("daily", "2024-07-31", "did you mean 20240731?"),
            ("daily", "202402", "write one of 20240201 to 20240229"),
        ] {
            let error = NumberGrammar::of_type(Some(ty)).check(&no(text)).expect_err(text);
            assert!(error.to_string().ends_with(said), "{ty} {text}: {error}");
        }
    }

    #[test]
    fn a_repeated_run_has_the_period_of_its_business_date_alone() {
        let day = |text: &str| text.parse().ok();
        let july = Period::from_batch_no(&no("202407"));
        assert_eq!(Period::of_batch(&no("202407-rerun2"), day("2024-07-31")), july);
        assert_eq!(Period::of_batch(&no("202407-rerun2"), day("2024-08-31")), None);
        assert_eq!(Period::of_batch(&no("202407-rerun2"), None), None);
        assert_eq!(Period::of_batch(&no("202407"), day("2024-08-31")), july);
    }
}
