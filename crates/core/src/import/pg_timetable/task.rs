//! Converts one task of a chain.

use crate::definition::{NodeValue, SourceNode};
use crate::domain::id::GroupCode;
use crate::domain::job::{JobDef, Param};
use crate::domain::source::DialectName;
use crate::domain::source::sql_text::{SqlText, TransactionMode};
use crate::import::body::{quoted, stand_in, title_of};
use crate::import::draft::Draft;
use crate::import::keys::{Hint, KeyNote, KnownKey, check_keys, hint, noted, read_key};
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::step_flow::StepEnd;
use crate::import::step_jobs::StepJob;
use crate::import::tally::CountedKind;
use crate::import::tree::{get, is_yes, list, number, origin, plain, word};
use url::Url;

/// Keys of a task of each kind.
pub(in crate::import) const TASK_KEYS: &[KnownKey] = &[
    read_key("name"),
    read_key("kind"),
    read_key("command"),
    read_key("parameters"),
    read_key("ignore_error"),
    read_key("timeout"),
    read_key("live"),
];
pub(in crate::import) const SQL_KEYS: &[KnownKey] =
    &[read_key("run_as"), read_key("connect_string"), read_key("autonomous")];
const NO_SQL: Hint =
    hint("it means something for SQL alone, there, too", "仅对 SQL 有意义,原系统亦然");
pub(in crate::import) const OTHER_KEYS: &[KnownKey] = &[
    noted("run_as", &[], NO_SQL),
    // It may contain a password, so it is not shown.
    read_key("connect_string"),
    noted("autonomous", &["false"], NO_SQL),
];

/// The job of a task, and the end after which the next one runs.
pub(super) struct ConvertedTask {
    pub(super) step: StepJob,
    pub(super) next_after: StepEnd,
}

/// Converts a task to a job.
pub(super) fn make_task(
    task: &SourceNode,
    group: &GroupCode,
    chain: &str,
    place: usize,
    draft: &mut Draft,
) -> Option<ConvertedTask> {
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
    draft.begin_item(CountedKind::Job, &at, &title);
    let mut job = match kind.as_str() {
        "SQL" => make_sql(task, &at, group, &title, command, draft),
        "PROGRAM" => program(task, &at, group, &title, command, draft),
        "BUILTIN" => builtin(task, &at, group, &title, command, draft),
        other => {
            let what = format!("chain {chain}, task {place}: kind {other} is not known");
            draft.fault(&at, what, "kinds are SQL, PROGRAM and BUILTIN");
            return None;
        }
    };
    check_task_keys(task, &kind, &title, draft);
    let limit = number(task, "timeout", draft).unwrap_or(0).max(0);
    let title = job.code.to_string();
    // Milliseconds in pg_timetable; the builtin sleep has its own.
    if job.timeout_sec == crate::domain::job::DEFAULT_TIMEOUT_SEC {
        job.timeout_sec = draft.timeout(&at, &title, limit.unsigned_abs().div_ceil(1_000));
    }
    if is_yes(task, "live") == Some(false) {
        job.is_active = false;
        draft.note(
            Level::Differs,
            &at,
            &title,
            (
                "live: false: it is not active here, and the chain goes past it, as there",
                "live: false:此处为未启用,链跳过它,与原系统一致",
            ),
            ("", ""),
        );
    }
    let is_ignored = is_yes(task, "ignore_error") == Some(true);
    if is_ignored {
        draft.note(
            Level::Differs,
            &at, &title,
            ("ignore_error: what comes after it runs once it has run, however it ended (when: done), and the batch ends \
              FAILED, where the chain there ends well",
             "ignore_error:只要它运行过,其后的作业照常运行(when: done),但批次以 FAILED 结束,而原系统算作成功"),
            ("", ""),
        );
    }
    let next_after = if is_ignored { StepEnd::Ended } else { StepEnd::Succeeded };
    Some(ConvertedTask { step: StepJob { job, at, name: place.to_string() }, next_after })
}

/// Reports keys without a meaning for the kind of task, or without any.
fn check_task_keys(task: &SourceNode, kind: &str, title: &str, draft: &mut Draft) {
    let at = origin(task);
    let of_kind = if kind == "SQL" { SQL_KEYS } else { OTHER_KEYS };
    check_keys(task, &[TASK_KEYS, of_kind], title, draft);
    if kind != "SQL" && get(task, "connect_string").is_some() {
        let note = KeyNote { at: &at, about: title, key: "connect_string", value: None };
        draft.note_key(note, NO_SQL);
    }
}

fn make_sql(
    task: &SourceNode,
    at: &ImportOrigin,
    group: &GroupCode,
    title: &str,
    command: &str,
    draft: &mut Draft,
) -> JobDef {
    let source = source(task, at, draft);
    let sets = ParameterSets::read_sets(task);
    let made = match &sets {
        ParameterSets::None => Ok((command.to_owned(), Vec::new())),
        ParameterSets::Sets(sets) => numbered_for_all(command, sets),
        ParameterSets::Flat(values) => numbered_for_all(command, std::slice::from_ref(values)),
        ParameterSets::Mixed => Err(mixed_sets()),
    };
    let (text, params) = match made {
        Ok(made) => made,
        Err(why) => return stand_in(draft, at, group, title, &why),
    };
    let mut job = draft.job(at, group, title, "SQL");
    let code = job.code.to_string();
    job.source = Some(source);
    job.sql = Some(SqlText::Same(text));
    job.params = params;
    let is_autonomous = is_yes(task, "autonomous") == Some(true);
    job.transaction = if is_autonomous { TransactionMode::None } else { TransactionMode::One };
    if matches!(sets, ParameterSets::Flat(_)) {
        note_flat_list(draft, at, &code);
    }
    if matches!(&sets, ParameterSets::Sets(sets) if sets.len() > 1) && is_autonomous {
        draft.note(
            Level::Differs,
            at,
            &code,
            (
                "there it goes on with the next set of parameters when one fails; here it stops",
                "原系统中某组参数失败后仍继续下一组;此处失败即停止",
            ),
            ("", ""),
        );
    }
    if let Some(role) = word(task, "run_as").filter(|r| !r.trim().is_empty()) {
        draft.note(
            Level::Look,
            at,
            &code,
            (
                format!("run_as: {role} is left out; it runs as the user of its source"),
                format!("run_as:{role} 未迁移;以数据源的用户运行"),
            ),
            (
                format!("begin its SQL with SET LOCAL ROLE {role};"),
                format!("可在 SQL 开头加 SET LOCAL ROLE {role};"),
            ),
        );
    }
    job
}

/// The content of `parameters`: pg_timetable runs a task once per item, in order.
enum ParameterSets<'a> {
    /// No parameters: the task runs once.
    None,
    /// Every item is a list: one call each.
    Sets(Vec<Vec<&'a SourceNode>>),
    /// Every item is a single value. pg_timetable refuses such items when the task runs.
    Flat(Vec<&'a SourceNode>),
    /// Lists mixed with single values, or maps.
    Mixed,
}

impl<'a> ParameterSets<'a> {
    fn read_sets(task: &'a SourceNode) -> Self {
        let Some(parameters) = get(task, "parameters") else { return Self::None };
        let items = list(parameters);
        let is_list = |n: &&SourceNode| matches!(n.value, NodeValue::List(_));
        let is_single = |n: &&SourceNode| matches!(n.value, NodeValue::Text(_) | NodeValue::Null);
        if !matches!(parameters.value, NodeValue::List(_)) {
            return Self::Mixed;
        }
        if items.is_empty() {
            return Self::None;
        }
        if items.iter().all(|n| is_list(&n)) {
            return Self::Sets(items.iter().map(|set| list(set).iter().collect()).collect());
        }
        if items.iter().all(|n| is_single(&n)) {
            return Self::Flat(items.iter().collect());
        }
        Self::Mixed
    }
}

fn mixed_sets() -> BilingualSentence {
    BilingualSentence::from((
        "its parameters are neither lists of single values nor single values",
        "其参数既不是单值列表的列表,也不是单值列表",
    ))
}

fn note_flat_list(draft: &mut Draft, at: &ImportOrigin, code: &str) {
    draft.note(
        Level::Look,
        at, code,
        (
            "its parameters are a flat list, at which pg_timetable fails when the task runs: it expects a list \
             for each call; here all of them are the words of one call",
            "其参数是一维列表,pg_timetable 运行时会失败(它要求每次调用一个列表);此处全部作为一次调用的参数",
        ),
        ("check that one call with all of them is meant", "请确认是否为一次调用"),
    );
}

/// The statement once per set of values: `$1` becomes `:p1`, in the second set `:p3` and so on.
fn numbered_for_all(
    command: &str,
    sets: &[Vec<&SourceNode>],
) -> Result<(String, Vec<Param>), BilingualSentence> {
    let mut params = Vec::new();
    let mut texts = Vec::new();
    for set in sets {
        let first = params.len();
        for node in set {
            let value = match &node.value {
                NodeValue::Null => None,
                NodeValue::Text(text) if !text.contains("${") => Some(text.clone()),
                NodeValue::Text(_) => {
                    return Err(BilingualSentence::from((
                        "a value of its parameters holds ${, which would be a reference here",
                        "其参数值含有 ${,在此处会被当作引用",
                    )));
                }
                NodeValue::List(_) | NodeValue::Map(_) => return Err(mixed_sets()),
            };
            let name = format!("p{}", params.len() + 1);
            params.push(Param { name, value, ..Param::default() });
        }
        texts.push(numbered(command, &ParamRange { first, count: set.len() }));
    }
    let ends = |text: &String| text.trim().trim_end_matches(';').trim_end().to_owned();
    let text = match &texts[..] {
        [one] => one.clone(),
        all => all.iter().map(ends).collect::<Vec<_>>().join(";\n"),
    };
    Ok((text, params))
}

/// The parameters of one call within those of the job.
struct ParamRange {
    first: usize,
    count: usize,
}

/// Replaces `$1` by the name of the first parameter of a range.
fn numbered(command: &str, range: &ParamRange) -> String {
    let mut text = String::with_capacity(command.len());
    let mut rest = command;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        let digits: String = after[1..].chars().take_while(char::is_ascii_digit).collect();
        let number = digits.parse::<usize>().ok().filter(|n| (1..=range.count).contains(n));
        text.push_str(&match number {
            Some(number) => format!(":p{}", range.first + number),
            None => format!("${digits}"),
        });
        rest = &after[1 + digits.len()..];
    }
    text.push_str(rest);
    text
}

fn program(
    task: &SourceNode,
    at: &ImportOrigin,
    group: &GroupCode,
    title: &str,
    command: &str,
    draft: &mut Draft,
) -> JobDef {
    let sets = match ParameterSets::read_sets(task) {
        ParameterSets::None => vec![Vec::new()],
        ParameterSets::Sets(sets) => sets,
        ParameterSets::Flat(values) => vec![values],
        ParameterSets::Mixed => return stand_in(draft, at, group, title, &mixed_sets()),
    };
    let is_single = |n: &&SourceNode| matches!(n.value, NodeValue::Text(_) | NodeValue::Null);
    if !sets.iter().flatten().all(is_single) {
        return stand_in(draft, at, group, title, &mixed_sets());
    }
    let mut job = draft.job(at, group, title, "SCRIPT");
    let call = |set: &Vec<&SourceNode>| {
        let words = set.iter().map(|w| quoted(plain(w).unwrap_or_default()));
        std::iter::once(quoted(command.trim())).chain(words).collect::<Vec<_>>().join(" ")
    };
    let calls: Vec<String> = sets.iter().map(call).collect();
    job.script = Some(match &calls[..] {
        [one] => format!("set -e\n{one}\n"),
        // As in pg_timetable: every set runs, and a failed one fails the task at the end.
        all => {
            let lines: String = all.iter().map(|call| format!("{call} || failed=1\n")).collect();
            format!("failed=0\n{lines}exit \"$failed\"\n")
        }
    });
    job.interpreter = Some("sh".to_owned());
    if matches!(ParameterSets::read_sets(task), ParameterSets::Flat(_)) {
        note_flat_list(draft, at, job.code.as_str());
    }
    job
}

fn builtin(
    task: &SourceNode,
    at: &ImportOrigin,
    group: &GroupCode,
    title: &str,
    command: &str,
    draft: &mut Draft,
) -> JobDef {
    let parameters = get(task, "parameters");
    let values = parameters.map(list).unwrap_or_default();
    let name = command.trim().to_ascii_lowercase();
    match name.as_str() {
        "noop" => {
            let job = draft.job(at, group, title, "NOOP");
            if !values.is_empty() {
                draft.note(
                    Level::Differs,
                    at,
                    job.code.as_str(),
                    (
                        "its parameters are left out: NoOp only prints them",
                        "其参数未迁移:NoOp 只是打印参数",
                    ),
                    ("", ""),
                );
            }
            job
        }
        "sleep" => sleep(values, at, group, title, draft),
        "log" => {
            let mut job = draft.job(at, group, title, "SCRIPT");
            let texts = if values.is_empty() {
                vec![String::new()]
            } else {
                values.iter().map(json_text).collect()
            };
            let lines: String =
                texts.iter().map(|text| format!("printf '%s\\n' {}\n", quoted(text))).collect();
            job.interpreter = Some("sh".to_owned());
            job.script = Some(lines);
            job
        }
        _ => stand_in(draft, at, group, title, &no_counterpart(command.trim(), values.len())),
    }
}

/// Sleeps for all of its values one after the other, as in pg_timetable.
fn sleep(
    values: &[SourceNode],
    at: &ImportOrigin,
    group: &GroupCode,
    title: &str,
    draft: &mut Draft,
) -> JobDef {
    let seconds: Option<Vec<u32>> =
        values.iter().map(|v| plain(v)?.trim().parse::<u32>().ok()).collect();
    let Some(seconds) = seconds.filter(|all| !all.is_empty()) else {
        let why = BilingualSentence::from((
            "BUILTIN Sleep has no whole number of seconds, at which it fails there, too",
            "内置任务 Sleep 没有整数秒数,在原系统中也会失败",
        ));
        return stand_in(draft, at, group, title, &why);
    };
    let mut job = draft.job(at, group, title, "SCRIPT");
    job.interpreter = Some("sh".to_owned());
    job.script = Some(seconds.iter().map(|s| format!("sleep {s}\n")).collect());
    let total: u64 = seconds.iter().copied().map(u64::from).sum();
    job.timeout_sec = draft.timeout(at, title, total + 60);
    job
}

/// Why a builtin is not carried over, and how to express its effect here.
fn no_counterpart(name: &str, calls: usize) -> BilingualSentence {
    let (en, zh) = match name.to_ascii_lowercase().as_str() {
        "sendmail" => (
            "a SCRIPT can send mail; notify_email tells of failures",
            "可用 SCRIPT 发送邮件;notify_email 用于失败通知",
        ),
        "download" => ("a SCRIPT with curl -fLO does it", "可改为使用 curl -fLO 的 SCRIPT"),
        "copyfromfile" | "copytofile" => {
            ("a SCRIPT with psql -c '\\copy …' does it", "可改为使用 psql -c '\\copy …' 的 SCRIPT")
        }
        "copyfromprogram" | "copytoprogram" => (
            "a SCRIPT with PROGRAM | psql -c '\\copy …' does it",
            "可改为使用 PROGRAM | psql -c '\\copy …' 的 SCRIPT",
        ),
        "shutdown" => ("it stops pg_timetable itself", "它用于停止 pg_timetable 本身"),
        _ => ("pg_timetable does not know it either", "pg_timetable 也没有该内置任务"),
    };
    BilingualSentence::new(
        format!("BUILTIN {name} ({calls} sets of parameters) has no counterpart: {en}"),
        format!("内置任务 {name}({calls} 组参数)没有对应的作业类型:{zh}"),
    )
}

/// A value as JSON; a single value as it is.
fn json_text(node: &SourceNode) -> String {
    fn as_json(node: &SourceNode) -> serde_json::Value {
        match &node.value {
            NodeValue::Null => serde_json::Value::Null,
            // Numbers and booleans are texts in this tree.
            NodeValue::Text(text) => match serde_json::from_str(text) {
                Ok(found @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => found,
                Ok(_) | Err(_) => text.clone().into(),
            },
            NodeValue::List(items) => items.iter().map(as_json).collect(),
            NodeValue::Map(entries) => {
                entries.iter().map(|(key, value)| (key.value.clone(), as_json(value))).collect()
            }
        }
    }
    match plain(node) {
        Some(text) => text.to_owned(),
        None => as_json(node).to_string(),
    }
}

/// The source of a task: that of pg_timetable itself, or the one in its connect_string, without the password.
fn source(
    task: &SourceNode,
    at: &ImportOrigin,
    draft: &mut Draft,
) -> crate::domain::id::SourceName {
    const OWN: &str = "timetable";
    let Some(text) = word(task, "connect_string").map(str::trim).filter(|t| !t.is_empty()) else {
        return draft.source(at, OWN, DialectName::Postgres);
    };
    if let Some(name) = connect_string_source(text, at, draft) {
        return name;
    }
    draft.note(
        Level::Look,
        at,
        OWN,
        (
            "its connect_string cannot be read, so it runs on the source of the others",
            "无法读取其 connect_string,因此使用与其他任务相同的数据源",
        ),
        ("add a source and name it", "请新增数据源并引用"),
    );
    draft.source(at, OWN, DialectName::Postgres)
}

/// The source of a PostgreSQL connection string, without its password; `None` if it cannot be parsed.
pub(in crate::import) fn connect_string_source(
    text: &str,
    at: &ImportOrigin,
    draft: &mut Draft,
) -> Option<crate::domain::id::SourceName> {
    let Address { title, url, others } = address(text)?;
    let is_new = draft.defs.sources.iter().all(|s| s.url != url);
    let name = draft.source_at(&title, &url);
    for key in others {
        let note = KeyNote {
            at,
            about: name.as_str(),
            key: &format!("{key} of connect_string"),
            value: None,
        };
        let to_url =
            hint("add it to the url of the source if it is needed", "需要时请写入数据源的 url");
        draft.note_key(note, to_url);
    }
    if is_new {
        draft.note(
            Level::Look,
            at,
            name.as_str(),
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
    Some(name)
}

/// The address in a connect_string.
struct Address {
    title: String,
    /// The URL without a password.
    url: String,
    /// Other settings, by key.
    others: Vec<String>,
}

/// Parses `postgres://…` or `host=… dbname=…`.
fn address(text: &str) -> Option<Address> {
    let part = |found: &str, default: &str| {
        let found = found.trim_matches('\'');
        if found.is_empty() { default.to_owned() } else { found.to_owned() }
    };
    let (host, port, user, base, others) = if text.contains("://") {
        let url = Url::parse(text).ok()?;
        let base = url.path().trim_start_matches('/').to_owned();
        (
            part(url.host_str()?, "localhost"),
            url.port().unwrap_or(5432).to_string(),
            part(url.username(), "postgres"),
            part(&base, "postgres"),
            url.query_pairs().map(|(key, _)| key.into_owned()).collect(),
        )
    } else {
        const KNOWN: [&str; 5] = ["host", "port", "user", "dbname", "password"];
        let pairs: Vec<(&str, &str)> =
            text.split_whitespace().map(|w| w.split_once('=')).collect::<Option<_>>()?;
        let of = |key: &str| pairs.iter().find(|(k, _)| *k == key).map_or("", |(_, v)| *v);
        let others = pairs.iter().map(|(key, _)| *key).filter(|key| !KNOWN.contains(key));
        (
            part(of("host"), "localhost"),
            part(of("port"), "5432"),
            part(of("user"), "postgres"),
            part(of("dbname"), "postgres"),
            others.map(str::to_owned).collect(),
        )
    };
    let mut url = Url::parse(&format!("postgres://{host}:{port}/")).ok()?;
    url.set_path(&base);
    url.set_username(&user).ok()?;
    Some(Address { title: format!("{base}@{host}"), url: url.to_string(), others })
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
            let found = address(text).map(|address| address.url);
            assert_eq!(found.as_deref(), Some(url), "{text}");
        }
        assert!(address("service").is_none());
        assert!(address("postgres://").is_none());
        let others = address("postgres://db1/gl?sslmode=require").map(|address| address.others);
        assert_eq!(others, Some(vec!["sslmode".to_owned()]));
    }
}
