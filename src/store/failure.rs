//! `failure_mark`: failed jobs, and what people said about them. A mark belongs to one attempt: when
//! the job is run again and fails again, that is another failure.

use crate::db::Row;
use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::run_facts::FactScope;
use anyhow::{Context as _, Result};
use std::collections::HashMap;

/// What people said about a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureMark {
    /// The attempt that failed.
    pub attempt: u32,
    /// Who looks after it.
    pub assignee: Option<String>,
    pub note: Option<String>,
    /// Who acknowledged it, and when.
    pub acknowledged: Option<(String, Millis)>,
}

/// A job of a batch that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedJob {
    pub queue_id: QueueId,
    pub batch: BatchId,
    pub group: GroupCode,
    pub batch_no: BatchNo,
    pub job: JobCode,
    pub status: QueueStatus,
    /// The attempt number.
    pub attempt: u32,
    pub error: Option<String>,
    pub ended: Option<Millis>,
    /// The mark of this attempt.
    pub mark: Option<FailureMark>,
}

const MARK: &str = "m.attempt AS mark_attempt, m.assignee AS assignee, m.note AS note, \
                    m.acknowledged_by AS acknowledged_by, m.acknowledge_time AS acknowledge_time";

/// The jobs that failed by themselves, latest batch first, at most `most`.
pub async fn list_failed(tx: &mut Tx, scope: FactScope<'_>, most: u32) -> Result<Vec<FailedJob>> {
    let (chosen, mut values) = scope.condition();
    values.push(most.into());
    let sql = format!(
        "SELECT q.queue_id AS queue_id, q.batch_id AS batch_id, b.group_code AS group_code, \
         b.batch_no AS batch_no, q.job_code AS job_code, q.status AS status, q.attempt AS attempt, \
         q.error_message AS error_message, q.end_time AS end_time, {MARK} \
         FROM job_batch b JOIN job_queue q ON q.batch_id = b.batch_id \
         LEFT JOIN failure_mark m ON m.queue_id = q.queue_id AND m.attempt = q.attempt \
         WHERE {chosen} AND q.status IN ('FAILED', 'TIMEOUT', 'UNKNOWN') \
         ORDER BY q.batch_id DESC, q.queue_id LIMIT ?"
    );
    let rows = tx.fetch_all(&sql, &values).await.context("look which jobs failed")?;
    rows.iter().map(failed_job).collect()
}

fn failed_job(row: &Row) -> Result<FailedJob> {
    let word = row.get_text("status")?;
    let status = QueueStatus::parse(&word)
        .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))?;
    Ok(FailedJob {
        queue_id: QueueId(row.get_int("queue_id")?),
        batch: BatchId(row.get_int("batch_id")?),
        group: GroupCode::parse(&row.get_text("group_code")?)?,
        batch_no: BatchNo::parse(&row.get_text("batch_no")?)?,
        job: JobCode::parse(&row.get_text("job_code")?)?,
        status,
        attempt: u32::try_from(row.get_int("attempt")?)?,
        error: row.opt_text("error_message")?,
        ended: row.opt_time("end_time")?.map(Into::into),
        mark: mark(row)?,
    })
}

fn mark(row: &Row) -> Result<Option<FailureMark>> {
    let Some(attempt) = row.opt_int("mark_attempt")? else { return Ok(None) };
    let by = row.opt_text("acknowledged_by")?;
    let at = row.opt_time("acknowledge_time")?.map(Millis::from);
    Ok(Some(FailureMark {
        attempt: u32::try_from(attempt)?,
        assignee: row.opt_text("assignee")?,
        note: row.opt_text("note")?,
        acknowledged: by.zip(at),
    }))
}

/// The marks of these rows, whatever attempt they are about.
pub async fn marks_of(tx: &mut Tx, rows: &[QueueId]) -> Result<HashMap<QueueId, FailureMark>> {
    let ids: Vec<i64> = rows.iter().map(|id| id.0).collect();
    let sql = format!("SELECT m.queue_id AS queue_id, {MARK} FROM failure_mark m WHERE m.queue_id");
    let found = tx.fetch_in(&sql, &ids, "").await.context("read failure_mark")?;
    let mut marks = HashMap::new();
    for row in &found {
        if let Some(mark) = mark(row)? {
            marks.insert(QueueId(row.get_int("queue_id")?), mark);
        }
    }
    Ok(marks)
}

/// Stores what was said about a failure, in place of what was said before.
pub async fn set_mark(
    tx: &mut Tx,
    row: (QueueId, BatchId),
    mark: &FailureMark,
    now: Millis,
) -> Result<()> {
    let (by, at) = match &mark.acknowledged {
        Some((by, at)) => (Some(by.as_str()), Some(at.to_utc())),
        None => (None, None),
    };
    let values = [
        row.1.0.into(),
        mark.attempt.into(),
        mark.assignee.as_deref().into(),
        mark.note.as_deref().into(),
        by.into(),
        at.into(),
        now.to_utc().into(),
        row.0.0.into(),
    ];
    let again = "UPDATE failure_mark SET batch_id = ?, attempt = ?, assignee = ?, note = ?, \
                 acknowledged_by = ?, acknowledge_time = ?, update_time = ? WHERE queue_id = ?";
    let first = "INSERT INTO failure_mark (batch_id, attempt, assignee, note, acknowledged_by, \
                 acknowledge_time, update_time, queue_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    if tx.execute(again, &values).await.context("change failure_mark")? == 0 {
        tx.execute(first, &values).await.context("write failure_mark")?;
    }
    Ok(())
}
