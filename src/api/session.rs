//! The session: login, logout, and the user's own data.

use crate::api::caller::{ApiRequest, CallerNeeds, CallerProof};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::secret_route::AnswerWithCookies;
use crate::api::state::csrf_token;
use crate::api::tokens::may_end_others;
use crate::api::users::{GrantDocument, documents};
use crate::app::access::{Credentials, Entered, KnownCaller, PresentedCredential};
use crate::domain::access::user::UserName;
use crate::domain::access::{Grants, Permission, Where};
use crate::domain::id::GroupCode;
use crate::domain::text::lang::Lang;
use axum::http::Method;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn routes() -> Noun {
    Noun::new("session")
        .get(
            "getSession",
            "/session",
            CallerNeeds::Login,
            "Get the caller's user and permissions",
            get_session,
        )
        .get(
            "getLoginOptions",
            "/session/options",
            CallerNeeds::Nothing,
            "Get the ways to log in",
            options,
        )
        .secret(
            "logIn",
            Method::POST,
            "/session",
            CallerNeeds::Nothing,
            "Log in with a password",
            log_in,
        )
        .secret("logOut", Method::DELETE, "/session", CallerNeeds::Login, "Log out", log_out)
        .secret(
            "createFirstUser",
            Method::POST,
            "/setup",
            CallerNeeds::Nothing,
            "Create the first user, with the one-time secret that `serve` prints",
            set_up,
        )
        .secret(
            "changePassword",
            Method::POST,
            "/session/password",
            CallerNeeds::Login,
            "Change one's password; all other sessions end",
            change_password,
        )
        .get(
            "listOwnSessions",
            "/session/sessions",
            CallerNeeds::Login,
            "List one's sessions",
            sessions,
        )
        .secret(
            "endOwnSession",
            Method::DELETE,
            "/session/sessions/{session_id}",
            CallerNeeds::Login,
            "End one of one's sessions",
            end_session,
        )
}

/// The caller and its permissions.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionDetail {
    /// The user.
    user: SessionUser,
    /// Roles and additional permissions.
    grants: Vec<GrantDocument>,
    /// Send this as the header X-CSRF-Token with every change; null with a token.
    csrf: Option<String>,
    /// Whether a password must be chosen before anything else.
    must_change_password: bool,
    /// Whether the caller can have a second factor here: users of another provider have it there.
    may_have_second_factor: bool,
    /// Whether a second factor must be enrolled before anything else: POST
    /// /session/second-factor/enrol.
    must_enrol_second_factor: bool,
    /// The effective permissions.
    permissions: EffectivePermissions,
    /// When the session ends without further requests, RFC 3339; null with a token.
    idle_until: Option<String>,
    /// When the session or token ends in any case, RFC 3339.
    end_time: String,
}

/// The calling user.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionUser {
    /// The key of the user.
    user_id: i64,
    /// The login name.
    name: String,
    /// The display name.
    display_name: String,
    /// en or zh; null means the browser's language.
    lang: Option<String>,
    /// Whether the user has a password here.
    has_password: bool,
}

/// Effective permissions.
#[derive(Debug, Serialize, JsonSchema)]
struct EffectivePermissions {
    /// In all groups and for what belongs to none.
    everywhere: Vec<Permission>,
    /// In single groups, in addition.
    groups: BTreeMap<String, Vec<Permission>>,
}

fn permissions(grants: &Grants) -> EffectivePermissions {
    let everywhere = Permission::ALL.into_iter().filter(|p| grants.allow_everywhere(*p)).collect();
    let named = grants.as_slice().iter().filter_map(|g| match &g.place {
        Where::Everywhere => None,
        Where::Group(code) => Some(code),
    });
    let confined = grants.confines().and_then(|c| c.groups.as_ref());
    let groups: BTreeSet<&GroupCode> = named.chain(confined.into_iter().flatten()).collect();
    let of = |code: &GroupCode| -> Vec<Permission> {
        Permission::ALL.into_iter().filter(|p| grants.allow(*p, code)).collect()
    };
    let groups = groups.into_iter().map(|code| (code.to_string(), of(code)));
    EffectivePermissions { everywhere, groups: groups.filter(|(_, all)| !all.is_empty()).collect() }
}

/// Whether the caller is in a session of a user whose password is checked here.
fn may_have_second_factor(known: &KnownCaller) -> bool {
    match &known.by {
        PresentedCredential::Session(session) => session.proof != "oidc",
        PresentedCredential::Token(_) | PresentedCredential::Approval => false,
    }
}

fn session(ask: &ApiRequest, known: &KnownCaller, secret: Option<&SecretString>) -> SessionDetail {
    let user = &known.user;
    let (idle_until, end_time) = match &known.by {
        PresentedCredential::Session(s) => {
            (Some(ask.house.porter.idle_until(s).to_string()), s.end_time)
        }
        PresentedCredential::Token(t) => (None, t.end_time),
        PresentedCredential::Approval => (None, ask.house.porter.now()),
    };
    SessionDetail {
        user: SessionUser {
            user_id: user.id.0,
            name: user.name.to_string(),
            display_name: user.display_name.clone(),
            lang: user.lang.map(|lang| lang.as_str().to_owned()),
            has_password: user.password.is_some(),
        },
        may_have_second_factor: may_have_second_factor(known),
        grants: documents(known.grants.as_slice()),
        csrf: secret.map(csrf_token),
        must_change_password: user.must_change && secret.is_some(),
        must_enrol_second_factor: known.must_enrol,
        permissions: permissions(&known.grants),
        idle_until,
        end_time: end_time.to_string(),
    }
}

async fn get_session(ask: ApiRequest, _: Nothing, _: Nothing) -> Result<SessionDetail, Problem> {
    let known = &ask.caller()?.known;
    let secret = match &known.by {
        PresentedCredential::Session(_) => ask.way.session(&ask.headers).map(SecretString::from),
        PresentedCredential::Token(_) | PresentedCredential::Approval => None,
    };
    Ok(session(&ask, known, secret.as_ref()))
}

/// The answer of a successful login.
async fn entered(
    ask: &ApiRequest,
    entered: Entered,
) -> Result<AnswerWithCookies<SessionDetail>, Problem> {
    let (_, grants) = ask.house.porter.get_user(&entered.user.name).await?;
    let cookie = ask.way.set_session(Some(entered.secret.expose_secret()));
    let (user, by) = (entered.user, PresentedCredential::Session(entered.session));
    let must_enrol = match &by {
        PresentedCredential::Session(session) => {
            let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
            ask.house.porter.must_enrol(&mut tx, session).await?
        }
        PresentedCredential::Token(_) | PresentedCredential::Approval => false,
    };
    let known = KnownCaller { user, grants: Grants::new(grants), by, must_enrol };
    Ok(AnswerWithCookies {
        answer: session(ask, &known, Some(&entered.secret)),
        cookies: vec![cookie],
    })
}

/// The available ways to log in.
#[derive(Debug, Serialize, JsonSchema)]
struct LoginOptions {
    /// Whether there is no user yet: POST /setup creates the first one.
    setup_needed: bool,
    /// Another provider: GET /oidc/start redirects to it.
    oidc: Option<LoginProvider>,
    /// A directory whose passwords POST /session accepts.
    ldap: Option<LoginProvider>,
    /// Languages of the console.
    languages: Vec<String>,
    /// The program version.
    version: String,
    /// The name of the answering node.
    public_name: String,
}

/// Another provider, or a directory.
#[derive(Debug, Serialize, JsonSchema)]
struct LoginProvider {
    /// The display name.
    name: String,
}

async fn options(ask: ApiRequest, _: Nothing, _: Nothing) -> Result<LoginOptions, Problem> {
    let house = &ask.house;
    Ok(LoginOptions {
        setup_needed: house.porter.is_fresh().await?,
        oidc: house.oidc_provider().map(|oidc| LoginProvider { name: oidc.name.clone() }),
        ldap: house.ldap_directory().map(|ldap| LoginProvider { name: ldap.name.clone() }),
        languages: Lang::ALL.iter().map(|lang| lang.as_str().to_owned()).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        public_name: house.app.config.node.name.clone(),
    })
}

/// Name and password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogInRequest {
    /// The login name.
    name: String,
    /// The password.
    #[schemars(with = "String")]
    password: SecretString,
    /// A one-time code or a recovery code, for users with a second factor: 401 `code-needed`
    /// requests it.
    #[schemars(with = "Option<String>")]
    code: Option<SecretString>,
}

async fn log_in(
    ask: ApiRequest,
    _: Nothing,
    sent: LogInRequest,
) -> Result<AnswerWithCookies<SessionDetail>, Problem> {
    let from = ask.way.stranger(&ask.headers);
    let credentials = Credentials { password: sent.password, code: sent.code };
    let within = ask.house.porter.log_in(&sent.name, credentials, &from).await?;
    // A new login ends the previous session.
    ask.end_session_before().await?;
    entered(&ask, within).await
}

/// The first user.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateFirstUserRequest {
    /// The secret printed by `serve` or `procession user setup-secret`.
    #[schemars(with = "String")]
    secret: SecretString,
    /// The login name.
    name: String,
    /// The password.
    #[schemars(with = "String")]
    password: SecretString,
    /// The display name; default the login name.
    display_name: Option<String>,
}

async fn set_up(
    ask: ApiRequest,
    _: Nothing,
    sent: CreateFirstUserRequest,
) -> Result<AnswerWithCookies<SessionDetail>, Problem> {
    let name = UserName::parse(&sent.name).map_err(anyhow::Error::from)?;
    let display_name = display_name(sent.display_name, &name)?;
    let from = ask.way.stranger(&ask.headers);
    let porter = &ask.house.porter;
    let within = porter.set_up(&sent.secret, &name, &display_name, sent.password, &from).await?;
    entered(&ask, within).await
}

/// A valid display name.
pub(super) fn display_name(message: Option<String>, name: &UserName) -> Result<String, Problem> {
    let message = message.map(|s| s.trim().to_owned()).filter(|s| !s.is_empty());
    let message = message.unwrap_or_else(|| name.to_string());
    match message.chars().count() <= 200 && !message.contains(char::is_control) {
        true => Ok(message),
        false => Err(Problem::refused("display_name: use at most 200 characters on one line")),
    }
}

/// The result of an action.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Confirmation {
    /// Always true.
    pub(super) done: bool,
}

async fn log_out(
    ask: ApiRequest,
    _: Nothing,
    _: Nothing,
) -> Result<AnswerWithCookies<Confirmation>, Problem> {
    let caller = ask.caller()?;
    let PresentedCredential::Session(session) = &caller.known.by else {
        return Err(Problem::refused("a token has no session; remove it, or let it expire"));
    };
    ask.house.porter.log_out(session.user, session.id, &ask.operator()?).await?;
    Ok(AnswerWithCookies {
        answer: Confirmation { done: true },
        cookies: vec![ask.way.set_session(None)],
    })
}

/// The old and the new password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangePasswordRequest {
    /// The old password.
    #[schemars(with = "String")]
    old: SecretString,
    /// The new password.
    #[schemars(with = "String")]
    new: SecretString,
}

async fn change_password(
    ask: ApiRequest,
    _: Nothing,
    sent: ChangePasswordRequest,
) -> Result<AnswerWithCookies<SessionDetail>, Problem> {
    let caller = ask.caller()?;
    if !matches!(caller.proof, CallerProof::Session(_)) {
        return Err(Problem::refused("a password is changed in a session, not with a token"));
    }
    let from = ask.way.stranger(&ask.headers);
    let (porter, name) = (&ask.house.porter, caller.user_name());
    let within = porter.change_password(name, sent.old, sent.new, &from).await?;
    entered(&ask, within).await
}

/// A session in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionSummary {
    /// The key of the session.
    session_id: i64,
    /// Whether it is the calling session.
    is_this: bool,
    /// How the user logged in: `password`, `ldap`, `oidc` or `setup`.
    proof: String,
    /// The client address.
    address: String,
    /// The user agent of the browser.
    agent: Option<String>,
    /// When it was created, RFC 3339.
    create_time: String,
    /// When it was last used, to the minute.
    used_time: String,
    /// When it ends if it is not used any more.
    idle_until: String,
    /// When it ends in any case.
    end_time: String,
}

/// A list of sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionList {
    /// Latest first.
    items: Vec<SessionSummary>,
}

/// The sessions of a user as the caller sees them.
pub(super) async fn sessions_of(
    ask: &ApiRequest,
    user: crate::domain::access::user::UserId,
) -> Result<SessionList, Problem> {
    let porter = &ask.house.porter;
    let own = &ask.caller()?.proof;
    let all = porter.sessions(user).await?;
    let brief = |s: crate::store::user_session::UserSession| SessionSummary {
        session_id: s.id,
        is_this: *own == CallerProof::Session(s.id),
        idle_until: porter.idle_until(&s).to_string(),
        proof: s.proof,
        address: s.address,
        agent: s.agent,
        create_time: s.create_time.to_string(),
        used_time: s.used_time.to_string(),
        end_time: s.end_time.to_string(),
    };
    Ok(SessionList { items: all.into_iter().map(brief).collect() })
}

async fn sessions(ask: ApiRequest, _: Nothing, _: Nothing) -> Result<SessionList, Problem> {
    sessions_of(&ask, ask.caller()?.known.user.id).await
}

/// A session.
#[derive(Debug, Deserialize, JsonSchema)]
struct OwnSessionPath {
    /// The key of the session.
    session_id: i64,
}

async fn end_session(
    ask: ApiRequest,
    which: OwnSessionPath,
    _: Nothing,
) -> Result<AnswerWithCookies<Confirmation>, Problem> {
    let is_there = ask.house.porter.sessions(ask.caller()?.known.user.id).await?;
    if is_there.iter().any(|session| session.id == which.session_id) {
        may_end_others(&ask)?;
    }
    let (by, name) = (ask.authority()?, ask.caller()?.user_name().clone());
    match ask.house.porter.end_session(&by, &name, which.session_id).await? {
        true => Ok(Confirmation { done: true }.into()),
        false => Err(Problem::not_found(format!("session {} of yours", which.session_id))),
    }
}

impl ApiRequest {
    /// Ends the session that the browser still has, if any.
    async fn end_session_before(&self) -> Result<(), Problem> {
        let Some(secret) = self.way.session(&self.headers) else { return Ok(()) };
        let Some(known) = self.house.porter.by_session(&secret).await? else { return Ok(()) };
        let PresentedCredential::Session(session) = &known.by else { return Ok(()) };
        let by = self.way.stranger(&self.headers).operator(known.user.name.as_str());
        Ok(self.house.porter.log_out(session.user, session.id, &by).await?)
    }
}
