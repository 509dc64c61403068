//! Our own statements on a body's session, with `?` placeholders as in the metadata store.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::implicit_commit::{CommitEvidence, find_commit_evidence};
use crate::db::results::Results;
use crate::db::row::SqlValue;
use crate::db::session::{Arg, Session};
use chrono::SubsecRound as _;

impl Session {
    /// Runs a statement with `?` for every value, like `Tx::execute` in the metadata store; returns
    /// the number of rows found.
    pub async fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, SessionError> {
        let (text, args) = with_args(self.dialect(), sql, values);
        Ok(self.run_statement(&text, &args).await?.rows_affected)
    }

    /// Runs a query with `?` for every value.
    pub async fn run_internal(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        into: &mut Results,
    ) -> Result<(), SessionError> {
        let (text, args) = with_args(self.dialect(), sql, values);
        self.send_statement(&text, &args, into).await
    }

    /// Whether a statement on this session, also inside a procedure, committed explicitly or
    /// implicitly (`db::implicit_commit`). Only MySQL and MariaDB count statements, and only there
    /// can a body end our transaction. For a session whose transaction we began with `autocommit`
    /// off; meaningless after our own `commit`.
    pub async fn find_commit_evidence(&mut self) -> Result<CommitEvidence, SessionError> {
        if self.dialect() != Dialect::Mysql {
            return Ok(CommitEvidence::None);
        }
        let autocommit =
            self.query_rows("SELECT @@SESSION.autocommit", &[]).await?.first(0) == Some("1");
        let counters = self.query_rows("SHOW SESSION STATUS LIKE 'Com\\_%'", &[]).await?.rows;
        let counters = counters.iter().filter_map(|row| match &row[..] {
            [Some(name), Some(count)] => Some((name.as_str(), count.parse().unwrap_or(1))),
            _ => None,
        });
        Ok(find_commit_evidence(counters, self.is_mariadb(), autocommit))
    }
}

/// An internal statement in the form for a session. PostgreSQL gets a cast for each type, because
/// there every argument is text; MySQL gets times as text in UTC, which a DATETIME stores unchanged
/// whatever the session's time zone.
fn with_args(dialect: Dialect, sql: &str, values: &[SqlValue]) -> (String, Vec<Arg>) {
    let arg = |value: &SqlValue| match value {
        SqlValue::Int(number) => number.map_or(Arg::Null, Arg::Int),
        SqlValue::Text(text) => text.clone().map_or(Arg::Null, Arg::Text),
        SqlValue::Time(at) => at.map_or(Arg::Null, |at| {
            let at = at.trunc_subsecs(3);
            Arg::Text(match dialect {
                Dialect::Mysql => at.format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
                Dialect::Sqlite | Dialect::Postgres => at.to_rfc3339(),
            })
        }),
    };
    let args = values.iter().map(arg).collect();
    if dialect != Dialect::Postgres {
        return (sql.to_owned(), args);
    }
    let mut text = String::with_capacity(sql.len() + 16 * values.len());
    let mut pieces = sql.split('?');
    text.push_str(pieces.next().unwrap_or_default());
    for (at, piece) in pieces.enumerate() {
        let ty = match values.get(at) {
            Some(SqlValue::Int(_)) => "bigint",
            Some(SqlValue::Time(_)) => "timestamptz",
            Some(SqlValue::Text(_)) | None => "text",
        };
        text.push_str(&format!("${}::text::{ty}{piece}", at + 1));
    }
    (text, args)
}
