//! Reads what a group, or the definition for all groups, declares: parameters, and sources of secrets.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::Fields;
use crate::definition::group_access;
use crate::definition::keys::{DECLARED, SECRET};
use crate::definition::node::{NodeValue, SourceNode};
use crate::definition::params::{cure_of, param_types, usable_name};
use crate::definition::raw::{RawDecl, RawSecret};
use crate::domain::job::shared_definitions::{SecretFrom, SecretSource};
use crate::domain::job::{ParamDecl, ParamNeed, ParamType, Secrecy};
use crate::domain::params::{check_declared, names_a_secret};
use std::collections::HashSet;

/// The message about a literal secret.
pub(crate) const NO_LITERAL: &str =
    "write value: \"${secret.NAME}\", or leave the value to the batch (--param NAME=@secret:NAME)";

/// Reads a declared parameter: a single value, or a map with its type and other keys.
pub(crate) fn read_decl(
    whose: &str,
    name: Located<String>,
    node: SourceNode,
    report: &mut FaultReport,
) -> RawDecl {
    let whose = format!("{whose}parameter {}", name.value);
    if let NodeValue::Text(text) = node.value {
        let value = Some(Located { at: node.at, value: text });
        return RawDecl { whose, name, ty: ParamType::Text, value, required: None, secret: None };
    }
    let mut fields = Fields::open_fields(whose.clone(), node, DECLARED, report);
    let _is_the_key = fields.take_node("name");
    RawDecl {
        ty: fields.choice("type", &param_types()).map_or(ParamType::Text, |t| t.value),
        value: fields.take_text("value"),
        required: fields.take_flag("required"),
        secret: fields.take_flag("secret"),
        whose,
        name,
    }
}

/// Reads the source of a secret.
pub(crate) fn read_secret(
    name: Located<String>,
    node: SourceNode,
    report: &mut FaultReport,
) -> RawSecret {
    let mut fields = Fields::open_fields(format!("secret {}", name.value), node, SECRET, report);
    let _is_the_key = fields.take_node("name");
    RawSecret {
        env: fields.take_line("env", 255),
        file: fields.take_word("file"),
        sealed: fields.take_word("sealed"),
        access: group_access::read_access(&mut fields),
        name,
    }
}

/// Builds declared parameters; faults are reported.
pub(crate) fn decls(raw: &[RawDecl], report: &mut FaultReport) -> Vec<ParamDecl> {
    let mut seen = HashSet::new();
    raw.iter()
        .map(|raw| {
            let (whose, at) = (&raw.whose, &raw.name.at);
            if !usable_name(&raw.name.value) {
                let whose = whose.trim_end_matches(&raw.name.value);
                let what = format!("{whose}{:?} has a name that cannot be used", raw.name.value);
                report.fault(at, what, "use ASCII letters, digits and '_', the first no digit");
            } else if !seen.insert(raw.name.value.as_str()) {
                report.fault(at, format!("{whose} is declared twice"), "keep one of the two");
            }
            let made = ParamDecl {
                name: raw.name.value.clone(),
                ty: raw.ty,
                value: raw.value.as_ref().map(|v| v.value.clone()),
                need: ParamNeed::from(raw.required.as_ref().is_some_and(|r| r.value)),
                secrecy: Secrecy::from(raw.secret.as_ref().is_some_and(|s| s.value)),
            };
            let at = raw.value.as_ref().map_or(at, |v| &v.at);
            if let Err(error) = check_declared(&made) {
                let head = whose.trim_end_matches(&format!("parameter {}", made.name));
                report.fault(at, format!("{head}{error}"), cure_of(&error));
            }
            literal_secret(whose, made.secrecy, raw.value.as_ref(), report);
            made
        })
        .collect()
}

/// Rejects a secret written into a file; the message does not repeat it.
pub(crate) fn literal_secret(
    whose: &str,
    secrecy: Secrecy,
    value: Option<&Located<String>>,
    report: &mut FaultReport,
) {
    let Some(value) = value.filter(|v| secrecy == Secrecy::Secret && !names_a_secret(&v.value))
    else {
        return;
    };
    let what = format!("{whose} is secret, and its value stands in the file for all to read");
    report.fault(&value.at, what, NO_LITERAL);
}

/// Builds the sources of secrets.
pub(crate) fn secrets(raw: Vec<RawSecret>, report: &mut FaultReport) -> Vec<SecretSource> {
    let mut seen = HashSet::new();
    raw.into_iter()
        .filter_map(|raw| {
            let (name, at) = (raw.name.value, raw.name.at);
            if !usable_name(&name) {
                let what = format!("secret {name:?} has a name that cannot be used");
                report.fault(&at, what, "use ASCII letters, digits and '_', the first no digit");
            } else if !seen.insert(name.clone()) {
                report.fault(&at, format!("secret {name} is defined twice"), "keep one of the two");
            }
            if let Some(sealed) = raw.sealed.as_ref().filter(|s| !s.value.starts_with("v1:")) {
                let what = format!("secret {name}: sealed holds no sealed text");
                report.fault(
                    &sealed.at,
                    what,
                    format!("make one with: procession secret seal {name}"),
                );
            }
            let from = match (raw.env, raw.file, raw.sealed) {
                (Some(env), None, None) => SecretFrom::Env(env.value),
                (None, Some(file), None) => SecretFrom::File(file.value),
                (None, None, Some(sealed)) => SecretFrom::Sealed(sealed.value),
                (None, None, None) => {
                    let cure = "write env: VARIABLE, file: PATH or sealed: TEXT";
                    report.fault(&at, format!("secret {name} comes from nowhere"), cure);
                    return None;
                }
                _ => {
                    let what = format!("secret {name} comes from several places");
                    report.fault(&at, what, "keep one of env, file and sealed");
                    return None;
                }
            };
            let access = group_access::make_access(&format!("secret {name}"), raw.access, report);
            Some(SecretSource { name, from, access })
        })
        .collect()
}
