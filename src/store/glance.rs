//! Overviews of many batches: results per day, failures, and the jobs of several batches.

use crate::db::{Row, SqlValue};
use crate::domain::batch::BatchStatus;
use crate::domain::id::{BatchId, GroupCode, JobCode, QueueId};
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::schedule::firing::{FiringStatus, TriggerId};
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::queue::{COLUMNS, entry};
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// Number of batches opened in each span of time, by their present state. `begins` are the starts
/// of the spans, in order; the last span has no end. `groups` of `None` means all.
pub async fn spans(
    tx: &mut Tx,
    begins: &[Millis],
    groups: Option<&[GroupCode]>,
) -> Result<Vec<BTreeMap<BatchStatus, u64>>> {
    let mut found = vec![BTreeMap::new(); begins.len()];
    let Some(first) = begins.first() else { return Ok(found) };
    // The latest first: the first condition that holds decides.
    let cases: Vec<String> =
        (0..begins.len()).rev().map(|i| format!("WHEN create_time >= ? THEN {i}")).collect();
    let mut values: Vec<SqlValue> = begins.iter().rev().map(|at| at.to_utc().into()).collect();
    values.push(first.to_utc().into());
    let seen = match groups {
        None => String::new(),
        Some([]) => return Ok(found),
        Some(codes) => {
            values.extend(codes.iter().map(|code| SqlValue::from(code.as_str())));
            format!("AND group_code IN ({})", vec!["?"; codes.len()].join(", "))
        }
    };
    let span = format!("CASE {} END", cases.join(" "));
    let sql = format!(
        "SELECT span, status, COUNT(*) AS n FROM (SELECT {span} AS span, status FROM job_batch \
         WHERE create_time >= ? {seen}) s GROUP BY span, status"
    );
    for row in tx.fetch_all(&sql, &values).await.context("count the batches of the last days")? {
        let word = row.get_text("status")?;
        let status = BatchStatus::parse(&word)
            .with_context(|| format!("job_batch.status holds {word:?}, which is no state"))?;
        if let Some(of) = found.get_mut(usize::try_from(row.get_int("span")?)?) {
            of.insert(status, u64::try_from(row.get_int("n")?)?);
        }
    }
    Ok(found)
}

/// The rows of these batches that failed by themselves.
pub async fn failures(tx: &mut Tx, batches: &[BatchId]) -> Result<Vec<QueueEntry>> {
    let ids: Vec<i64> = batches.iter().map(|id| id.0).collect();
    let sql = format!("SELECT {COLUMNS} FROM job_queue WHERE batch_id");
    let bad =
        "AND status IN ('FAILED', 'TIMEOUT', 'UNKNOWN') ORDER BY batch_id DESC, queue_id LIMIT 200";
    let rows = tx.fetch_in(&sql, &ids, bad).await.context("look what failed")?;
    rows.iter().map(entry).collect()
}

/// The state of a job in a batch, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobCell {
    pub batch: BatchId,
    pub job_code: JobCode,
    pub status: QueueStatus,
    /// The attempt number.
    pub attempt: u32,
    /// Duration of the last attempt in milliseconds.
    pub took_ms: Option<i64>,
}

/// The states of all jobs of these batches, each batch in its order.
pub async fn cells(tx: &mut Tx, batches: &[BatchId]) -> Result<Vec<JobCell>> {
    let ids: Vec<i64> = batches.iter().map(|id| id.0).collect();
    let sql = "SELECT batch_id, job_code, status, skip_kind, attempt, start_time, end_time FROM job_queue \
               WHERE batch_id";
    let rows = tx.fetch_in(sql, &ids, "ORDER BY batch_id, queue_id").await;
    rows.context("read how jobs went")?.iter().map(cell_of_row).collect()
}

fn cell_of_row(row: &Row) -> Result<JobCell> {
    let word = row.get_text("status")?;
    let status = QueueStatus::stored(&word, row.opt_text("skip_kind")?.as_deref())
        .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))?;
    let times = row.opt_time("start_time")?.zip(row.opt_time("end_time")?);
    Ok(JobCell {
        batch: BatchId(row.get_int("batch_id")?),
        job_code: JobCode::parse(&row.get_text("job_code")?)?,
        status,
        attempt: u32::try_from(row.get_int("attempt")?)?,
        took_ms: times.map(|(start, end)| Millis::from(end).since(Millis::from(start))),
    })
}

/// The attempts of a batch's jobs with more than one: row, attempt, start, end and result.
pub async fn tries(
    tx: &mut Tx,
    batch: BatchId,
) -> Result<Vec<(QueueId, u32, Millis, Millis, QueueStatus)>> {
    let sql = "SELECT l.queue_id AS queue_id, l.attempt AS attempt, l.start_time AS start_time, \
               l.end_time AS end_time, l.status AS status FROM job_queue q \
               JOIN job_execution_logs l ON l.queue_id = q.queue_id \
               WHERE q.batch_id = ? AND q.attempt > 1 AND l.start_time IS NOT NULL \
               AND l.end_time IS NOT NULL ORDER BY l.log_id";
    let rows = tx.fetch_all(sql, &[batch.0.into()]).await.context("read the tries of a batch")?;
    let read = |row: &Row| {
        let word = row.get_text("status")?;
        let status = QueueStatus::parse(&word)
            .with_context(|| format!("job_execution_logs.status holds {word:?}"))?;
        let (start, end) = (row.get_time("start_time")?.into(), row.get_time("end_time")?.into());
        let attempt = u32::try_from(row.get_int("attempt")?)?;
        Ok((QueueId(row.get_int("queue_id")?), attempt, start, end, status))
    };
    rows.iter().map(read).collect()
}

/// The rows of a job in the last batches of its group, newest first; with the batch, also where it
/// has no row of the job. Starts before the batch `before`.
pub async fn list_runs(
    tx: &mut Tx,
    group: &GroupCode,
    job: &JobCode,
    before: Option<BatchId>,
    batches: u32,
) -> Result<Vec<(BatchId, Option<QueueEntry>)>> {
    let columns: Vec<String> = COLUMNS.split(", ").map(|c| format!("q.{c} AS {c}")).collect();
    let columns = columns.join(", ").replace("q.batch_id AS batch_id", "b.batch_id AS batch_id");
    let sql = format!(
        "SELECT {columns} FROM (SELECT batch_id, batch_no FROM job_batch WHERE group_code = ? \
         AND batch_id < ? ORDER BY batch_id DESC LIMIT ?) b LEFT JOIN job_queue q \
         ON q.batch_id = b.batch_id AND q.job_code = ? \
         ORDER BY b.batch_id DESC"
    );
    let before = before.map_or(i64::MAX, |id| id.0);
    let values = [group.as_str().into(), before.into(), batches.into(), job.as_str().into()];
    let rows = tx.fetch_all(&sql, &values).await.context("read how a job went")?;
    let read = |row: &Row| {
        let there = row.opt_int("queue_id")?.map(|_| entry(row)).transpose()?;
        Ok((BatchId(row.get_int("batch_id")?), there))
    };
    rows.iter().map(read).collect()
}

/// The earliest pending firings: time and schedule.
pub async fn pending_first(tx: &mut Tx, limit: u32) -> Result<Vec<(Millis, TriggerId)>> {
    let sql = "SELECT trigger_id, fire_at FROM job_firing WHERE status = ? \
               ORDER BY fire_at, firing_id LIMIT ?";
    let rows = tx.fetch_all(sql, &[FiringStatus::Pending.as_str().into(), limit.into()]).await;
    let read =
        |row: &Row| Ok((row.get_time("fire_at")?.into(), TriggerId(row.get_int("trigger_id")?)));
    rows.context("look for the next firings")?.iter().map(read).collect()
}
