//! What is wanted with jobs in every batch to come, and marks that are taken off them.

use crate::api::authorize;
use crate::api::batch_control::ReasonBody;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::path_params::CodePath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::second_person::{GuardedChange, demands_in, fingerprint_of};
use crate::domain::access::Permission;
use crate::domain::action::OperatorAction;
use crate::domain::job::job_key::JobKey;
use crate::domain::job::queue::RunMode;
use crate::domain::permission::four_eyes::GuardedAction;
use crate::engine::operate::pause;
use crate::store::{breach, run_mode};
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(super) fn routes() -> Noun {
    Noun::new("jobs in every batch")
        .change(
            Method::POST,
            "/jobs/run-modes",
            CallerNeeds::Somewhere(Permission::Run),
            "Ice, no-exec or neither in every batch that is opened from now on",
            set_modes,
        )
        .guarded()
        .change(
            Method::POST,
            "/jobs/{code}/trust",
            CallerNeeds::Somewhere(Permission::Force),
            "Take the mark off a job that committed by itself, because it was mended",
            trust,
        )
        .guarded()
}

/// What is wanted with jobs in every new batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetModesRequest {
    /// The jobs, CODE or group.CODE.
    jobs: Vec<String>,
    /// What is wanted.
    mode: RequestedMode,
    /// Why; it is what others will read.
    reason: Option<String>,
    /// Only look whether it could be done.
    #[serde(default)]
    dry_run: bool,
}

/// What is wanted with a job.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RequestedMode {
    /// It is absent: its children do not wait for it.
    Ice,
    /// It pretends to be done when its turn comes.
    NoExec,
    /// Neither.
    Normal,
}

/// What is wanted with jobs from now on.
#[derive(Debug, Serialize, JsonSchema)]
struct SetModesResult {
    /// Whether it is written; not with `dry_run`.
    written: bool,
    /// The jobs.
    jobs: Vec<String>,
    /// `ice`, `no_exec`, or none.
    run_mode: Option<&'static str>,
}

/// The jobs of these codes, to do this to; those that are not seen are not there.
async fn parse_jobs(
    ask: &ApiRequest,
    permission: Permission,
    words: &[String],
) -> Result<Vec<JobKey>, Problem> {
    let mut tx = authorize::open_read(ask).await?;
    let mut found = Vec::new();
    for word in words {
        found.push(authorize::find_job(ask, &mut tx, permission, word).await?.key());
    }
    if found.is_empty() {
        return Err(Problem::refused("jobs: name at least one"));
    }
    Ok(found)
}

async fn set_modes(
    ask: ApiRequest,
    _: Nothing,
    sent: SetModesRequest,
) -> Result<SetModesResult, Problem> {
    let (mode, action) = match sent.mode {
        RequestedMode::Ice => (Some(RunMode::Ice), OperatorAction::Ice),
        RequestedMode::NoExec => (Some(RunMode::NoExec), OperatorAction::NoExec),
        RequestedMode::Normal => (None, OperatorAction::Normal),
    };
    let jobs = parse_jobs(&ask, action.permission(), &sent.jobs).await?;
    if !sent.dry_run {
        let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
        if action.permission() == Permission::Force {
            let change = guarded_modes(&ask, &jobs, action, mode, reason).await?;
            ask.pass_four_eyes(change)?;
        }
        let now = authorize::now(&ask).await?;
        let db = &ask.house.app.db;
        let gone = pause::set_standing(db, &jobs, mode, &by, reason, now).await?;
        if let Some(job) = gone.first() {
            return Err(Problem::not_found(format!("job {job}")));
        }
    }
    Ok(SetModesResult {
        written: !sent.dry_run,
        jobs: jobs.iter().map(|job| job.code.to_string()).collect(),
        run_mode: mode.map(RunMode::as_str),
    })
}

fn codes_of(jobs: &[JobKey]) -> String {
    jobs.iter().map(JobKey::to_string).collect::<Vec<_>>().join(", ")
}

/// What is wanted from now on, as a second person is shown it: with what was wanted before.
async fn guarded_modes(
    ask: &ApiRequest,
    jobs: &[JobKey],
    action: OperatorAction,
    mode: Option<RunMode>,
    reason: &str,
) -> Result<GuardedChange, Problem> {
    let standing = run_mode::standing(&mut authorize::open_read(ask).await?).await?;
    let word = |mode: Option<RunMode>| mode.map(RunMode::as_str);
    let line = |job: &JobKey| {
        json!({
            "job_code": job.to_string(), "from": word(standing.get(job).copied()), "to": word(mode),
        })
    };
    let effect = json!({ "lines": jobs.iter().map(line).collect::<Vec<_>>() });
    Ok(GuardedChange {
        action: GuardedAction::Force,
        demands: demands_in(Permission::Force, jobs.iter().map(|job| &job.group)),
        summary: format!("{} in every new batch: {}", action.as_str(), codes_of(jobs)),
        reason: reason.to_owned(),
        fingerprint: fingerprint_of(&[action.as_str(), &effect.to_string()]),
        effect,
    })
}

/// A job that is trusted again.
#[derive(Debug, Serialize, JsonSchema)]
struct Trusted {
    /// The job.
    trusted: String,
}

async fn trust(ask: ApiRequest, at: CodePath, why: ReasonBody) -> Result<Trusted, Problem> {
    let jobs = parse_jobs(&ask, Permission::Force, std::slice::from_ref(&at.code)).await?;
    let (by, reason) = (ask.operator()?, authorize::reason(why.reason.as_deref())?);
    ask.pass_four_eyes(guarded_trust(&ask, &jobs, reason).await?)?;
    let now = authorize::now(&ask).await?;
    let db = &ask.house.app.db;
    if !pause::trust(db, &jobs, &by, reason, now).await?.is_empty() {
        let said = format!("job {} was not caught committing by itself", at.code);
        return Err(Problem::conflict("is-so", said));
    }
    Ok(Trusted { trusted: at.code })
}

/// The mark that is taken off, as a second person is shown it.
async fn guarded_trust(
    ask: &ApiRequest,
    jobs: &[JobKey],
    reason: &str,
) -> Result<GuardedChange, Problem> {
    let marks = breach::list_marks(&mut authorize::open_read(ask).await?).await?;
    let found: Vec<_> = jobs.iter().filter_map(|job| Some((job, marks.get(job)?))).collect();
    if found.len() < jobs.len() {
        let said = format!("job {} was not caught committing by itself", codes_of(jobs));
        return Err(Problem::conflict("is-so", said));
    }
    let line = |(job, mark): &(&JobKey, &breach::Breach)| {
        json!({
            "job_code": job.to_string(), "batch_no": mark.batch_no, "attempt": mark.attempt,
            "said": mark.said,
        })
    };
    let effect = json!({ "lines": found.iter().map(line).collect::<Vec<_>>() });
    Ok(GuardedChange {
        action: GuardedAction::Force,
        demands: demands_in(Permission::Force, jobs.iter().map(|job| &job.group)),
        summary: format!("trust {} again, which committed by itself", codes_of(jobs)),
        reason: reason.to_owned(),
        fingerprint: fingerprint_of(&["trust", &effect.to_string()]),
        effect,
    })
}
