//! What may stand between `${` and `}` in the value of a parameter: one closed set of names and date
//! functions. No template engine: no conditions, no loops, and what comes out is not looked at again.

mod date;

pub use date::CalendarQuestion;

use crate::domain::batch_no::BatchExpr;
use crate::domain::calendar::Shift;
use crate::domain::id::{CalendarCode, JobCode};

/// Every form, for messages.
pub const FORMS: &str = "${batch_no}, ${batch(-1)}, ${group}, ${job_code}, ${item}, ${idem_key}, ${attempt}, \
     ${business_date}, ${first_day}, ${last_day}, ${add_days(DATE, n)}, ${add_months(DATE, n)}, \
     ${add_workdays(DATE, n)}, ${workday(DATE, next)}, ${nth_workday(-1)}, ${format(DATE, %Y%m%d)}, ${params.NAME}, ${jobs.CODE.NAME} or ${secret.NAME}";

/// Deepest nesting of date functions.
const DEPTH_MAX: usize = 8;
/// Farthest shift; 100,000 days are 273 years.
const SHIFT_MAX: i64 = 100_000;
/// Farthest shift in working days, two years: a batch keeps no more of its calendars.
const WORKDAYS_MAX: i64 = 500;

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
    /// `add_workdays(DATE, n)`, `add_workdays(DATE, n, cn)`: the n-th working day after or before.
    AddWorkdays(Box<DateExpr>, i64, Option<CalendarCode>),
    /// `workday(DATE, next)`: the date if it is a working day, else the next one or the previous one.
    Workday(Box<DateExpr>, Shift, Option<CalendarCode>),
    /// `nth_workday(-1)`: the n-th working day of the batch's period, from its end when negative.
    NthWorkday(i32, Option<CalendarCode>),
}

/// How a date is written: literal characters and `%Y %y %m %d %j %q %%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateFormat(String);

/// A piece of a parameter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamPiece {
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
pub fn pieces(text: &str) -> Result<Vec<ParamPiece>, BadReference> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if start > 0 {
            found.push(ParamPiece::Text(rest[..start].to_owned()));
        }
        let after = &rest[start + 2..];
        let end = after.find('}').ok_or(BadReference::Unclosed)?;
        let name = after[..end].trim();
        found.push(ParamPiece::Name(name.to_owned(), reference(name)?));
        rest = &after[end + 1..];
    }
    if !rest.is_empty() {
        found.push(ParamPiece::Text(rest.to_owned()));
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
    let at = comma_places(text).pop()?;
    Some((text[..at].trim(), text[at + 1..].trim()))
}

/// The parts between commas outside parentheses.
fn commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for at in comma_places(text) {
        parts.push(text[from..at].trim());
        from = at + 1;
    }
    parts.push(text[from..].trim());
    parts
}

fn comma_places(text: &str) -> Vec<usize> {
    let mut depth = 0usize;
    let mut found = Vec::new();
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => found.push(i),
            _ => {}
        }
    }
    found
}

fn whole(name: &str, text: &str) -> Result<i64, BadReference> {
    up_to(name, text, SHIFT_MAX)
}

fn up_to(name: &str, text: &str, max: i64) -> Result<i64, BadReference> {
    let number = text.parse::<i64>().ok().filter(|n| (-max..=max).contains(n));
    number
        .ok_or_else(|| wrong(name, format!("{text:?} must be a whole number from -{max} to {max}")))
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
                "{text:?} is no date; use business_date, first_day, last_day, add_days(…), add_months(…), \
                 add_workdays(…), workday(…) or nth_workday(…)"
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
        "add_workdays" | "workday" | "nth_workday" => working(name, word, inner, depth),
        _ => Err(unknown()),
    }
}

/// The functions that ask a calendar; its code may be their last part.
fn working(name: &str, word: &str, inner: &str, depth: usize) -> Result<DateExpr, BadReference> {
    let parts = commas(inner);
    let calendar =
        |text: &&str| CalendarCode::parse(text).map_err(|error| wrong(name, error.to_string()));
    match (word, &parts[..]) {
        ("add_workdays", [date, n, rest @ ..]) if rest.len() <= 1 => {
            let (date, n) = (date_expr(name, date, depth + 1)?, up_to(name, n, WORKDAYS_MAX)?);
            Ok(DateExpr::AddWorkdays(Box::new(date), n, rest.first().map(calendar).transpose()?))
        }
        ("workday", [date, way, rest @ ..]) if rest.len() <= 1 => {
            let shift = match *way {
                "next" => Shift::Next,
                "previous" => Shift::Previous,
                other => {
                    let said = format!("{other:?} is no direction; write next or previous");
                    return Err(wrong(name, said));
                }
            };
            let date = Box::new(date_expr(name, date, depth + 1)?);
            Ok(DateExpr::Workday(date, shift, rest.first().map(calendar).transpose()?))
        }
        ("nth_workday", [n, rest @ ..]) if rest.len() <= 1 => {
            let n = up_to(name, n, WORKDAYS_MAX)?;
            let n = i32::try_from(n).ok().filter(|n| *n != 0);
            let n =
                n.ok_or_else(|| wrong(name, "count from 1 (the first) or from -1 (the last)"))?;
            Ok(DateExpr::NthWorkday(n, rest.first().map(calendar).transpose()?))
        }
        _ => Err(wrong(
            name,
            "write add_workdays(DATE, 3), workday(DATE, next) or nth_workday(-1); a calendar may \
             follow: add_workdays(DATE, 3, cn)",
        )),
    }
}

#[cfg(test)]
mod tests;
