//! The SQL dialects of the three databases: the few fragments in which the text of a statement
//! differs.

use std::borrow::Cow;

/// A database product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// SQLite 3.
    Sqlite,
    /// MySQL 8 or MariaDB 10.6 and later.
    Mysql,
    /// PostgreSQL 13 and later.
    Postgres,
}

impl Dialect {
    /// The query for the server's clock; column `t`.
    pub const fn clock_query(self) -> &'static str {
        match self {
            Self::Sqlite => "SELECT strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now') AS t",
            Self::Mysql => "SELECT UTC_TIMESTAMP(3) AS t",
            Self::Postgres => "SELECT clock_timestamp() AS t",
        }
    }

    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sqlite, Self::Mysql, Self::Postgres];

    /// The name in migration directories.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Mysql => "mysql",
            Self::Postgres => "postgres",
        }
    }

    /// The dialect of a URL's scheme.
    pub fn of_url(url: &str) -> Option<Self> {
        match url.split_once(':')?.0 {
            "sqlite" => Some(Self::Sqlite),
            "mysql" | "mariadb" => Some(Self::Mysql),
            "postgres" | "postgresql" => Some(Self::Postgres),
            _ => None,
        }
    }

    /// Maximum number of bound values per statement, below each server's own limit (SQLite 32,766,
    /// MySQL and PostgreSQL 65,535).
    pub fn max_binds(self) -> usize {
        match self {
            Self::Sqlite => 30_000,
            Self::Mysql | Self::Postgres => 60_000,
        }
    }

    /// `name` as a quoted identifier, whatever characters it contains.
    pub fn quote(self, name: &str) -> String {
        match self {
            Self::Mysql => format!("`{}`", name.replace('`', "``")),
            Self::Sqlite | Self::Postgres => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    }

    /// `FOR UPDATE` where rows can be locked; on SQLite the transaction itself is the lock.
    pub fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Mysql | Self::Postgres => " FOR UPDATE",
        }
    }

    /// `FOR UPDATE` that skips rows locked by other sessions.
    pub fn for_update_of_free(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Mysql | Self::Postgres => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// The end of an INSERT that overwrites `columns` in the row with the same `key`.
    pub fn or_replace(self, key: &str, columns: &[&str]) -> String {
        let others = columns.iter().filter(|column| **column != key);
        let (head, set): (_, Vec<String>) = match self {
            Self::Sqlite | Self::Postgres => (
                format!(" ON CONFLICT ({key}) DO UPDATE SET "),
                others.map(|column| format!("{column} = excluded.{column}")).collect(),
            ),
            Self::Mysql => (
                " ON DUPLICATE KEY UPDATE ".to_owned(),
                others.map(|column| format!("{column} = VALUES({column})")).collect(),
            ),
        };
        head + &set.join(", ")
    }

    /// The statement with this server's placeholders: `?` becomes `$1`, `$2`, … on PostgreSQL.
    /// Internal statements contain no `?` inside quotes, which a test of the store verifies by
    /// running each of them.
    pub fn placeholders(self, sql: &str) -> Cow<'_, str> {
        if self != Self::Postgres || !sql.contains('?') {
            return Cow::Borrowed(sql);
        }
        let mut out = String::with_capacity(sql.len() + 32);
        let mut number = 0;
        for piece in sql.split_inclusive('?') {
            match piece.strip_suffix('?') {
                Some(before) => {
                    number += 1;
                    out.push_str(before);
                    out.push('$');
                    out.push_str(&number.to_string());
                }
                None => out.push_str(piece),
            }
        }
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_for_postgres_only() {
        let sql = "UPDATE t SET a = ?, b = ? WHERE c IN (?,?)";
        assert_eq!(Dialect::Mysql.placeholders(sql), sql);
        assert_eq!(
            Dialect::Postgres.placeholders(sql),
            "UPDATE t SET a = $1, b = $2 WHERE c IN ($3,$4)"
        );
    }
}
