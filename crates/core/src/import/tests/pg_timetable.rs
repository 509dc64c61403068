//! pg_timetable: parameters reach every call.

use super::{has_note, import_text, job, jobs_that_run, script};
use crate::import::{Imported, Level, System};

fn task(keys: &str) -> Imported {
    let text = format!(
        "chains:\n- name: c\n  schedule: '0 1 * * *'\n  live: true\n  tasks:\n  - {{name: t, {keys}}}\n"
    );
    import_text(System::PgTimetable, "p.yaml", &text)
}

#[test]
fn a_flat_list_of_a_program_is_one_call() {
    let made =
        task("kind: PROGRAM, command: psql, parameters: ['-h', localhost, '-c', \"SELECT 'x'\"]");
    assert_eq!(script(&made, "t"), "set -e\n'psql' '-h' 'localhost' '-c' 'SELECT '\\''x'\\'''\n");
    assert!(has_note(&made, "t", "flat list, at which pg_timetable fails"), "{:?}", made.notes);
    let made = task("kind: PROGRAM, command: echo, parameters: [[a, b]]");
    assert_eq!(script(&made, "t"), "set -e\n'echo' 'a' 'b'\n");
    assert!(!has_note(&made, "t", "flat list"), "{:?}", made.notes);
}

#[test]
fn every_set_of_a_program_runs_and_a_failed_one_fails_the_task() {
    let made = task("kind: PROGRAM, command: cp, parameters: [[a, b], [c], []]");
    let wanted = "failed=0\n'cp' 'a' 'b' || failed=1\n'cp' 'c' || failed=1\n'cp' || failed=1\nexit \"$failed\"\n";
    assert_eq!(script(&made, "t"), wanted);
}

#[test]
fn parameters_that_are_neither_are_left_out_and_told() {
    for parameters in ["[a, [b]]", "[[a, [b]]]", "[[{a: 1}]]", "{a: 1}", "text"] {
        for kind in ["PROGRAM", "SQL"] {
            let made = task(&format!("kind: {kind}, command: x, parameters: {parameters}"));
            assert!(script(&made, "t").ends_with("exit 1\n"), "{kind} {parameters}");
            assert_eq!(made.count(Level::LeftOut), 1, "{kind} {parameters}");
        }
    }
}

#[test]
fn sql_runs_for_each_set_with_its_own_values() {
    let made =
        task("command: 'INSERT INTO t VALUES ($1, $2, $3);', parameters: [[a, 1], [b, null]]");
    let sql = format!("{:?}", job(&made, "t").sql);
    assert!(sql.contains("(:p1, :p2, $3);\\nINSERT INTO t VALUES (:p3, :p4, $3)"), "{sql}");
    let values: Vec<Option<&str>> =
        job(&made, "t").params.iter().map(|p| p.value.as_deref()).collect();
    assert_eq!(values, [Some("a"), Some("1"), Some("b"), None]);
    let made = task("command: 'SELECT f($1)', parameters: ['2024-01-01']");
    assert!(format!("{:?}", job(&made, "t").sql).contains("f(:p1)"));
    assert!(has_note(&made, "t", "flat list"), "{:?}", made.notes);
}

#[test]
fn builtins_keep_all_of_their_values() {
    let made = task("kind: BUILTIN, command: Log, parameters: [it's, {a: [1, x]}]");
    assert_eq!(
        script(&made, "t"),
        "printf '%s\\n' 'it'\\''s'\nprintf '%s\\n' '{\"a\":[1,\"x\"]}'\n"
    );
    let made = task("kind: BUILTIN, command: Sleep, parameters: [5, 7]");
    assert_eq!(script(&made, "t"), "sleep 5\nsleep 7\n");
    assert_eq!(job(&made, "t").timeout_sec, 72);
    let made = task("kind: BUILTIN, command: Sleep");
    assert!(script(&made, "t").ends_with("exit 1\n"), "{}", made.text);
    let made = task("kind: BUILTIN, command: NoOp, parameters: [x]");
    assert!(has_note(&made, "t", "NoOp only prints them"), "{:?}", made.notes);
    for name in [
        "SendMail",
        "Download",
        "CopyFromFile",
        "CopyToFile",
        "CopyFromProgram",
        "CopyToProgram",
        "Shutdown",
        "Other",
    ] {
        let made =
            task(&format!("kind: BUILTIN, command: {name}, parameters: [{{a: 1}}, {{b: 2}}]"));
        assert!(has_note(&made, "t", &format!("BUILTIN {name} (2 sets")), "{:?}", made.notes);
        assert!(script(&made, "t").ends_with("exit 1\n"), "{name}");
    }
}

#[test]
fn one_instance_at_a_time_still_runs_each_time() {
    let text = "chains:\n- name: often\n  schedule: '*/5 * * * *'\n  live: true\n  max_instances: 1\n  tasks: [{command: SELECT 1}]\n";
    let made = import_text(System::PgTimetable, "p.yaml", text);
    assert!(made.text.contains("overlap: skip"), "{}", made.text);
    assert!(made.text.contains("batch_no: time(%Y%m%d-%H%M)"), "{}", made.text);
}

#[test]
fn an_error_that_is_ignored_is_one_of_a_task_that_ran() {
    let text = "chains:\n- name: c\n  schedule: '0 1 * * *'\n  live: true\n  tasks:\n  \
                - {name: a, command: SELECT 1}\n  - {name: b, command: SELECT 2, ignore_error: true}\n  \
                - {name: off, command: SELECT 0, live: false}\n  - {name: c, command: SELECT 3}\n";
    let made = import_text(System::PgTimetable, "p.yaml", text);
    // There: a fails, the chain ends with it; b fails, c runs.
    assert_eq!(jobs_that_run(&made, &["a"]), ["a"], "{}", made.text);
    assert_eq!(jobs_that_run(&made, &["b"]), ["a", "b", "c"]);
    assert_eq!(jobs_that_run(&made, &[]), ["a", "b", "c"]);
}
