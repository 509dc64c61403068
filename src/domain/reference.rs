//! What may stand between `${` and `}` in the value of a parameter: one closed set of names and date
//! functions. No template engine: no conditions, no loops, and what comes out is not looked at again.

use crate::domain::batch_no::{BatchExpr, Period, shift_days, shift_months};
use crate::domain::id::{BatchNo, JobCode};
use chrono::{Datelike as _, NaiveDate};

/// Every form, for messages.
pub const FORMS: &str = "${batch_no}, ${batch(-1)}, ${group}, ${job_code}, ${item}, ${idem_key}, ${attempt}, \
     ${business_date}, ${first_day}, ${last_day}, ${add_days(DATE, n)}, ${add_months(DATE, n)}, \
     ${format(DATE, %Y%m%d)}, ${params.NAME}, ${jobs.CODE.NAME} or ${secret.NAME}";

/// Deepest nesting of date functions.
const DEPTH_MAX: usize = 8;
/// Farthest shift; 100,000 days are 273 years.
const SHIFT_MAX: i64 = 100_000;

/// A name between `${` and `}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// `batch_no`
    BatchNo,
    /// `batch(-1)`: the batch number so many places later, or any expression that gives one.
    Batch(BatchExpr),
    /// `group`
    Group,
    /// `job_code`
    JobCode,
    /// `item`: what a fan-out made the job for.
    Item,
    /// `idem_key`: the idempotency key, the same for every try of a run.
    IdemKey,
    /// `attempt`: which start of its row a try is, counted from 1.
    Attempt,
    /// `business_date`, `first_day(-1)`, `add_months(last_day, 1)`
    Date(DateExpr),
    /// `format(last_day, %Y%m%d)`
    Format(DateExpr, DateFormat),
    /// `params.NAME`
    Param(String),
    /// `jobs.CODE.NAME`: an output of a job above this one.
    Output(JobCode, String),
    /// `secret.NAME`
    Secret(String),
}

/// A date of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DateExpr {
    /// `business_date`
    BusinessDate,
    /// `first_day`, `first_day(n)`: of the batch's period, n places later.
    First(i64),
    /// `last_day`, `last_day(n)`
    Last(i64),
    /// `add_days(DATE, n)`
    AddDays(Box<DateExpr>, i64),
    /// `add_months(DATE, n)`: the same day of the month, or the last one of a shorter month.
    AddMonths(Box<DateExpr>, i64),
}

/// How a date is written: literal characters and `%Y %y %m %d %j %q %%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateFormat(String);

/// A piece of a parameter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it stands.
    Text(String),
    /// A reference, and how it was written.
    Name(String, Reference),
}

/// Why a value cannot be taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadReference {
    /// `${` without `}`.
    Unclosed,
    /// Not in the closed set.
    Unknown(String),
    /// A known function with something wrong in it: the text, what is wrong, and what to do.
    Wrong(String, String),
}

/// Takes a value apart.
pub fn pieces(text: &str) -> Result<Vec<Piece>, BadReference> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if start > 0 {
            found.push(Piece::Text(rest[..start].to_owned()));
        }
        let after = &rest[start + 2..];
        let end = after.find('}').ok_or(BadReference::Unclosed)?;
        let name = after[..end].trim();
        found.push(Piece::Name(name.to_owned(), reference(name)?));
        rest = &after[end + 1..];
    }
    if !rest.is_empty() {
        found.push(Piece::Text(rest.to_owned()));
    }
    Ok(found)
}

fn reference(name: &str) -> Result<Reference, BadReference> {
    let unknown = || BadReference::Unknown(name.to_owned());
    match name {
        "batch_no" => return Ok(Reference::BatchNo),
        "group" => return Ok(Reference::Group),
        "job_code" => return Ok(Reference::JobCode),
        "item" => return Ok(Reference::Item),
        "idem_key" => return Ok(Reference::IdemKey),
        "attempt" => return Ok(Reference::Attempt),
        _ => {}
    }
    let some = |key: &&str| !key.is_empty();
    if let Some(key) = name.strip_prefix("params.").filter(some) {
        return Ok(Reference::Param(key.to_owned()));
    }
    if let Some(key) = name.strip_prefix("secret.").filter(some) {
        return Ok(Reference::Secret(key.to_owned()));
    }
    if let Some(rest) = name.strip_prefix("jobs.") {
        // A job code may hold dots itself, an output's name may not.
        let (code, output) = rest.rsplit_once('.').ok_or_else(unknown)?;
        let code = JobCode::parse(code).map_err(|_| unknown())?;
        return Ok(Reference::Output(code, output.to_owned()));
    }
    match call(name) {
        Some(("batch", inner)) => batch(name, inner),
        Some(("format", inner)) => {
            let wrong = || wrong(name, "format wants a date and a pattern: format(last_day, %Y%m)");
            let (date, pattern) = last_comma(inner).ok_or_else(wrong)?;
            Ok(Reference::Format(date_expr(name, date, 0)?, DateFormat::parse(name, pattern)?))
        }
        Some(_) | None => date_expr(name, name, 0).map(Reference::Date),
    }
}

fn wrong(name: &str, said: impl Into<String>) -> BadReference {
    BadReference::Wrong(name.to_owned(), said.into())
}

/// `word(inner)`
fn call(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.split_once('(')?;
    Some((word.trim(), rest.strip_suffix(')')?.trim()))
}

/// The parts before and after the last comma outside parentheses.
fn last_comma(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    let mut at = None;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => at = Some(i),
            _ => {}
        }
    }
    at.map(|at| (text[..at].trim(), text[at + 1..].trim()))
}

fn whole(name: &str, text: &str) -> Result<i64, BadReference> {
    let number = text.parse::<i64>().ok().filter(|n| (-SHIFT_MAX..=SHIFT_MAX).contains(n));
    number.ok_or_else(|| {
        wrong(name, format!("{text:?} must be a whole number from -{SHIFT_MAX} to {SHIFT_MAX}"))
    })
}

fn batch(name: &str, inner: &str) -> Result<Reference, BadReference> {
    if inner.parse::<i64>().is_ok() {
        return Ok(Reference::Batch(BatchExpr::Shift(whole(name, inner)?)));
    }
    let expr = BatchExpr::parse(inner).map_err(|error| wrong(name, error.to_string()))?;
    if !expr.gives_one() {
        return Err(wrong(name, format!("{expr} does not give one batch number; write batch(-1)")));
    }
    Ok(Reference::Batch(expr))
}

fn date_expr(name: &str, text: &str, depth: usize) -> Result<DateExpr, BadReference> {
    if depth > DEPTH_MAX {
        return Err(wrong(name, format!("more than {DEPTH_MAX} functions within each other")));
    }
    match text {
        "business_date" => return Ok(DateExpr::BusinessDate),
        "first_day" => return Ok(DateExpr::First(0)),
        "last_day" => return Ok(DateExpr::Last(0)),
        _ => {}
    }
    let unknown = || match depth {
        0 => BadReference::Unknown(name.to_owned()),
        _ => wrong(
            name,
            format!(
                "{text:?} is no date; use business_date, first_day, last_day, add_days(…) or add_months(…)"
            ),
        ),
    };
    let (word, inner) = call(text).ok_or_else(unknown)?;
    let added = || {
        let said = format!("{word} wants a date and a number: {word}(business_date, -1)");
        let (date, n) = last_comma(inner).ok_or_else(|| wrong(name, said))?;
        Ok((Box::new(date_expr(name, date, depth + 1)?), whole(name, n)?))
    };
    match word {
        "first_day" => Ok(DateExpr::First(whole(name, inner)?)),
        "last_day" => Ok(DateExpr::Last(whole(name, inner)?)),
        "add_days" => added().map(|(date, n)| DateExpr::AddDays(date, n)),
        "add_months" => added().map(|(date, n)| DateExpr::AddMonths(date, n)),
        _ => Err(unknown()),
    }
}

impl DateExpr {
    /// The date in a batch, or what to do when there is none.
    pub fn of(
        &self,
        batch_no: &BatchNo,
        business_date: Option<NaiveDate>,
    ) -> Result<NaiveDate, String> {
        let period = |n: i64| {
            let own = Period::of(batch_no).ok_or_else(|| {
                format!(
                    "batch number {batch_no} is free text and names no period; use business_date \
                     instead, or a number such as 202407"
                )
            })?;
            own.shift(n).ok_or_else(|| out_of_time(n))
        };
        match self {
            Self::BusinessDate => business_date.ok_or_else(|| {
                "give the batch a business date (--business-date YYYY-MM-DD)".to_owned()
            }),
            Self::First(n) => period(*n).map(Period::first_day),
            Self::Last(n) => period(*n).map(Period::last_day),
            Self::AddDays(date, n) => within(shift_days(date.of(batch_no, business_date)?, *n), *n),
            Self::AddMonths(date, n) => {
                within(shift_months(date.of(batch_no, business_date)?, *n), *n)
            }
        }
    }
}

/// Dates keep to the years that four digits write.
fn within(date: Option<NaiveDate>, n: i64) -> Result<NaiveDate, String> {
    date.filter(|date| (1..=9999).contains(&date.year())).ok_or_else(|| out_of_time(n))
}

fn out_of_time(n: i64) -> String {
    format!("{n} leads out of the years 1 to 9999; use a smaller number")
}

impl DateFormat {
    fn parse(name: &str, pattern: &str) -> Result<Self, BadReference> {
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

    /// The date in this form.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str) -> Reference {
        match &pieces(&format!("${{{text}}}")).expect(text)[..] {
            [Piece::Name(_, reference)] => reference.clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn date(text: &str, no: &str, day: Option<&str>) -> Result<String, String> {
        let no = BatchNo::parse(no).expect("no");
        let day = day.map(|d| d.parse().expect("day"));
        match one(text) {
            Reference::Date(expr) => expr.of(&no, day).map(|d| d.to_string()),
            Reference::Format(expr, format) => expr.of(&no, day).map(|d| format.write(d)),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn dates_of_a_batch() {
        for (text, no, day, said) in [
            ("business_date", "x", Some("2024-07-15"), "2024-07-15"),
            ("first_day", "202402", None, "2024-02-01"),
            ("last_day", "202402", None, "2024-02-29"),
            ("last_day", "2024Q3", None, "2024-09-30"),
            ("first_day(-1)", "202401", None, "2023-12-01"),
            ("last_day(-1)", "202403", None, "2024-02-29"),
            ("last_day( +1 )", "2024", None, "2025-12-31"),
            ("add_days(business_date,3)", "x", Some("2024-02-28"), "2024-03-02"),
            ("add_days(last_day, -1)", "202402", None, "2024-02-28"),
            ("add_months(business_date, 1)", "x", Some("2024-01-31"), "2024-02-29"),
            ("add_months(business_date, 1)", "x", Some("2023-01-31"), "2023-02-28"),
            ("add_months(business_date, -1)", "x", Some("2024-03-31"), "2024-02-29"),
            ("add_days(add_months(first_day(-1), 1), -1)", "202403", None, "2024-02-29"),
            ("format(last_day, %Y%m%d)", "202402", None, "20240229"),
            ("format(last_day,%d/%m/%y)", "202402", None, "29/02/24"),
            (
                "format(add_days(first_day, 31), %Y-Q%q day %j 100%%)",
                "202402",
                None,
                "2024-Q1 day 063 100%",
            ),
        ] {
            assert_eq!(date(text, no, day), Ok(said.to_owned()), "{text}");
        }
    }

    #[test]
    fn names_of_the_closed_set() {
        assert_eq!(one("batch_no"), Reference::BatchNo);
        assert_eq!(one("idem_key"), Reference::IdemKey);
        assert_eq!(one(" attempt "), Reference::Attempt);
        assert_eq!(one("batch(-1)"), Reference::Batch(BatchExpr::Shift(-1)));
        assert_eq!(
            one("batch(month(-1))"),
            Reference::Batch(BatchExpr::parse("month(-1)").expect("e"))
        );
        assert_eq!(one("secret.LEDGER"), Reference::Secret("LEDGER".to_owned()));
        assert_eq!(one("params.rate"), Reference::Param("rate".to_owned()));
        let code = JobCode::parse("FX.LOAD").expect("code");
        assert_eq!(one("jobs.FX.LOAD.rows"), Reference::Output(code, "rows".to_owned()));
        assert_eq!(pieces("a ${ group }b$ {} }").expect("reads").len(), 3);
    }

    #[test]
    fn faults_say_what_is_wrong() {
        for name in
            ["env.HOME", "params.", "secret.", "jobs.A", "day", "first_day(", "now", "week(1)"]
        {
            let fault = pieces(&format!("${{{name}}}")).expect_err(name);
            assert_eq!(fault, BadReference::Unknown(name.to_owned()));
        }
        assert_eq!(pieces("x ${batch_no"), Err(BadReference::Unclosed));
        for (name, said) in [
            ("first_day(x)", "\"x\" must be a whole number from -100000 to 100000"),
            ("batch(last month)", "'last month' is not a batch number and not an expression"),
            ("batch(months)", "months does not give one batch number; write batch(-1)"),
            ("batch(100001)", "\"100001\" must be a whole number"),
            (
                "add_days(business_date)",
                "add_days wants a date and a number: add_days(business_date, -1)",
            ),
            ("add_months(business_date, one)", "\"one\" must be a whole number"),
            ("add_days(today, 1)", "\"today\" is no date; use business_date, first_day"),
            ("format(last_day)", "format wants a date and a pattern: format(last_day, %Y%m)"),
            ("format(last_day, %H)", "\"%H\" is no pattern; use %Y (2024)"),
            ("format(last_day, %Y%)", "is no pattern"),
            ("format(last_day, )", "\"\" is no pattern"),
        ] {
            let fault = pieces(&format!("${{{name}}}")).expect_err(name);
            let BadReference::Wrong(text, what) = fault else { panic!("{name}: {fault:?}") };
            assert!(text == name && what.contains(said), "{name}: {what}");
        }
        let deep = format!("{}business_date{}", "add_days(".repeat(20), ", 1)".repeat(20));
        let fault = pieces(&format!("${{{deep}}}")).expect_err("deep");
        assert!(
            matches!(fault, BadReference::Wrong(_, what) if what.contains("more than 8 functions"))
        );
        for (text, no, said) in [
            ("business_date", "x", "give the batch a business date (--business-date"),
            ("last_day", "x", "batch number x is free text and names no period"),
            ("first_day(1)", "9999", "1 leads out of the years 1 to 9999"),
            ("add_days(last_day, 1)", "9999", "1 leads out of the years"),
        ] {
            let error = date(text, no, None).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart_or_refused(text in "[a-z_(),.${}%0-9 +-]{0,60}") {
            if let Ok(pieces) = pieces(&text) {
                let names = pieces.iter().filter(|p| matches!(p, Piece::Name(..))).count();
                prop_assert_eq!(names, text.matches("${").count());
            }
        }
    }
}
