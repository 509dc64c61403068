//! Login at another provider: the redirect there, and the return.

use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::client_address::CookieNames;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::app::access::{NotProved, Returning};
use crate::config::Oidc;
use axum::body::Body;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    Noun::new("session")
        .media(
            "startOidcLogin",
            "/oidc/start",
            "text/plain",
            CallerNeeds::Nothing,
            "Start a login at the identity provider (302)",
            start,
        )
        .media(
            "finishOidcLogin",
            "/oidc/callback",
            "text/plain",
            CallerNeeds::Nothing,
            "Finish a login that comes back from the identity provider (302 to the console)",
            finish_login,
        )
}

/// What the browser keeps until it comes back. Lax, because it comes from another site then.
const COOKIES: CookieNames =
    CookieNames { tls: "__Host-procession-oidc", clear: "procession-oidc" };
/// Seconds it keeps it.
const KEPT: u32 = 600;

/// The other provider, and our return URL.
fn provider(ask: &ApiRequest) -> Result<(&Oidc, String), Problem> {
    let oidc = ask.house.oidc_provider().ok_or_else(|| Problem::not_found("other provider"))?;
    let origin = ask.way.origin().ok_or_else(|| Problem::unreadable("send the header Host"))?;
    Ok((oidc, format!("{origin}/api/v1/oidc/callback")))
}

fn redirect(to: &str, cookies: &[String]) -> Result<Response, Problem> {
    let mut response = (StatusCode::FOUND, Body::empty()).into_response();
    let value = |text: &str| HeaderValue::from_str(text).map_err(anyhow::Error::from);
    response.headers_mut().insert(LOCATION, value(to)?);
    for cookie in cookies {
        response.headers_mut().append(SET_COOKIE, value(cookie)?);
    }
    Ok(response)
}

async fn start(ask: ApiRequest, _: Nothing, _: Nothing) -> Result<Response, Problem> {
    let (oidc, back) = provider(&ask)?;
    match ask.house.porter.oidc_leave(oidc, &back).await {
        Ok(leaving) => {
            let kept = Some(leaving.secret.expose_secret());
            redirect(&leaving.to, &[ask.way.set_cookie(COOKIES, kept, "Lax", Some(KEPT))])
        }
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "the other provider cannot be reached");
            redirect("/#/login?oidc=unreachable", &[])
        }
    }
}

/// The parameters that the provider returns; others are ignored.
#[derive(Deserialize, JsonSchema)]
struct ProviderAnswer {
    /// The authorization code.
    code: Option<String>,
    /// The state that was sent.
    state: Option<String>,
    /// The issuer.
    iss: Option<String>,
    /// The error.
    error: Option<String>,
}

async fn finish_login(
    ask: ApiRequest,
    _: Nothing,
    answer: ProviderAnswer,
) -> Result<Response, Problem> {
    let (oidc, back) = provider(&ask)?;
    let returning = Returning {
        secret: ask.way.cookie(&ask.headers, COOKIES).map(SecretString::from),
        state: answer.state,
        code: answer.code.map(SecretString::from),
        issuer: answer.iss,
        error: answer.error,
    };
    let from = ask.way.stranger(&ask.headers);
    let used = ask.way.set_cookie(COOKIES, None, "Lax", None);
    match ask.house.porter.oidc_return(oidc, &back, returning, &from).await {
        Ok(entered) => {
            let session = ask.way.set_session(Some(entered.secret.expose_secret()));
            redirect("/", &[session, used])
        }
        Err(error) if error.is::<NotProved>() => redirect("/#/login?oidc=refused", &[used]),
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "a login at the other provider failed");
            redirect("/#/login?oidc=unreachable", &[used])
        }
    }
}
