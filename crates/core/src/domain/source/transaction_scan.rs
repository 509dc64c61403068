//! Detects statements that end the enclosing transaction, or that cannot run in one: a body with
//! such a statement is not a single transaction, so nothing can be committed together with it.
//!
//! Only the text is examined. A procedure that commits internally is detected when it runs.

use crate::domain::source::DialectName;
use crate::domain::source::statement::{SqlStatement, is_transaction_word, split, words};

/// Verbs that commit on MySQL and MariaDB, whatever follows them.
const MYSQL_COMMITS: &[&str] = &[
    "ALTER",
    "RENAME",
    "TRUNCATE",
    "GRANT",
    "REVOKE",
    "ANALYZE",
    "CHECK",
    "OPTIMIZE",
    "REPAIR",
    "FLUSH",
    "INSTALL",
    "UNINSTALL",
    "LOCK",
    "UNLOCK",
    "CHANGE",
    "STOP",
    "IMPORT",
    "SHUTDOWN",
];

/// The first statement that keeps a body from being one transaction: its line, and a sentence such
/// as `TRUNCATE commits by itself on mysql`.
pub fn breaks_transaction(sql: &str, dialect: DialectName) -> Option<(u32, String)> {
    let all = split(sql, dialect);
    all.iter().find_map(|one| Some((one.line, breaks(one, dialect)?)))
}

fn breaks(statement: &SqlStatement, dialect: DialectName) -> Option<String> {
    let found = words(&statement.text, dialect, usize::MAX);
    let upper: Vec<String> = found.iter().map(|word| word.to_ascii_uppercase()).collect();
    let words: Vec<&str> = upper.iter().map(String::as_str).collect();
    if is_transaction_word(statement, dialect) || ends_transaction(&words, dialect) {
        let name = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
        return Some(format!("{name} opens or ends a transaction itself"));
    }
    let found = match dialect {
        DialectName::Mysql => commits_on_mysql(&words),
        DialectName::Postgres => {
            return refused_by_postgres(&words)
                .map(|name| format!("{name} cannot run in a transaction"));
        }
        DialectName::Sqlite => {
            let cannot = words.first().is_some_and(|word| *word == "VACUUM");
            return cannot.then(|| "VACUUM cannot run in a transaction".to_owned());
        }
    };
    found.map(|name| format!("{name} commits by itself on mysql"))
}

/// Ends of a transaction that every mode of `transaction` treats as an ordinary statement.
fn ends_transaction(words: &[&str], dialect: DialectName) -> bool {
    match dialect {
        DialectName::Postgres => {
            matches!(words, ["ABORT", ..] | ["PREPARE", "TRANSACTION", ..])
        }
        DialectName::Mysql => matches!(words, ["XA", ..]),
        DialectName::Sqlite => false,
    }
}

/// Statements before which MySQL 8 and MariaDB commit: definitions, privileges, maintenance, table
/// locks. Temporary tables are created and dropped without.
fn commits_on_mysql(words: &[&str]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let named = || words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    let kind = rest.iter().find(|word| !matches!(**word, "OR" | "REPLACE"));
    let commits = match *first {
        "CREATE" | "DROP" => kind != Some(&"TEMPORARY"),
        "SET" => rest.iter().any(|word| {
            matches!(word.trim_start_matches('@'), "AUTOCOMMIT") || *word == "PASSWORD"
        }),
        "CACHE" => rest.first() == Some(&"INDEX"),
        "LOAD" => rest.first() == Some(&"INDEX"),
        "RESET" => rest.first() != Some(&"PERSIST"),
        "START" => matches!(rest.first(), Some(&"SLAVE" | &"REPLICA" | &"GROUP_REPLICATION")),
        verb => MYSQL_COMMITS.contains(&verb),
    };
    commits.then(named)
}

/// Statements that PostgreSQL refuses inside a transaction block (25001); its other definitions are
/// rolled back like any change.
fn refused_by_postgres(words: &[&str]) -> Option<String> {
    let concurrently = words.contains(&"CONCURRENTLY");
    let is_refused = match words {
        ["VACUUM", ..] | ["ALTER", "SYSTEM", ..] | ["DISCARD", "ALL", ..] => true,
        ["CREATE" | "DROP", "DATABASE" | "TABLESPACE" | "SUBSCRIPTION", ..] => true,
        ["COMMIT" | "ROLLBACK", "PREPARED", ..] | ["CLUSTER"] => true,
        ["REINDEX", ..] => concurrently || words.contains(&"DATABASE") || words.contains(&"SYSTEM"),
        ["CREATE", "INDEX", ..] | ["CREATE", "UNIQUE", "INDEX", ..] => concurrently,
        ["DROP", "INDEX", ..] => concurrently,
        ["ALTER", "TABLE", ..] => concurrently && words.contains(&"DETACH"),
        ["ALTER", "DATABASE", ..] => words.contains(&"TABLESPACE"),
        _ => false,
    };
    let name = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    let tail = if concurrently { " … CONCURRENTLY" } else { "" };
    is_refused.then(|| format!("{name}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use DialectName::{Mysql, Postgres, Sqlite};

    fn said(sql: &str, dialect: DialectName) -> Option<String> {
        breaks_transaction(sql, dialect).map(|(line, said)| format!("{line}: {said}"))
    }

    #[test]
    fn definitions_commit_on_mysql_and_nowhere_else() {
        for sql in [
            "CREATE TABLE t (a INT)",
            "CREATE OR REPLACE VIEW v AS SELECT 1",
            "CREATE UNIQUE INDEX i ON t (a)",
            "DROP TABLE IF EXISTS t",
            "ALTER TABLE t ADD b INT",
            "TRUNCATE t",
            "TRUNCATE TABLE t",
        ] {
            assert!(said(sql, Mysql).is_some_and(|s| s.contains("commits by itself")), "{sql}");
            assert_eq!(said(sql, Postgres), None, "{sql}");
            assert_eq!(said(sql, Sqlite), None, "{sql}");
        }
        assert_eq!(
            said("INSERT INTO t VALUES (1);\n/* x; */ truncate\ttable t", Mysql).as_deref(),
            Some("2: TRUNCATE TABLE commits by itself on mysql")
        );
        for sql in [
            "RENAME TABLE a TO b",
            "GRANT SELECT ON t TO u",
            "REVOKE ALL ON t FROM u",
            "LOCK TABLES t WRITE",
            "UNLOCK TABLES",
            "ANALYZE TABLE t",
            "OPTIMIZE TABLE t",
            "FLUSH TABLES",
            "RESET MASTER",
            "START SLAVE",
            "LOAD INDEX INTO CACHE t",
            "CACHE INDEX t IN hot",
            "SET autocommit = 0",
            "SET SESSION autocommit=1",
            "SET @@autocommit = 1",
            "SET PASSWORD = 'x'",
            "CREATE USER u",
            "CREATE PROCEDURE p() BEGIN SELECT 1; END",
        ] {
            assert!(said(sql, Mysql).is_some(), "{sql}");
        }
    }

    #[test]
    fn what_stays_in_a_transaction_is_let_pass() {
        for (sql, dialect) in [
            ("INSERT INTO t SELECT 'COMMIT; DROP TABLE t'", Mysql),
            ("-- TRUNCATE t\nDELETE FROM t", Mysql),
            ("CREATE TEMPORARY TABLE x (a INT); DROP TEMPORARY TABLE x", Mysql),
            ("CREATE OR REPLACE TEMPORARY TABLE x (a INT)", Mysql),
            ("LOAD DATA INFILE 'f' INTO TABLE t", Mysql),
            ("SET @x = 1; SAVEPOINT a; ROLLBACK TO SAVEPOINT a", Mysql),
            ("CALL p(:a)", Mysql),
            ("REPLACE INTO t VALUES (1)", Mysql),
            ("RESET PERSIST", Mysql),
            ("ANALYZE t; CREATE INDEX i ON t (a); REINDEX TABLE t", Postgres),
            ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", Postgres),
            ("PREPARE q AS SELECT 1", Postgres),
            ("DO $$ BEGIN PERFORM 1; END $$", Postgres),
            ("ANALYZE; REINDEX t; PRAGMA foreign_keys", Sqlite),
        ] {
            assert_eq!(said(sql, dialect), None, "{dialect}: {sql}");
        }
    }

    #[test]
    fn what_ends_or_cannot_stand_in_a_transaction_is_found() {
        for dialect in DialectName::ALL {
            for sql in ["COMMIT", "commit work", "ROLLBACK", "BEGIN"] {
                let found = said(&format!("DELETE FROM t;\n{sql};"), dialect);
                assert!(found.is_some_and(|s| s.starts_with("2: ")), "{dialect}: {sql}");
            }
        }
        for (sql, dialect, words) in [
            ("ABORT", Postgres, "ABORT opens or ends"),
            ("PREPARE TRANSACTION 'x'", Postgres, "PREPARE TRANSACTION opens or ends"),
            ("XA START 'x'", Mysql, "XA START opens or ends"),
            ("START TRANSACTION", Mysql, "START TRANSACTION opens or ends"),
            ("END", Sqlite, "END opens or ends"),
            ("VACUUM FULL t", Postgres, "VACUUM FULL cannot run"),
            ("VACUUM", Sqlite, "VACUUM cannot run"),
            ("CREATE DATABASE d", Postgres, "CREATE DATABASE cannot run"),
            (
                "CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)",
                Postgres,
                "CREATE UNIQUE … CONCURRENTLY cannot",
            ),
            ("DROP INDEX CONCURRENTLY i", Postgres, "DROP INDEX … CONCURRENTLY cannot run"),
            ("REINDEX TABLE CONCURRENTLY t", Postgres, "REINDEX TABLE … CONCURRENTLY cannot"),
            ("ALTER SYSTEM SET x = 1", Postgres, "ALTER SYSTEM cannot run"),
            (
                "ALTER TABLE t DETACH PARTITION p CONCURRENTLY",
                Postgres,
                "ALTER TABLE … CONCURRENTLY cannot",
            ),
        ] {
            let found = said(sql, dialect).unwrap_or_default();
            assert!(found.contains(words), "{dialect}: {sql}: {found}");
        }
    }
}
