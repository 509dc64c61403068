//! Reads the parameters of a job.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::Fields;
use crate::definition::keys::PARAM;
use crate::definition::node::{NodeValue, SourceNode};
use crate::definition::params::param_types;
use crate::definition::raw::RawParam;
use crate::domain::job::{ParamMode, ParamType};

/// The parameters of a job: a list, in the order of the procedure's parameters.
pub(crate) fn params(fields: &mut Fields<'_>) -> Option<Located<Vec<RawParam>>> {
    let node = fields.take_node("params")?;
    let NodeValue::List(items) = node.value else {
        let what = format!("{}: params is {}, not a list", fields.whose, node.value.kind());
        let cure = "write - { name: NAME, value: \"…\" }, one per line, in the procedure's order";
        fields.report.fault(&node.at, what, cure);
        return None;
    };
    let whose = fields.whose.clone();
    let read = items.into_iter().filter_map(|item| param(&whose, item, fields.report)).collect();
    Some(Located { at: node.at, value: read })
}

fn param(whose: &str, item: SourceNode, report: &mut FaultReport) -> Option<RawParam> {
    let mut fields = Fields::open_fields(format!("{whose}: a parameter"), item, PARAM, report);
    let Some(name) = fields.take_text("name") else {
        let at = fields.at.clone();
        fields.report.fault(&at, format!("{whose}: a parameter without name"), "add name:");
        return None;
    };
    fields.whose = format!("{whose}: parameter {}", name.value);
    Some(typed(name, &mut fields))
}

/// The keys of a parameter besides its name.
fn typed(name: Located<String>, fields: &mut Fields<'_>) -> RawParam {
    let modes = [("in", ParamMode::In), ("out", ParamMode::Out), ("inout", ParamMode::InOut)];
    RawParam {
        mode: fields.choice("mode", &modes),
        ty: fields.choice("type", &param_types()).map_or(ParamType::Text, |t| t.value),
        value: fields.take_text("value"),
        required: fields.take_flag("required"),
        secret: fields.take_flag("secret"),
        name,
    }
}
