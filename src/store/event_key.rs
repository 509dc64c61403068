//! `event_key`: the keys of received events, so that an event that is sent again fires nothing.

use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// Maximum length of a key, in characters.
pub const KEY_MAX: usize = 100;
/// How long a key is remembered: 31 days, in milliseconds.
pub const KEPT_MS: i64 = 31 * 24 * 3_600_000;

/// Maximum number of old keys removed when a new one arrives: the schedule lock is held meanwhile,
/// and after a month with millions of events no caller should wait until all of them are removed.
const FORGET_MOST: i64 = 500;

/// Remembers a key; returns when it was first received, if it was. The caller holds the schedule
/// lock.
pub async fn remember(tx: &mut Tx, event: &str, key: &str, now: Millis) -> Result<Option<Millis>> {
    let kept = now.plus_ms(-KEPT_MS);
    forget(tx, kept).await.context("forget old keys")?;
    let sql = "SELECT create_time FROM event_key WHERE event_name = ? AND event_key = ?";
    let row =
        tx.fetch_optional(sql, &[event.into(), key.into()]).await.context("read event_key")?;
    if let Some(row) = row {
        let before: Millis = row.get_time("create_time")?.into();
        if before >= kept {
            return Ok(Some(before));
        }
        // Expired, but not removed yet.
        let sql = "UPDATE event_key SET create_time = ? WHERE event_name = ? AND event_key = ?";
        let values = [now.to_utc().into(), event.into(), key.into()];
        tx.execute(sql, &values).await.context("write event_key")?;
        return Ok(None);
    }
    tx.execute(
        "INSERT INTO event_key (event_name, event_key, create_time) VALUES (?, ?, ?)",
        &[event.into(), key.into(), now.to_utc().into()],
    )
    .await
    .context("write event_key")?;
    Ok(None)
}

/// Removes the oldest keys from before `kept`, with those of the same millisecond.
async fn forget(tx: &mut Tx, kept: Millis) -> Result<()> {
    let sql = "SELECT create_time FROM event_key WHERE create_time < ? ORDER BY create_time LIMIT 1 \
               OFFSET ?";
    let values = [kept.to_utc().into(), (FORGET_MOST - 1).into()];
    let last = match tx.fetch_optional(sql, &values).await? {
        Some(row) => row.get_time("create_time")?,
        None => kept.plus_ms(-1).to_utc(),
    };
    tx.execute("DELETE FROM event_key WHERE create_time <= ?", &[last.into()]).await?;
    Ok(())
}
