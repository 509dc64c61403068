//! Conditions of edges, success rules and checks.

use super::text_of;
use procession::domain::job::check::{CheckGrade, SuccessRule};
use procession::domain::job::outcome::JobOutputs;
use procession::domain::job::success_rules::judge;
use procession::domain::value::OutputValue;
use procession::domain::value::ValueType;
use procession::domain::value::expr::{DEPTH_MAX, Expr, LENGTH_MAX};

/// A condition is read again from its text and answers the same twice; a refusal has a column in the text.
pub(super) fn check(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    let expr = match Expr::parse(text) {
        Ok(expr) => expr,
        Err(error) => {
            let characters = text.chars().count();
            assert!((1..=characters + 1).contains(&error.column()), "{error} of {characters}");
            assert!(!error.hint_text().is_empty(), "a refusal without a fix: {error}");
            return;
        }
    };
    assert!(text.chars().count() <= LENGTH_MAX, "longer than {LENGTH_MAX}");
    assert!(text.matches('(').count() <= LENGTH_MAX && DEPTH_MAX > 0);
    assert_eq!(expr.to_string(), text);
    let names = expr.names();
    for kind in 0..VALUES {
        let look_up = |name: &str| {
            assert!(names.contains(&name), "{name:?} is looked up and not in {names:?}");
            value(kind, name)
        };
        let answer = expr.evaluate(&look_up);
        assert_eq!(expr.evaluate(&look_up), answer, "two answers");
        if let Err(error) = answer {
            let characters = text.chars().count();
            assert!((1..=characters + 1).contains(&error.column()), "{error} of {characters}");
        }
    }
    let rule = SuccessRule { rule: expr, grade: CheckGrade::Warning, message: None };
    let mut outputs = JobOutputs { exit_code: Some(3), rows_affected: 7, ..JobOutputs::default() };
    for name in ["p_status", "total", "a"] {
        outputs.set_value(name, OutputValue::Text("12".to_owned()));
    }
    let findings = judge(&[rule], &outputs);
    assert!(findings.len() == 1 && !findings[0].1.said.is_empty(), "{findings:?}");
}

/// How many worlds of values there are.
const VALUES: usize = 6;

/// What a name is worth in one of the worlds.
fn value(kind: usize, name: &str) -> Option<OutputValue> {
    let text = |text: &str| Some(OutputValue::Text(text.to_owned()));
    match kind {
        0 => None,
        1 => Some(OutputValue::Null),
        2 => text("12.50"),
        3 => text(name),
        4 => text("1e999999999999"),
        _ => Some(OutputValue::Typed(ValueType::Date, "2024-07-31".to_owned())),
    }
}
