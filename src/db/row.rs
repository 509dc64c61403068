//! Bound values and result rows.
//!
//! Rows are not converted by column type (MySQL reports TINYINT(1) as BOOLEAN): the caller selects
//! the type, and the getters read any integer width as i64 and any time type as UTC.

use crate::db::{Error, Result};
use chrono::{DateTime, NaiveDateTime, SubsecRound as _, Utc};
use sqlx::mysql::MySqlRow;
use sqlx::postgres::PgRow;
use sqlx::query::Query;
use sqlx::sqlite::SqliteRow;
use sqlx::{
    Database, Encode, MySql, Postgres, Row as _, Sqlite, Type, TypeInfo as _, ValueRef as _,
};

/// A value to bind; NULL keeps the type of its kind, because PostgreSQL needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlValue {
    /// Any integer or boolean column.
    Int(Option<i64>),
    /// Any text column.
    Text(Option<String>),
    /// Any time column; truncated to milliseconds, the precision of the columns.
    Time(Option<DateTime<Utc>>),
}

impl SqlValue {
    /// Its size in PostgreSQL's protocol: four bytes of length, and the value.
    pub(in crate::db) fn bytes(&self) -> usize {
        4 + match self {
            Self::Int(number) => number.map_or(0, |_| 8),
            Self::Text(text) => text.as_ref().map_or(0, String::len),
            Self::Time(at) => at.map_or(0, |_| 8),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => |$v:ident| $to:expr;)*) => {
        $(impl From<$from> for SqlValue {
            fn from($v: $from) -> Self {
                $to
            }
        })*
    };
}

value_from! {
    i64 => |v| Self::Int(Some(v));
    i32 => |v| Self::Int(Some(v.into()));
    u32 => |v| Self::Int(Some(v.into()));
    bool => |v| Self::Int(Some(v.into()));
    Option<i64> => |v| Self::Int(v);
    Option<u32> => |v| Self::Int(v.map(i64::from));
    &str => |v| Self::Text(Some(v.to_owned()));
    String => |v| Self::Text(Some(v));
    Option<String> => |v| Self::Text(v);
    Option<&str> => |v| Self::Text(v.map(str::to_owned));
    DateTime<Utc> => |v| Self::Time(Some(v));
    Option<DateTime<Utc>> => |v| Self::Time(v);
}

/// A driver, and the type it uses for a point in time.
pub(in crate::db) trait Moments: Database {
    /// That type.
    type Moment;
    /// `at` as that type.
    fn moment(at: DateTime<Utc>) -> Self::Moment;
}

impl Moments for Sqlite {
    type Moment = DateTime<Utc>;
    fn moment(at: DateTime<Utc>) -> Self::Moment {
        at
    }
}

impl Moments for Postgres {
    type Moment = DateTime<Utc>;
    fn moment(at: DateTime<Utc>) -> Self::Moment {
        at
    }
}

impl Moments for MySql {
    // As DateTime<Utc> it would be sent as TIMESTAMP, which ends in 2038: MariaDB turns later times
    // into NULL before it stores them in a DATETIME.
    type Moment = NaiveDateTime;
    fn moment(at: DateTime<Utc>) -> Self::Moment {
        at.naive_utc()
    }
}

/// Binds values in order.
pub(in crate::db) fn bind_values<'q, DB>(
    query: Query<'q, DB, DB::Arguments>,
    values: &[SqlValue],
) -> Query<'q, DB, DB::Arguments>
where
    DB: Moments,
    Option<i64>: Encode<'q, DB> + Type<DB>,
    Option<String>: Encode<'q, DB> + Type<DB>,
    Option<DB::Moment>: Encode<'q, DB> + Type<DB> + Send + 'q,
{
    values.iter().fold(query, |query, value| match value {
        SqlValue::Int(v) => query.bind(*v),
        SqlValue::Text(v) => query.bind(v.clone()),
        // Truncated here, because MySQL truncates, PostgreSQL rounds, and SQLite keeps all nine
        // digits.
        SqlValue::Time(v) => query.bind(v.map(|at| DB::moment(at.trunc_subsecs(3)))),
    })
}

/// One row of a result.
#[derive(Debug)]
pub struct Row {
    inner: Inner,
}

enum Inner {
    Sqlite(SqliteRow),
    Mysql(MySqlRow),
    Postgres(PgRow),
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("row")
    }
}

impl From<SqliteRow> for Row {
    fn from(row: SqliteRow) -> Self {
        Self { inner: Inner::Sqlite(row) }
    }
}

impl From<MySqlRow> for Row {
    fn from(row: MySqlRow) -> Self {
        Self { inner: Inner::Mysql(row) }
    }
}

impl From<PgRow> for Row {
    fn from(row: PgRow) -> Self {
        Self { inner: Inner::Postgres(row) }
    }
}

impl Row {
    /// An integer; an error on NULL.
    pub fn get_int(&self, column: &str) -> Result<i64> {
        self.opt_int(column)?.ok_or_else(|| is_null(column))
    }

    /// An integer or NULL.
    pub fn opt_int(&self, column: &str) -> Result<Option<i64>> {
        match &self.inner {
            Inner::Sqlite(row) => Ok(row.try_get_unchecked(column)?),
            Inner::Mysql(row) => Ok(row.try_get_unchecked(column)?),
            // PostgreSQL sends each integer width with its own number of bytes.
            Inner::Postgres(row) => {
                let raw = row.try_get_raw(column)?;
                if raw.is_null() {
                    return Ok(None);
                }
                match raw.type_info().name() {
                    "INT2" => Ok(Some(row.try_get::<i16, _>(column)?.into())),
                    "INT4" => Ok(Some(row.try_get::<i32, _>(column)?.into())),
                    _ => Ok(Some(row.try_get::<i64, _>(column)?)),
                }
            }
        }
    }

    /// A boolean column, stored as 0 or 1.
    pub fn get_flag(&self, column: &str) -> Result<bool> {
        Ok(self.get_int(column)? != 0)
    }

    /// Text; an error on NULL.
    pub fn get_text(&self, column: &str) -> Result<String> {
        self.opt_text(column)?.ok_or_else(|| is_null(column))
    }

    /// Text or NULL.
    pub fn opt_text(&self, column: &str) -> Result<Option<String>> {
        Ok(match &self.inner {
            Inner::Sqlite(row) => row.try_get_unchecked(column)?,
            Inner::Mysql(row) => row.try_get_unchecked(column)?,
            Inner::Postgres(row) => row.try_get_unchecked(column)?,
        })
    }

    /// A point in time; an error on NULL.
    pub fn get_time(&self, column: &str) -> Result<DateTime<Utc>> {
        self.opt_time(column)?.ok_or_else(|| is_null(column))
    }

    /// A point in time or NULL.
    pub fn opt_time(&self, column: &str) -> Result<Option<DateTime<Utc>>> {
        Ok(match &self.inner {
            Inner::Sqlite(row) => row.try_get_unchecked(column)?,
            Inner::Mysql(row) => row.try_get_unchecked(column)?,
            Inner::Postgres(row) => row.try_get_unchecked(column)?,
        })
    }
}

fn is_null(column: &str) -> Error {
    Error::Column { column: column.to_owned(), cause: "is NULL".to_owned() }
}
