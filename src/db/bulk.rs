//! Writes many rows in few statements, in the fastest form for each database.
//!
//! PostgreSQL gets one array per column: one text for any number of rows, and nothing to plan but a
//! scan. As `VALUES` with a placeholder for each value, 1,000 firings were six statements of up to
//! 7,168 placeholders, each of which it parsed and planned again.

use crate::db::nodelay;
use crate::db::row::{Row, SqlValue, bind_values};
use crate::db::{Dialect, Error, Result, Tx, TxInner};
use chrono::{DateTime, SubsecRound as _, Utc};
use futures_util::future::BoxFuture;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres};

/// Rows per statement on PostgreSQL.
const ARRAY_MOST: usize = 4_096;

/// Bytes of values per statement there. More than a TLS record (16 KiB) is sent as two packets, and
/// the second waits until the server has acknowledged the first, which it delays for 40 ms where
/// TCP_NODELAY cannot be set: a commit of 40 ends took 48 ms, and takes 3 as several statements.
pub(in crate::db) const RECORD: usize = 14_000;

/// The same where nothing waits for acknowledgements.
const PROMPT: usize = 256 * 1_024;

/// Number of rows from which on PostgreSQL needs statistics of a table.
const MANY: usize = 1_000;

/// Rows per statement on the other databases: one text that is prepared once and run ten times for
/// 5,000 rows. As one statement of 4,096 rows and the remainder all of them were parsed for the
/// first pass of a process.
const PLACES_MOST: usize = 512;

/// A list of keys and its placeholders, padded to a power of two with the last key, so that only a
/// few statements are prepared (`insert_many` explains why).
pub(crate) fn filled(ids: &[i64]) -> (String, Vec<SqlValue>) {
    let size = ids.len().next_power_of_two();
    let filler = ids.last().copied().unwrap_or_default();
    let mut values: Vec<SqlValue> = ids.iter().map(|id| SqlValue::from(*id)).collect();
    values.resize(size, SqlValue::from(filler));
    (vec!["?"; size].join(","), values)
}

/// One column of many rows, of one type.
pub(in crate::db) enum BulkColumn {
    Int(Vec<Option<i64>>),
    Text(Vec<Option<String>>),
    Time(Vec<Option<DateTime<Utc>>>),
}

impl BulkColumn {
    /// An empty column for values of this kind.
    fn for_value(value: &SqlValue) -> Self {
        match value {
            SqlValue::Int(_) => Self::Int(Vec::new()),
            SqlValue::Text(_) => Self::Text(Vec::new()),
            SqlValue::Time(_) => Self::Time(Vec::new()),
        }
    }

    /// The columns of at least one row.
    pub(in crate::db) fn all_of(
        rows: impl IntoIterator<Item = Vec<SqlValue>>,
    ) -> Result<Vec<Self>> {
        let mut rows = rows.into_iter().peekable();
        let first = rows.peek().map_or(&[][..], Vec::as_slice);
        let mut columns: Vec<Self> = first.iter().map(Self::for_value).collect();
        for row in rows {
            for (column, value) in columns.iter_mut().zip(row) {
                column.push_value(value)?;
            }
        }
        Ok(columns)
    }

    /// Appends a value of the column's kind.
    fn push_value(&mut self, value: SqlValue) -> Result<()> {
        match (self, value) {
            (Self::Int(all), SqlValue::Int(value)) => all.push(value),
            (Self::Text(all), SqlValue::Text(value)) => all.push(value),
            // Truncated like in `bind`.
            (Self::Time(all), SqlValue::Time(value)) => {
                all.push(value.map(|at| at.trunc_subsecs(3)));
            }
            (Self::Int(_) | Self::Text(_) | Self::Time(_), _) => {
                return Err(Error::Database("values of two kinds in one column".to_owned()));
            }
        }
        Ok(())
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Int(_) => "BIGINT[]",
            Self::Text(_) => "TEXT[]",
            Self::Time(_) => "TIMESTAMPTZ[]",
        }
    }

    /// The rows that the columns form, with one placeholder per column.
    pub(in crate::db) fn rows_of(columns: &[Self]) -> String {
        let places = columns.iter().map(|column| format!("?::{}", column.type_name()));
        format!("SELECT * FROM UNNEST({})", places.collect::<Vec<_>>().join(", "))
    }

    /// Binds the column as one array.
    pub(in crate::db) fn bind_column(
        self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Query<'_, Postgres, PgArguments> {
        match self {
            Self::Int(all) => query.bind(all),
            Self::Text(all) => query.bind(all),
            Self::Time(all) => query.bind(all),
        }
    }
}

impl Tx {
    /// Inserts many rows in few statements.
    ///
    /// With one placeholder per value, the statement sizes are powers of two up to the server's
    /// limit, so that only a few statements per table are prepared. That is not only cheaper:
    /// dropping a prepared statement on MySQL sends a packet without an answer, the next packet
    /// then waits for the server's delayed acknowledgement where TCP_NODELAY cannot be set, and a
    /// hop cost 44 ms instead of 3.
    pub fn insert_many<'a>(
        &'a mut self,
        table: &'a str,
        columns: &'a [&'a str],
        rows: impl IntoIterator<Item = Vec<SqlValue>>,
    ) -> BoxFuture<'a, Result<()>> {
        // Collected before the first await, so that a caller's closure does not make its future
        // non-Send.
        let rows = rows.into_iter().collect();
        Box::pin(self.write_many(table, columns, String::new(), rows))
    }

    /// Inserts many rows in few statements, or overwrites all their columns in rows with the same
    /// `key`.
    pub fn upsert_many<'a>(
        &'a mut self,
        table: &'a str,
        key: &str,
        columns: &'a [&'a str],
        rows: impl IntoIterator<Item = Vec<SqlValue>>,
    ) -> BoxFuture<'a, Result<()>> {
        let tail = self.dialect().or_replace(key, columns);
        let rows = rows.into_iter().collect();
        Box::pin(self.write_many(table, columns, tail, rows))
    }

    async fn write_many(
        &mut self,
        table: &str,
        columns: &[&str],
        tail: String,
        rows: Vec<Vec<SqlValue>>,
    ) -> Result<()> {
        let head = format!("INSERT INTO {table} ({}) ", columns.join(", "));
        match self.dialect() {
            Dialect::Postgres => self.write_arrays(&head, &tail, rows).await,
            Dialect::Sqlite | Dialect::Mysql => {
                self.write_places(&head, columns.len(), &tail, rows).await
            }
        }
    }

    /// Makes PostgreSQL analyze a table after this many rows were written, if it never has: until
    /// then it guesses, and uses plans for few rows on 100,000 (each page of `job_def` read and
    /// sorted the whole table). Later analyses are its autovacuum's. This waits for no lock, and a
    /// user who does not own the table gets a warning in the server's log and no error. If the
    /// transaction is rolled back, the row count remains known, which is what pages are planned by,
    /// and the rest does not.
    pub async fn look_over(&mut self, table: &str, rows: usize) -> Result<()> {
        if self.dialect() != Dialect::Postgres || rows < MANY {
            return Ok(());
        }
        // -1 means never; it was 0 before PostgreSQL 14.
        let unknown = "SELECT 1 AS one FROM pg_catalog.pg_class \
                       WHERE oid = ?::text::regclass AND reltuples <= 0";
        if self.fetch_optional(unknown, &[table.into()]).await?.is_some() {
            self.execute(&format!("ANALYZE (SKIP_LOCKED) {table}"), &[]).await?;
        }
        Ok(())
    }

    async fn write_places(
        &mut self,
        head: &str,
        columns: usize,
        tail: &str,
        rows: Vec<Vec<SqlValue>>,
    ) -> Result<()> {
        let most = self.dialect().max_binds() / columns;
        let most = (1 << most.ilog2()).min(PLACES_MOST);
        let row_text = format!("({})", vec!["?"; columns].join(","));
        let mut rows = rows.into_iter();
        loop {
            let chunk: Vec<Vec<SqlValue>> = rows.by_ref().take(most).collect();
            if chunk.is_empty() {
                return Ok(());
            }
            let mut chunk = chunk.into_iter();
            while chunk.len() > 0 {
                let size = 1 << chunk.len().ilog2();
                let values: Vec<SqlValue> = chunk.by_ref().take(size).flatten().collect();
                let texts = vec![row_text.as_str(); size].join(",");
                self.execute(&format!("{head}VALUES {texts}{tail}"), &values).await?;
            }
        }
    }

    async fn write_arrays(
        &mut self,
        head: &str,
        tail: &str,
        rows: Vec<Vec<SqlValue>>,
    ) -> Result<()> {
        let most = if nodelay::is_set() { PROMPT } else { RECORD };
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut bytes = 0;
            let mut fits = |row: &Vec<SqlValue>| {
                let is_first = bytes == 0;
                bytes += row.iter().map(SqlValue::bytes).sum::<usize>();
                is_first || bytes <= most
            };
            let mut some = Vec::new();
            while some.len() < ARRAY_MOST
                && let Some(row) = rows.next_if(&mut fits)
            {
                some.push(row);
            }
            let columns = BulkColumn::all_of(some)?;
            let sql = format!("{head}{}{tail}", BulkColumn::rows_of(&columns));
            self.execute_arrays(&sql, &[], columns, &[]).await?;
        }
        Ok(())
    }

    /// Runs `before IN (…) after` for any number of distinct ids, with `first` bound before them
    /// and `last` after; returns the number of rows found. With one placeholder per id, the list is
    /// padded to a power of two with its last id, for the reason given at `insert_many`.
    pub async fn execute_in(
        &mut self,
        before: &str,
        first: &[SqlValue],
        ids: &[i64],
        after: &str,
        last: &[SqlValue],
    ) -> Result<u64> {
        if ids.is_empty() {
            return Ok(0);
        }
        if self.dialect() == Dialect::Postgres {
            let ids = BulkColumn::Int(ids.iter().copied().map(Some).collect());
            let sql = format!("{before} = ANY(?) {after}");
            return self.execute_arrays(&sql, first, vec![ids], last).await;
        }
        let most: usize = self.dialect().max_binds() - first.len() - last.len();
        let mut found = 0;
        for chunk in ids.chunks(1 << most.ilog2()) {
            let (places, ids) = filled(chunk);
            let values = [first, &ids, last].concat();
            let sql = format!("{before} IN ({places}) {after}");
            found += self.execute(&sql, &values).await?;
        }
        Ok(found)
    }

    /// All rows of `before IN (…) after` for distinct ids, none for none; the list is padded like
    /// in `execute_in`.
    pub async fn fetch_in(&mut self, before: &str, ids: &[i64], after: &str) -> Result<Vec<Row>> {
        let most: usize = 1 << self.dialect().max_binds().ilog2();
        let mut found = Vec::new();
        for chunk in ids.chunks(most) {
            let (places, values) = filled(chunk);
            let sql = format!("{before} IN ({places}) {after}");
            found.extend(self.fetch_all(&sql, &values).await?);
        }
        Ok(found)
    }

    /// Runs a statement of PostgreSQL with array values.
    async fn execute_arrays(
        &mut self,
        sql: &str,
        first: &[SqlValue],
        arrays: Vec<BulkColumn>,
        last: &[SqlValue],
    ) -> Result<u64> {
        failpoint_or!("db.statement", Error::TryAgain("a failpoint says so".to_owned()));
        let sql = AssertSqlSafe(self.dialect().placeholders(sql).into_owned());
        let TxInner::Postgres(lent) = &mut self.inner else {
            return Err(Error::Missing("arrays, but on PostgreSQL"));
        };
        let (limit, conn) = lent.connection()?;
        let query = bind_values(sqlx::query(sql), first);
        let query = arrays.into_iter().fold(query, |query, array| array.bind_column(query));
        let run =
            async { bind_values(query, last).execute(conn).await.map(|done| done.rows_affected()) };
        let answer = tokio::time::timeout(limit, run).await;
        lent.answered(answer)
    }
}
