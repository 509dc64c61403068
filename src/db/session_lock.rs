//! The session lock of a body, and the facts and values that are sent with it.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::results::Rows;
use crate::db::routine::{Routine, postgres_routines, routines_in};
use crate::db::session::{Arg, Session};
use crate::db::session_reset::{MARIADB_ASKED, Renewal, mariadb_question};

/// The result of trying to take a session's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The session has it.
    Gained,
    /// Another session has it.
    Taken,
    /// The previous body left something on the session: it must be closed.
    Spent,
}

/// The application name of a session on PostgreSQL.
pub(in crate::db) fn shown_as(label: &str) -> String {
    format!("procession:{label}").chars().take(60).collect()
}

impl Session {
    /// Facts for the body, by names after `procession`: variables `@procession_NAME` on MySQL,
    /// settings `procession.NAME` on PostgreSQL; SQLite has none. They are set by the statement
    /// that takes the lock, so that they cost no round trip of their own. `label` becomes
    /// PostgreSQL's application name, after `procession:`.
    ///
    /// `given` are values for a CALL by number, set in the same way: `@procession_pNUMBER` on
    /// MySQL, `procession.pNUMBER` on PostgreSQL, where NULL cannot be set. A CALL that names those
    /// has no bound values, so it takes one round trip, without the round trips for preparing.
    /// Values that must not be sent are set to nothing, so that the texts of this statement differ
    /// only in their number.
    pub fn introduce(
        &mut self,
        facts: Vec<(&'static str, String)>,
        label: &str,
        given: Vec<Option<Arg>>,
    ) {
        (self.facts, self.label, self.given) = (facts, shown_as(label), given);
    }

    /// Whether the value of this number was sent with the lock.
    pub fn is_given(&self, number: usize) -> bool {
        self.given.get(number).is_some_and(Option::is_some)
    }

    /// Tries to take a lock that the server holds for this session until it ends. SQLite needs
    /// none: its bodies die with this process. A session that still has to be reset is reset first,
    /// in the same statement.
    pub async fn try_lock(&mut self, name: &str) -> Result<Lock, SessionError> {
        if self.dialect() == Dialect::Sqlite {
            return Ok(Lock::Gained);
        }
        let is_used = self.is_used();
        let (mut sql, args) = self.lock_items(name);
        if is_used {
            // Arguments of the previous body that the new ones do not replace.
            for number in self.given.len()..self.traces.arguments {
                sql.push_str(&format!(", @procession_p{number} := NULL"));
            }
            self.traces.arguments = 0;
        }
        // Selected items are evaluated in order: all locks are released, then this one is taken.
        let sql = if is_used {
            format!("{}, {sql}", mariadb_question())
        } else {
            format!("SELECT {sql}")
        };
        // To be removed after the body; on PostgreSQL all settings are.
        self.has_arguments(self.given.len());
        let answer = self.query_rows(&sql, &args).await?;
        if is_used && self.renewal_in(&answer) == Renewal::Spent {
            return Ok(Lock::Spent);
        }
        Ok(self.lock_in(&answer, if is_used { MARIADB_ASKED } else { 0 }))
    }

    /// The same and, where that costs no extra round trip (PostgreSQL), with the routines of a
    /// schema and name, as `routines` returns them; `None` elsewhere.
    pub async fn try_lock_and_look(
        &mut self,
        name: &str,
        schema: Option<&str>,
        routine: &str,
    ) -> Result<(Lock, Option<Vec<Routine>>), SessionError> {
        if self.dialect() != Dialect::Postgres {
            return Ok((self.try_lock(name).await?, None));
        }
        let (lock, mut args) = self.lock_items(name);
        args.push(schema.map_or(Arg::Null, |schema| Arg::Text(schema.to_owned())));
        args.push(Arg::Text(routine.to_owned()));
        let routines = postgres_routines(args.len() - 1, args.len());
        // Materialized: it is evaluated once, whatever is joined to it.
        let sql = format!(
            "WITH gained AS MATERIALIZED (SELECT {lock}) SELECT gained.locked, routine.* FROM gained \
             LEFT JOIN ({routines}) routine ON true"
        );
        let answer = self.query_rows(&sql, &args).await?;
        Ok((self.lock_in(&answer, 0), Some(routines_in(&answer, 1))))
    }

    fn lock_in(&self, answer: &Rows, at: usize) -> Lock {
        let yes = if self.dialect() == Dialect::Postgres { "true" } else { "1" };
        if answer.first(at) == Some(yes) { Lock::Gained } else { Lock::Taken }
    }

    /// The select items that take the lock and set the session's facts, on a server.
    fn lock_items(&self, name: &str) -> (String, Vec<Arg>) {
        let mut sql = match self.dialect() {
            Dialect::Sqlite | Dialect::Mysql => "GET_LOCK(?, 0)",
            Dialect::Postgres => {
                "pg_catalog.pg_try_advisory_lock(hashtextextended($1::text, 0)) AS locked"
            }
        }
        .to_owned();
        let mut args = vec![Arg::Text(name.to_owned())];
        for (fact, value) in &self.facts {
            args.push(Arg::Text(value.clone()));
            sql.push_str(&match self.dialect() {
                Dialect::Sqlite | Dialect::Mysql => format!(", @procession_{fact} := ?"),
                Dialect::Postgres => format!(
                    ", pg_catalog.set_config('procession.{fact}', ${}::text, false)",
                    args.len()
                ),
            });
        }
        for (number, value) in self.given.iter().enumerate() {
            args.push(value.clone().unwrap_or(match self.dialect() {
                Dialect::Sqlite | Dialect::Mysql => Arg::Null,
                Dialect::Postgres => Arg::Text(String::new()),
            }));
            sql.push_str(&match self.dialect() {
                Dialect::Sqlite | Dialect::Mysql => format!(", @procession_p{number} := ?"),
                Dialect::Postgres => format!(
                    ", pg_catalog.set_config('procession.p{number}', ${}::text, false)",
                    args.len()
                ),
            });
        }
        if self.dialect() == Dialect::Postgres {
            args.push(Arg::Text(self.label.clone()));
            let name = args.len();
            sql.push_str(&format!(
                ", pg_catalog.set_config('application_name', ${name}::text, false)"
            ));
        }
        (sql, args)
    }

    /// Releases the lock before the session ends.
    pub async fn unlock(&mut self, name: &str) -> Result<(), SessionError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return Ok(()),
            Dialect::Mysql => "SELECT RELEASE_LOCK(?)",
            Dialect::Postgres => {
                "SELECT pg_catalog.pg_advisory_unlock(hashtextextended($1::text, 0))"
            }
        };
        self.run_statement(sql, &[Arg::Text(name.to_owned())]).await.map(|_| ())
    }
}
