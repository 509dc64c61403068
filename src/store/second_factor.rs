//! `user_second_factor` and `recovery_code`: second factors of users. The secret of one-time codes
//! is sealed under the installation's key; of recovery codes only digests are stored. A code is
//! used by compare-and-set, so of two concurrent logins with one code only one succeeds.

use crate::domain::access::user::UserId;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;

/// The second factor of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondFactor {
    pub user: UserId,
    /// The sealed secret of one-time codes.
    pub sealed: String,
    /// Whether its user has confirmed it with a code; before that no login requires it.
    pub is_active: bool,
    /// The newest time step whose code was used.
    pub last_step: Option<i64>,
    /// Number of consecutive wrong codes.
    pub failures: u32,
    /// When the last of them was entered.
    pub last_failure: Option<Millis>,
}

/// The second factor of a user, if there is one.
pub async fn find_factor(tx: &mut Tx, user: UserId) -> Result<Option<SecondFactor>> {
    let sql = "SELECT * FROM user_second_factor WHERE user_id = ?";
    let row = tx.fetch_optional(sql, &[user.0.into()]).await.context("read the second factor")?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(SecondFactor {
        user,
        sealed: row.get_text("secret_sealed")?,
        is_active: row.get_flag("is_active")?,
        last_step: row.opt_int("last_step")?,
        failures: u32::try_from(row.get_int("failures")?).unwrap_or(u32::MAX),
        last_failure: row.opt_time("failed_time")?.map(Millis::from),
    }))
}

/// Those of all users with an active second factor.
pub async fn active(tx: &mut Tx) -> Result<BTreeSet<i64>> {
    let sql = "SELECT user_id FROM user_second_factor WHERE is_active = 1";
    let rows = tx.fetch_all(sql, &[]).await.context("list second factors")?;
    rows.iter().map(|row| Ok(row.get_int("user_id")?)).collect()
}

/// Stores a secret that its user has yet to confirm, replacing an unconfirmed one; `false` when
/// there is an active one.
pub async fn begin(tx: &mut Tx, user: UserId, sealed: &str, now: Millis) -> Result<bool> {
    if find_factor(tx, user).await?.is_some_and(|factor| factor.is_active) {
        return Ok(false);
    }
    let sql = "DELETE FROM user_second_factor WHERE user_id = ? AND is_active = 0";
    tx.execute(sql, &[user.0.into()]).await.context("replace the second factor")?;
    let sql = "INSERT INTO user_second_factor (user_id, secret_sealed, is_active, failures, create_time) \
               VALUES (?, ?, 0, 0, ?)";
    let values = [user.0.into(), sealed.into(), now.to_utc().into()];
    tx.execute(sql, &values).await.context("write the second factor")?;
    Ok(true)
}

/// Activates a second factor; `false` when it is active already or missing.
pub async fn activate(tx: &mut Tx, user: UserId, now: Millis) -> Result<bool> {
    let sql = "UPDATE user_second_factor SET is_active = 1, active_time = ? \
               WHERE user_id = ? AND is_active = 0";
    let values = [now.to_utc().into(), user.0.into()];
    Ok(tx.execute(sql, &values).await.context("confirm the second factor")? == 1)
}

/// Uses the code of a time step, and resets the failures; `false` when a code of that step or of a
/// later one was used before.
pub async fn take_step(tx: &mut Tx, user: UserId, step: i64) -> Result<bool> {
    let sql = "UPDATE user_second_factor SET last_step = ?, failures = 0, failed_time = NULL \
               WHERE user_id = ? AND (last_step IS NULL OR last_step < ?)";
    let values = [step.into(), user.0.into(), step.into()];
    Ok(tx.execute(sql, &values).await.context("take a code")? == 1)
}

/// Counts a code as wrong before it is checked; `false` when another one is being checked, or the
/// second factor is missing.
pub async fn count_failure(tx: &mut Tx, factor: &SecondFactor, now: Millis) -> Result<bool> {
    let sql = "UPDATE user_second_factor SET failures = failures + 1, failed_time = ? \
               WHERE user_id = ? AND failures = ?";
    let values = [now.to_utc().into(), factor.user.0.into(), i64::from(factor.failures).into()];
    Ok(tx.execute(sql, &values).await.context("count a wrong code")? == 1)
}

/// Removes the second factor of a user and its recovery codes; returns whether there was one.
pub async fn remove(tx: &mut Tx, user: UserId) -> Result<bool> {
    let sql = "DELETE FROM recovery_code WHERE user_id = ?";
    tx.execute(sql, &[user.0.into()]).await.context("remove the recovery codes")?;
    let sql = "DELETE FROM user_second_factor WHERE user_id = ?";
    Ok(tx.execute(sql, &[user.0.into()]).await.context("remove the second factor")? > 0)
}

/// Replaces the recovery codes of a user, given as digests.
pub async fn replace_codes(tx: &mut Tx, user: UserId, digests: &[String]) -> Result<()> {
    let sql = "DELETE FROM recovery_code WHERE user_id = ?";
    tx.execute(sql, &[user.0.into()]).await.context("replace the recovery codes")?;
    let rows = digests.iter().map(|digest| vec![user.0.into(), digest.as_str().into()]);
    let columns = ["user_id", "code_hash"];
    tx.insert_many("recovery_code", &columns, rows).await.context("write the recovery codes")
}

/// Uses a recovery code, and resets the failures; `false` when it is invalid, or was used before.
pub async fn take_code(tx: &mut Tx, user: UserId, digest: &str, now: Millis) -> Result<bool> {
    let sql = "UPDATE recovery_code SET used_time = ? \
               WHERE user_id = ? AND code_hash = ? AND used_time IS NULL";
    let values = [now.to_utc().into(), user.0.into(), digest.into()];
    if tx.execute(sql, &values).await.context("take a recovery code")? != 1 {
        return Ok(false);
    }
    let sql = "UPDATE user_second_factor SET failures = 0, failed_time = NULL WHERE user_id = ?";
    tx.execute(sql, &[user.0.into()]).await.context("forget wrong codes")?;
    Ok(true)
}

/// Number of unused recovery codes of a user.
pub async fn codes_left(tx: &mut Tx, user: UserId) -> Result<usize> {
    let sql = "SELECT COUNT(*) AS n FROM recovery_code WHERE user_id = ? AND used_time IS NULL";
    let row = tx.fetch_optional(sql, &[user.0.into()]).await.context("count the recovery codes")?;
    Ok(usize::try_from(row.context("a count")?.get_int("n")?)?)
}
