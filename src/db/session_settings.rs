//! Settings of a session on the metadata database, applied before its first use.

use crate::db::pool::Prepare;
use futures_util::future::BoxFuture;
use sqlx::Executor as _;
use sqlx::mysql::{MySql, MySqlConnection};
use sqlx::postgres::PgConnection;

/// How long the server waits for locks, and keeps those of a session that falls silent in a
/// transaction. SQLite has one writer and no server; there it makes no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionTimeouts {
    /// 10 s and 30 s: everything a dispatcher does.
    Usual,
    /// 3 s and 5 s: a lock that all nodes need, under which nothing slow happens. A holder that was
    /// stopped in the middle kept such a row for as long as the test waited (12 s on PostgreSQL, 8
    /// s on MariaDB), and then committed.
    Brief,
    /// 10 s and 10 s: transactions that open the batches of firings. A process that was stopped in
    /// one blocked its schedules for 30 to 39 s.
    Firing,
}

impl SessionTimeouts {
    /// PostgreSQL's startup parameters.
    pub(super) fn postgres(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (lock, idle) = match self {
            Self::Usual => ("10s", "30s"),
            Self::Brief => ("3s", "5s"),
            Self::Firing => ("10s", "10s"),
        };
        let own = [("lock_timeout", lock), ("idle_in_transaction_session_timeout", idle)];
        own.into_iter().chain(POSTGRES_SESSION)
    }

    /// The statements for a new session on MySQL.
    pub(super) fn mysql(self) -> Prepare<MySql> {
        match self {
            Self::Usual => mysql_session,
            Self::Brief => mysql_brief_session,
            Self::Firing => mysql_firing_session,
        }
    }
}

fn mysql_session(conn: &mut MySqlConnection) -> BoxFuture<'_, sqlx::Result<()>> {
    Box::pin(prepare_mysql(conn))
}

fn mysql_brief_session(conn: &mut MySqlConnection) -> BoxFuture<'_, sqlx::Result<()>> {
    Box::pin(async {
        prepare_mysql(conn).await?;
        // MySQL has no limit for idle transactions, only for idle sessions; passes are more
        // frequent than that.
        conn.execute(
            "SET SESSION innodb_lock_wait_timeout = 3, wait_timeout = 12 \
             /*M! , idle_transaction_timeout = 5 */",
        )
        .await?;
        Ok(())
    })
}

fn mysql_firing_session(conn: &mut MySqlConnection) -> BoxFuture<'_, sqlx::Result<()>> {
    Box::pin(async {
        prepare_mysql(conn).await?;
        // On MySQL it is the limit for idle sessions too; a session closed by it is noticed at its
        // next use.
        conn.execute("SET SESSION wait_timeout = 10 /*M! , idle_transaction_timeout = 10 */")
            .await?;
        Ok(())
    })
}

async fn prepare_mysql(conn: &mut MySqlConnection) -> sqlx::Result<()> {
    // REPEATABLE READ takes its snapshot at the first plain SELECT and then shows old rows after a
    // lock was gained.
    conn.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
    // Makes the server end a session, and release its row locks, when this process is silent. Only
    // MariaDB supports `idle_transaction_timeout`, and only it executes such a comment.
    conn.execute(
        "SET SESSION innodb_lock_wait_timeout = 10, wait_timeout = 60 \
         /*M! , idle_transaction_timeout = 30 */",
    )
    .await?;
    Ok(())
}

/// Makes the server end a session, and release its row locks, soon after this process is gone: 25 s
/// when this machine is down.
const POSTGRES_SESSION: [(&str, &str); 4] = [
    ("tcp_user_timeout", "25s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];

pub(super) fn postgres_session(conn: &mut PgConnection) -> BoxFuture<'_, sqlx::Result<()>> {
    Box::pin(prepare_postgres(conn))
}

/// Ends a statement whose client is gone. Not a connect option, and a refusal is no error:
/// PostgreSQL 13 does not know it, and some systems do not support it.
pub(super) async fn prepare_postgres(conn: &mut PgConnection) -> sqlx::Result<()> {
    match conn.execute("SET client_connection_check_interval = '5s'").await {
        Ok(_) | Err(sqlx::Error::Database(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
