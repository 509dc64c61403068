//! Validates the parameters of a job: names can be bound, values can be resolved.

use crate::definition::declare::literal_secret;
use crate::definition::fault::{FaultReport, Located};
use crate::definition::raw::RawParam;
use crate::definition::workdays::asks_own;
use crate::domain::id::JobCode;
use crate::domain::job::{Param, ParamMode, ParamNeed, ParamType, Secrecy};
use crate::domain::params::{ParamError, Reference, check_literal, references, takes_upstream};
use std::collections::HashSet;

/// References of a job's parameters to other jobs.
#[derive(Default)]
pub(crate) struct Asks {
    /// Outputs by job: `${jobs.CODE.NAME}`.
    pub uses: Vec<Located<(String, JobCode)>>,
    /// Parameters without a value, which may take a parent's output.
    pub takes: Vec<Located<String>>,
    /// Parameters that need the calendar of the group.
    pub days: Vec<Located<String>>,
}

/// Whether a word can name a parameter of a procedure, in SQL and in the environment.
pub(crate) fn usable_name(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.chars().all(fits)
}

/// The names of the types.
pub(crate) fn param_types() -> [(&'static str, ParamType); 7] {
    [
        ("text", ParamType::Text),
        ("int", ParamType::Int),
        ("decimal", ParamType::Decimal),
        ("date", ParamType::Date),
        ("datetime", ParamType::Datetime),
        ("bool", ParamType::Bool),
        ("bytes", ParamType::Bytes),
    ]
}

/// Builds the parameters of a job; `calls` tells whether its body can return values.
pub(crate) fn check_params(
    whose: &str,
    raw: &[RawParam],
    calls: bool,
    asks: &mut Asks,
    report: &mut FaultReport,
) -> Vec<Param> {
    let mut seen = HashSet::new();
    raw.iter()
        .map(|param| {
            let at = &param.name.at;
            let name = format!("{whose}: parameter {}", param.name.value);
            if !usable_name(&param.name.value) {
                let what = format!("{name} has a name that cannot be bound");
                report.fault(at, what, "use ASCII letters, digits and '_', the first no digit");
            } else if !seen.insert(param.name.value.to_ascii_lowercase()) {
                let what =
                    format!("{name} is given twice (upper and lower case count as the same)");
                report.fault(at, what, "keep one of the two");
            }
            check_mode(&name, param, calls, report);
            let made = Param {
                name: param.name.value.clone(),
                mode: param.mode.as_ref().map_or(ParamMode::In, |m| m.value),
                ty: param.ty,
                value: param.value.as_ref().map(|v| v.value.clone()),
                need: ParamNeed::from(param.required.as_ref().is_some_and(|r| r.value)),
                secrecy: Secrecy::from(param.secret.as_ref().is_some_and(|s| s.value)),
            };
            check_value(whose, &made, param, &mut asks.uses, report);
            literal_secret(&name, made.secrecy, param.value.as_ref(), report);
            if let Some(value) = param.value.as_ref().filter(|v| asks_own(Some(&v.value))) {
                asks.days.push(value.with_value(made.name.clone()));
            }
            if takes_upstream(&made) {
                asks.takes.push(param.name.clone());
            }
            made
        })
        .collect()
}

fn check_mode(name: &str, param: &RawParam, calls: bool, report: &mut FaultReport) {
    let Some(mode) = param.mode.as_ref().filter(|m| m.value != ParamMode::In) else {
        return;
    };
    if !calls {
        let what = format!("{name} is handed back, which only procedures can do");
        report.fault(&mode.at, what, "remove mode");
    } else if let (ParamMode::Out, Some(value)) = (mode.value, &param.value) {
        let what = format!("{name} is out, so its value would never be used");
        report.fault(&value.at, what, "remove value, or write mode: inout");
    }
}

fn check_value(
    whose: &str,
    param: &Param,
    raw: &RawParam,
    uses: &mut Vec<Located<(String, JobCode)>>,
    report: &mut FaultReport,
) {
    let at = raw.value.as_ref().map_or(&raw.name.at, |v| &v.at);
    match references(param) {
        Ok(found) => {
            for reference in found {
                let Reference::Output(code, output) = reference else {
                    continue;
                };
                if output.is_empty() {
                    let name = &param.name;
                    let what = format!(
                        "{whose}: parameter {name} uses an output of {code} without its name"
                    );
                    report.fault(at, what, format!("write ${{jobs.{code}.NAME}}"));
                }
                uses.push(Located::new(at, (param.name.clone(), code)));
            }
        }
        Err(error) => report.fault(at, format!("{whose}: {error}"), cure_of(&error)),
    }
    if let Err(error @ ParamError::WrongType { .. }) = check_literal(param) {
        report.fault(at, format!("{whose}: {error}"), cure_of(&error));
    }
}

/// The hint, unless the error's text already contains one.
pub(crate) fn cure_of(error: &ParamError) -> &'static str {
    match error {
        ParamError::Unclosed { .. } => "close it with '}'",
        ParamError::WrongType { .. } => "change the value or the type",
        ParamError::WrongFunction { .. } => "mend it, or write another name",
        ParamError::UnknownName { .. } | ParamError::NoValue { .. } => "",
        ParamError::NotHere { .. } | ParamError::SeveralParents { .. } => "",
        ParamError::Missing { .. } => "",
        ParamError::Unusable { .. } | ParamError::NotLoaded { .. } => "",
    }
}
