//! Operators' commands on batches. A command is computed from the rows under the batch's lock and
//! written there with the reason; the process that dispatches the batch sees the new revision and
//! reads the batch again. So a command works whichever process owns the batch, and also when none
//! does.

use crate::domain::action::action_plan::{self, ActionScene, ActionStep, Cause};
use crate::domain::action::refusal::{ActionRefusal, Refusals};
use crate::domain::action::{OperatorAction, RowChange};
use crate::domain::batch::{Batch, Snapshot};
use crate::domain::dag::Node as Place;
use crate::domain::dispatch::readiness::Rules;
use crate::domain::id::{BatchId, JobCode};
use crate::domain::job::Definition;
use crate::domain::job::job_key::find_named;
use crate::domain::job::queue::{NOT_LOOKED_UP, QueueEntry, QueueStatus, RunMode};
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::domain::value::expr::Expr;
use crate::engine::host::host_name;
use crate::engine::opening::cross_batch;
use crate::engine::opening::edge_conditions::outputs_of;
use crate::engine::opening::edge_conditions::{allows, holds};
use crate::engine::opening::refresh_definition::renewed;
use crate::store::action::Move;
use crate::store::audit::{AuditEntry, Operator};
use crate::store::log::ExecutionLog;
use crate::store::node::NodeRow;
use crate::store::{self, Db, Tx, audit, batch, node, queue};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

/// An operator's command about jobs of a batch.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    pub batch: BatchId,
    pub action: OperatorAction,
    /// The jobs named in the command.
    pub jobs: &'a [JobCode],
    /// Continues with these definitions in place of the batch's snapshot.
    pub latest: Option<&'a Definition>,
    pub by: &'a Operator,
    pub reason: &'a str,
}

/// The action, the operator and the reason of a command.
#[derive(Clone, Copy)]
pub(in crate::engine) struct OperatorCommandOrigin<'a> {
    pub(in crate::engine) action: OperatorAction,
    pub(in crate::engine) by: &'a Operator,
    pub(in crate::engine) reason: &'a str,
}

impl OperatorCommandOrigin<'_> {
    /// The sentence stored in the row and in its log.
    fn words(self) -> String {
        let Self { action, by, reason } = self;
        let words = format!("{} by {}: {reason}", action.past_tense(), by.actor);
        storable(words.as_bytes(), MESSAGE_MAX)
    }
}

/// A row that changes, as it is shown and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRow {
    pub job_code: JobCode,
    /// Its state before.
    pub from: QueueStatus,
    /// Its state after.
    pub to: QueueStatus,
    /// Its run mode before.
    pub mode: Option<RunMode>,
    pub changes: Vec<RowChange>,
    /// Whether it was named in the command or follows from it.
    pub cause: Cause,
}

/// The effects of a command, planned or carried out.
#[derive(Clone, Debug)]
pub struct Acted {
    /// The batch before the command.
    pub batch: Batch,
    /// The snapshot after the command.
    pub snapshot: Snapshot,
    /// Exactly the rows that change.
    pub lines: Vec<ActionRow>,
    /// The living process that dispatches the batch and will apply the change.
    pub holder: Option<NodeRow>,
}

/// The batch changed between the preview and the command.
#[derive(Debug, thiserror::Error)]
#[error(
    "the batch went on meanwhile, and other rows would change than those in the list; nothing was \
     changed. Run the command again"
)]
pub struct Moved;

/// A person at this machine's command line.
pub fn operator_here(actor: &str) -> Operator {
    Operator::new(actor.to_owned(), host_name())
}

/// Computes what a command would do; writes nothing.
pub async fn look_ahead(db: &Db, command: &Command<'_>, now: Millis) -> Result<Acted> {
    let mut tx = db.begin_read().await?;
    let there = batch::get(&mut tx, command.batch).await?;
    let planned =
        plan_in(&mut tx, &there, command.latest, command.action, command.jobs, now).await?;
    let holder = holder_of(&mut tx, &there, now).await?;
    Ok(Acted { batch: there, snapshot: planned.snapshot, lines: planned.lines, holder })
}

/// Carries out a command, provided that exactly the rows in `shown` change. A batch that had ended
/// is reopened without an owner.
pub async fn carry_out(
    db: &Db,
    command: &Command<'_>,
    shown: &[ActionRow],
    now: Millis,
) -> Result<Acted> {
    let mut tx = db.begin().await?;
    let there = batch::lock_batch(&mut tx, command.batch).await?;
    let planned =
        plan_in(&mut tx, &there, command.latest, command.action, command.jobs, now).await?;
    if planned.lines != shown {
        tx.rollback().await?;
        return Err(Moved.into());
    }
    if command.latest.is_some() {
        batch::replace_snapshot(&mut tx, there.batch_id, &planned.snapshot).await?;
    }
    let deed =
        OperatorCommandOrigin { action: command.action, by: command.by, reason: command.reason };
    write_rows(&mut tx, &planned, deed, now).await?;
    write_audit(&mut tx, &there, &planned, deed, now).await?;
    batch::revise(&mut tx, &there, now).await?;
    let holder = holder_of(&mut tx, &there, now).await?;
    tx.commit().await.context("write what an operator did")?;
    Ok(Acted { batch: there, snapshot: planned.snapshot, lines: planned.lines, holder })
}

/// The audit entry of an action on a batch.
pub(in crate::engine) fn of_batch(there: &Batch, action: &str, reason: &str) -> AuditEntry {
    AuditEntry {
        action: action.to_owned(),
        group: Some(there.values.group.clone()),
        batch: Some((there.batch_id, there.values.batch_no.clone())),
        job: None,
        detail: None,
        reason: Some(storable(reason.as_bytes(), MESSAGE_MAX)),
    }
}

/// The living process that owns a batch.
async fn holder_of(tx: &mut Tx, there: &Batch, now: Millis) -> Result<Option<NodeRow>> {
    let Some(owner) = &there.owner else { return Ok(None) };
    Ok(node::find_node(tx, owner).await?.filter(|n| n.lease_until > now))
}

/// The planned steps, with the rows they apply to.
pub(in crate::engine) struct PlannedAction {
    pub(in crate::engine) snapshot: Snapshot,
    rows: Vec<QueueEntry>,
    steps: Vec<ActionStep>,
    pub(in crate::engine) lines: Vec<ActionRow>,
}

/// Computes a command from the rows as this transaction sees them.
pub(in crate::engine) async fn plan_in(
    tx: &mut Tx,
    there: &Batch,
    latest: Option<&Definition>,
    action: OperatorAction,
    jobs: &[JobCode],
    now: Millis,
) -> Result<PlannedAction> {
    let mut snapshot = batch::snapshot(tx, there.batch_id).await?;
    let rows = queue::of_batch(tx, there.batch_id).await?;
    if let Some(latest) = latest {
        snapshot = renewed(&snapshot, latest, there, &rows)?;
    }
    let outputs = outputs_of(tx, &snapshot, &rows).await?;
    let dag = snapshot.build_dag()?;
    let named = places(there, &snapshot, jobs)?;
    let rules = Rules::from_jobs(&snapshot.jobs, &snapshot.dependencies);
    let tallies =
        cross_batch::tallies(&cross_batch::read_awaited(tx, there, &snapshot, now).await?);
    let heard = |node: Place| tallies.get(&node).copied().unwrap_or_default();
    let allows = |expr: &Expr| allows(&outputs, expr);
    let holds = |parent: Place, expr: &Expr| holds(&outputs, dag.job_code(parent), expr);
    let scene = ActionScene {
        batch: there,
        dag: &dag,
        rules: &rules,
        rows: &rows,
        on_failure: snapshot.group.on_failure,
        holds: &holds,
        allows: &allows,
        outside: &heard,
    };
    let steps = action_plan::plan_action(action, &named, scene)?;
    let line = |step: &ActionStep| ActionRow {
        job_code: rows[step.node.index()].job_code.clone(),
        from: step.from,
        to: step.to,
        mode: rows[step.node.index()].run_mode,
        changes: step.changes.clone(),
        cause: step.cause,
    };
    let lines = steps.iter().map(line).collect();
    Ok(PlannedAction { snapshot, rows, steps, lines })
}

/// The DAG indexes of the named jobs; an alias or `group.CODE` is accepted.
fn places(there: &Batch, snapshot: &Snapshot, jobs: &[JobCode]) -> Result<Vec<Place>, Refusals> {
    let mut known: HashMap<&JobCode, u32> = HashMap::new();
    for (place, job) in (0..).zip(&snapshot.jobs) {
        job.aliases.iter().chain([&job.code]).for_each(|code| {
            known.insert(code, place);
        });
    }
    let near = |code: &JobCode| {
        let same = |job: &&JobCode| job.as_str().eq_ignore_ascii_case(code.as_str());
        snapshot.jobs.iter().map(|j| &j.code).find(same).cloned()
    };
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for code in jobs {
        let in_full = || {
            let job = find_named(&snapshot.jobs, code.as_str()).ok()?;
            known.get(&job.code).copied()
        };
        match known.get(code).copied().or_else(in_full) {
            Some(place) => found.push(Place(place)),
            None => refused.push(ActionRefusal::NotThere(code.clone(), near(code))),
        }
    }
    found.sort_unstable();
    found.dedup();
    if refused.is_empty() { Ok(found) } else { Err(Refusals::for_batch(there, refused)) }
}

/// Writes the rows and their logs. The caller holds the batch's lock.
pub(in crate::engine) async fn write_rows(
    tx: &mut Tx,
    planned: &PlannedAction,
    deed: OperatorCommandOrigin<'_>,
    now: Millis,
) -> Result<()> {
    let words = deed.words();
    let mut same: BTreeMap<(QueueStatus, QueueStatus, usize, RowChange), Vec<i64>> =
        BTreeMap::new();
    for step in &planned.steps {
        let row = planned.rows[step.node.index()].queue_id.0;
        for (order, change) in step.changes.iter().enumerate() {
            same.entry((step.from, step.to, order, *change)).or_default().push(row);
        }
    }
    for ((from, to, _, change), ids) in &same {
        // A waiting row needs no message, unless it is held.
        let note = (*to != QueueStatus::Pending).then(|| said_of(*to, &words));
        let what = Move { from: *from, to: *to, change: *change, note: note.as_deref() };
        store::action::write(tx, ids, what, now).await?;
    }
    let logs: Vec<ExecutionLog> = planned
        .steps
        .iter()
        .filter(|s| s.from != s.to)
        .map(|step| log_entry(&planned.rows[step.node.index()], step, &words))
        .collect();
    store::log::append(tx, &logs, now).await
}

/// The message of a row that an operator changed.
fn said_of(to: QueueStatus, words: &str) -> String {
    if to == QueueStatus::Unknown {
        return storable(format!("{words}; {NOT_LOOKED_UP}").as_bytes(), MESSAGE_MAX);
    }
    words.to_owned()
}

fn log_entry(row: &QueueEntry, step: &ActionStep, words: &str) -> ExecutionLog {
    let over = step.changes.contains(&RowChange::StartOver);
    let message = match step.cause {
        Cause::Asked => said_of(step.to, words),
        Cause::Follows => format!("waits again, because another job was {words}"),
    };
    ExecutionLog {
        queue_id: row.queue_id,
        status: step.to,
        start_time: None,
        end_time: None,
        error_message: Some(message),
        notified: false,
        try_count: if over { 0 } else { row.try_count },
        attempt: row.attempt,
        owner: None,
    }
}

/// Writes an audit record for every row that changes, with its old and new values.
pub(in crate::engine) async fn write_audit(
    tx: &mut Tx,
    there: &Batch,
    planned: &PlannedAction,
    deed: OperatorCommandOrigin<'_>,
    now: Millis,
) -> Result<()> {
    let entries: Vec<AuditEntry> = planned
        .steps
        .iter()
        .map(|step| {
            let row = &planned.rows[step.node.index()];
            let (mut mode, mut priority) = (row.run_mode, row.priority);
            for change in &step.changes {
                match change {
                    RowChange::Mode(to) => mode = *to,
                    RowChange::Priority(to) => priority = Some(*to),
                    RowChange::StartOver => mode = mode.filter(|m| *m == RunMode::NoExec),
                    RowChange::State | RowChange::NoTime => {}
                }
            }
            let side = |status: QueueStatus, mode: Option<RunMode>, priority: Option<i32>| {
                json!({"status": status, "run_mode": mode.map(RunMode::as_str), "priority": priority})
            };
            AuditEntry {
                job: Some(row.job_code.clone()),
                detail: Some(json!({
                    "before": side(step.from, row.run_mode, row.priority),
                    "after": side(step.to, mode, priority),
                    "asked": step.cause == Cause::Asked,
                })),
                ..of_batch(there, deed.action.as_str(), deed.reason)
            }
        })
        .collect();
    audit::record(tx, deed.by, &entries, now).await
}
