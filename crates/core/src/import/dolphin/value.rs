//! Translates placeholders (`${name}`, `$[yyyyMMdd-1]` and built-in names) to parameters.
//!
//! DolphinScheduler replaces a placeholder in the text before it runs. Here values are bound: a script gets a shell
//! variable with the same name, and SQL gets `:name`.

use crate::domain::job::Param;
use std::collections::BTreeMap;

/// The translation of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Turned {
    /// An exact translation: an expression or plain text.
    Value(String),
    /// There is no equivalent.
    Unknown,
}

/// Translates the value of a parameter.
pub(super) fn value(text: &str, known: &dyn Fn(&str) -> bool) -> Turned {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        made.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let inside = |open: char, close: char| after.strip_prefix(open)?.split_once(close);
        if let Some((name, tail)) = inside('{', '}') {
            let form = match built_in(name.trim()) {
                Some(form) => form,
                None if known(name.trim()) => format!("${{params.{}}}", variable(name.trim())),
                None => return Turned::Unknown,
            };
            made.push_str(&form);
            rest = tail;
        } else if let Some((time, tail)) = inside('[', ']') {
            let Some(form) = moment(time.trim()) else { return Turned::Unknown };
            made.push_str(&form);
            rest = tail;
        } else if after.starts_with('{') {
            // Without its end it is an error here, while DolphinScheduler treats it as text.
            return Turned::Unknown;
        } else {
            made.push('$');
            rest = after;
        }
    }
    made.push_str(rest);
    Turned::Value(made)
}

/// Names that DolphinScheduler provides to every task.
pub(super) fn built_in(name: &str) -> Option<String> {
    Some(match name {
        "system.biz.date" => "${format(add_days(business_date, -1), %Y%m%d)}".to_owned(),
        "system.biz.curdate" => "${format(business_date, %Y%m%d)}".to_owned(),
        "system.workflow.instance.id" => "${batch_no}".to_owned(),
        "system.workflow.definition.name" => "${group}".to_owned(),
        "system.task.definition.name" => "${job_code}".to_owned(),
        _ => return None,
    })
}

/// Translates `yyyyMMdd`, `yyyy-MM-dd-7`, `add_months(yyyyMM,-1)`. No expression here has hours, so formats with hours
/// are unknown.
fn moment(text: &str) -> Option<String> {
    if let Some(inner) = text.strip_prefix("add_months(").and_then(|t| t.strip_suffix(')')) {
        let (pattern, months) = inner.split_once(',')?;
        let months = whole(months)?;
        return formatted(pattern.trim(), &format!("add_months(business_date, {months})"));
    }
    // A sign followed only by a number shifts by days.
    let sign = text.rfind(['+', '-']).filter(|at| *at > 0);
    let shift = sign.and_then(|at| Some((at, whole(&text[at..])?)));
    match shift {
        Some((at, days)) if !text[at + 1..].is_empty() => {
            formatted(text[..at].trim(), &format!("add_days(business_date, {days})"))
        }
        Some(_) | None => formatted(text, "business_date"),
    }
}

/// Parses `-1`, `+7`, `7*2`: users write products for weeks and years.
fn whole(text: &str) -> Option<i64> {
    let (sign, text) = match text.trim().strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.trim().trim_start_matches('+')),
    };
    let parts: Option<Vec<i64>> = text.split('*').map(|p| p.trim().parse().ok()).collect();
    let product = parts?.into_iter().try_fold(sign, i64::checked_mul)?;
    (product.abs() <= 100_000).then_some(product)
}

fn formatted(pattern: &str, date: &str) -> Option<String> {
    let mut made = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let long = rest.chars().take_while(|c| *c == first).count();
        let word = match (first, long) {
            ('y', 4) => "%Y",
            ('y', 2) => "%y",
            ('M', 2) => "%m",
            ('d', 2) => "%d",
            (c, _) if c.is_ascii_alphabetic() || "%,(){}".contains(c) => return None,
            (c, _) => {
                made.extend(std::iter::repeat_n(c, long));
                rest = &rest[c.len_utf8() * long..];
                continue;
            }
        };
        made.push_str(word);
        rest = &rest[long..];
    }
    if !made.contains('%') {
        return None;
    }
    Some(format!("${{format({date}, {made})}}"))
}

/// A name that is valid in a shell, in SQL and as a parameter.
pub(super) fn variable(name: &str) -> String {
    let made: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if made.starts_with(|c: char| c.is_ascii_digit()) || made.is_empty() {
        format!("_{made}")
    } else {
        made
    }
}

/// The parameters of a task by their original names, and those of its workflow.
#[derive(Debug, Default)]
pub(super) struct ParamScope {
    /// The task's own parameters: original name, and the translated value; none if it comes from the group.
    pub(super) own: BTreeMap<String, Option<String>>,
}

/// A text with its placeholders replaced, and the parameters that it uses.
#[derive(Debug, Default)]
pub(super) struct SubstitutedText {
    pub(super) text: String,
    pub(super) used: BTreeMap<String, Option<String>>,
    /// Placeholders without an equivalent.
    pub(super) unknown: Vec<String>,
}

impl SubstitutedText {
    /// The parameters in the form of a job.
    pub(super) fn params(&self) -> Vec<Param> {
        let all = self.used.iter();
        all.map(|(name, value)| Param {
            name: name.clone(),
            value: value.clone(),
            ..Param::default()
        })
        .collect()
    }
}

/// Replaces each placeholder by the result of `write` for its variable, given the preceding text.
pub(super) fn replaced(
    text: &str,
    scope: &ParamScope,
    write: &dyn Fn(&mut String, &str),
) -> SubstitutedText {
    let mut made = SubstitutedText::default();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        made.text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let inside = |open: char, close: char| after.strip_prefix(open)?.split_once(close);
        let (name, value, tail) = if let Some((name, tail)) = inside('{', '}') {
            let own = scope.own.get(name).cloned();
            match own.or_else(|| built_in(name).map(Some)) {
                Some(value) => (variable(name), value, tail),
                None => {
                    if name.starts_with("system.") {
                        made.unknown.push(format!("${{{name}}}"));
                    }
                    // A variable of the shell itself.
                    made.text.push('$');
                    rest = after;
                    continue;
                }
            }
        } else if let Some((time, tail)) = inside('[', ']') {
            match moment(time.trim()) {
                Some(form) => (variable(&format!("time_{time}")), Some(form), tail),
                None => {
                    if time.contains("yy") || time.contains("HH") {
                        made.unknown.push(format!("$[{time}]"));
                    }
                    made.text.push('$');
                    rest = after;
                    continue;
                }
            }
        } else {
            made.text.push('$');
            rest = after;
            continue;
        };
        write(&mut made.text, &name);
        made.used.insert(name, value);
        rest = tail;
    }
    made.text.push_str(rest);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_forms_of_ours() {
        let known = |name: &str| name == "region";
        for (text, wanted) in [
            ("EU", Some("EU")),
            ("$[yyyyMMdd]", Some("${format(business_date, %Y%m%d)}")),
            ("$[yyyy-MM-dd]", Some("${format(business_date, %Y-%m-%d)}")),
            ("$[yyyyMMdd-1]", Some("${format(add_days(business_date, -1), %Y%m%d)}")),
            ("$[yyyy-MM-dd-7*2]", Some("${format(add_days(business_date, -14), %Y-%m-%d)}")),
            (
                "$[add_months(yyyyMM,-12*1)]",
                Some("${format(add_months(business_date, -12), %Y%m)}"),
            ),
            ("d=${system.biz.date}", Some("d=${format(add_days(business_date, -1), %Y%m%d)}")),
            ("${region}-x", Some("${params.region}-x")),
            ("${nobody}", None),
            ("$[HHmmss]", None),
            ("${region", None),
            ("$[yyyyMMddHHmmss]", None),
            ("5$", Some("5$")),
        ] {
            let found = value(text, &known);
            let wanted = wanted.map_or(Turned::Unknown, |w| Turned::Value(w.to_owned()));
            assert_eq!(found, wanted, "{text}");
        }
    }
}
