//! The floors: the same work as a careful programmer would write it without Procession, through the same
//! door to the same server, on tables that the same migrations made.
//!
//! Readiness is in memory (counters of open parents), statements are prepared, connections stay, rows that
//! go together are one INSERT, and nothing is asked that is known. It heeds no limits, takes no orders from
//! operators, and but for `Trusted` a body's connection has no lock, no fence and no limit.

use crate::body::Client;
use crate::shape::Shape;
use crate::trust::Trusted;
use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, Utc};
use procession::db::{Db, SqlValue, Tx};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// What of the work is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floor {
    /// Bodies alone; everything else is in memory.
    Bare,
    /// Claim, and complete with its log: a transaction each.
    Apart,
    /// Complete, its log, and the next claim with its: one transaction.
    Fused,
    /// The same with all that makes bodies safe to run again.
    Trusted,
}

/// Who runs the bodies of a task.
enum Hand {
    Plain(Client),
    Trusted(Trusted),
}

/// Rows of a batch in `job_queue`, by job, and who works on them.
struct Work {
    db: Db,
    ids: Vec<i64>,
    board: Mutex<Board>,
    /// Counts the ready jobs; closed after the last job.
    ready: Semaphore,
    children: Vec<Vec<usize>>,
}

struct Board {
    open_parents: Vec<usize>,
    ready: VecDeque<usize>,
    left: usize,
}

const OWNER: &str = "bench";

/// How long `shape` takes with a task for each of `clients`, on rows that are PENDING.
pub(crate) async fn run(
    db: &Db,
    ids: Vec<i64>,
    shape: &Shape,
    clients: Vec<Client>,
    floor: Floor,
) -> Result<Duration> {
    ensure!(ids.len() == shape.jobs, "{} rows for {} jobs", ids.len(), shape.jobs);
    let mut children = vec![Vec::new(); shape.jobs];
    let mut open_parents = vec![0; shape.jobs];
    for (parent, child) in &shape.edges {
        children[*parent].push(*child);
        open_parents[*child] += 1;
    }
    let ready: VecDeque<usize> = (0..shape.jobs).filter(|n| open_parents[*n] == 0).collect();
    let work = Arc::new(Work {
        db: db.clone(),
        ids,
        ready: Semaphore::new(ready.len()),
        board: Mutex::new(Board { open_parents, ready, left: shape.jobs }),
        children,
    });
    let mut hands = Vec::new();
    for client in clients {
        hands.push(match floor {
            Floor::Trusted => Hand::Trusted(Trusted::new(client, db, OWNER).await?),
            Floor::Bare | Floor::Apart | Floor::Fused => Hand::Plain(client),
        });
    }
    warm(db, hands.len()).await?;
    let began = now();
    let mut tasks = Vec::new();
    for hand in hands {
        tasks.push(tokio::spawn(turn(Arc::clone(&work), hand, floor)));
    }
    for task in tasks {
        task.await??;
    }
    let took = began.elapsed();
    ensure!(work.board().left == 0, "jobs were left");
    Ok(took)
}

/// Makes the connections before it is measured, as a client would that has them already.
async fn warm(db: &Db, tasks: usize) -> Result<()> {
    let mut open = Vec::new();
    for _ in 0..tasks {
        open.push(tokio::spawn({
            let db = db.clone();
            async move {
                let mut tx = db.begin_read().await?;
                tx.fetch_all("SELECT 1 AS one", &[]).await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
                tx.rollback().await
            }
        }));
    }
    for one in open {
        one.await??;
    }
    Ok(())
}

async fn turn(work: Arc<Work>, hand: Hand, floor: Floor) -> Result<()> {
    let mut mine = None;
    loop {
        let job = match mine.take() {
            Some(job) => job,
            None => {
                let Some(job) = work.wait().await else { break };
                if floor != Floor::Bare {
                    work.hop(&hand, None, Some(job)).await?;
                }
                job
            }
        };
        hand.run(work.ids[job]).await?;
        let mut released = work.complete(job);
        match floor {
            Floor::Bare => {}
            Floor::Apart => work.write(Some(job), None).await?,
            Floor::Fused | Floor::Trusted => {
                mine = work.take().or_else(|| released.pop_front());
                work.hop(&hand, Some(job), mine).await?;
            }
        }
        work.publish(released);
    }
    hand.end().await;
    Ok(())
}

impl Hand {
    async fn get_ready(&self, done: Option<i64>, next: Option<i64>) -> Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Trusted(trusted) => trusted.get_ready(done, next).await,
        }
    }

    async fn run(&self, row: i64) -> Result<()> {
        match self {
            Self::Plain(client) => client.run().await,
            Self::Trusted(trusted) => {
                trusted.ask(row).await?;
                trusted.run().await
            }
        }
    }

    async fn end(self) {
        match self {
            Self::Plain(client) => client.end().await,
            Self::Trusted(trusted) => trusted.end().await,
        }
    }
}

impl Work {
    fn board(&self) -> std::sync::MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A ready job, once there is one; nothing after the last.
    async fn wait(&self) -> Option<usize> {
        self.ready.acquire().await.ok()?.forget();
        self.board().ready.pop_front()
    }

    /// A ready job, if there is one.
    fn take(&self) -> Option<usize> {
        self.ready.try_acquire().ok()?.forget();
        self.board().ready.pop_front()
    }

    /// Which jobs its end lets go.
    fn complete(&self, job: usize) -> VecDeque<usize> {
        let mut board = self.board();
        let mut released = VecDeque::new();
        for child in &self.children[job] {
            board.open_parents[*child] -= 1;
            if board.open_parents[*child] == 0 {
                released.push_back(*child);
            }
        }
        released
    }

    /// Its end is durable, so others may have what it let go.
    fn publish(&self, released: VecDeque<usize>) {
        let count = released.len();
        let mut board = self.board();
        board.ready.extend(released);
        board.left -= 1;
        if board.left == 0 {
            self.ready.close();
        }
        drop(board);
        self.ready.add_permits(count);
    }

    /// From the end of one job to the start of another; who runs them gets ready beside the commit.
    async fn hop(&self, hand: &Hand, done: Option<usize>, next: Option<usize>) -> Result<()> {
        let row = |job: Option<usize>| job.map(|job| self.ids[job]);
        let (written, ready) =
            tokio::join!(self.write(done, next), hand.get_ready(row(done), row(next)));
        written?;
        ready
    }

    /// One transaction: the end of one job, the start of another, a log row of each.
    async fn write(&self, done: Option<usize>, next: Option<usize>) -> Result<()> {
        let at: DateTime<Utc> = at();
        let mut tx = self.db.begin().await?;
        let mut logs = Vec::new();
        if let Some(job) = done {
            let id = self.ids[job];
            expect_one(settle(&mut tx, id, at).await?).with_context(|| format!("end {id}"))?;
            logs.push((id, "SUCCESS", Some(at)));
        }
        if let Some(job) = next {
            let id = self.ids[job];
            expect_one(claim(&mut tx, id, at).await?).with_context(|| format!("start {id}"))?;
            logs.push((id, "RUNNING", None));
        }
        append(&mut tx, &logs, at).await?;
        Ok(tx.commit().await?)
    }
}

fn expect_one(found: u64) -> Result<()> {
    ensure!(found == 1, "{found} rows, not one");
    Ok(())
}

async fn settle(tx: &mut Tx, id: i64, at: DateTime<Utc>) -> Result<u64> {
    let sql = "UPDATE job_queue SET status = 'SUCCESS', end_time = ?, update_time = ? \
               WHERE queue_id = ? AND attempt = 1 AND owner = ? AND status = 'RUNNING'";
    Ok(tx.execute(sql, &[at.into(), at.into(), id.into(), OWNER.into()]).await?)
}

async fn claim(tx: &mut Tx, id: i64, at: DateTime<Utc>) -> Result<u64> {
    let sql = "UPDATE job_queue SET status = 'RUNNING', owner = ?, attempt = attempt + 1, \
               start_time = ?, update_time = ? WHERE queue_id = ? AND status = 'PENDING'";
    Ok(tx.execute(sql, &[OWNER.into(), at.into(), at.into(), id.into()]).await?)
}

/// The log rows of one transaction, as one statement.
async fn append(
    tx: &mut Tx,
    logs: &[(i64, &'static str, Option<DateTime<Utc>>)],
    at: DateTime<Utc>,
) -> Result<()> {
    let places = vec!["(?, ?, ?, ?, ?, 'UNNOTIFIED', 0, 1, ?, ?)"; logs.len()].join(", ");
    let sql = format!(
        "INSERT INTO job_execution_logs (queue_id, start_time, end_time, status, duration_ms, \
         notify_status, retry_count, attempt, owner, log_time) VALUES {places}"
    );
    let values: Vec<SqlValue> = logs
        .iter()
        .flat_map(|(id, status, end)| {
            let took = end.map(|_| 0i64);
            let (id, status): (SqlValue, SqlValue) = ((*id).into(), (*status).into());
            [id, at.into(), (*end).into(), status, took.into(), OWNER.into(), at.into()]
        })
        .collect();
    tx.execute(&sql, &values).await?;
    Ok(())
}

/// So many commits of one row, one after the other, in microseconds each.
pub(crate) async fn commits(db: &Db, count: usize) -> Result<Vec<i64>> {
    let mut took = Vec::new();
    for _ in 0..count {
        let began = now();
        let mut tx = db.begin().await?;
        tx.execute("UPDATE bench_floor SET n = n + 1 WHERE id = ?", &[1i64.into()]).await?;
        tx.commit().await?;
        took.push(i64::try_from(began.elapsed().as_micros())?);
    }
    Ok(took)
}

/// Makes the row that `commits` changes.
pub(crate) async fn prepare(db: &Db) -> Result<()> {
    let mut tx = db.begin().await?;
    tx.execute("CREATE TABLE bench_floor (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)", &[]).await?;
    tx.execute("INSERT INTO bench_floor (id, n) VALUES (1, 0)", &[]).await?;
    Ok(tx.commit().await?)
}

#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "rows have a time, and nobody reads this one")]
fn at() -> DateTime<Utc> {
    Utc::now()
}
