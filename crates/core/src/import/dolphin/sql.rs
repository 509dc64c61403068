//! Translates SQL and PROCEDURE tasks.

use super::job::tell_unknown;
use super::read::DolphinTask;
use super::value::{ParamScope, replaced, variable};
use crate::definition::SourceNode;
use crate::domain::id::SourceName;
use crate::domain::job::{JobDef, Param, ParamMode};
use crate::domain::source::DialectName;
use crate::domain::source::sql_text::{SqlText, TransactionMode};
use crate::import::draft::Draft;
use crate::import::note::{BilingualSentence, Level};
use crate::import::tree::{get, items, list, plain, word};

/// The data source of a task, by its number in DolphinScheduler.
fn source(task: &DolphinTask, draft: &mut Draft) -> Result<SourceName, BilingualSentence> {
    let ty = word(&task.params, "type").unwrap_or_default().to_ascii_uppercase();
    let dialect = match ty.as_str() {
        "MYSQL" | "MARIADB" => DialectName::Mysql,
        "POSTGRESQL" => DialectName::Postgres,
        other => {
            return Err(BilingualSentence::new(
                format!("data sources of type {other} cannot be connected to"),
                format!("不支持类型为 {other} 的数据源"),
            ));
        }
    };
    let id = word(&task.params, "datasource").unwrap_or("0");
    Ok(draft.source(&task.at, &format!("{}_{id}", ty.to_ascii_lowercase()), dialect))
}

pub(super) fn fill_sql(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<(), BilingualSentence> {
    let main = word(&task.params, "sql").filter(|s| !s.trim().is_empty());
    let main = main.ok_or_else(|| BilingualSentence::from(("it has no SQL", "它没有 SQL")))?;
    if main.contains("!{") {
        return Err(BilingualSentence::from((
            "its SQL has !{…}, which is pasted into the text; here values are bound",
            "其 SQL 含有 !{…}(直接拼接文本);此处的值只能绑定",
        )));
    }
    job.source = Some(source(task, draft)?);
    let statements = |key: &str| -> Vec<&str> {
        let all = get(&task.params, key).map(list).unwrap_or_default();
        all.iter().filter_map(plain).collect()
    };
    let mut parts = statements("preStatements");
    parts.push(main);
    parts.extend(statements("postStatements"));
    let ends = |s: &str| s.trim().trim_end_matches(';').trim_end().to_owned();
    let whole: Vec<String> = parts.into_iter().map(ends).filter(|s| !s.is_empty()).collect();
    let whole = unquoted(&whole.join(";\n"));
    let text = replaced(&whole, scope, &|made, name| made.push_str(&format!(":{name}")));
    tell_unknown(task, job, &text, draft);
    job.params = text.params();
    job.sql = Some(SqlText::Same(format!("{}\n", text.text)));
    job.transaction = TransactionMode::Each;
    let mails = word(&task.params, "sendEmail") == Some("true")
        || word(&task.params, "receivers").is_some_and(|r| !r.trim().is_empty());
    if mails {
        draft.note(
            Level::LeftOut,
            &task.at,
            job.code.as_str(),
            ("it mailed the rows of its result", "原系统会邮寄查询结果"),
            ("procession logs BATCH JOB shows them", "可用 procession logs 批次 作业 查看"),
        );
    }
    Ok(())
}

/// Removes the quotes in `'${x}'`: in DolphinScheduler the value includes them.
fn unquoted(sql: &str) -> String {
    let mut made = sql.to_owned();
    for quote in ['\'', '"'] {
        let mut at = 0;
        while let Some(found) = made[at..].find(&format!("{quote}${{")) {
            let open = at + found;
            let close = made[open..].find('}').map(|c| open + c);
            match close {
                Some(close) if made[close + 1..].starts_with(quote) => {
                    made.remove(close + 1);
                    made.remove(open);
                    at = close;
                }
                _ => at = open + 1,
            }
        }
    }
    made
}

pub(super) fn procedure(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<(), BilingualSentence> {
    let method = word(&task.params, "method").unwrap_or_default();
    let call = method.trim().trim_matches(['{', '}', ';']).trim();
    let call = call.strip_prefix("call ").or_else(|| call.strip_prefix("CALL ")).unwrap_or(call);
    let (name, arguments) = call.split_once('(').unwrap_or((call, ""));
    let is_name = |c: char| c.is_alphanumeric() || "_.$".contains(c);
    let name = name.trim();
    if name.is_empty() || !name.chars().all(is_name) {
        let why = ("its call cannot be read", "无法读取其调用语句");
        return Err(BilingualSentence::from(why));
    }
    job.source = Some(source(task, draft)?);
    job.proc_name = Some(name.to_owned());
    let arguments = arguments.trim_end_matches(['}', ';', ' ']).trim_end_matches(')');
    let mut locals = items(&task.params, "localParams").iter();
    for (place, argument) in
        (1..).zip(arguments.split(',').map(str::trim)).filter(|(_, a)| !a.is_empty())
    {
        let named =
            argument.trim_matches('\'').strip_prefix("${").and_then(|a| a.strip_suffix('}'));
        let param = match (named, argument) {
            (Some(name), _) => {
                let value = scope.own.get(name).cloned().flatten();
                Param { name: variable(name), value, ..Param::default() }
            }
            (None, "?") => local(locals.next(), place, scope),
            (None, literal) if !literal.contains('$') => {
                let value = Some(literal.trim_matches('\'').to_owned());
                Param { name: format!("p{place}"), value, ..Param::default() }
            }
            (None, _) => {
                return Err(BilingualSentence::from((
                    "its arguments cannot be read",
                    "无法读取其参数",
                )));
            }
        };
        job.params.push(param);
    }
    Ok(())
}

fn local(local: Option<&SourceNode>, place: usize, scope: &ParamScope) -> Param {
    let name = local.and_then(|l| word(l, "prop")).unwrap_or_default();
    let is_out = local.and_then(|l| word(l, "direct")) == Some("OUT");
    let mode = if is_out { ParamMode::Out } else { ParamMode::In };
    let value = scope.own.get(name).cloned().flatten();
    let title = if name.is_empty() { format!("p{place}") } else { variable(name) };
    Param { name: title, mode, value, ..Param::default() }
}
