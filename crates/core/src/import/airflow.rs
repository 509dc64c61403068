//! Imports Airflow: each serialized DAG becomes a group, its tasks become jobs. The scheduler itself reads serialized
//! DAGs: they contain names, edges, timetables and the templates of operators, but no Python code.

pub(super) mod keys;
mod task;
mod template;
mod timetable;

use crate::definition::{NodeValue, SourceNode};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::job::{GroupFailurePolicy, JobDef, ParamDecl};
use crate::domain::source::DialectName;
use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerTables, TablePresence, WantedTable, WantedTables,
};
use crate::import::Given;
use crate::import::body::{is_parameter_name, text};
use crate::import::columns::refuse_empty;
use crate::import::draft::{Draft, LONGEST_SEC};
use crate::import::keys::check_keys;
use crate::import::note::{ImportOrigin, Level};
use crate::import::tally::CountedKind;
use crate::import::tree::{any, entries, get, items, list, origin, plain, tree, word};
use std::collections::{BTreeMap, HashMap};

const SERIALIZED: &str = "serialized_dag";
const DAGS: &str = "dag";
/// The year 2200, after which nothing fires.
const LAST_SEC: u64 = 7_258_204_800;
/// Maximum concurrency of a group; a higher number means no limit.
const PARALLEL_MAX: u32 = 10_000;

const fn wanted(table: &'static str) -> WantedTable {
    WantedTable {
        schema: "",
        table,
        order: &["dag_id"],
        condition: "",
        presence: TablePresence::Needed,
    }
}

/// The tables and columns read from Airflow's database.
pub(crate) const WANTED: WantedTables = WantedTables {
    system: "Airflow",
    dialects: &[DialectName::Mysql, DialectName::Postgres],
    tables: &[wanted(SERIALIZED), wanted(DAGS)],
    settings: &[],
};

/// Whether a DAG was active in Airflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// The table says that it was active.
    Runs,
    /// The table says that it was paused.
    Paused,
    /// A file does not say.
    Unknown,
}

/// A serialized DAG.
struct SerializedDag {
    at: ImportOrigin,
    id: String,
    /// The map of the DAG itself.
    dag: SourceNode,
    /// Defaults of its tasks that differ from Airflow's (3.1 and later).
    defaults: Option<SourceNode>,
    pause: Pause,
}

/// Imports files: serialized DAGs, or rows of `serialized_dag` as JSON.
pub(crate) fn read_serialized(given: &[Given], draft: &mut Draft) {
    let mut dags = Vec::new();
    for file in given {
        let Some(root) = text(file, draft).and_then(|text| tree(&file.path, text, draft)) else {
            continue;
        };
        let all = if matches!(root.value, NodeValue::List(_)) {
            list(&root)
        } else {
            std::slice::from_ref(&root)
        };
        for node in all {
            dags.extend(dag_of(node, Pause::Unknown, draft));
        }
    }
    import(&dags, draft);
}

/// Imports Airflow's own tables.
pub(crate) fn read_tables(tables: &SchedulerTables, draft: &mut Draft) {
    refuse_empty(
        tables,
        SERIALIZED,
        "name Airflow's database; the scheduler fills this table",
        draft,
    );
    let mut newest: BTreeMap<&str, (u64, &SchedulerRow)> = BTreeMap::new();
    for (at, row) in (1..).zip(tables.table_rows(SERIALIZED)) {
        // Airflow 3 stores every version of a DAG.
        let age = |row: &SchedulerRow| {
            [
                row.trimmed_value("created_at").to_owned(),
                row.trimmed_value("last_updated").to_owned(),
            ]
        };
        let known = newest.entry(row.trimmed_value("dag_id")).or_insert((at, row));
        if age(row) > age(known.1) {
            *known = (at, row);
        }
    }
    let mut dags = Vec::new();
    for (id, (at, row)) in newest {
        let origin = ImportOrigin::new(SERIALIZED, at);
        let Some(data) = row.value("data").filter(|data| !data.trim().is_empty()) else {
            draft.fault(
                &origin,
                format!("DAG {id}: its data is compressed"),
                "set [core] compress_serialized_dags = False, let the scheduler serialise it again, and import again",
            );
            continue;
        };
        let about = tables.table_rows(DAGS).iter().find(|dag| dag.trimmed_value("dag_id") == id);
        let pause = match about {
            Some(dag) if dag.is_true("is_paused") => Pause::Paused,
            Some(_) => Pause::Runs,
            None => Pause::Unknown,
        };
        let Some(node) = tree(&format!("{SERIALIZED}:{at}"), data, draft) else { continue };
        dags.extend(dag_of(&node, pause, draft));
    }
    import(&dags, draft);
}

/// Unwraps Airflow's encoding: `{"__type": "dict", "__var": …}`.
fn bare(node: &SourceNode) -> &SourceNode {
    match get(node, "__var") {
        Some(inner) if get(node, "__type").is_some() => bare(inner),
        _ => node,
    }
}

/// Reads a serialized DAG, or a row with one in `data`.
fn dag_of(node: &SourceNode, pause: Pause, draft: &mut Draft) -> Option<SerializedDag> {
    let at = origin(node);
    let fix = "give the column data of the table serialized_dag, or import with --url";
    if let Some(data) = get(node, "data") {
        check_keys(node, &[keys::ROW], word(node, "dag_id").unwrap_or_default(), draft);
        return match plain(data) {
            Some(text) => {
                let place = format!("{}:{} (JSON within a text)", data.at.file, data.at.line);
                let inner = tree(&place, text, draft)?;
                dag_of(&inner, pause, draft)
            }
            None => dag_of(data, pause, draft),
        };
    }
    let Some(dag) = get(node, "dag").map(bare) else {
        draft.fault(&at, "this is no serialised DAG: it has no key dag", fix);
        return None;
    };
    let id = any(dag, &["dag_id", "_dag_id"]).and_then(plain).unwrap_or_default().to_owned();
    if id.is_empty() {
        draft.fault(&at, "this DAG has no dag_id", fix);
        return None;
    }
    check_keys(node, &[keys::DOCUMENT], &id, draft);
    let defaults = get(node, "client_defaults").and_then(|all| get(all, "tasks")).cloned();
    Some(SerializedDag { at: origin(dag), id, dag: dag.clone(), defaults, pause })
}

fn import(dags: &[SerializedDag], draft: &mut Draft) {
    for dag in dags {
        if draft.is_first("DAG", &dag.id) {
            dag.import(dags.len() == 1, draft);
        } else {
            draft.fault(&dag.at, format!("DAG {} is there twice", dag.id), "give it once");
        }
    }
    draft.end_item();
    if draft.defs.jobs.is_empty() {
        return;
    }
    let whole =
        dags.first().map_or_else(ImportOrigin::default, |dag| ImportOrigin::new(&dag.at.file, 0));
    draft.note(
        Level::Look,
        &whole, "",
        (
            "serialised DAGs hold no connections and no arguments beside templates: each SQL task is one transaction here, \
             which is what autocommit=False means there",
            "序列化的 DAG 不含连接信息，也不含模板以外的参数：此处每个 SQL 任务为一个事务，相当于 autocommit=False",
        ),
        (
            "write transaction: none on tasks with autocommit=True",
            "autocommit=True 的任务请写 transaction: none",
        ),
    );
    if dags.iter().any(|dag| dag.pause == Pause::Unknown) {
        draft.note(
            Level::Look,
            &whole, "",
            (
                "whether Airflow had paused these DAGs is in its database and not in these files: their schedules are on",
                "这些文件不说明 DAG 是否已暂停（该信息在数据库中）：其调度均为启用",
            ),
            ("write manual: true on the others, or import with --url", "未启用的请写 manual: true，或用 --url 导入"),
        );
    }
}

impl SerializedDag {
    fn import(&self, is_only: bool, draft: &mut Draft) {
        let group = if is_only { draft.only_group(&self.id) } else { draft.group(&self.id) };
        draft.end_item();
        check_keys(&self.dag, &[keys::DAG], &self.id, draft);
        let plan = timetable::read(self, draft);
        self.fill_group(&group, draft);
        let tasks: Vec<&SourceNode> = items(&self.dag, "tasks").iter().map(bare).collect();
        if tasks.is_empty() {
            draft.fault(&self.at, format!("DAG {} has no tasks", self.id), "leave it out");
        }
        let mut jobs: HashMap<&str, JobDef> = HashMap::new();
        for task in &tasks {
            let id = word(task, "task_id").unwrap_or_default();
            draft.begin_item(CountedKind::Job, &origin(task), id);
            if jobs.insert(id, draft.job(&origin(task), &group, id, "NOOP")).is_some()
                || id.is_empty()
            {
                draft.fault(
                    &origin(task),
                    format!("task {id:?} is there twice, or has no name"),
                    "",
                );
            }
        }
        let codes: HashMap<&str, JobCode> =
            jobs.iter().map(|(id, job)| (*id, job.code.clone())).collect();
        for node in &tasks {
            let id = word(node, "task_id").unwrap_or_default();
            let Some(job) = jobs.remove(id) else { continue };
            draft.resume_job(&job.code);
            let task = task::Task { node, dag: self, data_day: plan.data_day };
            let job = task.fill(job, draft);
            draft.push(job);
        }
        draft.end_item();
        self.add_edges(&tasks, &codes, draft);
        plan.add(self, &group, draft);
    }

    fn add_edges(&self, tasks: &[&SourceNode], codes: &HashMap<&str, JobCode>, draft: &mut Draft) {
        for task in tasks {
            let Some(parent) = word(task, "task_id").and_then(|id| codes.get(id)) else { continue };
            let below = any(task, &["downstream_task_ids", "_downstream_task_ids"]).map(bare);
            for node in below.map(list).unwrap_or_default() {
                let id = plain(node).unwrap_or_default();
                match codes.get(id) {
                    Some(child) => draft.depends(child, parent, EdgeCondition::Success),
                    None => draft.fault(
                        &origin(node),
                        format!("DAG {}: task {id} is not there", self.id),
                        "take the serialised DAG whole",
                    ),
                }
            }
        }
    }

    fn fill_group(&self, group: &GroupCode, draft: &mut Draft) {
        let description = any(&self.dag, &["description", "_description"]).and_then(plain);
        let limit = any(&self.dag, &["max_active_tasks", "_max_active_tasks", "_concurrency"]);
        let limit = limit
            .and_then(plain)
            .and_then(|n| n.parse::<u32>().ok())
            .filter(|n| (1..=PARALLEL_MAX).contains(n));
        let timeout = get(&self.dag, "dagrun_timeout").and_then(|node| seconds(bare(node)));
        let timeout = timeout.map(|sec| draft.timeout(&self.at, &self.id, sec).min(LONGEST_SEC));
        let is_stopped =
            any(&self.dag, &["fail_fast", "fail_stop"]).and_then(plain) == Some("true");
        let params = self.declare_params(draft);
        let Some(made) = draft.group_mut(group) else { return };
        if let Some(description) = description {
            made.name = description
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .chars()
                .take(200)
                .collect();
        }
        made.max_parallel = limit;
        made.batch_timeout_sec = timeout;
        made.params = params;
        if is_stopped {
            made.on_failure = GroupFailurePolicy::Stop;
        }
    }

    /// The parameters of every batch. `${` is escaped, because it is a reference in a definition.
    fn declare_params(&self, draft: &mut Draft) -> Vec<ParamDecl> {
        let mut made = Vec::new();
        for (name, value) in default_params(&self.dag) {
            if !is_parameter_name(&name) {
                draft.note(
                    Level::LeftOut,
                    &self.at,
                    &self.id,
                    (
                        format!("parameter {name:?} cannot have that name here"),
                        format!("参数 {name:?} 在此处不能使用该名称"),
                    ),
                    (
                        "use ASCII letters, digits and '_', the first no digit",
                        "请使用 ASCII 字母、数字和 '_'，首字符不能是数字",
                    ),
                );
                continue;
            }
            let is_plain = !value.as_deref().unwrap_or_default().contains("${");
            if !is_plain {
                draft.note(
                    Level::LeftOut,
                    &self.at, &self.id,
                    (
                        format!("the default of parameter {name} has ${{, which would mean something here"),
                        format!("参数 {name} 的默认值含有 ${{，在此处有特殊含义"),
                    ),
                    (
                        format!("give it to each batch: --param {name}=…"),
                        format!("请在每个批次给出：--param {name}=…"),
                    ),
                );
            }
            made.push(ParamDecl {
                value: value.filter(|_| is_plain),
                ..ParamDecl::plain(&name, "")
            });
        }
        made
    }
}

/// Parameters of a DAG or task with their defaults: a map (2.x), or a list of pairs.
fn default_params(node: &SourceNode) -> Vec<(String, Option<String>)> {
    let Some(node) = get(node, "params").map(bare) else { return Vec::new() };
    let default = |node: &SourceNode| {
        let node = bare(node);
        get(node, "default").map(bare).or(Some(node)).and_then(plain).map(str::to_owned)
    };
    match &node.value {
        NodeValue::List(pairs) => pairs
            .iter()
            .filter_map(|pair| {
                let [name, value] = list(bare(pair)) else { return None };
                Some((plain(name)?.to_owned(), default(value)))
            })
            .collect(),
        NodeValue::Map(_) => {
            entries(node).map(|(name, value)| (name.to_owned(), default(value))).collect()
        }
        NodeValue::Null | NodeValue::Text(_) => Vec::new(),
    }
}

/// Whole seconds of a timedelta, or since 1970.
fn seconds(node: &SourceNode) -> Option<u64> {
    let text = plain(bare(node))?.trim();
    let whole = text.split('.').next()?;
    whole.parse().ok().filter(|sec| *sec <= LAST_SEC)
}
