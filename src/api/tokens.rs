//! Tokens of programs.

use crate::api::caller::{ApiRequest, CallerNeeds, CallerProof};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::secret_route::AnswerWithCookies;
use crate::api::session::Done;
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
        .get("/session/tokens", CallerNeeds::Login, "One's tokens", list_tokens)
        .secret(
            Method::POST,
            "/session/tokens",
            CallerNeeds::Login,
            "Make a token; it is shown in this answer and never again",
            add_token,
        )
        .secret(
            Method::DELETE,
            "/session/tokens/{token_id}",
            CallerNeeds::Login,
            "Take one of one's tokens away",
            remove_own,
        )
        .secret(
            Method::DELETE,
            "/tokens/{token_id}",
            CallerNeeds::Login,
            "Take a token away: one's own, or anybody's as an administrator of all groups",
            remove,
        )
}

/// A token, without what it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TokenBrief {
    /// Key.
    token_id: i64,
    /// What it is for.
    name: String,
    /// What it may do, as far as its owner may.
    permissions: BTreeSet<Permission>,
    /// In these groups; none is wherever its owner may.
    groups: Option<Vec<String>>,
    /// Since when, RFC 3339.
    create_time: String,
    /// Until when.
    end_time: String,
    /// Whether that is past.
    is_expired: bool,
    /// When it was used last, to the minute.
    used_time: Option<String>,
}

/// Tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TokenList {
    /// The latest first.
    items: Vec<TokenBrief>,
}

fn brief(ask: &ApiRequest, token: ApiToken) -> TokenBrief {
    let groups = token.confines.groups;
    TokenBrief {
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

/// Tokens as they are listed.
pub(super) fn tokens(ask: &ApiRequest, all: Vec<ApiToken>) -> TokenList {
    TokenList { items: all.into_iter().map(|token| brief(ask, token)).collect() }
}

async fn list_tokens(ask: ApiRequest, _: Nothing, _: Nothing) -> Result<TokenList, Problem> {
    let all = ask.house.porter.tokens(ask.caller()?.known.user.id).await?;
    Ok(tokens(&ask, all))
}

/// A token that is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewTokenRequest {
    /// What it is for.
    name: String,
    /// What it may do.
    permissions: BTreeSet<Permission>,
    /// In these groups; wherever its owner may when it is left out.
    groups: Option<Vec<String>>,
    /// How long it lives, 1 to 366.
    days: u32,
}

/// A token, shown once.
#[derive(Serialize, JsonSchema)]
struct CreatedToken {
    /// The token itself: `Authorization: Bearer …`. It is shown here and never again.
    token: String,
    /// All the rest.
    #[serde(flatten)]
    brief: TokenBrief,
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
    /// Its key.
    token_id: i64,
}

/// Passes when the caller may take away other tokens and sessions of its user than its own: a token that is
/// stolen, or given to a program, must not end the others.
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
) -> Result<AnswerWithCookies<Done>, Problem> {
    if ask.caller()?.proof != CallerProof::Token(which.token_id) {
        let own = ask.house.porter.tokens(ask.caller()?.known.user.id).await?;
        if own.iter().any(|token| token.id == which.token_id) {
            may_end_others(&ask)?;
        }
    }
    match ask.house.porter.remove_token(&ask.authority()?, which.token_id).await? {
        true => Ok(Done { done: true }.into()),
        false => Err(Problem::not_found(format!("token {}", which.token_id))),
    }
}

async fn remove_own(
    ask: ApiRequest,
    which: TokenPath,
    _: Nothing,
) -> Result<AnswerWithCookies<Done>, Problem> {
    let own = ask.house.porter.tokens(ask.caller()?.known.user.id).await?;
    match own.iter().any(|token| token.id == which.token_id) {
        true => remove(ask, which, Nothing {}).await,
        false => Err(Problem::not_found(format!("token {} of yours", which.token_id))),
    }
}
