use super::*;
use crate::domain::calendar::{CalendarDayRule, DayKind, DayOrigin};
use crate::domain::id::{GroupCode, JobCode, JobType};
use crate::domain::job::{Group, JobDef};
use crate::domain::schedule::Timing;
use crate::domain::schedule::trigger::{NumberRule, TriggerWords};
use chrono::NaiveDate;
use chrono_tz::Tz;

fn defs() -> Definition {
    let group = |code: &str, ty: &str, limit| Group {
        batch_type: Some(ty.to_owned()),
        batch_timeout_sec: limit,
        ..Group::with_defaults(GroupCode::parse(code).expect("group"))
    };
    let job = |code: &str, group: &str| {
        let group = GroupCode::parse(group).expect("group");
        let code = JobCode::parse(code).expect("code");
        JobDef::with_defaults(code, group, JobType::parse("NOOP").expect("type"))
    };
    let mut second = job("B", "quick");
    second.timeout_sec = 10;
    Definition {
        groups: vec![
            group("close", "closing", Some(3_600)),
            group("month", "monthly", None),
            group("quick", "often", None),
            group("bare", "none", None),
        ],
        jobs: vec![job("A", "close"), job("M", "month"), second],
        ..Definition::default()
    }
}

/// 2024-08-01T00:00:00Z.
const NOW: Millis = Millis(1_722_470_400_000);

fn read(json: &str) -> TriggerDef {
    let words: TriggerWords = serde_json::from_str(json).expect(json);
    words
        .parse_trigger(Some(Tz::Asia__Shanghai))
        .unwrap_or_else(|faults| panic!("{json}: {faults}"))
}

fn found(json: &str, expected: &[(&str, i64)]) -> Vec<String> {
    let expected =
        expected.iter().map(|(code, ms)| (GroupCode::parse(code).expect("group"), *ms)).collect();
    let defs = defs();
    let around =
        TriggerCheckContext { defs: &defs, calendars: None, now: NOW, expected: &expected };
    let words = |f: TriggerFinding| {
        let grade = match f.grade {
            TriggerGrade::Refused => "refused",
            TriggerGrade::Warned => "warned",
        };
        format!("{grade} {}: {}", f.fault.key, f.fault)
    };
    check(&read(json), &around).into_iter().map(words).collect()
}

#[test]
fn schedules_that_do_what_is_meant_pass() {
    for json in [
        r#"{"code":"S","group":"close","batch_no":"month(-1)","cron":"0 0 2 1 * ?"}"#,
        r#"{"code":"S","type":"closing","batch_no":"day(0)","cron":"0 0 2 * * ?"}"#,
        r#"{"code":"S","group":"close","batch_no":"quarter(0)","rule":"last working day of quarter",
            "at":"18:00","calendar":"cn"}"#,
        r#"{"code":"S","group":"quick","batch_no":"time(%Y%m%d-%H%M)","every_sec":300}"#,
        r#"{"code":"S","group":"quick","batch_no":"time(%Y%m%d-%H%M%S)","cron":"0/15 * * * * ?"}"#,
        r#"{"code":"S","group":"close","batch_no":"same","after":"quick"}"#,
        r#"{"code":"S","group":"close","batch_no":"prev","after":{"group":"quick","on":"end"}}"#,
        r#"{"code":"S","group":"close","batch_no":"adhoc","manual":true}"#,
        r#"{"code":"S","group":"close","batch_no":"adhoc","once_at":"2026-12-31T18:00"}"#,
        r#"{"code":"S","handler":"noopHandler","every_sec":1}"#,
        r#"{"code":"S","group":"close","batch_no":"time(%Y%m%d-%H%M%S)","delay_sec":5}"#,
        r#"{"code":"S","group":"month","batch_no":"month(-1)","cron":"0 0 2 1 * ?"}"#,
        r#"{"code":"S","group":"month","batch_no":"trial","free_text":true,"manual":true}"#,
        r#"{"code":"S","group":"month","batch_no":"same","after":"quick"}"#,
        r#"{"code":"S","group":"month","batch_no":"month(0)","after":"quick"}"#,
    ] {
        assert_eq!(found(json, &[]), [""; 0], "{json}");
    }
}

const HOUR: i64 = 3_600_000;

/// The keys of a schedule of group `close`, the expected durations of batches, and the expected findings.
type Case = (&'static str, &'static [(&'static str, i64)], &'static str);

const FOUND: &[Case] = &[
    // Numbers.
    (
        r#""batch_no":"month(-1)","cron":"0 0 2 1,15 * ?""#,
        &[],
        "refused batch_no: batch_no month(-1) is 202408 at 2024-09-01 02:00:00 and again at \
             2024-09-15 02:00:00; a batch never runs twice, so the second opens nothing; write \
             batch_no: day(0)",
    ),
    (r#""batch_no":"day(0)","cron":"0 0 * * * ?""#, &[], "write batch_no: time(%Y%m%d-%H%M)"),
    (r#""batch_no":"adhoc","cron":"0 0 2 1 * ?""#, &[], "batch_no adhoc is adhoc at"),
    (r#""batch_no":"time(%d)","cron":"0 0 2 * * ?""#, &[], "write batch_no: time(%Y%m%d)"),
    (r#""batch_no":"month(-1)","cron":"0 0 2 1,15 * ?","overlap":"skip""#, &[], "warned batch_no:"),
    (r#""batch_no":"prev","cron":"0 0 2 1 * ?""#, &[], "are for schedules with after:"),
    (r#""batch_no":"months","after":"quick""#, &[], "does not give one batch number"),
    (r#""batch_no":"time(%H:%M)","cron":"0 0 2 1 * ?""#, &[], "refused batch_no:"),
    (
        r#""batch_no":"time(%Y%m%d-%H%M)","cron":"0 0/30 * * * ?","time_zone":"America/New_York""#,
        &[],
        "warned batch_no: clocks of America/New_York go back",
    ),
    // Time to end.
    (
        r#""batch_no":"time(%Y%m%d-%H%M%S)","cron":"0/5 * * * * ?""#,
        &[],
        "refused cron: it fires every 5.0 s, and a batch of group close may take 1 h 00 min",
    ),
    (r#""batch_no":"time(%Y%m%d-%H%M)","cron":"0 0/10 * * * ?""#, &[], "warned cron: it fires"),
    (
        r#""batch_no":"time(%Y%m%d-%H%M)","cron":"0 0/10 * * * ?""#,
        &[("close", HOUR)],
        "refused cron: it fires every 10 min 00 s, and a batch of group close takes 1 h 00 min",
    ),
    (
        r#""batch_no":"time(%Y%m%d-%H%M)","cron":"0 0/10 * * * ?","overlap":"replace""#,
        &[("close", HOUR)],
        "each would be killed by the next",
    ),
    (
        r#""batch_no":"time(%Y%m%d-%H%M)","cron":"0 0/10 * * * ?","overlap":"parallel""#,
        &[("close", HOUR)],
        "warned cron: it fires every 10 min 00 s, and a batch of group close \
             takes 1 h 00 min, going by its history: about 7 will run at once",
    ),
    // Never.
    (r#""batch_no":"day(0)","cron":"0 0 0 30 2 ?""#, &[], "refused cron:"),
    (r#""batch_no":"adhoc","once_at":"2020-01-01T00:00""#, &[], "is over; write a later time"),
    (
        r#""batch_no":"day(0)","rule":"last working day of month","at":"18:00""#,
        &[],
        "refused rule: rule 'last working day of month' needs a calendar",
    ),
    // The rest of the definition.
    (r#""batch_no":"same","after":"quik""#, &[], "warned after: after: group quik is not defined"),
    (
        r#""batch_no":"day(0)","cron":"0 0 2 * * ?","params":{"x":"${plannd_at}"}"#,
        &[],
        "refused params: parameter x: ${plannd_at} is not known here",
    ),
];

#[test]
fn schedules_that_do_not_are_refused_with_the_cure() {
    for (json, expected, said) in FOUND {
        let json = format!(r#"{{"code":"S","group":"close",{json}}}"#);
        let all = found(&json, expected);
        assert!(all.iter().any(|f| f.contains(said)), "{json}: {all:#?}");
    }
    for (keys, number) in [
        (r#""batch_no":"day(0)","cron":"0 0 2 * * ?""#, "20240802"),
        (r#""batch_no":"quarter(-1)","cron":"0 0 2 1 1,4,7,10 ?""#, "2024Q3"),
        (r#""batch_no":"time(%Y-%m)","cron":"0 0 2 1 * ?""#, "2024-09"),
        (r#""batch_no":"2024-07","manual":true"#, "2024-07"),
    ] {
        let all = found(&format!(r#"{{"code":"S","group":"month",{keys}}}"#), &[]);
        let said = format!(
            "refused batch_no: group month is monthly, and {number} is not the number of a month"
        );
        assert!(all.len() == 1 && all[0].starts_with(&said), "{keys}: {all:#?}");
    }
    for (target, said) in [
        (r#""group":"bare""#, "refused group: group bare has no active job"),
        (r#""type":"yearly""#, "refused type: no group of type yearly"),
    ] {
        let json = format!(r#"{{"code":"S",{target},"batch_no":"day(0)","cron":"0 0 2 * * ?"}}"#);
        let all = found(&json, &[]);
        assert!(all.iter().any(|f| f.starts_with(said)), "{json}: {all:#?}");
    }
}

#[test]
fn schedules_that_start_one_another_are_refused() {
    let after = |code: &str, from: &str, to: &str| {
        read(&format!(r#"{{"code":"{code}","group":"{to}","batch_no":"next","after":"{from}"}}"#))
    };
    let rings_of = |all: &[TriggerDef]| -> Vec<String> {
        rings(all, &defs()).into_iter().map(|(code, f)| format!("{code}: {}", f.fault)).collect()
    };
    let line = [after("S1", "close", "quick"), after("S2", "quick", "bare")];
    assert_eq!(rings_of(&line), [""; 0]);
    let ring = [line.as_slice(), &[after("S3", "bare", "close")]].concat();
    let said = "S1: these schedules start one another without end: S1 (after close) -> S2 (after \
                quick) -> S3 (after bare); remove one of them, or its after";
    assert_eq!(rings_of(&ring), [said]);
    assert_eq!(rings_of(&[after("S", "close", "close")]).len(), 1, "a group after itself");
    // By type.
    let by_type = read(r#"{"code":"T","type":"closing","batch_no":"same","after":"quick"}"#);
    assert_eq!(rings_of(&[line[0].clone(), by_type]).len(), 1);
}

/// The Chinese holidays and make-up days of 2025 and 2026, copied by hand from the notices of the State Council
/// (国办发明电〔2024〕12号, 国办发明电〔2025〕7号).
fn cn() -> Calendars {
    let days = |from: &str, to: &str| {
        let to: NaiveDate = to.parse().expect("day");
        from.parse::<NaiveDate>().expect("day").iter_days().take_while(move |day| *day <= to)
    };
    let off = [
        ("2025-01-01", "2025-01-01"),
        ("2025-01-28", "2025-02-04"),
        ("2025-04-04", "2025-04-06"),
        ("2025-05-01", "2025-05-05"),
        ("2025-05-31", "2025-06-02"),
        ("2025-10-01", "2025-10-08"),
        ("2026-01-01", "2026-01-03"),
        ("2026-02-15", "2026-02-23"),
        ("2026-04-04", "2026-04-06"),
        ("2026-05-01", "2026-05-05"),
        ("2026-06-19", "2026-06-21"),
        ("2026-09-25", "2026-09-27"),
        ("2026-10-01", "2026-10-07"),
    ];
    let work = [
        "2025-01-26",
        "2025-02-08",
        "2025-04-27",
        "2025-09-28",
        "2025-10-11",
        "2026-01-04",
        "2026-02-14",
        "2026-02-28",
        "2026-05-09",
        "2026-09-20",
        "2026-10-10",
    ];
    let mut made = Calendar::with_defaults(CalendarCode::parse("cn").expect("code"));
    made.years.extend([2025, 2026]);
    let day = |kind, year| CalendarDayRule { kind, label: None, origin: DayOrigin::List(year) };
    for date in off.iter().flat_map(|(from, to)| days(from, to)) {
        made.days.insert(date, day(DayKind::Off, 2026));
    }
    for date in work {
        made.days.insert(date.parse().expect("day"), day(DayKind::Work, 2026));
    }
    Calendars::new(vec![made]).expect("sound")
}

fn preview(json: &str) -> Vec<String> {
    let def = read(json);
    let timing: &Timing = &def.timing;
    let from: Millis =
        "2024-12-31T16:00:00Z".parse::<chrono::DateTime<chrono::Utc>>().expect("time").into();
    let (calendars, until) = (cn(), from.plus_ms(730 * 86_400_000));
    let order = def.order.as_ref().expect("an order");
    timing
        .preview(&calendars, from, Anchor::new(from))
        .map(|o| o.expect("planned"))
        .take_while(|o| o.planned < until)
        .map(|o| {
            let at = PlannedInstant {
                schedule: "S",
                planned: o.planned,
                nominal: o.nominal,
                zone: timing.zone,
                parent: None,
            };
            let NumberRule::Expr(_) = &order.batch_no else { panic!("an expression") };
            let local = o.planned.to_utc().with_timezone(&timing.zone);
            let no = order.batch_no.number(at).expect("number");
            format!("{} {no}", local.format("%Y-%m-%d %H:%M %:z"))
        })
        .collect()
}

/// Every last day of a quarter in these two years is a working day: holidays only affect ends of months.
#[test]
fn the_last_working_days_of_quarters_and_months_are_those_of_the_notices() {
    let quarters = preview(
        r#"{"code":"S","group":"close","batch_no":"quarter(0)","rule":"last working day of quarter",
            "at":"18:00","calendar":"cn"}"#,
    );
    let wanted = [
        "2025-03-31 18:00 +08:00 2025Q1",
        "2025-06-30 18:00 +08:00 2025Q2",
        "2025-09-30 18:00 +08:00 2025Q3",
        "2025-12-31 18:00 +08:00 2025Q4",
        "2026-03-31 18:00 +08:00 2026Q1",
        "2026-06-30 18:00 +08:00 2026Q2",
        "2026-09-30 18:00 +08:00 2026Q3",
        "2026-12-31 18:00 +08:00 2026Q4",
    ];
    assert_eq!(quarters, wanted);
    let months = preview(
        r#"{"code":"S","group":"close","batch_no":"month(0)","rule":"last working day of month",
            "at":"18:00","calendar":"cn"}"#,
    );
    let days: Vec<&str> = months.iter().map(|line| &line[..10]).collect();
    // 27 January 2025 is the Monday before the Spring Festival; 28 February 2026 is a worked Saturday.
    let wanted = [
        "2025-01-27",
        "2025-02-28",
        "2025-03-31",
        "2025-04-30",
        "2025-05-30",
        "2025-06-30",
        "2025-07-31",
        "2025-08-29",
        "2025-09-30",
        "2025-10-31",
        "2025-11-28",
        "2025-12-31",
        "2026-01-30",
        "2026-02-28",
        "2026-03-31",
        "2026-04-30",
        "2026-05-29",
        "2026-06-30",
        "2026-07-31",
        "2026-08-31",
        "2026-09-30",
        "2026-10-30",
        "2026-11-30",
        "2026-12-31",
    ];
    assert_eq!(days, wanted);
}
