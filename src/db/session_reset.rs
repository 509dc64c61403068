//! A session after a body, made as new for the next one, or found to be spent.
//!
//! Opening a session costs a server more than most bodies do (a process of its own on PostgreSQL), and
//! keeping one as it is would hand a body the settings, temporary tables and locks of another's.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::mysql_server::MysqlServer;
use crate::db::results::{Results, Rows};
use crate::db::session::Session;
use crate::db::statement_counts::{MARIADB_COUNTS, MYSQL_COUNTS, StatementCounts};
use crate::db::wire::Wire;
use sqlx::Connection as _;
use std::borrow::Cow;

/// What a session is after a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// As it was when it was opened.
    AsNew,
    /// Something of the body is on it still, or may be: it is to be closed.
    Spent,
}

/// First words of statements that leave nothing on a connection to SQLite. It has no procedures, and
/// its triggers can do nothing else, so the text of a body says all that it does.
const LEAVE_NOTHING: [&str; 8] =
    ["SELECT", "VALUES", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE", "EXPLAIN"];

/// What of a body may be on a session of PostgreSQL, and cannot be taken away: an open transaction, or
/// statements that it prepared by SQL (ours are told apart from those by `from_sql`). Locks are given back
/// with it. The text is parsed and planned behind each body: with the view `pg_prepared_statements` and a
/// condition all of it took 0.17 ms over TLS, of which 0.09 are the journey, and so it takes 0.145.
const POSTGRES_LEFT: &str = "SELECT transaction_timestamp() <> statement_timestamp(), \
    pg_catalog.pg_advisory_unlock_all(); SELECT (pg_catalog.pg_prepared_statement()).from_sql";

/// What `DISCARD ALL` does, but that our prepared statements stay, and in one journey together with the
/// question: it may not stand beside others.
const POSTGRES_RENEWED: &str = "SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; \
    DISCARD TEMP; DISCARD SEQUENCES";

/// How many statements with values bodies may have had on a session of PostgreSQL before their plans are
/// forgotten, which is a journey and has ours prepared anew. Less than the room there is
/// (`db::wire`), because a journey each is what forgetting one for another takes.
const BOUND_MOST: u32 = 8;

/// Locks of a body's are given back, and what is left of it is asked for: an open transaction, and
/// variables that are not ours.
const MARIADB_LEFT: &str = "SELECT RELEASE_ALL_LOCKS(), @@in_transaction, \
    (SELECT COUNT(*) FROM information_schema.user_variables \
     WHERE variable_name NOT LIKE 'procession\\_%')";

/// What MySQL answers to `SET TRANSACTION` if and only if a transaction is open (error 1568). Elsewhere it gives the next
/// transaction the mode that is usual.
pub(in crate::db) const MYSQL_TRANSACTION_PROBE: &str = "SET TRANSACTION READ WRITE";
const TRANSACTION_IS_OPEN: u16 = 1568;

/// The same on MySQL, whose list of variables a user may read who was granted SELECT on it; without that no
/// session can be shown to be as new.
const MYSQL_LEFT: &str = "SELECT RELEASE_ALL_LOCKS(), \
    (SELECT COUNT(*) FROM performance_schema.user_variables_by_thread \
     WHERE thread_id = PS_CURRENT_THREAD_ID() AND variable_name NOT LIKE 'procession\\_%')";

impl SessionError {
    /// Whether MySQL refused `MYSQL_TRANSACTION_PROBE` because a transaction is open.
    pub(in crate::db) fn is_transaction_open(&self) -> bool {
        matches!(self, Self::Database(error) if error.number == Some(TRANSACTION_IS_OPEN))
    }
}

impl Session {
    /// Makes the session what it was when it was opened, as far as its server can be asked to; else it
    /// is spent. Every lock of its is given back.
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
        // Fewer than the driver believes in when the body said DEALLOCATE ALL.
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

    /// Leaves it to the next lock to make the session as new, where that is done in one journey with it
    /// (MariaDB: 0.09 of 0.25 ms). `false` where it is to be done now.
    pub fn put_renewal_off(&mut self) -> bool {
        let may = self.is_mariadb() && self.traces.counted.is_some() && !self.brake().is_on();
        self.traces.is_used = may;
        may
    }

    /// Whether a body was on it that it was not made as new behind.
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

    /// `sql` behind a SET that takes the arguments of the last CALL back: one of them may have been a secret.
    fn without_arguments(&mut self, sql: String) -> String {
        let names: Vec<String> = (0..std::mem::take(&mut self.traces.arguments))
            .map(|at| format!("@procession_p{at} = NULL"))
            .collect();
        if names.is_empty() { sql } else { format!("SET {}; {sql}", names.join(", ")) }
    }

    /// What MariaDB's answer means that begins with that to `mariadb_question`.
    pub(in crate::db) fn renewal_in(&mut self, answer: &Rows) -> Renewal {
        self.traces.is_used = false;
        let nothing_is_open = answer.first(1) == Some("0") && answer.first(2) == Some("0");
        let is_as_counted =
            self.is_as_counted(answer.first(3).and_then(StatementCounts::from_mariadb));
        if nothing_is_open && is_as_counted { Renewal::AsNew } else { Renewal::Spent }
    }

    /// Whether the server has counted nothing but SETs of ours since the session was opened.
    fn is_as_counted(&self, now: Option<StatementCounts>) -> bool {
        let (then, sets) = (self.traces.counted.as_ref(), self.traces.own_sets);
        then.zip(now).is_some_and(|(then, now)| then.is_only_followed_by_sets(&now, sets))
    }

    /// Learns what the server has counted of a session that is new; nothing where that, or what else is to be
    /// known to keep the session, is kept from this user.
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

    /// Whether the server lets it be seen what a body left on the session, without which it is not kept for the next
    /// one; as counted when its limits were set.
    pub fn can_be_kept(&self) -> bool {
        self.dialect() != Dialect::Mysql || self.traces.counted.is_some()
    }

    /// The result sets of a question; `None` when the server refuses it.
    async fn rows_if_allowed(&mut self, sql: &str) -> Result<Option<Vec<Rows>>, SessionError> {
        let mut answer = Results::keeping(1_000, 2);
        match self.send_statement(sql, &[], &mut answer).await {
            Ok(()) => Ok(Some(answer.sets)),
            Err(SessionError::Database(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes notice of the variables `@procession_p0` and so on that hold the arguments of a CALL, so that
    /// the next body does not find them.
    pub fn has_arguments(&mut self, count: usize) {
        self.traces.arguments = self.traces.arguments.max(count);
    }

    /// What is sent for a statement of a body: on PostgreSQL, if it is prepared, a text that no other is.
    ///
    /// The driver keeps what it has prepared by its text, and a plan of an earlier body's must not serve a
    /// table that was altered since ("cached plan must not change result type"). Forgetting all of them
    /// behind each body had ours prepared anew for the next: three journeys more for a CALL with values.
    pub(in crate::db) fn as_only<'s>(&mut self, sql: &'s str, is_prepared: bool) -> Cow<'s, str> {
        if self.dialect() != Dialect::Postgres || !is_prepared {
            return sql.into();
        }
        self.traces.bound += 1;
        // Behind the end of the statement, because `pg_stat_statements` before PostgreSQL 16 has an entry
        // for each text of a CALL, comments included, up to that.
        format!("{sql}\n;/* {} */", self.traces.bound).into()
    }

    /// Takes notice of what a statement of a body may leave behind.
    pub(in crate::db) fn leave_traces(&mut self, sql: &str) {
        if self.dialect() == Dialect::Sqlite {
            let first = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next();
            let word = first.unwrap_or_default().to_ascii_uppercase();
            self.traces.is_marked |= !LEAVE_NOTHING.contains(&word.as_str());
        }
    }
}

/// How many columns `mariadb_question` has.
pub(in crate::db) const MARIADB_ASKED: usize = 4;

/// Gives back every lock of a session of MariaDB and asks for what else is left on it.
pub(in crate::db) fn mariadb_question() -> String {
    format!("{MARIADB_LEFT}, ({MARIADB_COUNTS})")
}
