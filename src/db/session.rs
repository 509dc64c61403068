//! One connection to a data source. A second body may use it only once it is reset
//! (`session_reset`, `session_lock`): the state that a body leaves behind is unknown.

use crate::db::connect_error::NoSession;
use crate::db::dialect::Dialect;
use crate::db::fault::{ErrorCondition, SessionError};
use crate::db::mysql_server::MysqlServer;
use crate::db::results::{Results, Rows};
use crate::db::session_reset::MYSQL_TRANSACTION_PROBE;
use crate::db::sqlite_write_lock::WriteTimeout;
use crate::db::statement_counts::StatementCounts;
use crate::db::target::{self, CallError, CallResult, RoutineCall, TargetDatabase, UserPrivileges};
use crate::db::wire::{Wire, is_prepared};
use bigdecimal::BigDecimal;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Where to connect, and as which user.
#[derive(Clone)]
pub struct SessionTarget {
    /// `sqlite:file.db`, `mysql://user@host:3306/db` or `postgres://user@host:5432/db`.
    pub url: String,
    /// Its password, if it is not in the URL.
    pub password: Option<SecretString>,
    /// Shown in PostgreSQL's `application_name` after `procession:`.
    pub label: String,
    /// Time limit for connecting; sqlx itself waits forever for an address that drops packets.
    pub timeout: Duration,
    /// Which statements may be sent.
    pub guard: StatementGuard,
}

/// Refuses statements before they are sent, with the reason.
pub type StatementGuard = fn(&str) -> Result<(), String>;

/// Allows every statement.
pub fn let_all_through(_: &str) -> Result<(), String> {
    Ok(())
}

impl SessionTarget {
    /// The server family of its URL.
    pub fn database(&self) -> Option<&'static dyn TargetDatabase> {
        target::of_url(&self.url)
    }

    /// Whether both lead to the same server as the same user.
    pub fn is_same(&self, other: &Self) -> bool {
        let password =
            |target: &Self| target.password.as_ref().map(|p| p.expose_secret().to_owned());
        self.url == other.url && password(self) == password(other)
    }
}

/// Without the URL, into which the environment may have put a password.
impl std::fmt::Debug for SessionTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("label", &self.label).finish_non_exhaustive()
    }
}

/// A server session, distinguished from a later one with the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionId {
    /// MySQL's connection id, PostgreSQL's process id.
    pub number: i64,
    /// Server and start: `host:port@seconds` with the start of the backend on PostgreSQL and of the
    /// server on MySQL, which never reuses a number while it runs.
    pub stamp: String,
}

/// A cancellation flag: once it is set, the session sends no further statement; a running statement
/// of SQLite is interrupted as well. Clones share it.
///
/// It is needed because a cancel can be swallowed: MariaDB's `DO SLEEP` ends with success when it
/// is killed, and without the flag the body would continue with its next statement.
#[derive(Clone, Debug, Default)]
pub struct Brake(Arc<AtomicBool>);

impl Brake {
    /// Sets the flag permanently.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the flag is set.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A value to bind.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// NULL.
    Null,
    /// Text; the only kind, besides NULL, that PostgreSQL statements should use, with a cast.
    Text(String),
    /// An integer or, on SQLite and MySQL, a boolean.
    Int(i64),
    /// An exact decimal; SQLite, which has none, gets the nearest number.
    Decimal(BigDecimal),
    /// A number with a floating point, for what no exact one holds.
    Double(f64),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A connection to a data source.
#[derive(Debug)]
pub struct Session {
    pub(in crate::db) wire: Wire,
    id: Option<SessionId>,
    brake: Brake,
    pub(in crate::db) facts: Vec<(&'static str, String)>,
    pub(in crate::db) label: String,
    /// Values of a CALL that are sent with the lock, by number.
    pub(in crate::db) given: Vec<Option<Arg>>,
    /// The product behind MySQL's protocol.
    server: Option<MysqlServer>,
    /// The default database of unqualified names; only on MySQL.
    pub(in crate::db) default_schema: Option<String>,
    pub(in crate::db) traces: SessionSideEffects,
    /// For SQLite.
    pub(in crate::db) patience: WriteTimeout,
    pub(in crate::db) guard: StatementGuard,
}

/// Effects on a session that outlive a statement.
#[derive(Debug, Default)]
pub(in crate::db) struct SessionSideEffects {
    /// Settings made when it was opened, in the server's notation; PostgreSQL's `RESET ALL` removes
    /// them.
    pub(in crate::db) settings: Vec<String>,
    /// A body has run SQL that may leave something behind and cannot be checked (SQLite).
    pub(in crate::db) is_marked: bool,
    /// Number of statements of bodies that the driver has prepared since its last reset
    /// (PostgreSQL).
    pub(in crate::db) bound: u32,
    /// The counters of MySQL or MariaDB when the session was opened; without them a reset cannot be
    /// verified.
    pub(in crate::db) counted: Option<StatementCounts>,
    /// A body has used it, and it is not reset yet (MariaDB).
    pub(in crate::db) is_used: bool,
    /// Our own SET statements since; the server counts them as well.
    pub(in crate::db) own_sets: u32,
    /// Number of variables `@procession_p0` and so on with arguments of a CALL.
    pub(in crate::db) arguments: usize,
}

/// Why OceanBase is refused. Observed on seekdb 1.4.0: for ten seconds after a session ended, by
/// itself or by KILL, GET_LOCK is refused to others and IS_USED_LOCK names the dead session.
const OCEANBASE: &str = "the server is OceanBase, which Procession does not support: it keeps the locks of a session \
    that has ended, so that a retry would wait for it and no kill could be confirmed; use MySQL, MariaDB or PostgreSQL";

/// Time limit for closing a session.
const CLOSE_TIME: Duration = Duration::from_secs(2);

impl Session {
    /// Connects. Time zone, `sql_mode` and similar settings stay as the server sets them, because a
    /// procedure that calls `NOW()` must see what it sees from the team's own client: sqlx by
    /// default sets UTC and changes the meaning of `||`.
    pub async fn open_session(target: &SessionTarget) -> Result<Self, NoSession> {
        let late = |_| NoSession::timed_out(format!("no connection within {:?}", target.timeout));
        tokio::time::timeout(target.timeout, Self::connect(target)).await.map_err(late)?
    }

    async fn connect(target: &SessionTarget) -> Result<Self, NoSession> {
        let brake = Brake::default();
        let wire = Wire::connect(target, &brake).await?;
        let (label, traces) = (String::new(), SessionSideEffects::default());
        let (id, facts, given, patience) = (None, Vec::new(), Vec::new(), WriteTimeout::default());
        let (server, default_schema, guard) = (None, None, target.guard);
        let mut session = Self {
            wire,
            id,
            brake,
            facts,
            label,
            given,
            server,
            default_schema,
            traces,
            patience,
            guard,
        };
        session.prepare().await?;
        match session.server {
            Some(MysqlServer::OceanBase) => Err(NoSession::unsupported(OCEANBASE)),
            Some(MysqlServer::Mysql | MysqlServer::MariaDb) | None => Ok(session),
        }
    }

    pub fn dialect(&self) -> Dialect {
        self.wire.dialect()
    }

    /// The server family.
    pub fn database(&self) -> &'static dyn TargetDatabase {
        self.server.map_or_else(|| target::of_dialect(self.dialect()), target::of_server)
    }

    /// The product behind MySQL's protocol; `None` for other servers.
    pub fn server(&self) -> Option<MysqlServer> {
        self.server
    }

    pub(in crate::db) fn is_mariadb(&self) -> bool {
        self.server == Some(MysqlServer::MariaDb)
    }

    /// The server's id of this session; `None` on SQLite.
    pub fn id(&self) -> Option<&SessionId> {
        self.id.as_ref()
    }

    /// The cancellation flag of this session.
    pub fn brake(&self) -> Brake {
        self.brake.clone()
    }

    /// Reads the identity of the session on the server.
    async fn prepare(&mut self) -> Result<(), SessionError> {
        let (number, stamp) = match self.dialect() {
            Dialect::Sqlite => return Ok(()),
            Dialect::Mysql => {
                // A server may start its clients with autocommit off; bodies expect it on.
                self.run_statement("SET autocommit = 1", &[]).await?;
                let who = "SELECT CONNECTION_ID(), CONCAT(@@hostname, ':', @@port), \
                           UNIX_TIMESTAMP(), DATABASE(), VERSION()";
                let who = self.query_rows(who, &[]).await?;
                let up = self.query_rows("SHOW GLOBAL STATUS LIKE 'Uptime'", &[]).await?;
                let int =
                    |text: Option<&str>| text.and_then(|t| t.parse::<i64>().ok()).unwrap_or(0);
                let start = int(who.first(2)) - int(up.first(1));
                self.default_schema = who.first(3).map(str::to_owned);
                self.server = Some(MysqlServer::from_version(who.first(4).unwrap_or_default()));
                (int(who.first(0)), format!("{}@{start}", who.first(1).unwrap_or_default()))
            }
            Dialect::Postgres => {
                // Not a connect option, because PostgreSQL 13 does not know it and would refuse.
                // With it an orphaned statement ends some seconds after this process has died.
                self.apply_setting("client_connection_check_interval = '5s'").await?;
                // The functions behind the view `pg_stat_activity`; the view itself takes 2 ms more
                // on a new session.
                let who = "SELECT pid, coalesce(inet_server_addr()::text, 'local') || ':' \
                           || coalesce(inet_server_port(), 0) || '@' || extract(epoch FROM backend_start) \
                           FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())";
                let who = self.query_rows(who, &[]).await?;
                let number = who.first(0).and_then(|t| t.parse().ok()).unwrap_or(0);
                (number, who.first(1).unwrap_or_default().to_owned())
            }
        };
        self.id = Some(SessionId { number, stamp });
        Ok(())
    }

    /// Makes the server end this session when it is idle for this long (whole seconds on MySQL),
    /// and notice within half a minute that this process is gone.
    ///
    /// A stalled process (SIGSTOP, a frozen machine) keeps its connections, and the session lock
    /// with them: measured 12 s on PostgreSQL and 8 s on MariaDB, for as long as the test waited.
    /// MariaDB lets no session set its keep-alives; they are the server's (`tcp_keepalive_time`) or
    /// the system's.
    pub async fn limit_idle(&mut self, idle: Duration) -> Result<(), SessionError> {
        let (ms, secs) = (idle.as_millis().clamp(1, 2_147_483_647), idle.as_secs_f64().ceil());
        match self.dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Mysql => {
                // Only MariaDB executes text in `/*M!`. A limit of the server's own may be shorter.
                // MySQL turns an unsigned and a signed number into a DECIMAL, and refuses it (error
                // 1232).
                let limit = format!(
                    "SET SESSION wait_timeout = CAST(LEAST(@@SESSION.wait_timeout, {secs}) AS UNSIGNED) \
                     /*M!100300 , SESSION idle_transaction_timeout = {secs} */"
                );
                self.run_statement(&limit, &[]).await?;
                self.count_traces().await
            }
            Dialect::Postgres => {
                let limits = format!(
                    "SET idle_in_transaction_session_timeout = {ms}; SET tcp_keepalives_idle = 10; \
                     SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
                );
                self.run_statement(&limits, &[]).await?;
                self.traces.settings.push(limits);
                self.apply_setting(&format!("idle_session_timeout = {ms}")).await
            }
        }
    }

    /// Applies a setting that an older PostgreSQL does not know: separately, because it refuses the
    /// whole text.
    async fn apply_setting(&mut self, what: &str) -> Result<(), SessionError> {
        let sql = format!("SET {what}");
        match self.run_statement(&sql, &[]).await {
            Ok(_) => self.traces.settings.push(sql),
            Err(SessionError::Database(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Runs one statement of a body to its end and keeps what fits into `into`.
    ///
    /// A procedure can fail after it has returned a result set, so the first row proves nothing: an
    /// error is seen only because everything is read.
    pub async fn run_into(
        &mut self,
        sql: &str,
        args: &[Arg],
        into: &mut Results,
    ) -> Result<(), SessionError> {
        self.leave_traces(sql);
        let sql = self.as_only(sql, is_prepared(sql, args, into, self.dialect()));
        self.send_statement(&sql, args, into).await
    }

    pub(in crate::db) async fn send_statement(
        &mut self,
        sql: &str,
        args: &[Arg],
        into: &mut Results,
    ) -> Result<(), SessionError> {
        if self.brake.is_on() {
            return Err(SessionError::Braked);
        }
        (self.guard)(sql).map_err(SessionError::refused)?;
        self.wire.send_statement(sql, args, into).await
    }

    /// Runs one statement of our own and keeps a little of its result.
    pub async fn run_statement(
        &mut self,
        sql: &str,
        args: &[Arg],
    ) -> Result<Results, SessionError> {
        let mut results = Results::keeping(1_000, 1);
        self.send_statement(sql, args, &mut results).await?;
        self.traces.own_sets += u32::from(sql.starts_with("SET "));
        Ok(results)
    }

    /// Runs one statement and returns its first result set.
    pub(crate) async fn query_rows(
        &mut self,
        sql: &str,
        args: &[Arg],
    ) -> Result<Rows, SessionError> {
        Ok(self.run_statement(sql, args).await?.sets.into_iter().next().unwrap_or_default())
    }

    /// Opens a transaction. On SQLite one that may write, at once: a deferred one that has read
    /// cannot wait for another writer (242 of 1,600 succeeded).
    pub async fn begin(&mut self) -> Result<(), SessionError> {
        match self.dialect() {
            Dialect::Sqlite => self.begin_immediate().await,
            Dialect::Mysql => self.run_statement("START TRANSACTION", &[]).await.map(|_| ()),
            Dialect::Postgres => self.run_statement("BEGIN", &[]).await.map(|_| ()),
        }
    }

    /// Opens the transaction of a body whose effects are recorded in it. Where bodies can end it,
    /// what they do afterwards is then rolled back with the rest and not kept statement by
    /// statement.
    pub async fn begin_recorded(&mut self) -> Result<(), SessionError> {
        match self.dialect() {
            Dialect::Mysql => self.run_statement("SET autocommit = 0", &[]).await.map(|_| ()),
            Dialect::Sqlite | Dialect::Postgres => self.begin().await,
        }
    }

    /// The privileges of our user (see `TargetDatabase::read_privileges`).
    pub async fn read_privileges(
        &mut self,
    ) -> Result<Option<Box<dyn UserPrivileges>>, SessionError> {
        self.database().read_privileges(self).await
    }

    /// Calls a routine to its end, and reads what it returned and left behind.
    pub async fn call_routine(&mut self, call: &RoutineCall<'_>) -> Result<CallResult, CallError> {
        self.database().call_routine(self, call).await
    }

    /// Makes this session read-only from now on, by a transaction that may only read.
    pub async fn only_read(&mut self) -> Result<(), SessionError> {
        match self.dialect() {
            Dialect::Sqlite => self.run_statement("PRAGMA query_only = ON", &[]).await.map(|_| ()),
            Dialect::Mysql => {
                // For later transactions as well: DDL ends the present one.
                self.run_statement("SET SESSION TRANSACTION READ ONLY", &[]).await?;
                self.run_statement("START TRANSACTION READ ONLY", &[]).await.map(|_| ())
            }
            Dialect::Postgres => self.run_statement("BEGIN READ ONLY", &[]).await.map(|_| ()),
        }
    }

    /// Commits; fails when the cancellation flag is set.
    pub async fn commit(&mut self) -> Result<(), SessionError> {
        self.run_statement("COMMIT", &[]).await?;
        self.patience.pass_on();
        Ok(())
    }

    /// Rolls back, whether the cancellation flag is set or not.
    pub async fn rollback(&mut self) -> Result<(), SessionError> {
        let done = self.wire.send_statement("ROLLBACK", &[], &mut Results::default()).await;
        self.patience.pass_on();
        done
    }

    /// Level, number and text of each warning of the last statement; only MySQL keeps such a list,
    /// and for a CALL it contains those of the last statement inside.
    pub async fn warnings(&mut self) -> Result<Vec<(String, String, String)>, SessionError> {
        if self.dialect() != Dialect::Mysql {
            return Ok(Vec::new());
        }
        Ok(self.query_rows("SHOW WARNINGS", &[]).await?.warnings())
    }

    /// Whether the body left a transaction open, which closing the session would silently roll
    /// back.
    pub async fn has_open_transaction(&mut self) -> Result<bool, SessionError> {
        let (sql, no) = match self.dialect() {
            // A second BEGIN is refused inside a transaction.
            Dialect::Sqlite => return self.sqlite_in_transaction().await,
            Dialect::Mysql if self.is_mariadb() => ("SELECT @@in_transaction", "0"),
            Dialect::Mysql => {
                return match self.run_statement(MYSQL_TRANSACTION_PROBE, &[]).await {
                    Ok(_) => Ok(false),
                    Err(error) if error.is(ErrorCondition::TransactionOpen) => Ok(true),
                    Err(other) => Err(other),
                };
            }
            // Outside of a block both are the start of this very statement.
            Dialect::Postgres => ("SELECT transaction_timestamp() <> statement_timestamp()", "f"),
        };
        match self.query_rows(sql, &[]).await {
            Ok(answer) => Ok(answer.first(0) != Some(no)),
            // The transaction is not only open but failed.
            Err(error) if error.is(ErrorCondition::TransactionOpen) => Ok(true),
            Err(other) => Err(other),
        }
    }

    async fn sqlite_in_transaction(&mut self) -> Result<bool, SessionError> {
        match self.run_statement("BEGIN", &[]).await {
            Ok(_) => self.rollback().await.map(|()| false),
            Err(SessionError::Database(_)) => Ok(true),
            Err(other) => Err(other),
        }
    }

    /// Closes the connection, so that the server ends the session now and not when it notices.
    pub async fn close(self) {
        let _the_server_will_notice = tokio::time::timeout(CLOSE_TIME, self.wire.close()).await;
    }
}
