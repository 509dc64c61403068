//! Users imported from XXL-JOB with their passwords.

use crate::app::access::accounts::INITIAL_MS;
use crate::app::access::{Authority, Porter, grants_document, record};
use crate::domain::time::Millis;
use crate::import::ImportedUser;
use crate::store::user::{GrantOrigin, NewUser as Row};
use crate::store::{self, Tx};
use anyhow::Result;
use serde_json::json;

impl Porter {
    /// The stored forms of the imported passwords. Slow, so it is done before anything is locked.
    pub(in crate::app) async fn wrapped(
        &self,
        users: &[ImportedUser],
    ) -> Result<Vec<Option<String>>> {
        let mut all = Vec::with_capacity(users.len());
        for user in users {
            all.push(match &user.password {
                Some(digest) => Some(self.hashing.wrap_legacy(digest).await?),
                None => None,
            });
        }
        Ok(all)
    }
}

/// Adds a user with this hash within a transaction; returns whether the name was free. An existing
/// user is not changed. A well-known password must be changed at the first login, and soon.
pub(in crate::app) async fn bring(
    tx: &mut Tx,
    by: &Authority,
    user: &ImportedUser,
    hash: Option<&str>,
    now: Millis,
) -> Result<bool> {
    if store::user::by_name(tx, &user.name).await?.is_some() {
        return Ok(false);
    }
    let is_known = user.password.as_ref().is_some_and(|p| p.is_known(user.name.as_str()));
    let row = Row {
        name: &user.name,
        display_name: user.name.as_str(),
        lang: None,
        password: hash,
        until: is_known.then(|| now.plus_ms(INITIAL_MS)),
        oidc: None,
    };
    let id = store::user::add_user(tx, &row, now).await?;
    store::user::set_grants(tx, id, GrantOrigin::Given, &user.grants, now).await?;
    let detail = json!({
        "user": user.name, "from": "xxl-job", "must_change": is_known,
        "after": { "display_name": user.name, "grants": grants_document(&user.grants) },
    });
    record(tx, &by.operator, "user add", detail, now).await?;
    Ok(true)
}
