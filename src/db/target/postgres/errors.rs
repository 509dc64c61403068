//! The errors of PostgreSQL, by SQLSTATE.

use crate::db::fault::{ConnectionState, DatabaseError, ErrorCondition, ServerErrorKind};
use sqlx::postgres::{PgDatabaseError, PgErrorPosition, PgSeverity};

/// An error of the server, and whether the connection remains usable after it.
///
/// The fields one by one: sqlx's own `Display` ends in "at line N", a line of the *server's* C
/// source, which misleads people to look in their procedure.
pub(in crate::db) fn read_error(error: &PgDatabaseError) -> (DatabaseError, ConnectionState) {
    // 57P01 and similar ones arrive as errors, but the server process is gone.
    let state = match error.severity() {
        PgSeverity::Fatal | PgSeverity::Panic => ConnectionState::Gone,
        _ => ConnectionState::Usable,
    };
    let position = error.position().and_then(|p| match p {
        PgErrorPosition::Original(at) => Some(format!("character {at}")),
        PgErrorPosition::Internal { .. } => None,
    });
    let more = [
        ("DETAIL", error.detail().map(str::to_owned)),
        ("HINT", error.hint().map(str::to_owned)),
        ("WHERE", error.r#where().map(str::to_owned)),
        ("POSITION", position),
        ("CONSTRAINT", error.constraint().map(str::to_owned)),
    ];
    let more = more.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
    (DatabaseError { more, ..classify(error.code(), error.message()) }, state)
}

fn classify(code: &str, message: &str) -> DatabaseError {
    let class = code.get(..2).unwrap_or_default();
    DatabaseError {
        code: Some(code.to_owned()),
        message: message.to_owned(),
        kind: kind_of(code),
        condition: condition_of(code),
        is_passing: ["08", "40", "53", "57"].contains(&class),
        ..DatabaseError::default()
    }
}

/// 57P01 to 57P03: stopping, crashed, starting; 53300: out of connections.
fn kind_of(code: &str) -> ServerErrorKind {
    match code {
        "40P01" => ServerErrorKind::Deadlock,
        "55P03" => ServerErrorKind::LockWait,
        "40001" => ServerErrorKind::Serialization,
        "57P01" | "57P02" | "57P03" | "53300" => ServerErrorKind::Lost,
        other if other.starts_with("08") => ServerErrorKind::Lost,
        _ => ServerErrorKind::Other,
    }
}

fn condition_of(code: &str) -> ErrorCondition {
    match code {
        "42P01" => ErrorCondition::MissingTable,
        "42501" => ErrorCondition::Denied,
        "42601" => ErrorCondition::Syntax,
        "2D000" => ErrorCondition::EndRefused,
        "25006" => ErrorCondition::ReadOnly,
        "25P02" => ErrorCondition::TransactionOpen,
        _ => ErrorCondition::Other,
    }
}

/// Whether a call of this routine was refused because the user lacks a privilege on it or on its
/// schema; not when a statement inside it was, which the context shows.
pub(super) fn is_execute_denied(error: &DatabaseError, schema: &str, name: &str) -> bool {
    let is_inside = error.more.iter().any(|(field, _)| *field == "WHERE");
    let message = error.message.to_lowercase();
    let says = |word: &str| message.contains(&word.to_lowercase());
    error.condition == ErrorCondition::Denied && !is_inside && (says(name) || says(schema))
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
            assert_eq!(classify(code, "").kind, kind, "{code}");
        }
    }

    #[test]
    fn a_call_without_the_right_is_told_from_one_inside() {
        let place = || vec![("WHERE", "PL/pgSQL function sp() line 3".to_owned())];
        for (code, message, more, is_denied) in [
            ("42501", "permission denied for procedure sp", vec![], true),
            ("42501", "对模式 fin 权限不够", vec![], true),
            ("42501", "permission denied for procedure sp", place(), false),
            ("42501", "permission denied for table t", vec![], false),
            ("P0001", "sp", vec![], false),
        ] {
            let error = DatabaseError { more, ..classify(code, message) };
            assert_eq!(is_execute_denied(&error, "fin", "sp"), is_denied, "{error}");
        }
    }
}
