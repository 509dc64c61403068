//! Statements that do not see each other, sent together.
//!
//! On PostgreSQL they are one statement (data-modifying `WITH`), which is its own transaction: a hop from
//! job to job was seven journeys there, of some 0.1 ms each beside a commit of 0.4 ms, and is one.

#[cfg(feature = "failpoints")]
use crate::db::Error;
use crate::db::bulk::Column;
use crate::db::pool::Pool;
use crate::db::row::{Value, bind};
use crate::db::{Counts, Db, Dialect, Pools, Result, Tx};
use sqlx::{AssertSqlSafe, Postgres, Row as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A statement that says how many rows it has to find.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `before IN (…) after`, an UPDATE or a SELECT that locks, with `first` bound before the ids and
    /// `last` after them. It has to find a row for each.
    OnEach {
        /// Up to the column of the ids.
        before: String,
        /// Its values.
        first: Vec<Value>,
        /// All different.
        ids: Vec<i64>,
        /// Behind the ids.
        after: String,
        /// Its values.
        last: Vec<Value>,
    },
    /// Rows to be inserted.
    Insert {
        /// Into this table.
        table: &'static str,
        /// Its columns.
        columns: &'static [&'static str],
        /// Their values.
        rows: Vec<Vec<Value>>,
    },
}

/// What became of statements that were sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// All of it is durable.
    Done,
    /// One of them did not find all its rows, so nothing was written.
    Refused,
    /// This server cannot take them together; nothing was sent.
    OneByOne,
}

/// The connection for statements that are transactions of their own. Its plans are generic: such a
/// statement took 1.06 ms planned anew each time, as PostgreSQL decides by itself for arrays, and 0.52 ms
/// with the plan it has. Every row in it is found by its key, so no other plan could be better.
#[derive(Clone, Debug)]
pub(in crate::db) struct Alone {
    pool: Pool<Postgres>,
    is_opening: Arc<AtomicBool>,
}

impl Alone {
    /// Beside the connections of `pool`, not opened yet.
    pub(in crate::db) fn beside(pool: &Pool<Postgres>) -> Self {
        let generic = [("plan_cache_mode", "force_generic_plan")];
        let options = pool.options().clone().options(generic);
        Self { pool: pool.beside(options, 1), is_opening: Arc::default() }
    }

    /// Its connection if it is open; else `other`, and it is opened meanwhile: over TLS that takes 0.1 s,
    /// and a small batch is done by then.
    fn or<'a>(&'a self, other: &'a Pool<Postgres>) -> &'a Pool<Postgres> {
        if self.pool.has_idle() {
            return &self.pool;
        }
        if !self.is_opening.swap(true, Ordering::SeqCst)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let this = self.clone();
            runtime.spawn(async move {
                // Opened and put back; one that cannot be opened is tried at the next hop.
                drop(this.pool.acquire().await);
                this.is_opening.store(false, Ordering::SeqCst);
            });
        }
        other
    }

    pub(in crate::db) fn count(&self, into: &mut Counts) {
        self.pool.count(into);
    }

    pub(in crate::db) async fn close(&self) {
        self.pool.close().await;
    }
}

impl Tx {
    /// Runs one statement; gives the number of rows it found.
    pub async fn run(&mut self, statement: Statement) -> Result<u64> {
        match statement {
            Statement::OnEach { before, first, ids, after, last } => {
                self.execute_in(&before, &first, &ids, &after, &last).await
            }
            Statement::Insert { table, columns, rows } => {
                let count = rows.len() as u64;
                self.insert_many(table, columns, rows).await.map(|()| count)
            }
        }
    }
}

impl Db {
    /// Whether this server can take statements together.
    pub fn takes_together(&self) -> bool {
        self.alone.is_some()
    }

    /// Writes all of it in one transaction of its own, or nothing. None of the statements sees what
    /// another does, and no two may change the same row.
    pub async fn commit_together(&self, statements: Vec<Statement>) -> Result<Together> {
        let (Pools::Postgres(pool), Some(alone)) = (&self.pools, &self.alone) else {
            return Ok(Together::OneByOne);
        };
        failpoint_or!("db.statement", Error::TryAgain("a failpoint says so".to_owned()));
        let (sql, binds) = composed(statements)?;
        let lent = alone.or(pool).acquire().await?;
        let asked = async |conn: &mut sqlx::PgConnection| {
            let query = sqlx::query(AssertSqlSafe(sql));
            let query = binds.into_iter().fold(query, |query, value| match value {
                Bind::One(value) => bind(query, &[value]),
                Bind::Many(column) => column.bind(query),
            });
            let row = query.fetch_one(conn).await;
            match row {
                Ok(row) => row.try_get::<i32, _>(0).map(|_| Together::Done),
                // `REFUSED`: the statement divides by nought on purpose.
                Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("22012") => {
                    Ok(Together::Refused)
                }
                Err(error) => Err(error),
            }
        };
        lent.alone(asked).await
    }
}

/// A value for a place, or all of a column for one.
enum Bind {
    One(Value),
    Many(Column),
}

/// One statement of PostgreSQL for all, which fails when one of them does not find all its rows.
fn composed(statements: Vec<Statement>) -> Result<(String, Vec<Bind>)> {
    let (mut sql, mut binds) = ("WITH ".to_owned(), Vec::new());
    let mut found = Vec::new();
    for (at, statement) in statements.into_iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        sql.push_str(&format!("{comma}s{at} AS ("));
        match statement {
            Statement::OnEach { before, first, ids, after, last } => {
                let count = i64::try_from(ids.len()).unwrap_or(i64::MAX);
                let returning = if before.starts_with("UPDATE") { " RETURNING 1" } else { "" };
                sql.push_str(&format!("{before} = ANY(?) {after}{returning}"));
                binds.extend(first.into_iter().map(Bind::One));
                binds.push(Bind::Many(Column::Int(ids.into_iter().map(Some).collect())));
                binds.extend(last.into_iter().map(Bind::One));
                found.push((at, count));
            }
            Statement::Insert { table, columns, rows } => {
                let arrays = Column::all_of(rows)?;
                let (columns, rows) = (columns.join(", "), Column::rows_of(&arrays));
                sql.push_str(&format!("INSERT INTO {table} ({columns}) {rows}"));
                binds.extend(arrays.into_iter().map(Bind::Many));
            }
        }
        sql.push(')');
    }
    let all = found.iter().map(|(at, _)| format!("(SELECT count(*) FROM s{at}) = ?"));
    let all = all.collect::<Vec<_>>().join(" AND ");
    sql.push_str(&format!(" SELECT 1 / CASE WHEN {all} THEN 1 ELSE 0 END AS is_done"));
    binds.extend(found.into_iter().map(|(_, count)| Bind::One(count.into())));
    let sql = Dialect::Postgres.placeholders(&sql).into_owned();
    Ok((sql, binds))
}
