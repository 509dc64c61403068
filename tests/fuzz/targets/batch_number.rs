//! Batch numbers, ranges of them, and the expressions that give them.

use super::text_of;
use chrono::NaiveDate;
use procession::domain::batch_no::{
    BatchExpr, NumberGrammar, Period, PeriodKind, RelativeBatch, compare, range,
};
use procession::domain::id::BatchNo;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// What is accepted prints back the same; ranges name each number once; expressions give numbers.
pub(super) fn check(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    check_number(text);
    check_range(text);
    for line in text.lines() {
        check_number(line);
        check_expression(line);
    }
}

fn check_number(text: &str) {
    let number = match BatchNo::parse(text) {
        Ok(number) => number,
        Err(error) => {
            assert!(error.to_string().starts_with("batch number '"), "{error}");
            return;
        }
    };
    assert_eq!(number.as_str(), text);
    assert_eq!(number.to_string(), text);
    let json = serde_json::to_string(&number).expect("JSON");
    assert_eq!(serde_json::from_str::<BatchNo>(&json).ok().as_ref(), Some(&number), "{json}");
    if let Some(period) = Period::from_batch_no(&number) {
        check_period(&number, period);
    }
    for word in NumberGrammar::type_words().map(Some).chain([None, Some("other")]) {
        let grammar = NumberGrammar::of_type(word);
        match grammar.check(&number) {
            Ok(()) => {}
            Err(mismatch) => assert!(!mismatch.to_string().is_empty(), "{number}: {word:?}"),
        }
        let _any_period = grammar.period(&number);
    }
}

fn check_period(number: &BatchNo, period: Period) {
    assert_eq!(&period.batch_no(), number, "the number of its period");
    assert!(period.first_day() <= period.last_day(), "{number}");
    if let Some(next) = period.next() {
        assert_eq!(compare(number, &next.batch_no()), Some(Ordering::Less), "{number}");
        assert_eq!(next.previous(), Some(period), "{number}");
        assert_eq!(period.last_day().succ_opt(), Some(next.first_day()), "{number}");
    }
    for kind in PeriodKind::ALL {
        let parts = period.split(kind);
        assert!(!parts.is_empty() && parts.len() <= 366, "{number} has {} of {kind}", parts.len());
    }
}

fn check_range(text: &str) {
    match range(text) {
        Ok(numbers) => {
            let distinct: BTreeSet<&BatchNo> = numbers.iter().collect();
            assert_eq!(distinct.len(), numbers.len(), "{text:?} names a number twice");
            let list: Vec<&str> = numbers.iter().map(BatchNo::as_str).collect();
            assert_eq!(range(&list.join(",")).as_ref(), Ok(&numbers), "the list of {text:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?}"),
    }
}

fn check_expression(text: &str) {
    let expr = match BatchExpr::parse(text) {
        Ok(expr) => expr,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "{text:?}");
            return;
        }
    };
    assert_eq!(BatchExpr::parse(&expr.to_string()).as_ref(), Ok(&expr), "{text:?} as {expr}");
    let day = |year, month, day| NaiveDate::from_ymd_opt(year, month, day).expect("a day");
    for date in [day(1, 1, 1), day(2024, 2, 29), day(9999, 12, 31)] {
        if let Ok(number) = expr.batch_no_on(date) {
            assert_eq!(BatchNo::parse(number.as_str()).as_ref(), Ok(&number), "{expr} at {date}");
        }
    }
    for base in ["20240229", "202407", "2024Q3", "9999", "adhoc"] {
        let base = BatchNo::parse(base).expect("a batch number");
        for date in [None, Some(day(2024, 2, 29))] {
            match expr.from(&base, date) {
                Ok(RelativeBatch::These(numbers)) => {
                    assert!(!numbers.is_empty(), "{expr} of {base} gives nothing");
                    assert!(!expr.gives_one() || numbers.len() == 1, "{expr} of {base}");
                }
                Ok(RelativeBatch::LatestUpTo(up_to)) => assert_eq!(up_to, base),
                Err(error) => assert!(!error.to_string().is_empty(), "{expr} of {base}"),
            }
        }
    }
}
