//! `sealed_secret`: secrets sealed under the installation's key; nothing here can open one.

use crate::db::Tx;
use crate::domain::time::Millis;
use anyhow::{Context as _, Result};

/// A stored secret, as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name.
    pub name: String,
    /// Who sealed it last.
    pub by: String,
    /// When that was.
    pub at: Millis,
}

/// Stores the sealed text of a secret, in the place of an older one.
pub async fn put(tx: &mut Tx, name: &str, sealed: &str, by: &str, now: Millis) -> Result<()> {
    let now = now.to_utc();
    let there = tx
        .execute(
            "UPDATE sealed_secret SET sealed = ?, sealed_by = ?, update_time = ? WHERE secret_name = ?",
            &[sealed.into(), by.into(), now.into(), name.into()],
        )
        .await
        .context("store the secret")?;
    if there == 0 {
        tx.execute(
            "INSERT INTO sealed_secret (secret_name, sealed, sealed_by, create_time, update_time) \
             VALUES (?, ?, ?, ?, ?)",
            &[name.into(), sealed.into(), by.into(), now.into(), now.into()],
        )
        .await
        .context("store the secret")?;
    }
    Ok(())
}

/// The sealed text of a secret.
pub async fn sealed(tx: &mut Tx, name: &str) -> Result<Option<String>> {
    let row = tx
        .fetch_optional("SELECT sealed FROM sealed_secret WHERE secret_name = ?", &[name.into()])
        .await
        .context("read the secret")?;
    Ok(row.map(|row| row.text("sealed")).transpose()?)
}

/// Removes a secret; gives whether it was there.
pub async fn remove(tx: &mut Tx, name: &str) -> Result<bool> {
    let sql = "DELETE FROM sealed_secret WHERE secret_name = ?";
    Ok(tx.execute(sql, &[name.into()]).await.context("remove the secret")? > 0)
}

/// All stored secrets, by name.
pub async fn list(tx: &mut Tx) -> Result<Vec<Stored>> {
    let sql = "SELECT secret_name, sealed_by, update_time FROM sealed_secret ORDER BY secret_name";
    let rows = tx.fetch_all(sql, &[]).await.context("list the secrets")?;
    rows.iter()
        .map(|row| {
            Ok(Stored {
                name: row.text("secret_name")?,
                by: row.text("sealed_by")?,
                at: row.time("update_time")?.into(),
            })
        })
        .collect()
}
