//! The inbox of failures: what people say about a failed job, until it fails again.

use crate::api::server::{Answer, Server};
use axum::http::Method;
use procession::domain::access::Role;
use serde_json::{Value, json};

const GROUPS: &str = "
groups: { gl: {}, ar: {} }
defaults: { type: SCRIPT, interpreter: sh, timeout_sec: 60, idempotent: true }
jobs:
  BAD: { group: gl, script: 'echo closed >&2; exit 3' }
  GOOD: { group: gl, type: NOOP }
  BILL: { group: ar, script: 'exit 1' }
";
const BAD: &str = "/groups/gl/batches/202407/jobs/BAD/failure";

async fn bench() -> Server {
    let server = Server::new().await;
    server.apply(GROUPS).await;
    for group in ["gl", "ar"] {
        server.run(&json!({"batchNo": "202407", "group": group}).to_string()).await;
    }
    server
}

async fn mark(server: &Server, token: &str, path: &str, body: Value) -> Answer {
    server.send(Method::POST, path, token, &body).await
}

fn jobs(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list").iter();
    items.map(|one| one["job"].as_str().expect("a job")).collect()
}

#[tokio::test]
async fn what_is_acknowledged_leaves_the_inbox() {
    let server = bench().await;
    let operator = server.token(&[("gl", Role::Operator, &[])]).await;
    let list = server.get("/failures", &operator).await.is(200);
    assert_eq!((jobs(&list), &list["open"]), (vec!["BAD"], &json!(1)), "only what one sees");
    let before = &list["items"][0];
    assert_eq!((&before["status"], &before["is_acknowledged"]), (&json!("FAILED"), &json!(false)));
    assert!(before["error"].is_string() && before["at"].is_string(), "{before}");

    let body = json!({"attempt": 1, "assignee": " li na ", "note": "asked the bank"});
    let said = mark(&server, &operator, BAD, body).await.is(200);
    assert_eq!((&said["assignee"], &said["is_acknowledged"]), (&json!("li na"), &json!(false)));
    // What is left out stays.
    let said =
        mark(&server, &operator, BAD, json!({"attempt": 1, "acknowledged": true})).await.is(200);
    assert_eq!((&said["assignee"], &said["note"]), (&json!("li na"), &json!("asked the bank")));
    assert!(said["acknowledged_by"].is_string() && said["acknowledged_at"].is_string(), "{said}");
    let list = server.get("/failures", &operator).await.is(200);
    assert_eq!((jobs(&list), &list["open"]), (vec![], &json!(0)));
    for query in ["state=acknowledged", "state=all&assignee=li%20na", "state=all&group=gl"] {
        let list = server.get(&format!("/failures?{query}"), &operator).await.is(200);
        assert_eq!(jobs(&list), ["BAD"], "{query}");
    }
    let none = server.get("/failures?state=all&assignee=bob", &operator).await.is(200);
    assert_eq!(none["items"], json!([]));
    let dashboard = server.get("/dashboard", &operator).await.is(200);
    assert_eq!(dashboard["failures"][0]["is_acknowledged"], true, "{dashboard}");
    assert_eq!(dashboard["failures"][0]["assignee"], "li na");
    // It comes back when that is taken back; empty texts remove.
    let body = json!({"attempt": 1, "acknowledged": false, "assignee": "", "note": ""});
    let said = mark(&server, &operator, BAD, body).await.is(200);
    assert_eq!(
        (&said["assignee"], &said["note"], &said["acknowledged_by"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(server.get("/failures", &operator).await.is(200)["open"], 1);
    let audit = server.audit().await;
    let marks: Vec<_> = audit.iter().filter(|(action, ..)| action == "failure mark").collect();
    assert_eq!(marks.len(), 3, "{audit:?}");
    assert!(marks[0].2.contains("li na") && marks[0].2.contains("asked the bank"), "{marks:?}");
}

#[tokio::test]
async fn another_failure_of_the_job_is_open_again() {
    let server = bench().await;
    let admin = server.admin().await;
    mark(&server, &admin, BAD, json!({"attempt": 1, "acknowledged": true})).await.is(200);
    let again = json!({"action": "rerun", "jobs": ["BAD"]});
    let path = "/groups/gl/batches/202407/actions";
    let seen = mark(&server, &admin, path, again.clone()).await.is(200)["seen"].clone();
    let mut body = again;
    body["seen"] = seen;
    body["reason"] = json!("try again");
    mark(&server, &admin, path, body).await.is(200);
    // While it has not run, nothing has failed.
    mark(&server, &admin, BAD, json!({"attempt": 1, "note": "x"})).await.is(409);
    server.run_open().await;
    let list = server.get("/failures?group=gl", &admin).await.is(200);
    let bad =
        list["items"].as_array().and_then(|all| all.iter().find(|one| one["batch_no"] == "202407"));
    let bad = bad.unwrap_or_else(|| panic!("{list}"));
    assert_eq!((&bad["attempt"], &bad["is_acknowledged"]), (&json!(2), &json!(false)));
    let late = mark(&server, &admin, BAD, json!({"attempt": 1, "acknowledged": true})).await;
    assert_eq!(late.is(409)["type"], "urn:procession:problem:changed-meanwhile");
    mark(&server, &admin, BAD, json!({"attempt": 2, "acknowledged": true})).await.is(200);
}

#[tokio::test]
async fn who_may_not_run_may_not_mark() {
    let server = bench().await;
    let viewer = server.token(&[("gl", Role::Viewer, &[])]).await;
    let other = server.token(&[("ar", Role::Operator, &[])]).await;
    let body = json!({"attempt": 1, "acknowledged": true});
    mark(&server, &viewer, BAD, body.clone()).await.is(403);
    mark(&server, &other, BAD, body.clone()).await.is(404);
    let admin = server.admin().await;
    let good = "/groups/gl/batches/202407/jobs/GOOD/failure";
    mark(&server, &admin, good, body.clone()).await.is(409);
    mark(&server, &admin, "/groups/gl/batches/202407/jobs/NONE/failure", body).await.is(404);
    let long = json!({"attempt": 1, "assignee": "x".repeat(101)});
    mark(&server, &admin, BAD, long).await.is(422);
    server.get("/failures?days=0", &admin).await.is(400);
    server.get("/failures?state=new", &admin).await.is(400);
}
