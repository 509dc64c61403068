//! `app_user` and `user_grant`: who may log in, and with which permissions.

use crate::domain::access::user::{UserId, UserName};
use crate::domain::access::{Grant, Permission, Role, Where};
use crate::domain::id::GroupCode;
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::seen::any_of;
use anyhow::{Context as _, Result};
use secrecy::SecretString;
use std::collections::{BTreeMap, BTreeSet};

/// A user account.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    /// The login name.
    pub name: UserName,
    pub display_name: String,
    /// The preferred language; the browser's if `None`.
    pub lang: Option<Lang>,
    /// The password hash; `None` for users who log in at another provider.
    pub password: Option<SecretString>,
    /// Whether the password was set by another person and must be changed.
    pub must_change: bool,
    /// When such a password expires.
    pub password_until: Option<Millis>,
    /// Whether the user may log in.
    pub is_active: bool,
    /// The identity at another provider: issuer and subject.
    pub oidc: Option<(String, String)>,
    /// Why the directory no longer admits the user; `None` if it does.
    pub directory_closed: Option<String>,
    pub last_login: Option<Millis>,
    pub create_time: Millis,
}

impl User {
    /// Whether the user's sessions and tokens are valid.
    pub fn is_open(&self) -> bool {
        self.is_active && self.directory_closed.is_none()
    }
}

/// The origin of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantOrigin {
    /// Given by an administrator.
    Given,
    /// From a claim of another provider; replaced at each login.
    Claim,
}

impl GrantOrigin {
    /// The value in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Claim => "claim",
        }
    }
}

/// A new user.
pub struct NewUser<'a> {
    /// The login name.
    pub name: &'a UserName,
    pub display_name: &'a str,
    pub lang: Option<Lang>,
    /// The password hash.
    pub password: Option<&'a str>,
    /// When the password expires; `None`: never, and the user need not change it.
    pub until: Option<Millis>,
    /// Issuer and subject.
    pub oidc: Option<(&'a str, &'a str)>,
}

/// Inserts a user without grants; an existing name is a duplicate-key error.
pub async fn add_user(tx: &mut Tx, new: &NewUser<'_>, now: Millis) -> Result<UserId> {
    let values = [
        new.name.as_str().into(),
        new.display_name.into(),
        new.lang.map(Lang::as_str).into(),
        new.password.into(),
        new.until.is_some().into(),
        new.until.map(Millis::to_utc).into(),
        new.oidc.map(|(issuer, _)| issuer).into(),
        new.oidc.map(|(_, subject)| subject).into(),
        now.to_utc().into(),
        now.to_utc().into(),
    ];
    let sql = "INSERT INTO app_user (user_name, display_name, lang, password_hash, must_change, \
               password_until, oidc_issuer, oidc_subject, create_time, update_time, is_active) \
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)";
    tx.insert_id(sql, "user_id", &values).await.map(UserId).context("add the user")
}

fn of_row(row: &crate::db::Row) -> Result<User> {
    Ok(User {
        id: UserId(row.get_int("user_id")?),
        name: UserName::parse(&row.get_text("user_name")?)?,
        display_name: row.get_text("display_name")?,
        lang: row.opt_text("lang")?.as_deref().and_then(Lang::from_code),
        password: row.opt_text("password_hash")?.map(SecretString::from),
        must_change: row.get_flag("must_change")?,
        password_until: row.opt_time("password_until")?.map(Millis::from),
        is_active: row.get_flag("is_active")?,
        oidc: row.opt_text("oidc_issuer")?.zip(row.opt_text("oidc_subject")?),
        directory_closed: row.opt_text("directory_closed")?,
        last_login: row.opt_time("last_login")?.map(Millis::from),
        create_time: row.get_time("create_time")?.into(),
    })
}

pub async fn by_name(tx: &mut Tx, name: &UserName) -> Result<Option<User>> {
    let sql = "SELECT * FROM app_user WHERE user_name = ?";
    let row = tx.fetch_optional(sql, &[name.as_str().into()]).await.context("read the user")?;
    row.as_ref().map(of_row).transpose()
}

pub async fn by_id(tx: &mut Tx, id: UserId) -> Result<Option<User>> {
    let sql = "SELECT * FROM app_user WHERE user_id = ?";
    let row = tx.fetch_optional(sql, &[id.0.into()]).await.context("read the user")?;
    row.as_ref().map(of_row).transpose()
}

/// The existing users with these keys.
pub async fn by_ids(tx: &mut Tx, ids: &BTreeSet<i64>) -> Result<Vec<User>> {
    let (condition, values) = any_of("user_id", ids);
    let sql = format!("SELECT * FROM app_user WHERE {condition}");
    let rows = tx.fetch_all(&sql, &values).await.context("read the users")?;
    rows.iter().map(of_row).collect()
}

/// The user with this subject at this issuer.
pub async fn by_subject(tx: &mut Tx, issuer: &str, subject: &str) -> Result<Option<User>> {
    let sql = "SELECT * FROM app_user WHERE oidc_issuer = ? AND oidc_subject = ?";
    let row = tx.fetch_optional(sql, &[issuer.into(), subject.into()]).await;
    row.context("read the user")?.as_ref().map(of_row).transpose()
}

/// Users whose name sorts after this one, by name.
pub async fn after(tx: &mut Tx, name: &str, limit: u32) -> Result<Vec<User>> {
    let sql = "SELECT * FROM app_user WHERE user_name > ? ORDER BY user_name LIMIT ?";
    let rows = tx.fetch_all(sql, &[name.into(), limit.into()]).await.context("list the users")?;
    rows.iter().map(of_row).collect()
}

/// Whether there is any user.
pub async fn is_any(tx: &mut Tx) -> Result<bool> {
    let row = tx.fetch_optional("SELECT user_id FROM app_user LIMIT 1", &[]).await;
    Ok(row.context("look for users")?.is_some())
}

/// Stores the fields that an administrator may change.
pub async fn update_user(tx: &mut Tx, user: &User, now: Millis) -> Result<()> {
    let sql = "UPDATE app_user SET display_name = ?, lang = ?, is_active = ?, update_time = ? \
               WHERE user_id = ?";
    let values = [
        user.display_name.as_str().into(),
        user.lang.map(Lang::as_str).into(),
        user.is_active.into(),
        now.to_utc().into(),
        user.id.0.into(),
    ];
    tx.execute(sql, &values).await.map(drop).context("change the user")
}

/// Stores why the directory no longer admits a user, or that it does.
pub async fn set_directory_closed(
    tx: &mut Tx,
    id: UserId,
    reason: Option<&str>,
    now: Millis,
) -> Result<()> {
    let sql = "UPDATE app_user SET directory_closed = ?, update_time = ? WHERE user_id = ?";
    let values = [reason.into(), now.to_utc().into(), id.0.into()];
    tx.execute(sql, &values).await.map(drop).context("write what the directory says of a user")
}

/// Active users of a provider with a session or a token, and those whom the directory no longer
/// admits, by key.
pub async fn with_access(
    tx: &mut Tx,
    issuer: &str,
    after: UserId,
    limit: u32,
) -> Result<Vec<User>> {
    let sql = "SELECT * FROM app_user WHERE oidc_issuer = ? AND is_active = 1 AND user_id > ? \
               AND (directory_closed IS NOT NULL \
               OR EXISTS (SELECT 1 FROM user_session s WHERE s.user_id = app_user.user_id) \
               OR EXISTS (SELECT 1 FROM api_token t WHERE t.user_id = app_user.user_id)) \
               ORDER BY user_id LIMIT ?";
    let values = [issuer.into(), after.0.into(), limit.into()];
    let rows = tx.fetch_all(sql, &values).await.context("list the users of the directory")?;
    rows.iter().map(of_row).collect()
}

/// Claims the periodic recheck of directory accounts, once per interval for all nodes; `true` for
/// the node that got it.
pub async fn take_recheck_turn(tx: &mut Tx, now: Millis, every_ms: i64) -> Result<bool> {
    const NAME: &str = "directory_recheck";
    let sql =
        format!("SELECT value FROM procession_meta WHERE name = ?{}", tx.dialect().for_update());
    let row = tx.fetch_optional(&sql, &[NAME.into()]).await.context("read directory_recheck")?;
    let last = row.map(|row| row.get_text("value")).transpose()?;
    let last = last.and_then(|text| text.parse::<i64>().ok());
    // A clock that was set back must not extend the pause.
    if last.is_some_and(|last| (0..every_ms).contains(&now.since(Millis(last)))) {
        return Ok(false);
    }
    let row = vec![NAME.into(), now.0.to_string().into()];
    tx.upsert_many("procession_meta", "name", &["name", "value"], [row])
        .await
        .context("write directory_recheck")?;
    Ok(true)
}

/// Stores a password hash; with `until` the password must be changed before then.
pub async fn set_password(
    tx: &mut Tx,
    id: UserId,
    hash: &str,
    until: Option<Millis>,
    now: Millis,
) -> Result<()> {
    let sql = "UPDATE app_user SET password_hash = ?, must_change = ?, password_until = ?, \
               update_time = ? WHERE user_id = ?";
    let values = [
        hash.into(),
        until.is_some().into(),
        until.map(Millis::to_utc).into(),
        now.to_utc().into(),
        id.0.into(),
    ];
    tx.execute(sql, &values).await.map(drop).context("change the password")
}

/// Replaces the hash of the same password, if it is unchanged; returns whether it was.
pub async fn renew_password(
    tx: &mut Tx,
    id: UserId,
    old: &str,
    new: &str,
    until: Option<Millis>,
    now: Millis,
) -> Result<bool> {
    let sql = "UPDATE app_user SET password_hash = ?, must_change = ?, password_until = ?, \
               update_time = ? WHERE user_id = ? AND password_hash = ?";
    let values = [
        new.into(),
        until.is_some().into(),
        until.map(Millis::to_utc).into(),
        now.to_utc().into(),
        id.0.into(),
        old.into(),
    ];
    Ok(tx.execute(sql, &values).await.context("renew the password")? > 0)
}

/// Stores the user's identity at another provider.
pub async fn set_subject(tx: &mut Tx, id: UserId, issuer: &str, subject: &str) -> Result<()> {
    let sql = "UPDATE app_user SET oidc_issuer = ?, oidc_subject = ? WHERE user_id = ?";
    let values = [issuer.into(), subject.into(), id.0.into()];
    tx.execute(sql, &values).await.map(drop).context("change the user")
}

/// Stores the time of a login.
pub async fn logged_in(tx: &mut Tx, id: UserId, now: Millis) -> Result<()> {
    let sql = "UPDATE app_user SET last_login = ? WHERE user_id = ?";
    tx.execute(sql, &[now.to_utc().into(), id.0.into()]).await.map(drop).context("note the login")
}

/// Removes a user with grants, sessions and tokens; the audit log keeps the name.
pub async fn remove(tx: &mut Tx, id: UserId) -> Result<()> {
    for sql in [
        "DELETE FROM recovery_code WHERE user_id = ?",
        "DELETE FROM user_second_factor WHERE user_id = ?",
        "DELETE FROM user_session WHERE user_id = ?",
        "DELETE FROM api_token WHERE user_id = ?",
        "DELETE FROM user_grant WHERE user_id = ?",
        "DELETE FROM idempotency_key WHERE user_id = ?",
        "DELETE FROM app_user WHERE user_id = ?",
    ] {
        tx.execute(sql, &[id.0.into()]).await.context("remove the user")?;
    }
    Ok(())
}

fn grant_of(row: &crate::db::Row) -> Result<Grant> {
    let place = row.get_text("place")?;
    let place = match place.as_str() {
        "*" => Where::Everywhere,
        code => Where::Group(GroupCode::parse(code)?),
    };
    let role = row.get_text("role")?;
    let role = Role::parse(&role).with_context(|| format!("user_grant has the role {role}"))?;
    let rights: Vec<Permission> = serde_json::from_str(&row.get_text("rights")?)?;
    Ok(Grant { place, role, rights: rights.into_iter().collect() })
}

/// All grants of a user.
pub async fn grants(tx: &mut Tx, id: UserId) -> Result<Vec<Grant>> {
    let sql = "SELECT place, role, rights FROM user_grant WHERE user_id = ? ORDER BY place, origin";
    let rows = tx.fetch_all(sql, &[id.0.into()]).await.context("read the grants")?;
    rows.iter().map(grant_of).collect()
}

/// The grants that administrators gave a user; those from claims are not theirs to change.
pub async fn given(tx: &mut Tx, id: UserId) -> Result<Vec<Grant>> {
    let sql = "SELECT place, role, rights FROM user_grant WHERE user_id = ? AND origin = 'given' \
               ORDER BY place";
    let rows = tx.fetch_all(sql, &[id.0.into()]).await.context("read the grants")?;
    rows.iter().map(grant_of).collect()
}

/// The grants of a user from claims of another provider.
pub async fn claimed(tx: &mut Tx, id: UserId) -> Result<Vec<Grant>> {
    let sql = "SELECT place, role, rights FROM user_grant WHERE user_id = ? AND origin = 'claim'";
    let rows = tx.fetch_all(sql, &[id.0.into()]).await.context("read the grants")?;
    let mut all: Vec<Grant> = rows.iter().map(grant_of).collect::<Result<_>>()?;
    all.sort();
    Ok(all)
}

/// The grants of all users.
pub async fn all_grants(tx: &mut Tx) -> Result<BTreeMap<UserId, Vec<Grant>>> {
    let sql = "SELECT user_id, place, role, rights FROM user_grant ORDER BY user_id, place, origin";
    let mut all: BTreeMap<UserId, Vec<Grant>> = BTreeMap::new();
    for row in tx.fetch_all(sql, &[]).await.context("read the grants")? {
        all.entry(UserId(row.get_int("user_id")?)).or_default().push(grant_of(&row)?);
    }
    Ok(all)
}

/// All grants of these users.
pub async fn grants_of(tx: &mut Tx, ids: &BTreeSet<i64>) -> Result<BTreeMap<UserId, Vec<Grant>>> {
    let (condition, values) = any_of("user_id", ids);
    let sql = format!("SELECT user_id, place, role, rights FROM user_grant WHERE {condition}");
    let mut all: BTreeMap<UserId, Vec<Grant>> = BTreeMap::new();
    for row in tx.fetch_all(&sql, &values).await.context("read the grants")? {
        all.entry(UserId(row.get_int("user_id")?)).or_default().push(grant_of(&row)?);
    }
    Ok(all)
}

/// Replaces the grants of one origin.
pub async fn set_grants(
    tx: &mut Tx,
    id: UserId,
    origin: GrantOrigin,
    grants: &[Grant],
    now: Millis,
) -> Result<()> {
    let sql = "DELETE FROM user_grant WHERE user_id = ? AND origin = ?";
    tx.execute(sql, &[id.0.into(), origin.as_str().into()]).await.context("take grants away")?;
    let columns = ["user_id", "place", "role", "rights", "origin", "create_time"];
    let mut rows = Vec::new();
    for grant in grants {
        rows.push(vec![
            id.0.into(),
            grant.place.as_str().into(),
            grant.role.as_str().into(),
            serde_json::to_string(&grant.rights)?.into(),
            origin.as_str().into(),
            now.to_utc().into(),
        ]);
    }
    tx.insert_many("user_grant", &columns, rows).await.context("grant")
}

/// Locks all users with the right to grant everywhere until the end of the transaction, and returns
/// those who may log in. Of two administrators who revoke each other's right at once, the second
/// sees the first change.
pub async fn lock_admins(tx: &mut Tx) -> Result<Vec<UserId>> {
    let lock = tx.dialect().for_update();
    let sql = format!(
        "SELECT user_id, is_active FROM app_user WHERE user_id IN (SELECT user_id FROM user_grant \
         WHERE place = '*' AND role = 'admin') ORDER BY user_id{lock}"
    );
    tx.fetch_all(&sql, &[]).await.context("lock the administrators")?;
    admins(tx).await
}

/// All users with the right to grant everywhere who may log in.
pub async fn admins(tx: &mut Tx) -> Result<Vec<UserId>> {
    let sql = "SELECT user_id FROM app_user WHERE is_active = 1 AND user_id IN (SELECT user_id FROM \
               user_grant WHERE place = '*' AND role = 'admin') ORDER BY user_id";
    let rows = tx.fetch_all(sql, &[]).await.context("list the administrators")?;
    rows.iter().map(|row| Ok(UserId(row.get_int("user_id")?))).collect()
}
