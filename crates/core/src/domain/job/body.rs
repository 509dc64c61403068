//! Bodies beyond a procedure, SQL and a script: a call over HTTP, a wait, another batch, a list.

use crate::domain::batch_no::BatchExpr;
use crate::domain::id::{GroupCode, JobCode};
use bigdecimal::{BigDecimal, Zero as _};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A host that HTTP jobs may call; no other is ever called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpHost {
    /// Unique name.
    pub name: String,
    /// `https://host[:port][/path]`; `PROCESSION_HOST_<NAME>` may replace it.
    pub base_url: String,
    /// Headers of every call; a value may be `${secret.NAME}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How many calls at once; none leaves it to the limit in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
}

/// One call over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpCall {
    /// Name of a registered host.
    pub host: String,
    /// GET, POST, PUT, PATCH, DELETE or HEAD.
    pub method: String,
    /// Path and query below the host's base URL; `{name}` is replaced by the parameter, escaped.
    pub path: String,
    /// Headers; `{name}` as in the path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How the parameters travel in the body.
    #[serde(default)]
    pub send: HttpBody,
    /// Statuses that are a success; empty: 200 to 299.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect_status: Vec<u16>,
}

/// How an HTTP job's parameters travel in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum HttpBody {
    /// No body.
    #[default]
    None,
    /// A JSON object of the parameters, typed.
    Json,
    /// A form.
    Form,
}

/// A query that is asked again until it is true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sensor {
    /// Seconds between two questions.
    pub poll_sec: u32,
}

impl Sensor {
    /// Seconds between two questions when the definition does not say.
    pub const POLL_SEC: u32 = 30;

    /// Whether the first column of the one row says yes: a number that is not 0, or a text other than
    /// nothing, `f` and `false`. NULL says no.
    pub fn is_true(value: Option<&str>) -> bool {
        let text = value.unwrap_or_default().trim();
        if let Ok(number) = text.parse::<BigDecimal>() {
            return !number.is_zero();
        }
        !["", "f", "false"].contains(&text.to_ascii_lowercase().as_str())
    }
}

/// Another batch, opened and waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubBatch {
    /// Its group.
    pub group: GroupCode,
    /// Its number, seen from this batch; one number.
    pub batch: BatchExpr,
    // Its parameters are the job's own.
}

/// One job made many: one for each item of a list, and a milestone of the job's own code after them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForEach {
    /// Where the items come from.
    pub items: Items,
    /// How many of them run at once; none: no limit of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
}

/// A list; each item is `${item}` in the parameters of its job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ItemsForm", into = "ItemsForm")]
pub enum Items {
    /// As written.
    List(Vec<String>),
    /// A parameter of the batch, group or all: items separated by commas.
    Param(String),
    /// An output of a job above: items separated by commas, or the first column of its only result set.
    Output(JobCode, String),
}

/// The form of a list in files and tables.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ItemsForm {
    List(Vec<String>),
    Param { param: String },
    Output { output: String },
}

impl From<Items> for ItemsForm {
    fn from(items: Items) -> Self {
        match items {
            Items::List(list) => Self::List(list),
            Items::Param(param) => Self::Param { param },
            Items::Output(job, name) => Self::Output { output: format!("{job}.{name}") },
        }
    }
}

impl TryFrom<ItemsForm> for Items {
    type Error = String;
    fn try_from(form: ItemsForm) -> Result<Self, String> {
        match form {
            ItemsForm::List(list) => Ok(Self::List(list)),
            ItemsForm::Param { param } => Ok(Self::Param(param)),
            ItemsForm::Output { output } => Self::output(&output),
        }
    }
}

impl Items {
    /// The items of a text, separated by commas.
    pub fn split(text: &str) -> Vec<String> {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// Reads `JOB.name`; a job code may hold dots itself, an output's name may not.
    pub fn output(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once('.').filter(|(_, name)| !name.is_empty());
        let (job, name) = parts.ok_or_else(|| format!("{text:?} is not JOB.name"))?;
        let job = JobCode::parse(job).map_err(|error| error.to_string())?;
        Ok(Self::Output(job, name.to_owned()))
    }
}

/// What a fan-out made of a job, in the snapshot of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FanOut {
    /// One of many.
    Item {
        /// The job it was made from, now the milestone after it.
        of: JobCode,
        /// Its `${item}`.
        item: String,
    },
    /// What comes after all of them, under the code of the job they were made from.
    Milestone {
        /// Their items, in order.
        items: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sensor_takes_for_yes() {
        for yes in ["1", "-1", "0.01", "1e2", "t", "true", "TRUE", "yes", "no", "READY", " 7 "] {
            assert!(Sensor::is_true(Some(yes)), "{yes:?}");
        }
        for no in ["0", "0.00", "-0", "0e5", "", "  ", "f", "false", "FALSE"] {
            assert!(!Sensor::is_true(Some(no)), "{no:?}");
        }
        assert!(!Sensor::is_true(None), "NULL");
    }

    #[test]
    fn lists_are_stored_in_the_form_of_files() {
        for (items, form) in [
            (Items::List(vec!["SH".into(), "BJ".into()]), r#"["SH","BJ"]"#),
            (Items::Param("branches".into()), r#"{"param":"branches"}"#),
            (Items::output("FX.LOAD.rows").expect("JOB.name"), r#"{"output":"FX.LOAD.rows"}"#),
        ] {
            assert_eq!(serde_json::to_string(&items).expect("JSON"), form);
            assert_eq!(serde_json::from_str::<Items>(form).expect(form), items);
        }
        for bad in ["LOAD", "LOAD.", ".rows", "A B.rows"] {
            assert!(Items::output(bad).is_err(), "{bad}");
        }
    }
}
