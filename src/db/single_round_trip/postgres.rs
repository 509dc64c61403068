//! PostgreSQL: one statement with data-modifying `WITH`, which is a transaction of its own.

use crate::db::bulk::{BulkColumn, RECORD};
use crate::db::pool::ConnectionPool;
use crate::db::pooled_connection::PooledConnection;
use crate::db::row::{SqlValue, bind_values};
use crate::db::single_round_trip::{CountedStatement, Together};
use crate::db::{Counts, Dialect, Result};
use sqlx::{AssertSqlSafe, Postgres, Row as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The connection for statements that are transactions of their own. Its plans are generic: such a
/// statement took 1.06 ms when planned each time, which is PostgreSQL's default for arrays, and
/// 0.52 ms with a cached plan. Every row in it is found by its key, so no other plan could be
/// better.
#[derive(Clone, Debug)]
pub(in crate::db) struct AutocommitConnection {
    pool: ConnectionPool<Postgres>,
    is_opening: Arc<AtomicBool>,
}

impl AutocommitConnection {
    /// Beside the connections of `pool`, not opened yet.
    pub(in crate::db) fn beside(pool: &ConnectionPool<Postgres>) -> Self {
        let generic = [("plan_cache_mode", "force_generic_plan")];
        let options = pool.options().clone().options(generic);
        Self { pool: pool.beside(options, 1), is_opening: Arc::default() }
    }

    /// Its connection if it is open; else `other`, while it is opened in the background: over TLS
    /// that takes 0.1 s, and a small batch is done by then.
    pub(super) fn pool_or<'a>(
        &'a self,
        other: &'a ConnectionPool<Postgres>,
    ) -> &'a ConnectionPool<Postgres> {
        if self.pool.has_idle() {
            return &self.pool;
        }
        if !self.is_opening.swap(true, Ordering::SeqCst)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let this = self.clone();
            runtime.spawn(async move {
                // Opened and put back; after a failure the next hop tries again.
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

/// Whether they exceed one packet; `RECORD` explains what that costs.
pub(super) fn is_too_long(statements: &[CountedStatement]) -> bool {
    let bytes = |values: &[SqlValue]| values.iter().map(SqlValue::bytes).sum::<usize>();
    let long: usize = statements
        .iter()
        .map(|statement| match statement {
            CountedStatement::OnEach { first, ids, last, .. } => {
                bytes(first) + 12 * ids.len() + bytes(last)
            }
            CountedStatement::Insert { rows, .. } => rows.iter().map(|row| bytes(row)).sum(),
        })
        .sum();
    long > RECORD
}

/// Writes everything in one transaction, or nothing.
pub(super) async fn commit(
    lent: PooledConnection<Postgres>,
    statements: Vec<CountedStatement>,
) -> Result<Together> {
    let (sql, binds) = composed(statements)?;
    let asked = async |conn: &mut sqlx::PgConnection| {
        let query = sqlx::query(AssertSqlSafe(sql));
        let query = binds.into_iter().fold(query, |query, value| match value {
            Bind::One(value) => bind_values(query, &[value]),
            Bind::Many(column) => column.bind_column(query),
        });
        let row = query.fetch_one(conn).await;
        match row {
            Ok(row) => row.try_get::<i32, _>(0).map(|_| Together::Done),
            // `REFUSED`: the statement divides by zero on purpose.
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("22012") => {
                Ok(Together::Refused)
            }
            Err(error) => Err(error),
        }
    };
    lent.alone(asked).await
}

/// A single value, or a whole column, for one placeholder.
enum Bind {
    One(SqlValue),
    Many(BulkColumn),
}

/// One statement of PostgreSQL for everything, which fails when one part does not find all its
/// rows.
fn composed(statements: Vec<CountedStatement>) -> Result<(String, Vec<Bind>)> {
    let (mut sql, mut binds) = ("WITH ".to_owned(), Vec::new());
    let mut found = Vec::new();
    for (at, statement) in statements.into_iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        sql.push_str(&format!("{comma}s{at} AS ("));
        match statement {
            CountedStatement::OnEach { before, first, ids, after, last } => {
                let count = i64::try_from(ids.len()).unwrap_or(i64::MAX);
                let returning = if before.starts_with("UPDATE") { " RETURNING 1" } else { "" };
                sql.push_str(&format!("{before} = ANY(?) {after}{returning}"));
                binds.extend(first.into_iter().map(Bind::One));
                binds.push(Bind::Many(BulkColumn::Int(ids.into_iter().map(Some).collect())));
                binds.extend(last.into_iter().map(Bind::One));
                found.push((at, count));
            }
            CountedStatement::Insert { table, columns, rows } => {
                let arrays = BulkColumn::all_of(rows)?;
                let (columns, rows) = (columns.join(", "), BulkColumn::rows_of(&arrays));
                sql.push_str(&format!("INSERT INTO {table} ({columns}) {rows}"));
                binds.extend(arrays.into_iter().map(Bind::Many));
            }
        }
        sql.push(')');
    }
    let each = found.iter().map(|(at, _)| format!(" AND (SELECT count(*) FROM s{at}) = ?"));
    let all = std::iter::once("TRUE".to_owned()).chain(each).collect::<String>();
    sql.push_str(&format!(" SELECT 1 / CASE WHEN {all} THEN 1 ELSE 0 END AS is_done"));
    binds.extend(found.into_iter().map(|(_, count)| Bind::One(count.into())));
    let sql = Dialect::Postgres.placeholders(&sql).into_owned();
    Ok((sql, binds))
}
