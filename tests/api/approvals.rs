//! Approvals over the API: seen where the group is seen, decided by those whom the job names, never by whoever
//! started the batch.

use crate::api::server::{Answer, Server};
use axum::http::Method;
use procession::domain::access::{Permission, Role};
use procession::domain::id::{BatchNo, GroupCode};
use procession::store::approval::{self, NewApproval};
use serde_json::{Value, json};

const GROUPS: &str = "
groups: {gl: {type: monthly}, ar: {type: monthly}}
jobs:
  - {code: RELEASE, group: gl, type: APPROVAL, approval: {role: operator, question: Post it?}}
  - {code: B, group: gl, type: NOOP}
  - {code: X, group: ar, type: NOOP}
dependencies: [{job_code: B, depends_on: RELEASE}]
";

const AT: &str = "/groups/gl/batches/202407/jobs/RELEASE";

async fn post(server: &Server, path: &str, token: &str, body: Value) -> Answer {
    server.send(Method::POST, path, token, &body).await
}

/// A server on which RELEASE waits; `admin` has started its batch.
async fn with_an_approval() -> (Server, String) {
    let server = Server::new().await;
    server.apply(GROUPS).await;
    let admin = server.admin().await;
    let order = json!({"group": "gl", "batch_no": "202407", "reason": "month end"});
    post(&server, "/batches", &admin, order).await.is(200);
    let now = server.app.server_now().await.expect("now");
    let mut tx = server.app.db.begin().await.expect("begin");
    let (no, gl) = (BatchNo::parse("202407").expect("no"), GroupCode::parse("gl").expect("code"));
    let batch = procession::store::batch::find_batch(&mut tx, &no, &gl).await.expect("find");
    let batch = batch.expect("a batch");
    let snapshot = procession::store::batch::snapshot(&mut tx, batch.batch_id).await.expect("defs");
    let job = snapshot.jobs.iter().find(|job| job.approval.is_some()).expect("RELEASE");
    let row = procession::store::queue::of_job(&mut tx, batch.batch_id, &job.code).await;
    let row = row.expect("read").expect("a row");
    let sql = "UPDATE job_queue SET status = 'RUNNING' WHERE queue_id = ?";
    tx.execute(sql, &[row.queue_id.0.into()]).await.expect("as its process does");
    let of = approval::AskingTry { queue_id: row.queue_id, run_no: row.run_no.into(), try_no: 0 };
    let new = NewApproval {
        of,
        batch: (batch.batch_id, &no),
        group: &gl,
        job: &job.code,
        rule: job.approval.as_deref().expect("a rule"),
        deadline: now.plus_ms(600_000),
    };
    approval::insert(&mut tx, &new, now).await.expect("insert");
    tx.commit().await.expect("commit");
    (server, admin)
}

#[tokio::test]
async fn those_whom_the_job_names_decide_and_not_who_started_the_batch() {
    let (server, admin) = with_an_approval().await;
    let named = |user: &str, place: &str, role: Role| {
        let (user, place) = (user.to_owned(), place.to_owned());
        let server = &server;
        async move {
            let user = server.user(&user, &[(&place, role, &[])]).await;
            server.token_of(&user, 1).await
        }
    };
    let viewer = named("vera", "gl", Role::Viewer).await;
    let other = named("otto", "ar", Role::Operator).await;
    let operator = named("olga", "gl", Role::Operator).await;
    let approve = format!("{AT}/approve");
    let refused = post(&server, &approve, &viewer, json!({})).await.is(403);
    assert!(
        refused["detail"].as_str().is_some_and(|d| d.starts_with("an operator of gl may decide"))
    );
    post(&server, &approve, &other, json!({})).await.is(404);
    let refused = post(&server, &approve, &admin, json!({})).await.is(403);
    assert!(
        refused["detail"].as_str().is_some_and(|d| d.contains("started this batch")),
        "{refused}"
    );
    let list = server.get("/approvals", &operator).await.is(200);
    let item = &list["items"][0];
    assert_eq!((&item["status"], &item["may_decide"]), (&json!("WAITING"), &json!(true)));
    assert_eq!((&item["question"], &item["job_code"]), (&json!("Post it?"), &json!("RELEASE")));
    let list = server.get("/approvals", &viewer).await.is(200);
    assert_eq!(list["items"][0]["may_decide"], false);
    assert_eq!(server.get("/approvals", &other).await.is(200)["items"], json!([]));
    let silent = post(&server, &format!("{AT}/reject"), &operator, json!({})).await.is(422);
    assert!(silent["detail"].as_str().is_some_and(|d| d.starts_with("comment: say why")));
    let done = post(&server, &approve, &operator, json!({"comment": "agrees"})).await.is(200);
    assert_eq!((&done["written"], &done["approval"]["decided_by"]), (&json!(true), &json!("olga")));
    let again = post(&server, &approve, &operator, json!({})).await.is(200);
    assert_eq!(again["written"], false);
    let late = post(&server, &format!("{AT}/reject"), &operator, json!({"comment": "no"})).await;
    assert!(
        late.is(409)["detail"].as_str().is_some_and(|d| d.contains("approved by olga: agrees"))
    );
    assert_eq!(server.get("/approvals", &operator).await.is(200)["items"], json!([]));
    let past = server.get("/approvals?all=true", &operator).await.is(200);
    assert_eq!(past["items"][0]["comment"], "agrees");
    let none =
        post(&server, "/groups/gl/batches/202407/jobs/B/approve", &operator, json!({})).await;
    assert!(none.is(409)["detail"].as_str().is_some_and(|d| d.contains("waits for no approval")));
}

#[tokio::test]
async fn a_token_that_may_only_look_decides_nothing() {
    let (server, _admin) = with_an_approval().await;
    let operator = server.user("olga", &[("gl", Role::Operator, &[])]).await;
    let looks = server.token_with(&operator, &[Permission::View]).await;
    let list = server.get("/approvals", &looks).await.is(200);
    assert_eq!(list["items"][0]["may_decide"], false);
    post(&server, &format!("{AT}/approve"), &looks, json!({})).await.is(403);
    let runs = server.token_with(&operator, &[Permission::View, Permission::Run]).await;
    post(&server, &format!("{AT}/approve"), &runs, json!({})).await.is(200);
}
