//! A server that says what a test wants it to, in the documents of Vault's API: how a login is kept and renewed, and what
//! each answer means. `openbao.rs` has a real server.

use super::{read, refusal, stores, value, vault_options, write_private};
use crate::params::run_with_input;
use crate::util::host::{Host, Reply};
use procession::secret_store::vault::{CredentialSource, VaultAuth};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECRET_ID: &str = "secret-id-of-the-test";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    write_private(&folder.path().join("secret-id"), SECRET_ID);
    folder
}

fn login(token: &str, lease_sec: i64, renewable: bool) -> Reply {
    let auth = json!({"client_token": token, "lease_duration": lease_sec, "renewable": renewable});
    Reply::text(200, &json!({"data": null, "auth": auth}).to_string())
}

fn secret(value: &str) -> Reply {
    let data = json!({"data": {"password": value}, "metadata": {"version": 7, "deletion_time": "", "destroyed": false}});
    Reply::text(200, &json!({ "data": data }).to_string())
}

fn errors(status: u16, words: &str) -> Reply {
    Reply::text(status, &json!({"errors": [words]}).to_string())
}

/// The paths that were asked for, one word each.
fn asked(host: &Host) -> Vec<&'static str> {
    let word = |request: &String| match request.split(' ').nth(1).expect("a path") {
        "/v1/auth/approle/login" => "login",
        "/v1/auth/token/renew-self" => "renew",
        "/v1/auth/token/lookup-self" => "lookup",
        "/v1/secret/data/batch/fx" => "read",
        other => panic!("nobody asks for {other}"),
    };
    host.asked().iter().map(word).collect()
}

#[tokio::test]
async fn a_login_is_kept_renewed_and_made_anew() {
    let (logins, revoked) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(String::new())));
    let (count, bad) = (logins.clone(), revoked.clone());
    let host = Host::start(move |request| {
        let text = request.to_ascii_lowercase();
        assert!(text.contains("x-vault-request: true"), "{request}");
        assert!(text.contains("x-vault-namespace: finance"), "{request}");
        if text.contains("/login ") {
            assert!(request.contains(SECRET_ID) && request.contains("the-role"), "{request}");
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            return login(&format!("s.token-{number}"), 60, true);
        }
        let denied = bad.lock().expect("it").clone();
        if !denied.is_empty() && text.contains(&format!("x-vault-token: {denied}")) {
            return errors(403, "permission denied");
        }
        if text.contains("/renew-self ") {
            return login("ignored", 60, true);
        }
        assert!(text.contains("x-vault-token: s.token-"), "{request}");
        secret("hunter22")
    })
    .await;
    let folder = folder();
    let mut options = vault_options(&host.url, folder.path());
    options.namespace = Some("finance".to_owned());
    let stores = stores(options, "batch/fx#password");
    assert_eq!(value(&stores, 0).await, "hunter22");
    assert_eq!(value(&stores, 39).await, "hunter22");
    assert_eq!(asked(&host), ["login", "read", "read"]);
    // Two thirds of a minute are over.
    value(&stores, 41).await;
    value(&stores, 80).await;
    assert_eq!(asked(&host)[3..], ["renew", "read", "read"]);
    // The server does not know the token any more.
    *revoked.lock().expect("it") = "s.token-1".to_owned();
    value(&stores, 80).await;
    assert_eq!(asked(&host)[6..], ["read", "lookup", "login", "read"]);
    // It cannot be renewed: a new login.
    *revoked.lock().expect("it") = "s.token-2".to_owned();
    value(&stores, 130).await;
    assert_eq!(asked(&host)[10..], ["renew", "login", "read"]);
    // Nobody asked for so long that it has ended.
    value(&stores, 1_000).await;
    assert_eq!(asked(&host)[13..], ["login", "read"]);
    // What keeps logins renews this one, and nothing when it is not due.
    let now = |second: i64| procession::domain::cluster::lease::Uptime(second * 1_000);
    assert_eq!(stores.renew_logins(now(1_001)).await, []);
    assert_eq!(stores.renew_logins(now(1_045)).await, []);
    assert_eq!(asked(&host)[15..], ["renew"]);
}

/// Each login is an entry of the server's until it ends, so a job that asks in vain must not make one each time.
#[tokio::test]
async fn a_path_that_is_denied_costs_no_new_login() {
    let is_denied = Arc::new(AtomicBool::new(false));
    let denied = is_denied.clone();
    let host = Host::start(move |request| match request {
        _ if request.contains("/login ") => login("s.x", 60, true),
        _ if request.contains("/lookup-self ") => Reply::text(200, "{\"data\":{\"ttl\":50}}"),
        _ if denied.load(Ordering::Relaxed) => errors(403, "permission denied"),
        _ => secret("hunter22"),
    })
    .await;
    let folder = folder();
    let stores = stores(vault_options(&host.url, folder.path()), "batch/fx#password");
    value(&stores, 0).await;
    is_denied.store(true, Ordering::Relaxed);
    let (is_away, why) = refusal(&stores, 1).await;
    assert!(!is_away && why.contains("its login may not read secret/data/batch/fx"), "{why}");
    assert_eq!(asked(&host), ["login", "read", "read", "lookup"]);
}

#[tokio::test]
async fn a_login_is_made_with_the_secret_id_of_the_moment() {
    let host = Host::start(|request| match request.contains("/login ") {
        true if request.contains("the-second-secret-id") => login("s.x", 10, false),
        true => errors(400, "invalid role or secret ID"),
        false => secret("hunter22"),
    })
    .await;
    let folder = folder();
    let stores = stores(vault_options(&host.url, folder.path()), "batch/fx#password");
    let (is_away, why) = refusal(&stores, 0).await;
    assert!(
        !is_away
            && why.contains("it refused the login by AppRole (400: invalid role or secret ID)"),
        "{why}"
    );
    write_private(&folder.path().join("secret-id"), "the-second-secret-id\n");
    assert_eq!(value(&stores, 1).await, "hunter22");
    std::fs::remove_file(folder.path().join("secret-id")).expect("removed");
    let (is_away, why) = refusal(&stores, 100).await;
    assert!(
        !is_away && why.contains("secret_id: the file") && why.contains("cannot be read"),
        "{why}"
    );
}

#[tokio::test]
async fn a_token_is_taken_from_its_file_each_time() {
    let host = Host::start(|request| match request.contains("/lookup-self ") {
        true => Reply::text(200, "{\"data\":{\"ttl\":0,\"renewable\":false}}"),
        false if request.contains("token-two") => secret("hunter-two"),
        false => secret("hunter-one"),
    })
    .await;
    let folder = tempfile::tempdir().expect("folder");
    let token = folder.path().join("token");
    write_private(&token, "s.token-one\n");
    let mut options = vault_options(&host.url, folder.path());
    options.auth = VaultAuth::Token(CredentialSource::File(token.clone()));
    let stores = stores(options, "batch/fx#password");
    assert_eq!(value(&stores, 0).await, "hunter-one");
    assert_eq!(value(&stores, 1).await, "hunter-one");
    write_private(&token, "s.token-two\n");
    assert_eq!(value(&stores, 2).await, "hunter-two");
    assert_eq!(asked(&host), ["lookup", "read", "read", "lookup", "read"]);
}

/// What may pass.
fn answers_of_a_server_that_is_away() -> Vec<(Reply, &'static str)> {
    vec![
        (errors(503, "Vault is sealed"), "it cannot answer now (503: Vault is sealed); unseal it"),
        (errors(500, "internal error"), "(500: internal error)"),
        (errors(429, ""), "(429)"),
        (errors(473, ""), "(473)"),
        (
            Reply::Say(307, "Location: http://127.0.0.1:1/\r\n".to_owned(), Vec::new()),
            "redirects are not followed",
        ),
        (Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nabc".to_vec()), "no answer"),
        (Reply::Hang, "no answer"),
    ]
}

/// What is the same the next time.
fn answers_that_are_final() -> Vec<(Reply, &'static str)> {
    let deleted = "{\"data\":{\"data\":null,\"metadata\":{\"version\":3,\"deletion_time\":\"2026-11-26T19:17:08Z\",\"destroyed\":false}}}";
    let number = "{\"data\":{\"data\":{\"password\":{\"a\":1}},\"metadata\":{\"version\":1}}}";
    let other = "{\"data\":{\"data\":{\"user\":\"hunter22\"},\"metadata\":{\"version\":1}}}";
    vec![
        (Reply::Endless, "its answer has more than 1048576 bytes"),
        (
            errors(403, "permission denied"),
            "its login may not read secret/data/batch/fx (403: permission denied); give its policy: path \"secret/data/batch/fx\" { capabilities = [\"read\"] }",
        ),
        (Reply::text(404, "{\"errors\":[]}"), "it has nothing at secret/data/batch/fx (404)"),
        (errors(404, "namespace not found"), "(404: namespace not found)"),
        (errors(400, "bad request"), "it refused to read secret/data/batch/fx (400: bad request)"),
        (
            Reply::text(404, deleted),
            "version 3 of secret/data/batch/fx is deleted since 2026-11-26T19:17:08Z",
        ),
        (
            Reply::text(200, number),
            "field password of secret/data/batch/fx is neither text nor a number",
        ),
        (Reply::text(200, other), "has no field password; its fields are: user"),
        (Reply::text(200, "<html>"), "it has nothing at"),
    ]
}

#[tokio::test]
async fn each_answer_is_a_sentence_and_what_may_pass_is_told_from_what_does_not() {
    let away = answers_of_a_server_that_is_away().into_iter().map(|case| (case, true));
    let last = answers_that_are_final().into_iter().map(|case| (case, false));
    for ((reply, words), is_away) in away.chain(last) {
        let reply = Mutex::new(Some(reply));
        let host = Host::start(move |request| match request.contains("/login ") {
            true => login("s.hunter22", 60, true),
            false => {
                reply.lock().expect("it").take().unwrap_or_else(|| errors(403, "permission denied"))
            }
        })
        .await;
        let folder = folder();
        let mut options = vault_options(&host.url, folder.path());
        options.timeout = Duration::from_millis(500);
        let stores = stores(options, "batch/fx#password");
        let (away, why) = refusal(&stores, 0).await;
        assert!(why.contains(words) && away == is_away, "{words}: {away} {why}");
        assert!(why.starts_with("secret store corp at http://127.0.0.1:"), "{why}");
        assert!(!why.contains("hunter22") && !why.contains(SECRET_ID), "{why}");
    }
    let folder = folder();
    let stores = stores(vault_options("http://127.0.0.1:1", folder.path()), "batch/fx#password");
    let (away, why) = refusal(&stores, 0).await;
    assert!(away && why.contains("cannot connect"), "{why}");
    assert_eq!(read(&stores, 0).await.expect_err("closed").to_string(), why);
}

const DAG: &str = "
groups: {fin: {}}
jobs:
  A: {group: fin, type: SCRIPT, interpreter: sh, retry_count: 1, script: 'echo \"x $PROCESSION_PARAM_PW x\"',
      params: [{name: pw, value: '${secret.PW}'}]}
";

fn write_home(path: &Path, address: &str, away_sec: u32) {
    let settings = format!(
        "[source]\naway_sec = {away_sec}\n[secret_stores.corp]\ntype = 'vault'\naddress = '{address}'\n\
         role_id = 'the-role'\nsecret_id_file = '{}'\n\
         secrets.PW = {{ key = 'batch/fx#password', groups = ['fin'] }}\n",
        path.join("secret-id").display()
    );
    std::fs::write(path.join("procession.toml"), settings).expect("settings");
    std::fs::write(path.join("dag.yaml"), DAG).expect("file");
}

async fn run(path: &Path, batch: &str) -> (i32, String) {
    let (path, batch) = (path.to_owned(), batch.to_owned());
    let run = tokio::task::spawn_blocking(move || {
        let args = ["run", "dag.yaml", "--batch-no", &batch, "--group", "fin"];
        let ran = run_with_input(&path, &args, &[], "");
        let logs = run_with_input(&path, &["logs", &batch, "A", "--group", "fin"], &[], "");
        (ran.code, format!("{}{}{}", ran.out, ran.err, logs.out))
    });
    run.await.expect("it ran")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_waits_for_a_server_that_is_away() {
    let is_sealed = Arc::new(AtomicBool::new(true));
    let (sealed, reads) = (is_sealed.clone(), Arc::new(AtomicU32::new(0)));
    let host = Host::start(move |request| {
        if sealed.load(Ordering::Relaxed) {
            // Two requests are answered so, the third finds it open.
            if reads.fetch_add(1, Ordering::Relaxed) == 1 {
                sealed.store(false, Ordering::Relaxed);
            }
            return errors(503, "Vault is sealed");
        }
        match request.contains("/login ") {
            true => login("s.x", 60, true),
            false => secret("hunter22"),
        }
    })
    .await;
    let home = folder();
    write_home(home.path(), &host.url, 20);
    let (code, told) = run(home.path(), "1").await;
    assert_eq!(code, 0, "{told}");
    for words in [
        "it cannot answer now (503: Vault is sealed); unseal it, or wait until it has a leader; waits up to 20.0 s for it",
        "secret store corp is back after",
        "x *** x",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("hunter22"), "{told}");
    assert!(!told.contains("start 2"), "no attempt was lost: {told}");
    // One that does not come back fails the attempt, which may be tried again as its job says.
    is_sealed.store(false, Ordering::Relaxed);
    drop(host);
    write_home(home.path(), "http://127.0.0.1:1", 1);
    let (code, told) = run(home.path(), "2").await;
    assert_eq!(code, 1, "{told}");
    assert!(
        told.contains("requests); nothing was run") && told.contains("start 2 FAILED"),
        "{told}"
    );
}
