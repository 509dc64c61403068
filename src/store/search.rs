//! The search box of the console: jobs, groups, batches, schedules. Each statement returns few
//! rows; those that scan a table scan the definition, never the history.

use crate::db::{Row, SqlValue};
use crate::domain::batch::Batch;
use crate::domain::id::{GroupCode, JobCode};
use crate::store::Tx;
use crate::store::batch::{COLUMNS, batch};
use crate::store::job_list::ALIASES;
use crate::store::seen::{among, holds, plain};
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;

/// A job that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundJob {
    pub code: JobCode,
    pub name: String,
    pub group: GroupCode,
    /// Its tags, separated by commas.
    pub tags: String,
    pub aliases: Vec<String>,
}

/// Jobs of visible groups that contain a text: first those whose code equals the text, then those
/// whose code begins with it.
pub async fn find_jobs(
    tx: &mut Tx,
    text: &str,
    seen: Option<&BTreeSet<GroupCode>>,
    limit: u32,
) -> Result<Vec<FoundJob>> {
    let (condition, mut values) = holds(&["job_code", "job_name", "tags", ALIASES], text);
    let (whose, its) = among("group_code", seen);
    values.extend(its);
    let sql = format!(
        "SELECT job_code, job_name, group_code, tags, body FROM job_def WHERE 1 = 1{condition}{whose} \
         ORDER BY CASE WHEN LOWER(job_code) = ? THEN 0 WHEN LOWER(job_code) LIKE ? ESCAPE '!' THEN 1 \
         ELSE 2 END, job_code, group_code LIMIT ?"
    );
    values.extend(first(text));
    values.push(limit.into());
    let rows = tx.fetch_all(&sql, &values).await.context("look for jobs")?;
    let job = |row: &Row| -> Result<FoundJob> {
        let body: serde_json::Value = serde_json::from_str(&row.get_text("body")?)?;
        let aliases = body["aliases"].as_array().into_iter().flatten();
        Ok(FoundJob {
            code: JobCode::parse(&row.get_text("job_code")?)?,
            name: row.get_text("job_name")?,
            group: GroupCode::parse(&row.get_text("group_code")?)?,
            tags: row.opt_text("tags")?.unwrap_or_default(),
            aliases: aliases.filter_map(|a| a.as_str().map(str::to_owned)).collect(),
        })
    };
    rows.iter().map(job).collect()
}

/// Sort values: the text itself, and codes that begin with it.
fn first(text: &str) -> [SqlValue; 2] {
    let text = text.to_lowercase();
    [text.as_str().into(), format!("{}%", plain(&text)).into()]
}

/// Batches of visible groups whose numbers begin with a text, latest number first.
pub async fn batches(
    tx: &mut Tx,
    text: &str,
    seen: Option<&BTreeSet<GroupCode>>,
    limit: u32,
) -> Result<Vec<Batch>> {
    let (whose, its) = among("group_code", seen);
    // Numbers with this prefix sort after the text in any collation; where the last of them sorts
    // is not known, so the index range is open at one end.
    let sql = format!(
        "SELECT {COLUMNS} FROM job_batch WHERE batch_no >= ? AND batch_no LIKE ? ESCAPE '!'{whose} \
         ORDER BY batch_no DESC, batch_id DESC LIMIT ?"
    );
    let mut values: Vec<SqlValue> = vec![text.into(), format!("{}%", plain(text)).into()];
    values.extend(its);
    values.push(limit.into());
    let rows = tx.fetch_all(&sql, &values).await.context("look for batches")?;
    rows.iter().map(batch).collect()
}

/// The latest batches of a group, newest first.
pub async fn latest(tx: &mut Tx, group: &GroupCode, limit: u32) -> Result<Vec<Batch>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM job_batch WHERE group_code = ? ORDER BY batch_id DESC LIMIT ?"
    );
    let rows = tx.fetch_all(&sql, &[group.as_str().into(), limit.into()]).await;
    rows.context("read job_batch")?.iter().map(batch).collect()
}
