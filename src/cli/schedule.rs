//! `schedule`: schedules and firings; changes are in `schedule_act`.

use crate::app::EmptyDatabase;
use crate::cli::schedule_act::{self, EditArgs, FireArgs, ScheduleAddArgs, WhyArgs};
use crate::cli::schedule_next::{self, NextArgs};
use crate::cli::schedule_nodes::Fires;
use crate::cli::{BadInput, Global, VerbResult, out, schedule_nodes, schedule_words};
use crate::domain::id::{GroupCode, TriggerCode};
use crate::domain::schedule::firing::{Firing, TriggerId};
use crate::domain::schedule::trigger::{Trigger, TriggerStatus, TriggerWords};
use crate::domain::text::lang::Lang;
use crate::engine::trigger::schedule_actions::{self, NotDone};
use crate::store::audit::{AuditEntry, AuditFilter};
use crate::store::{self, Tx};
use crate::view::schedule::{FiringDetail, ScheduleDetail};
use anyhow::{Context as _, Result};
use chrono_tz::Tz;
use clap::{Args, Subcommand};
use serde_json::json;
use std::collections::HashMap;

/// Verbs of `schedule`.
#[derive(Subcommand)]
pub(super) enum ScheduleVerb {
    /// Schedules with their next and last times, and why one does not fire
    List(ScheduleListArgs),
    /// Everything about one schedule
    Show(ScheduleShowArgs),
    /// When a schedule will fire: local time and offset, batch number, reasons; also of one that is not
    /// stored (--cron …)
    Next(NextArgs),
    /// What became of its planned times, newest first
    Firings(FiringsArgs),
    /// Make a schedule
    Add(ScheduleAddArgs),
    /// Change a schedule; only what is given changes
    Edit(EditArgs),
    /// Let a schedule plan nothing more
    Pause(WhyArgs),
    /// Let a paused schedule go on from now
    Resume(WhyArgs),
    /// Take a schedule away; its firings stay on record
    Remove(WhyArgs),
    /// Fire a schedule once, now, whatever its timing says
    FireNow(FireArgs),
    /// Leave the next planned time out
    SkipNext(WhyArgs),
}

/// Arguments of `list`.
#[derive(Args)]
pub(super) struct ScheduleListArgs {
    /// Those that open this group
    #[arg(long)]
    group: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Arguments of `show`.
#[derive(Args)]
pub(super) struct ScheduleShowArgs {
    /// Code of the schedule
    code: String,
}

/// Arguments of `firings`.
#[derive(Args)]
pub(super) struct FiringsArgs {
    /// Code of the schedule
    #[arg(required_unless_present = "id", conflicts_with = "id")]
    code: Option<String>,
    /// Of a schedule that was removed: its number, which `schedule remove` has said
    #[arg(long, value_name = "NUMBER")]
    id: Option<i64>,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(super) async fn schedule(global: &Global, verb: ScheduleVerb) -> Result<VerbResult> {
    match verb {
        ScheduleVerb::List(args) => list_schedules(global, &args).await,
        ScheduleVerb::Show(args) => show_schedule(global, &args).await,
        ScheduleVerb::Next(args) => schedule_next::next(global, &args).await,
        ScheduleVerb::Firings(args) => firings(global, &args).await,
        ScheduleVerb::Add(args) => schedule_act::add_schedule(global, &args).await,
        ScheduleVerb::Edit(args) => schedule_act::edit_schedule(global, &args).await,
        ScheduleVerb::Pause(args) => schedule_act::pause(global, &args).await,
        ScheduleVerb::Resume(args) => schedule_act::resume(global, &args).await,
        ScheduleVerb::Remove(args) => schedule_act::remove(global, &args).await,
        ScheduleVerb::FireNow(args) => schedule_act::fire_now(global, &args).await,
        ScheduleVerb::SkipNext(args) => schedule_act::skip_next(global, &args).await,
    }
}

async fn list_schedules(global: &Global, args: &ScheduleListArgs) -> Result<VerbResult> {
    let group = args.group.as_deref().map(GroupCode::parse).transpose()?;
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let now = app.server_now().await?;
    let fires = Fires::read_at(&app, now).await?;
    let mut tx = app.db.begin_read().await?;
    let mut all: Vec<Trigger> = store::trigger::list_triggers(&mut tx).await?;
    if let Some(group) = &group {
        let groups = store::job::without_dependencies(&mut tx).await?.groups;
        let of_type = groups.into_iter().find(|g| g.code == *group).and_then(|g| g.batch_type);
        all.retain(|t| TriggerWords::from(t.def.clone()).opens(group, of_type.as_deref()));
    }
    let limit = usize::try_from(args.limit)?;
    let more = all.len().saturating_sub(limit);
    all.truncate(limit);
    let newest = store::firing::newest(&mut tx).await?;
    let last: HashMap<TriggerId, Firing> = newest.into_iter().map(|f| (f.trigger_id, f)).collect();
    drop(tx);
    app.close().await;
    if global.json {
        let row = |t: &Trigger| ScheduleDetail::from_trigger(t, last.get(&t.trigger_id));
        out::document(&all.iter().map(row).collect::<Vec<_>>())?;
        return Ok(VerbResult::Well);
    }
    let lang = global.language();
    if let (true, Some(group)) = (all.is_empty(), &group) {
        out::print_line(&match lang {
            Lang::En => format!("no schedule of group {group}"),
            Lang::Zh => format!("没有作业组 {group} 的调度"),
        });
        return Ok(VerbResult::Well);
    }
    if all.is_empty() {
        out::print_line(lang.select(
            "no schedules; make one: procession schedule add, or write schedules: in a definition file",
            "没有调度；可用 procession schedule add 新建，或在定义文件中写 schedules:",
        ));
        return Ok(VerbResult::Well);
    }
    out::print_line(&schedule_words::table(&all, &last, now, lang));
    if more > 0 {
        out::print_line(&format!("… {more} {} (--limit)", lang.select("more", "条未显示")));
    }
    if fires == Fires::OnceServed && all.iter().any(|t| t.status == TriggerStatus::Enabled) {
        out::print_line(schedule_nodes::nobody(lang));
    }
    Ok(VerbResult::Well)
}

async fn show_schedule(global: &Global, args: &ScheduleShowArgs) -> Result<VerbResult> {
    let code = TriggerCode::parse(&args.code)?;
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.begin_read().await?;
    let found = schedule_actions::found(&mut tx, &code).await?;
    let last = store::firing::of_trigger(&mut tx, found.trigger_id, 1).await?.pop();
    drop(tx);
    app.close().await;
    if global.json {
        out::document(&ScheduleDetail::from_trigger(&found, last.as_ref()))?;
    } else {
        out::print_line(&schedule_words::whole(&found, last.as_ref(), global.language())?);
    }
    Ok(VerbResult::Well)
}

async fn firings(global: &Global, args: &FiringsArgs) -> Result<VerbResult> {
    let code = args.code.as_deref().map(TriggerCode::parse).transpose()?;
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.begin_read().await?;
    let (id, found) = match (&code, args.id) {
        (Some(code), _) => {
            let found = known(&mut tx, code).await?;
            (found.trigger_id, Some(found))
        }
        (None, id) => {
            let id = TriggerId(id.context("a code or --id")?);
            (
                id,
                store::trigger::list_triggers(&mut tx)
                    .await?
                    .into_iter()
                    .find(|t| t.trigger_id == id),
            )
        }
    };
    let all = store::firing::of_trigger(&mut tx, id, args.limit).await?;
    drop(tx);
    app.close().await;
    if all.is_empty() && found.is_none() {
        let message = format!("no schedule has the number {}, and no firing is of it", id.0);
        return Err(BadInput(message).into());
    }
    // Of a removed schedule only its firings remain, without a time zone.
    let zone = found.as_ref().map_or(Tz::UTC, |t| t.def.timing.zone);
    let code = found.map(|t| t.def.code);
    if global.json {
        let rows: Vec<_> = all.iter().map(|f| FiringDetail::from_firing(f, zone)).collect();
        out::print_json(&json!({"schedule": code, "id": id, "firings": rows}))?;
        return Ok(VerbResult::Well);
    }
    if all.is_empty() {
        out::print_line(global.language().select("it has not fired yet", "尚未触发过"));
        return Ok(VerbResult::Well);
    }
    out::print_line(&schedule_words::firings(&all, zone, global.language()));
    Ok(VerbResult::Well)
}

/// Like [`acting::found`]; a removed schedule still has its firings.
async fn known(tx: &mut Tx, code: &TriggerCode) -> Result<Trigger> {
    match schedule_actions::found(tx, code).await {
        Ok(found) => Ok(found),
        Err(error) if error.is::<NotDone>() && was_removed(tx, code).await? => {
            let message = format!(
                "schedule {code} was removed; its firings are on record under the number that \
                 'schedule remove' has said: procession schedule firings --id NUMBER (numbers that \
                 no schedule has: docs/schedules.md)"
            );
            Err(BadInput(message).into())
        }
        Err(error) => Err(error),
    }
}

/// Whether this schedule is among the latest removals.
async fn was_removed(tx: &mut Tx, code: &TriggerCode) -> Result<bool> {
    let removals = AuditFilter { action: Some(REMOVE.to_owned()), ..AuditFilter::default() };
    let acts = store::audit::list_records(tx, &removals, ACTS).await?;
    let names = |e: &AuditEntry| e.detail.as_ref().is_some_and(|d| d["schedule"] == code.as_str());
    Ok(acts.iter().any(|act| names(&act.entry)))
}

/// The action name of a removal in the audit log.
const REMOVE: &str = "schedule remove";
/// Maximum number of removals that are searched.
const ACTS: u32 = 10_000;
