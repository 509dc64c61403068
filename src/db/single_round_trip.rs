//! Sends independent statements together: a hop from job to job took seven round trips, each with a
//! switch of threads or processes at both ends, besides one durable commit.
//!
//! - PostgreSQL: one statement (data-modifying `WITH`), which is its own transaction.
//! - MariaDB: a compound statement (`BEGIN NOT ATOMIC`), prepared like any other.
//! - SQLite: one text of several statements, for which its thread is called once.
//! - MySQL has none of these; there they are sent one by one.

mod mariadb;
mod postgres;
mod sqlite;

#[cfg(debug_assertions)]
use crate::db::Error;
use crate::db::row::SqlValue;
use crate::db::{Db, DialectPools, Result, Tx, filled};

pub(in crate::db) use mariadb::takes_compounds;
pub(in crate::db) use postgres::AutocommitConnection;

/// A statement with the number of rows it must find.
#[derive(Clone, Debug)]
pub enum CountedStatement {
    /// `before IN (…) after`, an UPDATE or a locking SELECT, with `first` bound before the ids and
    /// `last` after them. It must find a row for each id.
    OnEach {
        /// The text up to the column of the ids.
        before: String,
        first: Vec<SqlValue>,
        /// Distinct ids.
        ids: Vec<i64>,
        /// The text after the ids.
        after: String,
        last: Vec<SqlValue>,
    },
    /// Rows to insert.
    Insert {
        /// The name of the table.
        table: &'static str,
        columns: &'static [&'static str],
        rows: Vec<Vec<SqlValue>>,
    },
}

/// The result of statements that were sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// All of it is committed.
    Done,
    /// One of them did not find all its rows, so nothing was written.
    Refused,
    /// This server cannot run them together, or not so many; nothing was sent.
    OneByOne,
}

impl Tx {
    /// Runs one statement; returns the number of rows found.
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
    /// Whether this server can run statements together.
    pub fn takes_together(&self) -> bool {
        match &self.pools {
            DialectPools::Sqlite { .. } | DialectPools::Postgres(_) => true,
            DialectPools::Mysql(_) => self.takes_compounds,
        }
    }

    /// Writes everything in one transaction of its own, or nothing. No statement may depend on
    /// another, and no two may change the same row.
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

/// Maximum number of rows that a text finds by their keys; more are worth their round trips.
const FOUND_MOST: usize = 128;

/// How each kind of statement is written for a server.
trait Accent {
    /// Adds a statement that must find rows; their number is its last value.
    fn found(&self, statement: &str, into: &mut Composed);
    /// Adds at least one row to insert.
    fn inserted(&self, table: &str, columns: &[&str], rows: &[Vec<SqlValue>], into: &mut Composed);
}

/// Combines statements into one text. `None` when they are too many for one.
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
            // The states of this many rows that begin and end, with a line or two of each.
            CountedStatement::Insert { rows, .. } if rows.len() > 4 * FOUND_MOST => return None,
            CountedStatement::Insert { table, columns, rows } => {
                accent.inserted(table, columns, rows, &mut all);
            }
        }
    }
    Some(all)
}

/// Adds an INSERT with one placeholder per value.
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
