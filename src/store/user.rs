//! `app_user` and `user_grant`: who may log in, and what they may do.

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

/// Somebody who may log in.
#[derive(Clone, Debug)]
pub struct User {
    /// Key.
    pub id: UserId,
    /// The name to log in with.
    pub name: UserName,
    /// The name for people.
    pub display_name: String,
    /// In which language the user reads; the browser's when nothing is said.
    pub lang: Option<Lang>,
    /// The password's hash; none for who logs in elsewhere.
    pub password: Option<SecretString>,
    /// Whether the password was set by somebody else.
    pub must_change: bool,
    /// Until when such a password works.
    pub password_until: Option<Millis>,
    /// Whether the user may log in.
    pub is_active: bool,
    /// Who the user is at another provider: issuer and subject.
    pub oidc: Option<(String, String)>,
    /// Why the directory does not let the user in any more; none: nothing is known against it.
    pub directory_closed: Option<String>,
    /// When the user logged in last.
    pub last_login: Option<Millis>,
    /// Since when there is this user.
    pub create_time: Millis,
}

impl User {
    /// Whether what the user has, sessions and tokens, works.
    pub fn is_open(&self) -> bool {
        self.is_active && self.directory_closed.is_none()
    }
}

/// Where a grant comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantOrigin {
    /// An administrator gave it.
    Given,
    /// A claim of another provider says so; anew at each login.
    Claim,
}

impl GrantOrigin {
    /// Its word in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Claim => "claim",
        }
    }
}

/// A user to be.
pub struct NewUser<'a> {
    /// The name to log in with.
    pub name: &'a UserName,
    /// The name for people.
    pub display_name: &'a str,
    /// Language.
    pub lang: Option<Lang>,
    /// The password's hash.
    pub password: Option<&'a str>,
    /// Until when the password works; none is for ever, and nobody is told to change it.
    pub until: Option<Millis>,
    /// Issuer and subject.
    pub oidc: Option<(&'a str, &'a str)>,
}

/// Adds a user without grants; a taken name is a taken key.
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

/// The user of this name.
pub async fn by_name(tx: &mut Tx, name: &UserName) -> Result<Option<User>> {
    let sql = "SELECT * FROM app_user WHERE user_name = ?";
    let row = tx.fetch_optional(sql, &[name.as_str().into()]).await.context("read the user")?;
    row.as_ref().map(of_row).transpose()
}

/// The user of this key.
pub async fn by_id(tx: &mut Tx, id: UserId) -> Result<Option<User>> {
    let sql = "SELECT * FROM app_user WHERE user_id = ?";
    let row = tx.fetch_optional(sql, &[id.0.into()]).await.context("read the user")?;
    row.as_ref().map(of_row).transpose()
}

/// Those of these keys that are there.
pub async fn by_ids(tx: &mut Tx, ids: &BTreeSet<i64>) -> Result<Vec<User>> {
    let (condition, values) = any_of("user_id", ids);
    let sql = format!("SELECT * FROM app_user WHERE {condition}");
    let rows = tx.fetch_all(&sql, &values).await.context("read the users")?;
    rows.iter().map(of_row).collect()
}

/// The user who is this subject at this issuer.
pub async fn by_subject(tx: &mut Tx, issuer: &str, subject: &str) -> Result<Option<User>> {
    let sql = "SELECT * FROM app_user WHERE oidc_issuer = ? AND oidc_subject = ?";
    let row = tx.fetch_optional(sql, &[issuer.into(), subject.into()]).await;
    row.context("read the user")?.as_ref().map(of_row).transpose()
}

/// Users whose name comes after this one, by name.
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

/// Writes what an administrator may say of a user.
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

/// Writes why the directory does not let a user in any more, or that nothing is known against it.
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

/// Active users of a provider with a session or a token, and those against whom something is known, by their keys.
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

/// Takes the turn to look at accounts of the directory again, once in an interval for all nodes; whether it was free.
pub async fn take_recheck_turn(tx: &mut Tx, now: Millis, every_ms: i64) -> Result<bool> {
    const NAME: &str = "directory_recheck";
    let sql =
        format!("SELECT value FROM procession_meta WHERE name = ?{}", tx.dialect().for_update());
    let row = tx.fetch_optional(&sql, &[NAME.into()]).await.context("read directory_recheck")?;
    let last = row.map(|row| row.get_text("value")).transpose()?;
    let last = last.and_then(|text| text.parse::<i64>().ok());
    // A clock that was set back must not rest it for longer.
    if last.is_some_and(|last| (0..every_ms).contains(&now.since(Millis(last)))) {
        return Ok(false);
    }
    let row = vec![NAME.into(), now.0.to_string().into()];
    tx.upsert_many("procession_meta", "name", &["name", "value"], [row])
        .await
        .context("write directory_recheck")?;
    Ok(true)
}

/// Writes a password's hash; with `until` it must be changed before then.
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

/// Writes another hash of the same password, if it is still that one; whether it was.
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

/// Says who the user is at another provider.
pub async fn set_subject(tx: &mut Tx, id: UserId, issuer: &str, subject: &str) -> Result<()> {
    let sql = "UPDATE app_user SET oidc_issuer = ?, oidc_subject = ? WHERE user_id = ?";
    let values = [issuer.into(), subject.into(), id.0.into()];
    tx.execute(sql, &values).await.map(drop).context("change the user")
}

/// Notes that the user has logged in.
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

/// What a user may do, from wherever it comes.
pub async fn grants(tx: &mut Tx, id: UserId) -> Result<Vec<Grant>> {
    let sql = "SELECT place, role, rights FROM user_grant WHERE user_id = ? ORDER BY place, origin";
    let rows = tx.fetch_all(sql, &[id.0.into()]).await.context("read the grants")?;
    rows.iter().map(grant_of).collect()
}

/// What a user was given by administrators; what claims say is not theirs to change.
pub async fn given(tx: &mut Tx, id: UserId) -> Result<Vec<Grant>> {
    let sql = "SELECT place, role, rights FROM user_grant WHERE user_id = ? AND origin = 'given' \
               ORDER BY place";
    let rows = tx.fetch_all(sql, &[id.0.into()]).await.context("read the grants")?;
    rows.iter().map(grant_of).collect()
}

/// What a user may do because another provider says so.
pub async fn claimed(tx: &mut Tx, id: UserId) -> Result<Vec<Grant>> {
    let sql = "SELECT place, role, rights FROM user_grant WHERE user_id = ? AND origin = 'claim'";
    let rows = tx.fetch_all(sql, &[id.0.into()]).await.context("read the grants")?;
    let mut all: Vec<Grant> = rows.iter().map(grant_of).collect::<Result<_>>()?;
    all.sort();
    Ok(all)
}

/// What everybody may do.
pub async fn all_grants(tx: &mut Tx) -> Result<BTreeMap<UserId, Vec<Grant>>> {
    let sql = "SELECT user_id, place, role, rights FROM user_grant ORDER BY user_id, place, origin";
    let mut all: BTreeMap<UserId, Vec<Grant>> = BTreeMap::new();
    for row in tx.fetch_all(sql, &[]).await.context("read the grants")? {
        all.entry(UserId(row.get_int("user_id")?)).or_default().push(grant_of(&row)?);
    }
    Ok(all)
}

/// What these users may do, from wherever it comes.
pub async fn grants_of(tx: &mut Tx, ids: &BTreeSet<i64>) -> Result<BTreeMap<UserId, Vec<Grant>>> {
    let (condition, values) = any_of("user_id", ids);
    let sql = format!("SELECT user_id, place, role, rights FROM user_grant WHERE {condition}");
    let mut all: BTreeMap<UserId, Vec<Grant>> = BTreeMap::new();
    for row in tx.fetch_all(&sql, &values).await.context("read the grants")? {
        all.entry(UserId(row.get_int("user_id")?)).or_default().push(grant_of(&row)?);
    }
    Ok(all)
}

/// Writes the grants of one origin in the place of those there were.
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

/// Locks, to the end of the transaction, everybody who may grant everywhere, and gives those of them
/// who may log in. Of two who take it from each other at once, the second sees what the first did.
pub async fn lock_admins(tx: &mut Tx) -> Result<Vec<UserId>> {
    let lock = tx.dialect().for_update();
    let sql = format!(
        "SELECT user_id, is_active FROM app_user WHERE user_id IN (SELECT user_id FROM user_grant \
         WHERE place = '*' AND role = 'admin') ORDER BY user_id{lock}"
    );
    tx.fetch_all(&sql, &[]).await.context("lock the administrators")?;
    admins(tx).await
}

/// Everybody who may grant everywhere and may log in.
pub async fn admins(tx: &mut Tx) -> Result<Vec<UserId>> {
    let sql = "SELECT user_id FROM app_user WHERE is_active = 1 AND user_id IN (SELECT user_id FROM \
               user_grant WHERE place = '*' AND role = 'admin') ORDER BY user_id";
    let rows = tx.fetch_all(sql, &[]).await.context("list the administrators")?;
    rows.iter().map(|row| Ok(UserId(row.get_int("user_id")?))).collect()
}
