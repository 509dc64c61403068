//! How runs of many batches ended and how long they took, without their outputs and definitions.

use crate::db::{Row, SqlValue};
use crate::domain::batch::BatchStatus;
use crate::domain::id::{BatchId, GroupCode, JobCode, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::batch::containing;
use anyhow::{Context as _, Result};
use std::fmt::Write as _;

/// A job of a batch that has run and ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRunFact {
    pub batch: BatchId,
    pub group: GroupCode,
    pub job: JobCode,
    pub status: QueueStatus,
    /// The attempt number.
    pub attempt: u32,
    /// Duration of the last attempt in milliseconds.
    pub took_ms: Option<i64>,
}

/// A batch, as far as its duration and result go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchFact {
    pub batch: BatchId,
    pub group: GroupCode,
    pub batch_no: String,
    pub status: BatchStatus,
    pub opened: Millis,
    pub ended: Option<Millis>,
}

/// Which batches: those opened since then, of these groups; `None` means all groups.
#[derive(Clone, Copy, Debug)]
pub struct FactScope<'a> {
    pub groups: Option<&'a [GroupCode]>,
    pub since: Millis,
}

impl FactScope<'_> {
    /// The condition on `job_batch b`, with its values.
    pub(super) fn condition(&self) -> (String, Vec<SqlValue>) {
        let mut values: Vec<SqlValue> = vec![self.since.to_utc().into()];
        let groups = match self.groups {
            None => String::new(),
            Some([]) => " AND 1 = 0".to_owned(),
            Some(codes) => {
                values.extend(codes.iter().map(|code| SqlValue::from(code.as_str())));
                format!(" AND b.group_code IN ({})", vec!["?"; codes.len()].join(", "))
            }
        };
        (format!("b.create_time >= ?{groups}"), values)
    }
}

/// The runs of jobs, latest batch first, at most `most`. A row with a run mode did not really run,
/// and what an operator killed, skipped or forced says nothing of the job.
pub async fn job_runs(tx: &mut Tx, scope: FactScope<'_>, most: u32) -> Result<Vec<JobRunFact>> {
    const RAN: [QueueStatus; 5] = [
        QueueStatus::Success,
        QueueStatus::Warning,
        QueueStatus::Failed,
        QueueStatus::Timeout,
        QueueStatus::Unknown,
    ];
    let (chosen, mut values) = scope.condition();
    values.extend(RAN.iter().map(|status| SqlValue::from(status.as_str())));
    values.push(most.into());
    let sql = format!(
        "SELECT q.batch_id AS batch_id, b.group_code AS group_code, q.job_code AS job_code, \
         q.status AS status, q.attempt AS attempt, q.start_time AS start_time, \
         q.end_time AS end_time FROM job_batch b JOIN job_queue q ON q.batch_id = b.batch_id \
         WHERE {chosen} AND q.run_mode IS NULL AND q.status IN ({}) \
         ORDER BY b.batch_id DESC, q.queue_id LIMIT ?",
        vec!["?"; RAN.len()].join(", ")
    );
    let rows = tx.fetch_all(&sql, &values).await.context("read how jobs went lately")?;
    let read = |row: &Row| {
        let word = row.get_text("status")?;
        let status = QueueStatus::parse(&word)
            .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))?;
        let times = row.opt_time("start_time")?.zip(row.opt_time("end_time")?);
        Ok(JobRunFact {
            batch: BatchId(row.get_int("batch_id")?),
            group: GroupCode::parse(&row.get_text("group_code")?)?,
            job: JobCode::parse(&row.get_text("job_code")?)?,
            status,
            attempt: u32::try_from(row.get_int("attempt")?)?,
            took_ms: times.map(|(start, end)| Millis::from(end).since(Millis::from(start))),
        })
    };
    rows.iter().map(read).collect()
}

/// Which runs of jobs.
#[derive(Clone, Debug)]
pub struct RunFilter<'a> {
    pub scope: FactScope<'a>,
    /// Of batches that were opened before then.
    pub until: Option<Millis>,
    /// In one of these states; empty means any.
    pub statuses: Vec<QueueStatus>,
    /// A text contained in the code of the job.
    pub text: Option<String>,
    /// Behind this run in the list.
    pub after: Option<(BatchId, QueueId)>,
}

/// A job of a batch in a list of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRun {
    pub queue_id: QueueId,
    pub batch: BatchId,
    pub group: GroupCode,
    pub batch_no: String,
    pub job: JobCode,
    pub status: QueueStatus,
    /// The attempt number; 0 for a job that has not started.
    pub attempt: u32,
    /// Start of the last attempt.
    pub start: Option<Millis>,
    /// End of the last attempt.
    pub end: Option<Millis>,
    pub error: Option<String>,
}

/// The runs of jobs, latest batch first, in each batch in the order of its definition.
pub async fn list_runs(tx: &mut Tx, asked: &RunFilter<'_>, limit: u32) -> Result<Vec<ListedRun>> {
    let (mut chosen, mut values) = asked.scope.condition();
    if let Some(until) = asked.until {
        chosen.push_str(" AND b.create_time < ?");
        values.push(until.to_utc().into());
    }
    if !asked.statuses.is_empty() {
        let places = vec!["?"; asked.statuses.len()].join(", ");
        let _ = write!(chosen, " AND q.status IN ({places})");
        values.extend(asked.statuses.iter().map(|status| SqlValue::from(status.as_str())));
    }
    if let Some(text) = &asked.text {
        chosen.push_str(" AND LOWER(q.job_code) LIKE ? ESCAPE '!'");
        values.push(containing(text).into());
    }
    if let Some((batch, row)) = asked.after {
        chosen.push_str(" AND (b.batch_id < ? OR (b.batch_id = ? AND q.queue_id > ?))");
        values.extend([batch.0.into(), batch.0.into(), row.0.into()]);
    }
    values.push(limit.into());
    let sql = format!(
        "SELECT q.queue_id AS queue_id, q.batch_id AS batch_id, b.group_code AS group_code, \
         b.batch_no AS batch_no, q.job_code AS job_code, q.status AS status, \
         q.skip_kind AS skip_kind, q.attempt AS attempt, q.start_time AS start_time, \
         q.end_time AS end_time, q.error_message AS error_message \
         FROM job_batch b JOIN job_queue q ON q.batch_id = b.batch_id WHERE {chosen} \
         ORDER BY b.batch_id DESC, q.queue_id LIMIT ?"
    );
    let rows = tx.fetch_all(&sql, &values).await.context("list the runs of jobs")?;
    rows.iter().map(listed_run).collect()
}

fn listed_run(row: &Row) -> Result<ListedRun> {
    let word = row.get_text("status")?;
    let status = QueueStatus::stored(&word, row.opt_text("skip_kind")?.as_deref())
        .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))?;
    Ok(ListedRun {
        queue_id: QueueId(row.get_int("queue_id")?),
        batch: BatchId(row.get_int("batch_id")?),
        group: GroupCode::parse(&row.get_text("group_code")?)?,
        batch_no: row.get_text("batch_no")?,
        job: JobCode::parse(&row.get_text("job_code")?)?,
        status,
        attempt: u32::try_from(row.get_int("attempt")?)?,
        start: row.opt_time("start_time")?.map(Into::into),
        end: row.opt_time("end_time")?.map(Into::into),
        error: row.opt_text("error_message")?,
    })
}

/// The batches, latest first, at most `most`.
pub async fn batches(tx: &mut Tx, scope: FactScope<'_>, most: u32) -> Result<Vec<BatchFact>> {
    let (chosen, mut values) = scope.condition();
    values.push(most.into());
    let sql = format!(
        "SELECT b.batch_id AS batch_id, b.group_code AS group_code, b.batch_no AS batch_no, \
         b.status AS status, b.create_time AS create_time, b.end_time AS end_time \
         FROM job_batch b WHERE {chosen} ORDER BY b.batch_id DESC LIMIT ?"
    );
    let rows = tx.fetch_all(&sql, &values).await.context("read how batches went lately")?;
    rows.iter().map(batch_fact).collect()
}

/// The last batches of a group, latest first.
pub async fn last_batches(tx: &mut Tx, group: &GroupCode, most: u32) -> Result<Vec<BatchFact>> {
    let sql = "SELECT batch_id, group_code, batch_no, status, create_time, end_time FROM job_batch \
               WHERE group_code = ? ORDER BY batch_id DESC LIMIT ?";
    let rows = tx.fetch_all(sql, &[group.as_str().into(), most.into()]).await;
    rows.context("read how batches of a group went")?.iter().map(batch_fact).collect()
}

fn batch_fact(row: &Row) -> Result<BatchFact> {
    let word = row.get_text("status")?;
    let status = BatchStatus::parse(&word)
        .with_context(|| format!("job_batch.status holds {word:?}, which is no state"))?;
    Ok(BatchFact {
        batch: BatchId(row.get_int("batch_id")?),
        group: GroupCode::parse(&row.get_text("group_code")?)?,
        batch_no: row.get_text("batch_no")?,
        status,
        opened: row.get_time("create_time")?.into(),
        ended: row.opt_time("end_time")?.map(Into::into),
    })
}
