//! Runs whose end is never told: what an executor does not say is never guessed.

use super::client::until;
use super::{Client, Ground, Kind, with};
use std::panic::resume_unwind;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

type Scene = fn(Ground, Client);

/// All at once, because they mostly wait; each to its end, so that each cleans up.
#[test]
fn an_end_that_nobody_tells_is_not_guessed() {
    let scenes: [(Kind, Scene); 5] = [
        (Kind::Pyxxl, what_a_killed_executor_ran_is_lost),
        (Kind::Flask, what_a_killed_executor_ran_is_lost),
        (Kind::Npm, what_a_killed_executor_ran_is_lost),
        (Kind::Flask, an_end_that_was_given_up_is_lost),
        (Kind::Npm, an_end_that_was_told_into_the_void_is_waited_for),
    ];
    let scenes = scenes.map(|(kind, scene)| spawn(move || with(kind, scene)));
    for ended in scenes.map(JoinHandle::join) {
        ended.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

/// Looks at it are half a minute apart, and it is lost a minute after the first that finds it idle.
const LONG: Duration = Duration::from_secs(200);

/// What is done with a run that is lost, in a group of its own each. Its first look is after 5 s.
const DEFINITION: &str = "
groups: { held: {}, again: {}, failed: {}, limited: {} }
templates:
  sleep:
    type: HANDLER
    executor: { app: host-app, handler: sleep, send: text }
    params: [ { name: millis, value: '15000' } ]
jobs:
  HELD: { group: held, template: sleep }
  AGAIN: { group: again, template: sleep, idempotent: true, retry_count: 1, retry_delay_sec: 1 }
  FAILED: { group: failed, template: sleep, on_unknown: fail }
  LIMITED: { group: limited, template: sleep, timeout_sec: 20 }
";

fn apply(ground: &Ground) {
    ground.change_file("lost.yaml", DEFINITION);
    ground.does(&["apply", "lost.yaml"]);
}

/// Waits until so many runs were seen to be under way.
fn until_seen_busy(ground: &Ground, runs: usize) {
    until(Duration::from_secs(40), || {
        let rows = ground.rows("SELECT log_id FROM executor_run WHERE busy_time IS NOT NULL");
        if rows.len() == runs { Ok(()) } else { Err(format!("{runs} busy, but {rows:?}")) }
    });
}

const LOST: &str = "is lost: its executor ran it, does not any more, and has not told its end";

/// It is started again under its address, and answers that it is idle.
fn what_a_killed_executor_ran_is_lost(ground: Ground, mut client: Client) {
    apply(&ground);
    for group in ["held", "again", "failed"] {
        ground.open(group, "202407");
    }
    client.until_names(&["sleep", "sleep", "sleep"]);
    until_seen_busy(&ground, 3);
    client.kill();
    client.start_again();
    for (group, batch, job) in [
        ("held", "FAILED", "UNKNOWN"),
        ("failed", "FAILED", "FAILED"),
        ("again", "SUCCESS", "SUCCESS"),
    ] {
        let ended = ground.until_end_within(LONG, group, "202407");
        assert_eq!((ended.batch.as_str(), ended.job.as_str()), (batch, job), "{group}: {ended:?}");
        assert!(group == "again" || ended.words.contains(LOST), "{group}: {ended:?}");
    }
    // Only what may be done twice was.
    client.until_names(&["sleep", "sleep", "sleep", "sleep", "slept"]);
    let sql = "SELECT job_code, COALESCE(result, handle_code) FROM executor_run ORDER BY job_code, log_id";
    let wanted =
        [["AGAIN", "LOST"], ["AGAIN", "200"], ["FAILED", "LOST"], ["HELD", "LOST"]].map(Vec::from);
    assert_eq!(ground.rows(sql), wanted);
}

/// Flask-XXLJob says it four times, which is what its host has set, and is idle then.
fn an_end_that_was_given_up_is_lost(ground: Ground, client: Client) {
    apply(&ground);
    ground.open("held", "202407");
    client.until_names(&["sleep"]);
    until_seen_busy(&ground, 1);
    ground.kill_serve();
    ground.hang_up_on(4);
    assert_eq!(client.names(), ["sleep", "slept"]);
    ground.serve();
    let ended = ground.until_end_within(LONG, "held", "202407");
    assert_eq!((ended.batch.as_str(), ended.job.as_str()), ("FAILED", "UNKNOWN"), "{ended:?}");
    assert!(ended.words.contains(LOST), "{ended:?}");
}

/// npm's says that it is busy from then on, because it gives up in the middle of telling: first that it went well,
/// then that telling that failed. Only the time-out ends it.
fn an_end_that_was_told_into_the_void_is_waited_for(ground: Ground, client: Client) {
    apply(&ground);
    ground.open_with("limited", "202407", "millis=1500");
    client.until_names(&["sleep"]);
    ground.kill_serve();
    ground.hang_up_on(2);
    assert_eq!(client.names(), ["sleep", "slept"]);
    ground.serve();
    let ended = ground.until_end_within(LONG, "limited", "202407");
    assert_eq!((ended.batch.as_str(), ended.job.as_str()), ("FAILED", "TIMEOUT"), "{ended:?}");
    assert_eq!(ground.rows("SELECT COUNT(*) FROM executor_run"), [["1"]]);
    // The order to stop frees it.
    ground.open_with("limited", "202408", "millis=1");
    assert_eq!(ground.until_end("limited", "202408").batch, "SUCCESS");
    assert_eq!(client.names(), ["sleep", "slept", "sleep", "slept"]);
}
