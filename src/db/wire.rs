//! The connection of each driver: how it is opened, and how a statement is sent over it.

use crate::db::connect_error::{Hope, NoSession};
use crate::db::decode::{self, RowFormat};
use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::nodelay::without_delay;
use crate::db::results::{Gives, ResultColumn, Results};
use crate::db::session::{Arg, Brake, SessionTarget};
use crate::db::session_lock::shown_as;
use bigdecimal::{BigDecimal, ToPrimitive};
use futures_util::TryStreamExt;
use secrecy::ExposeSecret;
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlConnection};
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Either, Executor, MySql, Postgres, Row, Sqlite,
};
use std::str::FromStr;
use std::time::Duration;

/// How long SQLite waits for another writer before it returns BUSY.
pub(crate) const SQLITE_BUSY: Duration = Duration::from_secs(5);

/// A connection of one of the three drivers.
#[derive(Debug)]
pub(crate) enum Wire {
    Sqlite(SqliteConnection),
    Mysql(MySqlConnection),
    Postgres(PgConnection),
}

impl Wire {
    /// Connects by the URL's scheme.
    pub(crate) async fn connect(target: &SessionTarget, brake: &Brake) -> Result<Self, NoSession> {
        let url = target.url.as_str();
        match url.split_once(':').map_or("", |(scheme, _)| scheme) {
            "sqlite" => Ok(Self::Sqlite(connect_sqlite(url, brake).await?)),
            "mysql" | "mariadb" => Ok(Self::Mysql(connect_mysql(target).await?)),
            "postgres" | "postgresql" => Ok(Self::Postgres(connect_postgres(target).await?)),
            _ => {
                let said = "the URL must begin with sqlite:, mysql:// or postgres://";
                Err(NoSession { error: SessionError::Lost(said.to_owned()), hope: Hope::None })
            }
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Mysql(_) => Dialect::Mysql,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Closes the connection.
    pub(crate) async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(conn) => conn.close().await,
            Self::Mysql(conn) => conn.close().await,
            Self::Postgres(conn) => conn.close().await,
        }
    }

    /// Sends one statement and reads everything that is returned: without arguments by the text
    /// protocol, where the server writes the text of each value, unless `is_prepared`.
    ///
    /// On PostgreSQL a prepared statement must have a name: when sqlx finds an enum or a domain it
    /// queries the catalogue between preparing and running, which replaces the unnamed one
    /// (measured: 26000 "unnamed prepared statement does not exist"). On MySQL it is kept, see
    /// `connect_mysql`.
    pub(crate) async fn send_statement(
        &mut self,
        sql: &str,
        args: &[Arg],
        into: &mut Results,
    ) -> Result<(), SessionError> {
        let is_prepared = is_prepared(sql, args, into, self.dialect());
        match self.exchange(sql, args, into, is_prepared).await {
            // The driver does not support the kind of a column's type (a multirange), and nothing
            // was run yet.
            Err(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) if is_prepared => {
                if args.is_empty() {
                    return Ok(self.exchange(sql, args, into, false).await?);
                }
                let said = "a column is of a type that cannot be read; cast it to text";
                Err(SessionError::refused(said.to_owned()))
            }
            ended => Ok(ended?),
        }
    }

    async fn exchange(
        &mut self,
        sql: &str,
        args: &[Arg],
        into: &mut Results,
        is_prepared: bool,
    ) -> Result<(), sqlx::Error> {
        let text = AssertSqlSafe(sql.to_owned());
        let counts = counts_changes(sql, self.dialect());
        let gives = gives(sql, self.dialect());
        let format = if is_prepared { RowFormat::Binary } else { RowFormat::Text };
        let purpose = into.purpose();
        macro_rules! drain {
            ($conn:expr, $is_named:expr, $bind:expr, $type_name:expr, $decode:expr) => {{
                let mut stream = if !is_prepared {
                    $conn.fetch_many(sqlx::raw_sql(text))
                } else {
                    let query = sqlx::query(text).persistent($is_named);
                    $conn.fetch_many(args.iter().fold(query, $bind))
                };
                while let Some(step) = stream.try_next().await? {
                    match step {
                        Either::Left(done) if counts => into.end_set(done.rows_affected(), gives),
                        Either::Left(_) => into.end_set(0, gives),
                        Either::Right(row) => into.add_row(
                            || row.columns().iter().map(|c| column(c, $type_name)).collect(),
                            || (0..row.len()).map(|at| $decode(&row, at)).collect(),
                        ),
                    }
                }
                into.finish();
            }};
        }
        match self {
            Self::Sqlite(conn) => drain!(conn, false, bind_sqlite, type_name, decode::sqlite),
            Self::Mysql(conn) => {
                let read = |row: &_, at| decode::mysql(row, at, format, purpose);
                drain!(conn, true, bind_mysql, decode::mysql_type_name, read);
            }
            Self::Postgres(conn) => {
                // A cursor of the same name may have other columns the next time.
                let is_named = !is_fetch(sql);
                let read = |row: &_, at| decode::postgres(row, at, purpose);
                drain!(conn, is_named, bind_postgres, type_name, read);
            }
        }
        Ok(())
    }
}

fn column<C: sqlx::Column>(
    column: &C,
    type_name: impl Fn(&<C::Database as sqlx::Database>::TypeInfo) -> &str,
) -> ResultColumn {
    let type_name = type_name(column.type_info()).to_owned();
    ResultColumn { name: column.name().to_owned(), type_name }
}

fn type_name<T: sqlx::TypeInfo>(info: &T) -> &str {
    info.name()
}

/// Whether a statement is prepared before it is run: with arguments, and on PostgreSQL whenever it
/// may return values that become outputs, because only in binary are they independent of a body's
/// settings.
pub(in crate::db) fn is_prepared(
    sql: &str,
    args: &[Arg],
    into: &Results,
    dialect: Dialect,
) -> bool {
    let wants_binary = || {
        dialect == Dialect::Postgres
            && into.expects_values()
            && may_give_rows(without_comments(sql))
    };
    !args.is_empty() || wants_binary()
}

/// Whether a statement of PostgreSQL may return rows, by its words.
fn may_give_rows(sql: &str) -> bool {
    #[rustfmt::skip]
    const NO_ROWS: [&str; 42] = [
        "ALTER", "ANALYZE", "BEGIN", "CHECKPOINT", "CLOSE", "CLUSTER", "COMMENT", "COMMIT", "COPY", "CREATE",
        "DEALLOCATE", "DECLARE", "DELETE", "DISCARD", "DO", "DROP", "END", "GRANT", "IMPORT", "INSERT", "LISTEN",
        "LOAD", "LOCK", "MERGE", "MOVE", "NOTIFY", "PREPARE", "REASSIGN", "REFRESH", "REINDEX", "RELEASE", "RESET",
        "REVOKE", "ROLLBACK", "SAVEPOINT", "SECURITY", "SET", "START", "TRUNCATE", "UNLISTEN", "UPDATE", "VACUUM",
    ];
    let upper = sql.to_ascii_uppercase();
    let mut words = upper.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| !w.is_empty());
    let first = words.next().unwrap_or_default();
    // RETURNING in a comment or a text costs a round trip.
    !NO_ROWS.contains(&first)
        || (first != "CREATE" && first != "DO" && words.any(|word| word == "RETURNING"))
}

fn bind_sqlite<'q>(
    query: Query<'q, Sqlite, SqliteArguments>,
    arg: &Arg,
) -> Query<'q, Sqlite, SqliteArguments> {
    match arg {
        Arg::Null => query.bind(None::<String>),
        Arg::Text(text) => query.bind(text.clone()),
        Arg::Int(number) => query.bind(*number),
        Arg::Decimal(number) => bind_near(query, number),
        Arg::Double(number) => query.bind(*number),
        Arg::Bytes(bytes) => query.bind(bytes.clone()),
    }
}

fn bind_mysql<'q>(
    query: Query<'q, MySql, MySqlArguments>,
    arg: &Arg,
) -> Query<'q, MySql, MySqlArguments> {
    match arg {
        Arg::Null => query.bind(None::<String>),
        Arg::Text(text) => query.bind(text.clone()),
        Arg::Int(number) => query.bind(*number),
        Arg::Decimal(number) => query.bind(number.clone()),
        Arg::Double(number) => query.bind(*number),
        Arg::Bytes(bytes) => query.bind(bytes.clone()),
    }
}

fn bind_postgres<'q>(
    query: Query<'q, Postgres, PgArguments>,
    arg: &Arg,
) -> Query<'q, Postgres, PgArguments> {
    query.bind(match arg {
        Arg::Null => None,
        Arg::Text(text) => Some(text.clone()),
        Arg::Int(number) => Some(number.to_string()),
        Arg::Decimal(number) => Some(number.to_plain_string()),
        Arg::Double(number) => Some(number.to_string()),
        Arg::Bytes(bytes) => Some(format!("\\x{}", decode::hex_digits(bytes))),
    })
}

/// An integer stays one; anything else becomes the nearest REAL. As text, `sum(x) > :limit` would
/// be true for no number, because SQLite sorts every text after every number.
fn bind_near<'q>(
    query: Query<'q, Sqlite, SqliteArguments>,
    number: &BigDecimal,
) -> Query<'q, Sqlite, SqliteArguments> {
    match (number.is_integer(), number.to_i64(), number.to_f64()) {
        (true, Some(whole), _) => query.bind(whole),
        (_, _, Some(near)) => query.bind(near),
        _ => query.bind(number.to_plain_string()),
    }
}

/// Whether a statement's count means rows changed: PostgreSQL counts the rows of a SELECT as well,
/// and SQLite repeats the last count after statements that change nothing.
fn counts_changes(sql: &str, dialect: Dialect) -> bool {
    let upper = sql.to_ascii_uppercase();
    let mut words = upper.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| !w.is_empty());
    match words.next().unwrap_or_default() {
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE" => true,
        "WITH" => words.any(|w| matches!(w, "INSERT" | "UPDATE" | "DELETE" | "MERGE")),
        "CREATE" | "COPY" | "CALL" | "LOAD" | "SET" | "DO" | "EXECUTE" => {
            dialect != Dialect::Sqlite
        }
        _ => false,
    }
}

/// Whether a statement returns a result set even without rows.
fn gives(sql: &str, dialect: Dialect) -> Gives {
    let upper = without_comments(sql).to_ascii_uppercase();
    let mut words = upper.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| !w.is_empty());
    let first = words.next().unwrap_or_default();
    let has = |wanted: &[&str]| words.clone().any(|word| wanted.contains(&word));
    match first {
        // INTO: a table, variables or a file receive the rows.
        "SELECT" | "VALUES" | "TABLE" | "SHOW" if !has(&["INTO"]) => Gives::OneSet,
        "WITH" if !has(&["INTO", "INSERT", "UPDATE", "DELETE", "MERGE"]) => Gives::OneSet,
        "WITH" | "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "REPLACE" if has(&["RETURNING"]) => {
            Gives::OneSet
        }
        "FETCH" if dialect == Dialect::Postgres => Gives::OneSet,
        // Also for our own `CALL …; SELECT …`: each set is followed by something.
        _ if dialect == Dialect::Mysql => Gives::Sets,
        _ => Gives::NoSet,
    }
}

/// Whether a statement reads rows of a cursor.
fn is_fetch(sql: &str) -> bool {
    let first = without_comments(sql).split(|c: char| !c.is_ascii_alphabetic()).next();
    first.is_some_and(|word| word.eq_ignore_ascii_case("fetch"))
}

/// The text from its first word on.
fn without_comments(sql: &str) -> &str {
    let mut rest = sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    loop {
        let after = match rest.get(..2) {
            Some("--") => rest.split_once('\n').map(|(_, after)| after),
            Some("/*") => rest.split_once("*/").map(|(_, after)| after),
            _ => return rest,
        };
        let Some(after) = after else { return "" };
        rest = after.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    }
}

async fn connect_sqlite(url: &str, brake: &Brake) -> Result<SqliteConnection, NoSession> {
    let mut conn = SqliteConnectOptions::from_str(url)?
        .create_if_missing(!url.contains("mode="))
        .busy_timeout(SQLITE_BUSY)
        .statement_cache_capacity(1)
        .disable_statement_logging()
        .connect()
        .await?;
    let brake = brake.clone();
    // Called every thousand steps of SQLite's virtual machine: about ten microseconds.
    conn.lock_handle().await?.set_progress_handler(1_000, move || !brake.is_on());
    Ok(conn)
}

async fn connect_mysql(target: &SessionTarget) -> Result<MySqlConnection, NoSession> {
    let mut options = MySqlConnectOptions::from_str(&target.url)?
        .timezone(None::<String>)
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .charset("utf8mb4")
        // Not 0: dropping a statement sends a packet without an answer, after which the next one
        // waits some 40 ms for the server's delayed acknowledgement where TCP_NODELAY cannot be
        // set.
        .statement_cache_capacity(64)
        .disable_statement_logging();
    if let Some(password) = &target.password {
        options = options.password(password.expose_secret());
    }
    Ok(without_delay(options.connect()).await?)
}

async fn connect_postgres(target: &SessionTarget) -> Result<PgConnection, NoSession> {
    let label = shown_as(&target.label);
    let mut options = PgConnectOptions::from_str(&target.url)?
        .application_name(&label)
        // Enough for our own statements that each body needs, in the forms that values give them,
        // and some of bodies; with capacity for one, each cost a round trip to evict the last.
        .statement_cache_capacity(32)
        .disable_statement_logging();
    if let Some(password) = &target.password {
        options = options.password(password.expose_secret());
    }
    Ok(without_delay(options.connect()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_may_give_values() {
        for (sql, may) in [
            ("SELECT 1", true),
            ("-- a\n(VALUES (1))", true),
            ("CALL p(1, NULL)", true),
            ("FETCH ALL FROM c", true),
            ("insert into t values (1) returning n", true),
            ("INSERT INTO t VALUES (1)", false),
            (
                "CREATE FUNCTION f() RETURNS int AS $$ INSERT INTO t VALUES (1) RETURNING n $$",
                false,
            ),
            ("DO $$ BEGIN PERFORM 1; END $$", false),
            ("SET x = 1", false),
        ] {
            assert_eq!(may_give_rows(without_comments(sql)), may, "{sql}");
        }
    }

    #[test]
    fn statements_that_give_a_set_without_rows() {
        for (sql, dialect, expected) in [
            ("SELECT 1 WHERE false", Dialect::Postgres, Gives::OneSet),
            ("-- why\n /* so */ ((select 1))", Dialect::Sqlite, Gives::OneSet),
            ("WITH a AS (SELECT 1) SELECT * FROM a", Dialect::Mysql, Gives::OneSet),
            ("WITH a AS (SELECT 1) DELETE FROM t", Dialect::Postgres, Gives::NoSet),
            (
                "WITH a AS (DELETE FROM t RETURNING n) SELECT n FROM a",
                Dialect::Postgres,
                Gives::OneSet,
            ),
            ("DELETE FROM t RETURNING n", Dialect::Sqlite, Gives::OneSet),
            ("SELECT n INTO @a FROM t", Dialect::Mysql, Gives::Sets),
            ("SELECT n INTO b FROM t", Dialect::Postgres, Gives::NoSet),
            ("CALL p(1); SELECT 1", Dialect::Mysql, Gives::Sets),
            ("CALL p(1)", Dialect::Postgres, Gives::NoSet),
            ("FETCH ALL FROM \"into\"", Dialect::Postgres, Gives::OneSet),
            ("UPDATE t SET a = 1", Dialect::Sqlite, Gives::NoSet),
        ] {
            assert_eq!(gives(sql, dialect), expected, "{sql}");
        }
    }
}
