//! Bodies beyond a procedure, SQL and a script: a call over HTTP, a wait, another batch, a list.

use crate::domain::batch_no::BatchExpr;
use crate::domain::id::{GroupCode, JobCode};
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
#[serde(rename_all = "snake_case")]
pub enum Items {
    /// As written.
    List(Vec<String>),
    /// A parameter of the batch, group or all: items separated by commas.
    Param(String),
    /// An output of a job above: items separated by commas, or the first column of its only result set.
    Output(JobCode, String),
}
