//! Requests to the other provider and their answers. Every token is verified: signature by its
//! published keys, issuer, audience, nonce and time.

use crate::app::access::oidc::NotProved;
use crate::app::access::secret::derived;
use crate::config::Oidc;
use crate::domain::time::Millis;
use crate::outbound::{self, TransportProtection, is_here};
use anyhow::{Context as _, Result};
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata,
    CoreResponseType, CoreRevocableToken, CoreRevocationErrorResponse,
    CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, AuthenticationFlow, AuthorizationCode, Client, ClientId, ClientSecret,
    CsrfToken, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest,
    HttpResponse, IdTokenFields, IssuerUrl, Nonce, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, Scope, StandardErrorResponse, StandardTokenResponse, TokenResponse as _,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;
use url::Url;

/// Time limit of an answer of the provider.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of an answer in bytes.
const ANSWER_MAX: usize = 1 << 20;

/// Claims outside of the standard.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct OtherClaims(Map<String, Value>);

impl AdditionalClaims for OtherClaims {}

type FormFields = IdTokenFields<
    OtherClaims,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;

type OidcProvider = Client<
    OtherClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    StandardTokenResponse<FormFields, CoreTokenType>,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Signature algorithms that only the provider can use (asymmetric ones).
const SIGNATURES: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// The state parameter that the provider returns with the browser.
pub(super) fn state(secret: &SecretString) -> String {
    derived(secret, "oidc state")
}

fn nonce(secret: &SecretString) -> Nonce {
    Nonce::new(derived(secret, "oidc nonce"))
}

fn verifier(secret: &SecretString) -> PkceCodeVerifier {
    PkceCodeVerifier::new(derived(secret, "oidc verifier"))
}

/// A request without an answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NoAnswer(String);

/// One request to the provider. Redirects are not followed, TLS is verified, and plain HTTP is
/// allowed only to this machine.
async fn carry(request: HttpRequest) -> Result<HttpResponse, NoAnswer> {
    let lost = |error: reqwest::Error| NoAnswer(error.without_url().to_string());
    let (parts, body) = request.into_parts();
    let url = Url::parse(&parts.uri.to_string()).map_err(|e| NoAnswer(e.to_string()))?;
    if url.scheme() != "https" && !is_here(&url) {
        return Err(NoAnswer("the provider names an address without https".to_owned()));
    }
    let client = outbound::client(TransportProtection::for_url(&url))
        .map_err(NoAnswer)?
        .connect_timeout(PATIENCE);
    // One request per login: a pooled connection may be found dead.
    let client = outbound::built(client.pool_max_idle_per_host(0)).map_err(NoAnswer)?;
    let asked = client.request(parts.method, url).headers(parts.headers).body(body);
    let mut answer = asked.timeout(PATIENCE).send().await.map_err(lost)?;
    let mut response = HttpResponse::new(Vec::new());
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    while let Some(chunk) = answer.chunk().await.map_err(lost)? {
        response.body_mut().extend_from_slice(&chunk);
        if response.body().len() > ANSWER_MAX {
            return Err(NoAnswer("the provider's answer is too long".to_owned()));
        }
    }
    Ok(response)
}

async fn provider(oidc: &Oidc, back: &str) -> Result<OidcProvider> {
    let issuer = IssuerUrl::new(oidc.issuer.clone())?;
    let found = CoreProviderMetadata::discover_async(issuer, &carry).await;
    let found = found.context("ask http.oidc.issuer how it is spoken to")?;
    let secret = client_secret(oidc)?.map(|s| ClientSecret::new(s.expose_secret().to_owned()));
    let client = ClientId::new(oidc.client_id.clone());
    let back = RedirectUrl::new(back.to_owned())?;
    Ok(Client::from_provider_metadata(found, client, secret).set_redirect_uri(back))
}

fn client_secret(oidc: &Oidc) -> Result<Option<SecretString>> {
    if let Some(shared) = oidc.client_secret_name.require("http.oidc.client_secret_name")? {
        return Ok(Some(shared.get()));
    }
    if !oidc.client_secret_env.is_empty() {
        let name = &oidc.client_secret_env;
        let context =
            || format!("read the environment variable {name} (http.oidc.client_secret_env)");
        return Ok(Some(std::env::var(name).with_context(context)?.into()));
    }
    if oidc.client_secret_file.as_os_str().is_empty() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&oidc.client_secret_file);
    let text = text.map(SecretString::from).context("read http.oidc.client_secret_file")?;
    Ok(Some(text.expose_secret().lines().next().unwrap_or_default().into()))
}

/// The authorization URL.
pub(super) async fn leave(oidc: &Oidc, back: &str, secret: &SecretString) -> Result<String> {
    let provider = provider(oidc, back).await?;
    let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier(secret));
    let (state, nonce) = (state(secret), nonce(secret));
    let scopes = oidc.scopes.iter().filter(|s| *s != "openid");
    let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
    let (to, _, _) = provider
        .authorize_url(flow, move || CsrfToken::new(state), move || nonce)
        .add_scopes(scopes.map(|scope| Scope::new(scope.clone())))
        .set_pkce_challenge(challenge)
        .url();
    Ok(to.to_string())
}

/// All claims of the provider about the user with this code.
pub(super) async fn claims(
    oidc: &Oidc,
    back: &str,
    secret: &SecretString,
    code: SecretString,
    now: Millis,
) -> Result<Map<String, Value>> {
    let no = |what: &str, error: &dyn std::fmt::Display| NotProved(format!("{what}: {error}"));
    let provider = provider(oidc, back).await?;
    let code = AuthorizationCode::new(code.expose_secret().to_owned());
    let asked = provider.exchange_code(code)?.set_pkce_verifier(verifier(secret));
    let answer = asked.request_async(&carry).await;
    let answer = answer.map_err(|error| no("the code is not taken", &error))?;
    let token = answer.id_token().ok_or_else(|| NotProved("there is no ID token".to_owned()))?;
    let algorithms = provider.id_token_verifier();
    let verifier = algorithms.set_allowed_algs(SIGNATURES).set_time_fn(move || now.to_utc());
    let claims = token.claims(&verifier, &nonce(secret));
    let claims = claims.map_err(|error| no("the ID token does not hold", &error))?;
    match serde_json::to_value(claims).context("read the claims")? {
        Value::Object(all) => Ok(all),
        _ => Err(NotProved("the claims are no object".to_owned()).into()),
    }
}
