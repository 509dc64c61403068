//! What makes a body that ended without an error a success: rules on its outputs, checks on the data.

use crate::domain::expr::Expr;
use crate::domain::id::SourceName;
use crate::domain::sql_text::SqlText;
use serde::{Deserialize, Serialize};

/// How grave it is when a rule or check does not hold.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// The job ends WARNING; its children run.
    Warning,
    /// The try failed; it is tried again like any failure.
    #[default]
    Error,
    /// The job failed and is not tried again.
    Fatal,
}

/// `rule` must be true of the outputs of the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuccessRule {
    /// What must hold: `p_status == 0`, `rows_affected >= 1`.
    pub rule: Expr,
    /// Otherwise.
    #[serde(rename = "else", default)]
    pub grade: Grade,
    /// What to say then; none: the rule itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A query that looks at the data after the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
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
    pub grade: Grade,
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
