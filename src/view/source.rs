//! Data sources, and the jobs whose bodies run on them.

use crate::app::sources::{Password, SourceAddress, place};
use crate::domain::id::GroupCode;
use crate::domain::job::{Definition, JobDef};
use crate::domain::source::tx_class::TxClass;
use crate::domain::source::{DataSource, DialectName};
use schemars::JsonSchema;
use serde::Serialize;

/// A source, and the jobs whose bodies run there.
pub struct SourceUses<'a> {
    /// The source.
    pub source: &'a DataSource,
    /// Those jobs.
    pub jobs: Vec<&'a JobDef>,
}

impl<'a> SourceUses<'a> {
    /// Every source.
    pub fn all_sources(defs: &'a Definition) -> Vec<Self> {
        defs.sources.iter().map(|source| Self::of_source(defs, source)).collect()
    }

    /// One of them.
    pub fn of_source(defs: &'a Definition, source: &'a DataSource) -> Self {
        let its = |j: &&JobDef| j.source.as_ref() == Some(&source.name);
        Self { source, jobs: defs.jobs.iter().filter(its).collect() }
    }

    /// Whether one of them needs the ledger there.
    pub fn needs_ledger(&self) -> bool {
        self.jobs.iter().any(|job| job.tx == TxClass::Ledger)
    }

    /// Its jobs by class: `3 none, 2 ledger`.
    pub fn classes(&self) -> String {
        let of = |class| self.jobs.iter().filter(|j| j.tx == class).count();
        let counts = TxClass::ALL.into_iter().map(|class| (of(class), class.as_str()));
        let words: Vec<String> =
            counts.filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(", ") }
    }
}

/// A data source, where it is, and the jobs whose bodies run there.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceDetail {
    /// Its name.
    pub name: String,
    /// What kind of server it is; null where its address cannot be read.
    pub dialect: Option<DialectName>,
    /// Where it is, without a password; null for who may not know it.
    pub at: Option<String>,
    /// What is wrong with its address.
    pub fault: Option<String>,
    /// The variable of the environment that takes the place of its address.
    pub replaced_by: Option<String>,
    /// Where its password comes from.
    pub password_from: Option<String>,
    /// Whether the password is there; null where it is read anew for each attempt.
    pub password_is_set: Option<bool>,
    /// The jobs whose bodies run there.
    pub jobs: Vec<SourceJob>,
}

/// A job whose body runs on a data source.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceJob {
    /// The job.
    pub job_code: String,
    /// What ties its effect to the record of it: `none`, `same` or `ledger`.
    pub tx: &'static str,
    /// Whether it may be started again after an unknown end.
    pub idempotent: bool,
}

impl SourceDetail {
    /// With where it is.
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

    /// For who may not know where it is, with the jobs of groups that are seen.
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
