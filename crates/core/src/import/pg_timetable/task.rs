//! One task of a chain.

use crate::definition::{Node, Value};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::JobDef;
use crate::domain::source::DialectName;
use crate::domain::sql_text::{SqlText, TransactionMode};
use crate::import::body::{quoted, stand_in, title_of};
use crate::import::draft::Draft;
use crate::import::note::{Level, Origin, Words};
use crate::import::tree::{get, is_yes, list, number, origin, plain, word};
use url::Url;

/// What the chain does when the task fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnError {
    Stop,
    GoOn,
}

/// Makes a job of a task: its code, what its failure does, whether it is SQL.
pub(super) fn task(
    task: &Node,
    group: &GroupCode,
    (chain, place): (&str, usize),
    draft: &mut Draft,
) -> Option<(JobCode, OnError, bool)> {
    let at = origin(task);
    let Some(command) = word(task, "command").filter(|c| !c.trim().is_empty()) else {
        let what = format!("chain {chain}, task {place} has no command");
        draft.fault(&at, what, "add command:");
        return None;
    };
    let kind = word(task, "kind").unwrap_or("SQL").to_ascii_uppercase();
    let own = word(task, "name").map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned);
    let title = own.unwrap_or_else(|| {
        let short = if kind == "SQL" { String::new() } else { title_of(command) };
        let tail = if short.is_empty() { place.to_string() } else { format!("{place}_{short}") };
        format!("{chain}_{tail}")
    });
    let mut job = match kind.as_str() {
        "SQL" => sql(task, &at, group, (&title, command), draft),
        "PROGRAM" => program(task, &at, group, (&title, command), draft),
        "BUILTIN" => builtin(task, &at, group, (&title, command), draft),
        other => {
            let what = format!("chain {chain}, task {place}: kind {other} is not known");
            draft.fault(&at, what, "kinds are SQL, PROGRAM and BUILTIN");
            return None;
        }
    };
    let limit = number(task, "timeout", draft).unwrap_or(0).max(0);
    let title = job.code.to_string();
    // Milliseconds there; a builtin sleep has its own.
    if job.timeout_sec == crate::domain::job::DEFAULT_TIMEOUT_SEC {
        job.timeout_sec = draft.timeout(&at, &title, limit.unsigned_abs().div_ceil(1_000));
    }
    if is_yes(task, "live") == Some(false) {
        job.is_active = false;
    }
    let on_error =
        if is_yes(task, "ignore_error") == Some(true) { OnError::GoOn } else { OnError::Stop };
    if on_error == OnError::GoOn {
        draft.note(
            Level::Differs,
            (&at, &title),
            ("ignore_error: what comes after it runs in any case (when: done), and the batch ends FAILED, \
              where the chain there ends well",
             "ignore_error:其后的作业照常运行(when: done),但批次以 FAILED 结束,而原系统算作成功"),
            ("", ""),
        );
    }
    let (code, is_sql) = (job.code.clone(), job.sql.is_some());
    draft.push(job);
    Some((code, on_error, is_sql))
}

fn sql(
    task: &Node,
    at: &Origin,
    group: &GroupCode,
    (title, command): (&str, &str),
    draft: &mut Draft,
) -> JobDef {
    let source = source(task, at, draft);
    let all = get(task, "parameters").map(list).unwrap_or_default();
    if all.len() > 1 {
        let why = Words::from((
            "it runs once for each of several sets of parameters",
            "它对每组参数各运行一次",
        ));
        let _ = source;
        return stand_in(draft, at, group, title, &why);
    }
    let mut job = draft.job(at, group, title, "SQL");
    let code = job.code.to_string();
    job.source = Some(source);
    let (text, params) = match all.first().map(|set| numbered(command, set)) {
        Some(Some(made)) => made,
        None => (command.to_owned(), Vec::new()),
        Some(None) => {
            draft.note(
                Level::Look,
                (at, &code),
                (
                    "its parameters are no list of single values and are left out",
                    "其参数不是单值列表,未迁移",
                ),
                ("write params and use :name in the SQL", "请填写 params,并在 SQL 中用 :名称 引用"),
            );
            (command.to_owned(), Vec::new())
        }
    };
    job.sql = Some(SqlText::Same(text));
    job.params = params;
    job.transaction = match is_yes(task, "autonomous") {
        Some(true) => TransactionMode::None,
        Some(false) | None => TransactionMode::One,
    };
    if let Some(role) = word(task, "run_as").filter(|r| !r.trim().is_empty()) {
        let text = format!("SET LOCAL ROLE {role};\n{command}");
        draft.note(
            Level::Look,
            (at, &code),
            (
                format!("run_as: {role} is left out; it runs as the user of its source"),
                format!("run_as:{role} 未迁移;以数据源的用户运行"),
            ),
            (
                format!("begin its SQL with {}", text.lines().next().unwrap_or_default()),
                format!("可在 SQL 开头加 {}", text.lines().next().unwrap_or_default()),
            ),
        );
    }
    job
}

/// `$1` becomes `:p1`, with the values of one set.
fn numbered(command: &str, set: &Node) -> Option<(String, Vec<crate::domain::job::Param>)> {
    let values: Option<Vec<Option<&str>>> = match &set.value {
        Value::List(items) => items
            .iter()
            .map(|item| match item.value {
                Value::Null => Some(None),
                Value::Text(_) | Value::List(_) | Value::Map(_) => plain(item).map(Some),
            })
            .collect(),
        Value::Null | Value::Text(_) | Value::Map(_) => None,
    };
    let values = values?;
    if values.iter().flatten().any(|v| v.contains("${")) {
        return None;
    }
    let mut text = String::with_capacity(command.len());
    let mut rest = command;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        let digits: String = after[1..].chars().take_while(char::is_ascii_digit).collect();
        let is_param = digits.parse::<usize>().is_ok_and(|n| (1..=values.len()).contains(&n));
        text.push_str(&if is_param { format!(":p{digits}") } else { format!("${digits}") });
        rest = &after[1 + digits.len()..];
    }
    text.push_str(rest);
    let params = (1..).zip(&values).map(|(n, value)| crate::domain::job::Param {
        name: format!("p{n}"),
        value: value.map(str::to_owned),
        ..crate::domain::job::Param::default()
    });
    Some((text, params.collect()))
}

fn program(
    task: &Node,
    at: &Origin,
    group: &GroupCode,
    (title, command): (&str, &str),
    draft: &mut Draft,
) -> JobDef {
    let mut job = draft.job(at, group, title, "SCRIPT");
    let sets = get(task, "parameters").map(list).unwrap_or_default();
    let call = |set: &Node| {
        let words = list(set).iter().map(|w| quoted(plain(w).unwrap_or_default()));
        std::iter::once(quoted(command.trim())).chain(words).collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<String> = sets.iter().map(call).collect();
    if lines.is_empty() {
        lines.push(quoted(command.trim()));
    }
    // One call for each set, until one fails.
    job.script = Some(format!("set -e\n{}\n", lines.join("\n")));
    job.interpreter = Some("sh".to_owned());
    job
}

fn builtin(
    task: &Node,
    at: &Origin,
    group: &GroupCode,
    (title, command): (&str, &str),
    draft: &mut Draft,
) -> JobDef {
    let first = get(task, "parameters").map(list).and_then(|p| p.first());
    match (command.to_ascii_lowercase().as_str(), first.and_then(plain)) {
        ("noop", _) => draft.job(at, group, title, "NOOP"),
        ("sleep", seconds) => {
            let seconds = seconds.and_then(|s| s.trim().parse::<u32>().ok()).unwrap_or(1);
            let mut job = draft.job(at, group, title, "SCRIPT");
            job.interpreter = Some("sh".to_owned());
            job.script = Some(format!("sleep {seconds}\n"));
            job.timeout_sec = draft.timeout(at, title, u64::from(seconds) + 60);
            job
        }
        ("log", text) => {
            let mut job = draft.job(at, group, title, "SCRIPT");
            job.interpreter = Some("sh".to_owned());
            job.script = Some(format!("echo {}\n", quoted(text.unwrap_or_default())));
            job
        }
        (other, _) => {
            let why = Words::new(
                format!("BUILTIN {other} has no counterpart"),
                format!("内置任务 {other} 没有对应的作业类型"),
            );
            stand_in(draft, at, group, title, &why)
        }
    }
}

/// The source of a task: that of pg_timetable itself, or where its connect_string leads, without the
/// password.
fn source(task: &Node, at: &Origin, draft: &mut Draft) -> crate::domain::id::SourceName {
    const OWN: &str = "timetable";
    let Some(text) = word(task, "connect_string").map(str::trim).filter(|t| !t.is_empty()) else {
        return draft.source(at, OWN, DialectName::Postgres);
    };
    let Some((title, url)) = address(text) else {
        draft.note(
            Level::Look,
            (at, OWN),
            (
                "its connect_string cannot be read, so it runs on the source of the others",
                "无法读取其 connect_string,因此使用与其他任务相同的数据源",
            ),
            ("add a source and name it", "请新增数据源并引用"),
        );
        return draft.source(at, OWN, DialectName::Postgres);
    };
    let is_new = draft.defs.sources.iter().all(|s| s.url != url);
    let name = draft.source_at(&title, &url);
    if is_new {
        draft.note(
            Level::Look,
            (at, name.as_str()),
            (
                format!("source {name} has the address of a connect_string, without its password"),
                format!("数据源 {name} 采用 connect_string 中的地址,不含密码"),
            ),
            (
                "name where the password is: password_env: VARIABLE",
                "请用 password_env: 变量名 指定密码",
            ),
        );
    }
    name
}

/// Title and URL without a password, of `postgres://…` or `host=… dbname=…`.
fn address(text: &str) -> Option<(String, String)> {
    let part = |found: &str, default: &str| {
        let found = found.trim_matches('\'');
        if found.is_empty() { default.to_owned() } else { found.to_owned() }
    };
    let (host, port, user, base) = if text.contains("://") {
        let url = Url::parse(text).ok()?;
        let base = url.path().trim_start_matches('/').to_owned();
        (
            part(url.host_str()?, "localhost"),
            url.port().unwrap_or(5432).to_string(),
            part(url.username(), "postgres"),
            part(&base, "postgres"),
        )
    } else {
        let pairs: Vec<(&str, &str)> =
            text.split_whitespace().map(|w| w.split_once('=')).collect::<Option<_>>()?;
        let of = |key: &str| pairs.iter().find(|(k, _)| *k == key).map_or("", |(_, v)| *v);
        (
            part(of("host"), "localhost"),
            part(of("port"), "5432"),
            part(of("user"), "postgres"),
            part(of("dbname"), "postgres"),
        )
    };
    let mut url = Url::parse(&format!("postgres://{host}:{port}/")).ok()?;
    url.set_path(&base);
    url.set_username(&user).ok()?;
    Some((format!("{base}@{host}"), url.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_their_password() {
        for (text, url) in [
            ("host=db1 port=5433 dbname=gl user=etl password=geheim", "postgres://etl@db1:5433/gl"),
            ("postgresql://etl:geheim@db1/gl?sslmode=require", "postgres://etl@db1:5432/gl"),
            ("dbname='gl'", "postgres://postgres@localhost:5432/gl"),
        ] {
            let found = address(text).map(|(_, url)| url);
            assert_eq!(found.as_deref(), Some(url), "{text}");
        }
        assert_eq!(address("service"), None);
        assert_eq!(address("postgres://"), None);
    }
}
