//! SQLite: one text of several statements, for which the thread of its connection is called once.

use crate::db::Result;
use crate::db::pooled_connection::PooledConnection;
use crate::db::row::{SqlValue, bind_values};
use crate::db::single_round_trip::{Accent, Composed, CountedStatement, Together, with_places};
use sqlx::{AssertSqlSafe, Executor as _, Sqlite};

/// SQLite's error for the absolute value of the smallest integer, which a part computes that did
/// not find all its rows: outside of a trigger nothing else aborts a text of several statements.
const REFUSED: &str = "integer overflow";

/// How SQLite is told.
struct Sqlite3;

impl Accent for Sqlite3 {
    fn found(&self, statement: &str, (sql, _): &mut Composed) {
        let found = if statement.starts_with("UPDATE") {
            sql.push_str(&format!("{statement};\n"));
            "changes()".to_owned()
        } else {
            format!("(SELECT COUNT(*) FROM ({statement}))")
        };
        let refuse = "THEN 0 ELSE -9223372036854775808 END)";
        sql.push_str(&format!("SELECT abs(CASE WHEN {found} = ? {refuse};\n"));
    }

    fn inserted(&self, table: &str, columns: &[&str], rows: &[Vec<SqlValue>], into: &mut Composed) {
        with_places(table, columns, rows, into);
    }
}

/// The statements as one text, with their values; `None` when they are too many for one.
pub(super) fn composed(statements: &[CountedStatement]) -> Option<Composed> {
    let (parts, values) = super::composed(statements, &Sqlite3)?;
    Some((format!("BEGIN IMMEDIATE;\n{parts}COMMIT"), values))
}

/// Writes everything in one transaction, or nothing.
pub(super) async fn commit(
    lent: PooledConnection<Sqlite>,
    (sql, values): Composed,
) -> Result<Together> {
    let asked = async |conn: &mut sqlx::SqliteConnection| {
        let query = bind_values(sqlx::query(AssertSqlSafe(sql)), &values);
        match query.execute(&mut *conn).await {
            Ok(_) => Ok(Together::Done),
            Err(sqlx::Error::Database(error)) if error.message() == REFUSED => {
                conn.execute("ROLLBACK").await.map(|_| Together::Refused)
            }
            Err(error) => Err(error),
        }
    };
    lent.alone(asked).await
}
