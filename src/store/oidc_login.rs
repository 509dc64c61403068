//! `oidc_login`: logins in progress at another provider. The browser holds the secret, this table
//! its digest: each is valid once, and for a short time.

use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// How long a login may be in progress, in milliseconds.
pub const WAY_MS: i64 = 10 * 60_000;
/// Maximum number of logins in progress; anonymous clients can start them.
const MOST: i64 = 2_000;

/// Notes a login in progress; `false` when too many are.
pub async fn add_login(tx: &mut Tx, digest: &str, now: Millis) -> Result<bool> {
    let sql = "DELETE FROM oidc_login WHERE create_time < ?";
    let long_ago = now.plus_ms(-WAY_MS).to_utc();
    tx.execute(sql, &[long_ago.into()]).await.context("forget old logins")?;
    let count = tx.fetch_optional("SELECT COUNT(*) AS n FROM oidc_login", &[]).await?;
    if count.context("a count")?.get_int("n")? >= MOST {
        return Ok(false);
    }
    let sql = "INSERT INTO oidc_login (secret_hash, create_time) VALUES (?, ?)";
    tx.execute(sql, &[digest.into(), now.to_utc().into()]).await.context("note the login")?;
    Ok(true)
}

/// Takes the record of a returning login; `false` when there is no valid one.
pub async fn take_login(tx: &mut Tx, digest: &str, now: Millis) -> Result<bool> {
    let sql = "DELETE FROM oidc_login WHERE secret_hash = ? AND create_time >= ?";
    let values = [digest.into(), now.plus_ms(-WAY_MS).to_utc().into()];
    Ok(tx.execute(sql, &values).await.context("take the login")? > 0)
}
