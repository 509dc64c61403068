//! What a session of the metadata database is told before it is used.

use crate::db::pool::Prepare;
use futures_util::future::BoxFuture;
use sqlx::Executor as _;
use sqlx::mysql::{MySql, MySqlConnection};
use sqlx::postgres::PgConnection;

/// How long the server waits for locks, and keeps those of a session that has fallen silent in a
/// transaction. SQLite has one writer and no server; there it makes no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionTimeouts {
    /// 10 s and 30 s: everything a dispatcher does.
    Usual,
    /// 3 s and 5 s: a lock that all nodes want, under which nothing slow is done. A holder that was
    /// stopped in the middle kept such a row for as long as anybody waited (12 s on PostgreSQL, 8 s on
    /// MariaDB), and then committed.
    Brief,
    /// 10 s and 10 s: transactions that open the batches of firings. A process that was stopped in one kept its
    /// schedules from firing for 30 to 39 s.
    Firing,
}

impl SessionTimeouts {
    /// What PostgreSQL is told with the first packet.
    pub(super) fn postgres(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (lock, idle) = match self {
            Self::Usual => ("10s", "30s"),
            Self::Brief => ("3s", "5s"),
            Self::Firing => ("10s", "10s"),
        };
        let own = [("lock_timeout", lock), ("idle_in_transaction_session_timeout", idle)];
        own.into_iter().chain(POSTGRES_SESSION)
    }

    /// What a new session on MySQL is told.
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
        // MySQL has no limit for idle transactions, only for idle sessions; a pass comes oftener.
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
        // On MySQL it is the limit for idle sessions too; one that was closed by it is noticed when it is asked for.
        conn.execute("SET SESSION wait_timeout = 10 /*M! , idle_transaction_timeout = 10 */")
            .await?;
        Ok(())
    })
}

async fn prepare_mysql(conn: &mut MySqlConnection) -> sqlx::Result<()> {
    // REPEATABLE READ takes its snapshot at the first plain SELECT and then shows old rows after a
    // lock was gained.
    conn.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
    // The server lets go of a session, and of the rows it has locked, when nothing more is heard of
    // us. Only MariaDB knows `idle_transaction_timeout`, and only it reads such a comment.
    conn.execute(
        "SET SESSION innodb_lock_wait_timeout = 10, wait_timeout = 60 \
         /*M! , idle_transaction_timeout = 30 */",
    )
    .await?;
    Ok(())
}

/// So that the server lets go of a session, and of the rows it has locked, soon after the peer is gone: 25 s when our machine is no longer there.
const POSTGRES_SESSION: [(&str, &str); 4] = [
    ("tcp_user_timeout", "25s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];

pub(super) fn postgres_session(conn: &mut PgConnection) -> BoxFuture<'_, sqlx::Result<()>> {
    Box::pin(prepare_postgres(conn))
}

/// A statement whose client is gone is ended. Not a connect option, and no error when it is refused:
/// PostgreSQL 13 does not know it, and some systems cannot do it.
pub(super) async fn prepare_postgres(conn: &mut PgConnection) -> sqlx::Result<()> {
    match conn.execute("SET client_connection_check_interval = '5s'").await {
        Ok(_) | Err(sqlx::Error::Database(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
