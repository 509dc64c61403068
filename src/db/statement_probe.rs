//! Lets a server check statements without running them.

use crate::db::fault::SessionError;
use crate::db::session::Session;
use crate::db::wire::Wire;
use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};

impl Session {
    /// Lets the server parse a statement with placeholders, and look up the names in it. Nothing is
    /// run.
    pub async fn probe_statement(&mut self, sql: &str) -> Result<(), SessionError> {
        (self.guard)(sql).map_err(SessionError::refused)?;
        let text = || AssertSqlSafe(sql.to_owned()).into_sql_str();
        match &mut self.wire {
            Wire::Sqlite(conn) => drop(conn.prepare(text()).await?),
            Wire::Mysql(conn) => drop(conn.prepare(text()).await?),
            Wire::Postgres(conn) => drop(conn.prepare(text()).await?),
        }
        Ok(())
    }
}
