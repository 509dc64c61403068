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

/// The words of a list in tests/passes: those that put a test into the pass, and those that keep it out.
fn pass_list(name: &str) -> (Vec<String>, Vec<String>) {
    let file = format!("{}/tests/passes/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let words =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (out, put): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with('!'));
    let owned =
        |words: Vec<&str>| words.iter().map(|w| w.trim_start_matches('!').to_owned()).collect();
    (owned(put), owned(out))
}

fn is_in(name: &str, (put, out): &(Vec<String>, Vec<String>)) -> bool {
    put.iter().any(|word| name.contains(word)) && !out.iter().any(|word| name.contains(word))
}

/// Modules of the file `tests/it/handler/stop.rs`: `handler::stop::`.
fn module_of(file: &std::path::Path, root: &std::path::Path) -> String {
    let below = file.strip_prefix(root).expect("below the folder").with_extension("");
    let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    parts.into_iter().filter(|part| part != "mod").map(|part| part + "::").collect()
}

fn sources_below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("entry").path());
    entries.flat_map(|path| if path.is_dir() { sources_below(&path) } else { vec![path] }).collect()
}

/// The second pass, on MySQL, has every test that runs on MariaDB in the first.
#[test]
fn mysql_runs_what_mariadb_runs() {
    let (pass, tests) = (pass_list("mysql"), listed(&[]));
    for word in &pass.0 {
        assert!(tests.iter().any(|name| name.contains(word)), "no test has {word} in its name");
    }
    let own = ["trust::", "browser::", "xxl::"];
    for name in
        tests.iter().filter(|name| name.contains("::mysql::") || name.contains("::mariadb::"))
    {
        let is_own = own.iter().any(|start| name.starts_with(start));
        assert!(is_own || is_in(name, &pass), "{name} does not run on MySQL");
    }
    // Tests that take one database after the other are known by their source.
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    for file in sources_below(&root) {
        let text = std::fs::read_to_string(&file).expect("UTF-8");
        let module = module_of(&file, &root);
        let is_helper = module.starts_with("util::") || module.starts_with("conformance::");
        if is_helper || !(text.contains("DialectName::Mysql") || text.contains("DialectName::ALL"))
        {
            continue;
        }
        let of_module: Vec<_> = tests.iter().filter(|name| name.starts_with(&module)).collect();
        let is_covered = of_module.iter().any(|name| is_in(name, &pass)) || of_module.is_empty();
        assert!(is_covered, "none of the tests of {module} runs on MySQL");
    }
}

/// What the short passes are for is in them, on each kind of server.
#[test]
fn the_short_list_has_what_it_is_for() {
    let (pass, tests) = (pass_list("short"), listed(&[]));
    for word in &pass.0 {
        assert!(tests.iter().any(|name| name.contains(word)), "no test has {word} in its name");
    }
    for part in [
        "migrations::",
        "month_end_close::mysql",
        "month_end_close::postgres",
        "handler::proc::",
        "handler::stop::mariadb",
        "handler::stop::postgres",
        "handler::ledger::",
        "handler::sessions::",
        "flow::recovery::mariadb",
        "flow::recovery::postgres",
        "store::mysql::an_empty_database_is_behind",
        "store::postgres::an_empty_database_is_behind",
        "store::mysql::a_migrated_schema_is_current",
        "store::postgres::a_migrated_schema_is_current",
    ] {
        let all: Vec<_> = tests.iter().filter(|name| name.contains(part)).collect();
        assert!(!all.is_empty() && all.iter().all(|name| is_in(name, &pass)), "{part}");
    }
}
