//! Backfills: preview, start, stop, resume.

use crate::api::authorize;
use crate::api::batch_control::ReasonBody;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::path_params::IdPath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::backfill::{
    BackfillFailurePolicy, BackfillOptions, BackfillSelection, RangeOrder,
};
use crate::domain::batch_no::range;
use crate::domain::id::BackfillId;
use crate::engine::dispatch::backfill::{self, BackfillSurvey, Request, Resumption, survey};
use crate::store;
use crate::store::backfill::Backfill;
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) fn routes() -> Noun {
    let runs = CallerNeeds::Somewhere(Permission::Run);
    Noun::new("backfills")
        .change(
            "previewBackfill",
            Method::POST,
            "/backfills/preview",
            runs,
            "Preview a backfill, batch by batch; changes nothing",
            preview,
        )
        .change(
            "startBackfill",
            Method::POST,
            "/backfills",
            runs,
            "Start a backfill: the batches of a range, run by the process that answers",
            start,
        )
        .change(
            "stopBackfill",
            Method::POST,
            "/backfills/{id}/stop",
            runs,
            "Stop a backfill: running jobs end, nothing new is started",
            stop_backfill,
        )
        .change(
            "resumeBackfill",
            Method::POST,
            "/backfills/{id}/resume",
            runs,
            "Resume a backfill that was stopped, failed, or lost its process",
            resume,
        )
}

/// A request to start a backfill.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackfillRequest {
    /// The group whose batches are run.
    group: String,
    /// `202401..202412`, `202412..202401`, `2024Q1..2025Q2`, a list `A,B,C`, or both.
    range: String,
    /// Maximum number of batches open at once, 1 to 1,000; default 1.
    parallel: Option<u32>,
    /// `asc` or `desc`; default is the order of the range.
    order: Option<BackfillDirection>,
    /// `missing`, `failed`, or `missing,failed` (default); successful batches are never run again.
    only: Option<String>,
    /// Parameters of each batch.
    #[serde(default)]
    params: BTreeMap<String, String>,
    /// Open batches although their numbers do not fit the type of the group; this is recorded.
    #[serde(default)]
    free_text: bool,
    /// After a batch that did not succeed: `stop` (default) or `go-on`.
    on_failure: Option<FailurePolicy>,
    /// The reason; stored with the backfill.
    reason: Option<String>,
    /// Only preview.
    #[serde(default)]
    dry_run: bool,
}

/// The order of the batches.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BackfillDirection {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

/// What to do after a batch that did not succeed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum FailurePolicy {
    /// Open no further batches.
    Stop,
    /// Continue with the others.
    GoOn,
}

/// A batch of a planned backfill.
#[derive(Debug, Serialize, JsonSchema)]
struct BackfillStepDetail {
    /// The batch number.
    batch_no: String,
    /// The action: `open`, `resume`, `go_on`, `leave`, `refuse`.
    action: &'static str,
    /// Whether that action runs the batch.
    runs: bool,
}

/// A planned or started backfill.
#[derive(Debug, Serialize, JsonSchema)]
struct BackfillStart {
    /// The number of the backfill, once it is started.
    backfill_id: Option<i64>,
    /// The batches, in the order of execution.
    steps: Vec<BackfillStepDetail>,
    /// Why it would be refused.
    refused: Option<String>,
}

impl BackfillRequest {
    async fn request(&self, ask: &ApiRequest, reason: Option<&str>) -> Result<Request, Problem> {
        let group = authorize::group(ask, Permission::Run, &self.group)?;
        authorize::secret_params(ask, &[&group], &self.params).await?;
        let numbers = range(&self.range).map_err(|e| Problem::refused(e.to_string()))?;
        let only = self.only.as_deref().unwrap_or("missing,failed");
        let only = BackfillSelection::parse(only)
            .ok_or_else(|| Problem::refused("only: write missing, failed, or missing,failed"))?;
        let parallel = self.parallel.unwrap_or(1);
        if !(1..=1_000).contains(&parallel) {
            return Err(Problem::refused("parallel: write 1 to 1000"));
        }
        let options = BackfillOptions {
            parallel,
            order: self.order.map(|order| match order {
                BackfillDirection::Asc => RangeOrder::Asc,
                BackfillDirection::Desc => RangeOrder::Desc,
            }),
            only,
            on_failure: match self.on_failure {
                Some(FailurePolicy::GoOn) => BackfillFailurePolicy::GoOn,
                Some(FailurePolicy::Stop) | None => BackfillFailurePolicy::Stop,
            },
            params: self.params.clone(),
            free_text: self.free_text,
        };
        Ok(Request {
            group,
            range: self.range.trim().to_owned(),
            numbers,
            options,
            by: ask.operator()?,
            reason: reason.map(str::to_owned),
        })
    }
}

fn begun(survey: &BackfillSurvey, request: &Request, id: Option<BackfillId>) -> BackfillStart {
    let step = |s: &crate::domain::backfill::BackfillStep| BackfillStepDetail {
        batch_no: s.batch_no.to_string(),
        action: s.action.as_str(),
        runs: s.action.runs_batch(),
    };
    BackfillStart {
        backfill_id: id.map(|id| id.0),
        steps: survey.steps.iter().map(step).collect(),
        refused: survey.refusal(&request.group).err().map(|error| error.to_string()),
    }
}

async fn preview(
    ask: ApiRequest,
    _: Nothing,
    wish: BackfillRequest,
) -> Result<BackfillStart, Problem> {
    let request = wish.request(&ask, None).await?;
    let (defs, now) = (ask.house.app.definition().await?, authorize::now(&ask).await?);
    let found = survey(&mut authorize::open_read(&ask).await?, &defs, &request, now).await?;
    Ok(begun(&found, &request, None))
}

async fn start(
    ask: ApiRequest,
    _: Nothing,
    wish: BackfillRequest,
) -> Result<BackfillStart, Problem> {
    if wish.dry_run {
        return preview(ask, Nothing {}, wish).await;
    }
    let reason = authorize::reason(wish.reason.as_deref())?;
    let request = wish.request(&ask, Some(reason)).await?;
    let (defs, now) = (ask.house.app.definition().await?, authorize::now(&ask).await?);
    let found = survey(&mut authorize::open_read(&ask).await?, &defs, &request, now).await?;
    found.refusal(&request.group)?;
    if !found.runs_any() {
        let message = "no batch of the range is missing or to be run again";
        return Err(Problem::conflict("is-so", message));
    }
    let id = ask.house.aside.backfill(defs, request.clone()).await?;
    Ok(begun(&found, &request, Some(id)))
}

/// Finds a backfill and checks the permission.
async fn found(ask: &ApiRequest, id: i64) -> Result<Backfill, Problem> {
    let what = format!("backfill {id}");
    let found =
        store::backfill::find_backfill(&mut authorize::open_read(ask).await?, BackfillId(id))
            .await?;
    let found = found.ok_or_else(|| Problem::not_found(&what))?;
    ask.require(Permission::Run, &found.group, what)?;
    Ok(found)
}

/// The state of a backfill.
#[derive(Debug, Serialize, JsonSchema)]
struct BackfillState {
    /// The number of the backfill.
    backfill_id: i64,
    /// The state.
    status: String,
}

async fn stop_backfill(
    ask: ApiRequest,
    at: IdPath,
    why: ReasonBody,
) -> Result<BackfillState, Problem> {
    let there = found(&ask, at.id).await?;
    let (by, reason) = (ask.operator()?, authorize::reason(why.reason.as_deref())?);
    let (db, now) = (&ask.house.app.db, authorize::now(&ask).await?);
    if !backfill::stop_backfill(db, &there, &by, Some(reason), now).await? {
        let message = format!("backfill {} is {}; there is nothing to stop", at.id, there.status);
        return Err(Problem::conflict("is-so", message));
    }
    stands(&ask, at.id).await
}

async fn stands(ask: &ApiRequest, id: i64) -> Result<BackfillState, Problem> {
    Ok(BackfillState { backfill_id: id, status: found(ask, id).await?.status.to_string() })
}

/// A request to resume a backfill.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResumeBackfillRequest {
    /// New maximum number of batches open at once.
    parallel: Option<u32>,
    /// The reason, for the audit log.
    reason: Option<String>,
}

async fn resume(
    ask: ApiRequest,
    at: IdPath,
    on: ResumeBackfillRequest,
) -> Result<BackfillState, Problem> {
    let there = found(&ask, at.id).await?;
    let (by, reason) = (ask.operator()?, authorize::reason(on.reason.as_deref())?);
    if on.parallel.is_some_and(|n| !(1..=1_000).contains(&n)) {
        return Err(Problem::refused("parallel: write 1 to 1000"));
    }
    let app = &ask.house.app;
    let defs = app.definition().await?;
    let (id, parallel, reason) = (there.id, on.parallel, Some(reason.to_owned()));
    ask.house.aside.resume(defs, Resumption { id, parallel, by, reason }).await?;
    stands(&ask, at.id).await
}
