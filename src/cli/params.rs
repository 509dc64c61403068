//! `params show`: every parameter of a job with its value and the layer that gives it.

use crate::app::{App, EmptyDatabase};
use crate::cli::{BadInput, Ended, Global, order, out};
use crate::domain::batch::{BatchOrder, Snapshot, plan};
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::Definition;
use crate::domain::lang::Lang;
use crate::domain::outcome::Outputs;
use crate::domain::params::{
    BatchValues, Outside, PRECEDENCE, ParamError, Resolved, Start, resolve_each,
};
use crate::domain::secret::Value;
use crate::domain::time::Millis;
use crate::domain::tx_class::IdemKey;
use crate::store;
use anyhow::Result;
use chrono::NaiveDate;
use clap::{Args, Subcommand};
use serde_json::json;
use std::collections::HashMap;

/// Verbs of `params`.
#[derive(Subcommand)]
pub(super) enum ParamsVerb {
    /// Each parameter of a job with its value and the layer it comes from
    #[command(
        after_help = "A value comes from the first layer that has one: batch > job > upstream outputs > group > global"
    )]
    Show(ShowArgs),
}

/// Arguments of `params show`.
#[derive(Args)]
pub(super) struct ShowArgs {
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

pub(super) async fn params(global: &Global, verb: ParamsVerb) -> Result<Ended> {
    let ParamsVerb::Show(args) = verb;
    let app = global.open(EmptyDatabase::Refuse).await?;
    let code = JobCode::parse(&args.job)?;
    let World { values, snapshot, outputs, start } = world(&app, &code, &args).await?;
    let Some(job) = snapshot.jobs.iter().find(|j| j.code == code) else {
        let said = format!("batch {} has no job {code}", values.batch_no);
        return Err(BadInput(said).into());
    };
    let parents = snapshot.parents(&code);
    let output = |code: &JobCode, name: &str| outputs.get(code)?.look_up(name);
    let outside = Outside { output: &output, secret: None };
    let found = resolve_each(job, snapshot.layers(&values, &parents, &start), outside);
    let names = job.params.iter().map(|p| p.name.as_str());
    print(global, names.zip(&found))?;
    Ok(Ended::Well)
}

/// A batch's values, what it runs, what its jobs handed out, and the latest try of the one job.
struct World {
    values: BatchValues,
    snapshot: Snapshot,
    outputs: HashMap<JobCode, Outputs>,
    start: Start,
}

async fn world(app: &App, code: &JobCode, args: &ShowArgs) -> Result<World> {
    let no = BatchNo::parse(&args.batch_no)?;
    let defs = app.definition().await?;
    let group = group_of(&defs, code)?;
    let mut tx = app.db.read().await?;
    let Some(batch) = store::batch::find(&mut tx, &no, &group).await? else {
        let order = BatchOrder {
            batch_no: no,
            batch_type: None,
            group: Some(group),
            business_date: args.business_date,
            params: order::pairs(&args.params)?,
        };
        let plan = plan(&defs, &order, Millis::default())?.remove(0);
        let start = Start::shown(&plan.values, code);
        let (values, snapshot, outputs) = (plan.values, plan.snapshot, HashMap::new());
        return Ok(World { values, snapshot, outputs, start });
    };
    if args.business_date.is_some() || !args.params.is_empty() {
        let said = format!("batch {no} is there already; leave out --business-date and --param");
        return Err(BadInput(said).into());
    }
    let snapshot = store::batch::snapshot(&mut tx, batch.batch_id).await?;
    let rows = store::queue::of_batch(&mut tx, batch.batch_id).await?;
    let ended: Vec<_> = rows.iter().filter(|r| r.status.is_final()).map(|r| r.queue_id).collect();
    let mut outputs = HashMap::new();
    for (id, text) in store::queue::outputs(&mut tx, &ended).await? {
        if let Some(row) = rows.iter().find(|r| r.queue_id == id) {
            outputs.insert(row.job_code.clone(), serde_json::from_str(&text)?);
        }
    }
    let mut start = Start::shown(&batch.values, code);
    if let Some(row) = rows.iter().find(|row| row.job_code == *code) {
        start.attempt = row.attempt.max(1);
        if let Some(name) = store::installation(&mut tx).await? {
            start.idem_key = IdemKey::of(&name, &batch.values.batch_no, code, row.run_no);
        }
    }
    Ok(World { values: batch.values, snapshot, outputs, start })
}

fn group_of(defs: &Definition, code: &JobCode) -> Result<GroupCode> {
    let job = defs.jobs.iter().find(|j| j.code == *code);
    let job = job.ok_or_else(|| {
        BadInput(format!("there is no job {code}; procession job list shows those that are"))
    })?;
    Ok(job.group.clone())
}

fn print<'a>(
    global: &Global,
    all: impl Iterator<Item = (&'a str, &'a Result<Resolved, ParamError>)>,
) -> Result<()> {
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for (name, found) in all {
        let (value, layer, fault) = match found {
            Ok(found) => (found.param.value.as_ref().map(Value::shown), found.layer, None),
            Err(error) => (None, None, Some(error.to_string())),
        };
        documents.push(json!({"name": name, "value": value, "layer": layer, "fault": fault}));
        rows.push(vec![
            name.to_owned(),
            fault.unwrap_or_else(|| value.unwrap_or("NULL").to_owned()),
            layer.map_or_else(|| "-".to_owned(), |layer| layer.to_string()),
        ]);
    }
    if global.json {
        return out::json(&json!(documents));
    }
    let header = match global.lang() {
        Lang::En => ["PARAM", "VALUE", "FROM"],
        Lang::Zh => ["参数", "值", "来源"],
    };
    out::line(&out::table(&header, rows));
    out::line(&match global.lang() {
        Lang::En => format!("strongest first: {PRECEDENCE}"),
        Lang::Zh => format!("优先级由高到低:{PRECEDENCE}"),
    });
    Ok(())
}
