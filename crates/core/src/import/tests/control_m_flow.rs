//! Control-M: the same jobs run, whichever fail, also those behind jobs that never ran.

use super::{has_note, import_text, jobs_that_run};
use crate::import::{Imported, System};

const OK: &str = r#""ok": {"Type": "If:CompletionStatus", "CompletionStatus": "NOTOK", "a": {"Type": "Action:SetToOK"}}"#;

/// A command that waits for events, adds events, and has further keys.
fn ctm_job(name: &str, waits: &[&str], adds: &[&str], more: &str) -> String {
    let events = |all: &[&str], separator: &str| {
        let all: Vec<String> = all
            .iter()
            .map(|event| match *event {
                "AND" | "OR" => format!("\"{event}\""),
                event => format!("{{\"Event\": \"{event}\"}}"),
            })
            .collect();
        all.join(separator)
    };
    let more = if more.is_empty() { String::new() } else { format!(", {more}") };
    format!(
        r#""{name}": {{"Type": "Job:Command", "Command": "x",
            "w": {{"Type": "WaitForEvents", "Events": [{}]}}, "e": {{"Type": "AddEvents", "Events": [{}]}}{more}}}"#,
        events(waits, ","),
        events(adds, ",")
    )
}

fn adds_on_failure(event: &str) -> String {
    format!(
        r#""bad": {{"Type": "If:CompletionStatus", "CompletionStatus": "NOTOK", "a": {{"Type": "Event:Add", "Event": "{event}"}}}}"#
    )
}

/// A folder for each list of jobs: F1, F2 …
fn import(folders: &[&[String]]) -> Imported {
    let folder = |(at, jobs): (usize, &&[String])| {
        format!(r#""F{}": {{"Type": "Folder", {}}}"#, at + 1, jobs.join(", "))
    };
    let all: Vec<String> = folders.iter().enumerate().map(folder).collect();
    import_text(System::ControlM, "f.json", &format!("{{{}}}", all.join(", ")))
}

#[test]
fn a_job_set_to_ok_is_one_that_ran() {
    let jobs = [
        ctm_job("A", &[], &["A_OK"], ""),
        ctm_job("B", &["A_OK"], &["B_OK"], OK),
        ctm_job("C", &["B_OK"], &[], ""),
    ];
    // There: A fails and nothing adds A_OK, so B never runs, and neither does C. B fails: it is OK, and C runs.
    for folders in
        [&[&jobs[..]][..], &[&jobs[..2], &jobs[2..]], &[&jobs[..1], &jobs[1..2], &jobs[2..]]]
    {
        let made = import(folders);
        assert_eq!(jobs_that_run(&made, &["A"]), ["A"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &["B"]), ["A", "B", "C"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &[]), ["A", "B", "C"], "{}", made.text);
    }
}

#[test]
fn an_event_of_a_failure_is_one_of_a_job_that_ran() {
    let jobs = [
        ctm_job("A", &[], &["A_OK"], ""),
        ctm_job("B", &["A_OK"], &["B_OK"], &adds_on_failure("B_BAD")),
        ctm_job("ALARM", &["B_BAD"], &["TOLD"], ""),
        ctm_job("AFTER", &["TOLD"], &[], ""),
    ];
    for folders in [&[&jobs[..]][..], &[&jobs[..2], &jobs[2..]], &[&jobs[..3], &jobs[3..]]] {
        let made = import(folders);
        assert_eq!(jobs_that_run(&made, &["A"]), ["A"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &["B"]), ["A", "AFTER", "ALARM", "B"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &[]), ["A", "B"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &["B", "ALARM"]), ["A", "ALARM", "B"], "{}", made.text);
    }
}

#[test]
fn what_waits_for_a_job_that_may_be_left_out_waits_for_it() {
    // K needs the alarm's event as well: it runs on bad days alone.
    let jobs = [
        ctm_job("A", &[], &["A_OK"], &adds_on_failure("A_BAD")),
        ctm_job("ALARM", &["A_BAD"], &["TOLD"], ""),
        ctm_job("B", &[], &["B_OK"], ""),
        ctm_job("K", &["TOLD", "B_OK"], &[], ""),
    ];
    let made = import(&[&jobs]);
    assert_eq!(jobs_that_run(&made, &[]), ["A", "B"], "{}", made.text);
    assert_eq!(jobs_that_run(&made, &["A"]), ["A", "ALARM", "B", "K"], "{}", made.text);
    // In another folder no dependency says so: K is blocked, and a note tells of it.
    let made = import(&[&jobs[..3], &jobs[3..]]);
    assert_eq!(jobs_that_run(&made, &[]), ["A", "B", "wait_K"], "{}", made.text);
    assert!(has_note(&made, "wait_K", "that one follows a failure"), "{:?}", made.notes);
}

#[test]
fn several_jobs_may_add_one_event() {
    let jobs = [
        ctm_job("A", &[], &["READY"], ""),
        ctm_job("B", &[], &["READY"], ""),
        ctm_job("C", &[], &["C_OK"], ""),
        ctm_job("K", &["READY", "C_OK"], &["K_OK"], OK),
        ctm_job("L", &["K_OK"], &[], ""),
    ];
    for folders in [&[&jobs[..]][..], &[&jobs[..2], &jobs[2..]], &[&jobs[..4], &jobs[4..]]] {
        let made = import(folders);
        assert_eq!(jobs_that_run(&made, &["A"]), ["A", "B", "C", "K", "L"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &["K"]), ["A", "B", "C", "K", "L"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &["A", "B"]), ["A", "B", "C"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &["C"]), ["A", "B", "C"], "{}", made.text);
    }
}

#[test]
fn one_of_several_events_is_enough() {
    let jobs = [
        ctm_job("A", &[], &["A_OK"], &adds_on_failure("A_BAD")),
        ctm_job("B", &["A_OK"], &["B_OK"], ""),
        ctm_job("K", &["A_BAD", "OR", "B_OK"], &["K_OK"], OK),
        ctm_job("L", &["K_OK"], &[], ""),
    ];
    for folders in [&[&jobs[..]][..], &[&jobs[..2], &jobs[2..]]] {
        let made = import(folders);
        assert_eq!(jobs_that_run(&made, &["A"]), ["A", "K", "L"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &["B"]), ["A", "B"], "{}", made.text);
        assert_eq!(jobs_that_run(&made, &["K"]), ["A", "B", "K", "L"], "{}", made.text);
    }
}

#[test]
fn jobs_behind_an_unknown_event_do_not_run() {
    let jobs = [ctm_job("A", &["ELSEWHERE"], &["A_OK"], OK), ctm_job("B", &["A_OK"], &[], "")];
    let made = import(&[&jobs]);
    assert_eq!(jobs_that_run(&made, &[]), ["wait_ELSEWHERE_A"], "{}", made.text);
    let mixed = ctm_job("A", &["X", "OR", "Y", "AND", "Z"], &["A_OK"], &adds_on_failure("A_BAD"));
    let made = import(&[&[mixed, ctm_job("B", &["A_BAD"], &[], "")]]);
    assert_eq!(jobs_that_run(&made, &[]), ["wait_A"], "{}", made.text);
    assert!(has_note(&made, "wait_A", "joined by AND and OR"), "{:?}", made.notes);
}
