//! The first user: created with the secret that `serve` prints.

use crate::app::access::login::{Entered, Stranger};
use crate::app::access::{NotGranted, Porter, grants_document, record, secret};
use crate::domain::access::user::{self, UserName};
use crate::domain::access::{Grant, Permission, Role, Where};
use crate::domain::time::Millis;
use crate::store;
use crate::store::user::{GrantOrigin, NewUser};
use anyhow::{Context as _, Result};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

/// The key of the stored digest and expiry of the secret.
const FACT: &str = "setup_secret";
/// How long the secret is valid, in milliseconds.
const LIVES_MS: i64 = 24 * 3_600_000;

impl Porter {
    /// Whether there is no user yet.
    pub async fn is_fresh(&self) -> Result<bool> {
        let mut tx = self.db.begin_read().await?;
        Ok(!store::user::is_any(&mut tx).await?)
    }

    /// Creates the setup secret, and invalidates an older one; `None` when a user exists.
    pub async fn setup_secret(&self) -> Result<Option<SecretString>> {
        let mut tx = self.db.begin().await?;
        if store::user::is_any(&mut tx).await? {
            return Ok(None);
        }
        let made = secret::legible()?;
        let until = self.clock.now().plus_ms(LIVES_MS);
        let value = format!("{} {}", secret::digest(made.expose_secret()), until.0);
        store::meta_is_new(&mut tx, FACT, &value).await?;
        tx.commit().await.context("store the set-up secret")?;
        Ok(Some(made))
    }

    /// Creates the first user, an administrator of all groups. Uses up the secret.
    pub async fn set_up(
        &self,
        given: &SecretString,
        name: &UserName,
        display_name: &str,
        password: SecretString,
        from: &Stranger,
    ) -> Result<Entered> {
        let _room = self.logins.enter()?;
        let mut tx = self.db.begin_read().await?;
        let stored = store::find_meta(&mut tx, FACT).await?;
        drop(tx);
        let now = self.clock.now();
        let is_it = |value: &String| {
            let (digest, until) = value.split_once(' ').unwrap_or_default();
            let given = secret::digest(given.expose_secret().trim());
            let in_time = until.parse().is_ok_and(|until| now < Millis(until));
            secret::are_equal(digest, &given) && in_time
        };
        let Some(stored) = stored.filter(is_it) else {
            self.refuse("(set-up)", "setup secret", "wrong or expired", from).await?;
            return Err(NotGranted::NoSetup.into());
        };
        user::password(name, password.expose_secret())?;
        let hash = self.hashing.hash(password).await?;
        let mut tx = self.db.begin().await?;
        // Of two concurrent requests one succeeds.
        if !store::meta_taken(&mut tx, FACT, &stored).await? {
            return Err(NotGranted::NoSetup.into());
        }
        if store::user::is_any(&mut tx).await? {
            return Err(NotGranted::SetUp.into());
        }
        let password = Some(hash.as_str());
        let new = NewUser { name, display_name, lang: None, password, until: None, oidc: None };
        let id = store::user::add_user(&mut tx, &new, now).await?;
        let rights = [Permission::Script].into();
        let grants = [Grant { place: Where::Everywhere, role: Role::Admin, rights }];
        store::user::set_grants(&mut tx, id, GrantOrigin::Given, &grants, now).await?;
        let detail = json!({ "user": name, "after": grants_document(&grants) });
        record(&mut tx, &from.operator(name.as_str()), "setup", detail, now).await?;
        let user = store::user::by_id(&mut tx, id).await?.context("the user that was added")?;
        let entered = self.enter(&mut tx, user, "setup", from).await?;
        tx.commit().await?;
        Ok(entered)
    }
}
