use super::*;
use crate::domain::calendar::{
    Calendar, CalendarDayRule, Calendars, DayKind, DayOrigin, Weekend, WorkingDays,
};
use crate::domain::id::BatchNo;
use chrono::NaiveDate;
use proptest::prelude::*;

fn one(text: &str) -> Reference {
    match &pieces(&format!("${{{text}}}")).expect(text)[..] {
        [ParamPiece::Name(_, reference)] => reference.clone(),
        other => panic!("{text}: {other:?}"),
    }
}

fn date(text: &str, no: &str, day: Option<&str>) -> Result<String, String> {
    let no = BatchNo::parse(no).expect("no");
    let day = day.map(|d| d.parse().expect("day"));
    match one(text) {
        Reference::Date(expr) => expr.evaluate(&no, day, WorkingDays::NONE).map(|d| d.to_string()),
        Reference::Format(expr, format) => {
            expr.evaluate(&no, day, WorkingDays::NONE).map(|d| format.write(d))
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn dates_of_a_batch() {
    for (text, no, day, said) in [
        ("business_date", "x", Some("2024-07-15"), "2024-07-15"),
        ("first_day", "202402", None, "2024-02-01"),
        ("last_day", "202402", None, "2024-02-29"),
        ("last_day", "2024Q3", None, "2024-09-30"),
        ("first_day(-1)", "202401", None, "2023-12-01"),
        ("last_day(-1)", "202403", None, "2024-02-29"),
        ("last_day( +1 )", "2024", None, "2025-12-31"),
        ("add_days(business_date,3)", "x", Some("2024-02-28"), "2024-03-02"),
        ("add_days(last_day, -1)", "202402", None, "2024-02-28"),
        ("add_months(business_date, 1)", "x", Some("2024-01-31"), "2024-02-29"),
        ("add_months(business_date, 1)", "x", Some("2023-01-31"), "2023-02-28"),
        ("add_months(business_date, -1)", "x", Some("2024-03-31"), "2024-02-29"),
        ("add_days(add_months(first_day(-1), 1), -1)", "202403", None, "2024-02-29"),
        ("format(last_day, %Y%m%d)", "202402", None, "20240229"),
        ("format(last_day,%d/%m/%y)", "202402", None, "29/02/24"),
        (
            "format(add_days(first_day, 31), %Y-Q%q day %j 100%%)",
            "202402",
            None,
            "2024-Q1 day 063 100%",
        ),
    ] {
        assert_eq!(date(text, no, day), Ok(said.to_owned()), "{text}");
    }
}

#[test]
fn dates_by_a_calendar() {
    let mut cn = Calendar::with_defaults(CalendarCode::parse("cn").expect("code"));
    let listed = |kind| CalendarDayRule { kind, label: None, origin: DayOrigin::List(2026) };
    for (from, to, kind) in
        [(15, 23, DayKind::Off), (14, 14, DayKind::Work), (28, 28, DayKind::Work)]
    {
        for day in from..=to {
            let date = NaiveDate::from_ymd_opt(2026, 2, day).expect("a day");
            cn.days.insert(date, listed(kind));
        }
    }
    cn.years.insert(2026);
    let mut closed = Calendar::with_defaults(CalendarCode::parse("closed").expect("code"));
    closed.weekend = Weekend::parse("mon,tue,wed,thu,fri,sat,sun").expect("weekend");
    let own = cn.code.clone();
    let all = Calendars::new(vec![cn, closed]).expect("sound");
    let with = |text: &str, no: &str, days: WorkingDays<'_>| {
        let Reference::Date(expr) = one(text) else { panic!("{text}") };
        expr.evaluate(
            &BatchNo::parse(no).expect("no"),
            Some("2026-02-13".parse().expect("day")),
            days,
        )
    };
    let days = WorkingDays::new(&all, Some(&own));
    for (text, no, date) in [
        ("add_workdays(business_date, 1)", "x", "2026-02-14"),
        ("add_workdays(business_date, 2)", "x", "2026-02-24"),
        ("add_workdays(business_date, -1, cn)", "x", "2026-02-12"),
        ("add_workdays(add_days(business_date, 3), 0)", "x", "2026-02-16"),
        ("workday(add_days(business_date, 3), next)", "x", "2026-02-24"),
        ("workday(add_days(business_date,3),previous,cn)", "x", "2026-02-14"),
        ("workday(business_date, next)", "x", "2026-02-13"),
        ("nth_workday(-1)", "202602", "2026-02-28"),
        ("nth_workday( 1 , cn )", "202602", "2026-02-02"),
        ("add_days(nth_workday(-1), 1)", "202602", "2026-03-01"),
        ("add_workdays(last_day(-1), 10)", "202602", "2026-02-13"),
    ] {
        assert_eq!(with(text, no, days).map(|d| d.to_string()), Ok(date.to_owned()), "{text}");
    }
    let nobodys = WorkingDays::new(&all, None);
    for (text, no, days, said) in [
        ("nth_workday(17)", "202602", days, "202602 has fewer working days in calendar cn"),
        ("nth_workday(1)", "x", days, "batch number x is free text and names no period"),
        ("add_workdays(business_date, 1, de)", "x", days, "there is no calendar de"),
        ("add_workdays(business_date, 1, closed)", "x", days, "no working day in 800 days"),
        ("add_workdays(business_date, 1)", "x", nobodys, "give the group one (calendar: cn)"),
        ("nth_workday(1, cn)", "x", WorkingDays::NONE, "no calendar can be asked here"),
    ] {
        let error = with(text, no, days).expect_err(text);
        assert!(error.contains(said), "{text}: {error}");
    }
    let asked = |text: &str| one(text).calendars();
    assert_eq!(asked("add_workdays(workday(nth_workday(1, a), next), 1, b)").len(), 3);
    assert_eq!(asked("format(nth_workday(-1), %d)"), [CalendarQuestion::Own]);
    assert_eq!(asked("add_days(business_date, 1)"), []);
}

#[test]
fn functions_of_a_calendar_with_faults() {
    for (text, said) in [
        ("add_workdays(business_date)", "write add_workdays(DATE, 3), workday(DATE, next) or nth"),
        ("add_workdays(business_date, 1, cn, x)", "write add_workdays(DATE, 3)"),
        ("add_workdays(business_date, 501)", "must be a whole number from -500 to 500"),
        ("add_workdays(business_date, 1, c n)", "calendar code 'c n' is not usable"),
        ("workday(business_date, skip)", "\"skip\" is no direction; write next or previous"),
        ("nth_workday(0)", "count from 1 (the first) or from -1 (the last)"),
        ("nth_workday()", "must be a whole number"),
    ] {
        let fault = pieces(&format!("${{{text}}}")).expect_err(text);
        let BadReference::Wrong(_, what) = fault else { panic!("{text}: {fault:?}") };
        assert!(what.contains(said), "{text}: {what}");
    }
}

#[test]
fn names_of_the_closed_set() {
    assert_eq!(one("batch_no"), Reference::BatchNo);
    assert_eq!(one("idem_key"), Reference::IdemKey);
    assert_eq!(one(" attempt "), Reference::Attempt);
    assert_eq!(one("batch(-1)"), Reference::Batch(BatchExpr::Shift(-1)));
    assert_eq!(
        one("batch(month(-1))"),
        Reference::Batch(BatchExpr::parse("month(-1)").expect("e"))
    );
    assert_eq!(one("secret.LEDGER"), Reference::Secret("LEDGER".to_owned()));
    assert_eq!(one("params.rate"), Reference::Param("rate".to_owned()));
    let code = JobCode::parse("FX.LOAD").expect("code");
    assert_eq!(one("jobs.FX.LOAD.rows"), Reference::Output(code, "rows".to_owned()));
    assert_eq!(pieces("a ${ group }b$ {} }").expect("reads").len(), 3);
}

#[test]
fn faults_say_what_is_wrong() {
    for name in ["env.HOME", "params.", "secret.", "jobs.A", "day", "first_day(", "now", "week(1)"]
    {
        let fault = pieces(&format!("${{{name}}}")).expect_err(name);
        assert_eq!(fault, BadReference::Unknown(name.to_owned()));
    }
    assert_eq!(pieces("x ${batch_no"), Err(BadReference::Unclosed));
    for (name, said) in [
        ("first_day(x)", "\"x\" must be a whole number from -100000 to 100000"),
        ("batch(last month)", "'last month' is not a batch number and not an expression"),
        ("batch(months)", "months does not give one batch number; write batch(-1)"),
        ("batch(100001)", "\"100001\" must be a whole number"),
        (
            "add_days(business_date)",
            "add_days wants a date and a number: add_days(business_date, -1)",
        ),
        ("add_months(business_date, one)", "\"one\" must be a whole number"),
        ("add_days(today, 1)", "\"today\" is no date; use business_date, first_day"),
        ("format(last_day)", "format wants a date and a pattern: format(last_day, %Y%m)"),
        ("format(last_day, %H)", "\"%H\" is no pattern; use %Y (2024)"),
        ("format(last_day, %Y%)", "is no pattern"),
        ("format(last_day, )", "\"\" is no pattern"),
    ] {
        let fault = pieces(&format!("${{{name}}}")).expect_err(name);
        let BadReference::Wrong(text, what) = fault else { panic!("{name}: {fault:?}") };
        assert!(text == name && what.contains(said), "{name}: {what}");
    }
    let deep = format!("{}business_date{}", "add_days(".repeat(20), ", 1)".repeat(20));
    let fault = pieces(&format!("${{{deep}}}")).expect_err("deep");
    assert!(
        matches!(fault, BadReference::Wrong(_, what) if what.contains("more than 8 functions"))
    );
    for (text, no, said) in [
        ("business_date", "x", "give the batch a business date (--business-date"),
        ("last_day", "x", "batch number x is free text and names no period"),
        ("first_day(1)", "9999", "1 leads out of the years 1 to 9999"),
        ("add_days(last_day, 1)", "9999", "1 leads out of the years"),
    ] {
        let error = date(text, no, None).expect_err(text);
        assert!(error.contains(said), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_taken_apart_or_refused(text in "[a-z_(),.${}%0-9 +-]{0,60}") {
        if let Ok(pieces) = pieces(&text) {
            let names = pieces.iter().filter(|p| matches!(p, ParamPiece::Name(..))).count();
            prop_assert_eq!(names, text.matches("${").count());
        }
    }
}
