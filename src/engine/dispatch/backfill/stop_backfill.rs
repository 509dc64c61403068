//! Requests a stop of a backfill.

use super::audit_entry;
use crate::domain::backfill::BackfillStatus;
use crate::domain::time::Millis;
use crate::store::audit::{self, Operator};
use crate::store::backfill::{self, Backfill};
use crate::store::{Db, node};
use anyhow::{Context as _, Result};
use serde_json::json;

/// Requests a stop of a backfill; `false` when it is not running. A backfill whose process has died
/// is marked as stopped at once, because no process would do it.
pub async fn stop_backfill(
    db: &Db,
    there: &Backfill,
    by: &Operator,
    reason: Option<&str>,
    now: Millis,
) -> Result<bool> {
    let mut tx = db.begin().await?;
    if !backfill::request_stop(&mut tx, there.id, now).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    let detail = json!({"backfill": there.id.0});
    let act = audit_entry("backfill stop", &there.group, detail, reason);
    audit::record(&mut tx, by, &[act], now).await?;
    if let Some(owner) = &there.owner
        && node::find_node(&mut tx, owner).await?.is_none_or(|node| node.lease_until <= now)
    {
        backfill::finish(&mut tx, there.id, owner, BackfillStatus::Stopped, now).await?;
    }
    tx.commit().await.context("ask for a backfill to be stopped")?;
    Ok(true)
}
