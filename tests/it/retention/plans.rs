//! How the three databases would carry out each statement: by an index, in tables of tens of thousands of
//! rows.

use super::seed::ago;
use crate::flow::{Bench, on};
use procession::db::{Dialect, SqlValue};
use procession::domain::source::DialectName;
use procession::store::Tx;
use procession::store::retention::RetentionQuery;

/// 2,000 batches of 20 rows with two changes and two lines each, and 20,000 firings.
const BATCHES: i64 = 2_000;
const JOBS: i64 = 20;
const FIRINGS: i64 = 20_000;

/// Writes batches of group `g` that ended one after the other, a minute apart, with two changes and as many
/// lines for each row. Whole tables in a statement each.
pub(super) async fn fill(bench: &Bench, batches: i64, jobs: i64, lines: i64, last_ended: i64) {
    let mut tx = bench.db.begin().await.expect("begin");
    tx.execute("CREATE TABLE seed_job (code VARCHAR(100) NOT NULL)", &[]).await.expect("table");
    tx.execute("CREATE TABLE seed_number (n BIGINT NOT NULL)", &[]).await.expect("table");
    let codes = (0..jobs).map(|n| vec![format!("JOB_{n}").into()]);
    tx.insert_many("seed_job", &["code"], codes).await.expect("codes");
    let most = lines.max(2);
    let numbers = (1..=most).map(|n| vec![n.into()]);
    tx.insert_many("seed_number", &["n"], numbers).await.expect("numbers");
    let columns = [
        "batch_no",
        "group_code",
        "status",
        "params",
        "snapshot",
        "started_by",
        "create_time",
        "end_time",
        "update_time",
    ];
    let rows = (0..batches).map(|n| {
        let at: SqlValue = ago(last_ended).plus_ms((n - batches) * 60_000).to_utc().into();
        let mut row: Vec<SqlValue> =
            vec![format!("old-{n:06}").into(), "g".into(), "SUCCESS".into()];
        row.extend(["{}".into(), "{}".into(), "seed".into(), at.clone(), at.clone(), at]);
        row
    });
    tx.insert_many("job_batch", &columns, rows).await.expect("batches");
    let sql = "INSERT INTO procession_ledger (idem_key, state, batch_no, job_code, attempt, opened_at) \
               SELECT b.batch_no, 'done', b.batch_no, 'JOB_1', 1, b.end_time FROM job_batch b";
    tx.execute(sql, &[]).await.expect(sql);
    tx.commit().await.expect("commit");
    // In pieces, because a statement may take half a minute.
    for from in (0..=batches).step_by(1_000) {
        fill_part(bench, from, from + 1_000, lines).await;
    }
    for table in
        ["job_batch", "job_queue", "job_execution_logs", "job_log_line", "procession_ledger"]
    {
        analyze(bench, table).await;
    }
}

/// The rows of the batches whose key lies after `from`, up to `to`.
async fn fill_part(bench: &Bench, from: i64, to: i64, lines: i64) {
    let mut tx = bench.db.begin().await.expect("begin");
    for (sql, most) in [
        (
            "INSERT INTO job_queue (batch_id, batch_no, job_code, status, create_time, update_time, \
             end_time) SELECT b.batch_id, b.batch_no, j.code, 'SUCCESS', b.end_time, b.end_time, \
             b.end_time FROM job_batch b CROSS JOIN seed_job j WHERE b.batch_id > ? AND b.batch_id <= ?",
            None,
        ),
        (
            "INSERT INTO job_execution_logs (queue_id, status, log_time) \
             SELECT q.queue_id, 'SUCCESS', q.end_time FROM job_queue q CROSS JOIN seed_number s \
             WHERE q.batch_id > ? AND q.batch_id <= ? AND s.n <= ?",
            Some(2),
        ),
        (
            "INSERT INTO job_log_line (queue_id, attempt, line_no, stream, line_text, log_time) \
             SELECT q.queue_id, 1, s.n, 'stdout', 'a line that a job printed', q.end_time \
             FROM job_queue q CROSS JOIN seed_number s \
             WHERE q.batch_id > ? AND q.batch_id <= ? AND s.n <= ?",
            Some(lines),
        ),
    ] {
        let mut values: Vec<SqlValue> = vec![from.into(), to.into()];
        values.extend(most.map(SqlValue::from));
        tx.execute(sql, &values).await.expect(sql);
    }
    tx.commit().await.expect("commit");
}

async fn analyze(bench: &Bench, table: &str) {
    let sql = match bench.db.dialect() {
        Dialect::Mysql => format!("ANALYZE TABLE {table}"),
        Dialect::Sqlite | Dialect::Postgres => format!("ANALYZE {table}"),
    };
    let mut tx = bench.db.begin().await.expect("begin");
    tx.fetch_all(&sql, &[]).await.expect("analyze");
    tx.commit().await.expect("commit");
}

async fn firings(bench: &Bench) {
    let columns = [
        "trigger_id",
        "planned_at",
        "source",
        "handler",
        "status",
        "fire_at",
        "create_time",
        "update_time",
    ];
    let rows = (0..FIRINGS).map(|n| {
        let at: SqlValue = ago(100).plus_ms(n * 60_000).to_utc().into();
        let mut row: Vec<SqlValue> = vec![(n % 50).into(), at.clone(), "cron".into(), "h".into()];
        row.extend(["FIRED".into(), at.clone(), at.clone(), at]);
        row
    });
    let mut tx = bench.db.begin().await.expect("begin");
    tx.insert_many("job_firing", &columns, rows).await.expect("firings");
    tx.commit().await.expect("commit");
    analyze(bench, "job_firing").await;
}

/// Keys in each list: 64 of 10,000 batches are as many of them as 12 of 2,000.
const KEYS: i64 = 12;

/// Values such as the statement is asked with.
fn values(text: RetentionQuery) -> Vec<SqlValue> {
    let t = |days: i64| -> SqlValue { ago(days).to_utc().into() };
    let keys = || -> Vec<SqlValue> { (501..501 + KEYS).map(SqlValue::from).collect() };
    let with = |last: &[SqlValue]| [keys(), last.to_vec()].concat();
    let walk = || vec![t(300), t(100), t(300), 0i64.into(), 64i64.into()];
    let group = || SqlValue::from("g");
    let ended_well = || [SqlValue::from("SUCCESS"), SqlValue::from("WARNING")];
    match text {
        RetentionQuery::NextGroup => vec!["".into()],
        RetentionQuery::NewestFrom => {
            [vec![group()], ended_well().to_vec(), vec![39i64.into()]].concat()
        }
        RetentionQuery::Candidates | RetentionQuery::WithLines => [vec![group()], walk()].concat(),
        RetentionQuery::RowsUnknown
        | RetentionQuery::RowsOpen
        | RetentionQuery::Ledger
        | RetentionQuery::Mails
        | RetentionQuery::Firings => keys(),
        RetentionQuery::Breaches => keys(),
        RetentionQuery::LeftLogs | RetentionQuery::LeftLines => vec![777i64.into()],
        RetentionQuery::Standing => {
            [vec![group(), t(90)], ended_well().to_vec(), vec![1_900i64.into()]].concat()
        }
        RetentionQuery::Numbers | RetentionQuery::CountOpen => vec![group()],
        RetentionQuery::CountYoung => vec![group(), t(90)],
        RetentionQuery::Open => vec!["RUNNING".into(), "KILLING".into()],
        RetentionQuery::Marked => vec![64i64.into()],
        RetentionQuery::RowsAfter => vec![777i64.into(), 0i64.into(), 256i64.into()],
        RetentionQuery::Rows
        | RetentionQuery::Logs
        | RetentionQuery::Lines
        | RetentionQuery::Reports
        | RetentionQuery::Runs
        | RetentionQuery::MailsOf => with(&[1_000i64.into()]),
        RetentionQuery::OutputValues | RetentionQuery::Approvals | RetentionQuery::FailureMarks => {
            with(&[1_000i64.into()])
        }
        RetentionQuery::LinesOfOne | RetentionQuery::LinesUpTo => {
            vec![777i64.into(), 100i64.into()]
        }
        RetentionQuery::CountRows | RetentionQuery::CountLogs | RetentionQuery::CountLines => {
            keys()
        }
        RetentionQuery::CountReports | RetentionQuery::CountRuns | RetentionQuery::CountMails => {
            keys()
        }
        RetentionQuery::CountOutputValues
        | RetentionQuery::CountApprovals
        | RetentionQuery::CountFailureMarks => keys(),
        RetentionQuery::Firing | RetentionQuery::Backfill => {
            [vec![SqlValue::from("FIRED")], walk()].concat()
        }
        RetentionQuery::OfFirings => [keys(), keys()].concat(),
        RetentionQuery::OfBackfills => keys(),
        RetentionQuery::SentMails | RetentionQuery::Audit => walk(),
    }
}

/// Statements that remove, with a list.
fn removals() -> Vec<(String, Vec<SqlValue>)> {
    let list = ["?"; 12].join(", ");
    let keys: Vec<SqlValue> = (501..513i64).map(SqlValue::from).collect();
    let mut all: Vec<(String, Vec<SqlValue>)> = [
        ("job_queue", "queue_id"),
        ("job_execution_logs", "log_id"),
        ("job_log_line", "queue_id"),
        ("job_firing", "firing_id"),
    ]
    .iter()
    .map(|(table, key)| (format!("DELETE FROM {table} WHERE {key} IN ({list})"), keys.clone()))
    .collect();
    let sql = "DELETE FROM job_log_line WHERE queue_id = ? \
               AND (attempt < ? OR (attempt = ? AND line_no <= ?))";
    all.push((sql.to_owned(), [501i64, 1, 1, 2].map(SqlValue::from).to_vec()));
    all
}

/// The parts of a plan that read a large table from one end to the other.
async fn scans(tx: &mut Tx, sql: &str, values: &[SqlValue]) -> Vec<String> {
    const LARGE: [&str; 4] = ["job_queue", "job_execution_logs", "job_log_line", "job_firing"];
    // What the statements call them; `l` is also the ledger, which is to be found by an index too.
    const SHORT: [&str; 3] = ["q", "l", "n"];
    let is_large = |name: &str| LARGE.contains(&name) || SHORT.contains(&name);
    let explain = match tx.dialect() {
        Dialect::Sqlite => "EXPLAIN QUERY PLAN",
        Dialect::Mysql => "EXPLAIN FORMAT=TRADITIONAL",
        Dialect::Postgres => "EXPLAIN",
    };
    let plan = tx.fetch_all(&format!("{explain} {sql}"), values).await.expect(sql);
    let mut found = Vec::new();
    for row in plan {
        match tx.dialect() {
            Dialect::Sqlite => {
                let detail = row.get_text("detail").expect("detail");
                let scanned = detail.strip_prefix("SCAN ").and_then(|d| d.split(' ').next());
                found.extend(scanned.filter(|name| is_large(name)).map(|_| detail.clone()));
            }
            Dialect::Mysql => {
                let how = row.opt_text("type").expect("type").unwrap_or_default();
                let table = row.opt_text("table").expect("table").unwrap_or_default();
                if matches!(how.as_str(), "ALL" | "index") && is_large(&table) {
                    found.push(format!("{how} {table}"));
                }
            }
            Dialect::Postgres => {
                let line = row.get_text("QUERY PLAN").expect("plan");
                let scanned = line.split("Seq Scan on ").nth(1).and_then(|l| l.split(' ').next());
                found.extend(scanned.filter(|name| LARGE.contains(name)).map(|_| line.clone()));
            }
        }
    }
    found
}

async fn no_statement_reads_a_large_table_to_its_end(bench: Bench) {
    fill(&bench, BATCHES, JOBS, 2, 100).await;
    firings(&bench).await;
    let mut tx = bench.db.begin().await.expect("begin");
    let texts = RetentionQuery::ALL.map(|text| {
        let places = usize::try_from(KEYS).expect("few");
        (text.statement(places), values(text))
    });
    for (sql, values) in texts.into_iter().chain(removals()) {
        let scans = scans(&mut tx, &sql, &values).await;
        assert!(scans.is_empty(), "{sql}\n{scans:?}");
    }
    // The eye of this test: one that does read all of a table is seen.
    let all = "SELECT COUNT(*) AS n FROM job_queue WHERE try_count = ?";
    assert!(!scans(&mut tx, all, &[7i64.into()]).await.is_empty());
}

#[tokio::test]
async fn sqlite() {
    on(DialectName::Sqlite, no_statement_reads_a_large_table_to_its_end).await;
}

#[tokio::test]
async fn mariadb() {
    on(DialectName::Mysql, no_statement_reads_a_large_table_to_its_end).await;
}

#[tokio::test]
async fn postgres() {
    on(DialectName::Postgres, no_statement_reads_a_large_table_to_its_end).await;
}
