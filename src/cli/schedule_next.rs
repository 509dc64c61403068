//! `schedule next`: when something will fire, and why then.

use crate::app::{App, EmptyDatabase};
use crate::cli::schedule_args::TimingFlags;
use crate::cli::schedule_words::{local, when};
use crate::cli::{BadInput, Ended, Global, batch, out};
use crate::domain::calendar::Calendars;
use crate::domain::firing::{Firing, FiringStatus, Source};
use crate::domain::id::TriggerCode;
use crate::domain::lang::Lang;
use crate::domain::schedule::{Anchor, Occurrence, Schedule, Skipped, Timing, TimingWords};
use crate::domain::time::{Millis, at_wall_clock};
use crate::domain::trigger::{At, NumberRule, Trigger, TriggerStatus, WordFault, WordFaults};
use crate::engine::clock::Clock;
use crate::engine::trigger::acting;
use crate::store;
use anyhow::Result;
use chrono::{Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, Weekday};
use chrono_tz::Tz;
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Firings shown at most.
const MOST: u32 = 1_000;

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

/// What is previewed.
struct Asked {
    code: String,
    timing: Timing,
    number: Option<NumberRule>,
    anchor: Anchor,
    stored: Option<Trigger>,
    /// Whether it says what is not stored, which has never been checked.
    news: News,
    /// Planned times that a person has left out, and why.
    left_out: BTreeMap<Millis, String>,
}

/// Whether a timing has been checked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// It is stored as it is.
    Stored,
    /// It is of the command line, or partly.
    Written,
}

/// What is shown.
struct Shown {
    /// What fires.
    next: Vec<Occurrence>,
    /// What a person has left out.
    left_out: Vec<Occurrence>,
    /// What a blackout or a day off swallows.
    skipped: Vec<Skipped>,
}

pub(super) async fn next(global: &Global, args: &NextArgs) -> Result<Ended> {
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
    let lang = global.lang();
    let after = match &args.from {
        Some(text) => moment(text, asked.timing.zone)?.plus(-1),
        None => now,
    };
    if asked.news == News::Written {
        // As when it is saved, but that a time which is over is not over for who looks back.
        sound(&asked.timing, after.min(now), &calendars)?;
    }
    if !asked.timing.schedule.is_clocked() {
        let words = when(&asked.timing, lang);
        let said = match lang {
            Lang::En => format!("{}: not fired by the clock ({words})", asked.code),
            Lang::Zh => format!("{}：不由时钟触发（{words}）", asked.code),
        };
        if global.json {
            out::json(&json!({"schedule": asked.code, "next": [], "skipped": [], "note": said}))?;
        } else {
            out::line(&said);
        }
        return Ok(Ended::Well);
    }
    let shown = look(&asked, &calendars, after, usize::try_from(args.count)?)?;
    if global.json {
        return as_json(&asked, &shown).map(|()| Ended::Well);
    }
    print(&asked, &shown, lang)?;
    Ok(Ended::Well)
}

/// Refuses what could not be saved either.
fn sound(timing: &Timing, now: Millis, calendars: &Calendars) -> Result<(), WordFaults> {
    let kind = timing.schedule.kind();
    let fault = |e| WordFault::of_timing(&e, kind);
    timing.check(now, calendars).map_err(|all| WordFaults(all.into_iter().map(fault).collect()))
}

fn look(asked: &Asked, calendars: &Calendars, after: Millis, count: usize) -> Result<Shown> {
    let (mut next, mut left_out) = (Vec::new(), Vec::new());
    for one in asked.timing.preview(calendars, after, asked.anchor) {
        let one = one?;
        let of = if asked.left_out.contains_key(&one.planned) { &mut left_out } else { &mut next };
        of.push(one);
        if next.len() == count {
            break;
        }
    }
    let end = next.last().map_or(after.plus(400 * 86_400_000), |last| last.planned);
    let skipped = asked.timing.skipped_between(calendars, after..end, asked.anchor, count)?;
    Ok(Shown { next, left_out, skipped })
}

async fn stored(global: &Global, args: &NextArgs, code: &str, now: Millis) -> Result<Asked> {
    if args.timing.names_a_kind() {
        let said = "next takes the code of a schedule, or a timing of its own (--cron …); not both";
        return Err(BadInput(said.to_owned()).into());
    }
    let code = TriggerCode::parse(code)?;
    let app = global.open(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.read().await?;
    let found = acting::found(&mut tx, &code).await?;
    let firings = store::firing::of_trigger(&mut tx, found.trigger_id, MOST).await?;
    drop(tx);
    app.close().await;
    let number = match &args.batch_no {
        Some(text) => Some(NumberRule::parse(text)?),
        None => found.def.order.as_ref().map(|order| order.batch_no.clone()),
    };
    let anchor = Anchor {
        created: found.create_time,
        last_planned: found.last_time,
        last_finished: found.last_time.map(|last| last.max(now)),
    };
    let words = args.timing.over(found.def.timing.clone().into())?;
    let timing = words.read(Some(found.def.timing.zone))?;
    let news = if timing == found.def.timing { News::Stored } else { News::Written };
    let is_left_out = |f: &Firing| f.status == FiringStatus::Skipped && f.source == Source::Cron;
    let reason = |f: Firing| (f.planned_at, f.reason.unwrap_or_default());
    let left_out = firings.into_iter().filter(is_left_out).map(reason).collect();
    let code = code.to_string();
    Ok(Asked { code, timing, number, anchor, stored: Some(found), news, left_out })
}

fn written(args: &NextArgs, now: Millis) -> Result<Asked> {
    if !args.timing.names_a_kind() {
        let said = "say which: procession schedule next CODE, or a timing such as --cron '0 0 2 1 * ?' \
                    --zone Asia/Shanghai";
        return Err(BadInput(said.to_owned()).into());
    }
    let timing = args.timing.over(TimingWords::default())?.read(Some(Tz::UTC))?;
    let number = args.batch_no.as_deref().map(NumberRule::parse).transpose()?;
    let (code, anchor) = (String::new(), Anchor::new(now));
    let (news, left_out) = (News::Written, BTreeMap::new());
    Ok(Asked { code, timing, number, anchor, stored: None, news, left_out })
}

/// A day, or a time of the wall clock.
fn moment(text: &str, zone: Tz) -> Result<Millis> {
    let forms = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    let time = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let day = || text.parse::<NaiveDate>().ok().map(|day| day.and_time(NaiveTime::MIN));
    let wall = time.or_else(day).ok_or_else(|| {
        BadInput(format!("--from {text}: write 2026-12-31 or 2026-12-31T18:00, a time of {zone}"))
    })?;
    Ok(at_wall_clock(wall.date(), wall.time(), zone))
}

impl Asked {
    /// Why a person has left a planned time out, as its row says it.
    fn why_left_out(&self, planned: Millis) -> String {
        self.left_out.get(&planned).cloned().unwrap_or_default()
    }

    /// The batch number of a planned time, or why there is none.
    fn number(&self, planned: Millis, nominal: NaiveDate) -> Option<Result<String, String>> {
        let rule = self.number.as_ref()?;
        let (schedule, zone) = (self.code.as_str(), self.timing.zone);
        let number = rule.number(At { schedule, planned, nominal, zone, parent: None });
        Some(number.map(|no| no.to_string()).map_err(|error| error.to_string()))
    }
}

fn print(asked: &Asked, shown: &Shown, lang: Lang) -> Result<()> {
    let (zone, Shown { next, left_out, skipped }) = (asked.timing.zone, shown);
    let by_hand = left_out.iter().map(|one| (one.planned, asked.why_left_out(one.planned)));
    let swallowed = skipped.iter().map(|one| {
        (one.planned, format!("{} {}", lang.pick("left out:", "不触发："), one.why.words(lang)))
    });
    out::line(&format!("{}  {}  {}", asked.code, when(&asked.timing, lang), zone.name()));
    let mut rows: Vec<(Millis, Vec<String>)> = next
        .iter()
        .map(|one| (one.planned, row(asked, one, lang)))
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
    out::line(&out::table(&header, rows.into_iter().map(|(_, row)| row).collect()));
    if next.is_empty() {
        out::line(lang.pick("it does not fire any more", "不再触发"));
    }
    if let Schedule::FixedDelay { .. } = asked.timing.schedule {
        out::line(lang.pick(
            "a fixed delay is counted from the end of each batch; shown as if batches took no time",
            "固定延迟从每个批次结束时算起；此处按批次不耗时显示",
        ));
    }
    if let Some(t) = asked.stored.as_ref().filter(|t| t.status != TriggerStatus::Enabled) {
        let reason = t.reason.as_deref().unwrap_or_default();
        out::line(&match lang {
            Lang::En => format!("it is {}, so none of these fires: {reason}", t.status.as_str()),
            Lang::Zh => format!("状态为 {}，以上均不会触发：{reason}", t.status.as_str()),
        });
    }
    Ok(())
}

fn row(asked: &Asked, one: &Occurrence, lang: Lang) -> Vec<String> {
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

fn weekday(at: Millis, zone: Tz, lang: Lang) -> &'static str {
    let (en, zh) = match at.to_utc().with_timezone(&zone).weekday() {
        Weekday::Mon => ("Mon", "周一"),
        Weekday::Tue => ("Tue", "周二"),
        Weekday::Wed => ("Wed", "周三"),
        Weekday::Thu => ("Thu", "周四"),
        Weekday::Fri => ("Fri", "周五"),
        Weekday::Sat => ("Sat", "周六"),
        Weekday::Sun => ("Sun", "周日"),
    };
    lang.pick(en, zh)
}

fn as_json(asked: &Asked, shown: &Shown) -> Result<()> {
    let (zone, Shown { next, left_out, skipped }) = (asked.timing.zone, shown);
    let by_hand = left_out.iter().map(|one| {
        json!({
            "planned_at": one.planned.to_string(), "planned_local": local(one.planned, zone),
            "nominal_date": one.nominal, "why": "by_hand", "words": asked.why_left_out(one.planned),
        })
    });
    let next = next.iter().map(|one| {
        let number = asked.number(one.planned, one.nominal);
        let (no, error) = match number {
            None => (None, None),
            Some(Ok(no)) => (Some(no), None),
            Some(Err(error)) => (None, Some(error)),
        };
        let words: Vec<String> = one.why.iter().map(|why| why.words(Lang::En)).collect();
        json!({
            "planned_at": one.planned.to_string(), "planned_local": local(one.planned, zone),
            "weekday": weekday(one.planned, zone, Lang::En), "nominal_date": one.nominal,
            "batch_no": no, "batch_no_error": error, "why": one.why, "words": words,
        })
    });
    let skipped = skipped.iter().map(|one| {
        json!({
            "planned_at": one.planned.to_string(), "planned_local": local(one.planned, zone),
            "nominal_date": one.nominal, "why": one.why, "words": one.why.words(Lang::En),
        })
    });
    out::json(&json!({
        "schedule": asked.code, "time_zone": zone.name(),
        "next": next.collect::<Vec<Value>>(), "skipped": by_hand.chain(skipped).collect::<Vec<Value>>(),
    }))
}
