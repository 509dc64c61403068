//! Translates tasks that start a program of the Hadoop ecosystem: the script contains its command line, built as
//! DolphinScheduler builds it.
//!
//! An export does not contain the programs and variables of a host, so each of these is reported.

use super::job::{heading, here_document, set_shell, tell_unknown};
use super::read::DolphinTask;
use super::value::{ParamScope, SubstitutedText};
use crate::domain::job::JobDef;
use crate::import::body::quoted;
use crate::import::draft::Draft;
use crate::import::keys::{KeyNote, hint};
use crate::import::note::{BilingualSentence, Level};
use crate::import::tree::{get, items, word};

/// The directory of the resource centre, as a variable of the script.
const FILES: &str =
    "${PROCESSION_PARAM_RESOURCE_DIR:?is not set: the folder of the files of the resource centre}";
/// The job parameter for that directory.
pub(super) const FILES_PARAM: &str = "resource_dir";

/// A command line under construction.
#[derive(Default)]
struct CommandLine {
    words: Vec<String>,
}

impl CommandLine {
    fn new(program: &str) -> Self {
        Self { words: vec![program.to_owned()] }
    }

    /// Appends text as written; it may contain several words and placeholders.
    fn add_text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.words.push(text.trim().to_owned());
        }
    }

    /// Appends an option if the task has a value for it; 0 means none.
    fn option(&mut self, before: &str, value: Option<&str>) {
        if let Some(value) = value.map(str::trim).filter(|v| !v.is_empty() && *v != "0") {
            self.words.push(format!("{before}{value}"));
        }
    }

    fn into_text(self) -> String {
        format!("{}\n", self.words.join(" "))
    }
}

/// Whether tasks of this type start a program.
pub(super) fn is_launch(kind: &str) -> bool {
    matches!(kind, "SPARK" | "FLINK" | "MR" | "HIVECLI" | "SQOOP" | "DATAX")
}

/// Sets the script of a job that starts the program of its task.
pub(super) fn launch(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<(), BilingualSentence> {
    let needs = match task.kind.as_str() {
        "SPARK" => spark(task, job, scope, draft)?,
        "FLINK" => flink(task, job, scope, draft)?,
        "MR" => map_reduce(task, job, scope, draft)?,
        "HIVECLI" => fill_hive(task, job, scope, draft)?,
        "SQOOP" => sqoop(task, job, scope, draft)?,
        _ => datax(task, job, scope, draft)?,
    };
    draft.note(
        Level::Look,
        &task.at,
        job.code.as_str(),
        (
            format!(
                "its command line is a script now, which needs {needs} on the host that runs it"
            ),
            format!("其命令行已转为脚本;运行它的主机需要 {needs}"),
        ),
        (
            "start a node with --label where that is, write worker: LABEL on the job, and try it",
            "请在具备条件的主机上用 --label 启动节点,为作业设置 worker: 标签,并试运行",
        ),
    );
    note_password(task, job, draft);
    Ok(())
}

/// Reports passwords in plain text, which the definition would contain too.
fn note_password(task: &DolphinTask, job: &JobDef, draft: &mut Draft) {
    let script = job.script.as_deref().unwrap_or_default().to_ascii_lowercase();
    if script.contains("password") {
        draft.note(
            Level::Look,
            &task.at,
            job.code.as_str(),
            (
                "its text seems to hold a password, which stands in the definition now",
                "其文本中似乎含有密码,现已写入定义",
            ),
            ("make it a secret, and refer to that", "请改为 secret 并引用"),
        );
    }
}

fn param<'a>(task: &'a DolphinTask, key: &str) -> Option<&'a str> {
    word(&task.params, key).map(str::trim).filter(|text| !text.is_empty())
}

/// Reports parameters that other task types use and this one does not.
fn note_unused(task: &DolphinTask, job: &JobDef, unused: &[&str], draft: &mut Draft) {
    let of_type = hint(
        "a program of its type does not use it, there, too",
        "该类型的程序不使用它,原系统亦然",
    );
    for key in unused.iter().filter(|key| get(&task.params, key).is_some()) {
        let value = word(&task.params, key);
        if value.is_none_or(|value| !matches!(value.trim(), "" | "SCRIPT")) {
            let note = KeyNote { at: &task.at, about: job.code.as_str(), key, value };
            draft.note_key(note, of_type);
        }
    }
}

/// The file that a task starts, by its name in the resource centre.
fn main_file(task: &DolphinTask) -> Result<String, BilingualSentence> {
    let jar = get(&task.params, "mainJar");
    let name = jar.and_then(|jar| word(jar, "resourceName").or_else(|| word(jar, "res")));
    let name = name.map(str::trim).filter(|n| !n.is_empty());
    let missing =
        ("its export does not name the file that it starts", "导出文件没有写明要启动的文件");
    name.map(resource_word).ok_or_else(|| BilingualSentence::from(missing))
}

/// A file of the resource centre as a shell word.
fn resource_word(name: &str) -> String {
    format!("\"{FILES}\"/{}", quoted(name.trim_start_matches('/')))
}

/// The SQL of a task.
enum SqlOfTask {
    /// A file of the resource centre, as a shell word.
    File(String),
    Text(String),
}

/// The keys for the SQL of a task.
struct SqlKeys {
    /// FILE or SCRIPT.
    kind: &'static str,
    text: &'static str,
}

fn read_sql(task: &DolphinTask, keys: &SqlKeys) -> Result<SqlOfTask, BilingualSentence> {
    if param(task, keys.kind) == Some("FILE") {
        let first = items(&task.params, "resourceList").first();
        let name = first.and_then(|one| word(one, "resourceName").or_else(|| word(one, "res")));
        let missing =
            ("its export does not name the file with its SQL", "导出文件没有写明 SQL 文件");
        return name
            .map(|name| SqlOfTask::File(resource_word(name)))
            .ok_or_else(|| BilingualSentence::from(missing));
    }
    let sql = param(task, keys.text).map(|sql| SqlOfTask::Text(sql.to_owned()));
    sql.ok_or_else(|| BilingualSentence::from(("it has no SQL", "它没有 SQL")))
}

/// A file that a script writes before it starts the program.
struct ScriptFile<'a> {
    name: &'a str,
    text: &'a str,
}

/// Writes texts to files next to the script, and then runs a command.
fn with_files(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    files: &[ScriptFile<'_>],
    command: &str,
    draft: &mut Draft,
) {
    let mut used = SubstitutedText::default();
    let mut script = String::new();
    for ScriptFile { name, text } in files {
        let (body, found) = here_document(text, scope);
        script.push_str(&format!("cat > {name} <<END_OF_TEXT\n{body}\nEND_OF_TEXT\n"));
        used.used.extend(found.used);
        used.unknown.extend(found.unknown);
    }
    let command = set_shell(command, scope);
    used.used.extend(command.used);
    used.unknown.extend(command.unknown);
    tell_unknown(task, job, &used, draft);
    script.push_str(&command.text);
    job.script = Some(format!("set -e\n{}{script}", heading(&used)));
    job.interpreter = Some("bash".to_owned());
    job.params = used.params();
    if script.contains(FILES) {
        let name = FILES_PARAM.to_owned();
        job.params.push(crate::domain::job::Param { name, ..Default::default() });
    }
}

fn spark(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<&'static str, BilingualSentence> {
    let is_sql = param(task, "programType") == Some("SQL");
    if param(task, "namespace").is_some() {
        return Err(BilingualSentence::from((
            "it runs on Kubernetes, whose address is not in an export",
            "它运行在 Kubernetes 上,导出文件不含其地址",
        )));
    }
    let of_jars = ["mainClass", "mainJar", "mainArgs"];
    let of_sql = ["rawScript", "sqlExecutionType"];
    note_unused(task, job, if is_sql { &of_jars[..] } else { &of_sql[..] }, draft);
    let program = if is_sql { "spark-sql" } else { "spark-submit" };
    let mut line = CommandLine::new(&format!("\"${{SPARK_HOME:?is not set}}\"/bin/{program}"));
    let mode = param(task, "deployMode").unwrap_or("local");
    line.add_text("--master");
    line.add_text(param(task, "master").unwrap_or(if mode == "local" { "local" } else { "yarn" }));
    if mode != "local" {
        line.option("--deploy-mode ", Some(mode));
    }
    if !is_sql && param(task, "programType") != Some("PYTHON") {
        line.option("--class ", param(task, "mainClass"));
    }
    line.option("--conf spark.driver.cores=", param(task, "driverCores"));
    line.option("--conf spark.driver.memory=", param(task, "driverMemory"));
    line.option("--conf spark.executor.instances=", param(task, "numExecutors"));
    line.option("--conf spark.executor.cores=", param(task, "executorCores"));
    line.option("--conf spark.executor.memory=", param(task, "executorMemory"));
    line.option("--name ", param(task, "appName").map(quoted).as_deref());
    let others = param(task, "others").unwrap_or_default();
    if mode != "local" && !others.contains("--queue") {
        line.option("--queue ", param(task, "yarnQueue").or_else(|| param(task, "queue")));
    }
    line.add_text(others);
    if is_sql {
        let keys = SqlKeys { kind: "sqlExecutionType", text: "rawScript" };
        launch_sql(task, job, scope, line, &keys, draft)?;
    } else {
        line.add_text(&main_file(task)?);
        line.add_text(param(task, "mainArgs").unwrap_or_default());
        with_files(task, job, scope, &[], &line.into_text(), draft);
    }
    Ok("SPARK_HOME")
}

/// Runs a program with `-f` and a file of SQL.
fn launch_sql(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    mut line: CommandLine,
    keys: &SqlKeys,
    draft: &mut Draft,
) -> Result<(), BilingualSentence> {
    match read_sql(task, keys)? {
        SqlOfTask::File(file) => {
            line.add_text("-f");
            line.add_text(&file);
            with_files(task, job, scope, &[], &line.into_text(), draft);
        }
        SqlOfTask::Text(sql) => {
            line.add_text("-f task.sql");
            let file = ScriptFile { name: "task.sql", text: &sql };
            with_files(task, job, scope, &[file], &line.into_text(), draft);
        }
    }
    Ok(())
}

fn fill_hive(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<&'static str, BilingualSentence> {
    let mut line = CommandLine::new("hive");
    line.add_text(param(task, "hiveCliOptions").unwrap_or_default());
    let keys = SqlKeys { kind: "hiveCliTaskExecutionType", text: "hiveSqlScript" };
    launch_sql(task, job, scope, line, &keys, draft)?;
    Ok("hive")
}

fn map_reduce(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<&'static str, BilingualSentence> {
    let mut line = CommandLine::new("hadoop");
    line.add_text("jar");
    line.add_text(&main_file(task)?);
    if param(task, "programType") != Some("PYTHON") {
        line.option("", param(task, "mainClass"));
    }
    line.option("-Dmapreduce.job.name=", param(task, "appName").map(quoted).as_deref());
    let others = param(task, "others").unwrap_or_default();
    if !others.contains("mapreduce.job.queuename") {
        let queue = param(task, "yarnQueue").or_else(|| param(task, "queue"));
        line.option("-Dmapreduce.job.queuename=", queue);
    }
    line.add_text(others);
    line.add_text(param(task, "mainArgs").unwrap_or_default());
    with_files(task, job, scope, &[], &line.into_text(), draft);
    Ok("hadoop")
}

fn flink(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<&'static str, BilingualSentence> {
    let mode = param(task, "deployMode").unwrap_or("cluster").to_ascii_lowercase();
    let others = param(task, "others").unwrap_or_default();
    if param(task, "programType") == Some("SQL") {
        let sql = param(task, "rawScript")
            .ok_or_else(|| BilingualSentence::from(("it has no SQL", "它没有 SQL")))?;
        note_unused(task, job, &["mainClass", "mainJar", "mainArgs"], draft);
        let mut line = CommandLine::new("\"${FLINK_HOME:?is not set}\"/bin/sql-client.sh");
        line.add_text("-i init.sql -f task.sql");
        line.add_text(others);
        let init = flink_init(task, &mode);
        let files = [
            ScriptFile { name: "init.sql", text: &init },
            ScriptFile { name: "task.sql", text: sql },
        ];
        with_files(task, job, scope, &files, &line.into_text(), draft);
        return Ok("FLINK_HOME");
    }
    note_unused(task, job, &["rawScript", "initScript"], draft);
    let version = param(task, "flinkVersion").unwrap_or("<1.10");
    let is_new = matches!(version, ">=1.12" | ">=1.13");
    let mut line = CommandLine::new("\"${FLINK_HOME:?is not set}\"/bin/flink");
    line.add_text(match mode.as_str() {
        "application" => "run-application -t yarn-application",
        "local" | "standalone" => "run",
        _ if is_new => "run -t yarn-per-job",
        _ => "run -m yarn-cluster",
    });
    let is_on_yarn = !matches!(mode.as_str(), "local" | "standalone");
    if is_on_yarn {
        line.option("-ys ", param(task, "slot"));
        line.option("-ynm ", param(task, "appName").map(quoted).as_deref());
        if version == "<1.10" {
            line.option("-yn ", param(task, "taskManager"));
        }
        line.option("-yjm ", param(task, "jobManagerMemory"));
        line.option("-ytm ", param(task, "taskManagerMemory"));
    }
    line.option("-p ", param(task, "parallelism"));
    line.add_text("-sae");
    line.add_text(others);
    let of_target = is_new || mode == "application";
    let queue = if of_target { "-Dyarn.application.queue=" } else { "-yqu " };
    if is_on_yarn && !others.contains(queue.trim_end_matches(['=', ' '])) {
        line.option(queue, param(task, "yarnQueue").or_else(|| param(task, "queue")));
    }
    let is_python = param(task, "programType") == Some("PYTHON");
    if is_python {
        line.add_text("-py");
    } else {
        line.option("-c ", param(task, "mainClass"));
    }
    line.add_text(&main_file(task)?);
    line.add_text(param(task, "mainArgs").unwrap_or_default());
    with_files(task, job, scope, &[], &line.into_text(), draft);
    Ok("FLINK_HOME")
}

/// The statements that are set before the SQL of a Flink task.
fn flink_init(task: &DolphinTask, mode: &str) -> String {
    let mut lines = Vec::new();
    let mut set = |key: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| *value != "0") {
            lines.push(format!("set {key}={value};"));
        }
    };
    match mode {
        "local" => set("execution.target", Some("local")),
        "standalone" => {}
        _ => {
            set("execution.target", Some("yarn-per-job"));
            set("taskmanager.numberOfTaskSlots", param(task, "slot"));
            set("yarn.application.name", param(task, "appName"));
            set("jobmanager.memory.process.size", param(task, "jobManagerMemory"));
            set("taskmanager.memory.process.size", param(task, "taskManagerMemory"));
            set(
                "yarn.application.queue",
                param(task, "yarnQueue").or_else(|| param(task, "queue")),
            );
        }
    }
    set("parallelism.default", param(task, "parallelism"));
    lines.extend(param(task, "initScript").map(str::to_owned));
    lines.join("\n")
}

fn sqoop(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<&'static str, BilingualSentence> {
    let custom = param(task, "customShell").filter(|_| param(task, "jobType") == Some("CUSTOM"));
    let custom = custom.ok_or_else(|| {
        BilingualSentence::from((
            "it is made of data sources, whose addresses are not in an export: write its sqoop command as a SCRIPT",
            "它由数据源生成,导出文件不含其地址:请将 sqoop 命令写为 SCRIPT",
        ))
    })?;
    with_files(task, job, scope, &[], &format!("{custom}\n"), draft);
    Ok("sqoop")
}

fn datax(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<&'static str, BilingualSentence> {
    let custom = param(task, "json").filter(|_| param(task, "customConfig") == Some("1"));
    let custom = custom.ok_or_else(|| {
        BilingualSentence::from((
            "it is made of data sources, whose addresses are not in an export: write its JSON into a SCRIPT",
            "它由数据源生成,导出文件不含其地址:请将其 JSON 写入 SCRIPT",
        ))
    })?;
    let memory = |key: &str| param(task, key).filter(|size| *size != "0").unwrap_or("1");
    let (least, most) = (memory("xms"), memory("xmx"));
    let mut line =
        CommandLine::new("python3 \"${DATAX_LAUNCHER:?is not set: the path of datax.py}\"");
    line.add_text(&format!("--jvm=\"-Xms{least}G -Xmx{most}G\""));
    line.add_text("task.json");
    let file = ScriptFile { name: "task.json", text: custom };
    with_files(task, job, scope, &[file], &line.into_text(), draft);
    Ok("DATAX_LAUNCHER")
}
