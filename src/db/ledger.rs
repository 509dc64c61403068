//! `procession_ledger` on a data source: its DDL, whether it exists with the exact shape, and the
//! removal of old rows. Bodies' rows are written elsewhere.
//!
//! The shape is checked strictly, because each part of it carries the guarantee: a table that is
//! not transactional, or that a crash of the server empties, or whose keys ignore case, would deny
//! effects that happened.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::session::{Arg, Session};
use crate::db::target::TargetDatabase;
use std::fmt;

pub const TABLE: &str = "procession_ledger";

/// Its columns in order: name, type as reported by SQLite, MySQL and PostgreSQL, whether it may be
/// NULL.
const COLUMNS: [(&str, [&str; 3], &str); 8] = [
    ("idem_key", ["text", "varchar(255)", "character varying(255)"], "no"),
    ("state", ["text", "varchar(10)", "character varying(10)"], "no"),
    ("batch_no", ["text", "varchar(64)", "character varying(64)"], "no"),
    ("job_code", ["text", "varchar(100)", "character varying(100)"], "no"),
    ("attempt", ["integer", "int", "integer"], "no"),
    ("outputs", ["text", "longtext", "text"], "yes"),
    ("opened_at", ["text", "datetime(3)", "timestamp(3) with time zone"], "no"),
    ("done_at", ["text", "datetime(3)", "timestamp(3) with time zone"], "yes"),
];

/// Each column with its type, whether it may be NULL and whether it is the whole primary key, and
/// properties of the table: on MySQL its engine and the key's collation, on PostgreSQL its kind and
/// persistence.
const READ_SQLITE: &str = "\
SELECT c.name, lower(c.type), CASE WHEN c.\"notnull\" = 1 THEN 'no' ELSE 'yes' END,
       CASE WHEN c.pk = 0 THEN '' WHEN (SELECT COUNT(*) FROM pragma_table_info('procession_ledger')
                  WHERE pk > 0) = 1 THEN 'key' ELSE 'part' END,
       (SELECT type FROM sqlite_master WHERE name = 'procession_ledger')
  FROM pragma_table_info('procession_ledger') c ORDER BY c.cid";
const READ_MYSQL: &str = "\
SELECT c.column_name, REGEXP_REPLACE(LOWER(c.column_type), '^int[(][0-9]+[)]$', 'int'),
       LOWER(c.is_nullable),
       CASE WHEN c.column_key <> 'PRI' THEN '' WHEN (SELECT COUNT(*) FROM information_schema.columns k
                  WHERE k.table_schema = c.table_schema AND k.table_name = c.table_name
                    AND k.column_key = 'PRI') = 1 THEN 'key' ELSE 'part' END,
       CONCAT(COALESCE(t.engine, t.table_type), ' ', CASE WHEN c.column_name <> 'idem_key'
              OR c.collation_name LIKE '%\\_bin' OR c.collation_name LIKE '%\\_cs'
              THEN 'exact' ELSE c.collation_name END)
  FROM information_schema.columns c
  JOIN information_schema.tables t
    ON t.table_schema = c.table_schema AND t.table_name = c.table_name
 WHERE c.table_schema = DATABASE() AND c.table_name = 'procession_ledger'
 ORDER BY c.ordinal_position";
const READ_POSTGRES: &str = "\
SELECT a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod),
       CASE WHEN a.attnotnull THEN 'no' ELSE 'yes' END,
       CASE WHEN i.indkey IS NULL OR NOT a.attnum = ANY (i.indkey) THEN ''
            WHEN i.indnkeyatts = 1 THEN 'key' ELSE 'part' END,
       c.relkind::text || ' ' || c.relpersistence::text
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary
 WHERE c.oid = to_regclass('procession_ledger') ORDER BY a.attnum";

/// The state of the ledger on a data source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerState {
    /// Missing.
    Absent,
    /// Present with the right shape.
    Fits,
    /// Another object has that name: the difference.
    Other(String),
}

/// The grant for a user of jobs when another user created it; `None` where there are no users.
pub fn grant(database: &dyn TargetDatabase, user: &str) -> Option<String> {
    let user = database.quote_user(user)?;
    Some(format!("GRANT SELECT, INSERT, UPDATE ON {TABLE} TO {user}"))
}

/// The server and user of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    pub version: String,
    /// The user as in grants; `None` on SQLite.
    pub user: Option<String>,
}

impl fmt::Display for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.version)?;
        self.user.as_ref().map_or(Ok(()), |user| write!(f, ", user {user}"))
    }
}

/// A row that no body writes, used to test privileges.
const PROBE: &str = "procession:probe";

impl Session {
    /// Reads the server version and our user.
    pub async fn server_identity(&mut self) -> Result<ServerIdentity, SessionError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT 'SQLite ' || sqlite_version(), NULL",
            Dialect::Mysql => {
                "SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', '', 'MySQL '), VERSION()), CURRENT_USER()"
            }
            Dialect::Postgres => {
                "SELECT 'PostgreSQL ' || current_setting('server_version'), current_user::text"
            }
        };
        let who = self.query_rows(sql, &[]).await?;
        let text = |at| who.first(at).map(str::to_owned);
        Ok(ServerIdentity { version: text(0).unwrap_or_default(), user: text(1) })
    }

    /// Whether `sql` returns a value here that begins with `answer`; `false` if the database cannot
    /// run it.
    pub async fn answers(&mut self, sql: &str, answer: &str) -> Result<bool, SessionError> {
        match self.query_rows(sql, &[]).await {
            Ok(found) => Ok(found.first(0).is_some_and(|text| text.starts_with(answer))),
            Err(SessionError::Database(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The state of the ledger here.
    pub async fn ledger(&mut self) -> Result<LedgerState, SessionError> {
        let (sql, at) = match self.dialect() {
            Dialect::Sqlite => (READ_SQLITE, 0),
            Dialect::Mysql => (READ_MYSQL, 1),
            Dialect::Postgres => (READ_POSTGRES, 2),
        };
        let found = self.query_rows(sql, &[]).await?;
        let rows: Vec<Vec<&str>> = found
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.as_deref().unwrap_or_default()).collect())
            .collect();
        Ok(match (rows.is_empty(), fault(&rows, at)) {
            (true, _) => LedgerState::Absent,
            (false, None) => LedgerState::Fits,
            (false, Some(said)) => LedgerState::Other(said),
        })
    }

    /// Creates the ledger.
    pub async fn make_ledger(&mut self) -> Result<(), SessionError> {
        self.run_statement(self.database().ledger_table(), &[]).await.map(|_| ())
    }

    /// Performs all operations of bodies on a row, and rolls them back; an error is a missing
    /// privilege.
    pub async fn try_ledger(&mut self) -> Result<(), SessionError> {
        self.begin().await?;
        let tried = self.write_probe().await;
        if !matches!(tried, Err(SessionError::Lost(_))) {
            self.rollback().await?;
        }
        tried
    }

    async fn write_probe(&mut self) -> Result<(), SessionError> {
        let (key, at) = match self.dialect() {
            Dialect::Postgres => ("$1::text", "TIMESTAMPTZ '2000-01-01 00:00:00+00'"),
            Dialect::Sqlite | Dialect::Mysql => ("?", "'2000-01-01 00:00:00'"),
        };
        let probe = [Arg::Text(PROBE.to_owned())];
        let insert = format!(
            "INSERT INTO {TABLE} (idem_key, state, batch_no, job_code, attempt, opened_at) \
             VALUES ({key}, 'open', '0', '-', 0, {at})"
        );
        self.run_statement(&insert, &probe).await?;
        let update =
            format!("UPDATE {TABLE} SET state = 'done', done_at = {at} WHERE idem_key = {key}");
        self.run_statement(&update, &probe).await?;
        let select = format!("SELECT state, outputs FROM {TABLE} WHERE idem_key = {key}");
        self.run_statement(&select, &probe).await.map(|_| ())
    }

    /// When the latest attempt began whose key has this installation's prefix, in milliseconds
    /// since 1970; `None` when there is none.
    pub async fn last_ledger_attempt(
        &mut self,
        installation: &str,
    ) -> Result<Option<i64>, SessionError> {
        let (last, key) = match self.dialect() {
            Dialect::Sqlite => {
                ("CAST((MAX(julianday(opened_at)) - 2440587.5) * 86400000 AS INTEGER)", "?")
            }
            Dialect::Mysql => {
                ("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MAX(opened_at)) DIV 1000", "?")
            }
            Dialect::Postgres => {
                ("(extract(epoch FROM MAX(opened_at)) * 1000)::bigint", "$1::text")
            }
        };
        let sql = format!("SELECT {last} FROM {TABLE} WHERE idem_key LIKE {key}");
        let found = self.query_rows(&sql, &[Arg::Text(format!("{installation}/%"))]).await?;
        Ok(found.first(0).and_then(|last| last.parse().ok()))
    }

    /// Number of `done` rows that ended before `cut`, `YYYY-MM-DD HH:MM:SS` in UTC.
    pub async fn old_of_ledger(&mut self, cut: &str) -> Result<u64, SessionError> {
        let sql =
            format!("SELECT COUNT(*) FROM {TABLE} WHERE {}", old_rows_condition(self.dialect()));
        let count = self.query_rows(&sql, &[Arg::Text(cut.to_owned())]).await?;
        Ok(count.first(0).and_then(|n| n.parse().ok()).unwrap_or(0))
    }

    /// Removes at most `most` such rows; returns their number. `open` rows are kept forever: they
    /// prove that a body committed by itself.
    pub async fn prune_ledger(&mut self, cut: &str, most: u32) -> Result<u64, SessionError> {
        let old = old_rows_condition(self.dialect());
        let sql = match self.dialect() {
            Dialect::Mysql => format!("DELETE FROM {TABLE} WHERE {old} LIMIT {most}"),
            Dialect::Sqlite | Dialect::Postgres => format!(
                "DELETE FROM {TABLE} WHERE idem_key IN \
                 (SELECT idem_key FROM {TABLE} WHERE {old} LIMIT {most})"
            ),
        };
        Ok(self.run_statement(&sql, &[Arg::Text(cut.to_owned())]).await?.rows_affected)
    }
}

/// The condition for old `done` rows. SQLite's times are text, in whatever format they were
/// written.
fn old_rows_condition(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "state = 'done' AND julianday(done_at) < julianday(?)",
        Dialect::Mysql => "state = 'done' AND done_at < ?",
        Dialect::Postgres => {
            "state = 'done' AND done_at < (CAST($1::text AS timestamp) AT TIME ZONE 'UTC')"
        }
    }
}

/// The fault of the table with these rows of name, type, may be NULL, key, and table.
fn fault(rows: &[Vec<&str>], dialect: usize) -> Option<String> {
    let table_wanted = ["table", "InnoDB exact", "r p"][dialect];
    for row in rows {
        let [name, ty, may_be_null, key, table] = row[..] else { continue };
        let Some((_, types, null)) = COLUMNS.iter().find(|(known, ..)| *known == name) else {
            return Some(format!("it has a column {name} that is not ours"));
        };
        if table != table_wanted {
            return Some(match dialect {
                1 if table.starts_with("InnoDB") => {
                    format!("its keys ignore case ({table}); the collation must be utf8mb4_bin")
                }
                1 => format!("its engine is {table}; only InnoDB undoes and keeps rows"),
                2 if table == "r u" => "it is UNLOGGED, so a crash would empty it".to_owned(),
                _ => format!("it is no ordinary table ({table})"),
            });
        }
        if ty != types[dialect] {
            return Some(format!("its column {name} is {ty} and not {}", types[dialect]));
        }
        // SQLite accepts NULL even in a key, unless it is NOT NULL.
        if may_be_null != *null {
            let must = if *null == "no" { "must not" } else { "must" };
            return Some(format!("its column {name} {must} take NULL"));
        }
        if (key == "key") != (name == "idem_key") {
            return Some("its primary key is not idem_key alone".to_owned());
        }
    }
    let has = |name: &str| rows.iter().any(|row| row.first() == Some(&name));
    let missing = COLUMNS.iter().find(|(name, ..)| !has(name))?;
    Some(format!("it has no column {}", missing.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::target::of_dialect;

    #[test]
    fn the_text_is_that_of_the_migrations() {
        for (dialect, migration) in [
            (Dialect::Sqlite, include_str!("../../migrations/sqlite/0003_trust.sql")),
            (Dialect::Mysql, include_str!("../../migrations/mysql/0003_trust.sql")),
            (Dialect::Postgres, include_str!("../../migrations/postgres/0003_trust.sql")),
        ] {
            let table = of_dialect(dialect).ledger_table();
            assert!(migration.contains(&format!("\n{table};\n")), "{dialect:?}");
        }
    }

    #[test]
    fn users_are_quoted_where_rights_name_them() {
        let mysql = grant(of_dialect(Dialect::Mysql), "o'brien@%").expect("rights");
        assert_eq!(mysql, "GRANT SELECT, INSERT, UPDATE ON procession_ledger TO 'o''brien'@'%'");
        let postgres = grant(of_dialect(Dialect::Postgres), "Job \"x\"").expect("rights");
        assert!(postgres.ends_with("TO \"Job \"\"x\"\"\""), "{postgres}");
        assert_eq!(grant(of_dialect(Dialect::Sqlite), ""), None);
    }
}
