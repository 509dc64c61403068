//! What became of one try of a body: data first, because it is stored and read back.

use crate::domain::body::Items;
use crate::domain::check::Finding;
use crate::domain::retry::ErrorClass;
use crate::domain::secret::{MASK, Mask};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rows of a body's result that are kept, at most; the count of all is kept beside them.
pub const ROWS_KEPT: usize = 100;

/// How a try ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
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

/// One result set, cut to `ROWS_KEPT` rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultSet {
    /// Column names.
    pub columns: Vec<String>,
    /// Values as text, `null` for NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// How many rows there were in all.
    pub row_count: u64,
}

/// What a body hands on: stored as JSON, shown to the user, read by its children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outputs {
    /// OUT and INOUT values, by parameter name; a script's `name=value` lines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Option<String>>,
    /// Result sets in the order they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ResultSet>,
    /// Rows changed by all statements together, where the database says.
    #[serde(default)]
    pub rows_affected: u64,
    /// How a script ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What its success rules found, by rule.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, Finding>,
    /// What its checks found, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, Finding>,
}

impl Outputs {
    /// The value a child means by `${jobs.CODE.NAME}`: a script's `exit_code`, else an OUT value,
    /// else `rows_affected` or `result_rows` (rows of the last result set), else the column of
    /// that name in the last result set that has exactly one row.
    pub fn value(&self, name: &str) -> Option<String> {
        self.look_up(name).flatten()
    }

    /// As `value`, telling a name that is not there (`None`) from one that is NULL (`Some(None)`).
    pub fn look_up(&self, name: &str) -> Option<Option<String>> {
        // Before the values: a script must not hide how it ended by printing another code.
        if let Some(code) = self.exit_code.filter(|_| name == "exit_code") {
            return Some(Some(code.to_string()));
        }
        if let Some(value) = self.values.get(name) {
            return Some(value.clone());
        }
        if name == "rows_affected" {
            return Some(Some(self.rows_affected.to_string()));
        }
        if name == "result_rows" {
            return Some(Some(self.results.last().map_or(0, |r| r.row_count).to_string()));
        }
        let name = name.strip_prefix("result.").unwrap_or(name);
        let only_row = self.results.iter().rev().find(|r| r.row_count == 1)?;
        let column = only_row.columns.iter().position(|c| c == name)?;
        only_row.rows.first()?.get(column).cloned()
    }

    /// The items that `for_each: {output: JOB.name}` means: the first column of the only result set,
    /// when it has that name, an item per row; else the value of that name, its items separated by
    /// commas. NULL, and a query without rows, make no items.
    pub fn items(&self, name: &str) -> Result<Vec<String>, String> {
        if !self.values.contains_key(name)
            && let [set] = &self.results[..]
            && set.columns.first().is_some_and(|column| column == name)
        {
            if set.row_count > set.rows.len() as u64 {
                return Err(format!(
                    "{name} has {} rows, of which {ROWS_KEPT} are kept; give the items as one text, \
                     separated by commas",
                    set.row_count
                ));
            }
            return Ok(set.rows.iter().filter_map(|row| row.first()?.clone()).collect());
        }
        match self.look_up(name) {
            Some(value) => Ok(Items::split(&value.unwrap_or_default())),
            // A result set without rows is not kept, so its column has no name any more.
            // A script, which has an exit code, was to say the name.
            None if self.results.is_empty()
                && self.values.is_empty()
                && self.exit_code.is_none() =>
            {
                Ok(Vec::new())
            }
            None => Err(format!("there is no output named {name}")),
        }
    }

    /// Nothing to hand on.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
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
pub enum Reach {
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
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Why, when it did not end well; made storable by who stores it.
    pub message: Option<String>,
    /// What it hands on.
    pub outputs: Outputs,
    /// Whether it may be tried again, when it failed.
    pub retry: Retry,
    /// What kind of error it was, when it is known.
    pub error: Option<ErrorInfo>,
    /// How far it came.
    pub reach: Reach,
    /// Its row says so already: that was written in the transaction of its body.
    pub is_recorded: bool,
    /// How a body that is declared to be one transaction was seen to end it by itself; its job is
    /// marked, and refused until somebody trusts it again.
    pub breach: Option<String>,
}

impl Outcome {
    /// Ended well.
    pub fn success(outputs: Outputs) -> Self {
        Self {
            end: End::Success,
            message: None,
            outputs,
            retry: Retry::Allowed,
            error: None,
            reach: Reach::Body,
            is_recorded: false,
            breach: None,
        }
    }

    /// Ended any other way, with the reason.
    pub fn ended(end: End, message: impl Into<String>) -> Self {
        let (message, outputs) = (Some(message.into()), Outputs::default());
        Self { end, message, ..Self::success(outputs) }
    }

    /// The same of a try that ended before anything of its body was sent.
    #[must_use]
    pub fn before_it_began(self) -> Self {
        Self { reach: Reach::Before, ..self }
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

    /// The same without what came back in parameters that are declared secret.
    #[must_use]
    pub fn without(mut self, secret_outs: &[&str]) -> Self {
        for (name, value) in &mut self.outputs.values {
            if secret_outs.contains(&name.as_str()) {
                *value = value.is_some().then(|| MASK.to_owned());
            }
        }
        self
    }

    /// The same without the secrets of its try, in the message and in every value it hands on: what
    /// leaves here is stored, shown and mailed.
    #[must_use]
    pub fn masked(mut self, mask: &Mask) -> Self {
        if mask.is_empty() {
            return self;
        }
        let hide = |text: &mut String| *text = mask.remnants(text);
        self.message.iter_mut().for_each(hide);
        self.breach.iter_mut().for_each(hide);
        self.outputs.values.values_mut().flatten().for_each(hide);
        for set in &mut self.outputs.results {
            set.columns.iter_mut().for_each(hide);
            set.rows.iter_mut().flatten().flatten().for_each(hide);
        }
        let found = self.outputs.rules.values_mut().chain(self.outputs.checks.values_mut());
        for finding in found {
            finding.value.iter_mut().for_each(hide);
            hide(&mut finding.said);
        }
        self
    }

    /// With the kind of its error.
    pub fn of_class(self, class: ErrorClass, sqlstate: Option<&str>) -> Self {
        let sqlstate = sqlstate.map(str::to_owned);
        Self { error: Some(ErrorInfo { class, sqlstate }), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_leave_no_outcome() {
        let mask = Mask::of(&[secrecy::SecretString::from("hunter22")]);
        let outputs = Outputs {
            values: BTreeMap::from([("pw".into(), Some("hunter22".into())), ("n".into(), None)]),
            results: vec![ResultSet {
                columns: vec!["hunter22".into()],
                rows: vec![vec![Some("x hunter22".into()), None]],
                row_count: 1,
            }],
            checks: BTreeMap::from([(
                "c".into(),
                Finding {
                    value: Some("hunter22".into()),
                    grade: crate::domain::check::Grade::Error,
                    ok: false,
                    said: "it is hunter22".into(),
                },
            )]),
            ..Outputs::default()
        };
        let outcome = Outcome { message: Some("no hunter22".into()), ..Outcome::success(outputs) };
        let masked = outcome.clone().masked(&mask);
        assert!(!format!("{masked:?}").contains("hunter22"), "{masked:?}");
        assert_eq!(masked.message.as_deref(), Some("no ***"));
        assert_eq!(masked.outputs.results[0].rows[0][0].as_deref(), Some("x ***"));
        assert_eq!(outcome.clone().masked(&Mask::default()), outcome);
        let without = outcome.without(&["pw"]);
        assert_eq!(without.outputs.value("pw").as_deref(), Some("***"));
        assert_eq!(without.outputs.look_up("n"), Some(None));
    }

    #[test]
    fn children_find_values_by_name() {
        let outputs = Outputs {
            values: BTreeMap::from([("p_rows".into(), Some("3".into())), ("gone".into(), None)]),
            results: vec![ResultSet {
                columns: vec!["total".into()],
                rows: vec![vec![Some("9.50".into())]],
                row_count: 1,
            }],
            rows_affected: 7,
            ..Outputs::default()
        };
        assert_eq!(outputs.value("p_rows").as_deref(), Some("3"));
        assert_eq!(outputs.value("gone"), None);
        assert_eq!(outputs.value("rows_affected").as_deref(), Some("7"));
        assert_eq!(outputs.value("total").as_deref(), Some("9.50"));
        assert_eq!(outputs.value("other"), None);
        assert_eq!(outputs.value("result_rows").as_deref(), Some("1"));
        assert_eq!(outputs.look_up("exit_code"), None);
    }

    #[test]
    fn a_script_cannot_hide_its_exit_code() {
        let outputs = Outputs {
            values: BTreeMap::from([("exit_code".into(), Some("0".into()))]),
            exit_code: Some(3),
            ..Outputs::default()
        };
        assert_eq!(outputs.value("exit_code").as_deref(), Some("3"));
        assert_eq!(outputs.value("result_rows").as_deref(), Some("0"));
    }

    #[test]
    fn lists_of_items() {
        let set = |rows: &[&str], count| Outputs {
            results: vec![ResultSet {
                columns: vec!["branch".into(), "n".into()],
                rows: rows.iter().map(|r| vec![Some((*r).to_owned()), None]).collect(),
                row_count: count,
            }],
            ..Outputs::default()
        };
        let text = |value: Option<&str>| Outputs {
            values: BTreeMap::from([("branch".to_owned(), value.map(str::to_owned))]),
            ..Outputs::default()
        };
        let many: &[&str] = &["x"; ROWS_KEPT];
        for (outputs, items) in [
            (set(&["SH", "BJ"], 2), Ok(vec!["SH", "BJ"])),
            (set(&["S,H"], 1), Ok(vec!["S,H"])),
            (text(Some(" SH, BJ,,")), Ok(vec!["SH", "BJ"])),
            (text(Some("")), Ok(vec![])),
            (text(None), Ok(vec![])),
            (Outputs::default(), Ok(vec![])),
            (set(many, 250), Err("branch has 250 rows, of which 100 are kept")),
        ] {
            match (outputs.items("branch"), items) {
                (Ok(found), Ok(wanted)) => assert_eq!(found, wanted),
                (Err(said), Err(wanted)) => assert!(said.starts_with(wanted), "{said}"),
                (found, wanted) => panic!("{found:?}, not {wanted:?}"),
            }
        }
        assert_eq!(
            set(&["SH"], 1).items("other"),
            Err("there is no output named other".to_owned())
        );
    }
}
