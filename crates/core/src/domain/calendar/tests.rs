use super::*;
use crate::domain::batch_no::Period;
use crate::domain::id::BatchNo;
use crate::domain::text::lang::Lang;
use chrono::{Datelike as _, Days, Weekday};
use proptest::prelude::*;

/// The notices for 2023 to 2026, as the State Council's list of days.
const CN: &str = include_str!("../../../../../tests/data/calendar/07_holiday_cn_2023_2026.json");

fn code(text: &str) -> CalendarCode {
    CalendarCode::parse(text).expect("code")
}

fn date(text: &str) -> NaiveDate {
    text.parse().expect(text)
}

fn period(no: &str) -> Period {
    Period::from_batch_no(&BatchNo::parse(no).expect("no")).expect("a period")
}

fn listed(kind: DayKind, label: &str, year: i32) -> CalendarDayRule {
    CalendarDayRule { kind, label: Some(label.to_owned()), origin: DayOrigin::List(year) }
}

fn cn() -> Calendar {
    let file: serde_json::Value = serde_json::from_str(CN).expect("json");
    let mut made = Calendar::with_defaults(code("cn"));
    for list in file["years"].as_array().expect("years") {
        let year = i32::try_from(list["year"].as_i64().expect("year")).expect("year");
        made.years.insert(year);
        for day in list["days"].as_array().expect("days") {
            let text = |at: usize| day[at].as_str().expect("text");
            let kind = if text(1) == "off" { DayKind::Off } else { DayKind::Work };
            made.days.insert(date(text(0)), listed(kind, text(2), year));
        }
    }
    made
}

/// A company that closes between Christmas and New Year and works on the eve of National Day, whatever other calendars
/// say.
fn company() -> Calendar {
    let mut made = Calendar::with_defaults(code("company"));
    made.weekend = Weekend::NONE;
    for day in ["2025-12-24", "2025-12-25", "2026-12-24"] {
        let day_off = CalendarDayRule { kind: DayKind::Off, label: None, origin: DayOrigin::Hand };
        made.days.insert(date(day), day_off);
    }
    made
}

fn combined(name: &str, how: CombinationRule, members: &[&str]) -> Calendar {
    let members = members.iter().map(|m| code(m)).collect();
    Calendar { combines: Some(Combine { how, members }), ..Calendar::with_defaults(code(name)) }
}

fn all() -> Calendars {
    let mut gulf = Calendar::with_defaults(code("gulf"));
    gulf.weekend = Weekend::parse("fri,sat").expect("weekend");
    let both = combined("both", CombinationRule::AllOf, &["cn", "company"]);
    let either = combined("either", CombinationRule::AnyOf, &["cn", "gulf"]);
    Calendars::new(vec![cn(), company(), gulf, both, either]).expect("sound")
}

#[test]
fn every_listed_day_is_what_the_notice_says_and_26_weekend_days_are_worked() {
    let (all, cn) = (all(), cn());
    assert_eq!(cn.days.len(), 142);
    let mut worked = 0;
    for (day, said) in &cn.days {
        let look = all.classify_day(&code("cn"), *day).expect("look");
        let expected = match said.kind {
            DayKind::Off => Working::Off,
            DayKind::Work => Working::Working,
        };
        assert_eq!(look.working, expected, "{day}");
        assert_eq!(look.basis, DayBasis::Listed(said.label.clone()), "{day}");
        worked += u32::from(
            said.kind == DayKind::Work && matches!(day.weekday(), Weekday::Sat | Weekday::Sun),
        );
    }
    assert_eq!(worked, 26);
}

#[test]
fn days_by_hand() {
    use Working::{Off, Working as On};
    let all = all();
    let national = || DayBasis::Listed(Some("国庆节、中秋节".to_owned()));
    for (calendar, day, working, basis, by) in [
        // A worked Saturday, a worked Sunday, and the holiday they are worked for.
        ("cn", "2025-10-11", On, national(), "cn"),
        ("cn", "2025-09-28", On, national(), "cn"),
        ("cn", "2025-10-08", Off, national(), "cn"),
        ("cn", "2025-10-09", On, DayBasis::Weekday, "cn"),
        ("cn", "2025-10-12", Off, DayBasis::Weekday, "cn"),
        // Listed by the notice for 2023; there is no list for 2022.
        ("cn", "2022-12-31", Off, DayBasis::Listed(Some("元旦".to_owned())), "cn"),
        ("cn", "2022-12-30", On, DayBasis::Assumed, "cn"),
        ("cn", "2027-01-01", On, DayBasis::Assumed, "cn"),
        ("cn", "2027-01-02", Off, DayBasis::Assumed, "cn"),
        // A calendar without yearly lists assumes nothing.
        ("company", "2031-01-04", On, DayBasis::Weekday, "company"),
        ("gulf", "2025-10-10", Off, DayBasis::Weekday, "gulf"),
        ("gulf", "2025-10-12", On, DayBasis::Weekday, "gulf"),
        // All of: one member that is off decides, and a worked Saturday stays worked.
        ("both", "2025-12-24", Off, DayBasis::Listed(None), "company"),
        ("both", "2025-10-11", On, national(), "cn"),
        ("both", "2025-10-13", On, DayBasis::Weekday, "cn"),
        ("both", "2027-05-03", On, DayBasis::Assumed, "cn"),
        // Any of: one member that works decides, and a known member takes precedence over an assumed one.
        ("either", "2025-10-08", On, DayBasis::Weekday, "gulf"),
        ("either", "2025-10-10", On, DayBasis::Weekday, "cn"),
        ("either", "2027-01-04", On, DayBasis::Weekday, "gulf"),
        ("either", "2025-10-04", Off, national(), "cn"),
    ] {
        let look = all.classify_day(&code(calendar), date(day)).expect(day);
        let expected = DayLook { working, basis, by: code(by) };
        assert_eq!(look, expected, "{calendar} {day}");
    }
    let combined_company = {
        let mut both = combined("c", CombinationRule::AllOf, &["cn"]);
        let day = CalendarDayRule { kind: DayKind::Work, label: None, origin: DayOrigin::Hand };
        both.days.insert(date("2025-10-08"), day);
        Calendars::new(vec![cn(), both]).expect("sound")
    };
    let look = combined_company.classify_day(&code("c"), date("2025-10-08")).expect("look");
    assert_eq!((look.working, look.by), (On, code("c")), "a combined calendar's own day wins");
}

#[test]
fn nth_working_days_by_hand() {
    let all = all();
    for (no, n, day) in [
        // The last working day of each quarter.
        ("2023Q3", -1, Some("2023-09-28")), // 29 and 30 September are off
        ("2023Q4", -1, Some("2023-12-29")),
        ("2024Q1", -1, Some("2024-03-29")),
        ("2024Q2", -1, Some("2024-06-28")),
        ("2025Q1", -1, Some("2025-03-31")),
        ("2025Q2", -1, Some("2025-06-30")),
        ("2025Q3", -1, Some("2025-09-30")),
        ("2025Q4", -1, Some("2025-12-31")),
        ("2026Q1", -1, Some("2026-03-31")),
        ("2026Q2", -1, Some("2026-06-30")),
        ("2026Q3", -1, Some("2026-09-30")),
        ("2026Q4", -1, Some("2026-12-31")),
        // Months in which a Monday-to-Friday rule gives a wrong day.
        ("202501", -1, Some("2025-01-27")), // Spring Festival from the 28th
        ("202602", -1, Some("2026-02-28")), // a worked Saturday
        ("202510", 1, Some("2025-10-09")),
        ("202601", 1, Some("2026-01-04")), // a worked Sunday
        ("202605", 1, Some("2026-05-06")),
        ("202510", 2, Some("2025-10-10")),
        ("202510", 3, Some("2025-10-11")), // a worked Saturday
        ("202510", 18, Some("2025-10-31")),
        ("202510", 19, None),
        ("202510", -18, Some("2025-10-09")),
        ("202510", -19, None),
        ("2025", 1, Some("2025-01-02")),
        ("20251008", 1, None),
        ("20251009", -1, Some("2025-10-09")),
    ] {
        let found = all.nth_working_day(&code("cn"), period(no), n).expect(no);
        let expected = day.map(|d| Nth { date: date(d), certainty: CalendarCertainty::Known });
        assert_eq!(found, expected, "{no} {n}");
    }
    let assumed = all.nth_working_day(&code("cn"), period("202701"), 1).expect("looks");
    assert_eq!(
        assumed,
        Some(Nth { date: date("2027-01-01"), certainty: CalendarCertainty::Assumed })
    );
    let zeroth = all.nth_working_day(&code("cn"), period("202510"), 0);
    assert_eq!(zeroth, Err(CalendarError::Zeroth));
}

#[test]
fn adding_and_counting_by_hand() {
    let all = all();
    for (from, n, to) in [
        ("2025-09-30", 1, "2025-10-09"),
        ("2025-10-08", 0, "2025-10-08"), // 0 is the day itself, even a holiday
        ("2025-10-03", 1, "2025-10-09"),
        ("2025-10-09", 3, "2025-10-13"), // Fri, worked Sat, Mon
        ("2025-10-09", -1, "2025-09-30"),
        ("2025-10-13", -3, "2025-10-09"),
        ("2025-09-26", 2, "2025-09-29"), // a worked Sunday between
    ] {
        let found = all.add_working_days(&code("cn"), date(from), n).expect(from);
        assert_eq!(found.date, date(to), "{from} + {n}");
    }
    for (from, to, count) in [
        ("2025-09-30", "2025-10-09", 1),
        ("2025-10-01", "2025-10-08", 0),
        ("2025-10-09", "2025-10-09", 0),
        ("2025-10-09", "2025-09-30", -1),
        ("2024-12-31", "2025-12-31", 248), // 365 - 104 weekend days - 18 more off + 5 worked
    ] {
        let found = all.working_days_between(&code("cn"), date(from), date(to)).expect(from);
        assert_eq!(found, (count, CalendarCertainty::Known), "{from} to {to}");
    }
}

#[test]
fn shifts_by_hand() {
    let all = all();
    for (day, shift, landing) in [
        ("2025-10-09", Shift::Skip, Landing::Stays),
        ("2025-10-11", Shift::Skip, Landing::Stays),
        ("2025-10-04", Shift::Run, Landing::Stays),
        ("2025-10-04", Shift::Skip, Landing::Skipped),
        ("2025-10-04", Shift::Next, Landing::Moved(date("2025-10-09"))),
        ("2025-10-04", Shift::Previous, Landing::Moved(date("2025-09-30"))),
        ("2026-10-08", Shift::Next, Landing::Stays),
    ] {
        let (found, _) = all.shift(&code("cn"), date(day), shift).expect(day);
        assert_eq!(found, landing, "{day} {shift:?}");
    }
}

#[test]
fn runs_of_days_off_end_or_are_refused() {
    let mut closed = Calendar::with_defaults(code("closed"));
    closed.weekend = Weekend::from_days([
        Weekday::Mon,
        Weekday::Tue,
        Weekday::Wed,
        Weekday::Thu,
        Weekday::Fri,
        Weekday::Sat,
        Weekday::Sun,
    ]);
    let mut long = Calendar::with_defaults(code("long"));
    for i in 0..45 {
        let day = date("2025-07-01") + Days::new(i);
        long.days.insert(day, listed(DayKind::Off, "summer", 2025));
    }
    let all = Calendars::new(vec![closed, long]).expect("sound");
    let next = all.add_working_days(&code("long"), date("2025-06-30"), 1).expect("ends");
    assert_eq!(next.date, date("2025-08-15"));
    let never = all.add_working_days(&code("closed"), date("2025-06-30"), -1).expect_err("never");
    let said = never.to_string();
    assert!(
        said.contains("calendar closed has no working day in 800 days from 2025-06-30"),
        "{said}"
    );
    assert_eq!(all.nth_working_day(&code("closed"), period("2025"), 1), Ok(None));
    assert!(all.shift(&code("closed"), date("2025-06-30"), Shift::Next).is_err());
    let end = all.add_working_days(&code("long"), date("9999-12-30"), 5).expect_err("time ends");
    assert!(end.to_string().contains("lead out of the years 1 to 9999"), "{end}");
    let unknown =
        all.classify_day(&code("cn"), date("2025-01-01")).expect_err("unknown").to_string();
    assert!(unknown.contains("there is no calendar cn (there are: closed, long)"), "{unknown}");
}

#[test]
fn calendars_that_do_not_fit_together_are_refused() {
    let bare = |name: &str| Calendar::with_defaults(code(name));
    let many: Vec<String> = (0..21).map(|i| format!("m{i}")).collect();
    let mut many_there: Vec<_> = many.iter().map(|m| bare(m)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    many_there.push(combined("a", CombinationRule::AllOf, &many));
    let chain = |n: usize| {
        let link = |i: usize| {
            combined(&format!("c{i}"), CombinationRule::AnyOf, &[&format!("c{}", i + 1)])
        };
        let mut list: Vec<_> = (0..n).map(link).collect();
        list.push(bare(&format!("c{n}")));
        list
    };
    assert!(Calendars::new(chain(4)).is_ok());
    for (list, said) in [
        (vec![bare("a"), bare("a")], "two calendars have the code a"),
        (
            vec![combined("a", CombinationRule::AllOf, &["b"])],
            "calendar a combines b, which is not there",
        ),
        (vec![combined("a", CombinationRule::AllOf, &[])], "calendar a combines 0 calendars"),
        (
            vec![bare("b"), combined("a", CombinationRule::AllOf, &["b", "b"])],
            "name 1 to 20, each once",
        ),
        (many_there, "calendar a combines 21 calendars"),
        (
            vec![combined("a", CombinationRule::AllOf, &["a"])],
            "calendar a is made of itself: a -> a",
        ),
        (
            vec![
                combined("x", CombinationRule::AllOf, &["a"]),
                combined("a", CombinationRule::AllOf, &["b"]),
                combined("b", CombinationRule::AnyOf, &["a"]),
            ],
            "calendar a is made of itself: a -> b -> a",
        ),
        (chain(5), "calendar c0 is combined of combined ones more than 4 deep"),
    ] {
        let faults = Calendars::new(list).expect_err(said);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].to_string().contains(said), "{}", faults[0]);
    }
}

#[test]
fn years_without_a_list() {
    let all = all();
    let missing = |c: &str| all.missing_years(&code(c), 2022..=2028).expect("missing");
    assert_eq!(missing("cn"), [2022, 2027, 2028]);
    assert_eq!(missing("both"), [2022, 2027, 2028]);
    assert_eq!(missing("company"), [0i32; 0]);
    assert_eq!(all.covers(&code("both"), 2026), Ok(Covers::Yes));
    assert_eq!(all.covers(&code("either"), 2027), Ok(Covers::Lacking(vec![code("cn")])));
}

#[test]
fn a_list_that_ends_is_warned_of_from_october() {
    let all = all();
    let lack = |lack| vec![CalendarWarning { calendar: code("cn"), lack }];
    for (used, today, expected) in [
        (&["cn"][..], "2026-09-30", vec![]),
        (&["cn"], "2026-10-01", lack(CalendarGap::NextYear(2027))),
        (&["both", "either", "cn"], "2026-12-31", lack(CalendarGap::NextYear(2027))),
        (&["cn"], "2025-12-31", vec![]),
        (&["both"], "2027-03-01", lack(CalendarGap::ThisYear(2027))),
        (&["cn"], "2022-12-30", lack(CalendarGap::ThisYear(2022))),
        (&["company", "gulf"], "2031-12-31", vec![]),
        (&[], "2031-12-31", vec![]),
        (
            &["de"],
            "2025-01-01",
            vec![CalendarWarning { calendar: code("de"), lack: CalendarGap::Calendar }],
        ),
    ] {
        let used: BTreeSet<_> = used.iter().map(|c| code(c)).collect();
        assert_eq!(warnings(&all, &used, date(today)), expected, "{used:?} {today}");
    }
    let said = lack(CalendarGap::NextYear(2027))[0].clone();
    assert_eq!(
        said.to_string(),
        "calendar cn has no days for 2027 yet; import the next year's days: procession calendar \
         import FILE --code cn"
    );
    assert!(said.words(Lang::Zh).contains("日历 cn 还没有 2027 年的节假日"));
}

#[test]
fn a_batch_keeps_some_years_and_refuses_questions_about_others() {
    let all = all();
    let kept = all.subset_for(&BTreeSet::from([code("both")]), 2025..=2026).expect("kept");
    let names: Vec<_> = kept.iter().map(|c| c.code.to_string()).collect();
    assert_eq!(names, ["both", "cn", "company"]);
    let text = serde_json::to_string(&kept).expect("writes");
    assert!(text.len() < 10_000, "{} bytes", text.len());
    let back: Calendars = serde_json::from_str(&text).expect("reads");
    assert_eq!(back, kept);
    for day in (0..730).map(|i| date("2025-01-01") + Days::new(i)) {
        assert_eq!(back.classify_day(&code("both"), day), all.classify_day(&code("both"), day));
    }
    let outside =
        back.classify_day(&code("both"), date("2024-12-31")).expect_err("not kept").to_string();
    assert!(
        outside.contains(
            "2024-12-31 is outside the days of calendar both that the batch keeps (2025-01-01 to \
             2026-12-31)"
        ),
        "{outside}"
    );
}

#[test]
fn an_import_replaces_its_years_and_nothing_else() {
    let mut old = cn();
    let hand = CalendarDayRule { kind: DayKind::Off, label: None, origin: DayOrigin::Hand };
    old.days.insert(date("2025-12-24"), hand.clone());
    // The list of 2023 again, without its 31 December and with another day.
    let mut file = Calendar::with_defaults(code("cn"));
    file.years.insert(2023);
    file.days.insert(date("2023-05-04"), listed(DayKind::Off, "青年节", 2023));
    file.days.insert(date("2023-01-28"), listed(DayKind::Off, "春节", 2023));
    let made = merged(&old, &file, ImportScope::Years);
    assert_eq!(made.years, BTreeSet::from([2023, 2024, 2025, 2026]));
    assert!(!made.days.contains_key(&date("2022-12-31")), "it stood in the list of 2023");
    assert_eq!(made.days.get(&date("2025-12-24")), Some(&hand), "set by hand");
    assert_eq!(made.days.len(), 142 - 34 + 2 + 1);
    let changed = difference(&old, &made);
    assert_eq!(changed.days.len(), 34 + 1);
    assert!(matches!(changed.days[&date("2023-05-04")], DayChange::Added(_)));
    assert!(matches!(changed.days[&date("2023-01-28")], DayChange::Changed(..)));
    assert!(matches!(changed.days[&date("2022-12-31")], DayChange::Removed(_)));
    assert!(changed.head.is_empty() && changed.years_added.is_empty());
    // A list of 2022 leaves the days of 2022 that come from the list of 2023.
    let mut file = Calendar::with_defaults(code("cn"));
    file.years.insert(2022);
    assert!(merged(&old, &file, ImportScope::Years).days.contains_key(&date("2022-12-31")));
    // The whole.
    let whole = merged(&old, &file, ImportScope::Whole);
    assert_eq!((whole.days.len(), whole.years), (0, BTreeSet::from([2022])));
    assert!(difference(&old, &old).is_empty());
}

#[test]
fn weekends() {
    for (text, said) in [
        ("sat,sun", "sat,sun"),
        ("Sunday, Saturday", "sat,sun"),
        ("fri,SAT", "fri,sat"),
        ("none", "none"),
        ("sun", "sun"),
    ] {
        assert_eq!(Weekend::parse(text).expect(text).to_string(), said);
    }
    for bad in ["", "sat;sun", "sat,", "6,7", "weekend", "none,sat"] {
        let error = Weekend::parse(bad).expect_err(bad);
        assert!(error.to_string().contains("sat,sun or fri,sat"), "{error}");
    }
}

fn any_date() -> impl Strategy<Value = NaiveDate> {
    (0u64..365 * 12).prop_map(|i| date("2018-01-01") + Days::new(i))
}

/// A calendar with any weekend of up to six days, and days that differ from it.
fn any_calendar() -> impl Strategy<Value = Calendars> {
    let weekdays = proptest::collection::vec(0usize..7, 0..4);
    let days = proptest::collection::btree_map(any_date(), proptest::bool::ANY, 0..300);
    (weekdays, days, proptest::collection::btree_set(2018..2030i32, 0..8)).prop_map(
        |(weekdays, days, years)| {
            let mut made = Calendar::with_defaults(code("x"));
            let week = [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri];
            let week = [&week[..], &[Weekday::Sat, Weekday::Sun]].concat();
            made.weekend = Weekend::from_days(weekdays.into_iter().map(|i| week[i]));
            made.years = years;
            for (day, is_off) in days {
                let kind = if is_off { DayKind::Off } else { DayKind::Work };
                made.days.insert(day, listed(kind, "x", day.year()));
            }
            let x = combined("all", CombinationRule::AllOf, &["x", "cn"]);
            Calendars::new(vec![made, cn(), x]).expect("sound")
        },
    )
}

proptest! {
    #[test]
    fn adding_what_was_counted_leads_back(
        all in any_calendar(), from in any_date(), n in -300i64..300,
        name in proptest::sample::select(vec!["x", "cn", "all"]),
    ) {
        let code = code(name);
        let to = all.add_working_days(&code, from, n).expect("adds").date;
        let (count, _) = all.working_days_between(&code, from, to).expect("counts");
        prop_assert_eq!(count, n);
        if n != 0 {
            prop_assert_eq!(all.classify_day(&code, to).expect("look").working, Working::Working);
            prop_assert_eq!(to > from, n > 0);
        }
    }

    #[test]
    fn the_nth_is_the_nth_of_a_plain_count(
        all in any_calendar(), day in any_date(), n in 1usize..30,
        kind in proptest::sample::select(vec!["x", "cn", "all"]),
    ) {
        let code = code(kind);
        let month = Period::containing(crate::domain::batch_no::PeriodKind::Month, day).expect("m");
        let working: Vec<NaiveDate> = month.first_day().iter_days()
            .take_while(|d| *d <= month.last_day())
            .filter(|d| all.classify_day(&code, *d).expect("look").working == Working::Working)
            .collect();
        let at = |n: i32| all.nth_working_day(&code, month, n).expect("nth").map(|nth| nth.date);
        let small = i32::try_from(n).expect("small");
        prop_assert_eq!(at(small), working.get(n - 1).copied());
        prop_assert_eq!(at(-small), working.iter().rev().nth(n - 1).copied());
    }

    #[test]
    fn a_shift_lands_on_a_working_day_with_none_between(
        all in any_calendar(), day in any_date(), later in proptest::bool::ANY,
    ) {
        let code = code("all");
        let shift = if later { Shift::Next } else { Shift::Previous };
        let (landing, look) = all.shift(&code, day, shift).expect("shifts");
        match landing {
            Landing::Stays => prop_assert_eq!(look.working, Working::Working),
            Landing::Skipped => prop_assert!(false, "nobody asked for that"),
            Landing::Moved(to) => {
                prop_assert_eq!(look.working, Working::Off);
                prop_assert_eq!(to > day, later);
                let (first, last) = if later { (day, to) } else { (to, day) };
                let between = first.iter_days().take_while(|d| *d <= last)
                    .filter(|d| all.classify_day(&code, *d).expect("look").working == Working::Working);
                prop_assert_eq!(between.count(), 1);
            }
        }
    }

    #[test]
    fn a_year_is_assumed_exactly_when_its_list_is_missing(all in any_calendar(), day in any_date()) {
        let x = code("x");
        let look = all.classify_day(&x, day).expect("look");
        let calendar = all.get(&x).expect("x");
        let lacks = !all.missing_years(&x, day.year()..=day.year()).expect("years").is_empty();
        let is_listed = calendar.days.contains_key(&day);
        prop_assert_eq!(look.certainty() == CalendarCertainty::Assumed, lacks && !is_listed);
    }
}
