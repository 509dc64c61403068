use super::*;
use crate::domain::calendar::Calendar;
use crate::domain::calendar::CalendarDayRule;
use crate::domain::calendar::Calendars;
use crate::domain::calendar::DayKind;
use crate::domain::calendar::DayOrigin;
use crate::domain::calendar::Working;
use crate::domain::text::lang::Lang;
use crate::domain::time::local_time::{shown, wall_at};
use chrono::{Datelike as _, Days};
use proptest::prelude::*;
use std::collections::BTreeMap;

mod properties;

/// The statutory days of China, 2023 to 2026.
const CHINA: &str = include_str!("../../../../../tests/data/calendar/07_holiday_cn_2023_2026.json");

fn china() -> Calendars {
    let file: serde_json::Value = serde_json::from_str(CHINA).expect("JSON");
    let mut calendar = Calendar::with_defaults(code("cn"));
    for list in file["years"].as_array().expect("years") {
        let year = i32::try_from(list["year"].as_i64().expect("a year")).expect("a year");
        calendar.years.insert(year);
        for day in list["days"].as_array().expect("days") {
            let text = |at: usize| day[at].as_str().expect("text");
            let kind = if text(1) == "off" { DayKind::Off } else { DayKind::Work };
            let label = Some(text(2).to_owned());
            let of = CalendarDayRule { kind, label, origin: DayOrigin::List(year) };
            calendar.days.insert(text(0).parse().expect("a date"), of);
        }
    }
    Calendars::new(vec![calendar]).expect("sound")
}

fn code(word: &str) -> CalendarCode {
    CalendarCode::parse(word).expect("a code")
}

/// A timing from its JSON, with `time_zone` Shanghai where none is given.
fn timing(json: &str) -> Timing {
    read(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn read(json: &str) -> Result<Timing, ScheduleError> {
    let words: TimingWords = serde_json::from_str(json).expect("the keys are known");
    words.parse_timing(Some(Tz::Asia__Shanghai))
}

fn at(text: &str) -> Millis {
    text.parse::<chrono::DateTime<chrono::Utc>>().expect("RFC 3339").into()
}

/// The next occurrences after a moment, each as local time, nominal day where it differs, and reasons.
fn preview(json: &str, after: &str, n: usize) -> Vec<String> {
    let (timing, china) = (timing(json), china());
    let word = |o: Occurrence| {
        let wall = wall_at(o.planned, timing.zone);
        let mut text = wall.format("%Y-%m-%d %H:%M:%S %a").to_string();
        if o.nominal != wall.date() {
            text += &format!(" for {}", o.nominal);
        }
        o.why.iter().for_each(|why| text += &format!("; {}", why.words(Lang::En)));
        text
    };
    let anchor = Anchor::new(at(after));
    let found = timing.preview(&china, at(after), anchor).take(n);
    found.map(|o| word(o.expect("an answer"))).collect()
}

#[test]
fn keys_are_flat_and_come_back() {
    for json in [
        r#"{"cron":"0 0 2 * * ?","time_zone":"Asia/Shanghai"}"#,
        r#"{"every_sec":300,"time_zone":"UTC"}"#,
        r#"{"delay_sec":300,"time_zone":"UTC","calendar":"cn","shift":"skip"}"#,
        r#"{"once_at":"2026-12-31T18:00:00","time_zone":"Europe/London"}"#,
        r#"{"rule":"last working day of quarter","at":"18:00","time_zone":"Asia/Shanghai","calendar":"cn"}"#,
        r#"{"event":"ledger closed","time_zone":"UTC"}"#,
        r#"{"manual":true,"time_zone":"UTC"}"#,
        r#"{"after":{"group":"month_end","on":"end"},"time_zone":"UTC"}"#,
        r#"{"cron":"0 0 2 1 * ?","time_zone":"UTC","calendar":"cn","shift":"next","start":"2026-01-01T00:00:00","end":"2027-01-01T00:00:00","blackouts":[{"from":"2026-12-31T18:00:00","until":"2027-01-02T08:00:00","because":"freeze"},{"daily":"22:00-06:00:30","days":"mon,fri"},{"daily":"12:00-13:00"}]}"#,
    ] {
        let timing: Timing = serde_json::from_str(json).expect(json);
        assert_eq!(serde_json::to_string(&timing).expect("JSON"), json);
    }
    let short = timing(r#"{"after":"month_end"}"#);
    let group = GroupCode::parse("month_end").expect("a code");
    assert_eq!(short.schedule, FiringRule::After { group, on: BatchEndFilter::Success });
    let same = timing(
        r#"{"once_at":"2026-12-31 18:00","blackouts":[{"daily":"22:00-06:00","days":"Fri-Mon"}]}"#,
    );
    assert_eq!(same.blackouts[0].time.to_string(), "22:00-06:00 mon,fri,sat,sun");
}

/// A timing is flattened among other keys in the body of a trigger and in YAML.
#[test]
fn it_stands_among_other_keys() {
    #[derive(Serialize, Deserialize)]
    struct Body {
        name: String,
        #[serde(flatten)]
        timing: Timing,
    }
    let yaml = "name: night\nrule: 3rd working day of month\nat: 18:00\ntime_zone: Asia/Shanghai\ncalendar: cn\nblackouts:\n  - { daily: 22:00-06:00, days: sat-sun }\n";
    let body: Body = serde_saphyr::from_str(yaml).expect("YAML");
    assert_eq!(body.timing.schedule.kind(), "rule");
    let json = serde_json::to_string(&body).expect("JSON");
    let again: Body = serde_json::from_str(&json).expect("JSON");
    assert_eq!((again.name, again.timing), (body.name, body.timing));
}

#[test]
fn what_cannot_be_read_says_what_to_write() {
    for (json, said) in [
        (r"{}", "none is here"),
        (r#"{"cron":"0 0 2 * * ?","every_sec":5}"#, "here are cron and every_sec"),
        (r#"{"manual":false}"#, "none is here"),
        (r#"{"cron":"0 0 2 * * *"}"#, "write ?"),
        (r#"{"every_sec":0}"#, "every_sec is 0; write whole seconds from 1"),
        (r#"{"delay_sec":-5}"#, "delay_sec is -5"),
        (r#"{"every_sec":999999999999}"#, "write whole seconds from 1 to"),
        (r#"{"once_at":"31.12.2026"}"#, "once_at '31.12.2026' is not a date and time"),
        (r#"{"once_at":"2026-12-31T18:00:00Z"}"#, "without an offset"),
        (r#"{"once_at":"2026-02-30T18:00"}"#, "is not a date and time"),
        (r#"{"once_at":"2026-12-31T23:59:60"}"#, "is not a date and time"),
        (r#"{"rule":"day 3 of month"}"#, "add at"),
        (r#"{"rule":"day 3 of month","at":"6pm"}"#, "write 18:00"),
        (r#"{"rule":"day 3 of month","at":"24:00"}"#, "write 18:00"),
        (r#"{"cron":"0 0 2 * * ?","at":"18:00"}"#, "at goes with rule alone"),
        (r#"{"rule":"third friday of month","at":"18:00"}"#, "'third friday' is not understood"),
        (r#"{"event":" "}"#, "is not a name"),
        (r#"{"manual":true,"time_zone":"Asia/Shangai"}"#, "did you mean Asia/Shanghai"),
        (r#"{"manual":true,"start":"2026-02-01","end":"2026-01-01"}"#, "is not after start"),
    ] {
        let error = read(json).expect_err(json).to_string();
        assert!(error.contains(said), "{json}: {error}");
    }
    for (blackout, said) in [
        (r#"{"from":"2026-01-02","until":"2026-01-01"}"#, "swap them"),
        (r#"{"from":"2026-01-02"}"#, "needs from and until"),
        (r#"{"daily":"22:00"}"#, "has no '-'"),
        (r#"{"daily":"22:00-6"}"#, "write 18:00"),
        (r#"{"daily":"22:00-06:00","days":"weekend"}"#, "write days: mon-fri"),
        (r#"{"days":"mon"}"#, "needs from and until"),
    ] {
        let error = serde_json::from_str::<Blackout>(blackout).expect_err(blackout).to_string();
        assert!(error.contains(said), "{blackout}: {error}");
    }
    let none = serde_json::from_str::<Timing>(r#"{"manual":true}"#).expect_err("no zone");
    assert!(none.to_string().contains("time_zone is missing"), "{none}");
}

#[test]
fn day_rules_have_one_form_and_many_spellings() {
    for (text, form) in [
        ("3rd working day of month", "3rd working day of month"),
        ("Working day 3 of the month", "3rd working day of month"),
        ("third business day of month", "3rd working day of month"),
        ("-1 working day of quarter", "last working day of quarter"),
        ("last-2 working day of year", "last-2 working day of year"),
        ("-3 work day of year", "last-2 working day of year"),
        ("day 15 of month", "day 15 of month"),
        ("15th day of month", "day 15 of month"),
        ("last day of  year", "last day of year"),
        ("day last of month", "last day of month"),
        ("first day of quarter", "day 1 of quarter"),
        ("112th working day of year", "112th working day of year"),
        ("21st working day of month", "21st working day of month"),
    ] {
        let rule = DayRule::parse(text).expect(text);
        assert_eq!(rule.to_string(), form, "{text}");
        assert_eq!(DayRule::parse(form), Ok(rule));
    }
    for (text, said) in [
        ("", "does not end in"),
        ("last working day", "does not end in"),
        ("last working day of week", "'week' is not month"),
        ("32nd day of month", "31 days at most"),
        ("day 93 of quarter", "92 days at most"),
        ("last-366 day of year", "366 days at most"),
        ("0 day of month", "not a number"),
        ("-0 day of month", "not a number"),
        ("last--1 day of month", "not a number"),
        ("ultimo day of month", "'ultimo' is not a number"),
        ("last friday of month", "'last friday' is not understood"),
    ] {
        let error = DayRule::parse(text).expect_err(text).to_string();
        assert!(error.contains(said) && error.contains("write, for example"), "{text}: {error}");
    }
}

#[test]
fn the_last_working_day_of_each_quarter_in_china() {
    let rule = r#"{"rule":"last working day of quarter","at":"18:00","calendar":"cn"}"#;
    assert_eq!(
        preview(rule, "2024-12-31T10:00:00Z", 9),
        [
            "2025-03-31 18:00:00 Mon; last working day of 2025Q1",
            "2025-06-30 18:00:00 Mon; last working day of 2025Q2",
            "2025-09-30 18:00:00 Tue; last working day of 2025Q3",
            "2025-12-31 18:00:00 Wed; last working day of 2025Q4",
            "2026-03-31 18:00:00 Tue; last working day of 2026Q1",
            "2026-06-30 18:00:00 Tue; last working day of 2026Q2",
            "2026-09-30 18:00:00 Wed; last working day of 2026Q3",
            "2026-12-31 18:00:00 Thu; last working day of 2026Q4",
            "2027-03-31 18:00:00 Wed; last working day of 2027Q1; assumed: calendar cn has no days for 2027",
        ]
    );
}

#[test]
fn a_day_off_moves_skips_or_stays() {
    let of =
        |shift: &str| format!(r#"{{"cron":"0 0 9 1,5 * ?","calendar":"cn","shift":"{shift}"}}"#);
    let october = "2026-09-15T00:00:00Z";
    // 1 to 7 October 2026 are off, Saturday the 10th is worked.
    assert_eq!(
        preview(&of("run"), october, 3),
        ["2026-10-01 09:00:00 Thu", "2026-10-05 09:00:00 Mon", "2026-11-01 09:00:00 Sun",]
    );
    assert_eq!(
        preview(&of("skip"), october, 2),
        ["2026-11-05 09:00:00 Thu", "2026-12-01 09:00:00 Tue",]
    );
    assert_eq!(
        preview(&of("next"), october, 2),
        [
            "2026-10-08 09:00:00 Thu for 2026-10-05; moved from 2026-10-05, 国庆节; stands for 2026-10-01 as well",
            "2026-11-02 09:00:00 Mon for 2026-11-01; moved from 2026-11-01, a Sunday",
        ]
    );
    assert_eq!(
        preview(&of("previous"), october, 2),
        [
            "2026-09-30 09:00:00 Wed for 2026-10-01; moved from 2026-10-01, 国庆节; stands for 2026-10-05 as well",
            "2026-10-30 09:00:00 Fri for 2026-11-01; moved from 2026-11-01, a Sunday",
        ]
    );
    // Every day, moved: the holiday becomes one firing, on a day that has one of its own.
    let daily = r#"{"cron":"0 0 9 * * ?","calendar":"cn","shift":"next"}"#;
    let found = preview(daily, "2026-09-30T00:00:00Z", 3);
    assert_eq!(found[0], "2026-09-30 09:00:00 Wed");
    assert!(
        found[1].starts_with("2026-10-08 09:00:00 Thu; stands for 2026-10-01, 2026-10-02"),
        "{}",
        found[1]
    );
    assert_eq!(found[2], "2026-10-09 09:00:00 Fri");
}

#[test]
fn a_fine_schedule_leaps_over_a_holiday() {
    let expected =
        ["2026-09-30 23:59:59 Wed", "2026-10-08 00:00:00 Thu", "2026-10-08 00:00:01 Thu"];
    for json in [
        r#"{"cron":"* * * * * ?","calendar":"cn","shift":"skip"}"#,
        r#"{"every_sec":1,"calendar":"cn","shift":"skip"}"#,
    ] {
        assert_eq!(preview(json, "2026-09-30T15:59:58Z", 3), expected, "{json}");
    }
    let shifted = preview(
        r#"{"cron":"0/30 * 9 * * ?","calendar":"cn","shift":"next"}"#,
        "2026-09-30T01:59:00Z",
        2,
    );
    assert_eq!(shifted[0], "2026-09-30 09:59:30 Wed");
    assert!(shifted[1].starts_with("2026-10-08 09:00:00 Thu; stands for"), "{}", shifted[1]);
}

#[test]
fn rates_keep_their_phase_and_delays_wait_for_the_batch() {
    let none = Calendars::default();
    let rate = timing(r#"{"every_sec":7200}"#);
    let made = Anchor::new(at("2026-11-21T04:00:00.250Z"));
    let next = |timing: &Timing, after: &str, anchor| {
        timing
            .next_after(&none, at(after), anchor)
            .expect("an answer")
            .map(|o| o.planned.to_string())
    };
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(next(&rate, "2026-11-21T04:00:00.250Z", made), is("2026-11-21T06:00:01.000Z"));
    assert_eq!(next(&rate, "2026-11-21T06:00:01Z", made), is("2026-11-21T08:00:01.000Z"));
    assert_eq!(next(&rate, "2026-11-21T11:30:00Z", made), is("2026-11-21T12:00:01.000Z"));
    let from_start = timing(r#"{"every_sec":7200,"start":"2026-11-22T00:30"}"#);
    assert_eq!(next(&from_start, "2026-11-21T04:00:00Z", made), is("2026-11-21T16:30:00.000Z"));
    assert_eq!(next(&from_start, "2026-11-21T16:30:00Z", made), is("2026-11-21T18:30:00.000Z"));

    let delay = timing(r#"{"delay_sec":60}"#);
    let after = |planned: &str, finished: Option<&str>| Anchor {
        last_planned: Some(at(planned)),
        last_finished: finished.map(at),
        ..made
    };
    assert_eq!(next(&delay, "2026-11-21T04:00:00Z", made), is("2026-11-21T04:01:01.000Z"));
    assert_eq!(next(&delay, "2026-11-21T05:00:00Z", after("2026-11-21T05:00:00Z", None)), None);
    let before = after("2026-11-21T05:00:00Z", Some("2026-11-21T04:59:00Z"));
    assert_eq!(next(&delay, "2026-11-21T05:00:00Z", before), None);
    let ended = after("2026-11-21T05:00:00Z", Some("2026-11-21T05:07:00.001Z"));
    assert_eq!(next(&delay, "2026-11-21T05:00:00Z", ended), is("2026-11-21T05:08:01.000Z"));
    // Evaluated late, it is due at once.
    assert_eq!(next(&delay, "2026-11-21T09:00:00Z", ended), is("2026-11-21T09:00:01.000Z"));
    for manual in [r#"{"manual":true}"#, r#"{"event":"x"}"#, r#"{"after":"g"}"#] {
        assert_eq!(next(&timing(manual), "2026-11-21T09:00:00Z", made), None);
    }
}

#[test]
fn windows_and_blackouts_bound_it() {
    let night = r#"{"cron":"0 0 */2 * * ?","start":"2026-11-21T07:00","end":"2026-11-22T02:00","blackouts":[{"daily":"22:00-01:00","because":"backup"},{"from":"2026-11-21T09:00","until":"2026-11-21T14:00"}]}"#;
    assert_eq!(
        preview(night, "2026-01-01T00:00:00Z", 9),
        [
            "2026-11-21 08:00:00 Sat",
            "2026-11-21 14:00:00 Sat",
            "2026-11-21 16:00:00 Sat",
            "2026-11-21 18:00:00 Sat",
            "2026-11-21 20:00:00 Sat",
        ]
    );
    let timing = timing(night);
    let range = at("2026-11-20T16:00:00Z")..at("2026-11-22T16:00:00Z");
    let anchor = Anchor::new(range.start);
    let skipped = timing.skipped_between(&china(), range, anchor, 10).expect("an answer");
    let word =
        |s: &Skipped| format!("{} {}", wall_at(s.planned, timing.zone), s.why.words(Lang::En));
    assert_eq!(
        skipped.iter().map(word).collect::<Vec<_>>(),
        [
            "2026-11-21 10:00:00 blackout 2026-11-21T09:00:00 to 2026-11-21T14:00:00",
            "2026-11-21 12:00:00 blackout 2026-11-21T09:00:00 to 2026-11-21T14:00:00",
            "2026-11-21 22:00:00 blackout 22:00-01:00 (backup)",
            "2026-11-22 00:00:00 blackout 22:00-01:00 (backup)",
        ]
    );
    let why = |at_: &str| {
        timing.swallows(&china(), at(at_)).expect("an answer").map(|s| s.words(Lang::En))
    };
    assert_eq!(why("2026-11-21T15:00:00Z"), Some("blackout 22:00-01:00 (backup)".to_owned()));
    assert_eq!(why("2026-11-21T08:00:00Z"), None);
    assert_eq!(
        why("2026-11-21T18:00:00Z"),
        Some("outside start and end of the schedule".to_owned())
    );
}

#[test]
fn a_holiday_is_shown_as_skipped_and_is_not_counted_through() {
    let timing = timing(r#"{"cron":"* * * * * ?","calendar":"cn","shift":"skip"}"#);
    let range = at("2026-09-29T16:00:00Z")..at("2027-10-01T00:00:00Z");
    let anchor = Anchor::new(range.start);
    let skipped = timing.skipped_between(&china(), range, anchor, 3).expect("an answer");
    let word = |s: &Skipped| format!("{} {}", s.planned, s.why.words(Lang::Zh));
    assert_eq!(
        skipped.iter().map(word).collect::<Vec<_>>(),
        [
            "2026-09-30T16:00:00.000Z 非工作日：2026-10-01，国庆节",
            "2026-09-30T16:00:01.000Z 非工作日：2026-10-01，国庆节",
            "2026-09-30T16:00:02.000Z 非工作日：2026-10-01，国庆节",
        ]
    );
}

#[test]
fn changes_of_the_clock_are_told() {
    let london = r#"{"cron":"0 30 1 * * ?","time_zone":"Europe/London"}"#;
    assert_eq!(
        preview(london, "2026-03-28T12:00:00Z", 2),
        [
            "2026-03-29 02:00:00 Sun; 2026-03-29 01:30:00 does not exist that day, the first moment after the gap",
            "2026-03-30 01:30:00 Mon",
        ]
    );
    assert_eq!(
        preview(london, "2026-10-24T12:00:00Z", 1),
        ["2026-10-25 01:30:00 Sun; first of two moments of that time"]
    );
    let hourly = r#"{"cron":"0 30 * * * ?","time_zone":"Europe/London"}"#;
    assert_eq!(
        preview(hourly, "2026-10-25T00:00:00Z", 3),
        [
            "2026-10-25 01:30:00 Sun; first of two moments of that time",
            "2026-10-25 01:30:00 Sun; second of two moments of that time",
            "2026-10-25 02:30:00 Sun",
        ]
    );
    // A whole day is missing in the zone: what was planned for it fires when the gap is over, for
    // that day.
    let apia = r#"{"rule":"day 30 of month","at":"10:00","time_zone":"Pacific/Apia"}"#;
    assert_eq!(
        preview(apia, "2011-12-01T12:00:00Z", 1),
        [
            "2011-12-31 00:00:00 Sat for 2011-12-30; day 30 of 201112; 2011-12-30 10:00:00 does not exist that day, the first moment after the gap",
        ]
    );
}

#[test]
fn what_is_saved_is_checked() {
    let now = at("2026-11-21T04:00:00Z");
    let faults = |json: &str| match timing(json).check(now, &china()) {
        Ok(()) => String::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "),
    };
    for sound in [
        r#"{"cron":"0 0 2 * * ?"}"#,
        r#"{"manual":true}"#,
        r#"{"event":"x","calendar":"cn","shift":"skip"}"#,
        r#"{"delay_sec":5}"#,
        r#"{"rule":"last day of month","at":"18:00"}"#,
        r#"{"cron":"0 0 2 29 2 ?","calendar":"cn","shift":"skip"}"#,
        r#"{"rule":"day 366 of year","at":"18:00"}"#,
    ] {
        assert_eq!(faults(sound), "", "{sound}");
    }
    for (json, said) in [
        (r#"{"cron":"0 0 0 31 2 ?"}"#, "never fires: no day up to the year 2199"),
        (r#"{"cron":"0 0 0 1 1 ? 2020"}"#, "its last year is 2020"),
        (r#"{"once_at":"2026-11-21T11:59"}"#, "once_at, 2026-11-21 11:59:00, is over"),
        (r#"{"manual":true,"end":"2026-01-01"}"#, "its end, 2026-01-01 00:00:00, is over"),
        (r#"{"cron":"0 0 2 * * ?","calendar":"de"}"#, "there is no calendar de"),
        (r#"{"cron":"0 0 2 * * ?","shift":"next"}"#, "shift: next needs a calendar"),
        (
            r#"{"rule":"3rd working day of month","at":"18:00"}"#,
            "rule '3rd working day of month' needs a calendar",
        ),
        (
            r#"{"rule":"31st working day of month","at":"18:00","calendar":"cn"}"#,
            "there is never a 31st working day of month",
        ),
        (r#"{"every_sec":60,"calendar":"cn","shift":"next"}"#, "use shift: skip"),
        (
            r#"{"cron":"0 0 23 * * ?","blackouts":[{"daily":"22:00-02:00"}]}"#,
            "blackouts leave nothing",
        ),
        (r#"{"cron":"0 0 12 ? 10 *","end":"2027-09-01"}"#, "leave nothing"),
        (r#"{"every_sec":60,"blackouts":[{"daily":"00:00-00:00"}]}"#, "leave nothing"),
    ] {
        assert!(faults(json).contains(said), "{json}: {}", faults(json));
    }
}
