//! Builds the notifications about schedules for their owners (misfires, ends, firings that opened no batch), and about
//! lost nodes for operators.

use crate::domain::calendar::CalendarWarning;
use crate::domain::job::Group;
use crate::domain::job::shared_definitions::Owner;
use crate::domain::notice::{Addressee, Notice, addressees, each_once, or_owner, to_each};
use crate::domain::notification::event::{NotificationEvent, NotifyWhen};
use crate::domain::notification::{BilingualText, Notification, NotificationTopic};
use crate::domain::schedule::FiringRule;
use crate::domain::schedule::firing::{Firing, FiringStatus, NewFiring};
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::text::lang::Lang;
use crate::domain::time::{Millis, span_words};

/// Everyone who may be notified.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    pub groups: Vec<Group>,
    pub owners: Vec<Owner>,
}

/// Maximum number of planned times that one mail lists; of the rest it gives the number.
const LISTED: usize = 20;

/// Recipients for a schedule: its own, its owner if it has none, and those of the groups that its order names.
fn heard_by(def: &TriggerDef, audience: &Audience) -> Vec<Addressee> {
    let own = or_owner(&def.notify_email, &def.owner, &audience.owners);
    let order = def.order.as_ref();
    let named = |group: &&Group| {
        order.is_some_and(|order| {
            order.group.as_ref().is_none_or(|code| *code == group.code)
                && order.batch_type.as_ref().is_none_or(|t| group.batch_type.as_ref() == Some(t))
        })
    };
    let groups = audience.groups.iter().filter(named);
    each_once(own.into_iter().chain(groups.flat_map(|g| addressees(g, None, &audience.owners))))
}

fn build_notices(def: &TriggerDef, audience: &Audience, letter: Notification) -> Vec<Notice> {
    let topic = NotificationTopic {
        schedule: Some(def.code.to_string()),
        group: def.order.as_ref().and_then(|order| order.group.as_ref()).map(ToString::to_string),
        ..NotificationTopic::default()
    };
    to_each(heard_by(def, audience), NotifyWhen::Now, &Notification { topic, ..letter })
}

/// Reports planned times that were missed, and which of them fire late.
pub fn missed(
    def: &TriggerDef,
    rows: &[&NewFiring],
    audience: &Audience,
    now: Millis,
) -> Vec<Notice> {
    let (code, name) = (&def.code, &def.name);
    let late = rows.iter().filter(|row| row.status == FiringStatus::Pending).count();
    let (number, left) = (rows.len(), rows.len() - late);
    let subject = BilingualText::new(
        match late {
            0 => format!("{code} missed {number} planned time(s); none fires late"),
            _ => format!("{code} missed {number} planned time(s); {late} fire(s) late now"),
        },
        format!("{code} 错过 {number} 次计划时间，补触发 {late} 次"),
    );
    let headline = BilingualText::new(
        format!(
            "Schedule {code} ({name}) missed {number} planned time(s): {late} fire(s) late now, {left} \
             do(es) not fire."
        ),
        format!(
            "调度 {code}（{name}）错过 {number} 次计划时间：补触发 {late} 次，放弃 {left} 次。"
        ),
    );
    let mut letter = Notification::new(NotificationEvent::Misfire, subject, headline);
    for row in rows.iter().take(LISTED) {
        let reason = row.reason.as_deref().unwrap_or("-");
        let (planned, behind) = (row.planned_at, span_words(now.since(row.planned_at)));
        let until = row.missed_until.map_or_else(String::new, |until| format!(" … {until}"));
        letter.items.push(BilingualText::new(
            format!("{planned}{until} ({behind} late): {reason}"),
            format!("{planned}{until}（迟到 {behind}）：{reason}"),
        ));
    }
    if number > LISTED {
        let more = number - LISTED;
        letter
            .items
            .push(BilingualText::new(format!("… {more} more"), format!("… 另有 {more} 次")));
    }
    let fire = format!("procession schedule fire-now {code} --batch-no NUMBER --reason WHY");
    let letter = letter
        .with_step("Look", "查看", format!("procession schedule firings {code}"))
        .with_step("Fire", "手动触发", fire);
    build_notices(def, audience, letter)
}

/// Reports a schedule that will not fire again.
pub fn ended(def: &TriggerDef, why: &str, audience: &Audience) -> Vec<Notice> {
    let (code, name) = (&def.code, &def.name);
    let flag = match def.timing.schedule {
        FiringRule::Once { .. } => "--once-at TIME",
        FiringRule::Cron(_) if def.timing.end.is_none() => "--cron CRON",
        FiringRule::Rule { .. } if def.timing.end.is_none() => "--rule RULE",
        FiringRule::Cron(_)
        | FiringRule::Rule { .. }
        | FiringRule::FixedRate { .. }
        | FiringRule::FixedDelay { .. }
        | FiringRule::Event { .. }
        | FiringRule::Manual
        | FiringRule::After { .. } => "--end TIME",
    };
    let subject = BilingualText::new(
        format!("schedule {code} has ended: {why}"),
        format!("调度 {code} 已停止触发：{why}"),
    );
    let headline = BilingualText::new(
        format!("Schedule {code} ({name}) fires no more: {why}."),
        format!("调度 {code}（{name}）已停止触发：{why}。"),
    );
    let mend = format!("procession schedule edit {code} {flag} --reason WHY");
    let letter = Notification::new(NotificationEvent::ScheduleEnded, subject, headline)
        .with_step("Look", "查看", format!("procession schedule show {code}"))
        .with_step("Mend", "修改", mend);
    build_notices(def, audience, letter)
}

/// Reports a calendar that lacks days which these schedules will need.
pub fn calendar_ends<'a>(
    warning: &CalendarWarning,
    of: impl Iterator<Item = &'a TriggerDef>,
    audience: &Audience,
) -> Vec<Notice> {
    let (mut to, mut codes) = (Vec::new(), Vec::new());
    for def in of {
        codes.push(def.code.as_str());
        to.extend(heard_by(def, audience));
    }
    let more = codes.len().saturating_sub(LISTED);
    codes.truncate(LISTED);
    let mut list = codes.join(", ");
    if more > 0 {
        list.push_str(&format!(" … +{more}"));
    }
    let calendar = &warning.calendar;
    let subject = BilingualText::new(
        format!("calendar {calendar} lacks days that schedules need"),
        format!("日历 {calendar} 缺少调度所需的日期"),
    );
    let headline = BilingualText::new(warning.words(Lang::En), warning.words(Lang::Zh));
    let letter = Notification::new(NotificationEvent::CalendarEnds, subject, headline)
        .with_note(BilingualText::new(
            "Until then weekdays are taken for working days, and their planned times may move.",
            "在此之前按周一至周五判断工作日，计划时间可能变动。",
        ))
        .with_fact("Schedules", "相关调度", list);
    to_each(each_once(to.into_iter()), NotifyWhen::Now, &letter)
}

/// Reports a firing that opened no batch.
pub fn not_fired(
    def: &TriggerDef,
    firing: &Firing,
    status: FiringStatus,
    why: &str,
    audience: &Audience,
) -> Vec<Notice> {
    let (code, name, planned) = (&def.code, &def.name, firing.planned_at);
    let (event, verb, verb_zh) = match status {
        FiringStatus::Skipped => (NotificationEvent::FiringSkipped, "was left out", "已跳过"),
        FiringStatus::Failed => (NotificationEvent::FiringFailed, "failed", "触发失败"),
        FiringStatus::Pending
        | FiringStatus::Waiting
        | FiringStatus::Fired
        | FiringStatus::Misfired => (NotificationEvent::FiringFailed, "was not done", "未执行"),
    };
    let subject = BilingualText::new(
        format!("firing of {code} {verb} ({planned})"),
        format!("{code} 的触发{verb_zh}（{planned}）"),
    );
    let headline = BilingualText::new(
        format!("The firing of schedule {code} ({name}) planned at {planned} {verb}."),
        format!("调度 {code}（{name}）计划于 {planned} 的触发{verb_zh}。"),
    );
    let mut letter = Notification::new(event, subject, headline)
        .with_step("Look", "查看", format!("procession schedule firings {code}"))
        .with_step("Fire", "手动触发", format!("procession schedule fire-now {code} --reason WHY"));
    letter.error = Some(why.to_owned());
    build_notices(def, audience, letter)
}

/// Reports a node that dispatched batches and died, to the operators of the installation.
pub fn node_lost(
    node: &str,
    host: &str,
    silent_since: Millis,
    operators: &[String],
) -> Vec<Notice> {
    let subject = BilingualText::new(
        format!("process {node} has died or lost the database"),
        format!("进程 {node} 已失效或与数据库失联"),
    );
    let headline = BilingualText::new(
        format!("Process {node} on {host} has let its lease run out without leaving."),
        format!("主机 {host} 上的进程 {node} 未正常退出，租约已过期。"),
    );
    let letter = Notification::new(NotificationEvent::NodeLost, subject, headline)
        .with_note(BilingualText::new(
            "What it ran is taken over by the others; what may not run twice waits for a person.",
            "其运行的批次由其他进程接管；不可重复执行的作业等待人工处理。",
        ))
        .with_fact("Lease ended", "租约到期", silent_since.to_string())
        .with_step("Look", "查看", "procession node list");
    let topic = NotificationTopic { node: Some(node.to_owned()), ..NotificationTopic::default() };
    let to = operators.iter().map(Addressee::plain).collect();
    to_each(to, NotifyWhen::Now, &Notification { topic, ..letter })
}
