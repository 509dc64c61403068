//! The outcome of one attempt of a body: plain data, because it is stored and read back.

mod list;
mod outputs;
mod stored;

pub use crate::domain::value::{OutputValue, StoredValue};
pub use list::array_of_json;
pub use outputs::{JobOutputs, ResultSet, UnusableCell};
pub use stored::{LargeValue, LargeValues, StoredOutputsKey};

use crate::domain::job::retry::ErrorClass;
use crate::domain::job::secret::{MASK, Mask};
use serde::{Deserialize, Serialize};

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The body ended well.
    Success,
    /// The body ended well and raised warnings.
    Warning,
    /// The body failed: a database error, an exit code, a parameter without value.
    Failed,
    /// The body exceeded its timeout and is confirmed stopped.
    TimedOut,
    /// The body was stopped for an operator or for its batch's deadline, and is confirmed stopped.
    Killed,
    /// The body was stopped because this process shuts down or lost its lease, and is confirmed
    /// stopped.
    Returned,
    /// Whether the body took effect is unknown: the connection broke while it ran, or it was
    /// stopped and the end of its server session could not be confirmed.
    Unknown,
}

/// Source of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// A script's standard output.
    Stdout,
    /// A script's standard error.
    Stderr,
    /// NOTICE, warning or result message of the database.
    Database,
    /// Procession itself.
    System,
}

impl Stream {
    /// The word in the `stream` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Database => "database",
            Self::System => "system",
        }
    }
}

/// Whether a failure may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// As often as the job allows.
    #[default]
    Allowed,
    /// Never: a rule or check of grade fatal is broken.
    Never,
}

/// How far an attempt got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptStage {
    /// Nothing of the body was sent, and nothing was learnt about an earlier attempt.
    Before,
    /// The body was sent, or the outcome of an earlier attempt was looked up.
    #[default]
    Body,
}

/// Classification of an error, used by retry rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// Its class.
    pub class: ErrorClass,
    /// SQLSTATE, where a server gave one.
    pub sqlstate: Option<String>,
}

/// Result of one attempt; as JSON it is sent from the node that ran it to the node that settles it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptOutcome {
    /// How it ended.
    pub end: AttemptEnd,
    /// Reason of any end but success; `store` makes it storable (length, characters).
    pub message: Option<String>,
    /// Outputs for the job's children.
    pub outputs: JobOutputs,
    /// Values that the outputs only refer to. They are kept in memory and written in the
    /// transaction that writes the outputs.
    #[serde(skip)]
    pub large_values: LargeValues,
    /// Whether a failed attempt may be retried.
    pub retry: Retry,
    /// Classification of the error, when known.
    pub error: Option<ErrorInfo>,
    /// How far the attempt got.
    pub reach: AttemptStage,
    /// The job's row has this outcome already: it was written in the body's transaction.
    pub is_recorded: bool,
    /// Evidence that a body declared as one transaction ended that transaction itself; the job is
    /// marked, and refused until an operator trusts it again.
    pub breach: Option<String>,
    /// The row belongs to another start, so nothing of this attempt took effect. Read by the
    /// process that ran it.
    #[serde(skip)]
    pub is_row_lost: bool,
}

impl AttemptOutcome {
    /// A success with these outputs.
    pub fn success(outputs: JobOutputs) -> Self {
        Self {
            end: AttemptEnd::Success,
            message: None,
            outputs,
            large_values: LargeValues::default(),
            retry: Retry::Allowed,
            error: None,
            reach: AttemptStage::Body,
            is_recorded: false,
            breach: None,
            is_row_lost: false,
        }
    }

    /// Any other end, with its reason.
    pub fn ended(end: AttemptEnd, message: impl Into<String>) -> Self {
        let (message, outputs) = (Some(message.into()), JobOutputs::default());
        Self { end, message, ..Self::success(outputs) }
    }

    /// The same outcome for an attempt that ended before anything of its body was sent.
    #[must_use]
    pub fn before_it_began(self) -> Self {
        Self { reach: AttemptStage::Before, ..self }
    }

    /// The same outcome for an attempt whose row belongs to another start.
    #[must_use]
    pub fn of_lost_row(self) -> Self {
        Self { is_row_lost: true, ..self }
    }

    /// The same outcome, not to be retried.
    #[must_use]
    pub fn for_good(self) -> Self {
        Self { retry: Retry::Never, ..self }
    }

    /// The same outcome for a body that ended its transaction itself: the message says so too.
    #[must_use]
    pub fn caught(mut self, said: &str) -> Self {
        let message = self.message.take().map_or(said.to_owned(), |own| format!("{own}; {said}"));
        Self { breach: Some(said.to_owned()), message: Some(message), ..self }.for_good()
    }

    /// The same outcome without the values of parameters declared secret: they are shown as `***`,
    /// and cannot be passed on.
    #[must_use]
    pub fn without(mut self, secret_outs: &[&str]) -> Self {
        for name in secret_outs {
            if let Some(Some(value)) = self.outputs.values.get_mut(*name) {
                MASK.clone_into(value);
                let reason = format!("the parameter {name} is secret; {GIVE_IT_ITSELF}");
                self.outputs.unusable.insert((*name).to_owned(), reason);
            }
        }
        self
    }

    /// The same outcome with the secrets of its attempt masked, in the message and in every output:
    /// the result is stored, shown and mailed. A value that contains a secret is shown as `***` and
    /// cannot be passed on: once a child received the text `***` in its place, unnoticed.
    #[must_use]
    pub fn masked(mut self, mask: &Mask) -> Self {
        if mask.is_empty() {
            return self;
        }
        let hide = |text: &mut String| *text = mask.remnants(text);
        self.message.iter_mut().for_each(hide);
        self.breach.iter_mut().for_each(hide);
        self.outputs.unusable.values_mut().for_each(hide);
        for (name, value) in &mut self.outputs.values {
            if let Some(value) = value.as_mut().filter(|value| mask.is_in(value)) {
                MASK.clone_into(value);
                let reason = format!("it has a secret of its job in it; {GIVE_IT_ITSELF}");
                self.outputs.unusable.insert(name.clone(), reason);
            }
        }
        for set in &mut self.outputs.results {
            set.columns.iter_mut().for_each(hide);
            set.unusable.iter_mut().for_each(|cell| hide(&mut cell.reason));
            mask_rows(set, mask);
        }
        let found = self.outputs.rules.values_mut().chain(self.outputs.checks.values_mut());
        for finding in found {
            finding.value.iter_mut().for_each(hide);
            hide(&mut finding.said);
        }
        self
    }

    /// The same outcome with references in place of large values. Call it after `masked`, because
    /// values stored aside are shown as well.
    #[must_use]
    pub fn with_values_aside(mut self, of: StoredOutputsKey, inline_bytes: usize) -> Self {
        let large = self.outputs.store_aside(of, inline_bytes);
        if large != LargeValues::default() {
            self.large_values = large;
        }
        self
    }

    /// The same outcome with the classification of its error.
    pub fn of_class(self, class: ErrorClass, sqlstate: Option<&str>) -> Self {
        let sqlstate = sqlstate.map(str::to_owned);
        Self { error: Some(ErrorInfo { class, sqlstate }), ..self }
    }
}

/// Hint of the refusal to pass a secret on.
const GIVE_IT_ITSELF: &str = "give ${secret.NAME} to the job that needs it";

/// Replaces cells that contain a secret by `***` and marks them as not usable.
fn mask_rows(set: &mut ResultSet, mask: &Mask) {
    for (row, cells) in set.rows.iter_mut().enumerate() {
        for (column, cell) in cells.iter_mut().enumerate() {
            let Some(value) = cell.as_mut().filter(|value| mask.is_in(value)) else { continue };
            MASK.clone_into(value);
            let name = set.columns.get(column).map_or("?", String::as_str);
            let reason = format!("column {name} has a secret of its job in it; {GIVE_IT_ITSELF}");
            set.unusable.retain(|cell| (cell.row, cell.column) != (row, column));
            set.unusable.push(UnusableCell { row, column, reason, stored: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::check::CheckFinding;
    use std::collections::BTreeMap;

    #[test]
    fn secrets_leave_no_outcome() {
        let mask = Mask::from_secrets(&[secrecy::SecretString::from("hunter22")]);
        let outputs = JobOutputs {
            values: BTreeMap::from([("pw".into(), Some("hunter22".into())), ("n".into(), None)]),
            results: vec![ResultSet {
                columns: vec!["hunter22".into()],
                rows: vec![vec![Some("x hunter22".into()), None]],
                row_count: 1,
                ..ResultSet::default()
            }],
            checks: BTreeMap::from([(
                "c".into(),
                CheckFinding {
                    value: Some("hunter22".into()),
                    grade: crate::domain::job::check::CheckGrade::Error,
                    ok: false,
                    said: "it is hunter22".into(),
                },
            )]),
            ..JobOutputs::default()
        };
        let outcome = AttemptOutcome {
            message: Some("no hunter22".into()),
            ..AttemptOutcome::success(outputs)
        };
        let masked = outcome.clone().masked(&mask);
        assert!(!format!("{masked:?}").contains("hunter22"), "{masked:?}");
        assert_eq!(masked.message.as_deref(), Some("no ***"));
        assert_eq!(masked.outputs.results[0].rows[0][0].as_deref(), Some("***"));
        // Shown, but not passed on.
        let refused =
            "it has a secret of its job in it; give ${secret.NAME} to the job that needs it";
        assert_eq!(masked.outputs.output("pw"), Some(OutputValue::Unusable(refused.to_owned())));
        assert_eq!(masked.outputs.output("n"), Some(OutputValue::Null));
        let reason = masked.outputs.results[0].unusable_first_row().expect("a reason");
        assert!(reason.starts_with("column *** has a secret"), "{reason}");
        assert_eq!(outcome.clone().masked(&Mask::default()), outcome);
        let without = outcome.without(&["pw"]);
        assert_eq!(without.outputs.values["pw"].as_deref(), Some("***"));
        let handed_on = without.outputs.output("pw");
        assert!(matches!(handed_on, Some(OutputValue::Unusable(why)) if why.contains("is secret")));
        assert_eq!(without.outputs.look_up("n"), Some(None));
    }
}
