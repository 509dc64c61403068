//! Data sources, and the jobs whose bodies run on them.

use crate::app::routines::RoutineSignature;
use crate::app::sources::{Password, SourceAddress, place};
use crate::domain::id::GroupCode;
use crate::domain::job::param::ParamMode;
use crate::domain::job::{Definition, JobDef};
use crate::domain::source::tx_class::TxClass;
use crate::domain::source::{DataSource, DialectName};
use schemars::JsonSchema;
use serde::Serialize;

/// A source, and the jobs whose bodies run there.
pub struct SourceUses<'a> {
    pub source: &'a DataSource,
    pub jobs: Vec<&'a JobDef>,
}

impl<'a> SourceUses<'a> {
    /// Every source.
    pub fn all_sources(defs: &'a Definition) -> Vec<Self> {
        defs.sources.iter().map(|source| Self::of_source(defs, source)).collect()
    }

    /// One source.
    pub fn of_source(defs: &'a Definition, source: &'a DataSource) -> Self {
        let its = |j: &&JobDef| j.source.as_ref() == Some(&source.name);
        Self { source, jobs: defs.jobs.iter().filter(its).collect() }
    }

    /// Whether one of the jobs needs the ledger there.
    pub fn needs_ledger(&self) -> bool {
        self.jobs.iter().any(|job| job.tx == TxClass::Ledger)
    }

    /// Number of its jobs by class: `3 none, 2 ledger`.
    pub fn classes(&self) -> String {
        let of = |class| self.jobs.iter().filter(|j| j.tx == class).count();
        let counts = TxClass::ALL.into_iter().map(|class| (of(class), class.as_str()));
        let words: Vec<String> =
            counts.filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(", ") }
    }
}

/// A data source with its address, and the jobs whose bodies run there.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceDetail {
    /// The name of the source.
    pub name: String,
    /// The dialect; null where its URL cannot be parsed.
    pub dialect: Option<DialectName>,
    /// Its address without a password; null for users who may not see it.
    pub at: Option<String>,
    /// The fault of its address.
    pub fault: Option<String>,
    /// The environment variable that replaces its URL.
    pub replaced_by: Option<String>,
    /// The origin of its password.
    pub password_from: Option<String>,
    /// Whether the password is available; null where it is read for each attempt.
    pub password_is_set: Option<bool>,
    /// The jobs whose bodies run there.
    pub jobs: Vec<SourceJob>,
}

/// A job whose body runs on a data source.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceJob {
    /// The job code.
    pub job_code: String,
    /// The transaction class: `none`, `same` or `ledger`.
    pub tx: &'static str,
    /// Whether it may be started again after an unknown outcome.
    pub idempotent: bool,
}

/// A procedure or function of a data source that a job may call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceRoutine {
    /// Its name as a job gives it in `proc_name`: with its schema where the search path has it not.
    pub name: String,
    /// Whether it is a function.
    pub is_function: bool,
    /// Its parameters, in order.
    pub params: Vec<SourceRoutineParam>,
    /// Whether `params` has its outputs too; false for a SQL body in place of a procedure (SQLite).
    pub has_outputs: bool,
}

/// A parameter of a routine, as a job declares it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceRoutineParam {
    /// The name of the parameter.
    pub name: String,
    /// Its direction: `in`, `out` or `inout`.
    pub mode: &'static str,
    /// The type of a job's parameter: `text`, `int`, `decimal`, `date`, `datetime`, `bool` or `bytes`.
    #[serde(rename = "type")]
    pub ty: &'static str,
    /// Whether a job may leave it out.
    pub has_default: bool,
}

impl SourceRoutine {
    /// The document of a routine.
    pub fn from_signature(routine: &RoutineSignature) -> Self {
        let name = match &routine.schema {
            Some(schema) => format!("{schema}.{}", routine.name),
            None => routine.name.clone(),
        };
        let params = routine.params.iter().map(|param| SourceRoutineParam {
            name: param.name.clone(),
            mode: match param.mode {
                ParamMode::In => "in",
                ParamMode::Out => "out",
                ParamMode::InOut => "inout",
            },
            ty: param.ty.as_str(),
            has_default: param.has_default,
        });
        Self {
            name,
            is_function: routine.is_function,
            params: params.collect(),
            has_outputs: routine.has_outputs,
        }
    }
}

impl SourceDetail {
    /// The document with the address.
    pub fn from_uses(uses: &SourceUses<'_>) -> Self {
        let SourceAddress { dialect, at, replaced_by, password } = place(uses.source);
        let job = |job: &&JobDef| SourceJob {
            job_code: job.code.to_string(),
            tx: job.tx.as_str(),
            idempotent: job.idempotent,
        };
        Self {
            name: uses.source.name.to_string(),
            dialect,
            fault: at.as_ref().err().map(ToString::to_string),
            at: at.ok().map(|at| at.to_string()),
            replaced_by,
            password_from: password.as_ref().map(|(from, _)| from.to_string()),
            password_is_set: password.as_ref().and_then(|(_, there)| match there {
                Password::Set => Some(true),
                Password::Missing => Some(false),
                Password::NotAsked => None,
            }),
            jobs: uses.jobs.iter().map(job).collect(),
        }
    }

    /// The document for users who may not see the address, with the jobs of visible groups.
    pub fn brief(uses: &SourceUses<'_>, sees: impl Fn(&GroupCode) -> bool) -> Self {
        let jobs = uses.jobs.iter().copied().filter(|job| sees(&job.group)).collect();
        Self {
            at: None,
            fault: None,
            replaced_by: None,
            password_from: None,
            password_is_set: None,
            ..Self::from_uses(&SourceUses { source: uses.source, jobs })
        }
    }
}
