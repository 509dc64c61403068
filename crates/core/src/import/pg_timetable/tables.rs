//! Reads pg_timetable's own tables, since 4.0: their rows are converted to the maps of its YAML, and one reader reads
//! both.

use crate::definition::{Located, NodeValue, SourceNode, SourcePlace, parse};
use crate::domain::schedule::read_zone;
use crate::domain::source::DialectName;
use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerTables, TablePresence, WantedTable, WantedTables,
};
use crate::import::columns::{RowPlace, check_columns, refuse_empty, row_origin};
use crate::import::draft::Draft;
use crate::import::keys::{KnownKey, read_key};
use crate::import::live_zone::read_zone_word;
use crate::import::note::{ImportOrigin, Level};
use crate::import::tally::CountedKind;
use std::sync::Arc;

const CHAINS: &str = "timetable.chain";
const TASKS: &str = "timetable.task";
const PARAMETERS: &str = "timetable.parameter";
const COMMANDS: &str = "timetable.command";

const fn wanted(table: &'static str, order: &'static [&'static str]) -> WantedTable {
    WantedTable {
        schema: "timetable",
        table,
        order,
        condition: "",
        presence: TablePresence::Needed,
    }
}

/// The tables and columns read from the database with the schema timetable.
pub(crate) const WANTED: WantedTables = WantedTables {
    system: "pg_timetable",
    dialects: &[DialectName::Postgres],
    tables: &[
        wanted("chain", &["chain_id"]),
        wanted("task", &["task_id"]),
        wanted("parameter", &["task_id", "order_id"]),
        WantedTable { presence: TablePresence::Optional, ..wanted("command", &["command_id"]) },
    ],
    settings: &[],
};

/// Columns of a chain, each with its key in YAML.
const CHAIN_NAMES: [(&str, &str); 9] = [
    ("chain_name", "name"),
    ("run_at", "schedule"),
    ("max_instances", "max_instances"),
    ("timeout", "timeout"),
    ("live", "live"),
    ("self_destruct", "self_destruct"),
    ("exclusive_execution", "exclusive"),
    ("client_name", "client_name"),
    ("on_error", "on_error"),
];

/// Columns of a task, each with its key in YAML.
const TASK_NAMES: [(&str, &str); 8] = [
    ("task_name", "name"),
    ("kind", "kind"),
    ("command", "command"),
    ("run_as", "run_as"),
    ("database_connection", "connect_string"),
    ("ignore_error", "ignore_error"),
    ("autonomous", "autonomous"),
    ("timeout", "timeout"),
];

/// Columns of `timetable.chain`.
pub(in crate::import) const CHAIN_COLUMNS: &[KnownKey] = &[
    read_key("chain_id"),
    read_key("chain_name"),
    read_key("run_at"),
    read_key("max_instances"),
    read_key("timeout"),
    read_key("live"),
    read_key("self_destruct"),
    read_key("exclusive_execution"),
    read_key("client_name"),
    read_key("on_error"),
    read_key("run_at_time_zone"),
];

/// Columns of `timetable.task`.
pub(in crate::import) const TASK_COLUMNS: &[KnownKey] = &[
    read_key("task_id"),
    read_key("chain_id"),
    read_key("task_order"),
    read_key("task_name"),
    read_key("kind"),
    read_key("command"),
    read_key("run_as"),
    read_key("database_connection"),
    read_key("ignore_error"),
    read_key("autonomous"),
    read_key("timeout"),
];

/// Columns of `timetable.parameter`.
pub(in crate::import) const PARAMETER_COLUMNS: &[KnownKey] =
    &[read_key("task_id"), read_key("order_id"), read_key("value")];

/// Imports the chains of a database.
pub(crate) fn read_chains(tables: &SchedulerTables, draft: &mut Draft) {
    if tables.tables.iter().any(|table| table.name == COMMANDS) {
        let fix = "update pg_timetable to 4.0 or later, which changes its tables, and import again";
        draft.fault(
            &ImportOrigin::new(COMMANDS, 0),
            "these are tables of a pg_timetable before 4.0",
            fix,
        );
        return;
    }
    refuse_empty(tables, CHAINS, "add chains, or name the database in which they are", draft);
    let has_zones = tables
        .tables
        .iter()
        .any(|table| table.name == CHAINS && table.columns.iter().any(|c| c == "run_at_time_zone"));
    let server_zone = tables.server.zone.as_deref().and_then(read_zone_word);
    if !has_zones && draft.asked.zone.is_none() {
        draft.asked.zone = server_zone;
        note_server_zone(draft);
    }
    for row in tables.table_rows(CHAINS) {
        let at = row_origin(CHAINS, row.number("chain_id").unwrap_or(0));
        let about = row.trimmed_value("chain_name");
        check_columns(row, CHAIN_COLUMNS, RowPlace { at: &at, about }, draft);
        let tasks = tasks_of(row, tables, draft);
        if tasks.is_empty() {
            draft.begin_item(CountedKind::Schedule, &at, about);
            draft.note(
                Level::LeftOut,
                &at,
                about,
                (
                    "it has no tasks, so it does nothing, there, too",
                    "它没有任务,原系统中也不做任何事",
                ),
                ("", ""),
            );
            draft.end_item();
            continue;
        }
        let mut entries = named(row, &CHAIN_NAMES, &place(&at));
        let list = SourceNode { at: place(&at), value: NodeValue::List(tasks) };
        entries.push((Located::new(&place(&at), "tasks".to_owned()), list));
        let group =
            super::chain(&SourceNode { at: place(&at), value: NodeValue::Map(entries) }, draft);
        if let Some(group) = group
            && has_zones
            && draft.asked.zone.is_none()
        {
            set_zone(row, &at, &group, draft);
        }
    }
    note_tasks_without_chain(tables, draft);
}

fn note_server_zone(draft: &mut Draft) {
    let name = draft.asked.zone.map_or("UTC", |zone| zone.name());
    draft.note(
        Level::Look,
        &ImportOrigin::new(CHAINS, 0), name,
        (
            format!("pg_timetable goes by the time zone of its PostgreSQL server: times here are in {name}, as the server's \
                     database or log_timezone says"),
            format!("pg_timetable 使用其 PostgreSQL 服务器的时区:此处按数据库设置或 log_timezone,即 {name}"),
        ),
        (
            "import again with --zone, such as --zone Asia/Shanghai, if SHOW timezone says another there",
            "如 SHOW timezone 不同,请加 --zone 重新导入,例如 --zone Asia/Shanghai",
        ),
    );
}

/// The time zone of a chain, if its release has such a column.
fn set_zone(
    row: &SchedulerRow,
    at: &ImportOrigin,
    group: &crate::domain::id::GroupCode,
    draft: &mut Draft,
) {
    let word = row.trimmed_value("run_at_time_zone");
    let zone = read_zone(word).ok();
    if let Some(made) = draft.group_mut(group) {
        made.time_zone = zone.map(|zone| zone.name().to_owned());
    }
    if zone.is_none() {
        draft.note(
            Level::Look,
            at,
            row.trimmed_value("chain_name"),
            (
                format!(
                    "run_at_time_zone {word:?} is no zone that is known here: its times are in UTC"
                ),
                format!("run_at_time_zone {word:?} 无法识别:其时间按 UTC 计"),
            ),
            ("write time_zone in its group", "请在其作业组中填写 time_zone"),
        );
    }
}

fn place(at: &ImportOrigin) -> SourcePlace {
    SourcePlace::new(&Arc::from(at.file.as_str()), u32::try_from(at.line).unwrap_or(0))
}

/// The values of a row under the keys of the YAML.
fn named(
    row: &SchedulerRow,
    names: &[(&str, &str)],
    at: &SourcePlace,
) -> Vec<(Located<String>, SourceNode)> {
    let all = names.iter().filter_map(|(column, key)| Some((*key, row.value(column)?)));
    all.map(|(key, value)| (Located::new(at, key.to_owned()), SourceNode::from_text(at, value)))
        .collect()
}

/// The tasks of a chain in order, with their parameters.
fn tasks_of(chain: &SchedulerRow, tables: &SchedulerTables, draft: &mut Draft) -> Vec<SourceNode> {
    let id = chain.trimmed_value("chain_id");
    let mut rows: Vec<&SchedulerRow> =
        tables.table_rows(TASKS).iter().filter(|row| row.trimmed_value("chain_id") == id).collect();
    let order =
        |row: &SchedulerRow| row.trimmed_value("task_order").parse::<f64>().unwrap_or(f64::MAX);
    rows.sort_by(|a, b| order(a).total_cmp(&order(b)));
    rows.into_iter().map(|row| task_node(row, tables, draft)).collect()
}

fn task_node(row: &SchedulerRow, tables: &SchedulerTables, draft: &mut Draft) -> SourceNode {
    let at = row_origin(TASKS, row.number("task_id").unwrap_or(0));
    check_columns(
        row,
        TASK_COLUMNS,
        RowPlace { at: &at, about: row.trimmed_value("task_name") },
        draft,
    );
    let mut entries = named(row, &TASK_NAMES, &place(&at));
    let mut parameters = Vec::new();
    let own =
        |other: &&SchedulerRow| other.trimmed_value("task_id") == row.trimmed_value("task_id");
    for parameter in tables.table_rows(PARAMETERS).iter().filter(own) {
        let about = row.trimmed_value("task_name");
        check_columns(parameter, PARAMETER_COLUMNS, RowPlace { at: &at, about }, draft);
        let text = parameter.value("value").unwrap_or("null");
        if let Some(node) = parse(&Arc::from(PARAMETERS), text, &mut draft.report) {
            parameters.push(moved(node, &place(&at)));
        }
    }
    if !parameters.is_empty() {
        let list = SourceNode { at: place(&at), value: NodeValue::List(parameters) };
        entries.push((Located::new(&place(&at), "parameters".to_owned()), list));
    }
    SourceNode { at: place(&at), value: NodeValue::Map(entries) }
}

/// The same tree with the place of its row.
fn moved(node: SourceNode, at: &SourcePlace) -> SourceNode {
    let value = match node.value {
        NodeValue::List(items) => {
            NodeValue::List(items.into_iter().map(|item| moved(item, at)).collect())
        }
        NodeValue::Map(entries) => NodeValue::Map(
            entries
                .into_iter()
                .map(|(key, value)| (Located::new(at, key.value), moved(value, at)))
                .collect(),
        ),
        other => other,
    };
    SourceNode { at: at.clone(), value }
}

/// Reports tasks without a chain, which pg_timetable never runs.
fn note_tasks_without_chain(tables: &SchedulerTables, draft: &mut Draft) {
    let known = |row: &SchedulerRow| {
        let id = row.trimmed_value("chain_id");
        tables.table_rows(CHAINS).iter().any(|chain| chain.trimmed_value("chain_id") == id)
    };
    for row in tables.table_rows(TASKS).iter().filter(|row| !known(row)) {
        let at = row_origin(TASKS, row.number("task_id").unwrap_or(0));
        let name = row.trimmed_value("task_name");
        let title = if name.is_empty() {
            format!("task_{}", row.trimmed_value("task_id"))
        } else {
            name.to_owned()
        };
        draft.begin_item(CountedKind::Job, &at, &title);
        draft.note(
            Level::LeftOut,
            &at,
            &title,
            (
                "it belongs to no chain, so it never runs, there, too",
                "它不属于任何链,原系统中也不会运行",
            ),
            ("", ""),
        );
    }
    draft.end_item();
}
