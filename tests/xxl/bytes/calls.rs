//! What this installation asks executors: fields, types, headers and paths.

use super::scripted::{Answer, Asked, Scripted};
use crate::xxl::clients::Ground;
use crate::xxl::clients::client::{APP, TOKEN, until};
use serde_json::{Value, json};
use std::time::Duration;

fn json(asked: &Asked) -> Value {
    serde_json::from_str(&asked.body).unwrap_or_else(|e| panic!("{e}: {}", asked.body))
}

fn until_asked(executor: &Scripted, path: &str) -> Asked {
    until(Duration::from_secs(40), || executor.asked(path).pop().ok_or(format!("{path} is asked")))
}

#[test]
fn a_run_has_the_twelve_fields_and_the_token() {
    let (ground, executor) = (Ground::new(), Scripted::start());
    // A slash at the end, as Java registers: one goes between, and not two.
    ground.register(&format!("{}/", executor.address()));
    ground.open("text", "202407");
    let asked = until_asked(&executor, "/run");
    let run = json(&asked);
    let fields: Vec<&str> =
        run.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut known = [
        "jobId",
        "executorHandler",
        "executorParams",
        "executorBlockStrategy",
        "executorTimeout",
        "logId",
        "logDateTime",
        "glueType",
        "glueSource",
        "glueUpdatetime",
        "broadcastIndex",
        "broadcastTotal",
    ];
    known.sort_unstable();
    assert!(fields.iter().all(|field| known.contains(field)), "{fields:?}");
    for (field, value) in [
        ("executorHandler", json!("echo")),
        ("executorParams", json!("202407,a=1")),
        ("executorBlockStrategy", json!("SERIAL_EXECUTION")),
        // Our own clock ends a run; with a time-out of theirs, executors in Java report an end too early.
        ("executorTimeout", json!(0)),
        ("glueType", json!("BEAN")),
        ("broadcastIndex", json!(0)),
        ("broadcastTotal", json!(1)),
    ] {
        assert_eq!(run[field], value, "{field} in {run}");
    }
    // Numbers, which JavaScript reads exactly, and Java as int and long.
    assert!(run["jobId"].as_i64().is_some_and(|n| (1..=i64::from(i32::MAX)).contains(&n)), "{run}");
    assert!(run["logId"].as_i64().is_some_and(|n| (1..=1 << 53).contains(&n)), "{run}");
    assert!(run["logDateTime"].as_i64().is_some_and(|n| n > 1_700_000_000_000), "{run}");
    assert!(run.get("glueUpdatetime").is_none_or(Value::is_i64), "{run}");
    assert_eq!(asked.headers["xxl-job-access-token"], TOKEN);
    assert!(asked.headers["content-type"].starts_with("application/json"));
    assert!(!asked.headers.contains_key("xxl-job-appname"));
    let idle = json(&until_asked(&executor, "/idleBeat"));
    assert_eq!(idle, json!({"jobId": run["jobId"]}));
    let log = json(&until_asked(&executor, "/log"));
    assert_eq!((&log["logId"], &log["logDateTim"]), (&run["logId"], &run["logDateTime"]));
    assert!(log["fromLineNum"].is_i64(), "{log}");
    ground.does(&["batch", "kill", "202407", "--group", "text", "--no-wait", "--reason", "x"]);
    assert_eq!(json(&until_asked(&executor, "/kill")), json!({"jobId": run["jobId"]}));
}

#[test]
fn one_that_shows_its_name_is_spoken_to_as_3_5_speaks() {
    let (ground, executor) = (Ground::new(), Scripted::start());
    let headers = format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\nXXL-JOB-APPNAME: {APP}\r\n");
    let body = json!({
        "registryGroup": "EXECUTOR", "registryKey": APP, "registryValue": executor.address(),
    });
    assert_eq!(ground.told("/api/registry", &headers, &body.to_string())["code"], 200);
    ground.open("ok", "202407");
    let asked = until_asked(&executor, "/trigger");
    assert_eq!(asked.headers["xxl-job-appname"], APP);
    assert_eq!(asked.headers["xxl-job-access-token"], TOKEN);
    assert!(executor.asked("/run").is_empty());
    let log = json(&until_asked(&executor, "/log"));
    assert!(log["logDateTime"].is_i64(), "{log}");
    let end = json!({"callbackList": [
        {"logId": json(&asked)["logId"], "logDateTime": 0, "handleCode": 200, "handleMsg": "done"},
    ]});
    assert_eq!(ground.told("/api/callback", &headers, &end.to_string())["code"], 200);
    assert_eq!(ground.until_end("ok", "202407").batch, "SUCCESS");
}

#[test]
fn an_executor_behind_a_path_is_asked_there() {
    let (ground, executor) = (Ground::new(), Scripted::start());
    executor.says("/job/run", Answer::body(r#"{"code":200,"msg":"Success"}"#));
    executor.says("/job/idleBeat", Answer::body(r#"{"code":500,"msg":"busy"}"#));
    ground.register(&format!("{}/job", executor.address()));
    ground.open("ok", "202407");
    until_asked(&executor, "/job/run");
}
