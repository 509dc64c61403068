//! Counts the rows that would be removed.

use super::remove_rows::rows_of;
use super::{ByTable, RetentionQuery, placed};
use crate::domain::id::GroupCode;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// A limit above the number of rows that any page of batches has.
const EVERY: u64 = 1 << 30;

/// Counts the rows of these batches by table, including the batches.
pub async fn counted(tx: &mut Tx, ids: &[i64]) -> Result<ByTable> {
    let mut all = ByTable::from([("job_batch", u64::try_from(ids.len())?)]);
    for (table, text) in [
        ("job_queue", RetentionQuery::CountRows),
        ("job_report", RetentionQuery::CountReports),
        ("email_notifications", RetentionQuery::CountMails),
    ] {
        all.insert(table, count(tx, text, ids).await?);
    }
    let runs = count(tx, RetentionQuery::CountRuns, ids).await?;
    // Few installations have any.
    all.extend((runs > 0).then_some(("executor_run", runs)));
    let approvals = count(tx, RetentionQuery::CountApprovals, ids).await?;
    all.extend((approvals > 0).then_some(("job_approval", approvals)));
    let marks = count(tx, RetentionQuery::CountFailureMarks, ids).await?;
    all.extend((marks > 0).then_some(("failure_mark", marks)));
    let rows = rows_of(tx, ids, EVERY).await?;
    all.insert("job_execution_logs", count(tx, RetentionQuery::CountLogs, &rows).await?);
    all.insert("job_log_line", count(tx, RetentionQuery::CountLines, &rows).await?);
    let values = count(tx, RetentionQuery::CountOutputValues, &rows).await?;
    all.extend((values > 0).then_some(("job_output_value", values)));
    Ok(all)
}

/// Counts the log lines of these batches.
pub async fn lines(tx: &mut Tx, ids: &[i64]) -> Result<u64> {
    let rows = rows_of(tx, ids, EVERY).await?;
    count(tx, RetentionQuery::CountLines, &rows).await
}

async fn count(tx: &mut Tx, text: RetentionQuery, ids: &[i64]) -> Result<u64> {
    let mut found = 0;
    for (sql, values) in placed(text, ids, &[]) {
        let row = tx.fetch_optional(&sql, &values).await.context("count old rows")?;
        found += u64::try_from(row.map(|row| row.get_int("n")).transpose()?.unwrap_or(0))?;
    }
    Ok(found)
}

/// Number of batches of a group that are kept without further checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ages {
    /// Unfinished ones.
    pub open: u64,
    /// Those that ended at `cut` or later.
    pub young: u64,
}

/// Counts the batches of a group that have not ended, or ended at `cut` or later.
pub async fn count_ages(tx: &mut Tx, group: &GroupCode, cut: Millis) -> Result<Ages> {
    let code = group.as_str();
    let open = tx.fetch_optional(&RetentionQuery::CountOpen.statement(1), &[code.into()]).await?;
    let values = [code.into(), cut.to_utc().into()];
    let young = tx.fetch_optional(&RetentionQuery::CountYoung.statement(1), &values).await?;
    let n = |row: Option<crate::db::Row>| -> Result<u64> {
        Ok(u64::try_from(row.map(|row| row.get_int("n")).transpose()?.unwrap_or(0))?)
    };
    Ok(Ages { open: n(open)?, young: n(young)? })
}
