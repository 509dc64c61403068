//! Tries that a node runs for batches which another node dispatches: rows that it was given and takes,
//! and `job_report`, how they ended, until that other node has settled them.

use crate::db;
use crate::domain::id::{BatchId, JobCode, NodeId, QueueId};
use crate::domain::job::outcome::{AttemptOutcome, JobOutputs};
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::time::Millis;
use crate::store::batch::key_list;
use crate::store::hint::{self, HintTopic};
use crate::store::queue::{entry, expect_all};
use crate::store::{Tx, batch, output_value, queue};
use anyhow::{Context as _, Result};
use std::collections::HashSet;

/// A running row of this node, of a batch that is not this node's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedRow {
    /// The row.
    pub queue_id: QueueId,
    /// Its batch.
    pub batch_id: BatchId,
    /// The try.
    pub attempt: u32,
    /// RUNNING, or KILLING when it is to be stopped.
    pub status: QueueStatus,
    /// How the batch stands to its operators: another number says that its snapshot may be another.
    pub revision: i64,
    /// Whether its report is written.
    pub is_reported: bool,
}

/// The rows that a node runs, or is to run, for batches of others. One statement, by the index of those
/// that are hosted.
pub async fn given(tx: &mut Tx, me: &NodeId) -> Result<Vec<HostedRow>> {
    let rows = tx
        .fetch_all(
            "SELECT q.queue_id AS queue_id, q.batch_id AS batch_id, q.attempt AS attempt, \
             q.status AS status, b.revision AS revision, r.attempt AS reported \
             FROM job_queue q JOIN job_batch b ON b.batch_id = q.batch_id \
             LEFT JOIN job_report r ON r.queue_id = q.queue_id AND r.attempt = q.attempt \
             WHERE q.hosted_by = ? AND q.owner = ? AND q.status IN (?, ?) \
             AND COALESCE(b.owner, '') <> ? ORDER BY q.queue_id",
            &[
                me.0.as_str().into(),
                me.0.as_str().into(),
                QueueStatus::Running.as_str().into(),
                QueueStatus::Killing.as_str().into(),
                me.0.as_str().into(),
            ],
        )
        .await
        .context("look for work that others gave this node")?;
    rows.iter()
        .map(|row| {
            let word = row.get_text("status")?;
            Ok(HostedRow {
                queue_id: QueueId(row.get_int("queue_id")?),
                batch_id: BatchId(row.get_int("batch_id")?),
                attempt: u32::try_from(row.get_int("attempt")?)?,
                status: QueueStatus::parse(&word)
                    .with_context(|| format!("job_queue.status holds {word:?}"))?,
                revision: row.get_int("revision")?,
                is_reported: row.opt_int("reported")?.is_some(),
            })
        })
        .collect()
}

/// Notes for what runs of a batch elsewhere than at `dispatcher` (nobody's: all) that it is hosted. Bodies may go
/// on where they run when their batch changes hands, and their node finds their rows by this.
pub async fn note_dispatcher(
    tx: &mut Tx,
    batch: BatchId,
    dispatcher: Option<&NodeId>,
) -> Result<()> {
    let sql = "UPDATE job_queue SET hosted_by = owner WHERE batch_id = ? AND status IN (?, ?) \
               AND owner <> ? AND COALESCE(hosted_by, '') <> owner";
    let (running, killing) = (QueueStatus::Running.as_str(), QueueStatus::Killing.as_str());
    let dispatcher = dispatcher.map_or("", |node| node.0.as_str());
    tx.execute(sql, &[batch.0.into(), running.into(), killing.into(), dispatcher.into()])
        .await
        .context("note what goes on of a batch where it runs")?;
    Ok(())
}

/// Takes a row that this node was given, so that it counts as begun from now on; `false` when it is
/// not this node's to run any more. The row comes with it.
pub async fn take_given(
    tx: &mut Tx,
    given: &HostedRow,
    me: &NodeId,
    now: Millis,
) -> Result<Option<QueueEntry>> {
    let found = tx
        .execute(
            "UPDATE job_queue SET is_taken = 1, update_time = ? \
             WHERE queue_id = ? AND attempt = ? AND owner = ? AND status = ?",
            &[
                now.to_utc().into(),
                given.queue_id.0.into(),
                given.attempt.into(),
                me.0.as_str().into(),
                QueueStatus::Running.as_str().into(),
            ],
        )
        .await
        .context("take a job that another node gave this one")?;
    if found == 0 {
        return Ok(None);
    }
    let sql = format!("SELECT {} FROM job_queue WHERE queue_id = ?", queue::COLUMNS);
    let row = tx.fetch_optional(&sql, &[given.queue_id.0.into()]).await?;
    row.as_ref().map(entry).transpose()
}

/// Whether an error of this floor is about what was found, and not about how the database does: asking
/// again gives the same.
pub fn is_unreadable(error: &anyhow::Error) -> bool {
    let mut said = error.chain().filter_map(|e| e.downcast_ref::<db::Error>());
    said.all(|e| matches!(e, db::Error::Column { .. }))
}

/// Outputs that the job of a code handed on in a batch, once it has ended.
pub async fn outputs_of(tx: &mut Tx, batch: BatchId, code: &JobCode) -> Result<Option<JobOutputs>> {
    let sql = "SELECT q.status AS status, q.outputs AS outputs FROM job_batch b JOIN job_queue q \
               ON q.batch_id = b.batch_id AND q.job_code = ? \
               WHERE b.batch_id = ?";
    let row = tx.fetch_optional(sql, &[code.as_str().into(), batch.0.into()]).await?;
    let Some(row) = row else { return Ok(None) };
    let has_ended = QueueStatus::parse(&row.get_text("status")?).is_some_and(QueueStatus::is_final);
    let text = row.opt_text("outputs")?.filter(|_| has_ended);
    let read = |text: String| {
        serde_json::from_str(&text).with_context(|| format!("read the outputs of job {code}"))
    };
    text.map(read).transpose()
}

/// A try that a node was given and never took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untaken {
    /// The row.
    pub queue_id: QueueId,
    /// The try.
    pub attempt: u32,
    /// The node.
    pub owner: NodeId,
}

/// Makes sure that a node has not taken a row and cannot do so any more in this transaction.
pub async fn withdraw(tx: &mut Tx, untaken: &Untaken) -> Result<()> {
    let found = tx
        .execute(
            "UPDATE job_queue SET is_taken = 1 \
             WHERE queue_id = ? AND attempt = ? AND owner = ? AND status = ? AND is_taken = 0",
            &[
                untaken.queue_id.0.into(),
                untaken.attempt.into(),
                untaken.owner.0.as_str().into(),
                QueueStatus::Running.as_str().into(),
            ],
        )
        .await
        .with_context(|| format!("withdraw queue row {}", untaken.queue_id.0))?;
    expect_all(1, found)
}

/// How a try ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The row.
    pub queue_id: QueueId,
    /// The try.
    pub attempt: u32,
    /// The node that ran it.
    pub owner: NodeId,
    /// How it ended.
    pub outcome: AttemptOutcome,
}

/// Writes how a try ended, for whoever has its batch. `false` when the row is not this node's any more:
/// the result is late then. Once written it is not written again.
pub async fn report(tx: &mut Tx, reported: &Reported, now: Millis) -> Result<bool> {
    let Reported { queue_id, attempt, owner, outcome } = reported;
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT batch_id FROM job_queue WHERE queue_id = ?{lock}");
    let Some(row) = tx.fetch_optional(&sql, &[queue_id.0.into()]).await? else { return Ok(false) };
    let of = row.get_int("batch_id")?;
    let there = queue::whose(tx, *queue_id).await?;
    let runs = |status: QueueStatus| match status {
        QueueStatus::Running | QueueStatus::Killing => true,
        // Its body has ended the row itself, and the batch has still to go on.
        _ => outcome.is_recorded,
    };
    if outcome.is_recorded && batch::get(tx, BatchId(of)).await?.status.is_final() {
        // Whoever has ended the batch knew it from the row.
        return Ok(false);
    }
    let is_ours = there.is_some_and(|row| {
        row.attempt == *attempt && row.owner.as_ref() == Some(owner) && runs(row.status)
    });
    if !is_ours {
        return Ok(false);
    }
    let key = [queue_id.0.into(), (*attempt).into()];
    let sql = "SELECT queue_id FROM job_report WHERE queue_id = ? AND attempt = ?";
    if tx.fetch_optional(sql, &key).await?.is_some() {
        return Ok(true);
    }
    tx.execute(
        "INSERT INTO job_report (queue_id, attempt, batch_id, owner, report, create_time) \
         VALUES (?, ?, ?, ?, ?, ?)",
        &[
            queue_id.0.into(),
            (*attempt).into(),
            of.into(),
            owner.0.as_str().into(),
            serde_json::to_string(outcome)?.into(),
            now.to_utc().into(),
        ],
    )
    .await
    .context("report how a try ended")?;
    if !outcome.is_recorded {
        output_value::replace(tx, outcome.large_values.unwritten(), now).await?;
    }
    hint::send_hint(tx, HintTopic::Work).await?;
    Ok(true)
}

/// A report that this program cannot read: a newer one may have written it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The row.
    pub queue_id: QueueId,
    /// The try.
    pub attempt: u32,
    /// The node that ran it.
    pub owner: NodeId,
    /// What is wrong with it.
    pub why: String,
}

/// Reports, as far as this program can read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostedReports {
    /// Those it can.
    pub read: Vec<Reported>,
    /// Those it cannot.
    pub unread: Vec<Unread>,
}

impl HostedReports {
    /// All tries that have ended by them.
    pub fn tries(&self) -> impl Iterator<Item = (QueueId, u32, &NodeId)> {
        let read = self.read.iter().map(|r| (r.queue_id, r.attempt, &r.owner));
        read.chain(self.unread.iter().map(|r| (r.queue_id, r.attempt, &r.owner)))
    }
}

/// Reports about batches of `owner`, oldest first. By state too: without it SQLite walked over every batch
/// there ever was, at each look.
pub async fn reports_for(tx: &mut Tx, owner: &NodeId) -> Result<HostedReports> {
    read_reports(
        tx,
        "SELECT r.queue_id AS queue_id, r.attempt AS attempt, r.owner AS owner, r.report AS report \
         FROM job_report r JOIN job_batch b ON b.batch_id = r.batch_id \
         WHERE b.status IN ('RUNNING', 'KILLING') AND b.owner = ? \
         ORDER BY r.create_time, r.queue_id",
        owner.0.as_str().into(),
    )
    .await
}

/// Reports about one batch.
pub async fn reports_of(tx: &mut Tx, batch: BatchId) -> Result<HostedReports> {
    read_reports(
        tx,
        "SELECT queue_id, attempt, owner, report FROM job_report WHERE batch_id = ? \
         ORDER BY create_time, queue_id",
        batch.0.into(),
    )
    .await
}

/// Those of these batches that have reports.
pub async fn reported_batches(tx: &mut Tx, ids: &[BatchId]) -> Result<HashSet<BatchId>> {
    let (places, values) = key_list(ids);
    let sql = format!("SELECT DISTINCT batch_id FROM job_report WHERE batch_id IN ({places})");
    let rows = tx.fetch_all(&sql, &values).await.context("read reports of other nodes")?;
    rows.iter().map(|row| Ok(BatchId(row.get_int("batch_id")?))).collect()
}

async fn read_reports(tx: &mut Tx, sql: &str, of: db::SqlValue) -> Result<HostedReports> {
    let rows = tx.fetch_all(sql, &[of]).await.context("read reports of other nodes")?;
    let mut reports = HostedReports::default();
    for row in &rows {
        let queue_id = QueueId(row.get_int("queue_id")?);
        let attempt = u32::try_from(row.get_int("attempt")?)?;
        let owner = NodeId(row.get_text("owner")?);
        match serde_json::from_str(&row.get_text("report")?) {
            Ok(outcome) => {
                reports.read.push(Reported { queue_id, attempt, owner, outcome });
            }
            Err(error) => {
                let why = error.to_string();
                reports.unread.push(Unread { queue_id, attempt, owner, why });
            }
        }
    }
    Ok(reports)
}

/// Removes a report: it is settled, or nobody takes it.
pub async fn remove(tx: &mut Tx, queue_id: QueueId, attempt: u32) -> Result<()> {
    let sql = "DELETE FROM job_report WHERE queue_id = ? AND attempt = ?";
    let done = tx.execute(sql, &[queue_id.0.into(), attempt.into()]).await;
    done.context("remove a report")?;
    Ok(())
}

/// Removes what was reported about batches that end: all of it that counts is settled.
pub async fn remove_all(tx: &mut Tx, ended: &[BatchId]) -> Result<()> {
    let (places, values) = key_list(ended);
    let sql = format!("DELETE FROM job_report WHERE batch_id IN ({places})");
    tx.execute(&sql, &values).await.context("remove the reports of batches that ended")?;
    Ok(())
}

/// Forgets reports that nobody has settled since `before`: their batches ended without them.
pub async fn forget(tx: &mut Tx, before: Millis) -> Result<()> {
    let sql = "DELETE FROM job_report WHERE create_time < ?";
    tx.execute(sql, &[before.to_utc().into()]).await.context("forget old reports")?;
    Ok(())
}
