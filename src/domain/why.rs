//! Why a job of a batch is not running: one answer for each, from the rows alone.

use crate::domain::batch::{Batch, Snapshot};
use crate::domain::dag::{Dag, Node};
use crate::domain::external::{ExternalDependency, Wait, Waiting};
use crate::domain::id::JobCode;
use crate::domain::lang::Lang;
use crate::domain::queue::{QueueEntry, QueueStatus};
use crate::domain::readiness::{Gates, Rules};
use crate::domain::ready::Turn;
use crate::domain::slots::{Full, Needs, Resource, Slots};
use crate::domain::time::{Millis, span_words};

/// What a job waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Parents that have not succeeded, with their states.
    Parents(Vec<(JobCode, QueueStatus)>),
    /// Other batches: what is waited for, and how they stand.
    Outside(Vec<(ExternalDependency, Vec<Wait>)>),
    /// A moment: `schedule_time`, or the end of a retry's delay (then with the tries so far).
    Time(Millis, Option<u32>),
    /// What is full, and who holds it.
    Slot(Full, Vec<String>),
    /// Room that is kept for a job whose turn is before; that job.
    KeptFor(Resource, JobCode),
    /// Nothing but the next turn of the process that dispatches the batch.
    NextTurn,
    /// An operator's release.
    Held,
    /// Its body is being stopped.
    Stopping,
    /// It will never run in this batch: something above it ended badly; those jobs.
    Upstream(Vec<(JobCode, QueueStatus)>),
    /// It ended badly itself; what it said.
    Ended(QueueStatus, String),
    /// Nobody dispatches the batch.
    NoProcess,
    /// The batch is paused.
    Paused,
}

/// What runs in the process that dispatches a batch, in all its batches.
#[derive(Clone, Debug)]
pub struct Load {
    slots: Slots,
    running: Vec<(String, Needs)>,
    ageing_ms: i64,
}

impl Load {
    /// Nothing runs yet; `total` and `ageing_ms` are the settings of the process.
    pub fn new(total: u32, ageing_ms: i64) -> Self {
        Self { slots: Slots::new(total), running: Vec::new(), ageing_ms }
    }

    /// Counts the running jobs of a batch. A job of another batch than the one that is asked about is
    /// called by its batch number too.
    pub fn add(&mut self, batch: &Batch, snapshot: &Snapshot, rows: &[QueueEntry], whose: Whose) {
        self.slots.limit_as(snapshot);
        let runs = |s: QueueStatus| matches!(s, QueueStatus::Running | QueueStatus::Killing);
        for row in rows.iter().filter(|r| runs(r.status)) {
            let Some(job) = snapshot.jobs.iter().find(|j| j.code == row.job_code) else { continue };
            let name = match whose {
                Whose::This => job.code.to_string(),
                Whose::Other => format!("{}@{}", job.code, batch.values.batch_no),
            };
            let needs = Needs::of(job);
            self.slots.take(&needs);
            self.running.push((name, needs));
        }
    }

    fn holders(&self, what: &Resource) -> Vec<String> {
        let holding = self.running.iter().filter(|(_, needs)| needs.amount_of(what) > 0);
        holding.map(|(name, _)| name.clone()).collect()
    }

    /// Why a job that could start as far as its parents and the time go does not. `ready` are all
    /// such jobs.
    fn why(&self, turn: Turn, needs: &Needs, ready: &[(Turn, JobCode, Needs)]) -> Why {
        if let Some(full) = self.slots.what_is_full(needs) {
            let holders = self.holders(&full.what);
            return Why::Slot(full, holders);
        }
        let before = ready.iter().filter(|(t, ..)| *t < turn);
        for (_, code, others) in before.filter(|(_, _, n)| !self.slots.is_free(n)) {
            let kept = others.each().find(|(what, amount)| {
                let ours = needs.amount_of(what);
                let matters = ours > 0 && **what != Resource::Total;
                matters && !self.slots.has_room(what, ours, u64::from(*amount))
            });
            if let Some((what, _)) = kept {
                return Why::KeptFor(what.clone(), code.clone());
            }
        }
        Why::NextTurn
    }
}

/// Whether a batch is the one that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// It is.
    This,
    /// Another of the same process.
    Other,
}

/// All that an answer is taken from.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// The batch.
    pub batch: &'a Batch,
    /// What it runs.
    pub snapshot: &'a Snapshot,
    /// Its graph.
    pub dag: &'a Dag,
    /// Its rows, in the order of the snapshot's jobs.
    pub rows: &'a [QueueEntry],
    /// What runs in the process.
    pub load: &'a Load,
    /// What its jobs wait for in other batches.
    pub outside: &'a [(Node, Waiting)],
    /// Whether a living process has the batch.
    pub dispatched: bool,
}

/// The turn of a job that is ready.
fn turn_of(situation: Situation<'_>, node: Node) -> Turn {
    let Situation { batch, snapshot, dag, rows, load, .. } = situation;
    let since = ready_since(dag, rows, node).max(batch.create_time);
    let priority = rows[node.at()].priority.unwrap_or(snapshot.jobs[node.at()].priority);
    Turn::of(priority, since, load.ageing_ms, batch.batch_id, node)
}

/// Jobs that could start as far as their parents, other batches and the time go.
fn ready_jobs(
    situation: Situation<'_>,
    gates: Gates<'_>,
    status: &[QueueStatus],
    now: Millis,
) -> Vec<(Turn, JobCode, Needs)> {
    let Situation { snapshot, rows, outside, .. } = situation;
    let waits_outside =
        |node: Node| outside.iter().any(|(n, waiting)| *n == node && waiting.edge.is_none());
    let is_ready = |node: &Node| {
        let row = &rows[node.at()];
        matches!(row.status, QueueStatus::Pending | QueueStatus::Queued | QueueStatus::RetryWait)
            && row.not_before.is_none_or(|at| at <= now)
            && gates.in_the_way(*node, status).iter().all(|p| status[p.at()].is_final())
            && !waits_outside(*node)
    };
    let ready = (0..rows.len()).map(|i| Node(i as u32)).filter(is_ready);
    ready
        .map(|node| {
            let job = &snapshot.jobs[node.at()];
            (turn_of(situation, node), job.code.clone(), Needs::of(job))
        })
        .collect()
}

/// Each job that is neither running nor done well, with the reason.
pub fn explain(situation: Situation<'_>, now: Millis) -> Vec<(JobCode, QueueStatus, Why)> {
    let Situation { batch, snapshot, dag, rows, load, outside, dispatched } = situation;
    let mut answers = Vec::new();
    let rules = Rules::of(&snapshot.jobs, &snapshot.dependencies);
    // A condition on outputs has been decided by the time its parent has ended.
    let gates = Gates { dag, rules: &rules, holds: &|_, _| true, allows: &|_| true };
    let status: Vec<QueueStatus> = rows.iter().map(|r| r.status).collect();
    let turn = |node: Node| turn_of(situation, node);
    let ready = ready_jobs(situation, gates, &status, now);
    for (i, row) in rows.iter().enumerate() {
        let node = Node(i as u32);
        let parents = || -> Vec<(JobCode, QueueStatus)> {
            let in_the_way = gates.in_the_way(node, &status).into_iter().map(|p| &rows[p.at()]);
            in_the_way.map(|p| (p.job_code.clone(), p.status)).collect()
        };
        let beyond: Vec<(ExternalDependency, Vec<Wait>)> = outside
            .iter()
            .filter(|(n, waiting)| *n == node && waiting.edge.is_none())
            .map(|(_, waiting)| (waiting.external.clone(), waiting.waits.clone()))
            .collect();
        let why = match row.status {
            QueueStatus::Running if dispatched => continue,
            QueueStatus::Success | QueueStatus::Warning => continue,
            QueueStatus::Forced | QueueStatus::Skipped | QueueStatus::NotTaken => continue,
            QueueStatus::Held => Why::Held,
            QueueStatus::Killing => Why::Stopping,
            QueueStatus::UpstreamFailed => {
                let mut failed = parents();
                failed.retain(|(_, status)| status.is_final());
                match &row.error_message {
                    // What lies beyond the batch stopped it; only the row says what.
                    Some(said) if failed.is_empty() => Why::Ended(row.status, said.clone()),
                    Some(_) | None => Why::Upstream(failed),
                }
            }
            ended if ended.is_final() => {
                Why::Ended(ended, row.error_message.clone().unwrap_or_default())
            }
            _ if !dispatched => Why::NoProcess,
            _ => {
                let mut open = parents();
                open.retain(|(_, status)| !status.is_final());
                let tries = (row.status == QueueStatus::RetryWait).then_some(row.try_count);
                match (open.is_empty(), row.not_before.filter(|at| *at > now)) {
                    (false, _) => Why::Parents(open),
                    (true, _) if !beyond.is_empty() => Why::Outside(beyond),
                    (true, Some(at)) => Why::Time(at, tries),
                    (true, None) if batch.is_paused => Why::Paused,
                    (true, None) => load.why(turn(node), &Needs::of(&snapshot.jobs[i]), &ready),
                }
            }
        };
        answers.push((row.job_code.clone(), row.status, why));
    }
    answers
}

/// Since when a job could start, as far as the rows tell: its own time, the last end of a parent.
pub fn ready_since(dag: &Dag, rows: &[QueueEntry], node: Node) -> Millis {
    let parents = dag.parents(node).filter_map(|p| rows[p.at()].end_time);
    parents.chain(rows[node.at()].not_before).max().unwrap_or_default()
}

impl Why {
    /// The reason as a sentence; `now` only turns moments into "in 12.0 s".
    pub fn words(&self, lang: Lang, now: Millis) -> String {
        match lang {
            Lang::En => self.in_english(now),
            Lang::Zh => self.in_chinese(now),
        }
    }

    fn in_english(&self, now: Millis) -> String {
        match self {
            Self::Parents(jobs) => format!("waits for {}", list(jobs, "and # more")),
            Self::Outside(waits) => {
                let each = waits.iter().map(|(external, waits)| {
                    let words: Vec<String> = waits.iter().map(|w| w.words(Lang::En)).collect();
                    format!("{}: {}", external.target(), words.join(", "))
                });
                format!("waits for {}", each.collect::<Vec<_>>().join("; "))
            }
            Self::Time(at, None) => format!("not before {at} (in {})", span_words(at.since(now))),
            Self::Time(at, Some(tries)) => {
                format!("failed {tries} times; next try at {at} (in {})", span_words(at.since(now)))
            }
            Self::Slot(full, holders) => {
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
                    Resource::Total => "in total".to_owned(),
                };
                format!("ready; waits for {slots} {which} ({used} of {limit} in use{holders})")
            }
            Self::KeptFor(what, job) => {
                let which = match what {
                    Resource::Lock(name) => format!("lock {name}"),
                    Resource::Source(name) => format!("room on source {name}"),
                    Resource::Group(name) => format!("room in group {name}"),
                    Resource::Host(name) => format!("room on host {name}"),
                    Resource::Pool(name) => format!("room in pool {name}"),
                    Resource::Total => "a slot".to_owned(),
                };
                format!("ready; {which} is kept for {job}, whose turn is before")
            }
            Self::NextTurn => "ready; starts at the next turn".to_owned(),
            Self::Held => "held by an operator".to_owned(),
            Self::Stopping => "is being stopped".to_owned(),
            Self::Upstream(jobs) => {
                format!("will not run: {} ended badly", list(jobs, "and # more"))
            }
            Self::Ended(status, message) if message.is_empty() => format!("ended {status}"),
            Self::Ended(status, message) => format!("ended {status}: {message}"),
            Self::NoProcess => {
                "no living process dispatches this batch; go on with: procession run --resume"
                    .to_owned()
            }
            Self::Paused => "ready; the batch is paused by an operator".to_owned(),
        }
    }

    fn in_chinese(&self, now: Millis) -> String {
        match self {
            Self::Parents(jobs) => format!("等待 {}", list(jobs, "等另外 # 个")),
            Self::Outside(waits) => {
                let each = waits.iter().map(|(external, waits)| {
                    let words: Vec<String> = waits.iter().map(|w| w.words(Lang::Zh)).collect();
                    let group = &external.group;
                    let what = match &external.depends_on {
                        Some(job) => format!("作业组 {group} 的作业 {job}"),
                        None => format!("作业组 {group}"),
                    };
                    format!("{what}:{}", words.join("、"))
                });
                format!("等待其他批次:{}", each.collect::<Vec<_>>().join(";"))
            }
            Self::Time(at, None) => format!("最早 {at} 开始(还有 {})", span_words(at.since(now))),
            Self::Time(at, Some(tries)) => {
                format!("已失败 {tries} 次;{at} 重试(还有 {})", span_words(at.since(now)))
            }
            Self::Slot(full, holders) => {
                let holders = match names(holders, "等另外 # 个") {
                    none if none.is_empty() => none,
                    some => format!(",占用者:{some}"),
                };
                let Full { what, used, limit, needed } = full;
                let slots = if *needed > 1 { format!(" {needed} 个") } else { String::new() };
                let which = match what {
                    Resource::Lock(lock) => return format!("已就绪;等待锁 {lock}{holders}"),
                    Resource::Total => "总".to_owned(),
                    other => format!("{}的", in_chinese(other)),
                };
                format!("已就绪;等待{which}{slots}并发名额(已用 {used}/{limit}{holders})")
            }
            Self::KeptFor(what, job) => {
                format!("已就绪;{}的名额留给排在前面的 {job}", in_chinese(what))
            }
            Self::NextTurn => "已就绪;下一轮即开始".to_owned(),
            Self::Held => "被操作员挂起".to_owned(),
            Self::Stopping => "正在停止".to_owned(),
            Self::Upstream(jobs) => format!("不会运行:{} 未成功", list(jobs, "等另外 # 个")),
            Self::Ended(status, message) if message.is_empty() => format!("已结束 {status}"),
            Self::Ended(status, message) => format!("已结束 {status}:{message}"),
            Self::NoProcess => {
                "没有存活的进程在调度此批次;继续请用:procession run --resume".to_owned()
            }
            Self::Paused => "已就绪;批次已被操作员暂停".to_owned(),
        }
    }
}

fn in_chinese(what: &Resource) -> String {
    match what {
        Resource::Total => "总并发".to_owned(),
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

fn list(jobs: &[(JobCode, QueueStatus)], more: &str) -> String {
    let shown = jobs.iter().take(5);
    let mut words: Vec<String> = shown.map(|(code, status)| format!("{code} ({status})")).collect();
    if jobs.len() > 5 {
        words.push(more.replace('#', &(jobs.len() - 5).to_string()));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::batch::BatchStatus;
    use crate::domain::id::{BatchId, BatchNo, GroupCode, JobType, QueueId};
    use crate::domain::job::{Group, JobDef, JobDependency};
    use crate::domain::params::BatchValues;
    use crate::domain::pool::{LockMode, LockUse, Pool, PoolUse};
    use std::collections::BTreeMap;

    fn group_of(code: &GroupCode) -> Group {
        Group::bare(code.clone())
    }

    fn batch_of(group: &GroupCode) -> Batch {
        Batch {
            batch_id: BatchId(1),
            values: BatchValues {
                batch_no: BatchNo::parse("1").expect("no"),
                group: group.clone(),
                business_date: None,
                params: BTreeMap::new(),
            },
            batch_type: None,
            status: BatchStatus::Running,
            owner: None,
            started_by: "t".into(),
            create_time: Millis(0),
            end_time: None,
            reason: None,
            deadline: None,
            revision: 0,
            is_paused: false,
        }
    }

    fn answers(dispatched: bool) -> Vec<String> {
        answers_of(dispatched, false)
    }

    fn answers_of(dispatched: bool, is_paused: bool) -> Vec<String> {
        use QueueStatus as S;
        let group = GroupCode::parse("g").expect("group");
        let states =
            [S::Running, S::Pending, S::RetryWait, S::Queued, S::Failed, S::UpstreamFailed];
        let job = |i: usize| {
            let code = JobCode::parse(&format!("J{i}")).expect("code");
            JobDef::bare(code, group.clone(), JobType::parse("NOOP").expect("type"))
        };
        let jobs: Vec<JobDef> = (0..states.len()).map(job).collect();
        let edge = |c: usize, p: usize| {
            JobDependency::plain(jobs[c].code.clone(), jobs[p].code.clone(), 0)
        };
        let dependencies = vec![edge(1, 0), edge(5, 4)];
        let row = |i: usize| QueueEntry {
            queue_id: QueueId(i as i64),
            batch_id: BatchId(1),
            job_code: jobs[i].code.clone(),
            status: states[i],
            try_count: 2,
            attempt: 2,
            owner: None,
            not_before: (i == 2).then_some(Millis(5_000)),
            start_time: None,
            end_time: None,
            error_message: (i == 4).then(|| "exit code 3".to_owned()),
            run_mode: None,
            priority: None,
            run_no: 1,
            crash_count: 0,
            unresolved: 0,
            waits_on: None,
        };
        let rows: Vec<QueueEntry> = (0..states.len()).map(row).collect();
        let group_def = group_of(&group);
        let snapshot = Snapshot {
            group: group_def,
            jobs,
            dependencies,
            sources: vec![],
            externals: vec![],
            shared: crate::domain::job::Shared::default(),
        };
        let batch = Batch { is_paused, ..batch_of(&group) };
        let mut load = Load::new(1, 600_000);
        load.add(&batch, &snapshot, &rows, Whose::This);
        let dag = snapshot.dag().expect("dag");
        let situation = Situation {
            batch: &batch,
            snapshot: &snapshot,
            dag: &dag,
            rows: &rows,
            load: &load,
            outside: &[],
            dispatched,
        };
        explain(situation, Millis(2_000))
            .into_iter()
            .map(|(code, _, why)| format!("{code}: {}", why.words(Lang::En, Millis(2_000))))
            .collect()
    }

    #[test]
    fn a_full_pool_is_named_with_who_holds_it() {
        let group = GroupCode::parse("g").expect("group");
        let pool = |weight| PoolUse { pool: "ORA_DW".into(), weight };
        let lock = LockUse { lock: "GL_LEDGER".into(), mode: LockMode::Exclusive };
        let mut jobs = Vec::new();
        for (i, weight) in [1, 4, 1, 0, 0].into_iter().enumerate() {
            let code = JobCode::parse(&format!("J{i}")).expect("code");
            let mut job = JobDef::bare(code, group.clone(), JobType::parse("NOOP").expect("type"));
            job.pools.extend((weight > 0).then(|| pool(weight)));
            job.locks.extend((weight == 0).then(|| lock.clone()));
            jobs.push(job);
        }
        let mut snapshot = bare_snapshot(&group, jobs);
        snapshot.shared.pools = vec![Pool { name: "ORA_DW".into(), slots: 4 }];
        let states = [0, 1, 1, 0, 1].map(|s| [QueueStatus::Running, QueueStatus::Queued][s]);
        let rows: Vec<QueueEntry> =
            snapshot.jobs.iter().zip(states).map(|(j, s)| bare_row(&j.code, s)).collect();
        let batch = batch_of(&group);
        let mut load = Load::new(9, 600_000);
        load.add(&batch, &snapshot, &rows[..4], Whose::This);
        load.add(&batch, &snapshot, &rows[3..], Whose::Other);
        let dag = snapshot.dag().expect("dag");
        let all = explain(
            Situation {
                batch: &batch,
                snapshot: &snapshot,
                dag: &dag,
                rows: &rows,
                load: &load,
                outside: &[],
                dispatched: true,
            },
            Millis(0),
        );
        let words = |lang| all.iter().map(|(_, _, w)| w.words(lang, Millis(0))).collect::<Vec<_>>();
        assert_eq!(
            words(Lang::En),
            [
                "ready; waits for 4 slots of pool ORA_DW (1 of 4 in use, held by J0)",
                "ready; room in pool ORA_DW is kept for J1, whose turn is before",
                "ready; waits for lock GL_LEDGER, held by J3, J3@1",
            ]
        );
        assert_eq!(
            words(Lang::Zh),
            [
                "已就绪;等待资源池 ORA_DW 的 4 个并发名额(已用 1/4,占用者:J0)",
                "已就绪;资源池 ORA_DW 的名额留给排在前面的 J1",
                "已就绪;等待锁 GL_LEDGER,占用者:J3, J3@1",
            ]
        );
    }

    fn bare_snapshot(group: &GroupCode, jobs: Vec<JobDef>) -> Snapshot {
        Snapshot {
            group: group_of(group),
            jobs,
            dependencies: vec![],
            sources: vec![],
            externals: vec![],
            shared: crate::domain::job::Shared::default(),
        }
    }

    fn bare_row(code: &JobCode, status: QueueStatus) -> QueueEntry {
        QueueEntry {
            queue_id: QueueId(1),
            batch_id: BatchId(1),
            job_code: code.clone(),
            status,
            try_count: 0,
            attempt: 0,
            owner: None,
            not_before: None,
            start_time: None,
            end_time: None,
            error_message: None,
            run_mode: None,
            priority: None,
            run_no: 1,
            crash_count: 0,
            unresolved: 0,
            waits_on: None,
        }
    }

    #[test]
    fn every_job_that_does_not_run_has_a_reason() {
        assert_eq!(
            answers(true),
            [
                "J1: waits for J0 (RUNNING)",
                "J2: failed 2 times; next try at 1970-01-01T00:00:05.000Z (in 3.0 s)",
                "J3: ready; waits for a slot in total (1 of 1 in use, held by J0)",
                "J4: ended FAILED: exit code 3",
                "J5: will not run: J4 (FAILED) ended badly",
            ]
        );
        let held = Why::Held.words(Lang::Zh, Millis(0));
        assert_eq!(held, "被操作员挂起");
        assert!(answers(false)[0].contains("J0: no living process"));
        let paused = answers_of(true, true);
        assert_eq!(paused[2], "J3: ready; the batch is paused by an operator");
    }
}
