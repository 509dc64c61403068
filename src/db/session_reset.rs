//! Resets a session after a body for the next one, or finds that it must be closed.
//!
//! Opening a session costs a server more than most bodies do (a process of its own on PostgreSQL),
//! and reusing one unchanged would pass on the settings, temporary tables and locks of another
//! body.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::mysql_server::MysqlServer;
use crate::db::results::{Results, Rows};
use crate::db::session::Session;
use crate::db::statement_counts::{MARIADB_COUNTS, MYSQL_COUNTS, StatementCounts};
use crate::db::wire::Wire;
use sqlx::Connection as _;
use std::borrow::Cow;

/// The state of a session after a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// As it was when it was opened.
    AsNew,
    /// It has, or may have, traces of the body: it must be closed.
    Spent,
}

/// First words of statements that leave nothing on a connection to SQLite. It has no procedures,
/// and its triggers can do nothing else, so the text of a body is all that it does.
const LEAVE_NOTHING: [&str; 8] =
    ["SELECT", "VALUES", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE", "EXPLAIN"];

/// Traces of a body on a session of PostgreSQL that cannot be removed: an open transaction, or
/// statements prepared by SQL (`from_sql` distinguishes them from ours). Locks are released with
/// it. The text is parsed and planned after each body: with the view `pg_prepared_statements` and a
/// condition it took 0.17 ms over TLS, of which 0.09 are the round trip; this form takes 0.145.
const POSTGRES_LEFT: &str = "SELECT transaction_timestamp() <> statement_timestamp(), \
    pg_catalog.pg_advisory_unlock_all(); SELECT (pg_catalog.pg_prepared_statement()).from_sql";

/// The effect of `DISCARD ALL`, except that our prepared statements stay, and in one round trip
/// together with the query: `DISCARD ALL` cannot be combined with other statements.
const POSTGRES_RENEWED: &str = "SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; \
    DISCARD TEMP; DISCARD SEQUENCES";

/// Number of statements with values that bodies may have prepared on a session of PostgreSQL before
/// their plans are dropped, which takes a round trip and makes ours be prepared again. Below the
/// capacity (`db::wire`), because evicting one plan for another takes a round trip each time.
const BOUND_MOST: u32 = 8;

/// Releases the locks of a body, and reads its remaining traces: an open transaction, and variables
/// that are not ours.
const MARIADB_LEFT: &str = "SELECT RELEASE_ALL_LOCKS(), @@in_transaction, \
    (SELECT COUNT(*) FROM information_schema.user_variables \
     WHERE variable_name NOT LIKE 'procession\\_%')";

/// Fails on MySQL if and only if a transaction is open (error 1568). Otherwise it gives the next
/// transaction the default mode.
pub(in crate::db) const MYSQL_TRANSACTION_PROBE: &str = "SET TRANSACTION READ WRITE";

/// The same on MySQL, whose list of variables a user may read only with a grant of SELECT on it;
/// without that a reset cannot be verified.
const MYSQL_LEFT: &str = "SELECT RELEASE_ALL_LOCKS(), \
    (SELECT COUNT(*) FROM performance_schema.user_variables_by_thread \
     WHERE thread_id = PS_CURRENT_THREAD_ID() AND variable_name NOT LIKE 'procession\\_%')";

impl Session {
    /// Resets the session to its initial state, as far as its server supports that; otherwise it
    /// must be closed. All its locks are released.
    pub async fn renew(&mut self) -> Result<Renewal, SessionError> {
        if self.brake().is_on() || self.traces.is_marked {
            return Ok(Renewal::Spent);
        }
        match self.dialect() {
            // Statements that leave nothing open no transaction, and ours ended well.
            Dialect::Sqlite => self.wait_as_new().await.map(|()| Renewal::AsNew),
            Dialect::Postgres => self.renew_postgres().await,
            Dialect::Mysql if self.traces.counted.is_none() => Ok(Renewal::Spent),
            Dialect::Mysql if self.is_mariadb() => self.renew_mariadb().await,
            Dialect::Mysql => self.renew_mysql().await,
        }
    }

    async fn renew_postgres(&mut self) -> Result<Renewal, SessionError> {
        let settings = self.traces.settings.join("; ");
        let sql = format!("{POSTGRES_LEFT}; {POSTGRES_RENEWED}; {settings}");
        let mut left = Results::keeping(1_000, 2);
        self.send_statement(&sql, &[], &mut left).await?;
        let is_in_transaction = left.sets.first().and_then(|set| set.first(0)) != Some("f");
        let ours = match &self.wire {
            Wire::Postgres(conn) => conn.cached_statements_size(),
            Wire::Sqlite(_) | Wire::Mysql(_) => 0,
        };
        let prepared = left.sets.get(1).map_or(&[][..], |set| &set.rows);
        let is_ours = |row: &Vec<Option<String>>| row.first() == Some(&Some("f".to_owned()));
        // Fewer than the driver assumes when the body executed DEALLOCATE ALL.
        if is_in_transaction || prepared.len() != ours || !prepared.iter().all(is_ours) {
            return Ok(Renewal::Spent);
        }
        if self.traces.bound > BOUND_MOST
            && let Wire::Postgres(conn) = &mut self.wire
        {
            conn.clear_cached_statements().await?;
            self.traces.bound = 0;
        }
        Ok(Renewal::AsNew)
    }

    /// Leaves the reset to the next lock, where both take one round trip (MariaDB: saves 0.09 of
    /// 0.25 ms). `false` where it must be done now.
    pub fn put_renewal_off(&mut self) -> bool {
        let may = self.is_mariadb() && self.traces.counted.is_some() && !self.brake().is_on();
        self.traces.is_used = may;
        may
    }

    /// Whether a body has used it since the last reset.
    pub fn is_used(&self) -> bool {
        self.traces.is_used
    }

    async fn renew_mariadb(&mut self) -> Result<Renewal, SessionError> {
        let sql = self.without_arguments(mariadb_question());
        let left = self.query_rows(&sql, &[]).await?;
        Ok(self.renewal_in(&left))
    }

    async fn renew_mysql(&mut self) -> Result<Renewal, SessionError> {
        let question = format!("{MYSQL_TRANSACTION_PROBE}; {MYSQL_LEFT}; {MYSQL_COUNTS}");
        let sql = self.without_arguments(question);
        let sets = 1 + u32::from(sql.starts_with("SET @"));
        let mut left = Results::keeping(1_000, 2);
        match self.send_statement(&sql, &[], &mut left).await {
            Ok(()) => self.traces.own_sets += sets,
            Err(SessionError::Database(_)) => return Ok(Renewal::Spent),
            Err(error) => return Err(error),
        }
        let [left, counts] = &left.sets[..] else { return Ok(Renewal::Spent) };
        let has_no_variables = left.first(1) == Some("0");
        let is_as_new = has_no_variables && self.is_as_counted(StatementCounts::from_mysql(counts));
        Ok(if is_as_new { Renewal::AsNew } else { Renewal::Spent })
    }

    /// `sql` after a SET that clears the arguments of the last CALL: one of them may have been a
    /// secret.
    fn without_arguments(&mut self, sql: String) -> String {
        let names: Vec<String> = (0..std::mem::take(&mut self.traces.arguments))
            .map(|at| format!("@procession_p{at} = NULL"))
            .collect();
        if names.is_empty() { sql } else { format!("SET {}; {sql}", names.join(", ")) }
    }

    /// Evaluates MariaDB's answer that begins with that to `mariadb_question`.
    pub(in crate::db) fn renewal_in(&mut self, answer: &Rows) -> Renewal {
        self.traces.is_used = false;
        let nothing_is_open = answer.first(1) == Some("0") && answer.first(2) == Some("0");
        let is_as_counted =
            self.is_as_counted(answer.first(3).and_then(StatementCounts::from_mariadb));
        if nothing_is_open && is_as_counted { Renewal::AsNew } else { Renewal::Spent }
    }

    /// Whether the server has counted nothing but our own SETs since the session was opened.
    fn is_as_counted(&self, now: Option<StatementCounts>) -> bool {
        let (then, sets) = (self.traces.counted.as_ref(), self.traces.own_sets);
        then.zip(now).is_some_and(|(then, now)| then.is_only_followed_by_sets(&now, sets))
    }

    /// Reads the counters of a new session; keeps none where these, or other facts needed for a
    /// reset, are hidden from this user.
    pub(in crate::db) async fn count_traces(&mut self) -> Result<(), SessionError> {
        self.traces.counted = match self.server() {
            Some(MysqlServer::MariaDb) => self
                .rows_if_allowed(MARIADB_COUNTS)
                .await?
                .and_then(|sets| StatementCounts::from_mariadb(sets.first()?.first(0)?)),
            Some(MysqlServer::Mysql) => {
                let question = format!("{MYSQL_LEFT}; {MYSQL_COUNTS}");
                let sets = self.rows_if_allowed(&question).await?;
                sets.and_then(|sets| StatementCounts::from_mysql(sets.get(1)?))
            }
            Some(MysqlServer::OceanBase) | None => None,
        };
        self.traces.own_sets = 0;
        Ok(())
    }

    /// Whether the server shows the traces of a body on the session, without which it is not
    /// reused; known since its limits were set.
    pub fn can_be_kept(&self) -> bool {
        self.dialect() != Dialect::Mysql || self.traces.counted.is_some()
    }

    /// The result sets of a query; `None` when the server refuses it.
    async fn rows_if_allowed(&mut self, sql: &str) -> Result<Option<Vec<Rows>>, SessionError> {
        let mut answer = Results::keeping(1_000, 2);
        match self.send_statement(sql, &[], &mut answer).await {
            Ok(()) => Ok(Some(answer.sets)),
            Err(SessionError::Database(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Notes the variables `@procession_p0` and so on with arguments of a CALL, so that they are
    /// removed before the next body.
    pub fn has_arguments(&mut self, count: usize) {
        self.traces.arguments = self.traces.arguments.max(count);
    }

    /// The text to send for a statement of a body: on PostgreSQL, if it is prepared, a unique text.
    ///
    /// The driver caches prepared statements by their text, and a plan of an earlier body must not
    /// be used for a table that was altered since ("cached plan must not change result type").
    /// Dropping all of them after each body made ours be prepared again for the next: three round
    /// trips more for a CALL with values.
    pub(in crate::db) fn as_only<'s>(&mut self, sql: &'s str, is_prepared: bool) -> Cow<'s, str> {
        if self.dialect() != Dialect::Postgres || !is_prepared {
            return sql.into();
        }
        self.traces.bound += 1;
        // After the end of the statement, because `pg_stat_statements` before PostgreSQL 16 has an
        // entry for each text of a CALL, comments included, up to that.
        format!("{sql}\n;/* {} */", self.traces.bound).into()
    }

    /// Notes what a statement of a body may leave behind.
    pub(in crate::db) fn leave_traces(&mut self, sql: &str) {
        if self.dialect() == Dialect::Sqlite {
            let first = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next();
            let word = first.unwrap_or_default().to_ascii_uppercase();
            self.traces.is_marked |= !LEAVE_NOTHING.contains(&word.as_str());
        }
    }
}

/// Number of columns of `mariadb_question`.
pub(in crate::db) const MARIADB_ASKED: usize = 4;

/// Releases all locks of a session of MariaDB and reads its other traces.
pub(in crate::db) fn mariadb_question() -> String {
    format!("{MARIADB_LEFT}, ({MARIADB_COUNTS})")
}
