//! The lock that a body takes on its session, and what it is told with it.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::session::{Arg, Session};

/// What a session on PostgreSQL is called.
pub(in crate::db) fn shown_as(label: &str) -> String {
    format!("procession:{label}").chars().take(60).collect()
}

impl Session {
    /// What a body may ask its session for, by names that follow `procession`: variables
    /// `@procession_NAME` on MySQL, settings `procession.NAME` on PostgreSQL; SQLite has none. They
    /// are set by the statement that takes the lock, so that they cost no journey of their own.
    /// `label` is what PostgreSQL calls the session from then on, behind `procession:`.
    pub fn introduce(&mut self, facts: Vec<(&'static str, String)>, label: &str) {
        (self.facts, self.label) = (facts, shown_as(label));
    }

    /// Tries to take a lock that the server holds for this session until it ends. SQLite needs
    /// none: its bodies die with our process.
    pub async fn try_lock(&mut self, name: &str) -> Result<bool, SessionError> {
        let (mut sql, yes) = match self.dialect() {
            Dialect::Sqlite => return Ok(true),
            Dialect::Mysql => ("SELECT GET_LOCK(?, 0)".to_owned(), "1"),
            Dialect::Postgres => {
                let lock = "SELECT pg_catalog.pg_try_advisory_lock(hashtextextended($1::text, 0))";
                (lock.to_owned(), "true")
            }
        };
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
        if self.dialect() == Dialect::Postgres {
            args.push(Arg::Text(self.label.clone()));
            let name = args.len();
            sql.push_str(&format!(
                ", pg_catalog.set_config('application_name', ${name}::text, false)"
            ));
        }
        let answer = self.rows(&sql, &args).await?;
        Ok(answer.first(0) == Some(yes))
    }

    /// Gives the lock back before the session ends.
    pub async fn unlock(&mut self, name: &str) -> Result<(), SessionError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return Ok(()),
            Dialect::Mysql => "SELECT RELEASE_LOCK(?)",
            Dialect::Postgres => {
                "SELECT pg_catalog.pg_advisory_unlock(hashtextextended($1::text, 0))"
            }
        };
        self.run(sql, &[Arg::Text(name.to_owned())]).await.map(|_| ())
    }
}
