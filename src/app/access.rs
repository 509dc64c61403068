//! Authentication and permissions: logins, sessions, tokens, users. Every change is recorded in the
//! audit log in the same transaction; no secret is stored or recorded in plain text.

mod accounts;
mod directory;
mod directory_recheck;
mod hashing;
mod ldap;
mod login;
mod login_limit;
mod newcomers;
mod oidc;
mod second_factor;
pub mod secret;
mod setup;
mod tokens;

pub use accounts::{Initial, NewAccount, UserChange};
pub use directory_recheck::{DirectoryRecheck, DirectoryWatch};
pub use ldap::{DirectoryCheck, DirectoryStep, LDAP_ISSUER, check_directory};
pub use login::{Credentials, Entered, NotIn, Stranger};
pub(super) use newcomers::bring;
pub use oidc::{Leaving, NotProved, Returning};
pub use second_factor::{Enrolment, SecondFactorRefused, SecondFactorState};
pub use tokens::TokenWish;

use crate::app::App;
use crate::app::access::hashing::Hashing;
use crate::app::access::ldap::DirectoryOutage;
use crate::app::access::login_limit::LoginLimit;
use crate::config::Ldap;
use crate::domain::access::user::{UserId, UserName};
use crate::domain::access::{Grant, Grants, Permission, Where};
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::secrets::encryption::KeyRing;
use crate::store::api_token::ApiToken;
use crate::store::audit::{Operator, record_one as record};
use crate::store::user::User;
use crate::store::user_session::UserSession;
use crate::store::{self, Db, Tx};
use anyhow::Result;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Minimum interval between two updates of the last use of a session or token, in milliseconds.
const NOTE_MS: i64 = 60_000;

/// Why a change of users or tokens is refused.
#[derive(Debug, thiserror::Error)]
pub enum NotGranted {
    /// No user has this name.
    #[error("there is no user {0}")]
    NoUser(UserName),
    /// The name is taken.
    #[error("there is a user {0} already; choose another name")]
    Taken(UserName),
    /// The permission exceeds those of the granting user.
    #[error("you cannot give `{0}` in {place}, because you do not have it there; ask an administrator of all groups", place = place_words(.1))]
    Beyond(Permission, Where),
    /// The user's own grants.
    #[error("nobody changes what he himself may do; ask another administrator")]
    Own,
    /// It would remove the last administrator.
    #[error("{0} is the last administrator of all groups who may log in; make another one first")]
    LastAdmin(UserName),
    /// Two grants of one role for the same groups.
    #[error("there are two grants of one role in {place}; say one, with all its rights", place = place_words(.0))]
    Twice(Where),
    /// The permission cannot be granted there.
    #[error("`{0}` is not given one by one; the rights beside a role are `force` and `script`")]
    NoRight(Permission),
    /// The lifetime of a token is out of range.
    #[error("a token lives 1 to 366 days, and none longer than the token it is made with")]
    Days,
    /// The name or the permissions of a token are invalid.
    #[error("a token needs a name of 1 to 100 characters and at least one permission")]
    NoToken,
    /// The token would have more permissions than its creator.
    #[error("a token cannot do more than who makes it: leave `{0}` out")]
    Wider(String),
    /// The user has too many tokens.
    #[error("user {0} has 50 tokens; remove some first")]
    Enough(UserName),
    /// The setup secret is invalid.
    #[error("this set-up secret does not work, or no more; procession user setup-secret makes one")]
    NoSetup,
    /// A user exists already.
    #[error("there are users already; procession user add makes another")]
    SetUp,
    /// The directory keeps the password.
    #[error("user {0} logs in with the password of the directory; set it there")]
    InDirectory(UserName),
    /// The user logs in at another provider.
    #[error("user {0} logs in by the provider of http.oidc; there is no password here to set")]
    AtProvider(UserName),
    /// The user has no password here.
    #[error("user {0} has no password here; log in where you always do")]
    Elsewhere(UserName),
}

fn place_words(place: &Where) -> String {
    match place {
        Where::Everywhere => "all groups".to_owned(),
        Where::Group(code) => format!("group {code}"),
    }
}

/// The user or operator on whose authority a change is made.
#[derive(Clone, Debug)]
pub struct Authority {
    /// The operator for the audit log.
    pub operator: Operator,
    /// The user and its grants; `None` for a caller with direct access to the database.
    pub user: Option<(UserId, Grants)>,
}

impl Authority {
    fn is_everywhere(&self) -> bool {
        let may = |(_, grants): &(UserId, Grants)| grants.allow_everywhere(Permission::Admin);
        self.user.as_ref().is_none_or(may)
    }
}

/// An authenticated caller.
#[derive(Clone, Debug)]
pub struct KnownCaller {
    pub user: User,
    /// The grants of the user with this credential.
    pub grants: Grants,
    pub by: PresentedCredential,
    /// Whether the user must enrol a second factor before anything else.
    pub must_enrol: bool,
}

/// The credential of a caller.
#[derive(Clone, Debug)]
pub enum PresentedCredential {
    /// A session.
    Session(UserSession),
    /// An API token.
    Token(ApiToken),
    /// None: an approved change request of the user.
    Approval,
}

/// Checks passwords, sessions and tokens.
#[derive(Clone)]
pub struct Porter {
    db: Db,
    clock: Clock,
    hashing: Hashing,
    idle_ms: i64,
    longest_ms: i64,
    logins: LoginLimit,
    directory_logins: LoginLimit,
    ldap: Option<Arc<Ldap>>,
    directory_outage: DirectoryOutage,
    requires_second_factor: bool,
    keys: Option<Arc<KeyRing>>,
}

impl App {
    /// The authenticator of this database.
    pub fn porter(&self) -> Porter {
        let (idle_ms, longest_ms) = self.config.http.session_ms();
        let (db, clock) = (self.db.clone(), self.clock.clone());
        let limit = || LoginLimit::new(self.config.limits.logins_at_once);
        let ldap = &self.config.ldap;
        Porter {
            db,
            clock,
            hashing: Hashing::new(),
            idle_ms,
            longest_ms,
            logins: limit(),
            directory_logins: limit(),
            ldap: ldap.is_on().then(|| Arc::new(ldap.clone())),
            directory_outage: DirectoryOutage::new(),
            requires_second_factor: self.config.users.requires_second_factor(),
            keys: None,
        }
    }
}

impl Porter {
    /// The user of a session that has not ended.
    pub async fn by_session(&self, secret: &str) -> Result<Option<KnownCaller>> {
        let now = self.clock.now();
        let mut tx = self.db.begin_read().await?;
        let digest = secret::digest(secret);
        let found = store::user_session::by_digest(&mut tx, &digest).await?;
        let is_over = |s: &UserSession| now >= s.end_time || now.since(s.used_time) >= self.idle_ms;
        let Some(session) = found.filter(|s| !is_over(s)) else { return Ok(None) };
        let Some((user, grants)) = active(&mut tx, session.user).await? else { return Ok(None) };
        let must_enrol = self.must_enrol(&mut tx, &session).await?;
        drop(tx);
        if now.since(session.used_time) >= NOTE_MS {
            let mut tx = self.db.begin().await?;
            store::user_session::note_use(&mut tx, session.id, now).await?;
            tx.commit().await?;
        }
        let grants = Grants::new(grants);
        Ok(Some(KnownCaller {
            user,
            grants,
            by: PresentedCredential::Session(session),
            must_enrol,
        }))
    }

    /// Whether every user with a password needs a second factor.
    pub fn requires_second_factor(&self) -> bool {
        self.requires_second_factor
    }

    /// Whether the user of a session must enrol first. A user of another provider has its second
    /// factor there, or none is required.
    pub async fn must_enrol(&self, tx: &mut Tx, session: &UserSession) -> Result<bool> {
        if !self.requires_second_factor || session.proof == "oidc" {
            return Ok(false);
        }
        let found = store::second_factor::find_factor(tx, session.user).await?;
        Ok(!found.is_some_and(|factor| factor.is_active))
    }

    /// The user of a valid token.
    pub async fn by_token(&self, secret: &str) -> Result<Option<KnownCaller>> {
        let now = self.clock.now();
        let mut tx = self.db.begin_read().await?;
        let found = store::api_token::by_digest(&mut tx, &secret::digest(secret)).await?;
        let Some(token) = found.filter(|t| now < t.end_time) else { return Ok(None) };
        let Some((user, grants)) = active(&mut tx, token.user).await? else { return Ok(None) };
        drop(tx);
        if token.used_time.is_none_or(|at| now.since(at) >= NOTE_MS) {
            let mut tx = self.db.begin().await?;
            store::api_token::note_use(&mut tx, token.id, now).await?;
            tx.commit().await?;
        }
        let grants = Grants::new(grants).within(token.confines.clone());
        Ok(Some(KnownCaller {
            user,
            grants,
            by: PresentedCredential::Token(token),
            must_enrol: false,
        }))
    }

    /// The author of an approved change request, with the present grants of the account: `None`
    /// when the user may no longer log in, or the token that filed the request is gone.
    pub async fn by_author(
        &self,
        author: UserId,
        token: Option<i64>,
    ) -> Result<Option<KnownCaller>> {
        let now = self.clock.now();
        let mut tx = self.db.begin_read().await?;
        let Some((user, grants)) = active(&mut tx, author).await? else { return Ok(None) };
        let grants = Grants::new(grants);
        let known = |user, grants| KnownCaller {
            user,
            grants,
            by: PresentedCredential::Approval,
            must_enrol: false,
        };
        let Some(id) = token else { return Ok(Some(known(user, grants))) };
        let found = store::api_token::by_ids(&mut tx, &BTreeSet::from([id])).await?;
        let lives = |token: &ApiToken| token.user == user.id && now < token.end_time;
        let Some(token) = found.into_iter().find(lives) else { return Ok(None) };
        let grants = grants.within(token.confines);
        Ok(Some(known(user, grants)))
    }

    /// Which of these callers are unchanged: the session or token exists and has not ended, the
    /// user may log in, and password and grants are the same.
    pub async fn unchanged(&self, all: &[&KnownCaller]) -> Result<Vec<bool>> {
        let now = self.clock.now();
        let (mut sessions, mut tokens) = (BTreeSet::new(), BTreeSet::new());
        for known in all {
            match &known.by {
                PresentedCredential::Session(session) => sessions.insert(session.id),
                PresentedCredential::Token(token) => tokens.insert(token.id),
                PresentedCredential::Approval => false,
            };
        }
        let users: BTreeSet<i64> = all.iter().map(|known| known.user.id.0).collect();
        let mut tx = self.db.begin_read().await?;
        let sessions = store::user_session::by_ids(&mut tx, &sessions).await?;
        let tokens = store::api_token::by_ids(&mut tx, &tokens).await?;
        let active = store::user::by_ids(&mut tx, &users).await?;
        let grants = store::user::grants_of(&mut tx, &users).await?;
        drop(tx);
        let lives = |known: &KnownCaller| match &known.by {
            PresentedCredential::Session(own) => sessions.iter().any(|s| {
                s.id == own.id
                    && s.user == known.user.id
                    && now < s.end_time
                    && now.since(s.used_time) < self.idle_ms
            }),
            PresentedCredential::Token(own) => tokens.iter().any(|t| {
                t.id == own.id
                    && t.user == known.user.id
                    && t.confines == own.confines
                    && now < t.end_time
            }),
            PresentedCredential::Approval => false,
        };
        let is_same_user = |known: &KnownCaller| {
            let hash = |user: &User| user.password.as_ref().map(|p| p.expose_secret().to_owned());
            active.iter().any(|user| {
                user.id == known.user.id && user.is_open() && hash(user) == hash(&known.user)
            })
        };
        let may_the_same = |known: &KnownCaller| {
            let own = grants.get(&known.user.id).map_or(&[][..], Vec::as_slice);
            let (mut before, mut now) = (known.grants.as_slice().to_vec(), own.to_vec());
            before.sort();
            now.sort();
            before == now
        };
        let check =
            |known: &&KnownCaller| lives(known) && is_same_user(known) && may_the_same(known);
        Ok(all.iter().map(check).collect())
    }

    /// The cost of password hashing in this process so far, in KiB of memory times rounds: the same
    /// for an unknown name, because the time would reveal it.
    pub fn spent_on_passwords(&self) -> u64 {
        self.hashing.spent()
    }

    pub fn now(&self) -> Millis {
        self.clock.now()
    }
}

/// The user and its grants; `None` when the user may not log in.
async fn active(tx: &mut Tx, id: UserId) -> Result<Option<(User, Vec<Grant>)>> {
    let user = store::user::by_id(tx, id).await?.filter(User::is_open);
    let Some(user) = user else { return Ok(None) };
    let grants = store::user::grants(tx, id).await?;
    Ok(Some((user, grants)))
}

async fn find_user(tx: &mut Tx, name: &UserName) -> Result<User> {
    let found = store::user::by_name(tx, name).await?;
    found.ok_or_else(|| NotGranted::NoUser(name.clone()).into())
}

/// Grants as shown and recorded.
pub fn grants_document(grants: &[Grant]) -> Value {
    let one = |g: &Grant| json!({ "group": g.place.as_str(), "role": g.role, "rights": g.rights });
    grants.iter().map(one).collect()
}

/// The grants that a mapping table assigns to members of these external groups, sorted; permissions
/// of the same role for the same groups are combined.
fn merge_grants(table: Vec<(String, Grant)>, is_in: impl Fn(&str) -> bool) -> Vec<Grant> {
    let mut merged: Vec<Grant> = Vec::new();
    for (_, grant) in table.into_iter().filter(|(group, _)| is_in(group)) {
        let same = |g: &&mut Grant| g.place == grant.place && g.role == grant.role;
        match merged.iter_mut().find(same) {
            Some(there) => there.rights.extend(grant.rights),
            None => merged.push(grant),
        }
    }
    merged.sort();
    merged
}

/// The initial password of a user, if one was generated.
pub type InitialPassword = Option<SecretString>;
