//! What makes a body that ended without an error a success: rules on its outputs, checks on the data.

use crate::domain::id::SourceName;
use crate::domain::source::sql_text::SqlText;
use crate::domain::value::expr::{self, Expr};
use bigdecimal::BigDecimal;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How grave it is when a rule or check does not hold.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum CheckGrade {
    /// The job ends WARNING; its children run.
    Warning,
    /// The try failed; it is tried again like any failure.
    #[default]
    Error,
    /// The job failed and is not tried again.
    Fatal,
}

impl CheckGrade {
    /// Every grade, the mildest first.
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

/// `rule` must be true of the outputs of the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuccessRule {
    /// What must hold: `p_status == 0`, `rows_affected >= 1`.
    pub rule: Expr,
    /// Otherwise.
    #[serde(rename = "else", default)]
    pub grade: CheckGrade,
    /// What to say then; none: the rule itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A query that looks at the data after the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataCheck {
    /// Unique within the job.
    pub name: String,
    /// Where; none: the job's own source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceName>,
    /// One query; the job's parameters are bound as `:name`.
    pub sql: SqlText,
    /// What its result must be.
    pub expect: Expect,
    /// Otherwise.
    #[serde(rename = "else", default)]
    pub grade: CheckGrade,
}

/// What the result of a check's query must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// No row at all: the query looks for what must not be.
    ZeroRows,
    /// One row with one value between these two, both included; a bound that is absent is open.
    Between {
        /// Lowest, a decimal number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<String>,
        /// Highest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<String>,
    },
    /// The same one row as this query gives, on this or another source.
    Equals {
        /// Where; none: the check's own source.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<SourceName>,
        /// The other query.
        sql: SqlText,
        /// Numbers may differ by this much.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tolerance: Option<String>,
    },
    /// One value that differs from that of the last batch of the group by at most this share.
    Drift {
        /// In percent of the last value.
        max_percent: String,
    },
}

impl DataCheck {
    /// The sources that its queries name, beside the job's own.
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

/// In words: `no row`, `a value between 1 and 5`.
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

/// What a success rule or a check found; kept with the outputs of its try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFinding {
    /// The value that was judged, as text; none when there was none, or NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// How grave it is when it does not hold; at least `error` when it could not be answered.
    pub grade: CheckGrade,
    /// Whether it holds.
    pub ok: bool,
    /// What was found and what was expected, as a sentence.
    pub said: String,
}

/// Largest exponent that is read; a double ends at 308, and reading `1e1000000000` would fill the
/// memory with zeros.
const EXPONENT_MAX: i32 = 400;

/// An exact decimal: `-12.50`, and `1e+20` as databases write doubles.
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
