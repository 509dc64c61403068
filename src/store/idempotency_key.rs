//! `idempotency_key`: requests that were sent with a key, and their answers, so that a repeated
//! request is carried out once.

use crate::domain::time::Millis;
use crate::store::{Tx, is_taken};
use anyhow::{Context as _, Result};

/// The key of a change, which is unique among the changes of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyKey<'a> {
    /// The user who sent it.
    pub user: i64,
    /// The text that was sent.
    pub key: &'a str,
}

/// The answer to a change, as it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredAnswer<'a> {
    /// The status of HTTP.
    pub status: u16,
    /// The text.
    pub text: &'a str,
}

/// A change that was sent before under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// A digest of the request.
    pub request: String,
    /// Status and text of the answer; `None` while it is being carried out.
    pub answer: Option<(u16, String)>,
}

/// Number of expired keys removed along with another operation.
const A_FEW: i64 = 8;

/// Notes that a request has begun. `false` when the key is taken; then nothing is written.
pub async fn begin(
    tx: &mut Tx,
    IdempotencyKey { user, key }: IdempotencyKey<'_>,
    request: &str,
    now: Millis,
) -> Result<bool> {
    let sql = "INSERT INTO idempotency_key (user_id, idem_key, request_hash, create_time) \
               VALUES (?, ?, ?, ?)";
    let values = [user.into(), key.into(), request.into(), now.to_utc().into()];
    let written = tx.execute(sql, &values).await.context("note the key of a change");
    match written {
        Ok(_) => Ok(true),
        Err(error) if is_taken(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The request sent under a key after `since`.
pub async fn find_key(
    tx: &mut Tx,
    IdempotencyKey { user, key }: IdempotencyKey<'_>,
    since: Millis,
) -> Result<Option<Before>> {
    let sql = "SELECT request_hash, status, answer FROM idempotency_key \
               WHERE user_id = ? AND idem_key = ? AND create_time > ?";
    let values = [user.into(), key.into(), since.to_utc().into()];
    let Some(row) = tx.fetch_optional(sql, &values).await.context("look for a key")? else {
        return Ok(None);
    };
    let status = row.opt_int("status")?.and_then(|s| u16::try_from(s).ok());
    Ok(Some(Before {
        request: row.get_text("request_hash")?,
        answer: status.zip(row.opt_text("answer")?),
    }))
}

/// Stores the answer to a request.
pub async fn store_answer(
    tx: &mut Tx,
    IdempotencyKey { user, key }: IdempotencyKey<'_>,
    answer: StoredAnswer<'_>,
) -> Result<()> {
    let sql =
        "UPDATE idempotency_key SET status = ?, answer = ? WHERE user_id = ? AND idem_key = ?";
    let values = [i64::from(answer.status).into(), answer.text.into(), user.into(), key.into()];
    tx.execute(sql, &values).await.map(drop).context("keep the answer to a change")
}

/// Forgets a key, because nothing was changed.
pub async fn forget(tx: &mut Tx, IdempotencyKey { user, key }: IdempotencyKey<'_>) -> Result<()> {
    let sql = "DELETE FROM idempotency_key WHERE user_id = ? AND idem_key = ?";
    tx.execute(sql, &[user.into(), key.into()]).await.map(drop).context("forget a key")
}

/// Removes a few keys that were sent before this moment, and this one if it is such a key.
pub async fn expire(
    tx: &mut Tx,
    IdempotencyKey { user, key }: IdempotencyKey<'_>,
    before: Millis,
) -> Result<()> {
    let sql = "DELETE FROM idempotency_key WHERE user_id = ? AND idem_key = ? AND create_time <= ?";
    let values = [user.into(), key.into(), before.to_utc().into()];
    tx.execute(sql, &values).await.context("forget a key that has expired")?;
    let sql = "SELECT idempotency_id FROM idempotency_key WHERE create_time <= ? \
               ORDER BY create_time LIMIT ?";
    let rows = tx.fetch_all(sql, &[before.to_utc().into(), A_FEW.into()]).await;
    for row in rows.context("look for keys that have expired")? {
        let sql = "DELETE FROM idempotency_key WHERE idempotency_id = ?";
        tx.execute(sql, &[row.get_int("idempotency_id")?.into()]).await?;
    }
    Ok(())
}
