//! Reads DolphinScheduler's own tables, and converts them to the exports that it would write.

use crate::domain::source::DialectName;
use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerTables, TablePresence, WantedTable, WantedTables,
};
use crate::import::Given;
use crate::import::draft::Draft;
use crate::import::note::ImportOrigin;
use serde_json::{Map, Value, json};

const TASKS: &str = "t_ds_task_definition";
const SCHEDULES: &str = "t_ds_schedules";

/// The names of the workflow tables and of the column that references one: since 3.3, and before.
const WORKFLOWS: [WorkflowTables; 2] = [
    WorkflowTables {
        definitions: "t_ds_workflow_definition",
        relations: "t_ds_workflow_task_relation",
        code: "workflow_definition_code",
        version: "workflow_definition_version",
    },
    WorkflowTables {
        definitions: "t_ds_process_definition",
        relations: "t_ds_process_task_relation",
        code: "process_definition_code",
        version: "process_definition_version",
    },
];

struct WorkflowTables {
    definitions: &'static str,
    relations: &'static str,
    code: &'static str,
    version: &'static str,
}

const fn wanted(table: &'static str, presence: TablePresence) -> WantedTable {
    WantedTable { schema: "", table, order: &["id"], condition: "", presence }
}

/// The tables and columns read from its database.
pub(crate) const WANTED: WantedTables = WantedTables {
    system: "DolphinScheduler",
    dialects: &[DialectName::Mysql, DialectName::Postgres],
    tables: &[
        wanted(SCHEDULES, TablePresence::Needed),
        // 1.3 stores tasks inside the definition.
        wanted(TASKS, TablePresence::Optional),
        wanted("t_ds_process_definition", TablePresence::Optional),
        wanted("t_ds_process_task_relation", TablePresence::Optional),
        wanted("t_ds_workflow_definition", TablePresence::Optional),
        wanted("t_ds_workflow_task_relation", TablePresence::Optional),
    ],
    settings: &[],
};

/// Columns with enumerations stored as numbers, with their words in order.
const WORDS: [(&str, &[&str]); 12] = [
    ("release_state", &["OFFLINE", "ONLINE"]),
    ("flag", &["NO", "YES"]),
    ("task_priority", PRIORITIES),
    ("process_instance_priority", PRIORITIES),
    ("workflow_instance_priority", PRIORITIES),
    ("timeout_flag", &["CLOSE", "OPEN"]),
    ("timeout_notify_strategy", &["WARN", "FAILED", "WARNFAILED"]),
    ("failure_strategy", &["END", "CONTINUE"]),
    ("execution_type", &["PARALLEL", "SERIAL_WAIT", "SERIAL_DISCARD", "SERIAL_PRIORITY"]),
    ("condition_type", &["NONE", "JUDGE", "DELAY"]),
    ("task_execute_type", &["BATCH", "STREAM"]),
    ("warning_type", &["NONE", "SUCCESS", "FAILURE", "ALL", "GLOBAL"]),
];
const PRIORITIES: &[&str] = &["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"];

/// Reads the workflows of all projects.
pub(crate) fn read_tables(tables: &SchedulerTables, draft: &mut Draft) {
    let mut given = Vec::new();
    for of in &WORKFLOWS {
        for (at, row) in (1..).zip(tables.table_rows(of.definitions)) {
            let document = if row.value("process_definition_json").is_some() {
                old_export(row, tables)
            } else {
                export(row, of, tables)
            };
            let path = format!("{}:{}", of.definitions, row.number("id").unwrap_or(at));
            given.push(Given { path, bytes: document.to_string().into_bytes() });
        }
    }
    if given.is_empty() {
        draft.fault(
            &ImportOrigin::new(WORKFLOWS[1].definitions, 0),
            "there is no row in this table, and none in t_ds_workflow_definition",
            "name the database of DolphinScheduler in which its workflows are",
        );
        return;
    }
    super::read_exports(&given, draft);
}

/// The export of a workflow of 2.x and later.
fn export(row: &SchedulerRow, of: &WorkflowTables, tables: &SchedulerTables) -> Value {
    let code = row.trimmed_value("code");
    let is_own = |relation: &&SchedulerRow| {
        let version = relation.trimmed_value(of.version);
        relation.trimmed_value(of.code) == code
            && (version.is_empty() || version == row.trimmed_value("version"))
    };
    let relations: Vec<&SchedulerRow> =
        tables.table_rows(of.relations).iter().filter(is_own).collect();
    let names = |task: &&SchedulerRow| {
        let code = task.trimmed_value("code");
        let is_one =
            |column: &str| relations.iter().any(|relation| relation.trimmed_value(column) == code);
        is_one("post_task_code") || is_one("pre_task_code")
    };
    let tasks: Vec<Value> = tables.table_rows(TASKS).iter().filter(names).map(object).collect();
    let schedule = tables
        .table_rows(SCHEDULES)
        .iter()
        .find(|schedule| schedule.trimmed_value(of.code) == code);
    json!({
        "processDefinition": object(row),
        "processTaskRelationList": relations.iter().map(|relation| object(relation)).collect::<Vec<_>>(),
        "taskDefinitionList": tasks,
        "schedule": schedule.map(object),
    })
}

/// The export of a workflow of 1.3.
fn old_export(row: &SchedulerRow, tables: &SchedulerTables) -> Value {
    let mut made = json!({
        "processDefinitionName": row.trimmed_value("name"),
        "processDefinitionJson": row.trimmed_value("process_definition_json"),
    });
    let id = row.trimmed_value("id");
    let schedule = tables
        .table_rows(SCHEDULES)
        .iter()
        .find(|schedule| schedule.trimmed_value("process_definition_id") == id);
    if let Some(schedule) = schedule {
        for (key, column) in [
            ("scheduleCrontab", "crontab"),
            ("scheduleStartTime", "start_time"),
            ("scheduleEndTime", "end_time"),
            ("scheduleReleaseState", "release_state"),
            ("scheduleFailureStrategy", "failure_strategy"),
            ("scheduleWarningType", "warning_type"),
            ("scheduleWorkerGroupName", "worker_group"),
            ("scheduleProcessInstancePriority", "process_instance_priority"),
        ] {
            if let Some(text) = schedule.value(column) {
                made[key] = json!(in_words(column, text));
            }
        }
    }
    made
}

/// A row with the key names of exports: `taskParams` for `task_params`.
fn object(row: &SchedulerRow) -> Value {
    let mut made = Map::new();
    for (column, value) in &row.0 {
        let Some(value) = value else { continue };
        made.insert(camel(column), json!(in_words(column, value)));
    }
    Value::Object(made)
}

/// Converts a number to its word if the column is an enumeration.
fn in_words(column: &str, text: &str) -> String {
    let words = WORDS.iter().find(|(name, _)| *name == column).map(|(_, words)| *words);
    let word = words.zip(text.trim().parse::<usize>().ok());
    word.and_then(|(words, at)| words.get(at))
        .map_or_else(|| text.to_owned(), |word| (*word).to_owned())
}

fn camel(column: &str) -> String {
    let mut made = String::new();
    for (at, part) in column.split('_').enumerate() {
        let mut chars = part.chars();
        match chars.next() {
            Some(first) if at > 0 => made.extend(first.to_uppercase().chain(chars)),
            Some(first) => made.extend([first].into_iter().chain(chars)),
            None => {}
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_words_and_columns_are_keys() {
        for (column, text, wanted) in [
            ("task_priority", "0", "HIGHEST"),
            ("release_state", "1", "ONLINE"),
            ("release_state", "7", "7"),
            ("name", "1", "1"),
        ] {
            assert_eq!(in_words(column, text), wanted, "{column}: {text}");
        }
        assert_eq!(camel("fail_retry_times"), "failRetryTimes");
        assert_eq!(camel("code"), "code");
    }
}
