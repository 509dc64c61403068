//! `event_key`: under which keys events were sent, so that one that is sent again fires nothing.

use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// Longest key, in characters.
pub const KEY_MAX: usize = 100;
/// How long a key is remembered: 31 days.
pub const KEPT_MS: i64 = 31 * 24 * 3_600_000;

/// Old keys that are forgotten whenever a new one comes, at most: the schedule lock is held meanwhile, and
/// after a month in which millions came nobody is to wait until all of them are gone.
const FORGET_MOST: i64 = 500;

/// Remembers a key; gives when it came first, if it has come before. The caller holds the schedule lock.
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
        // Old, and its turn to be forgotten had not come.
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

/// Removes the oldest keys that came before `kept`, with those that came in the same millisecond.
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
