//! `schedule`: what fires when; looked at here, changed in `schedule_act`.

use crate::app::EmptyDatabase;
use crate::cli::schedule_act::{self, AddArgs, EditArgs, FireArgs, WhyArgs};
use crate::cli::schedule_next::{self, NextArgs};
use crate::cli::{Ended, Global, out, schedule_words};
use crate::domain::firing::{Firing, TriggerId};
use crate::domain::id::{GroupCode, TriggerCode};
use crate::domain::trigger::Trigger;
use crate::engine::trigger::acting;
use crate::store;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;
use std::collections::HashMap;

/// Verbs of `schedule`.
#[derive(Subcommand)]
pub(super) enum ScheduleVerb {
    /// Schedules with their next and last times, and why one does not fire
    List(ListArgs),
    /// Everything about one schedule
    Show(ShowArgs),
    /// When a schedule will fire: local time and offset, batch number, reasons; also of one that is not
    /// stored (--cron …)
    Next(NextArgs),
    /// What became of its planned times, newest first
    Firings(FiringsArgs),
    /// Make a schedule
    Add(AddArgs),
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
pub(super) struct ListArgs {
    /// Those that open this group
    #[arg(long)]
    group: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// Arguments of `show`.
#[derive(Args)]
pub(super) struct ShowArgs {
    /// Code of the schedule
    code: String,
}

/// Arguments of `firings`.
#[derive(Args)]
pub(super) struct FiringsArgs {
    /// Code of the schedule
    code: String,
    /// At most so many
    #[arg(long, default_value_t = 20)]
    limit: u32,
}

pub(super) async fn schedule(global: &Global, verb: ScheduleVerb) -> Result<Ended> {
    match verb {
        ScheduleVerb::List(args) => list(global, &args).await,
        ScheduleVerb::Show(args) => show(global, &args).await,
        ScheduleVerb::Next(args) => schedule_next::next(global, &args).await,
        ScheduleVerb::Firings(args) => firings(global, &args).await,
        ScheduleVerb::Add(args) => schedule_act::add(global, &args).await,
        ScheduleVerb::Edit(args) => schedule_act::edit(global, &args).await,
        ScheduleVerb::Pause(args) => schedule_act::pause(global, &args).await,
        ScheduleVerb::Resume(args) => schedule_act::resume(global, &args).await,
        ScheduleVerb::Remove(args) => schedule_act::remove(global, &args).await,
        ScheduleVerb::FireNow(args) => schedule_act::fire_now(global, &args).await,
        ScheduleVerb::SkipNext(args) => schedule_act::skip_next(global, &args).await,
    }
}

async fn list(global: &Global, args: &ListArgs) -> Result<Ended> {
    let group = args.group.as_deref().map(GroupCode::parse).transpose()?;
    let app = global.open(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.read().await?;
    let mut all: Vec<Trigger> = store::trigger::all(&mut tx).await?;
    all.retain(|t| group.is_none() || t.def.group() == group.as_ref());
    let more = all.len().saturating_sub(args.limit);
    all.truncate(args.limit);
    let newest = store::firing::newest(&mut tx).await?;
    let last: HashMap<TriggerId, Firing> = newest.into_iter().map(|f| (f.trigger_id, f)).collect();
    drop(tx);
    app.close().await;
    if global.json {
        let row = |t: &Trigger| schedule_words::as_json(t, last.get(&t.trigger_id));
        out::json(&all.iter().map(row).collect::<Result<Vec<_>>>()?.into())?;
        return Ok(Ended::Well);
    }
    let lang = global.lang();
    if all.is_empty() {
        out::line(lang.pick(
            "no schedules; make one: procession schedule add, or write schedules: in a definition file",
            "没有调度；可用 procession schedule add 新建，或在定义文件中写 schedules:",
        ));
        return Ok(Ended::Well);
    }
    out::line(&schedule_words::table(&all, &last, lang));
    if more > 0 {
        out::line(&format!("… {more} {} (--limit)", lang.pick("more", "条未显示")));
    }
    Ok(Ended::Well)
}

async fn show(global: &Global, args: &ShowArgs) -> Result<Ended> {
    let code = TriggerCode::parse(&args.code)?;
    let app = global.open(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.read().await?;
    let found = acting::found(&mut tx, &code).await?;
    let last = store::firing::of_trigger(&mut tx, found.trigger_id, 1).await?.pop();
    drop(tx);
    app.close().await;
    let document = schedule_words::as_json(&found, last.as_ref())?;
    if global.json {
        out::json(&document)?;
    } else {
        out::line(&schedule_words::whole(&found, last.as_ref(), global.lang())?);
    }
    Ok(Ended::Well)
}

async fn firings(global: &Global, args: &FiringsArgs) -> Result<Ended> {
    let code = TriggerCode::parse(&args.code)?;
    let app = global.open(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.read().await?;
    let found = acting::found(&mut tx, &code).await?;
    let all = store::firing::of_trigger(&mut tx, found.trigger_id, args.limit).await?;
    drop(tx);
    app.close().await;
    let zone = found.def.timing.zone;
    if global.json {
        let rows: Vec<_> = all.iter().map(|f| schedule_words::firing_json(f, zone)).collect();
        out::json(&json!({"schedule": code, "firings": rows}))?;
        return Ok(Ended::Well);
    }
    if all.is_empty() {
        out::line(global.lang().pick("it has not fired yet", "尚未触发过"));
        return Ok(Ended::Well);
    }
    out::line(&schedule_words::firings(&all, zone, global.lang()));
    Ok(Ended::Well)
}
