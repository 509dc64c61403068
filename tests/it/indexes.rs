//! Every statement of `store` on a table that grows finds its rows by an index, on each database.
//!
//! The statements are taken out of the sources, so that a new one is looked at without a word here. What
//! a name in braces stands for has to be said in `STANDS_FOR`.

use crate::flow::{Bench, on, on_each_database};
use crate::util::query;
use procession::db::{Dialect, SqlValue};
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Tables that keep a row for each thing that has ever happened.
const GROWS: [&str; 8] = [
    "job_queue",
    "job_execution_logs",
    "job_log_line",
    "job_batch",
    "job_firing",
    "email_notifications",
    "audit_log",
    "executor_run",
];

/// What the sources put in place of names in braces, or append.
const STANDS_FOR: [(&str, &str); 23] = [
    ("{MARK}", "m.attempt AS mark_attempt"),
    ("{whose}", " AND group_code IN ('g1', 'g2')"),
    ("{CHANGED}", "l.log_id AS log_id, q.job_code AS job_code, b.status AS status"),
    ("{PULSE}", "batch_id, status"),
    ("{columns}", "q.queue_id AS queue_id, b.batch_id AS batch_id"),
    ("{span}", "CASE WHEN create_time >= '2024-01-01' THEN 1 END"),
    ("{seen}", "AND group_code IN ('g1')"),
    ("{chosen}", "group_code IN ('g1') AND status IN ('FAILED')"),
    ("{wanted}", "recipient_email = 'a'"),
    ("{of_row}", "AND queue_id = ?"),
    ("{COLUMNS}", "*"),
    ("{lock}", ""),
    ("{paused}", ""),
    ("{reopen}", ""),
    ("{looked_at}", ""),
    ("{home}", ", hosted_by = NULL"),
    ("{places}", "'1', '2'"),
    ("{outputs}", "CASE queue_id WHEN 5 THEN 'a' END"),
    ("{words}", "CASE log_id WHEN 5 THEN 'a' END"),
    ("{column}", "run_mode = 'ICE'"),
    ("{set}", "status = 'FIRED'"),
    (
        "{condition}",
        "status IN ('RUNNING', 'KILLING') AND (owner IS NULL OR NOT EXISTS (SELECT 1 FROM cluster_node n \
         WHERE n.node_id = job_batch.owner AND n.lease_until > '2024-01-01')) \
         AND NOT EXISTS (SELECT 1 FROM job_queue p WHERE p.queue_id = job_batch.parent_queue_id \
         AND p.status IN ('PENDING', 'RUNNING')) ORDER BY batch_id LIMIT 10",
    ),
    (
        "{OF_ITS_BATCHES}",
        "FROM job_queue q JOIN job_batch b ON b.batch_id = q.batch_id \
         JOIN backfill f ON f.group_code = b.group_code JOIN backfill_batch e \
         ON e.backfill_id = f.backfill_id AND e.batch_no = b.batch_no WHERE f.backfill_id = ?",
    ),
];

/// What may walk: the newest first, and no more than are asked for.
const NEWEST_FIRST: [&str; 6] = [
    "ORDER BY batch_id DESC LIMIT",
    "ORDER BY b.batch_id DESC LIMIT",
    "ORDER BY b.batch_id DESC, q.queue_id LIMIT",
    "ORDER BY q.batch_id DESC, q.queue_id LIMIT",
    "ORDER BY audit_id DESC LIMIT",
    " ORDER BY id DESC LIMIT",
];

/// Values by the name of the column they are compared with; times and all else are recognised.
const VALUES: [(&str, &str); 11] = [
    ("status", "'RUNNING'"),
    ("batch_no", "'7'"),
    ("group_code", "'g1'"),
    ("owner", "'me'"),
    ("hosted_by", "'me'"),
    ("job_code", "'J5'"),
    ("run_mode", "'ICE'"),
    ("source", "'manual'"),
    ("skip_kind", "'SKIP'"),
    ("error_message", "'x'"),
    ("outputs", "'{}'"),
];

/// The text of each string literal of a source, and its line.
fn literals(source: &str) -> Vec<(usize, String)> {
    let (mut found, mut line) = (Vec::new(), 1);
    let mut chars = source.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        if c == '/' && before == '/' {
            // A comment may hold a single quote mark.
            chars.by_ref().find(|c| *c == '\n');
            line += 1;
        }
        before = c;
        if c != '"' {
            continue;
        }
        let (mut text, start) = (String::new(), line);
        while let Some(c) = chars.next().filter(|c| *c != '"') {
            line += usize::from(c == '\n');
            match c {
                '\\' => match chars.next() {
                    Some('\n') => {
                        line += 1;
                        while let Some(c) = chars.next_if(|c| c.is_whitespace()) {
                            line += usize::from(c == '\n');
                        }
                    }
                    Some(escaped) => text.push(escaped),
                    None => {}
                },
                c => text.push(c),
            }
        }
        found.push((start, text));
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() { sources(&path, found) } else { found.push(path) }
    }
    found.sort();
}

/// The statements that name a table which grows, with where they stand.
fn statements() -> Vec<(String, String)> {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store"), &mut files);
    let mut found = Vec::new();
    // What retention asks is looked at in `retention::plans`.
    for file in files.into_iter().filter(|file| !file.to_string_lossy().contains("retention")) {
        let source = std::fs::read_to_string(&file).expect("source");
        for (line, text) in literals(&source) {
            let is_sql = ["SELECT ", "UPDATE ", "DELETE "].iter().any(|w| text.starts_with(w));
            let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            if !is_sql || !GROWS.iter().any(|table| words.contains(table)) {
                continue;
            }
            let mut sql = text.replace(" {} FROM", " * FROM").replace("IN ({})", "IN ('1', '2')");
            for (name, stands_for) in STANDS_FOR {
                sql = sql.replace(name, stands_for);
            }
            if sql.ends_with("WHERE 1 = 1") {
                sql.push_str(" ORDER BY audit_id DESC LIMIT ?");
            }
            // `execute_in` puts the keys there.
            let keys = [
                "queue_id",
                "q.queue_id",
                "firing_id",
                "batch_id",
                "id",
                "l.log_id",
                "log_id",
                "job_id",
            ];
            let is_open = |key: &&str| {
                ["WHERE", "AND"].iter().any(|word| sql.ends_with(&format!("{word} {key}")))
            };
            if keys.iter().any(is_open) {
                sql.push_str(" IN (5, 6, 7)");
            }
            let at = format!("{}:{line}", file.file_name().expect("name").to_string_lossy());
            let rest = sql.replace("'{}'", "");
            assert!(!rest.contains('{'), "{at}: say in STANDS_FOR what stands in braces: {sql}");
            found.push((at, with_values(&sql)));
        }
    }
    found
}

/// Values in place of `?`, of the kind of the column before each.
fn with_values(sql: &str) -> String {
    let mut said = String::new();
    let mut pieces = sql.split('?').peekable();
    while let Some(piece) = pieces.next() {
        said.push_str(piece);
        if pieces.peek().is_some() {
            let value = value(&said);
            said.push_str(&value);
        }
    }
    said
}

fn value(before: &str) -> String {
    // A list, or the second of two, is of the kind of what stands before it.
    let open = before.rfind('(').filter(|at| !before[*at..].contains(')'));
    let before = match open.map(|at| before.split_at(at)) {
        Some((head, rest)) if head.ends_with("COALESCE") => {
            rest.trim_start_matches('(').split(',').next().unwrap_or(rest)
        }
        Some((head, _)) if head.ends_with(" IN ") => head,
        Some(_) | None => before,
    };
    let words = before.trim_end_matches(['=', '<', '>', ' ', '(']);
    let words = words.strip_suffix("IN").unwrap_or(words).trim_end();
    let words = words.strip_suffix(", '')").unwrap_or(words);
    let column = words.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    let known = VALUES.iter().find(|(name, _)| *name == column);
    match known {
        Some((_, value)) => (*value).to_owned(),
        None if ["_time", "_at", "_until", "deadline", "not_before"]
            .iter()
            .any(|e| column.ends_with(e)) =>
        {
            "'2024-01-01 00:00:00'".to_owned()
        }
        None if ["LIMIT", "OFFSET"].iter().any(|word| words.ends_with(word)) => "3".to_owned(),
        // PostgreSQL gives it the type that is wanted.
        None => "'3'".to_owned(),
    }
}

/// Batches that have ended, and how many jobs each of the first of them had.
const BATCHES: i64 = 5_000;
const WITH_ROWS: i64 = 400;
const ROWS: i64 = 50;

async fn seed(bench: &Bench) {
    let at = SqlValue::from(Millis(1_722_470_400_000).to_utc());
    let text = |text: String| SqlValue::from(text);
    let mut tx = bench.db.begin().await.expect("begin");
    let columns = "batch_id batch_no group_code status params snapshot started_by create_time end_time \
                   update_time firing_id";
    let batch = |i: i64| {
        let (id, no, group) = (i.into(), text((i / 10).to_string()), text(format!("g{}", i % 10)));
        let words = ["SUCCESS", "{}", "{}", "x"].map(SqlValue::from);
        let times = [at.clone(), at.clone(), at.clone(), i.into()];
        [vec![id, no, group], words.to_vec(), times.to_vec()].concat()
    };
    insert(&mut tx, "job_batch", columns, (1..=BATCHES).map(batch).collect()).await;
    let columns =
        "queue_id batch_id batch_no job_code status owner attempt create_time update_time";
    let row = |i: i64| {
        let of = 1 + (i - 1) / ROWS;
        let (no, job) = (text((of / 10).to_string()), text(format!("J{i}")));
        let (status, owner) = ("SUCCESS".into(), text(format!("node-{}", of / 100)));
        vec![i.into(), of.into(), no, job, status, owner, 1i64.into(), at.clone(), at.clone()]
    };
    insert(&mut tx, "job_queue", columns, (1..=WITH_ROWS * ROWS).map(row).collect()).await;
    let log = |i: i64| vec![i.into(), "SUCCESS".into(), 500i64.into(), at.clone()];
    let columns = "queue_id status duration_ms log_time";
    insert(&mut tx, "job_execution_logs", columns, (1..=WITH_ROWS * ROWS).map(log).collect()).await;
    let line = |i: i64| {
        vec![(i / 10).into(), 1i64.into(), (i % 10).into(), "out".into(), "x".into(), at.clone()]
    };
    let columns = "queue_id attempt line_no stream line_text log_time";
    insert(&mut tx, "job_log_line", columns, (1..=10_000).map(line).collect()).await;
    let trigger = |i: i64| {
        let words = ["t", "cron", "x", "UTC", "h", "ENABLED", "file", "{}"].map(SqlValue::from);
        [vec![i.into(), text(format!("t{i}"))], words.to_vec(), vec![at.clone(), at.clone()]]
            .concat()
    };
    let columns = "trigger_id trigger_code trigger_name schedule_type schedule_conf time_zone handler \
                   trigger_status origin body create_time update_time";
    insert(&mut tx, "job_trigger", columns, (1..=20).map(trigger).collect()).await;
    let firing = |i: i64| {
        let planned = SqlValue::from(Millis(1_722_470_400_000 + i * 10_000).to_utc());
        let words = ["schedule", "h", "FIRED"].map(SqlValue::from).to_vec();
        let times = vec![planned.clone(), at.clone(), at.clone()];
        [vec![i.into(), (1 + i % 20).into(), planned], words, times].concat()
    };
    let columns =
        "firing_id trigger_id planned_at source handler status fire_at create_time update_time";
    insert(&mut tx, "job_firing", columns, (1..=10_000).map(firing).collect()).await;
    seed_told(&mut tx, &at).await;
    seed_runs(&mut tx, &at).await;
    tx.commit().await.expect("commit");
}

/// Who was told, and who did what.
async fn seed_told(tx: &mut procession::db::Tx, at: &SqlValue) {
    let text = |text: String| SqlValue::from(text);
    let mail = |i: i64| {
        let words = ["x", "x", "sent", "failed"].map(SqlValue::from).to_vec();
        let to = text(format!("a{}@b.example", i % 100));
        [vec![i.into(), to, (i % BATCHES).into(), at.clone(), at.clone(), at.clone()], words]
            .concat()
    };
    let columns =
        "id recipient_email batch_id created_at updated_at send_time subject body status type";
    insert(tx, "email_notifications", columns, (1..=10_000).map(mail).collect()).await;
    let act = |i: i64| {
        let at = SqlValue::from(Millis(1_722_470_400_000 + i * 10_000).to_utc());
        let words = ["ann", "h", "force-success"].map(SqlValue::from).to_vec();
        let to = vec![text(format!("g{}", i % 100)), text((i % 500).to_string()), at];
        [words, to].concat()
    };
    let columns = "actor host action group_code batch_no create_time";
    insert(tx, "audit_log", columns, (1..=10_000).map(act).collect()).await;
}

/// What executors have run.
async fn seed_runs(tx: &mut procession::db::Tx, at: &SqlValue) {
    let run = |i: i64| {
        let keys = [i, 1, 1, 1 + i % BATCHES, 1 + i % 500, 0, 1].map(SqlValue::from).to_vec();
        let words =
            ["J", "a.example", "BEAN", "", "SERIAL_EXECUTION", "DONE"].map(SqlValue::from).to_vec();
        let node = SqlValue::from(format!("node-{}", i % 100));
        [keys, words, vec![node, at.clone(), at.clone(), at.clone()]].concat()
    };
    let columns = "queue_id run_no attempt batch_id job_id shard_index shard_total job_code app_name \
                   glue_type params block_strategy status node_id create_time update_time end_time";
    insert(tx, "executor_run", columns, (1..=10_000).map(run).collect()).await;
}

async fn insert(tx: &mut procession::db::Tx, table: &str, columns: &str, rows: Vec<Vec<SqlValue>>) {
    let columns: Vec<&str> = columns.split_whitespace().collect();
    tx.insert_many(table, &columns, rows).await.unwrap_or_else(|e| panic!("{table}: {e}"));
}

/// What of the plan of a statement reads a whole table that grows.
async fn walks(bench: &Bench, dialect: Dialect, sql: &str) -> Vec<String> {
    let explain = match dialect {
        Dialect::Sqlite => format!("EXPLAIN QUERY PLAN {sql}"),
        // MySQL 9 shows a tree otherwise.
        Dialect::Mysql => format!("EXPLAIN FORMAT=TRADITIONAL {sql}"),
        Dialect::Postgres => format!("EXPLAIN {sql}"),
    };
    let plan = query(&bench.url, &explain).await.into_iter();
    let plan = plan.map(|row| row.into_iter().map(Option::unwrap_or_default).collect());
    let plan: Vec<Vec<String>> = plan.collect();
    let words: Vec<&str> = sql.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let mut names: Vec<String> = GROWS.iter().map(|table| (*table).to_owned()).collect();
    // One letter after a table is another name of it.
    for pair in words.windows(2).filter(|pair| GROWS.contains(&pair[0]) && pair[1].len() == 1) {
        names.push(pair[1].to_owned());
    }
    let is_walk = |row: &Vec<String>| match dialect {
        Dialect::Postgres => GROWS.iter().any(|t| row[0].contains(&format!("Seq Scan on {t} "))),
        Dialect::Sqlite => names.iter().any(|n| {
            let rest = row.last().and_then(|detail| detail.strip_prefix("SCAN "));
            rest.is_some_and(|rest| rest.split(' ').next() == Some(n))
        }),
        // Its table, and how it is read; MySQL has its partitions in between.
        Dialect::Mysql => {
            let walks = row[3..5].iter().any(|how| how == "ALL" || how == "index");
            walks && names.contains(&row[2])
        }
    };
    plan.into_iter().filter(is_walk).map(|row| row.join(" ")).collect()
}

on_each_database! { no_statement_walks_a_table_that_grows }

async fn no_statement_walks_a_table_that_grows(bench: Bench) {
    seed(&bench).await;
    let dialect = bench.db.dialect();
    let tables = GROWS.join(", ");
    match dialect {
        // As it is without statistics, which is how it runs.
        Dialect::Sqlite => {}
        Dialect::Mysql => drop(query(&bench.url, &format!("ANALYZE TABLE {tables}")).await),
        Dialect::Postgres => {
            query(&bench.url, "ANALYZE").await;
            // Walks only where nothing else is possible, so that the size of the tables plays no part.
            let name = bench.url.rsplit('/').next().expect("a database");
            query(&bench.url, &format!("ALTER DATABASE {name} SET enable_seqscan = off")).await;
        }
    }
    let mut said = String::new();
    let all = statements();
    assert!(all.len() > 60, "only {} statements found", all.len());
    for (at, sql) in all {
        if NEWEST_FIRST.iter().any(|end| sql.contains(end)) {
            continue;
        }
        for walk in walks(&bench, dialect, &sql).await {
            writeln!(said, "{at}: {walk}\n    {sql}").expect("text");
        }
    }
    assert!(said.is_empty(), "these walk over a table that grows:\n{said}");
}
