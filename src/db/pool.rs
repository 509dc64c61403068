//! The connection pool of the metadata database. A connection is reused only when its state is
//! known.
//!
//! Not sqlx's pool, for three reasons. It takes back a connection whose operation was dropped in
//! the middle, and the next borrower finds itself in an open transaction (sqlx issue 4385). It
//! pings a connection when it is taken and again when it comes back. And that second ping never
//! ends when the network drops it, while the slot in the pool stays taken.

use crate::db::error;
use crate::db::nodelay::without_delay;
use crate::db::pooled_connection::{Loan, PooledConnection};
use crate::db::{Error, Result};
use futures_util::future::BoxFuture;
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::{ConnectOptions, Connection, Database, Executor as _};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A driver, as far as the pool uses it.
pub(in crate::db) trait Driver: Database {
    /// Runs a statement that returns nothing.
    fn run_statement<'c>(
        conn: &'c mut Self::Connection,
        sql: &'static str,
    ) -> BoxFuture<'c, sqlx::Result<()>>;
}

macro_rules! drivers {
    ($($driver:ty)*) => {
        $(impl Driver for $driver {
            fn run_statement<'c>(
                conn: &'c mut Self::Connection,
                sql: &'static str,
            ) -> BoxFuture<'c, sqlx::Result<()>> {
                Box::pin(async move { conn.execute(sql).await.map(|_| ()) })
            }
        })*
    };
}

drivers! { sqlx::Sqlite sqlx::MySql sqlx::Postgres }

/// What a connection leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) enum PoolEndpoint {
    /// A server, which may close connections at any time.
    Server,
    /// A file.
    File,
    /// Memory: the connection is the database, and is never dropped.
    Memory,
}

type DriverConnectOptions<DB> = <<DB as Database>::Connection as Connection>::Options;
/// Prepares a new connection.
pub(in crate::db) type Prepare<DB> =
    for<'c> fn(&'c mut <DB as Database>::Connection) -> BoxFuture<'c, sqlx::Result<()>>;

/// A password that is replaced while the program runs.
pub(in crate::db) struct RotatedPassword<O> {
    pub(in crate::db) password: Arc<RwLock<SecretString>>,
    pub(in crate::db) set: fn(O, &str) -> O,
}

impl<O> Clone for RotatedPassword<O> {
    fn clone(&self) -> Self {
        Self { password: Arc::clone(&self.password), set: self.set }
    }
}

impl<O> RotatedPassword<O> {
    fn apply(&self, options: O) -> O {
        let now = self.password.read().unwrap_or_else(PoisonError::into_inner).clone();
        (self.set)(options, now.expose_secret())
    }
}

/// The settings of a pool.
pub(in crate::db) struct PoolConfig<DB: Database> {
    pub(in crate::db) end: PoolEndpoint,
    pub(in crate::db) options: DriverConnectOptions<DB>,
    /// The password, if it is replaced while the program runs.
    pub(in crate::db) rotated: Option<RotatedPassword<DriverConnectOptions<DB>>>,
    /// Run on each new connection.
    pub(in crate::db) prepare: Option<Prepare<DB>>,
    pub(in crate::db) most: u32,
    /// How long a borrower waits for a connection.
    pub(in crate::db) patience: Duration,
    /// How long a statement may take to be answered.
    pub(in crate::db) limit: Duration,
    /// Its address without the password, for messages.
    pub(in crate::db) shown: String,
}

/// Which borrower gets a connection first when several wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::db) enum Precedence {
    /// In the order of arrival.
    #[default]
    InTurn,
    /// Before all others.
    First,
}

/// How it is verified that an idle connection still works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LivenessProof {
    /// By a ping, unless it was used a moment ago.
    Ping,
    /// By the first statement of the borrower, who takes another connection when that fails.
    FirstStatement,
}

/// Whether an idle connection may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fitness {
    Fit,
    /// It was not used for a while.
    Unproven,
    Unfit,
}

/// A borrower with precedence, for as long as it waits.
struct UrgentWait<'a>(&'a AtomicUsize);

impl<'a> UrgentWait<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for UrgentWait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Connections to one database; clones share them.
pub(in crate::db) struct ConnectionPool<DB: Driver>(Arc<PoolShared<DB>>);

/// State shared by a pool and its checked-out connections.
pub(in crate::db) struct PoolShared<DB: Driver> {
    pub(in crate::db) plan: PoolConfig<DB>,
    places: Arc<Semaphore>,
    /// Number of waiting borrowers with precedence.
    urgent: AtomicUsize,
    /// The most recently used connection is taken first: it is warm, and the others may expire.
    idle: Mutex<Vec<IdleConnection<DB>>>,
    /// Number of lost connections. A connection opened before the last loss is not reused: the
    /// cause has most likely ended all of them.
    losses: AtomicU64,
    statements: AtomicU64,
    commits: AtomicU64,
    errors: AtomicU64,
}

/// Counters since the pool was opened, and the state of its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Statements sent, including `BEGIN` and `COMMIT`.
    pub statements: u64,
    /// Committed transactions.
    pub commits: u64,
    /// Statements that failed or were not answered.
    pub errors: u64,
    /// Number of times that connections were found lost.
    pub losses: u64,
    /// Checked-out connections.
    pub used: usize,
    /// Idle connections.
    pub idle: usize,
}

struct IdleConnection<DB: Driver> {
    conn: DB::Connection,
    birth: Birth,
    since: Instant,
}

/// When a connection was opened.
#[derive(Clone, Copy)]
pub(in crate::db) struct Birth {
    /// `losses` when opening it began.
    losses: u64,
    at: Instant,
}

/// An idle connection used within this time is handed out without a ping; its first statement is
/// the test.
const WARM: Duration = Duration::from_secs(5);
/// Time limit of a ping.
pub(in crate::db) const PING: Duration = Duration::from_secs(2);
/// Maximum age of a connection, because server sessions grow with what they cache.
const OLD: Duration = Duration::from_secs(30 * 60);
/// The first pause between two attempts to connect, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

impl<DB: Driver> Clone for ConnectionPool<DB> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<DB: Driver> std::fmt::Debug for ConnectionPool<DB> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("pool")
    }
}

impl<DB: Driver> ConnectionPool<DB> {
    /// A pool with a first, prepared connection.
    pub(in crate::db) fn new(plan: PoolConfig<DB>, first: DB::Connection) -> Self {
        let places = Arc::new(Semaphore::new(usize::try_from(plan.most.max(1)).unwrap_or(1)));
        let birth = Birth { losses: 0, at: Instant::now() };
        Self(Arc::new(PoolShared {
            plan,
            places,
            idle: Mutex::new(vec![IdleConnection { conn: first, birth, since: birth.at }]),
            urgent: AtomicUsize::default(),
            losses: AtomicU64::default(),
            statements: AtomicU64::default(),
            commits: AtomicU64::default(),
            errors: AtomicU64::default(),
        }))
    }

    /// A separate pool to the same database with other options, with no connection yet.
    pub(in crate::db) fn beside(&self, options: DriverConnectOptions<DB>, most: u32) -> Self {
        let PoolConfig { end, prepare, patience, limit, .. } = self.0.plan;
        let (shown, rotated) = (self.0.plan.shown.clone(), self.0.plan.rotated.clone());
        Self(Arc::new(PoolShared {
            plan: PoolConfig { end, options, rotated, prepare, most, patience, limit, shown },
            places: Arc::new(Semaphore::new(usize::try_from(most.max(1)).unwrap_or(1))),
            idle: Mutex::default(),
            urgent: AtomicUsize::default(),
            losses: AtomicU64::default(),
            statements: AtomicU64::default(),
            commits: AtomicU64::default(),
            errors: AtomicU64::default(),
        }))
    }

    /// Whether its connection is the database.
    pub(in crate::db) fn is_in_memory(&self) -> bool {
        self.0.plan.end == PoolEndpoint::Memory
    }

    /// Whether there is an idle connection.
    pub(in crate::db) fn has_idle(&self) -> bool {
        !self.0.lock_idle().is_empty()
    }

    /// A connection without an open transaction. May be dropped at any point.
    pub(in crate::db) async fn acquire(&self) -> Result<PooledConnection<DB>> {
        self.acquire_as(Precedence::InTurn, LivenessProof::Ping).await
    }

    async fn acquire_as(
        &self,
        precedence: Precedence,
        proof: LivenessProof,
    ) -> Result<PooledConnection<DB>> {
        let PoolConfig { patience, shown, .. } = &self.0.plan;
        let late = || {
            Error::Lost(format!("{shown}: no connection was free or could be made in {patience:?}"))
        };
        tokio::time::timeout(*patience, self.0.get(precedence, proof))
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    /// Opens a transaction with `sql`. May be dropped at any point.
    ///
    /// A connection that turns out to be lost is replaced, once: no statement was sent on it
    /// before.
    pub(in crate::db) async fn begin(&self, sql: &'static str) -> Result<PooledConnection<DB>> {
        self.begin_as(sql, Precedence::InTurn).await
    }

    /// The same, with a precedence.
    pub(in crate::db) async fn begin_as(
        &self,
        sql: &'static str,
        precedence: Precedence,
    ) -> Result<PooledConnection<DB>> {
        // The BEGIN is the ping: for a connection that was idle for longer that saves one round
        // trip.
        loop {
            let mut lent = self.acquire_as(precedence, LivenessProof::FirstStatement).await?;
            let was_cold = lent.is_cold();
            match lent.run_statement(sql).await {
                Err(error) if was_cold => {
                    tracing::debug!(%error, "an idle connection was gone; taking another");
                    lent.give_up();
                }
                Err(error) if lent.is_gone() && error.is_transient() => {
                    tracing::debug!(%error, "a connection was gone; taking another");
                    drop(lent);
                    let mut second = self.acquire_as(precedence, LivenessProof::Ping).await?;
                    return second.run_statement(sql).await.map(|()| second);
                }
                other => return other.map(|()| lent),
            }
        }
    }

    /// Adds the counters of this pool.
    pub(in crate::db) fn count(&self, into: &mut Counts) {
        let home = &self.0;
        into.statements += home.statements.load(Ordering::Relaxed);
        into.commits += home.commits.load(Ordering::Relaxed);
        into.errors += home.errors.load(Ordering::Relaxed);
        into.losses += home.losses.load(Ordering::Relaxed);
        let places = usize::try_from(home.plan.most.max(1)).unwrap_or(1);
        into.used += places.saturating_sub(home.places.available_permits());
        into.idle += home.lock_idle().len();
    }

    /// How long a borrower waits for a connection.
    pub(in crate::db) fn wait_limit(&self) -> Duration {
        self.0.plan.patience
    }

    /// The connect options.
    pub(in crate::db) fn options(&self) -> &DriverConnectOptions<DB> {
        &self.0.plan.options
    }

    /// Closes all connections, waiting for those in use.
    pub(in crate::db) async fn close(&self) {
        let _all = self.0.places.acquire_many(self.0.plan.most.max(1)).await;
        self.close_idle().await;
        self.0.places.close();
    }

    /// Closes idle connections.
    pub(in crate::db) async fn close_idle(&self) {
        let idle = std::mem::take(&mut *self.0.lock_idle());
        for idle in idle {
            let _the_server_will_notice = tokio::time::timeout(PING, idle.conn.close()).await;
        }
    }
}

impl<DB: Driver> PoolShared<DB> {
    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<IdleConnection<DB>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// May be dropped at any point: the connection is dropped with it.
    async fn get(
        self: &Arc<Self>,
        precedence: Precedence,
        proof: LivenessProof,
    ) -> Result<PooledConnection<DB>> {
        let place = self.place(precedence).await?;
        loop {
            // In its own statement, so that the lock is not held while the connection is checked.
            let idle = self.lock_idle().pop();
            let Some(mut idle) = idle else { break };
            let fitness = match self.judge(&idle) {
                Fitness::Unproven if proof == LivenessProof::Ping => {
                    self.ping_idle(&mut idle).await
                }
                fitness => fitness,
            };
            match fitness {
                Fitness::Fit => return Ok(self.check_out(idle.conn, idle.birth, place)),
                Fitness::Unproven => {
                    return Ok(self.check_out(idle.conn, idle.birth, place).mark_cold());
                }
                Fitness::Unfit => {}
            }
            // Closes politely if possible; the answer is not waited for.
            let _gone = tokio::time::timeout(PING, idle.conn.close()).await;
        }
        let (conn, birth) = self.connect().await?;
        Ok(self.check_out(conn, birth, place))
    }

    /// A slot for a connection, when it is this borrower's turn. A borrower that gets a turn while
    /// one with precedence waits queues up again: all waiting ones do the same before it, so their
    /// order is kept.
    async fn place(&self, precedence: Precedence) -> Result<OwnedSemaphorePermit> {
        let _goes_first = match precedence {
            Precedence::InTurn => None,
            Precedence::First => Some(UrgentWait::begin(&self.urgent)),
        };
        loop {
            let place = Arc::clone(&self.places).acquire_owned().await;
            let place =
                place.map_err(|_| Error::Database("the connections were closed".to_owned()))?;
            if precedence == Precedence::First || self.urgent.load(Ordering::SeqCst) == 0 {
                return Ok(place);
            }
            drop(place);
        }
    }

    fn check_out(
        self: &Arc<Self>,
        conn: DB::Connection,
        birth: Birth,
        place: OwnedSemaphorePermit,
    ) -> PooledConnection<DB> {
        PooledConnection::new(Loan { conn, birth, place }, Arc::clone(self))
    }

    fn judge(&self, idle: &IdleConnection<DB>) -> Fitness {
        if self.plan.end != PoolEndpoint::Server {
            return Fitness::Fit;
        }
        if idle.birth.losses < self.losses.load(Ordering::SeqCst) || idle.birth.at.elapsed() > OLD {
            return Fitness::Unfit;
        }
        if idle.since.elapsed() < WARM { Fitness::Fit } else { Fitness::Unproven }
    }

    async fn ping_idle(&self, idle: &mut IdleConnection<DB>) -> Fitness {
        match tokio::time::timeout(PING, idle.conn.ping()).await {
            Ok(Ok(())) => Fitness::Fit,
            // Most likely the server's time limit for idle sessions.
            Ok(Err(_)) => Fitness::Unfit,
            Err(_) => {
                self.discard_older();
                Fitness::Unfit
            }
        }
    }

    /// Takes back a connection without an open transaction.
    pub(in crate::db) fn take_back(&self, conn: DB::Connection, birth: Birth) {
        self.lock_idle().push(IdleConnection { conn, birth, since: Instant::now() });
    }

    /// Counts a sent statement.
    pub(in crate::db) fn asked(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a committed transaction.
    pub(in crate::db) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a statement that failed or was not answered.
    pub(in crate::db) fn refused(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Reuses no connection opened before now.
    pub(in crate::db) fn discard_older(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
    }

    async fn connect_once(&self) -> sqlx::Result<DB::Connection> {
        let options = self.plan.options.clone();
        let options = match &self.plan.rotated {
            Some(rotated) => rotated.apply(options),
            None => options,
        };
        let connecting = options.connect();
        match self.plan.end {
            PoolEndpoint::Server => without_delay(connecting).await,
            PoolEndpoint::File | PoolEndpoint::Memory => connecting.await,
        }
    }

    /// Retries until the borrower's time limit, while the server is unreachable or accepts no
    /// sessions.
    async fn connect(&self) -> Result<(DB::Connection, Birth)> {
        let (mut pause, longest) = PAUSES;
        loop {
            let birth = Birth { losses: self.losses.load(Ordering::SeqCst), at: Instant::now() };
            match self.connect_once().await {
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

/// Whether the server was unreachable, or accepts no sessions for the moment.
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
