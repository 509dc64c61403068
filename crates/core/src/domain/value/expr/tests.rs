use super::*;
use proptest::prelude::*;

fn values(name: &str) -> Option<OutputValue> {
    let text = match name {
        "p_status" => "0",
        "rows" => "12.50",
        "big" => "123456789012345678901234567890.5",
        "name" => "Müller",
        "no" => "202407",
        "day" => "2024-07-31",
        "code" => "007",
        "empty" => "",
        "yes" => "TRUE",
        "one" => "1",
        "result.total" => "-3",
        "总额" => "5",
        "nothing" => return Some(OutputValue::Null),
        "span" => return Some(OutputValue::Typed(ValueType::Interval, "1 day".to_owned())),
        "short" => return Some(OutputValue::Typed(ValueType::Time, "-00:00:02".to_owned())),
        "posted" => {
            let text = "2024-02-29 02:11:12+00".to_owned();
            return Some(OutputValue::Typed(ValueType::TimestampTz, text));
        }
        "huge" => return Some(OutputValue::Unusable("column huge (TEXT) is too long".to_owned())),
        _ => return None,
    };
    Some(OutputValue::Text(text.to_owned()))
}

fn answer(text: &str) -> Result<bool, String> {
    let expr = Expr::parse(text).map_err(|e| e.to_string())?;
    expr.evaluate(&values).map_err(|e| e.to_string())
}

#[test]
fn comparisons_and_words() {
    for (text, expected) in [
        ("p_status == 0", true),
        ("p_status = 0.00", true),
        ("p_status != 0", false),
        ("p_status <> 1", true),
        ("rows > 12.49", true),
        ("rows >= 12.5", true),
        ("rows < 12.5", false),
        ("rows <= 0", false),
        ("result.total < -2.999", true),
        ("总额 between 1 and 5", true),
        ("总额 not between 1 and 5", false),
        ("rows between 13 and 12", false),
        ("name = 'Müller'", true),
        ("name == \"Mueller\"", false),
        ("name in ('Meier', 'Müller')", true),
        ("name not in ('Meier')", true),
        ("rows in (1, 12.5)", true),
        ("yes", true),
        ("one", true),
        ("one == true", true),
        ("p_status == false", true),
        ("name == true", false),
        ("name != true", true),
        ("true and not false", true),
        ("NOT p_status = 1 AND rows IS NOT NULL", true),
        ("p_status = 1 or rows = 12.5 and name = 'x'", false),
        ("(p_status = 0 or rows = 1) and name <> 'x'", true),
        ("empty = ''", true),
        ("day > '2024-07-30' and day <= '2024-07-31'", true),
        ("no >= '202401'", true),
        ("no >= 202401", true),
    ] {
        assert_eq!(answer(text), Ok(expected), "{text}");
    }
}

#[test]
fn numbers_are_exact_and_quotes_mean_text() {
    for (text, expected) in [
        // As binary fractions, 0.1 + 0.2 and the last digit here would lose precision.
        ("big == 123456789012345678901234567890.5", true),
        ("big > 123456789012345678901234567890.4999999999", true),
        ("big == 123456789012345678901234567890.500", true),
        ("code == 7", true),
        ("code == '7'", false),
        ("code == '007'", true),
        // As text, '10' sorts before '9'.
        ("rows < '9'", true),
        ("rows < 9", false),
        ("'it''s' == \"it's\"", true),
        ("1 == 1.0", true),
    ] {
        assert_eq!(answer(text), Ok(expected), "{text}");
    }
}

#[test]
fn types_say_what_is_before_what() {
    for (text, expected) in [
        ("short < '-00:00:01'", true),
        ("'-00:00:01' > short", true),
        ("posted == '2024-02-29 10:11:12+08'", true),
        ("posted between '2024-02-29' and '2024-03-01'", true),
        ("posted > '2024-02-29 10:00:00'", false),
        ("posted in ('2024-02-29T02:11:12Z')", true),
        ("span == '1 day'", true),
        ("span != '24:00:00'", true),
        ("span is not null", true),
    ] {
        assert_eq!(answer(text), Ok(expected), "{text}");
    }
    for (text, said) in [
        ("span > '2 hours'", "span ('1 day', interval) and '2 hours' (text) have no order"),
        (
            "posted > 5",
            "posted ('2024-02-29 02:11:12+00', timestamptz) and 5 (a number) have no order",
        ),
        ("huge == 'x'", "huge cannot be compared; column huge (TEXT) is too long"),
        ("span", "neither true nor false"),
    ] {
        let error = answer(text).expect_err(text);
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn null_compares_false_except_is_null() {
    for (text, expected) in [
        ("nothing is null", true),
        ("nothing is not null", false),
        ("empty is null", false),
        ("null is null", true),
        ("nothing == 1", false),
        ("nothing != 1", false),
        ("nothing < 1", false),
        ("nothing == nothing", false),
        ("nothing in (1, 2)", false),
        ("nothing not in (1, 2)", false),
        ("rows not in (1, nothing)", true),
        ("nothing between 1 and 2", false),
        ("nothing not between 1 and 2", false),
        ("rows between nothing and 20", false),
        ("nothing", false),
        ("not nothing", true),
        ("nothing is not null and nothing > 'x'", false),
    ] {
        assert_eq!(answer(text), Ok(expected), "{text}");
    }
}

#[test]
fn and_and_or_stop_where_it_is_decided() {
    assert_eq!(answer("yes or no_such_name"), Ok(true));
    assert_eq!(answer("p_status = 1 and no_such_name"), Ok(false));
}

#[test]
fn faults_name_the_column_and_the_cure() {
    for (text, said) in [
        ("", "column 1: the condition is empty; write one, for example p_status == 0"),
        ("   ", "column 4: the condition is empty"),
        ("rows >", "column 7: a value is missing, the condition ends here; write a name"),
        ("rows > and", "column 8: a value is missing, and stands here"),
        ("rows == 1 name == 2", "column 11: name follows a whole condition; put and or or between"),
        ("1 < rows < 9", "column 10: < follows a whole condition; join two comparisons with and"),
        ("(rows) == 1", "column 8: == follows a whole condition"),
        ("(rows == 1", "column 11: ')' is missing, the condition ends here; close"),
        ("rows == 1)", "column 10: ')' without '('; remove it"),
        (
            "rows == (1)",
            "column 9: '(' stands where a value must be; parentheses go round conditions",
        ),
        ("rows == 'x", "column 9: the text in quotes has no end; end it with '"),
        ("rows == 1e5", "column 9: 1e5 is not a number; write it as 1234.50"),
        ("rows == 1.2.3", "column 9: 1.2.3 is not a number"),
        ("rows == -", "column 9: - is not a number"),
        ("rows == 1,000", "column 10: , follows a whole condition"),
        ("rows..x == 1", "column 1: rows..x is not a name"),
        ("result. == 1", "column 1: result. is not a name"),
        ("a && b", "column 3: && is not known here; write and"),
        ("a || b", "column 3: || is not known here; write or"),
        ("!a", "column 1: ! is not known here; write not"),
        ("a === b", "column 3: === is not known here; write =="),
        ("a => 1", "column 3: => is not known here; write >="),
        ("a =< 1", "column 3: =< is not known here; write <="),
        ("${rows} > 1", "column 1: ${ is not known here; write the bare name"),
        ("`rows` > 1", "column 1: ` is not known here; put text in"),
        ("rows + 1 > 2", "column 6: '+' is not known here; a condition is names, numbers"),
        ("rows; drop", "column 5: ';' is not known here"),
        ("rows is 1", "column 9: is wants null, 1 stands here; write is null"),
        ("rows == null", "column 9: a comparison with null is never true; write is null"),
        ("rows in (1, null)", "column 13: a comparison with null is never true"),
        ("rows between null and 2", "column 14: a comparison with null"),
        ("rows in 1", "column 9: in wants a list, 1 stands here; write in (1, 2, 3)"),
        ("rows in ()", "column 10: a value is missing, ) stands here"),
        ("rows in (1 2)", "column 12: the list has no end, 2 stands here"),
        ("rows between 1 or 2", "column 16: between wants and, or stands here"),
        ("rows not 1", "column 10: not wants in or between, 1 stands here"),
        ("5", "column 1: a value alone is not a condition; compare it"),
        ("'x' and yes", "column 1: a value alone is not a condition"),
        // Errors that only evaluation can find.
        ("missing > 1", "column 1: there is no value named missing; use a name that is handed out"),
        ("1 = 2 or missing is null", "column 10: there is no value named missing"),
        ("name > 5", "column 1: name ('Müller', text) and 5 (a number) have no order; compare two"),
        ("5 < name", "column 1: 5 (a number) and name ('Müller', text) have no order"),
        (
            "rows < name",
            "column 1: rows ('12.50', a number) and name ('Müller', text) have no order",
        ),
        ("5 < 'x'", "column 1: 5 (a number) and 'x' (text) have no order"),
        ("yes > false", "column 1: yes ('TRUE', text) and false have no order"),
        ("name between 1 and 2", "name ('Müller', text) and 1 (a number) have no order"),
        ("name", "column 1: name ('Müller', text) is neither true nor false; compare it"),
        ("not rows", "column 5: rows ('12.50', a number) is neither true nor false"),
    ] {
        let error = answer(text).expect_err(text);
        assert!(error.contains(said), "{text}\n  said: {error}\n  want: {said}");
    }
}

#[test]
fn the_sentence_has_its_parts_apart() {
    let error = Expr::parse("a &&").expect_err("foreign");
    assert_eq!((error.column(), error.hint_text()), (3, "write and"));
    assert_eq!(error.message(), "condition, column 3: && is not known here");
    assert_eq!(error.to_string(), format!("{}; {}", error.message(), error.hint_text()));
}

#[test]
fn size_is_limited_before_anything_is_read() {
    let deep = format!("{}yes{}", "(".repeat(100_000), ")".repeat(100_000));
    let error = Expr::parse(&deep).expect_err("long").to_string();
    assert!(error.contains("a condition has at most 2000 characters"), "{error}");
    let nested = |levels| format!("{}yes{}", "(".repeat(levels), ")".repeat(levels));
    assert!(Expr::parse(&nested(DEPTH_MAX)).is_ok());
    let error = Expr::parse(&nested(DEPTH_MAX + 1)).expect_err("deep").to_string();
    assert!(error.contains("column 52: more than 50 levels deep; take parentheses out"), "{error}");
    assert!(Expr::parse(&format!("{}yes", "not ".repeat(51))).is_err());
    // Only open parentheses count as depth, not closed ones.
    assert!(Expr::parse(&vec!["(yes)"; 200].join(" and ")).is_ok());
    // A chain of operators adds no depth.
    assert!(Expr::parse(&vec!["yes"; 250].join(" or ")).is_ok());
    let digits = "9".repeat(DIGITS_MAX + 1);
    let long =
        Expr::parse("x > 1").expect("reads").evaluate(&|_| Some(OutputValue::Text(digits.clone())));
    assert!(long.expect_err("text").to_string().contains("have no order"));
}

#[test]
fn names_are_listed_once_and_in_order() {
    let expr =
        Expr::parse("b = 1 and (a in (c, b, 2) or not d.x is null) and e between b and f or g")
            .expect("reads");
    assert_eq!(expr.names(), ["b", "a", "c", "d.x", "e", "f", "g"]);
    assert!(Expr::parse("1 = 1 and 'x' = 'y' or true").expect("reads").names().is_empty());
}

#[test]
fn it_is_kept_as_the_text_that_was_written() {
    let text = "p_status  == 0 AND 名 <> 'x'";
    let expr = Expr::parse(text).expect("reads");
    assert_eq!(expr.to_string(), text);
    let json = serde_json::to_string(&expr).expect("json");
    assert_eq!(json, format!("{text:?}"));
    assert_eq!(serde_json::from_str::<Expr>(&json).expect("back"), expr);
    let error = serde_json::from_str::<Expr>("\"a &&\"").expect_err("foreign").to_string();
    assert!(error.contains("column 3: && is not known here"), "{error}");
}

/// A condition over the names a, b, c, and its expected result for given truth values.
#[derive(Clone, Debug)]
enum Tree {
    Name(usize),
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
}

impl Tree {
    fn written(&self) -> String {
        match self {
            Self::Name(i) => ["a", "b", "c"][*i].to_owned(),
            Self::Not(t) => format!("not ({})", t.written()),
            Self::And(l, r) => format!("({}) AND ({})", l.written(), r.written()),
            Self::Or(l, r) => format!("({}) or ({})", l.written(), r.written()),
        }
    }

    fn holds(&self, truths: &[bool; 3]) -> bool {
        match self {
            Self::Name(i) => truths[*i],
            Self::Not(t) => !t.holds(truths),
            Self::And(l, r) => l.holds(truths) && r.holds(truths),
            Self::Or(l, r) => l.holds(truths) || r.holds(truths),
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    (0usize..3).prop_map(Tree::Name).prop_recursive(5, 32, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|t| Tree::Not(Box::new(t))),
            (inner.clone(), inner.clone()).prop_map(|(l, r)| Tree::And(Box::new(l), Box::new(r))),
            (inner.clone(), inner).prop_map(|(l, r)| Tree::Or(Box::new(l), Box::new(r))),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}") {
        if let Ok(expr) = Expr::parse(&text) {
            prop_assert_eq!(expr.to_string(), text);
            let _ = expr.evaluate(&|_| Some(OutputValue::Null));
        }
    }

    #[test]
    fn any_words_are_read_or_refused(
        words in prop::collection::vec(
            prop::sample::select(vec!["a", "(", ")", "not", "and", "or", "in", "is", "null", "==",
                "<", "between", ",", "1", "'x'", "true"]),
            0..12,
        )
    ) {
        if let Ok(expr) = Expr::parse(&words.join(" ")) {
            let _ = expr.evaluate(&|_| Some(OutputValue::Text("1".to_owned())));
        }
    }

    #[test]
    fn joined_conditions_answer_as_logic_does(tree in trees(), truths: [bool; 3]) {
        let expr = Expr::parse(&tree.written()).expect("reads");
        let look_up = |name: &str| {
            let at = ["a", "b", "c"].iter().position(|n| *n == name)?;
            Some(OutputValue::Text(truths[at].to_string()))
        };
        prop_assert_eq!(expr.evaluate(&look_up), Ok(tree.holds(&truths)));
    }

    #[test]
    fn numbers_order_as_numbers(a: i64, b: i64, places in 0u32..6) {
        let scaled = |n: i64| BigDecimal::new(n.into(), places.into()).to_plain_string();
        let look_up = |name: &str| Some(OutputValue::Text(scaled(if name == "a" { a } else { b })));
        for (text, expected) in [("a < b", a < b), ("a == b", a == b), ("a >= b", a >= b)] {
            prop_assert_eq!(Expr::parse(text).expect("reads").evaluate(&look_up), Ok(expected));
        }
        let literal = format!("a <= {}", scaled(b));
        prop_assert_eq!(Expr::parse(&literal).expect("reads").evaluate(&look_up), Ok(a <= b));
    }

    #[test]
    fn any_text_in_quotes_is_that_text(text in "[^\0]{0,40}") {
        let quoted = format!("a == '{}'", text.replace('\'', "''"));
        let expr = Expr::parse(&quoted).expect("reads");
        prop_assert_eq!(expr.evaluate(&|_| Some(OutputValue::Text(text.clone()))), Ok(true));
    }
}
