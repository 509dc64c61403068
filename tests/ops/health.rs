//! `procession health`, as a container asks it.

use crate::ops::program::{procession, said};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

#[test]
fn it_says_how_the_process_is_and_ends_with_a_code_for_it() {
    let dir = tempfile::tempdir().expect("folder");
    let mut serve = procession(dir.path())
        .args(["serve", "--http", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(serve.stderr.take().expect("stderr")).lines();
    let address = lines.find_map(|line| {
        let line = line.expect("text");
        let (_, rest) = line.split_once("http://")?;
        rest.split('/').next().map(str::to_owned)
    });
    let address = address.expect("it says where it listens");
    for (more, word) in [(&[][..], "ok"), (&["--ready"][..], "database")] {
        let mut ask = procession(dir.path());
        let answer = ask.args(["health", "--http", &address]).args(more).output().expect("it runs");
        assert!(answer.status.success() && said(&answer).contains(word), "{}", said(&answer));
    }
    serve.kill().expect("kill");
    serve.wait().expect("wait");
    let answer = procession(dir.path()).args(["health", "--http", &address]).output();
    let answer = answer.expect("it runs");
    assert_eq!(answer.status.code(), Some(3), "{}", said(&answer));
    let answer =
        procession(dir.path()).args(["health", "--http", "off"]).output().expect("it runs");
    assert!(said(&answer).contains("nobody can ask"), "{}", said(&answer));
}
