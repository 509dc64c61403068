//! Data sources, and the jobs whose bodies run on them.

use crate::app::sources::{Password, Place, place};
use crate::domain::id::GroupCode;
use crate::domain::job::{Definition, JobDef};
use crate::domain::source::Source;
use crate::domain::source::tx_class::TxClass;
use serde_json::{Value, json};

/// A source, and the jobs whose bodies run there.
pub struct Uses<'a> {
    /// The source.
    pub source: &'a Source,
    /// Those jobs.
    pub jobs: Vec<&'a JobDef>,
}

impl<'a> Uses<'a> {
    /// Every source.
    pub fn all(defs: &'a Definition) -> Vec<Self> {
        defs.sources.iter().map(|source| Self::of(defs, source)).collect()
    }

    /// One of them.
    pub fn of(defs: &'a Definition, source: &'a Source) -> Self {
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

/// A source with where it is.
pub fn as_json(uses: &Uses<'_>) -> Value {
    let Place { dialect, at, replaced_by, password } = place(uses.source);
    let jobs: Vec<Value> = uses
        .jobs
        .iter()
        .map(|job| json!({"job_code": job.code, "tx": job.tx, "idempotent": job.idempotent}))
        .collect();
    json!({
        "name": uses.source.name, "dialect": dialect, "at": at.as_ref().ok(),
        "fault": at.as_ref().err(), "replaced_by": replaced_by,
        "password_from": password.as_ref().map(|(from, _)| from),
        "password_is_set": password.as_ref().and_then(|(_, there)| match there {
            Password::Set => Some(true),
            Password::Missing => Some(false),
            Password::NotAsked => None,
        }),
        "jobs": jobs,
    })
}

/// A source for who may not know where it is, with the jobs of groups that are seen.
pub fn brief(uses: &Uses<'_>, sees: impl Fn(&GroupCode) -> bool) -> Value {
    let mut document = as_json(&Uses {
        source: uses.source,
        jobs: uses.jobs.iter().copied().filter(|job| sees(&job.group)).collect(),
    });
    for hidden in ["at", "fault", "replaced_by", "password_from", "password_is_set"] {
        document[hidden] = Value::Null;
    }
    document
}
