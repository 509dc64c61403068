//! The admin is killed, or the executor is, while something runs.

use super::client::until;
use super::{Client, Ground, with_each};
use std::time::Duration;

with_each! {
    pyxxl Pyxxl:
        the_admin_is_killed_and_comes_back the_end_comes_while_the_admin_is_away the_executor_is_killed_and_is_back;
    flask Flask:
        the_admin_is_killed_and_comes_back;
    npm Npm:
        the_admin_is_killed_and_comes_back the_executor_is_killed_and_is_back;
    rust Rust:
        the_admin_is_killed_and_comes_back the_end_comes_while_the_admin_is_away;
}

/// The run goes on, is not started again, and its end is taken by the next process.
fn the_admin_is_killed_and_comes_back(ground: Ground, client: Client) {
    ground.open_with("serial", "202407", "millis=6000");
    client.until_names(&["sleep"]);
    ground.kill_serve();
    ground.serve();
    let ended = ground.until_end("serial", "202407");
    assert_eq!(ended.batch, "SUCCESS", "{ended:?}");
    assert_eq!(client.names(), ["sleep", "slept"]);
    assert_eq!(ground.rows("SELECT COUNT(*) FROM executor_run"), [["1"]]);
}

/// These tell again until they are heard.
fn the_end_comes_while_the_admin_is_away(ground: Ground, client: Client) {
    ground.open_with("serial", "202407", "millis=1500");
    client.until_names(&["sleep"]);
    ground.kill_serve();
    // It tries, and nobody answers.
    ground.hang_up_on(1);
    assert_eq!(client.names(), ["sleep", "slept"]);
    ground.serve();
    let ended = ground.until_end("serial", "202407");
    assert_eq!(ended.batch, "SUCCESS", "{ended:?}");
    assert_eq!(client.names(), ["sleep", "slept"]);
}

/// What it ran is gone, which nothing proves: a restarted executor looks like one that has forgotten a run whose
/// handler ignores its kill. So no other run of the job begins until an operator says what became of it.
fn the_executor_is_killed_and_is_back(ground: Ground, mut client: Client) {
    ground.open_with("serial", "202407", "millis=60000");
    client.until_names(&["sleep"]);
    client.kill();
    client.start_again();
    ground.until_registered(&client);
    ground.does(&["batch", "kill", "202407", "--group", "serial", "--reason", "it is gone"]);
    let ended = ground.until_end("serial", "202407");
    assert_eq!(ended.job, "UNKNOWN", "{ended:?}");
    assert_eq!(client.names(), ["sleep"]);
    ground.open_with("serial", "202408", "millis=1");
    until(Duration::from_secs(20), || {
        let waits =
            ground.rows("SELECT COALESCE(waits_on, '') FROM job_queue WHERE batch_no = '202408'");
        let is_told = waits.iter().flatten().any(|text| text.contains("was ordered to stop"));
        if is_told { Ok(()) } else { Err(format!("it waits for the first run, but {waits:?}")) }
    });
    assert_eq!(client.names(), ["sleep"]);
    let decision = ["job", "force-success", "202407", "SERIAL", "--group", "serial", "--reason"];
    ground.does(&[&decision[..], &["the executor was restarted"]].concat());
    assert_eq!(ground.until_end("serial", "202408").batch, "SUCCESS");
}
