//! Attempts that a node runs for batches which another node dispatches: the rows given to it, and
//! `job_report`, which holds the results until that other node has settled them.

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

/// A running row of this node in a batch of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedRow {
    pub queue_id: QueueId,
    pub batch_id: BatchId,
    pub attempt: u32,
    /// RUNNING, or KILLING when it is to be stopped.
    pub status: QueueStatus,
    /// The revision of the batch: a different number means that its snapshot may differ.
    pub revision: i64,
    /// Whether its report is written.
    pub is_reported: bool,
}

/// The rows that a node runs, or is to run, for batches of other nodes. One statement, using the
/// index of hosted rows.
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

/// Marks the running rows of a batch whose node is not `dispatcher` as hosted (all of them without
/// a dispatcher). Bodies may continue where they run when their batch changes its owner, and their
/// node finds its rows by this mark.
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

/// Takes a row that was given to this node, so that it counts as begun from now on; `None` when
/// this node must no longer run it. Returns the row.
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

/// Whether an error of this layer is about unreadable data, and not about the state of the
/// database: repeating the read has the same result.
pub fn is_unreadable(error: &anyhow::Error) -> bool {
    let mut said = error.chain().filter_map(|e| e.downcast_ref::<db::Error>());
    said.all(|e| matches!(e, db::Error::Column { .. }))
}

/// Outputs of an ended job in a batch.
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

/// An attempt that was given to a node, which never took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untaken {
    pub queue_id: QueueId,
    pub attempt: u32,
    pub owner: NodeId,
}

/// Checks that a node has not taken a row and cannot do so during this transaction.
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

/// The report of an ended attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    pub queue_id: QueueId,
    pub attempt: u32,
    /// The node that ran it.
    pub owner: NodeId,
    pub outcome: AttemptOutcome,
}

/// Writes the result of an attempt for the owner of its batch. `false` when the row no longer
/// belongs to this node: the result is late then. A written report is not written again.
pub async fn report(tx: &mut Tx, reported: &Reported, now: Millis) -> Result<bool> {
    let Reported { queue_id, attempt, owner, outcome } = reported;
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT batch_id FROM job_queue WHERE queue_id = ?{lock}");
    let Some(row) = tx.fetch_optional(&sql, &[queue_id.0.into()]).await? else { return Ok(false) };
    let of = row.get_int("batch_id")?;
    let there = queue::whose(tx, *queue_id).await?;
    let runs = |status: QueueStatus| match status {
        QueueStatus::Running | QueueStatus::Killing => true,
        // Its body has ended the row itself, and the batch must still continue.
        _ => outcome.is_recorded,
    };
    if outcome.is_recorded && batch::get(tx, BatchId(of)).await?.status.is_final() {
        // The process that ended the batch knew it from the row.
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

/// A report that this version cannot read, probably from a newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    pub queue_id: QueueId,
    pub attempt: u32,
    /// The node that ran it.
    pub owner: NodeId,
    pub why: String,
}

/// Reports, readable and unreadable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostedReports {
    /// The readable ones.
    pub read: Vec<Reported>,
    /// The unreadable ones.
    pub unread: Vec<Unread>,
}

impl HostedReports {
    /// All attempts that have ended according to the reports.
    pub fn tries(&self) -> impl Iterator<Item = (QueueId, u32, &NodeId)> {
        let read = self.read.iter().map(|r| (r.queue_id, r.attempt, &r.owner));
        read.chain(self.unread.iter().map(|r| (r.queue_id, r.attempt, &r.owner)))
    }
}

/// Reports about batches of `owner`, oldest first. Also restricted by state: without that SQLite
/// read every batch there ever was, at each poll.
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

/// Removes a report that is settled or that no row accepts.
pub async fn remove(tx: &mut Tx, queue_id: QueueId, attempt: u32) -> Result<()> {
    let sql = "DELETE FROM job_report WHERE queue_id = ? AND attempt = ?";
    let done = tx.execute(sql, &[queue_id.0.into(), attempt.into()]).await;
    done.context("remove a report")?;
    Ok(())
}

/// Removes the reports about ending batches: all that matter are settled.
pub async fn remove_all(tx: &mut Tx, ended: &[BatchId]) -> Result<()> {
    let (places, values) = key_list(ended);
    let sql = format!("DELETE FROM job_report WHERE batch_id IN ({places})");
    tx.execute(&sql, &values).await.context("remove the reports of batches that ended")?;
    Ok(())
}

/// Removes reports that were not settled since `before`: their batches ended without them.
pub async fn forget(tx: &mut Tx, before: Millis) -> Result<()> {
    let sql = "DELETE FROM job_report WHERE create_time < ?";
    tx.execute(sql, &[before.to_utc().into()]).await.context("forget old reports")?;
    Ok(())
}
