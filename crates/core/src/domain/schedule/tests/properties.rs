//! Properties that hold for every randomly generated schedule.

use super::*;

const ZONES: [&str; 5] =
    ["Asia/Shanghai", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Europe/London"];
const KINDS: [&str; 12] = [
    r#""cron":"0 0 9 * * ?""#,
    r#""cron":"0 30 0,1,2,3 * * ?""#,
    r#""cron":"0 0/20 * * * ?""#,
    r#""cron":"0 15 1-3 1,L * ?""#,
    r#""cron":"0 0 23 ? * SAT,SUN""#,
    r#""cron":"0 0 6 ? * MON#1""#,
    r#""every_sec":5400"#,
    r#""every_sec":100000"#,
    r#""rule":"last working day of month","at":"02:30""#,
    r#""rule":"-3 working day of quarter","at":"00:15""#,
    r#""rule":"day 5 of month","at":"01:45""#,
    r#""once_at":"2026-10-03T02:15""#,
];

fn any_timing() -> impl Strategy<Value = Timing> {
    let blackout = prop_oneof![
        (0u32..24, 0u32..24, 1u8..128).prop_map(|(from, until, days)| {
            let hour = |h| NaiveTime::from_hms_opt(h, 30, 0).expect("a time");
            let all = [
                chrono::Weekday::Mon,
                chrono::Weekday::Tue,
                chrono::Weekday::Wed,
                chrono::Weekday::Thu,
                chrono::Weekday::Fri,
                chrono::Weekday::Sat,
                chrono::Weekday::Sun,
            ];
            let days = (0..7).filter(|d| days >> d & 1 == 1).map(|d| all[d]).collect();
            BlackoutTime::Weekly { from: hour(from), until: hour(until), days }
        }),
        (0u64..700, 1u64..40).prop_map(|(from, long)| {
            let day = |n: u64| NaiveDate::from_ymd_opt(2025, 6, 1).expect("a day") + Days::new(n);
            let at = |n| day(n).and_hms_opt(2, 15, 0).expect("a time");
            BlackoutTime::Range { from: at(from), until: at(from + long) }
        }),
    ];
    let blackouts = prop::collection::vec(blackout, 0..3);
    (0..KINDS.len(), 0..ZONES.len(), 0usize..4, blackouts, 0u8..4).prop_map(
        |(kind, zone, shift, times, window)| {
            let zone = ZONES[zone];
            let json = format!(r#"{{{},"time_zone":"{zone}","calendar":"cn"}}"#, KINDS[kind]);
            let mut timing = timing(&json);
            let days = !KINDS[kind].starts_with(r#""every"#);
            timing.shift = if days { Shift::ALL[shift] } else { Shift::ALL[shift % 2] };
            let blackout = |time| Blackout { time, because: None };
            timing.blackouts = times.into_iter().map(blackout).collect();
            let day = |m| NaiveDate::from_ymd_opt(2026, m, 1).and_then(|d| d.and_hms_opt(1, 30, 0));
            timing.start = if window & 1 == 1 { day(2) } else { None };
            timing.end = if window & 2 == 2 { day(11) } else { None };
            timing
        },
    )
}

/// Somewhere in 2025 and 2026, often near a change of the clock or a holiday.
fn any_moment() -> impl Strategy<Value = Millis> {
    let near = prop::sample::select(vec![
        "2025-09-30T12:00:00Z",
        "2026-02-13T12:00:00Z",
        "2026-03-08T06:00:00Z",
        "2026-03-29T00:00:00Z",
        "2026-04-04T14:00:00Z",
        "2026-04-23T21:00:00Z",
        "2026-10-03T14:00:00Z",
        "2026-10-29T20:00:00Z",
        "2026-11-01T05:00:00Z",
    ]);
    prop_oneof![
        (near, 0i64..10_800_000).prop_map(|(base, ms)| at(base).plus_ms(ms)),
        (0i64..63_072_000_000).prop_map(|ms| at("2025-01-01T00:00:00Z").plus_ms(ms)),
    ]
}

fn anchor() -> Anchor {
    Anchor::new(at("2025-01-01T00:00:00Z"))
}

proptest! {
    #[test]
    fn each_is_later_once_and_where_it_may_be(timing in any_timing(), after in any_moment()) {
        let china = china();
        let mut last = after;
        for found in timing.preview(&china, after, anchor()).take(20) {
            let found = found.expect("an answer");
            prop_assert!(found.planned > last, "{} is not later than {last}", found.planned);
            prop_assert_eq!(found.planned.0 % 1_000, 0);
            prop_assert_eq!(timing.swallows(&china, found.planned).expect("an answer"), None);
            // The same in sequence as individually, from any moment since the previous one.
            for from in [last, found.planned.plus_ms(-1)] {
                let alone = timing.next_after(&china, from, anchor()).expect("an answer");
                prop_assert_eq!(alone.as_ref(), Some(&found));
            }
            let moved = found.why.iter().any(|why| matches!(why, OccurrenceReason::Shifted { .. }));
            let gap = found.why.iter().find_map(|why| match why {
                OccurrenceReason::Gap { wall } => Some(wall.date()),
                _ => None,
            });
            let day = gap.unwrap_or(wall_at(found.planned, timing.zone).date());
            prop_assert_eq!(moved, found.nominal != day);
            if timing.shift != Shift::Run {
                let look = china.classify_day(&code("cn"), day).expect("an answer");
                prop_assert_eq!(look.working, Working::Working, "{} in {:?}", day, timing);
            }
            last = found.planned;
        }
    }

    /// What would fire without blackouts and days off either fires or is listed as skipped.
    #[test]
    fn nothing_is_lost_between_fired_and_skipped(timing in any_timing(), from in any_moment()) {
        let china = china();
        let until = from.plus_ms(20 * 86_400_000);
        let all = |timing: &Timing| -> Vec<Millis> {
            let found = timing.preview(&china, from, anchor()).map(|o| o.expect("an answer").planned);
            found.take_while(|at| *at < until).collect()
        };
        let shift = if timing.shift == Shift::Skip { Shift::Run } else { timing.shift };
        let bare = Timing { shift, blackouts: Vec::new(), ..timing.clone() };
        let skipped = timing.skipped_between(&china, from..until, anchor(), 5_000).expect("an answer");
        let mut parts: Vec<Millis> = skipped.iter().map(|skipped| skipped.planned).collect();
        for skipped in &skipped {
            prop_assert!(timing.swallows(&china, skipped.planned).expect("an answer").is_some());
        }
        parts.extend(all(&timing));
        parts.sort_unstable();
        prop_assert_eq!(parts, all(&bare));
    }

    /// Days by brute force: every day is tested, then moved, then given its times.
    #[test]
    fn moved_days_are_those_of_brute_force(shift in 0usize..4, zone in 0usize..5, days in prop::collection::btree_set(1u32..29, 1..5), month in 1u32..12) {
        let china = china();
        let list = days.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let timing = Timing {
            calendar: Some(code("cn")),
            shift: Shift::ALL[shift],
            ..timing(&format!(r#"{{"cron":"0 10,40 1,2 {list} * ?","time_zone":"{}"}}"#, ZONES[zone]))
        };
        let first = NaiveDate::from_ymd_opt(2026, month, 1).expect("a day");
        let mut expected: BTreeMap<Millis, ()> = BTreeMap::new();
        for day in (first - Days::new(40)).iter_days().take(110).filter(|d| days.contains(&d.day())) {
            let mut landed = Some(day);
            while let Some(on) = landed.filter(|_| timing.shift != Shift::Run) {
                if china.classify_day(&code("cn"), on).expect("an answer").working == Working::Working {
                    break;
                }
                landed = match timing.shift {
                    Shift::Next => on.succ_opt(),
                    Shift::Previous => on.pred_opt(),
                    Shift::Skip | Shift::Run => None,
                };
            }
            for (hour, minute) in [(1, 10), (1, 40), (2, 10), (2, 40)] {
                if let Some(wall) = landed.and_then(|day| day.and_hms_opt(hour, minute, 0)) {
                    expected.insert(shown(wall, timing.zone).planned(), ());
                }
            }
        }
        let from = shown(first.and_time(NaiveTime::MIN), timing.zone).planned();
        let until = from.plus_ms(30 * 86_400_000);
        let found: Vec<Millis> = timing
            .preview(&china, from, anchor())
            .map(|o| o.expect("an answer").planned)
            .take_while(|at| *at < until)
            .collect();
        let expected: Vec<Millis> = expected.into_keys().filter(|at| *at > from && *at < until).collect();
        prop_assert_eq!(found, expected);
    }
}
