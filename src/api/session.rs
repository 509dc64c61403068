//! The session: logging in and out, and what is one's own.

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
        .get("/session", CallerNeeds::Login, "Who one is, and may do what", get_session)
        .get("/session/options", CallerNeeds::Nothing, "How one may log in", options)
        .secret(Method::POST, "/session", CallerNeeds::Nothing, "Log in with a password", log_in)
        .secret(Method::DELETE, "/session", CallerNeeds::Login, "Log out", log_out)
        .secret(Method::POST, "/setup", CallerNeeds::Nothing, "Make the first user", set_up)
        .secret(
            Method::POST,
            "/session/password",
            CallerNeeds::Login,
            "Change one's password; all other sessions end",
            change_password,
        )
        .get("/session/sessions", CallerNeeds::Login, "One's sessions", sessions)
        .secret(
            Method::DELETE,
            "/session/sessions/{session_id}",
            CallerNeeds::Login,
            "End one of one's sessions",
            end_session,
        )
}

/// Who asks, and may do what.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionDetail {
    /// The user.
    user: Me,
    /// Roles and rights.
    grants: Vec<GrantDocument>,
    /// To be sent as the header X-CSRF-Token with every change; none with a token.
    csrf: Option<String>,
    /// Whether a password must be chosen before anything else.
    must_change_password: bool,
    /// Whether the caller can have a second factor here: who logs in elsewhere has it there.
    may_have_second_factor: bool,
    /// Whether a second factor has to be enrolled before anything else: POST /session/second-factor/enrol.
    must_enrol_second_factor: bool,
    /// What may be done, as everything together says.
    permissions: Permissions,
    /// When the session ends if nothing is asked any more, RFC 3339; none with a token.
    idle_until: Option<String>,
    /// When the session or token ends in any case, RFC 3339.
    end_time: String,
}

/// The user who asks.
#[derive(Debug, Serialize, JsonSchema)]
struct Me {
    /// Key.
    user_id: i64,
    /// The name to log in with.
    name: String,
    /// The name for people.
    display_name: String,
    /// en or zh; none is the browser's.
    lang: Option<String>,
    /// Whether the user has a password here.
    has_password: bool,
}

/// What may be done.
#[derive(Debug, Serialize, JsonSchema)]
struct Permissions {
    /// In all groups and in what belongs to none.
    everywhere: Vec<Permission>,
    /// In single groups, beyond that.
    groups: BTreeMap<String, Vec<Permission>>,
}

fn permissions(grants: &Grants) -> Permissions {
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
    Permissions { everywhere, groups: groups.filter(|(_, all)| !all.is_empty()).collect() }
}

/// Whether the caller is in a session of a user whose password is asked for here.
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
        user: Me {
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

/// Somebody who has just come in.
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

/// How one may log in.
#[derive(Debug, Serialize, JsonSchema)]
struct LoginOptions {
    /// Whether there is nobody yet: POST /setup makes the first user.
    setup_needed: bool,
    /// Another provider: GET /oidc/start leads there.
    oidc: Option<LoginProvider>,
    /// A directory whose passwords are taken by POST /session.
    ldap: Option<LoginProvider>,
    /// Languages of the console.
    languages: Vec<String>,
    /// Of this program.
    version: String,
    /// The name of the node that answers.
    public_name: String,
}

/// Another provider, or a directory.
#[derive(Debug, Serialize, JsonSchema)]
struct LoginProvider {
    /// What people call it.
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
struct LogIn {
    /// The name.
    name: String,
    /// The password.
    #[schemars(with = "String")]
    password: SecretString,
    /// A one-time code or a recovery code, of who has a second factor: 401 `code-needed` asks for it.
    #[schemars(with = "Option<String>")]
    code: Option<SecretString>,
}

async fn log_in(
    ask: ApiRequest,
    _: Nothing,
    sent: LogIn,
) -> Result<AnswerWithCookies<SessionDetail>, Problem> {
    let from = ask.way.stranger(&ask.headers);
    let credentials = Credentials { password: sent.password, code: sent.code };
    let within = ask.house.porter.log_in(&sent.name, credentials, &from).await?;
    // Whoever logs in anew has no use for the session before.
    ask.end_session_before().await?;
    entered(&ask, within).await
}

/// The first user.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetUp {
    /// What `serve`, or `procession user setup-secret`, printed.
    #[schemars(with = "String")]
    secret: SecretString,
    /// The name to log in with.
    name: String,
    /// A password.
    #[schemars(with = "String")]
    password: SecretString,
    /// The name for people; the name to log in with when it is left out.
    display_name: Option<String>,
}

async fn set_up(
    ask: ApiRequest,
    _: Nothing,
    sent: SetUp,
) -> Result<AnswerWithCookies<SessionDetail>, Problem> {
    let name = UserName::parse(&sent.name).map_err(anyhow::Error::from)?;
    let display_name = display_name(sent.display_name, &name)?;
    let from = ask.way.stranger(&ask.headers);
    let porter = &ask.house.porter;
    let within = porter.set_up(&sent.secret, &name, &display_name, sent.password, &from).await?;
    entered(&ask, within).await
}

/// A name for people that fits.
pub(super) fn display_name(said: Option<String>, name: &UserName) -> Result<String, Problem> {
    let said = said.map(|s| s.trim().to_owned()).filter(|s| !s.is_empty());
    let said = said.unwrap_or_else(|| name.to_string());
    match said.chars().count() <= 200 && !said.contains(char::is_control) {
        true => Ok(said),
        false => Err(Problem::refused("display_name: use at most 200 characters on one line")),
    }
}

/// Whether something was done.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Done {
    /// Always true.
    pub(super) done: bool,
}

async fn log_out(
    ask: ApiRequest,
    _: Nothing,
    _: Nothing,
) -> Result<AnswerWithCookies<Done>, Problem> {
    let caller = ask.caller()?;
    let PresentedCredential::Session(session) = &caller.known.by else {
        return Err(Problem::refused("a token has no session; remove it, or let it expire"));
    };
    ask.house.porter.log_out(session.user, session.id, &ask.operator()?).await?;
    Ok(AnswerWithCookies { answer: Done { done: true }, cookies: vec![ask.way.set_session(None)] })
}

/// The old password and a new one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Passwords {
    /// The old one.
    #[schemars(with = "String")]
    old: SecretString,
    /// The new one.
    #[schemars(with = "String")]
    new: SecretString,
}

async fn change_password(
    ask: ApiRequest,
    _: Nothing,
    sent: Passwords,
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
pub(super) struct SessionBrief {
    /// Key.
    session_id: i64,
    /// Whether it is the one that asks.
    is_this: bool,
    /// How it was proved who it is: `password`, `ldap`, `oidc` or `setup`.
    proof: String,
    /// From where.
    address: String,
    /// What the browser calls itself.
    agent: Option<String>,
    /// Since when, RFC 3339.
    create_time: String,
    /// When it was used last, to the minute.
    used_time: String,
    /// When it ends if it is not used any more.
    idle_until: String,
    /// When it ends in any case.
    end_time: String,
}

/// Sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionList {
    /// The latest first.
    items: Vec<SessionBrief>,
}

/// The sessions of a user as the caller sees them.
pub(super) async fn sessions_of(
    ask: &ApiRequest,
    user: crate::domain::access::user::UserId,
) -> Result<SessionList, Problem> {
    let porter = &ask.house.porter;
    let own = &ask.caller()?.proof;
    let all = porter.sessions(user).await?;
    let brief = |s: crate::store::user_session::UserSession| SessionBrief {
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
struct WhichSession {
    /// Its key.
    session_id: i64,
}

async fn end_session(
    ask: ApiRequest,
    which: WhichSession,
    _: Nothing,
) -> Result<AnswerWithCookies<Done>, Problem> {
    let is_there = ask.house.porter.sessions(ask.caller()?.known.user.id).await?;
    if is_there.iter().any(|session| session.id == which.session_id) {
        may_end_others(&ask)?;
    }
    let (by, name) = (ask.authority()?, ask.caller()?.user_name().clone());
    match ask.house.porter.end_session(&by, &name, which.session_id).await? {
        true => Ok(Done { done: true }.into()),
        false => Err(Problem::not_found(format!("session {} of yours", which.session_id))),
    }
}

impl ApiRequest {
    /// Ends the session that the browser still holds, if it holds one.
    async fn end_session_before(&self) -> Result<(), Problem> {
        let Some(secret) = self.way.session(&self.headers) else { return Ok(()) };
        let Some(known) = self.house.porter.by_session(&secret).await? else { return Ok(()) };
        let PresentedCredential::Session(session) = &known.by else { return Ok(()) };
        let by = self.way.stranger(&self.headers).operator(known.user.name.as_str());
        Ok(self.house.porter.log_out(session.user, session.id, &by).await?)
    }
}
