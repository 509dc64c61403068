//! P-01: the suites of store and engine run with the same tests on all three databases, and none is
//! skipped in silence. Asked of the test binary itself, not of its source.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// What the folders call the databases.
const SERVERS: [(&str, &str); 4] =
    [("sqlite", "sqlite"), ("mysql", "mysql"), ("mariadb", "mysql"), ("postgres", "postgres")];

/// Names of this binary's tests, as it lists them itself.
fn listed(args: &[&str]) -> Vec<String> {
    let own = std::env::current_exe().expect("this binary");
    let output = Command::new(own).args(["--list", "--format", "terse"]).args(args).output();
    let text = String::from_utf8(output.expect("it lists its tests").stdout).expect("UTF-8");
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

#[test]
fn the_same_tests_of_store_and_flow_run_on_every_database() {
    let mut tests = BTreeMap::<(&str, String), BTreeSet<String>>::new();
    for name in listed(&[]) {
        let room = name.split("::").next().unwrap_or_default().to_owned();
        let server = SERVERS.iter().find(|(word, _)| name.contains(&format!("::{word}::")));
        if let (true, Some((word, server))) = (["store", "flow"].contains(&&*room), server) {
            tests.entry((server, room)).or_default().insert(name.replace(&format!("::{word}"), ""));
        }
    }
    for room in ["store", "flow"] {
        let of = |server| tests.get(&(server, room.to_owned())).cloned().unwrap_or_default();
        let sqlite = of("sqlite");
        assert!(sqlite.len() > 20, "{room} has hardly any tests: {sqlite:?}");
        for server in ["mysql", "postgres"] {
            let theirs = of(server);
            let differing: Vec<_> = sqlite.symmetric_difference(&theirs).collect();
            assert!(differing.is_empty(), "{room}: not on both sqlite and {server}: {differing:?}");
        }
    }
    let ignored: Vec<_> = listed(&["--ignored"])
        .into_iter()
        .filter(|name| name.starts_with("store::") || name.starts_with("flow::"))
        .collect();
    assert!(ignored.is_empty(), "skipped in silence: {ignored:?}");
}
