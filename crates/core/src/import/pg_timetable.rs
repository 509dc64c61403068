//! Imports pg_timetable: a chain becomes a group, and its tasks become jobs that run one after the other.
//!
//! In pg_timetable all tasks of a chain run in one transaction of one connection, unless they are autonomous; here each
//! has its own transaction. This is always noted, because no key tells it.

pub(super) mod tables;
pub(super) mod task;

use crate::definition::SourceNode;
use crate::domain::id::GroupCode;
use crate::domain::schedule::TimingWords;
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::import::Given;
use crate::import::body::text;
use crate::import::draft::Draft;
use crate::import::keys::{KnownKey, check_keys, read_key};
use crate::import::note::{ImportOrigin, Level};
use crate::import::schedule::SourceScheduleState;
use crate::import::step_jobs::{FlowPlace, push_chain};
use crate::import::tally::CountedKind;
use crate::import::tree::{get, is_yes, items, number, origin, tree, word};

/// Keys of a file, a chain and a task, as in pg_timetable's own YAML reader.
pub(super) const FILE_KEYS: &[KnownKey] = &[read_key("chains")];
pub(super) const CHAIN_KEYS: &[KnownKey] = &[
    read_key("name"),
    read_key("schedule"),
    read_key("live"),
    read_key("max_instances"),
    read_key("timeout"),
    read_key("self_destruct"),
    read_key("exclusive"),
    read_key("client_name"),
    read_key("on_error"),
    read_key("tasks"),
];

/// Seconds of a day.
const DAY_SEC: i64 = 86_400;

/// Imports files of chains.
pub(crate) fn read_chains(given: &[Given], draft: &mut Draft) {
    for file in given {
        let Some(text) = text(file, draft) else { continue };
        let Some(root) = tree(&file.path, text, draft) else { continue };
        check_keys(&root, &[FILE_KEYS], "", draft);
        let chains = items(&root, "chains");
        if chains.is_empty() {
            let cure = "give a file with chains: and a list of them";
            draft.fault(&origin(&root), "there is no chain in this file", cure);
        }
        for one in chains {
            let _unreadable = chain(one, draft);
        }
        if draft.asked.zone.is_none() && chains.iter().any(|c| get(c, "schedule").is_some()) {
            draft.note(
                Level::Look,
                &ImportOrigin::new(&file.path, 0), "",
                ("pg_timetable goes by the time zone of its PostgreSQL server: times here are UTC",
                 "pg_timetable 使用其 PostgreSQL 服务器的时区:此处时间按 UTC 计"),
                ("import again with --zone, such as --zone Asia/Shanghai",
                 "请加 --zone 重新导入,例如 --zone Asia/Shanghai"),
            );
        }
    }
}

/// Converts a chain to a group; `None` if it cannot be read.
fn chain(chain: &SourceNode, draft: &mut Draft) -> Option<GroupCode> {
    let at = origin(chain);
    let Some(name) = word(chain, "name").map(str::trim).filter(|n| !n.is_empty()) else {
        draft.fault(&at, "this chain has no name", "add name:");
        return None;
    };
    let tasks = items(chain, "tasks");
    if tasks.is_empty() {
        draft.fault(&at, format!("chain {name} has no tasks"), "add tasks:");
        return None;
    }
    if !draft.is_first("chain", name) {
        draft.fault(&at, format!("chain {name} is there twice"), "rename one of the two");
        return None;
    }
    let group = draft.group(name);
    let limit = number(chain, "timeout", draft).unwrap_or(0);
    if limit > 0
        && let Some(made) = draft.group_mut(&group)
    {
        made.batch_timeout_sec = u32::try_from((limit + 999) / 1_000).ok();
    }
    let mut steps = Vec::new();
    let mut sql = 0;
    for (place, one) in (1..).zip(tasks) {
        let Some(made) = task::make_task(one, &group, name, place, draft) else { continue };
        sql += usize::from(made.step.job.sql.is_some());
        if made.step.job.is_active {
            steps.push((made.step, made.next_after));
        } else {
            // The chain continues after it, and so do its successors here.
            draft.push(made.step.job);
        }
    }
    push_chain(steps, FlowPlace { group: &group, at: &at, title: name }, draft);
    draft.end_item();
    if sql > 1 {
        draft.note(
            Level::Differs,
            &at, name,
            ("there the SQL tasks of a chain are one transaction; here each is one of its own, so what a \
              task did stays when a later one fails",
             "原系统中一条链的 SQL 任务在同一事务内;此处每个任务各为一个事务,后面的失败不会撤销前面的结果"),
            ("join statements that belong together into one job",
             "必须同成同败的语句请合并为一个作业"),
        );
    }
    check_keys(chain, &[CHAIN_KEYS], name, draft);
    check_chain_keys(chain, &at, name, draft);
    schedule(chain, &at, name, &group, draft);
    draft.end_item();
    Some(group)
}

/// Reports keys of a chain without an equivalent.
fn check_chain_keys(chain: &SourceNode, at: &ImportOrigin, name: &str, draft: &mut Draft) {
    if is_yes(chain, "self_destruct") == Some(true) {
        draft.note(
            Level::Differs,
            at,
            name,
            (
                "self_destruct: there it is removed once it has run well; here it stays",
                "self_destruct:原系统成功运行后删除自身;此处会保留",
            ),
            (
                format!("procession schedule remove {name} once it has run"),
                format!("运行后请执行 procession schedule remove {name}"),
            ),
        );
    }
    if is_yes(chain, "exclusive") == Some(true) {
        draft.note(
            Level::Look,
            at,
            name,
            (
                "exclusive: there no other chain runs beside it; here others do",
                "exclusive:原系统运行它时暂停其他链;此处不会",
            ),
            (
                "give its jobs and those it must not meet a lock: locks: [NAME]",
                "请为相互排斥的作业设置同一个锁:locks: [名称]",
            ),
        );
    }
    for key in ["client_name", "on_error"] {
        if let Some(value) = word(chain, key).filter(|v| !v.trim().is_empty()) {
            let cure = match key {
                "client_name" => {
                    ("worker: LABEL on its jobs does that", "可用作业的 worker: 标签 实现")
                }
                _ => (
                    "make it a job with trigger_rule: one_failed",
                    "可改为 trigger_rule: one_failed 的作业",
                ),
            };
            draft.note(
                Level::LeftOut,
                at,
                name,
                (format!("{key}: {value}"), format!("{key}:{value}")),
                cure,
            );
        }
    }
}

fn schedule(
    chain: &SourceNode,
    at: &ImportOrigin,
    name: &str,
    group: &GroupCode,
    draft: &mut Draft,
) {
    draft.begin_item(CountedKind::Schedule, at, name);
    let firing = if is_yes(chain, "live") == Some(true) {
        SourceScheduleState::On
    } else {
        SourceScheduleState::Off
    };
    let text = word(chain, "schedule").unwrap_or("* * * * *").trim().to_owned();
    let timing = match timing(&text) {
        Ok(Some(timing)) => timing,
        Ok(None) => {
            draft.note(
                Level::LeftOut,
                at,
                name,
                (
                    "@reboot: nothing here fires when a server starts",
                    "@reboot:此处没有随服务器启动的触发",
                ),
                (
                    format!("procession batch open --group {group} after a start"),
                    format!("启动后执行 procession batch open --group {group}"),
                ),
            );
            return;
        }
        Err(what) => {
            let place = get(chain, "schedule").map_or_else(|| at.clone(), origin);
            let cure = "write five fields, @every N minutes, @after N minutes or @reboot";
            draft.fault(&place, format!("chain {name}: {what}"), cure);
            return;
        }
    };
    let overlap = match number(chain, "max_instances", draft) {
        Some(1) => Some(Overlap::Skip),
        None => Some(Overlap::Parallel),
        Some(most) => {
            draft.note(
                Level::Differs,
                at, name,
                (format!("max_instances: {most}; here a batch is opened while others run, however many"),
                 format!("max_instances:{most};此处不限制同时运行的批次数")),
                ("overlap: skip allows one at a time", "overlap: skip 表示同时只运行一个"),
            );
            Some(Overlap::Parallel)
        }
    };
    let words = TriggerWords {
        code: name.to_owned(),
        group: Some(group.clone()),
        timing,
        misfire: Some(MisfirePolicy::Skip),
        overlap,
        ..TriggerWords::default()
    };
    draft.schedule(at, words, firing);
}

/// Translates five fields, or `@every` and `@after` with an interval; `None` for `@reboot`.
fn timing(text: &str) -> Result<Option<TimingWords>, String> {
    if text == "@reboot" {
        return Ok(None);
    }
    if let Some(span) = text.strip_prefix("@every") {
        return Ok(Some(TimingWords { every_sec: Some(seconds(span)?), ..TimingWords::default() }));
    }
    if let Some(span) = text.strip_prefix("@after") {
        return Ok(Some(TimingWords { delay_sec: Some(seconds(span)?), ..TimingWords::default() }));
    }
    Cron::parse(text).map_err(|e| e.to_string())?;
    Ok(Some(TimingWords { cron: Some(text.to_owned()), ..TimingWords::default() }))
}

/// Parses an interval in PostgreSQL's format: `2 hours`, `1 day 30 min`, `01:30:00`.
fn seconds(span: &str) -> Result<i64, String> {
    let unreadable = || format!("{:?} is no interval that can be read", span.trim());
    let mut total: i64 = 0;
    let mut number: Option<i64> = None;
    for word in span.split_whitespace() {
        if word.contains(':') {
            let parts: Result<Vec<i64>, _> = word.split(':').map(str::parse::<i64>).collect();
            let parts = parts.map_err(|_| unreadable())?;
            total += match parts[..] {
                [h, m] => h * 3_600 + m * 60,
                [h, m, s] => h * 3_600 + m * 60 + s,
                _ => return Err(unreadable()),
            };
            continue;
        }
        let digits = word.trim_end_matches(char::is_alphabetic);
        let unit = &word[digits.len()..];
        if !digits.is_empty() {
            number = Some(digits.parse().map_err(|_| unreadable())?);
        }
        if !unit.is_empty() {
            let each = match unit.to_ascii_lowercase().as_str() {
                "s" | "sec" | "secs" | "second" | "seconds" => 1,
                "m" | "min" | "mins" | "minute" | "minutes" => 60,
                "h" | "hr" | "hrs" | "hour" | "hours" => 3_600,
                "d" | "day" | "days" => DAY_SEC,
                "w" | "week" | "weeks" => 7 * DAY_SEC,
                _ => return Err(unreadable()),
            };
            total = number
                .take()
                .and_then(|n| n.checked_mul(each))
                .and_then(|n| n.checked_add(total))
                .ok_or_else(unreadable)?;
        }
    }
    // A bare number counts seconds.
    total = total.checked_add(number.unwrap_or(0)).ok_or_else(unreadable)?;
    if total > 0 { Ok(total) } else { Err(unreadable()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        for (span, found) in [
            ("2 hours", Some(7_200)),
            (" 1 day 30 min", Some(88_200)),
            ("01:30:00", Some(5_400)),
            ("5m", Some(300)),
            ("90", Some(90)),
            ("1 month", None),
            ("soon", None),
            ("", None),
            ("0 seconds", None),
            ("99999999999999999999 s", None),
            ("9223372036854775807 days", None),
        ] {
            assert_eq!(seconds(span).ok(), found, "{span:?}");
        }
    }
}
