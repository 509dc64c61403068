//! `event_key`: under which keys events were sent, so that one that is sent again fires nothing.

use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// Longest key, in characters.
pub const KEY_MAX: usize = 100;
/// How long a key is remembered: 31 days.
pub const KEPT_MS: i64 = 31 * 24 * 3_600_000;

/// Remembers a key; gives when it came first, if it has come before. The caller holds the schedule lock.
pub async fn remember(tx: &mut Tx, event: &str, key: &str, now: Millis) -> Result<Option<Millis>> {
    let old = [now.plus(-KEPT_MS).to_utc().into()];
    tx.execute("DELETE FROM event_key WHERE create_time < ?", &old)
        .await
        .context("forget old keys")?;
    let sql = "SELECT create_time FROM event_key WHERE event_name = ? AND event_key = ?";
    let row =
        tx.fetch_optional(sql, &[event.into(), key.into()]).await.context("read event_key")?;
    if let Some(row) = row {
        return Ok(Some(row.time("create_time")?.into()));
    }
    tx.execute(
        "INSERT INTO event_key (event_name, event_key, create_time) VALUES (?, ?, ?)",
        &[event.into(), key.into(), now.to_utc().into()],
    )
    .await
    .context("write event_key")?;
    Ok(None)
}
