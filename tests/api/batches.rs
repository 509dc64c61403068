//! Batches as front ends read them, on batches that ran.

use crate::api::server::{Answer, Server};
use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt as _;
use procession::db::session::{Session, SessionTarget, let_all_through};
use procession::domain::access::Role;
use procession::domain::batch::BatchStatus;
use procession::domain::id::{BatchId, GroupCode, JobCode};
use procession::domain::time::Millis;
use procession::store::batch::BatchFilter;
use procession::store::{self, Db, changed, glance};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

const GROUPS: &str = "
defaults: { type: SCRIPT, interpreter: sh }
groups: { gl: { name: Ledger }, ar: { name: Receivables } }
jobs:
  A: { group: gl, name: 月结, script: 'echo one; echo two; echo \"::output total=5\"' }
  B: { group: gl, depends_on: [A], retry_count: 1, script: 'echo bad; exit 3', params: [{ name: n, value: '${jobs.A.total}' }] }
  C: { group: gl, depends_on: [B], script: 'true' }
  D: { group: gl, depends_on: [A], script: 'true' }
  R: { group: ar, script: 'true' }
";

/// B fails once and is tried again a second later.
const LATE: &str = "
groups: { gl: { due: '00:00' }, ar: {} }
defaults: { type: SCRIPT, interpreter: sh, timeout_sec: 60 }
jobs:
  A: { group: gl, script: 'true' }
  B:
    group: gl
    depends_on: [A]
    idempotent: true
    retry_count: 1
    retry_delay_sec: 2
    script: 'test \"$PROCESSION_ATTEMPT\" -gt 1'
  R: { group: ar, script: 'true' }
";

/// Two batches of each group.
async fn bench() -> Server {
    let server = Server::new().await;
    server.apply(GROUPS).await;
    for no in ["202406", "202407"] {
        for group in ["gl", "ar"] {
            server.later(60_000);
            server.run(&json!({"batchNo": no, "group": group}).to_string()).await;
        }
    }
    server
}

fn texts(items: &Value, key: &str) -> Vec<String> {
    let all = items.as_array().expect("a list").iter();
    all.map(|item| item[key].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_list_holds_what_was_asked_for_page_by_page_and_nothing_of_groups_not_seen() {
    let server = bench().await;
    let token = server.admin().await;
    let list = server.get("/batches", &token).await.is(200);
    assert_eq!(texts(&list["items"], "group"), ["ar", "gl", "ar", "gl"]);
    let first = &list["items"][1];
    assert_eq!(first["status"], "FAILED");
    assert_eq!(first["jobs"], json!({"SUCCESS": 2, "FAILED": 1, "UPSTREAM_FAILED": 1}));
    for (query, found) in [
        ("group=gl", 2),
        ("group=gl,ar&status=failed", 2),
        ("status=SUCCESS", 2),
        ("batch_no=202407", 2),
        ("q=0240", 4),
        ("q=%25", 0),
        ("q=G", 2),
        ("from=2024-08-02", 0),
        ("to=2024-08-01", 4),
        ("type=monthly", 0),
        ("group=nobody", 0),
    ] {
        let list = server.get(&format!("/batches?{query}"), &token).await.is(200);
        assert_eq!(list["items"].as_array().expect("items").len(), found, "{query}");
    }
    let (mut seen, mut next) = (Vec::new(), String::new());
    for _ in 0..4 {
        let page = server.get(&format!("/batches?limit=1{next}"), &token).await.is(200);
        seen.extend(page["items"].as_array().expect("items").iter().map(|b| b["batch_id"].clone()));
        next = page["next"].as_str().map(|c| format!("&cursor={c}")).unwrap_or_default();
    }
    assert_eq!((seen, next.as_str()), (vec![json!(4), json!(3), json!(2), json!(1)], ""));
    for bad in ["status=odd", "from=yesterday", "limit=0", "cursor=x", "colour=red"] {
        server.get(&format!("/batches?{bad}"), &token).await.is(400);
    }

    let viewer = server.token(&[("ar", Role::Viewer, &[])]).await;
    let list = server.get("/batches?limit=2", &viewer).await.is(200);
    assert_eq!(texts(&list["items"], "group"), ["ar", "ar"]);
    assert_eq!(list["next"], Value::Null, "a page is whole after the filter");
    let list = server.get("/batches?group=gl", &viewer).await.is(200);
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn why_a_batch_is_late_names_the_chain_and_its_causes() {
    let server = Server::new().await;
    server.apply(LATE).await;
    let token = server.admin().await;
    server.run(&json!({"batchNo": "202407", "group": "gl"}).to_string()).await;
    let path = "/groups/gl/batches/202407/why-late";
    let found = server.get(path, &token).await.is(200);
    assert_eq!(
        (&found["status"], texts(&found["chain"], "job")),
        (&json!("SUCCESS"), vec!["A".into(), "B".into()])
    );
    assert!(found["late_by_ms"].as_i64() > Some(0), "{found}");
    assert!(found["due"].is_string() && found["expected_late_by_ms"].is_null(), "{found}");
    assert!(found["message"].as_str().is_some_and(|said| said.starts_with("Late by ")), "{found}");
    assert_eq!(found["causes"].as_array().map(Vec::len), Some(1), "{found}");
    let cause = &found["causes"][0];
    assert_eq!((&cause["job"], &cause["kind"]), (&json!("B"), &json!("retries")));
    // A batch that nothing delayed.
    server.run(&json!({"batchNo": "202407", "group": "ar"}).to_string()).await;
    let found = server.get("/groups/ar/batches/202407/why-late", &token).await.is(200);
    assert_eq!(
        (&found["due"], &found["late_by_ms"], &found["causes"]),
        (&Value::Null, &Value::Null, &json!([]))
    );
    assert!(
        found["message"].as_str().is_some_and(|said| said.starts_with("What decides")),
        "{found}"
    );
}

#[tokio::test]
async fn what_one_does_not_see_is_not_there() {
    let server = bench().await;
    let viewer = server.token(&[("ar", Role::Viewer, &[])]).await;
    let batch = "/groups/gl/batches/202407";
    for path in [
        "",
        "/why",
        "/eta",
        "/why-late",
        "/differences",
        "/dag",
        "/states",
        "/gantt",
        "/jobs/A",
        "/jobs/A/log",
        "/jobs/A/log.txt",
        "/jobs/A/values/0",
    ] {
        let answer = server.get(&format!("{batch}{path}"), &viewer).await;
        let hidden = answer.is(404);
        let missing =
            server.get(&format!("/groups/gl/batches/209901{path}"), &viewer).await.is(404);
        let words = |v: &Value| v["detail"].as_str().expect("detail").replace("209901", "202407");
        assert_eq!(words(&hidden), words(&missing), "{path}");
    }
    for path in [
        "/groups/gl/dag",
        "/groups/gl/grid",
        "/groups/gl/compare?a=202406&b=202407",
        "/jobs/A/history",
    ] {
        server.get(path, &viewer).await.is(404);
    }
    server.get("/groups/ar/batches/202407", &viewer).await.is(200);
    server.get("/groups/ar/batches/202407/jobs/NO", &viewer).await.is(404);
    let board = server.get("/dashboard", &viewer).await.is(200);
    assert_eq!(board["failures"], json!([]));
    assert_eq!(texts(&board["today"]["batches"], "group"), ["ar", "ar"]);
}

#[tokio::test]
async fn a_batch_is_shown_with_its_jobs_its_reasons_its_times_and_its_graph() {
    let server = bench().await;
    let token = server.admin().await;
    let batch = "/groups/gl/batches/202407";
    let answer = server.get(batch, &token).await;
    let tag = answer.headers["etag"].to_str().expect("a tag").to_owned();
    let shown = answer.is(200);
    let ended = ["SUCCESS", "FAILED", "UPSTREAM_FAILED", "SUCCESS"];
    assert_eq!(texts(&shown["jobs"], "status"), ended);
    assert_eq!(
        (&shown["eta"]["expected"], &shown["jobs"][0]["outputs"]),
        (&Value::Null, &Value::Null)
    );
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", authorization.as_str()), ("if-none-match", tag.as_str())];
    let again = server.sent(axum::http::Method::GET, batch, &headers, &Value::Null).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    let all = server.get(&format!("{batch}?outputs=true"), &token).await.is(200);
    assert_eq!(all["jobs"][0]["outputs"]["values"]["total"], "5");

    let why = server.get(&format!("{batch}/why"), &token).await.is(200);
    assert_eq!(texts(&why, "kind"), ["ended", "upstream"]);
    assert_eq!(why[1]["detail"]["jobs"], json!([{"job_code": "B", "status": "FAILED"}]));
    let gantt = server.get(&format!("{batch}/gantt"), &token).await.is(200);
    assert_eq!(texts(&gantt["items"], "job"), ["A", "B", "D", "C"]);
    assert_eq!(gantt["items"][1]["attempts"].as_array().expect("tries").len(), 2);
    assert!(gantt["items"][0]["planned_start"].is_string(), "{gantt}");
    let same = server.get(&format!("{batch}/differences"), &token).await.is(200);
    assert_eq!(same["items"], json!([]));

    let dag = server.get(&format!("{batch}/dag"), &token).await.is(200);
    let node = &dag["nodes"][0];
    assert_eq!(
        (&node["id"], &node["status"], &node["level"]),
        (&json!("A"), &json!("SUCCESS"), &json!(0))
    );
    assert!(["x", "y", "w", "h"].iter().all(|key| node[key].is_i64()), "{node}");
    let defined = server.get("/groups/gl/dag", &token).await.is(200);
    let places = |dag: &Value| -> Vec<Value> {
        dag["nodes"]
            .as_array()
            .expect("nodes")
            .iter()
            .map(|n| json!([n["id"], n["x"], n["y"], n["w"]]))
            .collect()
    };
    assert_eq!(places(&dag), places(&defined), "boxes stay where they are");
    let focus =
        server.get(&format!("{batch}/dag?focus=B&up=1&down=0&format=d3dag"), &token).await.is(200);
    assert_eq!(texts(&focus, "id"), ["A", "B"]);
    let svg = server.get(&format!("{batch}/dag?format=svg&direction=TB"), &token).await;
    assert!(svg.headers["content-type"] == "image/svg+xml" && svg.headers.contains_key("etag"));
    for bad in ["format=png", "focus=X", "up=1", "format=svg&layout=none", "direction=UP"] {
        server.get(&format!("{batch}/dag?{bad}"), &token).await.is(400);
    }
    let states = server.get(&format!("{batch}/states"), &token).await.is(200);
    assert_eq!(
        (states["is_all"].clone(), states["jobs"].as_array().expect("jobs").len()),
        (json!(true), 4)
    );
    let since = format!("{batch}/states?since={}", states["at"]);
    assert_eq!(server.get(&since, &token).await.is(200)["is_all"], false);
}

#[tokio::test]
async fn a_job_is_shown_with_all_that_is_known_of_it_and_its_log_is_read_in_pages_and_as_a_file() {
    let server = bench().await;
    let token = server.admin().await;
    let jobs = "/groups/gl/batches/202407/jobs";
    let panel = server.get(&format!("{jobs}/B"), &token).await.is(200);
    assert_eq!(
        panel["params"],
        json!([{"name": "n", "value": "5", "layer": "job", "fault": null}])
    );
    assert_eq!(texts(&panel["attempts"], "attempt").len(), 2);
    assert_eq!(texts(&panel["attempts"], "status"), ["RETRY_WAIT", "FAILED"]);
    assert_eq!(
        panel["parents"],
        json!([{"job_code": "A", "status": "SUCCESS", "when": "success"}])
    );
    assert_eq!(panel["below"], json!({"jobs": 1, "open": 0, "waiting": ["C"]}));
    assert_eq!((&panel["why"]["kind"], &panel["node"]), (&json!("ended"), &Value::Null));
    assert_eq!(panel["definition"]["script"], "echo bad; exit 3");
    assert!(server.get(&format!("{jobs}/A"), &token).await.is(200)["expected"]["p50_ms"].is_i64());

    let log = server.get(&format!("{jobs}/A/log?limit=1"), &token).await.is(200);
    let mut lines = texts(&log["items"], "text");
    let mut next = log["next"].clone();
    while let Some(cursor) = next.as_str() {
        let page =
            server.get(&format!("{jobs}/A/log?limit=1&cursor={cursor}"), &token).await.is(200);
        lines.extend(texts(&page["items"], "text"));
        next = page["next"].clone();
    }
    assert!(lines.iter().any(|l| l == "one") && lines.iter().any(|l| l == "two"), "{lines:?}");
    let rest = server.get(&format!("{jobs}/A/log?after=1:100000"), &token).await.is(200);
    assert_eq!(
        (&rest["items"], &rest["last"], &rest["is_over"]),
        (&json!([]), &json!("1:100000"), &json!(true))
    );
    let last = server.get(&format!("{jobs}/A/log?before=1:1000000&limit=1"), &token).await.is(200);
    assert_eq!(texts(&last["items"], "text").last(), lines.last());
    let only = server.get(&format!("{jobs}/B/log?attempt=2"), &token).await.is(200);
    assert!(only["items"].as_array().expect("items").iter().all(|l| l["attempt"] == 2), "{only}");
    server.get(&format!("{jobs}/A/log?after=x"), &token).await.is(400);

    let file: Answer = server.get(&format!("{jobs}/B/log.txt"), &token).await;
    assert_eq!(file.status.as_u16(), 200);
    let header = |name: &str| file.headers[name].to_str().expect(name).to_owned();
    assert_eq!(header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(header("content-disposition"), "attachment; filename*=UTF-8''gl-202407-B.log.txt");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert!(
        file.text.starts_with("-- start 1\n") && file.text.contains("-- start 2\n"),
        "{}",
        file.text
    );
    assert_eq!(file.text.matches("| bad").count(), 2, "{}", file.text);
}

#[tokio::test]
async fn batches_stand_beside_each_other() {
    let server = bench().await;
    let token = server.admin().await;
    let grid = server.get("/groups/gl/grid?limit=3", &token).await.is(200);
    assert_eq!(texts(&grid["batches"], "batch_no"), ["202407", "202406"]);
    assert_eq!(texts(&grid["jobs"], "job_code"), ["A", "B", "C"]);
    assert_eq!((&grid["next"], &grid["all_jobs"]), (&json!("3"), &json!(4)));
    assert_eq!(texts(&grid["jobs"][1]["cells"], "status"), ["FAILED", "FAILED"]);
    let rest = server.get("/groups/gl/grid?cursor=3&batches=1", &token).await.is(200);
    assert_eq!(
        (texts(&rest["jobs"], "job_code"), &rest["next"]),
        (vec!["D".to_owned()], &Value::Null)
    );
    let both = server.get("/groups/gl/compare?a=202406&b=202407", &token).await.is(200);
    assert_eq!(texts(&both["jobs"], "job_code"), ["A", "B", "C", "D"]);
    assert_eq!((&both["added"], &both["definition"]), (&json!([]), &json!([])));
    assert!(both["jobs"][0]["longer_ms"].is_i64(), "{both}");
    let runs = server.get("/jobs/B/history?limit=3", &token).await.is(200);
    assert_eq!(texts(&runs["items"], "batch_no"), ["202407", "202406"]);
    let one = server.get("/jobs/B/history?limit=1", &token).await.is(200);
    let next = one["next"].as_str().expect("more");
    let two = server.get(&format!("/jobs/B/history?limit=1&cursor={next}"), &token).await.is(200);
    assert_eq!(texts(&two["items"], "batch_no"), ["202406"]);

    let board = server.get("/dashboard?zone=Asia/Shanghai", &token).await.is(200);
    assert_eq!(board["today"]["counts"], json!({"SUCCESS": 2, "FAILED": 2}));
    assert_eq!(texts(&board["failures"], "job"), ["B", "B"]);
    let days = board["days"].as_array().expect("days");
    assert_eq!((days.len(), &days[29]["success"], &days[29]["failed"]), (30, &json!(2), &json!(2)));
    server.get("/dashboard?zone=Mars", &token).await.is(400);
}

/// The events of a stream until one holds this text.
async fn until(stream: &mut BodyDataStream, text: &str) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        let piece = tokio::time::timeout(Duration::from_secs(10), stream.next()).await;
        let piece = piece.expect("in time").expect("not the end").expect("a piece");
        let piece = String::from_utf8(piece.to_vec()).expect("text");
        let is_it = piece.contains(text);
        heard.push(piece);
        if is_it {
            return heard;
        }
    }
}

#[tokio::test]
async fn who_listens_hears_what_happens_in_order_and_goes_on_where_he_was() {
    let server = bench().await;
    let token = server.token(&[("gl", Role::Viewer, &[])]).await;
    let authorization = format!("Bearer {token}");
    let mut headers = vec![("authorization", authorization.as_str())];
    let body: Body = server.listen("/events", &headers).await;
    let mut stream = body.into_data_stream();
    assert_eq!(until(&mut stream, "retry").await, ["retry: 500\n\n"]);
    server.run(r#"{"batchNo":"202408","group":"ar"}"#).await;
    server.run(r#"{"batchNo":"202408","group":"gl"}"#).await;
    server.house.poll_changes().await.expect("look");
    let heard = until(&mut stream, "event: batch").await;
    assert!(heard.iter().all(|event| event.contains(r#""group":"gl""#)), "{heard:?}");
    let of = |event: &String| -> Value {
        let data = event.lines().find_map(|l| l.strip_prefix("data: ")).expect("data");
        serde_json::from_str(data).expect("JSON")
    };
    let jobs: Vec<String> = heard
        .iter()
        .filter(|e| e.contains("event: job"))
        .map(|e| format!("{} {}", of(e)["job"], of(e)["status"]).replace('"', ""))
        .collect();
    let place = |what: &str| {
        jobs.iter().position(|j| j == what).unwrap_or_else(|| panic!("{what}: {jobs:?}"))
    };
    assert!(place("A RUNNING") < place("A SUCCESS") && place("A SUCCESS") < place("B RUNNING"));
    assert!(place("B RETRY_WAIT") < place("B FAILED"), "{jobs:?}");
    place("C UPSTREAM_FAILED");
    assert_eq!(of(heard.last().expect("a batch"))["status"], "FAILED");

    let last = heard[0].lines().find_map(|l| l.strip_prefix("id: ")).expect("an id").to_owned();
    headers.push(("last-event-id", &last));
    let mut again = server.listen("/events", &headers).await.into_data_stream();
    let missed = until(&mut again, "UPSTREAM_FAILED").await;
    assert!(missed.iter().any(|e| e.contains(r#""job":"B""#)), "{missed:?}");
    headers.pop();
    headers.push(("last-event-id", "99999999"));
    let mut odd = server.listen("/events", &headers).await.into_data_stream();
    assert!(until(&mut odd, "event: reset").await.len() == 2);
}

/// Each new statement once, with and without groups.
async fn ask_everything(db: &Db) {
    let group = GroupCode::parse("gl").expect("a group");
    let job = JobCode::parse("A").expect("a job");
    let groups = [group.clone()];
    let asked = BatchFilter {
        groups: Some(groups.to_vec()),
        batch_no: Some("202407".parse_no()),
        text: Some("G%".to_owned()),
        statuses: BatchStatus::ALL.to_vec(),
        batch_type: Some("m".to_owned()),
        from: Some(Millis(0)),
        to: Some(Millis(0)),
        before: Some(BatchId(7)),
    };
    let ids = [BatchId(1), BatchId(2), BatchId(3)];
    let mut tx = db.begin_read().await.expect("read");
    for asked in [asked, BatchFilter::default()] {
        store::batch::list_page(&mut tx, &asked, 10).await.expect("a page");
    }
    store::batch::counts_of(&mut tx, &ids).await.expect("counts");
    let days: Vec<Millis> = (0..30).map(|i| Millis(i * 86_400_000)).collect();
    for groups in [None, Some(&groups[..]), Some(&[][..])] {
        let spans = glance::spans(&mut tx, &days, groups).await.expect("spans");
        assert_eq!(spans.len(), 30);
    }
    glance::failures(&mut tx, &ids).await.expect("failures");
    glance::cells(&mut tx, &ids).await.expect("cells");
    glance::tries(&mut tx, ids[0]).await.expect("tries");
    glance::list_runs(&mut tx, &group, &job, None, 5).await.expect("runs");
    glance::pending_first(&mut tx, 5).await.expect("firings");
    let named = store::job_list::find_named(&mut tx, job.as_str(), None).await;
    drop(named.expect("an answer"));
    changed::last_key(&mut tx).await.expect("the last");
    changed::after(&mut tx, 0, 10).await.expect("changes");
    changed::of_keys(&mut tx, &[1, 2, 3]).await.expect("changes");
    changed::changed_rows(&mut tx, ids[0], 0).await.expect("rows");
    changed::open_batches(&mut tx).await.expect("open");
    changed::of_batches(&mut tx, &ids).await.expect("batches");
    let row = procession::domain::id::QueueId(1);
    store::outbox::of_row(&mut tx, ids[0], row, 5).await.expect("mails");
    store::log::lines_before(
        &mut tx,
        row,
        store::log::LogPosition { attempt: 1, line_no: u64::MAX },
        5,
    )
    .await
    .expect("lines");
    store::queue::outputs(&mut tx, &[row]).await.expect("outputs");
    ask_for_access(&mut tx).await;
}

/// What is asked about those whose streams are open, and before a log-in.
async fn ask_for_access(tx: &mut store::Tx) {
    for ids in [[].into(), [1, 2, 3].into()] {
        store::user_session::by_ids(tx, &ids).await.expect("sessions");
        store::api_token::by_ids(tx, &ids).await.expect("tokens");
        store::user::by_ids(tx, &ids).await.expect("users");
        store::user::grants_of(tx, &ids).await.expect("grants");
    }
    for but in [None, Some(7)] {
        let tries = store::login_attempt::tries(tx, "x", "10.0.0.1", but, Millis(0)).await;
        assert_eq!(tries.expect("tries").last_of_name, None);
    }
}

trait ParseNo {
    fn parse_no(&self) -> procession::domain::id::BatchNo;
}

impl ParseNo for str {
    fn parse_no(&self) -> procession::domain::id::BatchNo {
        procession::domain::id::BatchNo::parse(self).expect("a number")
    }
}

async fn by_hand(url: &str, sql: &str) {
    let timeout = Duration::from_secs(20);
    let target = SessionTarget {
        url: url.to_owned(),
        password: None,
        label: "test".to_owned(),
        timeout,
        guard: let_all_through,
    };
    let mut session = Session::open_session(&target).await.unwrap_or_else(|e| panic!("{url}: {e}"));
    session.run_statement(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    session.close().await;
}

#[tokio::test]
async fn every_database_understands_what_is_asked() {
    let server = bench().await;
    ask_everything(&server.app.db).await;
    for (variable, usual, admin, drop) in [
        (
            "PROCESSION_TEST_POSTGRES",
            "postgres://postgres@127.0.0.1:5432",
            "/postgres",
            " WITH (FORCE)",
        ),
        ("PROCESSION_TEST_MYSQL", "mysql://root@127.0.0.1:3306", "", ""),
    ] {
        let base = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
        let name = format!("procession_api_{}", std::process::id());
        by_hand(&format!("{base}{admin}"), &format!("CREATE DATABASE {name}")).await;
        let url = format!("{base}/{name}");
        let settings =
            procession::config::Config::load_file(None).expect("settings").database_settings();
        let settings = procession::db::ConnectSettings { url: url.into(), ..settings };
        let db = Db::connect(&settings).await.expect("connect");
        db.migrate().await.expect("migrate");
        ask_everything(&db).await;
        db.close().await;
        by_hand(&format!("{base}{admin}"), &format!("DROP DATABASE {name}{drop}")).await;
    }
}

/// 2,000 jobs in 40 waves, each after three of the wave before.
fn large() -> String {
    let mut yaml = "groups: { big: { name: Big } }\ndefaults: { type: NOOP }\njobs:\n".to_owned();
    for i in 0..2_000usize {
        let (wave, at) = (i / 50, i % 50);
        let parents = [at, (at * 7 + 3) % 50, (at * 11 + 20) % 50];
        let mut parents: Vec<String> = parents
            .iter()
            .map(|p| format!("J{:04}", wave.wrapping_sub(1).wrapping_mul(50) + p))
            .collect();
        parents.sort();
        parents.dedup();
        let after =
            if wave == 0 { String::new() } else { format!("depends_on: [{}]", parents.join(", ")) };
        let _never_fails = writeln!(yaml, "  J{i:04}: {{ {after} }}");
    }
    yaml
}

#[tokio::test]
#[ignore = "measures: cargo test --test it -- --ignored --nocapture a_large_batch"]
#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "it measures, and tells")]
async fn a_large_batch() {
    let server = Server::new().await;
    server.apply(&large()).await;
    let token = server.admin().await;
    for no in ["202406", "202407"] {
        let began = Instant::now();
        server.run(&json!({"batchNo": no, "group": "big"}).to_string()).await;
        println!("{:>9} ms to run it", began.elapsed().as_millis());
    }
    let batch = "/groups/big/batches/202407";
    for path in [
        "/dashboard",
        "/batches",
        batch,
        &format!("{batch}?outputs=true"),
        &format!("{batch}/why"),
        &format!("{batch}/eta"),
        &format!("{batch}/why-late"),
        &format!("{batch}/gantt"),
        &format!("{batch}/dag"),
        &format!("{batch}/dag"),
        &format!("{batch}/dag?layout=none"),
        &format!("{batch}/dag?reduce=transitive"),
        &format!("{batch}/dag?focus=J1000&up=2&down=2"),
        &format!("{batch}/states"),
        &format!("{batch}/states?since=7999"),
        &format!("{batch}/jobs/J1000"),
        &format!("{batch}/jobs/J1000/log"),
        &format!("{batch}/differences"),
        "/groups/big/grid?limit=2000",
        "/groups/big/compare?a=202406&b=202407",
        "/jobs/J1000/history",
        "/groups/big/dag",
    ] {
        let began = Instant::now();
        let answer = server.get(path, &token).await;
        assert_eq!(answer.status.as_u16(), 200, "{path}: {}", answer.text);
        println!("{:>9} ms {:>9} bytes {path}", began.elapsed().as_millis(), answer.text.len());
    }
}

const LARGE: &str = "
defaults: { type: SCRIPT, interpreter: sh }
groups: { gl: { name: Ledger }, ar: {} }
jobs:
  BIG:
    group: gl
    script: |
      printf '::output doc='
      head -c 1500000 /dev/zero | tr '\\000' x
      echo 月
      echo ::output n=1
  USE:
    group: gl
    depends_on: [BIG]
    script: 'true'
    params: [{ name: p, value: '${jobs.BIG.doc}' }]
  OTHER: { group: ar, script: 'true' }
";

#[tokio::test]
async fn a_value_that_is_stored_aside_is_shown_by_its_length_and_downloaded_whole() {
    let server = Server::new().await;
    server.apply(LARGE).await;
    server.run(r#"{"batchNo": "202407", "group": "gl"}"#).await;
    let token = server.token(&[("gl", Role::Viewer, &[])]).await;
    let job = "/groups/gl/batches/202407/jobs/BIG";
    let shown = server.get(job, &token).await.is(200);
    let outputs = &shown["job"]["outputs"];
    let stored = &outputs["stored"]["doc"];
    assert_eq!(
        (&stored["bytes"], &stored["position"]),
        (&json!(1_500_003), &json!(0)),
        "{outputs}"
    );
    assert_eq!(outputs["values"], json!({"n": "1"}));
    assert!(shown.to_string().len() < 20_000, "the value itself is not in it");
    let file: Answer = server.get(&format!("{job}/values/0"), &token).await;
    assert_eq!(file.status.as_u16(), 200);
    let header = |name: &str| file.headers[name].to_str().expect(name).to_owned();
    assert_eq!(header("content-length"), "1500003");
    assert_eq!(header("content-disposition"), "attachment; filename*=UTF-8''gl-202407-BIG-doc.txt");
    assert!(file.text == format!("{}月", "x".repeat(1_500_000)), "{} bytes", file.text.len());
    server.get(&format!("{job}/values/1"), &token).await.is(404);
    let user = server.get("/groups/gl/batches/202407/jobs/USE", &token).await.is(200);
    assert_eq!(user["params"][0]["value"], "<text of 1500003 bytes, stored aside>", "{user}");
    let other = server.token(&[("ar", Role::Viewer, &[])]).await;
    server.get(&format!("{job}/values/0"), &other).await.is(404);
}
