//! `audit_seal` and `audit_head`: the hash chain over the records of `audit_log`.

use crate::db::{Row, SqlValue};
use crate::domain::access::audit_chain::{AuditHash, AuditHead, AuditSeal, StoredAct};
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result, anyhow};

/// The action name of the records about records that retention has removed.
pub const REMOVED_ACTION: &str = "audit-retention";
/// The detail key under which such a record stores the time before which records were removed, in
/// milliseconds since 1970.
pub const REMOVED_BEFORE: &str = "before_ms";
/// After this many milliseconds a record cannot still be uncommitted: the longest transaction, plus
/// the difference of clocks.
const COMMITTED_MS: i64 = 3_600_000;

/// The end of the chain, locked until the end of the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockedHead {
    /// The last seal.
    pub head: AuditHead,
    /// All records up to this key are committed and sealed.
    settled_id: i64,
}

/// A stored seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSeal {
    pub seal: AuditSeal,
    pub hash: AuditHash,
}

fn hash_of(row: &Row, column: &str) -> Result<AuditHash> {
    let text = row.get_text(column)?;
    AuditHash::parse(&text).ok_or_else(|| anyhow!("{column} is {text:?}, which is no SHA-256"))
}

pub(super) fn act_of(row: &Row) -> Result<StoredAct> {
    Ok(StoredAct {
        audit_id: row.get_int("audit_id")?,
        actor: row.get_text("actor")?,
        host: row.get_text("host")?,
        action: row.get_text("action")?,
        group_code: row.opt_text("group_code")?,
        batch_id: row.opt_int("batch_id")?,
        batch_no: row.opt_text("batch_no")?,
        job_code: row.opt_text("job_code")?,
        detail: row.opt_text("detail")?,
        reason: row.opt_text("reason")?,
        create_time: row.get_time("create_time")?.into(),
    })
}

fn seal_of(row: &Row) -> Result<StoredSeal> {
    let seal = AuditSeal {
        seal_no: row.get_int("seal_no")?,
        audit_id: row.get_int("sealed_id")?,
        act_time: row.get_time("act_time")?.into(),
        row_hash: hash_of(row, "row_hash")?,
    };
    Ok(StoredSeal { seal, hash: hash_of(row, "chain_hash")? })
}

/// The end of the chain; `None` when its row is missing.
pub async fn find_head(tx: &mut Tx) -> Result<Option<AuditHead>> {
    Ok(read_head(tx, "").await?.map(|locked| locked.head))
}

/// Locks the end of the chain; must be the first statement of its transaction.
pub async fn lock_head(tx: &mut Tx) -> Result<LockedHead> {
    let lock = tx.dialect().for_update();
    let head = read_head(tx, lock).await?;
    head.context(
        "audit_head has no row; the chain of the audit log was broken by hand (audit verify)",
    )
}

async fn read_head(tx: &mut Tx, lock: &str) -> Result<Option<LockedHead>> {
    let sql =
        format!("SELECT seal_no, chain_hash, settled_id FROM audit_head WHERE head_id = 1{lock}");
    let row = tx.fetch_optional(&sql, &[]).await.context("read audit_head")?;
    row.map(|row| {
        let head =
            AuditHead { seal_no: row.get_int("seal_no")?, hash: hash_of(&row, "chain_hash")? };
        Ok(LockedHead { head, settled_id: row.get_int("settled_id")? })
    })
    .transpose()
}

/// The highest key of a record; 0 without records. Cheap.
pub async fn last_act(tx: &mut Tx) -> Result<i64> {
    Ok(id(tx, "SELECT MAX(audit_id) AS id FROM audit_log", &[]).await?.unwrap_or(0))
}

/// Whether there is a record without a seal, or the head could advance. Reads only, so that it can
/// be called often.
pub async fn is_due(tx: &mut Tx, now: Millis) -> Result<bool> {
    // `lock_head` reports a missing row.
    let Some(head) = read_head(tx, "").await? else { return Ok(true) };
    let sql = "SELECT MIN(a.audit_id) AS id FROM audit_log a WHERE a.audit_id > ? AND NOT EXISTS \
               (SELECT 1 FROM audit_seal s WHERE s.audit_id = a.audit_id)";
    if id(tx, sql, &[head.settled_id.into()]).await?.is_some() {
        return Ok(true);
    }
    let last = last_act(tx).await?;
    Ok(settled(tx, head.settled_id, last, now).await? != head.settled_id)
}

/// Continues the chain: seals up to `most` unsealed records in the order of their keys. Returns
/// their number.
pub async fn seal_acts(tx: &mut Tx, locked: LockedHead, most: u32, now: Millis) -> Result<usize> {
    // Read before the records: a record committed meanwhile is found the next time.
    let last = last_act(tx).await?;
    let sql = "SELECT a.audit_id AS audit_id, a.actor AS actor, a.host AS host, \
               a.action AS action, a.group_code AS group_code, a.batch_id AS batch_id, a.batch_no AS batch_no, \
               a.job_code AS job_code, a.detail AS detail, a.reason AS reason, a.create_time AS create_time \
               FROM audit_log a WHERE a.audit_id > ? AND NOT EXISTS \
               (SELECT 1 FROM audit_seal s WHERE s.audit_id = a.audit_id) ORDER BY a.audit_id LIMIT ?";
    let rows = tx.fetch_all(sql, &[locked.settled_id.into(), most.into()]).await;
    let rows = rows.context("read acts without a seal")?;
    let acts: Vec<StoredAct> = rows.iter().map(act_of).collect::<Result<_>>()?;
    let mut head = locked.head;
    let mut seals = Vec::new();
    for act in &acts {
        let seal = AuditSeal {
            seal_no: head.seal_no + 1,
            audit_id: act.audit_id,
            act_time: act.create_time,
            row_hash: act.hash(),
        };
        head = AuditHead { seal_no: seal.seal_no, hash: seal.hash_after(head.hash) };
        seals.push(row_of(&StoredSeal { seal, hash: head.hash }));
    }
    let columns = ["seal_no", "audit_id", "act_time", "row_hash", "chain_hash"];
    if !seals.is_empty() {
        tx.insert_many("audit_seal", &columns, seals).await.context("write audit_seal")?;
    }
    let is_full = acts.len() >= usize::try_from(most)?;
    let bound = match acts.last() {
        Some(act) if is_full => act.audit_id,
        _ => last,
    };
    let settled_id = settled(tx, locked.settled_id, bound, now).await?;
    if head != locked.head || settled_id != locked.settled_id {
        write_head(tx, head, settled_id).await?;
    }
    Ok(acts.len())
}

fn row_of(stored: &StoredSeal) -> Vec<SqlValue> {
    let seal = &stored.seal;
    vec![
        seal.seal_no.into(),
        seal.audit_id.into(),
        seal.act_time.to_utc().into(),
        seal.row_hash.to_string().into(),
        stored.hash.to_string().into(),
    ]
}

/// The key up to which no further record can be committed: keys are assigned before the commit, so
/// a lower key may be committed after a higher one, but not after one that is an hour old.
async fn settled(tx: &mut Tx, from: i64, bound: i64, now: Millis) -> Result<i64> {
    let cut = now.plus_ms(-COMMITTED_MS).to_utc();
    let young = "SELECT MIN(audit_id) AS id FROM audit_log WHERE create_time >= ? AND audit_id > ?";
    let young = id(tx, young, &[cut.into(), from.into()]).await?;
    let bound = young.map_or(bound, |young| bound.min(young - 1));
    let old = "SELECT MAX(audit_id) AS id FROM audit_log \
               WHERE create_time < ? AND audit_id > ? AND audit_id <= ?";
    let old = id(tx, old, &[cut.into(), from.into(), bound.into()]).await?;
    Ok(old.unwrap_or(from))
}

async fn id(tx: &mut Tx, sql: &str, values: &[SqlValue]) -> Result<Option<i64>> {
    let row = tx.fetch_optional(sql, values).await.context("read audit_log")?;
    row.map(|row| Ok(row.opt_int("id")?)).transpose().map(Option::flatten)
}

async fn write_head(tx: &mut Tx, head: AuditHead, settled_id: i64) -> Result<()> {
    let sql = "UPDATE audit_head SET seal_no = ?, chain_hash = ?, settled_id = ? WHERE head_id = 1";
    let values = [head.seal_no.into(), head.hash.to_string().into(), settled_id.into()];
    tx.execute(sql, &values).await.context("write audit_head")?;
    Ok(())
}

/// A seal, with its record if that exists.
pub struct SealedAct {
    pub stored: StoredSeal,
    pub act: Option<StoredAct>,
}

/// Seals after this number with their records, in order.
pub async fn sealed_acts(tx: &mut Tx, after: i64, most: u32) -> Result<Vec<SealedAct>> {
    let sql = "SELECT s.seal_no AS seal_no, s.audit_id AS sealed_id, s.act_time AS act_time, \
               s.row_hash AS row_hash, s.chain_hash AS chain_hash, a.audit_id AS there, \
               a.audit_id AS audit_id, a.actor AS actor, a.host AS host, \
               a.action AS action, a.group_code AS group_code, a.batch_id AS batch_id, a.batch_no AS batch_no, \
               a.job_code AS job_code, a.detail AS detail, a.reason AS reason, a.create_time AS create_time \
               FROM audit_seal s LEFT JOIN audit_log a ON a.audit_id = s.audit_id \
               WHERE s.seal_no > ? ORDER BY s.seal_no LIMIT ?";
    let rows = tx.fetch_all(sql, &[after.into(), most.into()]).await.context("read audit_seal")?;
    rows.iter()
        .map(|row| {
            let act = match row.opt_int("there")? {
                Some(_) => Some(act_of(row)?),
                None => None,
            };
            Ok(SealedAct { stored: seal_of(row)?, act })
        })
        .collect()
}

/// Records without a seal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsealedActs {
    /// Number of records that will still be sealed.
    pub waiting: i64,
    /// The first record that Procession cannot have written: its key is in the range in which all
    /// records are sealed.
    pub first_foreign: Option<i64>,
}

/// Counts records without a seal.
pub async fn unsealed(tx: &mut Tx) -> Result<UnsealedActs> {
    let settled_id = read_head(tx, "").await?.map_or(0, |head| head.settled_id);
    let sql = "SELECT COUNT(*) AS id FROM audit_log a WHERE a.audit_id > ? AND NOT EXISTS \
               (SELECT 1 FROM audit_seal s WHERE s.audit_id = a.audit_id)";
    let waiting = id(tx, sql, &[settled_id.into()]).await?.unwrap_or(0);
    let sql = "SELECT MIN(a.audit_id) AS id FROM audit_log a WHERE a.audit_id <= ? AND NOT EXISTS \
               (SELECT 1 FROM audit_seal s WHERE s.audit_id = a.audit_id)";
    let first_foreign = id(tx, sql, &[settled_id.into()]).await?;
    Ok(UnsealedActs { waiting, first_foreign })
}

/// The time before which retention has removed records, according to its own records.
pub async fn removed_before(tx: &mut Tx) -> Result<Option<Millis>> {
    let sql = "SELECT detail FROM audit_log WHERE action = ?";
    let mut latest = None;
    for row in tx.fetch_all(sql, &[REMOVED_ACTION.into()]).await.context("read audit_log")? {
        let detail = row.opt_text("detail")?.unwrap_or_default();
        let detail: serde_json::Value = serde_json::from_str(&detail).unwrap_or_default();
        latest = latest.max(detail[REMOVED_BEFORE].as_i64());
    }
    Ok(latest.map(Millis))
}
