//! Privileges of a MySQL or MariaDB user, parsed from the output of SHOW GRANTS.
//!
//! Without a user name SHOW GRANTS lists the privileges of the session, including its active roles.
//! On MariaDB the line of a user contains the hash of the password, so no line is ever shown.

use crate::db::fault::SessionError;
use crate::db::routine::Routine;
use crate::db::session::Session;
use crate::db::target::UserPrivileges;

/// The privileges of the session's user, including those of its active roles.
pub(super) async fn read_privileges(
    session: &mut Session,
) -> Result<Option<Box<dyn UserPrivileges>>, SessionError> {
    let found = session.query_rows("SHOW GRANTS", &[]).await?;
    let lines = found.rows.iter().filter_map(|row| row.first()?.as_deref());
    Ok(Some(Box::new(MysqlGrants::parse(lines))))
}

/// Kind of a routine in a GRANT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoutineKind {
    /// `ON PROCEDURE`
    Procedure,
    /// `ON FUNCTION`
    Function,
    /// `ON PACKAGE`, of MariaDB.
    Package,
}

/// All privileges of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct MysqlGrants {
    entries: Vec<GrantEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GrantEntry {
    /// A REVOKE removes privileges on one database from a user that has them globally (MySQL's
    /// partial revokes).
    is_revoke: bool,
    /// In upper case, without lists of columns.
    privileges: Vec<String>,
    scope: GrantScope,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum GrantScope {
    Global,
    /// A pattern with `%`, `_` and `\`, as it was granted.
    Database(String),
    Table,
    Routine(RoutineKind, String, String),
}

impl MysqlGrants {
    /// Parses the lines. A line that is not understood grants nothing.
    fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        Self { entries: lines.into_iter().filter_map(parse_line).collect() }
    }

    /// Whether the user has a global privilege.
    fn has_global(&self, privilege: &str) -> bool {
        self.entries
            .iter()
            .any(|e| !e.is_revoke && e.scope == GrantScope::Global && e.grants(privilege))
    }

    /// Whether the user may execute a routine. Where several entries match a database the server
    /// uses only the narrowest; here each counts, so that nothing is refused that the server would
    /// run.
    fn may_execute_routine(&self, kind: RoutineKind, schema: &str, name: &str) -> bool {
        let execute = "EXECUTE";
        let is_revoked = self.entries.iter().any(|e| {
            e.is_revoke && e.grants(execute) && e.scope == GrantScope::Database(schema.to_owned())
        });
        (self.has_global(execute) && !is_revoked)
            || self.entries.iter().any(|e| {
                let fits = match &e.scope {
                    GrantScope::Global | GrantScope::Table => false,
                    GrantScope::Database(pattern) => pattern == schema || is_like(schema, pattern),
                    GrantScope::Routine(of, its_schema, its_name) => {
                        (*of, its_schema.as_str()) == (kind, schema)
                            && its_name.to_lowercase() == name.to_lowercase()
                    }
                };
                !e.is_revoke && fits && e.grants(execute)
            })
    }
}

impl UserPrivileges for MysqlGrants {
    /// Measured on MariaDB 10.11 and MySQL 9.7: each of these three privileges suffices, also
    /// through a role.
    fn may_stop_other_users(&self) -> bool {
        ["CONNECTION ADMIN", "CONNECTION_ADMIN", "SUPER"].iter().any(|right| self.has_global(right))
    }

    fn may_execute(&self, routine: &Routine) -> bool {
        let (kind, name) = match &routine.package {
            Some(package) => (RoutineKind::Package, package),
            None if routine.is_function => (RoutineKind::Function, &routine.name),
            None => (RoutineKind::Procedure, &routine.name),
        };
        self.may_execute_routine(kind, &routine.schema, name)
    }
}

impl GrantEntry {
    fn grants(&self, privilege: &str) -> bool {
        self.privileges
            .iter()
            .any(|have| have == privilege || have == "ALL PRIVILEGES" || have == "ALL")
    }
}

/// `GRANT SELECT, UPDATE (a) ON `db`.* TO `u`@`%``; `None` for roles, PROXY and SET DEFAULT ROLE.
fn parse_line(line: &str) -> Option<GrantEntry> {
    let line = line.trim();
    let (is_revoke, rest) = match (line.strip_prefix("GRANT "), line.strip_prefix("REVOKE ")) {
        (Some(rest), _) => (false, rest),
        (None, Some(rest)) => (true, rest),
        (None, None) => return None,
    };
    let at = find_on(rest)?;
    let (list, object) = (&rest[..at], rest[at + " ON ".len()..].trim_start());
    Some(GrantEntry { is_revoke, privileges: parse_privileges(list), scope: parse_scope(object)? })
}

/// Position of ` ON ` outside quotes and lists of columns.
fn find_on(text: &str) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0_u32);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '`' | '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, ' ') if depth == 0 && text[at..].starts_with(" ON ") => return Some(at),
            (None, _) => {}
        }
    }
    None
}

fn parse_privileges(list: &str) -> Vec<String> {
    let (mut found, mut current, mut depth) = (Vec::new(), String::new(), 0_u32);
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => found.push(std::mem::take(&mut current)),
            _ if depth == 0 => current.push(c),
            _ => {}
        }
    }
    found.push(current);
    found.iter().map(|word| word.trim().to_uppercase()).filter(|word| !word.is_empty()).collect()
}

fn parse_scope(object: &str) -> Option<GrantScope> {
    for (word, kind) in [
        ("PROCEDURE ", RoutineKind::Procedure),
        ("FUNCTION ", RoutineKind::Function),
        ("PACKAGE BODY ", RoutineKind::Package),
        ("PACKAGE ", RoutineKind::Package),
    ] {
        if let Some(path) = object.strip_prefix(word) {
            let (schema, rest) = parse_name(path)?;
            let (name, _) = parse_name(rest.strip_prefix('.')?)?;
            return Some(GrantScope::Routine(kind, schema, name));
        }
    }
    let path = object.strip_prefix("TABLE ").unwrap_or(object);
    if path.starts_with("*.*") {
        return Some(GrantScope::Global);
    }
    let (schema, rest) = parse_name(path)?;
    let rest = rest.strip_prefix('.')?;
    Some(if rest.starts_with('*') { GrantScope::Database(schema) } else { GrantScope::Table })
}

/// Parses a name, quoted (a doubled quote stands for one) or plain; returns the rest too.
fn parse_name(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next()?;
    if !matches!(quote, '`' | '"') {
        let end = text.find(['.', ' ', '@']).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].to_owned(), &text[end..]));
    }
    let (mut name, mut rest) = (String::new(), &text[1..]);
    loop {
        let end = rest.find(quote)?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(quote) {
            Some(more) => {
                name.push(quote);
                rest = more;
            }
            None => return Some((name, rest)),
        }
    }
}

/// Whether a pattern of SQL's LIKE matches a text.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => text.is_empty(),
        Some('%') => {
            let rest = letters.as_str();
            text.char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .any(|at| is_like(&text[at..], rest))
        }
        Some('_') => {
            let mut text = text.chars();
            text.next().is_some() && is_like(text.as_str(), letters.as_str())
        }
        Some(letter) => {
            let wanted = if letter == '\\' { letters.next().unwrap_or(letter) } else { letter };
            let mut text = text.chars();
            text.next() == Some(wanted) && is_like(text.as_str(), letters.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the servers print them: MariaDB 10.11 and MySQL 9.7.
    const MARIADB: [&str; 6] = [
        "GRANT `closers` TO `pf1`@`%`",
        "GRANT USAGE ON *.* TO `pf1`@`%` IDENTIFIED BY PASSWORD '*7B9EBEED26AA52ED10C0F549FA863F13C39E0209'",
        "GRANT EXECUTE ON `fin\\_a`.* TO `pf1`@`%`",
        "GRANT EXECUTE, ALTER ROUTINE ON PROCEDURE `led``ger`.`sp_Close` TO `pf1`@`%`",
        "GRANT CONNECTION ADMIN ON *.* TO `closers`",
        "SET DEFAULT ROLE `closers` FOR `pf1`@`%`",
    ];
    const MYSQL: [&str; 6] = [
        "GRANT SELECT, INSERT, EXECUTE ON *.* TO `pf1`@`%`",
        "GRANT BACKUP_ADMIN,CONNECTION_ADMIN ON *.* TO `pf1`@`%` WITH GRANT OPTION",
        "REVOKE EXECUTE ON `secret`.* FROM `pf1`@`%`",
        "GRANT UPDATE (`EXECUTE`, `b`) ON `x`.`t` TO `pf1`@`%`",
        "GRANT `pfr`@`%` TO `pf1`@`%`",
        "GRANT PROXY ON ``@`` TO `root`@`localhost` WITH GRANT OPTION",
    ];

    #[test]
    fn rights_are_those_that_the_lines_give() {
        use RoutineKind::{Function, Package, Procedure};
        let mariadb = MysqlGrants::parse(MARIADB);
        assert!(mariadb.may_stop_other_users() && !mariadb.has_global("SUPER"));
        for (kind, schema, name, may) in [
            (Procedure, "fin_a", "any", true),
            (Function, "fin_a", "any", true),
            (Procedure, "finXa", "any", false),
            (Procedure, "led`ger", "SP_CLOSE", true),
            (Function, "led`ger", "sp_close", false),
            (Procedure, "led`ger", "sp_open", false),
        ] {
            assert_eq!(mariadb.may_execute_routine(kind, schema, name), may, "{schema}.{name}");
        }
        let mysql = MysqlGrants::parse(MYSQL);
        assert!(mysql.may_stop_other_users());
        assert!(
            mysql.may_execute_routine(Procedure, "fin", "p")
                && !mysql.may_execute_routine(Procedure, "secret", "p")
        );
        let columns = MysqlGrants::parse([MYSQL[3]]);
        assert!(
            !columns.may_execute_routine(Procedure, "x", "t") && !columns.may_stop_other_users()
        );
        let all = MysqlGrants::parse([
            "GRANT ALL PRIVILEGES ON *.* TO `root`@`127.0.0.1` WITH GRANT OPTION",
        ]);
        assert!(all.may_stop_other_users() && all.may_execute_routine(Package, "x", "y"));
        assert!(!MysqlGrants::parse(["GRANT EXECUTE ON *.* TO `a`@`%`"]).may_stop_other_users());
    }

    #[test]
    fn databases_are_patterns() {
        for (pattern, schema, may) in [
            ("fin%", "finance", true),
            ("fin%", "fin", true),
            ("fin_", "fin", false),
            ("fin_", "fine", true),
            ("fin\\_", "fine", false),
            ("fin\\_", "fin_", true),
            ("%总账%", "集团总账2024", true),
        ] {
            let line = format!("GRANT EXECUTE ON `{pattern}`.* TO `u`@`%`");
            let grants = MysqlGrants::parse([line.as_str()]);
            assert_eq!(
                grants.may_execute_routine(RoutineKind::Procedure, schema, "p"),
                may,
                "{pattern} {schema}"
            );
        }
        // Quotes as ANSI_QUOTES has them, and what no server prints.
        let grants = MysqlGrants::parse([
            "GRANT EXECUTE ON \"a\".* TO \"u\"@\"%\"",
            "GRANT",
            "",
            "GRANT X ON `a",
        ]);
        assert!(grants.may_execute_routine(RoutineKind::Procedure, "a", "p"));
    }
}
