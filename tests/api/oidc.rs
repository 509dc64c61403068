//! Logging in at another provider, which is written here: it says what a test tells it to say.

use crate::api::server::{Answer, Server};
use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use procession::domain::access::Role;
use procession::domain::access::user::UserName;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use url::Url;

/// What the provider does when it is asked for a token.
#[derive(Clone, Default)]
struct Says {
    /// Claims beside, or instead of, the usual ones; null takes one away.
    claims: HashMap<&'static str, Value>,
    /// Whether a key signs that is not published.
    is_forged: bool,
    /// The algorithm of the header.
    algorithm: Option<&'static str>,
    /// Issuer that the metadata names instead.
    issuer: Option<&'static str>,
}

struct Provider {
    issuer: String,
    key: EcdsaKeyPair,
    other: EcdsaKeyPair,
    says: Mutex<Says>,
    /// Nonce and PKCE challenge by code.
    codes: Mutex<HashMap<String, (String, String)>>,
}

fn key() -> EcdsaKeyPair {
    let chance = SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &chance);
    let made = made.expect("a key");
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &chance)
        .expect("a key")
}

impl Provider {
    async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let issuer = format!("http://{}", listener.local_addr().expect("an address"));
        let says = Mutex::default();
        let provider =
            Arc::new(Self { issuer, key: key(), other: key(), says, codes: Mutex::default() });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/jwks", get(keys))
            .route("/token", post(token))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        provider
    }

    /// What somebody who is sent here and logs in comes back with.
    fn consent(&self, to: &str) -> HashMap<String, String> {
        let url = Url::parse(to).expect("a URL");
        let asked: HashMap<String, String> = url.query_pairs().into_owned().collect();
        assert!(to.starts_with(&format!("{}/authorize?", self.issuer)), "{to}");
        for (name, value) in [
            ("response_type", "code"),
            ("client_id", "procession"),
            ("code_challenge_method", "S256"),
            ("redirect_uri", "http://p.example/api/v1/oidc/callback"),
        ] {
            assert_eq!(asked[name], value, "{to}");
        }
        assert!(asked["scope"].split(' ').any(|s| s == "openid"), "{to}");
        let mut codes = self.codes.lock().expect("codes");
        let code = format!("code{}", codes.len());
        codes.insert(code.clone(), (asked["nonce"].clone(), asked["code_challenge"].clone()));
        HashMap::from([("code".to_owned(), code), ("state".to_owned(), asked["state"].clone())])
    }
}

async fn metadata(State(provider): State<Arc<Provider>>) -> impl IntoResponse {
    let issuer = &provider.issuer;
    let named = provider.says.lock().expect("says").issuer.unwrap_or(issuer.as_str()).to_owned();
    said(&json!({
        "issuer": named,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/jwks"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }))
}

async fn keys(State(provider): State<Arc<Provider>>) -> impl IntoResponse {
    let point = provider.key.public_key().as_ref();
    let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
    said(&json!({ "keys": [{
        "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "k", "x": x, "y": y,
    }] }))
}

fn said(document: &Value) -> impl IntoResponse + use<> {
    ([("content-type", "application/json")], document.to_string())
}

async fn token(
    State(provider): State<Arc<Provider>>,
    sent: String,
) -> Result<impl IntoResponse, StatusCode> {
    let sent: HashMap<String, String> =
        url::form_urlencoded::parse(sent.as_bytes()).into_owned().collect();
    let taken = provider.codes.lock().expect("codes").remove(&sent["code"]);
    let (nonce, challenge) = taken.ok_or(StatusCode::BAD_REQUEST)?;
    let verified = BASE64.encode(digest(&SHA256, sent["code_verifier"].as_bytes()));
    assert_eq!(verified, challenge, "PKCE");
    let says = provider.says.lock().expect("says").clone();
    let now = crate::api::server::START.0 / 1_000;
    let mut claims = json!({
        "iss": provider.issuer, "aud": "procession", "sub": "4711", "nonce": nonce,
        "iat": now, "exp": now + 300, "preferred_username": "Grace", "name": "Grace H.",
        "groups": ["finance-operators", "everybody"],
    });
    for (name, value) in says.claims {
        claims[name] = value;
    }
    claims.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    let header = json!({ "alg": says.algorithm.unwrap_or("ES256"), "kid": "k" });
    let part = |value: &Value| BASE64.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let key = if says.is_forged { &provider.other } else { &provider.key };
    let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
    let signature = match says.algorithm {
        Some("none") => String::new(),
        _ => BASE64.encode(signature.as_ref()),
    };
    Ok(said(&json!({
        "access_token": "canary-access-token", "token_type": "bearer",
        "id_token": format!("{signed}.{signature}"),
    })))
}

async fn server(provider: &Provider, more: &str) -> Server {
    Server::with(&format!(
        "[http]\npublic_url = 'http://p.example'\n[http.oidc]\nissuer = '{}'\nclient_id = 'procession'\n\
         {more}\n[[http.oidc.grants]]\nclaim = 'finance-operators'\ngroup = 'gl'\nrole = 'operator'\n\
         rights = ['force']\n[[http.oidc.grants]]\nclaim = 'chiefs'\ngroup = '*'\nrole = 'admin'\n",
        provider.issuer
    ))
    .await
}

/// Somebody on the way: where the browser is sent, and the cookie it keeps.
async fn leave(server: &Server) -> (String, String) {
    let answer = server.get("/oidc/start", "").await;
    assert_eq!(answer.status, StatusCode::FOUND, "{}", answer.text);
    let set = answer.headers["set-cookie"].to_str().expect("text");
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax"), "{set}");
    let cookie = set.split(';').next().expect("a value").to_owned();
    (answer.headers["location"].to_str().expect("text").to_owned(), cookie)
}

async fn come_back(server: &Server, cookie: &str, said: &HashMap<String, String>) -> Answer {
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(said).finish();
    let path = format!("/oidc/callback?{query}");
    server.sent(Method::GET, &path, &[("cookie", cookie)], &Value::Null).await
}

/// There and back.
async fn go(server: &Server, provider: &Provider) -> Answer {
    let (to, cookie) = leave(server).await;
    come_back(server, &cookie, &provider.consent(&to)).await
}

/// The session's cookie of somebody who is let in.
fn is_in(answer: &Answer) -> String {
    assert_eq!(answer.headers["location"], "/", "{answer:?}");
    let set = answer.headers.get_all("set-cookie").iter().filter_map(|v| v.to_str().ok());
    let mut set = set.filter(|set| set.starts_with("procession="));
    set.next().and_then(|set| set.split(';').next()).expect("a session").to_owned()
}

/// Nobody is let in, and why is on record.
async fn is_refused(server: &Server, answer: &Answer, why: &str) {
    assert_eq!(answer.status, StatusCode::FOUND);
    assert_eq!(answer.headers["location"], "/#/login?oidc=refused");
    let set = answer.headers.get_all("set-cookie").iter().filter_map(|v| v.to_str().ok());
    assert!(!set.into_iter().any(|set| set.starts_with("procession=")), "{answer:?}");
    let (action, _, detail) = server.audit().await.pop().expect("on record");
    assert_eq!(action, "login refused");
    assert!(detail.contains(why), "{detail} does not say {why}");
}

#[tokio::test]
async fn who_is_known_there_is_let_in_with_what_claims_give() {
    let provider = Provider::start().await;
    let server = server(&provider, "name = 'Corporate'\nauto_create = true").await;
    let options = server.get("/session/options", "").await.is(200);
    assert_eq!(options["oidc"]["name"], "Corporate");
    let cookie = is_in(&go(&server, &provider).await);
    let session = async |cookie: &str| {
        server.sent(Method::GET, "/session", &[("cookie", cookie)], &Value::Null).await.is(200)
    };
    let seen = session(&cookie).await;
    assert_eq!(
        (&seen["user"]["name"], &seen["user"]["display_name"]),
        (&json!("grace"), &json!("Grace H."))
    );
    assert_eq!(seen["user"]["has_password"], false);
    assert_eq!(seen["grants"], json!([{ "group": "gl", "role": "operator", "rights": ["force"] }]));
    // What the provider says anew counts anew; the name there may change, the subject does not.
    provider.says.lock().expect("says").claims =
        HashMap::from([("groups", json!("chiefs")), ("preferred_username", json!("hopper"))]);
    let seen = session(&is_in(&go(&server, &provider).await)).await;
    assert_eq!(seen["user"]["name"], "grace");
    assert_eq!(seen["grants"], json!([{ "group": "*", "role": "admin", "rights": [] }]));
    // A password here would be a way in that the provider knows nothing of.
    let root = server.admin().await;
    let reset = server.send(Method::POST, "/users/grace/password-reset", &root, &json!({})).await;
    assert!(
        reset.is(422)["detail"].to_string().contains("by the provider of http.oidc"),
        "{reset:?}"
    );
    let text = format!("{:?}{}", server.audit().await, String::from_utf8_lossy(&server.dump()));
    assert!(!text.contains("canary-access-token"));
}

#[tokio::test]
async fn nobody_is_let_in_with_a_token_that_does_not_hold() {
    let provider = Provider::start().await;
    let server = server(&provider, "auto_create = true").await;
    let now = crate::api::server::START.0 / 1_000;
    let with = |name: &'static str, value: Value| Says {
        claims: HashMap::from([(name, value)]),
        ..Says::default()
    };
    for (says, why) in [
        (with("nonce", json!("another")), "nonce"),
        (with("nonce", Value::Null), "nonce"),
        (with("aud", json!("another")), "audience"),
        (with("aud", json!(["procession", "another"])), "audience"),
        (with("iss", json!("https://evil.example")), "issuer"),
        (with("exp", json!(now - 1)), "expired"),
        (with("preferred_username", Value::Null), "preferred_username"),
        (with("preferred_username", json!("a b")), "user name"),
        (Says { is_forged: true, ..Says::default() }, "Signature"),
        (Says { algorithm: Some("none"), ..Says::default() }, "ID token"),
        (Says { algorithm: Some("HS256"), ..Says::default() }, "ID token"),
    ] {
        *provider.says.lock().expect("says") = says;
        let answer = go(&server, &provider).await;
        is_refused(&server, &answer, why).await;
    }
}

#[tokio::test]
async fn nobody_comes_back_who_did_not_leave() {
    let provider = Provider::start().await;
    let server = server(&provider, "auto_create = true").await;
    // Another's state, none, and no cookie: somebody else's login is put under a victim.
    let (to, cookie) = leave(&server).await;
    let mut said = provider.consent(&to);
    said.insert("state".to_owned(), "another".to_owned());
    is_refused(&server, &come_back(&server, &cookie, &said).await, "state").await;
    let (to, cookie) = leave(&server).await;
    let mut said = provider.consent(&to);
    said.remove("state");
    is_refused(&server, &come_back(&server, &cookie, &said).await, "state").await;
    let (to, _) = leave(&server).await;
    is_refused(&server, &come_back(&server, "", &provider.consent(&to)).await, "kept nothing")
        .await;
    // Twice.
    let (to, cookie) = leave(&server).await;
    let said = provider.consent(&to);
    is_in(&come_back(&server, &cookie, &said).await);
    is_refused(&server, &come_back(&server, &cookie, &said).await, "nobody left").await;
    // Too late.
    let (to, cookie) = leave(&server).await;
    let said = provider.consent(&to);
    server.later(10 * 60_000 + 1);
    is_refused(&server, &come_back(&server, &cookie, &said).await, "nobody left").await;
    // Another provider's answer, and one that says no.
    let (to, cookie) = leave(&server).await;
    let mut said = provider.consent(&to);
    said.insert("iss".to_owned(), "https://evil.example".to_owned());
    is_refused(&server, &come_back(&server, &cookie, &said).await, "another provider").await;
    let (to, cookie) = leave(&server).await;
    let mut said = provider.consent(&to);
    said.insert("error".to_owned(), "access_denied".to_owned());
    is_refused(&server, &come_back(&server, &cookie, &said).await, "access_denied").await;
}

#[tokio::test]
async fn a_user_with_a_password_is_not_taken_over() {
    let provider = Provider::start().await;
    let server = server(&provider, "").await;
    let answer = go(&server, &provider).await;
    is_refused(&server, &answer, "no such user").await;
    // One that an administrator added for it is.
    let name = server.user("grace", &[("gl", Role::Viewer, &[])]).await;
    is_in(&go(&server, &provider).await);
    // Another subject of that name is somebody else.
    provider.says.lock().expect("says").claims = HashMap::from([("sub", json!("666"))]);
    is_refused(&server, &go(&server, &provider).await, "somebody else").await;
    provider.says.lock().expect("says").claims =
        HashMap::from([("sub", json!("777")), ("preferred_username", json!("ada"))]);
    let ada = UserName::parse("ada").expect("a name");
    let wanted = procession::app::access::NewAccount {
        name: ada,
        display_name: "Ada".to_owned(),
        lang: None,
        grants: Vec::new(),
        initial: procession::app::access::Initial::OneTime,
    };
    server.house.porter.add_user(&server.owner(), wanted).await.expect("ada");
    is_refused(&server, &go(&server, &provider).await, "somebody else").await;
    // Disabled here is out, whatever they say there.
    provider.says.lock().expect("says").claims = HashMap::new();
    let root = server.admin().await;
    let off = json!({ "is_active": false });
    server.send(Method::PATCH, &format!("/users/{name}"), &root, &off).await.is(200);
    is_refused(&server, &go(&server, &provider).await, "disabled").await;
}

#[tokio::test]
async fn a_provider_that_lies_about_itself_is_not_asked() {
    let provider = Provider::start().await;
    let server = server(&provider, "auto_create = true").await;
    provider.says.lock().expect("says").issuer = Some("https://evil.example");
    let answer = server.get("/oidc/start", "").await;
    assert_eq!(answer.headers["location"], "/#/login?oidc=unreachable");
    let without = Server::new().await;
    without.get("/oidc/start", "").await.is(404);
}
