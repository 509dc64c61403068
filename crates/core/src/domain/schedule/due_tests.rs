//! Meaning of the deadlines of a definition, and that the written form is read back.

use super::*;
use crate::domain::calendar::{CalendarDayRule as ListedDay, DayKind, DayOrigin};
use proptest::prelude::*;

fn at(text: &str) -> Millis {
    Millis::from(chrono::DateTime::parse_from_rfc3339(text).expect("a moment").to_utc())
}

fn cn() -> (Calendars, CalendarCode) {
    let code = CalendarCode::parse("cn").expect("code");
    let mut cn = Calendar::with_defaults(code.clone());
    cn.years = [2026].into();
    let mut day = |text: &str, kind| {
        let listed = ListedDay { kind, label: None, origin: DayOrigin::List(2026) };
        cn.days.insert(text.parse().expect("day"), listed);
    };
    // National Day 2026: 1 to 7 October off, Saturday the 10th worked.
    (1..=7).for_each(|n| day(&format!("2026-10-0{n}"), DayKind::Off));
    day("2026-10-10", DayKind::Work);
    (Calendars::new(vec![cn]).expect("sound"), code)
}

#[test]
fn each_form_means_one_moment() {
    let (all, code) = cn();
    let zone: Tz = "Asia/Shanghai".parse().expect("zone");
    // 22:30 on 30 September in Shanghai, a Wednesday.
    let opened = at("2026-09-30T14:30:00Z");
    let (with, without) = (WorkingDays::new(&all, Some(&code)), WorkingDays::NONE);
    for (days, due, expected) in [
        (with, "08:00", "2026-09-30T00:00:00.000Z"),
        (with, "+0d 08:00", "2026-09-30T00:00:00.000Z"),
        (with, "+1d 08:00", "2026-10-01T00:00:00.000Z"),
        (with, "23:59:59", "2026-09-30T15:59:59.000Z"),
        (with, "2h", "2026-09-30T16:30:00.000Z"),
        (with, "90m", "2026-09-30T16:00:00.000Z"),
        (with, "1h30m", "2026-09-30T16:00:00.000Z"),
        (with, "45s", "2026-09-30T14:30:45.000Z"),
        (with, "workday(3) 08:00", "2026-09-03T00:00:00.000Z"),
        (with, "workday(+1) 08:00", "2026-10-08T00:00:00.000Z"),
        (with, "workday(+2) 08:00", "2026-10-09T00:00:00.000Z"),
        (with, "workday(+3) 08:00", "2026-10-10T00:00:00.000Z"),
        // Weekdays where there is no calendar.
        (without, "workday(+1) 08:00", "2026-10-01T00:00:00.000Z"),
        (without, "workday(+3) 08:00", "2026-10-05T00:00:00.000Z"),
        // September has 22 of them.
        (without, "workday(22) 08:00", "2026-09-30T00:00:00.000Z"),
        (without, "workday(31) 08:00", "2026-09-30T00:00:00.000Z"),
    ] {
        let found = due.parse::<DueRule>().unwrap_or_else(|e| panic!("{e}"));
        let moment = found.moment(DueContext { at: opened, zone, days });
        assert_eq!(moment.to_string(), expected, "{due}");
    }
    let october = at("2026-10-12T01:00:00Z");
    let third = "workday(3) 08:00".parse::<DueRule>().expect("due");
    let moment = third.moment(DueContext { at: october, zone, days: with });
    assert_eq!(moment.to_string(), "2026-10-10T00:00:00.000Z", "the worked Saturday is the third");
    let mut kept = all.subset_for(&[code.clone()].into(), 2020..=2021).expect("kept");
    let days = WorkingDays::new(&kept, Some(&code));
    let moment = third.moment(DueContext { at: october, zone, days });
    assert_eq!(moment.to_string(), "2026-10-05T00:00:00.000Z", "weekdays where days are not kept");
    kept = all;
    assert!(!kept.is_empty());
}

#[test]
fn clocks_that_are_changed_move_what_is_due() {
    for (zone, opened, due, expected) in [
        // 02:30 does not exist on 8 March in New York, 01:30 occurs twice on 1 November.
        ("America/New_York", "2026-03-08T05:30:00Z", "02:30", "2026-03-08T07:00:00.000Z"),
        ("America/New_York", "2026-03-07T15:00:00Z", "+1d 02:30", "2026-03-08T07:00:00.000Z"),
        ("America/New_York", "2026-11-01T04:30:00Z", "01:30", "2026-11-01T05:30:00.000Z"),
        ("America/New_York", "2026-03-08T05:30:00Z", "2h", "2026-03-08T07:30:00.000Z"),
        ("America/New_York", "2026-03-08T05:30:00Z", "08:00", "2026-03-08T12:00:00.000Z"),
        // Samoa left out 30 December 2011.
        ("Pacific/Apia", "2011-12-29T20:00:00Z", "+1d 10:00", "2011-12-30T10:00:00.000Z"),
    ] {
        let zone: Tz = zone.parse().expect("zone");
        let due: DueRule = due.parse().expect("due");
        let moment = due.moment(DueContext { at: at(opened), zone, days: WorkingDays::NONE });
        assert_eq!(moment.to_string(), expected, "{due} {zone}");
    }
}

#[test]
fn what_is_no_time_is_refused_with_all_forms() {
    for text in [
        "",
        "8",
        "08",
        "24:00",
        "08:60",
        "08:00 ",
        "-1d 08:00",
        "1d 08:00",
        "+1 08:00",
        "+367d 08:00",
        "+1d",
        "+d 08:00",
        "workday(0) 08:00",
        "workday(-1) 08:00",
        "workday(32) 08:00",
        "workday(+0) 08:00",
        "workday(3)",
        "workday 08:00",
        "0s",
        "0h0m",
        "2",
        "2d",
        "30m1h",
        "1h1h",
        "h",
        "1.5h",
        "-2h",
        "8785h",
        "tomorrow",
        "+1d +1d 08:00",
        "１h",
        "99999999999h",
    ] {
        if text == "08:00 " {
            // Surrounding blanks are ignored.
            assert!(text.parse::<DueRule>().is_ok());
            continue;
        }
        let error = text.parse::<DueRule>().expect_err(text);
        assert!(error.to_string().contains("workday(+2) 08:00"), "{error}");
    }
    for text in ["", "1", "1.09", "100.01", "2.005", "1.5x", "-2", ".5", "1e1", "1000", "２"] {
        let error = text.parse::<Factor>().expect_err(text);
        assert!(
            error.to_string().ends_with("from 1.1 to 100 with at most two decimals"),
            "{error}"
        );
    }
    for (text, shown, of_1000) in [
        ("1.1", "1.1", 1_100),
        ("2", "2.0", 2_000),
        ("1.25", "1.25", 1_250),
        ("100", "100.0", 100_000),
    ] {
        let factor: Factor = text.parse().expect(text);
        assert_eq!((factor.to_string().as_str(), factor.times(1_000)), (shown, of_1000));
        assert_eq!(shown.parse::<Factor>(), Ok(factor));
    }
    assert_eq!("100".parse::<Factor>().expect("a factor").times(i64::MAX), i64::MAX);
}

#[test]
fn a_job_may_have_two_in_little_room() {
    assert_eq!((size_of::<Option<DueRule>>(), size_of::<Option<Factor>>()), (8, 4));
}

fn dues() -> impl Strategy<Value = DueRule> {
    let day = prop_oneof![
        (0..=DAYS_MAX).prop_map(DueDay::Later),
        (1..=MONTH_MAX).prop_map(DueDay::OfMonth),
        (1..=DAYS_MAX).prop_map(DueDay::Working),
    ];
    prop_oneof![
        (day, 0..86_400u32).prop_map(|(day, sec)| DueRule::At(day, sec)),
        (1..=AFTER_MAX).prop_map(DueRule::After),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(due in dues()) {
        prop_assert_eq!(due.to_string().parse::<DueRule>(), Ok(due));
        let json = serde_json::to_string(&due).expect("json");
        prop_assert_eq!(serde_json::from_str::<DueRule>(&json).expect("read"), due);
    }

    #[test]
    fn no_text_and_no_moment_is_too_odd(text: String, due in dues(), at in -1i64 << 45..1i64 << 45) {
        let _ = text.parse::<DueRule>();
        let _ = text.parse::<Factor>();
        let opening = DueContext { at: Millis(at), zone: Tz::UTC, days: WorkingDays::NONE };
        let moment = due.moment(opening);
        // Half a year of working days is less than a year and a half of days.
        prop_assert!(moment.since(Millis(at)).abs() < 600 * 86_400_000, "{due} {moment}");
    }
}
