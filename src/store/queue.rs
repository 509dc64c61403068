//! `job_queue`: one job in one batch.

mod settlement_rows;

pub use settlement_rows::{SettledRow, settle, settle_all, settled_alike};

use crate::db::single_round_trip::CountedStatement;
use crate::db::{Db, Row, filled};
use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode, NodeId, QueueId};
use crate::domain::job::queue::{Acknowledgement, KeyScope, QueueEntry, QueueStatus, RunMode};
use crate::domain::time::Millis;
use crate::store::batch::key_list;
use crate::store::{Stale, Tx, output_value};
use anyhow::{Context as _, Result, ensure};
use std::collections::HashMap;

/// The columns of a `QueueEntry`. Outputs may be large; `outputs` reads them separately.
pub(super) const COLUMNS: &str = "queue_id, batch_id, job_code, status, try_count, attempt, owner, \
    not_before, start_time, end_time, error_message, skip_kind, run_mode, priority, run_no, \
    crash_count, unresolved, waits_on, is_taken, key_has_group";

/// Rows read or written at a time: a driver's row takes more memory than what is read from it, and
/// a batch may have 100,000.
const AT_ONCE: u32 = 8_192;

/// Rows whose outputs are read at a time; each may have a thousand result rows.
const OUTPUTS_AT_ONCE: usize = 256;

/// A new row.
#[derive(Clone, Debug)]
pub struct NewEntry<'a> {
    pub job_code: &'a JobCode,
    /// The earliest start time.
    pub not_before: Option<Millis>,
}

/// Inserts one PENDING row per job; the unique key (batch_id, job_code) refuses duplicates.
pub async fn generate(
    tx: &mut Tx,
    batch: BatchId,
    batch_no: &str,
    entries: &[NewEntry<'_>],
    now: Millis,
) -> Result<()> {
    for entries in entries.chunks(AT_ONCE as usize) {
        generate_many(tx, &[NewEntries { batch, batch_no, entries }], now).await?;
    }
    look_over(tx, entries.len()).await
}

/// Updates the server's table statistics after so many rows were inserted.
pub async fn look_over(tx: &mut Tx, rows: usize) -> Result<()> {
    tx.look_over("job_queue", rows).await.context("look over job_queue")
}

/// The new rows of one batch.
#[derive(Clone, Copy, Debug)]
pub struct NewEntries<'a> {
    pub batch: BatchId,
    pub batch_no: &'a str,
    /// One for each job.
    pub entries: &'a [NewEntry<'a>],
}

/// Inserts the rows of several batches in one statement.
pub async fn generate_many(tx: &mut Tx, batches: &[NewEntries<'_>], now: Millis) -> Result<()> {
    let columns = [
        "batch_id",
        "batch_no",
        "job_code",
        "status",
        "not_before",
        "create_time",
        "update_time",
        "key_has_group",
    ];
    let row = |of: &NewEntries<'_>, entry: &NewEntry<'_>| {
        vec![
            of.batch.0.into(),
            of.batch_no.into(),
            entry.job_code.as_str().into(),
            QueueStatus::Pending.as_str().into(),
            entry.not_before.map(Millis::to_utc).into(),
            now.to_utc().into(),
            now.to_utc().into(),
            true.into(),
        ]
    };
    let rows = batches.iter().flat_map(|of| of.entries.iter().map(move |entry| row(of, entry)));
    tx.insert_many("job_queue", &columns, rows).await.context("write job_queue")
}

/// All rows of a batch, in the order of their insertion.
pub async fn of_batch(tx: &mut Tx, batch: BatchId) -> Result<Vec<QueueEntry>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM job_queue WHERE batch_id = ? AND queue_id > ? ORDER BY queue_id LIMIT ?"
    );
    let mut found: Vec<QueueEntry> = Vec::new();
    loop {
        let last = found.last().map_or(i64::MIN, |row| row.queue_id.0);
        let rows = tx.fetch_all(&sql, &[batch.0.into(), last.into(), AT_ONCE.into()]).await?;
        for row in &rows {
            found.push(entry(row)?);
        }
        if rows.len() < AT_ONCE as usize {
            return Ok(found);
        }
    }
}

/// All rows of small batches, each in the order of insertion; `None` when together they have more
/// rows than are read at once.
pub async fn of_few(
    tx: &mut Tx,
    ids: &[BatchId],
) -> Result<Option<HashMap<BatchId, Vec<QueueEntry>>>> {
    let (places, mut values) = key_list(ids);
    let sql = format!(
        "SELECT {COLUMNS} FROM job_queue WHERE batch_id IN ({places}) ORDER BY queue_id LIMIT ?"
    );
    values.push(AT_ONCE.into());
    let rows = tx.fetch_all(&sql, &values).await.context("read the rows of batches")?;
    if rows.len() >= AT_ONCE as usize {
        return Ok(None);
    }
    let mut all: HashMap<BatchId, Vec<QueueEntry>> = HashMap::new();
    for row in &rows {
        let entry = entry(row)?;
        all.entry(entry.batch_id).or_default().push(entry);
    }
    Ok(Some(all))
}

/// The row of one job of a batch.
pub async fn of_job(tx: &mut Tx, batch: BatchId, job: &JobCode) -> Result<Option<QueueEntry>> {
    let sql = format!("SELECT {COLUMNS} FROM job_queue WHERE batch_id = ? AND job_code = ?");
    let values = [batch.0.into(), job.as_str().into()];
    let row = tx.fetch_optional(&sql, &values).await.context("look for a job of a batch")?;
    row.as_ref().map(entry).transpose()
}

pub(super) fn entry(row: &Row) -> Result<QueueEntry> {
    let word = row.get_text("status")?;
    let status = QueueStatus::stored(&word, row.opt_text("skip_kind")?.as_deref())
        .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))?;
    Ok(QueueEntry {
        queue_id: QueueId(row.get_int("queue_id")?),
        batch_id: BatchId(row.get_int("batch_id")?),
        job_code: JobCode::parse(&row.get_text("job_code")?)?,
        status,
        try_count: u32::try_from(row.get_int("try_count")?)?,
        attempt: u32::try_from(row.get_int("attempt")?)?,
        owner: row.opt_text("owner")?.map(NodeId),
        not_before: row.opt_time("not_before")?.map(Millis::from),
        start_time: row.opt_time("start_time")?.map(Millis::from),
        end_time: row.opt_time("end_time")?.map(Millis::from),
        error_message: row.opt_text("error_message")?,
        run_mode: run_mode(row)?,
        priority: row.opt_int("priority")?.map(i32::try_from).transpose()?,
        run_no: u32::try_from(row.get_int("run_no")?)?,
        crash_count: u32::try_from(row.get_int("crash_count")?)?,
        unresolved: u32::try_from(row.get_int("unresolved")?)?,
        waits_on: row.opt_text("waits_on")?,
        key_scope: match row.get_flag("key_has_group")? {
            true => KeyScope::Group,
            false => KeyScope::Installation,
        },
        taken: if row.get_flag("is_taken")? {
            Acknowledgement::Yes
        } else {
            Acknowledgement::NotYet
        },
    })
}

/// The value of the column `run_mode`.
pub(super) fn run_mode(row: &Row) -> Result<Option<RunMode>> {
    let Some(word) = row.opt_text("run_mode")? else { return Ok(None) };
    let mode = RunMode::parse(&word);
    mode.map(Some).with_context(|| format!("run_mode holds {word:?}, which is no mode"))
}

/// Outputs (JSON text) of those of the given rows that have any.
pub async fn outputs(tx: &mut Tx, ids: &[QueueId]) -> Result<Vec<(QueueId, String)>> {
    let mut found = Vec::new();
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    for ids in ids.chunks(OUTPUTS_AT_ONCE) {
        let sql = "SELECT queue_id, outputs FROM job_queue WHERE queue_id";
        for row in tx.fetch_in(sql, ids, "AND outputs IS NOT NULL").await? {
            found.push((QueueId(row.get_int("queue_id")?), row.get_text("outputs")?));
        }
    }
    Ok(found)
}

/// Rows of a job that succeeded by itself, over all batches of a group, with the batch number;
/// unordered. Skipped and forced ones are not included: their data were not checked.
pub async fn ended_well(
    tx: &mut Tx,
    group: &GroupCode,
    job: &JobCode,
) -> Result<Vec<(BatchNo, QueueId)>> {
    let rows = tx
        .fetch_all(
            "SELECT q.queue_id, q.batch_no FROM job_batch b JOIN job_queue q \
             ON q.batch_id = b.batch_id AND q.job_code = ? \
             WHERE b.group_code = ? AND q.status IN (?, ?)",
            &[
                job.as_str().into(),
                group.as_str().into(),
                QueueStatus::Success.as_str().into(),
                QueueStatus::Warning.as_str().into(),
            ],
        )
        .await
        .context("look for earlier batches")?;
    rows.iter()
        .map(|row| {
            Ok((BatchNo::parse(&row.get_text("batch_no")?)?, QueueId(row.get_int("queue_id")?)))
        })
        .collect()
}

pub(super) fn expect_all(expected: usize, found: u64) -> Result<()> {
    let expected = expected as u64;
    ensure!(expected == found, Stale::Rows { expected, found });
    Ok(())
}

/// Moves waiting rows from one state to another.
pub async fn transition(
    tx: &mut Tx,
    ids: &[i64],
    from: QueueStatus,
    to: QueueStatus,
    now: Millis,
) -> Result<()> {
    expect_all(ids.len(), tx.run_statement(moved(ids, from, to, now)).await?)
}

/// The statement of `transition`.
pub fn moved(ids: &[i64], from: QueueStatus, to: QueueStatus, now: Millis) -> CountedStatement {
    let end = to.is_final().then_some(now.to_utc());
    CountedStatement::OnEach {
        before: "UPDATE job_queue SET status = ?, skip_kind = ?, update_time = ?, end_time = ? \
                 WHERE queue_id"
            .to_owned(),
        first: vec![to.as_str().into(), to.skip_kind().into(), now.to_utc().into(), end.into()],
        ids: ids.to_vec(),
        after: "AND status = ?".to_owned(),
        last: vec![from.as_str().into()],
    }
}

/// Sets the message of rows whose state has just changed.
pub async fn set_message(tx: &mut Tx, ids: &[i64], message: &str) -> Result<()> {
    let sql = "UPDATE job_queue SET error_message = ? WHERE queue_id";
    let found = tx.execute_in(sql, &[message.into()], ids, "", &[]).await?;
    expect_all(ids.len(), found)
}

/// Claims rows for the process that writes this: `from` → RUNNING, a new attempt, started now.
pub async fn claim(
    tx: &mut Tx,
    ids: &[i64],
    from: QueueStatus,
    owner: &NodeId,
    now: Millis,
) -> Result<()> {
    give_to_node(tx, ids, from, owner, Acknowledgement::Yes, now).await
}

/// Like `claim`, for any process; another one takes the rows before it starts anything
/// (`hosted::take_given`).
pub async fn give_to_node(
    tx: &mut Tx,
    ids: &[i64],
    from: QueueStatus,
    owner: &NodeId,
    taken: Acknowledgement,
    now: Millis,
) -> Result<()> {
    expect_all(ids.len(), tx.run_statement(given(ids, from, owner, taken, now)).await?)
}

/// The statement of `claim` and `give_to_node`.
pub fn given(
    ids: &[i64],
    from: QueueStatus,
    owner: &NodeId,
    taken: Acknowledgement,
    now: Millis,
) -> CountedStatement {
    CountedStatement::OnEach {
        before:
            "UPDATE job_queue SET status = ?, owner = ?, attempt = attempt + 1, start_time = ?, \
                 end_time = NULL, error_message = NULL, outputs = NULL, waits_on = NULL, \
                 is_taken = ?, hosted_by = ?, update_time = ? WHERE queue_id"
                .to_owned(),
        first: vec![
            QueueStatus::Running.as_str().into(),
            owner.0.as_str().into(),
            now.to_utc().into(),
            i64::from(taken == Acknowledgement::Yes).into(),
            (taken == Acknowledgement::NotYet).then_some(owner.0.as_str()).into(),
            now.to_utc().into(),
        ],
        ids: ids.to_vec(),
        after: "AND status = ?".to_owned(),
        last: vec![from.as_str().into()],
    }
}

/// A row of a dead process that another takes over in order to end what is left of its body.
#[derive(Clone, Debug)]
pub struct Adopted {
    pub queue_id: QueueId,
    /// Its attempt number, which does not change.
    pub attempt: u32,
    /// The state it was in.
    pub from: QueueStatus,
    /// The dead process.
    pub owner: Option<NodeId>,
    /// Number of consecutive worker deaths while it ran, including this one.
    pub crash_count: u32,
}

/// Sets a row to KILLING and this process as owner. From then on no report of the dead process is
/// accepted.
pub async fn adopt(tx: &mut Tx, adopted: &Adopted, by: &NodeId, now: Millis) -> Result<()> {
    let found = tx
        .execute(
            "UPDATE job_queue SET status = ?, owner = ?, crash_count = ?, waits_on = NULL, \
             is_taken = 1, hosted_by = NULL, update_time = ? \
             WHERE queue_id = ? AND attempt = ? AND COALESCE(owner, '') = ? AND status = ?",
            &[
                QueueStatus::Killing.as_str().into(),
                by.0.as_str().into(),
                adopted.crash_count.into(),
                now.to_utc().into(),
                adopted.queue_id.0.into(),
                adopted.attempt.into(),
                adopted.owner.as_ref().map_or("", |o| o.0.as_str()).into(),
                adopted.from.as_str().into(),
            ],
        )
        .await
        .with_context(|| format!("take over queue row {}", adopted.queue_id.0))?;
    expect_all(1, found)
}

/// Reruns rows: → PENDING, `try_count` 0; the attempt number continues. The next run begins, unless
/// the outcome of the present one is open: that will be found by its key. A row that never started
/// keeps its earliest start time; of the run modes only NOEXEC is kept.
pub async fn reset(tx: &mut Tx, ids: &[i64], from: QueueStatus, now: Millis) -> Result<()> {
    let found = tx
        .execute_in(
            "UPDATE job_queue SET \
             run_no = CASE WHEN status = 'UNKNOWN' OR unresolved > 0 THEN run_no ELSE run_no + 1 END, \
             status = ?, try_count = 0, crash_count = 0, owner = NULL, hosted_by = NULL, waits_on = NULL, \
             not_before = CASE WHEN start_time IS NULL THEN not_before END, \
             run_mode = CASE WHEN run_mode = 'NOEXEC' THEN run_mode END, error_message = NULL, outputs = NULL, start_time = NULL, end_time = NULL, \
             skip_kind = NULL, update_time = ? WHERE queue_id",
            // MySQL assigns from left to right: not_before reads start_time before that is cleared.
            &[QueueStatus::Pending.as_str().into(), now.to_utc().into()],
            ids,
            "AND status = ?",
            &[from.as_str().into()],
        )
        .await?;
    expect_all(ids.len(), found)?;
    output_value::remove_of(tx, ids).await
}

/// Whether a row still belongs to this attempt of this process and is to run.
pub async fn is_ours(tx: &mut Tx, id: QueueId, attempt: u32, owner: &NodeId) -> Result<bool> {
    is_in(tx, id, attempt, owner, QueueStatus::Running).await
}

/// Whether a row still belongs to this attempt of this process and is to be ended.
pub async fn is_ours_to_end(
    tx: &mut Tx,
    id: QueueId,
    attempt: u32,
    owner: &NodeId,
) -> Result<bool> {
    is_in(tx, id, attempt, owner, QueueStatus::Killing).await
}

async fn is_in(
    tx: &mut Tx,
    id: QueueId,
    attempt: u32,
    owner: &NodeId,
    status: QueueStatus,
) -> Result<bool> {
    let row = tx
        .fetch_optional(
            "SELECT queue_id FROM job_queue \
             WHERE queue_id = ? AND attempt = ? AND owner = ? AND status = ?",
            &[id.0.into(), attempt.into(), owner.0.as_str().into(), status.as_str().into()],
        )
        .await?;
    Ok(row.is_some())
}

/// Which of these rows still belong to a process and run, with their attempt numbers, in one round
/// trip.
pub async fn ours_of(db: &Db, ids: &[QueueId], owner: &NodeId) -> Result<HashMap<QueueId, u32>> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let (places, mut values) = filled(&ids);
    values.extend([owner.0.as_str().into(), QueueStatus::Running.as_str().into()]);
    let sql = format!(
        "SELECT queue_id, attempt FROM job_queue WHERE queue_id IN ({places}) AND owner = ? \
         AND status = ?"
    );
    let rows = db.query_rows(&sql, &values).await.context("ask whose rows are")?;
    let read = |row: &Row| {
        Ok((QueueId(row.get_int("queue_id")?), u32::try_from(row.get_int("attempt")?)?))
    };
    rows.iter().map(read).collect()
}

/// Which attempt of which process has a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowHolder {
    /// The attempt.
    pub attempt: u32,
    /// The process; none before the first attempt.
    pub owner: Option<NodeId>,
    /// The state of the row.
    pub status: QueueStatus,
}

/// The attempt and process that have a row; none when it is gone.
pub async fn whose(tx: &mut Tx, id: QueueId) -> Result<Option<RowHolder>> {
    let sql = "SELECT attempt, owner, status FROM job_queue WHERE queue_id = ?";
    let row = tx.fetch_optional(sql, &[id.0.into()]).await?;
    let read = |row: Row| {
        let word = row.get_text("status")?;
        let status = QueueStatus::parse(&word)
            .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))?;
        let attempt = u32::try_from(row.get_int("attempt")?)?;
        Ok(RowHolder { attempt, owner: row.opt_text("owner")?.map(NodeId), status })
    };
    row.map(read).transpose()
}

/// Sets what a running attempt waits for before its body; no effect on a row that belongs to
/// another.
pub async fn set_waits_on(
    tx: &mut Tx,
    id: QueueId,
    attempt: u32,
    owner: &NodeId,
    what: Option<&str>,
) -> Result<()> {
    tx.execute(
        "UPDATE job_queue SET waits_on = ? WHERE queue_id = ? AND attempt = ? AND owner = ?",
        &[what.into(), id.0.into(), attempt.into(), owner.0.as_str().into()],
    )
    .await
    .context("say what a try waits for")?;
    Ok(())
}

/// Stores the application that a running attempt submitted; fails on a row that belongs to another.
pub async fn set_application(
    tx: &mut Tx,
    id: QueueId,
    attempt: u32,
    owner: &NodeId,
    application: &str,
) -> Result<()> {
    let changed = tx
        .execute(
            "UPDATE job_queue SET application = ? WHERE queue_id = ? AND attempt = ? AND owner = ?",
            &[application.into(), id.0.into(), attempt.into(), owner.0.as_str().into()],
        )
        .await
        .context("store the id of an application")?;
    anyhow::ensure!(changed == 1, "the row belongs to another start by now");
    Ok(())
}

/// The application that an attempt of the row submitted last.
pub async fn application(tx: &mut Tx, id: QueueId) -> Result<Option<String>> {
    let sql = "SELECT application FROM job_queue WHERE queue_id = ?";
    let row = tx.fetch_optional(sql, &[id.0.into()]).await.context("read an application's id")?;
    Ok(row.map(|row| row.opt_text("application")).transpose()?.flatten())
}
