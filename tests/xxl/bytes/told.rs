//! What executors tell their admin, at the door of this installation as one: byte by byte as each client sends it.

use super::scripted::{Answer, Scripted};
use crate::xxl::clients::client::{APP, TOKEN, until};
use crate::xxl::clients::{Ended, Ground};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Who sends how: its headers, and what it registers.
const REGISTRATIONS: [(&str, &str, &str, &str); 6] = [
    (
        "Java 2.3 to 3.4",
        "User-Agent: Java/17.0.9\r\nAccept-Charset: application/json;charset=UTF-8\r\nContent-Type: application/json;charset=UTF-8\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\n",
        r#"{"registryGroup":"EXECUTOR","registryKey":"host-app","registryValue":"http://127.0.0.1:19990/"}"#,
        "http://127.0.0.1:19990",
    ),
    (
        "Java 3.5",
        "User-Agent: Java/17.0.9\r\nContent-Type: application/json;charset=UTF-8\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\nXXL-JOB-APPNAME: host-app\r\n",
        r#"{"registryGroup":"EXECUTOR","registryKey":"host-app","registryValue":"http://127.0.0.1:19996/"}"#,
        "http://127.0.0.1:19996",
    ),
    (
        "pyxxl",
        "User-Agent: Python/3.11 aiohttp/3.14.5\r\nContent-Type: application/json\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\nXXL-RPC-ACCESS-TOKEN: {token}\r\n",
        r#"{"registryGroup": "EXECUTOR", "registryKey": "host-app", "registryValue": "http://127.0.0.1:19991"}"#,
        "http://127.0.0.1:19991",
    ),
    (
        "Flask-XXLJob",
        "User-Agent: python-requests/2.34.2\r\nContent-Type: application/json\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\n",
        r#"{"registryGroup": "EXECUTOR", "registryKey": "host-app", "registryValue": "http://127.0.0.1:19995"}"#,
        "http://127.0.0.1:19995",
    ),
    (
        "xxl-job of npm",
        "User-Agent: axios/1.7.4\r\nContent-Type: application/json\r\nxxl-job-access-token: {token}\r\n",
        r#"{"registryGroup":"EXECUTOR","registryKey":"host-app","registryValue":"http://127.0.0.1:19993/job"}"#,
        "http://127.0.0.1:19993/job",
    ),
    (
        "xxljob-sdk-rs",
        "user-agent: xxljob-sdk-rs/0.1.4\r\ncontent-type: application/json\r\nxxl-job-access-token: {token}\r\n",
        r#"{"registryGroup":"EXECUTOR","registryKey":"host-app","registryValue":"http://127.0.0.1:19994"}"#,
        "http://127.0.0.1:19994",
    ),
];

const YES: &str = r#"{"code":200,"msg":null,"content":null,"data":null}"#;

fn yes() -> Value {
    serde_json::from_str(YES).expect("JSON")
}

#[test]
fn registrations_of_every_client_are_taken_and_taken_back() {
    let ground = Ground::new();
    for root in ["/xxl-job-admin", ""] {
        for (who, headers, body, address) in REGISTRATIONS {
            let headers = headers.replace("{token}", TOKEN);
            // Said twice, it is one.
            for _ in 0..2 {
                let answer = ground.told(&format!("{root}/api/registry"), &headers, body);
                assert_eq!(answer, yes(), "{who}");
            }
            assert_eq!(ground.registered(), [address], "{who}");
            let answer = ground.told(&format!("{root}/api/registryRemove"), &headers, body);
            assert_eq!(answer, yes(), "{who}");
            assert_eq!(ground.registered(), [""; 0], "{who}");
        }
    }
}

#[test]
fn whoever_has_not_the_token_is_nobody() {
    let ground = Ground::new();
    let (_, _, body, _) = REGISTRATIONS[0];
    for headers in [
        String::new(),
        "XXL-JOB-ACCESS-TOKEN:\r\n".to_owned(),
        "XXL-JOB-ACCESS-TOKEN: default_token\r\n".to_owned(),
        format!("XXL-JOB-ACCESS-TOKEN: {}\r\n", &TOKEN[1..]),
        format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}x\r\n"),
        format!("XXL-RPC-ACCESS-TOKEN: {TOKEN}\r\n"),
        format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\nXXL-JOB-APPNAME: another-app\r\n"),
    ] {
        for name in ["registry", "registryRemove", "callback"] {
            let answer = ground.told(&format!("/xxl-job-admin/api/{name}"), &headers, body);
            assert_eq!(answer["code"], 500, "{name} {headers}: {answer}");
            assert!(answer["msg"].as_str().is_some_and(|m| m.contains("token")), "{answer}");
        }
    }
    assert_eq!(ground.registered(), [""; 0]);
    let refused = "SELECT COUNT(*) FROM audit_log WHERE action = 'xxl-refused'";
    assert_ne!(ground.rows(refused), [["0"]]);
}

#[test]
fn an_executor_is_where_it_speaks_from_and_nowhere_else() {
    let ground = Ground::new();
    for (group, key, value) in [
        ("EXECUTOR", "another-app", "http://127.0.0.1:19990/"),
        ("EXECUTOR", "", "http://127.0.0.1:19990/"),
        ("EXECUTOR", APP, ""),
        ("EXECUTOR", APP, "http://10.1.2.3:9999/"),
        ("EXECUTOR", APP, "http://169.254.169.254/latest/meta-data/"),
        ("EXECUTOR", APP, "http://user:word@127.0.0.1:19990/"),
        ("EXECUTOR", APP, "http://127.0.0.1:19990/?to=elsewhere"),
        ("EXECUTOR", APP, "file:///etc/passwd"),
        ("EXECUTOR", APP, "127.0.0.1:19990"),
    ] {
        let body =
            json!({"registryGroup": group, "registryKey": key, "registryValue": value}).to_string();
        let answer = ground.told_well("registry", &body);
        assert_eq!(answer["code"], 500, "{body}: {answer}");
    }
    for body in ["", "{}", "[]", "{\"registryGroup\":\"EXECUTOR\"}", "<html>"] {
        assert_eq!(ground.told_well("registry", body)["code"], 500, "{body}");
    }
    assert_eq!(ground.registered(), [""; 0]);
}

#[test]
fn one_that_was_not_heard_of_for_ninety_seconds_is_asked_nothing() {
    let (ground, executor) = (Ground::new(), Scripted::start());
    ground.register(&executor.address());
    ground.change("UPDATE executor_registry SET update_time = '2020-01-01 00:00:00.000'");
    let ended = ground.run("ok", "202407");
    assert_eq!(ended.batch, "FAILED", "{ended:?}");
    assert!(ended.words.contains(APP), "{ended:?}");
    assert!(executor.asked("/run").is_empty());
}

#[test]
fn the_first_is_the_first_of_the_alphabet() {
    let ground = Ground::new();
    let mut both = [Scripted::start(), Scripted::start()];
    both.sort_by_key(Scripted::address);
    // The later one says first that it is there.
    for executor in both.iter().rev() {
        ground.register(&executor.address());
    }
    ground.open("ok", "202407");
    until(Duration::from_secs(20), || match both[0].asked("/run").len() {
        0 => Err("a run at the first".to_owned()),
        _ => Ok(()),
    });
    assert!(both[1].asked("/run").is_empty());
}

/// Asks for a run, and gives its key.
fn asked(ground: &Ground, executor: &Scripted, no: &str) -> i64 {
    let before = executor.asked("/run").len();
    ground.open("ok", no);
    until(Duration::from_secs(30), || match executor.asked("/run").get(before) {
        None => Err(format!("a run of {no}")),
        Some(asked) => {
            let body: Value = serde_json::from_str(&asked.body).expect("JSON");
            Ok(body["logId"].as_i64().expect("a key"))
        }
    })
}

fn with_executor() -> (Ground, Scripted) {
    let (ground, executor) = (Ground::new(), Scripted::start());
    ground.register(&executor.address());
    (ground, executor)
}

/// An end as a client sends it; `LOG` is the key of the run.
const ENDS: [(&str, &str, &str, &str); 10] = [
    (
        "Java 2.2",
        r#"[{"logId":LOG,"logDateTim":1795219433671,"executeResult":{"code":200,"msg":"done"}}]"#,
        "SUCCESS",
        "",
    ),
    (
        "Java 2.2, failed",
        r#"[{"logId":LOG,"logDateTim":1795219433671,"executeResult":{"code":500,"msg":"\u003cboom\u003e"}}]"#,
        "FAILED",
        "<boom>",
    ),
    (
        "Java 2.3 to 3.4",
        r#"[{"logId":LOG,"logDateTim":1795219433671,"handleCode":200}]"#,
        "SUCCESS",
        "",
    ),
    (
        "Java, over time",
        r#"[{"logId":LOG,"logDateTim":1795219433671,"handleCode":502,"handleMsg":"job execute timeout"}]"#,
        "FAILED",
        "job execute timeout",
    ),
    (
        "Java 3.5",
        r#"{"callbackList":[{"logId":LOG,"logDateTime":1795219433671,"handleCode":200,"handleMsg":"done"}]}"#,
        "SUCCESS",
        "",
    ),
    (
        "pyxxl",
        r#"[{"logId": LOG, "logDateTim": 1795219433671, "handleCode": 200, "handleMsg": "\u6210\u529f ok", "executeResult": {"code": 200, "msg": "\u6210\u529f ok"}}]"#,
        "SUCCESS",
        "",
    ),
    (
        "xxl-job of npm",
        r#"[{"logId":LOG,"logDateTim":1795219588668,"handleCode":200,"handleMsg":"{\"ok\":1}"}]"#,
        "SUCCESS",
        "",
    ),
    (
        "xxljob-sdk-rs",
        r#"[{"logId":LOG,"logDateTim":1795219835486,"handleCode":200,"handleMsg":null}]"#,
        "SUCCESS",
        "",
    ),
    (
        "Flask-XXLJob",
        r#"[{"logId": LOG, "logDateTim": 1795220188066, "handleCode": 500, "handleMsg": "\u6c47\u7387\u7f3a\u5931"}]"#,
        "FAILED",
        "汇率缺失",
    ),
    (
        "one that knows more",
        r#"[{"logId":LOG,"handleCode":200,"new":{"a":[1]},"handleMsg":"x","executorAddress":"y"}]"#,
        "SUCCESS",
        "",
    ),
];

#[test]
fn ends_of_every_client_are_taken() {
    let (ground, executor) = with_executor();
    for (at, (who, body, status, words)) in ENDS.into_iter().enumerate() {
        let no = (202_001 + at).to_string();
        let log = asked(&ground, &executor, &no);
        let answer = ground.told_well("callback", &body.replace("LOG", &log.to_string()));
        assert_eq!(answer, yes(), "{who}");
        let ended = ground.until_end("ok", &no);
        assert_eq!(ended.batch, status, "{who}: {ended:?}");
        assert!(ended.words.contains(words), "{who}: {ended:?}");
    }
    assert_eq!(executor.asked("/run").len(), ENDS.len());
}

fn end(log: i64, code: i64, words: &str) -> String {
    json!([{"logId": log, "logDateTim": 0, "handleCode": code, "handleMsg": words}]).to_string()
}

#[test]
fn the_first_end_counts_and_whoever_repeats_it_is_answered_alike() {
    let (ground, executor) = with_executor();
    let log = asked(&ground, &executor, "202407");
    // Nobody's, and one that says nothing: answered, so that nobody says it for ever.
    assert_eq!(ground.told_well("callback", &end(9_007_199_254_740_991, 200, "x")), yes());
    let nothing = json!([{"logId": log, "handleCode": 0}, {"logId": log}]).to_string();
    assert_eq!(ground.told_well("callback", &nothing), yes());
    assert_eq!(ground.shown("ok", "202407").batch, "RUNNING");
    for (code, words) in [(500, "no rates"), (500, "no rates"), (200, "all well after all")] {
        assert_eq!(ground.told_well("callback", &end(log, code, words)), yes());
    }
    let ended = ground.until_end("ok", "202407");
    assert_eq!(ended.batch, "FAILED", "{ended:?}");
    assert!(ended.words.contains("no rates"), "{ended:?}");
    assert_eq!(ground.told_well("callback", &end(log, 200, "late")), yes());
    assert_eq!(ground.shown("ok", "202407").batch, "FAILED");
    for bad in ["", "{}", "null", "[1]", r#"[{"handleCode":200}]"#, r#"[{"logId":"x"}]"#, "<html>"]
    {
        assert_eq!(ground.told_well("callback", bad)["code"], 500, "{bad}");
    }
}

#[test]
fn an_end_that_comes_before_the_run_was_answered_is_not_lost() {
    let (ground, executor) = (Ground::new(), Scripted::start());
    ground.register(&executor.address());
    let of_executor = std::sync::Mutex::new(ground.raw_teller());
    let act = move |asked: &super::scripted::Asked| {
        let body: Value = serde_json::from_str(&asked.body).expect("JSON");
        let tell = of_executor.lock().expect("lock");
        tell("callback", &end(body["logId"].as_i64().expect("a key"), 200, "at once"));
    };
    let yes = Answer::body(r#"{"code":200,"msg":null}"#);
    executor.says("/run", Answer::First(Arc::new(act), Box::new(yes)));
    let ended = ground.run("ok", "202407");
    assert_eq!(ended.batch, "SUCCESS", "{ended:?}");
    assert_eq!(executor.asked("/run").len(), 1);
}

#[test]
fn words_of_sixty_thousand_characters_are_cut_and_not_refused() {
    let (ground, executor) = with_executor();
    let log = asked(&ground, &executor, "202407");
    let words = "汇".repeat(60_000);
    assert_eq!(ground.told_well("callback", &end(log, 500, &words)), yes());
    let ended = ground.until_end("ok", "202407");
    assert_eq!(ended.batch, "FAILED");
    assert!(ended.words.contains("汇汇汇") && ended.words.len() < words.len());
}

#[test]
fn five_hundred_ends_in_one_list_are_all_taken() {
    let (ground, executor) = with_executor();
    let log = asked(&ground, &executor, "202407");
    // As if there were so many: copies of the one that is.
    let columns = ground
        .rows("SELECT name FROM pragma_table_info('executor_run') WHERE name NOT IN ('log_id', 'queue_id')")
        .concat()
        .join(", ");
    ground.change(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) \
         INSERT INTO executor_run (log_id, queue_id, {columns}) \
         SELECT {log} + i, queue_id + i, {columns} FROM executor_run, n WHERE log_id = {log}"
    ));
    let item = |i| json!({"logId": log + i, "logDateTim": 0, "handleCode": 200, "handleMsg": format!("end {i}")});
    let list = Value::from((1..=500).map(item).collect::<Vec<_>>()).to_string();
    assert_eq!(ground.told_well("callback", &list), yes());
    let told = format!(
        "SELECT COUNT(*), COUNT(DISTINCT handle_msg) FROM executor_run WHERE handle_code = 200 AND log_id > {log}"
    );
    assert_eq!(ground.rows(&told), [["500", "500"]]);
}

#[test]
fn nobody_ends_a_run_of_another_group() {
    let (ground, executor) = with_executor();
    ground.change_file("token-2", "silent-meadow-lantern-4711");
    ground.does(&["executor-group", "add", "other-app", "--from-file", "token-2"]);
    let log = asked(&ground, &executor, "202407");
    let headers = "XXL-JOB-ACCESS-TOKEN: silent-meadow-lantern-4711\r\n";
    let answer = ground.told("/xxl-job-admin/api/callback", headers, &end(log, 200, "mine"));
    assert_eq!(answer["code"], 500, "{answer}");
    assert_eq!(ground.shown("ok", "202407").batch, "RUNNING");
    let refused = "SELECT COUNT(*) FROM audit_log WHERE action = 'xxl-refused'";
    assert_ne!(ground.rows(refused), [["0"]]);
    assert_eq!(ground.told_well("callback", &end(log, 200, "ours")), yes());
    assert_eq!(ground.until_end("ok", "202407").batch, "SUCCESS");
}

#[test]
fn an_end_after_the_kill_changes_nothing() {
    let (ground, executor) = with_executor();
    let log = asked(&ground, &executor, "202407");
    ground.does(&[
        "batch",
        "kill",
        "202407",
        "--group",
        "ok",
        "--no-wait",
        "--reason",
        "not today",
    ]);
    until(Duration::from_secs(20), || match executor.asked("/kill").len() {
        0 => Err("a kill".to_owned()),
        _ => Ok(()),
    });
    assert_eq!(ground.told_well("callback", &end(log, 200, "Job Task: 1 is killed.")), yes());
    let Ended { batch, job, words } = ground.until_end("ok", "202407");
    assert_eq!((batch.as_str(), job.as_str()), ("KILLED", "KILLED"), "{words}");
}
