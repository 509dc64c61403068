//! `audit`: who did what, when and why.

use crate::app::{App, EmptyDatabase};
use crate::cli::{BadInput, Global, VerbResult, audit_chain, out};
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::job::job_key::JobFilter;
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::store;
use crate::store::audit::{AuditEntry, AuditFilter, AuditRecord, AuditScope};
use crate::view::audit::{AuditEntryDetail, AuditFormat};
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

/// Arguments of `audit`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    verb: Option<AuditVerb>,
    /// By this user
    #[arg(long)]
    actor: Option<String>,
    /// Of this name, as DID shows it: force-success, 'schedule pause'
    #[arg(long)]
    action: Option<String>,
    /// On batches of this number
    #[arg(long, value_name = "BATCH")]
    batch: Option<String>,
    /// On this group and its batches
    #[arg(long)]
    group: Option<String>,
    /// On this job: CODE in every group, or group.CODE
    #[arg(long)]
    job: Option<String>,
    /// At this time or later: 2026-07-01, 2026-07-01T08:00 (UTC), or with an offset
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// How many, the latest first [default: 50; with --export, all]
    #[arg(short = 'n', long)]
    limit: Option<u32>,
    /// Write all of them as a file to standard output
    #[arg(long, value_enum, value_name = "FORM")]
    export: Option<ExportForm>,
}

/// What can be done with the hash chain.
#[derive(Subcommand)]
enum AuditVerb {
    /// Look whether the hash chain holds: exit code 1 with the place of the first break, 0 with counts and the head
    Verify(audit_chain::VerifyArgs),
    /// Write acts in the order of the chain as JSON lines, the head last; for a SIEM, and to keep elsewhere
    Export(audit_chain::AuditExportArgs),
}

/// Forms of `--export`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportForm {
    /// Comma-separated; no cell is a formula
    Csv,
    /// One JSON document a line
    Jsonl,
}

/// Records read at a time for a file.
const AT_ONCE: u32 = 1_000;

pub(super) async fn audit(global: &Global, args: &AuditArgs) -> Result<VerbResult> {
    match &args.verb {
        Some(AuditVerb::Verify(args)) => return audit_chain::verify(global, args).await,
        Some(AuditVerb::Export(args)) => return audit_chain::export(global, args).await,
        None => {}
    }
    let filter = AuditFilter {
        actor: args.actor.clone(),
        action: args.action.clone(),
        batch_no: args.batch.as_deref().map(BatchNo::parse).transpose()?,
        group: args.group.as_deref().map(GroupCode::parse).transpose()?,
        job: args.job.as_deref().map(JobFilter::parse).transpose()?,
        from: args.from.as_deref().map(moment).transpose()?,
        to: args.to.as_deref().map(moment).transpose()?,
    };
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    if let Some(form) = args.export {
        export(&app, &filter, form, args.limit.unwrap_or(u32::MAX)).await?;
        app.close().await;
        return Ok(VerbResult::Well);
    }
    let mut tx = app.db.begin_read().await?;
    let records = store::audit::list_records(&mut tx, &filter, args.limit.unwrap_or(50)).await?;
    if global.json {
        out::print_json(&json!(records.iter().map(AuditEntryDetail::from).collect::<Vec<_>>()))?;
        return Ok(VerbResult::Well);
    }
    let header = match global.language() {
        Lang::En => ["WHEN", "WHO", "DID", "ON", "BATCH", "JOB", "CHANGE", "WHY"],
        Lang::Zh => ["时间", "操作人", "操作", "对象", "批次", "作业", "变化", "原因"],
    };
    out::print_line(&out::table(&header, records.iter().map(render_row).collect()));
    Ok(VerbResult::Well)
}

pub(super) fn moment(text: &str) -> Result<Millis> {
    Millis::parse(text).ok_or_else(|| {
        let said = "write 2026-07-01, 2026-07-01T08:00 (UTC) or 2026-07-01T08:00:00+08:00";
        BadInput(format!("'{text}' is not a time; {said}")).into()
    })
}

/// Writes all records, one page at a time, so that years of them take no memory.
async fn export(app: &App, filter: &AuditFilter, form: ExportForm, limit: u32) -> Result<()> {
    let form = match form {
        ExportForm::Csv => AuditFormat::Csv,
        ExportForm::Jsonl => AuditFormat::Jsonl,
    };
    if !out::print_text(&form.header()) {
        return Ok(());
    }
    let (mut before, mut left) = (None, limit);
    while left > 0 {
        let mut tx = app.db.begin_read().await?;
        let (all, most) = (&AuditScope::All, left.min(AT_ONCE));
        let page = store::audit::list_page(&mut tx, filter, all, before, most).await?;
        drop(tx);
        let Some(last) = page.last() else { break };
        before = Some(last.audit_id);
        left -= u32::try_from(page.len())?;
        let lines = page.iter().map(|record| form.act_line(&AuditEntryDetail::from(record)));
        if !out::print_text(&lines.collect::<Result<String>>()?) {
            // The reader has closed the output.
            return Ok(());
        }
    }
    Ok(())
}

/// The target of a record: the denied request; the schedule, node, calendar, user, executor group,
/// secret or source; else the group.
fn audit_target(entry: &AuditEntry) -> Option<String> {
    let named = |key: &str| entry.detail.as_ref()?.get(key)?.as_str().map(str::to_owned);
    let group = || entry.group.as_ref().map(ToString::to_string);
    if let (Some(method), Some(path)) = (named("method"), named("path")) {
        return Some(format!("{method} {path}"));
    }
    let things = ["schedule", "node", "calendar", "user", "app_name", "secret", "source"];
    things.into_iter().find_map(named).or_else(group)
}

/// Why an executor was refused, and how often since the previous record.
fn refused(entry: &AuditEntry) -> Option<String> {
    let detail = entry.detail.as_ref()?;
    let (why, times) = (detail.get("why")?.as_str()?, detail.get("times")?.as_u64()?);
    Some(format!("{why} × {times}"))
}

fn render_row(record: &AuditRecord) -> Vec<String> {
    let AuditRecord { at, by, entry, .. } = record;
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
        out::precise_local_time(*at),
        format!("{}@{}", by.actor, by.host),
        entry.action.clone(),
        dash(audit_target(entry)),
        dash(entry.batch.as_ref().map(|(_, no)| no.to_string())),
        dash(entry.job.as_ref().map(ToString::to_string)),
        dash(change),
        dash(entry.reason.clone().or_else(|| refused(entry))),
    ]
}
