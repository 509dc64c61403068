//! `api_token`: tokens that programs send instead of a password. Only the digest of a token is
//! stored.

use crate::domain::access::user::UserId;
use crate::domain::access::{Confines, Permission};
use crate::domain::id::GroupCode;
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::seen::any_of;
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    pub id: i64,
    /// The user it belongs to.
    pub user: UserId,
    /// The name that its user gave it.
    pub name: String,
    /// What the token is restricted to.
    pub confines: Confines,
    pub create_time: Millis,
    /// When it expires.
    pub end_time: Millis,
    /// When it was last used, to the minute.
    pub used_time: Option<Millis>,
}

/// Inserts a token under a new key, and returns the key.
pub async fn add_token(tx: &mut Tx, digest: &str, new: &ApiToken) -> Result<i64> {
    let sql = "INSERT INTO api_token (user_id, token_name, secret_hash, permissions, groups_only, \
               create_time, end_time) VALUES (?, ?, ?, ?, ?, ?, ?)";
    let groups = new.confines.groups.as_ref().map(serde_json::to_string).transpose()?;
    let values = [
        new.user.0.into(),
        new.name.as_str().into(),
        digest.into(),
        serde_json::to_string(&new.confines.permissions)?.into(),
        groups.into(),
        new.create_time.to_utc().into(),
        new.end_time.to_utc().into(),
    ];
    tx.insert_id(sql, "token_id", &values).await.context("add the token")
}

fn of_row(row: &crate::db::Row) -> Result<ApiToken> {
    let permissions: BTreeSet<Permission> = serde_json::from_str(&row.get_text("permissions")?)?;
    let groups = row.opt_text("groups_only")?;
    let groups: Option<BTreeSet<GroupCode>> =
        groups.map(|g| serde_json::from_str(&g)).transpose()?;
    Ok(ApiToken {
        id: row.get_int("token_id")?,
        user: UserId(row.get_int("user_id")?),
        name: row.get_text("token_name")?,
        confines: Confines { permissions, groups },
        create_time: row.get_time("create_time")?.into(),
        end_time: row.get_time("end_time")?.into(),
        used_time: row.opt_time("used_time")?.map(Millis::from),
    })
}

/// The token with this digest, expired or not.
pub async fn by_digest(tx: &mut Tx, digest: &str) -> Result<Option<ApiToken>> {
    let sql = "SELECT * FROM api_token WHERE secret_hash = ?";
    let row = tx.fetch_optional(sql, &[digest.into()]).await.context("read the token")?;
    row.as_ref().map(of_row).transpose()
}

/// The token with this key.
pub async fn by_id(tx: &mut Tx, id: i64) -> Result<Option<ApiToken>> {
    let sql = "SELECT * FROM api_token WHERE token_id = ?";
    let row = tx.fetch_optional(sql, &[id.into()]).await.context("read the token")?;
    row.as_ref().map(of_row).transpose()
}

/// The existing tokens with these keys.
pub async fn by_ids(tx: &mut Tx, ids: &BTreeSet<i64>) -> Result<Vec<ApiToken>> {
    let (condition, values) = any_of("token_id", ids);
    let sql = format!("SELECT * FROM api_token WHERE {condition}");
    let rows = tx.fetch_all(&sql, &values).await.context("read the tokens")?;
    rows.iter().map(of_row).collect()
}

/// The tokens of a user, latest first.
pub async fn of_user(tx: &mut Tx, user: UserId) -> Result<Vec<ApiToken>> {
    let sql = "SELECT * FROM api_token WHERE user_id = ? ORDER BY token_id DESC";
    let rows = tx.fetch_all(sql, &[user.0.into()]).await.context("list the tokens")?;
    rows.iter().map(of_row).collect()
}

/// Notes that a token was used.
pub async fn note_use(tx: &mut Tx, id: i64, now: Millis) -> Result<()> {
    let sql = "UPDATE api_token SET used_time = ? WHERE token_id = ?";
    tx.execute(sql, &[now.to_utc().into(), id.into()]).await.map(drop).context("note the use")
}

/// Removes a token, which is invalid from then on.
pub async fn remove(tx: &mut Tx, id: i64) -> Result<()> {
    let sql = "DELETE FROM api_token WHERE token_id = ?";
    tx.execute(sql, &[id.into()]).await.map(drop).context("remove the token")
}
