//! What executors of every version say, as they say it, and what becomes of it.

use crate::xxl::admin_bench::{Desk, OTHER, TEAM, WELL, app, code, end, registry};
use crate::xxl::at_each_desk;
use procession::domain::executor::Spoken;
use procession::domain::source::DialectName;
use procession::store::executor_registry;
use serde_json::json;

at_each_desk! {
    executors_register_as_each_client_does
    who_is_not_heard_of_for_90_seconds_is_gone
    callbacks_of_every_version_end_their_runs
    an_end_is_told_once
    many_ends_at_once
}

async fn executors_register_as_each_client_does(desk: Desk) {
    let java = format!(
        "XXL-JOB-ACCESS-TOKEN: {TEAM}\r\nAccept-Charset: application/json;charset=UTF-8\r\n"
    );
    let small = format!("xxl-job-access-token: {TEAM}\r\n");
    let both = format!("XXL-JOB-ACCESS-TOKEN: {TEAM}\r\nXXL-RPC-ACCESS-TOKEN: {TEAM}\r\n");
    for (path, headers, body) in [
        // pyxxl, npm with its path, Rust, Java with its slash.
        (
            "/xxl-job-admin/api/registry",
            &both,
            r#"{"registryGroup": "EXECUTOR", "registryKey": "pay-executor", "registryValue": "http://127.0.0.1:19991"}"#,
        ),
        (
            "/api/registry",
            &small,
            r#"{"registryGroup":"EXECUTOR","registryKey":"pay-executor","registryValue":"http://127.0.0.1:19993/job"}"#,
        ),
        (
            "/xxl-job-admin/api/registry",
            &small,
            r#"{"registryGroup":"EXECUTOR","registryKey":"pay-executor","registryValue":"http://127.0.0.1:19994","more":1}"#,
        ),
        (
            "/xxl-job-admin/api/registry/",
            &java,
            r#"{"registryGroup":"EXECUTOR","registryKey":"pay-executor","registryValue":"http://127.0.0.1:09999/"}"#,
        ),
    ] {
        assert_eq!(desk.send("127.0.0.1", path, headers, body).await, WELL, "{body}");
    }
    let there = [
        "http://127.0.0.1:19991",
        "http://127.0.0.1:19993/job",
        "http://127.0.0.1:19994",
        "http://127.0.0.1:9999",
    ];
    assert_eq!(desk.alive("pay-executor").await, there, "in the order that routes have");
    assert_eq!(desk.alive("stock-executor").await, [""; 0], "though it has the same token");
    // As 3.5 does, under its own name.
    let named = format!("{small}XXL-JOB-APPNAME: stock-executor\r\n");
    let body = registry("stock-executor", "http://127.0.0.1:9998/");
    assert_eq!(desk.send("127.0.0.1", "/api/registry", &named, &body).await, WELL);
    let mut tx = desk.db.begin_read().await.expect("read");
    let all = executor_registry::alive(&mut tx, None, desk.clock.now()).await.expect("alive");
    let speaks: Vec<Spoken> = all.iter().map(|there| there.dialect).collect();
    assert_eq!(speaks, [Spoken::Run, Spoken::Run, Spoken::Run, Spoken::Run, Spoken::Trigger]);
    drop(tx);
    // The slash at the end makes no difference when it goes, either.
    let body = registry("pay-executor", "http://127.0.0.1:19991/");
    assert_eq!(desk.post("registryRemove", TEAM, &body).await.0, 200);
    assert_eq!(desk.alive("pay-executor").await, there[1..]);
    assert_eq!(desk.refusals().await, [""; 0]);
}

async fn who_is_not_heard_of_for_90_seconds_is_gone(desk: Desk) {
    for port in [9002, 9001] {
        let address = format!("http://127.0.0.1:{port}");
        assert_eq!(desk.register("pay-executor", &address, TEAM).await.0, 200);
    }
    let since = desk.clock.now();
    desk.clock.advance(60_000);
    assert_eq!(desk.register("pay-executor", "http://127.0.0.1:9001", TEAM).await.0, 200);
    desk.clock.advance(30_000);
    let both = ["http://127.0.0.1:9001", "http://127.0.0.1:9002"];
    assert_eq!(desk.alive("pay-executor").await, both, "90 s are not over");
    desk.clock.advance(1);
    assert_eq!(desk.alive("pay-executor").await, both[..1]);
    let mut tx = desk.db.begin_read().await.expect("read");
    let all =
        executor_registry::list_executors(&mut tx, Some(&app("pay-executor"))).await.expect("all");
    assert_eq!((all[0].since, all[0].seen), (since, since.plus_ms(60_000)));
    drop(tx);
    // Back after a gap it is there since now.
    assert_eq!(desk.register("pay-executor", "http://127.0.0.1:9002", TEAM).await.0, 200);
    let mut tx = desk.db.begin_read().await.expect("read");
    let all =
        executor_registry::list_executors(&mut tx, Some(&app("pay-executor"))).await.expect("all");
    assert_eq!((all[1].since, all[1].seen), (desk.clock.now(), desk.clock.now()));
    drop(tx);
    desk.clock.advance(86_400_000);
    let mut tx = desk.db.begin().await.expect("begin");
    let before = desk.clock.now().plus_ms(-86_000_000);
    assert_eq!(executor_registry::forget(&mut tx, before, 1).await.expect("forget"), 1);
    assert_eq!(executor_registry::forget(&mut tx, before, 9).await.expect("forget"), 1);
}

async fn callbacks_of_every_version_end_their_runs(desk: Desk) {
    let words = "成功 ok";
    let mut cases = Vec::new();
    for (what, code, msg) in [
        ("2.2", 200, Some(words)),
        ("2.3", 200, Some(words)),
        ("pyxxl", 200, Some(words)),
        ("3.5", 200, Some(words)),
        ("rust", 200, None),
        ("absent", 502, None),
        ("failed", 500, Some("CancelledError")),
    ] {
        let id = desk.run("pay-executor", "RUNNING", None).await;
        let item = match what {
            "2.2" => {
                json!([{"logId": id, "logDateTim": 1, "executeResult": {"code": code, "msg": msg, "content": null}}])
            }
            "pyxxl" => {
                json!([{"logId": id, "logDateTim": 1_795_219_433_671_i64, "handleCode": code, "handleMsg": msg,
                "executeResult": {"code": code, "msg": msg}}])
            }
            "3.5" => {
                json!({"callbackList": [{"logId": id, "logDateTime": 1, "handleCode": code, "handleMsg": msg}]})
            }
            "absent" => {
                json!([{"logId": id, "logDateTim": 1, "handleCode": code, "newField": {"a": [1]}}])
            }
            _ => json!([{"logId": id, "logDateTim": 1, "handleCode": code, "handleMsg": msg}]),
        };
        cases.push((what, id, item.to_string(), code, msg));
    }
    for (what, id, body, code, msg) in cases {
        assert_eq!(desk.post("callback", TEAM, &body).await, (200, String::new()), "{what}");
        let words = msg.map(|words| format!(" {words}")).unwrap_or_default();
        assert_eq!(desk.state(id).await, format!("TOLD {code}{words}"), "{what}");
    }
    // Before the answer to /run is written.
    let asked = desk.run("stock-executor", "ASKED", None).await;
    assert_eq!(desk.post("callback", TEAM, &end(asked, 200, "fast")).await.0, 200);
    assert_eq!(desk.state(asked).await, "TOLD 200 fast");
    // A message that is long, and one with what no column takes.
    let long = desk.run("pay-executor", "RUNNING", None).await;
    assert_eq!(desk.post("callback", TEAM, &end(long, 500, &"月".repeat(60_000))).await.0, 200);
    let state = desk.state(long).await;
    assert!(state.starts_with("TOLD 500 月") && state.ends_with("bytes more]"), "{}", state.len());
    assert!(state.len() < 16_020, "{}", state.len());
    let odd = desk.run("pay-executor", "RUNNING", None).await;
    assert_eq!(desk.post("callback", TEAM, &end(odd, 200, "a\u{0}b\u{1b}[31m")).await.0, 200);
    assert_eq!(desk.state(odd).await, "TOLD 200 a\u{FFFD}b [31m");
}

async fn an_end_is_told_once(desk: Desk) {
    let run = desk.run("pay-executor", "RUNNING", None).await;
    // A code of 0, or none, says nothing.
    for nothing in [end(run, 0, "x"), json!([{"logId": run, "logDateTim": 1}]).to_string()] {
        assert_eq!(desk.post("callback", TEAM, &nothing).await.0, 200);
        assert_eq!(desk.state(run).await, "RUNNING");
    }
    // Of two ends in one body the first counts.
    let twice = json!([{"logId": run, "handleCode": 200, "handleMsg": "first"},
        {"logId": run, "handleCode": 500, "handleMsg": "second"}]);
    assert_eq!(desk.post("callback", TEAM, &twice.to_string()).await.0, 200);
    assert_eq!(desk.state(run).await, "TOLD 200 first");
    let before = desk.everything().await;
    desk.clock.advance(5_000);
    // Again, and otherwise, and of a run that nobody knows any more.
    for again in
        [end(run, 200, "first"), end(run, 500, "other"), end(999_999, 200, "x"), "[]".to_owned()]
    {
        assert_eq!(desk.post("callback", TEAM, &again).await, (200, String::new()), "{again}");
        assert_eq!(desk.everything().await, before, "{again}");
    }
    // One that is being stopped is over now; how it ended is what it was stopped for.
    let killed = desk.run("pay-executor", "RUNNING", Some("KILLED")).await;
    assert_eq!(desk.post("callback", TEAM, &end(killed, 200, "is killed.")).await.0, 200);
    assert_eq!(desk.state(killed).await, "TOLD 200 is killed.");
    let done = desk.run("pay-executor", "DONE", None).await;
    assert_eq!(desk.post("callback", TEAM, &end(done, 200, "late")).await.0, 200);
    assert_eq!(desk.state(done).await, "DONE");
    assert_eq!(desk.refusals().await, [""; 0]);
}

async fn many_ends_at_once(desk: Desk) {
    let mut runs = Vec::new();
    for _ in 0..130 {
        runs.push(desk.run("pay-executor", "RUNNING", None).await);
    }
    let item = |id: &i64| match id % 3 {
        0 => json!({"logId": id, "handleCode": 200, "handleMsg": format!("run {id}")}),
        1 => json!({"logId": id, "handleCode": 200, "handleMsg": null}),
        _ => json!({"logId": id, "handleCode": 500, "handleMsg": "same"}),
    };
    // Known ones among many that are not.
    let mut items: Vec<_> = runs.iter().map(item).collect();
    items.extend((100_000..100_370_i64).map(|id| item(&id)));
    assert_eq!(items.len(), 500);
    assert_eq!(desk.post("callback", TEAM, &json!(items).to_string()).await.0, 200);
    for id in runs {
        let is = match id % 3 {
            0 => format!("TOLD 200 run {id}"),
            1 => "TOLD 200".to_owned(),
            _ => "TOLD 500 same".to_owned(),
        };
        assert_eq!(desk.state(id).await, is);
    }
    // Many executors at the same moment, each with a body of its own: all are answered, all is written.
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(desk.run("other-executor", "ASKED", None).await);
    }
    let all = ids.iter().map(|id| {
        let body = end(*id, 200, &format!("of {id}"));
        let desk = &desk;
        async move { desk.post("callback", OTHER, &body).await }
    });
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(answer, (200, String::new()));
    }
    for id in ids {
        assert_eq!(desk.state(id).await, format!("TOLD 200 of {id}"));
    }
    let text = desk
        .send("127.0.0.1", "/api/callback", &format!("XXL-JOB-ACCESS-TOKEN: {OTHER}\r\n"), "[]")
        .await;
    assert_eq!(code(&text).0, 200);
}
