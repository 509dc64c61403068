//! Changes of batches and jobs: allowed where they are, seen before they are done, on record, and once.

use crate::api::server::{Answer, Server};
use axum::http::Method;
use procession::domain::access::{Permission, Role};
use serde_json::{Value, json};

/// Two groups: `gl` of three jobs, `ar` of one.
const TWO_GROUPS: &str = "
groups: {gl: {type: monthly}, ar: {type: monthly}}
jobs:
  - {code: A, group: gl, type: NOOP, tags: [night]}
  - {code: B, group: gl, type: NOOP}
  - {code: C, group: gl, type: NOOP}
  - {code: X, group: ar, type: NOOP}
dependencies: [{job_code: B, depends_on: A}, {job_code: C, depends_on: B}]
";

async fn post(server: &Server, path: &str, token: &str, body: Value) -> Answer {
    server.send(Method::POST, path, token, &body).await
}

/// A server with a batch 202407 of each group.
async fn with_batches() -> Server {
    let server = Server::new().await;
    server.apply(TWO_GROUPS).await;
    let admin = server.admin().await;
    let order = json!({"type": "monthly", "batch_no": "202407", "reason": "month end"});
    let opened = post(&server, "/batches", &admin, order).await.is(200);
    assert_eq!(opened["batches"].as_array().map(Vec::len), Some(2), "{opened}");
    server
}

async fn audit(server: &Server) -> Vec<Value> {
    let mut tx = server.app.db.begin_read().await.expect("read");
    let all = procession::store::audit::list_records(&mut tx, &Default::default(), 100)
        .await
        .expect("list");
    let one = |r: &procession::store::audit::AuditRecord| {
        json!({"action": r.entry.action, "by": r.by.actor, "reason": r.entry.reason,
            "job": r.entry.job, "group": r.entry.group})
    };
    all.iter().map(one).collect()
}

const ACTIONS: &str = "/groups/gl/batches/202407/actions";

#[tokio::test]
async fn what_would_change_is_shown_and_exactly_that_is_done() {
    let server = with_batches().await;
    let user = server.user("olga", &[("gl", Role::Operator, &[])]).await;
    let token = server.token_of(&user, 1).await;
    let wish = json!({"action": "hold", "jobs": ["A", "B"]});
    let ahead = post(&server, ACTIONS, &token, wish.clone()).await.is(200);
    assert_eq!(ahead["written"], false);
    assert_eq!(ahead["count"], 2);
    assert_eq!(ahead["needs"], json!(["run"]));
    assert_eq!(ahead["lines"][0]["job_code"], "A");
    assert_eq!(ahead["lines"][0]["to"], "HELD");
    let mut done = wish.clone();
    done["seen"] = ahead["seen"].clone();
    let silent = post(&server, ACTIONS, &token, done.clone()).await;
    assert!(silent.is(422)["detail"].as_str().is_some_and(|d| d.contains("reason")));
    done["reason"] = json!("rates are missing");
    assert_eq!(post(&server, ACTIONS, &token, done.clone()).await.is(200)["written"], true);
    let record = &audit(&server).await[0];
    assert_eq!((&record["action"], &record["by"]), (&json!("hold"), &json!("olga")));
    assert_eq!(record["reason"], "rates are missing");
    // The same again: both are held, so it is not what was seen any more.
    let again = post(&server, ACTIONS, &token, done).await;
    assert!(again.status.is_client_error(), "{}", again.text);
}

#[tokio::test]
async fn a_batch_that_went_on_meanwhile_is_not_changed() {
    let server = with_batches().await;
    let token = server.token(&[("gl", Role::Operator, &[])]).await;
    let wish = json!({"action": "hold", "filter": {"status": "PENDING,QUEUED"}});
    let ahead = post(&server, ACTIONS, &token, wish.clone()).await.is(200);
    assert_eq!(ahead["count"], 3);
    let one = json!({"action": "hold", "jobs": ["C"]});
    let seen = post(&server, ACTIONS, &token, one.clone()).await.is(200)["seen"].clone();
    let mut one = one;
    (one["seen"], one["reason"]) = (seen, json!("mine"));
    post(&server, ACTIONS, &token, one).await.is(200);
    let mut late = wish;
    (late["seen"], late["reason"]) = (ahead["seen"].clone(), json!("late"));
    let refused = post(&server, ACTIONS, &token, late).await;
    let problem = refused.is(409);
    assert_eq!(problem["type"], "urn:procession:problem:moved");
    assert_eq!(problem["preview"]["count"], 2, "{problem}");
}

#[tokio::test]
async fn each_action_takes_its_permission_in_its_group() {
    let server = with_batches().await;
    let viewer = server.token(&[("gl", Role::Viewer, &[])]).await;
    let operator = server.token(&[("gl", Role::Operator, &[])]).await;
    let forcer = server.token(&[("gl", Role::Operator, &[Permission::Force])]).await;
    let author = server.token(&[("gl", Role::Author, &[])]).await;
    let hold = json!({"action": "hold", "jobs": ["A"]});
    let skip = json!({"action": "skip", "jobs": ["A"]});
    for (token, wish, status) in [
        (&viewer, &hold, 403),
        (&author, &hold, 403),
        (&operator, &hold, 200),
        (&operator, &skip, 403),
        (&forcer, &skip, 200),
    ] {
        post(&server, ACTIONS, token, wish.clone()).await.is(status);
    }
    // What is not seen is not there, and looks like what is not there.
    let there = post(&server, "/groups/ar/batches/202407/actions", &forcer, hold.clone()).await;
    let absent = post(&server, "/groups/no/batches/202407/actions", &forcer, hold.clone()).await;
    assert_eq!(there.is(404)["detail"], "there is no batch 202407 of group ar");
    assert_eq!(absent.is(404)["detail"], "there is no batch 202407 of group no");
    for (path, token, status) in [
        ("/groups/gl/batches/202407/pause", &viewer, 403),
        ("/groups/gl/batches/202407/pause", &operator, 200),
        ("/groups/ar/batches/202407/pause", &operator, 404),
        ("/groups/gl/batches/202407/resume", &operator, 200),
        ("/groups/gl/batches/202407/resume", &operator, 409),
        ("/groups/gl/batches/202407/kill", &author, 403),
        ("/groups/gl/batches/202407/kill", &operator, 200),
    ] {
        post(&server, path, token, json!({"reason": "why"})).await.is(status);
    }
    let actions: Vec<Value> = audit(&server).await.iter().map(|a| a["action"].clone()).collect();
    let (denied, done): (Vec<_>, Vec<_>) =
        actions.into_iter().partition(|action| *action == json!("request denied"));
    assert_eq!(done[..3], [json!("kill"), json!("resume"), json!("pause")]);
    assert_eq!(
        denied.len(),
        7,
        "each 403 above, and one of each who reached for a group that is not seen"
    );
}

#[tokio::test]
async fn ids_in_bodies_are_looked_at_as_those_in_paths() {
    let server = with_batches().await;
    let operator = server.token(&[("gl", Role::Operator, &[Permission::Force])]).await;
    // An order of a type opens the batches of all its groups.
    let order = json!({"type": "monthly", "batch_no": "202408", "reason": "next"});
    post(&server, "/batches", &operator, order).await.is(404);
    let order = json!({"group": "ar", "batch_no": "202408", "reason": "next"});
    post(&server, "/batches", &operator, order).await.is(404);
    let order = json!({"group": "gl", "batch_no": "202408", "reason": "next", "dry_run": true});
    assert_eq!(post(&server, "/batches", &operator, order.clone()).await.is(200)["written"], false);
    let mut order = order;
    order["dry_run"] = json!(false);
    post(&server, "/batches", &operator, order.clone()).await.is(200);
    let twice = post(&server, "/batches", &operator, order).await;
    assert!(twice.is(422)["detail"].as_str().is_some_and(|d| d.contains("exists already")));
    // A number that names no month is refused in both ways of asking, and opened as free text on record.
    let mut order = json!({"group": "gl", "batch_no": "2024-09", "reason": "trial"});
    for dry_run in [true, false] {
        order["dry_run"] = json!(dry_run);
        let refused = post(&server, "/batches", &operator, order.clone()).await.is(422);
        let said =
            "group gl is monthly, and 2024-09 is not the number of a month; did you mean 202409?";
        assert!(refused["detail"].as_str().is_some_and(|d| d.contains(said)), "{refused}");
    }
    let ahead = post(&server, "/batches/plan", &operator, order.clone()).await.is(200);
    assert!(
        ahead["refused"][0]["reason"].as_str().is_some_and(|r| r.contains("202409?")),
        "{ahead}"
    );
    order["free_text"] = json!(true);
    post(&server, "/batches", &operator, order).await.is(200);
    let on_record = audit(&server).await;
    let free = on_record.iter().find(|e| e["action"] == "open-free-text").expect("on record");
    let open =
        on_record.iter().find(|e| e["action"] == "open" && e["batch_no"] == free["batch_no"]);
    let open = open.unwrap_or_else(|| panic!("{on_record:?}"));
    assert_eq!((&free["actor"], &free["host"]), (&open["actor"], &open["host"]), "one actor");
    let modes = json!({"jobs": ["A", "X"], "mode": "ice", "reason": "why"});
    post(&server, "/jobs/run-modes", &operator, modes).await.is(404);
    let modes = json!({"jobs": ["A"], "mode": "ice", "reason": "why"});
    assert_eq!(post(&server, "/jobs/run-modes", &operator, modes).await.is(200)["run_mode"], "ICE");
    let foreign = json!({"group": "ar", "minutes": 5, "reason": "why"});
    post(&server, "/snoozes", &operator, foreign).await.is(404);
    let own = json!({"group": "gl", "minutes": 5, "reason": "why"});
    post(&server, "/snoozes", &operator, own).await.is(200);
}

#[tokio::test]
async fn a_change_that_is_sent_twice_is_done_once() {
    let server = with_batches().await;
    let token = server.token(&[("gl", Role::Operator, &[])]).await;
    let bearer = format!("Bearer {token}");
    let headers = |key: &'static str| {
        [("authorization", bearer.clone()), ("idempotency-key", key.to_owned())]
    };
    let send = async |key: &'static str, body: Value| {
        let headers = headers(key);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        server.sent(Method::POST, "/batches", &headers, &body).await
    };
    let order = json!({"group": "gl", "batch_no": "202409", "reason": "once"});
    let first = send("k1", order.clone()).await;
    first.is(200);
    let second = send("k1", order.clone()).await;
    assert_eq!(second.is(200), first.is(200));
    assert_eq!(second.headers["idempotency-replayed"], "true");
    assert!(first.headers.get("idempotency-replayed").is_none());
    let other = json!({"group": "gl", "batch_no": "202410", "reason": "once"});
    let reused = send("k1", other.clone()).await.is(422);
    assert_eq!(reused["type"], "urn:procession:problem:key-reused");
    // A refusal is not kept: it is mended and sent again.
    send("k2", json!({"group": "gl", "batch_no": "202410"})).await.is(422);
    send("k2", other.clone()).await.is(200);
    // A day later the key is forgotten.
    server.later(86_400_001);
    let token = server.token(&[("gl", Role::Operator, &[])]).await;
    drop(token);
    let opens = audit(&server).await.iter().filter(|a| a["action"] == "open").count();
    assert_eq!(opens, 4, "two at first, two since");
}

#[tokio::test]
async fn schedules_are_changed_by_those_who_may_in_every_group_they_open() {
    let server = Server::new().await;
    server.apply(TWO_GROUPS).await;
    let gl = server.token(&[("gl", Role::Author, &[])]).await;
    let both = server.token(&[("gl", Role::Author, &[]), ("ar", Role::Author, &[])]).await;
    let runs = server.token(&[("gl", Role::Operator, &[]), ("ar", Role::Operator, &[])]).await;
    let new = |code: &str, opens: (&str, &str)| {
        json!({"code": code, "reason": "why",
            "words": {opens.0: opens.1, "batch_no": "month(-1)", "cron": "0 0 2 1 * ?"}})
    };
    let made = post(&server, "/schedules", &gl, new("own", ("group", "gl"))).await.is(200);
    assert_eq!(made["status"], "ENABLED", "{made}");
    post(&server, "/schedules", &gl, new("theirs", ("group", "ar"))).await.is(404);
    post(&server, "/schedules", &gl, new("all", ("type", "monthly"))).await.is(404);
    post(&server, "/schedules", &both, new("all", ("type", "monthly"))).await.is(200);
    post(&server, "/schedules", &runs, new("no", ("group", "gl"))).await.is(403);
    let mut strange = new("strange", ("group", "gl"));
    strange["words"]["crom"] = json!("x");
    let refused = post(&server, "/schedules", &gl, strange).await.is(422);
    assert!(refused["detail"].as_str().is_some_and(|d| d.contains("crom")), "{refused}");
    let why = json!({"reason": "why"});
    post(&server, "/schedules/own/pause", &gl, why.clone()).await.is(403);
    let paused = post(&server, "/schedules/own/pause", &runs, why.clone()).await.is(200);
    assert_eq!(paused["status"], "PAUSED");
    let gl_runs = server.token(&[("gl", Role::Operator, &[])]).await;
    post(&server, "/schedules/all/pause", &gl_runs, why.clone()).await.is(404);
    // A change that moves it to another group takes the permission there too.
    let mut moved = new("own", ("group", "ar"));
    moved.as_object_mut().expect("an object").remove("code");
    server.send(Method::PUT, "/schedules/own", &gl, &moved).await.is(404);
    let mut stale = moved.clone();
    stale["if_revision"] = json!(99);
    server.send(Method::PUT, "/schedules/own", &both, &stale).await.is(412);
    server.send(Method::PUT, "/schedules/own", &both, &moved).await.is(200);
    server.send(Method::DELETE, "/schedules/own", &both, &why).await.is(200);
    server.send(Method::DELETE, "/schedules/own", &both, &why).await.is(404);
    let fire = json!({"reason": "late rates", "batch_no": "202406"});
    post(&server, "/schedules/all/fire-now", &runs, fire).await.is(200);
}

#[tokio::test]
async fn what_belongs_to_no_group_is_the_administrators() {
    let server = Server::new().await;
    server.apply(TWO_GROUPS).await;
    let local = server.token(&[("gl", Role::Admin, &[])]).await;
    let admin = server.admin().await;
    let why = json!({"reason": "why"});
    for (path, status) in
        [("/nodes/nowhere/drain", 404), ("/retention/run", 422), ("/sources/led/check", 404)]
    {
        post(&server, path, &local, why.clone()).await.is(403);
        post(&server, path, &admin, why.clone()).await.is(status);
    }
    server.send(Method::DELETE, "/secrets/k", &local, &why).await.is(403);
    server.send(Method::DELETE, "/secrets/k", &admin, &why).await.is(404);
}

/// What an order hands to jobs is what they are given: who may not write that may not order it either.
#[tokio::test]
async fn an_order_that_names_a_secret_takes_the_right_to_scripts() {
    let server = with_batches().await;
    let operator = server.token(&[("gl", Role::Operator, &[])]).await;
    let trusted = server.token(&[("gl", Role::Operator, &[Permission::Script])]).await;
    let order = |no: &str, value: &str| json!({"group": "gl", "batch_no": no, "params": {"pw": value}, "reason": "why"});
    post(&server, "/batches", &operator, order("202501", "@secret:FEED")).await.is(403);
    // It gets as far as the secret, which is not there.
    let refused =
        post(&server, "/batches", &trusted, order("202501", "@secret:FEED")).await.is(422);
    assert!(refused.to_string().contains("secret FEED in group gl"), "{refused}");
    post(&server, "/batches", &operator, order("202502", "plain")).await.is(200);
    let backfill = json!({"group": "gl", "range": "202503..202503", "reason": "why",
                          "params": {"pw": "@secret:FEED"}});
    post(&server, "/backfills", &operator, backfill).await.is(403);
}

#[tokio::test]
async fn a_plan_is_what_opening_would_do_and_opens_nothing() {
    let server = with_batches().await;
    let viewer = server.token(&[("gl", Role::Viewer, &[])]).await;
    let order = json!({"group": "gl", "batch_no": "202501"});
    let plan = post(&server, "/batches/plan", &viewer, order.clone()).await.is(200);
    assert_eq!(plan["batches"][0]["waves"], json!([["A"], ["B"], ["C"]]), "{plan}");
    assert_eq!(plan["refused"], json!([]));
    let again = json!({"group": "gl", "batch_no": "202407"});
    let plan = post(&server, "/batches/plan", &viewer, again).await.is(200);
    assert_eq!(plan["refused"].as_array().map(Vec::len), Some(1), "{plan}");
    let foreign = json!({"group": "ar", "batch_no": "202501"});
    post(&server, "/batches/plan", &viewer, foreign).await.is(404);
    post(&server, "/batches", &viewer, order).await.is(403);
}

#[tokio::test]
async fn a_backfill_runs_beside_and_ends() {
    let server = Server::new().await;
    server.apply(TWO_GROUPS).await;
    let user = server.user("olga", &[("gl", Role::Operator, &[])]).await;
    let token = server.token_of(&user, 1).await;
    let wish = |group: &str| json!({"group": group, "range": "202401..202403"});
    let ahead = post(&server, "/backfills/preview", &token, wish("gl")).await.is(200);
    assert_eq!(ahead["steps"].as_array().map(Vec::len), Some(3), "{ahead}");
    assert_eq!(ahead["steps"][0], json!({"batch_no": "202401", "action": "open", "runs": true}));
    post(&server, "/backfills/preview", &token, wish("ar")).await.is(404);
    post(&server, "/backfills", &token, wish("gl")).await.is(422);
    let mut real = wish("gl");
    real["reason"] = json!("the first quarter");
    let begun = post(&server, "/backfills", &token, real).await.is(200);
    let id = begun["backfill_id"].as_i64().expect("a number");
    server.house.aside.end_and_wait().await;
    let row = {
        let mut tx = server.app.db.begin_read().await.expect("read");
        let id = procession::domain::id::BackfillId(id);
        procession::store::backfill::find_backfill(&mut tx, id).await.expect("find").expect("there")
    };
    assert_eq!((row.started_by.as_str(), row.group.as_str()), ("olga", "gl"));
    let other = server.token(&[("ar", Role::Operator, &[])]).await;
    let why = json!({"reason": "why"});
    post(&server, &format!("/backfills/{id}/stop"), &other, why.clone()).await.is(404);
    let all = audit(&server).await;
    let mut acts = all.iter().filter(|a| a["action"] == "backfill");
    let wanted = json!({"action": "backfill", "by": "olga", "reason": "the first quarter", "job": null,
        "group": "gl"});
    assert_eq!((acts.next(), acts.next()), (Some(&wanted), None));
}

#[tokio::test]
async fn calendars_are_everybodys_and_so_an_editor_of_all_groups_changes_them() {
    let server = Server::new().await;
    let local = server.token(&[("gl", Role::Author, &[])]).await;
    let everywhere = server.token(&[("*", Role::Author, &[])]).await;
    let new = json!({"name": "Ours", "reason": "a new one"});
    server.send(Method::PUT, "/calendars/ours", &local, &new).await.is(403);
    server.send(Method::PUT, "/calendars/ours", &everywhere, &new).await.is(200);
    let day = json!({"date": "2026-12-24", "kind": "off", "reason": "the bank is closed"});
    let set = post(&server, "/calendars/ours/days", &everywhere, day.clone()).await.is(200);
    assert_eq!(set["applied"], true);
    post(&server, "/calendars/none/days", &everywhere, day).await.is(404);
    let why = json!({"reason": "not used"});
    server.send(Method::DELETE, "/calendars/ours", &everywhere, &why).await.is(200);
    server.send(Method::DELETE, "/calendars/ours", &everywhere, &why).await.is(404);
}
