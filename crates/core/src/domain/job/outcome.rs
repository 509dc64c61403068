//! What became of one try of a body: data first, because it is stored and read back.

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

/// How a try ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The body ended well.
    Success,
    /// The body ended well but raised warnings.
    Warning,
    /// The body said no: an error of the database, an exit code, a parameter without value.
    Failed,
    /// The body ran past its time and is proven gone.
    TimedOut,
    /// The body was stopped because an operator or its batch's deadline wanted it, and is proven gone.
    Killed,
    /// The body was stopped because this process leaves, or lost its lease, and is proven gone.
    Returned,
    /// Whether the body took effect cannot be learnt: the connection broke while it ran, or it was
    /// stopped and its server session could not be confirmed gone.
    Unknown,
}

/// Where a log line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// A script's standard output.
    Stdout,
    /// A script's standard error.
    Stderr,
    /// NOTICE, warning or result of the database.
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

/// Whether a failure may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// As often as its job allows.
    #[default]
    Allowed,
    /// Never: something whose grade is fatal does not hold.
    Never,
}

/// How far a try came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptStage {
    /// Nothing of the body was sent, and nothing was learnt of an earlier try.
    Before,
    /// The body was sent, or what became of an earlier try was looked up.
    #[default]
    Body,
}

/// What kind of error it was, for rules about which are tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// Its class.
    pub class: ErrorClass,
    /// SQLSTATE, where a server gave one.
    pub sqlstate: Option<String>,
}

/// One try's result; as JSON it goes from the node that ran it to the one that settles it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptOutcome {
    /// How it ended.
    pub end: AttemptEnd,
    /// Why, when it did not end well; made storable by who stores it.
    pub message: Option<String>,
    /// What it hands on.
    pub outputs: JobOutputs,
    /// The values that its outputs only refer to. They travel in memory alone, and are written in the
    /// transaction that writes the outputs.
    #[serde(skip)]
    pub large_values: LargeValues,
    /// Whether it may be tried again, when it failed.
    pub retry: Retry,
    /// What kind of error it was, when it is known.
    pub error: Option<ErrorInfo>,
    /// How far it came.
    pub reach: AttemptStage,
    /// Its row says so already: that was written in the transaction of its body.
    pub is_recorded: bool,
    /// How a body that is declared to be one transaction was seen to end it by itself; its job is
    /// marked, and refused until somebody trusts it again.
    pub breach: Option<String>,
    /// Its row was found to belong to another start, so that nothing of it took effect. Asked by the process that ran it.
    #[serde(skip)]
    pub is_row_lost: bool,
}

impl AttemptOutcome {
    /// Ended well.
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

    /// Ended any other way, with the reason.
    pub fn ended(end: AttemptEnd, message: impl Into<String>) -> Self {
        let (message, outputs) = (Some(message.into()), JobOutputs::default());
        Self { end, message, ..Self::success(outputs) }
    }

    /// The same of a try that ended before anything of its body was sent.
    #[must_use]
    pub fn before_it_began(self) -> Self {
        Self { reach: AttemptStage::Before, ..self }
    }

    /// The same of a try whose row was found to belong to another start.
    #[must_use]
    pub fn of_lost_row(self) -> Self {
        Self { is_row_lost: true, ..self }
    }

    /// The same, as something that trying again cannot mend.
    #[must_use]
    pub fn for_good(self) -> Self {
        Self { retry: Retry::Never, ..self }
    }

    /// The same of a body that ended its transaction by itself: the message says so too.
    #[must_use]
    pub fn caught(mut self, said: &str) -> Self {
        let message = self.message.take().map_or(said.to_owned(), |own| format!("{own}; {said}"));
        Self { breach: Some(said.to_owned()), message: Some(message), ..self }.for_good()
    }

    /// The same without what came back in parameters that are declared secret: it is shown as `***`, and cannot be
    /// handed on.
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

    /// The same without the secrets of its try, in the message and in every value it hands on: what
    /// leaves here is stored, shown and mailed. A value with a secret in it is shown as `***` and cannot be handed
    /// on: once a child was given the text `***` for it, and did not know.
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

    /// The same with references in the place of large values; after `masked`, because what is stored
    /// aside is shown as well.
    #[must_use]
    pub fn with_values_aside(mut self, of: StoredOutputsKey, inline_bytes: usize) -> Self {
        let large = self.outputs.store_aside(of, inline_bytes);
        if large != LargeValues::default() {
            self.large_values = large;
        }
        self
    }

    /// With the kind of its error.
    pub fn of_class(self, class: ErrorClass, sqlstate: Option<&str>) -> Self {
        let sqlstate = sqlstate.map(str::to_owned);
        Self { error: Some(ErrorInfo { class, sqlstate }), ..self }
    }
}

/// What to do in place of handing a secret on.
const GIVE_IT_ITSELF: &str = "give ${secret.NAME} to the job that needs it";

/// The cells that have a secret in them become `***` and cannot be handed on.
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
        // Shown, and not handed on.
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
