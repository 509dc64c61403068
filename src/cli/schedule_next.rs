//! `schedule next`: when a schedule will fire, and why then.

use crate::app::{App, EmptyDatabase};
use crate::cli::schedule_args::TimingFlags;
use crate::cli::schedule_words::describe_timing;
use crate::cli::{BadInput, Global, VerbResult, batch, out};
use crate::domain::calendar::Calendars;
use crate::domain::id::TriggerCode;
use crate::domain::schedule::trigger::{NumberRule, TriggerStatus};
use crate::domain::schedule::{FiringRule, Occurrence, TimingWords};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::view::schedule::local;
use crate::view::schedule_next::{
    self, FiringPreview, FiringPreviewRequest, MOST, SchedulePreview, find_firings, weekday,
};
use anyhow::Result;
use chrono_tz::Tz;
use clap::Args;
use serde_json::json;

/// Arguments of `next`.
#[derive(Args)]
pub(super) struct NextArgs {
    /// Code of a schedule; without it, say the timing: --cron '0 0 2 1 * ?' --zone Asia/Shanghai
    code: Option<String>,
    /// How many
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=MOST as i64))]
    count: u32,
    /// From this day or time of the schedule's zone on, 2025-01-01 [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    #[command(flatten)]
    timing: TimingFlags,
    /// Number of its batches, to be shown: 'month(-1)'
    #[arg(long, value_name = "EXPR")]
    batch_no: Option<String>,
}

pub(super) async fn next(global: &Global, args: &NextArgs) -> Result<VerbResult> {
    let app = App::open_if_there(global.config()?).await?;
    let (calendars, now) = match &app {
        Some(app) => (app.calendars().await?, batch::server_now(app).await?),
        None => (Calendars::default(), Clock::system().now()),
    };
    let asked = match &args.code {
        Some(code) => stored(global, args, code, now).await?,
        None => written(args, now)?,
    };
    if let Some(app) = app {
        app.close().await;
    }
    let lang = global.language();
    let after = match &args.from {
        Some(text) => moment(text, asked.timing.zone)?.plus_ms(-1),
        None => now,
    };
    asked.check(after, now, &calendars)?;
    if !asked.timing.schedule.is_clocked() {
        let words = describe_timing(&asked.timing, lang);
        let message = match lang {
            Lang::En => format!("{}: not fired by the clock ({words})", asked.code),
            Lang::Zh => format!("{}：不由时钟触发（{words}）", asked.code),
        };
        if global.json {
            out::print_json(
                &json!({"schedule": asked.code, "next": [], "skipped": [], "note": message}),
            )?;
        } else {
            out::print_line(&message);
        }
        return Ok(VerbResult::Well);
    }
    let shown = find_firings(&asked, &calendars, after, usize::try_from(args.count)?)?;
    if global.json {
        return out::document(&SchedulePreview::from_firings(&asked, &shown))
            .map(|()| VerbResult::Well);
    }
    print(&asked, &shown, lang)?;
    Ok(VerbResult::Well)
}

async fn stored(
    global: &Global,
    args: &NextArgs,
    code: &str,
    now: Millis,
) -> Result<FiringPreviewRequest> {
    if args.timing.names_a_kind() {
        let message =
            "next takes the code of a schedule, or a timing of its own (--cron …); not both";
        return Err(BadInput(message.to_owned()).into());
    }
    let code = TriggerCode::parse(code)?;
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.begin_read().await?;
    let mut asked = FiringPreviewRequest::stored(&mut tx, &code, now).await?;
    drop(tx);
    app.close().await;
    if let Some(text) = &args.batch_no {
        asked.number = Some(NumberRule::parse(text)?);
    }
    let words = args.timing.apply_to(asked.timing.clone().into())?;
    let timing = words.parse_timing(Some(asked.timing.zone))?;
    Ok(asked.with_timing(timing))
}

fn written(args: &NextArgs, now: Millis) -> Result<FiringPreviewRequest> {
    if !args.timing.names_a_kind() {
        let message = "say which: procession schedule next CODE, or a timing such as --cron '0 0 2 1 * ?' \
                    --zone Asia/Shanghai";
        return Err(BadInput(message.to_owned()).into());
    }
    let timing = args.timing.apply_to(TimingWords::default())?.parse_timing(Some(Tz::UTC))?;
    let number = args.batch_no.as_deref().map(NumberRule::parse).transpose()?;
    Ok(FiringPreviewRequest::written(timing, number, now))
}

fn moment(text: &str, zone: Tz) -> Result<Millis> {
    schedule_next::moment(text, zone).ok_or_else(|| {
        let message =
            format!("--from {text}: write 2026-12-31 or 2026-12-31T18:00, a time of {zone}");
        BadInput(message).into()
    })
}

fn print(asked: &FiringPreviewRequest, shown: &FiringPreview, lang: Lang) -> Result<()> {
    let (zone, FiringPreview { next, left_out, skipped }) = (asked.timing.zone, shown);
    let by_hand = left_out.iter().map(|one| (one.planned, asked.why_left_out(one.planned)));
    let swallowed = skipped.iter().map(|one| {
        (one.planned, format!("{} {}", lang.select("left out:", "不触发："), one.why.words(lang)))
    });
    out::print_line(&format!(
        "{}  {}  {}",
        asked.code,
        describe_timing(&asked.timing, lang),
        zone.name()
    ));
    let mut rows: Vec<(Millis, Vec<String>)> = next
        .iter()
        .map(|one| (one.planned, render_row(asked, one, lang)))
        .chain(by_hand.chain(swallowed).map(|(planned, why)| {
            let cells = vec![
                format!("({})", local(planned, zone)),
                weekday(planned, zone, lang).to_owned(),
                "-".to_owned(),
                why,
            ];
            (planned, cells)
        }))
        .collect();
    rows.sort_by_key(|(at, _)| *at);
    let header = match lang {
        Lang::En => ["PLANNED", "DAY", "BATCH", "WHY"],
        Lang::Zh => ["计划时间", "星期", "批次", "说明"],
    };
    out::print_line(&out::table(&header, rows.into_iter().map(|(_, row)| row).collect()));
    if next.is_empty() {
        out::print_line(lang.select("it does not fire any more", "不再触发"));
    }
    if let FiringRule::FixedDelay { .. } = asked.timing.schedule {
        out::print_line(lang.select(
            "a fixed delay is counted from the end of each batch; shown as if batches took no time",
            "固定延迟从每个批次结束时算起；此处按批次不耗时显示",
        ));
    }
    if let Some(t) = asked.stored.as_ref().filter(|t| t.status != TriggerStatus::Enabled) {
        let reason = t.reason.as_deref().unwrap_or_default();
        out::print_line(&match lang {
            Lang::En => format!("it is {}, so none of these fires: {reason}", t.status.as_str()),
            Lang::Zh => format!("状态为 {}，以上均不会触发：{reason}", t.status.as_str()),
        });
    }
    Ok(())
}

fn render_row(asked: &FiringPreviewRequest, one: &Occurrence, lang: Lang) -> Vec<String> {
    let zone = asked.timing.zone;
    let number = match asked.number(one.planned, one.nominal) {
        None => "-".to_owned(),
        Some(Ok(no)) => no,
        Some(Err(error)) => out::brief(&error, 60),
    };
    let why: Vec<String> = one.why.iter().map(|reason| reason.words(lang)).collect();
    vec![
        local(one.planned, zone),
        weekday(one.planned, zone, lang).to_owned(),
        number,
        why.join("; "),
    ]
}
