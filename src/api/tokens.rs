//! API tokens.

use crate::api::caller::{ApiRequest, CallerNeeds, CallerProof};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::secret_route::AnswerWithCookies;
use crate::api::session::Confirmation;
use crate::api::users::group_codes;
use crate::app::access::{PresentedCredential, TokenWish};
use crate::domain::access::Permission;
use crate::store::api_token::ApiToken;
use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub(super) fn routes() -> Noun {
    Noun::new("tokens")
        .get(
            "listOwnTokens",
            "/session/tokens",
            CallerNeeds::Login,
            "List one's API tokens",
            list_tokens,
        )
        .secret(
            "addToken",
            Method::POST,
            "/session/tokens",
            CallerNeeds::Login,
            "Create an API token; it is shown in this answer only",
            add_token,
        )
        .secret(
            "revokeOwnToken",
            Method::DELETE,
            "/session/tokens/{token_id}",
            CallerNeeds::Login,
            "Revoke one of one's API tokens",
            remove_own,
        )
        .secret(
            "revokeToken",
            Method::DELETE,
            "/tokens/{token_id}",
            CallerNeeds::Login,
            "Revoke an API token: one's own, or anyone's as an administrator of all groups",
            remove,
        )
}

/// A token without its secret.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TokenSummary {
    /// The key of the token.
    token_id: i64,
    /// Its purpose.
    name: String,
    /// Its permissions, as far as its owner has them.
    permissions: BTreeSet<Permission>,
    /// In these groups; null means wherever its owner has them.
    groups: Option<Vec<String>>,
    /// When it was created, RFC 3339.
    create_time: String,
    /// When it expires.
    end_time: String,
    /// Whether it has expired.
    is_expired: bool,
    /// When it was last used, to the minute.
    used_time: Option<String>,
}

/// A list of tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TokenList {
    /// Latest first.
    items: Vec<TokenSummary>,
}

fn brief(ask: &ApiRequest, token: ApiToken) -> TokenSummary {
    let groups = token.confines.groups;
    TokenSummary {
        token_id: token.id,
        name: token.name,
        permissions: token.confines.permissions,
        groups: groups.map(|all| all.iter().map(ToString::to_string).collect()),
        create_time: token.create_time.to_string(),
        end_time: token.end_time.to_string(),
        is_expired: ask.house.porter.now() >= token.end_time,
        used_time: token.used_time.map(|at| at.to_string()),
    }
}

/// Tokens as listed.
pub(super) fn tokens(ask: &ApiRequest, all: Vec<ApiToken>) -> TokenList {
    TokenList { items: all.into_iter().map(|token| brief(ask, token)).collect() }
}

async fn list_tokens(ask: ApiRequest, _: Nothing, _: Nothing) -> Result<TokenList, Problem> {
    let all = ask.house.porter.tokens(ask.caller()?.known.user.id).await?;
    Ok(tokens(&ask, all))
}

/// A new token.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewTokenRequest {
    /// Its purpose.
    name: String,
    /// Its permissions.
    permissions: BTreeSet<Permission>,
    /// In these groups; default wherever its owner has them.
    groups: Option<Vec<String>>,
    /// Lifetime in days, 1 to 366.
    days: u32,
}

/// A new token, shown once.
#[derive(Serialize, JsonSchema)]
struct CreatedToken {
    /// The token itself: `Authorization: Bearer …`. It is shown only here.
    token: String,
    /// The token without its secret.
    #[serde(flatten)]
    brief: TokenSummary,
}

async fn add_token(
    ask: ApiRequest,
    _: Nothing,
    wish: NewTokenRequest,
) -> Result<AnswerWithCookies<CreatedToken>, Problem> {
    let caller = ask.caller()?;
    if caller.must_change() {
        return Err(Problem::must_change());
    }
    if caller.known.must_enrol {
        return Err(Problem::must_enrol());
    }
    let until = match &caller.known.by {
        PresentedCredential::Session(_) | PresentedCredential::Approval => None,
        PresentedCredential::Token(token) => Some(token.end_time),
    };
    let wish = TokenWish {
        name: wish.name,
        permissions: wish.permissions,
        groups: wish.groups.as_deref().map(group_codes).transpose()?,
        days: wish.days,
    };
    let porter = &ask.house.porter;
    let (token, made) =
        porter.add_token(&ask.authority()?, caller.user_name(), wish, until).await?;
    Ok(CreatedToken { token: made.expose_secret().to_owned(), brief: brief(&ask, token) }.into())
}

/// A token.
#[derive(Debug, Deserialize, JsonSchema)]
struct TokenPath {
    /// The key of the token.
    token_id: i64,
}

/// Checks that the caller may remove other tokens and sessions of its user than its own: a token
/// that is stolen, or given to a program, must not end the others.
pub(super) fn may_end_others(ask: &ApiRequest) -> Result<(), Problem> {
    let caller = ask.caller()?;
    let is_token = matches!(caller.proof, CallerProof::Token(_));
    match is_token && !caller.grants.allow_everywhere(Permission::Admin) {
        false => Ok(()),
        true => {
            let detail = "a token ends itself alone; log in to take away your other tokens and sessions, or \
                          ask an administrator of all groups";
            Err(Problem::new(StatusCode::FORBIDDEN, "not-with-a-token", detail))
        }
    }
}

async fn remove(
    ask: ApiRequest,
    which: TokenPath,
    _: Nothing,
) -> Result<AnswerWithCookies<Confirmation>, Problem> {
    if ask.caller()?.proof != CallerProof::Token(which.token_id) {
        let own = ask.house.porter.tokens(ask.caller()?.known.user.id).await?;
        if own.iter().any(|token| token.id == which.token_id) {
            may_end_others(&ask)?;
        }
    }
    match ask.house.porter.remove_token(&ask.authority()?, which.token_id).await? {
        true => Ok(Confirmation { done: true }.into()),
        false => Err(Problem::not_found(format!("token {}", which.token_id))),
    }
}

async fn remove_own(
    ask: ApiRequest,
    which: TokenPath,
    _: Nothing,
) -> Result<AnswerWithCookies<Confirmation>, Problem> {
    let own = ask.house.porter.tokens(ask.caller()?.known.user.id).await?;
    match own.iter().any(|token| token.id == which.token_id) {
        true => remove(ask, which, Nothing {}).await,
        false => Err(Problem::not_found(format!("token {} of yours", which.token_id))),
    }
}
