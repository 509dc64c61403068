//! `audit_log`: who did what, when and why. A record is written in the transaction of the change
//! and never changed.

use crate::db::{Row, SqlValue};
use crate::domain::access::audit_chain::{AuditHash, AuditHead, StoredAct};
use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode};
use crate::domain::job::job_key::JobFilter;
use crate::domain::time::Millis;
use crate::store::audit_seal::act_of;
use crate::store::change_request::{self, ApprovedChange};
pub use crate::store::seen::AuditScope;
use crate::store::seen::among;
use crate::store::{Tx, job_condition};
use anyhow::{Context as _, Result};
use serde_json::Value as Json;

/// The person or program that acts, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    pub actor: String,
    pub host: String,
    /// The approved change request that this action carries out: it is marked as carried out in the
    /// same transaction.
    pub change: Option<ApprovedChange>,
}

impl Operator {
    /// An operator who acts directly, without a change request.
    pub fn new(actor: impl Into<String>, host: impl Into<String>) -> Self {
        Self { actor: actor.into(), host: host.into(), change: None }
    }
}

/// A new audit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub action: String,
    pub group: Option<GroupCode>,
    /// The key and number of the batch.
    pub batch: Option<(BatchId, BatchNo)>,
    pub job: Option<JobCode>,
    /// The values before and after.
    pub detail: Option<Json>,
    pub reason: Option<String>,
}

/// A stored audit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Its key; greater than those of earlier records.
    pub audit_id: i64,
    pub at: Millis,
    pub by: Operator,
    pub entry: AuditEntry,
    /// Its position in the hash chain; `None` before it is sealed, a moment after its commit.
    pub seal: Option<AuditHead>,
}

/// Writes one record that concerns no group.
pub async fn record_one(
    tx: &mut Tx,
    by: &Operator,
    action: &str,
    detail: Json,
    now: Millis,
) -> Result<()> {
    let (action, detail) = (action.to_owned(), Some(detail));
    let entry = AuditEntry { action, group: None, batch: None, job: None, detail, reason: None };
    record(tx, by, &[entry], now).await
}

/// Writes records in order.
pub async fn record(tx: &mut Tx, by: &Operator, entries: &[AuditEntry], now: Millis) -> Result<()> {
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
    if let Some(change) = &by.change {
        change_request::mark_carried_out(tx, change, now).await?;
    }
    let detail = |entry: &AuditEntry| match &by.change {
        Some(change) => {
            Some(change_request::with_request(entry.detail.as_ref(), change).to_string())
        }
        None => entry.detail.as_ref().map(Json::to_string),
    };
    let rows = entries.iter().map(|entry| {
        vec![
            by.actor.as_str().into(),
            by.host.as_str().into(),
            entry.action.as_str().into(),
            entry.group.as_ref().map(GroupCode::as_str).into(),
            entry.batch.as_ref().map(|(id, _)| id.0).into(),
            entry.batch.as_ref().map(|(_, no)| no.as_str()).into(),
            entry.job.as_ref().map(JobCode::as_str).into(),
            detail(entry).into(),
            entry.reason.as_deref().into(),
            now.to_utc().into(),
        ]
    });
    tx.insert_many("audit_log", &columns, rows).await.context("write audit_log")
}

/// A filter for audit records; a `None` field does not restrict.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub actor: Option<String>,
    /// The name of the action, such as `force-success`.
    pub action: Option<String>,
    /// Records about batches of this number.
    pub batch_no: Option<BatchNo>,
    /// Records about this group or its batches.
    pub group: Option<GroupCode>,
    /// Records about these jobs.
    pub job: Option<JobFilter>,
    /// Not before this time.
    pub from: Option<Millis>,
    /// Before this time.
    pub to: Option<Millis>,
}

/// The latest records, newest first.
pub async fn list_records(
    tx: &mut Tx,
    filter: &AuditFilter,
    limit: u32,
) -> Result<Vec<AuditRecord>> {
    list_page(tx, filter, &AuditScope::All, None, limit).await
}

/// Up to this many groups are queried one by one, so that each query walks an index of its own;
/// more are queried together.
const APART: usize = 32;

/// Records that the caller may see, newest first, older than the record `before`.
pub async fn list_page(
    tx: &mut Tx,
    filter: &AuditFilter,
    told: &AuditScope,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<AuditRecord>> {
    let Some(keys) = find_keys(tx, filter, before).await? else { return Ok(Vec::new()) };
    let limit = usize::try_from(limit)?;
    let AuditScope::Groups(seen) = told else {
        let (condition, bound) = told.condition("group_code");
        return read_records(tx, filter, &keys, &condition, bound, limit).await;
    };
    if let Some(group) = &filter.group {
        return match seen.contains(group) {
            true => read_records(tx, filter, &keys, "", Vec::new(), limit).await,
            false => Ok(Vec::new()),
        };
    }
    if seen.len() > APART {
        let (condition, bound) = among("group_code", Some(seen));
        return read_records(tx, filter, &keys, &condition, bound, limit).await;
    }
    let mut found = Vec::new();
    for group in seen {
        let only = [group.clone()].into();
        let (condition, bound) = among("group_code", Some(&only));
        found.extend(read_records(tx, filter, &keys, &condition, bound, limit).await?);
    }
    found.sort_by_key(|record: &AuditRecord| std::cmp::Reverse(record.audit_id));
    found.truncate(limit);
    Ok(found)
}

/// The lowest and the highest key to read, `None` without a limit.
type Keys = (Option<i64>, Option<i64>);

/// Maximum delay between a record's time and its commit, in milliseconds: the longest transaction,
/// plus the difference of clocks.
const WRITTEN_MS: i64 = 3_600_000;

/// The key range of records in a time range; `None` when there are none. Keys grow with time except
/// for concurrent writes, so a time range is a key range, and the walk along the keys is short.
async fn find_keys(tx: &mut Tx, filter: &AuditFilter, before: Option<i64>) -> Result<Option<Keys>> {
    let (mut low, mut high) = (None, before.map(|id| id - 1));
    if let Some(from) = filter.from {
        let sql = "SELECT audit_id FROM audit_log WHERE create_time >= ? \
                   ORDER BY create_time, audit_id LIMIT 1";
        let values = [from.plus_ms(-WRITTEN_MS).to_utc().into()];
        let Some(row) = tx.fetch_optional(sql, &values).await? else { return Ok(None) };
        low = Some(row.get_int("audit_id")?);
    }
    if let Some(to) = filter.to {
        let sql = "SELECT audit_id FROM audit_log WHERE create_time < ? \
                   ORDER BY create_time DESC, audit_id DESC LIMIT 1";
        let values = [to.plus_ms(WRITTEN_MS).to_utc().into()];
        let Some(row) = tx.fetch_optional(sql, &values).await? else { return Ok(None) };
        let last = row.get_int("audit_id")?;
        high = Some(high.map_or(last, |high| high.min(last)));
    }
    Ok(Some((low, high)))
}

async fn read_records(
    tx: &mut Tx,
    filter: &AuditFilter,
    keys: &Keys,
    more: &str,
    bound: Vec<SqlValue>,
    limit: usize,
) -> Result<Vec<AuditRecord>> {
    let wanted: [(&str, Option<SqlValue>); 8] = [
        ("actor = ?", filter.actor.as_deref().map(SqlValue::from)),
        ("action = ?", filter.action.as_deref().map(SqlValue::from)),
        ("batch_no = ?", filter.batch_no.as_ref().map(|no| no.as_str().into())),
        ("group_code = ?", filter.group.as_ref().map(|code| code.as_str().into())),
        ("create_time >= ?", filter.from.map(|at| at.to_utc().into())),
        ("create_time < ?", filter.to.map(|at| at.to_utc().into())),
        ("audit_id >= ?", keys.0.map(SqlValue::from)),
        ("audit_id <= ?", keys.1.map(SqlValue::from)),
    ];
    let mut sql = "SELECT * FROM audit_log WHERE 1 = 1".to_owned();
    let mut values = Vec::new();
    for (condition, value) in wanted {
        if let Some(value) = value {
            sql.push_str(&format!(" AND {condition}"));
            values.push(value);
        }
    }
    if let Some(job) = &filter.job {
        let (condition, its) = job_condition(job);
        sql.push_str(&format!(" AND {condition}"));
        values.extend(its);
    }
    sql.push_str(more);
    values.extend(bound);
    sql.push_str(" ORDER BY audit_id DESC LIMIT ?");
    let sql = format!(
        "SELECT a.*, s.seal_no AS seal_no, s.chain_hash AS chain_hash FROM ({sql}) a \
         LEFT JOIN audit_seal s ON s.audit_id = a.audit_id ORDER BY a.audit_id DESC"
    );
    values.push(i64::try_from(limit)?.into());
    let rows = tx.fetch_all(&sql, &values).await.context("read audit_log")?;
    rows.iter().map(record_of).collect()
}

fn record_of(row: &Row) -> Result<AuditRecord> {
    let seal = match (row.opt_int("seal_no")?, row.opt_text("chain_hash")?) {
        (Some(seal_no), Some(hash)) => Some((seal_no, hash)),
        _ => None,
    };
    let act = act_of(row)?;
    let place = seal.and_then(|(seal_no, hash)| {
        AuditHash::parse(&hash).map(|hash| AuditHead { seal_no, hash })
    });
    Ok(AuditRecord { seal: place, ..record_of_act(act)? })
}

/// A record from its columns, without its position in the chain.
pub fn record_of_act(act: StoredAct) -> Result<AuditRecord> {
    let number = act.batch_no.map(|no| BatchNo::parse(&no)).transpose()?;
    Ok(AuditRecord {
        audit_id: act.audit_id,
        at: act.create_time,
        by: Operator::new(act.actor, act.host),
        entry: AuditEntry {
            action: act.action,
            group: act.group_code.map(|g| GroupCode::parse(&g)).transpose()?,
            batch: act.batch_id.map(BatchId).zip(number),
            job: act.job_code.map(|j| JobCode::parse(&j)).transpose()?,
            detail: act.detail.map(|d| serde_json::from_str(&d)).transpose()?,
            reason: act.reason,
        },
        seal: None,
    })
}
