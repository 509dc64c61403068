//! Tables of rule and check results, and properties that always hold.

use super::*;
use crate::domain::source::sql_text::SqlText;
use crate::domain::value::expr::Expr;
use proptest::prelude::*;

fn rule(text: &str, grade: CheckGrade) -> SuccessRule {
    SuccessRule { rule: Expr::parse(text).expect(text), grade, message: None }
}

fn check(expect: Expect, grade: CheckGrade) -> DataCheck {
    let sql = SqlText::Same("SELECT 1".into());
    DataCheck { name: "tb".into(), source: None, sql, expect, grade }
}

/// Rows separated by `|`, values by `,`; `~` is NULL.
fn rows(text: &str) -> ResultSet {
    let value = |v: &str| (v != "~").then(|| v.to_owned());
    let row = |r: &str| r.split(',').map(value).collect::<Vec<_>>();
    let rows: Vec<_> =
        if text.is_empty() { Vec::new() } else { text.split('|').map(row).collect() };
    ResultSet { row_count: rows.len() as u64, rows, ..ResultSet::default() }
}

fn range(min: Option<&str>, max: Option<&str>) -> Expect {
    Expect::Between { min: min.map(str::to_owned), max: max.map(str::to_owned) }
}

fn same(tolerance: Option<&str>) -> Expect {
    let sql = SqlText::Same("SELECT 2".into());
    Expect::Equals { source: None, sql, tolerance: tolerance.map(str::to_owned) }
}

#[test]
fn rules_look_at_outputs_and_name_what_they_saw() {
    let outputs = JobOutputs {
        values: BTreeMap::from([("p_status".into(), Some("2".into())), ("p_msg".into(), None)]),
        results: vec![ResultSet { columns: vec!["total".into()], ..rows("9.50") }],
        rows_affected: 7,
        ..JobOutputs::default()
    };
    for (text, ok, grade, said) in [
        ("p_status == 0", false, CheckGrade::Warning, "does not hold (p_status = 2)"),
        ("p_status in (0, 2)", true, CheckGrade::Warning, "holds (p_status = 2)"),
        ("p_msg is null and rows_affected >= 7", true, CheckGrade::Warning, "p_msg = NULL, rows"),
        ("result.total between 9 and 9.5", true, CheckGrade::Warning, "result.total = 9.50"),
        ("result_rows == 1", true, CheckGrade::Warning, "result_rows = 1"),
        ("p_msg == 0", false, CheckGrade::Warning, "p_msg = NULL"),
        // Cannot be evaluated: at least an error.
        ("result.other == 1", false, CheckGrade::Error, "cannot be answered"),
        ("p_status > 'a'", false, CheckGrade::Warning, "does not hold"),
    ] {
        let found = judge(&[rule(text, CheckGrade::Warning)], &outputs).remove(0);
        assert_eq!((found.0.as_str(), found.1.ok, found.1.grade), (text, ok, grade), "{found:?}");
        assert!(found.1.said.contains(said), "{found:?}");
    }
    let own = SuccessRule {
        message: Some("the load is short".into()),
        ..rule("p_status == 0", CheckGrade::Fatal)
    };
    assert_eq!(
        judge(&[own], &outputs)[0].1.said,
        "the load is short: success rule 'p_status == 0' does not hold (p_status = 2)"
    );
}

#[test]
fn results_are_compared_with_what_is_expected() {
    let none = ComparisonBasis::default();
    for (expect, found, ok, said) in [
        (Expect::ZeroRows, "", true, "found no row; expected no row"),
        (Expect::ZeroRows, "~", false, "found 1 row (NULL)"),
        (Expect::ZeroRows, "A,1|B,2", false, "found 2 rows (the first: A, 1); expected no row"),
        (range(Some("1"), Some("5")), "1", true, "found 1; expected a value between 1 and 5"),
        (range(Some("1"), Some("5")), "5.00", true, ""),
        (range(Some("1"), Some("5")), "5.000000000000000000000001", false, ""),
        (range(Some("1"), Some("5")), "0.99", false, ""),
        (range(Some("1"), None), "1e+20", true, "a value of 1 or more"),
        (range(None, Some("-1")), "-1", true, "a value of -1 or less"),
        (range(None, Some("5")), "~", false, "found NULL"),
        (range(None, Some("5")), "", false, "found no row"),
        (range(None, Some("5")), "1|2", false, "found 2 rows"),
        (range(None, Some("5")), "1,2", false, "found a row of 2 values"),
        (range(None, Some("5")), "many", false, "found 'many', not a number"),
    ] {
        let finding = compare(&check(expect.clone(), CheckGrade::Error), &rows(found), none);
        assert_eq!(finding.ok, ok, "{expect:?} {finding:?}");
        assert!(finding.said.contains(said), "{finding:?}");
    }
}

#[test]
fn two_queries_are_equal_value_by_value() {
    for (found, other, tolerance, ok) in [
        ("12.50", "12.5", None, true),
        ("12.50", "12.51", None, false),
        ("12.50", "12.51", Some("0.01"), true),
        ("12.50", "12.510000001", Some("0.01"), false),
        ("A,1", "A,1.0", None, true),
        ("A,1", "a,1", None, false),
        ("A,1", "A", None, false),
        // Text is compared as text: account codes of which one is not a number.
        ("007", "007x", None, false),
        ("~", "~", None, true),
        ("~", "0", Some("1"), false),
        ("", "", None, false),
        ("1", "1|1", None, false),
        ("1|1", "1", None, false),
    ] {
        let (found, other) = (rows(found), rows(other));
        let basis = ComparisonBasis { other: Some(&other), last: None };
        let finding = compare(&check(same(tolerance), CheckGrade::Error), &found, basis);
        assert_eq!(finding.ok, ok, "{finding:?}");
    }
    let finding = compare(
        &check(same(Some("0.01")), CheckGrade::Error),
        &rows("5"),
        ComparisonBasis { other: Some(&rows("6")), last: None },
    );
    let said = "check 'tb' found 5; expected 6 (within 0.01), which the other query gave";
    assert_eq!((finding.said.as_str(), finding.value.as_deref()), (said, Some("5")));
}

#[test]
fn drift_is_a_share_of_the_last_value() {
    let last = |value: &str| Earlier {
        batch_no: BatchNo::parse("202406").expect("number"),
        value: value.to_owned(),
    };
    for (before, found, ok, said) in [
        (Some("200"), "220", true, "found 220 (10.00 % away)"),
        (Some("200"), "220.01", false, "within 10 % of 200, the value of batch 202406"),
        (Some("200"), "180", true, ""),
        (Some("-200"), "-221", false, ""),
        (Some("-200"), "200", false, "200.00 % away"),
        (Some("0"), "0.00", true, "no change"),
        (Some("0"), "0.01", false, "from 0 every change is infinite"),
        (None, "5", true, "no earlier batch"),
        (None, "~", false, "found NULL"),
        (Some("200"), "~", false, "found NULL"),
    ] {
        let last = before.map(last);
        let expect = Expect::Drift { max_percent: "10".into() };
        let basis = ComparisonBasis { other: None, last: last.as_ref() };
        let finding = compare(&check(expect, CheckGrade::Error), &rows(found), basis);
        assert_eq!(finding.ok, ok, "{finding:?}");
        assert!(finding.said.contains(said), "{finding:?}");
    }
}

fn finding(grade: CheckGrade, ok: bool, said: &str) -> (String, CheckFinding) {
    (said.to_owned(), CheckFinding { value: None, grade, ok, said: said.to_owned() })
}

#[test]
fn the_gravest_grade_counts_and_all_that_is_broken_is_named() {
    use CheckGrade::{Error, Fatal, Warning};
    for (findings, end, retry, message) in [
        (vec![], AttemptEnd::Success, Retry::Allowed, None),
        (vec![finding(Fatal, true, "a")], AttemptEnd::Success, Retry::Allowed, None),
        (vec![finding(Warning, false, "a")], AttemptEnd::Warning, Retry::Allowed, Some("a")),
        (
            vec![
                finding(Error, false, "a"),
                finding(Fatal, true, "b"),
                finding(Warning, false, "c"),
            ],
            AttemptEnd::Failed,
            Retry::Allowed,
            Some("a; c"),
        ),
        (
            vec![finding(Warning, false, "a"), finding(Fatal, false, "b")],
            AttemptEnd::Failed,
            Retry::Never,
            Some("a; b"),
        ),
    ] {
        let outcome = graded(AttemptOutcome::success(JobOutputs::default()), &findings);
        assert_eq!((outcome.end, outcome.retry), (end, retry));
        assert_eq!(outcome.message.as_deref(), message);
    }
}

#[test]
fn an_exit_code_is_judged_where_a_rule_speaks_of_it() {
    let ended = |code: Option<i32>| AttemptOutcome {
        outputs: JobOutputs { exit_code: code, ..JobOutputs::default() },
        ..AttemptOutcome::ended(AttemptEnd::Failed, "exit code 3: disk full")
    };
    let rules = [rule("exit_code in (0, 3)", CheckGrade::Error)];
    assert!(is_judged(&rules, &ended(Some(3))));
    assert!(!is_judged(&rules, &ended(None)), "ended by a signal");
    assert!(!is_judged(&[rule("rows == 1", CheckGrade::Error)], &ended(Some(3))));
    let well = graded(ended(Some(3)), &judge(&rules, &ended(Some(3)).outputs));
    assert_eq!((well.end, well.message), (AttemptEnd::Success, None));
    let badly = graded(ended(Some(4)), &judge(&rules, &ended(Some(4)).outputs));
    assert_eq!(badly.end, AttemptEnd::Failed);
    let said = badly.message.expect("a message");
    assert!(said.contains("(exit_code = 4)") && said.ends_with("exit code 3: disk full"), "{said}");
}

#[test]
fn the_last_batch_is_the_nearest_number_of_the_same_kind() {
    let no = |text: &str| BatchNo::parse(text).expect(text);
    let all = ["202405", "202312", "2024Q1", "202408", "202407", "adhoc", "202406"];
    let found = before(&no("202407"), all.iter().map(|n| (no(n), ())).collect());
    let words: Vec<String> = found.iter().map(|(n, ())| n.to_string()).collect();
    assert_eq!(words, ["202406", "202405", "202312"]);
}

#[test]
fn the_newest_number_of_each_check_is_remembered() {
    let no = |text: &str| BatchNo::parse(text).expect(text);
    let outputs = |name: &str, value: Option<&str>| {
        let (_, mut finding) = finding(CheckGrade::Error, true, "");
        finding.value = value.map(str::to_owned);
        JobOutputs { checks: BTreeMap::from([(name.to_owned(), finding)]), ..JobOutputs::default() }
    };
    let mut found = BTreeMap::new();
    remember(&mut found, &["a", "b"], &no("202406"), &outputs("a", None));
    remember(&mut found, &["a", "b"], &no("202405"), &outputs("a", Some("5")));
    remember(&mut found, &["a", "b"], &no("202404"), &outputs("a", Some("4")));
    remember(&mut found, &["a", "b"], &no("202404"), &outputs("other", Some("4")));
    assert_eq!(found.len(), 1);
    assert_eq!((found["a"].batch_no.as_str(), found["a"].value.as_str()), ("202405", "5"));
}

proptest! {
    /// A tolerance is symmetric, and a wider one holds wherever a narrower one does.
    #[test]
    fn tolerances_are_monotone(a in -9_999i64..9_999, b in -9_999i64..9_999, t in 0i64..500, more in 0i64..500) {
        let holds = |a: i64, b: i64, t: i64| {
            let text = |n: i64| BigDecimal::new(n.into(), 2).to_plain_string();
            let (found, other) = (rows(&text(a)), rows(&text(b)));
            let basis = ComparisonBasis { other: Some(&other), last: None };
            compare(&check(same(Some(&text(t))), CheckGrade::Error), &found, basis).ok
        };
        prop_assert_eq!(holds(a, b, t), (a - b).abs() <= t);
        prop_assert_eq!(holds(a, b, t), holds(b, a, t));
        prop_assert!(!holds(a, b, t) || holds(a, b, t + more));
    }

    /// For any result, a check returns a finding and a sentence with its name.
    #[test]
    fn no_result_panics(cells in prop::collection::vec(prop::option::of("[-+.0-9eExN月]{0,12}"), 0..4), count in 0u64..3, last in "[-0-9.e]{0,8}") {
        let rows = if count == 0 { vec![] } else { vec![cells; count as usize] };
        let found = ResultSet { rows, row_count: count, ..ResultSet::default() };
        let earlier = Earlier { batch_no: BatchNo::parse("1").expect("number"), value: last };
        let basis = ComparisonBasis { other: Some(&found), last: Some(&earlier) };
        let drift = Expect::Drift { max_percent: "5".into() };
        for expect in [Expect::ZeroRows, range(Some("0"), None), same(None), drift] {
            let finding = compare(&check(expect, CheckGrade::Error), &found, basis);
            prop_assert!(finding.said.starts_with("check 'tb' found "));
        }
    }
}
