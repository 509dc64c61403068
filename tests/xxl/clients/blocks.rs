//! A run that is asked for while an earlier one of the job is not over, and runs that are killed. Which of two
//! runs goes is decided here, so it is the same whatever a client makes of the field.

use super::client::until;
use super::{Client, Ground, with_each};
use std::time::Duration;

with_each! {
    pyxxl Pyxxl:
        the_later_waits_for_its_turn the_later_is_refused the_earlier_is_stopped
        what_runs_and_what_waits_is_killed;
    flask Flask:
        the_later_waits_for_its_turn the_later_is_refused the_earlier_is_stopped
        what_runs_and_what_waits_is_killed;
    npm Npm:
        the_later_waits_for_its_turn the_later_is_refused the_earlier_is_stopped
        what_runs_and_what_waits_is_killed;
    rust Rust:
        the_later_waits_for_its_turn the_later_is_refused
        the_earlier_cannot_be_stopped_and_is_waited_for a_success_after_the_kill_changes_nothing;
}

const EARLY: &str = "202407";
const LATE: &str = "202408";

fn the_later_waits_for_its_turn(ground: Ground, client: Client) {
    ground.open("serial", EARLY);
    client.until_names(&["sleep"]);
    ground.open("serial", LATE);
    assert_eq!(ground.until_end("serial", EARLY).batch, "SUCCESS");
    assert_eq!(ground.until_end("serial", LATE).batch, "SUCCESS");
    assert_eq!(client.names(), ["sleep", "slept", "sleep", "slept"]);
    let seen = client.seen();
    assert_eq!((&seen[0]["job"], &seen[0]["log"]), (&seen[2]["job"], &seen[1]["log"]));
    assert_ne!(seen[0]["log"], seen[2]["log"]);
}

fn the_later_is_refused(ground: Ground, client: Client) {
    ground.open("discard", EARLY);
    client.until_names(&["sleep"]);
    let late = ground.run("discard", LATE);
    assert_eq!(late.batch, "FAILED", "{late:?}");
    assert!(late.words.contains("DISCARD_LATER"), "{late:?}");
    assert_eq!(ground.until_end("discard", EARLY).batch, "SUCCESS");
    assert_eq!(client.names(), ["sleep", "slept"]);
}

fn the_earlier_is_stopped(ground: Ground, client: Client) {
    ground.open_with("cover", EARLY, "millis=60000");
    client.until_names(&["sleep"]);
    ground.open_with("cover", LATE, "millis=100");
    let early = ground.until_end("cover", EARLY);
    assert!(early.job != "SUCCESS", "{early:?}");
    assert_eq!(ground.until_end("cover", LATE).batch, "SUCCESS");
    assert_eq!(client.names(), ["sleep", "sleep", "slept"]);
}

/// It answers that it killed and goes on: the later run begins when the earlier is over, and not beside it.
fn the_earlier_cannot_be_stopped_and_is_waited_for(ground: Ground, client: Client) {
    ground.open("cover", EARLY);
    client.until_names(&["sleep"]);
    ground.open_with("cover", LATE, "millis=100");
    let early = ground.until_end("cover", EARLY);
    assert!(early.job != "SUCCESS", "{early:?}");
    assert_eq!(ground.until_end("cover", LATE).batch, "SUCCESS");
    assert_eq!(client.names(), ["sleep", "slept", "sleep", "slept"]);
}

fn what_runs_and_what_waits_is_killed(ground: Ground, client: Client) {
    ground.open_with("serial", EARLY, "millis=60000");
    client.until_names(&["sleep"]);
    ground.open("serial", LATE);
    // It waits here, and the executor knows nothing of it.
    until(Duration::from_secs(20), || {
        let rows = ground.rows("SELECT status FROM executor_run ORDER BY log_id");
        if rows.len() == 2 { Ok(()) } else { Err(format!("two runs, but {rows:?}")) }
    });
    ground.does(&["batch", "kill", LATE, "--group", "serial", "--reason", "not today"]);
    ground.does(&["batch", "kill", EARLY, "--group", "serial", "--reason", "not today"]);
    for no in [EARLY, LATE] {
        // Whatever the client tells: npm says 200, pyxxl and Flask 500.
        let ended = ground.until_end("serial", no);
        assert_eq!((ended.batch.as_str(), ended.job.as_str()), ("KILLED", "KILLED"), "{ended:?}");
    }
    assert_eq!(client.names(), ["sleep"]);
    // The job is free for others.
    ground.open_with("serial", "202409", "millis=1");
    assert_eq!(ground.until_end("serial", "202409").batch, "SUCCESS");
}

fn a_success_after_the_kill_changes_nothing(ground: Ground, client: Client) {
    ground.open_with("serial", EARLY, "millis=4000");
    client.until_names(&["sleep"]);
    ground.does(&["batch", "kill", EARLY, "--group", "serial", "--reason", "not today"]);
    client.until_names(&["sleep", "slept"]);
    let ended = ground.until_end("serial", EARLY);
    assert_eq!((ended.batch.as_str(), ended.job.as_str()), ("KILLED", "KILLED"), "{ended:?}");
}
