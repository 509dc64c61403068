//! `login_attempt`: failed logins. Stored in a table, so that neither a restart nor another node
//! forgets them.

use crate::domain::access::user::{MINUTE_MS, Tries, WIDE_MS};
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// Notes an attempt in advance; a successful login removes it.
pub async fn add_attempt(tx: &mut Tx, name: &str, address: &str, now: Millis) -> Result<i64> {
    let sql = "INSERT INTO login_attempt (user_name, address, create_time) VALUES (?, ?, ?)";
    let values = [name.into(), address.into(), now.to_utc().into()];
    tx.insert_id(sql, "attempt_id", &values).await.context("note the try")
}

/// Removes an attempt.
pub async fn take_back(tx: &mut Tx, id: i64) -> Result<()> {
    let sql = "DELETE FROM login_attempt WHERE attempt_id = ?";
    tx.execute(sql, &[id.into()]).await.map(drop).context("take the try back")
}

/// The remembered attempts, without this one.
pub async fn tries(
    tx: &mut Tx,
    name: &str,
    address: &str,
    but: Option<i64>,
    now: Millis,
) -> Result<Tries> {
    let minute = now.plus_ms(-MINUTE_MS).to_utc();
    let but = but.unwrap_or(0);
    let both = "SELECT COUNT(*) AS n, MIN(create_time) AS first FROM login_attempt \
                WHERE user_name = ? AND create_time > ? AND address = ? AND attempt_id <> ?";
    let values = [name.into(), minute.into(), address.into(), but.into()];
    let both = counted(tx, both, &values).await?;
    let from = "SELECT COUNT(*) AS n, MIN(create_time) AS first FROM login_attempt \
                WHERE address = ? AND create_time > ? AND attempt_id <> ?";
    let from = counted(tx, from, &[address.into(), minute.into(), but.into()]).await?;
    let named = "SELECT COUNT(*) AS n, MIN(create_time) AS first FROM login_attempt \
                 WHERE user_name = ? AND create_time > ? AND attempt_id <> ?";
    let wide = now.plus_ms(-WIDE_MS).to_utc();
    let named = counted(tx, named, &[name.into(), wide.into(), but.into()]).await?;
    // Of two concurrent attempts the earlier one counts.
    let last = "SELECT MAX(create_time) AS last FROM login_attempt \
                WHERE user_name = ? AND create_time > ? AND attempt_id < ?";
    let before = if but == 0 { i64::MAX } else { but };
    let values = [name.into(), wide.into(), before.into()];
    let row = tx.fetch_optional(last, &values).await.context("find the last try")?;
    let last = row.context("a row")?.opt_time("last")?.map(Millis::from);
    Ok(Tries {
        of_both: both,
        of_address: from,
        of_name: named.0,
        last_of_name: last,
        is_familiar: false,
    })
}

async fn counted(
    tx: &mut Tx,
    sql: &str,
    values: &[crate::db::SqlValue],
) -> Result<(u32, Option<Millis>)> {
    let row = tx.fetch_optional(sql, values).await.context("count the tries")?;
    let row = row.context("a count")?;
    let first = row.opt_time("first")?.map(Millis::from);
    Ok((u32::try_from(row.get_int("n")?).unwrap_or(u32::MAX), first))
}

/// Removes attempts older than an hour.
pub async fn purge(tx: &mut Tx, now: Millis) -> Result<()> {
    let sql = "DELETE FROM login_attempt WHERE create_time < ?";
    let long_ago = now.plus_ms(-3_600_000).to_utc();
    tx.execute(sql, &[long_ago.into()]).await.map(drop).context("forget old tries")
}
