//! Job bodies other than procedures, SQL and scripts: HTTP calls, sensors, sub-batches and
//! fan-outs.

use crate::domain::batch_no::BatchExpr;
use crate::domain::id::{GroupCode, JobCode};
use bigdecimal::{BigDecimal, Zero as _};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A host that HTTP jobs may call; calls to any other host are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpHost {
    /// Unique name.
    pub name: String,
    /// `https://host[:port][/path]`; `PROCESSION_HOST_<NAME>` may replace it.
    pub base_url: String,
    /// The address of the cluster's web page, where it is another one; `PROCESSION_HOST_<NAME>_UI`
    /// may replace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui_url: Option<String>,
    /// Headers of every call; a value may be `${secret.NAME}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Maximum number of concurrent calls; none: only the global limit applies.
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
    /// How the parameters are sent in the body.
    #[serde(default)]
    pub send: HttpBody,
    /// Statuses that count as success; empty: 200 to 299.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect_status: Vec<u16>,
}

/// How the parameters of an HTTP job are sent in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum HttpBody {
    /// No body.
    #[default]
    None,
    /// A JSON object of the parameters, with JSON types.
    Json,
    /// A URL-encoded form.
    Form,
}

/// A query that is repeated until it is true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sensor {
    /// Seconds between two polls.
    pub poll_sec: u32,
}

impl Sensor {
    /// Default of `poll_sec`, in seconds.
    pub const POLL_SEC: u32 = 30;

    /// Whether the first column of the only row means true: a number other than 0, or a text other
    /// than the empty text, `f` and `false`. NULL is false.
    pub fn is_true(value: Option<&str>) -> bool {
        let text = value.unwrap_or_default().trim();
        if let Ok(number) = text.parse::<BigDecimal>() {
            return !number.is_zero();
        }
        !["", "f", "false"].contains(&text.to_ascii_lowercase().as_str())
    }
}

/// A batch that the job opens and waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubBatch {
    /// Its group.
    pub group: GroupCode,
    /// Its batch number, relative to this batch; exactly one number.
    pub batch: BatchExpr,
    // Its parameters are those of the job.
}

/// A fan-out: the job becomes one job per item of a list, followed by a milestone under the
/// original code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForEach {
    /// The source of the items.
    pub items: Items,
    /// Maximum number of items that run at once; none: no separate limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
}

/// A list of items; each is `${item}` in the parameters of its job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ItemsForm", into = "ItemsForm")]
pub enum Items {
    /// Literal items.
    List(Vec<String>),
    /// A parameter of the batch, the group or all groups: items separated by commas.
    Param(String),
    /// An output of an ancestor: items separated by commas, or the first column of its only result
    /// set.
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
    /// Splits a text into items at commas.
    pub fn split(text: &str) -> Vec<String> {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// Parses `JOB.name`; a job code may contain dots, the name of an output may not.
    pub fn output(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once('.').filter(|(_, name)| !name.is_empty());
        let (job, name) = parts.ok_or_else(|| format!("{text:?} is not JOB.name"))?;
        let job = JobCode::parse(job).map_err(|error| error.to_string())?;
        Ok(Self::Output(job, name.to_owned()))
    }
}

/// The part that a job plays in a fan-out, in the snapshot of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FanOut {
    /// One of the items.
    Item {
        /// The original job, which is now the milestone after the items.
        of: JobCode,
        /// Value of `${item}`.
        item: String,
    },
    /// The milestone that follows all items, under the code of the original job.
    Milestone {
        /// Texts of the items, in order.
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
