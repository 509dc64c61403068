//! Why the metadata database said no, as far as the program has to tell cases apart.

use std::error::Error as StdError;
use std::path::Path;

/// A failed statement or connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A unique key is taken.
    #[error("a row with this key exists already ({0})")]
    Unique(String),
    /// A deadlock, serialization failure, lock wait time-out or busy database: the whole
    /// transaction is to be tried again.
    #[error("the database asks to try again: {0}")]
    TryAgain(String),
    /// The database said something else.
    #[error("the database said: {0}")]
    Database(String),
    /// The connection is gone or was never there; whether the last statement took effect is open.
    #[error("no connection to the database: {0}")]
    Lost(String),
    /// A column holds something other than its code expects.
    #[error("column {column}: {cause}")]
    Column {
        /// The column.
        column: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A statement that always gives a row gave none.
    #[error("{0} gave no row")]
    Missing(&'static str),
    /// The address or the settings of the database cannot be used.
    #[error("{0}")]
    Settings(String),
}

impl Error {
    /// Whether trying the whole transaction again may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::TryAgain(_) | Self::Lost(_))
    }

    /// Why the server at `shown`, a URL without its password, let nobody in. `TryAgain` is one that
    /// will soon: it starts, or has no connection left.
    pub(super) fn of_server(error: sqlx::Error, shown: &str, database: &str) -> Self {
        let error = match error {
            sqlx::Error::Database(error) => error,
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
        let (cure, name) = match (&*code, mysql_number(error.as_ref())) {
            (_, 1040 | 1203) | ("53300" | "57P03", _) => return Self::TryAgain(said),
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
                "set PROCESSION_DB_PASSWORD to the user's password, or name another user",
                "in the URL".to_owned(),
            ),
            (_, 1129 | 1130) => ("let the server admit", "this host".to_owned()),
            _ => return Self::Database(said),
        };
        Self::Settings(format!("{said}; {cure} {name}"))
    }

    /// Why SQLite cannot work with `file`.
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
            other => Self::Lost(chain(&other)),
        }
    }
}

fn of_database(error: &dyn sqlx::error::DatabaseError) -> Error {
    let said = error.message().to_owned();
    if error.is_unique_violation() {
        return Error::Unique(said);
    }
    let code = error.code().unwrap_or_default().into_owned();
    let number = mysql_number(error);
    // PostgreSQL: serialization failure, deadlock, lock time-out, and its ways of going down.
    // MySQL: 1205 lock wait, 1213 deadlock, 1053 shutdown. SQLite: 5 busy, 6 locked, 517 snapshot.
    let again = matches!(code.as_str(), "40001" | "40P01" | "55P03" | "57P01" | "57P02" | "57P03")
        || matches!(number, 1205 | 1213 | 1053)
        || (error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some()
            && matches!(code.as_str(), "5" | "6" | "261" | "517"));
    if again { Error::TryAgain(said) } else { Error::Database(said) }
}

fn mysql_number(error: &dyn sqlx::error::DatabaseError) -> u16 {
    error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map_or(0, |e| e.number())
}

fn chain(error: &dyn StdError) -> String {
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
    words
}
