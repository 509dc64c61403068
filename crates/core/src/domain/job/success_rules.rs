//! Evaluates a body that ended by itself: success rules on its outputs, and checks on the results
//! of their queries.

use crate::domain::batch_no;
use crate::domain::id::BatchNo;
use crate::domain::job::check::{
    CheckFinding, CheckGrade, DataCheck, Expect, SuccessRule, decimal,
};
use crate::domain::job::outcome::{
    AttemptEnd, AttemptOutcome, JobOutputs, OutputValue, ResultSet, Retry,
};
use crate::domain::text::truncate_text;
use bigdecimal::{BigDecimal, RoundingMode};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Longest value quoted in a message, in bytes.
const SHOWN: usize = 80;

/// Name of a script's exit code in a rule.
pub const EXIT_CODE: &str = "exit_code";

/// The finding of a check in an earlier batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// Number of the earlier batch.
    pub batch_no: BatchNo,
    /// Its value, a decimal number.
    pub value: String,
}

/// Whether rules and checks apply to an outcome: the body ended well, or it is a script and a rule
/// mentions its exit code, which then replaces "0 is success".
pub fn is_judged(rules: &[SuccessRule], outcome: &AttemptOutcome) -> bool {
    match outcome.end {
        AttemptEnd::Success | AttemptEnd::Warning => true,
        AttemptEnd::Failed => {
            outcome.outputs.exit_code.is_some()
                && rules.iter().any(|r| r.rule.names().contains(&EXIT_CODE))
        }
        AttemptEnd::TimedOut | AttemptEnd::Killed | AttemptEnd::Returned | AttemptEnd::Unknown => {
            false
        }
    }
}

/// The finding of each rule on the outputs, keyed by the rule's text. A rule that cannot be
/// evaluated counts as broken, at least as an error, because its result is unknown.
pub fn judge(rules: &[SuccessRule], outputs: &JobOutputs) -> Vec<(String, CheckFinding)> {
    rules.iter().map(|rule| (rule.rule.to_string(), judge_one(rule, outputs))).collect()
}

fn judge_one(rule: &SuccessRule, outputs: &JobOutputs) -> CheckFinding {
    let text = rule.rule.to_string();
    let seen = |name: &str| outputs.output(name);
    let named = |name: &&str| {
        let found = outputs.look_up(name);
        let value = found.as_ref().map(|v| v.as_deref().unwrap_or("NULL"));
        format!("{name} = {}", value.map_or("(none)".to_owned(), |v| truncate_text(v, SHOWN)))
    };
    let values = rule.rule.names().iter().map(named).collect::<Vec<_>>().join(", ");
    if let Some(reason) = unusable(rule, outputs) {
        let said = format!("success rule '{text}' cannot be answered: {reason}");
        let grade = rule.grade.max(CheckGrade::Error);
        return CheckFinding { value: None, grade, ok: false, said };
    }
    let (ok, grade, what) = match rule.rule.evaluate(&seen) {
        Ok(true) => (true, rule.grade, format!("success rule '{text}' holds ({values})")),
        Ok(false) => (false, rule.grade, format!("success rule '{text}' does not hold ({values})")),
        Err(error) => {
            let what = format!("success rule '{text}' cannot be answered: {error}");
            (false, rule.grade.max(CheckGrade::Error), what)
        }
    };
    let said = match rule.message.as_ref().filter(|_| !ok) {
        Some(message) => format!("{message}: {what}"),
        None => what,
    };
    CheckFinding { value: (!values.is_empty()).then_some(values), grade, ok, said }
}

/// Why a value named by a rule cannot be used.
fn unusable(rule: &SuccessRule, outputs: &JobOutputs) -> Option<String> {
    rule.rule.names().into_iter().find_map(|name| match outputs.output(name)? {
        OutputValue::Unusable(reason) => Some(reason),
        OutputValue::Stored(reference) => Some(format!("it is {}", reference.describe())),
        OutputValue::Null | OutputValue::Text(_) | OutputValue::Typed(..) => None,
    })
}

/// The values that a check's result is compared with.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComparisonBasis<'a> {
    /// Result of the second query of `equals`.
    pub other: Option<&'a ResultSet>,
    /// Finding of the previous batch.
    pub last: Option<&'a Earlier>,
}

/// Compares the result of a check's query with the expectation.
pub fn compare(check: &DataCheck, found: &ResultSet, basis: ComparisonBasis<'_>) -> CheckFinding {
    let other = basis.other.and_then(ResultSet::unusable_first_row);
    let reason = found.unusable_first_row().or(other);
    if let Some(reason) = reason.filter(|_| !matches!(check.expect, Expect::ZeroRows)) {
        return unanswered(check, reason);
    }
    let seen = match &check.expect {
        Expect::ZeroRows => zero_rows(found),
        Expect::Between { min, max } => between(&check.expect, found, min, max),
        Expect::Equals { tolerance, .. } => {
            let nothing = ResultSet::default();
            equals(found, basis.other.unwrap_or(&nothing), tolerance.as_deref())
        }
        Expect::Drift { max_percent } => drift(found, max_percent, basis.last),
    };
    CheckFinding {
        said: format!("check '{}' found {}; expected {}", check.name, seen.found, seen.expected),
        value: seen.value,
        grade: check.grade,
        ok: seen.holds,
    }
}

/// The finding of a check whose query failed: at least an error, whatever its grade.
pub fn unanswered(check: &DataCheck, why: &str) -> CheckFinding {
    CheckFinding {
        value: None,
        grade: check.grade.max(CheckGrade::Error),
        ok: false,
        said: format!("check '{}' could not be run: {why}", check.name),
    }
}

struct ObservedOutcome {
    value: Option<String>,
    found: String,
    expected: String,
    holds: bool,
}

fn zero_rows(found: &ResultSet) -> ObservedOutcome {
    ObservedOutcome {
        value: Some(found.row_count.to_string()),
        found: rows_words(found),
        expected: Expect::ZeroRows.to_string(),
        holds: found.row_count == 0,
    }
}

fn between(
    expect: &Expect,
    found: &ResultSet,
    min: &Option<String>,
    max: &Option<String>,
) -> ObservedOutcome {
    let expected = expect.to_string();
    let (text, number) = match one_number(found) {
        Ok(one) => one,
        Err(seen) => return ObservedOutcome { expected, ..seen },
    };
    // A bound that is not a number was refused when the definition was loaded; here it would not
    // restrict anything.
    let bound = |b: &Option<String>| b.as_deref().and_then(decimal);
    let holds =
        bound(min).is_none_or(|min| number >= min) && bound(max).is_none_or(|max| number <= max);
    ObservedOutcome { found: text.clone(), value: Some(text), expected, holds }
}

/// Compares two single rows value by value: numbers as exact decimals within the tolerance,
/// everything else as text; NULL equals only NULL.
fn equals(found: &ResultSet, other: &ResultSet, tolerance: Option<&str>) -> ObservedOutcome {
    let within = tolerance.map_or(String::new(), |t| format!(" (within {t})"));
    let expected = match other.row_count {
        1 => format!("{}{within}, which the other query gave", first_row(other)),
        _ => format!("one row of the other query, which gave {}", rows_words(other)),
    };
    let tolerance = tolerance.and_then(decimal).unwrap_or_default();
    let same = |a: &Option<String>, b: &Option<String>| match (a, b) {
        (Some(a), Some(b)) => match (decimal(a), decimal(b)) {
            (Some(a), Some(b)) => (a - b).abs() <= tolerance,
            (Some(_), None) | (None, Some(_)) | (None, None) => a == b,
        },
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    let holds = match (found.rows.first(), other.rows.first()) {
        (Some(a), Some(b)) if found.row_count == 1 && other.row_count == 1 => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        _ => false,
    };
    let is_one = found.row_count == 1;
    ObservedOutcome {
        value: is_one.then(|| first_row(found)),
        found: if is_one { first_row(found) } else { rows_words(found) },
        expected,
        holds,
    }
}

/// From a previous value of 0 every change is infinite: only 0 is within any percentage of it.
fn drift(found: &ResultSet, max_percent: &str, last: Option<&Earlier>) -> ObservedOutcome {
    let expected = match last {
        Some(Earlier { batch_no, value }) => {
            format!("a value within {max_percent} % of {value}, the value of batch {batch_no}")
        }
        None => "any number (no earlier batch has one to compare with)".to_owned(),
    };
    let (text, number) = match one_number(found) {
        Ok(one) => one,
        Err(seen) => return ObservedOutcome { expected, ..seen },
    };
    let before = last.and_then(|l| decimal(&l.value));
    let Some(before) = before else {
        return ObservedOutcome { found: text.clone(), value: Some(text), expected, holds: true };
    };
    let away = (&number - &before).abs() * BigDecimal::from(100);
    let base = before.abs();
    let holds = away <= decimal(max_percent).unwrap_or_default() * &base;
    let percent = match base.cmp(&BigDecimal::from(0)) {
        Ordering::Equal if holds => "no change".to_owned(),
        Ordering::Equal => "from 0 every change is infinite".to_owned(),
        Ordering::Less | Ordering::Greater => {
            let share = (away / base).with_scale_round(2, RoundingMode::HalfUp);
            format!("{} % away", share.to_plain_string())
        }
    };
    ObservedOutcome { found: format!("{text} ({percent})"), value: Some(text), expected, holds }
}

/// The single number of a result, as text and as a decimal; otherwise a description of what was
/// found. NULL is not a number: it is in no range and has no drift.
fn one_number(found: &ResultSet) -> Result<(String, BigDecimal), ObservedOutcome> {
    let no = |value: Option<String>, found: String| {
        Err(ObservedOutcome { value, found, expected: String::new(), holds: false })
    };
    if found.row_count != 1 {
        return no(None, rows_words(found));
    }
    let row = found.rows.first().map_or(&[][..], Vec::as_slice);
    match row {
        [None] => no(None, "NULL".to_owned()),
        [Some(text)] => match decimal(text) {
            Some(number) => Ok((text.clone(), number)),
            None => no(
                Some(truncate_text(text, SHOWN)),
                format!("'{}', not a number", truncate_text(text, SHOWN)),
            ),
        },
        _ => no(None, format!("a row of {} values", row.len())),
    }
}

fn rows_words(found: &ResultSet) -> String {
    match found.row_count {
        0 => "no row".to_owned(),
        1 => format!("1 row ({})", first_row(found)),
        count => format!("{count} rows (the first: {})", first_row(found)),
    }
}

fn first_row(found: &ResultSet) -> String {
    let row = found.rows.first().map_or(&[][..], Vec::as_slice);
    let words: Vec<&str> = row.iter().map(|v| v.as_deref().unwrap_or("NULL")).collect();
    truncate_text(&words.join(", "), SHOWN)
}

/// Applies findings to the outcome of a body that ended by itself: the most severe broken one
/// decides, and all broken ones are named.
pub fn graded(mut outcome: AttemptOutcome, findings: &[(String, CheckFinding)]) -> AttemptOutcome {
    let own = outcome.message.take();
    if outcome.end == AttemptEnd::Failed {
        // A rule decides about the exit code.
        outcome.end = AttemptEnd::Success;
    }
    let broken: Vec<&CheckFinding> = findings.iter().map(|(_, f)| f).filter(|f| !f.ok).collect();
    let Some(gravest) = broken.iter().map(|f| f.grade).max() else {
        outcome.message = own.filter(|_| outcome.end == AttemptEnd::Warning);
        return outcome;
    };
    let said = broken.iter().map(|f| f.said.as_str()).chain(own.as_deref());
    outcome.message = Some(said.collect::<Vec<_>>().join("; "));
    (outcome.end, outcome.retry) = match gravest {
        CheckGrade::Warning => (AttemptEnd::Warning, Retry::Allowed),
        CheckGrade::Error => (AttemptEnd::Failed, Retry::Allowed),
        CheckGrade::Fatal => (AttemptEnd::Failed, Retry::Never),
    };
    outcome
}

/// Of the batches with a value, those before `no`, newest first. Batch numbers of another kind are
/// not comparable and are left out.
pub fn before<T>(no: &BatchNo, batches: Vec<(BatchNo, T)>) -> Vec<(BatchNo, T)> {
    let is_before =
        |(other, _): &(BatchNo, T)| batch_no::compare(other, no) == Some(Ordering::Less);
    let mut found: Vec<(BatchNo, T)> = batches.into_iter().filter(is_before).collect();
    found.sort_by(|(a, _), (b, _)| batch_no::compare(b, a).unwrap_or(Ordering::Equal));
    found
}

/// Adds the findings of an earlier batch for checks that have none yet.
pub fn remember(
    found: &mut BTreeMap<String, Earlier>,
    names: &[&str],
    batch_no: &BatchNo,
    outputs: &JobOutputs,
) {
    for name in names.iter().filter(|name| !found.contains_key(**name)).copied().collect::<Vec<_>>()
    {
        let value = outputs.checks.get(name).and_then(|finding| finding.value.clone());
        if let Some(value) = value.filter(|text| decimal(text).is_some()) {
            found.insert(name.to_owned(), Earlier { batch_no: batch_no.clone(), value });
        }
    }
}

#[cfg(test)]
#[path = "success_rules_tests.rs"]
mod tests;
