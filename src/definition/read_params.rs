//! Reads parameters: those of a job, and those that groups declare.

use crate::definition::fault::{At, Report};
use crate::definition::fields::Fields;
use crate::definition::keys::{DECLARED, PARAM};
use crate::definition::node::{Node, Value};
use crate::definition::raw::RawParam;
use crate::domain::job::{ParamMode, ParamType};

/// `params` of a group or of all groups: `NAME: value`, `NAME: { type: …, value: … }`, or a list of
/// maps with their names inside.
pub(crate) fn declared(fields: &mut Fields<'_>) -> Vec<RawParam> {
    let Some(node) = fields.take("params") else { return Vec::new() };
    let whose = fields.whose.clone();
    match node.value {
        Value::Map(entries) => {
            let one = |(name, node)| declared_one(&whose, name, node, fields.report);
            entries.into_iter().filter_map(one).collect()
        }
        Value::List(items) => {
            items.into_iter().filter_map(|item| param(&whose, item, fields.report)).collect()
        }
        Value::Null => Vec::new(),
        Value::Text(_) => {
            let what = format!("{whose}: params is a single value, not a map");
            fields.report.fault(&node.at, what, "write NAME: value, one per line");
            Vec::new()
        }
    }
}

fn declared_one(
    whose: &str,
    name: At<String>,
    node: Node,
    report: &mut Report,
) -> Option<RawParam> {
    let whose = format!("{whose}: parameter {}", name.value);
    match node.value {
        Value::Text(text) => Some(RawParam {
            name,
            mode: None,
            ty: ParamType::Text,
            value: Some(At { at: node.at, value: text }),
            required: None,
            secret: None,
        }),
        Value::List(_) => {
            let what = format!("{whose} is a list");
            report.fault(&node.at, what, "write one value, or { type: …, value: … }");
            None
        }
        Value::Map(_) | Value::Null => {
            let mut fields = Fields::open(whose, node, DECLARED, report);
            Some(typed(name, &mut fields))
        }
    }
}

/// The parameters of a job: a list, in the procedure's order.
pub(crate) fn params(fields: &mut Fields<'_>) -> Option<At<Vec<RawParam>>> {
    let node = fields.take("params")?;
    let Value::List(items) = node.value else {
        let what = format!("{}: params is {}, not a list", fields.whose, node.value.kind());
        let cure = "write - { name: NAME, value: \"…\" }, one per line, in the procedure's order";
        fields.report.fault(&node.at, what, cure);
        return None;
    };
    let whose = fields.whose.clone();
    let read = items.into_iter().filter_map(|item| param(&whose, item, fields.report)).collect();
    Some(At { at: node.at, value: read })
}

fn param(whose: &str, item: Node, report: &mut Report) -> Option<RawParam> {
    let mut fields = Fields::open(format!("{whose}: a parameter"), item, PARAM, report);
    let Some(name) = fields.text("name") else {
        let at = fields.at.clone();
        fields.report.fault(&at, format!("{whose}: a parameter without name"), "add name:");
        return None;
    };
    fields.whose = format!("{whose}: parameter {}", name.value);
    Some(typed(name, &mut fields))
}

/// What stands beside a parameter's name.
fn typed(name: At<String>, fields: &mut Fields<'_>) -> RawParam {
    let modes = [("in", ParamMode::In), ("out", ParamMode::Out), ("inout", ParamMode::InOut)];
    let types = [
        ("text", ParamType::Text),
        ("int", ParamType::Int),
        ("decimal", ParamType::Decimal),
        ("date", ParamType::Date),
        ("datetime", ParamType::Datetime),
        ("bool", ParamType::Bool),
    ];
    RawParam {
        mode: fields.choice("mode", &modes),
        ty: fields.choice("type", &types).map_or(ParamType::Text, |t| t.value),
        value: fields.text("value"),
        required: fields.flag("required"),
        secret: fields.flag("secret"),
        name,
    }
}
