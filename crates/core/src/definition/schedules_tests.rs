use super::*;
use crate::definition::export::export;
use crate::definition::load::load_definition;
use crate::definition::write::DefinitionFormat;
use crate::domain::job::JobKind;
use std::path::Path;

const KINDS: &[JobKind] = &[JobKind { name: "NOOP", about: "Does nothing.", ..JobKind::PLAIN }];

const HEAD: &str = "\
groups:
  close: {type: monthly, time_zone: Asia/Shanghai, calendar: cn}
  quick: {type: often}
jobs:
  A: {type: NOOP, group: close}
  B: {type: NOOP, group: quick, timeout_sec: 1}
schedules:
";
/// The line of the first schedule.
const FIRST: u32 = 8;

/// 2024-08-01T00:00:00Z.
const NOW: Millis = Millis(1_722_470_400_000);

fn loaded(schedules: &str) -> Result<Loaded, Faults> {
    let text = format!("{HEAD}{schedules}");
    let read = move |_: &Path| Ok(text.clone());
    load_definition(Path::new("d.yaml"), &read, KINDS)
}

/// The findings in the file alone, and then at its time.
fn said(schedules: &str) -> String {
    let expected = BTreeMap::new();
    let look = ScheduleCheckContext { calendars: None, now: NOW, expected: &expected, stored: &[] };
    match loaded(schedules).and_then(|loaded| loaded.look_at_schedules(look)) {
        Ok(warnings) => warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        Err(faults) => faults.to_string(),
    }
}

#[test]
fn every_fault_of_a_file_is_said_at_its_line() {
    let faulty = "\
\x20 ONE:
    group: closed
    batch_no: last month
    cron: '0 0 2 32 * ?'
    time_zone: Asia/Shangai
    misfire: never
    overlap: wait
    start: soon
  TWO: {type: monthly, batch_no: day(0), cron: '0 0 2 * * ?', hander: x}
  THREE:
    handler_param: '{\"batchNo\":\"month(-1)\"}'
    every_sec: 0
  FOUR: {group: close, batch_no: day(0), manual: true, blackouts: [{daily: '9'}], retry_count: -1}
";
    let text = said(faulty);
    for (line, word) in [
        (1, "group closed is not defined in this file; did you mean close?"),
        (2, "'last month' is not a batch number"),
        (3, "cron"),
        (4, "did you mean Asia/Shanghai?"),
        (5, "use one of skip, once, all, or {newest: 3}"),
        (6, "use one of queue, skip, parallel, replace"),
        (7, "start 'soon' is not a date and time"),
        (8, "did you mean handler?"),
        (10, "neither group nor type"),
        (11, "write whole seconds from 1"),
        (12, "blackout daily '9' has no '-'"),
        (12, "retry_count is \"-1\""),
    ] {
        let at = format!("d.yaml:{}: ", FIRST + line);
        let found = text.lines().any(|l| l.starts_with(&at) && l.contains(word));
        assert!(found, "{at}{word}\n--\n{text}");
    }
    assert_eq!(text.lines().count(), 12, "{text}");
}

#[test]
fn what_only_time_shows_is_said_at_the_line_of_its_key() {
    for (schedules, line, word) in [
        (
            "  S:\n    group: close\n    batch_no: month(-1)\n    cron: '0 0 2 * * ?'\n",
            2,
            "again at",
        ),
        (
            "  S:\n    group: close\n    batch_no: day(0)\n    cron: '0 0 2 30 2 ?'\n",
            3,
            "d.yaml:11: schedule S:",
        ),
        (
            "  S:\n    handler_param: '{\"batchNo\":\"month(-1)\",\"type\":\"monthly\"}'\n    cron: '0 0 2 * * ?'\n",
            1,
            "again at",
        ),
        ("  S:\n    group: close\n    batch_no: day(0)\n    once_at: 2020-01-01\n", 3, "is over"),
        (
            "  S: {group: close, batch_no: same, after: quick}\n  T:\n    group: quick\n    after: close\n    batch_no: same\n",
            0,
            "without end: S (after quick) -> T (after close)",
        ),
    ] {
        let text = said(schedules);
        let at = format!("d.yaml:{}: ", FIRST + line);
        let found = text.lines().any(|l| l.starts_with(&at) && l.contains(word));
        assert!(found, "{at}{word}\n--\n{text}");
    }
}

#[test]
fn what_is_stored_already_is_not_refused_because_its_time_is_over() {
    let file =
        loaded("  S: {group: close, batch_no: adhoc, once_at: 2020-01-01}\n").expect("sound");
    let expected = BTreeMap::new();
    let stored = &file.definition.schedules;
    let look = ScheduleCheckContext { calendars: None, now: NOW, expected: &expected, stored };
    let warnings = file.look_at_schedules(look).expect("a warning alone");
    assert!(warnings[0].to_string().contains("is over"), "{warnings:?}");
    assert!(file.look_at_schedules(ScheduleCheckContext { stored: &[], ..look }).is_err());
}

#[test]
fn zone_and_calendar_are_those_of_the_group_and_a_file_comes_back() {
    let all = "\
\x20 - {code: RULE, group: close, batch_no: month(0), rule: last working day of month, at: '18:00'}
  - {code: CRON, type: monthly, batch_no: month(-1), cron: '0 0 2 1 * ?', misfire: {newest: 3},
     misfire_window_sec: 3600, overlap: parallel, params: {x: '1'}, notify_email: [a@b.example]}
  - {code: AFTER, group: quick, batch_no: same, after: {group: close, on: end}}
  - {code: EVENT, group: quick, batch_no: adhoc, event: closed, blackouts: [{daily: 22:00-06:00, days: mon}]}
  - {code: TRY, handler: noopHandler, every_sec: 5, time_zone: UTC}
";
    let defs = loaded(all).expect("sound").definition;
    let [rule, cron, ..] = &defs.schedules[..] else { panic!("{:?}", defs.schedules) };
    assert_eq!(rule.timing.zone, Tz::Asia__Shanghai);
    assert_eq!(rule.timing.calendar.as_ref().map(|c| c.as_str()), Some("cn"));
    assert_eq!(cron.timing.calendar, None, "a plain cron asks no calendar");
    for format in [DefinitionFormat::Yaml, DefinitionFormat::Json] {
        let text = export(&defs, KINDS, format).expect("written and read again");
        assert!(text.contains("last working day of month"), "{text}");
        assert!(!text.contains("retry_delay_sec"), "what is usual is left out: {text}");
    }
}
