//! The connections of the metadata database. One is handed on only when it is known in which state
//! it is.
//!
//! Not sqlx's pool, for three reasons. It takes back a connection whose operation was dropped in the
//! middle, and the next borrower finds himself in an open transaction (sqlx issue 4385). It pings a
//! connection when it is taken and again when it comes back. And that second ping has no end when the
//! network swallows it, while the place in the pool stays taken.

use crate::db::error::{self, Fate};
use crate::db::{Error, Result};
use futures_util::future::BoxFuture;
use sqlx::{ConnectOptions, Connection, Database, Executor as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::error::Elapsed;

/// A driver, as far as the pool has to know it.
pub(in crate::db) trait Driver: Database {
    /// Runs a statement that gives nothing.
    fn say<'c>(
        conn: &'c mut Self::Connection,
        sql: &'static str,
    ) -> BoxFuture<'c, sqlx::Result<()>>;
}

macro_rules! drivers {
    ($($driver:ty)*) => {
        $(impl Driver for $driver {
            fn say<'c>(
                conn: &'c mut Self::Connection,
                sql: &'static str,
            ) -> BoxFuture<'c, sqlx::Result<()>> {
                Box::pin(async move { conn.execute(sql).await.map(|_| ()) })
            }
        })*
    };
}

drivers! { sqlx::Sqlite sqlx::MySql sqlx::Postgres }

/// What is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) enum End {
    /// A server, which may go away behind our back.
    Server,
    /// A file.
    File,
    /// Memory: the connection is the database, and is never dropped.
    Memory,
}

type Options<DB> = <<DB as Database>::Connection as Connection>::Options;
type Prepare<DB> =
    for<'c> fn(&'c mut <DB as Database>::Connection) -> BoxFuture<'c, sqlx::Result<()>>;

/// How a pool is to be.
pub(in crate::db) struct Plan<DB: Database> {
    pub(in crate::db) end: End,
    pub(in crate::db) options: Options<DB>,
    /// Run on each new connection.
    pub(in crate::db) prepare: Option<Prepare<DB>>,
    pub(in crate::db) most: u32,
    /// How long a borrower waits for a connection.
    pub(in crate::db) patience: Duration,
    /// How long one statement may be without an answer.
    pub(in crate::db) limit: Duration,
    /// Its address without the password, for messages.
    pub(in crate::db) shown: String,
}

/// Connections to one database; clones share them.
pub(in crate::db) struct Pool<DB: Driver>(Arc<Home<DB>>);

struct Home<DB: Driver> {
    plan: Plan<DB>,
    places: Arc<Semaphore>,
    /// The one used last is taken first: it is warm, and the others may grow old.
    idle: Mutex<Vec<Idle<DB>>>,
    /// How often a connection was lost. A connection that was there before the last loss is not
    /// handed out again: what took the one has most likely taken all of them.
    losses: AtomicU64,
}

struct Idle<DB: Driver> {
    conn: DB::Connection,
    birth: Birth,
    since: Instant,
}

#[derive(Clone, Copy)]
struct Birth {
    /// `losses` when it began to be made.
    losses: u64,
    at: Instant,
}

/// An idle connection that was used within this time is handed out unasked; the answer to its first
/// statement is the test.
const WARM: Duration = Duration::from_secs(5);
/// How long an older one may take to answer a ping.
const PING: Duration = Duration::from_secs(2);
/// How long the undoing behind a dropped transaction may take before its connection is dropped.
const UNDO: Duration = Duration::from_secs(5);
/// A connection is not used for longer, because sessions of servers grow with what they cache.
const OLD: Duration = Duration::from_secs(30 * 60);
/// The first pause between two tries to connect, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

impl<DB: Driver> Clone for Pool<DB> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<DB: Driver> std::fmt::Debug for Pool<DB> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("pool")
    }
}

impl<DB: Driver> Pool<DB> {
    /// With a first connection, which is prepared.
    pub(in crate::db) fn new(plan: Plan<DB>, first: DB::Connection) -> Self {
        let places = Arc::new(Semaphore::new(usize::try_from(plan.most.max(1)).unwrap_or(1)));
        let birth = Birth { losses: 0, at: Instant::now() };
        Self(Arc::new(Home {
            plan,
            places,
            idle: Mutex::new(vec![Idle { conn: first, birth, since: birth.at }]),
            losses: AtomicU64::default(),
        }))
    }

    /// A connection on which nothing is open. May be dropped at any point.
    pub(in crate::db) async fn acquire(&self) -> Result<Lent<DB>> {
        let Plan { patience, shown, .. } = &self.0.plan;
        let late = || {
            Error::Lost(format!("{shown}: no connection was free or could be made in {patience:?}"))
        };
        tokio::time::timeout(*patience, self.0.get()).await.unwrap_or_else(|_| Err(late()))
    }

    /// Opens a transaction with `sql`. May be dropped at any point.
    ///
    /// A connection that turns out to be gone is replaced, once: nothing was asked of it before.
    pub(in crate::db) async fn begin(&self, sql: &'static str) -> Result<Lent<DB>> {
        let mut first = self.acquire().await?;
        match first.say(sql).await {
            Err(error) if first.state == State::Gone && error.is_transient() => {
                tracing::debug!(%error, "a connection was gone; taking another");
                drop(first);
                let mut second = self.acquire().await?;
                second.say(sql).await.map(|()| second)
            }
            other => other.map(|()| first),
        }
    }

    /// Closes all connections, waiting for those in use.
    pub(in crate::db) async fn close(&self) {
        let _all = self.0.places.acquire_many(self.0.plan.most.max(1)).await;
        let idle = std::mem::take(&mut *self.0.idle());
        for idle in idle {
            let _the_server_will_notice = tokio::time::timeout(PING, idle.conn.close()).await;
        }
        self.0.places.close();
    }
}

impl<DB: Driver> Home<DB> {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle<DB>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything in it may be dropped half-way: the connection goes with it.
    async fn get(self: &Arc<Self>) -> Result<Lent<DB>> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|_| Error::Database("the connections were closed".to_owned()))?;
        loop {
            // By itself, so that the lock is not held while the connection is looked at.
            let idle = self.idle().pop();
            let Some(mut idle) = idle else { break };
            if self.is_fit(&mut idle).await {
                return Ok(self.lend(idle.conn, idle.birth, place));
            }
            // A good-bye, if it can still be heard; its answer is not waited for.
            let _gone = tokio::time::timeout(PING, idle.conn.close()).await;
        }
        let (conn, birth) = self.connect().await?;
        Ok(self.lend(conn, birth, place))
    }

    fn lend(
        self: &Arc<Self>,
        conn: DB::Connection,
        birth: Birth,
        place: OwnedSemaphorePermit,
    ) -> Lent<DB> {
        Lent {
            loan: Some(Loan { conn, birth, place }),
            home: Arc::clone(self),
            state: State::Clean,
        }
    }

    async fn is_fit(&self, idle: &mut Idle<DB>) -> bool {
        if self.plan.end != End::Server {
            return true;
        }
        if idle.birth.losses < self.losses.load(Ordering::SeqCst) || idle.birth.at.elapsed() > OLD {
            return false;
        }
        if idle.since.elapsed() < WARM {
            return true;
        }
        match tokio::time::timeout(PING, idle.conn.ping()).await {
            Ok(Ok(())) => true,
            // Most likely the server's own time limit for idle sessions.
            Ok(Err(_)) => false,
            Err(_) => {
                self.lose();
                false
            }
        }
    }

    fn lose(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
    }

    /// Tries until the borrower's patience ends, while the server is not there or takes nobody in.
    async fn connect(&self) -> Result<(DB::Connection, Birth)> {
        let (mut pause, longest) = PAUSES;
        loop {
            let birth = Birth { losses: self.losses.load(Ordering::SeqCst), at: Instant::now() };
            match self.plan.options.connect().await {
                Ok(mut conn) => {
                    if let Some(prepare) = self.plan.prepare {
                        prepare(&mut conn).await?;
                    }
                    return Ok((conn, birth));
                }
                Err(error) if is_not_yet(&error) => {}
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
}

/// Whether the server was not there, or was and let nobody in for the moment.
fn is_not_yet(error: &sqlx::Error) -> bool {
    use std::io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof,
    };
    match error {
        sqlx::Error::Io(cause) => matches!(
            cause.kind(),
            ConnectionRefused | ConnectionReset | ConnectionAborted | UnexpectedEof
        ),
        sqlx::Error::Database(error) => error::is_of_the_moment(error.as_ref()),
        _ => false,
    }
}

/// What is known of a connection on loan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No transaction is open.
    Clean,
    /// A transaction is open and all of its statements were answered.
    Open,
    /// A statement of the transaction failed: it can only be undone.
    Failed,
    /// A statement was sent and not answered. Dropped now, the connection is dropped.
    Asked,
    /// The connection is not to be used again.
    Gone,
}

struct Loan<DB: Driver> {
    conn: DB::Connection,
    birth: Birth,
    place: OwnedSemaphorePermit,
}

/// A connection on loan. Dropped in the middle of an operation, it is dropped and never handed on;
/// dropped in a transaction, that is undone first.
pub(in crate::db) struct Lent<DB: Driver> {
    /// There until it is dropped.
    loan: Option<Loan<DB>>,
    home: Arc<Home<DB>>,
    state: State,
}

impl<DB: Driver> std::fmt::Debug for Lent<DB> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("connection")
    }
}

impl<DB: Driver> Lent<DB> {
    /// The connection, and how long its answer may take. Whoever asks something of it hands the
    /// answer to `answered`; until then the connection's state is unknown.
    pub(in crate::db) fn ask(&mut self) -> Result<(Duration, &mut DB::Connection)> {
        if self.state == State::Failed {
            // MySQL has undone the whole transaction after a deadlock, and what follows would
            // commit by itself; after a lock wait it would commit a half.
            return Err(Error::Database(
                "a statement of this transaction failed; it can only be undone".to_owned(),
            ));
        }
        let loan = self.loan.as_mut().ok_or(Error::Missing("the connection"))?;
        self.state = State::Asked;
        Ok((self.home.plan.limit, &mut loan.conn))
    }

    /// Takes the answer in, and what it says about the connection.
    pub(in crate::db) fn answered<T>(
        &mut self,
        answer: std::result::Result<sqlx::Result<T>, Elapsed>,
    ) -> Result<T> {
        match answer {
            Ok(Ok(value)) => {
                self.state = State::Open;
                Ok(value)
            }
            Ok(Err(error)) => {
                self.state = match error::fate(&error) {
                    Fate::Stays => State::Failed,
                    Fate::Goes => State::Gone,
                    Fate::AllGo => {
                        self.home.lose();
                        State::Gone
                    }
                };
                Err(error.into())
            }
            Err(_) => {
                self.home.lose();
                let Plan { limit, shown, .. } = &self.home.plan;
                Err(Error::Lost(format!("{shown}: no answer within {limit:?}")))
            }
        }
    }

    /// Runs a statement that gives nothing.
    pub(in crate::db) async fn say(&mut self, sql: &'static str) -> Result<()> {
        let (limit, conn) = self.ask()?;
        let answer = tokio::time::timeout(limit, DB::say(conn, sql)).await;
        self.answered(answer)
    }

    /// Makes the transaction durable. When the connection is lost, whether it is stays open:
    /// PostgreSQL may say that it goes down after it has committed.
    pub(in crate::db) async fn commit(mut self) -> Result<()> {
        failpoint_or!("db.commit.before", self.lost_by_a_failpoint());
        match self.say("COMMIT").await {
            Ok(()) => {}
            Err(Error::TryAgain(said)) if self.state == State::Gone && self.is_server() => {
                return Err(Error::Lost(format!("in the middle of COMMIT: {said}")));
            }
            Err(error) => return Err(error),
        }
        failpoint_or!("db.commit.after", self.lost_by_a_failpoint());
        self.state = State::Clean;
        Ok(())
    }

    fn is_server(&self) -> bool {
        self.home.plan.end == End::Server
    }

    #[cfg(feature = "failpoints")]
    fn lost_by_a_failpoint(&mut self) -> Error {
        self.state = State::Gone;
        Error::Lost("a failpoint says so".to_owned())
    }

    /// Undoes the transaction, and waits until it is undone.
    pub(in crate::db) async fn rollback(mut self) -> Result<()> {
        if self.state == State::Failed {
            self.state = State::Open;
        }
        self.say("ROLLBACK").await?;
        self.state = State::Clean;
        Ok(())
    }

    /// The connection, for longer work without a time limit; until `done` is called its state is
    /// unknown.
    pub(in crate::db) fn raw(&mut self) -> Result<&mut DB::Connection> {
        self.ask().map(|(_, conn)| conn)
    }

    /// Says that nothing is open on it.
    pub(in crate::db) fn done(mut self) {
        self.state = State::Clean;
    }
}

impl<DB: Driver> Drop for Lent<DB> {
    fn drop(&mut self) {
        let Some(loan) = self.loan.take() else { return };
        let home = Arc::clone(&self.home);
        match self.state {
            State::Clean => loan.give_back(&home),
            State::Open | State::Failed => loan.undo(home),
            State::Asked | State::Gone if home.plan.end == End::Memory => loan.undo(home),
            // The server ends the session, and with it the transaction, when it sees that the
            // connection is closed.
            State::Asked | State::Gone => {}
        }
    }
}

impl<DB: Driver> Loan<DB> {
    fn give_back(self, home: &Home<DB>) {
        home.idle().push(Idle { conn: self.conn, birth: self.birth, since: Instant::now() });
        // Only now: whoever waits for the place is to find it.
        drop(self.place);
    }

    /// Undoes what is open and gives the connection back, behind the back of whoever dropped it.
    /// `close` waits for it, because it keeps its place meanwhile.
    fn undo(mut self, home: Arc<Home<DB>>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let undone = tokio::time::timeout(UNDO, DB::say(&mut self.conn, "ROLLBACK")).await;
            if matches!(undone, Ok(Ok(()))) || home.plan.end == End::Memory {
                self.give_back(&home);
            }
        });
    }
}
