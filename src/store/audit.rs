//! `audit_log`: who did what, when and why. Written in the transaction of the change, never changed.

use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode};
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};
use serde_json::Value as Json;

/// Who acts, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The person or program.
    pub actor: String,
    /// The host.
    pub host: String,
}

/// One act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What was done.
    pub action: String,
    /// To which group.
    pub group: Option<GroupCode>,
    /// To which batch: its key and number.
    pub batch: Option<(BatchId, BatchNo)>,
    /// To which job.
    pub job: Option<JobCode>,
    /// Before and after.
    pub detail: Option<Json>,
    /// Why.
    pub reason: Option<String>,
}

/// An act that is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub at: Millis,
    /// Who.
    pub by: Operator,
    /// What.
    pub entry: Entry,
}

/// Puts acts on record, in order.
pub async fn record(tx: &mut Tx, by: &Operator, entries: &[Entry], now: Millis) -> Result<()> {
    let columns = [
        "actor",
        "host",
        "action",
        "group_code",
        "batch_id",
        "batch_no",
        "job_code",
        "detail",
        "reason",
        "create_time",
    ];
    let rows = entries.iter().map(|entry| {
        vec![
            by.actor.as_str().into(),
            by.host.as_str().into(),
            entry.action.as_str().into(),
            entry.group.as_ref().map(GroupCode::as_str).into(),
            entry.batch.as_ref().map(|(id, _)| id.0).into(),
            entry.batch.as_ref().map(|(_, no)| no.as_str()).into(),
            entry.job.as_ref().map(JobCode::as_str).into(),
            entry.detail.as_ref().map(Json::to_string).into(),
            entry.reason.as_deref().into(),
            now.to_utc().into(),
        ]
    });
    tx.insert_many("audit_log", &columns, rows).await.context("write audit_log")
}

/// Which acts are asked for; what is `None` does not matter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Those on batches of this number.
    pub batch_no: Option<BatchNo>,
    /// Those on this group or its batches.
    pub group: Option<GroupCode>,
    /// Those on this job.
    pub job: Option<JobCode>,
}

/// The latest acts, newest first.
pub async fn list(tx: &mut Tx, filter: &Filter, limit: u32) -> Result<Vec<Record>> {
    let wanted = [
        ("batch_no", filter.batch_no.as_ref().map(BatchNo::as_str)),
        ("group_code", filter.group.as_ref().map(GroupCode::as_str)),
        ("job_code", filter.job.as_ref().map(JobCode::as_str)),
    ];
    let mut sql = "SELECT * FROM audit_log WHERE 1 = 1".to_owned();
    let mut values = Vec::new();
    for (column, value) in wanted {
        if let Some(value) = value {
            sql.push_str(&format!(" AND {column} = ?"));
            values.push(value.into());
        }
    }
    sql.push_str(" ORDER BY audit_id DESC LIMIT ?");
    values.push(limit.into());
    let rows = tx.fetch_all(&sql, &values).await.context("read audit_log")?;
    rows.iter()
        .map(|row| {
            let number = row.opt_text("batch_no")?.map(|no| BatchNo::parse(&no)).transpose()?;
            let detail = row.opt_text("detail")?;
            Ok(Record {
                at: row.time("create_time")?.into(),
                by: Operator { actor: row.text("actor")?, host: row.text("host")? },
                entry: Entry {
                    action: row.text("action")?,
                    group: row.opt_text("group_code")?.map(|g| GroupCode::parse(&g)).transpose()?,
                    batch: row.opt_int("batch_id")?.map(BatchId).zip(number),
                    job: row.opt_text("job_code")?.map(|j| JobCode::parse(&j)).transpose()?,
                    detail: detail.map(|d| serde_json::from_str(&d)).transpose()?,
                    reason: row.opt_text("reason")?,
                },
            })
        })
        .collect()
}
