//! Old rows, written by SQL: nothing runs to make them.

use crate::flow::{Bench, START};
use procession::domain::id::{BatchId, GroupCode, NodeId};
use procession::domain::retention::{DAY_MS, EndedBadly, GroupRetentionRule};
use procession::domain::time::Millis;
use procession::engine::retention::{
    Beat, ByTable, LeftTables, RemovalOrder, RetentionOptions, RetentionSurvey, Sweeper, survey,
};
use procession::store::audit::Operator;
use procession::store::{self, Tx};

/// One old batch, to be written.
#[derive(Clone)]
pub(super) struct Old<'a> {
    pub(super) no: &'a str,
    pub(super) group: &'a str,
    pub(super) status: &'a str,
    pub(super) days: i64,
    pub(super) jobs: u32,
    pub(super) lines: u32,
}

pub(super) fn old(no: &str, days: i64) -> Old<'_> {
    Old { no, group: "g", status: "SUCCESS", days, jobs: 2, lines: 3 }
}

pub(super) fn ago(days: i64) -> Millis {
    START.plus_ms(-days * DAY_MS)
}

/// Writes a batch that ended so many days ago: its rows, two changes and some lines for each, a mail.
pub(super) async fn put(bench: &Bench, batch: Old<'_>) -> BatchId {
    let mut tx = bench.db.begin().await.expect("begin");
    let id = put_in(&mut tx, batch).await;
    tx.commit().await.expect("commit");
    BatchId(id)
}

async fn put_in(tx: &mut Tx, batch: Old<'_>) -> i64 {
    let at = ago(batch.days).to_utc();
    let id = tx
        .insert_id(
            "INSERT INTO job_batch (batch_no, group_code, status, params, snapshot, started_by, \
             create_time, end_time, update_time) VALUES (?, ?, ?, '{}', '{}', 'test', ?, ?, ?)",
            "batch_id",
            &[
                batch.no.into(),
                batch.group.into(),
                batch.status.into(),
                at.into(),
                at.into(),
                at.into(),
            ],
        )
        .await
        .expect("batch");
    for job in 0..batch.jobs {
        let row = tx
            .insert_id(
                "INSERT INTO job_queue (batch_id, batch_no, job_code, status, create_time, \
                 update_time, end_time) VALUES (?, ?, ?, ?, ?, ?, ?)",
                "queue_id",
                &[
                    id.into(),
                    batch.no.into(),
                    format!("{}_{job}", batch.group).into(),
                    batch.status.into(),
                    at.into(),
                    at.into(),
                    at.into(),
                ],
            )
            .await
            .expect("row");
        for status in ["RUNNING", batch.status] {
            tx.execute(
                "INSERT INTO job_execution_logs (queue_id, status, duration_ms, log_time) \
                 VALUES (?, ?, 5, ?)",
                &[row.into(), status.into(), at.into()],
            )
            .await
            .expect("log");
        }
        let lines = (1..=i64::from(batch.lines)).map(|line| {
            vec![row.into(), 1i64.into(), line.into(), "stdout".into(), "hello".into(), at.into()]
        });
        let columns = ["queue_id", "attempt", "line_no", "stream", "line_text", "log_time"];
        tx.insert_many("job_log_line", &columns, lines).await.expect("lines");
    }
    mail(tx, id, "sent", at.into()).await;
    id
}

/// A mail about a batch.
pub(super) async fn mail(tx: &mut Tx, batch: i64, status: &str, at: Millis) {
    let at = at.to_utc();
    tx.execute(
        "INSERT INTO email_notifications (recipient_email, subject, body, status, send_time, \
         created_at, updated_at, type, batch_id) VALUES ('a@b', 's', 'b', ?, ?, ?, ?, 'x', ?)",
        &[status.into(), at.into(), at.into(), at.into(), batch.into()],
    )
    .await
    .expect("mail");
}

/// Gives each row of `job_queue` a stored value in so many chunks.
pub(super) async fn put_values(bench: &Bench, chunks: i64) {
    for chunk in 0..chunks {
        let sql = "INSERT INTO job_output_value \
                   (queue_id, attempt, value_no, chunk_no, name, content, create_time) \
                   SELECT queue_id, 1, 0, ?, 'doc', '\"x\"', create_time FROM job_queue";
        run(bench, sql, &[chunk.into()]).await;
    }
}

/// The name of the installation, with which keys in the ledger begin.
pub(super) async fn installation(bench: &Bench) -> String {
    let mut tx = bench.db.begin().await.expect("begin");
    store::meta_or_insert(&mut tx, "installation", "0123456789ab").await.expect("a name");
    let name = store::installation(&mut tx).await.expect("read").expect("a name");
    tx.commit().await.expect("commit");
    name
}

/// Opens an outcome in the ledger, under a key behind the installation's name.
pub(super) async fn open_in_ledger(bench: &Bench, key: &str, no: &str, job: &str) {
    let key = format!("{}/{key}", installation(bench).await);
    let sql = "INSERT INTO procession_ledger (idem_key, state, batch_no, job_code, attempt, opened_at) \
               VALUES (?, 'open', ?, ?, 1, ?)";
    let values = [key.as_str().into(), no.into(), job.into(), ago(91).to_utc().into()];
    run(bench, sql, &values).await;
}

/// A statement with values, in a transaction of its own.
pub(super) async fn run(bench: &Bench, sql: &str, values: &[procession::db::SqlValue]) {
    let mut tx = bench.db.begin().await.expect("begin");
    tx.execute(sql, values).await.expect(sql);
    tx.commit().await.expect("commit");
}

/// Batches go after 90 days, but for the newest one of a group and those that failed.
pub(super) fn options() -> RetentionOptions {
    RetentionOptions {
        rule: GroupRetentionRule {
            batches_ms: Some(90 * DAY_MS),
            keep: 1,
            badly: EndedBadly::Stay,
            lines_ms: None,
        },
        groups: std::collections::BTreeMap::new(),
        firings_ms: None,
        mails_ms: None,
        audit_ms: None,
        left: LeftTables::default(),
        window: None,
        rows_per_step: 1_000,
        pause_ms: 0,
    }
}

pub(super) fn sweeper(bench: &Bench, name: &str, options: &RetentionOptions) -> Sweeper {
    let by = Operator::new("tester".to_owned(), "here".to_owned());
    let wish = RemovalOrder { by, reason: Some("old".to_owned()), limit: None };
    let (db, clock) = (bench.db.clone(), bench.clock.clone());
    Sweeper::new(db, clock, NodeId(name.to_owned()), options.clone(), wish)
}

/// Beats until the pass has ended; gives what it removed.
pub(super) async fn pass(bench: &Bench, options: &RetentionOptions) -> ByTable {
    finish(bench, &mut sweeper(bench, "one", options)).await
}

pub(super) async fn finish(bench: &Bench, sweeper: &mut Sweeper) -> ByTable {
    for _ in 0..100_000 {
        match sweeper.run_step(bench.clock.now()).await.expect("beat") {
            Beat::Did(_) => {}
            Beat::Ended(removed) => return removed,
            Beat::Rests(rest, until) => panic!("rests until {until}: {rest:?}"),
        }
    }
    panic!("the pass does not end");
}

pub(super) async fn look(bench: &Bench, options: &RetentionOptions) -> RetentionSurvey {
    survey(&bench.db, options, bench.clock.now()).await.expect("survey")
}

/// The numbers of the batches of a group that are there.
pub(super) async fn there(bench: &Bench, group: &str) -> Vec<String> {
    let mut tx = bench.db.begin_read().await.expect("read");
    let group = GroupCode::parse(group).expect("group");
    let mut numbers: Vec<String> = procession::store::retention::numbers(&mut tx, &group)
        .await
        .expect("numbers")
        .iter()
        .map(ToString::to_string)
        .collect();
    numbers.sort();
    numbers
}

/// Rows of all tables that retention touches.
pub(super) async fn count_all(bench: &Bench) -> i64 {
    let mut n = 0;
    for table in procession::store::retention::TABLES {
        if table != "audit_log" {
            n += bench.number(&format!("SELECT COUNT(*) AS n FROM {table}")).await;
        }
    }
    n
}

/// Rows without a parent, of any table that has one.
pub(super) async fn orphans(bench: &Bench) -> i64 {
    let of = |table: &str, key: &str, parent: &str| {
        format!(
            "SELECT COUNT(*) AS n FROM {table} WHERE {key} IS NOT NULL \
             AND {key} NOT IN (SELECT {key} FROM {parent})"
        )
    };
    let mut n = 0;
    for sql in [
        of("job_queue", "batch_id", "job_batch"),
        of("job_execution_logs", "queue_id", "job_queue"),
        of("job_log_line", "queue_id", "job_queue"),
        of("job_report", "queue_id", "job_queue"),
        of("job_output_value", "queue_id", "job_queue"),
        of("failure_mark", "queue_id", "job_queue"),
        of("backfill_batch", "backfill_id", "backfill"),
    ] {
        n += bench.number(&sql).await;
    }
    n
}
