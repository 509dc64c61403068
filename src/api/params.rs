//! The values of a job's parameters, and the layer each comes from.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::BatchNo;
use crate::domain::params::PRECEDENCE;
use crate::view::job_params::{BatchPresence, JobParamView, JobParamsRequest, World};
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) fn routes() -> Noun {
    Noun::new("parameters").get(
        "previewParams",
        "/params",
        CallerNeeds::Somewhere(Permission::View),
        "Preview each parameter of a job with its value and the layer that set it; secrets \
             are masked",
        preview_params,
    )
}

/// Which job of which batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewParamsQuery {
    /// The job's code or alias.
    job: String,
    /// The batch number: an existing batch, with the outputs of its jobs, or a possible one.
    batch_no: String,
    /// The accounting day of a possible batch, 2026-07-31.
    business_date: Option<String>,
}

/// The parameters of a job.
#[derive(Debug, Serialize, JsonSchema)]
struct ParamsPreview {
    /// Whether the batch exists.
    is_open: bool,
    /// The layers, in order of precedence.
    precedence: &'static str,
    /// In the order of the job.
    params: Vec<JobParamView>,
}

async fn preview_params(
    ask: ApiRequest,
    _: Nothing,
    which: PreviewParamsQuery,
) -> Result<ParamsPreview, Problem> {
    let app = &ask.house.app;
    let missing = || Problem::not_found(format!("job {}", which.job));
    let batch_no = BatchNo::parse(&which.batch_no).map_err(anyhow::Error::from)?;
    let day = which.business_date.as_deref().map(str::parse::<NaiveDate>).transpose();
    let day = day.map_err(|_| Problem::unreadable("business_date: write a day, 2026-07-31"))?;
    let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let job = authorize::find_job(&ask, &mut tx, Permission::View, &which.job).await?;
    drop(tx);
    let defs = app.definition().await?;
    let (group, params) = (job.group.clone(), BTreeMap::new());
    let asked = JobParamsRequest { group, batch_no, business_date: day, params };
    let world = World::read_world(app, &defs, &job.code, asked).await?;
    if world.batch == BatchPresence::There && day.is_some() {
        let message = "that batch is there already and has its day; leave out business_date";
        return Err(Problem::refused(message));
    }
    let params = world.params(&job.code).ok_or_else(missing)?;
    Ok(ParamsPreview {
        is_open: world.batch == BatchPresence::There,
        precedence: PRECEDENCE,
        params,
    })
}
