//! Converts a node to a job: its command becomes a script, with its retries and parameters.

use super::condition::ConditionRule;
use super::passwords::{TAKEN_OUT, secret_name};
use super::{AzkabanFlow, FlowContext, FlowNode, ProjectFiles, config};
use crate::domain::batch_no::BatchExpr;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::body::SubBatch;
use crate::domain::job::{JobDef, Param, ParamDecl};
use crate::domain::notification::recipient::Recipient;
use crate::import::body::stand_in;
use crate::import::draft::Draft;
use crate::import::keys::{KeyNote, hint};
use crate::import::note::{BilingualSentence, Level};
use std::collections::BTreeMap;

/// The group parameter with the directory of the project's files.
const PROJECT_DIR: &str = "project_dir";
/// Maximum number of retries, and maximum delay between two.
const MOST_RETRIES: u32 = 100;
const LONGEST_PAUSE: u32 = 24 * 3_600;

/// Converts the properties of a flow to parameters and recipients of its group.
pub(super) fn of_group(
    flow: &AzkabanFlow,
    group: &GroupCode,
    files: ProjectFiles,
    draft: &mut Draft,
) {
    let mut decls: BTreeMap<String, ParamDecl> = BTreeMap::new();
    let mut mails = Vec::new();
    for (key, value) in &flow.config {
        match key.as_str() {
            "failure.emails" | "notify.emails" => {
                mails.extend(addresses(value));
            }
            "retries" | "retry.backoff" => {}
            _ if config::is_noted(key) || value == TAKEN_OUT => {}
            key if key == "command" || key.starts_with("command.") => {}
            _ if !value.contains("${") => {
                decls.insert(variable(key).to_lowercase(), ParamDecl::plain(&variable(key), value));
            }
            _ => {}
        }
    }
    if files == ProjectFiles::Some {
        let decl = ParamDecl { value: None, ..ParamDecl::plain(PROJECT_DIR, "") };
        decls.insert(PROJECT_DIR.to_owned(), decl);
        draft.note(
            Level::Look,
            &flow.at, &flow.name,
            ("commands there start beside the project's files, which are in files/ now",
             "原系统的命令在项目文件所在目录启动;这些文件现位于 files/"),
            (format!("copy files/ to the hosts that run scripts and write its folder as value of the \
                      parameter {PROJECT_DIR} of the group"),
             format!("请将 files/ 复制到运行脚本的主机,并把该目录填入作业组参数 {PROJECT_DIR}")),
        );
    }
    // Azkaban also reads the e-mail settings of a flow from its last job.
    for (key, value) in flow.nodes.iter().filter(|n| n.is_last).flat_map(|n| &n.config) {
        if matches!(key.as_str(), "failure.emails" | "notify.emails") {
            mails.extend(addresses(value));
        }
    }
    mails.sort();
    mails.dedup();
    if let Some(made) = draft.group_mut(group) {
        made.params = decls.into_values().collect();
        made.notify_email = mails;
    }
}

/// The valid addresses of a list; the others are reported elsewhere.
fn addresses(list: &str) -> impl Iterator<Item = String> {
    let words = list.split([',', ';']).map(str::trim);
    words.filter(|w| Recipient::parse(w).is_ok()).map(str::to_owned)
}

/// Builds the job of a node.
pub(super) fn make_job(
    node: &FlowNode,
    title: &str,
    rule: ConditionRule,
    around: &FlowContext<'_>,
    draft: &mut Draft,
) -> JobCode {
    let mut job = match (&rule.refused, node.kind.as_str()) {
        (Some(why), _) => stand_in(draft, &node.at, around.group, title, why),
        (None, "noop") => draft.job(&node.at, around.group, title, "NOOP"),
        (None, "command") => command(node, title, around, draft),
        (None, "flow") => sub_flow(node, title, around, draft),
        (None, kind) => {
            let why = BilingualSentence::new(
                format!("jobs of type {kind:?} have no counterpart"),
                format!("没有与类型 {kind:?} 对应的作业类型"),
            );
            stand_in(draft, &node.at, around.group, title, &why)
        }
    };
    job.trigger_rule = rule.rule;
    job.condition = rule.condition.map(Box::new);
    if node.kind != "noop" && node.kind != "flow" {
        // Azkaban has no time limit.
        job.timeout_sec = draft.timeout(&node.at, title, 0);
    }
    let retries = RetryProperty { key: "retries", unit: 1, most: MOST_RETRIES };
    job.retry_count = retries.read_retries(node, around, draft);
    let pause = RetryProperty { key: "retry.backoff", unit: 1_000, most: LONGEST_PAUSE };
    job.retry_delay_sec = pause.read_retries(node, around, draft);
    let code = job.code.clone();
    draft.push(job);
    code
}

fn get<'a>(node: &'a FlowNode, around: &'a FlowContext<'_>, key: &str) -> Option<&'a str> {
    let find = |all: &'a [(String, String)]| all.iter().find(|(k, _)| k == key);
    find(&node.config).or_else(|| find(&around.flow.config)).map(|(_, value)| value.as_str())
}

/// A numeric property, and its limits here.
struct RetryProperty {
    key: &'static str,
    /// Number of its units in one of ours.
    unit: u64,
    most: u32,
}

impl RetryProperty {
    /// Reads the value; an invalid or reduced number is reported.
    fn read_retries(&self, node: &FlowNode, around: &FlowContext<'_>, draft: &mut Draft) -> u32 {
        let Some(text) = get(node, around, self.key).map(str::trim).filter(|t| !t.is_empty())
        else {
            return 0;
        };
        let note = KeyNote { at: &node.at, about: &node.name, key: self.key, value: Some(text) };
        let Ok(number) = text.parse::<u64>() else {
            draft.note_key(note, hint("it is no whole number", "它不是整数"));
            return 0;
        };
        let number = number.div_ceil(self.unit);
        u32::try_from(number).ok().filter(|n| *n <= self.most).unwrap_or_else(|| {
            draft.note(
                Level::Differs,
                &node.at,
                &node.name,
                (
                    format!("{}: {text} is cut to {}, the most there is", self.key, self.most),
                    format!("{}:{text} 超过上限,改为 {}", self.key, self.most),
                ),
                ("", ""),
            );
            self.most
        })
    }
}

/// A job that opens the group of another flow.
fn sub_flow(node: &FlowNode, title: &str, around: &FlowContext<'_>, draft: &mut Draft) -> JobDef {
    let name = get(node, around, "flow.name").unwrap_or(&node.name);
    let group = around.groups.get(name).filter(|g| *g != around.group);
    let Some(group) = group else {
        let why = BilingualSentence::new(
            format!("it runs flow {name}, which is not among these files"),
            format!("它运行的流 {name} 不在这些文件中"),
        );
        return stand_in(draft, &node.at, around.group, title, &why);
    };
    let mut job = draft.job(&node.at, around.group, title, "BATCH");
    let batch = BatchExpr::parse("same").expect("a word of ours");
    job.sub_batch = Some(Box::new(SubBatch { group: group.clone(), batch }));
    job
}

fn command(node: &FlowNode, title: &str, around: &FlowContext<'_>, draft: &mut Draft) -> JobDef {
    let mut commands = commands(&node.config);
    if commands.is_empty() {
        // The properties of a directory may contain the command of all its jobs.
        commands = self::commands(&around.flow.config);
    }
    if commands.iter().all(|c| c.trim().is_empty()) {
        let what = format!("{} has no command", node.name);
        draft.fault(&node.at, what, "add command, or make its type noop");
    }
    let mut job = draft.job(&node.at, around.group, title, "SCRIPT");
    let mut words = Used::default();
    let lines: Vec<String> =
        commands.iter().map(|text| words.replaced(text, node, around)).collect();
    let script = surroundings(node, around, &mut words);
    let assigned = words.params.keys().filter(|name| *name != PROJECT_DIR);
    let assigned: String = assigned
        .map(|name| format!("{name}=\"$PROCESSION_PARAM_{}\"\n", name.to_uppercase()))
        .collect();
    job.script = Some(format!("{assigned}{script}{}\n", lines.join("\n")));
    job.interpreter = Some("sh".to_owned());
    job.params = words
        .params
        .into_iter()
        .map(|(name, value)| Param { name, value, ..Param::default() })
        .collect();
    let code = job.code.to_string();
    for name in words.unknown {
        draft.note(
            Level::Look,
            &node.at,
            &code,
            (
                format!(
                    "${{{name}}} is not defined in these files; the script fails where it uses it"
                ),
                format!("${{{name}}} 在这些文件中没有定义;脚本用到时会失败"),
            ),
            (
                "give the group a parameter, and the script its variable",
                "请为作业组添加参数,并在脚本中为该变量赋值",
            ),
        );
    }
    job
}

/// `command`, `command.1`, … in order.
fn commands(config: &[(String, String)]) -> Vec<&str> {
    let mut found: Vec<(u32, &str)> = Vec::new();
    for (key, value) in config {
        let number = key.strip_prefix("command.").and_then(|n| n.parse().ok());
        match (key.as_str(), number) {
            ("command", _) => found.push((0, value)),
            (_, Some(number)) => found.push((number, value)),
            (_, None) => {}
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, command)| command).collect()
}

/// The head of a script: its variables and its working directory.
fn surroundings(node: &FlowNode, around: &FlowContext<'_>, words: &mut Used) -> String {
    let mut script = String::from("set -e\n");
    let of_node = |key: &String| node.config.iter().any(|(k, _)| k == key);
    let inherited = around.flow.config.iter().filter(|(key, _)| !of_node(key));
    for (key, value) in inherited.chain(&node.config) {
        if let Some(name) = key.strip_prefix("env.") {
            let value = words.replaced(value, node, around);
            script.push_str(&format!(
                "export {}=\"{}\"\n",
                variable(name),
                value.replace('"', "\\\"")
            ));
        }
    }
    let folder = get(node, around, "working.dir");
    match (folder, around.files) {
        (Some(folder), _) => {
            let folder = words.replaced(folder, node, around);
            script.push_str(&format!("cd \"{}\"\n", folder.replace('"', "\\\"")));
        }
        (None, ProjectFiles::Some) => {
            words.params.insert(PROJECT_DIR.to_owned(), None);
            let at =
                "${PROCESSION_PARAM_PROJECT_DIR:?is not set: the folder of the project's files}";
            script.push_str(&format!("cd \"{at}\"\n"));
        }
        (None, ProjectFiles::None) => {}
    }
    script
}

/// Names that a command uses.
#[derive(Default)]
struct Used {
    /// With the value of the job's own parameter; none uses the group's.
    params: BTreeMap<String, Option<String>>,
    unknown: Vec<String>,
}

impl Used {
    /// A text with each `${name}` as a shell variable. Between single quotes, where a shell does not expand variables,
    /// the value itself is inserted.
    fn replaced(&mut self, text: &str, node: &FlowNode, around: &FlowContext<'_>) -> String {
        let mut made = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            made.push_str(&rest[..at]);
            let Some((name, tail)) = rest[at + 2..].split_once('}') else { break };
            made.push_str(&self.replace_one(name.trim(), is_quoted(&made), node, around));
            rest = tail;
        }
        made.push_str(rest);
        made
    }

    fn replace_one(
        &mut self,
        name: &str,
        quotes: Quotes,
        node: &FlowNode,
        around: &FlowContext<'_>,
    ) -> String {
        let variable = variable(name);
        let built_in = match name {
            "azkaban.flow.execid" => Some("${batch_no}".to_owned()),
            "azkaban.flow.flowid" => Some(quoted_value(&around.flow.name)),
            "azkaban.job.id" => Some(quoted_value(&node.name)),
            _ => None,
        };
        let own = node.config.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone());
        let shared = around.flow.config.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone());
        let value = own.clone().or(shared);
        match (built_in, value) {
            (Some(form), _) => drop(self.params.insert(variable.clone(), Some(form))),
            (None, Some(value)) if value == TAKEN_OUT => {
                let secret = format!("${{secret.{}}}", secret_name(name));
                self.params.insert(variable.clone(), Some(secret));
                if quotes == Quotes::Single {
                    // A shell does not expand variables between single quotes.
                    return format!("'\"${{{variable}}}\"'");
                }
            }
            // A reference to another property is resolved here, once.
            (None, Some(value)) if value.contains("${") || quotes == Quotes::Single => {
                return resolved(&value, node, around, 0);
            }
            (None, Some(value)) => {
                let own = own.map(|_| value);
                self.params.insert(variable.clone(), own);
            }
            (None, None) => {
                self.unknown.push(name.to_owned());
                return format!("${{{variable}:?is not defined}}");
            }
        }
        format!("${{{variable}}}")
    }
}

/// A value with its nested properties resolved, up to a depth that people use.
fn resolved(text: &str, node: &FlowNode, around: &FlowContext<'_>, depth: usize) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${").filter(|_| depth < 8) {
        made.push_str(&rest[..at]);
        let Some((name, tail)) = rest[at + 2..].split_once('}') else { break };
        let value = get(node, around, name.trim());
        made.push_str(&value.map_or_else(
            || format!("${{{name}}}"),
            |value| resolved(value, node, around, depth + 1),
        ));
        rest = tail;
    }
    made.push_str(rest);
    made
}

/// The quote that is open at the end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    Single,
    Other,
}

fn is_quoted(before: &str) -> Quotes {
    let (mut single, mut double) = (false, false);
    for c in before.chars() {
        match c {
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            _ => {}
        }
    }
    if single { Quotes::Single } else { Quotes::Other }
}

fn quoted_value(text: &str) -> String {
    text.replace("${", "$ {")
}

/// A name that is valid in a shell and as a parameter.
fn variable(name: &str) -> String {
    let made: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let is_name = made.starts_with(|c: char| !c.is_ascii_digit());
    if is_name { made } else { format!("_{made}") }
}
