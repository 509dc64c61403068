//! `job_execution_logs`: one row per change of status; `job_log_line`: the output of bodies.

#[cfg(debug_assertions)]
use crate::db::Error;
use crate::db::single_round_trip::CountedStatement;
use crate::db::{Row, SqlValue};
use crate::domain::forecast::lateness::Again;
use crate::domain::id::{BatchId, NodeId, QueueId};
use crate::domain::job::outcome::Stream;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};
use std::collections::HashMap;

/// One change of status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionLog {
    pub queue_id: QueueId,
    /// The new state.
    pub status: QueueStatus,
    /// Start of the attempt.
    pub start_time: Option<Millis>,
    /// End of the attempt.
    pub end_time: Option<Millis>,
    pub error_message: Option<String>,
    /// Whether a notification about it was sent: written by `outbox::mark`.
    pub notified: bool,
    /// Retries so far in this run: 0 for the first attempt.
    pub try_count: u32,
    /// The attempt number, over all runs.
    pub attempt: u32,
    /// The process that made the change.
    pub owner: Option<NodeId>,
}

const COLUMNS: [&str; 11] = [
    "queue_id",
    "start_time",
    "end_time",
    "status",
    "error_message",
    "duration_ms",
    "notify_status",
    "retry_count",
    "attempt",
    "owner",
    "log_time",
];

const LINE_COLUMNS: [&str; 6] =
    ["queue_id", "attempt", "line_no", "stream", "line_text", "log_time"];

fn values(log: &ExecutionLog, now: Millis) -> Vec<SqlValue> {
    let duration_ms = log.start_time.zip(log.end_time).map(|(s, e)| e.since(s));
    vec![
        log.queue_id.0.into(),
        log.start_time.map(Millis::to_utc).into(),
        log.end_time.map(Millis::to_utc).into(),
        log.status.as_str().into(),
        log.error_message.as_deref().into(),
        duration_ms.into(),
        if log.notified { "NOTIFIED" } else { "UNNOTIFIED" }.into(),
        log.try_count.into(),
        log.attempt.into(),
        log.owner.as_ref().map(|o| o.0.as_str()).into(),
        now.to_utc().into(),
    ]
}

/// Appends rows, in order.
pub async fn append(tx: &mut Tx, logs: &[ExecutionLog], now: Millis) -> Result<()> {
    tx.run_statement(appended(logs, now)).await.context("write job_execution_logs").map(|_| ())
}

/// The statement of `append`.
pub fn appended(logs: &[ExecutionLog], now: Millis) -> CountedStatement {
    let rows = logs.iter().map(|log| values(log, now)).collect();
    CountedStatement::Insert { table: "job_execution_logs", columns: &COLUMNS, rows }
}

/// A row that a body writes itself, in its own transaction on this database: the statement and its
/// values.
pub fn append_within(log: &ExecutionLog, now: Millis) -> (String, Vec<SqlValue>) {
    let marks = ["?"; COLUMNS.len()].join(", ");
    let columns = COLUMNS.join(", ");
    (format!("INSERT INTO job_execution_logs ({columns}) VALUES ({marks})"), values(log, now))
}

/// A change of status that notifications report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedChange {
    pub queue_id: QueueId,
    pub attempt: u32,
    /// The new state.
    pub status: QueueStatus,
}

/// The key of the newest row for such a change.
pub async fn last_of(tx: &mut Tx, change: ReportedChange) -> Result<Option<i64>> {
    let sql = "SELECT MAX(log_id) AS log_id FROM job_execution_logs \
               WHERE queue_id = ? AND attempt = ? AND status = ?";
    let values = [change.queue_id.0.into(), change.attempt.into(), change.status.as_str().into()];
    let row = tx.fetch_optional(sql, &values).await.context("find the change that mails report")?;
    Ok(row.map(|row| row.opt_int("log_id")).transpose()?.flatten())
}

/// Marks these changes as notified.
pub async fn note_notified(tx: &mut Tx, log_ids: &[i64]) -> Result<()> {
    let set = "UPDATE job_execution_logs SET notify_status = 'NOTIFIED' WHERE log_id";
    let noted = tx.execute_in(set, &[], log_ids, "", &[]).await;
    noted.context("write job_execution_logs.notify_status").map(drop)
}

/// The first lines that Procession itself wrote to the logs of a job's attempts.
pub async fn system_lines(tx: &mut Tx, queue_id: QueueId) -> Result<Vec<(u32, String)>> {
    let sql = "SELECT attempt, line_text FROM job_log_line \
               WHERE queue_id = ? AND stream = 'system' AND line_no <= ? ORDER BY attempt, line_no";
    // Lines before the start are few; after it a script may print any number.
    let rows = tx.fetch_all(sql, &[queue_id.0.into(), 20_i64.into()]).await;
    let rows = rows.context("read what the logs of a job say first")?;
    rows.iter()
        .map(|row| Ok((u32::try_from(row.get_int("attempt")?)?, row.get_text("line_text")?)))
        .collect()
}

/// A stored change of status with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedChange {
    pub at: Millis,
    pub log: ExecutionLog,
}

/// Since when the held rows of a batch are held.
pub async fn held_since(tx: &mut Tx, batch: BatchId) -> Result<HashMap<QueueId, Millis>> {
    let held = QueueStatus::Held.as_str();
    let sql = "SELECT l.queue_id AS queue_id, l.status AS status, l.log_time AS log_time \
               FROM job_queue q JOIN job_execution_logs l ON l.queue_id = q.queue_id \
               WHERE q.batch_id = ? AND q.status = ? ORDER BY l.log_id";
    let rows = tx.fetch_all(sql, &[batch.0.into(), held.into()]).await;
    let mut found: HashMap<QueueId, Millis> = HashMap::new();
    for row in rows.context("read since when jobs are held")? {
        let id = QueueId(row.get_int("queue_id")?);
        // Of several holds the last one counts, from its first row on.
        if row.get_text("status")? == held {
            found.entry(id).or_insert(row.get_time("log_time")?.into());
        } else {
            found.remove(&id);
        }
    }
    Ok(found)
}

/// When rows of a batch were last rerun by an operator, and after what result.
pub async fn started_over(tx: &mut Tx, batch: BatchId) -> Result<HashMap<QueueId, Again>> {
    let sql = "SELECT l.queue_id AS queue_id, l.status AS status, l.log_time AS log_time \
               FROM job_queue q JOIN job_execution_logs l ON l.queue_id = q.queue_id \
               WHERE q.batch_id = ? AND q.run_no > 1 ORDER BY l.log_id";
    let rows = tx.fetch_all(sql, &[batch.0.into()]).await;
    let (mut last, mut found) = (HashMap::new(), HashMap::new());
    for row in rows.context("read when jobs were started over")? {
        let (id, word) = (QueueId(row.get_int("queue_id")?), row.get_text("status")?);
        let status = QueueStatus::parse(&word);
        if status == Some(QueueStatus::Pending) {
            let before = last.get(&id).copied().flatten();
            let was_bad = before.is_some_and(QueueStatus::blocks_children);
            found.insert(id, Again { since: row.get_time("log_time")?.into(), was_bad });
        }
        last.insert(id, status);
    }
    Ok(found)
}

/// The changes of one row, oldest first.
pub async fn of_entry(tx: &mut Tx, queue_id: QueueId) -> Result<Vec<LoggedChange>> {
    let rows = tx
        .fetch_all(
            "SELECT status, start_time, end_time, error_message, notify_status, retry_count, attempt, \
             owner, log_time FROM job_execution_logs WHERE queue_id = ? ORDER BY log_id",
            &[queue_id.0.into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let word = row.get_text("status")?;
            let status = QueueStatus::parse(&word)
                .with_context(|| format!("job_execution_logs.status holds {word:?}"))?;
            Ok(LoggedChange {
                at: row.get_time("log_time")?.into(),
                log: ExecutionLog {
                    queue_id,
                    status,
                    start_time: row.opt_time("start_time")?.map(Millis::from),
                    end_time: row.opt_time("end_time")?.map(Millis::from),
                    error_message: row.opt_text("error_message")?,
                    notified: row.get_text("notify_status")? == "NOTIFIED",
                    try_count: u32::try_from(row.get_int("retry_count")?)?,
                    attempt: u32::try_from(row.get_int("attempt")?)?,
                    owner: row.opt_text("owner")?.map(NodeId),
                },
            })
        })
        .collect()
}

/// A line of a body's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub queue_id: QueueId,
    /// The attempt number.
    pub attempt: u32,
    /// The line number within the attempt.
    pub line_no: u64,
    /// `stdout`, `stderr` or another stream.
    pub stream: String,
    pub text: String,
    pub at: Millis,
}

impl LogLine {
    /// Its place in the log.
    pub fn position(&self) -> LogPosition {
        LogPosition { attempt: self.attempt, line_no: self.line_no }
    }
}

/// A line about to be stored: its number within the start, when it came, from where, its text.
pub type NewLine = (u64, Millis, Stream, String);

/// Lines to be stored, with their row and attempt number.
pub type NewLines = (QueueId, u32, Vec<NewLine>);

/// Appends lines of one attempt.
pub async fn append_lines(
    tx: &mut Tx,
    queue_id: QueueId,
    attempt: u32,
    lines: &[NewLine],
) -> Result<()> {
    append_lines_of(tx, &[(queue_id, attempt, lines.to_vec())]).await
}

/// Commits lines. After a connection error it is unknown whether they are stored.
pub async fn commit_lines(tx: Tx) -> Result<()> {
    tx.commit().await.context("store log lines")?;
    failpoint_or!("log.after_commit", Error::Lost("a failpoint says so".to_owned()).into());
    Ok(())
}

/// Appends lines of attempts.
pub async fn append_lines_of(tx: &mut Tx, of_tries: &[NewLines]) -> Result<()> {
    tx.run_statement(lines(of_tries)).await.context("write job_log_line").map(|_| ())
}

/// The statement of `append_lines_of`.
pub fn lines(of_tries: &[NewLines]) -> CountedStatement {
    let row = |queue_id: QueueId, attempt: u32, (number, at, stream, text): &NewLine| {
        vec![
            queue_id.0.into(),
            attempt.into(),
            i64::try_from(*number).unwrap_or(i64::MAX).into(),
            stream.as_str().into(),
            text.as_str().into(),
            at.to_utc().into(),
        ]
    };
    let of_try = |(id, attempt, lines): &NewLines| -> Vec<Vec<SqlValue>> {
        lines.iter().map(|line| row(*id, *attempt, line)).collect()
    };
    let rows = of_tries.iter().flat_map(of_try).collect();
    CountedStatement::Insert { table: "job_log_line", columns: &LINE_COLUMNS, rows }
}

/// Appends lines after everything that an attempt has printed so far, whichever process stored it.
pub async fn append_after(
    tx: &mut Tx,
    queue_id: QueueId,
    attempt: u32,
    lines: &[NewLine],
) -> Result<()> {
    let last = last_line(tx, queue_id, attempt).await?.map_or(0, |(number, _)| number);
    let number = |(at, line): (u64, &NewLine)| (last + at, line.1, line.2, line.3.clone());
    let lines: Vec<NewLine> = (1..).zip(lines).map(number).collect();
    append_lines(tx, queue_id, attempt, &lines).await
}

/// The last lines of an attempt, newest last.
pub async fn last_lines(
    tx: &mut Tx,
    queue_id: QueueId,
    attempt: u32,
    most: u32,
) -> Result<Vec<String>> {
    let sql = "SELECT line_text FROM job_log_line WHERE queue_id = ? AND attempt = ? \
               ORDER BY line_no DESC LIMIT ?";
    let rows = tx.fetch_all(sql, &[queue_id.0.into(), attempt.into(), most.into()]).await?;
    let mut lines: Vec<String> =
        rows.iter().map(|row| row.get_text("line_text")).collect::<Result<_, _>>()?;
    lines.reverse();
    Ok(lines)
}

/// Number and text of the last line of an attempt.
pub async fn last_line(
    tx: &mut Tx,
    queue_id: QueueId,
    attempt: u32,
) -> Result<Option<(u64, String)>> {
    let row = tx
        .fetch_optional(
            "SELECT line_no, line_text FROM job_log_line WHERE queue_id = ? AND attempt = ? \
             ORDER BY line_no DESC LIMIT 1",
            &[queue_id.0.into(), attempt.into()],
        )
        .await?;
    row.map(|row| Ok((u64::try_from(row.get_int("line_no")?)?, row.get_text("line_text")?)))
        .transpose()
}

/// A place in the log of a job of a batch, ordered as its lines are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The attempt; the first one is 1.
    pub attempt: u32,
    /// A line of the attempt; 0 stands before the first one.
    pub line_no: u64,
}

impl LogPosition {
    /// Before the first line of an attempt.
    pub fn start_of(attempt: u32) -> Self {
        Self { attempt, line_no: 0 }
    }
}

/// At most `limit` lines of a row after a position, oldest first.
pub async fn lines_after(
    tx: &mut Tx,
    queue_id: QueueId,
    after: LogPosition,
    limit: u32,
) -> Result<Vec<LogLine>> {
    let rows = tx
        .fetch_all(
            "SELECT attempt, line_no, stream, line_text, log_time FROM job_log_line \
             WHERE queue_id = ? AND (attempt > ? OR (attempt = ? AND line_no > ?)) \
             ORDER BY attempt, line_no LIMIT ?",
            &[
                queue_id.0.into(),
                after.attempt.into(),
                after.attempt.into(),
                i64::try_from(after.line_no)?.into(),
                limit.into(),
            ],
        )
        .await?;
    rows.iter().map(|row| line_of_row(queue_id, row)).collect()
}

/// The last lines of the attempt of a position that come before it, oldest first.
pub async fn lines_before(
    tx: &mut Tx,
    queue_id: QueueId,
    before: LogPosition,
    limit: u32,
) -> Result<Vec<LogLine>> {
    let rows = tx
        .fetch_all(
            "SELECT attempt, line_no, stream, line_text, log_time FROM job_log_line \
             WHERE queue_id = ? AND attempt = ? AND line_no < ? ORDER BY line_no DESC LIMIT ?",
            &[
                queue_id.0.into(),
                before.attempt.into(),
                i64::try_from(before.line_no).unwrap_or(i64::MAX).into(),
                limit.into(),
            ],
        )
        .await?;
    rows.iter().rev().map(|row| line_of_row(queue_id, row)).collect()
}

fn line_of_row(queue_id: QueueId, row: &Row) -> Result<LogLine> {
    Ok(LogLine {
        queue_id,
        attempt: u32::try_from(row.get_int("attempt")?)?,
        line_no: u64::try_from(row.get_int("line_no")?)?,
        stream: row.get_text("stream")?,
        text: row.get_text("line_text")?,
        at: row.get_time("log_time")?.into(),
    })
}
