//! API tokens: created, listed and removed by their owner or an administrator.

use crate::app::access::{Authority, NotGranted, Porter, find_user, record, secret};
use crate::domain::access::user::{UserId, UserName};
use crate::domain::access::{Confines, Permission};
use crate::domain::id::GroupCode;
use crate::domain::time::Millis;
use crate::store;
use crate::store::api_token::ApiToken;
use anyhow::Result;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::collections::BTreeSet;

/// Prefix of tokens, so that a leaked one is recognised.
const PREFIX: &str = "pcs_";
/// Maximum lifetime in days.
const DAYS_MAX: u32 = 366;
/// Maximum number of tokens per user.
const MOST: usize = 50;

/// A request for a new token.
#[derive(Clone, Debug)]
pub struct TokenWish {
    pub name: String,
    pub permissions: BTreeSet<Permission>,
    /// The groups it is restricted to; `None`: wherever its owner has the permission.
    pub groups: Option<BTreeSet<GroupCode>>,
    /// Lifetime in days.
    pub days: u32,
}

impl Porter {
    /// Creates a token of a user. `until` is when the credential that creates it expires.
    pub async fn add_token(
        &self,
        by: &Authority,
        owner: &UserName,
        wish: TokenWish,
        until: Option<Millis>,
    ) -> Result<(ApiToken, SecretString)> {
        let now = self.clock.now();
        let length = wish.name.trim().chars().count();
        if !(1..=100).contains(&length) || wish.permissions.is_empty() {
            return Err(NotGranted::NoToken.into());
        }
        let end_time = now.plus_ms(i64::from(wish.days) * 86_400_000);
        let in_time = (1..=DAYS_MAX).contains(&wish.days);
        if !in_time || until.is_some_and(|until| end_time > until) {
            return Err(NotGranted::Days.into());
        }
        not_wider(by, &wish)?;
        let mut tx = self.db.begin().await?;
        let user = find_user(&mut tx, owner).await?;
        if store::api_token::of_user(&mut tx, user.id).await?.len() >= MOST {
            return Err(NotGranted::Enough(user.name).into());
        }
        let made = SecretString::from(format!("{PREFIX}{}", secret::fresh()?.expose_secret()));
        let confines = Confines { permissions: wish.permissions, groups: wish.groups };
        let name = wish.name.trim().to_owned();
        let mut token = ApiToken {
            id: 0,
            user: user.id,
            name,
            confines,
            create_time: now,
            end_time,
            used_time: None,
        };
        let digest = secret::digest(made.expose_secret());
        token.id = store::api_token::add_token(&mut tx, &digest, &token).await?;
        let detail = json!({
            "user": owner, "token": token.id, "name": token.name, "end_time": end_time.to_string(),
            "permissions": token.confines.permissions, "groups": token.confines.groups,
        });
        record(&mut tx, &by.operator, "token add", detail, now).await?;
        tx.commit().await?;
        Ok((token, made))
    }

    /// The tokens of a user.
    pub async fn tokens(&self, user: UserId) -> Result<Vec<ApiToken>> {
        let mut tx = self.db.begin_read().await?;
        store::api_token::of_user(&mut tx, user).await
    }

    /// The tokens of the user of this name.
    pub async fn tokens_of(&self, name: &UserName) -> Result<Vec<ApiToken>> {
        let mut tx = self.db.begin_read().await?;
        let user = find_user(&mut tx, name).await?;
        store::api_token::of_user(&mut tx, user.id).await
    }

    /// Removes a token: allowed for its owner, and for administrators of users. Returns whether it
    /// was removed.
    pub async fn remove_token(&self, by: &Authority, id: i64) -> Result<bool> {
        let mut tx = self.db.begin().await?;
        let own = |t: &ApiToken| by.user.as_ref().is_some_and(|(user, _)| *user == t.user);
        let found = store::api_token::by_id(&mut tx, id).await?;
        let Some(token) = found.filter(|t| own(t) || by.is_everywhere()) else {
            return Ok(false);
        };
        store::api_token::remove(&mut tx, id).await?;
        let owner = store::user::by_id(&mut tx, token.user).await?;
        let detail = json!({ "user": owner.map(|u| u.name), "token": id, "name": token.name });
        record(&mut tx, &by.operator, "token remove", detail, self.clock.now()).await?;
        tx.commit().await?;
        Ok(true)
    }
}

/// Refuses permissions that the creator does not have at present, including the restrictions of the
/// creator's own token.
fn not_wider(by: &Authority, wish: &TokenWish) -> Result<(), NotGranted> {
    let Some((_, grants)) = &by.user else { return Ok(()) };
    for permission in &wish.permissions {
        if !grants.allow_somewhere(*permission) {
            return Err(NotGranted::Wider(permission.to_string()));
        }
    }
    let Some(own) = grants.confines().and_then(|c| c.groups.as_ref()) else { return Ok(()) };
    match &wish.groups {
        None => Err(NotGranted::Wider("all groups".to_owned())),
        Some(groups) => match groups.difference(own).next() {
            Some(group) => Err(NotGranted::Wider(format!("group {group}"))),
            None => Ok(()),
        },
    }
}
