//! What past runs and deadlines say, on batches that ran.

use crate::api::server::Server;
use axum::http::Method;
use procession::domain::access::Role;
use serde_json::{Value, json};

/// FLAKY succeeds at its second attempt, BROKEN never.
const RUNS: &str = "
groups: { gl: { name: Ledger, due: '04:00' }, ar: { name: Receivables } }
defaults: { type: SCRIPT, interpreter: sh, timeout_sec: 60, idempotent: true }
jobs:
  STEADY: { group: gl, type: NOOP }
  FLAKY: { group: gl, retry_count: 1, retry_delay_sec: 2, script: 'test \"$PROCESSION_ATTEMPT\" -gt 1' }
  BROKEN: { group: ar, script: 'exit 3' }
  NEXT: { group: ar, depends_on: [BROKEN], type: NOOP }
schedules:
  nightly: { group: gl, cron: '0 0 3 * * ?', batch_no: day(0), time_zone: UTC }
";

async fn run(server: &Server, group: &str, no: &str) {
    server.later(60_000);
    server.run(&json!({"batchNo": no, "group": group}).to_string()).await;
}

async fn bench() -> Server {
    let server = Server::new().await;
    server.apply(RUNS).await;
    for no in 1..=7 {
        run(&server, "gl", &no.to_string()).await;
    }
    run(&server, "ar", "1").await;
    server
}

fn find<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let items = list["items"].as_array().expect("a list");
    items.iter().find(|one| one[key] == name).unwrap_or_else(|| panic!("{name}: {list}"))
}

#[tokio::test]
async fn jobs_are_ranked_by_what_their_runs_were() {
    let server = bench().await;
    let token = server.admin().await;
    let found = server.get("/insights/jobs?order=flakiest", &token).await.is(200);
    assert_eq!(
        (&found["runs"], &found["jobs"], &found["is_cut"]),
        (&json!(15), &json!(3), &json!(false))
    );
    // What is kept from running by another says nothing of itself.
    let names: Vec<&Value> =
        found["items"].as_array().expect("a list").iter().map(|one| &one["job"]).collect();
    assert_eq!(names, ["FLAKY", "BROKEN", "STEADY"], "{found}");
    let flaky = find(&found, "job", "FLAKY");
    let counts =
        ["runs", "succeeded", "failed", "repeated", "flaky_percent"].map(|key| &flaky[key]);
    assert_eq!(counts, [7, 7, 0, 7, 100].map(|n| json!(n)).each_ref());
    let broken = find(&found, "job", "BROKEN");
    assert_eq!(
        (&broken["failed"], &broken["flaky_percent"], &broken["p50_ms"]),
        (&json!(1), &json!(0), &Value::Null)
    );
    let found = server.get("/insights/jobs?order=failures&limit=1", &token).await.is(200);
    assert_eq!(
        (&found["items"][0]["job"], found["items"].as_array().map(Vec::len)),
        (&json!("BROKEN"), Some(1))
    );
    server.get("/insights/jobs?order=fastest", &token).await.is(400);
    server.get("/insights/jobs?days=0", &token).await.is(400);

    // Only what one sees.
    let viewer = server.token(&[("ar", Role::Viewer, &[])]).await;
    let found = server.get("/insights/jobs", &viewer).await.is(200);
    assert_eq!(found["jobs"], 1, "{found}");
    server.get("/groups/gl/trend", &viewer).await.is(404);
    // A period without a run.
    server.later(40 * 86_400_000);
    let token = server.admin().await;
    let found = server.get("/insights/jobs", &token).await.is(200);
    assert_eq!((&found["items"], &found["runs"]), (&json!([]), &json!(0)));
}

#[tokio::test]
async fn groups_have_their_rate_of_success() {
    let server = bench().await;
    let token = server.admin().await;
    let found = server.get("/insights/groups", &token).await.is(200);
    let (gl, ar) = (find(&found, "group", "gl"), find(&found, "group", "ar"));
    assert_eq!((&gl["batches"], &gl["success_percent"]), (&json!(7), &json!(100.0)));
    assert_eq!((&ar["batches"], &ar["success_percent"]), (&json!(1), &json!(0.0)));
    assert_eq!((&ar["last_status"], &ar["last_batch_no"]), (&json!("FAILED"), &json!("1")));
    // The retry of FLAKY waits for two seconds.
    assert!(gl["p50_ms"].as_i64() >= Some(2_000), "{gl}");
    assert_eq!((&ar["p50_ms"], &ar["last_ms"]), (&Value::Null, &Value::Null));
    let found = server.get("/insights/groups?group=ar", &token).await.is(200);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_trend_has_the_band_of_what_was_before() {
    let server = bench().await;
    let token = server.admin().await;
    let gl = server.get("/groups/gl/trend", &token).await.is(200);
    let points = gl["points"].as_array().expect("points");
    let numbers: Vec<&Value> = points.iter().map(|point| &point["batch_no"]).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6", "7"], "the oldest first");
    // Five have to have succeeded before there is anything usual.
    let has_band: Vec<bool> = points.iter().map(|point| point["p50_ms"].is_i64()).collect();
    assert_eq!(has_band, [false, false, false, false, false, true, true]);
    assert_eq!((&gl["runs"], &gl["succeeded"], &gl["job"]), (&json!(7), &json!(7), &Value::Null));
    let flaky = server.get("/groups/gl/trend?job=FLAKY&batches=3", &token).await.is(200);
    assert_eq!(flaky["points"].as_array().map(Vec::len), Some(3));
    assert_eq!(flaky["points"][0]["attempts"], 2, "{flaky}");
    let none = server.get("/groups/gl/trend?job=NOT_THERE", &token).await.is(200);
    assert_eq!(none["points"], json!([]));
    server.get("/groups/nowhere/trend", &token).await.is(404);

    // A version is marked where the first batch after it is.
    server.later(60_000);
    let text = RUNS.replace("type: NOOP }\n  FLAKY", "type: NOOP, priority: 7 }\n  FLAKY");
    let body = json!({"text": text, "remark": "STEADY goes first"});
    server.send(Method::POST, "/definition/apply", &token, &body).await.is(200);
    run(&server, "gl", "8").await;
    let gl = server.get("/groups/gl/trend", &token).await.is(200);
    let version = gl["versions"].as_array().and_then(|all| all.last()).expect("a version");
    assert_eq!(
        (&version["first_batch_no"], &version["remark"]),
        (&json!("8"), &json!("STEADY goes first"))
    );
}

#[tokio::test]
async fn the_board_has_what_ran_and_what_is_planned() {
    // The clock stands at midnight; the schedule is due at three, the deadline is at four.
    let server = bench().await;
    let token = server.admin().await;
    let body = json!({"text": RUNS, "remark": "with its schedule"});
    server.send(Method::POST, "/definition/apply", &token, &body).await.is(200);
    let board = server.get("/insights/deadlines", &token).await.is(200);
    assert_eq!(board["counts"], json!({"failed": 1, "met": 3, "on_time": 1}), "{board}");
    assert_eq!(board["left_out"], 4, "of each group the last three that ended");
    let items = board["items"].as_array().expect("a list");
    assert_eq!((&items[0]["group"], &items[0]["standing"]), (&json!("ar"), &json!("failed")));
    let planned = find(&board, "schedule", "nightly");
    assert_eq!(planned["start"], "2024-08-01T03:00:00.000Z");
    assert_eq!(
        (&planned["due"], &planned["late_by_ms"]),
        (&json!("2024-08-01T04:00:00.000Z"), &Value::Null)
    );
    assert!(planned["expected_end"].as_str() > Some("2024-08-01T03:00:02"), "{planned}");
    assert_eq!((&planned["name"], &planned["batch_no"]), (&json!("Ledger"), &Value::Null));
    // A batch that is opened after the deadline of its day has missed it.
    server.later(4 * 3_600_000);
    run(&server, "gl", "8").await;
    let board = server.get("/insights/deadlines?group=gl&hours=1", &token).await.is(200);
    let last = find(&board, "batch_no", "8");
    assert_eq!(
        (&last["standing"], &last["due"]),
        (&json!("missed"), &json!("2024-08-01T04:00:00.000Z"))
    );
    assert!(last["late_by_ms"].as_i64() > Some(60_000), "{last}");
    server.get("/insights/deadlines?hours=169", &token).await.is(400);
    let viewer = server.token(&[("ar", Role::Viewer, &[])]).await;
    let board = server.get("/insights/deadlines", &viewer).await.is(200);
    let groups: Vec<&Value> =
        board["items"].as_array().expect("a list").iter().map(|one| &one["group"]).collect();
    assert_eq!(groups, ["ar"], "{board}");
}

#[tokio::test]
async fn runs_are_one_list_with_filters_and_pages() {
    let server = bench().await;
    let token = server.admin().await;
    let whole = server.get("/runs", &token).await.is(200);
    let name = |run: &Value| {
        format!("{}/{}/{}", run["group"], run["batch_no"], run["job"]).replace('"', "")
    };
    let names = |list: &Value| -> Vec<String> {
        list["items"].as_array().expect("a list").iter().map(name).collect()
    };
    let all = names(&whole);
    assert_eq!(all.len(), 16, "{whole}");
    assert_eq!(all[..4], ["ar/1/BROKEN", "ar/1/NEXT", "gl/7/STEADY", "gl/7/FLAKY"], "{whole}");
    // Page by page the same, each once.
    let mut paged = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("/runs?limit=3{cursor}"), &token).await.is(200);
        paged.extend(names(&page));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(paged, all);
    let of =
        async |query: &str| names(&server.get(&format!("/runs?{query}"), &token).await.is(200));
    assert_eq!(of("status=failed,UPSTREAM_FAILED").await, ["ar/1/BROKEN", "ar/1/NEXT"]);
    assert_eq!(of("q=teady&group=gl&limit=1").await, ["gl/7/STEADY"]);
    assert_eq!(of("q=%25").await, Vec::<String>::new(), "a sign of patterns is a sign");
    assert_eq!(of("from=2024-08-02").await, Vec::<String>::new());
    assert_eq!(of("to=2024-07-31").await, Vec::<String>::new());
    assert_eq!(of("from=2024-08-01&to=2024-08-01").await.len(), 16);
    server.get("/runs?status=SAD", &token).await.is(400);
    let viewer = server.token(&[("ar", Role::Viewer, &[])]).await;
    let seen = server.get("/runs", &viewer).await.is(200);
    assert_eq!(names(&seen), ["ar/1/BROKEN", "ar/1/NEXT"]);
    let flaky = server.get("/runs?q=FLAKY&limit=1", &token).await.is(200);
    let flaky = &flaky["items"][0];
    assert_eq!((&flaky["attempt"], &flaky["status"]), (&json!(2), &json!("SUCCESS")));
}
