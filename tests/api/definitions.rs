//! Definitions as text: their faults with lines, who may store them, and lost updates.

use crate::api::server::{Answer, Server};
use axum::http::Method;
use procession::domain::access::{Permission, Role};
use serde_json::{Value, json};

const GL: &str = "
groups: {gl: {}}
jobs:
  - {code: A, group: gl, type: SCRIPT, interpreter: bash, script: echo a}
  - {code: B, group: gl, type: NOOP}
";

async fn post(server: &Server, path: &str, token: &str, body: Value) -> Answer {
    server.send(Method::POST, path, token, &body).await
}

#[tokio::test]
async fn faults_come_with_their_lines() {
    let server = Server::new().await;
    let author = server.token(&[("gl", Role::Author, &[])]).await;
    let bad = GL.replace("type: NOOP", "type: NOPE");
    let found = post(&server, "/definition/check", &author, json!({"text": bad})).await.is(200);
    assert_eq!(found["ok"], false);
    assert_eq!(found["faults"][0]["line"], 5, "{found}");
    let body = json!({"text": bad, "remark": "x"});
    let refused = post(&server, "/definition/apply", &author, body).await.is(422);
    assert_eq!(refused["type"], "urn:procession:problem:faults");
    assert_eq!(refused["faults"][0]["line"], 5);
    let fine = post(&server, "/definition/check", &author, json!({"text": GL})).await.is(200);
    assert_eq!((&fine["ok"], &fine["jobs"]), (&json!(true), &json!(2)));
    let outside = GL.replace("script: echo a", "script_file: /etc/hostname");
    let refused = post(&server, "/definition/check", &author, json!({"text": outside})).await;
    let said = refused.is(200)["faults"][0]["what"].to_string();
    assert!(said.contains("never read"), "{said}");
}

/// What `apply` refuses of secrets is refused before, also where a host that is called is sent one; what is not there yet is
/// said.
#[tokio::test]
async fn secrets_that_are_named_are_looked_at_by_check_and_apply() {
    let server = Server::new().await;
    let admin = server.admin().await;
    server
        .apply(
            "groups: {fin: {}}\nsecrets: {FIN_PW: {env: FIN_PW, owner_group: fin}}\n\
             jobs: {A: {group: fin, type: NOOP}}\n",
        )
        .await;
    let of_risk = |secret: &str| {
        format!(
            "groups: {{risk: {{}}}}\nhosts: {{core: {{base_url: 'https://core.example', headers: {{token: '${{secret.{secret}}}'}}}}}}\n\
             sources: {{books: {{url: 'postgres://u@h/d', password_secret: BOOKS_PW}}}}\n\
             jobs:\n  CALL: {{group: risk, type: HTTP, http: {{host: core, path: /}}}}\n"
        )
    };
    let check = json!({ "text": of_risk("FIN_PW") });
    let found = post(&server, "/definition/check", &admin, check).await.is(200);
    assert_eq!(found["ok"], false, "{found}");
    let words = "job CALL of group risk may not use secret FIN_PW (of the headers of host core), which is for fin (owner)";
    assert_eq!(found["faults"][0]["what"], words);
    let cure = found["faults"][0]["fix"].as_str().expect("a cure");
    assert!(cure.starts_with("ask an administrator of all groups"), "{cure}");
    let apply = json!({ "text": of_risk("FIN_PW"), "remark": "x" });
    let refused = post(&server, "/definition/apply", &admin, apply).await;
    refused.is(422);
    assert!(refused.text.contains(words), "{}", refused.text);
    let check = json!({ "text": of_risk("NOT_THERE") });
    let found = post(&server, "/definition/check", &admin, check).await.is(200);
    assert_eq!(found["ok"], true, "{found}");
    let warnings = found["warnings"].to_string();
    for words in [
        "secret NOT_THERE is not known; it is used by host core",
        "secret BOOKS_PW is not known; it is used by source books",
        "procession secret set NOT_THERE",
    ] {
        assert!(warnings.contains(words), "{warnings}");
    }
}

/// Only sources as they are stored are asked, and only for what the caller may have executed.
#[tokio::test]
async fn jobs_are_held_against_stored_sources() {
    let server = Server::new().await;
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("data.db");
    std::fs::write(&file, "").expect("an empty database");
    let yaml = |url: &str, sql: &str| {
        format!(
            "sources: {{s: {{url: '{url}'}}}}
groups: {{gl: {{}}}}
jobs:
  - {{code: A, group: gl, type: SQL, source: s, sql: '{sql}'}}
"
        )
    };
    let url = format!("sqlite:{}", file.display());
    server.apply(&yaml(&url, "SELECT 1")).await;
    let writer = server.token(&[("gl", Role::Author, &[Permission::Script])]).await;
    let author = server.token(&[("gl", Role::Author, &[])]).await;
    let viewer = server.token(&[("gl", Role::Viewer, &[])]).await;
    let ask = async |token: &str, text: String| {
        post(&server, "/definition/preflight", token, json!({"text": text})).await
    };
    let broken = yaml(&url, "SELECT FROM WHERE");
    ask(&viewer, broken.clone()).await.is(403);
    let found = ask(&writer, broken.clone()).await.is(200);
    assert_eq!((&found["ok"], &found["errors"]), (&json!(false), &json!(1)), "{found}");
    let finding = &found["findings"][0];
    assert_eq!((&finding["job"], &finding["kind"]), (&json!("A"), &json!("statement_refused")));
    assert!(
        finding["message"]["zh"].as_str().is_some_and(|said| said.contains("数据源 s")),
        "{finding}"
    );
    // Text that may not be executed for this caller reaches no server.
    let found = ask(&author, broken).await.is(200);
    assert_eq!((&found["ok"], &found["sources"]), (&json!(true), &json!([])), "{found}");
    let found = ask(&author, yaml(&url, "SELECT 1")).await.is(200);
    assert_eq!(found["sources"][0]["is_reached"], true, "{found}");
    // Another address is not told this installation's passwords.
    let other = yaml("mysql://root@127.0.0.1:1/x", "SELECT 1");
    let found = ask(&writer, other).await.is(200);
    assert_eq!(found["findings"][0]["kind"], "source_not_stored", "{found}");
    assert_eq!(found["sources"], json!([]), "nobody was asked");
}

#[tokio::test]
async fn executable_text_takes_a_permission_of_its_own() {
    let server = Server::new().await;
    let author = server.token(&[("gl", Role::Author, &[])]).await;
    let writer = server.token(&[("gl", Role::Author, &[Permission::Script])]).await;
    let operator = server.token(&[("gl", Role::Operator, &[])]).await;
    let body = |text: &str| json!({"text": text, "remark": "the close"});
    let looked = post(&server, "/definition/diff", &author, body(GL)).await.is(200);
    assert_eq!(looked["needs"]["groups"]["gl"], json!(["edit", "script"]));
    assert_eq!(looked["applied"], false);
    let refused = post(&server, "/definition/apply", &author, body(GL)).await.is(403);
    assert_eq!(refused["permission"], "script");
    post(&server, "/definition/apply", &operator, body(GL)).await.is(403);
    let silent = post(&server, "/definition/apply", &writer, json!({"text": GL})).await;
    assert!(silent.is(422)["detail"].as_str().is_some_and(|d| d.contains("remark")));
    let done = post(&server, "/definition/apply", &writer, body(GL)).await.is(200);
    assert_eq!(done["versions"], json!({"gl": 1}));
    // A time is no executable text.
    let slower = GL.replace("type: NOOP", "type: NOOP, timeout_sec: 60");
    post(&server, "/definition/apply", &author, body(&slower)).await.is(200);
    // Nor is what belongs to all an author's of one group.
    let params = format!("{slower}params: {{rate: 7}}\n");
    post(&server, "/definition/apply", &author, body(&params)).await.is(403);
    let foreign = "groups: {ar: {}}\njobs: [{code: X, group: ar, type: NOOP}]\n";
    post(&server, "/definition/apply", &author, body(foreign)).await.is(404);
    let mut tx = server.app.db.begin_read().await.expect("read");
    let acts = procession::store::audit::list_records(&mut tx, &Default::default(), 9)
        .await
        .expect("list");
    assert!(acts.iter().any(|a| a.entry.action == "apply"), "on record");
}

#[tokio::test]
async fn a_lost_update_is_refused_and_says_whose_it_was() {
    let server = Server::new().await;
    let right = [Permission::Script];
    let (ann, bob) = (
        server.user("ann", &[("gl", Role::Author, &right)]).await,
        server.user("bob", &[("gl", Role::Author, &right)]).await,
    );
    let (ann, bob) = (server.token_of(&ann, 1).await, server.token_of(&bob, 1).await);
    let body = |text: &str, seen: u32| json!({"text": text, "remark": "mine", "if_versions": {"gl": seen}});
    post(&server, "/definition/apply", &ann, body(GL, 0)).await.is(200);
    let by_bob = GL.replace("echo a", "echo b");
    post(&server, "/definition/apply", &bob, body(&by_bob, 1)).await.is(200);
    let by_ann = GL.replace("echo a", "echo c");
    let lost = post(&server, "/definition/apply", &ann, body(&by_ann, 1)).await.is(412);
    assert_eq!((&lost["changed_by"], &lost["version"]), (&json!("bob"), &json!(2)));
    let plain = server.token(&[("gl", Role::Author, &[])]).await;
    let back = json!({"to": 1, "reason": "it broke"});
    post(&server, "/groups/gl/rollback", &plain, back.clone()).await.is(403);
    let done = post(&server, "/groups/gl/rollback", &bob, back).await.is(200);
    assert_eq!(done["versions"], json!({"gl": 3}));
}
