//! Login with a password of the directory. Users with a password of Procession are never looked up
//! there: an administrator with one can log in while the directory is unavailable.

use crate::app::access::directory::{Directory, DirectoryAccount, DirectoryError};
use crate::app::access::login::{Entered, NOBODY, NotIn, Stranger};
use crate::app::access::{Porter, find_user, grants_document, merge_grants, record};
use crate::config::Ldap;
use crate::domain::access::Grant;
use crate::domain::access::user::UserName;
use crate::domain::time::Millis;
use crate::store::user::{GrantOrigin, NewUser, User};
use crate::store::{self, Tx};
use anyhow::Result;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Stored in place of an OpenID issuer for users of the directory. An issuer is a URL, so no issuer
/// has this name.
pub const LDAP_ISSUER: &str = "ldap";

/// Why a user with a correct directory password is not admitted here; for the audit log.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotAdmitted(String);

/// A login with a password of the directory.
pub(super) struct DirectoryLogin<'a> {
    pub(super) name: &'a UserName,
    pub(super) password: SecretString,
    /// A code of the second factor.
    pub(super) code: Option<SecretString>,
    /// The row that counts this attempt.
    pub(super) attempt: i64,
    pub(super) from: &'a Stranger,
}

/// How long an unavailable directory is not queried again, in milliseconds.
const REST_MS: i64 = 2_000;
/// Minimum interval between two audit records that it is unavailable, in milliseconds.
const RECORD_MS: i64 = 60_000;

/// When the directory last failed to answer; clones share it. Without this, anonymous clients could
/// make Procession query, write and log as fast as a closed port refuses, because such an attempt
/// is no guess and is not slowed down.
#[derive(Clone)]
pub(super) struct DirectoryOutage {
    failed_at: Arc<AtomicI64>,
    recorded_at: Arc<AtomicI64>,
}

impl DirectoryOutage {
    pub(super) fn new() -> Self {
        let never = || Arc::new(AtomicI64::new(i64::MIN));
        Self { failed_at: never(), recorded_at: never() }
    }

    /// Whether it failed to answer just now.
    pub(super) fn is_recent(&self, now: Millis) -> bool {
        // A clock that was set back must not extend the pause.
        (0..REST_MS).contains(&now.since(Millis(self.failed_at.load(Ordering::Relaxed))))
    }

    /// Notes a failure to answer; returns whether it is to be recorded.
    fn note_outage(&self, now: Millis) -> bool {
        self.failed_at.store(now.0, Ordering::Relaxed);
        let last = self.recorded_at.load(Ordering::Relaxed);
        let is_due = !(0..RECORD_MS).contains(&now.since(Millis(last)));
        // Of two concurrent failures one records it.
        let order = Ordering::Relaxed;
        is_due && self.recorded_at.compare_exchange(last, now.0, order, order).is_ok()
    }
}

/// Whether the directory is queried for this user, or for an unknown one.
pub(super) fn is_in_directory(user: Option<&User>) -> bool {
    user.is_none_or(|user| {
        let is_elsewhere = |(issuer, _): &(String, String)| issuer != LDAP_ISSUER;
        user.password.is_none() && !user.oidc.as_ref().is_some_and(is_elsewhere)
    })
}

impl Porter {
    /// Logs in a user whose password the directory accepts.
    pub(super) async fn log_in_by_directory(
        &self,
        ldap: &Ldap,
        login: DirectoryLogin<'_>,
    ) -> Result<Entered> {
        // Limited separately from logins with Procession's passwords: a directory that hangs must
        // not block those.
        let _room = match self.directory_logins.enter() {
            Ok(room) => room,
            Err(busy) => {
                self.take_back_attempt(&login).await?;
                return Err(busy.into());
            }
        };
        let now = self.clock.now();
        let found = match Directory::open_directory(ldap) {
            Ok(directory) => {
                directory.authenticate(login.name.as_str(), &login.password, now).await
            }
            Err(error) => Err(error),
        };
        let why = match found {
            Ok(account) => match self.admit(ldap, &account, &login).await {
                Ok(entered) => return Ok(entered),
                Err(error) if error.is::<NotIn>() => {
                    self.keep_attempt_of_wrong_code(Err(error), login.attempt).await?;
                    return Err(NotIn::Wrong.into());
                }
                Err(error) => {
                    let why = error.downcast::<NotAdmitted>()?.to_string();
                    // The password was correct, so the text typed as the name is a name.
                    self.refuse(login.name.as_str(), "ldap", &why, login.from).await?;
                    return Err(NotIn::Wrong.into());
                }
            },
            Err(DirectoryError::Refused(why)) => why,
            Err(DirectoryError::Unavailable(why)) => {
                self.take_back_attempt(&login).await?;
                if self.directory_outage.note_outage(now) {
                    tracing::error!("nobody can log in with the directory: {why}");
                    let why = format!("directory unavailable: {why}");
                    self.refuse_known(login.name, &why, login.from).await?;
                }
                return Err(NotIn::DirectoryUnavailable.into());
            }
        };
        self.refuse_known(login.name, &why, login.from).await?;
        Err(NotIn::Wrong.into())
    }

    /// Whether the directory accepts this password of a user.
    pub(super) async fn is_password_in_directory(
        &self,
        ldap: &Ldap,
        user: &User,
        password: &SecretString,
    ) -> Result<bool> {
        let _room = self.directory_logins.enter()?;
        let opened = Directory::open_directory(ldap);
        let found = match opened {
            Ok(directory) => {
                directory.authenticate(user.name.as_str(), password, self.clock.now()).await
            }
            Err(error) => Err(error),
        };
        match found {
            // The name may belong to another account there by now.
            Ok(account) => {
                Ok(user.oidc.as_ref().is_some_and(|(_, subject)| *subject == account.subject))
            }
            Err(DirectoryError::Refused(_)) => Ok(false),
            Err(DirectoryError::Unavailable(why)) => {
                tracing::error!("a password cannot be checked with the directory: {why}");
                Err(NotIn::DirectoryUnavailable.into())
            }
        }
    }

    /// Removes an attempt that was no guess.
    async fn take_back_attempt(&self, login: &DirectoryLogin<'_>) -> Result<()> {
        let mut tx = self.db.begin().await?;
        store::login_attempt::take_back(&mut tx, login.attempt).await?;
        Ok(tx.commit().await?)
    }

    /// Records a refusal, under the name if it is that of a user.
    async fn refuse_known(&self, name: &UserName, why: &str, from: &Stranger) -> Result<()> {
        let mut tx = self.db.begin_read().await?;
        let is_ours = store::user::by_name(&mut tx, name).await?.is_some();
        drop(tx);
        self.refuse(if is_ours { name.as_str() } else { NOBODY }, "ldap", why, from).await
    }

    /// Creates a session for a user whom the directory has authenticated.
    async fn admit(
        &self,
        ldap: &Ldap,
        account: &DirectoryAccount,
        login: &DirectoryLogin<'_>,
    ) -> Result<Entered> {
        let wanted = merge_grants(ldap.grants()?, |dn| account.groups.contains(dn));
        let mut tx = self.db.begin().await?;
        let user = match store::user::by_subject(&mut tx, LDAP_ISSUER, &account.subject).await? {
            Some(user) => user,
            None => self.first_from_directory(&mut tx, ldap, account, &wanted, login.from).await?,
        };
        let now = self.clock.now();
        if user.password.is_some() {
            let why = format!("user {} has a password of Procession", user.name);
            return Err(NotAdmitted(why).into());
        }
        if !user.is_active {
            return Err(NotAdmitted(format!("user {} is disabled", user.name)).into());
        }
        if user.directory_closed.is_some() {
            // A recheck found it closed, and this login proves that it is open.
            store::user::set_directory_closed(&mut tx, user.id, None, now).await?;
        }
        let before = store::user::claimed(&mut tx, user.id).await?;
        if wanted != before {
            store::user::set_grants(&mut tx, user.id, GrantOrigin::Claim, &wanted, now).await?;
            let detail = json!({
                "user": user.name, "by": "ldap",
                "before": grants_document(&before), "after": grants_document(&wanted),
            });
            let by = login.from.operator(user.name.as_str());
            record(&mut tx, &by, "user grant", detail, now).await?;
        }
        // The grants from the directory are stored even when the code is wrong: the account is
        // authenticated.
        tx.commit().await?;
        self.check_second_factor(&user, login.code.as_ref(), "ldap", login.from).await?;
        let mut tx = self.db.begin().await?;
        store::login_attempt::take_back(&mut tx, login.attempt).await?;
        let entered = self.enter(&mut tx, user, "ldap", login.from).await?;
        tx.commit().await?;
        Ok(entered)
    }

    /// Creates the user of a first login through the directory. A user with a password, or of
    /// another provider, is never taken over by a name.
    async fn first_from_directory(
        &self,
        tx: &mut Tx,
        ldap: &Ldap,
        account: &DirectoryAccount,
        granted: &[Grant],
        from: &Stranger,
    ) -> Result<User> {
        let name = UserName::parse(&account.name).map_err(|e| NotAdmitted(e.to_string()))?;
        if let Some(user) = store::user::by_name(tx, &name).await? {
            if user.password.is_some() || user.oidc.is_some() {
                return Err(NotAdmitted(format!("user {name} is somebody else here")).into());
            }
            store::user::set_subject(tx, user.id, LDAP_ISSUER, &account.subject).await?;
            return Ok(user);
        }
        if !ldap.auto_create {
            return Err(NotAdmitted("no such user, and ldap.auto_create is off".into()).into());
        }
        if granted.is_empty() {
            let why = "no such user, and in none of the groups of ldap.grants";
            return Err(NotAdmitted(why.into()).into());
        }
        let shown: String =
            account.display_name.chars().filter(|c| !c.is_control()).take(200).collect();
        let new = NewUser {
            name: &name,
            display_name: &shown,
            lang: None,
            password: None,
            until: None,
            oidc: Some((LDAP_ISSUER, &account.subject)),
        };
        let now = self.clock.now();
        store::user::add_user(tx, &new, now).await?;
        let by = from.operator(name.as_str());
        record(tx, &by, "user add", json!({ "user": name, "by": "ldap" }), now).await?;
        find_user(tx, &name).await
    }
}

/// One step of a check of the directory.
#[derive(Clone, Debug, Serialize)]
pub struct DirectoryStep {
    /// The name of the step.
    pub step: &'static str,
    pub ok: bool,
    /// The finding, or the fault with a hint.
    pub found: String,
}

/// What to check besides the connection to the servers.
pub struct DirectoryCheck {
    /// A user to look for.
    pub user: Option<String>,
    /// The user's password, to try it.
    pub password: Option<SecretString>,
    pub now: Millis,
}

/// Performs all steps of a login at each server, and reports the findings. Changes nothing here or
/// there.
pub async fn check_directory(ldap: &Ldap, check: &DirectoryCheck) -> Vec<DirectoryStep> {
    let directory = match Directory::open_directory(ldap) {
        Ok(directory) => directory,
        Err(error) => {
            return vec![DirectoryStep { step: "settings", ok: false, found: error.to_string() }];
        }
    };
    let mut steps = Vec::new();
    for url in &ldap.urls {
        let checked = check_server(&directory, ldap, url, check, &mut steps);
        if tokio::time::timeout(ldap.timeout(), checked).await.is_err() {
            let found = format!("{url}: no answer within {} s", ldap.timeout_sec);
            steps.push(DirectoryStep { step: "server", ok: false, found });
        }
    }
    steps
}

/// Adds a step; returns its value if it succeeded.
fn noted<T>(
    steps: &mut Vec<DirectoryStep>,
    step: &'static str,
    outcome: std::result::Result<T, DirectoryError>,
    describe: impl FnOnce(&T) -> String,
) -> Option<T> {
    let (ok, found) = match &outcome {
        Ok(value) => (true, describe(value)),
        Err(error) => (false, error.to_string()),
    };
    steps.push(DirectoryStep { step, ok, found });
    outcome.ok()
}

async fn check_server(
    directory: &Directory,
    ldap: &Ldap,
    url: &str,
    check: &DirectoryCheck,
    steps: &mut Vec<DirectoryStep>,
) -> Option<()> {
    let protection = match (url.starts_with("ldaps://"), ldap.starts_tls()) {
        (true, _) => "TLS, certificate verified",
        (false, true) => "StartTLS, certificate verified",
        (false, false) => "in clear",
    };
    let at = |error: DirectoryError| DirectoryError::Unavailable(format!("{url}: {error}"));
    let connected = directory.connect(url).await.map_err(at);
    drop(noted(steps, "server", connected, |_| format!("{url} answers ({protection})"))?);
    let bound = directory.connect_reader(url).await;
    let who = match ldap.bind_dn.as_str() {
        "" => "nobody (ldap.bind_dn is empty)",
        dn => dn,
    };
    let mut reader = noted(steps, "bind", bound, |_| format!("users are looked for as {who}"))?;
    let name = check.user.as_deref()?;
    let dn = match ldap.user_dn.is_empty() {
        true => directory.find_dn(&mut reader, name).await,
        false => Ok(directory.made_dn(name)),
    };
    let dn = noted(steps, "user", dn, Clone::clone)?;
    if let Some(password) = &check.password {
        let tried = directory.connect_user(url, &dn, password).await;
        let own = noted(steps, "password", tried, |_| "the password is right".to_owned())?;
        if ldap.reads_as_user() {
            reader = own;
        }
    }
    let account = directory.read_account(&mut reader, name, &dn).await;
    let account = noted(steps, "account", account, |account| {
        format!("{} ({}), known as {}", account.name, account.display_name, account.subject)
    })?;
    let state = match account.entry.closed_reason(check.now) {
        Some(reason) => Err(DirectoryError::Refused(reason.to_string())),
        None => Ok(()),
    };
    noted(steps, "state", state, |()| "nothing says that the account is closed".to_owned());
    let groups: Vec<String> = account.groups.iter().cloned().collect();
    let found = match groups.is_empty() {
        true => "none".to_owned(),
        false => groups.join("; "),
    };
    steps.push(DirectoryStep { step: "groups", ok: true, found });
    let grants = merge_grants(ldap.grants().ok()?, |dn| account.groups.contains(dn));
    let found = match grants.is_empty() {
        true => "none: the user is in no group of ldap.grants".to_owned(),
        false => grants.iter().map(describe_grant).collect::<Vec<_>>().join("; "),
    };
    steps.push(DirectoryStep { step: "grants", ok: !grants.is_empty(), found });
    Some(())
}

fn describe_grant(grant: &Grant) -> String {
    let rights: String = grant.rights.iter().map(|right| format!("+{right}")).collect();
    format!("{}{rights}@{}", grant.role, grant.place.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_rests_the_directory_and_is_recorded_once_a_minute() {
        let outage = DirectoryOutage::new();
        let at = |ms: i64| Millis(1_722_470_400_000 + ms);
        assert!(!outage.is_recent(at(0)));
        assert!(outage.note_outage(at(0)), "the first is on record");
        assert!(!outage.is_recent(at(-1)), "the clock was set back");
        assert!(outage.is_recent(at(1_999)) && !outage.is_recent(at(2_000)));
        assert!(!outage.note_outage(at(59_999)));
        assert!(outage.is_recent(at(60_000)));
        assert!(outage.note_outage(at(60_001)));
    }
}
