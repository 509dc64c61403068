//! Reads `success` and `checks`: their form, nothing looked up yet.

use crate::definition::fault::{At, Report};
use crate::definition::fields::{Fields, single};
use crate::definition::keys::{BETWEEN, CHECK, DRIFT, EQUALS, EXPECT, RULE};
use crate::definition::node::{Node, Value};
use crate::definition::raw::{RawCheck, RawExpect, RawQuery, RawRule};
use crate::definition::read::{entries, same_code, sql};
use crate::domain::job::check::Grade;

const HOW: &str =
    "use zero_rows, between: [1, 5], min:, max:, equals: { sql: … } or drift: { max_percent: 10 }";

/// `success`: one rule as text, or a list of rules, each a text or a map.
pub(crate) fn success(fields: &mut Fields<'_>) -> Option<Vec<RawRule>> {
    let node = fields.take("success")?;
    let whose = format!("{}: success", fields.whose);
    let items = match node.value {
        Value::List(items) => items,
        value @ (Value::Text(_) | Value::Map(_) | Value::Null) => {
            vec![Node { at: node.at, value }]
        }
    };
    Some(items.into_iter().filter_map(|item| rule(&whose, item, fields.report)).collect())
}

fn rule(whose: &str, item: Node, report: &mut Report) -> Option<RawRule> {
    if !matches!(item.value, Value::Map(_)) {
        let rule = single(whose, item, report)?;
        return Some(RawRule { rule, grade: None, message: None });
    }
    let mut fields = Fields::open(whose, item, RULE, report);
    let (grade, message) = (grade(&mut fields), fields.line("message", 500));
    let Some(rule) = fields.word("rule") else {
        let at = fields.at.clone();
        fields.report.fault(&at, format!("{whose}: a rule is missing"), "add rule: p_status == 0");
        return None;
    };
    Some(RawRule { rule, grade, message })
}

fn grade(fields: &mut Fields<'_>) -> Option<At<Grade>> {
    fields.choice("else", &Grade::ALL.map(|grade| (grade.as_str(), grade)))
}

/// `checks`: a map by name, or a list of maps with their names inside.
pub(crate) fn checks(fields: &mut Fields<'_>) -> Option<Vec<RawCheck>> {
    let node = fields.take("checks")?;
    let whose = fields.whose.clone();
    let found = entries("check", "checks", "name", Some(node), fields.report);
    Some(found.into_iter().map(|(name, node)| check(&whose, name, node, fields.report)).collect())
}

fn check(whose: &str, name: At<String>, node: Node, report: &mut Report) -> RawCheck {
    let whose = format!("{whose}: check {}", name.value);
    let mut fields = Fields::open(whose.clone(), node, CHECK, report);
    same_code(&mut fields, "name", &name);
    let expect = match fields.take("expect") {
        Some(node) => expect(&format!("{whose}: expect"), node, fields.report),
        None => {
            fields.report.fault(
                &name.at,
                format!("{whose} expects nothing"),
                format!("add expect: {HOW}"),
            );
            None
        }
    };
    RawCheck { name, query: query(&mut fields), expect, grade: grade(&mut fields) }
}

fn query(fields: &mut Fields<'_>) -> RawQuery {
    RawQuery { source: fields.word("source"), sql: sql(fields), sql_file: fields.word("sql_file") }
}

fn expect(whose: &str, node: Node, report: &mut Report) -> Option<RawExpect> {
    let at = node.at.clone();
    match &node.value {
        Value::Text(word) if word == "zero_rows" => return Some(RawExpect::ZeroRows),
        Value::Map(_) => {}
        Value::Text(_) | Value::List(_) | Value::Null => {
            let said = match &node.value {
                Value::Text(word) => format!("{word:?}"),
                other => other.kind().to_owned(),
            };
            report.fault(&at, format!("{whose} is {said}"), HOW);
            return None;
        }
    }
    let mut fields = Fields::open(whose, node, EXPECT, report);
    let (min, max) = (fields.text("min"), fields.text("max"));
    let mut found = Vec::new();
    if min.is_some() || max.is_some() {
        found.push(RawExpect::Between { at: at.clone(), min, max });
    }
    if let Some(node) = fields.take("between") {
        found.extend(between(whose, node, fields.report));
    }
    if let Some(node) = fields.take("equals") {
        let at = node.at.clone();
        let mut other = Fields::open(format!("{whose}: equals"), node, EQUALS, fields.report);
        let (query, tolerance) = (query(&mut other), other.text("tolerance"));
        found.push(RawExpect::Equals { at, query, tolerance });
    }
    if let Some(node) = fields.take("drift") {
        let mut drift = Fields::open(format!("{whose}: drift"), node, DRIFT, fields.report);
        match drift.text("max_percent") {
            Some(max_percent) => found.push(RawExpect::Drift { max_percent }),
            None => {
                let at = drift.at.clone();
                let what = format!("{whose}: drift has no max_percent");
                drift.report.fault(&at, what, "add max_percent: 10");
            }
        }
    }
    if found.len() > 1 {
        fields.report.fault(
            &at,
            format!("{whose} says several things"),
            "keep one of them, and write a check for each of the others",
        );
    }
    found.into_iter().next()
}

/// `[min, max]`, where `~` leaves an end open, or a map of the two.
fn between(whose: &str, node: Node, report: &mut Report) -> Option<RawExpect> {
    let whose = format!("{whose}: between");
    let at = node.at.clone();
    let items = match node.value {
        Value::Map(_) => {
            let mut fields = Fields::open(whose, node, BETWEEN, report);
            return Some(RawExpect::Between {
                at,
                min: fields.text("min"),
                max: fields.text("max"),
            });
        }
        Value::List(items) => items,
        Value::Text(_) | Value::Null => Vec::new(),
    };
    let [min, max] = <[Node; 2]>::try_from(items)
        .map_err(|_| report.fault(&at, format!("{whose} is not a pair"), "write [min, max]"))
        .ok()?;
    let mut end = |node: Node| match node.value {
        Value::Null => None,
        Value::Text(_) | Value::List(_) | Value::Map(_) => single(&whose, node, report),
    };
    Some(RawExpect::Between { at, min: end(min), max: end(max) })
}
