//! The connection of each driver: how it is opened, and how a statement goes over it.

use crate::db::decode::{self, Format};
use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::nodelay::without_delay;
use crate::db::opening::{Hope, NoSession};
use crate::db::results::Results;
use crate::db::session::{Arg, Brake, Target};
use crate::db::session_lock::shown_as;
use bigdecimal::{BigDecimal, ToPrimitive};
use futures_util::TryStreamExt;
use secrecy::ExposeSecret;
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlConnection};
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection};
use sqlx::{
    AssertSqlSafe, Column, ConnectOptions, Connection, Either, Executor, MySql, Postgres, Row,
    Sqlite,
};
use std::str::FromStr;
use std::time::Duration;

/// How long SQLite waits for another writer before it says BUSY.
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
    pub(crate) async fn connect(target: &Target, brake: &Brake) -> Result<Self, NoSession> {
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

    /// Which server it talks to.
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Mysql(_) => Dialect::Mysql,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Says good-bye.
    pub(crate) async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(conn) => conn.close().await,
            Self::Mysql(conn) => conn.close().await,
            Self::Postgres(conn) => conn.close().await,
        }
    }

    /// Sends one statement and reads everything that comes back: without arguments by the text
    /// protocol, where the server writes the text of each value.
    ///
    /// On PostgreSQL a prepared statement must have a name: when sqlx meets an enum or a domain it
    /// asks the catalogue between preparing and running, which replaces the unnamed one (measured:
    /// 26000 "unnamed prepared statement does not exist"). On MySQL it is kept, see `connect_mysql`.
    pub(crate) async fn send(
        &mut self,
        sql: &str,
        args: &[Arg],
        into: &mut Results,
    ) -> Result<(), SessionError> {
        let text = AssertSqlSafe(sql.to_owned());
        let counts = counts_changes(sql, self.dialect());
        let format = if args.is_empty() { Format::Text } else { Format::Binary };
        macro_rules! drain {
            ($conn:expr, $is_named:expr, $bind:expr, $decode:expr) => {{
                let mut stream = if args.is_empty() {
                    $conn.fetch_many(sqlx::raw_sql(text))
                } else {
                    let query = sqlx::query(text).persistent($is_named);
                    $conn.fetch_many(args.iter().fold(query, $bind))
                };
                while let Some(step) = stream.try_next().await? {
                    match step {
                        Either::Left(done) if counts => into.end(done.rows_affected()),
                        Either::Left(_) => into.end(0),
                        Either::Right(row) => into.row(
                            || row.columns().iter().map(|c| c.name().to_owned()).collect(),
                            || (0..row.len()).map(|at| $decode(&row, at)).collect(),
                        ),
                    }
                }
            }};
        }
        match self {
            Self::Sqlite(conn) => drain!(conn, false, bind_sqlite, decode::sqlite),
            Self::Mysql(conn) => {
                drain!(conn, true, bind_mysql, |row, at| decode::mysql(row, at, format));
            }
            Self::Postgres(conn) => drain!(conn, true, bind_postgres, decode::postgres),
        }
        Ok(())
    }
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
    })
}

/// A whole number stays one; anything else becomes the nearest REAL. As text, `sum(x) > :limit`
/// would be true for no number at all, because SQLite puts every text above every number.
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

async fn connect_sqlite(url: &str, brake: &Brake) -> Result<SqliteConnection, NoSession> {
    let mut conn = SqliteConnectOptions::from_str(url)?
        .create_if_missing(!url.contains("mode="))
        .busy_timeout(SQLITE_BUSY)
        .statement_cache_capacity(1)
        .disable_statement_logging()
        .connect()
        .await?;
    let brake = brake.clone();
    // Asked every thousand steps of SQLite's machine: some ten microseconds.
    conn.lock_handle().await?.set_progress_handler(1_000, move || !brake.is_on());
    Ok(conn)
}

async fn connect_mysql(target: &Target) -> Result<MySqlConnection, NoSession> {
    let mut options = MySqlConnectOptions::from_str(&target.url)?
        .timezone(None::<String>)
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .charset("utf8mb4")
        // Not 0: forgetting a statement sends a packet without an answer, after which the next one
        // waits some 40 ms for the server's delayed acknowledgement where TCP_NODELAY cannot be set.
        .statement_cache_capacity(64)
        .disable_statement_logging();
    if let Some(password) = &target.password {
        options = options.password(password.expose_secret());
    }
    Ok(without_delay(options.connect()).await?)
}

async fn connect_postgres(target: &Target) -> Result<PgConnection, NoSession> {
    let label = shown_as(&target.label);
    let mut options = PgConnectOptions::from_str(&target.url)?
        .application_name(&label)
        // Those of ours that each body needs, in the forms that values give them, and some of bodies; with
        // room for one, each cost a journey to forget the last.
        .statement_cache_capacity(32)
        .disable_statement_logging();
    if let Some(password) = &target.password {
        options = options.password(password.expose_secret());
    }
    Ok(without_delay(options.connect()).await?)
}
