//! The errors of SQLite, by their result codes.

use crate::db::fault::{DatabaseError, ErrorCondition, ServerErrorKind};

/// An error of the driver that belongs to no server.
pub(in crate::db) fn read_error(error: &dyn sqlx::error::DatabaseError) -> DatabaseError {
    classify(error.code().as_deref(), error.message())
}

fn classify(code: Option<&str>, message: &str) -> DatabaseError {
    let class = code.and_then(|code| code.parse::<i32>().ok()).map(|code| code & 0xff);
    let condition = condition_of(code, class, message);
    DatabaseError {
        code: code.map(str::to_owned),
        message: message.to_owned(),
        // 5 BUSY, 6 LOCKED.
        kind: match class {
            Some(5 | 6) => ServerErrorKind::LockWait,
            _ => ServerErrorKind::Other,
        },
        condition,
        is_passing: condition == ErrorCondition::Busy,
        ..DatabaseError::default()
    }
}

/// 8 READONLY. What else is wrong with a statement has one code, and is told by the text.
fn condition_of(code: Option<&str>, class: Option<i32>, message: &str) -> ErrorCondition {
    match class {
        Some(5) => ErrorCondition::Busy,
        _ if code == Some("8") => ErrorCondition::ReadOnly,
        _ if message.starts_with("no such table") => ErrorCondition::MissingTable,
        _ if message.contains("syntax error") => ErrorCondition::Syntax,
        _ => ErrorCondition::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_by_code_and_text() {
        use ErrorCondition::{Busy, MissingTable, Other, ReadOnly, Syntax};
        let (wait, other) = (ServerErrorKind::LockWait, ServerErrorKind::Other);
        for (code, message, kind, condition) in [
            ("5", "", wait, Busy),
            ("6", "", wait, Other),
            ("261", "", wait, Busy),
            ("517", "", wait, Busy),
            ("262", "", wait, Other),
            ("8", "attempt to write a readonly database", other, ReadOnly),
            ("1", "no such table: t", other, MissingTable),
            ("1", "near \"x\": syntax error", other, Syntax),
            ("2067", "UNIQUE constraint failed", other, Other),
        ] {
            let error = classify(Some(code), message);
            assert_eq!((error.kind, error.condition), (kind, condition), "{code}");
            assert_eq!(error.is_passing, condition == Busy, "{code}");
        }
    }
}
