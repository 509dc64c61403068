//! A run and its end: registered, done, failed, unknown, too long; what was sent, and what was printed.

use super::{Client, Ground, with_each};
use serde_json::Value;

with_each! {
    pyxxl Pyxxl:
        it_registers_and_says_goodbye a_run_is_done_and_its_log_is_here a_run_fails_with_its_words
        a_handler_that_nobody_has_is_refused parameters_arrive_as_declared a_run_that_takes_too_long_is_stopped;
    flask Flask:
        it_registers_and_says_goodbye a_run_is_done_and_its_log_is_here a_run_fails_with_its_words
        a_handler_that_nobody_has_is_refused parameters_arrive_as_declared a_run_that_takes_too_long_is_stopped;
    npm Npm:
        it_registers_and_says_goodbye a_run_is_done_and_its_log_is_here a_run_fails_with_its_words
        a_handler_that_nobody_has_is_refused parameters_arrive_as_declared a_run_that_takes_too_long_is_stopped;
    rust Rust:
        it_registers_and_stays a_run_is_done a_run_fails_with_its_words
        a_handler_that_nobody_has_is_silent parameters_arrive_as_declared
        a_run_that_takes_too_long_and_cannot_be_stopped_is_unknown;
}

fn it_registers_and_says_goodbye(ground: Ground, mut client: Client) {
    assert_eq!(ground.registered(), [client.address()]);
    client.leave();
    assert_eq!(ground.registered(), [""; 0]);
}

/// The crate says no goodbye.
fn it_registers_and_stays(ground: Ground, mut client: Client) {
    client.leave();
    assert_eq!(ground.registered(), [client.address()]);
}

fn a_run_is_done(ground: Ground, client: Client) {
    let ended = ground.run("ok", "202407");
    assert_eq!((ended.batch.as_str(), ended.job.as_str()), ("SUCCESS", "SUCCESS"), "{ended:?}");
    assert_eq!(client.names(), ["ok"]);
}

fn a_run_is_done_and_its_log_is_here(ground: Ground, mut client: Client) {
    let ended = ground.run("ok", "202407");
    assert_eq!(ended.batch, "SUCCESS", "{ended:?}");
    assert_eq!(client.names(), ["ok"]);
    // It is here, not there.
    client.kill();
    let log = ground.log("ok", "202407");
    let at = |words: &str| log.find(words).unwrap_or_else(|| panic!("{words} in {log}"));
    assert!(
        at("first line") < at("第二行：月结完成") && at("第二行：月结完成") < at("last line"),
        "{log}"
    );
    assert_eq!(log.matches("last line").count(), 1, "{log}");
}

fn a_run_fails_with_its_words(ground: Ground, client: Client) {
    let ended = ground.run("fail", "202407");
    assert_eq!((ended.batch.as_str(), ended.job.as_str()), ("FAILED", "FAILED"), "{ended:?}");
    assert!(ended.words.contains("no rates today: 汇率缺失"), "{ended:?}");
    assert_eq!(client.names(), ["fail"]);
}

fn a_handler_that_nobody_has_is_refused(ground: Ground, client: Client) {
    let ended = ground.run("nobody", "202407");
    assert_eq!(ended.job, "FAILED", "{ended:?}");
    assert!(ended.words.contains("nobody"), "{ended:?}");
    assert_eq!(client.names(), [""; 0]);
}

/// It answers that it runs, and never says anything again: the job's own limit ends it.
fn a_handler_that_nobody_has_is_silent(ground: Ground, client: Client) {
    let ended = ground.run("nobody", "202407");
    assert_eq!(ended.batch, "FAILED", "{ended:?}");
    assert_eq!(client.names(), [""; 0]);
}

fn parameters_arrive_as_declared(ground: Ground, client: Client) {
    assert_eq!(ground.run("echo", "202407").batch, "SUCCESS");
    assert_eq!(ground.run("text", "202407").batch, "SUCCESS");
    let [json, text] = &client.seen()[..] else { panic!("{:?}", client.seen()) };
    let sent: Value = serde_json::from_str(json["param"].as_str().expect("text")).expect("JSON");
    assert_eq!(sent["batchNo"], "202407");
    assert_eq!(sent["group"], "echo");
    assert_eq!(sent["job"], "ECHO");
    assert_eq!(sent["params"], serde_json::json!({"branch": "上海", "count": 3}));
    assert!(sent["idempotencyKey"].as_str().is_some_and(|key| !key.is_empty()), "{sent}");
    assert_eq!(text["param"], "202407,a=1");
    assert_eq!((&text["index"], &text["total"]), (&Value::from(0), &Value::from(1)));
    // A run has a number of its own, a job keeps its.
    assert_ne!(json["log"], text["log"]);
    assert_ne!(json["job"], text["job"]);
}

/// Whether the executor's own clock ends it or ours, the run is over and has not gone on.
fn a_run_that_takes_too_long_is_stopped(ground: Ground, client: Client) {
    let ended = ground.run("late", "202407");
    assert_eq!(ended.batch, "FAILED", "{ended:?}");
    assert_eq!(client.names(), ["sleep"], "{ended:?}");
}

/// It knows no time-out and no kill; nobody knows what it does, until it says.
fn a_run_that_takes_too_long_and_cannot_be_stopped_is_unknown(ground: Ground, client: Client) {
    ground.open_with("late", "202407", "millis=60000");
    let ended = ground.until_end("late", "202407");
    assert_eq!(ended.batch, "FAILED", "{ended:?}");
    assert_eq!(client.names(), ["sleep"]);
    assert!(ended.words.contains("kill unconfirmed"), "{ended:?}");
}
