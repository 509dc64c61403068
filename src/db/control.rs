//! A second connection that stops what runs on a first one, and checks whether it is gone.
//!
//! Dropping a future or a socket never stops a server: on both MySQL and PostgreSQL rows continued
//! to appear.

use crate::db::connect_error::NoSession;
use crate::db::dialect::Dialect;
use crate::db::fault::{ErrorCondition, SessionError};
use crate::db::session::{Arg, Session, SessionId, SessionTarget};

/// A connection for stopping other sessions.
#[derive(Debug)]
pub struct Control {
    session: Session,
}

/// The observed state of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It exists.
    There,
    /// The server has no such session.
    NotThere,
    /// The server was restarted since, which ended it.
    Restarted,
    /// A different server answered, which does not know it; with both names.
    OtherServer(String),
}

/// The start time of a server is computed from two clock readings; accepted difference in seconds.
const START_JITTER: i64 = 5;

impl Control {
    /// Connects; `None` for SQLite, whose statements are stopped by the session's cancellation
    /// flag.
    pub async fn open_control(target: &SessionTarget) -> Result<Option<Self>, NoSession> {
        let target = SessionTarget { label: "control".to_owned(), ..target.clone() };
        let session = Session::open_session(&target).await?;
        Ok((session.dialect() != Dialect::Sqlite).then_some(Self { session }))
    }

    /// Requests PostgreSQL to cancel the statement of session `id`; `false` when there is no such
    /// session (any more). A body may swallow the cancel.
    pub async fn cancel(&mut self, id: &SessionId) -> Result<bool, SessionError> {
        self.signal(id, "pg_cancel_backend").await
    }

    /// Requests the server to end session `id`; the result is as for `cancel`.
    pub async fn terminate(&mut self, id: &SessionId) -> Result<bool, SessionError> {
        if self.session.dialect() != Dialect::Mysql {
            return self.signal(id, "pg_terminate_backend").await;
        }
        if !self.is_same_server(id)? {
            return Ok(false);
        }
        match self.session.run_statement(&format!("KILL CONNECTION {}", id.number), &[]).await {
            Ok(_) => Ok(true),
            Err(error) if error.is(ErrorCondition::NoSuchSession) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn signal(&mut self, id: &SessionId, pg: &str) -> Result<bool, SessionError> {
        let (_, start) = id.stamp.split_once('@').unwrap_or_default();
        self.is_same_server(id)?;
        let sql = format!(
            "SELECT pg_catalog.{pg}(pid) FROM pg_catalog.pg_stat_activity \
             WHERE pid = {} AND extract(epoch FROM backend_start)::text = $1::text",
            id.number
        );
        let answer = self.session.query_rows(&sql, &[Arg::Text(start.to_owned())]).await?;
        Ok(answer.first(0) == Some("true"))
    }

    /// Whether session `id` still exists on the server; an error when a different server answered.
    pub async fn is_alive(
        &mut self,
        id: &SessionId,
        lock_name: &str,
    ) -> Result<bool, SessionError> {
        match self.look_at_session(id, lock_name).await? {
            Sight::There => Ok(true),
            Sight::NotThere | Sight::Restarted => Ok(false),
            Sight::OtherServer(said) => Err(SessionError::Lost(said)),
        }
    }

    /// Whether lock `lock_name` is held by session `id`; an error when a different server answered.
    pub async fn holds_lock(
        &mut self,
        id: &SessionId,
        lock_name: &str,
    ) -> Result<bool, SessionError> {
        if !self.is_same_server(id)? {
            return Ok(false);
        }
        let holder = self.session.lock_holder(lock_name).await?;
        Ok(holder.is_some_and(|holder| holder.id.number == id.number))
    }

    /// Whether the process list shows that session `id` is running a statement.
    pub async fn is_busy(&mut self, id: &SessionId) -> Result<bool, SessionError> {
        let (list, busy) = match self.session.dialect() {
            Dialect::Mysql => ("information_schema.processlist WHERE id", "command <> 'Sleep'"),
            Dialect::Sqlite | Dialect::Postgres => {
                ("pg_catalog.pg_stat_activity WHERE pid", "state = 'active'")
            }
        };
        let sql = format!("SELECT COUNT(*) FROM {list} = {} AND {busy}", id.number);
        Ok(self.session.query_rows(&sql, &[]).await?.first(0) == Some("1"))
    }

    /// Looks for session `id`: in the process list, or as the holder of lock `lock_name`, because
    /// MariaDB's list hides from a user without the PROCESS privilege a session of its own that
    /// runs another user's SQL SECURITY DEFINER procedure.
    pub async fn look_at_session(
        &mut self,
        id: &SessionId,
        lock_name: &str,
    ) -> Result<Sight, SessionError> {
        match self.is_same_server(id) {
            Ok(true) => {}
            Ok(false) => return Ok(Sight::Restarted),
            Err(said) => return Ok(Sight::OtherServer(said.to_string())),
        }
        let (_, start) = id.stamp.split_once('@').unwrap_or_default();
        let (sql, arg) = match self.session.dialect() {
            Dialect::Mysql => (
                format!(
                    "SELECT CASE WHEN EXISTS \
                     (SELECT 1 FROM information_schema.processlist WHERE id = {0}) \
                     OR COALESCE(IS_USED_LOCK(?) = {0}, 0) THEN 'there' ELSE 'gone' END",
                    id.number
                ),
                lock_name,
            ),
            Dialect::Sqlite | Dialect::Postgres => (
                format!(
                    "SELECT CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_stat_activity \
                     WHERE pid = {} AND extract(epoch FROM backend_start)::text = $1::text) THEN 'there' \
                     WHEN extract(epoch FROM pg_catalog.pg_postmaster_start_time()) > $1::text::numeric \
                     THEN 'restarted' ELSE 'gone' END",
                    id.number
                ),
                start,
            ),
        };
        let answer = self.session.query_rows(&sql, &[Arg::Text(arg.to_owned())]).await?;
        Ok(match answer.first(0) {
            Some("there") => Sight::There,
            Some("restarted") => Sight::Restarted,
            _ => Sight::NotThere,
        })
    }

    /// Whether this server is the one on which `id` was opened: `false` when that server was
    /// restarted since, which ended the session; an error when it is a different server, which does
    /// not know the session and must not be trusted.
    fn is_same_server(&self, id: &SessionId) -> Result<bool, SessionError> {
        let ours = self.session.id().map_or("", |own| own.stamp.as_str());
        let (our_host, our_start) = ours.split_once('@').unwrap_or_default();
        let (host, start) = id.stamp.split_once('@').unwrap_or_default();
        if our_host != host {
            let said = format!("reached server {our_host}, but the session is on {host}");
            return Err(SessionError::Lost(said));
        }
        let seconds = |text: &str| text.parse::<i64>().unwrap_or(0);
        Ok(self.session.dialect() != Dialect::Mysql
            || (seconds(our_start) - seconds(start)).abs() <= START_JITTER)
    }

    /// Closes the connection.
    pub async fn close(self) {
        self.session.close().await;
    }
}
