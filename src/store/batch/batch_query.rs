//! Searches batches for people: by filter, one page at a time.

use super::{COLUMNS, batch};
use crate::db::{Row, SqlValue, filled};
use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::id::{BatchId, BatchNo, GroupCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, HashMap};

/// A filter for batches; a `None` or empty field does not restrict.
#[derive(Clone, Debug, Default)]
pub struct BatchFilter {
    pub groups: Option<Vec<GroupCode>>,
    pub batch_no: Option<BatchNo>,
    /// A text contained in the batch number or group.
    pub text: Option<String>,
    pub statuses: Vec<BatchStatus>,
    /// The type of the group.
    pub batch_type: Option<String>,
    /// Opened at or after this time.
    pub from: Option<Millis>,
    /// Opened before this time.
    pub to: Option<Millis>,
    /// Older than this batch.
    pub before: Option<BatchId>,
}

impl BatchFilter {
    /// The condition on rows, and its values.
    fn condition(&self) -> (String, Vec<SqlValue>) {
        let mut all = vec!["1 = 1".to_owned()];
        let mut values: Vec<SqlValue> = Vec::new();
        let mut says = |condition: String, more: Vec<SqlValue>| {
            all.push(condition);
            values.extend(more);
        };
        let one_of = |column: &str, count: usize| match count {
            0 => "1 = 0".to_owned(),
            n => format!("{column} IN ({})", vec!["?"; n].join(", ")),
        };
        if let Some(groups) = &self.groups {
            let codes = groups.iter().map(|g| g.as_str().into()).collect();
            says(one_of("group_code", groups.len()), codes);
        }
        if let Some(no) = &self.batch_no {
            says("batch_no = ?".to_owned(), vec![no.as_str().into()]);
        }
        if let Some(text) = &self.text {
            let like = containing(text);
            let found =
                "(LOWER(batch_no) LIKE ? ESCAPE '!' OR LOWER(group_code) LIKE ? ESCAPE '!')";
            says(found.to_owned(), vec![like.as_str().into(), like.as_str().into()]);
        }
        if !self.statuses.is_empty() {
            let words = self.statuses.iter().map(|s| s.as_str().into()).collect();
            says(one_of("status", self.statuses.len()), words);
        }
        if let Some(word) = &self.batch_type {
            says("batch_type = ?".to_owned(), vec![word.as_str().into()]);
        }
        if let Some(from) = self.from {
            says("create_time >= ?".to_owned(), vec![from.to_utc().into()]);
        }
        if let Some(to) = self.to {
            says("create_time < ?".to_owned(), vec![to.to_utc().into()]);
        }
        if let Some(before) = self.before {
            says("batch_id < ?".to_owned(), vec![before.0.into()]);
        }
        (all.join(" AND "), values)
    }
}

/// A LIKE pattern for columns that contain this text; its escape character is `!`.
pub(in crate::store) fn containing(text: &str) -> String {
    let mut pattern = "%".to_owned();
    for c in text.to_lowercase().chars() {
        if matches!(c, '!' | '%' | '_') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// Batches, newest first.
pub async fn list_page(tx: &mut Tx, asked: &BatchFilter, limit: u32) -> Result<Vec<Batch>> {
    let (chosen, mut values) = asked.condition();
    let sql =
        format!("SELECT {COLUMNS} FROM job_batch WHERE {chosen} ORDER BY batch_id DESC LIMIT ?");
    values.push(limit.into());
    let rows = tx.fetch_all(&sql, &values).await.context("look for batches")?;
    rows.iter().map(batch).collect()
}

/// Number of jobs in each state, for each of these batches (one page).
pub async fn counts_of(
    tx: &mut Tx,
    ids: &[BatchId],
) -> Result<HashMap<BatchId, BTreeMap<QueueStatus, u64>>> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let (places, values) = filled(&ids);
    let sql = format!(
        "SELECT batch_id, status, COUNT(*) AS n FROM job_queue WHERE batch_id IN ({places}) \
         GROUP BY batch_id, status"
    );
    let rows = tx.fetch_all(&sql, &values).await;
    let mut all: HashMap<BatchId, BTreeMap<QueueStatus, u64>> = HashMap::new();
    for row in rows.context("count the jobs of batches")? {
        let of = all.entry(BatchId(row.get_int("batch_id")?)).or_default();
        *of.entry(status(&row)?).or_default() += u64::try_from(row.get_int("n")?)?;
    }
    Ok(all)
}

fn status(row: &Row) -> Result<QueueStatus> {
    let word = row.get_text("status")?;
    QueueStatus::parse(&word)
        .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_for_is_no_pattern() {
        assert_eq!(containing("50%_A!"), "%50!%!_a!!%");
        let nobody = BatchFilter { groups: Some(Vec::new()), ..BatchFilter::default() };
        assert_eq!(nobody.condition().0, "1 = 1 AND 1 = 0");
    }
}
