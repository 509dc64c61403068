//! The floor: how long one row and its commit take on the same database during the same run.

use crate::figures::{Figure, ratio};
use crate::machine::quantile;
use crate::place::{Database, Place};
use anyhow::Result;
use procession::db::{Db, SqlValue};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Between two commits: often enough for a percentile, and no load.
const REST: Duration = Duration::from_millis(50);

/// A loop of small commits.
pub(crate) struct Floor {
    stop: CancellationToken,
    task: JoinHandle<Result<Vec<i64>>>,
}

impl Floor {
    /// On a connection of its own; on SQLite at the one writer, as everybody there.
    pub(crate) async fn start(place: &Place, writer: &Db) -> Result<Self> {
        let db = match place.database {
            Database::Sqlite => writer.clone(),
            Database::Mysql | Database::Postgres => place.db.clone(),
        };
        let mut tx = db.begin().await?;
        tx.execute("CREATE TABLE bench_floor (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)", &[])
            .await?;
        tx.execute("INSERT INTO bench_floor (id, n) VALUES (1, 0)", &[]).await?;
        tx.commit().await?;
        let stop = CancellationToken::new();
        let task = tokio::spawn(turn(db, stop.clone()));
        Ok(Self { stop, task })
    }

    /// p50 and p99 of update and commit, with the wait for a connection left out.
    pub(crate) async fn end(self) -> Result<Vec<Figure>> {
        self.stop.cancel();
        let mut took = self.task.await??;
        let mut ms = |at| Duration::from_micros(quantile(&mut took, at).unsigned_abs());
        let names = [("one row and commit p50", 500), ("one row and commit p99", 990)];
        Ok(names.map(|(name, at)| ratio(name, "ms", ms(at).as_secs_f64() * 1_000.0)).to_vec())
    }
}

#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
async fn turn(db: Db, stop: CancellationToken) -> Result<Vec<i64>> {
    let mut took = Vec::new();
    while !stop.is_cancelled() {
        let mut tx = db.begin().await?;
        let began = Instant::now();
        tx.execute("UPDATE bench_floor SET n = n + 1 WHERE id = ?", &[SqlValue::from(1i64)])
            .await?;
        tx.commit().await?;
        took.push(i64::try_from(began.elapsed().as_micros())?);
        tokio::time::sleep(REST).await;
    }
    Ok(took)
}
