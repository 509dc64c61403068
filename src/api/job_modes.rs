//! What is wanted with jobs in every batch to come, and marks that are taken off them.

use crate::api::authorize;
use crate::api::batch_control::Why;
use crate::api::caller::{Ask, Needs};
use crate::api::path_params::CodePath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::action::Action;
use crate::domain::job_key::JobKey;
use crate::domain::queue::RunMode;
use crate::engine::pause;
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) fn noun() -> Noun {
    Noun::new("jobs in every batch")
        .change(
            (Method::POST, "/jobs/run-modes"),
            Needs::Somewhere(Permission::Run),
            "Ice, no-exec or neither in every batch that is opened from now on",
            set,
        )
        .change(
            (Method::POST, "/jobs/{code}/trust"),
            Needs::Somewhere(Permission::Force),
            "Take the mark off a job that committed by itself, because it was mended",
            trust,
        )
}

/// What is wanted with jobs in every new batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Modes {
    /// The jobs, CODE or group.CODE.
    jobs: Vec<String>,
    /// What is wanted.
    mode: Mode,
    /// Why; it is what others will read.
    reason: Option<String>,
    /// Only look whether it could be done.
    #[serde(default)]
    dry_run: bool,
}

/// What is wanted with a job.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// It is absent: its children do not wait for it.
    Ice,
    /// It pretends to be done when its turn comes.
    NoExec,
    /// Neither.
    Normal,
}

/// What is wanted with jobs from now on.
#[derive(Debug, Serialize, JsonSchema)]
struct Set {
    /// Whether it is written; not with `dry_run`.
    written: bool,
    /// The jobs.
    jobs: Vec<String>,
    /// `ice`, `no_exec`, or none.
    run_mode: Option<&'static str>,
}

/// The jobs of these codes, to do this to; those that are not seen are not there.
async fn jobs(ask: &Ask, permission: Permission, words: &[String]) -> Result<Vec<JobKey>, Problem> {
    let mut tx = authorize::read(ask).await?;
    let mut found = Vec::new();
    for word in words {
        found.push(authorize::job(ask, &mut tx, permission, word).await?.key());
    }
    if found.is_empty() {
        return Err(Problem::refused("jobs: name at least one"));
    }
    Ok(found)
}

async fn set(ask: Ask, _: Nothing, sent: Modes) -> Result<Set, Problem> {
    let (mode, action) = match sent.mode {
        Mode::Ice => (Some(RunMode::Ice), Action::Ice),
        Mode::NoExec => (Some(RunMode::NoExec), Action::NoExec),
        Mode::Normal => (None, Action::Normal),
    };
    let jobs = jobs(&ask, action.permission(), &sent.jobs).await?;
    if !sent.dry_run {
        let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
        let now = authorize::now(&ask).await?;
        let db = &ask.house.app.db;
        let gone = pause::set_standing(db, &jobs, mode, (&by, reason), now).await?;
        if let Some(job) = gone.first() {
            return Err(Problem::not_found(format!("job {job}")));
        }
    }
    Ok(Set {
        written: !sent.dry_run,
        jobs: jobs.iter().map(|job| job.code.to_string()).collect(),
        run_mode: mode.map(RunMode::as_str),
    })
}

/// A job that is trusted again.
#[derive(Debug, Serialize, JsonSchema)]
struct Trusted {
    /// The job.
    trusted: String,
}

async fn trust(ask: Ask, at: CodePath, why: Why) -> Result<Trusted, Problem> {
    let jobs = jobs(&ask, Permission::Force, std::slice::from_ref(&at.code)).await?;
    let (by, reason) = (ask.operator()?, authorize::reason(why.reason.as_deref())?);
    let now = authorize::now(&ask).await?;
    let db = &ask.house.app.db;
    if !pause::trust(db, &jobs, (&by, reason), now).await?.is_empty() {
        let said = format!("job {} was not caught committing by itself", at.code);
        return Err(Problem::conflict("is-so", said));
    }
    Ok(Trusted { trusted: at.code })
}
