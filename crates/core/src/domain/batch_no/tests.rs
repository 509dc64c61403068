use super::*;
use proptest::prelude::*;

fn no(text: &str) -> BatchNo {
    BatchNo::parse(text).expect(text)
}

fn period(text: &str) -> Period {
    Period::from_batch_no(&no(text)).expect(text)
}

fn day(text: &str) -> NaiveDate {
    text.parse().expect(text)
}

fn words(numbers: &[BatchNo]) -> String {
    numbers.iter().map(BatchNo::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn periods_have_first_and_last_days() {
    for (text, kind, first, last) in [
        ("20240731", PeriodKind::Day, "2024-07-31", "2024-07-31"),
        ("20240229", PeriodKind::Day, "2024-02-29", "2024-02-29"),
        ("202402", PeriodKind::Month, "2024-02-01", "2024-02-29"),
        ("202302", PeriodKind::Month, "2023-02-01", "2023-02-28"),
        ("190002", PeriodKind::Month, "1900-02-01", "1900-02-28"),
        ("200002", PeriodKind::Month, "2000-02-01", "2000-02-29"),
        ("202404", PeriodKind::Month, "2024-04-01", "2024-04-30"),
        ("202312", PeriodKind::Month, "2023-12-01", "2023-12-31"),
        ("2024Q1", PeriodKind::Quarter, "2024-01-01", "2024-03-31"),
        ("2024Q2", PeriodKind::Quarter, "2024-04-01", "2024-06-30"),
        ("2024Q3", PeriodKind::Quarter, "2024-07-01", "2024-09-30"),
        ("2024Q4", PeriodKind::Quarter, "2024-10-01", "2024-12-31"),
        ("2024", PeriodKind::Year, "2024-01-01", "2024-12-31"),
        ("9999", PeriodKind::Year, "9999-01-01", "9999-12-31"),
        ("0001", PeriodKind::Year, "0001-01-01", "0001-12-31"),
    ] {
        let period = period(text);
        assert_eq!(
            (period.kind(), period.first_day(), period.last_day()),
            (kind, day(first), day(last)),
            "{text}"
        );
        assert_eq!(period.batch_no(), no(text));
    }
}

#[test]
fn everything_else_is_free_text() {
    for text in [
        "20240732",
        "20230229",
        "202413",
        "202400",
        "2024Q0",
        "2024Q5",
        "2024q3",
        "2024QX",
        "0000",
        "00000101",
        "24",
        "202",
        "20241",
        "2024071",
        "202407311",
        "rerun-7",
        "adhoc",
        "2024.07",
        "_202407",
    ] {
        assert_eq!(Period::from_batch_no(&no(text)), None, "{text}");
    }
}

#[test]
fn shifting_crosses_months_years_and_leap_days() {
    for (from, n, to) in [
        ("20240731", 1, "20240801"),
        ("20240229", 365, "20250228"),
        ("20240301", -1, "20240229"),
        ("20230301", -1, "20230228"),
        ("20231231", 1, "20240101"),
        ("202412", 1, "202501"),
        ("202401", -1, "202312"),
        ("202407", -19, "202212"),
        ("202407", 0, "202407"),
        ("2024Q4", 1, "2025Q1"),
        ("2024Q1", -1, "2023Q4"),
        ("2024Q3", -10, "2022Q1"),
        ("2024", -24, "2000"),
        ("0002", -1, "0001"),
    ] {
        assert_eq!(period(from).shift(n), Some(period(to)), "{from} {n}");
    }
    assert_eq!(period("202401").previous(), Some(period("202312")));
    assert_eq!(period("20240228").next(), Some(period("20240229")));
    for (from, n) in [
        ("9999", 1),
        ("999912", 1),
        ("0001Q1", -1),
        ("00010101", -1),
        ("202407", i64::MAX),
        ("202407", i64::MIN),
        ("2024Q3", i64::MAX / 3),
        ("20240731", i64::MIN),
    ] {
        assert_eq!(period(from).shift(n), None, "{from} {n}");
    }
}

#[test]
fn periods_lie_in_each_other() {
    for (of, kind, parts) in [
        ("2024Q3", PeriodKind::Month, "202407 202408 202409"),
        ("2024", PeriodKind::Quarter, "2024Q1 2024Q2 2024Q3 2024Q4"),
        ("202407", PeriodKind::Quarter, "2024Q3"),
        ("202407", PeriodKind::Year, "2024"),
        ("20241231", PeriodKind::Quarter, "2024Q4"),
        ("202407", PeriodKind::Month, "202407"),
        ("20240731", PeriodKind::Month, "202407"),
        ("9999Q4", PeriodKind::Month, "999910 999911 999912"),
    ] {
        let parts_of: Vec<BatchNo> =
            period(of).split(kind).into_iter().map(Period::batch_no).collect();
        assert_eq!(words(&parts_of), parts, "{of} {kind}");
    }
    assert_eq!(period("2024").months().len(), 12);
    assert_eq!(period("202402").split(PeriodKind::Day).len(), 29);
}

#[test]
fn months_are_added_as_calendars_do() {
    for (date, n, sum) in [
        ("2024-01-31", 1, "2024-02-29"),
        ("2023-01-31", 1, "2023-02-28"),
        ("2024-03-31", -1, "2024-02-29"),
        ("2024-02-29", 12, "2025-02-28"),
        ("2024-02-29", 1, "2024-03-29"),
        ("2024-12-15", 1, "2025-01-15"),
    ] {
        assert_eq!(shift_months(day(date), n), Some(day(sum)), "{date} {n}");
    }
    assert_eq!(shift_months(day("2024-01-31"), i64::MAX), None);
    assert_eq!(shift_days(day("2024-02-28"), 2), Some(day("2024-03-01")));
}

#[test]
fn numbers_of_one_kind_have_an_order() {
    use Ordering::{Equal, Greater, Less};
    for (left, right, order) in [
        ("202312", "202401", Some(Less)),
        ("2024Q4", "2024Q3", Some(Greater)),
        ("20240731", "20240731", Some(Equal)),
        ("rerun-10", "rerun-9", Some(Less)),
        ("202407", "2024Q3", None),
        ("202407", "adhoc", None),
        ("adhoc", "2024", None),
    ] {
        assert_eq!(compare(&no(left), &no(right)), order, "{left} {right}");
    }
    let existing: Vec<BatchNo> =
        ["202401", "2024Q1", "202312", "202409", "adhoc", "a"].map(no).into();
    for (base, latest) in [
        ("202408", Some("202401")),
        ("202409", Some("202409")),
        ("202311", None),
        ("2024Q4", Some("2024Q1")),
        ("b", Some("adhoc")),
        ("2024", None),
    ] {
        assert_eq!(latest_up_to(&no(base), &existing), latest.map(no).as_ref(), "{base}");
    }
}

#[test]
fn ranges_are_counted_and_listed() {
    for (text, numbers) in [
        ("202411..202502", "202411 202412 202501 202502"),
        ("202502..202411", "202502 202501 202412 202411"),
        ("2024Q3..2025Q1", "2024Q3 2024Q4 2025Q1"),
        ("20240228..20240301", "20240228 20240229 20240301"),
        ("2022..2024", "2022 2023 2024"),
        ("202407..202407", "202407"),
        ("202407", "202407"),
        ("B, A ,rerun-7", "B A rerun-7"),
        (" 202401 .. 202403 , 202407 ", "202401 202402 202403 202407"),
        ("9998..9999", "9998 9999"),
    ] {
        assert_eq!(range(text).map(|r| words(&r)), Ok(numbers.to_owned()), "{text}");
    }
}

#[test]
fn a_range_that_is_none_says_why() {
    for (text, said) in [
        ("", "'' has an empty entry; write 202401..202412, or numbers joined by commas"),
        ("202401,,202402", "'202401,,202402' has an empty entry"),
        ("202401..", "'202401..' has an empty entry"),
        ("..202401", "has an empty entry"),
        ("1..2..3", "'1..2..3' has more than two ends; write 202401..202412"),
        ("A..C", "'A..C' cannot be counted: A is not a day, month, quarter or year; write 202401"),
        ("202401..202413", "202413 is not a day, month, quarter or year"),
        ("202401..2024Q3", "one end is a month, the other a quarter; write both ends in the same"),
        ("00010101..99991231", "names more than 10000 batch numbers; split it"),
        ("202401..202403,202402", "names 202402 twice; name each batch number once"),
        ("2024 01", "batch number '2024 01' is not usable"),
        ("a/b..202401", "batch number 'a/b' is not usable"),
    ] {
        let error = range(text).expect_err(text).to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
    let days = |last: &str| range(&format!("20000101..{last}"));
    assert_eq!(days("20270518").map(|r| r.len()), Ok(RANGE_MAX));
    assert!(matches!(days("20270519"), Err(RangeError::TooMany(_))));
    // The limit applies to the whole text, not to each part.
    let two = range("20000101..20201231,20210101..20410101");
    assert!(matches!(two, Err(RangeError::TooMany(_))));
}

#[test]
fn expressions_on_a_day() {
    for (text, date, number) in [
        ("202407", "2030-01-01", "202407"),
        ("adhoc", "2030-01-01", "adhoc"),
        ("day(0)", "2024-07-31", "20240731"),
        ("day(-1)", "2024-03-01", "20240229"),
        ("month(0)", "2024-07-31", "202407"),
        ("month(-1)", "2024-01-15", "202312"),
        ("month(-1)", "2024-03-31", "202402"),
        ("month(+1)", "2024-12-31", "202501"),
        ("month(1)", "2024-01-31", "202402"),
        (" Month( -13 ) ", "2024-01-31", "202212"),
        ("quarter(-1)", "2024-01-01", "2023Q4"),
        ("quarter(0)", "2024-09-30", "2024Q3"),
        ("quarter(1)", "2024-10-01", "2025Q1"),
        ("year(-1)", "2024-02-29", "2023"),
        ("first_day_of_month(-1)", "2024-07-31", "20240601"),
        ("first_day_of_month(0)", "2024-07-01", "20240701"),
        ("first_day_of_month(-1)", "2024-01-31", "20231201"),
        ("first_day_of_month(1)", "2024-12-31", "20250101"),
        ("last_day_of_month(-1)", "2024-03-31", "20240229"),
        ("last_day_of_month(-1)", "2023-03-01", "20230228"),
        ("last_day_of_month(-1)", "2100-03-31", "21000228"),
        ("last_day_of_month(-1)", "2000-03-31", "20000229"),
        ("last_day_of_month(-1)", "2024-01-01", "20231231"),
        ("last_day_of_month(0)", "2024-02-29", "20240229"),
        ("last_day_of_month(12)", "2024-02-29", "20250228"),
        ("last_day_of_month(-13)", "2024-01-31", "20221231"),
        ("First_Day_Of_Quarter( -1 )", "2024-01-15", "20231001"),
        ("last_day_of_quarter(0)", "2024-01-15", "20240331"),
        ("first_day_of_year(0)", "2024-12-31", "20240101"),
        ("last_day_of_year(-1)", "2024-01-01", "20231231"),
        // 2024-07-29 and 2024-12-30 are Mondays, 2024-08-04 and 2023-01-01 Sundays.
        ("monday(0)", "2024-07-29", "20240729"),
        ("monday(0)", "2024-08-04", "20240729"),
        ("monday(-1)", "2024-07-29", "20240722"),
        ("monday(-1)", "2024-08-04", "20240722"),
        ("sunday(-1)", "2024-07-29", "20240728"),
        ("sunday(-1)", "2024-08-04", "20240728"),
        ("sunday(0)", "2024-07-29", "20240804"),
        ("friday(-1)", "2023-01-01", "20221223"),
        ("monday(0)", "2025-01-01", "20241230"),
        ("tuesday(0)", "2024-03-01", "20240227"),
        ("wednesday(1)", "2024-12-31", "20250108"),
        ("thursday(0)", "2024-03-01", "20240229"),
        ("saturday(-2)", "2024-01-01", "20231223"),
    ] {
        let got = BatchExpr::parse(text).expect(text).batch_no_on(day(date));
        assert_eq!(got, Ok(no(number)), "{text} at {date}");
    }
}

#[test]
fn expressions_seen_from_a_batch() {
    for (text, base, date, numbers) in [
        ("202401", "202407", None, "202401"),
        ("same", "202407", None, "202407"),
        ("same", "adhoc", None, "adhoc"),
        ("prev", "202401", None, "202312"),
        ("prev(1)", "2024Q1", None, "2023Q4"),
        ("prev(3)", "20240301", None, "20240227"),
        ("next", "2024Q4", None, "2025Q1"),
        ("next(2)", "2024", None, "2026"),
        // The number decides which period is the previous one, whatever the business date.
        ("prev", "202401", Some("2024-06-30"), "202312"),
        ("month(0)", "2024Q3", None, "202409"),
        ("month(-1)", "2024Q3", Some("2024-07-15"), "202406"),
        ("quarter(0)", "202407", None, "2024Q3"),
        ("year(-1)", "2024Q1", None, "2023"),
        ("day(0)", "202402", None, "20240229"),
        ("month(0)", "adhoc", Some("2024-07-15"), "202407"),
        ("months", "2024Q3", None, "202407 202408 202409"),
        ("months", "202407", None, "202407"),
        ("months", "20240731", None, "202407"),
        ("months_of_quarter", "2024Q4", None, "202410 202411 202412"),
        ("months_of_quarter", "202405", None, "202404 202405 202406"),
        ("months_of_quarter", "20240101", None, "202401 202402 202403"),
        ("quarters_of_year", "2024", None, "2024Q1 2024Q2 2024Q3 2024Q4"),
        ("quarters_of_year", "202412", None, "2024Q1 2024Q2 2024Q3 2024Q4"),
        ("last_day_of_month(-1)", "20240301", None, "20240229"),
        ("last_day_of_month(-1)", "2024Q1", None, "20240229"),
        ("last_day_of_month(-1)", "adhoc", Some("2024-01-15"), "20231231"),
        ("first_day_of_month(-1)", "202407", Some("2024-08-02"), "20240701"),
        ("friday(-1)", "20240731", None, "20240726"),
        ("week_to_date", "20240729", None, "20240729"),
        ("week_to_date", "20240301", None, "20240226 20240227 20240228 20240229 20240301"),
        ("month_to_date", "20240301", None, "20240301"),
        ("Month_To_Date", "adhoc", Some("2024-01-03"), "20240101 20240102 20240103"),
        (
            "months_of_year",
            "2024Q2",
            None,
            "202401 202402 202403 202404 202405 202406 202407 202408 202409 202410 202411 202412",
        ),
    ] {
        let got = BatchExpr::parse(text).expect(text).from(&no(base), date.map(day));
        let Ok(RelativeBatch::These(got)) = got else { panic!("{text} from {base}: {got:?}") };
        assert_eq!(words(&got), numbers, "{text} from {base}");
        let one = BatchExpr::parse(text).expect(text).one_from(&no(base), date.map(day));
        let is_several = ["months", "s_of_", "_to_date"]
            .iter()
            .any(|part| text.to_ascii_lowercase().contains(part));
        assert_eq!(one.is_err(), is_several, "{text}");
    }
    let latest = BatchExpr::parse("latest").expect("latest").from(&no("202407"), None);
    assert_eq!(latest, Ok(RelativeBatch::LatestUpTo(no("202407"))));
}

#[test]
fn all_days_of_a_week() {
    for (text, base, numbers) in [
        (
            "days_of_week(-1)",
            "20240731",
            "20240722 20240723 20240724 20240725 20240726 20240727 20240728",
        ),
        (
            "days_of_week(0)",
            "20250101",
            "20241230 20241231 20250101 20250102 20250103 20250104 20250105",
        ),
    ] {
        let expr = BatchExpr::parse(text).expect(text);
        let Ok(RelativeBatch::These(got)) = expr.from(&no(base), None) else { panic!("{text}") };
        assert_eq!(words(&got), numbers, "{text} from {base}");
        let error = expr.one_from(&no(base), None).expect_err(text).to_string();
        assert!(error.contains("does not give one batch number"), "{error}");
    }
}

#[test]
fn all_days_of_a_month() {
    for (date, n, first, last, count) in [
        ("2024-03-31", -1, "20240201", "20240229", 29),
        ("2023-03-31", -1, "20230201", "20230228", 28),
        ("2024-01-01", -1, "20231201", "20231231", 31),
        ("2024-12-31", 1, "20250101", "20250131", 31),
        ("2024-06-15", 0, "20240601", "20240630", 30),
    ] {
        let expr = BatchExpr::parse(&format!("days_of_month({n})")).expect("expression");
        let numbers = expr.all_at(day(date)).expect("days");
        assert_eq!(numbers.len(), count, "{date}");
        assert_eq!((&numbers[0], &numbers[count - 1]), (&no(first), &no(last)));
        assert!(numbers.is_sorted());
    }
}

#[test]
fn the_kind_of_numbers_that_an_expression_gives() {
    for (text, own, kind) in [
        ("last_day_of_month(-1)", None, Some(PeriodKind::Day)),
        ("sunday(0)", Some(PeriodKind::Month), Some(PeriodKind::Day)),
        ("days_of_week(0)", None, Some(PeriodKind::Day)),
        ("month_to_date", None, Some(PeriodKind::Day)),
        ("quarter(0)", Some(PeriodKind::Month), Some(PeriodKind::Quarter)),
        ("months", Some(PeriodKind::Quarter), Some(PeriodKind::Month)),
        ("quarters_of_year", None, Some(PeriodKind::Quarter)),
        ("prev", Some(PeriodKind::Year), Some(PeriodKind::Year)),
        ("latest", None, None),
        ("202407", None, Some(PeriodKind::Month)),
        ("adhoc", Some(PeriodKind::Month), None),
    ] {
        assert_eq!(BatchExpr::parse(text).expect(text).number_kind(own), kind, "{text}");
    }
}

#[test]
fn what_is_no_expression_is_told_the_forms() {
    for (text, said) in [
        (
            "",
            "'' is not a batch number and not an expression for one; write a batch number (202407",
        ),
        ("last month", "'last month' is not a batch number and not an expression"),
        ("month(-1", "'month(-1' is not a batch number"),
        ("week(-1)", "months_of_year, quarters_of_year or latest"),
        ("same()", "'same()' is not a batch number"),
        ("2024/07", "'2024/07' is not a batch number"),
        ("month", "'month' wants a number; write month(0) for the month itself, month(-1) for"),
        ("week(-1)", "days_of_week(n), days_of_month(n), week_to_date, month_to_date, months"),
        ("first_day_of_week(0)", "(also with quarter or year), monday(n) to sunday(n)"),
        ("days_of_quarter(0)", "days_of_week(n), days_of_month(n)"),
        ("monday", "write monday(0) for the week itself, monday(-1) for the one before"),
        (
            "Last_Day_Of_Month",
            "'last_day_of_month' wants a number; write last_day_of_month(0) for the month itself, last_day",
        ),
        ("days_of_week", "write days_of_week(0) for the week itself"),
        (
            "days_of_month(x)",
            "x must be a whole number from -100000 to 100000, as in days_of_month(-1)",
        ),
        ("week_to_date(0)", "'week_to_date(0)' is not a batch number"),
        ("month()", "what stands in the parentheses must be a whole number from -100000 to 100000"),
        ("month(one)", "one must be a whole number from -100000 to 100000, as in month(-1)"),
        ("month(1.5)", "1.5 must be a whole number"),
        ("day(100001)", "100001 must be a whole number from -100000"),
        ("prev(0)", "'prev(0)': 0 must be a whole number from 1 to 100000, as in prev(2)"),
        ("next(-1)", "-1 must be a whole number from 1 to 100000, as in next(2)"),
    ] {
        let error = BatchExpr::parse(text).expect_err(text).to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn an_expression_without_an_answer_says_why() {
    let at = |text: &str| BatchExpr::parse(text).expect(text).batch_no_on(day("2024-07-31"));
    for text in ["same", "prev", "next(2)", "months", "months_of_quarter", "latest"] {
        let error = at(text).expect_err(text).to_string();
        let said = "is counted from another batch, and here is only a day; write day(n), month(n)";
        assert!(error.starts_with(&format!("{text} {said}")), "{error}");
    }
    for text in ["days_of_week(-1)", "days_of_month(0)", "month_to_date"] {
        let error = at(text).expect_err(text).to_string();
        let said =
            "gives several batch numbers, and here one is needed; write day(n), first_day_of";
        assert!(error.starts_with(&format!("{text} {said}")), "{error}");
    }
    for text in ["first_day_of_year(-2024)", "last_day_of_month(99999)", "days_of_week(-100000)"] {
        let error = BatchExpr::parse(text).expect(text);
        let error = error.all_at(day("1900-07-31")).expect_err(text).to_string();
        assert!(error.ends_with("outside the years 1 to 9999; use a smaller number"), "{error}");
    }
    let error = at("year(-3000)").expect_err("far").to_string();
    assert_eq!(error, "year(-3000) lies outside the years 1 to 9999; use a smaller number");
    for (text, base, said) in [
        ("prev", "adhoc", "prev of batch adhoc: free text has no period; use a number such as"),
        ("months", "adhoc", "months of batch adhoc: free text has no period"),
        ("quarters_of_year", "adhoc", "free text has no period"),
        ("month(-1)", "adhoc", "free text has no date; give the batch a business date (--business"),
        (
            "months_of_quarter",
            "2024",
            "months_of_quarter of batch 2024: a year does not lie in one quarter; write months",
        ),
        ("next", "999912", "next lies outside the years 1 to 9999"),
    ] {
        let error = BatchExpr::parse(text).expect(text).from(&no(base), None).expect_err(text);
        assert!(error.to_string().contains(said), "{error}");
    }
    for text in ["latest", "months", "quarters_of_year"] {
        let one = BatchExpr::parse(text).expect(text).one_from(&no("2024"), None);
        let error = one.expect_err(text).to_string();
        assert!(error.contains("does not give one batch number; write same, prev(n)"), "{error}");
    }
}

#[test]
fn an_expression_is_kept_as_text() {
    for (text, kept) in [
        ("202407", "202407"),
        ("prev(1)", "prev"),
        ("PREV(3)", "prev(3)"),
        ("next(1)", "next"),
        ("next(2)", "next(2)"),
        ("month(+1)", "month(1)"),
        ("Months_Of_Quarter", "months_of_quarter"),
        ("months_of_year", "months_of_year"),
        ("quarters_of_year", "quarters_of_year"),
        ("months", "months"),
        ("same", "same"),
        ("latest", "latest"),
        ("year( -1 )", "year(-1)"),
        ("Last_Day_Of_Month(-1)", "last_day_of_month(-1)"),
        ("first_day_of_quarter(+2)", "first_day_of_quarter(2)"),
        ("MONDAY(-1)", "monday(-1)"),
        ("days_of_week( 0 )", "days_of_week(0)"),
        ("week_to_date", "week_to_date"),
    ] {
        let expr = BatchExpr::parse(text).expect(text);
        let json = serde_json::to_string(&expr).expect("json");
        assert_eq!(json, format!("\"{kept}\""));
        assert_eq!(serde_json::from_str::<BatchExpr>(&json).expect("back"), expr);
    }
    let error = serde_json::from_str::<BatchExpr>("\"month\"").expect_err("no count");
    assert!(error.to_string().contains("'month' wants a number"), "{error}");
}

fn periods() -> impl Strategy<Value = Period> {
    let kinds = prop::sample::select(PeriodKind::ALL.to_vec());
    (kinds, 1i32..=9999, 1u32..=366).prop_map(|(kind, year, day)| {
        let date = NaiveDate::from_yo_opt(year, day.min(365)).expect("a day of every year");
        Period::containing(kind, date).expect("a year of four digits")
    })
}

proptest! {
    #[test]
    fn a_number_names_its_period(period in periods()) {
        prop_assert_eq!(Period::from_batch_no(&period.batch_no()), Some(period));
        prop_assert!(period.first_day() <= period.last_day());
        for date in [period.first_day(), period.last_day()] {
            prop_assert_eq!(Period::containing(period.kind(), date), Some(period));
        }
    }

    #[test]
    fn there_and_back_is_identity(period in periods(), n in -5_000i64..5_000) {
        if let Some(there) = period.shift(n) {
            prop_assert_eq!(there.shift(-n), Some(period));
            prop_assert_eq!(there.first_day().cmp(&period.first_day()), n.cmp(&0));
        }
    }

    #[test]
    fn periods_leave_no_day_out(period in periods()) {
        if let Some(next) = period.next() {
            prop_assert_eq!(period.last_day().succ_opt(), Some(next.first_day()));
        }
        let mut at = period.first_day();
        for part in period.split(PeriodKind::Month).iter().filter(|_| period.kind() != PeriodKind::Day) {
            prop_assert_eq!(part.first_day(), at);
            at = part.last_day().succ_opt().expect("before the end of time");
        }
        if period.kind() != PeriodKind::Day {
            prop_assert_eq!(at.pred_opt(), Some(period.last_day()));
        }
    }

    #[test]
    fn ranges_are_complete_in_both_directions(period in periods(), n in -300i64..300) {
        if let Some(end) = period.shift(n) {
            let text = format!("{}..{}", period.batch_no(), end.batch_no());
            let numbers = range(&text).expect("same kind");
            prop_assert_eq!(numbers.len() as u64, n.unsigned_abs() + 1);
            for (i, number) in numbers.iter().enumerate() {
                let step = i64::try_from(i).expect("small") * n.signum();
                prop_assert_eq!(Some(number.clone()), period.shift(step).map(Period::batch_no));
            }
        }
    }

    #[test]
    fn any_text_is_an_expression_or_a_sentence(text in ".{0,40}") {
        match BatchExpr::parse(&text) {
            Ok(expr) => prop_assert_eq!(BatchExpr::parse(&expr.to_string()), Ok(expr)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        let _never_panics = range(&text);
    }

    #[test]
    fn any_words_come_back(
        word in prop::sample::select(vec![
            "prev", "next", "day", "month", "quarter", "year", "same", "first_day_of_month",
            "last_day_of_quarter", "sunday", "days_of_week", "days_of_month",
        ]),
        n in -100_100i64..100_100,
        base in periods(),
        date in prop::option::of(periods()),
    ) {
        if let Ok(expr) = BatchExpr::parse(&format!("{word}({n})")) {
            prop_assert_eq!(BatchExpr::parse(&expr.to_string()), Ok(expr.clone()));
            let date = date.map(Period::first_day);
            if let Ok(RelativeBatch::These(numbers)) = expr.from(&base.batch_no(), date) {
                prop_assert!(numbers.iter().all(|no| Period::from_batch_no(no).is_some()));
            }
        }
    }
}
