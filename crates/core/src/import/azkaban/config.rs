//! Classifies the properties of jobs and flows: those that Azkaban itself defines, and those that are parameters of
//! commands.

use super::{AzkabanFlow, FlowContext, FlowNode};
use crate::domain::notification::recipient::Recipient;
use crate::import::draft::Draft;
use crate::import::keys::{Hint, KeyNote, hint};
use crate::import::note::Level;
use std::collections::BTreeSet;

/// Azkaban's own properties without an equivalent, each with a hint. A name that ends with a dot is a prefix.
pub(in crate::import) const NOTED: &[(&str, Hint)] = &[
    ("success.emails", hint("notify_email tells of failures", "notify_email 只通知失败")),
    ("override.emails", hint("notify_email tells of failures", "notify_email 只通知失败")),
    ("user.to.proxy", AS_USER),
    ("execute.as.user", AS_USER),
    (
        "flow.num.job.threads",
        hint("max_parallel of the group does that", "可用作业组的 max_parallel"),
    ),
    (
        "failure.action",
        hint(
            "here all that does not depend on the failed job goes on; on_failure of the group says otherwise",
            "此处与失败作业无关的作业会继续;可用作业组的 on_failure 更改",
        ),
    ),
    ("root.node", hint("there it begins a flow of its own", "原系统中它是独立流的起点")),
    (
        "job.notification.",
        hint("an HTTP job with trigger_rule does that", "可用带 trigger_rule 的 HTTP 作业"),
    ),
    ("job.max.Xms", MEMORY),
    ("job.max.Xmx", MEMORY),
    ("azkaban.memory.check", MEMORY),
    ("azkaban.", hint("it is a setting of Azkaban's", "这是 Azkaban 的设置")),
    ("jobtype.", hint("it is a setting of a job type of Azkaban's", "这是 Azkaban 作业类型的设置")),
];
const AS_USER: Hint = hint(
    "run a node as that user and give its jobs worker: LABEL",
    "请用该用户运行一个节点,并为作业设置 worker: 标签",
);
const MEMORY: Hint = hint("limit memory in the command itself", "请在命令中限制内存");

/// Properties of jobs and flows that the importer reads.
pub(in crate::import) const READ: &[&str] = &[
    "type",
    "dependencies",
    "depends",
    "condition",
    "command",
    "retries",
    "retry.backoff",
    "working.dir",
    "flow.name",
    "failure.emails",
    "notify.emails",
];

/// Whether a property is known to have no equivalent.
pub(super) fn is_noted(key: &str) -> bool {
    noted_hint(key).is_some()
}

fn noted_hint(key: &str) -> Option<Hint> {
    let is = |name: &str| key == name || (name.ends_with('.') && key.starts_with(name));
    NOTED.iter().find(|(name, _)| is(name)).map(|(_, hint)| *hint)
}

/// Checks the properties of a flow: those that are not Azkaban's become parameters of its group.
pub(super) fn check_flow(flow: &AzkabanFlow, draft: &mut Draft) {
    let used = used_names(flow);
    for (key, value) in &flow.config {
        let note = KeyNote { at: &flow.at, about: &flow.name, key, value: Some(value) };
        if let Some(hint) = noted_hint(key) {
            draft.note_key(note, hint);
        } else if matches!(key.as_str(), "failure.emails" | "notify.emails") {
            note_mails(flow, key, value, draft);
        } else if is_command(key) && !flow.nodes.iter().any(takes_command) {
            let note = KeyNote { value: None, ..note };
            draft.note_key(
                note,
                hint("each job here has a command of its own", "每个作业都有自己的命令"),
            );
        } else if value.contains("${") && !is_read(key) && !used.contains(key.as_str()) {
            let unused = hint(
                "it refers to other properties, and no command refers to it",
                "它引用其他属性,且没有命令引用它",
            );
            draft.note_key(note, unused);
        }
    }
    for (key, value) in flow.nodes.iter().filter(|n| n.is_last).flat_map(|n| &n.config) {
        if matches!(key.as_str(), "failure.emails" | "notify.emails") {
            note_mails(flow, key, value, draft);
        }
    }
}

/// Reports the parts of an address list that are not carried over.
fn note_mails(flow: &AzkabanFlow, key: &str, value: &str, draft: &mut Draft) {
    let words = value.split([',', ';']).map(str::trim).filter(|w| !w.is_empty());
    let bad: Vec<&str> = words.filter(|w| Recipient::parse(w).is_err()).collect();
    if !bad.is_empty() {
        let list = bad.join(", ");
        draft.note(
            Level::LeftOut,
            &flow.at,
            &flow.name,
            (
                format!("{key}: not written to, for these are no addresses: {list}"),
                format!("{key}:以下不是邮件地址,已忽略:{list}"),
            ),
            (
                "write addresses into notify_email of the group",
                "请在作业组的 notify_email 中填写地址",
            ),
        );
    }
    if key == "notify.emails" {
        draft.note(
            Level::Differs,
            &flow.at,
            &flow.name,
            (
                "notify.emails hears of success and failure there; notify_email tells of failures",
                "notify.emails 在原系统中通知成功与失败;notify_email 只通知失败",
            ),
            ("", ""),
        );
    }
}

fn is_command(key: &str) -> bool {
    key == "command" || key.starts_with("command.")
}

/// Whether a node, or one inside it, runs the command of its directory because it has none.
fn takes_command(node: &FlowNode) -> bool {
    let has_own = node.config.iter().any(|(key, _)| is_command(key));
    (node.kind == "command" && !has_own) || node.nodes.iter().any(takes_command)
}

fn is_read(key: &str) -> bool {
    READ.contains(&key) || key.starts_with("command.") || key.starts_with("env.")
}

/// Checks the properties of a job: those that are neither Azkaban's nor used by a text of the flow would be lost.
pub(super) fn check_node(node: &FlowNode, around: &FlowContext<'_>, draft: &mut Draft) {
    if !matches!(node.kind.as_str(), "command" | "noop" | "flow") {
        // A placeholder job that fails replaces it, including all of its properties.
        return;
    }
    let used = used_names(around.flow);
    for (key, value) in &node.config {
        let note = KeyNote { at: &node.at, about: &node.name, key, value: Some(value) };
        let is_mail = matches!(key.as_str(), "failure.emails" | "notify.emails");
        let of_command = key == "command"
            || key.starts_with("command.")
            || key.starts_with("env.")
            || key == "working.dir";
        if let Some(hint) = noted_hint(key) {
            draft.note_key(note, hint);
        } else if is_mail && !node.is_last {
            let last = hint(
                "Azkaban reads it of a flow's last job alone; notify_email of the job tells of its failure",
                "Azkaban 只读取流中最后一个作业的该属性;可用作业的 notify_email",
            );
            draft.note_key(note, last);
        } else if of_command && node.kind != "command" {
            draft.note_key(
                note,
                hint("only a job of type command has it", "只有 command 类型的作业有该属性"),
            );
        } else if key == "flow.name" && node.kind != "flow" {
            draft.note_key(
                note,
                hint("only a job of type flow has it", "只有 flow 类型的作业有该属性"),
            );
        } else if !is_read(key) && !used.contains(key.as_str()) {
            let note = KeyNote { at: &node.at, about: &node.name, key, value: None };
            let unused = hint(
                "no command here refers to it; a script that reads $JOB_PROP_FILE does not find it",
                "没有命令引用它;读取 $JOB_PROP_FILE 的脚本将找不到它",
            );
            draft.note_key(note, unused);
        }
    }
}

/// The names that texts of a flow reference as `${name}`.
fn used_names(flow: &AzkabanFlow) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&FlowNode> = flow.nodes.iter().collect();
    let mut texts: Vec<&str> = flow.config.iter().map(|(_, value)| value.as_str()).collect();
    while let Some(node) = open.pop() {
        texts.extend(node.config.iter().map(|(_, value)| value.as_str()));
        open.extend(&node.nodes);
    }
    for mut text in texts {
        while let Some((_, after)) = text.split_once("${") {
            let Some((name, rest)) = after.split_once('}') else { break };
            found.insert(name.trim());
            text = rest;
        }
    }
    found
}
