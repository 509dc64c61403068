//! What owners hear of schedules: misses, ends, firings that came to nothing. Both languages in one mail,
//! English first.

use crate::domain::calendar::CalendarWarning;
use crate::domain::declare::Owner;
use crate::domain::firing::{Firing, FiringStatus, NewFiring};
use crate::domain::job::Group;
use crate::domain::lang::Lang;
use crate::domain::notice::{Notice, one_line, to_each, told};
use crate::domain::schedule::Schedule;
use crate::domain::time::{Millis, span_words};
use crate::domain::trigger::TriggerDef;
use std::fmt::Write as _;

/// Who may have to hear.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    /// All groups.
    pub groups: Vec<Group>,
    /// All owners.
    pub owners: Vec<Owner>,
}

/// Planned times that one mail lists; beyond these it gives their number.
const LISTED: usize = 20;

/// The addresses that hear of a schedule: its own, its owner's where it has none, and those of the
/// groups that its order names.
fn heard_by(def: &TriggerDef, audience: &Audience) -> Vec<String> {
    let mut all = def.notify_email.clone();
    if all.is_empty() {
        let owner = audience.owners.iter().find(|o| Some(&o.code) == def.owner.as_ref());
        all.extend(owner.into_iter().flat_map(|o| o.email.clone()));
    }
    let order = def.order.as_ref();
    let named = |group: &&Group| {
        order.is_some_and(|order| {
            order.group.as_ref().is_none_or(|code| *code == group.code)
                && order.batch_type.as_ref().is_none_or(|t| group.batch_type.as_ref() == Some(t))
        })
    };
    for group in audience.groups.iter().filter(named) {
        all.extend(told(group, None, &audience.owners));
    }
    let mut once = Vec::new();
    for address in all {
        if !once.contains(&address) {
            once.push(address);
        }
    }
    once
}

/// The mails about planned times that were missed, and which of them fire late.
pub fn missed(
    def: &TriggerDef,
    rows: &[&NewFiring],
    audience: &Audience,
    now: Millis,
) -> Vec<Notice> {
    let (code, name) = (&def.code, &def.name);
    let late = rows.iter().filter(|row| row.status == FiringStatus::Pending).count();
    let (number, left) = (rows.len(), rows.len() - late);
    let subject = match late {
        0 => format!("[Procession] {code} missed {number} planned time(s); none fires late"),
        _ => {
            format!("[Procession] {code} missed {number} planned time(s); {late} fire(s) late now")
        }
    };
    let mut list = String::new();
    for row in rows.iter().take(LISTED) {
        let reason = row.reason.as_deref().unwrap_or("-");
        let planned = row.planned_at;
        let behind = span_words(now.since(planned));
        let until = row.missed_until.map_or_else(String::new, |until| format!(" … {until}"));
        // Writing to a string cannot fail.
        let _ = writeln!(list, "  {planned}{until}  ({behind} late / 迟到): {reason}");
    }
    if number > LISTED {
        let _ = writeln!(list, "  … {} more / 另有 {} 次", number - LISTED, number - LISTED);
    }
    let body = format!(
        "Schedule {code} ({name}) missed {number} planned time(s): {late} fire(s) late now, {left} \
         do(es) not fire.\n\
         调度 {code} 错过 {number} 次计划时间:补触发 {late} 次,放弃 {left} 次。\n\n\
         {list}\n\
         Look / 查看:         procession schedule firings {code}\n\
         Fire / 手动触发:     procession schedule fire-now {code} --batch-no NUMBER --reason WHY\n"
    );
    to_each(heard_by(def, audience), &one_line(&subject), &body, "misfire")
}

/// The mails about a schedule that will not fire any more.
pub fn ended(def: &TriggerDef, why: &str, audience: &Audience) -> Vec<Notice> {
    let (code, name) = (&def.code, &def.name);
    let subject = format!("[Procession] schedule {code} has ended: {why}");
    let flag = match def.timing.schedule {
        Schedule::Once { .. } => "--once-at TIME",
        Schedule::Cron(_) if def.timing.end.is_none() => "--cron CRON",
        Schedule::Rule { .. } if def.timing.end.is_none() => "--rule RULE",
        Schedule::Cron(_)
        | Schedule::Rule { .. }
        | Schedule::FixedRate { .. }
        | Schedule::FixedDelay { .. }
        | Schedule::Event { .. }
        | Schedule::Manual
        | Schedule::After { .. } => "--end TIME",
    };
    let body = format!(
        "Schedule {code} ({name}) fires no more: {why}.\n调度 {code} 已停止触发。\n\n\
         Look / 查看:         procession schedule show {code}\n\
         Mend / 修改:         procession schedule edit {code} {flag} --reason WHY\n"
    );
    to_each(heard_by(def, audience), &one_line(&subject), &body, "schedule_ended")
}

/// The mails about a calendar without the days that these schedules will need.
pub fn calendar_ends<'a>(
    warning: &CalendarWarning,
    of: impl Iterator<Item = &'a TriggerDef>,
    audience: &Audience,
) -> Vec<Notice> {
    let (mut to, mut codes) = (Vec::new(), Vec::new());
    for def in of {
        codes.push(def.code.as_str());
        for address in heard_by(def, audience) {
            if !to.contains(&address) {
                to.push(address);
            }
        }
    }
    let more = codes.len().saturating_sub(LISTED);
    codes.truncate(LISTED);
    let mut list = codes.join(", ");
    if more > 0 {
        let _ = write!(list, " … {more} more / 另有 {more} 个");
    }
    let calendar = &warning.calendar;
    let subject = format!("[Procession] calendar {calendar} lacks days that schedules need");
    let body = format!(
        "{en}\n{zh}\n\nSchedules / 相关调度: {list}\n\n\
         Until then weekdays are taken for working days, and their planned times may move.\n\
         在此之前按周一至周五判断工作日,计划时间可能变动。\n",
        en = warning.words(Lang::En),
        zh = warning.words(Lang::Zh),
    );
    to_each(to, &one_line(&subject), &body, "calendar_ends")
}

/// The mails about a firing that opened nothing.
pub fn not_fired(
    def: &TriggerDef,
    firing: &Firing,
    (status, why): (FiringStatus, &str),
    audience: &Audience,
) -> Vec<Notice> {
    let (code, name, planned) = (&def.code, &def.name, firing.planned_at);
    let (verb, verb_zh) = match status {
        FiringStatus::Skipped => ("was left out", "已跳过"),
        FiringStatus::Failed => ("failed", "触发失败"),
        FiringStatus::Pending
        | FiringStatus::Waiting
        | FiringStatus::Fired
        | FiringStatus::Misfired => ("was not done", "未执行"),
    };
    let subject = format!("[Procession] firing of {code} {verb} ({planned})");
    let body = format!(
        "The firing of schedule {code} ({name}) planned at {planned} {verb}.\n\
         调度 {code} 计划于 {planned} 的触发{verb_zh}。\n\n\
         Why / 原因:          {why}\n\n\
         Look / 查看:         procession schedule firings {code}\n\
         Fire / 手动触发:     procession schedule fire-now {code} --reason WHY\n"
    );
    let kind = match status {
        FiringStatus::Skipped => "firing_skipped",
        FiringStatus::Pending
        | FiringStatus::Waiting
        | FiringStatus::Fired
        | FiringStatus::Misfired
        | FiringStatus::Failed => "firing_failed",
    };
    to_each(heard_by(def, audience), &one_line(&subject), &body, kind)
}
