//! Open batches that nobody has: what looking for them costs.

use crate::store::{Place, T0, me};
use procession::db::SqlValue;
use procession::domain::source::DialectName;
use procession::store::Tx;
use procession::store::claim::{ClaimScope, find_claimable};

/// Batches that `me` has, with one job each.
const BATCHES: i64 = 400;
/// How often PostgreSQL plans a prepared statement for its values before it keeps one plan for all.
const PLANNED_ANEW: usize = 5;

/// Open batches of this process, written as rows: their jobs matter by their number alone.
async fn write_batches(tx: &mut Tx) {
    let at: SqlValue = T0.to_utc().into();
    let columns = ["batch_no", "group_code", "status", "params", "snapshot", "owner", "started_by"];
    let columns: Vec<&str> = columns.into_iter().chain(["create_time", "update_time"]).collect();
    let row = |n: i64| {
        let words = ["g", "RUNNING", "{}", "{}", me().0.as_str(), "test"].map(SqlValue::from);
        let mut row: Vec<SqlValue> = vec![format!("no-{n}").into()];
        row.extend(words.into_iter().chain([at.clone(), at.clone()]));
        row
    };
    tx.insert_many("job_batch", &columns, (0..BATCHES).map(row)).await.expect("batches");
    let sql = "INSERT INTO job_queue (batch_id, batch_no, job_code, status, create_time, update_time) \
               SELECT batch_id, batch_no, 'A', 'PENDING', create_time, create_time FROM job_batch";
    tx.execute(sql, &[]).await.expect("jobs");
}

/// PostgreSQL kept the plan that it had made on a new, empty database, and joined all jobs to each open batch:
/// 300 firings a second of a fresh installation became 17 batches a second, with the processors idle.
pub(super) async fn a_look_that_was_planned_on_empty_tables_reads_no_jobs(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    for _ in 0..=PLANNED_ANEW {
        let found = find_claimable(&mut tx, ClaimScope::Nobodys, 10, T0).await.expect("look");
        assert!(found.is_empty(), "{found:?}");
    }
    write_batches(&mut tx).await;
    let free = "UPDATE job_batch SET owner = NULL WHERE batch_no = 'no-7'";
    assert_eq!(tx.execute(free, &[]).await.expect(free), 1);
    let before = jobs_read(&mut tx, place.dialect()).await;
    let found = find_claimable(&mut tx, ClaimScope::Nobodys, 10, T0).await.expect("look");
    assert_eq!(found.len(), 1, "the one that nobody has");
    let read = jobs_read(&mut tx, place.dialect()).await - before;
    assert_eq!(read, 0, "rows of job_queue read by a look of {BATCHES} batches without a parent");
    tx.rollback().await.expect("rollback");
}

/// Rows of `job_queue` that this transaction has read so far. Only PostgreSQL counts them.
async fn jobs_read(tx: &mut Tx, dialect: DialectName) -> i64 {
    let sql = match dialect {
        DialectName::Postgres => {
            "SELECT seq_tup_read + COALESCE(idx_tup_fetch, 0) AS n FROM pg_stat_xact_user_tables \
             WHERE relname = 'job_queue'"
        }
        DialectName::Sqlite | DialectName::Mysql => return 0,
    };
    let row = tx.fetch_optional(sql, &[]).await.expect(sql).expect("a row of the table");
    row.get_int("n").expect("n")
}
