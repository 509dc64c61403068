//! The audit log: filters, pages, and who is told what.

use crate::api::server::Server;
use axum::http::Method;
use procession::domain::access::Role;
use procession::domain::id::GroupCode;
use procession::domain::time::Millis;
use procession::engine::operate::audit_chain::seal_acts;
use procession::store::audit::{AuditEntry, Operator, record};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Thirty acts a minute apart: on `ours`, on `theirs` and on nothing, by two people.
async fn bench() -> (Server, String, String) {
    let server = Server::new().await;
    let admin = server.admin().await;
    let ann = server.token(&[("ours", Role::Viewer, &[])]).await;
    let mut tx = server.app.db.begin().await.expect("begin");
    for i in 0..30i64 {
        let group = ["ours", "theirs", ""][usize::try_from(i % 3).expect("small")];
        let actor = if i < 15 { "bea" } else { "=cmd()" };
        let by = Operator::new(actor.to_owned(), "h".to_owned());
        let entry = AuditEntry {
            action: if i % 2 == 0 { "act even" } else { "act odd" }.to_owned(),
            group: GroupCode::parse(group).ok(),
            batch: None,
            job: None,
            detail: Some(json!({ "n": i })),
            reason: Some("because, \"so\"".to_owned()),
        };
        let at = Millis::parse("2024-07-01T00:00:00Z").expect("a time").plus_ms(i * 60_000);
        record(&mut tx, &by, &[entry], at).await.expect("record");
    }
    tx.commit().await.expect("commit");
    (server, admin, ann)
}

async fn numbers(server: &Server, query: &str, token: &str) -> Vec<i64> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/audit?limit=4&{query}{cursor}");
        let page = server.get(&path, token).await.is(200);
        for item in page["items"].as_array().expect("items") {
            found.extend(item["detail"]["n"].as_i64());
        }
        let Some(next) = page["next"].as_str() else { return found };
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test]
async fn pages_of_acts_are_whole_however_many_foreign_ones_lie_between() {
    let (server, admin, ann) = bench().await;
    let ours: Vec<i64> = (0..30).rev().filter(|i| i % 3 == 0).collect();
    assert_eq!(numbers(&server, "", &ann).await, ours);
    assert_eq!(numbers(&server, "group=theirs", &ann).await, Vec::<i64>::new());
    let all: Vec<i64> = (0..30).rev().collect();
    assert_eq!(numbers(&server, "", &admin).await, all);
    // Who sees all groups and administers none is told nothing of users and settings.
    let viewer = server.token(&[("*", Role::Viewer, &[])]).await;
    let of_groups: Vec<i64> = (0..30).rev().filter(|i| i % 3 != 2).collect();
    assert_eq!(numbers(&server, "", &viewer).await, of_groups);
}

#[tokio::test]
async fn acts_are_found_by_each_filter() {
    let (server, admin, _) = bench().await;
    let of = |keep: fn(i64) -> bool| (0..30).rev().filter(|i| keep(*i)).collect::<Vec<i64>>();
    for (query, wanted) in [
        ("actor=bea", of(|i| i < 15)),
        ("action=act%20odd", of(|i| i % 2 == 1)),
        ("group=ours", of(|i| i % 3 == 0)),
        ("from=2024-07-01T00:10:00Z", of(|i| i >= 10)),
        ("to=2024-07-01T00:10:00Z", of(|i| i < 10)),
        ("from=2024-07-01T00:05:00Z&to=2024-07-01T08:10:00%2B08:00", of(|i| (5..10).contains(&i))),
        ("actor=bea&group=ours&action=act%20even", of(|i| i < 15 && i % 3 == 0 && i % 2 == 0)),
        ("from=2030-01-01", Vec::new()),
        ("batch_no=202407", Vec::new()),
        ("job=J1", Vec::new()),
    ] {
        assert_eq!(numbers(&server, query, &admin).await, wanted, "{query}");
    }
    for query in ["from=yesterday", "group=a%20b", "cursor=x", "colour=red", "limit=501"] {
        server.get(&format!("/audit?{query}"), &admin).await.is(400);
    }
    server.get("/audit", "").await.is(401);
}

#[tokio::test]
async fn an_act_says_who_did_what_from_where_and_why() {
    let (server, admin, _) = bench().await;
    let page = server.get("/audit?group=ours&limit=1", &admin).await.is(200);
    let act = &page["items"][0];
    assert_eq!(act["at"], "2024-07-01T00:27:00.000Z");
    assert_eq!((&act["actor"], &act["host"]), (&json!("=cmd()"), &json!("h")));
    assert_eq!((&act["action"], &act["group"]), (&json!("act odd"), &json!("ours")));
    assert_eq!((&act["batch_no"], &act["job_code"]), (&Value::Null, &Value::Null));
    assert_eq!(act["reason"], "because, \"so\"");
}

#[tokio::test]
async fn a_file_of_acts_holds_no_formula() {
    let (server, admin, ann) = bench().await;
    let csv = server.get("/audit/export?format=csv&group=ours", &admin).await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let lines: Vec<&str> = csv.text.lines().collect();
    assert_eq!(lines.len(), 11);
    assert!(lines[0].starts_with("audit_id,at,actor,"));
    assert!(lines[1].contains(",'=cmd(),h,"), "{}", lines[1]);
    assert!(lines[1].contains("\"because, \"\"so\"\"\""), "{}", lines[1]);
    let jsonl = server.get("/audit/export?format=jsonl", &ann).await;
    let acts: Vec<Value> =
        jsonl.text.lines().map(|l| serde_json::from_str(l).expect("a document")).collect();
    assert_eq!(acts.len(), 10);
    assert!(acts.iter().all(|act| act["group"] == "ours"));
    assert!(!jsonl.headers.contains_key("x-next-cursor"));
    server.get("/audit/export?format=xls", &admin).await.is(400);
}

#[tokio::test]
async fn what_is_done_through_the_api_is_on_record() {
    let (server, admin, _) = bench().await;
    let text = "groups:\n  - { code: ours, name: O }\njobs:\n  - { code: A, name: A, group: ours, type: NOOP }\n";
    let body = json!({ "text": text, "remark": "first" });
    server.send(Method::POST, "/definition/apply", &admin, &body).await.is(200);
    let page = server.get("/audit?limit=1", &admin).await.is(200);
    assert_eq!(page["items"][0]["actor"], "user0");
}

/// Nobody has to ask for it: the log, the metrics and `/readyz` of a process that serves say it.
#[tokio::test]
async fn serve_finds_a_break_by_itself() {
    let server = Server::new().await;
    server.admin().await;
    let process = server.app.dispatcher(None).await.expect("a process");
    let stop = CancellationToken::new();
    let (watch, vitals) = (process.audit_watch(), process.vitals(&stop, Duration::from_secs(120)));
    let chain = async || {
        let reasons = vitals.ready().await;
        reasons.into_iter().find(|reason| reason.name == "audit_chain")
    };
    assert_eq!(chain().await, None, "it was not verified yet");
    seal_acts(&server.app.db, &server.app.clock).await.expect("sealed");
    let report = watch.check(Duration::ZERO).await.expect("verified");
    assert!(report.verified > 0 && report.first_break.is_none(), "{report:?}");
    let reason = chain().await.expect("a reason");
    assert!(reason.ok && !reason.is_degraded && reason.detail.starts_with("holds"), "{reason:?}");
    assert!(vitals.metrics().contains("procession_audit_chain_broken 0\n"));
    let mut tx = server.app.db.begin().await.expect("begin");
    tx.execute("UPDATE audit_log SET actor = 'eve' WHERE audit_id = 1", &[])
        .await
        .expect("by hand");
    tx.commit().await.expect("commit");
    let report = watch.check(Duration::ZERO).await.expect("verified");
    assert!(report.first_break.is_some(), "{report:?}");
    let reason = chain().await.expect("a reason");
    // Starting the process anew would not help, so it is no reason to.
    assert!(reason.ok && reason.is_degraded, "{reason:?}");
    assert!(reason.detail.contains("procession audit verify"), "{reason:?}");
    let metrics = vitals.metrics();
    assert!(metrics.contains("procession_audit_chain_broken 1\n"), "{metrics}");
    assert!(metrics.contains("procession_audit_chain_verified_timestamp_seconds 1722470400"));
}
