//! One job of a batch with everything that is known of it, for an operator who investigates it.

use crate::app::App;
use crate::domain::dag::{Dag, Node};
use crate::domain::id::NodeId;
use crate::domain::job::JobDef;
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::queue::{Acknowledgement, QueueEntry, QueueStatus};
use crate::domain::job::script_isolation::read_start;
use crate::domain::source::DialectName;
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::store;
use crate::store::log::LoggedChange;
use crate::view::batch::{BatchView, JobInBatch};
use crate::view::due::Dues;
use crate::view::params::{self, ResolvedParam};
use crate::view::why::{self, JobReason};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum number of downstream jobs that are named.
const NAMED: usize = 100;
/// Maximum number of notifications that are shown.
const MAILS: u32 = 50;

/// One job of a batch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BatchJobDetail {
    /// The group code.
    pub group: String,
    /// The batch number.
    pub batch_no: String,
    /// The state of the batch.
    pub batch_status: String,
    /// Whether the batch is paused.
    pub is_paused: bool,
    /// The job as in the list of jobs of the batch, with `outputs`: values, result sets, checks,
    /// rules.
    pub job: JobInBatch,
    /// The job in the batch's snapshot, which may be older than its present definition.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub definition: JobDef,
    /// Its direct dependencies with their states.
    pub parents: Vec<AdjacentJob>,
    /// Its direct dependents with their states.
    pub children: Vec<AdjacentJob>,
    /// Its dependencies on other batches, as defined.
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    pub externals: Vec<ExternalDependency>,
    /// Its parameters as resolved now, secrets masked.
    pub params: Vec<ResolvedParam>,
    /// Why it is not running, or failed: `kind`, `why` (a sentence in the caller's language),
    /// `detail`; null when it succeeded.
    pub why: Option<JobReason>,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Every change of its state, oldest first.
    pub changes: Vec<StatusChange>,
    /// The node that runs it now.
    pub node: Option<RunningNode>,
    /// How to find it on its server while it runs.
    pub session: Option<ServerSession>,
    /// Its usual duration; null before its first success.
    pub expected: Option<UsualDuration>,
    /// The jobs downstream.
    pub below: DownstreamJobs,
    /// The latest notifications about it.
    pub mails: Vec<JobNotification>,
    /// When retention removed its log lines.
    pub lines_removed: Option<String>,
}

/// A neighbouring job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AdjacentJob {
    /// The job code.
    pub job_code: String,
    /// The state.
    pub status: String,
    /// The condition of the edge: `success`, `done`, `failure` or an expression on outputs.
    pub when: String,
}

/// One attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Attempt {
    /// The attempt number, counted from 1.
    pub attempt: u32,
    /// The last state it was in.
    pub status: String,
    /// When it was started.
    pub start: Option<String>,
    /// When it ended.
    pub end: Option<String>,
    /// Duration in milliseconds.
    pub duration_ms: Option<i64>,
    /// The message at its end.
    pub message: Option<String>,
    /// The process that ran it.
    pub node: Option<String>,
    /// User, isolation and limits of its script; empty if there are none, null for a job without a
    /// script or whose log is gone.
    pub script_hold: Option<String>,
}

/// A change of state.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StatusChange {
    /// The time.
    pub at: String,
    /// The new state.
    pub status: String,
    /// The attempt number.
    pub attempt: u32,
    /// The message.
    pub message: Option<String>,
    /// The process that wrote it.
    pub node: Option<String>,
    /// Whether notifications about it were sent.
    pub is_notified: bool,
}

/// The node that runs a job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunningNode {
    /// The node id.
    pub node_id: String,
    /// Its host; null when the node is no longer known.
    pub host: Option<String>,
    /// The process id on that host.
    pub pid: Option<i64>,
    /// When its lease expires.
    pub lease_until: Option<String>,
    /// Whether it is alive.
    pub is_alive: bool,
    /// Whether it was given the job and has not taken it yet.
    pub is_given_only: bool,
}

/// How to find a job on its server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerSession {
    /// The data source.
    pub source: String,
    /// The name of the session lock that it holds there; SHOW PROCESSLIST and pg_locks show the
    /// holder.
    pub lock: String,
    /// What it executes: the call or the first statements, without values.
    pub statement: Option<String>,
    /// What it waits for there before it begins.
    pub waits_on: Option<String>,
}

/// The usual duration of a job: its last successful attempts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsualDuration {
    /// Number of attempts counted.
    pub successful_attempts: usize,
    /// Median in milliseconds.
    pub p50_ms: i64,
    /// 95th percentile in milliseconds.
    pub p95_ms: i64,
    /// The latest in milliseconds.
    pub last_ms: i64,
    /// By how many percent the latest took longer than the median.
    pub drift_percent: Option<i64>,
}

/// The jobs downstream of one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DownstreamJobs {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of unfinished ones.
    pub open: usize,
    /// The first of those that are unfinished, or never ran because of a job upstream.
    pub waiting: Vec<String>,
}

/// A notification about the job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobNotification {
    /// The number in the outbox.
    pub id: i64,
    /// The event: `failed`, `late`.
    pub event: String,
    /// pending, sent, failed, digest or acked.
    pub status: String,
    /// The recipient.
    pub to: String,
    /// The subject line.
    pub subject: String,
    /// When it was written.
    pub created: String,
    /// When it was sent.
    pub sent: Option<String>,
}

impl BatchJobDetail {
    /// Reads the panel of one job of a batch.
    pub async fn read_panel(app: &App, mut view: BatchView, at: usize, lang: Lang) -> Result<Self> {
        let dag = view.snapshot.build_dag()?;
        let row = view.rows[at].clone();
        let reasons = why::reasons(app, &view).await?;
        let reason = reasons.iter().find(|(code, _, _)| *code == row.job_code);
        let mut tx = app.db.begin_read().await?;
        for (id, text) in store::queue::outputs(&mut tx, &[row.queue_id]).await? {
            view.outputs.insert(id.0, serde_json::from_str(&text)?);
        }
        let changes = store::log::of_entry(&mut tx, row.queue_id).await?;
        let of_row = store::outbox::of_row;
        let mails = of_row(&mut tx, row.batch_id, row.queue_id, MAILS).await?;
        let script_holds = match row.attempt > 0 && view.snapshot.jobs[at].script.is_some() {
            true => store::log::system_lines(&mut tx, row.queue_id).await?,
            false => Vec::new(),
        };
        let lines_removed = store::retention::lines_gone(&mut tx, row.batch_id).await?;
        let (group, code) = (view.batch.values.group.as_str(), row.job_code.as_str());
        let usual = store::history::of_job(&mut tx, group, code).await?;
        let node = match row.owner.as_ref().filter(|_| !row.status.is_final()) {
            Some(owner) => Some(runner(&view, &row, store::node::find_node(&mut tx, owner).await?)),
            None => None,
        };
        let installation = store::installation(&mut tx).await?.unwrap_or_default();
        drop(tx);
        let job = view.job_document(at, &Dues::of_view(&view));
        let def = &view.snapshot.jobs[at];
        let externals = view.snapshot.externals.iter().filter(|e| e.job_code == def.code);
        Ok(Self {
            group: view.batch.values.group.to_string(),
            batch_no: view.batch.values.batch_no.to_string(),
            batch_status: view.batch.status.as_str().to_owned(),
            is_paused: view.batch.is_paused,
            definition: def.clone(),
            externals: externals.cloned().collect(),
            parents: neighbours(&view, dag.arrows_in(Node(at as u32))),
            children: neighbours(&view, dag.arrows(Node(at as u32))),
            params: params::of_job(app, &view, at).await?,
            why: reason.map(|reason| JobReason::from_reason(reason, lang, view.now)),
            attempts: attempts(&changes, &script_holds),
            changes: changes.iter().map(change).collect(),
            session: session(&view, at, &installation),
            expected: usual.map(|of| UsualDuration {
                successful_attempts: of.tries,
                p50_ms: of.p50,
                p95_ms: of.p95,
                last_ms: of.last,
                drift_percent: of.drift(),
            }),
            below: below(&dag, &view.rows, at),
            mails: mails.into_iter().map(mail_of_row).collect(),
            lines_removed: lines_removed.map(|at| at.to_string()),
            node,
            job,
        })
    }
}

fn neighbours(view: &BatchView, arrows: impl Iterator<Item = (Node, usize)>) -> Vec<AdjacentJob> {
    let of = |(node, dependency): (Node, usize)| AdjacentJob {
        job_code: view.rows[node.index()].job_code.to_string(),
        status: view.rows[node.index()].status.as_str().to_owned(),
        when: view
            .snapshot
            .dependencies
            .get(dependency)
            .map_or_else(String::new, |d| d.when.to_string()),
    };
    arrows.map(of).collect()
}

fn runner(view: &BatchView, row: &QueueEntry, node: Option<store::node::NodeRow>) -> RunningNode {
    let owner = row.owner.as_ref().map(|NodeId(id)| id.clone()).unwrap_or_default();
    RunningNode {
        node_id: owner,
        is_alive: node.as_ref().is_some_and(|n| n.lease_until > view.now),
        lease_until: node.as_ref().map(|n| n.lease_until.to_string()),
        pid: node.as_ref().map(|n| n.pid),
        host: node.map(|n| n.host),
        is_given_only: row.taken == Acknowledgement::NotYet,
    }
}

/// Maximum length of a statement that is shown, in characters.
const STATEMENT: usize = 2_000;

fn session(view: &BatchView, at: usize, installation: &str) -> Option<ServerSession> {
    let (row, job) = (&view.rows[at], &view.snapshot.jobs[at]);
    let runs = matches!(row.status, QueueStatus::Running | QueueStatus::Killing);
    let source = job.source.as_ref().filter(|_| runs)?;
    let call = job.proc_name.as_ref().map(|name| format!("CALL {name}"));
    let server = view.snapshot.sources.iter().find(|s| s.name == *source);
    let dialect = server.and_then(|s| DialectName::of_url(&s.url));
    let text = dialect.and_then(|dialect| Some(job.sql.as_ref()?.text_for(dialect)?.to_owned()));
    Some(ServerSession {
        source: source.to_string(),
        lock: format!("procession:{installation}:{}", row.queue_id.0),
        statement: call.or(text).map(|text| text.chars().take(STATEMENT).collect()),
        waits_on: row.waits_on.clone(),
    })
}

/// The attempts of a job, from its changes of state.
fn attempts(changes: &[LoggedChange], system_lines: &[(u32, String)]) -> Vec<Attempt> {
    let held = |attempt: u32| {
        let mut lines = system_lines.iter().filter(|(of, _)| *of == attempt);
        lines.find_map(|(_, line)| read_start(line)).map(str::to_owned)
    };
    let mut tries: BTreeMap<u32, Attempt> = BTreeMap::new();
    for change in changes.iter().filter(|c| c.log.attempt > 0) {
        let log = &change.log;
        // An operator's message about an ended attempt does not change when it ended.
        if log.start_time.is_none() && tries.contains_key(&log.attempt) {
            continue;
        }
        let status = log.status.as_str().to_owned();
        let fresh = Attempt {
            attempt: log.attempt,
            status: status.clone(),
            start: None,
            end: None,
            duration_ms: None,
            message: None,
            node: None,
            script_hold: held(log.attempt),
        };
        let of = tries.entry(log.attempt).or_insert(fresh);
        of.status = status;
        let words = |at: Option<Millis>| at.map(|at| at.to_string());
        of.start = words(log.start_time).or(of.start.take());
        of.end = words(log.end_time).or(of.end.take());
        let took = log.start_time.zip(log.end_time).map(|(start, end)| end.since(start));
        of.duration_ms = took.or(of.duration_ms);
        of.message = log.error_message.clone().or(of.message.take());
        of.node = log.owner.as_ref().map(|NodeId(id)| id.clone()).or(of.node.take());
    }
    tries.into_values().collect()
}

fn change(change: &LoggedChange) -> StatusChange {
    StatusChange {
        at: change.at.to_string(),
        status: change.log.status.as_str().to_owned(),
        attempt: change.log.attempt,
        message: change.log.error_message.clone(),
        node: change.log.owner.as_ref().map(|NodeId(id)| id.clone()),
        is_notified: change.log.notified,
    }
}

fn mail_of_row(mail: store::outbox::NotificationRow) -> JobNotification {
    JobNotification {
        id: mail.id,
        event: mail.event,
        status: mail.status.as_str().to_owned(),
        to: mail.recipient,
        subject: mail.subject,
        created: mail.created.to_string(),
        sent: mail.sent.map(|at| at.to_string()),
    }
}

/// Everything downstream of a job, at any depth.
fn below(dag: &Dag, rows: &[QueueEntry], at: usize) -> DownstreamJobs {
    let mut seen = vec![false; rows.len()];
    let mut next = vec![Node(at as u32)];
    while let Some(node) = next.pop() {
        next.extend(dag.children(node).filter(|c| !std::mem::replace(&mut seen[c.index()], true)));
    }
    let all = || rows.iter().zip(&seen).filter(|(_, seen)| **seen).map(|(row, _)| row);
    let waits =
        |row: &&QueueEntry| !row.status.is_final() || row.status == QueueStatus::UpstreamFailed;
    DownstreamJobs {
        jobs: all().count(),
        open: all().filter(|row| !row.status.is_final()).count(),
        waiting: all().filter(waits).take(NAMED).map(|row| row.job_code.to_string()).collect(),
    }
}
