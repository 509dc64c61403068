//! `user_session`: sessions of logged-in users. Only the digest of a session's secret is stored.

use crate::domain::access::user::UserId;
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::seen::any_of;
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSession {
    pub id: i64,
    pub user: UserId,
    /// How the user logged in: `password` or `oidc`.
    pub proof: String,
    /// The client address.
    pub address: String,
    /// The user agent of the browser.
    pub agent: Option<String>,
    pub create_time: Millis,
    /// When it was last used, to the minute.
    pub used_time: Millis,
    /// When it ends at the latest.
    pub end_time: Millis,
}

/// Inserts a session under a new key, and returns the key.
pub async fn add_session(tx: &mut Tx, digest: &str, new: &UserSession) -> Result<i64> {
    let sql = "INSERT INTO user_session (user_id, secret_hash, proof, address, agent, create_time, \
               used_time, end_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    let values = [
        new.user.0.into(),
        digest.into(),
        new.proof.as_str().into(),
        new.address.as_str().into(),
        new.agent.as_deref().into(),
        new.create_time.to_utc().into(),
        new.used_time.to_utc().into(),
        new.end_time.to_utc().into(),
    ];
    tx.insert_id(sql, "session_id", &values).await.context("add the session")
}

fn of_row(row: &crate::db::Row) -> Result<UserSession> {
    Ok(UserSession {
        id: row.get_int("session_id")?,
        user: UserId(row.get_int("user_id")?),
        proof: row.get_text("proof")?,
        address: row.get_text("address")?,
        agent: row.opt_text("agent")?,
        create_time: row.get_time("create_time")?.into(),
        used_time: row.get_time("used_time")?.into(),
        end_time: row.get_time("end_time")?.into(),
    })
}

/// The session with this digest, ended or not.
pub async fn by_digest(tx: &mut Tx, digest: &str) -> Result<Option<UserSession>> {
    let sql = "SELECT * FROM user_session WHERE secret_hash = ?";
    let row = tx.fetch_optional(sql, &[digest.into()]).await.context("read the session")?;
    row.as_ref().map(of_row).transpose()
}

/// The existing sessions with these keys.
pub async fn by_ids(tx: &mut Tx, ids: &BTreeSet<i64>) -> Result<Vec<UserSession>> {
    let (condition, values) = any_of("session_id", ids);
    let sql = format!("SELECT * FROM user_session WHERE {condition}");
    let rows = tx.fetch_all(&sql, &values).await.context("read the sessions")?;
    rows.iter().map(of_row).collect()
}

/// The sessions of a user, latest first.
pub async fn of_user(tx: &mut Tx, user: UserId) -> Result<Vec<UserSession>> {
    let sql = "SELECT * FROM user_session WHERE user_id = ? ORDER BY session_id DESC";
    let rows = tx.fetch_all(sql, &[user.0.into()]).await.context("list the sessions")?;
    rows.iter().map(of_row).collect()
}

/// Notes that a session was used.
pub async fn note_use(tx: &mut Tx, id: i64, now: Millis) -> Result<()> {
    let sql = "UPDATE user_session SET used_time = ? WHERE session_id = ?";
    tx.execute(sql, &[now.to_utc().into(), id.into()]).await.map(drop).context("note the use")
}

/// Ends one session of a user; returns whether it existed.
pub async fn end_session(tx: &mut Tx, user: UserId, id: i64) -> Result<bool> {
    let sql = "DELETE FROM user_session WHERE session_id = ? AND user_id = ?";
    let ended = tx.execute(sql, &[id.into(), user.0.into()]).await.context("end the session")?;
    Ok(ended > 0)
}

/// Ends all sessions of a user except one; returns their number.
pub async fn end_others(tx: &mut Tx, user: UserId, but: Option<i64>) -> Result<u64> {
    let sql = "DELETE FROM user_session WHERE user_id = ? AND session_id <> ?";
    let values = [user.0.into(), but.unwrap_or(0).into()];
    tx.execute(sql, &values).await.context("end the sessions")
}

/// Removes sessions that ended long ago.
pub async fn purge(tx: &mut Tx, now: Millis) -> Result<()> {
    let sql = "DELETE FROM user_session WHERE end_time < ?";
    tx.execute(sql, &[now.to_utc().into()]).await.map(drop).context("remove old sessions")
}
