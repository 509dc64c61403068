//! Rechecks accounts of the directory while this process serves: a user who is disabled or removed
//! there loses all sessions, and its tokens are invalid.

use crate::app::access::directory::{AccountState, Directory, KnownAccount};
use crate::app::access::ldap::LDAP_ISSUER;
use crate::app::access::{Porter, record};
use crate::config::Ldap;
use crate::domain::access::user::UserId;
use crate::engine::host_name;
use crate::store;
use crate::store::audit::Operator;
use crate::store::user::User;
use anyhow::Result;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Accounts per round; the next round continues after them.
const ACCOUNTS_PER_ROUND: u32 = 1_000;
/// Maximum length of a stored reason, in characters.
const REASON_MAX: usize = 200;

/// The result of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryRecheck {
    /// Number of accounts checked.
    pub checked: usize,
    /// Names of users whose sessions were ended and whose tokens are now invalid.
    pub closed: Vec<String>,
    /// Names of users whose accounts are open again.
    pub opened: Vec<String>,
}

/// Rechecks accounts of the directory while this process serves.
pub struct DirectoryWatch {
    porter: Porter,
}

impl Porter {
    /// The periodic recheck, at the interval `ldap.recheck_sec`.
    pub fn directory_watch(&self) -> DirectoryWatch {
        DirectoryWatch { porter: self.clone() }
    }

    /// Rechecks the accounts of users with sessions or tokens, after this user; returns the last
    /// one when there may be more. Ends the sessions of accounts that are closed there, and makes
    /// tokens valid again of those that are open again.
    ///
    /// # Errors
    ///
    /// When the directory does not answer, or its entries are not visible. Nothing is ended then.
    pub async fn recheck_directory(
        &self,
        after: UserId,
    ) -> Result<(DirectoryRecheck, Option<UserId>)> {
        let Some(ldap) = &self.ldap else { return Ok((DirectoryRecheck::default(), None)) };
        let users = {
            let mut tx = self.db.begin_read().await?;
            store::user::with_access(&mut tx, LDAP_ISSUER, after, ACCOUNTS_PER_ROUND).await?
        };
        if users.is_empty() {
            return Ok((DirectoryRecheck::default(), None));
        }
        let states = read_states(ldap, &users, self).await?;
        let mut done = DirectoryRecheck { checked: users.len(), ..DirectoryRecheck::default() };
        for (user, state) in users.iter().zip(&states) {
            match state {
                AccountState::Closed(why) if user.directory_closed.as_deref() != Some(why) => {
                    self.close_for_directory(user, why).await?;
                    done.closed.push(user.name.to_string());
                }
                AccountState::Open if user.directory_closed.is_some() => {
                    self.open_for_directory(user).await?;
                    done.opened.push(user.name.to_string());
                }
                AccountState::Closed(_) | AccountState::Open => {}
            }
        }
        let is_full = users.len() >= ACCOUNTS_PER_ROUND as usize;
        let last = users.last().filter(|_| is_full).map(|user| user.id);
        Ok((done, last))
    }

    async fn close_for_directory(&self, user: &User, why: &str) -> Result<()> {
        let now = self.clock.now();
        let why: String = why.chars().take(REASON_MAX).collect();
        let mut tx = self.db.begin().await?;
        store::user::set_directory_closed(&mut tx, user.id, Some(&why), now).await?;
        let ended = store::user_session::end_others(&mut tx, user.id, None).await?;
        let detail =
            json!({ "user": user.name, "by": "ldap", "why": why, "sessions_ended": ended });
        record(&mut tx, &operator(), "directory closed", detail, now).await?;
        tx.commit().await?;
        tracing::info!("user {}: {why}; sessions are ended and tokens do not work", user.name);
        Ok(())
    }

    async fn open_for_directory(&self, user: &User) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        store::user::set_directory_closed(&mut tx, user.id, None, now).await?;
        let detail = json!({ "user": user.name, "by": "ldap" });
        record(&mut tx, &operator(), "directory opened", detail, now).await?;
        tx.commit().await?;
        tracing::info!("user {}: the account is open in the directory again", user.name);
        Ok(())
    }
}

fn operator() -> Operator {
    Operator::new("directory", host_name())
}

async fn read_states(ldap: &Ldap, users: &[User], porter: &Porter) -> Result<Vec<AccountState>> {
    let known = |user: &User| KnownAccount {
        name: user.name.to_string(),
        subject: user.oidc.as_ref().map(|(_, subject)| subject.clone()).unwrap_or_default(),
    };
    let known: Vec<KnownAccount> = users.iter().map(known).collect();
    Ok(Directory::open_directory(ldap)?.read_states(&known, porter.clock.now()).await?)
}

impl DirectoryWatch {
    /// Runs until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let Some(every) = self.porter.ldap.as_ref().and_then(|ldap| ldap.recheck_interval()) else {
            return;
        };
        let (mut after, mut is_away) = (UserId(0), false);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            match self.round(every, after).await {
                Ok(last) => {
                    after = last.unwrap_or(UserId(0));
                    is_away = false;
                }
                // Logged once per outage: logins report it too.
                Err(error) if !is_away => {
                    is_away = true;
                    tracing::warn!(
                        "accounts of the directory cannot be looked at, so nobody's session is ended: {error:#}"
                    );
                }
                Err(_) => {}
            }
        }
    }

    /// One round, unless another node has had one in this interval.
    async fn round(&self, every: Duration, after: UserId) -> Result<Option<UserId>> {
        // A little less: two clocks of equal speed must not both miss their turn.
        let every_ms = i64::try_from(every.as_millis()).unwrap_or(i64::MAX) * 9 / 10;
        let mut tx = self.porter.db.begin().await?;
        let is_ours =
            store::user::take_recheck_turn(&mut tx, self.porter.clock.now(), every_ms).await?;
        tx.commit().await?;
        match is_ours {
            true => Ok(self.porter.recheck_directory(after).await?.1),
            false => Ok(Some(after)),
        }
    }
}
