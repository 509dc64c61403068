//! Users.

use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page, PageQuery};
use crate::api::path_params::NamePath;
use crate::api::problem::{PermissionScope, Problem};
use crate::api::route::{Nothing, Noun};
use crate::api::secret_route::AnswerWithCookies;
use crate::api::session::{Done, SessionList, display_name, sessions_of};
use crate::api::tokens::{TokenList, tokens};
use crate::app::access::{Initial, NewAccount, UserChange};
use crate::domain::access::user::UserName;
use crate::domain::access::{Grant, Permission, Role, Where};
use crate::domain::id::GroupCode;
use crate::domain::text::lang::Lang;
use crate::store::user::User;
use axum::http::Method;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// NamePath administers one group sees who there is, and grants there; the rest is for who administers all.
const SEES: CallerNeeds = CallerNeeds::Somewhere(Permission::Admin);
const ADMINISTERS: CallerNeeds = CallerNeeds::Everywhere(Permission::Admin);

pub(super) fn routes() -> Noun {
    Noun::new("users")
        .get("/users", SEES, "Users, by name", list_users)
        .get("/users/{name}", SEES, "A user", get_user)
        .secret(Method::POST, "/users", ADMINISTERS, "Add a user", add_user)
        .secret(
            Method::PATCH,
            "/users/{name}",
            SEES,
            "Change a user; who administers one group may change the grants there",
            change,
        )
        .secret(Method::DELETE, "/users/{name}", ADMINISTERS, "Remove a user", remove)
        .secret(
            Method::POST,
            "/users/{name}/password-reset",
            ADMINISTERS,
            "Give a user a one-time password, shown in this answer; all sessions of the user end",
            reset,
        )
        .get("/users/{name}/sessions", ADMINISTERS, "The sessions of a user", sessions)
        .secret(
            Method::DELETE,
            "/users/{name}/sessions",
            ADMINISTERS,
            "End all sessions of a user",
            end_sessions,
        )
        .get("/users/{name}/tokens", ADMINISTERS, "The tokens of a user", tokens_of)
}

/// A role somewhere, and rights beside it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GrantDocument {
    /// The code of a group, or `*` for all groups and what belongs to none.
    group: String,
    /// The role.
    role: Role,
    /// `force`, `script`, or both.
    #[serde(default)]
    rights: BTreeSet<Permission>,
}

/// Grants as they are shown.
pub(super) fn documents(grants: &[Grant]) -> Vec<GrantDocument> {
    let one = |g: &Grant| GrantDocument {
        group: g.place.as_str().to_owned(),
        role: g.role,
        rights: g.rights.clone(),
    };
    grants.iter().map(one).collect()
}

impl GrantDocument {
    fn parse_grant(self) -> Result<Grant, Problem> {
        let place = match self.group.as_str() {
            "*" => Where::Everywhere,
            code => Where::Group(group_code(code)?),
        };
        Ok(Grant { place, role: self.role, rights: self.rights })
    }
}

fn group_code(code: &str) -> Result<GroupCode, Problem> {
    GroupCode::parse(code).map_err(|e| Problem::refused(e.to_string()))
}

/// Codes of groups that were sent.
pub(super) fn group_codes(codes: &[String]) -> Result<BTreeSet<GroupCode>, Problem> {
    codes.iter().map(|code| group_code(code)).collect()
}

/// A user.
#[derive(Debug, Serialize, JsonSchema)]
struct UserDocument {
    /// The name to log in with.
    name: String,
    /// The name for people.
    display_name: String,
    /// Whether the user may log in.
    is_active: bool,
    /// What the user may do, as far as the reader administers it.
    grants: Vec<GrantDocument>,
    /// What only who administers all groups sees.
    account: Option<Account>,
}

/// What only who administers all groups sees of a user.
#[derive(Debug, Serialize, JsonSchema)]
struct Account {
    /// Key.
    user_id: i64,
    /// en or zh; none is the browser's.
    lang: Option<String>,
    /// Whether the user has a password here.
    has_password: bool,
    /// Whether it must be changed at the next login.
    must_change_password: bool,
    /// Until when it works then, RFC 3339.
    password_until: Option<String>,
    /// Why the directory does not let the user in any more; null: nothing is known against it.
    directory_closed: Option<String>,
    /// At which other provider the user logs in; `ldap` is the directory.
    oidc_issuer: Option<String>,
    /// When the user logged in last.
    last_login: Option<String>,
    /// Since when there is this user.
    create_time: String,
}

fn document(ask: &ApiRequest, user: User, grants: &[Grant]) -> Result<UserDocument, Problem> {
    let own = &ask.caller()?.grants;
    let is_whole = own.allow_everywhere(Permission::Admin);
    let seen = |g: &&Grant| match &g.place {
        Where::Everywhere => is_whole,
        Where::Group(code) => own.allow(Permission::Admin, code),
    };
    let grants: Vec<Grant> = grants.iter().filter(seen).cloned().collect();
    let account = is_whole.then(|| Account {
        user_id: user.id.0,
        lang: user.lang.map(|lang| lang.as_str().to_owned()),
        has_password: user.password.is_some(),
        must_change_password: user.must_change,
        password_until: user.password_until.map(|at| at.to_string()),
        directory_closed: user.directory_closed,
        oidc_issuer: user.oidc.map(|(issuer, _)| issuer),
        last_login: user.last_login.map(|at| at.to_string()),
        create_time: user.create_time.to_string(),
    });
    Ok(UserDocument {
        name: user.name.to_string(),
        display_name: user.display_name,
        is_active: user.is_active,
        grants: documents(&grants),
        account,
    })
}

async fn list_users(
    ask: ApiRequest,
    _: Nothing,
    which: PageQuery,
) -> Result<Page<UserDocument>, Problem> {
    let limit = page::limit(which.limit)?;
    let after: Option<String> = page::read_cursor(which.cursor.as_deref())?;
    let more = u32::try_from(limit).unwrap_or(500).saturating_add(1);
    let users = ask.house.porter.users(&after.unwrap_or_default(), more).await?;
    let all = users.into_iter().map(|(user, grants)| document(&ask, user, &grants));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_items(all, limit, |user| user.name.clone()))
}

/// A name that cannot be one names nobody.
fn named(who: &NamePath) -> Result<UserName, Problem> {
    UserName::parse(&who.name).map_err(|_| Problem::not_found("such user"))
}

async fn shown(ask: &ApiRequest, name: &UserName) -> Result<UserDocument, Problem> {
    let (user, grants) = ask.house.porter.get_user(name).await?;
    document(ask, user, &grants)
}

async fn get_user(ask: ApiRequest, who: NamePath, _: Nothing) -> Result<UserDocument, Problem> {
    shown(&ask, &named(&who)?).await
}

/// A user to be.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// The name to log in with.
    name: String,
    /// The name for people.
    display_name: Option<String>,
    /// en or zh; the browser's when it is left out.
    lang: Option<String>,
    /// What the user may do.
    #[serde(default)]
    grants: Vec<GrantDocument>,
    /// A first password; one is made when it is left out. It must be changed at the first login, within
    /// 72 hours.
    #[schemars(with = "Option<String>")]
    password: Option<SecretString>,
    /// Whether the user has no password and logs in at the other provider.
    #[serde(default)]
    without_password: bool,
}

/// A user that was added.
#[derive(Serialize, JsonSchema)]
struct Added {
    /// The user.
    user: UserDocument,
    /// The password that was made, shown here and never again.
    one_time_password: Option<String>,
    /// What the right `script` that was granted is where scripts are not kept from the service; null: nothing to know.
    warning: Option<String>,
}

/// A user that was changed.
#[derive(Serialize, JsonSchema)]
struct ChangedUser {
    /// The user.
    #[serde(flatten)]
    user: UserDocument,
    /// What the right `script` that was granted is where scripts are not kept from the service; null: nothing to know.
    warning: Option<String>,
}

/// What who grants these should know of the right `script`.
async fn warning_of(ask: &ApiRequest, grants: &[Grant]) -> Result<Option<String>, Problem> {
    let found = ask.house.app.warn_of_script_right(grants).await?;
    Ok(found.map(|warning| warning.describe(ask.lang)))
}

/// The language of a word; none is the browser's.
fn language(word: &str) -> Result<Option<Lang>, Problem> {
    match (word, Lang::from_code(word)) {
        ("", _) => Ok(None),
        (_, Some(lang)) => Ok(Some(lang)),
        (_, None) => Err(Problem::refused("lang: the languages are en and zh")),
    }
}

fn parse_grants(grants: Vec<GrantDocument>) -> Result<Vec<Grant>, Problem> {
    grants.into_iter().map(GrantDocument::parse_grant).collect()
}

async fn add_user(
    ask: ApiRequest,
    _: Nothing,
    sent: Add,
) -> Result<AnswerWithCookies<Added>, Problem> {
    let name = UserName::parse(&sent.name).map_err(anyhow::Error::from)?;
    let initial = match (sent.password, sent.without_password) {
        (None, true) => Initial::Elsewhere,
        (None, false) => Initial::OneTime,
        (Some(password), false) => Initial::Password(password),
        (Some(_), true) => {
            return Err(Problem::refused("say password or without_password, not both"));
        }
    };
    let wanted = NewAccount {
        display_name: display_name(sent.display_name, &name)?,
        lang: language(sent.lang.as_deref().unwrap_or_default())?,
        grants: parse_grants(sent.grants)?,
        initial,
        name: name.clone(),
    };
    let granted = wanted.grants.clone();
    let made = ask.house.porter.add_user(&ask.authority()?, wanted).await?;
    let one_time_password = made.map(|made| made.expose_secret().to_owned());
    let warning = warning_of(&ask, &granted).await?;
    Ok(Added { user: shown(&ask, &name).await?, one_time_password, warning }.into())
}

/// What is to change; what is left out stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// The name for people.
    display_name: Option<String>,
    /// en or zh; empty is the browser's.
    lang: Option<String>,
    /// Whether the user may log in.
    is_active: Option<bool>,
    /// All grants that the user is to have where the caller administers.
    grants: Option<Vec<GrantDocument>>,
}

async fn change(
    ask: ApiRequest,
    who: NamePath,
    sent: Edit,
) -> Result<AnswerWithCookies<ChangedUser>, Problem> {
    let name = named(&who)?;
    let touches = sent.display_name.is_some() || sent.lang.is_some() || sent.is_active.is_some();
    if touches && !ask.caller()?.grants.allow_everywhere(Permission::Admin) {
        return Err(Problem::forbidden(Permission::Admin, PermissionScope::AllGroups));
    }
    let change = UserChange {
        display_name: sent.display_name.map(|d| display_name(Some(d), &name)).transpose()?,
        lang: sent.lang.as_deref().map(language).transpose()?,
        is_active: sent.is_active,
        grants: sent.grants.map(parse_grants).transpose()?,
    };
    let granted = change.grants.clone().unwrap_or_default();
    ask.house.porter.change_user(&ask.authority()?, &name, change).await?;
    let warning = warning_of(&ask, &granted).await?;
    Ok(ChangedUser { user: shown(&ask, &name).await?, warning }.into())
}

async fn remove(
    ask: ApiRequest,
    who: NamePath,
    _: Nothing,
) -> Result<AnswerWithCookies<Done>, Problem> {
    ask.house.porter.remove_user(&ask.authority()?, &named(&who)?).await?;
    Ok(Done { done: true }.into())
}

/// A password that was made.
#[derive(Serialize, JsonSchema)]
struct OneTimePassword {
    /// It is shown here and never again; it must be changed at the next login, within 72 hours.
    one_time_password: String,
}

async fn reset(
    ask: ApiRequest,
    who: NamePath,
    _: Nothing,
) -> Result<AnswerWithCookies<OneTimePassword>, Problem> {
    let made = ask.house.porter.reset_password(&ask.authority()?, &named(&who)?, None).await?;
    Ok(OneTimePassword { one_time_password: made.expose_secret().to_owned() }.into())
}

async fn sessions(ask: ApiRequest, who: NamePath, _: Nothing) -> Result<SessionList, Problem> {
    let (user, _) = ask.house.porter.get_user(&named(&who)?).await?;
    sessions_of(&ask, user.id).await
}

/// How many sessions ended.
#[derive(Debug, Serialize, JsonSchema)]
struct EndedSessions {
    /// How many.
    ended: u64,
}

async fn end_sessions(
    ask: ApiRequest,
    who: NamePath,
    _: Nothing,
) -> Result<AnswerWithCookies<EndedSessions>, Problem> {
    let ended = ask.house.porter.end_sessions(&ask.authority()?, &named(&who)?, None).await?;
    Ok(EndedSessions { ended }.into())
}

async fn tokens_of(ask: ApiRequest, who: NamePath, _: Nothing) -> Result<TokenList, Problem> {
    let all = ask.house.porter.tokens_of(&named(&who)?).await?;
    Ok(tokens(&ask, all))
}
