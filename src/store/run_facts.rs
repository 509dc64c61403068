//! How runs of many batches ended and how long they took, without their outputs and definitions.

use crate::db::{Row, SqlValue};
use crate::domain::batch::BatchStatus;
use crate::domain::id::{BatchId, GroupCode, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

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
