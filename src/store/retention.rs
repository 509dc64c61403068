//! Old rows: found one page at a time, counted, and removed by their keys, a limited number per
//! transaction.
//!
//! No statement here reads or deletes a whole table: `RetentionQuery::ALL` lists all of them, and a
//! test checks their plans on the three databases. Rows are found without locks; before removal
//! they are checked again under the lock of their batch, by compare-and-set.

mod count_rows;
mod remove_rows;
mod text;

pub use count_rows::{Ages, count_ages, counted, lines};
pub use remove_rows::{
    Dropped, finish_some, mark_batches, marked, note_lines, remove_keys, remove_lines_of,
    still_over,
};
pub use text::{RetentionQuery, placed};

use crate::db::{Row, SqlValue};
use crate::domain::backfill::BackfillStatus;
use crate::domain::batch::BatchStatus;
use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode};
use crate::domain::retention::RetentionNeed;
use crate::domain::source::tx_class::{IdemKey, KeyForm};
use crate::domain::time::Millis;
use crate::store::{Tx, installation};
use anyhow::{Context as _, Result};
use chrono::NaiveDate;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Batches per page.
pub const PAGE: usize = 64;

/// The tables from which retention removes rows.
pub const TABLES: [&str; 13] = [
    "job_batch",
    "job_queue",
    "job_execution_logs",
    "job_log_line",
    "job_output_value",
    "job_report",
    "job_approval",
    "failure_mark",
    "email_notifications",
    "job_firing",
    "backfill",
    "backfill_batch",
    "audit_log",
];

/// Tables whose rows are removed by dropping partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftTables {
    /// `job_execution_logs`
    pub logs: bool,
    /// `job_log_line`
    pub lines: bool,
}

/// Number of rows by table.
pub type ByTable = BTreeMap<&'static str, u64>;

/// A batch that is old enough to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub batch_id: BatchId,
    pub batch_no: BatchNo,
    pub status: BatchStatus,
    /// When it ended.
    pub ended: Millis,
    /// The number of changes by operators.
    pub revision: i64,
    /// Why it is still needed, by its own row and other tables.
    pub needs: BTreeSet<RetentionNeed>,
}

/// The position of a walk over the ended batches of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The end time of the last one.
    pub at: Millis,
    /// Its key.
    pub key: i64,
}

impl Cursor {
    /// Before the first.
    pub const START: Self = Self { at: Millis(0), key: 0 };

    /// The values for `at >= ? AND (at > ? OR key > ?)`: the first condition selects the index
    /// range.
    fn values(self) -> [SqlValue; 3] {
        let at = self.at.to_utc();
        [at.into(), at.into(), self.key.into()]
    }
}

fn status_of(row: &Row, column: &str) -> Result<BatchStatus> {
    let word = row.get_text(column)?;
    BatchStatus::parse(&word).with_context(|| format!("job_batch.status holds {word:?}"))
}

/// The groups that have batches, including those no longer defined. One index lookup for each.
pub async fn groups(tx: &mut Tx) -> Result<Vec<GroupCode>> {
    let mut found = Vec::new();
    let mut last = String::new();
    loop {
        let row = tx
            .fetch_optional(&RetentionQuery::NextGroup.statement(1), &[last.as_str().into()])
            .await?;
        let next = row.map(|row| row.opt_text("group_code")).transpose()?.flatten();
        let Some(code) = next else { return Ok(found) };
        found.push(GroupCode::parse(&code)?);
        last = code;
    }
}

/// The key from which on the successful batches of a group are its newest `keep`; `None` when it
/// has no more than that.
pub async fn newest_from(tx: &mut Tx, group: &GroupCode, keep: u32) -> Result<Option<BatchId>> {
    let values = [
        group.as_str().into(),
        BatchStatus::Success.as_str().into(),
        BatchStatus::Warning.as_str().into(),
        keep.saturating_sub(1).into(),
    ];
    let row = tx.fetch_optional(&RetentionQuery::NewestFrom.statement(1), &values).await;
    let row = row.context("look for the newest batches of a group")?;
    row.map(|row| Ok(BatchId(row.get_int("batch_id")?))).transpose()
}

/// The next batches of a group that ended before `cut`, oldest end first, with the needs shown by
/// their own rows.
pub async fn candidates(
    tx: &mut Tx,
    group: &GroupCode,
    cut: Millis,
    after: Cursor,
) -> Result<Vec<Candidate>> {
    let [from, at, key] = after.values();
    let values =
        [group.as_str().into(), from, cut.to_utc().into(), at, key, u32::try_from(PAGE)?.into()];
    let rows = tx.fetch_all(&RetentionQuery::Candidates.statement(1), &values).await;
    rows.context("look for old batches")?.iter().map(candidate).collect()
}

fn candidate(row: &Row) -> Result<Candidate> {
    let mut needs = BTreeSet::new();
    let backfill = row.opt_text("backfill_status")?;
    let backfill = backfill.as_deref().and_then(BackfillStatus::parse);
    if backfill.is_some_and(|b| b.is_open() || b == BackfillStatus::Stopped) {
        needs.insert(RetentionNeed::Backfill);
    }
    let parent = row.opt_text("parent_status")?;
    let parent = parent.as_deref().and_then(BatchStatus::parse);
    if parent.is_some_and(|parent| !parent.is_success()) {
        needs.insert(RetentionNeed::Parent);
    }
    Ok(Candidate {
        batch_id: BatchId(row.get_int("batch_id")?),
        batch_no: BatchNo::parse(&row.get_text("batch_no")?)?,
        status: status_of(row, "status")?,
        ended: row.get_time("end_time")?.into(),
        revision: row.get_int("revision")?,
        needs,
    })
}

/// Adds the needs shown by other tables; `left` are partitioned tables.
pub async fn add_needs(tx: &mut Tx, of: &mut [&mut Candidate], left: LeftTables) -> Result<()> {
    let ids: Vec<i64> = of.iter().map(|c| c.batch_id.0).collect();
    let mut found: HashMap<i64, BTreeSet<RetentionNeed>> = HashMap::new();
    let asked = [
        (RetentionQuery::RowsUnknown, RetentionNeed::Unknown),
        (RetentionQuery::RowsOpen, RetentionNeed::OpenOutcome),
        (RetentionQuery::Mails, RetentionNeed::UnsentMail),
        (RetentionQuery::Firings, RetentionNeed::Firing),
        (RetentionQuery::Breaches, RetentionNeed::Breach),
    ];
    for (text, need) in asked {
        for (sql, values) in placed(text, &ids, &[]) {
            let rows = tx.fetch_all(&sql, &values).await;
            for row in rows.with_context(|| format!("look what needs old batches ({text:?})"))? {
                found.entry(row.get_int("batch_id")?).or_default().insert(need);
            }
        }
    }
    for batch in open_in_ledger(tx, &ids).await? {
        found.entry(batch).or_default().insert(RetentionNeed::OpenOutcome);
    }
    let lefts = [(left.logs, RetentionQuery::LeftLogs), (left.lines, RetentionQuery::LeftLines)];
    for (_, text) in lefts.into_iter().filter(|(is_left, _)| *is_left) {
        for id in &ids {
            let row = tx.fetch_optional(&text.statement(1), &[(*id).into()]).await;
            if row.context("look into tables that are left to partitions")?.is_some() {
                found.entry(*id).or_default().insert(RetentionNeed::Left);
            }
        }
    }
    for candidate in of {
        candidate.needs.extend(found.remove(&candidate.batch_id.0).unwrap_or_default());
    }
    Ok(())
}

/// Those of these batches with an open outcome in the ledger of the metadata database.
async fn open_in_ledger(tx: &mut Tx, ids: &[i64]) -> Result<BTreeSet<i64>> {
    let mut open = BTreeSet::new();
    let Some(installation) = installation(tx).await? else { return Ok(open) };
    for (sql, values) in placed(RetentionQuery::Ledger, ids, &[]) {
        let rows = tx.fetch_all(&sql, &values).await.context("look what is open in the ledger")?;
        for row in &rows {
            let key = row.get_text("idem_key")?;
            let keys = keys_of_runs(row, &installation)?;
            if keys.iter().any(|of_run| of_run.as_str() == key) {
                open.insert(row.get_int("batch_id")?);
            }
        }
    }
    Ok(open)
}

/// The ledger keys of the runs of a row.
fn keys_of_runs(row: &Row, installation: &str) -> Result<Vec<IdemKey>> {
    let group = GroupCode::parse(&row.get_text("group_code")?)?;
    let batch_no = BatchNo::parse(&row.get_text("batch_no")?)?;
    let code = JobCode::parse(&row.get_text("job_code")?)?;
    let form = match row.get_flag("key_has_group")? {
        true => KeyForm::WithGroup(&group, &batch_no),
        false => KeyForm::WithoutGroup(&batch_no),
    };
    let runs = 1..=u32::try_from(row.get_int("run_no")?)?;
    Ok(runs.map(|run_no| IdemKey::for_run(installation, form, &code, run_no)).collect())
}

/// Number and business date of the batches of a group that are kept for their own sake: unfinished,
/// failed or recent ones, and the newest.
pub async fn standing(
    tx: &mut Tx,
    group: &GroupCode,
    cut: Millis,
    newest: Option<BatchId>,
) -> Result<Vec<(BatchNo, Option<NaiveDate>)>> {
    let values = [
        group.as_str().into(),
        cut.to_utc().into(),
        BatchStatus::Success.as_str().into(),
        BatchStatus::Warning.as_str().into(),
        newest.map_or(0, |id| id.0).into(),
    ];
    let rows = tx.fetch_all(&RetentionQuery::Standing.statement(1), &values).await;
    let rows = rows.context("read which batches are kept")?;
    rows.iter()
        .map(|row| {
            let date = row.opt_text("business_date")?;
            let date = date.map(|d| d.parse()).transpose()?;
            Ok((BatchNo::parse(&row.get_text("batch_no")?)?, date))
        })
        .collect()
}

/// The numbers of all batches of a group.
pub async fn numbers(tx: &mut Tx, group: &GroupCode) -> Result<Vec<BatchNo>> {
    let rows = tx.fetch_all(&RetentionQuery::Numbers.statement(1), &[group.as_str().into()]).await;
    let rows = rows.context("read the numbers of a group's batches")?;
    rows.iter().map(|row| Ok(BatchNo::parse(&row.get_text("batch_no")?)?)).collect()
}

/// The batches that have not ended.
pub async fn list_open(tx: &mut Tx) -> Result<Vec<BatchId>> {
    let values = [BatchStatus::Running.as_str().into(), BatchStatus::Killing.as_str().into()];
    let rows = tx
        .fetch_all(&RetentionQuery::Open.statement(1), &values)
        .await
        .context("look for open batches")?;
    rows.iter().map(|row| Ok(BatchId(row.get_int("batch_id")?))).collect()
}

/// Batches of a group that ended before `cut` and whose lines were not removed since, oldest first.
pub async fn with_lines(
    tx: &mut Tx,
    group: &GroupCode,
    cut: Millis,
    after: Cursor,
) -> Result<Vec<(BatchId, BatchStatus, Millis)>> {
    let [from, at, key] = after.values();
    let values =
        [group.as_str().into(), from, cut.to_utc().into(), at, key, u32::try_from(PAGE)?.into()];
    let rows = tx.fetch_all(&RetentionQuery::WithLines.statement(1), &values).await;
    rows.context("look for batches with old lines")?
        .iter()
        .map(|row| {
            let id = BatchId(row.get_int("batch_id")?);
            Ok((id, status_of(row, "status")?, row.get_time("end_time")?.into()))
        })
        .collect()
}

/// The audit action for the removal of a batch.
pub const REMOVED: &str = "batch remove";

/// When the last batch of this number was removed, if one was. Called only when no batch exists: it
/// reads the whole audit log.
pub async fn removed_at(tx: &mut Tx, batch_no: &BatchNo) -> Result<Option<Millis>> {
    let sql = "SELECT MAX(create_time) AS at FROM audit_log WHERE batch_no = ? AND action = ?";
    let row = tx.fetch_optional(sql, &[batch_no.as_str().into(), REMOVED.into()]).await;
    let row = row.context("look whether a batch was removed")?;
    Ok(row.map(|row| row.opt_time("at")).transpose()?.flatten().map(Millis::from))
}

/// When the lines of a batch were removed, if they were and it has not run again since.
pub async fn lines_gone(tx: &mut Tx, id: BatchId) -> Result<Option<Millis>> {
    let sql = "SELECT lines_time FROM job_batch WHERE batch_id = ? AND lines_time >= end_time";
    let row =
        tx.fetch_optional(sql, &[id.0.into()]).await.context("look whether lines are gone")?;
    Ok(row.map(|row| row.opt_time("lines_time")).transpose()?.flatten().map(Millis::from))
}

/// Rows with an age limit of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aged {
    /// Settled firings.
    Firings,
    /// Sent notifications.
    Mails,
    /// Ended backfills.
    Backfills,
    /// Audit records.
    Audit,
}

impl Aged {
    /// Every kind, in the order of removal.
    pub const ALL: [Self; 4] = [Self::Firings, Self::Mails, Self::Backfills, Self::Audit];

    pub fn table(self) -> &'static str {
        match self {
            Self::Firings => "job_firing",
            Self::Mails => "email_notifications",
            Self::Backfills => "backfill",
            Self::Audit => "audit_log",
        }
    }
}

/// Whether a row that is old enough is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgedRowRemoval {
    Yes,
    /// Not while batches exist that it refers to.
    WithBatches,
    No,
}

/// An old row with an age limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgedRow {
    /// Its key and age.
    pub place: Cursor,
    /// Whether it is removed.
    pub goes: AgedRowRemoval,
    /// Number of rows removed with it: the batches of a backfill.
    pub others: u64,
    /// The batch that a notification is about.
    pub of_batch: Option<BatchId>,
}

/// The next rows of a kind older than `cut`, oldest first, at most `limit`. A firing is kept while
/// a batch exists that it opened or whose end caused it, and while it is the newest of its
/// schedule; a backfill while one of its batches exists.
pub async fn list_aged(
    tx: &mut Tx,
    kind: Aged,
    word: &str,
    cut: Millis,
    after: Cursor,
    limit: u32,
) -> Result<Vec<AgedRow>> {
    let [from, at, key] = after.values();
    let (text, mut values): (_, Vec<SqlValue>) = match kind {
        Aged::Firings => (RetentionQuery::Firing, vec![word.into()]),
        Aged::Mails => (RetentionQuery::SentMails, vec![]),
        Aged::Backfills => (RetentionQuery::Backfill, vec![word.into()]),
        Aged::Audit => (RetentionQuery::Audit, vec![]),
    };
    values.extend([from, cut.to_utc().into(), at, key, limit.into()]);
    let rows = tx.fetch_all(&text.statement(1), &values).await;
    let rows = rows.with_context(|| format!("look for old rows of {}", kind.table()))?;
    rows.iter().map(aged_row).collect()
}

fn aged_row(row: &Row) -> Result<AgedRow> {
    let goes = match row.get_int("needed")? {
        0 => AgedRowRemoval::Yes,
        2 => AgedRowRemoval::WithBatches,
        _ => AgedRowRemoval::No,
    };
    Ok(AgedRow {
        place: Cursor { at: row.get_time("at_time")?.into(), key: row.get_int("row_id")? },
        goes,
        others: u64::try_from(row.get_int("others")?)?,
        of_batch: Some(row.get_int("of_batch")?).filter(|id| *id != 0).map(BatchId),
    })
}

/// The batches that these rows refer to, as pairs of row and batch.
pub async fn their_batches(tx: &mut Tx, kind: Aged, ids: &[i64]) -> Result<Vec<(i64, BatchId)>> {
    let text = match kind {
        Aged::Firings => RetentionQuery::OfFirings,
        Aged::Backfills => RetentionQuery::OfBackfills,
        Aged::Mails | Aged::Audit => return Ok(Vec::new()),
    };
    let mut found = Vec::new();
    for (sql, values) in placed(text, ids, &[]) {
        // A statement may contain the list twice.
        let lists = sql.matches('?').count() / values.len();
        let values: Vec<SqlValue> =
            values.iter().cycle().take(values.len() * lists).cloned().collect();
        let rows = tx.fetch_all(&sql, &values).await.context("look for batches of old rows")?;
        for row in rows {
            found.push((row.get_int("row_id")?, BatchId(row.get_int("batch_id")?)));
        }
    }
    Ok(found)
}
