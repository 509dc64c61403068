//! What makes a body safe to run again after the death of a process, put around the bodies of a floor by
//! the product's own sessions: so that what trust costs is told apart from what dispatching does.
//!
//! The session is made as new behind each body, takes the lock of the next row and is told its facts, all
//! of it while that row is being claimed; then the row itself is asked whether it is still ours.

use crate::body::{Body, Client};
use anyhow::{Result, anyhow, ensure};
use procession::db::results::Results;
use procession::db::session::Session;
use procession::db::session_lock::Lock;
use procession::db::session_reset::Renewal;
use procession::db::{Db, Dialect};
use procession::domain::id::{NodeId, QueueId};
use procession::store::queue;
use std::time::Duration;

/// After how much idleness a server is to end a session.
const IDLE: Duration = Duration::from_secs(30);

/// A client of a floor with all that is asked around its bodies.
pub(crate) struct Trusted {
    client: Client,
    db: Db,
    owner: NodeId,
}

impl Trusted {
    /// Around the bodies of `client`, whose rows are `owner`'s; nothing of bodies that have no session.
    pub(crate) async fn new(client: Client, db: &Db, owner: &str) -> Result<Self> {
        if let Client::Session(session, _) = &client {
            session.lock().await.limit_idle(IDLE).await?;
        }
        Ok(Self { client, db: db.clone(), owner: NodeId(owner.to_owned()) })
    }

    /// Whether there is anything to be trusted in.
    pub(crate) fn is_for(body: Body) -> bool {
        matches!(body, Body::Select | Body::Call | Body::CallWith)
    }

    /// Makes the session as new where a body was on it, and takes the lock of the next row.
    pub(crate) async fn get_ready(&self, done: Option<i64>, next: Option<i64>) -> Result<()> {
        let Client::Session(session, sql) = &self.client else { return Ok(()) };
        let mut session = session.lock().await;
        if done.is_some() && !session.put_renewal_off() {
            ensure!(session.renew().await? == Renewal::AsNew, "a session is spent");
        }
        if let Some(row) = next {
            let lock = lock(&mut session, row, routine(sql)).await?;
            ensure!(lock == Lock::Gained, "the lock of {row}: {lock:?}");
        }
        Ok(())
    }

    /// Asks whether a row is still ours, while the server is asked for what is called, where that did not
    /// come with the lock.
    pub(crate) async fn ask(&self, row: i64) -> Result<()> {
        let rows = [QueueId(row)];
        let ours = queue::ours_of(&self.db, &rows, &self.owner);
        let ours = match &self.client {
            Client::Session(session, sql) => {
                let (ours, looked) = tokio::join!(ours, async {
                    let mut session = session.lock().await;
                    match routine(sql) {
                        Some(name) => session.shown_procedure(None, name).await.map(|_| ()),
                        None => Ok(()),
                    }
                });
                looked?;
                ours
            }
            Client::Nothing | Client::Script => ours.await,
        };
        ensure!(ours?.get(&rows[0]) == Some(&1), "row {row} is not ours");
        Ok(())
    }

    /// Runs a body, and asks what a CALL left behind where that can only be asked at once. The product asks it in the
    /// round trip of the CALL.
    pub(crate) async fn run(&self) -> Result<()> {
        let Client::Session(session, sql) = &self.client else { return self.client.run().await };
        let mut session = session.lock().await;
        if session.dialect() != Dialect::Mysql || routine(sql).is_none() {
            drop(session);
            return self.client.run().await;
        }
        let mut results = Results::keeping(1_000, 1);
        let called = session.run_into(sql, &[], &mut results).await;
        called.map_err(|e| anyhow!("{sql}: {e}"))?;
        let is_open = session.has_open_transaction().await;
        let is_open = is_open.map_err(|e| anyhow!("{sql}: {e}"))?;
        ensure!(!is_open, "{sql} left a transaction open");
        Ok(())
    }

    /// Says good-bye.
    pub(crate) async fn end(self) {
        self.client.end().await;
    }
}

/// What a statement calls.
fn routine(sql: &str) -> Option<&str> {
    sql.strip_prefix("CALL ")?.split('(').next()
}

async fn lock(session: &mut Session, row: i64, routine: Option<&str>) -> Result<Lock> {
    let name = format!("bench:{row}");
    let facts = ["idem_key", "batch_no", "job_code", "attempt"].map(|fact| (fact, name.clone()));
    session.introduce(facts.to_vec(), &name, Vec::new());
    Ok(match routine {
        Some(routine) => session.try_lock_and_look(&name, None, routine).await?.0,
        None => session.try_lock(&name).await?,
    })
}
