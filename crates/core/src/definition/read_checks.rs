//! Reads `success` and `checks`, checking only their form.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::{Fields, single};
use crate::definition::keys::{BETWEEN, CHECK, DRIFT, EQUALS, EXPECT, RULE};
use crate::definition::node::{NodeValue, SourceNode};
use crate::definition::raw::{RawCheck, RawExpect, RawQuery, RawRule};
use crate::definition::read::{entries, read_sql, same_code};
use crate::domain::job::check::CheckGrade;

const HOW: &str =
    "use zero_rows, between: [1, 5], min:, max:, equals: { sql: … } or drift: { max_percent: 10 }";

/// `success`: one rule as text, or a list of rules, each a text or a map.
pub(crate) fn success(fields: &mut Fields<'_>) -> Option<Vec<RawRule>> {
    let node = fields.take_node("success")?;
    let whose = format!("{}: success", fields.whose);
    let items = match node.value {
        NodeValue::List(items) => items,
        value @ (NodeValue::Text(_) | NodeValue::Map(_) | NodeValue::Null) => {
            vec![SourceNode { at: node.at, value }]
        }
    };
    Some(items.into_iter().filter_map(|item| read_rule(&whose, item, fields.report)).collect())
}

fn read_rule(whose: &str, item: SourceNode, report: &mut FaultReport) -> Option<RawRule> {
    if !matches!(item.value, NodeValue::Map(_)) {
        let rule = single(whose, item, report)?;
        return Some(RawRule { rule, grade: None, message: None });
    }
    let mut fields = Fields::open_fields(whose, item, RULE, report);
    let (grade, message) = (grade(&mut fields), fields.take_line("message", 500));
    let Some(rule) = fields.take_word("rule") else {
        let at = fields.at.clone();
        fields.report.fault(&at, format!("{whose}: a rule is missing"), "add rule: p_status == 0");
        return None;
    };
    Some(RawRule { rule, grade, message })
}

fn grade(fields: &mut Fields<'_>) -> Option<Located<CheckGrade>> {
    fields.choice("else", &CheckGrade::ALL.map(|grade| (grade.as_str(), grade)))
}

/// `checks`: a map by name, or a list of maps that contain their names.
pub(crate) fn checks(fields: &mut Fields<'_>) -> Option<Vec<RawCheck>> {
    let node = fields.take_node("checks")?;
    let whose = fields.whose.clone();
    let found = entries("check", "checks", "name", Some(node), fields.report);
    Some(found.into_iter().map(|(name, node)| check(&whose, name, node, fields.report)).collect())
}

fn check(
    whose: &str,
    name: Located<String>,
    node: SourceNode,
    report: &mut FaultReport,
) -> RawCheck {
    let whose = format!("{whose}: check {}", name.value);
    let mut fields = Fields::open_fields(whose.clone(), node, CHECK, report);
    same_code(&mut fields, "name", &name);
    let expect = match fields.take_node("expect") {
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
    RawQuery {
        source: fields.take_word("source"),
        sql: read_sql(fields),
        sql_file: fields.take_word("sql_file"),
    }
}

fn expect(whose: &str, node: SourceNode, report: &mut FaultReport) -> Option<RawExpect> {
    let at = node.at.clone();
    match &node.value {
        NodeValue::Text(word) if word == "zero_rows" => return Some(RawExpect::ZeroRows),
        NodeValue::Map(_) => {}
        NodeValue::Text(_) | NodeValue::List(_) | NodeValue::Null => {
            let said = match &node.value {
                NodeValue::Text(word) => format!("{word:?}"),
                other => other.kind().to_owned(),
            };
            report.fault(&at, format!("{whose} is {said}"), HOW);
            return None;
        }
    }
    let mut fields = Fields::open_fields(whose, node, EXPECT, report);
    let (min, max) = (fields.take_text("min"), fields.take_text("max"));
    let mut found = Vec::new();
    if min.is_some() || max.is_some() {
        found.push(RawExpect::Between { at: at.clone(), min, max });
    }
    if let Some(node) = fields.take_node("between") {
        found.extend(between(whose, node, fields.report));
    }
    if let Some(node) = fields.take_node("equals") {
        let at = node.at.clone();
        let mut other =
            Fields::open_fields(format!("{whose}: equals"), node, EQUALS, fields.report);
        let (query, tolerance) = (query(&mut other), other.take_text("tolerance"));
        found.push(RawExpect::Equals { at, query, tolerance });
    }
    if let Some(node) = fields.take_node("drift") {
        let mut drift = Fields::open_fields(format!("{whose}: drift"), node, DRIFT, fields.report);
        match drift.take_text("max_percent") {
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

/// `[min, max]`, where `~` leaves an end open, or a map of both.
fn between(whose: &str, node: SourceNode, report: &mut FaultReport) -> Option<RawExpect> {
    let whose = format!("{whose}: between");
    let at = node.at.clone();
    let items = match node.value {
        NodeValue::Map(_) => {
            let mut fields = Fields::open_fields(whose, node, BETWEEN, report);
            return Some(RawExpect::Between {
                at,
                min: fields.take_text("min"),
                max: fields.take_text("max"),
            });
        }
        NodeValue::List(items) => items,
        NodeValue::Text(_) | NodeValue::Null => Vec::new(),
    };
    let [min, max] = <[SourceNode; 2]>::try_from(items)
        .map_err(|_| report.fault(&at, format!("{whose} is not a pair"), "write [min, max]"))
        .ok()?;
    let mut end = |node: SourceNode| match node.value {
        NodeValue::Null => None,
        NodeValue::Text(_) | NodeValue::List(_) | NodeValue::Map(_) => single(&whose, node, report),
    };
    Some(RawExpect::Between { at, min: end(min), max: end(max) })
}
