//! `job_approval`: approval requests of APPROVAL jobs. A status changes only by compare-and-set, so
//! of a decision, a timeout and a kill at the same moment one wins.

use crate::db::{Row, SqlValue};
use crate::domain::access::approval::{
    ApprovalDecision, ApprovalId, ApprovalRule, ApprovalStatus, ApprovalVerdict,
};
use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode, NodeId, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store::audit::Operator;
use crate::store::seen::among;
use crate::store::{Tx, batch};
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;

const COLUMNS: &str = "a.approval_id, a.queue_id, a.run_no, a.try_no, a.batch_id, a.batch_no, a.group_code, \
     a.job_code, a.status, a.rule_json, a.create_time, a.deadline, a.decided_by, a.decided_from, \
     a.decision_comment, a.end_time, q.status AS job_status, q.run_no AS job_run_no";

const FROM: &str = "FROM job_approval a LEFT JOIN job_queue q ON q.queue_id = a.queue_id";

/// States of a job in which its approval may be decided: it waits, or a dead process left it
/// waiting.
const OPEN: &str = "'PENDING', 'HELD', 'QUEUED', 'RUNNING', 'RETRY_WAIT'";

/// The attempt that requests an approval. A crash of its process does not start another one; a
/// retry or a rerun does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskingTry {
    /// The row of the job.
    pub queue_id: QueueId,
    /// The run of the row.
    pub run_no: i64,
    /// Retries before it in that run.
    pub try_no: i64,
}

/// A new approval request.
#[derive(Clone, Debug)]
pub struct NewApproval<'a> {
    /// The requesting attempt.
    pub of: AskingTry,
    pub batch: (BatchId, &'a BatchNo),
    pub group: &'a GroupCode,
    pub job: &'a JobCode,
    /// Who may decide.
    pub rule: &'a ApprovalRule,
    /// When it expires.
    pub deadline: Millis,
}

/// A stored approval request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub id: ApprovalId,
    /// The requesting attempt.
    pub of: AskingTry,
    pub batch_id: BatchId,
    pub batch_no: BatchNo,
    pub group: GroupCode,
    pub job: JobCode,
    /// Who may decide.
    pub rule: ApprovalRule,
    /// When it was requested.
    pub asked: Millis,
    /// When it expires.
    pub deadline: Millis,
    /// The decision. An approval whose job ended without one counts as withdrawn.
    pub decision: ApprovalDecision,
    /// The address or host of the decision.
    pub decided_from: Option<String>,
}

/// The attempt of a row that a process runs; `None` when the row no longer belongs to it.
pub async fn asking_try(
    tx: &mut Tx,
    queue_id: QueueId,
    attempt: u32,
    owner: &NodeId,
) -> Result<Option<AskingTry>> {
    let sql = "SELECT run_no, try_count FROM job_queue \
               WHERE queue_id = ? AND attempt = ? AND owner = ? AND status IN ('RUNNING', 'KILLING')";
    let key = [queue_id.0.into(), attempt.into(), owner.0.as_str().into()];
    let row = tx.fetch_optional(sql, &key).await.context("read job_queue")?;
    let of = |row: Row| {
        let (run_no, try_no) = (row.get_int("run_no")?, row.get_int("try_count")?);
        Ok(AskingTry { queue_id, run_no, try_no })
    };
    row.map(of).transpose()
}

/// Inserts a pending approval, and withdraws those that earlier runs of its job left.
pub async fn insert(tx: &mut Tx, new: &NewApproval<'_>, now: Millis) -> Result<ApprovalId> {
    let sql = "UPDATE job_approval SET status = 'WITHDRAWN', end_time = ? \
               WHERE queue_id = ? AND status = 'WAITING'";
    let values = [now.to_utc().into(), new.of.queue_id.0.into()];
    tx.execute(sql, &values).await.context("withdraw earlier approvals")?;
    let sql = "INSERT INTO job_approval (queue_id, run_no, try_no, batch_id, batch_no, group_code, job_code, \
               status, rule_json, create_time, deadline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let values = [
        new.of.queue_id.0.into(),
        new.of.run_no.into(),
        new.of.try_no.into(),
        new.batch.0.0.into(),
        new.batch.1.as_str().into(),
        new.group.as_str().into(),
        new.job.as_str().into(),
        ApprovalStatus::Waiting.as_str().into(),
        serde_json::to_string(new.rule)?.into(),
        now.to_utc().into(),
        new.deadline.to_utc().into(),
    ];
    let id = tx.insert_id(sql, "approval_id", &values).await.context("write job_approval")?;
    Ok(ApprovalId(id))
}

/// The approval that an attempt has requested.
pub async fn of_try(tx: &mut Tx, of: AskingTry) -> Result<Option<Approval>> {
    let sql =
        format!("SELECT {COLUMNS} {FROM} WHERE a.queue_id = ? AND a.run_no = ? AND a.try_no = ?");
    let values = [of.queue_id.0.into(), of.run_no.into(), of.try_no.into()];
    Ok(read_approvals(tx, &sql, &values).await?.pop())
}

/// The newest approval of a job of a batch.
pub async fn latest(tx: &mut Tx, queue_id: QueueId) -> Result<Option<Approval>> {
    let sql =
        format!("SELECT {COLUMNS} {FROM} WHERE a.queue_id = ? ORDER BY a.approval_id DESC LIMIT 1");
    Ok(read_approvals(tx, &sql, &[queue_id.0.into()]).await?.pop())
}

pub async fn get(tx: &mut Tx, id: ApprovalId) -> Result<Approval> {
    let sql = format!("SELECT {COLUMNS} {FROM} WHERE a.approval_id = ?");
    let found = read_approvals(tx, &sql, &[id.0.into()]).await?.pop();
    found.with_context(|| format!("approval {} is gone from job_approval", id.0))
}

/// Those of these approvals that are no longer pending.
pub async fn ended(tx: &mut Tx, ids: &[ApprovalId]) -> Result<Vec<ApprovalId>> {
    let keys: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let sql = "SELECT approval_id FROM job_approval WHERE status <> 'WAITING' AND approval_id";
    let rows = tx.fetch_in(sql, &keys, "").await.context("look for decisions")?;
    rows.iter().map(|row| Ok(ApprovalId(row.get_int("approval_id")?))).collect()
}

/// Stores a decision; `false` when the approval is no longer pending, has expired, or its job is
/// being stopped or has ended.
pub async fn decide(
    tx: &mut Tx,
    id: ApprovalId,
    verdict: ApprovalVerdict,
    comment: Option<&str>,
    by: &Operator,
    now: Millis,
) -> Result<bool> {
    let sql = "UPDATE job_approval SET status = ?, decided_by = ?, decided_from = ?, decision_comment = ?, \
               end_time = ? WHERE approval_id = ? AND status = 'WAITING' AND deadline > ? \
               AND EXISTS (SELECT 1 FROM job_queue q WHERE q.queue_id = job_approval.queue_id \
               AND q.run_no = job_approval.run_no \
               AND q.status IN ('PENDING', 'HELD', 'QUEUED', 'RUNNING', 'RETRY_WAIT'))";
    let values = [
        verdict.status().as_str().into(),
        by.actor.as_str().into(),
        by.host.as_str().into(),
        comment.into(),
        now.to_utc().into(),
        id.0.into(),
        now.to_utc().into(),
    ];
    Ok(tx.execute(sql, &values).await.context("write a decision")? == 1)
}

/// Ends an undecided approval; `false` when it was decided.
pub async fn close(tx: &mut Tx, id: ApprovalId, to: ApprovalStatus, now: Millis) -> Result<bool> {
    let sql = "UPDATE job_approval SET status = ?, end_time = ? \
               WHERE approval_id = ? AND status = 'WAITING'";
    let values = [to.as_str().into(), now.to_utc().into(), id.0.into()];
    Ok(tx.execute(sql, &values).await.context("end an approval")? == 1)
}

/// A filter for approvals.
#[derive(Clone, Debug, Default)]
pub struct ApprovalFilter {
    /// Only those that can be decided now.
    pub is_waiting: bool,
    pub group: Option<GroupCode>,
    pub batch_no: Option<BatchNo>,
}

/// Approvals of visible groups, newest first, with keys below `before`.
pub async fn list_page(
    tx: &mut Tx,
    filter: &ApprovalFilter,
    seen: Option<&BTreeSet<GroupCode>>,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<Approval>> {
    let (among, mut values) = among("a.group_code", seen);
    let mut wheres = format!("1 = 1{among}");
    if filter.is_waiting {
        wheres.push_str(&format!(
            " AND a.status = 'WAITING' AND q.run_no = a.run_no AND q.status IN ({OPEN})"
        ));
    }
    let mut also = |condition: &str, value: SqlValue| {
        wheres.push_str(condition);
        values.push(value);
    };
    if let Some(group) = &filter.group {
        also(" AND a.group_code = ?", group.as_str().into());
    }
    if let Some(batch_no) = &filter.batch_no {
        also(" AND a.batch_no = ?", batch_no.as_str().into());
    }
    if let Some(before) = before {
        also(" AND a.approval_id < ?", before.into());
    }
    values.push(limit.into());
    let sql = format!("SELECT {COLUMNS} {FROM} WHERE {wheres} ORDER BY a.approval_id DESC LIMIT ?");
    read_approvals(tx, &sql, &values).await
}

/// The people who started a batch: who opened it, who fired its schedule by hand or by an event,
/// and who reran jobs of it; and the same of its parent batches.
pub async fn starters(tx: &mut Tx, id: BatchId) -> Result<Vec<String>> {
    let (mut names, mut next) = (BTreeSet::new(), Some(id));
    while let Some(id) = next {
        let key = [id.0.into()];
        for sql in [
            "SELECT started_by AS name FROM job_batch WHERE batch_id = ?",
            "SELECT DISTINCT actor AS name FROM audit_log WHERE batch_id = ? \
             AND action IN ('rerun', 'start-now')",
            // The audit record and the firing are written in one transaction, with the same time.
            "SELECT DISTINCT l.actor AS name FROM job_batch b \
             JOIN job_firing f ON f.firing_id = b.firing_id \
             JOIN audit_log l ON l.create_time = f.create_time \
             WHERE b.batch_id = ? AND l.action IN ('schedule fire-now', 'event send')",
        ] {
            for row in tx.fetch_all(sql, &key).await.context("look who started a batch")? {
                names.insert(row.get_text("name")?);
            }
        }
        next = match batch::parent_of(tx, id).await? {
            Some(row) => Some(batch::of_entry(tx, row).await?.batch_id),
            None => None,
        };
    }
    Ok(names.into_iter().collect())
}

async fn read_approvals(tx: &mut Tx, sql: &str, values: &[SqlValue]) -> Result<Vec<Approval>> {
    let rows = tx.fetch_all(sql, values).await.context("read job_approval")?;
    rows.iter().map(approval).collect()
}

fn approval(row: &Row) -> Result<Approval> {
    let word = row.get_text("status")?;
    let stored = ApprovalStatus::parse(&word)
        .with_context(|| format!("job_approval.status holds {word:?}, which is no status"))?;
    let of = AskingTry {
        queue_id: QueueId(row.get_int("queue_id")?),
        run_no: row.get_int("run_no")?,
        try_no: row.get_int("try_no")?,
    };
    let job_status = row.opt_text("job_status")?;
    let job_status = job_status.as_deref().and_then(QueueStatus::parse);
    let has_ended = job_status.is_none_or(QueueStatus::is_final)
        || row.opt_int("job_run_no")? != Some(of.run_no);
    let status = match stored {
        ApprovalStatus::Waiting if has_ended => ApprovalStatus::Withdrawn,
        stored => stored,
    };
    let decision = ApprovalDecision {
        status,
        by: row.opt_text("decided_by")?,
        comment: row.opt_text("decision_comment")?,
        at: row.opt_time("end_time")?.map(Millis::from),
    };
    Ok(Approval {
        id: ApprovalId(row.get_int("approval_id")?),
        of,
        batch_id: BatchId(row.get_int("batch_id")?),
        batch_no: BatchNo::parse(&row.get_text("batch_no")?)?,
        group: GroupCode::parse(&row.get_text("group_code")?)?,
        job: JobCode::parse(&row.get_text("job_code")?)?,
        rule: serde_json::from_str(&row.get_text("rule_json")?)
            .context("read the rule of an approval")?,
        asked: Millis::from(row.get_time("create_time")?),
        deadline: Millis::from(row.get_time("deadline")?),
        decision,
        decided_from: row.opt_text("decided_from")?,
    })
}
