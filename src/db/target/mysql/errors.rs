//! The errors of MySQL and MariaDB, by number, because one SQLSTATE covers many.

use crate::db::fault::{ConnectionState, DatabaseError, ErrorCondition, ServerErrorKind};
use sqlx::mysql::MySqlDatabaseError;

/// Numbers that mean a lost connection although they arrive as an ordinary error: server shutdown
/// (1053), forced close (1080, 1152 to 1161), connection killed (1927).
const FATAL: [u16; 9] = [1053, 1080, 1152, 1158, 1159, 1160, 1161, 1927, 3169];

/// An error of the server, and whether the connection remains usable after it.
pub(in crate::db) fn read_error(error: &MySqlDatabaseError) -> (DatabaseError, ConnectionState) {
    let is_gone = FATAL.contains(&error.number());
    let state = if is_gone { ConnectionState::Gone } else { ConnectionState::Usable };
    (classify(error.number(), error.code(), error.message()), state)
}

fn classify(number: u16, code: Option<&str>, message: &str) -> DatabaseError {
    let class = code.filter(|code| code.len() == 5).map(|code| &code[..2]);
    let is_passing_class = class.is_some_and(|class| ["08", "40", "53", "57"].contains(&class));
    DatabaseError {
        code: code.map(str::to_owned),
        number: Some(number),
        message: message.to_owned(),
        more: Vec::new(),
        kind: kind_of(number, code),
        condition: condition_of(number),
        is_passing: is_passing_class || [1040, 1203, 1205, 1213].contains(&number),
    }
}

/// 1213 deadlock (also 1614 in XA, 3058 between user locks), 1205 lock wait, 3572 NOWAIT, 1020
/// changed since read (MariaDB's snapshot isolation), 1040, 1203 and 1226 out of connections.
fn kind_of(number: u16, code: Option<&str>) -> ServerErrorKind {
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

/// 1142 and 1143: a privilege on a table or a column.
fn condition_of(number: u16) -> ErrorCondition {
    match number {
        1146 => ErrorCondition::MissingTable,
        1142 | 1143 => ErrorCondition::Denied,
        1064 => ErrorCondition::Syntax,
        1295 => ErrorCondition::NotPreparable,
        1305 => ErrorCondition::NoSavepoint,
        1792 => ErrorCondition::ReadOnly,
        1094 => ErrorCondition::NoSuchSession,
        1095 => ErrorCondition::NotStoppable,
        1568 => ErrorCondition::TransactionOpen,
        _ => ErrorCondition::Other,
    }
}

/// Whether a call of this routine was refused because the user lacks a privilege on it; not when a
/// statement inside it was, which names another one.
pub(in crate::db) fn is_execute_denied(error: &DatabaseError, schema: &str, name: &str) -> bool {
    let named = format!("'{schema}.{name}'").to_lowercase();
    error.number == Some(1370) && error.message.to_lowercase().contains(&named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_a_kind_by_their_number() {
        for (number, code, kind, is_passing) in [
            (1213, "40001", ServerErrorKind::Deadlock, true),
            (1644, "40001", ServerErrorKind::Deadlock, true),
            (1205, "HY000", ServerErrorKind::LockWait, true),
            (3572, "HY000", ServerErrorKind::LockWait, false),
            (1020, "HY000", ServerErrorKind::Serialization, false),
            (1040, "08004", ServerErrorKind::Lost, true),
            (1042, "08S01", ServerErrorKind::Lost, true),
            (1064, "42000", ServerErrorKind::Other, false),
            (1062, "23000", ServerErrorKind::Other, false),
        ] {
            let error = classify(number, Some(code), "");
            assert_eq!((error.kind, error.is_passing), (kind, is_passing), "{number}");
        }
    }

    #[test]
    fn a_call_without_the_right_is_told_from_one_inside() {
        let inner = "execute command denied to user 'u'@'%' for routine 'fin.other'";
        let outer = "execute command denied to user 'u'@'%' for routine 'FIN.sp'";
        for (number, message, is_denied) in
            [(1370, outer, true), (1370, inner, false), (1142, outer, false)]
        {
            let error = classify(number, Some("42000"), message);
            assert_eq!(is_execute_denied(&error, "fin", "sp"), is_denied, "{error}");
        }
    }
}
