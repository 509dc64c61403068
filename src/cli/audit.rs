//! `audit`: who did what, when and why.

use crate::app::EmptyDatabase;
use crate::cli::{Ended, Global, out};
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::lang::Lang;
use crate::store;
use crate::store::audit::{Entry, Filter, Record};
use anyhow::Result;
use clap::Args;
use serde_json::json;

/// Arguments of `audit`.
#[derive(Args)]
pub(super) struct AuditArgs {
    /// On batches of this number
    #[arg(long, value_name = "BATCH")]
    batch: Option<String>,
    /// On this group and its batches
    #[arg(long)]
    group: Option<String>,
    /// On this job
    #[arg(long)]
    job: Option<String>,
    /// How many, the latest first
    #[arg(short = 'n', long, default_value_t = 50)]
    limit: u32,
}

pub(super) async fn audit(global: &Global, args: &AuditArgs) -> Result<Ended> {
    let filter = Filter {
        batch_no: args.batch.as_deref().map(BatchNo::parse).transpose()?,
        group: args.group.as_deref().map(GroupCode::parse).transpose()?,
        job: args.job.as_deref().map(JobCode::parse).transpose()?,
    };
    let app = global.open(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.read().await?;
    let records = store::audit::list(&mut tx, &filter, args.limit).await?;
    if global.json {
        out::json(&json!(records.iter().map(as_json).collect::<Vec<_>>()))?;
        return Ok(Ended::Well);
    }
    let header = match global.lang() {
        Lang::En => ["WHEN", "WHO", "DID", "ON", "BATCH", "JOB", "CHANGE", "WHY"],
        Lang::Zh => ["时间", "操作人", "操作", "对象", "批次", "作业", "变化", "原因"],
    };
    out::line(&out::table(&header, records.iter().map(row).collect()));
    Ok(Ended::Well)
}

fn as_json(record: &Record) -> serde_json::Value {
    let Record { at, by, entry } = record;
    json!({
        "at": at.to_string(), "actor": by.actor, "host": by.host, "action": entry.action,
        "group": entry.group, "batch_no": entry.batch.as_ref().map(|(_, no)| no),
        "job_code": entry.job, "detail": entry.detail, "reason": entry.reason,
    })
}

/// The schedule, node or calendar that was acted on, else the group.
fn on(entry: &Entry) -> Option<String> {
    let named = |key: &str| entry.detail.as_ref()?.get(key)?.as_str().map(str::to_owned);
    let group = || entry.group.as_ref().map(ToString::to_string);
    ["schedule", "node", "calendar"].into_iter().find_map(named).or_else(group)
}

fn row(record: &Record) -> Vec<String> {
    let Record { at, by, entry } = record;
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let side = |side: &str| {
        let detail = entry.detail.as_ref()?.get(side)?;
        let words = ["status", "run_mode"].map(|part| detail.get(part)?.as_str());
        Some(words.into_iter().flatten().collect::<Vec<_>>().join(" "))
    };
    let change =
        side("before").zip(side("after")).map(|(a, b)| match (a.is_empty(), b.is_empty()) {
            (true, true) => String::new(),
            (true, false) => format!("→ {b}"),
            (false, _) => format!("{a} → {b}"),
        });
    vec![
        at.to_string(),
        format!("{}@{}", by.actor, by.host),
        entry.action.clone(),
        dash(on(entry)),
        dash(entry.batch.as_ref().map(|(_, no)| no.to_string())),
        dash(entry.job.as_ref().map(ToString::to_string)),
        dash(change),
        dash(entry.reason.clone()),
    ]
}
