//! db: access to SQL databases. In: statement text with `?` and values. Out: rows, or a typed error.
//! May name: nothing of ours. Never: a word of the domain.
//! Invariant: sqlx is named here and nowhere else. `Db` and `Tx` are the metadata store; `session`
//! are the connections that bodies run on.

mod bulk;
pub mod catalogue_rows;
pub mod cell;
mod connect;
pub mod connect_error;
pub mod control;
mod decode;
pub mod dialect;
mod error;
mod examination;
pub mod fault;
pub mod hint;
pub mod implicit_commit;
mod internal_statements;
pub mod ledger;
pub mod lock_holder;
pub mod migrate;
mod mysql_server;
mod nodelay;
pub mod notice;
mod pool;
mod pooled_connection;
pub mod results;
pub mod routine;
pub mod routine_catalogue;
pub mod routine_names;
mod row;
mod server_powers;
pub mod session;
pub mod session_lock;
pub mod session_reset;
mod session_settings;
mod shell_quote;
pub mod single_round_trip;
pub mod sqlite_file;
pub mod sqlite_write_lock;
mod statement_counts;
mod statement_probe;
pub mod target;
mod tls;
mod wire;

pub(crate) use bulk::filled;
pub use connect::ConnectSettings;
pub use dialect::Dialect;
pub use error::Error;
pub use examination::Examination;
pub use mysql_server::MysqlServer;
pub use pool::Counts;
pub use row::{Row, SqlValue};
pub use server_powers::OpenSearchPath;
pub use session_settings::SessionTimeouts;

use crate::db::single_round_trip::AutocommitConnection;
use futures_util::TryStreamExt as _;
use hint::HintHub;
use pool::{ConnectionPool, Precedence};
use pooled_connection::PooledConnection;
use sqlx::{AssertSqlSafe, Either, Executor as _, MySql, Postgres, Sqlite};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The result of a database operation.
pub type Result<T> = std::result::Result<T, Error>;

/// The metadata database.
#[derive(Clone, Debug)]
pub struct Db {
    pools: DialectPools,
    /// On PostgreSQL, for statements that are transactions of their own.
    alone: Option<AutocommitConnection>,
    /// Whether this is a MariaDB that accepts compound statements.
    takes_compounds: bool,
    /// Its URL without the password, for messages.
    shown: Arc<str>,
    /// The distribution of hints.
    hub: Arc<HintHub>,
    /// The shared write access of users of one kind, for a SQLite file.
    writer_share: Option<WriterShare>,
    /// The precedence among writers.
    precedence: Precedence,
}

/// How requests, or log lines, write to a SQLite file: one after the other, so that at most one of
/// them precedes the engine in the queue of the one writer.
#[derive(Clone, Debug)]
struct WriterShare {
    writer: Arc<Semaphore>,
    wait_limit: Duration,
}

#[derive(Clone, Debug)]
enum DialectPools {
    /// One writer, because SQLite has one: with eight, 1,358 of 1,600 transactions failed with
    /// "database is locked"; with one, none. Readers continue during a write (WAL).
    Sqlite {
        writer: ConnectionPool<Sqlite>,
        reader: ConnectionPool<Sqlite>,
    },
    Mysql(ConnectionPool<MySql>),
    Postgres(ConnectionPool<Postgres>),
}

/// An open transaction; dropped without `commit`, it is rolled back. After a failed statement it
/// can only be rolled back, on every database as on PostgreSQL.
#[derive(Debug)]
pub struct Tx {
    inner: TxInner,
    hub: Arc<HintHub>,
    /// Sent when it is committed.
    hints: Vec<&'static str>,
    /// Where to get another connection, as long as no statement was sent on a read-only one.
    unasked: Option<Box<Db>>,
    /// The write permit of its kind of users, held until this ends.
    _share: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
enum TxInner {
    Sqlite(PooledConnection<Sqlite>),
    Mysql(PooledConnection<MySql>),
    Postgres(PooledConnection<Postgres>),
}

/// Calls the driver of the transaction, and waits for its answer as long as a statement may take;
/// expanded for each driver.
macro_rules! on {
    ($tx:expr, $conn:ident => $question:expr) => {
        match &mut $tx.inner {
            TxInner::Sqlite(lent) => on!(lent; $conn => $question),
            TxInner::Mysql(lent) => on!(lent; $conn => $question),
            TxInner::Postgres(lent) => on!(lent; $conn => $question),
        }
    };
    ($lent:expr; $conn:ident => $question:expr) => {{
        let (limit, $conn) = $lent.connection()?;
        let answer = tokio::time::timeout(limit, $question).await;
        $lent.answered(answer)?
    }};
}

impl Db {
    /// Which database this is.
    pub fn dialect(&self) -> Dialect {
        match &self.pools {
            DialectPools::Sqlite { .. } => Dialect::Sqlite,
            DialectPools::Mysql(_) => Dialect::Mysql,
            DialectPools::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Opens a transaction that may write. On SQLite it takes the write lock at once (`BEGIN
    /// IMMEDIATE`): a deferred one that reads first fails at its first write when another wrote
    /// meanwhile. This and every other call of this module may be dropped at any point, by a
    /// timeout or a `select!`: a connection with a query in flight is closed and never reused.
    pub async fn begin(&self) -> Result<Tx> {
        let share = self.writer_turn().await?;
        let inner = match &self.pools {
            DialectPools::Sqlite { writer, .. } => {
                TxInner::Sqlite(writer.begin_as("BEGIN IMMEDIATE", self.precedence).await?)
            }
            DialectPools::Mysql(pool) => TxInner::Mysql(pool.begin("BEGIN").await?),
            DialectPools::Postgres(pool) => TxInner::Postgres(pool.begin("BEGIN").await?),
        };
        Ok(Tx { _share: share, ..self.wrap_transaction(inner) })
    }

    /// The permit to wait for the one writer of a SQLite file, which users of one kind share.
    async fn writer_turn(&self) -> Result<Option<OwnedSemaphorePermit>> {
        let Some(share) = &self.writer_share else { return Ok(None) };
        let turn = Arc::clone(&share.writer).acquire_owned();
        let late =
            || Error::Lost(format!("{}: too many of the same kind wait to write", self.shown));
        match tokio::time::timeout(share.wait_limit, turn).await {
            Ok(Ok(turn)) => Ok(Some(turn)),
            Ok(Err(_)) | Err(_) => Err(late()),
        }
    }

    /// For statements that only read. On SQLite they are one transaction, which waits for no
    /// writer. On a server each is by itself: at READ COMMITTED each sees what is committed when it
    /// begins anyway, and a transaction around them costs two round trips.
    pub async fn begin_read(&self) -> Result<Tx> {
        let inner = match &self.pools {
            DialectPools::Sqlite { reader, .. } => TxInner::Sqlite(reader.begin("BEGIN").await?),
            DialectPools::Mysql(_) | DialectPools::Postgres(_) => {
                return self.without_transaction().await;
            }
        };
        Ok(self.wrap_transaction(inner))
    }

    /// Opens a read-only transaction with a consistent snapshot: for the tables of other programs.
    pub async fn begin_look(&self) -> Result<Tx> {
        let inner = match &self.pools {
            DialectPools::Sqlite { reader, .. } => TxInner::Sqlite(reader.begin("BEGIN").await?),
            DialectPools::Mysql(pool) => {
                // Sessions use READ COMMITTED; this applies only to the next transaction.
                let mut lent = pool.acquire().await?;
                lent.run_statement("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
                lent.run_statement("START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT").await?;
                TxInner::Mysql(lent)
            }
            DialectPools::Postgres(pool) => {
                let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                TxInner::Postgres(pool.begin(sql).await?)
            }
        };
        Ok(self.wrap_transaction(inner))
    }

    /// All rows of one query outside of a transaction.
    pub async fn query_rows(&self, sql: &str, values: &[SqlValue]) -> Result<Vec<Row>> {
        self.without_transaction().await?.fetch_all(sql, values).await
    }

    /// A connection for reading, without a transaction.
    async fn without_transaction(&self) -> Result<Tx> {
        let inner = match &self.pools {
            DialectPools::Sqlite { reader, .. } => {
                TxInner::Sqlite(reader.acquire().await?.without_transaction())
            }
            DialectPools::Mysql(pool) => {
                TxInner::Mysql(pool.acquire().await?.without_transaction())
            }
            DialectPools::Postgres(pool) => {
                TxInner::Postgres(pool.acquire().await?.without_transaction())
            }
        };
        Ok(Tx { unasked: Some(Box::new(self.clone())), ..self.wrap_transaction(inner) })
    }

    /// Counters of its use, and the state of its connections.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        match &self.pools {
            DialectPools::Sqlite { writer, reader } => {
                writer.count(&mut counts);
                reader.count(&mut counts);
            }
            DialectPools::Mysql(pool) => pool.count(&mut counts),
            DialectPools::Postgres(pool) => pool.count(&mut counts),
        }
        if let Some(alone) = &self.alone {
            alone.count(&mut counts);
        }
        counts
    }

    fn wrap_transaction(&self, inner: TxInner) -> Tx {
        Tx { inner, hub: Arc::clone(&self.hub), hints: Vec::new(), unasked: None, _share: None }
    }

    /// Closes all connections, waiting for those in use.
    pub async fn close(&self) {
        if let Some(alone) = &self.alone {
            alone.close().await;
        }
        match &self.pools {
            DialectPools::Sqlite { writer, reader } => {
                reader.close().await;
                // Requests and log lines share the engine's writer.
                if self.writer_share.is_none() {
                    writer.close().await;
                }
            }
            DialectPools::Mysql(pool) => pool.close().await,
            DialectPools::Postgres(pool) => pool.close().await,
        }
    }
}

impl Tx {
    /// Which database this is.
    pub fn dialect(&self) -> Dialect {
        match &self.inner {
            TxInner::Sqlite(_) => Dialect::Sqlite,
            TxInner::Mysql(_) => Dialect::Mysql,
            TxInner::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Runs a statement; returns the number of rows found (on MySQL too, instead of the rows
    /// changed), as a compare-and-set needs.
    pub async fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64> {
        failpoint_or!("db.statement", Error::TryAgain("a failpoint says so".to_owned()));
        debug_assert!(self.is_transaction(), "a write outside of a transaction: {sql}");
        let sql = AssertSqlSafe(self.dialect().placeholders(sql).into_owned());
        Ok(on!(self, conn => async {
            row::bind_values(sqlx::query(sql), values).execute(conn).await.map(|done| done.rows_affected())
        }))
    }

    /// All rows of a query.
    pub async fn fetch_all(&mut self, sql: &str, values: &[SqlValue]) -> Result<Vec<Row>> {
        failpoint_or!("db.statement", Error::TryAgain("a failpoint says so".to_owned()));
        debug_assert!(
            self.is_transaction() || !sql.contains("FOR UPDATE"),
            "a lock outside of a transaction: {sql}"
        );
        let unasked = self.unasked.take();
        // Boxed: inlined into all callers, its state made a test's stack overflow in a debug build.
        match Box::pin(self.fetch_once(sql, values)).await {
            Err(error) => {
                Box::pin(self.take_another(error, unasked)).await?;
                Box::pin(self.fetch_once(sql, values)).await
            }
            found => found,
        }
    }

    /// Replaces a connection that turned out to be lost before any statement was sent; any other
    /// error is returned.
    async fn take_another(&mut self, error: Error, unasked: Option<Box<Db>>) -> Result<()> {
        let Some(db) = unasked.filter(|_| self.is_gone() && error.is_transient()) else {
            return Err(error);
        };
        tracing::debug!(%error, "a connection was gone; taking another");
        self.inner = db.without_transaction().await?.inner;
        Ok(())
    }

    async fn fetch_once(&mut self, sql: &str, values: &[SqlValue]) -> Result<Vec<Row>> {
        let sql = AssertSqlSafe(self.dialect().placeholders(sql).into_owned());
        // Without values a server need not prepare it, which the first time costs a round trip.
        let is_text = values.is_empty() && self.dialect() != Dialect::Sqlite;
        Ok(on!(self, conn => async {
            let rows = match is_text {
                true => sqlx::raw_sql(sql).fetch_all(conn).await?,
                false => row::bind_values(sqlx::query(sql), values).fetch_all(conn).await?,
            };
            Ok(rows.into_iter().map(Row::from).collect())
        }))
    }

    /// The rows of each of several queries without values: on a server in one round trip.
    pub async fn fetch_sets<const N: usize>(
        &mut self,
        queries: [&str; N],
    ) -> Result<[Vec<Row>; N]> {
        let mut sets = Vec::with_capacity(N);
        if self.dialect() == Dialect::Sqlite {
            for sql in queries {
                sets.push(self.fetch_all(sql, &[]).await?);
            }
        } else {
            sets = self.fetch_text(&queries.join(";\n")).await?;
        }
        sets.try_into().map_err(|_| Error::Missing("a set of rows"))
    }

    /// The result sets of a text with several statements.
    async fn fetch_text(&mut self, text: &str) -> Result<Vec<Vec<Row>>> {
        failpoint_or!("db.statement", Error::TryAgain("a failpoint says so".to_owned()));
        let unasked = self.unasked.take();
        match Box::pin(self.fetch_text_once(text)).await {
            Err(error) => {
                Box::pin(self.take_another(error, unasked)).await?;
                Box::pin(self.fetch_text_once(text)).await
            }
            found => found,
        }
    }

    async fn fetch_text_once(&mut self, text: &str) -> Result<Vec<Vec<Row>>> {
        let sql = AssertSqlSafe(text.to_owned());
        Ok(on!(self, conn => async {
            let (mut sets, mut rows) = (Vec::new(), Vec::new());
            let mut stream = conn.fetch_many(sqlx::raw_sql(sql));
            while let Some(step) = stream.try_next().await? {
                match step {
                    Either::Left(_) => sets.push(std::mem::take(&mut rows)),
                    Either::Right(row) => rows.push(Row::from(row)),
                }
            }
            Ok(sets)
        }))
    }

    fn is_transaction(&self) -> bool {
        match &self.inner {
            TxInner::Sqlite(lent) => lent.is_transaction(),
            TxInner::Mysql(lent) => lent.is_transaction(),
            TxInner::Postgres(lent) => lent.is_transaction(),
        }
    }

    /// The first row of a query, if there is one.
    pub async fn fetch_optional(&mut self, sql: &str, values: &[SqlValue]) -> Result<Option<Row>> {
        Ok(self.fetch_all(sql, values).await?.into_iter().next())
    }

    /// Inserts one row and returns its generated key; `key` is the key's column.
    pub async fn insert_id(&mut self, sql: &str, key: &str, values: &[SqlValue]) -> Result<i64> {
        match self.dialect() {
            Dialect::Mysql => {
                self.execute(sql, values).await?;
                let row = self.fetch_optional("SELECT LAST_INSERT_ID() AS id", &[]).await?;
                row.ok_or(Error::Missing("LAST_INSERT_ID()"))?.get_int("id")
            }
            Dialect::Sqlite | Dialect::Postgres => {
                let sql = format!("{sql} RETURNING {key} AS id");
                let row = self.fetch_optional(&sql, values).await?;
                row.ok_or(Error::Missing("RETURNING"))?.get_int("id")
            }
        }
    }

    fn is_gone(&self) -> bool {
        match &self.inner {
            TxInner::Sqlite(lent) => lent.is_gone(),
            TxInner::Mysql(lent) => lent.is_gone(),
            TxInner::Postgres(lent) => lent.is_gone(),
        }
    }

    /// Commits. After `Error::Lost` the result is unknown: read the rows.
    pub async fn commit(self) -> Result<()> {
        match self.inner {
            TxInner::Sqlite(lent) => lent.commit().await,
            TxInner::Mysql(lent) => lent.commit().await,
            TxInner::Postgres(lent) => lent.commit().await,
        }?;
        self.hub.notify_listeners(&self.hints);
        Ok(())
    }

    /// Rolls back, and waits for the end of the rollback.
    pub async fn rollback(self) -> Result<()> {
        match self.inner {
            TxInner::Sqlite(lent) => lent.rollback().await,
            TxInner::Mysql(lent) => lent.rollback().await,
            TxInner::Postgres(lent) => lent.rollback().await,
        }
    }
}
