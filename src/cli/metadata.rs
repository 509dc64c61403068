//! `metadata show | restored | accept`: after Procession's own database was restored to an earlier
//! state.

use crate::app::{self, App, EmptyDatabase};
use crate::cli::batch::server_now;
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::batch::Batch;
use crate::domain::cluster::metadata_gap::MetadataGap;
use crate::domain::schedule::trigger::{Trigger, TriggerStatus};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::engine::operate::operator_actions::operator_here;
use crate::engine::trigger::schedule_actions::{
    self, OpenBatchesPolicy, PastTimes, ScheduleActionOrigin,
};
use crate::store::{self, metadata_gap};
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

/// Verbs of `metadata`.
#[derive(Subcommand)]
pub(super) enum MetadataVerb {
    /// Whether work is suspended because the database has gone back, since when, and what it touches
    Show,
    /// Say that a backup was restored while no process ran: nothing starts until it is accepted
    Restored {
        /// Why; kept in the audit log
        #[arg(long)]
        reason: String,
    },
    /// Decide about schedules and open batches, and let work go on
    Accept(AcceptArgs),
}

/// What becomes of planned times and open batches.
#[derive(Args)]
pub(super) struct AcceptArgs {
    #[command(flatten)]
    past: PastTimesArgs,
    /// Open batches go on at once; without this they are paused, for a look at what has run
    #[arg(long)]
    keep_batches_going: bool,
    /// Why; kept in the audit log
    #[arg(long)]
    reason: String,
}

/// Exactly one of them.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct PastTimesArgs {
    /// Planned times that have passed are left out: they were fired before the restore, or shall not be
    #[arg(long)]
    mark_fired: bool,
    /// Planned times that have passed are fired as the misfire policy of each schedule says
    #[arg(long)]
    fire: bool,
}

pub(super) async fn metadata(global: &Global, verb: MetadataVerb) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    match verb {
        MetadataVerb::Show => show_metadata(global, &app).await?,
        MetadataVerb::Restored { reason } => restored(global, &app, &reason).await?,
        MetadataVerb::Accept(args) => accept(global, &app, &args).await?,
    }
    app.close().await;
    Ok(VerbResult::Well)
}

async fn show_metadata(global: &Global, app: &App) -> Result<()> {
    let now = server_now(app).await?;
    let mut tx = app.db.begin_read().await?;
    let mark = metadata_gap::read_mark(&mut tx).await?;
    let overdue = |t: &Trigger| t.status == TriggerStatus::Enabled && t.is_overdue(now);
    let schedules: Vec<Trigger> =
        store::trigger::readable(&mut tx).await?.into_iter().filter(overdue).collect();
    let batches = store::batch::list_open(&mut tx).await?;
    drop(tx);
    if global.json {
        return out::print_json(&json!({
            "suspended": mark.gap.is_some(),
            "gap": mark.gap.as_ref().map(gap_json),
            "newest_heartbeat": mark.newest.map(|at| at.to_string()),
            "overdue_schedules": schedules.iter().map(|t| &t.def.code).collect::<Vec<_>>(),
            "open_batches": batches.iter().map(batch_json).collect::<Vec<_>>(),
        }));
    }
    let lang = global.language();
    let Some(gap) = mark.gap else {
        out::print_line(lang.select(
            "The metadata has no gap: nothing is suspended",
            "元数据没有缺口：未暂停任何工作",
        ));
        return Ok(());
    };
    show_gap(&gap, lang);
    show_overdue(&schedules, lang);
    show_batches(&batches, lang);
    out::eprint_line(lang.select(
        "decide with: procession metadata accept --mark-fired --reason WHY (or --fire)",
        "请决定：procession metadata accept --mark-fired --reason 原因（或 --fire）",
    ));
    Ok(())
}

fn gap_json(gap: &MetadataGap) -> serde_json::Value {
    json!({
        "restored_to": gap.restored_to.to_string(),
        "known_until": gap.known_until.to_string(),
        "found_at": gap.found_at.to_string(),
        "found_by": gap.found_by,
    })
}

fn batch_json(batch: &Batch) -> serde_json::Value {
    json!({
        "group": batch.values.group, "batch_no": batch.values.batch_no,
        "status": batch.status.as_str(), "is_paused": batch.is_paused,
    })
}

fn show_gap(gap: &MetadataGap, lang: Lang) {
    let found_by = &gap.found_by;
    let [restored_to, known_until, found_at] =
        [gap.restored_to, gap.known_until, gap.found_at].map(out::local_time);
    out::print_line(&match lang {
        Lang::En => format!(
            "Work is suspended: the database has gone back to {restored_to}, and {known_until} was committed \
             (found {found_at} by {found_by})"
        ),
        Lang::Zh => format!(
            "工作已暂停：数据库退回到 {restored_to}，而 {known_until} 已提交过（{found_by} 于 {found_at} 发现）"
        ),
    });
}

fn show_overdue(schedules: &[Trigger], lang: Lang) {
    let codes: Vec<&str> = schedules.iter().map(|t| t.def.code.as_str()).collect();
    let count = codes.len();
    out::print_line(&match (lang, count) {
        (Lang::En, 0) => "No schedule is overdue".to_owned(),
        (Lang::Zh, 0) => "没有逾期的调度".to_owned(),
        (Lang::En, _) => format!(
            "{} overdue by these rows, and may have fired before: {}",
            out::count(count, "schedule"),
            codes.join(", ")
        ),
        (Lang::Zh, _) => {
            format!("按现有数据有 {count} 个调度逾期，可能此前已触发：{}", codes.join("、"))
        }
    });
}

fn show_batches(batches: &[Batch], lang: Lang) {
    let Some(first) = batches.first() else {
        out::print_line(lang.select("No batch is open", "没有未结束的批次"));
        return;
    };
    let rows = batches.iter().map(|b| {
        let state = b.status.as_str().to_owned();
        let paused = if b.is_paused { lang.select("paused", "已暂停") } else { "" };
        vec![
            b.values.group.as_str().to_owned(),
            b.values.batch_no.as_str().to_owned(),
            state,
            paused.to_owned(),
        ]
    });
    let header = match lang {
        Lang::En => ["GROUP", "BATCH", "STATE", ""],
        Lang::Zh => ["组", "批次", "状态", ""],
    };
    out::print_line(&out::table(&header, rows.collect()));
    let (group, no) = (first.values.group.as_str(), first.values.batch_no.as_str());
    out::eprint_line(&match lang {
        Lang::En => format!(
            "these are open by the restored rows; jobs of them may have run since: compare with the data, then \
             for example: procession job force-success {group}.JOB --batch {no}, and batch resume {no} --group {group}"
        ),
        Lang::Zh => format!(
            "按恢复后的数据这些批次未结束，其中的作业可能已运行：请与业务数据核对，然后例如 \
             procession job force-success {group}.作业 --batch {no}，再 batch resume {no} --group {group}"
        ),
    });
}

async fn restored(global: &Global, app: &App, reason: &str) -> Result<()> {
    let gap = schedule_actions::declare_gap(
        &app.db,
        to_operation(&given(reason)?, server_now(app).await?),
    )
    .await?;
    let at = out::local_time(gap.restored_to);
    out::eprint_line(&match global.language() {
        Lang::En => format!(
            "noted: the database holds what was committed until {at}; nothing is fired or started until: \
             procession metadata accept"
        ),
        Lang::Zh => format!(
            "已记录：数据库只有截至 {at} 的数据；在 procession metadata accept 之前不触发、不启动任何工作"
        ),
    });
    Ok(())
}

async fn accept(global: &Global, app: &App, args: &AcceptArgs) -> Result<()> {
    let past = if args.past.mark_fired { PastTimes::MarkFired } else { PastTimes::Fire };
    let open =
        if args.keep_batches_going { OpenBatchesPolicy::GoOn } else { OpenBatchesPolicy::Pause };
    let given = given(&args.reason)?;
    let deed = to_operation(&given, server_now(app).await?);
    let done = schedule_actions::accept_gap(&app.db, past, open, deed).await?;
    let (schedules, firings, batches) = (done.schedules, done.firings, done.batches);
    if global.json {
        return out::print_json(&json!({
            "gap": gap_json(&done.gap), "schedules_from_now": schedules,
            "firings_left_out": firings, "batches_paused": batches,
        }));
    }
    out::eprint_line(&match global.language() {
        Lang::En => format!(
            "accepted: {} left out, {} from now on, {} paused; the nodes go on with their next heartbeat",
            out::count(usize::try_from(firings)?, "decided firing"),
            out::count(schedules, "schedule"),
            if batches == 1 { "1 batch".to_owned() } else { format!("{batches} batches") },
        ),
        Lang::Zh => format!(
            "已接受：跳过已决定的触发 {firings} 次，{schedules} 个调度从现在起计，{batches} 个批次已暂停；\
             各节点在下一次心跳后继续工作"
        ),
    });
    Ok(())
}

/// Who acts, and why.
struct AcceptOrigin<'a> {
    by: store::audit::Operator,
    reason: &'a str,
}

fn given(reason: &str) -> Result<AcceptOrigin<'_>> {
    let reason = reason.trim();
    if reason.is_empty() {
        let message = "--reason: say why; it is what others will read in the audit log";
        return Err(BadInput(message.to_owned()).into());
    }
    Ok(AcceptOrigin { by: operator_here(&app::whoami()), reason })
}

fn to_operation<'a>(given: &'a AcceptOrigin<'_>, now: Millis) -> ScheduleActionOrigin<'a> {
    ScheduleActionOrigin { by: &given.by, reason: Some(given.reason), now }
}
