//! Why no session could be opened, and whether waiting may help.

use crate::db::error::chain;
use crate::db::fault::{DatabaseError, ServerErrorKind, SessionError};
use crate::db::tls::{TLS_HINT, is_refused_by_tls};
use std::io;

/// No session could be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct NoSession {
    /// The message of the driver or the server.
    pub error: SessionError,
    /// Whether a later attempt may succeed.
    pub hope: Hope,
}

/// Whether opening a session again may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hope {
    /// The server cannot be reached, or accepts no sessions now: it is starting, stopping, or out
    /// of connections.
    Soon,
    /// This machine lacks a resource to connect with: file handle, port, memory. That tells nothing
    /// about the server.
    Here,
    /// The host name does not resolve: usually a wrong name, rarely a resolver that is starting.
    Once,
    /// The request is wrong: the user, the password, the database, the settings.
    None,
}

impl NoSession {
    /// Connecting took too long.
    pub(crate) fn timed_out(said: String) -> Self {
        Self { error: SessionError::Lost(said), hope: Hope::Soon }
    }

    /// The server is not supported for bodies.
    pub(crate) fn unsupported(reason: &str) -> Self {
        let error = DatabaseError { message: reason.to_owned(), ..DatabaseError::default() };
        Self { error: SessionError::Database(error), hope: Hope::None }
    }

    /// Nothing answered: the state of the server is unknown, and it may not exist.
    pub fn is_silence(&self) -> bool {
        self.hope == Hope::Soon && matches!(self.error, SessionError::Lost(_))
    }
}

impl From<NoSession> for SessionError {
    fn from(none: NoSession) -> Self {
        none.error
    }
}

/// An error of the first queries on a new session.
impl From<SessionError> for NoSession {
    fn from(error: SessionError) -> Self {
        let hope = match &error {
            SessionError::Database(error) => hope_of(error),
            SessionError::Lost(_) => Hope::Soon,
            SessionError::Braked => Hope::None,
        };
        Self { error, hope }
    }
}

impl From<sqlx::Error> for NoSession {
    fn from(error: sqlx::Error) -> Self {
        let hope = match &error {
            // A server that explains why it accepts no session: PostgreSQL marks that as FATAL, but
            // there was no connection to lose.
            sqlx::Error::Database(said) => return SessionError::refusal(&**said).into(),
            error if is_refused_by_tls(error) => {
                let error = DatabaseError {
                    message: format!("{}; {TLS_HINT}", chain(error)),
                    ..DatabaseError::default()
                };
                return Self { error: SessionError::Database(error), hope: Hope::None };
            }
            sqlx::Error::Io(error) => hope_of_io(error),
            sqlx::Error::Configuration(_) => Hope::None,
            _ => Hope::Soon,
        };
        Self { error: SessionError::from(error), hope }
    }
}

/// Classes 53 (resources), 57 (operator intervention) and 58 (system) of PostgreSQL are transient.
fn hope_of(error: &DatabaseError) -> Hope {
    let class = error.sqlstate().map_or("", |code| &code[..2]);
    let is_passing = error.number.is_none() && ["53", "57", "58"].contains(&class);
    match error.kind {
        ServerErrorKind::Lost | ServerErrorKind::LockWait => Hope::Soon,
        _ if is_passing => Hope::Soon,
        ServerErrorKind::Deadlock | ServerErrorKind::Serialization | ServerErrorKind::Other => {
            Hope::None
        }
    }
}

/// 12, 23, 24, 99 and 105: no memory, no file handle (of the system, of the process), no port, no
/// buffer. A failed name resolution has neither kind nor number, only a text.
fn hope_of_io(error: &io::Error) -> Hope {
    let said = error.to_string();
    match error.raw_os_error() {
        Some(12 | 23 | 24 | 99 | 105) => Hope::Here,
        None if said.contains("lookup address") || said.contains("could not resolve") => Hope::Once,
        _ => Hope::Soon,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waiting_can_mend() {
        let of = |number: Option<u16>, code: &str, kind| {
            let code = Some(code.to_owned());
            hope_of(&DatabaseError { number, code, kind, ..DatabaseError::default() })
        };
        for (number, code, kind, hope) in [
            (None, "57P03", ServerErrorKind::Lost, Hope::Soon),
            (None, "53300", ServerErrorKind::Lost, Hope::Soon),
            (None, "53100", ServerErrorKind::Other, Hope::Soon),
            (None, "28P01", ServerErrorKind::Other, Hope::None),
            (None, "3D000", ServerErrorKind::Other, Hope::None),
            (Some(1040), "08004", ServerErrorKind::Lost, Hope::Soon),
            (Some(1045), "28000", ServerErrorKind::Other, Hope::None),
            (Some(1049), "42000", ServerErrorKind::Other, Hope::None),
            (None, "5", ServerErrorKind::LockWait, Hope::Soon),
            (None, "14", ServerErrorKind::Other, Hope::None),
        ] {
            assert_eq!(of(number, code, kind), hope, "{number:?} {code}");
        }
    }

    #[test]
    fn the_network_the_machine_and_the_name() {
        for (error, hope) in [
            (io::Error::from_raw_os_error(111), Hope::Soon),
            (io::Error::from_raw_os_error(113), Hope::Soon),
            (io::Error::from_raw_os_error(24), Hope::Here),
            (io::Error::other("failed to lookup address information: Name unknown"), Hope::Once),
            (io::Error::from(io::ErrorKind::UnexpectedEof), Hope::Soon),
        ] {
            assert_eq!(hope_of_io(&error), hope, "{error}");
        }
    }
}
