//! MariaDB: a compound statement, which can be prepared since 10.6 and then has values like any
//! other.

use crate::db::Result;
use crate::db::pooled_connection::PooledConnection;
use crate::db::row::{SqlValue, bind_values};
use crate::db::single_round_trip::{Accent, Composed, CountedStatement, Together, with_places};
use chrono::SubsecRound as _;
use sqlx::{AssertSqlSafe, MySql, MySqlConnection};

/// The SQLSTATE that the block signals when a part did not find all its rows.
const REFUSED: &str = "45P01";

/// Maximum number of rows of an INSERT with one placeholder per value.
const PLACES_MOST: usize = 4;

/// Whether this server accepts compound statements and rows as JSON; MySQL has no compound
/// statements.
pub(in crate::db) async fn takes_compounds(conn: &mut MySqlConnection) -> bool {
    let sql = "BEGIN NOT ATOMIC \
               IF ? <> (SELECT COUNT(*) FROM JSON_TABLE(?, '$[*]' COLUMNS (n BIGINT PATH '$[0]')) AS r) \
               THEN SIGNAL SQLSTATE '45P01'; END IF; END";
    sqlx::query(sql).bind(1_i64).bind("[[7]]").execute(conn).await.is_ok()
}

/// How MariaDB is told.
struct MariaDb;

impl Accent for MariaDb {
    fn found(&self, statement: &str, (sql, _): &mut Composed) {
        let found = if statement.starts_with("UPDATE") {
            sql.push_str(&format!("{statement};\n"));
            "ROW_COUNT()"
        } else {
            sql.push_str(&format!(
                "SELECT COUNT(*) INTO procession_found FROM ({statement}) AS held;\n"
            ));
            "procession_found"
        };
        sql.push_str(&format!(
            "IF {found} <> ? THEN SIGNAL SQLSTATE '{REFUSED}' \
             SET MESSAGE_TEXT = 'not all rows were found'; END IF;\n"
        ));
    }

    /// A few rows with one placeholder per value, more of them as one JSON value, so that there is
    /// one text for any number of rows: otherwise there would be one for each number of printed
    /// lines, of which a connection caches 500, and evicting one costs 40 ms (`insert_many`
    /// explains why). Parsing JSON takes 0.07 ms of a hop's 0.35.
    fn inserted(&self, table: &str, columns: &[&str], rows: &[Vec<SqlValue>], into: &mut Composed) {
        if rows.len() <= PLACES_MOST {
            return with_places(table, columns, rows, into);
        }
        let (sql, values) = into;
        let kinds = rows.first().into_iter().flatten().enumerate().map(|(at, value)| {
            let ty = match value {
                SqlValue::Int(_) => "BIGINT",
                SqlValue::Text(_) => "LONGTEXT",
                SqlValue::Time(_) => "DATETIME(3)",
            };
            format!("c{at} {ty} PATH '$[{at}]' ERROR ON ERROR")
        });
        let (kinds, columns) = (kinds.collect::<Vec<_>>().join(", "), columns.join(", "));
        sql.push_str(&format!(
            "INSERT INTO {table} ({columns}) SELECT * FROM JSON_TABLE(?, '$[*]' COLUMNS ({kinds})) AS r;\n"
        ));
        let rows = rows.iter().map(|row| row.iter().map(value_as_json).collect()).collect();
        values.push(serde_json::Value::Array(rows).to_string().into());
    }
}

fn value_as_json(value: &SqlValue) -> serde_json::Value {
    match value {
        SqlValue::Int(number) => (*number).into(),
        SqlValue::Text(text) => text.as_deref().into(),
        // Truncated like in `bind`.
        SqlValue::Time(at) => {
            at.map(|at| at.trunc_subsecs(3).format("%Y-%m-%d %H:%M:%S%.3f").to_string()).into()
        }
    }
}

/// The statements as one block, with their values; `None` when they are too many for one.
pub(super) fn composed(statements: &[CountedStatement]) -> Option<Composed> {
    let (parts, values) = super::composed(statements, &MariaDb)?;
    // A variable hides columns of its name, so it has a name that no table uses.
    let sql = format!(
        "BEGIN NOT ATOMIC\n\
         DECLARE procession_found BIGINT DEFAULT 0;\n\
         DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;\n\
         START TRANSACTION;\n\
         {parts}\
         COMMIT;\n\
         END"
    );
    Some((sql, values))
}

/// Writes everything in one transaction, or nothing.
pub(super) async fn commit(
    lent: PooledConnection<MySql>,
    (sql, values): Composed,
) -> Result<Together> {
    let asked = async |conn: &mut sqlx::MySqlConnection| {
        let query = bind_values(sqlx::query(AssertSqlSafe(sql)), &values);
        match query.execute(conn).await {
            Ok(_) => Ok(Together::Done),
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(REFUSED) => {
                Ok(Together::Refused)
            }
            Err(error) => Err(error),
        }
    };
    lent.alone(asked).await
}
