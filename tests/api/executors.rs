//! Groups of executors over the API. What executors themselves say is tried in `tests/xxl`.

use crate::api::server::Server;
use axum::http::Method;
use procession::domain::access::Role;
use procession::domain::executor::{Addressing, ExecutorGroup, GluePolicy};
use procession::domain::xxl::xxl_run::AppName;
use procession::store::executor_group::{self, KeptToken};
use serde_json::{Value, json};

async fn with_group() -> (Server, String) {
    let server = Server::new().await;
    let group = ExecutorGroup {
        app_name: AppName::parse("pay-executor").expect("a name"),
        title: "支付".to_owned(),
        addressing: Addressing::Registered,
        glue: GluePolicy::Refused,
        access: Default::default(),
    };
    // Tests share an environment, so that none has a key to seal with.
    let kept = KeptToken { sealed: "v1:AAAA".to_owned(), digest: "0".repeat(64) };
    let mut tx = server.app.db.begin().await.expect("begin");
    executor_group::add_group(&mut tx, &group, &kept, server.app.clock.now()).await.expect("add");
    tx.commit().await.expect("commit");
    let token = server.admin().await;
    (server, token)
}

#[tokio::test]
async fn groups_are_seen_changed_and_removed_by_who_administers_all() {
    let (server, token) = with_group().await;
    let list = server.get("/executor-groups", &token).await.is(200);
    assert_eq!(list["items"][0]["app_name"], "pay-executor");
    let page = server.get("/executor-groups?limit=1", &token).await.is(200);
    assert_eq!((&page["items"], &page["next"]), (&list["items"], &Value::Null));
    assert!(!list.to_string().contains("AAAA") && !list.to_string().contains("00000000"), "{list}");
    let at = "/executor-groups/pay-executor";
    let change =
        json!({"addresses": ["http://10.0.0.7:9999/"], "allows_glue": true, "title": "Pay"});
    let changed = server.send(Method::PATCH, at, &token, &change).await.is(200);
    assert_eq!(changed["addresses"], json!(["http://10.0.0.7:9999"]));
    assert_eq!((&changed["title"], &changed["allows_glue"]), (&json!("Pay"), &json!(true)));
    let back = server.send(Method::PATCH, at, &token, &json!({"addresses": []})).await.is(200);
    assert_eq!((&back["addresses"], &back["title"]), (&Value::Null, &json!("Pay")));
    assert_eq!((&back["owner_group"], &back["groups"]), (&Value::Null, &Value::Null));
    let owned = json!({"owner_group": "pay", "groups": ["gl"]});
    let owned = server.send(Method::PATCH, at, &token, &owned).await.is(200);
    assert_eq!((&owned["owner_group"], &owned["groups"]), (&json!("pay"), &json!(["gl"])));
    let kept = server.send(Method::PATCH, at, &token, &json!({"title": "Pay"})).await.is(200);
    assert_eq!((&kept["owner_group"], &kept["groups"]), (&json!("pay"), &json!(["gl"])));
    let runs = server.get(&format!("{at}/runs"), &token).await.is(200);
    assert_eq!(runs["items"], json!([]));
    for (method, path, body, status) in [
        (Method::PATCH, at, json!({"title": ""}), 422),
        (Method::PATCH, at, json!({"addresses": ["file:///etc/passwd"]}), 422),
        (Method::PATCH, at, json!({"token": "x"}), 400),
        (Method::PATCH, at, json!({"every_group": true, "groups": ["gl"]}), 422),
        (Method::PATCH, at, json!({"owner_group": "no code"}), 422),
        (Method::POST, "/executor-groups", json!({"app_name": "x"}), 422),
        (
            Method::POST,
            "/executor-groups",
            json!({"app_name": "stock-executor", "token": "default_token"}),
            422,
        ),
        (
            Method::POST,
            "/executor-groups/pay-executor/token",
            json!({"token": "1234567890123456"}),
            422,
        ),
        (Method::GET, "/executor-groups/nobody-here", Value::Null, 404),
        (Method::GET, "/executor-groups/nobody-here/runs", Value::Null, 404),
        (Method::DELETE, "/executor-groups/nobody-here", json!({}), 404),
    ] {
        let answer = server.send(method, path, &token, &body).await;
        answer.is(status);
        assert!(!answer.text.contains("default_token"), "{}", answer.text);
    }
    server.send(Method::DELETE, at, &token, &json!({})).await.is(200);
    assert_eq!(server.get("/executor-groups", &token).await.is(200)["items"], json!([]));
    let audit = server.get("/audit", &token).await.is(200).to_string();
    assert!(
        audit.contains("executor-group set") && audit.contains("executor-group remove"),
        "{audit}"
    );
}

#[tokio::test]
async fn who_administers_one_group_of_jobs_sees_none_of_it() {
    let (server, _) = with_group().await;
    server.apply("groups: { gl: {} }\njobs: { A: { group: gl, type: NOOP } }\n").await;
    let token = server.token(&[("gl", Role::Admin, &[])]).await;
    for path in
        ["/executor-groups", "/executor-groups/pay-executor", "/executor-groups/pay-executor/runs"]
    {
        server.get(path, &token).await.is(403);
    }
}

/// Two groups with one code: each run says whose it is.
#[tokio::test]
async fn a_run_is_of_a_batch_of_its_group() {
    let (server, token) = with_group().await;
    server
        .apply(
            "groups: { a: {}, b: {} }\ndefaults: { type: NOOP }\njobs:\n  - { code: PAY, group: a }\n  \
             - { code: PAY, group: b }\n",
        )
        .await;
    for group in ["a", "b"] {
        server.run(&format!(r#"{{"batchNo":"202407","group":"{group}"}}"#)).await;
        let sql = "INSERT INTO executor_run (queue_id, run_no, attempt, batch_id, job_id, shard_index, shard_total, \
                   job_code, app_name, glue_type, params, block_strategy, status, node_id, create_time, update_time) \
                   SELECT q.queue_id, 1, 1, q.batch_id, 1, 0, 1, q.job_code, 'pay-executor', 'BEAN', '', \
                   'SERIAL_EXECUTION', 'DONE', 'n', q.create_time, q.create_time FROM job_queue q \
                   JOIN job_batch b ON b.batch_id = q.batch_id WHERE b.group_code = ?";
        let mut tx = server.app.db.begin().await.expect("begin");
        tx.execute(sql, &[group.into()]).await.expect("a run");
        tx.commit().await.expect("commit");
    }
    let runs = server.get("/executor-groups/pay-executor/runs", &token).await.is(200);
    let found: Vec<_> = (runs["items"].as_array().expect("runs").iter())
        .map(|run| [&run["group"], &run["batch_no"], &run["job_code"]])
        .collect();
    assert_eq!(found, [["b", "202407", "PAY"], ["a", "202407", "PAY"]]);
}
