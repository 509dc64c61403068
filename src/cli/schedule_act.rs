//! `schedule add | edit | pause | resume | remove | fire-now | skip-next`.

use crate::app::{App, EmptyDatabase, FromGroups, whoami};
use crate::cli::define::remark;
use crate::cli::schedule_args::{CLEARED, OrderFlags, TimingFlags, clear, pairs};
use crate::cli::schedule_nodes::Fires;
use crate::cli::{Global, VerbResult, batch, four_eyes, out, schedule_words};
use crate::domain::id::{BatchNo, TriggerCode};
use crate::domain::schedule::trigger::{FiringOverrides, Trigger, TriggerDef, TriggerWords};
use crate::domain::text::lang::Lang;
use crate::engine::operate::operator_actions::operator_here;
use crate::engine::trigger::schedule_actions::{
    self, FROM_FILE, ScheduleActionOrigin, ScheduleStanding,
};
use crate::store::audit::Operator;
use crate::view::schedule::{ScheduleDetail, local};
use anyhow::Result;
use chrono::NaiveDate;
use clap::Args;
use serde_json::json;

/// Arguments of `add`.
#[derive(Args)]
pub(super) struct ScheduleAddArgs {
    /// Code of the schedule; unique
    code: String,
    #[command(flatten)]
    timing: TimingFlags,
    #[command(flatten)]
    order: OrderFlags,
    /// Why; stored in the audit log
    #[arg(long, value_parser = remark)]
    reason: Option<String>,
}

/// Arguments of `edit`.
#[derive(Args)]
pub(super) struct EditArgs {
    /// Code of the schedule
    code: String,
    #[command(flatten)]
    timing: TimingFlags,
    #[command(flatten)]
    order: OrderFlags,
    /// Take these away
    #[arg(long, value_delimiter = ',', value_name = "KEY", value_parser = CLEARED)]
    clear: Vec<String>,
    /// Why; stored in the audit log
    #[arg(long, value_parser = remark)]
    reason: String,
}

/// A schedule, and why.
#[derive(Args)]
pub(super) struct WhyArgs {
    /// Code of the schedule
    code: String,
    /// Why; stored in the audit log
    #[arg(long, value_parser = remark)]
    reason: String,
}

/// What a firing gives by itself.
#[derive(Args)]
pub(super) struct GivenArgs {
    /// Batch number in place of the schedule's
    #[arg(long)]
    batch_no: Option<String>,
    /// Accounting day, YYYY-MM-DD
    #[arg(long)]
    business_date: Option<NaiveDate>,
    /// Parameter of this firing, NAME=VALUE; wins over the schedule's
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Open it although its number does not fit the type of the group; that is put on record
    #[arg(long)]
    free_text: bool,
}

/// Arguments of `fire-now`.
#[derive(Args)]
pub(super) struct FireArgs {
    /// Code of the schedule
    code: String,
    #[command(flatten)]
    given: GivenArgs,
    /// Why; stored in the audit log
    #[arg(long, value_parser = remark)]
    reason: String,
}

impl GivenArgs {
    pub(super) fn to_given(&self) -> Result<FiringOverrides> {
        Ok(FiringOverrides {
            batch_no: self.batch_no.as_deref().map(BatchNo::parse).transpose()?,
            business_date: self.business_date,
            params: pairs(&self.params)?,
            free_text: self.free_text,
        })
    }
}

/// The operator, with an open database.
pub(super) struct ScheduleOperator {
    pub(super) app: App,
    by: Operator,
    now: crate::domain::time::Millis,
}

impl ScheduleOperator {
    pub(super) async fn open(global: &Global) -> Result<Self> {
        let app = global.open_app(EmptyDatabase::Refuse).await?;
        let now = batch::server_now(&app).await?;
        Ok(Self { app, by: operator_here(&whoami()), now })
    }

    /// Whether a firing that is written now fires now.
    pub(super) async fn fires(&self) -> Result<Fires> {
        Fires::read_at(&self.app, self.now).await
    }

    pub(super) fn to_operation<'a>(&'a self, reason: Option<&'a str>) -> ScheduleActionOrigin<'a> {
        ScheduleActionOrigin { by: &self.by, reason, now: self.now }
    }
}

pub(super) async fn add_schedule(global: &Global, args: &ScheduleAddArgs) -> Result<VerbResult> {
    let words = TriggerWords { code: args.code.clone(), ..TriggerWords::default() };
    let words = args.order.apply_to(words)?;
    let words = TriggerWords { timing: args.timing.apply_to(words.timing.clone())?, ..words };
    let desk = ScheduleOperator::open(global).await?;
    let defs = desk.app.definition().await?;
    let from_groups = FromGroups::from_words(&words, &defs);
    let zone = from_groups.zone;
    let def = from_groups.calendar_into(words).parse_trigger(zone)?;
    let expected = desk.app.expected(&defs, std::slice::from_ref(&def), desk.now).await?;
    let summary = format!("make schedule {}", def.code);
    let change = four_eyes::scheduled(&def, &defs);
    four_eyes::record(&desk.app, change, &summary, args.reason.as_deref(), global.language())
        .await?;
    let deed = desk.to_operation(args.reason.as_deref());
    let stands = schedule_actions::add_schedule(&desk.app.db, &def, &expected, deed).await?;
    desk.app.close().await;
    print_stored(global, &stands)
}

pub(super) async fn edit_schedule(global: &Global, args: &EditArgs) -> Result<VerbResult> {
    let code = TriggerCode::parse(&args.code)?;
    let desk = ScheduleOperator::open(global).await?;
    let defs = desk.app.definition().await?;
    let change = |def: TriggerDef| -> Result<TriggerDef> {
        let zone = def.timing.zone;
        let mut words: TriggerWords = def.into();
        for key in &args.clear {
            words = clear(words, key);
        }
        let words = args.order.apply_to(words)?;
        let words = TriggerWords { timing: args.timing.apply_to(words.timing.clone())?, ..words };
        Ok(FromGroups::from_words(&words, &defs).calendar_into(words).parse_trigger(Some(zone))?)
    };
    // The change is computed twice: here for the expected duration of its batches, and again under
    // the lock.
    let was = {
        let mut tx = desk.app.db.begin_read().await?;
        schedule_actions::found(&mut tx, &code).await?
    };
    let expected = desk.app.expected(&defs, &[change(was.def.clone())?], desk.now).await?;
    let summary = format!("change schedule {code}");
    let touched = four_eyes::scheduled(&was.def, &defs);
    four_eyes::record(&desk.app, touched, &summary, Some(&args.reason), global.language()).await?;
    let deed = desk.to_operation(Some(&args.reason));
    let stands =
        schedule_actions::edit_schedule(&desk.app.db, &code, &change, &expected, deed).await?;
    desk.app.close().await;
    from_file(&stands.trigger, global.language());
    print_stored(global, &stands)
}

/// Warns that the file would undo the change of a command.
fn from_file(t: &Trigger, lang: Lang) {
    if t.origin == FROM_FILE {
        out::eprint_line(lang.select(
            "note: it is defined in a file; change it there too, or the next apply brings it back",
            "注意：该调度来自定义文件；请同时修改文件，否则下次 apply 会恢复",
        ));
    }
}

pub(super) async fn pause(global: &Global, args: &WhyArgs) -> Result<VerbResult> {
    let (desk, code) = (ScheduleOperator::open(global).await?, TriggerCode::parse(&args.code)?);
    let stands =
        schedule_actions::pause(&desk.app.db, &code, desk.to_operation(Some(&args.reason))).await?;
    desk.app.close().await;
    print_stored(global, &stands)
}

pub(super) async fn resume(global: &Global, args: &WhyArgs) -> Result<VerbResult> {
    let (desk, code) = (ScheduleOperator::open(global).await?, TriggerCode::parse(&args.code)?);
    let stands =
        schedule_actions::resume(&desk.app.db, &code, desk.to_operation(Some(&args.reason)))
            .await?;
    desk.app.close().await;
    if !global.json {
        out::eprint_line(global.language().select(
            "what fell due while it was paused does not fire; to fire it: procession schedule fire-now \
             CODE --batch-no NUMBER --reason WHY",
            "暂停期间到期的不会补触发；需要时用 procession schedule fire-now 代码 --batch-no 批次号 \
             --reason 原因",
        ));
    }
    print_stored(global, &stands)
}

pub(super) async fn remove(global: &Global, args: &WhyArgs) -> Result<VerbResult> {
    let (desk, code) = (ScheduleOperator::open(global).await?, TriggerCode::parse(&args.code)?);
    let there = {
        let mut tx = desk.app.db.begin_read().await?;
        schedule_actions::found(&mut tx, &code).await?
    };
    let touched = four_eyes::scheduled(&there.def, &desk.app.definition().await?);
    let summary = format!("remove schedule {code}");
    four_eyes::record(&desk.app, touched, &summary, Some(&args.reason), global.language()).await?;
    let was = schedule_actions::remove(&desk.app.db, &code, desk.to_operation(Some(&args.reason)))
        .await?;
    desk.app.close().await;
    from_file(&was, global.language());
    let id = was.trigger_id.0;
    if global.json {
        return out::print_json(&json!({"removed": code, "id": id})).map(|()| VerbResult::Well);
    }
    out::print_line(&match global.language() {
        Lang::En => format!(
            "{code}: removed; its firings stay on record: procession schedule firings --id {id}"
        ),
        Lang::Zh => {
            format!("{code}：已删除；触发记录保留，可查：procession schedule firings --id {id}")
        }
    });
    Ok(VerbResult::Well)
}

pub(super) async fn fire_now(global: &Global, args: &FireArgs) -> Result<VerbResult> {
    let (given, code) = (args.given.to_given()?, TriggerCode::parse(&args.code)?);
    let desk = ScheduleOperator::open(global).await?;
    let fired = schedule_actions::fire_now(
        &desk.app.db,
        &code,
        &given,
        desk.to_operation(Some(&args.reason)),
    )
    .await?;
    let fires = desk.fires().await?;
    desk.app.close().await;
    if global.json {
        let planned = fired.planned.to_string();
        let served = fires == Fires::Now;
        return out::print_json(
            &json!({"schedule": code, "planned_at": planned, "served": served}),
        )
        .map(|()| VerbResult::Well);
    }
    let (lang, planned) = (global.language(), out::local_time(fired.planned));
    let when = fires.words(lang);
    out::print_line(&match lang {
        Lang::En => format!(
            "{code}: {when}, planned at {planned}; what became of it: procession schedule firings {code}"
        ),
        Lang::Zh => format!(
            "{code}：{when}，计划时间 {planned}；结果见：procession schedule firings {code}"
        ),
    });
    Ok(VerbResult::Well)
}

pub(super) async fn skip_next(global: &Global, args: &WhyArgs) -> Result<VerbResult> {
    let (desk, code) = (ScheduleOperator::open(global).await?, TriggerCode::parse(&args.code)?);
    let deed = desk.to_operation(Some(&args.reason));
    let (skipped, stands) = schedule_actions::skip_next(&desk.app.db, &code, deed).await?;
    desk.app.close().await;
    if !global.json {
        let at = local(skipped.planned, stands.trigger.def.timing.zone);
        out::print_line(&format!(
            "{code}: {} {at}",
            global.language().select("left out:", "跳过：")
        ));
    }
    print_stored(global, &stands)
}

fn print_stored(global: &Global, stands: &ScheduleStanding) -> Result<VerbResult> {
    for warning in &stands.warnings {
        out::eprint_line(&format!("warning: {warning}"));
    }
    if global.json {
        return out::document(&ScheduleDetail::from_trigger(&stands.trigger, None))
            .map(|()| VerbResult::Well);
    }
    out::print_line(&schedule_words::stands(&stands.trigger, global.language()));
    if let Some(next) = stands.next.as_ref().filter(|next| !next.why.is_empty()) {
        let why: Vec<String> = next.why.iter().map(|why| why.words(global.language())).collect();
        out::print_line(&format!("  {}", why.join("; ")));
    }
    Ok(VerbResult::Well)
}
