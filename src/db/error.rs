//! Why the metadata database said no, as far as the program has to tell cases apart.

use std::error::Error as StdError;

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
    let number =
        error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map_or(0, |e| e.number());
    // PostgreSQL: serialization failure, deadlock, lock time-out, and its ways of going down.
    // MySQL: 1205 lock wait, 1213 deadlock, 1053 shutdown. SQLite: 5 busy, 6 locked, 517 snapshot.
    let again = matches!(code.as_str(), "40001" | "40P01" | "55P03" | "57P01" | "57P02" | "57P03")
        || matches!(number, 1205 | 1213 | 1053)
        || (error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some()
            && matches!(code.as_str(), "5" | "6" | "261" | "517"));
    if again { Error::TryAgain(said) } else { Error::Database(said) }
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
