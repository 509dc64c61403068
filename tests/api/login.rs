//! Logging in: the first user, passwords, sessions, cookies, slow-down.

use crate::api::server::{Browser, Server, grants};
use axum::http::Method;
use procession::app::access::{Initial, NewAccount, UserChange};
use procession::domain::access::Role;
use procession::domain::access::user::UserName;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const PASSWORD: &str = "canary-tuN9-glaze-orbit";
const OTHER: &str = "canary-wool-98-harvest-lamp";
/// The tests' requests come through a proxy.
const PROXY: &str = "[http]\ntrusted_proxies = ['127.0.0.1']\n";

/// A server with a first user, `ada`, who is logged in.
async fn with_ada() -> (Server, Browser) {
    let server = Server::with(PROXY).await;
    let secret = server.house.porter.setup_secret().await.expect("make").expect("nobody yet");
    let sent = json!({ "secret": secret.expose_secret(), "name": "Ada", "password": PASSWORD });
    let answer = server.sent(Method::POST, "/setup", &[], &sent).await;
    let browser = Browser::of(&answer);
    (server, browser)
}

#[tokio::test]
async fn the_first_user_is_made_once_with_the_secret() {
    let server = Server::with(PROXY).await;
    assert_eq!(server.get("/session/options", "").await.is(200)["setup_needed"], true);
    let old = server.house.porter.setup_secret().await.expect("make").expect("nobody yet");
    let secret = server.house.porter.setup_secret().await.expect("make").expect("nobody yet");
    let set_up = async |secret: &str, password: &str| {
        let sent = json!({ "secret": secret, "name": "ada", "password": password });
        server.sent(Method::POST, "/setup", &[], &sent).await
    };
    assert_eq!(
        set_up(old.expose_secret(), PASSWORD).await.is(403)["type"],
        "urn:procession:problem:no-setup"
    );
    set_up("guess", PASSWORD).await.is(403);
    set_up(secret.expose_secret(), "short").await.is(422);
    let answer = set_up(secret.expose_secret(), PASSWORD).await;
    let document = answer.is(200);
    assert_eq!(document["user"]["name"], "ada");
    assert_eq!(document["must_change_password"], false);
    assert_eq!(document["permissions"]["everywhere"].as_array().expect("list").len(), 6);
    set_up(secret.expose_secret(), PASSWORD).await.is(403);
    assert!(server.house.porter.setup_secret().await.expect("ask").is_none());
    assert_eq!(server.get("/session/options", "").await.is(200)["setup_needed"], false);
    let acts: Vec<String> = server.audit().await.into_iter().map(|(act, ..)| act).collect();
    assert_eq!(acts, ["login refused", "login refused", "setup", "login", "login refused"]);
}

#[tokio::test]
async fn a_set_up_secret_does_not_live_for_ever() {
    let server = Server::new().await;
    let secret = server.house.porter.setup_secret().await.expect("make").expect("nobody yet");
    server.later(24 * HOUR);
    let sent = json!({ "secret": secret.expose_secret(), "name": "ada", "password": PASSWORD });
    server.sent(Method::POST, "/setup", &[], &sent).await.is(403);
}

#[tokio::test]
async fn a_session_is_new_at_each_login_and_ends() {
    let (server, first) = with_ada().await;
    let session = async |browser: &Browser| {
        server.sent(Method::GET, "/session", &[("cookie", &browser.cookie)], &Value::Null).await
    };
    session(&first).await.is(200);
    let answer = server.log_in("ADA", PASSWORD, "9.9.9.9").await;
    let set = answer.headers["set-cookie"].to_str().expect("text").to_owned();
    assert!(set.starts_with("procession=") && set.contains("HttpOnly"), "{set}");
    assert!(set.contains("SameSite=Strict") && set.contains("Path=/"), "{set}");
    let second = Browser::of(&answer);
    assert_ne!(first.cookie, second.cookie);
    assert!(second.cookie.len() >= 40, "at least 128 bits");
    // Out.
    server.sent(Method::DELETE, "/session", &first.headers(), &Value::Null).await.is(200);
    session(&first).await.is(401);
    session(&second).await.is(200);
    // Idle.
    server.later(29 * MINUTE);
    session(&second).await.is(200);
    server.later(30 * MINUTE);
    session(&second).await.is(401);
    // In any case.
    let third = Browser::of(&server.log_in("ada", PASSWORD, "9.9.9.9").await);
    for _ in 0..35 {
        server.later(20 * MINUTE);
        session(&third).await.is(200);
    }
    server.later(20 * MINUTE);
    session(&third).await.is(401);
}

#[tokio::test]
async fn a_change_with_a_cookie_is_meant() {
    let (server, ada) = with_ada().await;
    let end = async |headers: &[(&str, &str)]| {
        server.sent(Method::DELETE, "/users/nobody/sessions", headers, &Value::Null).await
    };
    let cookie = ("cookie", ada.cookie.as_str());
    let csrf = ("x-csrf-token", ada.csrf.as_str());
    let host = ("host", "p.example");
    end(&[cookie, csrf]).await.is(404);
    end(&[cookie, csrf, host, ("origin", "http://p.example")]).await.is(404);
    for headers in [
        &[cookie][..],
        &[cookie, ("x-csrf-token", "")],
        &[cookie, ("x-csrf-token", &ada.csrf[1..])],
        &[cookie, csrf, host, ("origin", "http://evil.example")],
        &[cookie, csrf, host, ("origin", "null")],
        &[cookie, csrf, ("sec-fetch-site", "cross-site")],
        &[cookie, csrf, ("sec-fetch-site", "same-site")],
    ] {
        let refused = end(headers).await.is(403);
        assert_eq!(refused["type"], "urn:procession:problem:not-meant", "{headers:?}");
    }
    // Nobody else's page logs anybody in.
    let sent = json!({ "name": "ada", "password": PASSWORD });
    let evil = [host, ("origin", "http://evil.example")];
    server.sent(Method::POST, "/session", &evil, &sent).await.is(403);
    // A form cannot send it.
    let form = [cookie, csrf, ("content-type", "text/plain")];
    let request = form
        .iter()
        .fold(axum::http::Request::post("/api/v1/session/password"), |request, (name, value)| {
            request.header(*name, *value)
        });
    let request = request.body(axum::body::Body::from("{}")).expect("a request");
    assert_eq!(server.request(request).await.status.as_u16(), 415);
}

#[tokio::test]
async fn over_tls_the_cookie_is_bound_to_the_host() {
    let server = Server::with("[http]\npublic_url = 'https://p.example'\n").await;
    let secret = server.house.porter.setup_secret().await.expect("make").expect("nobody yet");
    let sent = json!({ "secret": secret.expose_secret(), "name": "ada", "password": PASSWORD });
    let answer = server.sent(Method::POST, "/setup", &[], &sent).await;
    let set = answer.headers["set-cookie"].to_str().expect("text");
    assert!(set.starts_with("__Host-procession=") && set.contains("; Secure"), "{set}");
    for (name, value) in [
        ("strict-transport-security", "max-age=31536000"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(answer.headers[name], value, "{name}");
    }
    let policy = answer.headers["content-security-policy"].to_str().expect("text");
    for part in
        ["default-src 'self'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn what_is_wrong_is_not_told() {
    let (server, _) = with_ada().await;
    let unknown = server.log_in("nobody.here", OTHER, "9.9.9.1").await;
    let wrong = server.log_in("ada", OTHER, "9.9.9.2").await;
    let odd = server.log_in("no such name!", OTHER, "9.9.9.3").await;
    assert_eq!(unknown.status.as_u16(), 401);
    assert_eq!((&unknown.text, unknown.status), (&wrong.text, wrong.status));
    assert_eq!((&unknown.text, unknown.status), (&odd.text, odd.status));
    // Nor by the time it takes, which is that of hashing.
    let cost = async |name: &str| {
        let before = server.house.porter.spent_on_passwords();
        server.log_in(name, OTHER, "9.9.9.4").await.is(401);
        server.house.porter.spent_on_passwords() - before
    };
    let known = cost("ada").await;
    assert!(known >= 2 * 19_456, "{known}: less than 19 MiB and two rounds");
    for unknown in ["nobody.here", "no such name!"] {
        assert_eq!(cost(unknown).await, known, "{unknown}");
    }
}

#[tokio::test]
async fn who_guesses_is_slowed_down_and_nobody_else() {
    let (server, _) = with_ada().await;
    let guess = async |from: &str| server.log_in("ada", OTHER, from).await.status.as_u16();
    let mut looked_at = 0;
    for _ in 0..40 {
        looked_at += u32::from(guess("9.9.9.9").await == 401);
    }
    assert_eq!(looked_at, 10, "within a minute");
    let refused = server.log_in("ada", PASSWORD, "9.9.9.9").await;
    refused.is(429);
    assert!(refused.headers.contains_key("retry-after"));
    // Somebody else gets in meanwhile, and a restart or another node knows it too.
    server.log_in("ada", PASSWORD, "9.9.9.8").await.is(200);
    let other = server.app.porter();
    let from = procession::app::access::Stranger { address: "9.9.9.9".to_owned(), agent: None };
    assert!(other.log_in("ada", SecretString::from(PASSWORD).into(), &from).await.is_err());
    server.later(MINUTE);
    server.log_in("ada", PASSWORD, "9.9.9.9").await.is(200);
    // A thousand guesses at once are no way around.
    server.later(MINUTE);
    let guesses = (0..100).map(|_| guess("9.9.9.7"));
    let statuses = futures_util::future::join_all(guesses).await;
    let looked_at = statuses.iter().filter(|s| **s == 401).count();
    assert!(looked_at <= 10, "{looked_at} were looked at");
    assert!(statuses.iter().all(|s| matches!(s, 401 | 429)), "{statuses:?}");
}

#[tokio::test]
async fn an_initial_password_is_changed_first_and_expires() {
    let (server, ada) = with_ada().await;
    let sent = json!({ "name": "bob", "grants": [{ "group": "*", "role": "viewer" }] });
    let added = server.sent(Method::POST, "/users", &ada.headers(), &sent).await.is(200);
    let initial = added["one_time_password"].as_str().expect("a password").to_owned();
    let answer = server.log_in("bob", &initial, "9.9.9.9").await;
    let bob = Browser::of(&answer);
    assert_eq!(answer.json()["must_change_password"], true);
    let batches = async |browser: &Browser| {
        let headers = [("cookie", browser.cookie.as_str())];
        server.sent(Method::GET, "/batches", &headers, &Value::Null).await
    };
    assert_eq!(batches(&bob).await.is(403)["type"], "urn:procession:problem:must-change-password");
    let wish = json!({ "name": "x", "permissions": ["view"], "days": 1 });
    server.sent(Method::POST, "/session/tokens", &bob.headers(), &wish).await.is(403);
    let second = Browser::of(&server.log_in("bob", &initial, "9.9.9.9").await);
    let change = async |old: &str, new: &str| {
        let sent = json!({ "old": old, "new": new });
        server.sent(Method::POST, "/session/password", &bob.headers(), &sent).await
    };
    let wrong = change(OTHER, PASSWORD).await.is(403);
    assert_eq!(wrong["type"], "urn:procession:problem:wrong-old-password");
    change(&initial, &initial).await.is(422);
    change(&initial, "bob-bob-bob-bob").await.is(422);
    change(&initial, &"x".repeat(129)).await.is(422);
    let now = Browser::of(&change(&initial, OTHER).await);
    batches(&now).await.is(200);
    for ended in [&bob, &second] {
        batches(ended).await.is(401);
    }
    server.log_in("bob", &initial, "9.9.9.9").await.is(401);
    // Unused for three days it is of no use.
    let path = "/users/bob/password-reset";
    let reset = server.sent(Method::POST, path, &ada.headers(), &json!({})).await.is(200);
    let reset = reset["one_time_password"].as_str().expect("one").to_owned();
    batches(&now).await.is(401);
    server.later(72 * HOUR);
    server.log_in("bob", &reset, "9.9.9.9").await.is(401);
}

#[tokio::test]
async fn what_is_taken_away_counts_at_once() {
    let (server, _) = with_ada().await;
    let name = UserName::parse("bob").expect("a name");
    let wanted = NewAccount {
        name: name.clone(),
        display_name: "Bob".to_owned(),
        lang: None,
        grants: grants(&[("*", Role::Operator, &[])]),
        initial: Initial::Password(PASSWORD.into()),
    };
    let porter = &server.house.porter;
    porter.add_user(&server.owner(), wanted).await.expect("bob");
    let enter = async || Browser::of(&server.log_in("bob", PASSWORD, "9.9.9.9").await);
    let session = async |browser: &Browser| {
        let headers = [("cookie", browser.cookie.as_str())];
        server.sent(Method::GET, "/session", &headers, &Value::Null).await
    };
    let bob = enter().await;
    let token = server.token_of(&name, 1).await;
    // More than before: the session goes on, and may more.
    let more = UserChange {
        grants: Some(grants(&[("*", Role::Operator, &[]), ("*", Role::Author, &[])])),
        ..UserChange::default()
    };
    porter.change_user(&server.owner(), &name, more).await.expect("grant");
    assert_eq!(
        session(&bob).await.is(200)["permissions"]["everywhere"],
        json!(["view", "run", "edit"])
    );
    // Less: it ends.
    let less = UserChange { grants: Some(Vec::new()), ..UserChange::default() };
    porter.change_user(&server.owner(), &name, less).await.expect("take away");
    session(&bob).await.is(401);
    server.get("/batches", &token).await.is(403);
    // Disabled.
    let bob = enter().await;
    let off = UserChange { is_active: Some(false), ..UserChange::default() };
    porter.change_user(&server.owner(), &name, off).await.expect("disable");
    session(&bob).await.is(401);
    server.get("/session", &token).await.is(401);
    server.log_in("bob", PASSWORD, "9.9.9.9").await.is(401);
    let on = UserChange { is_active: Some(true), ..UserChange::default() };
    porter.change_user(&server.owner(), &name, on).await.expect("enable");
    session(&bob).await.is(401);
    // Ended by an administrator.
    let bob = enter().await;
    porter.end_sessions(&server.owner(), &name, None).await.expect("end");
    session(&bob).await.is(401);
    // Removed.
    let bob = enter().await;
    porter.remove_user(&server.owner(), &name).await.expect("remove");
    session(&bob).await.is(401);
    server.get("/session", &token).await.is(401);
}

#[tokio::test]
async fn secrets_are_nowhere() {
    let (server, ada) = with_ada().await;
    let wish = json!({ "name": "ci", "permissions": ["view"], "days": 9 });
    let made = server.sent(Method::POST, "/session/tokens", &ada.headers(), &wish).await.is(200);
    let token = made["token"].as_str().expect("a token").to_owned();
    let sent = json!({ "name": "bob", "password": "canary-inkwell-77-sierra" });
    server.sent(Method::POST, "/users", &ada.headers(), &sent).await.is(200);
    let sent = json!({ "name": "carl" });
    let carl = server.sent(Method::POST, "/users", &ada.headers(), &sent).await.is(200);
    let carl = carl["one_time_password"].as_str().expect("a password").to_owned();
    server.log_in("canary.typed.as-name", OTHER, "9.9.9.9").await.is(401);
    let sent = json!({ "old": PASSWORD, "new": OTHER });
    let ada =
        Browser::of(&server.sent(Method::POST, "/session/password", &ada.headers(), &sent).await);
    let setup = server.house.porter.setup_secret().await.expect("ask");
    assert!(setup.is_none());
    let session = ada.cookie.split_once('=').expect("a value").1.to_owned();
    let canaries =
        [PASSWORD, OTHER, "canary-inkwell", "canary.typed", &token, &carl, &session, &ada.csrf];
    let mut told = vec![("the database", String::from_utf8_lossy(&server.dump()).into_owned())];
    told.push(("the audit log", format!("{:?}", server.audit().await)));
    let headers = [("cookie", ada.cookie.as_str())];
    for path in [
        "/users",
        "/users/ada",
        "/users/ada/tokens",
        "/users/ada/sessions",
        "/session/tokens",
        "/session/sessions",
        "/audit",
    ] {
        let answer = server.sent(Method::GET, path, &headers, &Value::Null).await;
        answer.is(200);
        told.push((path, answer.text));
    }
    let metrics = axum::http::Request::get("/metrics").body(axum::body::Body::empty());
    told.push(("/metrics", server.request(metrics.expect("a request")).await.text));
    for (place, text) in &told {
        for canary in canaries {
            assert!(!text.contains(canary), "{canary} is in {place}");
        }
    }
    // The digests are there, so it was looked in the right place.
    assert!(told[0].1.contains("$argon2id$v=19$m=19456,t=2,p=1$"));
}
