//! Converts the body of a job.

use crate::definition::SourceNode;
use crate::domain::id::{GroupCode, JobType, SourceName};
use crate::domain::job::pool::{LockMode, LockUse, PoolUse, SlotPool};
use crate::domain::job::{JobDef, Param, ParamMode};
use crate::domain::source::DialectName;
use crate::domain::source::routine_name::RoutineName;
use crate::domain::source::sql_text::SqlText;
use crate::import::body::{failing, quoted};
use crate::import::control_m::{CtmJob, actions, check_untyped_keys, keys, variables};
use crate::import::draft::Draft;
use crate::import::keys::{KeyNote, hint};
use crate::import::note::{BilingualSentence, Level};
use crate::import::scheduler_source::set_sql;
use crate::import::sql_statement::SqlForm;
use crate::import::tree::{entries, is_yes, items, origin, plain, word};
use std::collections::BTreeMap;

/// Connection profiles in the files, by name.
pub(super) struct Profiles(BTreeMap<String, DialectName>);

impl Profiles {
    pub(super) fn read_profiles(roots: &[SourceNode]) -> Self {
        let mut found = BTreeMap::new();
        for (name, node) in roots.iter().flat_map(entries) {
            let kind = word(node, "Type").unwrap_or_default();
            let dialect = match kind.strip_prefix("ConnectionProfile:Database:") {
                Some("MySQL" | "MariaDB") => DialectName::Mysql,
                Some("PostgreSQL") => DialectName::Postgres,
                _ => continue,
            };
            found.insert(name.to_owned(), dialect);
        }
        Self(found)
    }
}

/// Builds a job with its body, resources and actions; events are added later.
pub(super) fn make_job(
    job: &CtmJob<'_>,
    group: &GroupCode,
    profiles: &Profiles,
    draft: &mut Draft,
) -> JobDef {
    let mut def = draft.job(&job.at, group, &job.name, "SCRIPT");
    let about = def.code.to_string();
    check_own_keys(job, &about, draft);
    if let Some(text) = word(job.node, "Description") {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.is_empty() {
            def.name = line.chars().filter(|c| !c.is_control()).take(200).collect();
        }
    }
    def.timeout_sec = draft.timeout(&job.at, &about, 0);
    def.priority = priority(job, &about, draft);
    if !job.days.is_cyclic() {
        def.schedule_time = job.days.from;
    }
    def.tags = read_tags(job, draft);
    resources(job, &mut def, draft);
    actions::read_actions(job, &mut def, draft);
    match set_body(job, def.clone(), profiles, draft) {
        Ok(made) => made,
        Err(why) => failing(draft, &job.at, def, &why),
    }
}

/// Checks the keys of a job and of its type. A type without an equivalent is reported as a whole.
fn check_own_keys(job: &CtmJob<'_>, about: &str, draft: &mut Draft) {
    if let Some(of_kind) = keys::of_kind(job.kind) {
        check_untyped_keys(
            job.node,
            &[keys::INHERITED, keys::ANY, keys::JOB, of_kind],
            about,
            draft,
        );
    }
    for (_, value) in entries(job.node) {
        if word(value, "Type") == Some("DeleteEvents") {
            draft.note_record_key(&job.at.file, "DeleteEvents");
        }
    }
}

/// `Very High`, `AA`: words have an equivalent, letters are reported.
fn priority(job: &CtmJob<'_>, about: &str, draft: &mut Draft) -> i32 {
    let Some(text) = job.find_word("Priority") else { return 0 };
    match text.to_ascii_lowercase().as_str() {
        "very high" => 20,
        "high" => 10,
        "medium" => 0,
        "low" => -10,
        "very low" => -20,
        _ => {
            let note = KeyNote { at: &job.at, about, key: "Priority", value: Some(text) };
            draft.note_key(
                note,
                hint("write priority: a higher number goes first", "请填写 priority,数值大者优先"),
            );
            0
        }
    }
}

/// The run-as user and the application, as tags; the host, in one note per host.
fn read_tags(job: &CtmJob<'_>, draft: &mut Draft) -> Vec<String> {
    let tag = |prefix: &str, text: &str| {
        let word: String = text
            .chars()
            .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' })
            .take(40)
            .collect();
        format!("{prefix}:{word}")
    };
    if let Some(host) = job.find_word("Host")
        && draft.is_first("host", host)
    {
        draft.end_item_for(|draft| {
            let said = (
                format!("jobs ran on host {host}; here they run on any node"),
                format!("作业原在主机 {host} 上运行;此处可在任意节点运行"),
            );
            let cure = (
                "run a node there with a label, and give its jobs worker: LABEL",
                "请在该主机上运行带标签的节点,并为作业设置 worker: 标签",
            );
            draft.note(Level::Look, &job.at, host, said, cure);
        });
    }
    if let Some(user) = job.find_word("RunAs")
        && draft.is_first("user", user)
    {
        draft.end_item_for(|draft| {
            let said = (
                format!("jobs ran as {user}; scripts here run as the user of procession serve (tag user:{user} says which)"),
                format!("作业原以 {user} 运行;此处脚本以 procession serve 的用户运行(标签 user:{user})"),
            );
            draft.note(Level::Look, &job.at, user, said, ("", ""));
        });
    }
    let found = [("user", "RunAs"), ("app", "Application"), ("subapp", "SubApplication")];
    found.into_iter().filter_map(|(prefix, key)| Some(tag(prefix, job.find_word(key)?))).collect()
}

/// Converts resources, which are maps with a type, to pools and locks.
fn resources(job: &CtmJob<'_>, def: &mut JobDef, draft: &mut Draft) {
    for (name, node) in entries(job.node) {
        let Some(kind) = word(node, "Type").and_then(|kind| kind.strip_prefix("Resource:")) else {
            continue;
        };
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' })
            .take(50)
            .collect();
        match kind {
            "Pool" | "Semaphore" => {
                let weight =
                    word(node, "Quantity").and_then(|q| q.trim().parse().ok()).unwrap_or(1).max(1);
                def.pools.push(PoolUse { pool: name.clone(), weight });
                add_pool(job, &name, weight, draft);
            }
            "Lock" | "Mutex" => {
                let word = word(node, "LockType")
                    .or_else(|| word(node, "MutexType"))
                    .unwrap_or("Exclusive");
                let mode = if word == "Shared" { LockMode::Shared } else { LockMode::Exclusive };
                def.locks.push(LockUse { lock: name, mode });
            }
            other => {
                let said = (
                    format!("resource {name} of type {other:?} is left out"),
                    format!("资源 {name}(类型 {other:?})未迁移"),
                );
                draft.note(Level::LeftOut, &origin(node), def.code.as_str(), said, ("", ""));
            }
        }
    }
}

/// Adds a pool with as many slots as a job needs: the real number is only known to the server.
fn add_pool(job: &CtmJob<'_>, name: &str, weight: u32, draft: &mut Draft) {
    let pools = &mut draft.defs.shared.pools;
    if let Some(known) = pools.iter_mut().find(|pool| pool.name == name) {
        known.slots = known.slots.max(weight);
        return;
    }
    pools.push(SlotPool { name: name.to_owned(), slots: weight });
    draft.end_item_for(|draft| {
        let said = (
            format!("how many there are of resource {name} is on the server and in no file: its pool has as many slots as one job needs"),
            format!("资源 {name} 的总量在服务器上,文件中没有:其资源池只有单个作业所需的数量"),
        );
        draft.note(Level::Look, &job.at, name, said, ("write slots of the pool", "请填写资源池的 slots"));
    });
}

fn set_body(
    job: &CtmJob<'_>,
    mut def: JobDef,
    profiles: &Profiles,
    draft: &mut Draft,
) -> Result<JobDef, BilingualSentence> {
    if is_yes(job.node, "RunAsDummy") == Some(true) || job.kind == "Job:Dummy" {
        def.job_type = JobType::parse("NOOP").expect("a job type");
        return Ok(def);
    }
    match job.kind {
        "Job:Command" => {
            let command = word(job.node, "Command").unwrap_or_default();
            if command.trim().is_empty() {
                return Err(BilingualSentence::from(("it has no command", "它没有命令")));
            }
            script(job, def, &around(job, command))
        }
        "Job:Script" => {
            let path =
                job.find_word("FilePath").unwrap_or_default().trim_end_matches('/').to_owned();
            let Some(file) = word(job.node, "FileName").filter(|name| !name.trim().is_empty())
            else {
                return Err(BilingualSentence::from(("it names no file", "它没有指定文件")));
            };
            let file = if path.is_empty() { file.to_owned() } else { format!("{path}/{file}") };
            let arguments = items(job.node, "Arguments").iter().filter_map(plain);
            let words: Vec<String> =
                std::iter::once(file.as_str()).chain(arguments).map(in_quotes).collect();
            script(job, def, &around(job, &words.join(" ")))
        }
        "Job:EmbeddedScript" => {
            let text = word(job.node, "Script").unwrap_or_default().replace("\r\n", "\n");
            if text.trim().is_empty() {
                return Err(BilingualSentence::from(("it has no script", "它没有脚本")));
            }
            script(job, def, &around(job, text.trim_end()))
        }
        "Job:Database:EmbeddedQuery" => {
            let text = word(job.node, "Query").unwrap_or_default();
            def.source = Some(source(job, profiles, draft)?.0);
            let (_, dialect) = source(job, profiles, draft)?;
            set_sql_body(job, &mut def, text, dialect)?;
            Ok(def)
        }
        "Job:Database:StoredProcedure" => {
            def.source = Some(source(job, profiles, draft)?.0);
            procedure(job, &mut def)?;
            Ok(def)
        }
        kind => Err(BilingualSentence::new(
            format!(
                "its type {kind} has no counterpart: write what it does as a SCRIPT, HTTP or SQL job"
            ),
            format!("其类型 {kind} 没有对应的作业类型:请改写为 SCRIPT、HTTP 或 SQL 作业"),
        )),
    }
}

/// Inserts a text between the commands that run before and after it. A first line that names an interpreter stays
/// first.
fn around(job: &CtmJob<'_>, text: &str) -> String {
    let (first, rest) = match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("#!") => (Some(first), rest),
        _ => (None, text),
    };
    let parts = [first, word(job.node, "PreCommand"), Some(rest), word(job.node, "PostCommand")];
    parts.into_iter().flatten().map(|part| format!("{part}\n")).collect()
}

/// Quotes a word of a command line; a variable in it stays one word.
fn in_quotes(text: &str) -> String {
    if text.contains("%%") { format!("\"{text}\"") } else { quoted(text) }
}

fn script(job: &CtmJob<'_>, mut def: JobDef, text: &str) -> Result<JobDef, BilingualSentence> {
    let made = variables::replace(text, job, &|name| format!("${{{name}}}"));
    refuse_unknown(&made)?;
    let first = made.text.lines().next().unwrap_or_default();
    let (interpreter, body) = match first.strip_prefix("#!") {
        Some(line) if line.contains("bash") => ("bash", made.text.clone()),
        Some(line) if line.contains("python") && made.params.is_empty() => {
            ("python3", made.text.clone())
        }
        Some(line) if line.ends_with("/sh") => ("sh", made.text.clone()),
        Some(line) => {
            return Err(BilingualSentence::new(
                format!(
                    "it runs with {}, which is no interpreter that is set up here",
                    line.trim()
                ),
                format!("其解释器 {} 未在此处配置", line.trim()),
            ));
        }
        None => ("sh", made.text.clone()),
    };
    def.interpreter = Some(interpreter.to_owned());
    def.params = made.params();
    def.script = Some(match body.split_once('\n') {
        Some((first, rest)) if first.starts_with("#!") => {
            format!("{first}\n{}{rest}", made.shell_head())
        }
        _ => format!("{}{body}", made.shell_head()),
    });
    Ok(def)
}

fn refuse_unknown(made: &variables::Replaced) -> Result<(), BilingualSentence> {
    if made.unknown.is_empty() {
        return Ok(());
    }
    let list = made.unknown.join(", ");
    Err(BilingualSentence::new(
        format!("it uses {list}, for which there is nothing here: write a parameter in its place"),
        format!("它使用 {list},此处没有对应:请改为参数"),
    ))
}

/// The source of a connection profile, whose type of database must be in the files.
fn source(
    job: &CtmJob<'_>,
    profiles: &Profiles,
    draft: &mut Draft,
) -> Result<(SourceName, DialectName), BilingualSentence> {
    let Some(name) = job.find_word("ConnectionProfile") else {
        return Err(BilingualSentence::from((
            "it names no connection profile",
            "它没有指定连接配置",
        )));
    };
    let Some(dialect) = profiles.0.get(name) else {
        return Err(BilingualSentence::new(
            format!(
                "of connection profile {name} these files do not say that it is MySQL or PostgreSQL: import it together with \
                 the jobs (ctm deploy connectionprofiles:centralized::get)"
            ),
            format!(
                "文件中没有说明连接配置 {name} 是 MySQL 或 PostgreSQL:请与作业一起导入(ctm deploy connectionprofiles:centralized::get)"
            ),
        ));
    };
    Ok((draft.source(&job.at, name, *dialect), *dialect))
}

fn set_sql_body(
    job: &CtmJob<'_>,
    def: &mut JobDef,
    text: &str,
    dialect: DialectName,
) -> Result<(), BilingualSentence> {
    if let Some(why) = SqlForm::read(text, dialect).fault() {
        return Err(why);
    }
    // A quoted variable is one value, including the quotes.
    let text = text.replace("'%%", "%%");
    let made = variables::replace(&text, job, &|name| format!(":{name}"));
    refuse_unknown(&made)?;
    let mut text = made.text.clone();
    for name in made.params.keys() {
        text = text.replace(&format!(":{name}'"), &format!(":{name}"));
    }
    def.job_type = JobType::parse("SQL").expect("a job type");
    set_sql(def, &text, dialect);
    def.sql = Some(SqlText::Same(format!("{}\n", text.trim_end())));
    def.params = made.params();
    Ok(())
}

fn procedure(job: &CtmJob<'_>, def: &mut JobDef) -> Result<(), BilingualSentence> {
    let Some(name) = word(job.node, "StoredProcedure").filter(|name| !name.trim().is_empty())
    else {
        return Err(BilingualSentence::from(("it names no procedure", "它没有指定存储过程")));
    };
    let schema = word(job.node, "Schema").map(str::trim).filter(|schema| !schema.is_empty());
    def.job_type = JobType::parse("PROC").expect("a job type");
    let whole =
        schema.map_or_else(|| name.trim().to_owned(), |schema| format!("{schema}.{}", name.trim()));
    if RoutineName::parse(&whole).is_none() {
        return Err(BilingualSentence::new(
            format!("{whole} is no name of a procedure"),
            format!("{whole} 不是存储过程的名称"),
        ));
    }
    def.proc_name = Some(whole);
    for (place, one) in (1..).zip(items(job.node, "Parameters")) {
        let name = word(one, "Name")
            .map_or_else(|| format!("p{place}"), |name| name.trim_start_matches('@').to_owned());
        let mode = match word(one, "Direction")
            .or_else(|| word(one, "ParameterType"))
            .unwrap_or("In")
            .to_ascii_lowercase()
            .as_str()
        {
            "out" | "output" => ParamMode::Out,
            "inout" | "in/out" => ParamMode::InOut,
            _ => ParamMode::In,
        };
        let value = match word(one, "Value") {
            Some(text) => {
                let made = variables::replace(text, job, &|name| format!("${{params.{name}}}"));
                refuse_unknown(&made)?;
                let only = made
                    .params
                    .values()
                    .flatten()
                    .next()
                    .filter(|_| text.starts_with("%%") && made.params.len() == 1);
                match only {
                    Some(form)
                        if made.text.starts_with("${params.") && made.text.ends_with('}') =>
                    {
                        Some(form.clone())
                    }
                    _ if made.params.is_empty() && !text.contains("${") => Some(text.to_owned()),
                    _ => {
                        return Err(BilingualSentence::new(
                            format!("the value of its parameter {name} has no form here"),
                            format!("其参数 {name} 的值没有对应的写法"),
                        ));
                    }
                }
            }
            None => None,
        };
        def.params.push(Param { name, mode, value, ..Param::default() });
    }
    Ok(())
}
