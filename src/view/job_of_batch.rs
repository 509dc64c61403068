//! One job of a batch with all that is known of it: what an operator looks at when it will not go on.

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

/// Jobs below it that are named.
const NAMED: usize = 100;
/// Mails about it that are shown.
const MAILS: u32 = 50;

/// One job of a batch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BatchJobDetail {
    /// The batch's group.
    pub group: String,
    /// The batch's number.
    pub batch_no: String,
    /// The batch's state.
    pub batch_status: String,
    /// The batch starts nothing more.
    pub is_paused: bool,
    /// The job as the batch's list of jobs has it, with `outputs`: values, result sets, checks, rules.
    pub job: JobInBatch,
    /// The job as the batch runs it, which may be older than its present definition.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub definition: JobDef,
    /// Jobs that it waits for, and how they are.
    pub parents: Vec<AdjacentJob>,
    /// Jobs that wait for it.
    pub children: Vec<AdjacentJob>,
    /// What it waits for in other batches, as it is defined.
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    pub externals: Vec<ExternalDependency>,
    /// Its parameters as they are worked out now, secrets masked.
    pub params: Vec<ResolvedParam>,
    /// Why it is not running, or did not end well: `kind`, `why` (a sentence in the caller's language),
    /// `detail`; none when it ended well.
    pub why: Option<JobReason>,
    /// Its tries, the first first.
    pub attempts: Vec<Attempt>,
    /// Every change of its state, the first first.
    pub changes: Vec<StatusChange>,
    /// Who runs it now.
    pub node: Option<RunningNode>,
    /// How it can be found on its server while it runs.
    pub session: Option<ServerSession>,
    /// How long it usually takes; none before its first good try.
    pub expected: Option<UsualDuration>,
    /// What cannot run before it.
    pub below: DownstreamJobs,
    /// The latest mails about it.
    pub mails: Vec<JobNotification>,
    /// When the lines that it printed were removed, because they were old.
    pub lines_removed: Option<String>,
}

/// A job above or below another.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AdjacentJob {
    /// Its code.
    pub job_code: String,
    /// Its state.
    pub status: String,
    /// What is asked of the one above: `success`, `done`, `failure` or a condition on its outputs.
    pub when: String,
}

/// One try.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Attempt {
    /// Which start of the job, counted from 1.
    pub attempt: u32,
    /// The last state it was in.
    pub status: String,
    /// When it was started.
    pub start: Option<String>,
    /// When it ended.
    pub end: Option<String>,
    /// How long it took.
    pub duration_ms: Option<i64>,
    /// What was said at its end.
    pub message: Option<String>,
    /// The process that ran it.
    pub node: Option<String>,
    /// What held its script: user, isolation and limits; empty is nothing, null of what is no script or whose log is gone.
    pub script_hold: Option<String>,
}

/// A change of state.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StatusChange {
    /// When.
    pub at: String,
    /// The state from then on.
    pub status: String,
    /// Which start it belongs to.
    pub attempt: u32,
    /// What was said.
    pub message: Option<String>,
    /// The process that wrote it.
    pub node: Option<String>,
    /// Whether mails went out about it.
    pub is_told: bool,
}

/// The process that runs a job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunningNode {
    /// Its identity.
    pub node_id: String,
    /// Its host; none when nobody knows the process any more.
    pub host: Option<String>,
    /// Its number on that host.
    pub pid: Option<i64>,
    /// Until when it counts as alive.
    pub lease_until: Option<String>,
    /// Whether it does now.
    pub is_alive: bool,
    /// It was given the job and has not taken it yet.
    pub is_given_only: bool,
}

/// What a job can be found by on its server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerSession {
    /// Its data source.
    pub source: String,
    /// The name of the session lock that it holds there; SHOW PROCESSLIST and pg_locks tell who.
    pub lock: String,
    /// What it executes: the call or the first statements, without values.
    pub statement: Option<String>,
    /// What it waits for there before it begins.
    pub waits_on: Option<String>,
}

/// How long a job usually takes: its last good tries.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsualDuration {
    /// How many tries are counted.
    pub tries: usize,
    /// Half of them took no longer.
    pub p50_ms: i64,
    /// Nineteen of twenty took no longer.
    pub p95_ms: i64,
    /// The newest.
    pub last_ms: i64,
    /// By how many percent the newest took longer than usual.
    pub drift_percent: Option<i64>,
}

/// The jobs below one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DownstreamJobs {
    /// How many there are.
    pub jobs: usize,
    /// How many of them are not over yet.
    pub open: usize,
    /// The first of those that are not over, or never ran because of something above them.
    pub waiting: Vec<String>,
}

/// A mail about the job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobNotification {
    /// Its number in the outbox.
    pub id: i64,
    /// What it tells: `failed`, `late`.
    pub event: String,
    /// pending, sent, failed, digest or acked.
    pub status: String,
    /// Whom it is for.
    pub to: String,
    /// One line.
    pub subject: String,
    /// When it was written.
    pub created: String,
    /// When it went.
    pub sent: Option<String>,
}

impl BatchJobDetail {
    /// Of the job at a place of a batch.
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
                tries: of.tries,
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

/// Characters of a statement that are shown.
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

/// One for each start, from its changes of state.
fn attempts(changes: &[LoggedChange], system_lines: &[(u32, String)]) -> Vec<Attempt> {
    let held = |attempt: u32| {
        let mut lines = system_lines.iter().filter(|(of, _)| *of == attempt);
        lines.find_map(|(_, line)| read_start(line)).map(str::to_owned)
    };
    let mut tries: BTreeMap<u32, Attempt> = BTreeMap::new();
    for change in changes.iter().filter(|c| c.log.attempt > 0) {
        let log = &change.log;
        // An operator's words about a try that is over do not change when it ended.
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
        is_told: change.log.notified,
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

/// Everything below a job, however deep.
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
