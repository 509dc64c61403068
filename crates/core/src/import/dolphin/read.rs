//! Reads the exports of versions 1.3, 2.x and 3.x into one form.

use super::keys;
use crate::definition::{NodeValue, SourceNode};
use crate::import::draft::Draft;
use crate::import::keys::{KeyNote, KnownKey, check_keys, hint};
use crate::import::note::ImportOrigin;
use crate::import::tree::{any, get, items, list, number, origin, plain, tree, word};

/// A workflow.
pub(super) struct Workflow {
    pub(super) at: ImportOrigin,
    /// Code of the workflow; before codes existed, its name.
    pub(super) key: String,
    pub(super) name: String,
    /// Names and values of the global parameters.
    pub(super) params: Vec<(String, String)>,
    pub(super) timeout_min: i64,
    /// PARALLEL, SERIAL_WAIT, SERIAL_DISCARD, SERIAL_PRIORITY.
    pub(super) execution: String,
    pub(super) tasks: Vec<DolphinTask>,
    pub(super) schedule: Option<Scheduled>,
}

/// A map of the source, and its permitted keys.
pub(super) struct KnownKeyMap {
    pub(super) node: SourceNode,
    pub(super) keys: &'static [KnownKey],
}

/// A task with the keys of its predecessors.
pub(super) struct DolphinTask {
    pub(super) at: ImportOrigin,
    pub(super) key: String,
    pub(super) name: String,
    pub(super) kind: String,
    /// The parameters of its task type; a map.
    pub(super) params: SourceNode,
    pub(super) is_active: bool,
    pub(super) priority: String,
    pub(super) retries: i64,
    pub(super) retry_min: i64,
    /// Minutes, and whether a time-out fails the task or only sends a warning.
    pub(super) timeout: Option<(i64, String)>,
    pub(super) delay_min: i64,
    pub(super) worker: String,
    pub(super) parents: Vec<String>,
    pub(super) source: KnownKeyMap,
}

/// The schedule of a workflow.
pub(super) struct Scheduled {
    pub(super) at: ImportOrigin,
    pub(super) cron: String,
    pub(super) zone: Option<String>,
    pub(super) start: Option<String>,
    pub(super) end: Option<String>,
    pub(super) is_on: bool,
    /// CONTINUE or END.
    pub(super) failure: String,
    pub(super) source: KnownKeyMap,
}

/// The workflows of a file.
pub(super) fn flows(path: &str, text: &str, draft: &mut Draft) -> Vec<Workflow> {
    let Some(root) = tree(path, text, draft) else { return Vec::new() };
    let all: Vec<&SourceNode> = match &root.value {
        NodeValue::List(items) => items.iter().collect(),
        NodeValue::Map(_) | NodeValue::Null | NodeValue::Text(_) => vec![&root],
    };
    let mut found = Vec::new();
    for one in all {
        if let Some(old) = get(one, "processDefinitionJson") {
            found.extend(old_flow(one, old, draft));
        } else if let Some(head) = any(one, &["processDefinition", "workflowDefinition"]) {
            found.extend(new_flow(one, head, draft));
        } else {
            let what = "this is no workflow that DolphinScheduler exported: it has neither \
                        processDefinition, workflowDefinition nor processDefinitionJson";
            draft.fault(&origin(one), what, "export it there: Workflow Definition, Export");
        }
    }
    found
}

/// A value that some versions write as JSON inside a text.
fn inner(node: &SourceNode, draft: &mut Draft) -> Option<SourceNode> {
    match &node.value {
        NodeValue::Text(text) if text.trim().is_empty() => None,
        NodeValue::Text(text) => {
            let place = format!("{}:{} (JSON within a text)", node.at.file, node.at.line);
            tree(&place, text, draft)
        }
        NodeValue::Map(_) | NodeValue::List(_) => Some(node.clone()),
        NodeValue::Null => None,
    }
}

fn text_of(node: &SourceNode, key: &str) -> String {
    word(node, key).unwrap_or_default().trim().to_owned()
}

fn global_params(node: Option<&SourceNode>, draft: &mut Draft) -> Vec<(String, String)> {
    let Some(found) = node.and_then(|n| inner(n, draft)) else { return Vec::new() };
    let mut made = Vec::new();
    for one in list(&found) {
        let name = text_of(one, "prop");
        check_keys(one, &[keys::PARAM], &name, draft);
        if text_of(one, "direct") == "OUT" {
            let at = origin(one);
            let note = KeyNote { at: &at, about: &name, key: "direct", value: Some("OUT") };
            draft.note_key(
                note,
                hint("parameters of a group are given, here", "此处作业组的参数只作输入"),
            );
        }
        if !name.is_empty() {
            made.push((name, text_of(one, "value")));
        }
    }
    made
}

fn new_flow(one: &SourceNode, head: &SourceNode, draft: &mut Draft) -> Option<Workflow> {
    let at = origin(head);
    let name = text_of(head, "name");
    if name.is_empty() {
        draft.fault(&at, "this workflow has no name", "export it anew");
        return None;
    }
    check_keys(one, &[keys::EXPORT], &name, draft);
    check_keys(head, &[keys::WORKFLOW], &name, draft);
    let params = any(head, &["globalParamList", "globalParams"]);
    let params = global_params(params, draft);
    let mut tasks: Vec<DolphinTask> = Vec::new();
    for task in items(one, "taskDefinitionList") {
        tasks.extend(new_task(task, draft));
    }
    let relations = any(one, &["processTaskRelationList", "workflowTaskRelationList"]);
    for edge in relations.map(list).unwrap_or_default() {
        check_keys(edge, &[keys::RELATION], &name, draft);
        let (pre, post) = (text_of(edge, "preTaskCode"), text_of(edge, "postTaskCode"));
        let knows = |key: &str| tasks.iter().any(|t| t.key == key);
        let missing = [&pre, &post].into_iter().find(|k| !knows(k) && k.as_str() != "0");
        if let Some(missing) = missing {
            let what =
                format!("workflow {name}: a relation names task {missing}, which is not there");
            draft.fault(&origin(edge), what, "export it anew, or take the relation out");
            continue;
        }
        if pre != "0" && !pre.is_empty() {
            let child = tasks.iter_mut().find(|t| t.key == post);
            child.into_iter().for_each(|t| t.parents.push(pre.clone()));
        }
    }
    let schedule = get(one, "schedule").and_then(|s| scheduled(s, draft));
    let code = text_of(head, "code");
    Some(Workflow {
        key: if code.is_empty() { name.clone() } else { code },
        at,
        name,
        params,
        timeout_min: number(head, "timeout", draft).unwrap_or(0),
        execution: text_of(head, "executionType"),
        tasks,
        schedule,
    })
}

fn new_task(task: &SourceNode, draft: &mut Draft) -> Option<DolphinTask> {
    let at = origin(task);
    let (key, name) = (text_of(task, "code"), text_of(task, "name"));
    if key.is_empty() || name.is_empty() {
        draft.fault(&at, "this task has no code or no name", "export the workflow anew");
        return None;
    }
    let params = get(task, "taskParams").and_then(|p| inner(p, draft));
    let is_timed = text_of(task, "timeoutFlag") == "OPEN";
    let limit = number(task, "timeout", draft).filter(|_| is_timed);
    Some(DolphinTask {
        params: params.unwrap_or_else(|| SourceNode {
            at: task.at.clone(),
            value: NodeValue::Map(Vec::new()),
        }),
        key,
        name,
        kind: text_of(task, "taskType").to_ascii_uppercase(),
        is_active: text_of(task, "flag") != "NO",
        priority: text_of(task, "taskPriority"),
        retries: number(task, "failRetryTimes", draft).unwrap_or(0),
        retry_min: number(task, "failRetryInterval", draft).unwrap_or(0),
        timeout: limit.map(|minutes| (minutes, text_of(task, "timeoutNotifyStrategy"))),
        delay_min: number(task, "delayTime", draft).unwrap_or(0),
        worker: text_of(task, "workerGroup"),
        parents: Vec::new(),
        source: KnownKeyMap { node: task.clone(), keys: keys::TASK },
        at,
    })
}

fn scheduled(node: &SourceNode, draft: &mut Draft) -> Option<Scheduled> {
    let cron = text_of(node, "crontab");
    let found = Scheduled {
        at: origin(node),
        zone: word(node, "timezoneId").map(|z| z.trim().to_owned()).filter(|z| !z.is_empty()),
        start: moment(&text_of(node, "startTime")),
        end: moment(&text_of(node, "endTime")),
        is_on: text_of(node, "releaseState") == "ONLINE",
        failure: text_of(node, "failureStrategy"),
        source: KnownKeyMap { node: node.clone(), keys: keys::SCHEDULE },
        cron,
    };
    if found.cron.is_empty() {
        draft.fault(&found.at, "this schedule has no crontab", "export the workflow anew");
        return None;
    }
    Some(found)
}

/// Parses `2024-01-01 00:00:00` to `2024-01-01T00:00:00`; milliseconds since 1970 are not supported.
fn moment(text: &str) -> Option<String> {
    let made = text.replacen(' ', "T", 1);
    let made = made.split(['.', '+', 'Z']).next().unwrap_or_default();
    (made.len() == 19 && made.contains('T')).then(|| made.to_owned())
}

/// The form of 1.3: tasks with the names of their predecessors.
fn old_flow(one: &SourceNode, json: &SourceNode, draft: &mut Draft) -> Option<Workflow> {
    let at = origin(one);
    let name = text_of(one, "processDefinitionName");
    let name = if name.is_empty() { text_of(one, "name") } else { name };
    let body = inner(json, draft)?;
    if name.is_empty() {
        draft.fault(&at, "this workflow has no name", "export it anew");
        return None;
    }
    let mut tasks = Vec::new();
    for task in items(&body, "tasks") {
        let title = text_of(task, "name");
        let limit = get(task, "timeout").filter(|t| word(t, "enable") == Some("true"));
        let limit =
            limit.map(|t| (number(t, "interval", draft).unwrap_or(0), text_of(t, "strategy")));
        let before = get(task, "preTasks").and_then(|p| inner(p, draft));
        let before = before.as_ref().map(list).unwrap_or_default();
        let mut params = get(task, "params").cloned().unwrap_or_else(|| SourceNode {
            at: task.at.clone(),
            value: NodeValue::Map(Vec::new()),
        });
        // In 2.x this is among the parameters, in 1.3 beside them.
        if let NodeValue::Map(entries) = &mut params.value
            && let NodeValue::Map(own) = &task.value
        {
            let keys = ["dependence", "conditionResult", "switchResult"];
            entries.extend(own.iter().filter(|(k, _)| keys.contains(&k.value.as_str())).cloned());
        }
        tasks.push(DolphinTask {
            at: at.clone(),
            key: title.clone(),
            name: title,
            kind: text_of(task, "type").to_ascii_uppercase(),
            params,
            is_active: text_of(task, "runFlag") != "FORBIDDEN",
            priority: text_of(task, "taskInstancePriority"),
            retries: number(task, "maxRetryTimes", draft).unwrap_or(0),
            retry_min: number(task, "retryInterval", draft).unwrap_or(0),
            timeout: limit,
            delay_min: number(task, "delayTime", draft).unwrap_or(0),
            worker: text_of(task, "workerGroup"),
            parents: before.iter().filter_map(plain).map(str::to_owned).collect(),
            source: KnownKeyMap { node: task.clone(), keys: keys::OLD_TASK },
        });
    }
    let schedule = old_schedule(one);
    if schedule.is_none() {
        check_keys(one, &[keys::OLD_EXPORT], &name, draft);
    }
    check_keys(&body, &[keys::OLD_WORKFLOW], &name, draft);
    Some(Workflow {
        at,
        key: name.clone(),
        name,
        params: global_params(get(&body, "globalParams"), draft),
        timeout_min: number(&body, "timeout", draft).unwrap_or(0),
        execution: String::new(),
        tasks,
        schedule,
    })
}

fn old_schedule(one: &SourceNode) -> Option<Scheduled> {
    let cron = text_of(one, "scheduleCrontab");
    (!cron.is_empty()).then(|| Scheduled {
        at: origin(one),
        cron,
        zone: None,
        start: moment(&text_of(one, "scheduleStartTime")),
        end: moment(&text_of(one, "scheduleEndTime")),
        is_on: text_of(one, "scheduleReleaseState") == "ONLINE",
        failure: text_of(one, "scheduleFailureStrategy"),
        source: KnownKeyMap { node: one.clone(), keys: keys::OLD_EXPORT },
    })
}
