//! Errors of a session, distinguished by what is known afterwards.

use sqlx::mysql::MySqlDatabaseError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
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

    /// Whether the server denied this user a privilege.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_denied())
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
}

/// PostgreSQL by SQLSTATE. 57P01 to 57P03: stopping, crashed, starting; 53300: out of connections.
fn kind_of_postgres(code: &str) -> ServerErrorKind {
    match code {
        "40P01" => ServerErrorKind::Deadlock,
        "55P03" => ServerErrorKind::LockWait,
        "40001" => ServerErrorKind::Serialization,
        "57P01" | "57P02" | "57P03" | "53300" => ServerErrorKind::Lost,
        other if other.starts_with("08") => ServerErrorKind::Lost,
        _ => ServerErrorKind::Other,
    }
}

/// MySQL and MariaDB by number, because one SQLSTATE covers many: 1213 deadlock (also 1614 in XA,
/// 3058 between user locks), 1205 lock wait, 3572 NOWAIT, 1020 changed since read (MariaDB's
/// snapshot isolation), 1040, 1203 and 1226 out of connections.
fn kind_of_mysql(number: u16, code: Option<&str>) -> ServerErrorKind {
    match number {
        1213 | 1614 | 3058 => ServerErrorKind::Deadlock,
        1205 | 3572 => ServerErrorKind::LockWait,
        1020 => ServerErrorKind::Serialization,
        1040 | 1203 | 1226 => ServerErrorKind::Lost,
        // A procedure's own SIGNAL SQLSTATE '40001' (1644).
        _ if code == Some("40001") => ServerErrorKind::Deadlock,
        _ if code.is_some_and(|c| c.starts_with("08")) => ServerErrorKind::Lost,
        _ => ServerErrorKind::Other,
    }
}

/// SQLite by the low byte of its result code: 5 BUSY, 6 LOCKED.
fn kind_of_sqlite(code: Option<&str>) -> ServerErrorKind {
    match code.and_then(|c| c.parse::<i32>().ok()).map(|c| c & 0xff) {
        Some(5 | 6) => ServerErrorKind::LockWait,
        _ => ServerErrorKind::Other,
    }
}

impl DatabaseError {
    /// SQLSTATE, if the server returned one; SQLite's codes are shorter.
    pub fn sqlstate(&self) -> Option<&str> {
        self.code.as_deref().filter(|code| code.len() == 5)
    }

    /// Whether the statement named a table that does not exist, or that this user may not see.
    pub fn is_missing_table(&self) -> bool {
        let is_sqlites = self.number.is_none() && self.message.starts_with("no such table");
        self.number == Some(1146) || self.code.as_deref() == Some("42P01") || is_sqlites
    }

    /// Whether this user lacks a privilege on a table or a column (1142, 1143) or, on PostgreSQL,
    /// on anything.
    pub fn is_denied(&self) -> bool {
        matches!(self.number, Some(1142 | 1143))
            || self.number.is_none() && self.code.as_deref() == Some("42501")
    }

    /// Whether the server could not parse the statement.
    pub fn is_syntax(&self) -> bool {
        match self.number {
            Some(number) => number == 1064,
            None => {
                self.code.as_deref() == Some("42601")
                    || (self.sqlstate().is_none() && self.message.contains("syntax error"))
            }
        }
    }

    /// Whether a CALL of this routine was refused because the user lacks a privilege on it or on
    /// its schema; not when a statement inside it was, which PostgreSQL shows by the context
    /// (`WHERE`) and MySQL by another name.
    pub fn is_execute_denied(&self, schema: &str, name: &str) -> bool {
        let says = |word: &str| self.message.to_lowercase().contains(&word.to_lowercase());
        match self.number {
            Some(1370) => says(&format!("'{schema}.{name}'")),
            Some(_) => false,
            None => {
                let is_inside = self.more.iter().any(|(field, _)| *field == "WHERE");
                self.code.as_deref() == Some("42501") && !is_inside && (says(name) || says(schema))
            }
        }
    }

    /// Whether MySQL knows no savepoint of that name.
    pub fn is_no_savepoint(&self) -> bool {
        self.number == Some(1305)
    }

    /// Whether PostgreSQL refused a COMMIT or ROLLBACK inside a routine, because the transaction
    /// belongs to its caller.
    pub fn is_end_refused(&self) -> bool {
        self.number.is_none() && self.code.as_deref() == Some("2D000")
    }

    /// Whether SQLite reported that another connection has locked the file.
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

/// MySQL numbers that mean a lost connection although they arrive as an ordinary error: server
/// shutdown (1053), forced close (1080, 1152 to 1161), connection killed (1927).
const MYSQL_FATAL: [u16; 9] = [1053, 1080, 1152, 1158, 1159, 1160, 1161, 1927, 3169];

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
enum ConnectionState {
    Usable,
    Gone,
}

fn read_error(error: &dyn sqlx::error::DatabaseError) -> (DatabaseError, ConnectionState) {
    if let Some(pg) = error.try_downcast_ref::<PgDatabaseError>() {
        // 57P01 and similar ones arrive as errors, but the server process is gone.
        let link = match pg.severity() {
            PgSeverity::Fatal | PgSeverity::Panic => ConnectionState::Gone,
            _ => ConnectionState::Usable,
        };
        return (of_postgres(pg), link);
    }
    if let Some(my) = error.try_downcast_ref::<MySqlDatabaseError>() {
        let link = if MYSQL_FATAL.contains(&my.number()) {
            ConnectionState::Gone
        } else {
            ConnectionState::Usable
        };
        let error = DatabaseError {
            code: my.code().map(str::to_owned),
            number: Some(my.number()),
            message: my.message().to_owned(),
            more: Vec::new(),
            kind: kind_of_mysql(my.number(), my.code()),
        };
        return (error, link);
    }
    let code = error.code().map(|c| c.into_owned());
    let kind = kind_of_sqlite(code.as_deref());
    let message = error.message().to_owned();
    (DatabaseError { code, message, kind, ..DatabaseError::default() }, ConnectionState::Usable)
}

/// The fields one by one: sqlx's own `Display` ends in "at line N", a line of the *server's* C
/// source, which misleads people to look in their procedure.
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
        kind: kind_of_postgres(pg.code()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_a_kind_by_their_code() {
        for (code, kind) in [
            ("40P01", ServerErrorKind::Deadlock),
            ("40001", ServerErrorKind::Serialization),
            ("55P03", ServerErrorKind::LockWait),
            ("57P01", ServerErrorKind::Lost),
            ("08006", ServerErrorKind::Lost),
            ("53300", ServerErrorKind::Lost),
            ("57014", ServerErrorKind::Other),
            ("23505", ServerErrorKind::Other),
            ("42601", ServerErrorKind::Other),
        ] {
            assert_eq!(kind_of_postgres(code), kind, "{code}");
        }
        for (number, code, kind) in [
            (1213, "40001", ServerErrorKind::Deadlock),
            (1644, "40001", ServerErrorKind::Deadlock),
            (1205, "HY000", ServerErrorKind::LockWait),
            (3572, "HY000", ServerErrorKind::LockWait),
            (1020, "HY000", ServerErrorKind::Serialization),
            (1040, "08004", ServerErrorKind::Lost),
            (1042, "08S01", ServerErrorKind::Lost),
            (1064, "42000", ServerErrorKind::Other),
            (1062, "23000", ServerErrorKind::Other),
        ] {
            assert_eq!(kind_of_mysql(number, Some(code)), kind, "{number}");
        }
        for (code, kind) in [
            ("5", ServerErrorKind::LockWait),
            ("6", ServerErrorKind::LockWait),
            ("261", ServerErrorKind::LockWait),
            ("517", ServerErrorKind::LockWait),
            ("262", ServerErrorKind::LockWait),
            ("1", ServerErrorKind::Other),
            ("2067", ServerErrorKind::Other),
        ] {
            assert_eq!(kind_of_sqlite(Some(code)), kind, "{code}");
        }
    }

    #[test]
    fn a_call_without_the_right_is_told_from_one_inside() {
        let error = |number: Option<u16>, code: &str, message: &str, more: Vec<_>| DatabaseError {
            number,
            code: Some(code.to_owned()),
            message: message.to_owned(),
            more,
            ..DatabaseError::default()
        };
        let place = || vec![("WHERE", "PL/pgSQL function sp() line 3".to_owned())];
        let inner = "execute command denied to user 'u'@'%' for routine 'fin.other'";
        let outer = "execute command denied to user 'u'@'%' for routine 'FIN.sp'";
        for (error, is_denied) in [
            (error(Some(1370), "42000", outer, vec![]), true),
            (error(Some(1370), "42000", inner, vec![]), false),
            (error(Some(1142), "42000", outer, vec![]), false),
            (error(None, "42501", "permission denied for procedure sp", vec![]), true),
            (error(None, "42501", "对模式 fin 权限不够", vec![]), true),
            (error(None, "42501", "permission denied for procedure sp", place()), false),
            (error(None, "42501", "permission denied for table t", vec![]), false),
            (error(None, "P0001", "sp", vec![]), false),
        ] {
            assert_eq!(error.is_execute_denied("fin", "sp"), is_denied, "{error}");
        }
    }

    #[test]
    fn only_servers_have_a_sqlstate() {
        let of = |code: &str| DatabaseError { code: Some(code.to_owned()), ..Default::default() };
        assert_eq!(of("40001").sqlstate(), Some("40001"));
        assert_eq!(of("2067").sqlstate(), None);
        assert_eq!(SessionError::Lost("gone".to_owned()).kind(), ServerErrorKind::Lost);
    }
}
