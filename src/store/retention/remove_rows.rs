//! Removes rows: children before parents, by their keys, up to the limit of the step.
//!
//! A batch is marked first (`remove_time`), in a transaction of its own; from then on it cannot be
//! used. Rows left over by a step, or by a crash, are found by the mark in the next step.

use super::{Aged, ByTable, Candidate, LeftTables, RetentionQuery, placed};
use crate::db::{Row, SqlValue};
use crate::domain::batch::BatchStatus;
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// Rows of `job_queue` handled together.
const ROWS: u64 = 256;

/// Marks those of these batches that are unchanged: not revised, reopened or owned since. Returns
/// those that were marked.
pub async fn mark_batches(tx: &mut Tx, seen: &[Candidate], now: Millis) -> Result<Vec<BatchId>> {
    let ids: Vec<i64> = seen.iter().map(|c| c.batch_id.0).collect();
    let lock = tx.dialect().for_update_of_free();
    let sql = "SELECT batch_id, status, revision, end_time FROM job_batch \
               WHERE owner IS NULL AND remove_time IS NULL AND batch_id";
    let mut marked = Vec::new();
    for row in lock_in(tx, sql, &ids, lock).await.context("lock old batches")? {
        let id = BatchId(row.get_int("batch_id")?);
        let Some(was) = seen.iter().find(|c| c.batch_id == id) else { continue };
        let ended = row.opt_time("end_time")?.map(Millis::from);
        let is_same = row.get_text("status")? == was.status.as_str()
            && row.get_int("revision")? == was.revision
            && ended == Some(was.ended);
        marked.extend(is_same.then_some(id));
    }
    let ids: Vec<i64> = marked.iter().map(|id| id.0).collect();
    let sql = "UPDATE job_batch SET remove_time = ?, update_time = ? WHERE batch_id";
    let values = [now.to_utc().into(), now.to_utc().into()];
    tx.execute_in(sql, &values, &ids, "", &[]).await.context("mark old batches")?;
    Ok(marked)
}

async fn lock_in(tx: &mut Tx, sql: &str, ids: &[i64], lock: &str) -> Result<Vec<Row>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let values: Vec<SqlValue> = ids.iter().map(|id| SqlValue::from(*id)).collect();
    let places = vec!["?"; ids.len()].join(", ");
    Ok(tx.fetch_all(&format!("{sql} IN ({places}){lock}"), &values).await?)
}

/// Marked batches, in the order of marking; at most `limit`.
pub async fn marked(tx: &mut Tx, limit: u32) -> Result<Vec<BatchId>> {
    let rows = tx.fetch_all(&RetentionQuery::Marked.statement(1), &[limit.into()]).await;
    let rows = rows.context("look for batches that are being removed")?;
    rows.iter().map(|row| Ok(BatchId(row.get_int("batch_id")?))).collect()
}

/// The result of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Number of removed rows by table.
    pub rows: ByTable,
    /// Number of rows that the step may still remove.
    pub room: u64,
}

impl Dropped {
    /// Nothing removed yet.
    pub fn new(room: u64) -> Self {
        Self { rows: ByTable::new(), room }
    }

    fn add_rows(&mut self, table: &'static str, rows: u64) {
        *self.rows.entry(table).or_default() += rows;
        self.room = self.room.saturating_sub(rows);
    }

    /// Number of removed rows.
    pub fn total(&self) -> u64 {
        self.rows.values().sum()
    }
}

/// Removes rows of marked batches, up to the limit; the batches themselves last, once nothing is
/// left of them. Returns how many of the batches, from the first on, are removed.
pub async fn finish_some(
    tx: &mut Tx,
    batches: &[BatchId],
    left: LeftTables,
    dropped: &mut Dropped,
) -> Result<usize> {
    let ids: Vec<i64> = batches.iter().map(|id| id.0).collect();
    while dropped.room > 0 {
        let rows = rows_of(tx, &ids, dropped.room.min(ROWS)).await?;
        if rows.is_empty() {
            return finish_heads(tx, &ids, dropped).await;
        }
        if !left.lines && !remove_lines(tx, &rows, dropped).await? {
            return Ok(0);
        }
        if !left.logs && !remove_logs(tx, &rows, dropped).await? {
            return Ok(0);
        }
        if !remove_output_values(tx, &rows, dropped).await? {
            return Ok(0);
        }
        let most = usize::try_from(dropped.room)?.min(rows.len());
        remove(tx, "job_queue", "queue_id", &rows[..most], dropped).await?;
    }
    Ok(0)
}

/// Keys of rows of batches, unordered.
pub(super) async fn rows_of(tx: &mut Tx, batches: &[i64], limit: u64) -> Result<Vec<i64>> {
    let mut found = Vec::new();
    for (sql, values) in placed(RetentionQuery::Rows, batches, &[u32::try_from(limit)?.into()]) {
        let rows = tx.fetch_all(&sql, &values).await.context("look for rows of old batches")?;
        for row in rows {
            found.push(row.get_int("queue_id")?);
        }
    }
    found.truncate(usize::try_from(limit)?);
    Ok(found)
}

/// Removes rows by their keys.
async fn remove(
    tx: &mut Tx,
    table: &'static str,
    key: &str,
    ids: &[i64],
    dropped: &mut Dropped,
) -> Result<()> {
    for ids in ids.chunks(256) {
        let sql = format!("DELETE FROM {table} WHERE {key}");
        let gone = tx.execute_in(&sql, &[], ids, "", &[]).await;
        dropped.add_rows(table, gone.with_context(|| format!("remove old rows of {table}"))?);
    }
    Ok(())
}

/// Removes the stored values of these rows; `false` when the limit was reached. A chunk is a row of
/// half a MiB, so they are removed by their keys, up to the limit.
async fn remove_output_values(tx: &mut Tx, rows: &[i64], dropped: &mut Dropped) -> Result<bool> {
    let room = u32::try_from(dropped.room)?;
    for (sql, values) in placed(RetentionQuery::OutputValues, rows, &[room.into()]) {
        for row in tx.fetch_all(&sql, &values).await.context("look for old values of jobs")? {
            if dropped.room == 0 {
                return Ok(false);
            }
            let sql = "DELETE FROM job_output_value \
                       WHERE queue_id = ? AND attempt = ? AND value_no = ? AND chunk_no = ?";
            let key = ["queue_id", "attempt", "value_no", "chunk_no"].map(|name| row.get_int(name));
            let key = key.into_iter().map(|n| n.map(Into::into)).collect::<Result<Vec<_>, _>>()?;
            let gone = tx.execute(sql, &key).await.context("remove an old value of a job")?;
            dropped.add_rows("job_output_value", gone);
        }
    }
    Ok(dropped.room > 0)
}

/// Removes the logged changes of these rows; `false` when the limit was reached.
async fn remove_logs(tx: &mut Tx, rows: &[i64], dropped: &mut Dropped) -> Result<bool> {
    let room = dropped.room;
    let mut keys = Vec::new();
    for (sql, values) in placed(RetentionQuery::Logs, rows, &[u32::try_from(room)?.into()]) {
        for row in tx.fetch_all(&sql, &values).await.context("look for old logs")? {
            keys.push(row.get_int("log_id")?);
        }
    }
    keys.truncate(usize::try_from(room)?);
    remove(tx, "job_execution_logs", "log_id", &keys, dropped).await?;
    Ok(dropped.room > 0)
}

/// Removes the log lines of these rows; `false` when the limit was reached.
async fn remove_lines(tx: &mut Tx, rows: &[i64], dropped: &mut Dropped) -> Result<bool> {
    let mut having = Vec::new();
    let mut found = 0;
    for (sql, values) in
        placed(RetentionQuery::Lines, rows, &[u32::try_from(dropped.room + 1)?.into()])
    {
        for row in tx.fetch_all(&sql, &values).await.context("count old lines")? {
            having.push(row.get_int("queue_id")?);
            found += u64::try_from(row.get_int("n")?)?;
        }
    }
    if found <= dropped.room {
        remove(tx, "job_log_line", "queue_id", &having, dropped).await?;
        return Ok(dropped.room > 0);
    }
    // More than the limit: row by row, the last of them partly.
    for id in rows {
        if !remove_lines_of_one(tx, *id, dropped).await? {
            return Ok(false);
        }
    }
    Ok(dropped.room > 0)
}

async fn remove_lines_of_one(tx: &mut Tx, id: i64, dropped: &mut Dropped) -> Result<bool> {
    if dropped.room == 0 {
        return Ok(false);
    }
    let values = [id.into(), u32::try_from(dropped.room + 1)?.into()];
    let row = tx
        .fetch_optional(&RetentionQuery::LinesOfOne.statement(1), &values)
        .await
        .context("count lines")?;
    let n = u64::try_from(row.map(|row| row.get_int("n")).transpose()?.unwrap_or(0))?;
    if n <= dropped.room {
        remove(tx, "job_log_line", "queue_id", &[id], dropped).await?;
        return Ok(true);
    }
    let values = [id.into(), u32::try_from(dropped.room - 1)?.into()];
    let last = tx
        .fetch_optional(&RetentionQuery::LinesUpTo.statement(1), &values)
        .await
        .context("find a line")?;
    if let Some(last) = last {
        let (attempt, line) = (last.get_int("attempt")?, last.get_int("line_no")?);
        let gone = tx
            .execute(
                "DELETE FROM job_log_line WHERE queue_id = ? \
                 AND (attempt < ? OR (attempt = ? AND line_no <= ?))",
                &[id.into(), attempt.into(), attempt.into(), line.into()],
            )
            .await;
        dropped.add_rows("job_log_line", gone.context("remove old lines")?);
    }
    Ok(false)
}

/// Removes the dependent rows of batches without queue rows, and then the batches.
async fn finish_heads(tx: &mut Tx, ids: &[i64], dropped: &mut Dropped) -> Result<usize> {
    let room = u32::try_from(dropped.room)?;
    let mut mails = Vec::new();
    for (sql, values) in placed(RetentionQuery::MailsOf, ids, &[room.into()]) {
        for row in tx.fetch_all(&sql, &values).await.context("look for old mails")? {
            mails.push(row.get_int("id")?);
        }
    }
    mails.truncate(usize::try_from(room)?);
    remove(tx, "email_notifications", "id", &mails, dropped).await?;
    for (sql, values) in placed(RetentionQuery::Reports, ids, &[room.into()]) {
        for row in tx.fetch_all(&sql, &values).await.context("look for old reports")? {
            if dropped.room == 0 {
                return Ok(0);
            }
            let sql = "DELETE FROM job_report WHERE queue_id = ? AND attempt = ?";
            let key = [row.get_int("queue_id")?.into(), row.get_int("attempt")?.into()];
            dropped.add_rows("job_report", tx.execute(sql, &key).await.context("remove a report")?);
        }
    }
    if !remove_runs(tx, ids, dropped).await? || !remove_approvals(tx, ids, dropped).await? {
        return Ok(0);
    }
    if !remove_failure_marks(tx, ids, dropped).await? {
        return Ok(0);
    }
    let most = usize::try_from(dropped.room)?.min(ids.len());
    let sql = "DELETE FROM job_batch WHERE remove_time IS NOT NULL AND batch_id";
    let gone = tx.execute_in(sql, &[], &ids[..most], "", &[]).await;
    dropped.add_rows("job_batch", gone.context("remove old batches")?);
    Ok(most)
}

/// Removes the executor runs of these batches; `false` when the limit was reached.
async fn remove_runs(tx: &mut Tx, ids: &[i64], dropped: &mut Dropped) -> Result<bool> {
    let room = u32::try_from(dropped.room)?;
    let mut runs = Vec::new();
    for (sql, values) in placed(RetentionQuery::Runs, ids, &[room.into()]) {
        for row in tx.fetch_all(&sql, &values).await.context("look for old runs of executors")? {
            runs.push(row.get_int("log_id")?);
        }
    }
    runs.truncate(usize::try_from(room)?);
    remove(tx, "executor_run", "log_id", &runs, dropped).await?;
    Ok(dropped.room > 0)
}

/// Removes the approvals of these batches; `false` when the limit was reached.
async fn remove_approvals(tx: &mut Tx, ids: &[i64], dropped: &mut Dropped) -> Result<bool> {
    let room = u32::try_from(dropped.room)?;
    let mut keys = Vec::new();
    for (sql, values) in placed(RetentionQuery::Approvals, ids, &[room.into()]) {
        for row in tx.fetch_all(&sql, &values).await.context("look for old approvals")? {
            keys.push(row.get_int("approval_id")?);
        }
    }
    keys.truncate(usize::try_from(room)?);
    remove(tx, "job_approval", "approval_id", &keys, dropped).await?;
    Ok(dropped.room > 0)
}

/// Removes the marks of failures of these batches; `false` when the limit was reached.
async fn remove_failure_marks(tx: &mut Tx, ids: &[i64], dropped: &mut Dropped) -> Result<bool> {
    let room = u32::try_from(dropped.room)?;
    let mut keys = Vec::new();
    for (sql, values) in placed(RetentionQuery::FailureMarks, ids, &[room.into()]) {
        for row in tx.fetch_all(&sql, &values).await.context("look for old marks of failures")? {
            keys.push(row.get_int("queue_id")?);
        }
    }
    keys.truncate(usize::try_from(room)?);
    remove(tx, "failure_mark", "queue_id", &keys, dropped).await?;
    Ok(dropped.room > 0)
}

/// Locks those of these batches until the end of the transaction that still have ended before
/// `cut`; the others were reopened.
pub async fn still_over(tx: &mut Tx, batches: &[BatchId], cut: Millis) -> Result<Vec<BatchId>> {
    let ids: Vec<i64> = batches.iter().map(|id| id.0).collect();
    let lock = tx.dialect().for_update_of_free();
    let sql = "SELECT batch_id, status, end_time FROM job_batch \
               WHERE owner IS NULL AND remove_time IS NULL AND batch_id";
    let mut over = Vec::new();
    for row in lock_in(tx, sql, &ids, lock).await.context("lock old batches")? {
        let is_final =
            BatchStatus::parse(&row.get_text("status")?).is_some_and(BatchStatus::is_final);
        let ended = row.opt_time("end_time")?.map(Millis::from);
        let is_over = is_final && ended.is_some_and(|at| at < cut);
        over.extend(is_over.then_some(BatchId(row.get_int("batch_id")?)));
    }
    Ok(batches.iter().filter(|id| over.contains(id)).copied().collect())
}

/// Removes log lines of a kept batch, up to the limit, of the rows after `after`. Returns the row
/// to continue after; `None` when nothing is left.
pub async fn remove_lines_of(
    tx: &mut Tx,
    batch: BatchId,
    mut after: i64,
    dropped: &mut Dropped,
) -> Result<Option<i64>> {
    loop {
        let values = [batch.0.into(), after.into(), u32::try_from(ROWS)?.into()];
        let rows = tx.fetch_all(&RetentionQuery::RowsAfter.statement(1), &values).await;
        let rows = rows.context("look for rows of an old batch")?;
        let rows: Vec<i64> =
            rows.iter().map(|row| Ok(row.get_int("queue_id")?)).collect::<Result<_>>()?;
        let Some(last) = rows.last().copied() else { return Ok(None) };
        if !remove_lines(tx, &rows, dropped).await? {
            return Ok(Some(after));
        }
        after = last;
    }
}

/// Stores that the log lines of a batch were removed.
pub async fn note_lines(tx: &mut Tx, batch: BatchId, now: Millis) -> Result<()> {
    let sql = "UPDATE job_batch SET lines_time = ? WHERE batch_id = ?";
    let done = tx.execute(sql, &[now.to_utc().into(), batch.0.into()]).await;
    done.context("note that lines are gone")?;
    Ok(())
}

/// Removes rows with an age limit of their own. A backfill is removed when its batches fit into the
/// step; before that as many of them as fit are removed, the last ones first.
pub async fn remove_keys(
    tx: &mut Tx,
    kind: Aged,
    keys: &[(i64, u64)],
    dropped: &mut Dropped,
) -> Result<()> {
    let ids: Vec<i64> = keys.iter().map(|(key, _)| *key).collect();
    match kind {
        Aged::Firings => remove(tx, "job_firing", "firing_id", &ids, dropped).await,
        Aged::Mails => remove(tx, "email_notifications", "id", &ids, dropped).await,
        Aged::Audit => remove(tx, "audit_log", "audit_id", &ids, dropped).await,
        Aged::Backfills => {
            for (id, batches) in keys {
                let stay = batches.saturating_sub(dropped.room);
                let sql = "DELETE FROM backfill_batch WHERE backfill_id = ? AND place >= ?";
                let gone = tx.execute(sql, &[(*id).into(), i64::try_from(stay)?.into()]).await;
                dropped.add_rows("backfill_batch", gone.context("remove batches of a backfill")?);
                if dropped.room == 0 {
                    return Ok(());
                }
                remove(tx, "backfill", "backfill_id", &[*id], dropped).await?;
            }
            Ok(())
        }
    }
}
