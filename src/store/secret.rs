//! `sealed_secret`: secrets sealed under the installation's key; this module cannot open one.

use crate::db::{Row, Tx};
use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::GroupCode;
use crate::domain::time::Millis;
use crate::store::epoch::{self, Epoch};
use crate::store::group_access;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// A stored secret, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSecretInfo {
    pub name: String,
    /// Who last sealed it.
    pub by: String,
    /// When it was last sealed.
    pub at: Millis,
    /// Which groups may use it.
    pub access: GroupAccess,
}

/// A secret as stored.
#[derive(Clone, Debug)]
pub struct SealedSecret {
    pub sealed: String,
    /// Which groups may use it.
    pub access: GroupAccess,
}

/// Inserts or replaces a secret. Schedules cache the permissions as part of the definition, so a
/// changed rule counts as a change of the definition.
pub async fn put_secret(
    tx: &mut Tx,
    name: &str,
    secret: &SealedSecret,
    by: &str,
    now: Millis,
) -> Result<()> {
    let before = find_secret(tx, name).await?.map(|stored| stored.access);
    let (now, sealed) = (now.to_utc(), secret.sealed.as_str());
    let owner = secret.access.owner_group.as_ref().map(GroupCode::as_str);
    let allowed = group_access::allowed_groups_text(&secret.access)?;
    let there = tx
        .execute(
            "UPDATE sealed_secret SET sealed = ?, sealed_by = ?, owner_group = ?, allowed_groups = ?, \
             update_time = ? WHERE secret_name = ?",
            &[
                sealed.into(),
                by.into(),
                owner.into(),
                allowed.as_deref().into(),
                now.into(),
                name.into(),
            ],
        )
        .await
        .context("store the secret")?;
    if there == 0 {
        tx.execute(
            "INSERT INTO sealed_secret (secret_name, sealed, sealed_by, owner_group, allowed_groups, \
             create_time, update_time) VALUES (?, ?, ?, ?, ?, ?, ?)",
            &[
                name.into(),
                sealed.into(),
                by.into(),
                owner.into(),
                allowed.as_deref().into(),
                now.into(),
                now.into(),
            ],
        )
        .await
        .context("store the secret")?;
    }
    match before {
        Some(access) if access == secret.access => Ok(()),
        Some(_) | None => epoch::bump_epoch(tx, Epoch::Definition).await,
    }
}

/// Sets who may use a stored secret; its value does not change.
pub async fn set_access(tx: &mut Tx, name: &str, access: &GroupAccess, now: Millis) -> Result<()> {
    let owner = access.owner_group.as_ref().map(GroupCode::as_str);
    let allowed = group_access::allowed_groups_text(access)?;
    tx.execute(
        "UPDATE sealed_secret SET owner_group = ?, allowed_groups = ?, update_time = ? WHERE secret_name = ?",
        &[owner.into(), allowed.as_deref().into(), now.to_utc().into(), name.into()],
    )
    .await
    .context("say who may use the secret")?;
    // Schedules cache the permissions as part of the definition.
    epoch::bump_epoch(tx, Epoch::Definition).await
}

/// A stored secret, sealed.
pub async fn find_secret(tx: &mut Tx, name: &str) -> Result<Option<SealedSecret>> {
    let sql = "SELECT sealed, owner_group, allowed_groups FROM sealed_secret WHERE secret_name = ?";
    let row = tx.fetch_optional(sql, &[name.into()]).await.context("read the secret")?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(SealedSecret {
        sealed: row.get_text("sealed")?,
        access: group_access::access_of_row(&row)?,
    }))
}

/// Which groups may use which stored secret, from the result of `LIST_QUERY`.
pub(super) fn access_of(rows: &[Row]) -> Result<BTreeMap<String, GroupAccess>> {
    rows.iter()
        .map(|row| Ok((row.get_text("secret_name")?, group_access::access_of_row(row)?)))
        .collect()
}

/// Which groups may use a secret that is stored now: as requested, else as before, so that a new
/// password grants no access.
pub async fn access_to_store(
    tx: &mut Tx,
    name: &str,
    access: Option<GroupAccess>,
) -> Result<GroupAccess> {
    match access {
        Some(access) => Ok(access),
        None => Ok(find_secret(tx, name).await?.map(|secret| secret.access).unwrap_or_default()),
    }
}

/// Removes a secret; returns whether it existed.
pub async fn remove(tx: &mut Tx, name: &str) -> Result<bool> {
    let sql = "DELETE FROM sealed_secret WHERE secret_name = ?";
    let is_removed = tx.execute(sql, &[name.into()]).await.context("remove the secret")? > 0;
    if is_removed {
        epoch::bump_epoch(tx, Epoch::Definition).await?;
    }
    Ok(is_removed)
}

/// The query for all stored secrets, for display.
pub(super) const LIST_QUERY: &str = "SELECT secret_name, sealed_by, update_time, owner_group, allowed_groups FROM sealed_secret \
     ORDER BY secret_name";

/// All stored secrets, by name.
pub async fn list_secrets(tx: &mut Tx) -> Result<Vec<StoredSecretInfo>> {
    let rows = tx.fetch_all(LIST_QUERY, &[]).await.context("list the secrets")?;
    rows.iter()
        .map(|row| {
            Ok(StoredSecretInfo {
                name: row.get_text("secret_name")?,
                by: row.get_text("sealed_by")?,
                at: row.get_time("update_time")?.into(),
                access: group_access::access_of_row(row)?,
            })
        })
        .collect()
}
