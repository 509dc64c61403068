//! Translates `%%NAME`: variables of Control-M become shell variables, set by parameters.

use crate::definition::SourceNode;
use crate::domain::job::Param;
use crate::import::control_m::CtmJob;
use crate::import::tree::{entries, get, list, plain};
use std::collections::BTreeMap;

/// A text with its variables replaced.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    pub(super) text: String,
    /// Parameters by the name of their shell variable.
    pub(super) params: BTreeMap<String, Option<String>>,
    /// Variables without an equivalent.
    pub(super) unknown: Vec<String>,
}

impl Replaced {
    /// The parameters in the form of a job.
    pub(super) fn params(&self) -> Vec<Param> {
        let all = self.params.iter();
        all.map(|(name, value)| Param {
            name: name.clone(),
            value: value.clone(),
            ..Param::default()
        })
        .collect()
    }

    /// Lines that set the shell variables.
    pub(super) fn shell_head(&self) -> String {
        let line =
            |name: &String| format!("{name}=\"$PROCESSION_PARAM_{}\"\n", name.to_uppercase());
        self.params.keys().map(line).collect()
    }
}

/// Variables of the job and of its scopes, the job's own first.
fn declared<'a>(job: &CtmJob<'a>) -> BTreeMap<&'a str, &'a str> {
    let mut found = BTreeMap::new();
    for scope in job.scopes.iter().rev() {
        let Some(all) = get(scope, "Variables") else { continue };
        let maps: Vec<&SourceNode> = list(all).iter().chain(std::iter::once(all)).collect();
        for (name, value) in maps.into_iter().flat_map(entries) {
            if let Some(value) = plain(value) {
                found.insert(name.trim_start_matches(['%', '\\']), value);
            }
        }
    }
    found
}

/// An expression for a variable that Control-M sets itself.
fn built_in(name: &str) -> Option<&'static str> {
    Some(match name {
        "$ODATE" => "${format(business_date, %Y%m%d)}",
        "ODATE" => "${format(business_date, %y%m%d)}",
        "ODAY" => "${format(business_date, %d)}",
        "OMONTH" => "${format(business_date, %m)}",
        "$OYEAR" => "${format(business_date, %Y)}",
        "OYEAR" => "${format(business_date, %y)}",
        "JOBNAME" => "${job_code}",
        _ => return None,
    })
}

/// The variable name at the start of a text after `%%`, including its prefix characters.
fn name_at(text: &str) -> &str {
    let start = text.len() - text.trim_start_matches(['\\', '$']).len();
    let length = text[start..]
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .map(char::len_utf8)
        .sum::<usize>();
    if length == 0 { "" } else { &text[..start + length] }
}

/// Replaces each variable by the result of `write` for its shell name.
pub(super) fn replace(text: &str, job: &CtmJob<'_>, write: &dyn Fn(&str) -> String) -> Replaced {
    let declared = declared(job);
    let mut made = Replaced::default();
    let mut rest = text;
    while let Some(at) = rest.find("%%") {
        made.text.push_str(&rest[..at]);
        let name = name_at(&rest[at + 2..]);
        rest = &rest[at + 2 + name.len()..];
        // A dot joins a variable to the following text.
        if rest.starts_with(".%%") || rest.starts_with("..") {
            rest = &rest[1..];
        }
        let bare = name.trim_start_matches('\\');
        let value = match (built_in(bare), declared.get(bare)) {
            (Some(form), _) => Some(form.to_owned()),
            (None, Some(value)) => value_of(value),
            (None, None) => None,
        };
        let Some(value) = value else {
            made.unknown.push(format!("%%{name}"));
            continue;
        };
        let variable = variable(bare);
        made.text.push_str(&write(&variable));
        made.params.insert(variable, Some(value));
    }
    made.text.push_str(rest);
    made
}

/// The value of a declared variable: a text, or exactly one built-in variable.
fn value_of(value: &str) -> Option<String> {
    if let Some(name) = value.strip_prefix("%%")
        && name_at(name) == name
    {
        return built_in(name).map(str::to_owned);
    }
    (!value.contains("%%") && !value.contains("${")).then(|| value.to_owned())
}

/// A valid name of a shell variable.
fn variable(name: &str) -> String {
    let made: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if made.starts_with(|c: char| c.is_ascii_digit()) { format!("_{made}") } else { made }
}
