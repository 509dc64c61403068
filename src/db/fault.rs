//! What can go wrong on a session, told apart by what is known afterwards.

use sqlx::mysql::MySqlDatabaseError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use std::fmt;

/// Why a call on a session did not end well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The server said no; the session can be used on.
    #[error("{0}")]
    Database(DatabaseError),
    /// The connection cannot be used any more, and what it last sent may or may not have taken
    /// effect. Every error but the server's own is of this kind: after a protocol error sqlx's
    /// connection hangs for ever when it is used again.
    #[error("connection lost: {0}")]
    Lost(String),
    /// Nothing was sent, because the session's brake is on.
    #[error("stopped before this statement was sent")]
    Braked,
}

/// An error as the server gave it, every field of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseError {
    /// SQLSTATE; SQLite's extended result code.
    pub code: Option<String>,
    /// MySQL's error number.
    pub number: Option<u16>,
    /// The message.
    pub message: String,
    /// PostgreSQL's further fields that say something: `DETAIL`, `HINT`, `WHERE` (the PL/pgSQL
    /// stack with its lines), `POSITION`, `CONSTRAINT`.
    pub more: Vec<(&'static str, String)>,
}

impl DatabaseError {
    /// Whether SQLite said that somebody else holds the file.
    pub(crate) fn is_sqlite_busy(&self) -> bool {
        let code = self.code.as_deref().and_then(|c| c.parse::<i32>().ok());
        code.is_some_and(|c| c & 0xff == 5)
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.number, &self.code) {
            (Some(number), Some(code)) => write!(f, "error {number} ({code}): ")?,
            (Some(number), None) => write!(f, "error {number}: ")?,
            (None, Some(code)) => write!(f, "error {code}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.message)?;
        self.more.iter().try_for_each(|(name, text)| write!(f, "; {name}: {text}"))
    }
}

/// MySQL numbers that mean the connection is gone though they come as an ordinary error: server
/// shutdown (1053), forced close (1080, 1152 to 1161), connection killed (1927).
const MYSQL_FATAL: [u16; 9] = [1053, 1080, 1152, 1158, 1159, 1160, 1161, 1927, 3169];

impl From<sqlx::Error> for SessionError {
    fn from(error: sqlx::Error) -> Self {
        let sqlx::Error::Database(boxed) = error else {
            return Self::Lost(error.to_string());
        };
        if let Some(pg) = boxed.try_downcast_ref::<PgDatabaseError>() {
            let error = of_postgres(pg);
            // 57P01 and its like arrive as errors, but nobody is left at the other end.
            return match pg.severity() {
                PgSeverity::Fatal | PgSeverity::Panic => Self::Lost(error.to_string()),
                _ => Self::Database(error),
            };
        }
        if let Some(my) = boxed.try_downcast_ref::<MySqlDatabaseError>() {
            let error = DatabaseError {
                code: my.code().map(str::to_owned),
                number: Some(my.number()),
                message: my.message().to_owned(),
                more: Vec::new(),
            };
            return match MYSQL_FATAL.contains(&my.number()) {
                true => Self::Lost(error.to_string()),
                false => Self::Database(error),
            };
        }
        Self::Database(DatabaseError {
            code: boxed.code().map(|c| c.into_owned()),
            number: None,
            message: boxed.message().to_owned(),
            more: Vec::new(),
        })
    }
}

/// The fields one by one: sqlx's own `Display` ends in "at line N", a line of the *server's* C
/// source, which sends people looking in their procedure.
fn of_postgres(pg: &PgDatabaseError) -> DatabaseError {
    let position = pg.position().and_then(|p| match p {
        sqlx::postgres::PgErrorPosition::Original(at) => Some(format!("character {at}")),
        sqlx::postgres::PgErrorPosition::Internal { .. } => None,
    });
    let more = [
        ("DETAIL", pg.detail().map(str::to_owned)),
        ("HINT", pg.hint().map(str::to_owned)),
        ("WHERE", pg.r#where().map(str::to_owned)),
        ("POSITION", position),
        ("CONSTRAINT", pg.constraint().map(str::to_owned)),
    ];
    DatabaseError {
        code: Some(pg.code().to_owned()),
        number: None,
        message: pg.message().to_owned(),
        more: more.into_iter().filter_map(|(name, text)| Some((name, text?))).collect(),
    }
}
