//! The reasons as sentences, in English and Chinese.

use crate::domain::cluster::node_placement;
use crate::domain::dispatch::slots::{Full, Resource};
use crate::domain::dispatch::why::{Cure, LedgerLocation, ResumePath, WaitReason};
use crate::domain::executor::run_wait::RunWait;
use crate::domain::id::JobCode;
use crate::domain::job::external::ExternalWait;
use crate::domain::job::queue::QueueStatus;
use crate::domain::text::lang::Lang;
use crate::domain::text::translation::translate;
use crate::domain::time::{Millis, span_words};

/// Maximum number of awaited things that are listed.
const LISTED: usize = 5;

impl WaitReason {
    /// The reason as a sentence; `now` is used only to express moments as "in 12.0 s".
    pub fn words(&self, lang: Lang, now: Millis) -> String {
        match lang {
            Lang::En => self.in_english(now),
            Lang::Zh => self.in_chinese(now),
        }
    }

    /// Tag of the reason for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Parents(_) => "parents",
            Self::Outside(_) => "outside",
            Self::Time(..) => "time",
            Self::Slot(..) => "slot",
            Self::KeptFor(..) => "kept_for",
            Self::Node(..) => "node",
            Self::NextTurn => "next_turn",
            Self::Held(_) => "held",
            Self::Parked(..) => "parked",
            Self::Runs(..) => "runs",
            Self::BeforeBody(_) => "before_body",
            Self::NodeSilent(_) => "node_silent",
            Self::Open { .. } => "open",
            Self::Stopping { .. } => "stopping",
            Self::Upstream(_) => "upstream",
            Self::Ended(..) => "ended",
            Self::Unknown(..) => "unknown",
            Self::NoProcess(_) => "no_process",
            Self::Paused => "paused",
        }
    }

    fn in_english(&self, now: Millis) -> String {
        match self {
            Self::Parents(jobs) => format!("waits for {}", join_job_statuses(jobs, "and # more")),
            Self::Outside(waits) => {
                let each = waits.iter().map(|(external, waits)| {
                    let words = list_waits(waits, Lang::En, "and # more");
                    format!("{}: {}", external.target(), words.join(", "))
                });
                format!("waits for {}", each.collect::<Vec<_>>().join("; "))
            }
            Self::Time(at, None) => format!("not before {at} (in {})", span_words(at.since(now))),
            Self::Time(at, Some(tries)) => {
                format!("failed {tries} times; next try at {at} (in {})", span_words(at.since(now)))
            }
            Self::Slot(full, holders) => describe_slot(full, holders),
            Self::KeptFor(what, job) => kept_for(what, job),
            Self::Node(label, lack, nodes) => {
                format!(
                    "ready; {}",
                    node_placement::words(label.as_deref(), *lack, nodes, Lang::En)
                )
            }
            Self::NextTurn => "ready; starts at the next turn".to_owned(),
            Self::Held(None) => "held by an operator".to_owned(),
            Self::Held(Some(said)) => said.clone(),
            Self::Parked(crashes, job) => format!(
                "parked: {crashes} workers in a row died while it ran; look at it, then: procession \
                 job release {job} --reason WHY"
            ),
            Self::Runs(attempt, since) => format!("runs (start {attempt}{})", since_words(*since)),
            Self::BeforeBody(what) => format!("waits before its body: {what}"),
            Self::NodeSilent(silent) => silent.words(Lang::En),
            Self::Open { attempt, ledger, next, said } => {
                describe_unknown(*attempt, said, ledger, &next.in_english(now))
            }
            Self::Stopping { attempt, since, who } => {
                let who = who.as_ref().map_or_else(String::new, |who| format!("; {who}"));
                format!("is being stopped (start {attempt}{}){who}", since_words(*since))
            }
            Self::Unknown(cure, job, said) => unknown(*cure, job, said),
            Self::Upstream(jobs) => {
                format!("will not run: {} ended badly", join_job_statuses(jobs, "and # more"))
            }
            Self::Ended(status, message) if message.is_empty() => format!("ended {status}"),
            Self::Ended(status, message) => format!("ended {status}: {message}"),
            Self::NoProcess(opened) => {
                format!(
                    "no living process dispatches this batch; go on with: {}",
                    go_on(opened, Lang::En)
                )
            }
            Self::Paused => "ready; the batch is paused by an operator".to_owned(),
        }
    }

    fn in_chinese(&self, now: Millis) -> String {
        match self {
            Self::Parents(jobs) => format!("等待 {}", join_job_statuses(jobs, "等另外 # 个")),
            Self::Outside(waits) => {
                let each = waits.iter().map(|(external, waits)| {
                    let words = list_waits(waits, Lang::Zh, "等另外 # 个");
                    let group = &external.group;
                    let what = match &external.depends_on {
                        Some(job) => format!("作业组 {group} 的作业 {job}"),
                        None => format!("作业组 {group}"),
                    };
                    format!("{what}:{}", words.join("、"))
                });
                format!("等待其他批次：{}", each.collect::<Vec<_>>().join(";"))
            }
            Self::Time(at, None) => format!("最早 {at} 开始（还有 {}）", span_words(at.since(now))),
            Self::Time(at, Some(tries)) => {
                format!("已失败 {tries} 次；{at} 重试（还有 {}）", span_words(at.since(now)))
            }
            Self::Slot(full, holders) => slot_zh(full, holders),
            Self::KeptFor(what, job) => {
                format!("已就绪；{}的名额留给排在前面的 {job}", in_chinese(what))
            }
            Self::Node(label, lack, nodes) => {
                format!(
                    "已就绪；{}",
                    node_placement::words(label.as_deref(), *lack, nodes, Lang::Zh)
                )
            }
            Self::NextTurn => "已就绪；下一轮即开始".to_owned(),
            Self::Held(None) => "被操作员挂起".to_owned(),
            Self::Held(Some(said)) => format!("被操作员挂起：{said}"),
            Self::Parked(crashes, job) => format!(
                "已停放：连续 {crashes} 个进程在运行它时中断；检查后执行：procession job release {job} \
                 --reason 原因"
            ),
            Self::Runs(attempt, since) => format!("运行中（第 {attempt} 次{}）", since_zh(*since)),
            Self::BeforeBody(what) => {
                format!("执行前等待：{}", RunWait::said_in(Lang::Zh, what))
            }
            Self::NodeSilent(silent) => silent.words(Lang::Zh),
            Self::Open { attempt, ledger, next, said } => {
                open_zh(*attempt, &translate(said, Lang::Zh), ledger, &next.in_chinese(now))
            }
            Self::Stopping { attempt, since, who } => {
                let who = who.as_ref().map_or_else(String::new, |who| format!("；{who}"));
                format!("正在停止（第 {attempt} 次{}）{who}", since_zh(*since))
            }
            Self::Unknown(cure, job, said) => unknown_zh(*cure, job, &translate(said, Lang::Zh)),
            Self::Upstream(jobs) => {
                format!("不会运行：{} 未成功", join_job_statuses(jobs, "等另外 # 个"))
            }
            Self::Ended(status, message) if message.is_empty() => format!("已结束 {status}"),
            Self::Ended(status, message) => format!("已结束 {status}:{message}"),
            Self::NoProcess(opened) => {
                format!("没有存活的进程在调度此批次；继续请用：{}", go_on(opened, Lang::Zh))
            }
            Self::Paused => "已就绪；批次已被操作员暂停".to_owned(),
        }
    }
}

fn go_on(opened: &ResumePath, lang: Lang) -> String {
    match opened {
        ResumePath::Ordered(no, group) => format!(
            "procession run --resume --batch-no {no} --group {group}{}",
            lang.select(", or start procession serve", "，或启动 procession serve")
        ),
        ResumePath::Backfilled(id) => format!("procession backfill resume {id}"),
    }
}

fn describe_slot(full: &Full, holders: &[String]) -> String {
    let holders = match names(holders, "and # more") {
        none if none.is_empty() => none,
        some => format!(", held by {some}"),
    };
    let Full { what, used, limit, needed } = full;
    let slots = if *needed > 1 { format!("{needed} slots") } else { "a slot".into() };
    let which = match what {
        Resource::Lock(lock) => {
            return format!("ready; waits for lock {lock}{holders}");
        }
        Resource::Source(name) => format!("on source {name}"),
        Resource::Group(name) => format!("of group {name}"),
        Resource::Host(name) => format!("on host {name}"),
        Resource::Pool(name) => format!("of pool {name}"),
        Resource::Total | Resource::Node(None) => "in total".to_owned(),
        Resource::Label(name) | Resource::Node(Some(name)) => format!("on nodes with label {name}"),
    };
    format!("ready; waits for {slots} {which} ({used} of {limit} in use{holders})")
}

fn kept_for(what: &Resource, job: &JobCode) -> String {
    let which = match what {
        Resource::Lock(name) => format!("lock {name}"),
        Resource::Source(name) => format!("room on source {name}"),
        Resource::Group(name) => format!("room in group {name}"),
        Resource::Host(name) => format!("room on host {name}"),
        Resource::Pool(name) => format!("room in pool {name}"),
        Resource::Total | Resource::Node(None) => "a slot".to_owned(),
        Resource::Label(name) | Resource::Node(Some(name)) => {
            format!("room on a node with label {name}")
        }
    };
    format!("ready; {which} is kept for {job}, whose turn is before")
}

fn describe_unknown(attempt: u32, said: &str, ledger: &LedgerLocation, next: &str) -> String {
    let place = match ledger {
        LedgerLocation::Source(name) => format!("ledger of source '{name}'"),
        LedgerLocation::Metadata => "ledger of the metadata database".to_owned(),
        LedgerLocation::Gone => "it has no ledger any more".to_owned(),
    };
    let said = if said.is_empty() { String::new() } else { format!("; last said: {said}") };
    format!(
        "what became of try {attempt} is open; looked up by the next one ({place}): {next}{said}"
    )
}

fn unknown(cure: Cure, job: &str, said: &str) -> String {
    let what_helps = match cure {
        Cure::LookUp => format!(
            "a rerun looks it up in its ledger: procession job rerun {job} --rerun-unknown --reason WHY"
        ),
        Cure::KillAgain => {
            format!("end it there by hand, or once more: procession job kill {job} --reason WHY")
        }
        Cure::LookAtData => format!(
            "look at its data, then: procession job force-success {job} --reason WHY, or procession \
             job rerun {job} --rerun-unknown --reason WHY"
        ),
    };
    let said = if said.is_empty() { String::new() } else { format!("{said}; ") };
    format!("ended UNKNOWN: {said}{what_helps}")
}

fn slot_zh(full: &Full, holders: &[String]) -> String {
    let holders = match names(holders, "等另外 # 个") {
        none if none.is_empty() => none,
        some => format!("，占用者：{some}"),
    };
    let Full { what, used, limit, needed } = full;
    let slots = if *needed > 1 { format!(" {needed} 个") } else { String::new() };
    let which = match what {
        Resource::Lock(lock) => return format!("已就绪；等待锁 {lock}{holders}"),
        Resource::Total | Resource::Node(None) => "总".to_owned(),
        other => format!("{}的", in_chinese(other)),
    };
    format!("已就绪；等待{which}{slots}并发名额（已用 {used}/{limit}{holders}）")
}

fn open_zh(attempt: u32, said: &str, ledger: &LedgerLocation, next: &str) -> String {
    let place = match ledger {
        LedgerLocation::Source(name) => format!("数据源 {name} 的账本"),
        LedgerLocation::Metadata => "元数据库的账本".to_owned(),
        LedgerLocation::Gone => "已无账本".to_owned(),
    };
    let said = if said.is_empty() { String::new() } else { format!("；上次信息：{said}") };
    format!("第 {attempt} 次的结果待查，由下一次查询（{place}）：{next}{said}")
}

fn unknown_zh(cure: Cure, job: &str, said: &str) -> String {
    let what_helps = match cure {
        Cure::LookUp => {
            format!("重跑会先查账本：procession job rerun {job} --rerun-unknown --reason 原因")
        }
        Cure::KillAgain => {
            format!("请在服务器上手工结束，或再次停止：procession job kill {job} --reason 原因")
        }
        Cure::LookAtData => format!(
            "核对数据后执行：procession job force-success {job} --reason 原因，或 procession job rerun \
             {job} --rerun-unknown --reason 原因"
        ),
    };
    let said = if said.is_empty() { String::new() } else { format!("{said};") };
    format!("结果未知：{said}{what_helps}")
}

fn since_words(since: Option<Millis>) -> String {
    since.map_or_else(String::new, |at| format!(", since {at}"))
}

fn since_zh(since: Option<Millis>) -> String {
    since.map_or_else(String::new, |at| format!("，自 {at} 起"))
}

fn in_chinese(what: &Resource) -> String {
    match what {
        Resource::Total | Resource::Node(None) => "总并发".to_owned(),
        Resource::Label(name) | Resource::Node(Some(name)) => format!("标签 {name} 的节点"),
        Resource::Group(name) => format!("作业组 {name} "),
        Resource::Source(name) => format!("数据源 {name} "),
        Resource::Host(name) => format!("主机 {name} "),
        Resource::Pool(name) => format!("资源池 {name} "),
        Resource::Lock(name) => format!("锁 {name} "),
    }
}

fn names(all: &[String], more: &str) -> String {
    let mut words: Vec<String> = all.iter().take(5).cloned().collect();
    if all.len() > 5 {
        words.push(more.replace('#', &(all.len() - 5).to_string()));
    }
    words.join(", ")
}

/// The first of the awaited batches, and the number of the others: a month has 31 days.
fn list_waits(waits: &[ExternalWait], lang: Lang, more: &str) -> Vec<String> {
    let mut words: Vec<String> = waits.iter().take(LISTED).map(|wait| wait.words(lang)).collect();
    if waits.len() > LISTED {
        words.push(more.replace('#', &(waits.len() - LISTED).to_string()));
    }
    words
}

fn join_job_statuses(jobs: &[(JobCode, QueueStatus)], more: &str) -> String {
    let shown = jobs.iter().take(LISTED);
    let mut words: Vec<String> = shown.map(|(code, status)| format!("{code} ({status})")).collect();
    if jobs.len() > LISTED {
        words.push(more.replace('#', &(jobs.len() - LISTED).to_string()));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::BatchNo;

    #[test]
    fn of_many_batches_the_first_are_named() {
        let waits: Vec<ExternalWait> = (1..=31)
            .map(|day| BatchNo::parse(&format!("202407{day:02}")).expect("number"))
            .map(ExternalWait::NotThere)
            .collect();
        let words = list_waits(&waits, Lang::En, "and # more");
        assert_eq!(words.len(), 6);
        assert_eq!(words[4..], ["batch 20240705 is not there yet", "and 26 more"]);
        assert_eq!(list_waits(&waits[..5], Lang::Zh, "等另外 # 个").len(), 5);
    }
}
