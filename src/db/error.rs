//! Errors of the metadata database, as far as the program has to distinguish them.

use crate::db::tls::{TLS_HINT, is_refused_by_tls};
use std::error::Error as StdError;
use std::path::Path;

/// A failed statement or connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A duplicate key.
    #[error("a row with this key exists already ({0})")]
    Unique(String),
    /// A deadlock, serialization failure, lock timeout or busy database, or a server that is
    /// starting or stopping: the whole transaction is to be retried until it succeeds.
    #[error("the database asks to try again: {0}")]
    TryAgain(String),
    /// The same, because there is no space: an operator has to free some.
    #[error("the database has no space left: {0}")]
    NoSpace(String),
    /// Any other database error.
    #[error("the database said: {0}")]
    Database(String),
    /// The connection is lost or could not be opened; whether the last statement took effect is
    /// unknown.
    #[error("no connection to the database: {0}")]
    Lost(String),
    /// A column contains an unexpected value.
    #[error("column {column}: {cause}")]
    Column {
        column: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A statement that always returns a row returned none.
    #[error("{0} gave no row")]
    Missing(&'static str),
    /// The address or the settings of the database are unusable.
    #[error("{0}")]
    Settings(String),
}

impl Error {
    /// Whether retrying the whole transaction may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::TryAgain(_) | Self::NoSpace(_) | Self::Lost(_))
    }

    /// Why the server at `shown`, a URL without its password, refused the connection. `TryAgain`
    /// means that it will accept one soon: it is starting, or out of connections.
    pub(super) fn of_server(error: sqlx::Error, shown: &str, database: &str) -> Self {
        let error = match error {
            sqlx::Error::Database(error) => error,
            error if is_refused_by_tls(&error) => {
                return Self::Settings(format!("{shown}: {}; {TLS_HINT}", chain(&error)));
            }
            sqlx::Error::Io(cause) => {
                return Self::Lost(format!("{shown}: {cause}; is the server running there?"));
            }
            sqlx::Error::Configuration(cause) => {
                return Self::Settings(format!("the database URL {shown}: {cause}"));
            }
            other => return Self::Lost(format!("{shown}: {}", chain(&other))),
        };
        let said = format!("{shown}: the server said: {}", error.message());
        let code = error.code().unwrap_or_default();
        if is_of_the_moment(error.as_ref()) {
            return Self::TryAgain(said);
        }
        let (cure, name) = match (&*code, mysql_number(error.as_ref())) {
            (_, 1049) => {
                ("create it: CREATE DATABASE", format!("`{}`", database.replace('`', "``")))
            }
            ("3D000", _) => {
                ("create it: CREATE DATABASE", format!("\"{}\"", database.replace('"', "\"\"")))
            }
            (_, 1044) | ("42501", _) => {
                ("grant this user what it needs in the database", database.to_owned())
            }
            (_, 1045 | 1698) | ("28P01" | "28000", _) => (
                "give the user's password (PROCESSION_DB_PASSWORD, for Procession's own database), or name another \
                 user in",
                "the URL".to_owned(),
            ),
            (_, 1129 | 1130) => ("let the server admit", "this host".to_owned()),
            _ => return Self::Database(said),
        };
        Self::Settings(format!("{said}; {cure} {name}"))
    }

    /// Why SQLite cannot use `file`.
    pub(super) fn of_file(error: sqlx::Error, file: &Path, may_create: bool) -> Self {
        let sqlx::Error::Database(inner) = &error else {
            return error.into();
        };
        let said = inner.message();
        let code = inner.code().and_then(|c| c.parse::<i32>().ok()).unwrap_or_default();
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let folder = file.parent().unwrap_or(&file).display();
        let shown = file.display();
        // The low byte is the kind: 3 PERM, 8 READONLY, 11 CORRUPT, 14 CANTOPEN, 26 NOTADB.
        Self::Settings(match code & 0xff {
            14 if file.is_dir() => {
                format!("{shown} is a folder; name a file in it: sqlite:{shown}/procession.db")
            }
            14 if file.parent().is_some_and(|f| !f.is_dir()) => format!(
                "there is no folder {folder} for the database file {shown}; make it, or name another \
                 file with --db"
            ),
            14 if !may_create && matches!(file.try_exists(), Ok(false)) => format!(
                "there is no database file {shown}; run a batch or procession migrate first, or name \
                 it with --db"
            ),
            14 => format!(
                "the database file {shown} cannot be opened ({said}); look who may read and write it \
                 and its folder"
            ),
            3 | 8 => format!(
                "the database file {shown} cannot be written ({said}); let this user write it and its \
                 folder, or name another file with --db"
            ),
            11 | 26 => format!(
                "{shown} is not a database that SQLite can read ({said}); name another file with --db"
            ),
            _ => return error.into(),
        })
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(error) => of_database(error.as_ref()),
            sqlx::Error::ColumnDecode { index, source } => {
                Self::Column { column: index, cause: source.to_string() }
            }
            sqlx::Error::ColumnNotFound(column) => {
                Self::Column { column, cause: "is not in the result".to_owned() }
            }
            sqlx::Error::Configuration(cause) => Self::Settings(cause.to_string()),
            error if is_lost(&error) => Self::Lost(chain(&error)),
            // An error of the driver, such as a value that cannot be sent: repeating it has the
            // same result.
            other => Self::Database(chain(&other)),
        }
    }
}

/// Whether the connection failed, and not the statement.
fn is_lost(error: &sqlx::Error) -> bool {
    use sqlx::Error::{BeginFailed, Io, PoolTimedOut, Protocol, Tls, WorkerCrashed};
    matches!(error, Io(_) | Tls(_) | Protocol(_) | WorkerCrashed | BeginFailed | PoolTimedOut)
}

/// What happens to a connection after an error on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionDisposition {
    /// It stays in use.
    Stays,
    /// It is not used again.
    Goes,
    /// It is not used again, and neither are older ones: the server is stopping, or another server
    /// has become the primary.
    AllGo,
}

/// What happens to the connection after `error`.
pub(super) fn connection_fate(error: &sqlx::Error) -> ConnectionDisposition {
    match error {
        sqlx::Error::Database(error) => judged(error.as_ref()).1,
        error if is_lost(error) => ConnectionDisposition::AllGo,
        _ => ConnectionDisposition::Goes,
    }
}

/// Whether the same statement may succeed a little later.
pub(super) fn is_of_the_moment(error: &dyn sqlx::error::DatabaseError) -> bool {
    matches!(judged(error).0, DbErrorKind::Again | DbErrorKind::NoSpace)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DbErrorKind {
    /// A retry may succeed.
    Again,
    /// A retry may succeed once there is space.
    NoSpace,
    /// The connection is lost; whether the statement took effect is unknown.
    Lost,
    /// A retry will fail in the same way.
    Final,
}

fn of_database(error: &dyn sqlx::error::DatabaseError) -> Error {
    let said = error.message().to_owned();
    match judged(error).0 {
        _ if error.is_unique_violation() => Error::Unique(said),
        DbErrorKind::Again => Error::TryAgain(said),
        DbErrorKind::NoSpace => Error::NoSpace(said),
        DbErrorKind::Lost => Error::Lost(said),
        DbErrorKind::Final => Error::Database(said),
    }
}

fn judged(error: &dyn sqlx::error::DatabaseError) -> (DbErrorKind, ConnectionDisposition) {
    let code = error.code().unwrap_or_default();
    if let Some(error) = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>() {
        let (kind, fate) = of_postgres(&code);
        let ends = !matches!(error.severity(), sqlx::postgres::PgSeverity::Error);
        return (kind, if ends { ConnectionDisposition::AllGo } else { fate });
    }
    match mysql_number(error) {
        0 => of_sqlite(code.parse().unwrap_or_default()),
        number => of_mysql(number, error.message()),
    }
}

fn of_postgres(code: &str) -> (DbErrorKind, ConnectionDisposition) {
    match code {
        // Serialization, deadlock, lock timeout, cancelled by an administrator; out of memory or
        // connections.
        "40001" | "40P01" | "55P03" | "57014" | "53200" | "53300" => {
            (DbErrorKind::Again, ConnectionDisposition::Stays)
        }
        // Disk full.
        "53100" => (DbErrorKind::NoSpace, ConnectionDisposition::Stays),
        // Stopping, crashed, starting; ended for being idle; read-only after a failover.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25006" => {
            (DbErrorKind::Again, ConnectionDisposition::AllGo)
        }
        _ if code.starts_with("08") => (DbErrorKind::Lost, ConnectionDisposition::AllGo),
        _ => (DbErrorKind::Final, ConnectionDisposition::Stays),
    }
}

fn of_mysql(number: u16, said: &str) -> (DbErrorKind, ConnectionDisposition) {
    // The server's texts for errors of the operating system: no space, quota exceeded.
    let has_no_space = || {
        ["rrcode: 28 ", "rrno: 28 ", "rror 28 ", "rrcode: 122 ", "rrno: 122 ", "rror 122 "]
            .iter()
            .any(|words| said.replace('"', " ").contains(words))
    };
    match number {
        // Lock wait, deadlock, row changed meanwhile, lock table full; out of connections or
        // memory; ended by an administrator or a time limit.
        1205 | 1213 | 1020 | 1206 | 1040 | 1203 | 1226 | 1037 | 1038 | 1041 | 1317 | 1969
        | 3024 => (DbErrorKind::Again, ConnectionDisposition::Stays),
        // Disk full, table full.
        20 | 1021 | 1114 => (DbErrorKind::NoSpace, ConnectionDisposition::Stays),
        // Writing, creating or extending a file, in the storage engine, at COMMIT.
        1 | 3 | 1004 | 1005 | 1026 | 1030 | 1180 if has_no_space() => {
            (DbErrorKind::NoSpace, ConnectionDisposition::Stays)
        }
        // Shutdown; a Galera node that is not ready; read-only, as after a failover.
        1053 | 1836 => (DbErrorKind::Again, ConnectionDisposition::AllGo),
        1047 if said.contains("WSREP") => (DbErrorKind::Again, ConnectionDisposition::AllGo),
        1290 if said.contains("read-only") || said.contains("read_only") => {
            (DbErrorKind::Again, ConnectionDisposition::AllGo)
        }
        // Aborted, network failure, killed, closed for being idle.
        1152 | 1158..=1161 | 1184 | 1927 | 3169 | 4031 => {
            (DbErrorKind::Lost, ConnectionDisposition::AllGo)
        }
        // It does not tell whether it committed.
        1180 => (DbErrorKind::Lost, ConnectionDisposition::Goes),
        _ => (DbErrorKind::Final, ConnectionDisposition::Stays),
    }
}

fn of_sqlite(code: i32) -> (DbErrorKind, ConnectionDisposition) {
    // The low byte is the kind. 7 NOMEM, 9 INTERRUPT, 10 IOERR and 13 FULL may have rolled the
    // transaction back, and the connection is then in an unexpected state.
    match code & 0xff {
        5 | 6 => (DbErrorKind::Again, ConnectionDisposition::Stays),
        7 | 9 => (DbErrorKind::Again, ConnectionDisposition::Goes),
        13 => (DbErrorKind::NoSpace, ConnectionDisposition::Goes),
        // Writing, truncating, syncing a file or directory, creating or growing the shared memory:
        // errors that a full disk or a quota causes when it is not reported as FULL.
        10 => match code >> 8 {
            3..=6 | 19..=21 => (DbErrorKind::NoSpace, ConnectionDisposition::Goes),
            _ => (DbErrorKind::Final, ConnectionDisposition::Goes),
        },
        11 | 26 => (DbErrorKind::Final, ConnectionDisposition::Goes),
        _ => (DbErrorKind::Final, ConnectionDisposition::Stays),
    }
}

fn mysql_number(error: &dyn sqlx::error::DatabaseError) -> u16 {
    error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map_or(0, |e| e.number())
}

pub(super) fn chain(error: &dyn StdError) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !words.contains(&text) {
            words.push_str(": ");
            words.push_str(&text);
        }
        cause = next.source();
    }
    without_library_link(&words)
}

/// rustls adds the address of a page for programmers to its message on a connection that was cut;
/// it stood in the rows of failed jobs.
fn without_library_link(words: &str) -> String {
    match words.split_once(": https://docs.rs/") {
        Some((before, link)) => {
            let rest = link.find(char::is_whitespace).map_or("", |at| &link[at..]);
            format!("{before}{rest}")
        }
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ConnectionDisposition, DbErrorKind, of_mysql, of_postgres, of_sqlite, without_library_link,
    };

    const AGAIN: (DbErrorKind, ConnectionDisposition) =
        (DbErrorKind::Again, ConnectionDisposition::Stays);
    const FULL: (DbErrorKind, ConnectionDisposition) =
        (DbErrorKind::NoSpace, ConnectionDisposition::Stays);
    const FULL_ANEW: (DbErrorKind, ConnectionDisposition) =
        (DbErrorKind::NoSpace, ConnectionDisposition::Goes);
    const AGAIN_ANEW: (DbErrorKind, ConnectionDisposition) =
        (DbErrorKind::Again, ConnectionDisposition::Goes);
    const AGAIN_ELSEWHERE: (DbErrorKind, ConnectionDisposition) =
        (DbErrorKind::Again, ConnectionDisposition::AllGo);
    const LOST: (DbErrorKind, ConnectionDisposition) =
        (DbErrorKind::Lost, ConnectionDisposition::AllGo);
    const FINAL: (DbErrorKind, ConnectionDisposition) =
        (DbErrorKind::Final, ConnectionDisposition::Stays);

    #[test]
    fn what_postgres_says_has_its_class() {
        for (code, class) in [
            ("40001", AGAIN),
            ("40P01", AGAIN),
            ("55P03", AGAIN),
            ("53100", FULL),
            ("53200", AGAIN),
            ("53300", AGAIN),
            ("57014", AGAIN),
            ("57P01", AGAIN_ELSEWHERE),
            ("57P02", AGAIN_ELSEWHERE),
            ("57P03", AGAIN_ELSEWHERE),
            ("25P03", AGAIN_ELSEWHERE),
            ("25006", AGAIN_ELSEWHERE),
            ("08006", LOST),
            ("08P01", LOST),
            ("25P02", FINAL),
            ("42P01", FINAL),
            ("28P01", FINAL),
            ("3D000", FINAL),
            ("", FINAL),
        ] {
            assert_eq!(of_postgres(code), class, "{code}");
        }
    }

    #[test]
    fn what_mysql_says_has_its_class() {
        let no_space = "No space left on device";
        for (number, said, class) in [
            (1205, "Lock wait timeout exceeded; try restarting transaction".to_owned(), AGAIN),
            (1213, "Deadlock found when trying to get lock".to_owned(), AGAIN),
            (1040, "Too many connections".to_owned(), AGAIN),
            (1203, "User u already has more than 'max_user_connections'".to_owned(), AGAIN),
            (1021, "Disk full (/tmp); waiting for someone to free some space...".to_owned(), FULL),
            (1114, "The table 'job_queue' is full".to_owned(), FULL),
            (1030, format!("Got error 28 \"{no_space}\" from storage engine InnoDB"), FULL),
            (1030, "Got error 28 from storage engine".to_owned(), FULL),
            (
                1030,
                "Got error 168 \"Unknown (generic) error\" from storage engine".to_owned(),
                FINAL,
            ),
            (1026, format!("Error writing file '/x' (errno: 28 \"{no_space}\")"), FULL),
            (3, format!("Error writing file '/tmp/x' (Errcode: 28 \"{no_space}\")"), FULL),
            (3, format!("Error writing file '/tmp/x' (errno: 28 - {no_space})"), FULL),
            (3, "Error writing file '/x' (Errcode: 122 \"Disk quota exceeded\")".to_owned(), FULL),
            (3, "Error writing file '/x' (Errcode: 5 \"Input/output error\")".to_owned(), FINAL),
            (1290, "running with the --read-only option so it cannot".to_owned(), AGAIN_ELSEWHERE),
            (1290, "running with the --skip-grant-tables option".to_owned(), FINAL),
            (1836, "Running in read-only mode".to_owned(), AGAIN_ELSEWHERE),
            (1053, "Server shutdown in progress".to_owned(), AGAIN_ELSEWHERE),
            (
                1047,
                "WSREP has not yet prepared node for application use".to_owned(),
                AGAIN_ELSEWHERE,
            ),
            (1047, "Unknown command".to_owned(), FINAL),
            (1927, "Connection was killed".to_owned(), LOST),
            (4031, "The client was disconnected by the server".to_owned(), LOST),
            (1146, "Table 'x.job_queue' doesn't exist".to_owned(), FINAL),
            (1064, "You have an error in your SQL syntax".to_owned(), FINAL),
            (1045, "Access denied".to_owned(), FINAL),
        ] {
            assert_eq!(of_mysql(number, &said), class, "{number} {said}");
        }
    }

    #[test]
    fn what_sqlite_says_has_its_class() {
        for (code, class) in [
            (5, AGAIN),
            (517, AGAIN),
            (261, AGAIN),
            (6, AGAIN),
            (262, AGAIN),
            (13, FULL_ANEW),
            (7, AGAIN_ANEW),
            // IOERR_WRITE, _FSYNC, _DIR_FSYNC, _TRUNCATE, _SHMSIZE.
            (778, FULL_ANEW),
            (1034, FULL_ANEW),
            (1290, FULL_ANEW),
            (1546, FULL_ANEW),
            (4874, FULL_ANEW),
            // IOERR_READ, _SHORT_READ, CORRUPT.
            (266, (DbErrorKind::Final, ConnectionDisposition::Goes)),
            (522, (DbErrorKind::Final, ConnectionDisposition::Goes)),
            (11, (DbErrorKind::Final, ConnectionDisposition::Goes)),
            (1, FINAL),
            (787, FINAL),
            (8, FINAL),
        ] {
            assert_eq!(of_sqlite(code), class, "{code}");
        }
    }
    #[test]
    fn a_message_names_no_page_for_programmers() {
        let cut = "peer closed connection without sending TLS close_notify";
        let link =
            "https://docs.rs/rustls/latest/rustls/manual/_03_howto/index.html#unexpected-eof";
        assert_eq!(without_library_link(&format!("{cut}: {link}")), cut);
        assert_eq!(without_library_link(&format!("{cut}: {link} (gone)")), format!("{cut} (gone)"));
        assert_eq!(without_library_link("no: such table"), "no: such table");
    }
}
