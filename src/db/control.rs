//! A second connection that stops what runs on a first one, and looks whether it is gone.
//!
//! Dropping a future or a socket never stops a server: rows went on appearing on both.

use crate::db::connect_error::NoSession;
use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::session::{Arg, Session, SessionId, SessionTarget};

/// A connection for stopping others.
#[derive(Debug)]
pub struct Control {
    session: Session,
}

/// What was seen of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It lives.
    There,
    /// The server has no such session.
    NotThere,
    /// The server has been started anew since, which ended it.
    Restarted,
    /// Another server answered, which knows nothing of it; with both names.
    OtherServer(String),
}

/// Clocks are read twice to learn when a server started; so far apart the answers may be.
const START_JITTER: i64 = 5;

impl Control {
    /// Connects; `None` for SQLite, whose statements are stopped by the session's brake.
    pub async fn open_control(target: &SessionTarget) -> Result<Option<Self>, NoSession> {
        let target = SessionTarget { label: "control".to_owned(), ..target.clone() };
        let session = Session::open_session(&target).await?;
        Ok((session.dialect() != Dialect::Sqlite).then_some(Self { session }))
    }

    /// Asks PostgreSQL to end the statement that session `id` runs; whether it was asked, which it
    /// is not when there is no such session (any more). A body may swallow it.
    pub async fn cancel(&mut self, id: &SessionId) -> Result<bool, SessionError> {
        self.signal(id, "pg_cancel_backend").await
    }

    /// Asks the server to end session `id` altogether; whether it was asked, as of `cancel`.
    pub async fn terminate(&mut self, id: &SessionId) -> Result<bool, SessionError> {
        if self.session.dialect() != Dialect::Mysql {
            return self.signal(id, "pg_terminate_backend").await;
        }
        if !self.is_same_server(id)? {
            return Ok(false);
        }
        match self.session.run_statement(&format!("KILL CONNECTION {}", id.number), &[]).await {
            Ok(_) => Ok(true),
            // 1094: no such thread.
            Err(SessionError::Database(error)) if error.number == Some(1094) => Ok(false),
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

    /// Whether session `id` still lives on the server; an error when another server answered.
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

    /// Whether lock `lock_name` is held by session `id`; an error when another server answered.
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

    /// Looks for session `id`: in the process list, or (because MariaDB's list hides from a user
    /// without the PROCESS privilege a session of its own that runs somebody else's SQL SECURITY
    /// DEFINER procedure) as the holder of lock `lock_name`.
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

    /// Whether our server is the one that `id` lives on: `false` when that server has started anew
    /// since, which ended the session; an error when it is another server, which knows nothing of
    /// the session and must not be believed.
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

    /// Says good-bye.
    pub async fn close(self) {
        self.session.close().await;
    }
}
