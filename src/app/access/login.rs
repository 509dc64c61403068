//! Login and logout.

use crate::app::access::accounts::INITIAL_MS;
use crate::app::access::ldap::{DirectoryLogin, is_in_directory};
use crate::app::access::{NotGranted, Porter, find_user, record, secret};
use crate::domain::access::legacy_password::kind_of;
use crate::domain::access::network::address_block;
use crate::domain::access::user::{self, Tries, Unfit, UserId, UserName, wait_ms};
use crate::domain::time::Millis;
use crate::store::audit::Operator;
use crate::store::user::User;
use crate::store::user_session::UserSession;
use crate::store::{self, Tx};
use anyhow::Result;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::time::Duration;

/// The origin of an unauthenticated client.
#[derive(Clone, Debug)]
pub struct Stranger {
    /// The client address.
    pub address: String,
    /// The user agent of the browser.
    pub agent: Option<String>,
}

/// The credentials of a login.
pub struct Credentials {
    pub password: SecretString,
    /// A one-time code or a recovery code; required once the password is known to be correct.
    pub code: Option<SecretString>,
}

impl From<SecretString> for Credentials {
    fn from(password: SecretString) -> Self {
        Self { password, code: None }
    }
}

/// Why a login is refused. The messages are the same whether or not the user exists.
#[derive(Debug, thiserror::Error)]
pub enum NotIn {
    /// Name or password is wrong.
    #[error("the name or the password is not right")]
    Wrong,
    /// Too many wrong attempts; the remaining seconds.
    #[error("there were too many wrong tries; try again in {0} seconds")]
    Wait(u32),
    /// Too many concurrent logins.
    #[error(
        "too many log-ins are under way; try again in {0} seconds, or ask the administrator of the server \
         to raise limits.logins_at_once"
    )]
    Busy(u32),
    /// The directory with the passwords is unavailable.
    #[error(
        "the directory that keeps the passwords cannot be asked; nothing is wrong with yours, as far as is known. Try \
         again in a minute, or tell the administrator of the server (procession ldap check)"
    )]
    DirectoryUnavailable,
    /// The password is correct, and the user has a second factor.
    #[error("the password is right; log in with it and with a code of your second factor")]
    CodeNeeded,
    /// The password is correct, and the code is not.
    #[error(
        "the code is not right, or was used before; wait for the next one, or use a recovery code"
    )]
    WrongCode,
    /// The key of sealed secrets is missing or has changed.
    #[error(
        "one-time codes cannot be checked at the moment; use a recovery code, or tell the administrator of the server"
    )]
    CodesUnavailable,
    /// The old password of a logged-in user is wrong.
    #[error("the old password is not right; nothing was changed, and you are still logged in")]
    WrongOldPassword,
}

/// A successful login.
pub struct Entered {
    pub user: User,
    /// The session's secret, for the cookie.
    pub secret: SecretString,
    /// The stored session.
    pub session: UserSession,
}

impl Stranger {
    /// The address block by which attempts are counted.
    fn block(&self) -> String {
        block_text(&self.address)
    }

    /// The operator of a user from there, for the audit log.
    pub fn operator(&self, name: &str) -> Operator {
        Operator::new(name.to_owned(), self.address.clone())
    }
}

/// Whether a user of this name has a session from this address block.
async fn is_familiar(tx: &mut Tx, named: &str, block: &str) -> Result<bool> {
    let Ok(name) = UserName::parse(named) else { return Ok(false) };
    let Some(user) = store::user::by_name(tx, &name).await? else { return Ok(false) };
    let sessions = store::user_session::of_user(tx, user.id).await?;
    Ok(sessions.iter().any(|session| block_text(&session.address) == block))
}

/// The address block by which attempts are counted: the /64 for IPv6.
fn block_text(address: &str) -> String {
    match address.parse() {
        Ok(ip) => address_block(ip).to_string(),
        Err(_) => address.to_owned(),
    }
}

/// A hash of our own, and when the password expires.
struct Renewed {
    hash: String,
    until: Option<Millis>,
}

/// Stores the hash, unless the password was changed meanwhile.
async fn renew(
    tx: &mut Tx,
    user: User,
    renewed: Renewed,
    from: &Stranger,
    now: Millis,
) -> Result<User> {
    let Renewed { hash, until } = renewed;
    let old = user.password.as_ref().map_or("", |stored| stored.expose_secret());
    if !store::user::renew_password(tx, user.id, old, &hash, until, now).await? {
        return Ok(user);
    }
    let detail = json!({ "user": user.name, "must_change": until.is_some() });
    record(tx, &from.operator(user.name.as_str()), "password renewed", detail, now).await?;
    let must_change = until.is_some();
    Ok(User { password: Some(hash.into()), must_change, password_until: until, ..user })
}

/// The actor in the audit log when the typed name is not that of a user: it may be a password.
pub(super) const NOBODY: &str = "(unknown)";

/// Minimum duration of a refusal where a directory is configured. Its answers take longer than
/// ours, which would reveal where a name is known.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

impl Porter {
    /// Logs in a user who knows the password.
    pub async fn log_in(
        &self,
        name: &str,
        credentials: Credentials,
        from: &Stranger,
    ) -> Result<Entered> {
        let refusal_time = self.ldap.is_some().then(|| tokio::time::sleep(REFUSAL_TIME));
        let outcome = self.check_and_log_in(name, credentials, from).await;
        if let (Err(error), Some(rest)) = (&outcome, refusal_time)
            && matches!(error.downcast_ref(), Some(NotIn::Wrong))
        {
            rest.await;
        }
        outcome
    }

    async fn check_and_log_in(
        &self,
        name: &str,
        Credentials { password, code }: Credentials,
        from: &Stranger,
    ) -> Result<Entered> {
        let room = self.logins.enter()?;
        let known = UserName::parse(name).ok();
        let named = known.as_ref().map_or(name, UserName::as_str);
        if self.ldap.is_some() && self.directory_outage.is_recent(self.clock.now()) {
            let user = self.user_named(known.as_ref()).await?;
            if known.is_some() && is_in_directory(user.as_ref()) {
                return Err(NotIn::DirectoryUnavailable.into());
            }
        }
        let attempt = self.attempt(named, from).await?;
        let user = self.user_named(known.as_ref()).await?;
        let stored = user.as_ref().and_then(|u| u.password.as_ref());
        let is_right = self.hashing.verify_password(stored, password.clone()).await?;
        if let (Some(ldap), Some(name)) = (&self.ldap, &known)
            && is_in_directory(user.as_ref())
        {
            drop(room);
            let login = DirectoryLogin { name, password, code, attempt, from };
            return self.log_in_by_directory(ldap, login).await;
        }
        let now = self.clock.now();
        let why = match &user {
            None => Some("no such user"),
            Some(u) if u.password.is_none() => Some("no password"),
            Some(_) if !is_right => Some("wrong password"),
            Some(u) if !u.is_active => Some("disabled"),
            Some(u) if u.password_until.is_some_and(|until| now >= until) => {
                Some("initial password expired")
            }
            Some(_) => None,
        };
        match (user, why) {
            (Some(user), None) => {
                let code = code.as_ref();
                let checked = self.check_second_factor(&user, code, "password", from).await;
                self.keep_attempt_of_wrong_code(checked, attempt).await?;
                let renewed = self.renewed(&user, password).await?;
                let mut tx = self.db.begin().await?;
                store::login_attempt::take_back(&mut tx, attempt).await?;
                let user = match renewed {
                    Some(renewed) => renew(&mut tx, user, renewed, from, now).await?,
                    None => user,
                };
                let entered = self.enter(&mut tx, user, "password", from).await?;
                tx.commit().await?;
                Ok(entered)
            }
            (user, why) => {
                let name = user.as_ref().map_or(NOBODY, |u| u.name.as_str());
                self.refuse(name, "password", why.unwrap_or("no such user"), from).await?;
                Err(NotIn::Wrong.into())
            }
        }
    }

    /// A wrong code was a guess, and its attempt stays; a correct password alone was none.
    pub(super) async fn keep_attempt_of_wrong_code(
        &self,
        checked: Result<()>,
        attempt: i64,
    ) -> Result<()> {
        let Err(error) = checked else { return Ok(()) };
        if !matches!(error.downcast_ref(), Some(NotIn::WrongCode)) {
            let mut tx = self.db.begin().await?;
            store::login_attempt::take_back(&mut tx, attempt).await?;
            tx.commit().await?;
        }
        Err(error)
    }

    /// Checks a user's login password; a wrong one counts as a guess.
    pub(super) async fn check_own_password(
        &self,
        user: &User,
        password: SecretString,
        from: &Stranger,
    ) -> Result<()> {
        let attempt = self.attempt(user.name.as_str(), from).await?;
        let is_right = match (&user.password, &self.ldap) {
            (Some(_), _) => {
                let _room = self.logins.enter()?;
                self.hashing.verify_password(user.password.as_ref(), password).await?
            }
            (None, Some(ldap)) => self.is_password_in_directory(ldap, user, &password).await?,
            (None, None) => false,
        };
        if !is_right {
            self.refuse(user.name.as_str(), "second factor", "wrong password", from).await?;
            return Err(NotIn::WrongOldPassword.into());
        }
        let mut tx = self.db.begin().await?;
        store::login_attempt::take_back(&mut tx, attempt).await?;
        Ok(tx.commit().await?)
    }

    async fn user_named(&self, name: Option<&UserName>) -> Result<Option<User>> {
        let Some(name) = name else { return Ok(None) };
        let mut tx = self.db.begin_read().await?;
        store::user::by_name(&mut tx, name).await
    }

    /// The new stored form of a correct password whose hash wraps another program's digest; with
    /// the time when the password expires, if it does not meet our rules.
    async fn renewed(&self, user: &User, password: SecretString) -> Result<Option<Renewed>> {
        let is_legacy = |stored: &SecretString| kind_of(stored.expose_secret()).0.is_some();
        if !user.password.as_ref().is_some_and(is_legacy) {
            return Ok(None);
        }
        let is_good = user::password(&user.name, password.expose_secret()).is_ok();
        let must_go = user.must_change || !is_good;
        let until =
            user.password_until.or_else(|| must_go.then(|| self.clock.now().plus_ms(INITIAL_MS)));
        Ok(Some(Renewed { hash: self.hashing.hash(password).await?, until }))
    }

    /// Records a refused login.
    pub(super) async fn refuse(
        &self,
        name: &str,
        proof: &str,
        why: &str,
        from: &Stranger,
    ) -> Result<()> {
        let mut tx = self.db.begin().await?;
        let detail = json!({ "why": why, "by": proof });
        record(&mut tx, &from.operator(name), "login refused", detail, self.clock.now()).await?;
        Ok(tx.commit().await?)
    }

    /// Counts an attempt, or refuses it after too many. It is counted before it is checked, so that
    /// a thousand concurrent ones cannot bypass the limit.
    async fn attempt(&self, named: &str, from: &Stranger) -> Result<i64> {
        let name = secret::digest(named);
        let block = from.block();
        let address = block.as_str();
        let now = self.clock.now();
        let refuse = |wait: i64| {
            let seconds = u32::try_from((wait + 999) / 1_000).unwrap_or(60);
            anyhow::Error::from(NotIn::Wait(seconds))
        };
        let mut tx = self.db.begin_read().await?;
        let is_familiar = is_familiar(&mut tx, named, address).await?;
        let tries = store::login_attempt::tries(&mut tx, &name, address, None, now).await?;
        let tries = Tries { is_familiar, ..tries };
        drop(tx);
        if let Some(wait) = wait_ms(&tries, now) {
            return Err(refuse(wait));
        }
        let mut tx = self.db.begin().await?;
        store::login_attempt::purge(&mut tx, now).await?;
        let id = store::login_attempt::add_attempt(&mut tx, &name, address, now).await?;
        tx.commit().await?;
        let mut tx = self.db.begin_read().await?;
        let tries = store::login_attempt::tries(&mut tx, &name, address, Some(id), now).await?;
        let tries = Tries { is_familiar, ..tries };
        drop(tx);
        let Some(wait) = wait_ms(&tries, now) else { return Ok(id) };
        let mut tx = self.db.begin().await?;
        store::login_attempt::take_back(&mut tx, id).await?;
        tx.commit().await?;
        Err(refuse(wait))
    }

    /// Creates a session.
    pub(super) async fn enter(
        &self,
        tx: &mut Tx,
        user: User,
        proof: &str,
        from: &Stranger,
    ) -> Result<Entered> {
        let now = self.clock.now();
        let secret = secret::fresh()?;
        store::user_session::purge(tx, now).await?;
        let mut session = UserSession {
            id: 0,
            user: user.id,
            proof: proof.to_owned(),
            address: from.address.clone(),
            agent: from.agent.as_ref().map(|a| a.chars().take(200).collect()),
            create_time: now,
            used_time: now,
            end_time: now.plus_ms(self.longest_ms),
        };
        let digest = secret::digest(secret.expose_secret());
        session.id = store::user_session::add_session(tx, &digest, &session).await?;
        store::user::logged_in(tx, user.id, now).await?;
        let by = from.operator(user.name.as_str());
        record(tx, &by, "login", json!({ "by": proof, "session": session.id }), now).await?;
        Ok(Entered { user, secret, session })
    }

    /// Ends the user's own session.
    pub async fn log_out(&self, user: UserId, session: i64, by: &Operator) -> Result<()> {
        let mut tx = self.db.begin().await?;
        if store::user_session::end_session(&mut tx, user, session).await? {
            record(&mut tx, by, "logout", json!({ "session": session }), self.clock.now()).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Changes the user's own password: the old one is required, and all sessions end except the
    /// new one.
    pub async fn change_password(
        &self,
        name: &UserName,
        old: SecretString,
        new: SecretString,
        from: &Stranger,
    ) -> Result<Entered> {
        let _room = self.logins.enter()?;
        let mut tx = self.db.begin_read().await?;
        let user = find_user(&mut tx, name).await?;
        drop(tx);
        if user.password.is_none() {
            return Err(NotGranted::Elsewhere(user.name).into());
        }
        let attempt = self.attempt(name.as_str(), from).await?;
        if !self.hashing.verify_password(user.password.as_ref(), old.clone()).await? {
            self.refuse(name.as_str(), "password change", "wrong password", from).await?;
            return Err(NotIn::WrongOldPassword.into());
        }
        if secret::are_equal(old.expose_secret(), new.expose_secret()) {
            return Err(Unfit::Same.into());
        }
        user::password(name, new.expose_secret())?;
        let hash = self.hashing.hash(new).await?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        store::login_attempt::take_back(&mut tx, attempt).await?;
        store::user::set_password(&mut tx, user.id, &hash, None, now).await?;
        let ended = store::user_session::end_others(&mut tx, user.id, None).await?;
        let detail = json!({ "user": name, "sessions_ended": ended });
        record(&mut tx, &from.operator(name.as_str()), "password change", detail, now).await?;
        let user = User { must_change: false, password_until: None, ..user };
        let entered = self.enter(&mut tx, user, "password", from).await?;
        tx.commit().await?;
        Ok(entered)
    }

    /// The active sessions of a user.
    pub async fn sessions(&self, user: UserId) -> Result<Vec<UserSession>> {
        let now = self.clock.now();
        let mut tx = self.db.begin_read().await?;
        let mut all = store::user_session::of_user(&mut tx, user).await?;
        all.retain(|s| now < s.end_time && now.since(s.used_time) < self.idle_ms);
        Ok(all)
    }

    /// When an unused session ends.
    pub fn idle_until(&self, session: &UserSession) -> Millis {
        session.used_time.plus_ms(self.idle_ms).min(session.end_time)
    }
}
