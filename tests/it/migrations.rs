//! The three migration folders say the same: read back from the catalogue of each database.

use crate::util::{query, with_scratch};
use procession::db::migrate::known;
use procession::domain::source::DialectName;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Names that operators write into their own queries: the columns the spec fixes.
const CONTRACT: &[(&str, &[&str])] = &[
    (
        "job_def",
        &[
            "job_id",
            "job_code",
            "job_name",
            "proc_name",
            "job_type",
            "schedule_time",
            "status",
            "timeout_sec",
            "retry_count",
            "notify_email",
            "is_depend",
            "is_active",
            "last_run_time",
            "next_run_time",
            "create_time",
            "update_time",
        ],
    ),
    ("job_dependency", &["id", "job_code", "depends_on", "dependency_order"]),
    (
        "job_queue",
        &[
            "queue_id",
            "batch_no",
            "job_code",
            "status",
            "try_count",
            "error_message",
            "create_time",
            "update_time",
        ],
    ),
    (
        "job_execution_logs",
        &[
            "log_id",
            "queue_id",
            "start_time",
            "end_time",
            "status",
            "error_message",
            "duration",
            "duration_ms",
            "notify_status",
            "retry_count",
        ],
    ),
    (
        "email_notifications",
        &[
            "id",
            "recipient_email",
            "subject",
            "body",
            "status",
            "send_time",
            "created_at",
            "updated_at",
            "fail_reason",
            "type",
            "retry_count",
            "is_system",
        ],
    ),
];

/// Unique keys, indexes, references and defaults that the spec fixes.
const CONTRACT_RULES: &[&str] = &[
    "unique job_def (group_code,job_code)",
    "unique job_dependency (group_code,job_code,depends_on)",
    "unique job_queue (batch_id,job_code)",
    "reference job_execution_logs (queue_id) to job_queue (queue_id)",
    "default job_def.timeout_sec = 1800",
    "default job_def.retry_count = 0",
    "default job_def.is_depend = 0",
    "default job_def.is_active = 1",
    "default job_dependency.dependency_order = 0",
    "default job_queue.try_count = 0",
    "default job_execution_logs.retry_count = 0",
    "default email_notifications.retry_count = 0",
    "default email_notifications.is_system = 0",
    "default job_execution_logs.notify_status = UNNOTIFIED",
    "default email_notifications.status = pending",
];

/// What each column holds, by `table.column`: migrations/columns.txt, from which docs/schema.md is written.
pub(crate) fn column_meanings() -> BTreeMap<String, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/columns.txt");
    let text = std::fs::read_to_string(file).expect("migrations/columns.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut found = BTreeMap::new();
    for line in lines {
        let (column, meaning) = line.split_once(": ").expect("table.column: what it holds");
        assert!(meaning.len() > 2, "{line}");
        let before = found.insert(column.to_owned(), meaning.to_owned());
        assert!(before.is_none(), "{column} has two lines");
    }
    found
}

/// What a catalogue says, one sentence per fact.
struct Catalogue {
    /// Facts that all three can tell, in words that are equal where the meaning is.
    common: BTreeSet<String>,
    /// Widths and names of constraints, which SQLite does not keep.
    servers: BTreeSet<String>,
}

// --- reading the catalogues --------------------------------------------------------------------------

/// Table, place, column, type, `1` for NOT NULL, default.
fn columns_sql(dialect: DialectName) -> &'static str {
    match dialect {
        DialectName::Sqlite => {
            "SELECT m.name, c.cid + 1, c.name, lower(c.type), c.\"notnull\" OR c.pk > 0, c.dflt_value \
             FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE m.type = 'table'"
        }
        DialectName::Mysql => {
            "SELECT table_name, ordinal_position, column_name, CASE data_type \
             WHEN 'varchar' THEN CONCAT('varchar(', character_maximum_length, ')') \
             WHEN 'datetime' THEN CONCAT('datetime(', datetime_precision, ')') \
             WHEN 'decimal' THEN CONCAT('decimal(', numeric_precision, ', ', numeric_scale, ')') \
             ELSE data_type END, \
             is_nullable = 'NO', column_default \
             FROM information_schema.columns WHERE table_schema = DATABASE()"
        }
        DialectName::Postgres => {
            "SELECT table_name, ordinal_position, column_name, CASE data_type \
             WHEN 'character varying' THEN 'varchar(' || character_maximum_length || ')' \
             WHEN 'timestamp with time zone' THEN 'timestamptz(' || datetime_precision || ')' \
             WHEN 'numeric' THEN 'decimal(' || numeric_precision || ', ' || numeric_scale || ')' \
             ELSE data_type END, \
             CASE is_nullable WHEN 'NO' THEN 1 ELSE 0 END, column_default \
             FROM information_schema.columns WHERE table_schema = 'public'"
        }
    }
}

/// Table, name, `primary`, `unique` or `index`, columns in order.
fn indexes_sql(dialect: DialectName) -> &'static str {
    match dialect {
        // A key of one whole number is the row's number and has no index of its own.
        DialectName::Sqlite => {
            "SELECT m.name, i.name, \
             CASE WHEN i.origin = 'pk' THEN 'primary' WHEN i.\"unique\" THEN 'unique' ELSE 'index' END, \
             (SELECT group_concat(c.name) FROM (SELECT name FROM pragma_index_info(i.name) \
             ORDER BY seqno) c) \
             FROM sqlite_master m, pragma_index_list(m.name) i WHERE m.type = 'table' \
             UNION ALL SELECT m.name, 'rowid', 'primary', c.name \
             FROM sqlite_master m, pragma_table_info(m.name) c \
             WHERE m.type = 'table' AND c.pk > 0 AND NOT EXISTS \
             (SELECT 1 FROM pragma_index_list(m.name) i WHERE i.origin = 'pk')"
        }
        DialectName::Mysql => {
            "SELECT table_name, index_name, CASE WHEN index_name = 'PRIMARY' THEN 'primary' \
             WHEN non_unique = 0 THEN 'unique' ELSE 'index' END, \
             GROUP_CONCAT(column_name ORDER BY seq_in_index) \
             FROM information_schema.statistics WHERE table_schema = DATABASE() \
             GROUP BY table_name, index_name, non_unique"
        }
        DialectName::Postgres => {
            "SELECT t.relname, i.relname, CASE WHEN x.indisprimary THEN 'primary' \
             WHEN x.indisunique THEN 'unique' ELSE 'index' END, \
             (SELECT string_agg(a.attname, ',' ORDER BY k.n) \
             FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k(num, n) \
             JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.num) \
             FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid \
             JOIN pg_class i ON i.oid = x.indexrelid \
             WHERE t.relnamespace = 'public'::regnamespace"
        }
    }
}

/// Table, column, table referred to, column referred to.
fn references_sql(dialect: DialectName) -> &'static str {
    match dialect {
        DialectName::Sqlite => {
            "SELECT m.name, f.\"from\", f.\"table\", f.\"to\" \
             FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'"
        }
        DialectName::Mysql => {
            "SELECT table_name, column_name, referenced_table_name, referenced_column_name \
             FROM information_schema.key_column_usage \
             WHERE table_schema = DATABASE() AND referenced_table_name IS NOT NULL"
        }
        DialectName::Postgres => {
            "SELECT k.table_name, k.column_name, u.table_name, u.column_name \
             FROM information_schema.referential_constraints r \
             JOIN information_schema.key_column_usage k ON k.constraint_name = r.constraint_name \
             JOIN information_schema.constraint_column_usage u \
             ON u.constraint_name = r.constraint_name"
        }
    }
}

async fn rows(url: &str, sql: &str) -> Vec<Vec<String>> {
    let text = |value: Option<String>| value.unwrap_or_else(|| "NULL".to_owned());
    let rows = query(url, sql).await;
    let rows = rows.into_iter().map(|row| row.into_iter().map(text).collect::<Vec<_>>());
    // sqlx's own list, and SQLite's counters.
    rows.filter(|row| row[0] != "_sqlx_migrations" && !row[0].starts_with("sqlite_")).collect()
}

async fn catalogue(dialect: DialectName, url: &str) -> Catalogue {
    let (mut common, mut servers) = (BTreeSet::new(), BTreeSet::new());
    for row in rows(url, columns_sql(dialect)).await {
        let [table, at, column, ty, required, default] = &row[..] else { panic!("{row:?}") };
        let (kind, width) = kind_and_width(ty);
        let null = if required == "0" || required == "false" { "NULL" } else { "NOT NULL" };
        common.insert(format!("column {table}.{column} is {at}: {kind} {null}"));
        servers.insert(format!("width {table}.{column} = {width}"));
        if let Some(default) = default_value(default) {
            common.insert(format!("default {table}.{column} = {default}"));
        }
    }
    for row in rows(url, indexes_sql(dialect)).await {
        let [table, name, sort, columns] = &row[..] else { panic!("{row:?}") };
        match sort.as_str() {
            "index" => common.insert(format!("index {table} {name} ({columns})")),
            "unique" => {
                servers.insert(format!("unique {table} {name} ({columns})"));
                common.insert(format!("unique {table} ({columns})"))
            }
            _ => common.insert(format!("primary key {table} ({columns})")),
        };
    }
    for row in rows(url, references_sql(dialect)).await {
        let [table, column, to, key] = &row[..] else { panic!("{row:?}") };
        common.insert(format!("reference {table} ({column}) to {to} ({key})"));
    }
    Catalogue { common, servers }
}

/// What a type is for, in one word for all databases, and how wide it is, in one word for the two
/// servers. SQLite keeps a time as text, so a time is a text to it.
fn kind_and_width(ty: &str) -> (&'static str, String) {
    let word = ty.split('(').next().unwrap_or(ty);
    match word {
        "integer" | "int" => ("number", "32 bits".to_owned()),
        "bigint" => ("number", "64 bits".to_owned()),
        "tinyint" | "smallint" => ("number", "flag".to_owned()),
        "decimal" => ("decimal", ty.to_owned()),
        "varchar" => ("text", ty.to_owned()),
        "text" | "longtext" => ("text", "long".to_owned()),
        "datetime" | "timestamptz" => ("text", ty.replace("timestamptz", "datetime")),
        _ => panic!("{ty} is not among the types of migrations/README.md"),
    }
}

/// A default as each database writes it: `'x'`, `'x'::character varying`, `NULL`, `0`.
fn default_value(text: &str) -> Option<String> {
    let text = text.split("::").next().unwrap_or(text).trim_matches('\'');
    (text != "NULL").then(|| text.to_owned())
}

async fn migrated(dialect: DialectName) -> Catalogue {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    with_scratch(dialect, |scratch| async move {
        let db = crate::store::open(&scratch.url).await;
        db.migrate().await.expect("migrate");
        db.close().await;
        let _ = sender.send(catalogue(dialect, &scratch.url).await);
    })
    .await;
    receiver.await.expect("a catalogue")
}

// --- comparing ---------------------------------------------------------------------------------------

fn assert_equal(a: (&str, &BTreeSet<String>), b: (&str, &BTreeSet<String>)) {
    let only = |x: &BTreeSet<String>, y: &BTreeSet<String>| -> String {
        x.difference(y).map(|line| format!("\n    {line}")).collect()
    };
    let (here, there) = (only(a.1, b.1), only(b.1, a.1));
    let same = here.is_empty() && there.is_empty();
    assert!(same, "the migrations drift apart\n  {} alone:{here}\n  {} alone:{there}", a.0, b.0);
}

#[tokio::test]
async fn three_databases_have_the_same_tables() {
    let sqlite = migrated(DialectName::Sqlite).await;
    let mysql = migrated(DialectName::Mysql).await;
    let postgres = migrated(DialectName::Postgres).await;
    assert_equal(("sqlite", &sqlite.common), ("postgres", &postgres.common));
    assert_equal(("mysql", &mysql.common), ("postgres", &postgres.common));
    assert_equal(("mysql", &mysql.servers), ("postgres", &postgres.servers));
    for (table, columns) in CONTRACT {
        for column in *columns {
            let start = format!("column {table}.{column} is ");
            let there = sqlite.common.iter().any(|line| line.starts_with(&start));
            assert!(there, "{table}.{column} is a name that operators query by");
        }
    }
    for rule in CONTRACT_RULES {
        assert!(sqlite.common.contains(*rule), "{rule}");
    }
    let columns = sqlite.common.iter().filter_map(|line| line.strip_prefix("column "));
    let columns: BTreeSet<&str> = columns.filter_map(|line| line.split(' ').next()).collect();
    let described = column_meanings();
    let described: BTreeSet<&str> = described.keys().map(String::as_str).collect();
    assert_eq!(columns, described, "migrations/columns.txt has one line for each column");
    for column in ["recipient_email", "status", "send_time"] {
        let end = format!("({column})");
        let is = |line: &&String| line.starts_with("index email_") && line.ends_with(&end);
        assert!(sqlite.common.iter().any(|line| is(&line)), "an index on {column}");
    }
}

/// Rows as the versions before 0017 wrote them: milliseconds in `duration`, failures in `try_count`, and NOTIFIED for a
/// mail that was only written.
const OLD_ROWS: &str = "
INSERT INTO job_batch (batch_id, batch_no, group_code, status, params, snapshot, started_by, create_time, update_time)
    VALUES (1, '202407', 'g', 'FAILED', '{}', '{}', 'x', '2024-08-01 00:00:00', '2024-08-01 00:00:00');
INSERT INTO job_queue (queue_id, batch_id, batch_no, job_code, status, try_count, attempt, create_time, update_time) VALUES
    (1, 1, '202407', 'A', 'FAILED', 3, 3, '2024-08-01 00:00:00', '2024-08-01 00:00:00'),
    (2, 1, '202407', 'B', 'RETRY_WAIT', 1, 1, '2024-08-01 00:00:00', '2024-08-01 00:00:00'),
    (3, 1, '202407', 'C', 'SUCCESS', 1, 2, '2024-08-01 00:00:00', '2024-08-01 00:00:00'),
    (4, 1, '202407', 'D', 'FAILED', 1, 2, '2024-08-01 00:00:00', '2024-08-01 00:00:00');
INSERT INTO job_execution_logs (log_id, queue_id, status, duration, notify_status, retry_count, attempt, log_time) VALUES
    (1, 1, 'RUNNING', NULL, 'UNNOTIFIED', 2, 3, '2024-08-01 00:00:00'),
    (2, 1, 'FAILED', 61001, 'NOTIFIED', 3, 3, '2024-08-01 00:01:01'),
    (3, 2, 'RUNNING', NULL, 'UNNOTIFIED', 0, 1, '2024-08-01 00:00:00'),
    (4, 2, 'RETRY_WAIT', 5, 'UNNOTIFIED', 1, 1, '2024-08-01 00:00:00'),
    (5, 3, 'RUNNING', NULL, 'UNNOTIFIED', 1, 2, '2024-08-01 00:00:00'),
    (6, 3, 'SUCCESS', 2000, 'UNNOTIFIED', 1, 2, '2024-08-01 00:00:02'),
    (7, 4, 'RUNNING', NULL, 'UNNOTIFIED', 1, 2, '2024-08-01 00:00:00'),
    (8, 4, 'FAILED', 0, 'NOTIFIED', 1, 2, '2024-08-01 00:02:00');
INSERT INTO email_notifications (id, recipient_email, subject, body, status, created_at, updated_at, type, queue_id) VALUES
    (1, 'a@b.example', 's', 'b', 'sent', '2024-08-01 00:01:01', '2024-08-01 00:01:01', 'failed', 1),
    (2, 'a@b.example', 's', 'b', 'pending', '2024-08-01 00:02:00', '2024-08-01 00:02:00', 'failed', 4);
";

async fn rows_of_older_versions_keep_their_meaning(dialect: DialectName) {
    with_scratch(dialect, |scratch| async move {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(dialect.as_str());
        let files = std::fs::read_dir(folder).expect("folder");
        let mut files: Vec<PathBuf> = files.map(|file| file.expect("file").path()).collect();
        files.sort();
        for (number, file) in (1..).zip(&files) {
            if number == 17 {
                for sql in OLD_ROWS.split(";\n").filter(|sql| !sql.trim().is_empty()) {
                    query(&scratch.url, sql).await;
                }
            }
            query(&scratch.url, &std::fs::read_to_string(file).expect("text")).await;
        }
        let sql = "SELECT l.log_id, l.duration, l.duration_ms, l.notify_status, l.retry_count, q.try_count \
                   FROM job_execution_logs l JOIN job_queue q ON q.queue_id = l.queue_id \
                   WHERE l.status <> 'RUNNING' ORDER BY l.log_id";
        let word = |value: Option<String>| value.unwrap_or_default();
        let found: Vec<String> = query(&scratch.url, sql)
            .await
            .into_iter()
            .map(|row| row.into_iter().map(word).collect::<Vec<_>>().join(" "))
            // SQLite keeps no zeros behind the point.
            .map(|line| line.replace(".000", "").replace("0.005", ".005").replace(" 0.0 ", " 0 "))
            .collect();
        let wanted = [
            "2 61.001 61001 NOTIFIED 2 2",
            "4 .005 5 UNNOTIFIED 1 1",
            "6 2 2000 UNNOTIFIED 1 1",
            "8 0 0 UNNOTIFIED 1 1",
        ];
        assert_eq!(found, wanted, "{dialect}");
    })
    .await;
}

#[tokio::test]
async fn rows_of_older_versions_keep_their_meaning_on_each_database() {
    for dialect in DialectName::ALL {
        rows_of_older_versions_keep_their_meaning(dialect).await;
    }
}

/// Two groups as version 18 kept them, with a row in each table that is keyed by a code.
const ROWS_BEFORE_19: &str = "
INSERT INTO job_def (job_id, job_code, job_name, job_type, group_code, body, create_time, update_time) VALUES
    (3, 'A', 'A', 'NOOP', 'g', '{}', '2024-08-01 00:00:00', '2024-08-01 00:00:00'),
    (5, 'B', 'B', 'NOOP', 'h', '{}', '2024-08-01 00:00:00', '2024-08-01 00:00:00'),
    (9, 'GONE', 'x', 'NOOP', 'h', '{}', '2024-08-01 00:00:00', '2024-08-01 00:00:00');
DELETE FROM job_def WHERE job_id = 9;
INSERT INTO job_dependency (id, job_code, depends_on) VALUES (2, 'A', 'P'), (4, 'B', 'P'), (6, 'ORPHAN', 'A');
INSERT INTO job_external_dependency (id, job_code, group_code, depends_on, batch_expr, missing) VALUES
    (2, 'A', 'h', 'B', 'prev', 'wait'), (3, 'ORPHAN', 'h', 'B', 'prev', 'wait');
INSERT INTO job_batch (batch_id, batch_no, group_code, status, params, snapshot, started_by, create_time, update_time)
    VALUES (1, '202407', 'g', 'SUCCESS', '{}', '{}', 'x', '2024-08-01 00:00:00', '2024-08-01 00:00:00'),
    (2, '202407', 'h', 'RUNNING', '{}', '{}', 'x', '2024-08-01 00:00:00', '2024-08-01 00:00:00');
INSERT INTO job_queue (queue_id, batch_id, batch_no, job_code, status, outputs, create_time, update_time) VALUES
    (7, 1, '202407', 'A', 'SUCCESS', '{}', '2024-08-01 00:00:00', '2024-08-01 00:00:00'),
    (8, 2, '202407', 'OLD', 'RUNNING', NULL, '2024-08-01 00:00:00', '2024-08-01 00:00:00');
INSERT INTO job_execution_logs (log_id, queue_id, status, duration_ms, log_time) VALUES
    (5, 7, 'SUCCESS', 1500, '2024-08-01 00:00:00');
INSERT INTO tx_breach (job_code, batch_no, queue_id, attempt, said, create_time) VALUES
    ('A', '202407', 7, 1, 'x', '2024-08-01 00:00:00'), ('OLD', '202407', 8, 1, 'x', '2024-08-01 00:00:00');
INSERT INTO executor_job (job_id, job_code, rounds) VALUES (4, 'B', 9), (6, 'OLD', 1), (7, 'LOST', 2);
INSERT INTO executor_run (log_id, queue_id, run_no, attempt, batch_id, job_code, job_id, app_name, glue_type, params,
    block_strategy, shard_index, shard_total, status, create_time, update_time) VALUES (1, 8, 1, 1, 2, 'OLD', 6, 'x',
    'BEAN', '', 'SERIAL_EXECUTION', 0, 1, 'DONE', '2024-08-01 00:00:00', '2024-08-01 00:00:00');
";

/// What is read of them after migration 19, and what it says.
const ROWS_SINCE_19: &[(&str, &str)] = &[
    ("SELECT job_id, group_code, job_code FROM job_def ORDER BY job_id", "3 g A, 5 h B"),
    (
        "SELECT id, group_code, job_code, depends_on FROM job_dependency ORDER BY id",
        "2 g A P, 4 h B P",
    ),
    ("SELECT id, waiting_group, job_code, group_code FROM job_external_dependency", "2 g A h"),
    (
        "SELECT queue_id, batch_id, job_code, outputs, key_has_group FROM job_queue ORDER BY queue_id",
        "7 1 A {} 0, 8 2 OLD - 0",
    ),
    ("SELECT log_id, queue_id, duration_ms FROM job_execution_logs", "5 7 1500"),
    ("SELECT group_code, job_code, queue_id FROM tx_breach ORDER BY job_code", "g A 7, h OLD 8"),
    (
        "SELECT job_id, group_code, job_code, rounds FROM executor_job ORDER BY job_id",
        "4 h B 9, 6 h OLD 1, 7  LOST 2",
    ),
];

/// Statements that the keys since 19 take.
const TAKEN_SINCE_19: &str = "
INSERT INTO job_def (job_code, job_name, job_type, group_code, body, create_time, update_time) VALUES
    ('A', 'A', 'NOOP', 'h', '{}', '2024-08-01 00:00:00', '2024-08-01 00:00:00');
INSERT INTO job_dependency (group_code, job_code, depends_on) VALUES ('h', 'A', 'P');
INSERT INTO job_queue (batch_id, batch_no, job_code, status, create_time, update_time) VALUES
    (2, '202407', 'A', 'PENDING', '2024-08-01 00:00:00', '2024-08-01 00:00:00');
INSERT INTO tx_breach (group_code, job_code, batch_no, queue_id, attempt, said, create_time) VALUES
    ('h', 'A', '202407', 8, 1, 'x', '2024-08-01 00:00:00');
INSERT INTO executor_job (group_code, job_code, rounds) VALUES ('g', 'B', 0);
";

/// Applies the migration files of a database; before 19 it runs `rows`.
async fn migrate_by_files(dialect: DialectName, url: &str, rows: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(dialect.as_str());
    let files = std::fs::read_dir(folder).expect("folder");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("file").path()).collect();
    files.sort();
    for (number, file) in (1..).zip(&files) {
        let text = std::fs::read_to_string(file).expect("text");
        if number == 19 {
            run_each(url, rows).await;
            // As `Db::migrate` runs it: with foreign keys checked, and in one transaction where DDL has one.
            if dialect == DialectName::Sqlite {
                query(url, &format!("PRAGMA foreign_keys = ON; BEGIN IMMEDIATE; {text} COMMIT;"))
                    .await;
                continue;
            }
        }
        query(url, &text).await;
    }
}

async fn run_each(url: &str, text: &str) {
    for sql in text.split(";\n").filter(|sql| !sql.trim().is_empty()) {
        query(url, sql).await;
    }
}

async fn codes_of_one_installation_become_codes_of_groups(dialect: DialectName) {
    with_scratch(dialect, |scratch| async move {
        let url = &scratch.url;
        migrate_by_files(dialect, url, ROWS_BEFORE_19).await;
        for (sql, wanted) in ROWS_SINCE_19 {
            let word = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let rows = query(url, sql).await.into_iter();
            let rows = rows.map(|row| row.into_iter().map(word).collect::<Vec<_>>().join(" "));
            assert_eq!(rows.collect::<Vec<_>>().join(", "), *wanted, "{dialect}: {sql}");
        }
        if dialect == DialectName::Sqlite {
            let broken = query(url, "SELECT COUNT(*) FROM pragma_foreign_key_check").await;
            assert_eq!(broken[0][0].as_deref(), Some("0"));
            // The number of the row that was removed is not given again.
            run_each(url, TAKEN_SINCE_19).await;
            let next = query(url, "SELECT MAX(job_id) FROM job_def").await;
            assert_eq!(next[0][0].as_deref(), Some("10"));
            return;
        }
        if dialect == DialectName::Postgres {
            for (table, key) in [
                ("job_def", "job_id"),
                ("job_dependency", "id"),
                ("job_queue", "queue_id"),
                ("executor_job", "job_id"),
            ] {
                query(
                    url,
                    &format!("SELECT setval(pg_get_serial_sequence('{table}', '{key}'), 100)"),
                )
                .await;
            }
        }
        run_each(url, TAKEN_SINCE_19).await;
    })
    .await;
}

#[tokio::test]
async fn codes_of_one_installation_become_codes_of_groups_on_each_database() {
    for dialect in DialectName::ALL {
        codes_of_one_installation_become_codes_of_groups(dialect).await;
    }
}

/// A new database of MySQL is made by few statements; one of an older version goes through each migration.
#[tokio::test]
async fn mysql_makes_the_same_tables_at_once_and_one_migration_at_a_time() {
    let at_once = migrated(DialectName::Mysql).await;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    with_scratch(DialectName::Mysql, |scratch| async move {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/mysql");
        let files = std::fs::read_dir(folder).expect("folder");
        let mut files: Vec<PathBuf> = files.map(|file| file.expect("file").path()).collect();
        files.sort();
        for file in files {
            query(&scratch.url, &std::fs::read_to_string(file).expect("text")).await;
        }
        let locks = query(&scratch.url, "SELECT COUNT(*) FROM job_lock").await;
        let _ = sender.send((catalogue(DialectName::Mysql, &scratch.url).await, locks));
    })
    .await;
    let (one_by_one, locks) = receiver.await.expect("a catalogue");
    assert_equal(("at once", &at_once.common), ("one by one", &one_by_one.common));
    assert_equal(("at once", &at_once.servers), ("one by one", &one_by_one.servers));
    // Rows that migrations write are written as well.
    with_scratch(DialectName::Mysql, |scratch| async move {
        let db = crate::store::open(&scratch.url).await;
        db.migrate().await.expect("migrate");
        db.close().await;
        assert_eq!(query(&scratch.url, "SELECT COUNT(*) FROM job_lock").await, locks);
    })
    .await;
}

#[tokio::test]
async fn mysql_tables_take_any_character_and_tell_case() {
    with_scratch(DialectName::Mysql, |scratch| async move {
        let db = crate::store::open(&scratch.url).await;
        db.migrate().await.expect("migrate");
        db.close().await;
        let tables = rows(
            &scratch.url,
            "SELECT table_name, engine, table_collation FROM information_schema.tables \
             WHERE table_schema = DATABASE()",
        )
        .await;
        assert!(tables.len() >= CONTRACT.len());
        for table in tables {
            assert_eq!(table[1..], ["InnoDB", "utf8mb4_bin"], "{}", table[0]);
        }
        let columns = rows(
            &scratch.url,
            "SELECT CONCAT(table_name, '.', column_name), collation_name \
             FROM information_schema.columns WHERE table_schema = DATABASE() \
             AND table_name <> '_sqlx_migrations' AND collation_name IS NOT NULL",
        )
        .await;
        for column in columns {
            assert_eq!(column[1], "utf8mb4_bin", "{}", column[0]);
        }
    })
    .await;
}

#[test]
fn files_have_the_same_numbers_and_names_everywhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = |dialect: DialectName| -> Vec<String> {
        let folder: PathBuf = root.join("migrations").join(dialect.as_str());
        let files = std::fs::read_dir(folder).expect("folder");
        let mut names: Vec<String> = files
            .map(|f| f.expect("file").file_name().into_string().expect("a plain name"))
            .collect();
        names.sort();
        names
    };
    let list = std::fs::read_to_string(root.join("src/db/migrate/list.rs"))
        .expect("src/db/migrate/list.rs");
    let expected = names(DialectName::Sqlite);
    for dialect in DialectName::ALL {
        assert_eq!(names(dialect), expected, "{dialect}");
    }
    for (number, name) in (1..).zip(&expected) {
        let (digits, rest) = name.split_once('_').expect("0001_what_it_does.sql");
        assert_eq!(digits, format!("{number:04}"), "{name}: numbers have no gaps");
        let title = rest.strip_suffix(".sql").expect("a .sql file").replace('_', " ");
        assert!(
            list.contains(&format!("\"{title}\"")),
            "{name}: {title:?} in src/db/migrate/list.rs"
        );
        for dialect in DialectName::ALL {
            let path = format!("migrations/{dialect}/{name}\"");
            assert_eq!(list.matches(&path).count(), 1, "{path} in src/db/migrate/list.rs");
        }
    }
    assert_eq!(usize::try_from(known()), Ok(expected.len()));
    assert_eq!(list.matches("include_str!").count(), 3 * expected.len());
}
