//! Statements that do not see each other, sent together: a hop from job to job was seven journeys, each
//! with a switch of threads or processes at both ends, beside one durable commit.
//!
//! - PostgreSQL: one statement (data-modifying `WITH`), which is its own transaction.
//! - MariaDB: a compound statement (`BEGIN NOT ATOMIC`), prepared like any other.
//! - SQLite: one text of several statements, for which its thread is asked once.
//! - MySQL has none of these; there they go one by one.

mod mariadb;
mod postgres;
mod sqlite;

#[cfg(debug_assertions)]
use crate::db::Error;
use crate::db::row::SqlValue;
use crate::db::{Db, DialectPools, Result, Tx, filled};

pub(in crate::db) use mariadb::takes_compounds;
pub(in crate::db) use postgres::AutocommitConnection;

/// A statement that says how many rows it has to find.
#[derive(Clone, Debug)]
pub enum CountedStatement {
    /// `before IN (…) after`, an UPDATE or a SELECT that locks, with `first` bound before the ids and
    /// `last` after them. It has to find a row for each.
    OnEach {
        /// Up to the column of the ids.
        before: String,
        /// Its values.
        first: Vec<SqlValue>,
        /// All different.
        ids: Vec<i64>,
        /// Behind the ids.
        after: String,
        /// Its values.
        last: Vec<SqlValue>,
    },
    /// Rows to be inserted.
    Insert {
        /// Into this table.
        table: &'static str,
        /// Its columns.
        columns: &'static [&'static str],
        /// Their values.
        rows: Vec<Vec<SqlValue>>,
    },
}

/// What became of statements that were sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// All of it is durable.
    Done,
    /// One of them did not find all its rows, so nothing was written.
    Refused,
    /// This server cannot take them together, or not so many; nothing was sent.
    OneByOne,
}

impl Tx {
    /// Runs one statement; gives the number of rows it found.
    pub async fn run_statement(&mut self, statement: CountedStatement) -> Result<u64> {
        match statement {
            CountedStatement::OnEach { before, first, ids, after, last } => {
                self.execute_in(&before, &first, &ids, &after, &last).await
            }
            CountedStatement::Insert { table, columns, rows } => {
                let count = rows.len() as u64;
                self.insert_many(table, columns, rows).await.map(|()| count)
            }
        }
    }
}

impl Db {
    /// Whether this server can take statements together.
    pub fn takes_together(&self) -> bool {
        match &self.pools {
            DialectPools::Sqlite { .. } | DialectPools::Postgres(_) => true,
            DialectPools::Mysql(_) => self.takes_compounds,
        }
    }

    /// Writes all of it in one transaction of its own, or nothing. None of the statements may rely on
    /// what another does, and no two may change the same row.
    pub async fn commit_together(&self, statements: Vec<CountedStatement>) -> Result<Together> {
        if !self.takes_together() {
            return Ok(Together::OneByOne);
        }
        failpoint_or!("db.statement", Error::TryAgain("a failpoint says so".to_owned()));
        match &self.pools {
            DialectPools::Postgres(_) if postgres::is_too_long(&statements) => {
                Ok(Together::OneByOne)
            }
            DialectPools::Postgres(pool) => {
                let pool = self.alone.as_ref().map_or(pool, |alone| alone.pool_or(pool));
                postgres::commit(pool.acquire().await?, statements).await
            }
            DialectPools::Mysql(pool) => {
                let Some(block) = mariadb::composed(&statements) else {
                    return Ok(Together::OneByOne);
                };
                mariadb::commit(pool.acquire().await?, block).await
            }
            DialectPools::Sqlite { writer, .. } => {
                let Some(script) = sqlite::composed(&statements) else {
                    return Ok(Together::OneByOne);
                };
                sqlite::commit(writer.acquire().await?, script).await
            }
        }
    }
}

/// A text with its values.
type Composed = (String, Vec<SqlValue>);

/// Rows that a text finds by their keys, at most; more are worth their journeys.
const FOUND_MOST: usize = 128;

/// What a server is told for each kind of statement.
trait Accent {
    /// Adds a statement that has to find rows, whose number comes as the last value.
    fn found(&self, statement: &str, into: &mut Composed);
    /// Adds rows to be inserted, of which there is one at least.
    fn inserted(&self, table: &str, columns: &[&str], rows: &[Vec<SqlValue>], into: &mut Composed);
}

/// Puts statements into one text. `None` when they are more than one text should hold.
fn composed(statements: &[CountedStatement], accent: &impl Accent) -> Option<Composed> {
    let mut all = (String::new(), Vec::new());
    for statement in statements {
        match statement {
            CountedStatement::OnEach { before, first, ids, after, last } => {
                if ids.len() > FOUND_MOST {
                    return None;
                }
                let (places, filled) = filled(ids);
                all.1.extend_from_slice(first);
                all.1.extend(filled);
                all.1.extend_from_slice(last);
                all.1.push(i64::try_from(ids.len()).unwrap_or(i64::MAX).into());
                accent.found(&format!("{before} IN ({places}) {after}"), &mut all);
            }
            CountedStatement::Insert { rows, .. } if rows.is_empty() => {}
            // As many as the states of so many rows that begin and end, with a line or two of each.
            CountedStatement::Insert { rows, .. } if rows.len() > 4 * FOUND_MOST => return None,
            CountedStatement::Insert { table, columns, rows } => {
                accent.inserted(table, columns, rows, &mut all);
            }
        }
    }
    Some(all)
}

/// Adds an INSERT that has a place for each value.
fn with_places(
    table: &str,
    columns: &[&str],
    rows: &[Vec<SqlValue>],
    (sql, values): &mut Composed,
) {
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    let texts = vec![row.as_str(); rows.len()].join(",");
    let columns = columns.join(", ");
    sql.push_str(&format!("INSERT INTO {table} ({columns}) VALUES {texts};\n"));
    values.extend(rows.iter().flatten().cloned());
}
