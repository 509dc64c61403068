//! Run modes of jobs in all future batches, and the removal of violation marks.

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
    Noun::new("jobs")
        .change(
            "setRunModes",
            Method::POST,
            "/jobs/run-modes",
            CallerNeeds::Somewhere(Permission::Run),
            "Set the run mode (ice, no-exec or normal) of jobs for all batches opened from now on",
            set_modes,
        )
        .guarded()
        .change(
            "trustJob",
            Method::POST,
            "/jobs/{code}/trust",
            CallerNeeds::Somewhere(Permission::Force),
            "Clear the transaction-class violation of a job whose procedure was corrected",
            trust,
        )
        .guarded()
}

/// A run mode for jobs in every new batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetModesRequest {
    /// The jobs, CODE or group.CODE.
    jobs: Vec<String>,
    /// The run mode.
    mode: RequestedMode,
    /// The reason, which others will read.
    reason: Option<String>,
    /// Only check whether it is possible.
    #[serde(default)]
    dry_run: bool,
}

/// A run mode.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RequestedMode {
    /// On ice: ignored, children do not wait for it.
    Ice,
    /// Dry run: marked successful in its turn without running.
    NoExec,
    /// Neither.
    Normal,
}

/// The new run modes.
#[derive(Debug, Serialize, JsonSchema)]
struct SetModesResult {
    /// Whether they are stored; false with `dry_run`.
    written: bool,
    /// The jobs.
    jobs: Vec<String>,
    /// `ice`, `no_exec`, or null.
    run_mode: Option<&'static str>,
}

/// Finds the jobs with these codes and checks the permission; invisible ones count as missing.
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

/// The change for the approval by a second person, with the previous run modes.
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

/// A job whose mark was removed.
#[derive(Debug, Serialize, JsonSchema)]
struct TrustJobResult {
    /// The job.
    trusted: String,
}

async fn trust(ask: ApiRequest, at: CodePath, why: ReasonBody) -> Result<TrustJobResult, Problem> {
    let jobs = parse_jobs(&ask, Permission::Force, std::slice::from_ref(&at.code)).await?;
    let (by, reason) = (ask.operator()?, authorize::reason(why.reason.as_deref())?);
    ask.pass_four_eyes(guarded_trust(&ask, &jobs, reason).await?)?;
    let now = authorize::now(&ask).await?;
    let db = &ask.house.app.db;
    if !pause::trust(db, &jobs, &by, reason, now).await?.is_empty() {
        let message = format!("job {} was not caught committing by itself", at.code);
        return Err(Problem::conflict("is-so", message));
    }
    Ok(TrustJobResult { trusted: at.code })
}

/// The removal of the mark, for the approval by a second person.
async fn guarded_trust(
    ask: &ApiRequest,
    jobs: &[JobKey],
    reason: &str,
) -> Result<GuardedChange, Problem> {
    let marks = breach::list_marks(&mut authorize::open_read(ask).await?).await?;
    let found: Vec<_> = jobs.iter().filter_map(|job| Some((job, marks.get(job)?))).collect();
    if found.len() < jobs.len() {
        let message = format!("job {} was not caught committing by itself", codes_of(jobs));
        return Err(Problem::conflict("is-so", message));
    }
    let line = |(job, mark): &(&JobKey, &breach::Breach)| {
        json!({
            "job_code": job.to_string(), "batch_no": mark.batch_no, "attempt": mark.attempt,
            "message": mark.said,
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
