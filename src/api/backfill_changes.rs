//! Backfills: looked at, begun, stopped, gone on with.

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
    Noun::new("changes of backfills")
        .change(
            Method::POST,
            "/backfills/preview",
            runs,
            "What a backfill would do, batch by batch",
            preview,
        )
        .change(
            Method::POST,
            "/backfills",
            runs,
            "Run the batches of a range as one thing, in the process that is asked",
            start,
        )
        .change(
            Method::POST,
            "/backfills/{id}/stop",
            runs,
            "Stop a backfill: jobs that run end, nothing new is started",
            stop_backfill,
        )
        .change(
            Method::POST,
            "/backfills/{id}/resume",
            runs,
            "Go on with a backfill that was stopped, failed, or whose process died",
            resume,
        )
}

/// Which batches, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackfillRequest {
    /// The group whose batches are run.
    group: String,
    /// `202401..202412`, `202412..202401`, `2024Q1..2025Q2`, a list `A,B,C`, or both.
    range: String,
    /// Batches at once, 1 to 1,000; 1 when it is left out.
    parallel: Option<u32>,
    /// `asc` or `desc`; as the range names them when it is left out.
    order: Option<BackfillDirection>,
    /// `missing`, `failed`, or `missing,failed`, which is usual; what ended well is never run again.
    only: Option<String>,
    /// Parameters of each batch.
    #[serde(default)]
    params: BTreeMap<String, String>,
    /// Open batches although their numbers do not fit the type of the group; that is put on record.
    #[serde(default)]
    free_text: bool,
    /// After a batch that did not end well: `stop` (usual) or `go-on`.
    on_failure: Option<FailurePolicy>,
    /// Why; stored with the backfill.
    reason: Option<String>,
    /// Only look.
    #[serde(default)]
    dry_run: bool,
}

/// Oldest or newest first.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BackfillDirection {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

/// After a batch that did not end well.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum FailurePolicy {
    /// Open no further ones.
    Stop,
    /// Go on with the others.
    GoOn,
}

/// A batch of a backfill to be.
#[derive(Debug, Serialize, JsonSchema)]
struct BackfillStepDetail {
    /// Its number.
    batch_no: String,
    /// What is done with it: `open`, `resume`, `go_on`, `leave`, `refuse`.
    action: &'static str,
    /// Whether that is to run it.
    runs: bool,
}

/// What a backfill would do, or does.
#[derive(Debug, Serialize, JsonSchema)]
struct BackfillStart {
    /// Its number, once it is begun.
    backfill_id: Option<i64>,
    /// The batches, in the order in which they are run.
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
        let said = "no batch of the range is missing or to be run again";
        return Err(Problem::conflict("is-so", said));
    }
    let id = ask.house.aside.backfill(defs, request.clone()).await?;
    Ok(begun(&found, &request, Some(id)))
}

/// The backfill of this number, to do this to.
async fn found(ask: &ApiRequest, id: i64) -> Result<Backfill, Problem> {
    let what = format!("backfill {id}");
    let found =
        store::backfill::find_backfill(&mut authorize::open_read(ask).await?, BackfillId(id))
            .await?;
    let found = found.ok_or_else(|| Problem::not_found(&what))?;
    ask.require(Permission::Run, &found.group, what)?;
    Ok(found)
}

/// How a backfill stands.
#[derive(Debug, Serialize, JsonSchema)]
struct BackfillState {
    /// Its number.
    backfill_id: i64,
    /// Its state.
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
        let said = format!("backfill {} is {}; there is nothing to stop", at.id, there.status);
        return Err(Problem::conflict("is-so", said));
    }
    stands(&ask, at.id).await
}

async fn stands(ask: &ApiRequest, id: i64) -> Result<BackfillState, Problem> {
    Ok(BackfillState { backfill_id: id, status: found(ask, id).await?.status.to_string() })
}

/// How to go on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct On {
    /// Batches at once from now on.
    parallel: Option<u32>,
    /// Why; the audit log keeps it.
    reason: Option<String>,
}

async fn resume(ask: ApiRequest, at: IdPath, on: On) -> Result<BackfillState, Problem> {
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
