//! A code that several groups have, at the routes that name a job without its group.

use crate::api::server::Server;
use axum::http::Method;
use procession::domain::access::{Permission, Role};
use serde_json::json;

const TEAMS: &str = "
groups: { a: {}, b: {} }
defaults: { type: NOOP }
jobs:
  - { code: LOAD, group: a }
  - { code: LOAD, group: b }
  - { code: ONLY, group: b, depends_on: [LOAD] }
";

#[tokio::test]
async fn an_ambiguous_code_names_only_groups_that_are_seen() {
    let server = Server::new().await;
    server.apply(TEAMS).await;
    let admin = server.admin().await;
    for path in ["/jobs/LOAD", "/jobs/LOAD/stats", "/jobs/LOAD/history"] {
        let problem = server.get(path, &admin).await.is(409);
        assert_eq!(
            problem["detail"], "LOAD is in groups a and b; write a.LOAD or b.LOAD",
            "{path}"
        );
        assert_eq!(problem["candidates"], json!(["a.LOAD", "b.LOAD"]));
    }
    for group in ["a", "b"] {
        let job = server.get(&format!("/jobs/{group}.LOAD"), &admin).await.is(200);
        assert_eq!(job["job"]["group"], group);
    }
    assert_eq!(server.get("/jobs/ONLY", &admin).await.is(200)["depends_on"], json!(["LOAD"]));
    // Who sees one group is told of one alone.
    let ann = server.token(&[("a", Role::Operator, &[Permission::Force])]).await;
    assert_eq!(server.get("/jobs/LOAD", &ann).await.is(200)["job"]["group"], "a");
    for hidden in ["/jobs/b.LOAD", "/jobs/ONLY", "/jobs/b.ONLY"] {
        server.get(hidden, &ann).await.is(404);
    }
    let ice = |jobs: &[&str]| json!({ "jobs": jobs, "mode": "ice", "reason": "test" });
    server.send(Method::POST, "/jobs/run-modes", &admin, &ice(&["LOAD"])).await.is(409);
    server.send(Method::POST, "/jobs/run-modes", &ann, &ice(&["b.LOAD"])).await.is(404);
    server.send(Method::POST, "/jobs/run-modes", &ann, &ice(&["LOAD"])).await.is(200);
    assert_eq!(server.get("/jobs/a.LOAD", &admin).await.is(200)["run_mode"], "ICE");
    assert!(server.get("/jobs/b.LOAD", &admin).await.is(200)["run_mode"].is_null());
    // Pages do not lose one of two jobs with one code.
    let first = server.get("/jobs?limit=1", &admin).await.is(200);
    let next = format!("/jobs?limit=1&cursor={}", first["next"].as_str().expect("more"));
    let second = server.get(&next, &admin).await.is(200);
    let groups = [&first, &second].map(|page| page["items"][0]["group"].clone());
    assert_eq!(groups, ["a", "b"]);
}

#[tokio::test]
async fn a_job_of_a_batch_is_named_in_full_and_lists_are_filtered_by_it() {
    let server = Server::new().await;
    server.apply(TEAMS).await;
    let admin = server.admin().await;
    for group in ["a", "b"] {
        server.run(&format!(r#"{{"batchNo":"202407","group":"{group}"}}"#)).await;
    }
    for group in ["a", "b"] {
        let at = format!("/groups/{group}/batches/202407");
        for name in ["LOAD".to_owned(), format!("{group}.LOAD")] {
            server.get(&format!("{at}/jobs/{name}"), &admin).await.is(200);
            server.get(&format!("{at}/jobs/{name}/log"), &admin).await.is(200);
            server.get(&format!("{at}/dag?focus={name}"), &admin).await.is(200);
        }
        let body = json!({ "action": "rerun", "jobs": [format!("{group}.LOAD")], "reason": group });
        server.send(Method::POST, &format!("{at}/actions"), &admin, &body).await.is(200);
    }
    server.get("/groups/a/batches/202407/jobs/b.LOAD", &admin).await.is(404);
    let problem = server.get("/groups/a/batches/202407/dag?focus=b.LOAD", &admin).await.is(400);
    assert_eq!(
        problem["detail"],
        "focus: there is no job b.LOAD here; did you mean LOAD? otherwise see all jobs without focus"
    );
    let ice = |job: &str| json!({ "jobs": [job], "mode": "ice", "reason": "test" });
    for job in ["a.LOAD", "b.LOAD"] {
        server.send(Method::POST, "/jobs/run-modes", &admin, &ice(job)).await.is(200);
    }
    for (filter, groups) in
        [("a.LOAD", json!(["a"])), ("b.LOAD", json!(["b"])), ("LOAD", json!(["b", "a"]))]
    {
        let acts = server.get(&format!("/audit?job={filter}&action=ice"), &admin).await.is(200);
        let found: Vec<_> = acts["items"]
            .as_array()
            .expect("acts")
            .iter()
            .map(|act| act["group"].clone())
            .collect();
        assert_eq!(json!(found), groups, "{filter}");
    }
    server.get("/audit?job=a%20b", &admin).await.is(400);
    server.get("/outbox?job=a%20b", &admin).await.is(400);
}
