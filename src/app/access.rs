//! Who may do what: logins, sessions, tokens, users. Whatever is changed here is on record in the same
//! transaction; no secret is stored as it is, and none is on record.

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

/// Seconds between two notes that a session or token is used.
const NOTE_MS: i64 = 60_000;

/// What about users is not done, and why.
#[derive(Debug, thiserror::Error)]
pub enum NotGranted {
    /// Nobody has this name.
    #[error("there is no user {0}")]
    NoUser(UserName),
    /// Somebody has this name.
    #[error("there is a user {0} already; choose another name")]
    Taken(UserName),
    /// More than one has oneself.
    #[error("you cannot give `{0}` in {place}, because you do not have it there; ask an administrator of all groups", place = place_words(.1))]
    Beyond(Permission, Where),
    /// One's own grants.
    #[error("nobody changes what he himself may do; ask another administrator")]
    Own,
    /// Nobody would be left.
    #[error("{0} is the last administrator of all groups who may log in; make another one first")]
    LastAdmin(UserName),
    /// Two grants of one role in one place.
    #[error("there are two grants of one role in {place}; say one, with all its rights", place = place_words(.0))]
    Twice(Where),
    /// A right that is none.
    #[error("`{0}` is not given one by one; the rights beside a role are `force` and `script`")]
    NoRight(Permission),
    /// A token's days.
    #[error("a token lives 1 to 366 days, and none longer than the token it is made with")]
    Days,
    /// A token's words.
    #[error("a token needs a name of 1 to 100 characters and at least one permission")]
    NoToken,
    /// A token that could do more than its maker.
    #[error("a token cannot do more than who makes it: leave `{0}` out")]
    Wider(String),
    /// Tokens over tokens.
    #[error("user {0} has 50 tokens; remove some first")]
    Enough(UserName),
    /// A set-up secret that does not work.
    #[error("this set-up secret does not work, or no more; procession user setup-secret makes one")]
    NoSetup,
    /// There is somebody.
    #[error("there are users already; procession user add makes another")]
    SetUp,
    /// A password that the directory keeps.
    #[error("user {0} logs in with the password of the directory; set it there")]
    InDirectory(UserName),
    /// Somebody whom another provider lets in.
    #[error("user {0} logs in by the provider of http.oidc; there is no password here to set")]
    AtProvider(UserName),
    /// No password to change.
    #[error("user {0} has no password here; log in where you always do")]
    Elsewhere(UserName),
}

fn place_words(place: &Where) -> String {
    match place {
        Where::Everywhere => "all groups".to_owned(),
        Where::Group(code) => format!("group {code}"),
    }
}

/// On whose authority something about users is done.
#[derive(Clone, Debug)]
pub struct Authority {
    /// As the audit log names it.
    pub operator: Operator,
    /// The user; none is whoever has the database.
    pub user: Option<(UserId, Grants)>,
}

impl Authority {
    fn is_everywhere(&self) -> bool {
        let may = |(_, grants): &(UserId, Grants)| grants.allow_everywhere(Permission::Admin);
        self.user.as_ref().is_none_or(may)
    }
}

/// Somebody who proved who he is.
#[derive(Clone, Debug)]
pub struct KnownCaller {
    /// The user.
    pub user: User,
    /// What the user may do, in this way.
    pub grants: Grants,
    /// How it was proved.
    pub by: PresentedCredential,
    /// Whether nothing may be done before a second factor is enrolled.
    pub must_enrol: bool,
}

/// What was shown.
#[derive(Clone, Debug)]
pub enum PresentedCredential {
    /// The secret of a session.
    Session(UserSession),
    /// A token.
    Token(ApiToken),
    /// Nothing: a change request of the user that a second person has approved.
    Approval,
}

/// Who looks at passwords, sessions and tokens.
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
    /// A porter of this database.
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
    /// Who has this session, if it is one that has not ended.
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

    /// Whether everybody who logs in with a password needs a second factor.
    pub fn requires_second_factor(&self) -> bool {
        self.requires_second_factor
    }

    /// Whether the user of a session has to enrol first. Who came from another provider has shown a second factor there,
    /// or was not asked for one.
    pub async fn must_enrol(&self, tx: &mut Tx, session: &UserSession) -> Result<bool> {
        if !self.requires_second_factor || session.proof == "oidc" {
            return Ok(false);
        }
        let found = store::second_factor::find_factor(tx, session.user).await?;
        Ok(!found.is_some_and(|factor| factor.is_active))
    }

    /// Whose token this is, if it is one that works.
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

    /// Whoever asked for a change that is approved now, with what the account may do at this moment: none when the
    /// user may not log in any more, or the token that it was asked with is gone.
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

    /// Which of these are still who they were and may do what they might: the session or token is there and has
    /// not ended, the user may log in, and password and grants are the same.
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

    /// What passwords have cost this process so far, in KiB of memory times rounds: the same for a name
    /// that nobody has, because the time would tell.
    pub fn spent_on_passwords(&self) -> u64 {
        self.hashing.spent()
    }

    /// The present moment.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }
}

/// The user and what the user may do; none when the user may not log in.
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

/// Grants as they are shown and put on record.
pub fn grants_document(grants: &[Grant]) -> Value {
    let one = |g: &Grant| json!({ "group": g.place.as_str(), "role": g.role, "rights": g.rights });
    grants.iter().map(one).collect()
}

/// The grants that a table gives to who is in these groups of another system, in one order; rights of the same role in
/// the same place come together.
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

/// A user whose initial password nobody knows yet, or who has none.
pub type InitialPassword = Option<SecretString>;
