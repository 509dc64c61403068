//! Actions on whole batches: open, pause, resume, stop.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::path_params::BatchPath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::app::App;
use crate::domain::access::Permission;
use crate::domain::batch::open_check::plan_opening;
use crate::domain::batch::{AskedOrder, Batch, BatchError, BatchOrder, BatchPlan};
use crate::domain::batch_no::BatchExpr;
use crate::domain::forecast::dry_run::OrderRefusal;
use crate::domain::forecast::dry_run::dry_run;
use crate::domain::forecast::eta::of_plan;
use crate::domain::id::GroupCode;
use crate::domain::job::{Definition, Group};
use crate::engine::opening::create_batch::open_on_record;
use crate::engine::opening::refused::OpeningRefusal;
use crate::engine::operate::pause;
use crate::store;
use crate::store::batch::Going;
use crate::view::plan::BatchPlanDetail;
use axum::http::Method;
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::Run);
    Noun::new("batches")
        .expensive()
        .change(
            "openBatches",
            Method::POST,
            "/batches",
            needs,
            "Open batches; a serving process runs them",
            open_batches,
        )
        .expensive()
        .change(
            "planBatches",
            Method::POST,
            "/batches/plan",
            CallerNeeds::Somewhere(Permission::View),
            "Plan batches without opening them: waves, parameters, expected times, refusals",
            look_ahead,
        )
        .change(
            "pauseBatch",
            Method::POST,
            "/groups/{group}/batches/{batch_no}/pause",
            needs,
            "Pause a batch: nothing new is started, running jobs end",
            async |ask, at, why| pause_or_resume(ask, at, why, Going::Paused).await,
        )
        .change(
            "resumeBatch",
            Method::POST,
            "/groups/{group}/batches/{batch_no}/resume",
            needs,
            "Resume a paused batch",
            async |ask, at, why| pause_or_resume(ask, at, why, Going::On).await,
        )
        .change(
            "killBatch",
            Method::POST,
            "/groups/{group}/batches/{batch_no}/kill",
            needs,
            "Kill a batch: waiting jobs are cancelled, running ones are ended on their servers",
            kill_batch,
        )
}

/// The reason of an action.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReasonBody {
    /// The reason, which others will read. 1 to 10,000 characters.
    pub(super) reason: Option<String>,
}

/// A request to open batches.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpenBatchesRequest {
    /// Open the batch of this group.
    group: Option<String>,
    /// Open the batches of all groups of this type.
    #[serde(rename = "type")]
    batch_type: Option<String>,
    /// `202407`, `2024Q3`, or an expression relative to the business date, or to today:
    /// `month(-1)`. It must fit the type of the group; a group without a type accepts any text.
    batch_no: String,
    /// The accounting day; default is the last day of the period of the batch number.
    #[schemars(with = "Option<String>")]
    business_date: Option<NaiveDate>,
    /// Parameters of the batch; they take precedence over all others.
    #[serde(default)]
    params: BTreeMap<String, String>,
    /// Open it although its number does not fit the type of the group; this is recorded.
    #[serde(default)]
    free_text: bool,
    /// The reason, which others will read. 1 to 10,000 characters.
    reason: Option<String>,
    /// Only check whether it would be opened.
    #[serde(default)]
    dry_run: bool,
}

/// The result of opening batches.
#[derive(Debug, Serialize, JsonSchema)]
struct OpenBatchesResult {
    /// Whether they were opened; false with `dry_run`.
    written: bool,
    /// The batches.
    batches: Vec<OpenedBatchSummary>,
    /// Batches that exist already; they are not changed.
    existing: Vec<ExistingBatch>,
    /// Who runs them, as a sentence.
    message: String,
}

/// An opened batch.
#[derive(Debug, Serialize, JsonSchema)]
struct OpenedBatchSummary {
    /// The group code.
    group: String,
    /// The batch number.
    batch_no: String,
    /// Number of jobs.
    jobs: usize,
}

/// A batch that existed before.
#[derive(Debug, Serialize, JsonSchema)]
struct ExistingBatch {
    /// The group code.
    group: String,
    /// The batch number.
    batch_no: String,
    /// The state.
    status: String,
}

impl ExistingBatch {
    fn from_batch(batch: &Batch) -> Self {
        Self {
            group: batch.values.group.to_string(),
            batch_no: batch.values.batch_no.to_string(),
            status: batch.status.to_string(),
        }
    }
}

/// The existing batches of an order; when all exist, the order is refused.
async fn existing(app: &App, plans: &[BatchPlan]) -> Result<Vec<Batch>, Problem> {
    let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let mut found = Vec::new();
    for plan in plans {
        let values = &plan.values;
        found.extend(store::batch::find_batch(&mut tx, &values.batch_no, &values.group).await?);
    }
    match found.first() {
        Some(first) if found.len() == plans.len() => {
            Err(anyhow::Error::from(OpeningRefusal::exists(first)).into())
        }
        _ => Ok(found),
    }
}

impl OpenBatchesRequest {
    fn parse_order(&self) -> Result<AskedOrder, Problem> {
        let text = |error: BatchError| Problem::from(anyhow::Error::from(error));
        let group = self.group.as_deref().map(GroupCode::parse).transpose();
        Ok(AskedOrder {
            batch_no: BatchExpr::parse(&self.batch_no).map_err(|e| text(e.into()))?,
            batch_type: self.batch_type.clone(),
            group: group.map_err(anyhow::Error::from)?,
            business_date: self.business_date,
            params: self.params.clone(),
            free_text: self.free_text,
        })
    }
}

/// The groups whose batches an order opens.
fn meant<'a>(asked: &AskedOrder, defs: &'a Definition) -> Vec<&'a GroupCode> {
    let is_meant = |g: &&'a Group| {
        asked.group.as_ref().is_none_or(|code| *code == g.code)
            && asked.batch_type.as_ref().is_none_or(|t| g.batch_type.as_ref() == Some(t))
    };
    defs.groups.iter().filter(is_meant).map(|g| &g.code).collect()
}

async fn open_batches(
    ask: ApiRequest,
    _: Nothing,
    order: OpenBatchesRequest,
) -> Result<OpenBatchesResult, Problem> {
    let asked = order.parse_order()?;
    let app = &ask.house.app;
    if let Some(group) = &asked.group {
        ask.require(Permission::Run, group, format!("group {group}"))?;
    }
    let defs = app.definition().await?;
    let groups = meant(&asked, &defs);
    authorize::require_all(
        &ask,
        Permission::Run,
        groups.iter().copied(),
        "group that this opens and you see",
    )?;
    authorize::secret_params(&ask, &groups, &asked.params).await?;
    let reason = match order.dry_run {
        true => "",
        false => authorize::reason(order.reason.as_deref())?,
    };
    let now = authorize::now(&ask).await?;
    let made: BatchOrder = asked.resolve_order(&defs, now).map_err(anyhow::Error::from)?;
    let plans = plan_opening(&defs, &made, now).map_err(anyhow::Error::from)?;
    let existing = match order.dry_run {
        true => existing(app, &plans).await?,
        false => {
            let by = ask.operator()?;
            open_on_record(&app.db, &defs, &made, &by, reason, now).await?.existing
        }
    };
    let is_new = |p: &&BatchPlan| existing.iter().all(|b| b.values.group != p.values.group);
    let batch = |p: &BatchPlan| OpenedBatchSummary {
        group: p.values.group.to_string(),
        batch_no: p.values.batch_no.to_string(),
        jobs: p.snapshot.jobs.len(),
    };
    Ok(OpenBatchesResult {
        written: !order.dry_run,
        batches: plans.iter().filter(is_new).map(batch).collect(),
        existing: existing.iter().map(ExistingBatch::from_batch).collect(),
        message: "the next free server runs it".to_owned(),
    })
}

/// What opening batches would do.
#[derive(Debug, Serialize, JsonSchema)]
struct OrderPreview {
    /// The batches, as in `plan --json`.
    batches: Vec<BatchPlanDetail>,
    /// Why they would be refused.
    refused: Vec<OrderRefusal>,
}

async fn look_ahead(
    ask: ApiRequest,
    _: Nothing,
    order: OpenBatchesRequest,
) -> Result<OrderPreview, Problem> {
    let asked = order.parse_order()?;
    let app = &ask.house.app;
    let defs = app.definition().await?;
    let groups = meant(&asked, &defs);
    let named = asked.group.iter().chain(groups);
    authorize::require_all(&ask, Permission::View, named, "group that this opens and you see")?;
    let now = authorize::now(&ask).await?;
    let made: BatchOrder = asked.resolve_order(&defs, now).map_err(anyhow::Error::from)?;
    let kinds = crate::app::job_kinds();
    let types: Vec<&'static str> = kinds.iter().map(|k| k.name).collect();
    let mut run = dry_run(&defs, &made, &types, now);
    app.take_out_existing(&mut run.batches).await?;
    run.refusals.extend(app.refusals(&run.batches).await?);
    let total = app.config.engine.max_parallel;
    let mut batches = Vec::new();
    for preview in run.batches {
        let history = app.history(&preview.plan.values.group).await?;
        let forecast = of_plan(&preview.plan, &preview.dag, &history, total, now);
        let planned = crate::view::plan::PlannedBatch { preview, forecast, since: None, now };
        batches.push(planned.document());
    }
    Ok(OrderPreview { batches, refused: run.refusals })
}

/// The result of pausing, resuming or stopping a batch.
#[derive(Debug, Serialize, JsonSchema)]
struct BatchControlResult {
    /// Whether something was changed.
    written: bool,
    /// The group code.
    group: String,
    /// The batch number.
    batch_no: String,
    /// Whether it is paused.
    is_paused: bool,
    /// The state at the time of the request.
    status: String,
}

async fn pause_or_resume(
    ask: ApiRequest,
    at: BatchPath,
    why: ReasonBody,
    to: Going,
) -> Result<BatchControlResult, Problem> {
    let batch = authorize::batch(&ask, Permission::Run, &at.group, &at.batch_no).await?;
    let reason = authorize::reason(why.reason.as_deref())?;
    let by = ask.operator()?;
    let (db, now) = (&ask.house.app.db, authorize::now(&ask).await?);
    if !pause::set_going(db, batch.batch_id, to, &by, reason, now).await? {
        let (no, status) = (&at.batch_no, batch.status);
        let is = match (status.is_final(), to) {
            (true, _) => format!("has ended ({status})"),
            (false, Going::Paused) => "is paused already".to_owned(),
            (false, Going::On) => "is not paused".to_owned(),
        };
        return Err(Problem::conflict("is-so", format!("batch {no} {is}")));
    }
    Ok(BatchControlResult {
        written: true,
        group: at.group,
        batch_no: at.batch_no,
        is_paused: to == Going::Paused,
        status: batch.status.to_string(),
    })
}

async fn kill_batch(
    ask: ApiRequest,
    at: BatchPath,
    why: ReasonBody,
) -> Result<BatchControlResult, Problem> {
    let batch = authorize::batch(&ask, Permission::Run, &at.group, &at.batch_no).await?;
    let reason = authorize::reason(why.reason.as_deref())?;
    let by = ask.operator()?;
    let (db, now) = (&ask.house.app.db, authorize::now(&ask).await?);
    let asked =
        !batch.status.is_final() && pause::stop_batch(db, batch.batch_id, &by, reason, now).await?;
    let mut tx = db.begin_read().await.map_err(anyhow::Error::from)?;
    let after = store::batch::get(&mut tx, batch.batch_id).await?;
    if !asked {
        let text = format!("batch {} has ended already ({})", at.batch_no, after.status);
        return Err(Problem::conflict("is-so", text));
    }
    Ok(BatchControlResult {
        written: true,
        group: at.group,
        batch_no: at.batch_no,
        is_paused: after.is_paused,
        status: after.status.to_string(),
    })
}
