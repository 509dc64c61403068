//! `params show`: every parameter of a job with its value and layer.

use crate::app::EmptyDatabase;
use crate::cli::{BadInput, Global, VerbResult, order, out};
use crate::domain::id::BatchNo;
use crate::domain::job::job_key::find_named;
use crate::domain::params::PRECEDENCE;
use crate::domain::text::lang::Lang;
use crate::view::job_params::{BatchPresence, JobParamView, JobParamsRequest, World};
use anyhow::Result;
use chrono::NaiveDate;
use clap::{Args, Subcommand};
use serde_json::json;

/// Verbs of `params`.
#[derive(Subcommand)]
pub(super) enum ParamsVerb {
    /// Each parameter of a job with its value and the layer it comes from
    #[command(
        after_help = "A value comes from the first layer that has one: batch > job > upstream outputs > group > global"
    )]
    Show(ParamsShowArgs),
}

/// Arguments of `params show`.
#[derive(Args)]
pub(super) struct ParamsShowArgs {
    /// Job code
    job: String,
    /// Batch number: of a batch there is, with what its jobs handed out; or of one there might be
    #[arg(long)]
    batch_no: String,
    /// Accounting day of a batch there might be
    #[arg(long)]
    business_date: Option<NaiveDate>,
    /// Parameter of a batch there might be, NAME=VALUE; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
}

pub(super) async fn params(global: &Global, verb: ParamsVerb) -> Result<VerbResult> {
    let ParamsVerb::Show(args) = verb;
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let defs = app.definition().await?;
    let job = find_named(&defs.jobs, &args.job)?;
    let code = job.code.clone();
    let batch_no = BatchNo::parse(&args.batch_no)?;
    let params = order::pairs(&args.params)?;
    let says_more = args.business_date.is_some() || !params.is_empty();
    let (group, business_date) = (job.group.clone(), args.business_date);
    let asked = JobParamsRequest { group, batch_no: batch_no.clone(), business_date, params };
    let world = World::read_world(&app, &defs, &code, asked).await?;
    if says_more && world.batch == BatchPresence::There {
        let message =
            format!("batch {batch_no} is there already; leave out --business-date and --param");
        return Err(BadInput(message).into());
    }
    let Some(found) = world.params(&code) else {
        return Err(BadInput(format!("batch {batch_no} has no job {code}")).into());
    };
    print(global, &found)?;
    Ok(VerbResult::Well)
}

fn print(global: &Global, all: &[JobParamView]) -> Result<()> {
    if global.json {
        return out::print_json(&json!(all));
    }
    let header = match global.language() {
        Lang::En => ["PARAM", "VALUE", "FROM"],
        Lang::Zh => ["参数", "值", "来源"],
    };
    let row = |one: &JobParamView| {
        let value = one.value.clone().unwrap_or_else(|| "NULL".to_owned());
        let layer = one.layer.map_or_else(|| "-".to_owned(), |layer| layer.to_string());
        vec![one.name.clone(), one.fault.clone().unwrap_or(value), layer]
    };
    out::print_line(&out::table(&header, all.iter().map(row).collect()));
    out::print_line(&match global.language() {
        Lang::En => format!("strongest first: {PRECEDENCE}"),
        Lang::Zh => format!("优先级由高到低：{PRECEDENCE}"),
    });
    Ok(())
}
