//! Translates Jinja in the texts of tasks: dates and parameters become parameters, everything else makes a job that
//! fails.

use super::timetable::DataDay;
use crate::domain::job::Param;
use crate::import::body::is_parameter_name;
use crate::import::note::BilingualSentence;
use std::collections::BTreeSet;

/// A text with parameters in place of templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) params: Vec<Param>,
}

/// The language of a text, which decides where a template is permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// SQL: only as a whole quoted text, which becomes a bound parameter.
    Sql,
    /// Shell: wherever a shell expands a variable.
    Shell,
}

/// The meaning of a template.
struct Meaning {
    name: String,
    value: String,
}

fn meaning(expression: &str, day: DataDay) -> Result<Meaning, BilingualSentence> {
    let normal: String = expression.split_whitespace().collect();
    let date = |name: &str, format: &str| match day {
        DataDay::BusinessDate => Ok(Meaning {
            name: name.to_owned(),
            value: format!("${{format(business_date, {format})}}"),
        }),
        DataDay::Unknown => Err(BilingualSentence::new(
            format!(
                "{{{{ {expression} }}}} is the begin of a data interval, or a day of another zone, which no batch number here gives"
            ),
            format!(
                "{{{{ {expression} }}}} 是数据区间的开始，或其他时区的日期，此处的批次号无法给出"
            ),
        )),
    };
    match normal.as_str() {
        "ds" | "data_interval_start|ds" | "logical_date|ds" | "execution_date|ds" => {
            date("ds", "%Y-%m-%d")
        }
        "ds_nodash"
        | "data_interval_start|ds_nodash"
        | "logical_date|ds_nodash"
        | "execution_date|ds_nodash" => date("ds_nodash", "%Y%m%d"),
        _ => {
            let name = normal.strip_prefix("params.").filter(|name| is_parameter_name(name));
            match name {
                Some(name) => {
                    Ok(Meaning { name: name.to_owned(), value: format!("${{params.{name}}}") })
                }
                None => Err(BilingualSentence::new(
                    format!("its template {{{{ {expression} }}}} has no like here"),
                    format!("其模板 {{{{ {expression} }}}} 在此处没有对应"),
                )),
            }
        }
    }
}

/// Replaces templates by parameters.
pub(super) fn render(
    text: &str,
    language: Language,
    day: DataDay,
) -> Result<Rendered, BilingualSentence> {
    let mut made = Rendered::default();
    if let Some(mark) = ["{%", "{#"].into_iter().find(|mark| text.contains(mark)) {
        return Err(BilingualSentence::new(
            format!("it has {mark}, which is a program of Jinja"),
            format!("它含有 {mark}，即 Jinja 程序"),
        ));
    }
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        let Some(length) = rest[open..].find("}}") else {
            return Err(BilingualSentence::from(("it has {{ without }}", "它有 {{ 而没有 }}")));
        };
        let expression = rest[open + 2..open + length].trim();
        let found = meaning(expression, day)?;
        let (before, after) = (&rest[..open], &rest[open + length + 2..]);
        rest = put(before, after, &found, language, &mut made.text).map_err(|why| {
            BilingualSentence::new(
                format!("{{{{ {expression} }}}} {}", why.en),
                format!("{{{{ {expression} }}}} {}", why.zh),
            )
        })?;
        if made.params.iter().all(|param| param.name != found.name) {
            made.params.push(Param {
                name: found.name,
                value: Some(found.value),
                ..Param::default()
            });
        }
    }
    made.text.push_str(rest);
    let upper = |param: &Param| param.name.to_uppercase();
    let names: BTreeSet<String> = made.params.iter().map(upper).collect();
    if names.len() < made.params.len() {
        return Err(BilingualSentence::from((
            "two of its parameters have names that differ by case alone",
            "其参数名仅大小写不同",
        )));
    }
    Ok(made)
}

/// Writes the text before a template and its replacement; returns the text after it.
fn put<'a>(
    before: &str,
    after: &'a str,
    found: &Meaning,
    language: Language,
    made: &mut String,
) -> Result<&'a str, BilingualSentence> {
    match language {
        Language::Sql => {
            let (Some(before), Some(after)) = (before.strip_suffix('\''), after.strip_prefix('\''))
            else {
                return Err(BilingualSentence::from((
                    "is not a text in quotes by itself, so it cannot be bound",
                    "不是单独的引号文本，无法作为参数绑定",
                )));
            };
            made.push_str(before);
            made.push(':');
            made.push_str(&found.name);
            Ok(after)
        }
        Language::Shell => {
            made.push_str(before);
            if is_in_single_quotes(made) {
                return Err(BilingualSentence::from((
                    "stands in single quotes, in which a shell reads no variable",
                    "在单引号内，shell 不会读取变量",
                )));
            }
            made.push_str(&format!("${{PROCESSION_PARAM_{}}}", found.name.to_uppercase()));
            Ok(after)
        }
    }
}

/// Whether a shell is between single quotes after this text.
fn is_in_single_quotes(text: &str) -> bool {
    let (mut single, mut double, mut escaped) = (false, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if !single => escaped = true,
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            _ => {}
        }
    }
    single
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_become_parameters_or_reasons() {
        let render = |text: &str, language| render(text, language, DataDay::BusinessDate);
        let sql = render(
            "DELETE FROM t WHERE d = '{{ ds }}' AND r = '{{ params.region }}'",
            Language::Sql,
        );
        let sql = sql.unwrap_or_else(|why| panic!("{}", why.en));
        assert_eq!(sql.text, "DELETE FROM t WHERE d = :ds AND r = :region");
        let values: Vec<_> = sql.params.iter().map(|p| p.value.as_deref()).collect();
        assert_eq!(values, [Some("${format(business_date, %Y-%m-%d)}"), Some("${params.region}")]);
        let shell = render("load \"{{ ds_nodash }}\" {{ds_nodash}}", Language::Shell);
        let shell = shell.unwrap_or_else(|why| panic!("{}", why.en));
        assert_eq!(
            shell.text,
            "load \"${PROCESSION_PARAM_DS_NODASH}\" ${PROCESSION_PARAM_DS_NODASH}"
        );
        for (text, language, words) in [
            ("SELECT * FROM t_{{ ds_nodash }}", Language::Sql, "cannot be bound"),
            ("echo '{{ ds }}'", Language::Shell, "single quotes"),
            ("{{ ti.xcom_pull('a') }}", Language::Shell, "no like"),
            ("{% if x %}a{% endif %}", Language::Shell, "{%"),
            ("{{ ds", Language::Shell, "without"),
            ("{{ params.a }} {{ params.A }}", Language::Shell, "case alone"),
        ] {
            let why = render(text, language).expect_err(text);
            assert!(why.en.contains(words), "{text}: {}", why.en);
        }
        let other = super::render("'{{ ds }}'", Language::Sql, DataDay::Unknown);
        assert!(other.is_err_and(|why| why.en.contains("data interval")));
    }
}
