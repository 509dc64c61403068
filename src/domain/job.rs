//! What may run, and after what: the rows of `job_def` and `job_dependency`.

use crate::domain::id::{GroupCode, JobCode, JobType, SourceName};
use crate::domain::source::DialectName;
use chrono::NaiveTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Seconds a body may run when its definition does not say (`job_def.timeout_sec`).
pub const DEFAULT_TIMEOUT_SEC: u32 = 1_800;

/// Which way a parameter of a procedure travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ParamMode {
    /// Handed to the body.
    #[default]
    In,
    /// Handed back by the body and kept as an output of the job.
    Out,
    /// Both.
    InOut,
}

/// The type a parameter's text is checked against before it is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ParamType {
    /// Any text.
    #[default]
    Text,
    /// A whole number of 64 bits.
    Int,
    /// A decimal number, kept exact as text.
    Decimal,
    /// `YYYY-MM-DD`.
    Date,
    /// `YYYY-MM-DD HH:MM:SS`.
    Datetime,
    /// `true` or `false`.
    Bool,
}

/// One parameter of a job's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name: the procedure's parameter, `:name` in SQL, `PROCESSION_PARAM_NAME` in a script.
    pub name: String,
    /// Which way it travels.
    #[serde(default)]
    pub mode: ParamMode,
    /// What its text must be.
    #[serde(rename = "type", default)]
    pub ty: ParamType,
    /// Its value, in which `${…}` of a closed set of names is replaced (see `domain::params`);
    /// `None` is SQL's NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// How the statements of a SQL body are grouped into transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum TransactionMode {
    /// All statements in one; an error undoes them all.
    #[default]
    One,
    /// Each statement in one of its own.
    Each,
    /// None is opened: the statements say BEGIN and COMMIT themselves.
    None,
}

/// SQL text, the same for every dialect or one per dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SqlText {
    /// One text for every dialect.
    Same(String),
    /// A text per dialect, so that one DAG runs on a laptop and on the team's server.
    Per(BTreeMap<DialectName, String>),
}

impl SqlText {
    /// The text for `dialect`, if there is one.
    pub fn of(&self, dialect: DialectName) -> Option<&str> {
        match self {
            Self::Same(text) => Some(text),
            Self::Per(texts) => texts.get(&dialect).map(String::as_str),
        }
    }
}

/// A job: one procedure call, SQL text or script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDef {
    /// Unique code.
    pub code: JobCode,
    /// Name for people.
    pub name: String,
    /// The group (pipeline) it belongs to.
    pub group: GroupCode,
    /// PROC, SQL, SCRIPT or NOOP; checked against the handlers that exist.
    #[serde(rename = "type")]
    pub job_type: JobType,
    /// The data source its body runs on; none for scripts and no-ops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceName>,
    /// `[schema.]procedure` for PROC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proc_name: Option<String>,
    /// Text of a SQL body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlText>,
    /// How a SQL body's statements are grouped.
    #[serde(default)]
    pub transaction: TransactionMode,
    /// Text of a script body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Which interpreter of the allow-list runs the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// Folder a script starts in; none: a private temporary folder, removed afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Parameters, in the procedure's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// Not before this time of day on the batch's day, in the group's time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_time: Option<NaiveTime>,
    /// Seconds a body may run.
    pub timeout_sec: u32,
    /// How many times it is tried again after a failure or time-out.
    pub retry_count: u32,
    /// Seconds between the end of a try and the start of the next.
    pub retry_delay_sec: u32,
    /// Higher goes first when slots are short; 0 is ordinary.
    pub priority: i32,
    /// May be started again when the outcome of a try could not be learnt.
    pub idempotent: bool,
    /// An inactive job is left out of batches.
    pub is_active: bool,
    /// Addresses that hear of a final failure or time-out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify_email: Vec<String>,
    /// Who answers for it; free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl JobDef {
    /// A job with every default of the spec and no body: what tests and readers of bare CSV start
    /// from.
    pub fn bare(code: JobCode, group: GroupCode, job_type: JobType) -> Self {
        Self {
            name: code.to_string(),
            code,
            group,
            job_type,
            source: None,
            proc_name: None,
            sql: None,
            transaction: TransactionMode::One,
            script: None,
            interpreter: None,
            working_dir: None,
            params: Vec::new(),
            schedule_time: None,
            timeout_sec: DEFAULT_TIMEOUT_SEC,
            retry_count: 0,
            retry_delay_sec: 0,
            priority: 0,
            idempotent: false,
            is_active: true,
            notify_email: Vec::new(),
            owner: None,
            tags: Vec::new(),
        }
    }
}

/// `job_code` runs after `depends_on` has succeeded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobDependency {
    /// The one that waits.
    pub job_code: JobCode,
    /// The one waited for.
    pub depends_on: JobCode,
    /// Place in the list of dependencies as it was written; only for display.
    pub dependency_order: i32,
}

/// A group of jobs that run together as a batch: a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Unique code.
    pub code: GroupCode,
    /// Name for people.
    pub name: String,
    /// The batch type it answers to: `monthly`, `quarterly`, `yearly`, or any word of the team's.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub batch_type: Option<String>,
    /// Who answers for it; free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Addresses that hear of failures of any of its jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify_email: Vec<String>,
    /// How many of its jobs may run at once; `None` leaves it to the limit in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// IANA zone in which `schedule_time` is read; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Parameters every batch of the group starts with; the batch's own win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
}

/// A checked set of definitions: what a file says, what `apply` stores, what a batch snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Definition {
    /// Data sources, by name.
    pub sources: Vec<crate::domain::source::Source>,
    /// Groups, by code.
    pub groups: Vec<Group>,
    /// Jobs, in the order written.
    pub jobs: Vec<JobDef>,
    /// Dependencies, in the order written.
    pub dependencies: Vec<JobDependency>,
}

/// A part of a job's body that a job type needs or may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPart {
    /// `source`
    Source,
    /// `proc_name`
    ProcName,
    /// `sql` or `sql_file`
    Sql,
    /// `transaction`
    Transaction,
    /// `script` or `script_file`
    Script,
    /// `interpreter`
    Interpreter,
    /// `working_dir`
    WorkingDir,
    /// `params`
    Params,
}

/// What `check` knows of a job type: each handler gives its own, so a new type is one file there
/// and nothing here.
#[derive(Clone, Copy, Debug)]
pub struct JobKind {
    /// `PROC`
    pub name: &'static str,
    /// One sentence for people.
    pub about: &'static str,
    /// Parts without which it cannot run.
    pub needs: &'static [BodyPart],
    /// Parts it understands beside those; any other part is refused, for it would be ignored.
    pub may_have: &'static [BodyPart],
}
