//! Schedules and their firings as text and for scripts.

use crate::cli::out;
use crate::domain::schedule::firing::{Firing, TriggerId};
use crate::domain::schedule::misfire::LATE_MS;
use crate::domain::schedule::trigger::{NOOP, Trigger, TriggerDef, TriggerStatus};
use crate::domain::schedule::{BatchEndFilter, FiringRule, Timing, TimingWords};
use crate::domain::text::lang::Lang;
use crate::domain::time::{Millis, span_words};
use crate::view::schedule::local;
use anyhow::Result;
use chrono_tz::Tz;
use serde_json::Value;
use std::collections::HashMap;

fn opt_local(at: Option<Millis>, zone: Tz) -> String {
    at.map_or_else(|| "-".to_owned(), |at| local(at, zone))
}

/// A short description of the timing.
pub(super) fn describe_timing(timing: &Timing, lang: Lang) -> String {
    let words = TimingWords::from(timing.clone());
    match &timing.schedule {
        FiringRule::Cron(cron) => cron.to_string(),
        FiringRule::FixedRate { every_sec } => {
            format!("{} {}", lang.select("every", "每"), span_words(every_sec * 1_000))
        }
        FiringRule::FixedDelay { every_sec } => {
            let span = span_words(every_sec * 1_000);
            match lang {
                Lang::En => format!("{span} after the last"),
                Lang::Zh => format!("上次结束后 {span}"),
            }
        }
        FiringRule::Once { .. } => {
            format!("{} {}", lang.select("once at", "一次："), words.once_at.unwrap_or_default())
        }
        FiringRule::Rule { .. } => {
            format!("{}, {}", words.rule.unwrap_or_default(), words.at.unwrap_or_default())
        }
        FiringRule::Event { name } => format!("{} {name}", lang.select("event", "事件")),
        FiringRule::Manual => lang.select("by hand", "手动").to_owned(),
        FiringRule::After { group, on } => {
            let ends = match on {
                BatchEndFilter::Success => lang.select("", "（成功）"),
                BatchEndFilter::End => lang.select(" (any end)", "（任何结束）"),
            };
            format!("{} {group}{ends}", lang.select("after", "之后："))
        }
    }
}

/// What it opens.
fn opens(def: &TriggerDef) -> String {
    let Some(order) = &def.order else { return NOOP.to_owned() };
    let what = match (&order.group, &order.batch_type) {
        (Some(group), _) => group.to_string(),
        (None, Some(ty)) => format!("type {ty}"),
        (None, None) => "-".to_owned(),
    };
    format!("{what} {}", order.batch_no)
}

/// Why it has no next time, or the error of its last firing.
fn describe_reason(t: &Trigger, last: Option<&Firing>, lang: Lang) -> String {
    if let Some(reason) = &t.reason {
        return reason.clone();
    }
    let waits = match (&t.def.timing.schedule, t.next_time) {
        (FiringRule::Event { .. }, _) => lang.select("waits for its event", "等待事件"),
        (FiringRule::Manual, _) => lang.select("fires by hand", "手动触发"),
        (FiringRule::After { .. }, _) => {
            lang.select("waits for a batch of that group", "等待该组的批次结束")
        }
        (FiringRule::FixedDelay { .. }, None) => {
            lang.select("waits for its batch to end", "等待其批次结束")
        }
        (
            FiringRule::Cron(_)
            | FiringRule::FixedRate { .. }
            | FiringRule::FixedDelay { .. }
            | FiringRule::Once { .. }
            | FiringRule::Rule { .. },
            _,
        ) => "",
    };
    let message = last.and_then(|f| f.reason.as_deref());
    [waits, message.unwrap_or_default()]
        .into_iter()
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

/// The note that its next time has passed and it was not fired.
fn overdue(t: &Trigger, now: Millis, lang: Lang) -> Option<String> {
    let at = t.next_time.filter(|at| t.is_overdue(now) && now.since(*at) > LATE_MS)?;
    let span = span_words(now.since(at));
    Some(match lang {
        Lang::En => format!("overdue by {span}"),
        Lang::Zh => format!("已逾期 {span}"),
    })
}

fn last_words(last: Option<&Firing>, zone: Tz) -> String {
    last.map_or_else(
        || "-".to_owned(),
        |f| {
            let no = f.batch_no.as_ref().map_or_else(String::new, |no| format!(" {no}"));
            format!("{} {}{no}", local(f.planned_at, zone), f.status)
        },
    )
}

/// The table of `schedule list`.
pub(super) fn table(
    all: &[Trigger],
    last: &HashMap<TriggerId, Firing>,
    now: Millis,
    lang: Lang,
) -> String {
    let header = match lang {
        Lang::En => ["CODE", "STATUS", "WHEN", "ZONE", "OPENS", "NEXT", "LAST", "WHY"],
        Lang::Zh => ["代码", "状态", "时间", "时区", "打开", "下次", "上次", "说明"],
    };
    let row = |t: &Trigger| {
        let (zone, last) = (t.def.timing.zone, last.get(&t.trigger_id));
        let late = overdue(t, now, lang).into_iter();
        let lines: Vec<String> = late
            .chain([describe_reason(t, last, lang)])
            .filter(|words| !words.is_empty())
            .collect();
        vec![
            t.def.code.to_string(),
            t.status.as_str().to_owned(),
            describe_timing(&t.def.timing, lang),
            zone.name().to_owned(),
            opens(&t.def),
            opt_local(t.next_time, zone),
            last_words(last, zone),
            out::brief(&lines.join("; "), 80),
        ]
    };
    out::table(&header, all.iter().map(row).collect())
}

/// One complete schedule: its keys as in a file, and its progress.
pub(super) fn whole(t: &Trigger, last: Option<&Firing>, lang: Lang) -> Result<String> {
    let zone = t.def.timing.zone;
    let mut rows = Vec::new();
    if let Value::Object(keys) = serde_json::to_value(&t.def)? {
        for (key, value) in keys {
            let text = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            rows.push(vec![key, text]);
        }
    }
    let mut say = |en: &str, zh: &str, text: String| {
        rows.push(vec![lang.select(en, zh).to_owned(), text]);
    };
    say("STATUS", "状态", t.status.as_str().to_owned());
    say("ORIGIN", "来源", t.origin.clone());
    say("NEXT", "下次", opt_local(t.next_time, zone));
    say("LAST", "上次", last_words(last, zone));
    let why = describe_reason(t, last, lang);
    if !why.is_empty() {
        say("WHY", "说明", why);
    }
    let header = match lang {
        Lang::En => ["KEY", "VALUE"],
        Lang::Zh => ["项", "值"],
    };
    Ok(out::table(&header, rows))
}

/// The table of `schedule firings`.
pub(super) fn firings(all: &[Firing], zone: Tz, lang: Lang) -> String {
    let header = match lang {
        Lang::En => ["PLANNED", "SOURCE", "STATUS", "BATCH", "FIRED", "TRIES", "WHY"],
        Lang::Zh => ["计划时间", "来源", "状态", "批次", "触发时间", "次数", "说明"],
    };
    let row = |f: &Firing| {
        let until = f.missed_until.map(|at| format!(" … {}", local(at, zone)));
        vec![
            format!("{}{}", local(f.planned_at, zone), until.unwrap_or_default()),
            f.source.to_string(),
            f.status.to_string(),
            f.batch_no.clone().unwrap_or_else(|| "-".to_owned()),
            opt_local(f.fired_at, zone),
            f.attempt.to_string(),
            f.reason.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    out::table(&header, all.iter().map(row).collect())
}

/// The line after an action: what the schedule does from now on.
pub(super) fn stands(t: &Trigger, lang: Lang) -> String {
    let (code, zone) = (&t.def.code, t.def.timing.zone);
    match (t.status, t.next_time) {
        (TriggerStatus::Enabled, Some(at)) => {
            format!("{code}: {} {} {}", lang.select("next", "下次"), local(at, zone), zone.name())
        }
        (TriggerStatus::Enabled | TriggerStatus::Paused | TriggerStatus::Ended, _) => {
            format!("{code}: {} {}", t.status.as_str(), describe_reason(t, None, lang))
                .trim_end()
                .to_owned()
        }
    }
}
