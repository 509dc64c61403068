//! MariaDB: a compound statement, which can be prepared since 10.6 and then takes values like any other.

use crate::db::lent::Lent;
use crate::db::row::bind;
use crate::db::together::{Composed, Statement, Together};
use crate::db::Result;
use sqlx::{AssertSqlSafe, MySql, MySqlConnection};

/// What the block signals when a part did not find all its rows.
const REFUSED: &str = "45P01";

/// Whether this server takes compound statements; MySQL takes none.
pub(in crate::db) async fn takes_compounds(conn: &mut MySqlConnection) -> bool {
    let sql = "BEGIN NOT ATOMIC IF ? THEN SIGNAL SQLSTATE '45P01'; END IF; END";
    sqlx::query(sql).bind(0_i64).execute(conn).await.is_ok()
}

/// The statements as one block, with their values; `None` when they are too many for one.
pub(super) fn composed(statements: &[Statement]) -> Option<Composed> {
    let refuse = format!(
        " <> ? THEN SIGNAL SQLSTATE '{REFUSED}' SET MESSAGE_TEXT = 'not all rows were found'; END IF;\n"
    );
    let (parts, values) = super::composed(statements, |text, sql| {
        let found = if text.starts_with("UPDATE") {
            sql.push_str(&format!("{text};\n"));
            "ROW_COUNT()"
        } else {
            sql.push_str(&format!("SELECT COUNT(*) INTO found FROM ({text}) AS held;\n"));
            "found"
        };
        sql.push_str(&format!("IF {found}{refuse}"));
    })?;
    let sql = format!(
        "BEGIN NOT ATOMIC\n\
         DECLARE found BIGINT DEFAULT 0;\n\
         DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;\n\
         START TRANSACTION;\n\
         {parts}\
         COMMIT;\n\
         END"
    );
    Some((sql, values))
}

/// Writes all of it in one transaction, or nothing.
pub(super) async fn commit(lent: Lent<MySql>, (sql, values): Composed) -> Result<Together> {
    let asked = async |conn: &mut sqlx::MySqlConnection| {
        let query = bind(sqlx::query(AssertSqlSafe(sql)), &values);
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
