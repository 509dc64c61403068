//! Tokens: theirs that is not ours, and ours that is not theirs.

use super::client::{APP, until};
use super::{Client, Ground, with_each};
use std::time::Duration;

with_each! {
    pyxxl Pyxxl: with_another_token_it_is_nobody;
    flask Flask: with_another_token_it_is_nobody with_another_token_it_runs_nothing;
    npm Npm: with_another_token_it_is_nobody with_another_token_it_runs_nothing;
    rust Rust: with_another_token_it_is_nobody with_another_token_it_runs_nothing;
}

const ANOTHER: &str = "loud-harbour-lantern-4711";

fn with_another_token_it_is_nobody(ground: Ground, client: Client) {
    let _stranger = ground.client_with(client.kind, ANOTHER);
    until(Duration::from_secs(40), || {
        let rows = ground.rows("SELECT action FROM audit_log WHERE action = 'xxl-refused'");
        if rows.is_empty() { Err("a refusal on record".to_owned()) } else { Ok(()) }
    });
    assert_eq!(ground.registered(), [client.address()]);
}

/// pyxxl is not among them: it asks nobody for a token.
fn with_another_token_it_runs_nothing(ground: Ground, mut client: Client) {
    let stranger = ground.client_with(client.kind, ANOTHER);
    ground.does(&["executor-group", "set", APP, "--address", &stranger.address()]);
    client.kill();
    until(Duration::from_secs(40), || {
        let port = ("127.0.0.1", stranger.port);
        std::net::TcpStream::connect(port).map(drop).map_err(|e| format!("it listens: {e}"))
    });
    let ended = ground.run("ok", "202407");
    assert_eq!(ended.batch, "FAILED", "{ended:?}");
    assert!(ended.words.to_lowercase().contains("token"), "{ended:?}");
    assert_eq!(stranger.names(), [""; 0]);
}
