//! Decides which statements of MySQL and MariaDB commit implicitly, by the names of the servers'
//! statement counters (`Com_…`).
//!
//! A procedure that executes ROLLBACK has ended our transaction and removed our savepoint. Its
//! later changes are rolled back, unless a statement commits them: a procedure that rolled back,
//! inserted and then created a table was taken for one without effects, ran three times and left
//! three effects.

/// Whether a body committed something, according to the server's counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitEvidence {
    /// No statement that commits was counted.
    None,
    /// Statements were counted that commit in some of their forms: their names.
    Possible(Vec<String>),
    /// A statement that commits was counted.
    Certain,
}

/// Statements that end no transaction, by counter without `Com_`. A name that is not listed commits
/// or may do so in a later version: an unknown one counts as a commit, because running a body twice
/// is worse than asking an operator.
const COMMITS_NOTHING: &[&str] = &[
    "admin_commands",
    "assign_to_keycache",
    "binlog",
    "call_procedure",
    "change_db",
    "checksum",
    "compound_sql",
    "create_temporary_table",
    "dealloc_sql",
    "delete",
    "delete_multi",
    "do",
    "drop_temporary_table",
    "empty_query",
    "execute_immediate",
    "execute_sql",
    "explain_other",
    "get_diagnostics",
    "ha_close",
    "ha_open",
    "ha_read",
    "help",
    "insert",
    "insert_select",
    "kill",
    "load",
    "prepare_sql",
    "release_savepoint",
    "replace",
    "replace_select",
    "resignal",
    "rollback",
    "rollback_to_savepoint",
    "savepoint",
    "select",
    "set_option",
    "signal",
    "update",
    "update_multi",
];

/// Statements that MySQL counts together with their form for temporary tables, which does not
/// commit.
const POSSIBLE_ON_MYSQL: &[&str] = &["create_table", "drop_table"];

/// Evaluates the counters of one session, given as pairs of name and count.
/// `counts_temporary_apart` is true for MariaDB, which counts temporary tables separately.
/// `autocommit` is the session's present setting: a session that began with it off and has it on
/// has committed by the change.
pub fn find_commit_evidence<'a>(
    counters: impl Iterator<Item = (&'a str, u64)>,
    counts_temporary_apart: bool,
    autocommit: bool,
) -> CommitEvidence {
    let mut possible = Vec::new();
    let mut is_certain = autocommit;
    for (counter, count) in counters {
        let name = counter.to_ascii_lowercase();
        let Some(name) = name.strip_prefix("com_").filter(|_| count > 0) else { continue };
        let commits_nothing = COMMITS_NOTHING.contains(&name)
            || name.starts_with("show_")
            || name.starts_with("stmt_");
        if commits_nothing {
            continue;
        }
        match !counts_temporary_apart && POSSIBLE_ON_MYSQL.contains(&name) {
            true => possible.push(name.replace('_', " ").to_uppercase()),
            false => is_certain = true,
        }
    }
    match (is_certain, possible.is_empty()) {
        (true, _) => CommitEvidence::Certain,
        (false, false) => CommitEvidence::Possible(possible),
        (false, true) => CommitEvidence::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(counters: &str, is_mariadb: bool) -> CommitEvidence {
        let counters = counters.split_whitespace().map(|pair| {
            let (name, count) = pair.split_once('=').expect("a pair");
            (name, count.parse().expect("a number"))
        });
        find_commit_evidence(counters, is_mariadb, false)
    }

    #[test]
    fn statements_that_commit_without_saying_so_are_found() {
        let nothing = "Com_select=9 Com_insert=3 Com_rollback=1 Com_show_status=2 Com_set_option=4 \
                       Com_stmt_execute=2 Com_truncate=0";
        assert_eq!(find(nothing, true), CommitEvidence::None);
        for counter in [
            "Com_commit",
            "Com_begin",
            "COM_TRUNCATE",
            "Com_alter_table",
            "Com_create_index",
            "Com_analyze",
            "Com_grant",
            "Com_lock_tables",
            "Com_xa_commit",
            "Com_of_a_later_version",
        ] {
            for is_mariadb in [true, false] {
                let found = find(&format!("{nothing} {counter}=1"), is_mariadb);
                assert_eq!(found, CommitEvidence::Certain, "{counter}");
            }
        }
    }

    #[test]
    fn mysql_counts_temporary_tables_with_others() {
        let made = "Com_create_table=1 Com_drop_table=1";
        assert_eq!(find(made, true), CommitEvidence::Certain);
        let names = vec!["CREATE TABLE".to_owned(), "DROP TABLE".to_owned()];
        assert_eq!(find(made, false), CommitEvidence::Possible(names));
        assert_eq!(find("Com_create_temporary_table=1", true), CommitEvidence::None);
        assert_eq!(find(&format!("{made} Com_truncate=1"), false), CommitEvidence::Certain);
    }

    #[test]
    fn switching_autocommit_on_is_a_commit() {
        let none = std::iter::empty();
        assert_eq!(find_commit_evidence(none, true, true), CommitEvidence::Certain);
    }
}
