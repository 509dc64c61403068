//! Log tables in partitions, made by the statements of docs/retention.md: the engine goes on writing and
//! reading, and batches go once their partition is dropped.

use super::seed::{look, old, options, orphans, pass, put, there};
use crate::flow::{self, Bench, defs, on};
use procession::db::Dialect;
use procession::domain::retention::{KeepReason, RetentionNeed};
use procession::domain::source::DialectName;
use procession::engine::retention::{LeftTables, RetentionOptions};

/// The statements of the page that stand under this mark.
fn of_page(mark: &str) -> Vec<String> {
    let page = std::fs::read_to_string("docs/retention.md").expect("docs/retention.md");
    let fence = format!("```sql {mark}\n");
    let text = page.split(&fence).nth(1).unwrap_or_else(|| panic!("no block {mark}"));
    let text = text.split("```").next().unwrap_or_default();
    let code = |line: &&str| !line.trim_start().starts_with("--");
    let text: Vec<&str> = text.lines().filter(code).collect();
    let text = text.join("\n");
    text.split(';').map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

async fn by_page(bench: &Bench, what: &str) {
    let mark = match bench.db.dialect() {
        Dialect::Mysql => format!("mysql {what}"),
        Dialect::Postgres | Dialect::Sqlite => format!("postgres {what}"),
    };
    for sql in of_page(&mark) {
        crate::util::query(&bench.url, &sql).await;
    }
}

async fn a_batch_goes_once_its_partition_is_dropped(bench: Bench) {
    // Its logs lie in July, and the clock stands at the first of August 2024.
    let before = put(&bench, old("1", 20)).await;
    put(&bench, old("2", 20)).await;
    by_page(&bench, "partition").await;
    let lines = "SELECT COUNT(*) AS n FROM job_log_line";
    let logs = "SELECT COUNT(*) AS n FROM job_execution_logs";
    assert_eq!((bench.number(lines).await, bench.number(logs).await), (12, 8));
    // A batch of today runs as ever, and its logs are found.
    let defs = defs(
        "groups: { g: {} }\njobs:\n  A: { type: SCRIPT, interpreter: sh, script: 'echo hi' }\n",
    );
    bench.apply(&defs).await;
    let mut process = bench.process().await;
    let id = process.open_batches(&defs, &flow::order(), "test").await.expect("open")[0];
    flow::finish(&bench, &mut process).await;
    assert_eq!(bench.history(id, "A").await.last().map(String::as_str), Some("SUCCESS#1"));
    let ran = bench.number(lines).await;
    assert!(ran > 12, "{ran}");

    let rule = procession::domain::retention::GroupRetentionRule {
        batches_ms: Some(10 * procession::domain::retention::DAY_MS),
        ..options().rule
    };
    let left = RetentionOptions { rule, left: LeftTables { logs: true, lines: true }, ..options() };
    let survey = look(&bench, &left).await;
    assert_eq!(
        survey.groups[0].kept.get(&KeepReason::Needed(RetentionNeed::Left)),
        Some(&2),
        "{survey:?}"
    );
    assert!(pass(&bench, &left).await.is_empty());
    by_page(&bench, "drop").await;
    assert_eq!(bench.number(lines).await, ran - 12, "those of July");
    let removed = pass(&bench, &left).await;
    assert_eq!(removed.get("job_batch"), Some(&2), "{removed:?}");
    assert_eq!(removed.get("job_log_line"), None);
    assert_eq!(there(&bench, "g").await, ["202407"]);
    assert_eq!(orphans(&bench).await, 0);
    let sql = format!("SELECT COUNT(*) AS n FROM job_queue WHERE batch_id = {}", before.0);
    assert_eq!(bench.number(&sql).await, 0);
    // Tables in partitions that are not left to them lose their rows as others do.
    put(&bench, old("3", 20)).await;
    let removed = pass(&bench, &RetentionOptions { left: LeftTables::default(), ..left }).await;
    assert_eq!(removed.get("job_log_line"), None, "the newest that ended well: {removed:?}");
    put(&bench, old("4", 20)).await;
    let removed = pass(&bench, &RetentionOptions { rule, ..options() }).await;
    assert_eq!(removed.get("job_log_line").copied().unwrap_or(0) % 6, 0, "{removed:?}");
    assert!(removed.contains_key("job_execution_logs"), "{removed:?}");
}

#[tokio::test]
async fn mariadb() {
    on(DialectName::Mysql, a_batch_goes_once_its_partition_is_dropped).await;
}

#[tokio::test]
async fn postgres() {
    on(DialectName::Postgres, a_batch_goes_once_its_partition_is_dropped).await;
}
