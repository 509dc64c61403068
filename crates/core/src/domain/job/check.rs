//! Rules on outputs and checks on data that decide whether a body that ended without an error is a
//! success.

use crate::domain::id::SourceName;
use crate::domain::source::sql_text::SqlText;
use crate::domain::value::expr::{self, Expr};
use bigdecimal::BigDecimal;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Severity of a broken rule or check.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum CheckGrade {
    /// The job ends WARNING; its children run.
    Warning,
    /// The attempt failed; it is retried like any failure.
    #[default]
    Error,
    /// The job failed and is not retried.
    Fatal,
}

impl CheckGrade {
    /// Every grade, mildest first.
    pub const ALL: [Self; 3] = [Self::Warning, Self::Error, Self::Fatal];

    /// The word in a definition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Fatal => "fatal",
        }
    }
}

impl fmt::Display for CheckGrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A rule over the outputs of the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuccessRule {
    /// The expression that must be true: `p_status == 0`, `rows_affected >= 1`.
    pub rule: Expr,
    /// Severity when it is false.
    #[serde(rename = "else", default)]
    pub grade: CheckGrade,
    /// Message when it is false; none: the rule's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A query that inspects the data after the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataCheck {
    /// Unique within the job.
    pub name: String,
    /// Data source of the query; none: the job's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceName>,
    /// One query; the job's parameters are bound as `:name`.
    pub sql: SqlText,
    /// The expected result.
    pub expect: Expect,
    /// Severity when it differs.
    #[serde(rename = "else", default)]
    pub grade: CheckGrade,
}

/// Expected result of a check's query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// No rows: the query selects violations.
    ZeroRows,
    /// One row with one value in this range, bounds included; a missing bound is open.
    Between {
        /// Lower bound, a decimal number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<String>,
        /// Upper bound, a decimal number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<String>,
    },
    /// The same single row as this second query, on this or another source.
    Equals {
        /// Source of the second query; none: the check's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<SourceName>,
        /// The second query.
        sql: SqlText,
        /// Permitted difference of numbers, a decimal number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tolerance: Option<String>,
    },
    /// One value that differs from that of the group's previous batch by at most this percentage.
    Drift {
        /// In percent of the previous value.
        max_percent: String,
    },
}

impl DataCheck {
    /// Sources that its queries name, beside the job's own.
    pub fn sources(&self) -> impl Iterator<Item = &SourceName> {
        let other = match &self.expect {
            Expect::Equals { source, .. } => source.as_ref(),
            Expect::ZeroRows | Expect::Between { .. } | Expect::Drift { .. } => None,
        };
        self.source.iter().chain(other)
    }

    /// Whether it compares with an earlier batch.
    pub fn looks_back(&self) -> bool {
        matches!(self.expect, Expect::Drift { .. })
    }
}

/// As text: `no row`, `a value between 1 and 5`.
impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroRows => f.write_str("no row"),
            Self::Between { min: Some(min), max: Some(max) } => {
                write!(f, "a value between {min} and {max}")
            }
            Self::Between { min: Some(min), max: None } => write!(f, "a value of {min} or more"),
            Self::Between { min: None, max: Some(max) } => write!(f, "a value of {max} or less"),
            Self::Between { min: None, max: None } => f.write_str("a value"),
            Self::Equals { source, tolerance, .. } => {
                f.write_str("the same row as the other query")?;
                source.iter().try_for_each(|s| write!(f, " on {s}"))?;
                tolerance.iter().try_for_each(|t| write!(f, ", within {t}"))
            }
            Self::Drift { max_percent } => {
                write!(f, "a value within {max_percent} % of the last batch's")
            }
        }
    }
}

/// Result of a success rule or check; stored with the outputs of its attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFinding {
    /// The evaluated value as text; none when there was none, or NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Severity when it does not hold; at least `error` when it could not be evaluated.
    pub grade: CheckGrade,
    /// Whether it holds.
    pub ok: bool,
    /// What was found and what was expected, as a sentence.
    pub said: String,
}

/// Largest exponent accepted; a double ends at 308, and reading `1e1000000000` would fill the
/// memory with zeros.
const EXPONENT_MAX: i32 = 400;

/// Parses an exact decimal: `-12.50`, and `1e+20` as databases write doubles.
pub fn decimal(text: &str) -> Option<BigDecimal> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() <= EXPONENT_MAX)?;
    let (digits, scale) = expr::number(digits)?.into_bigint_and_exponent();
    Some(BigDecimal::new(digits, scale - i64::from(exponent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_every_database_are_read() {
        for (text, plain) in [
            ("-12.50", Some("-12.50")),
            ("+7", Some("7")),
            ("1e+3", Some("1000")),
            ("1.5E-2", Some("0.015")),
            ("12345678901234567890.123456789", Some("12345678901234567890.123456789")),
            ("", None),
            ("NaN", None),
            ("Infinity", None),
            ("1e401", None),
            ("1e1000000000", None),
            ("1,000", None),
            (" 1", None),
            ("0x1F", None),
        ] {
            assert_eq!(decimal(text).map(|d| d.to_plain_string()).as_deref(), plain, "{text:?}");
        }
    }

    #[test]
    fn a_check_is_stored_as_it_is_written() {
        let json = r#"{"name":"tb","source":"ledger","sql":"SELECT 1","expect":{"between":{"min":"1"}},"else":"fatal"}"#;
        let check: DataCheck = serde_json::from_str(json).expect("a check");
        assert_eq!(serde_json::to_string(&check).expect("JSON"), json);
        assert_eq!(check.expect.to_string(), "a value of 1 or more");
        assert_eq!(serde_json::to_string(&Expect::ZeroRows).expect("JSON"), "\"zero_rows\"");
    }
}
