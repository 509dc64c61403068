//! User accounts: added, changed and removed by administrators.

use crate::app::access::{
    Authority, InitialPassword, LDAP_ISSUER, NotGranted, Porter, find_user, grants_document,
    record, secret,
};
use crate::domain::access::user::{self, UserId, UserName};
use crate::domain::access::{Grant, Permission, Where};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::store::user::{GrantOrigin, NewUser, User};
use crate::store::{self, Tx};
use anyhow::{Context as _, Result};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How long a password set by an administrator is valid, in milliseconds.
pub(super) const INITIAL_MS: i64 = 72 * 3_600_000;

/// How a new user first logs in.
pub enum Initial {
    /// With this password, which must be changed then.
    Password(SecretString),
    /// With a generated password, which is shown once and must be changed then.
    OneTime,
    /// Only at another provider.
    Elsewhere,
}

/// A new user account.
pub struct NewAccount {
    /// The login name.
    pub name: UserName,
    pub display_name: String,
    pub lang: Option<Lang>,
    pub grants: Vec<Grant>,
    /// How the user first logs in.
    pub initial: Initial,
}

/// A change to a user; `None` fields stay unchanged.
#[derive(Clone, Debug, Default)]
pub struct UserChange {
    pub display_name: Option<String>,
    /// The language; the browser's if `Some(None)`.
    pub lang: Option<Option<Lang>>,
    /// Whether the user may log in.
    pub is_active: Option<bool>,
    /// The complete new grants, as far as the changing administrator may give them.
    pub grants: Option<Vec<Grant>>,
}

impl Porter {
    /// Adds a user; returns a generated password.
    pub async fn add_user(&self, by: &Authority, wanted: NewAccount) -> Result<InitialPassword> {
        grantable(by, &[], &wanted.grants)?;
        let (made, password) = match wanted.initial {
            Initial::Elsewhere => (None, None),
            Initial::OneTime => {
                let made = secret::legible()?;
                (Some(made.clone()), Some(made))
            }
            Initial::Password(password) => {
                user::password(&wanted.name, password.expose_secret())?;
                (None, Some(password))
            }
        };
        let hash = match password {
            Some(password) => Some(self.hashing.hash(password).await?),
            None => None,
        };
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        if store::user::by_name(&mut tx, &wanted.name).await?.is_some() {
            return Err(NotGranted::Taken(wanted.name).into());
        }
        let new = NewUser {
            name: &wanted.name,
            display_name: &wanted.display_name,
            lang: wanted.lang,
            password: hash.as_deref(),
            until: hash.is_some().then(|| now.plus_ms(INITIAL_MS)),
            oidc: None,
        };
        let id = store::user::add_user(&mut tx, &new, now).await?;
        store::user::set_grants(&mut tx, id, GrantOrigin::Given, &wanted.grants, now).await?;
        let detail = json!({
            "user": wanted.name, "after": {
                "display_name": wanted.display_name, "grants": grants_document(&wanted.grants),
            },
        });
        record(&mut tx, &by.operator, "user add", detail, now).await?;
        tx.commit().await?;
        Ok(made)
    }

    /// Changes a user. A reduction of rights ends all sessions of the user; changed grants take
    /// effect with the next request in any case.
    pub async fn change_user(
        &self,
        by: &Authority,
        name: &UserName,
        change: UserChange,
    ) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        let admins = store::user::lock_admins(&mut tx).await?;
        let before = find_user(&mut tx, name).await?;
        if let Some(wanted) = &change.grants {
            regrant(&mut tx, by, &before, wanted, now).await?;
        }
        let after = User {
            display_name: change.display_name.unwrap_or_else(|| before.display_name.clone()),
            lang: change.lang.unwrap_or(before.lang),
            is_active: change.is_active.unwrap_or(before.is_active),
            ..before.clone()
        };
        let (was, is) = (shown(&before), shown(&after));
        if was != is {
            store::user::update_user(&mut tx, &after, now).await?;
            let detail = json!({ "user": name, "before": was, "after": is });
            record(&mut tx, &by.operator, "user change", detail, now).await?;
        }
        if !after.is_active {
            store::user_session::end_others(&mut tx, before.id, None).await?;
        }
        somebody_is_left(&mut tx, &admins, name).await?;
        Ok(tx.commit().await?)
    }

    /// Removes a user with sessions and tokens; the audit log keeps the name.
    pub async fn remove_user(&self, by: &Authority, name: &UserName) -> Result<()> {
        let mut tx = self.db.begin().await?;
        let admins = store::user::lock_admins(&mut tx).await?;
        let user = find_user(&mut tx, name).await?;
        let grants = store::user::grants(&mut tx, user.id).await?;
        let detail = json!({
            "user": name,
            "before": { "display_name": user.display_name, "grants": grants_document(&grants) },
        });
        store::user::remove(&mut tx, user.id).await?;
        somebody_is_left(&mut tx, &admins, name).await?;
        record(&mut tx, &by.operator, "user remove", detail, self.clock.now()).await?;
        Ok(tx.commit().await?)
    }

    /// Sets a new initial password, generated unless given, and ends all sessions.
    pub async fn reset_password(
        &self,
        by: &Authority,
        name: &UserName,
        chosen: Option<SecretString>,
    ) -> Result<SecretString> {
        if let Some(chosen) = &chosen {
            user::password(name, chosen.expose_secret())?;
        }
        let made = chosen.map_or_else(secret::legible, Ok)?;
        let hash = self.hashing.hash(made.clone()).await?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        let user = find_user(&mut tx, name).await?;
        // With a password here the user would still have access after the directory has closed the
        // account. The same for another provider, which would not know of the second way to log in.
        match user.oidc {
            Some((issuer, _)) if issuer == LDAP_ISSUER => {
                return Err(NotGranted::InDirectory(user.name).into());
            }
            Some(_) => return Err(NotGranted::AtProvider(user.name).into()),
            None => {}
        }
        let until = Some(now.plus_ms(INITIAL_MS));
        store::user::set_password(&mut tx, user.id, &hash, until, now).await?;
        let ended = store::user_session::end_others(&mut tx, user.id, None).await?;
        let detail = json!({ "user": name, "sessions_ended": ended });
        record(&mut tx, &by.operator, "password reset", detail, now).await?;
        tx.commit().await?;
        Ok(made)
    }

    /// Ends the sessions of a user, except one; returns their number.
    pub async fn end_sessions(
        &self,
        by: &Authority,
        name: &UserName,
        but: Option<i64>,
    ) -> Result<u64> {
        let mut tx = self.db.begin().await?;
        let user = find_user(&mut tx, name).await?;
        let ended = store::user_session::end_others(&mut tx, user.id, but).await?;
        let detail = json!({ "user": name, "sessions_ended": ended });
        record(&mut tx, &by.operator, "sessions end", detail, self.clock.now()).await?;
        tx.commit().await?;
        Ok(ended)
    }

    /// Ends one session of a user; returns whether it existed.
    pub async fn end_session(&self, by: &Authority, name: &UserName, id: i64) -> Result<bool> {
        let mut tx = self.db.begin().await?;
        let user = find_user(&mut tx, name).await?;
        let ended = store::user_session::end_session(&mut tx, user.id, id).await?;
        if ended {
            let detail = json!({ "user": name, "session": id });
            record(&mut tx, &by.operator, "sessions end", detail, self.clock.now()).await?;
        }
        tx.commit().await?;
        Ok(ended)
    }

    /// Users whose names sort after `name`, with all their grants.
    pub async fn users(&self, name: &str, limit: u32) -> Result<Vec<(User, Vec<Grant>)>> {
        let mut tx = self.db.begin_read().await?;
        let users = store::user::after(&mut tx, name, limit).await?;
        let mut grants = store::user::all_grants(&mut tx).await?;
        let with = |user: User| {
            let its = grants.remove(&user.id).unwrap_or_default();
            (user, its)
        };
        Ok(users.into_iter().map(with).collect())
    }

    /// The user of this name, with all grants.
    pub async fn get_user(&self, name: &UserName) -> Result<(User, Vec<Grant>)> {
        let mut tx = self.db.begin_read().await?;
        let user = find_user(&mut tx, name).await?;
        let grants = store::user::grants(&mut tx, user.id).await?;
        Ok((user, grants))
    }
}

fn shown(user: &User) -> Value {
    json!({ "display_name": user.display_name, "lang": user.lang, "is_active": user.is_active })
}

/// Refuses a change that would leave no administrator of all groups.
async fn somebody_is_left(tx: &mut Tx, before: &[UserId], name: &UserName) -> Result<()> {
    match !before.is_empty() && store::user::admins(tx).await?.is_empty() {
        true => Err(NotGranted::LastAdmin(name.clone()).into()),
        false => Ok(()),
    }
}

/// Replaces the grants of a user, as far as the changing administrator may give them.
async fn regrant(
    tx: &mut Tx,
    by: &Authority,
    user: &User,
    wanted: &[Grant],
    now: Millis,
) -> Result<()> {
    let before = store::user::given(tx, user.id).await?;
    let (mine, mut after): (Vec<Grant>, Vec<Grant>) =
        before.iter().cloned().partition(|g| administers(by, &g.place));
    after.extend(wanted.iter().cloned());
    after.sort();
    if after == before {
        return Ok(());
    }
    if by.user.as_ref().is_some_and(|(id, _)| *id == user.id) {
        return Err(NotGranted::Own.into());
    }
    grantable(by, &mine, wanted)?;
    store::user::set_grants(tx, user.id, GrantOrigin::Given, &after, now).await?;
    let lost = before.iter().any(|g| !after.contains(g));
    if lost {
        store::user_session::end_others(tx, user.id, None).await?;
    }
    let detail = json!({
        "user": user.name, "before": grants_document(&before), "after": grants_document(&after),
    });
    record(tx, &by.operator, "user grant", detail, now).await.context("grant")
}

/// Whether the administrator may give grants for these groups.
fn administers(by: &Authority, place: &Where) -> bool {
    let Some((_, grants)) = &by.user else { return true };
    match place {
        Where::Everywhere => grants.allow_everywhere(Permission::Admin),
        Where::Group(code) => grants.allow(Permission::Admin, code),
    }
}

/// Refuses invalid grants, or more than the administrator may give: an administrator of all groups
/// may give everything, one of a single group only its own permissions there.
fn grantable(by: &Authority, before: &[Grant], wanted: &[Grant]) -> Result<(), NotGranted> {
    let mut places = BTreeSet::new();
    for grant in wanted {
        if !places.insert((&grant.place, grant.role)) {
            return Err(NotGranted::Twice(grant.place.clone()));
        }
        let odd = |p: &&Permission| !matches!(p, Permission::Force | Permission::Script);
        if let Some(odd) = grant.rights.iter().find(odd) {
            return Err(NotGranted::NoRight(*odd));
        }
        // An unchanged grant is not given by anyone.
        if before.contains(grant) {
            continue;
        }
        if !administers(by, &grant.place) {
            return Err(NotGranted::Beyond(Permission::Admin, grant.place.clone()));
        }
        let Some((_, own)) = &by.user else { continue };
        let given: BTreeSet<Permission> =
            Permission::ALL.into_iter().filter(|p| grant.holds(*p)).collect();
        let has = |p: Permission| match &grant.place {
            Where::Everywhere => true,
            Where::Group(code) => own.allow(p, code),
        };
        if own.allow_everywhere(Permission::Admin) {
            continue;
        }
        if let Some(beyond) = given.into_iter().find(|p| !has(*p)) {
            return Err(NotGranted::Beyond(beyond, grant.place.clone()));
        }
    }
    Ok(())
}
