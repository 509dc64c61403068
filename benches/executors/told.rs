//! Ends of runs that are told in lists, of runs that are there as if they had been asked for.

use crate::admin::{APP, Admin, Line};
use crate::figures::{Figure, figure, spread};
use crate::pace::{Used, count, since, steadily};
use crate::place::Place;
use anyhow::{Result, ensure};
use procession::db::SqlValue;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Connections that lists come over, as so many executors have.
const LINES: usize = 10;

pub(crate) async fn measure(
    place: &Place,
    (a_second, items, seconds): (u32, i64, u32),
) -> Result<Vec<Figure>> {
    let lists = i64::from(a_second) * i64::from(seconds);
    let first = i64::try_from(LINES)?;
    plant(place, (lists + first) * items).await?;
    let admin = Admin::start(place).await?;
    let mut lines = Vec::new();
    for _ in 0..LINES {
        lines.push(Arc::new(Mutex::new(Line::open(admin.address).await?)));
    }
    let tell = |at: usize| {
        let line = lines[at % LINES].clone();
        async move {
            let start = Instant::now();
            let first = i64::try_from(at).unwrap_or(0) * items + 1;
            let item =
                |log| json!({"logId": log, "logDateTim": 0, "handleCode": 200, "handleMsg": "ok"});
            let body = json!((first..first + items).map(item).collect::<Vec<_>>()).to_string();
            let said = line.lock().await.say("callback", &body).await;
            (said.unwrap_or(false), since(start))
        }
    };
    // A process that has just begun has no connections to its database and no statements there: its first
    // half second was the p99 of PostgreSQL.
    for at in 0..LINES {
        ensure!(tell(usize::try_from(lists)? + at).await.0, "the first lists got no yes");
    }
    let used = Used::now(&admin);
    let begun = Instant::now();
    let all = steadily(f64::from(a_second), usize::try_from(lists)?, tell).await;
    let took = since(begun);
    let processor = used.since(&admin);
    let sql = "SELECT COUNT(*) AS n FROM executor_run WHERE handle_code = 200";
    let [stored] = place.numbers(sql, ["n"]).await?;
    let taken = all.iter().filter(|(taken, _)| *taken).count();
    let lost = (i64::try_from(taken)? + first) * items - stored;
    ensure!(lost <= 0, "{lost} ends were answered with 200 and are not stored");
    // They come no faster than they were asked for here, so none has a reason to be refused.
    ensure!(taken == all.len(), "{} lists got no yes", all.len() - taken);
    let mut rows = vec![
        count("lists taken", "requests", taken),
        figure("ends a second", "1/s", lists * items * 1_000 / took.max(1)),
        figure("lost", "ends", lost),
    ];
    rows.extend(spread("a list answered", "ms", all.into_iter().map(|(_, ms)| ms).collect()));
    rows.push(processor);
    Ok(rows)
}

const COLUMNS: [&str; 17] = [
    "log_id",
    "queue_id",
    "run_no",
    "attempt",
    "batch_id",
    "job_code",
    "job_id",
    "app_name",
    "address",
    "glue_type",
    "params",
    "block_strategy",
    "shard_index",
    "shard_total",
    "status",
    "create_time",
    "update_time",
];

/// Runs that an executor has taken, with keys from 1 on.
async fn plant(place: &Place, runs: i64) -> Result<()> {
    let mut tx = place.db.begin().await?;
    let now = tx.server_time().await?;
    let row = |log: i64| -> Vec<SqlValue> {
        vec![
            log.into(),
            log.into(),
            1i64.into(),
            1i64.into(),
            1i64.into(),
            "J".into(),
            log.into(),
            APP.into(),
            "http://127.0.0.1:9".into(),
            "BEAN".into(),
            "".into(),
            "SERIAL_EXECUTION".into(),
            0i64.into(),
            1i64.into(),
            "RUNNING".into(),
            now.into(),
            now.into(),
        ]
    };
    tx.insert_many("executor_run", &COLUMNS, (1..=runs).map(row)).await?;
    tx.commit().await?;
    Ok(())
}
