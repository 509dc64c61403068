//! Translates the body of a task.

use super::read::{DolphinTask, Workflow};
use super::value::{ParamScope, SubstitutedText, Turned, replaced, value, variable};
use super::{DolphinCodes, call, keys, launch, sql, wait};
use crate::domain::batch_no::BatchExpr;
use crate::domain::id::JobType;
use crate::domain::job::body::SubBatch;
use crate::domain::job::{JobDef, Param};
use crate::import::body::failing;
use crate::import::draft::{Draft, LONGEST_SEC};
use crate::import::keys::{KeyNote, check_keys, hint};
use crate::import::note::{BilingualSentence, Level};
use crate::import::tree::{get, items, word};

/// Maximum number of retries, and maximum delay between two.
const MOST_RETRIES: i64 = 100;
const LONGEST_PAUSE: i64 = 24 * 3_600;

/// Sets the body and the common properties of a job, and adds the job to the draft.
pub(super) fn fill_job(
    task: &DolphinTask,
    mut job: JobDef,
    flow: &Workflow,
    codes: &DolphinCodes,
    draft: &mut Draft,
) {
    around(task, &mut job, draft);
    check_keys(&task.source.node, &[task.source.keys], job.code.as_str(), draft);
    let scope = scope(task, &job, flow, draft);
    let job = match fill_body(task, job.clone(), &scope, flow, codes, draft) {
        Ok(made) => {
            check_params(task, &made, draft);
            note_resources(task, &made, draft);
            made
        }
        Err(why) => failing(draft, &task.at, job, &why),
    };
    draft.push(job);
}

/// Reports keys of its parameters that no part of the importer reads. For a task that could not be carried over, its
/// placeholder job gives the reason, whatever its parameters are.
fn check_params(task: &DolphinTask, job: &JobDef, draft: &mut Draft) {
    let about = job.code.as_str();
    let Some(of_type) = keys::of_type(&task.kind) else {
        return;
    };
    let [of_kind, of_program] = of_type;
    let tables = [of_kind, of_program, keys::ANY_TASK, keys::NO_BRANCHES];
    check_keys(&task.params, &tables, about, draft);
    for local in items(&task.params, "localParams") {
        check_keys(local, &[keys::PARAM], about, draft);
    }
    for wait in
        [&task.source.node, &task.params].into_iter().filter_map(|n| get(n, "waitStartTimeout"))
    {
        if word(wait, "enable") == Some("true") {
            let minutes = word(wait, "interval");
            let note = KeyNote { at: &task.at, about, key: "waitStartTimeout", value: minutes };
            draft.note_key(
                note,
                hint(
                    "wait_sec limits how long it waits for other groups",
                    "wait_sec 限制等待其他作业组的时间",
                ),
            );
        }
    }
}

/// Reports numbers above the limits here, and unknown words.
fn note_cut(task: &DolphinTask, job: &JobDef, draft: &mut Draft) {
    let mut tell = |key: &str, value: &str, to: &str| {
        let said = (
            format!("{key}: {value} becomes {to}, which is as near as there is"),
            format!("{key}:{value} 改为 {to}"),
        );
        draft.note(Level::Differs, &task.at, job.code.as_str(), said, ("", ""));
    };
    if !(0..=MOST_RETRIES).contains(&task.retries) {
        tell("retries", &task.retries.to_string(), &job.retry_count.to_string());
    }
    if task.retries > 0 && i64::from(job.retry_delay_sec) != task.retry_min.saturating_mul(60) {
        tell("retry interval (minutes)", &task.retry_min.to_string(), "24 h");
    }
    if !matches!(task.priority.as_str(), "" | "HIGHEST" | "HIGH" | "MEDIUM" | "LOW" | "LOWEST") {
        tell("priority", &task.priority, "0");
    }
}

/// Sets the common properties of every task.
fn around(task: &DolphinTask, job: &mut JobDef, draft: &mut Draft) {
    job.is_active = task.is_active;
    job.priority = match task.priority.as_str() {
        "HIGHEST" => 20,
        "HIGH" => 10,
        "LOW" => -10,
        "LOWEST" => -20,
        _ => 0,
    };
    job.retry_count = u32::try_from(task.retries.clamp(0, MOST_RETRIES)).unwrap_or(0);
    let pause = task.retry_min.saturating_mul(60).clamp(0, LONGEST_PAUSE);
    job.retry_delay_sec = if task.retries > 0 { u32::try_from(pause).unwrap_or(0) } else { 0 };
    job.timeout_sec = LONGEST_SEC;
    if let Some((minutes, strategy)) = &task.timeout {
        let seconds = u64::try_from(minutes.saturating_mul(60)).unwrap_or(0);
        let seconds = draft.timeout(&task.at, job.code.as_str(), seconds);
        if strategy.contains("FAILED") {
            job.timeout_sec = seconds;
        } else {
            job.warn_after_sec = Some(seconds).filter(|s| *s < LONGEST_SEC);
        }
    }
    note_cut(task, job, draft);
    if !task.is_active {
        draft.note(
            Level::Differs,
            &task.at, job.code.as_str(),
            ("it was switched off there and is not active here; what waited for it waits for what is before it",
             "原系统中已禁止执行,此处为未启用;依赖它的作业改为依赖它之前的作业"),
            ("", ""),
        );
    }
}

/// The parameters that the text of the task may use.
fn scope(task: &DolphinTask, job: &JobDef, flow: &Workflow, draft: &mut Draft) -> ParamScope {
    let mut scope = ParamScope::default();
    let is_global = |name: &str| flow.params.iter().any(|(n, _)| n == name);
    for (name, _) in &flow.params {
        scope.own.insert(name.clone(), None);
    }
    for local in items(&task.params, "localParams") {
        let Some(name) = word(local, "prop").map(str::trim).filter(|n| !n.is_empty()) else {
            continue;
        };
        if word(local, "direct") == Some("OUT") {
            draft.note(
                Level::Look,
                &task.at, job.code.as_str(),
                (format!("it hands on {name}"), format!("它向后传递 {name}")),
                ("let the script print ::output name=value; jobs behind it use ${jobs.CODE.name}",
                 "请让脚本输出 ::output 名称=值;后面的作业用 ${jobs.编码.名称} 引用"),
            );
            continue;
        }
        let text = word(local, "value").unwrap_or_default();
        match value(text, &is_global) {
            Turned::Value(value) if value.is_empty() => {
                drop(scope.own.insert(name.to_owned(), None))
            }
            Turned::Value(value) => drop(scope.own.insert(name.to_owned(), Some(value))),
            Turned::Unknown => {
                draft.note(
                    Level::Look,
                    &task.at,
                    job.code.as_str(),
                    (
                        format!(
                            "parameter {name}: its value {text} has no form here, so it has none"
                        ),
                        format!("参数 {name}:其值 {text} 没有对应的写法,因此留空"),
                    ),
                    ("give it a value", "请填写取值"),
                );
                scope.own.insert(name.to_owned(), None);
            }
        }
    }
    scope
}

fn fill_body(
    task: &DolphinTask,
    mut job: JobDef,
    scope: &ParamScope,
    flow: &Workflow,
    codes: &DolphinCodes,
    draft: &mut Draft,
) -> Result<JobDef, BilingualSentence> {
    let kind = |name: &str| JobType::parse(name).expect("importers know the job types");
    match task.kind.as_str() {
        "SHELL" => {
            job.job_type = kind("SCRIPT");
            shell(task, &mut job, scope, draft)?;
        }
        "PYTHON" => {
            job.job_type = kind("SCRIPT");
            python(task, &mut job, scope, draft)?;
        }
        "SQL" => {
            job.job_type = kind("SQL");
            sql::fill_sql(task, &mut job, scope, draft)?;
        }
        "PROCEDURE" => {
            job.job_type = kind("PROC");
            sql::procedure(task, &mut job, scope, draft)?;
        }
        "HTTP" => {
            job.job_type = kind("HTTP");
            call::fill_http(task, &mut job, scope, draft)?;
        }
        other if launch::is_launch(other) => {
            job.job_type = kind("SCRIPT");
            launch::launch(task, &mut job, scope, draft)?;
        }
        "SUB_PROCESS" | "SUB_WORKFLOW" => {
            job.job_type = kind("BATCH");
            job.sub_batch = Some(Box::new(sub_batch(task, flow, codes)?));
            job.params = handed_down(task, scope);
        }
        "DEPENDENT" => {
            wait::add_externals(task, &job, codes, draft)?;
        }
        "CONDITIONS" => {
            job.trigger_rule = wait::trigger_rule(task, flow)?;
            wait::check_conditions(task, &job, flow, draft);
            draft.note(
                Level::Differs,
                &task.at, job.code.as_str(),
                ("the branch for failures runs once all tasks before it have run and one failed, as it did, and the batch ends FAILED all \
                  the same, because a job failed",
                 "失败分支与原系统一样,在前置任务全部运行且有失败时运行,但因有作业失败,批次仍以 FAILED 结束"),
                ("", ""),
            );
        }
        other => {
            return Err(BilingualSentence::new(
                format!("tasks of type {other} have no counterpart"),
                format!("没有与任务类型 {other} 对应的作业类型"),
            ));
        }
    }
    Ok(job)
}

fn raw_script(task: &DolphinTask) -> Result<&str, BilingualSentence> {
    let script = word(&task.params, "rawScript").filter(|s| !s.trim().is_empty());
    script.ok_or_else(|| BilingualSentence::from(("it has no script", "它没有脚本")))
}

/// Reports placeholders without an equivalent.
pub(super) fn tell_unknown(
    task: &DolphinTask,
    job: &JobDef,
    text: &SubstitutedText,
    draft: &mut Draft,
) {
    for unknown in &text.unknown {
        draft.note(
            Level::Look,
            &task.at,
            job.code.as_str(),
            (
                format!("{unknown} has no form here and stands as it was"),
                format!("{unknown} 没有对应的写法,保持原样"),
            ),
            ("write a parameter in its place", "请改用参数"),
        );
    }
}

/// Reports files of the resource centre, because an export does not contain them.
fn note_resources(task: &DolphinTask, job: &JobDef, draft: &mut Draft) {
    if !items(&task.params, "resourceList").is_empty() {
        draft.note(
            Level::Look,
            &task.at,
            job.code.as_str(),
            ("it names files of DolphinScheduler's resource centre", "它引用了资源中心的文件"),
            (
                "put them on the hosts that run scripts and name their folder in working_dir",
                "请将文件放到运行脚本的主机,并用 working_dir 指定目录",
            ),
        );
    }
}

fn shell(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<(), BilingualSentence> {
    let text = set_shell(raw_script(task)?, scope);
    tell_unknown(task, job, &text, draft);
    job.script = Some(format!("{}{}\n", heading(&text), text.text.trim_end()));
    job.interpreter = Some("bash".to_owned());
    job.params = text.params();
    Ok(())
}

/// A shell text with its placeholders as variables.
pub(super) fn set_shell(text: &str, scope: &ParamScope) -> SubstitutedText {
    replaced(text, scope, &|made, name| {
        // A shell does not expand variables between single quotes.
        let quotes = if in_single_quotes(made) { "'" } else { "" };
        let double = if quotes.is_empty() { "" } else { "\"" };
        made.push_str(&format!("{quotes}{double}${{{name}}}{double}{quotes}"));
    })
}

/// The lines that set the variables of a script from its parameters.
pub(super) fn heading(text: &SubstitutedText) -> String {
    let names = text.used.keys();
    names.map(|name| format!("{name}=\"$PROCESSION_PARAM_{}\"\n", name.to_uppercase())).collect()
}

/// A text for a shell here-document, in which the shell replaces placeholders by values and changes nothing else.
pub(super) fn here_document(text: &str, scope: &ParamScope) -> (String, SubstitutedText) {
    let plain = replaced(text, scope, &|made, name| made.push_str(&format!("\u{1}{name}\u{2}")));
    let mut body = String::new();
    for c in plain.text.trim_end().chars() {
        match c {
            '\\' | '$' | '`' => body.extend(['\\', c]),
            '\u{1}' => body.push_str("${"),
            '\u{2}' => body.push('}'),
            c => body.push(c),
        }
    }
    (body, plain)
}

fn in_single_quotes(before: &str) -> bool {
    let (mut single, mut double) = (false, false);
    // An apostrophe in a comment opens no quote; quotes rarely span lines.
    for c in before.rsplit('\n').next().unwrap_or_default().chars() {
        match c {
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            _ => {}
        }
    }
    single
}

/// With placeholders, a shell assembles the text, as in DolphinScheduler; without, it is a Python script.
fn python(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<(), BilingualSentence> {
    let raw = raw_script(task)?;
    let (text, plain) = here_document(raw, scope);
    tell_unknown(task, job, &plain, draft);
    if plain.used.is_empty() {
        job.script = Some(format!("{}\n", raw.trim_end()));
        job.interpreter = Some("python3".to_owned());
        return Ok(());
    }
    let heading = heading(&plain);
    job.script = Some(format!("{heading}python3 - <<END_OF_PYTHON\n{text}\nEND_OF_PYTHON\n"));
    job.interpreter = Some("bash".to_owned());
    job.params = plain.params();
    Ok(())
}

/// The parameters that a task passes to the workflow that it runs.
fn handed_down(task: &DolphinTask, scope: &ParamScope) -> Vec<Param> {
    let names = items(&task.params, "localParams").iter().filter_map(|local| word(local, "prop"));
    let own = names.filter_map(|name| Some((name, scope.own.get(name.trim())?)));
    own.map(|(name, value)| Param {
        name: variable(name.trim()),
        value: value.clone(),
        ..Param::default()
    })
    .collect()
}

fn sub_batch(
    task: &DolphinTask,
    flow: &Workflow,
    codes: &DolphinCodes,
) -> Result<SubBatch, BilingualSentence> {
    let keys = ["processDefinitionCode", "workflowDefinitionCode", "processDefinitionId"];
    let key = keys.iter().find_map(|k| word(&task.params, k)).unwrap_or_default();
    let group = codes.groups.get(key).filter(|_| key != flow.key).ok_or_else(|| {
        BilingualSentence::new(
            format!("it runs workflow {key}, which is not among these files"),
            format!("它运行的工作流 {key} 不在这些文件中"),
        )
    })?;
    let batch = BatchExpr::parse("same").expect("a word of ours");
    Ok(SubBatch { group: group.clone(), batch })
}
