//! Explains why each job of a batch is not running, from the rows alone.

mod load;
mod words;

pub use load::ProcessLoad;

use crate::domain::batch::{Batch, Snapshot};
use crate::domain::cluster::node_placement::PlacementFailure;
use crate::domain::cluster::silent_node::SilentNode;
use crate::domain::dag::{Dag, Node};
use crate::domain::dispatch::readiness::{Gates, Rules};
use crate::domain::dispatch::ready::ReadyRank;
use crate::domain::dispatch::slots::{Full, Resource, SlotNeeds};
use crate::domain::id::{BackfillId, BatchNo, GroupCode, JobCode, SourceName};
use crate::domain::job::external::{CrossBatchDependency, ExternalDependency, ExternalWait};
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::source::tx_class::TxClass;
use crate::domain::time::Millis;

/// Why a job is not running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Parents that have not succeeded, with their states.
    Parents(Vec<(JobCode, QueueStatus)>),
    /// Other batches: the dependency and what it still waits for.
    Outside(Vec<(ExternalDependency, Vec<ExternalWait>)>),
    /// A moment: `schedule_time`, or the end of a retry delay (then with the number of attempts so
    /// far).
    Time(Millis, Option<u32>),
    /// A full resource, and its holders.
    Slot(Full, Vec<String>),
    /// Capacity reserved for a better-ranked job; that job.
    KeptFor(Resource, JobCode),
    /// A suitable node: the required label, what is missing, the live nodes with their labels.
    Node(Option<String>, PlacementFailure, Vec<String>),
    /// Nothing; the dispatching process starts it in its next round.
    NextTurn,
    /// An operator's release; who held it and why.
    Held(Option<String>),
    /// An operator's release after this many consecutive workers died while it ran. With the
    /// arguments that name the job on a command line.
    Parked(u32, String),
    /// Its body is running: attempt number and start.
    Runs(u32, Option<Millis>),
    /// Something that the attempt awaits before its body begins, in words.
    BeforeBody(String),
    /// Its node sends no heartbeats; what it began on a server may still run.
    NodeSilent(SilentNode),
    /// The outcome of its last attempt is unknown and will be looked up by the next one.
    Open {
        /// Number of the last attempt.
        attempt: u32,
        /// Where it is looked up.
        ledger: LedgerLocation,
        /// What the next attempt waits for.
        next: Box<WaitReason>,
        /// The row's message: why the last attempt could not look it up, or who changed the row
        /// since.
        said: String,
    },
    /// Its body is being stopped.
    Stopping {
        /// Attempt number.
        attempt: u32,
        /// Since when.
        since: Option<Millis>,
        /// The operator who requested it, and the reason.
        who: Option<String>,
    },
    /// It will never run in this batch because ancestors failed; those jobs.
    Upstream(Vec<(JobCode, QueueStatus)>),
    /// It ended unsuccessfully; its message.
    Ended(QueueStatus, String),
    /// Its outcome is unknown: the remedy, the arguments that name it on a command line, its
    /// message.
    Unknown(Cure, String, String),
    /// No process dispatches the batch; the command that resumes it.
    NoProcess(ResumePath),
    /// The batch is paused.
    Paused,
}

/// How a batch is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumePath {
    /// By a request for this batch number and group: its own, or those of the batch whose job
    /// opened it.
    Ordered(BatchNo, GroupCode),
    /// By its backfill, which resumes all its batches.
    Backfilled(BackfillId),
}

/// Where it is recorded whether an attempt took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerLocation {
    /// In the job's data source.
    Source(SourceName),
    /// In the metadata database, with the rows of the batch.
    Metadata,
    /// Nowhere: the job's transaction class was changed meanwhile.
    Gone,
}

/// Remedy for an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Rerun the job: the outcome is looked up first.
    LookUp,
    /// Kill again what may still run.
    KillAgain,
    /// Inspect the data by hand.
    LookAtData,
}

/// Relation of a batch to the one being explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRelation {
    /// The same batch.
    This,
    /// Another batch of the same process.
    Other,
}

/// The inputs of an explanation.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// The batch.
    pub batch: &'a Batch,
    /// Its snapshot.
    pub snapshot: &'a Snapshot,
    /// Its graph.
    pub dag: &'a Dag,
    /// Its rows, in the order of the snapshot's jobs.
    pub rows: &'a [QueueEntry],
    /// Load of the dispatching process.
    pub load: &'a ProcessLoad,
    /// Dependencies of its jobs on other batches.
    pub outside: &'a [(Node, CrossBatchDependency)],
    /// Whether a live process dispatches the batch.
    pub dispatched: bool,
    /// How it is resumed when none does.
    pub opened: &'a ResumePath,
    /// When the kill of a job was requested.
    pub stopping_since: &'a dyn Fn(&QueueEntry) -> Option<Millis>,
}

/// Rank of a ready job.
fn turn_of(situation: Situation<'_>, node: Node) -> ReadyRank {
    let Situation { batch, snapshot, dag, rows, load, .. } = situation;
    let since = ready_since(dag, rows, node).max(batch.create_time);
    let priority = rows[node.index()].priority.unwrap_or(snapshot.jobs[node.index()].priority);
    let deferral = load.deferrals.get(node.index()).copied().unwrap_or(0);
    ReadyRank::new(priority, since, load.ageing_ms, batch.batch_id, node).deferred_by(deferral)
}

/// Jobs whose parents, other batches and start time permit a start.
fn ready_jobs(
    situation: Situation<'_>,
    gates: Gates<'_>,
    status: &[QueueStatus],
    now: Millis,
) -> Vec<(ReadyRank, JobCode, SlotNeeds)> {
    let Situation { snapshot, rows, outside, .. } = situation;
    let waits_outside =
        |node: Node| outside.iter().any(|(n, waiting)| *n == node && waiting.edge.is_none());
    let is_ready = |node: &Node| {
        let row = &rows[node.index()];
        matches!(row.status, QueueStatus::Pending | QueueStatus::Queued | QueueStatus::RetryWait)
            && row.not_before.is_none_or(|at| at <= now)
            && gates.in_the_way(*node, status).iter().all(|p| status[p.index()].is_final())
            && !waits_outside(*node)
    };
    let ready = (0..rows.len()).map(|i| Node(i as u32)).filter(is_ready);
    ready
        .map(|node| {
            let job = &snapshot.jobs[node.index()];
            (turn_of(situation, node), job.code.clone(), SlotNeeds::for_job(job))
        })
        .collect()
}

/// Every job that has not succeeded, with the reason; each non-final job has one.
pub fn explain(situation: Situation<'_>, now: Millis) -> Vec<(JobCode, QueueStatus, WaitReason)> {
    let Situation { snapshot, dag, rows, .. } = situation;
    let rules = Rules::from_jobs(&snapshot.jobs, &snapshot.dependencies);
    // A condition on outputs is decided when its parent has ended.
    let gates = Gates { dag, rules: &rules, holds: &|_, _| true, allows: &|_| true };
    let status: Vec<QueueStatus> = rows.iter().map(|r| r.status).collect();
    let ready = ready_jobs(situation, gates, &status, now);
    let question = ReasonInput { situation, gates, status: &status, ready: &ready, now };
    let all = (0..).map(Node).zip(rows);
    all.filter_map(|(node, row)| Some((row.job_code.clone(), row.status, question.about(node)?)))
        .collect()
}

/// The inputs of the explanation of one job.
struct ReasonInput<'a> {
    situation: Situation<'a>,
    gates: Gates<'a>,
    status: &'a [QueueStatus],
    ready: &'a [(ReadyRank, JobCode, SlotNeeds)],
    now: Millis,
}

impl ReasonInput<'_> {
    fn about(&self, node: Node) -> Option<WaitReason> {
        let row = &self.situation.rows[node.index()];
        let dispatched = self.situation.dispatched;
        Some(match row.status {
            QueueStatus::Success | QueueStatus::Warning => return None,
            QueueStatus::Forced | QueueStatus::Skipped | QueueStatus::NotTaken => return None,
            QueueStatus::Held if row.is_parked() => {
                WaitReason::Parked(row.crash_count, self.named(node))
            }
            QueueStatus::Held => WaitReason::Held(row.error_message.clone()),
            QueueStatus::UpstreamFailed => self.upstream(node),
            QueueStatus::Unknown => {
                let said = row.error_message.clone().unwrap_or_default();
                WaitReason::Unknown(self.suggested_action(node), self.named(node), said)
            }
            QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::Killed => {
                WaitReason::Ended(row.status, row.error_message.clone().unwrap_or_default())
            }
            QueueStatus::Running | QueueStatus::Killing if !dispatched => self.nobody(),
            QueueStatus::Running => match &row.waits_on {
                Some(what) => SilentNode::parse(what)
                    .map_or_else(|| WaitReason::BeforeBody(what.clone()), WaitReason::NodeSilent),
                None => WaitReason::Runs(row.attempt, row.start_time),
            },
            QueueStatus::Killing => WaitReason::Stopping {
                attempt: row.attempt,
                since: (self.situation.stopping_since)(row),
                who: row.error_message.clone(),
            },
            QueueStatus::Pending | QueueStatus::Queued | QueueStatus::RetryWait => {
                let next = if dispatched { self.next(node) } else { self.nobody() };
                if row.waits_unresolved() {
                    return Some(WaitReason::Open {
                        attempt: row.attempt,
                        ledger: self.ledger(node),
                        next: Box::new(next),
                        said: row.error_message.clone().unwrap_or_default(),
                    });
                }
                next
            }
        })
    }

    fn nobody(&self) -> WaitReason {
        WaitReason::NoProcess(self.situation.opened.clone())
    }

    /// What a waiting job waits for.
    fn next(&self, node: Node) -> WaitReason {
        let Situation { batch, snapshot, rows, load, outside, .. } = self.situation;
        let row = &rows[node.index()];
        let beyond: Vec<(ExternalDependency, Vec<ExternalWait>)> = outside
            .iter()
            .filter(|(n, waiting)| *n == node && waiting.edge.is_none())
            .map(|(_, waiting)| (waiting.external.clone(), waiting.waits.clone()))
            .collect();
        let mut open = self.parents(node);
        open.retain(|(_, status)| !status.is_final());
        let failed = row.status == QueueStatus::RetryWait && row.unresolved == 0;
        match (open.is_empty(), row.not_before.filter(|at| *at > self.now)) {
            (false, _) => WaitReason::Parents(open),
            (true, _) if !beyond.is_empty() => WaitReason::Outside(beyond),
            (true, Some(at)) => WaitReason::Time(at, failed.then_some(row.try_count)),
            (true, None) if batch.is_paused => WaitReason::Paused,
            (true, None) => load.explain_wait(
                turn_of(self.situation, node),
                &snapshot.jobs[node.index()],
                self.ready,
            ),
        }
    }

    fn parents(&self, node: Node) -> Vec<(JobCode, QueueStatus)> {
        let in_the_way = self.gates.in_the_way(node, self.status).into_iter();
        let rows = in_the_way.map(|p| &self.situation.rows[p.index()]);
        rows.map(|p| (p.job_code.clone(), p.status)).collect()
    }

    fn upstream(&self, node: Node) -> WaitReason {
        let row = &self.situation.rows[node.index()];
        let mut failed = self.parents(node);
        failed.retain(|(_, status)| status.is_final());
        match &row.error_message {
            // Something outside the batch stopped it; only the row says what.
            Some(said) if failed.is_empty() => WaitReason::Ended(row.status, said.clone()),
            Some(_) | None => WaitReason::Upstream(failed),
        }
    }

    fn ledger(&self, node: Node) -> LedgerLocation {
        let job = &self.situation.snapshot.jobs[node.index()];
        match (job.tx, &job.source) {
            (TxClass::Same, _) => LedgerLocation::Metadata,
            (TxClass::Ledger, Some(source)) => LedgerLocation::Source(source.clone()),
            (TxClass::Ledger, None) | (TxClass::None, _) => LedgerLocation::Gone,
        }
    }

    fn suggested_action(&self, node: Node) -> Cure {
        if self.situation.rows[node.index()].may_still_run() {
            Cure::KillAgain
        } else if self.situation.snapshot.jobs[node.index()].tx.is_recorded() {
            Cure::LookUp
        } else {
            Cure::LookAtData
        }
    }

    /// The job's command-line arguments: `202407 GL_POST --group month_end`
    fn named(&self, node: Node) -> String {
        let values = &self.situation.batch.values;
        let code = &self.situation.rows[node.index()].job_code;
        format!("{} {code} --group {}", values.batch_no, values.group)
    }
}

/// When a job became startable, as far as the rows tell: its own time, or the last end of a parent.
pub fn ready_since(dag: &Dag, rows: &[QueueEntry], node: Node) -> Millis {
    let parents = dag.parents(node).filter_map(|p| rows[p.index()].end_time);
    parents.chain(rows[node.index()].not_before).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{BatchId, JobType, QueueId};
    use crate::domain::job::pool::{LockMode, LockUse, PoolUse, SlotPool};
    use crate::domain::job::{Group, JobDef, JobDependency};
    use crate::domain::text::lang::Lang;
    use proptest::prelude::*;

    fn group_of(code: &GroupCode) -> Group {
        Group::with_defaults(code.clone())
    }

    fn batch_of(group: &GroupCode) -> Batch {
        Batch::sample("1", group)
    }

    fn ordered() -> ResumePath {
        let no = BatchNo::parse("1").expect("no");
        ResumePath::Ordered(no, GroupCode::parse("g").expect("group"))
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
            JobDef::with_defaults(code, group.clone(), JobType::parse("NOOP").expect("type"))
        };
        let jobs: Vec<JobDef> = (0..states.len()).map(job).collect();
        let edge = |c: usize, p: usize| {
            JobDependency::plain(
                &GroupCode::parse("g").expect("group"),
                jobs[c].code.clone(),
                jobs[p].code.clone(),
                0,
            )
        };
        let dependencies = vec![edge(1, 0), edge(5, 4)];
        let row = |i: usize| QueueEntry {
            status: states[i],
            try_count: 2,
            attempt: 2,
            not_before: (i == 2).then_some(Millis(5_000)),
            error_message: (i == 4).then(|| "exit code 3".to_owned()),
            ..QueueEntry::generated(QueueId(i as i64), BatchId(1), jobs[i].code.clone())
        };
        let rows: Vec<QueueEntry> = (0..states.len()).map(row).collect();
        let group_def = group_of(&group);
        let snapshot = Snapshot {
            calendars: Default::default(),
            group: group_def,
            jobs,
            dependencies,
            sources: vec![],
            externals: vec![],
            shared: crate::domain::job::Shared::default(),
        };
        let batch = Batch { is_paused, ..batch_of(&group) };
        let mut load = ProcessLoad::new(1, 600_000);
        load.count_running(&batch, &snapshot, &rows, BatchRelation::This);
        let dag = snapshot.build_dag().expect("dag");
        let situation = Situation {
            batch: &batch,
            snapshot: &snapshot,
            dag: &dag,
            rows: &rows,
            load: &load,
            outside: &[],
            dispatched,
            opened: &ordered(),
            stopping_since: &|_| None,
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
            let mut job =
                JobDef::with_defaults(code, group.clone(), JobType::parse("NOOP").expect("type"));
            job.pools.extend((weight > 0).then(|| pool(weight)));
            job.locks.extend((weight == 0).then(|| lock.clone()));
            jobs.push(job);
        }
        let mut snapshot = bare_snapshot(&group, jobs);
        snapshot.shared.pools = vec![SlotPool { name: "ORA_DW".into(), slots: 4 }];
        let states = [0, 1, 1, 0, 1].map(|s| [QueueStatus::Running, QueueStatus::Queued][s]);
        let rows: Vec<QueueEntry> =
            snapshot.jobs.iter().zip(states).map(|(j, s)| bare_row(&j.code, s)).collect();
        let batch = batch_of(&group);
        let mut load = ProcessLoad::new(9, 600_000);
        load.count_running(&batch, &snapshot, &rows[..4], BatchRelation::This);
        load.count_running(&batch, &snapshot, &rows[3..], BatchRelation::Other);
        let dag = snapshot.build_dag().expect("dag");
        let all = explain(
            Situation {
                batch: &batch,
                snapshot: &snapshot,
                dag: &dag,
                rows: &rows,
                load: &load,
                outside: &[],
                dispatched: true,
                opened: &ordered(),
                stopping_since: &|_| None,
            },
            Millis(0),
        );
        let waits = |w: &&(JobCode, QueueStatus, WaitReason)| w.1 == QueueStatus::Queued;
        let words = |lang| {
            let all = all.iter().filter(waits);
            all.map(|(_, _, w)| w.words(lang, Millis(0))).collect::<Vec<_>>()
        };
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
                "已就绪；等待资源池 ORA_DW 的 4 个并发名额（已用 1/4，占用者：J0）",
                "已就绪；资源池 ORA_DW 的名额留给排在前面的 J1",
                "已就绪；等待锁 GL_LEDGER，占用者：J3, J3@1",
            ]
        );
    }

    fn bare_snapshot(group: &GroupCode, jobs: Vec<JobDef>) -> Snapshot {
        Snapshot {
            calendars: Default::default(),
            group: group_of(group),
            jobs,
            dependencies: vec![],
            sources: vec![],
            externals: vec![],
            shared: crate::domain::job::Shared::default(),
        }
    }

    fn bare_row(code: &JobCode, status: QueueStatus) -> QueueEntry {
        QueueEntry { status, ..QueueEntry::generated(QueueId(1), BatchId(1), code.clone()) }
    }

    #[test]
    fn every_job_that_is_not_done_has_a_reason() {
        assert_eq!(
            answers(true),
            [
                "J0: runs (start 2)",
                "J1: waits for J0 (RUNNING)",
                "J2: failed 2 times; next try at 1970-01-01T00:00:05.000Z (in 3.0 s)",
                "J3: ready; waits for a slot in total (1 of 1 in use, held by J0)",
                "J4: ended FAILED: exit code 3",
                "J5: will not run: J4 (FAILED) ended badly",
            ]
        );
        let held = WaitReason::Held(None).words(Lang::Zh, Millis(0));
        assert_eq!(held, "被操作员挂起");
        assert_eq!(
            answers(false)[0],
            "J0: no living process dispatches this batch; go on with: procession run --resume \
             --batch-no 1 --group g, or start procession serve"
        );
        let words =
            WaitReason::NoProcess(ResumePath::Backfilled(BackfillId(7))).words(Lang::Zh, Millis(0));
        assert!(words.ends_with("继续请用：procession backfill resume 7"), "{words}");
        let paused = answers_of(true, true);
        assert_eq!(paused[3], "J3: ready; the batch is paused by an operator");
    }

    /// The explanation of the only job of a batch.
    fn about(row: QueueEntry, job: JobDef, dispatched: bool) -> Option<WaitReason> {
        let group = job.group.clone();
        let batch = batch_of(&group);
        let snapshot = bare_snapshot(&group, vec![job]);
        let dag = snapshot.build_dag().expect("dag");
        let rows = [row];
        let load = ProcessLoad::new(1, 600_000);
        let situation = Situation {
            batch: &batch,
            snapshot: &snapshot,
            dag: &dag,
            rows: &rows,
            load: &load,
            outside: &[],
            dispatched,
            opened: &ordered(),
            stopping_since: &|_| Some(Millis(1_000)),
        };
        explain(situation, Millis(2_000)).pop().map(|(_, _, why)| why)
    }

    fn lone_job(tx: TxClass) -> JobDef {
        let code = |c| JobCode::parse(c).expect("code");
        let group = GroupCode::parse("g").expect("group");
        let mut job =
            JobDef::with_defaults(code("J"), group, JobType::parse("PROC").expect("type"));
        job.tx = tx;
        job.source = Some(SourceName::parse("dw").expect("source"));
        job
    }

    /// A row in its second attempt, changed by `set`.
    fn crashed(status: QueueStatus, set: impl Fn(&mut QueueEntry)) -> QueueEntry {
        let mut row = bare_row(&lone_job(TxClass::None).code, status);
        row.attempt = 2;
        set(&mut row);
        row
    }

    fn saying(status: QueueStatus, said: &str, crash_count: u32) -> QueueEntry {
        crashed(status, |r| {
            (r.error_message, r.crash_count) = (Some(said.to_owned()), crash_count);
        })
    }

    #[track_caller]
    fn says(row: QueueEntry, tx: TxClass, english: &str, chinese: &str) {
        let why = about(row, lone_job(tx), true).expect("a reason");
        let (en, zh) = (why.words(Lang::En, Millis(2_000)), why.words(Lang::Zh, Millis(2_000)));
        assert!(en.contains(english), "{en} lacks {english}");
        assert!(zh.contains(chinese), "{zh} lacks {chinese}");
    }

    #[test]
    fn after_a_crash_the_reason_says_what_is_looked_up() {
        let waits = crashed(QueueStatus::Running, |r| r.waits_on = Some("session 42".into()));
        let english = "waits before its body: session 42";
        says(waits, TxClass::None, english, "执行前等待：session 42");
        let open = crashed(QueueStatus::RetryWait, |r| {
            (r.unresolved, r.not_before) = (1, Some(Millis(5_000)));
        });
        let english = "what became of try 2 is open; looked up by the next one (ledger of source \
                       'dw'): not before 1970-01-01T00:00:05.000Z (in 3.0 s)";
        let chinese = "第 2 次的结果待查，由下一次查询（数据源 dw 的账本）";
        says(open.clone(), TxClass::Ledger, english, chinese);
        says(open.clone(), TxClass::Same, "(ledger of the metadata database)", "元数据库的账本");
        let said = "no procession_ledger there";
        let open = QueueEntry { error_message: Some(said.into()), ..open };
        let english = "(in 3.0 s); last said: no procession_ledger there";
        says(open, TxClass::Ledger, english, "上次信息：no procession_ledger there");
    }

    #[test]
    fn after_a_crash_the_reason_says_what_helps() {
        use QueueStatus as S;
        let (ledger, none) = (TxClass::Ledger, TxClass::None);
        let parked = saying(S::Held, "3 workers in a row died while it ran; parked.", 3);
        let english = "parked: 3 workers in a row died while it ran; look at it, then: procession job \
                       release 1 J --group g --reason WHY";
        says(parked, none, english, "已停放：连续 3 个进程在运行它时中断");
        let held = saying(S::Held, "held by li: rates are late", 1);
        says(held, none, "held by li: rates are late", "被操作员挂起：held by li");
        let lost = saying(S::Unknown, "cut", 0);
        says(lost.clone(), ledger, "cut; a rerun looks it up in its ledger", "先查账本");
        says(
            lost,
            none,
            "cut; look at its data, then: procession job force-success 1 J --group g --reason WHY, or \
             procession job rerun 1 J --group g --rerun-unknown --reason WHY",
            "核对数据",
        );
        let lives = saying(S::Unknown, "killed by li: x; kill unconfirmed: session 4", 0);
        let english = "or once more: procession job kill 1 J --group g";
        says(lives, ledger, english, "再次停止");
        let stops = saying(S::Killing, "killed by li: x", 0);
        let english = "being stopped (start 2, since 1970-01-01T00:00:01.000Z); killed by li: x";
        let chinese = "正在停止（第 2 次，自 1970-01-01T00:00:01.000Z 起）；killed by li: x";
        says(stops, none, english, chinese);
    }

    proptest! {
        /// Every non-final row has a reason in both languages, whatever else it contains.
        #[test]
        fn every_row_that_is_not_final_has_a_reason(
            status in prop::sample::select(QueueStatus::ALL.to_vec()),
            (crash_count, unresolved, attempt) in (0u32..4, 0u32..3, 0u32..3),
            said in prop::option::of("held by li|kill unconfirmed|parked"),
            waits_on in prop::option::of("x"),
            not_before in prop::option::of(0i64..5_000),
            tx in prop::sample::select(vec![TxClass::Same, TxClass::Ledger, TxClass::None]),
            dispatched: bool,
        ) {
            let job = lone_job(tx);
            let mut row = bare_row(&job.code, status);
            (row.crash_count, row.unresolved, row.attempt) = (crash_count, unresolved, attempt);
            (row.error_message, row.waits_on) = (said, waits_on);
            row.not_before = not_before.map(Millis);
            let why = about(row, job, dispatched);
            prop_assert!(status.is_final() || why.is_some(), "{} has no reason", status);
            for words in why.iter().flat_map(|w| [Lang::En, Lang::Zh].map(|l| w.words(l, Millis(0)))) {
                prop_assert!(!words.is_empty());
            }
        }
    }
}
