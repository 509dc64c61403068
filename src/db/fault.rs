//! Errors of a session, distinguished by what is known afterwards.

use crate::db::target::{mysql, postgres, sqlite};
use sqlx::mysql::MySqlDatabaseError;
use sqlx::postgres::PgDatabaseError;
use std::fmt;

/// Why a call on a session failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The server returned an error; the session remains usable.
    #[error("{0}")]
    Database(DatabaseError),
    /// The connection is no longer usable, and its last statement may or may not have taken effect.
    /// Every error except the server's own is of this kind: after a protocol error sqlx's
    /// connection hangs forever when it is used again.
    #[error("connection lost: {0}")]
    Lost(String),
    /// Nothing was sent, because the session's cancellation flag is set.
    #[error("stopped before this statement was sent")]
    Braked,
}

/// The kind of a server error, as far as it matters for a retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerErrorKind {
    /// Chosen as the victim of a deadlock.
    Deadlock,
    /// A lock was not granted in time, or not at once with NOWAIT.
    LockWait,
    /// A serialization failure: the transaction conflicted with another.
    Serialization,
    /// The server is gone, or accepts no sessions now.
    Lost,
    /// Anything else.
    #[default]
    Other,
}

impl SessionError {
    /// The kind of the error.
    pub fn kind(&self) -> ServerErrorKind {
        match self {
            Self::Database(error) => error.kind,
            Self::Lost(_) => ServerErrorKind::Lost,
            Self::Braked => ServerErrorKind::Other,
        }
    }

    /// A statement that was refused before it was sent, and why.
    pub(crate) fn refused(message: String) -> Self {
        Self::Database(DatabaseError { message, ..DatabaseError::default() })
    }

    /// A server's reason for refusing a session.
    pub(crate) fn refusal(said: &dyn sqlx::error::DatabaseError) -> Self {
        Self::Database(read_error(said).0)
    }

    /// Whether the server refused exactly that.
    pub fn is(&self, condition: ErrorCondition) -> bool {
        matches!(self, Self::Database(error) if error.condition == condition)
    }

    /// The server's SQLSTATE.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Database(error) => error.sqlstate(),
            Self::Lost(_) | Self::Braked => None,
        }
    }
}

/// A server error with all its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseError {
    /// SQLSTATE; SQLite's extended result code.
    pub code: Option<String>,
    /// MySQL's error number.
    pub number: Option<u16>,
    /// The message.
    pub message: String,
    /// PostgreSQL's other useful fields: `DETAIL`, `HINT`, `WHERE` (the PL/pgSQL stack with its
    /// lines), `POSITION`, `CONSTRAINT`.
    pub more: Vec<(&'static str, String)>,
    pub kind: ServerErrorKind,
    pub condition: ErrorCondition,
    /// Whether it is about the state of the server and not about the statement: too many
    /// connections, a shutdown, a lock, a deadlock.
    pub is_passing: bool,
}

/// What exactly a server refused, as far as this program acts on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorCondition {
    /// A table that does not exist, or that this user may not see.
    MissingTable,
    /// A privilege that this user lacks.
    Denied,
    /// A call of a routine that this user may not execute.
    ExecuteDenied,
    /// A text that it could not parse.
    Syntax,
    /// A statement that cannot be parsed without being run.
    NotPreparable,
    /// A savepoint that does not exist.
    NoSavepoint,
    /// A COMMIT or ROLLBACK inside a routine whose caller owns the transaction.
    EndRefused,
    /// A change in a transaction or session that may only read.
    ReadOnly,
    /// To end a session that does not exist.
    NoSuchSession,
    /// A statement that is possible only outside, or that nothing follows inside, of the open
    /// transaction.
    TransactionOpen,
    /// To end a session that runs a routine of another user.
    NotStoppable,
    /// To write now, because another connection has locked the file; nothing was done.
    Busy,
    /// Anything else.
    #[default]
    Other,
}

impl DatabaseError {
    /// SQLSTATE, if the server returned one; SQLite's codes are shorter.
    pub fn sqlstate(&self) -> Option<&str> {
        self.code.as_deref().filter(|code| code.len() == 5)
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

impl From<sqlx::Error> for SessionError {
    fn from(error: sqlx::Error) -> Self {
        let sqlx::Error::Database(boxed) = error else {
            return Self::Lost(error.to_string());
        };
        match read_error(&*boxed) {
            (error, ConnectionState::Gone) => Self::Lost(error.to_string()),
            (error, ConnectionState::Usable) => Self::Database(error),
        }
    }
}

/// Whether a connection remains usable after a server error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) enum ConnectionState {
    Usable,
    Gone,
}

/// Each driver of sqlx has its own kind of error; only SQLite's needs no fields of its own.
fn read_error(error: &dyn sqlx::error::DatabaseError) -> (DatabaseError, ConnectionState) {
    if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
        return postgres::read_error(error);
    }
    if let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() {
        return mysql::read_error(error);
    }
    (sqlite::read_error(error), ConnectionState::Usable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_have_a_sqlstate() {
        let of = |code: &str| DatabaseError { code: Some(code.to_owned()), ..Default::default() };
        assert_eq!(of("40001").sqlstate(), Some("40001"));
        assert_eq!(of("2067").sqlstate(), None);
        assert_eq!(SessionError::Lost("gone".to_owned()).kind(), ServerErrorKind::Lost);
    }
}
