//! Combines all migrations of MySQL into few statements, for a database that contains none of them.
//!
//! Each DDL statement of MySQL and MariaDB waits for several disk writes: 170 of them took 12 s on
//! MySQL 9.7 and 8 s on MariaDB 10.11, 45 folded ones take a quarter. An index or a column added by
//! a later migration moves into the CREATE TABLE of its table; every other statement is kept, in
//! order.

/// The statements of `texts` in order, with later columns and indexes folded into the CREATE TABLE
/// of their table.
pub(super) fn fold_statements(texts: &[&str]) -> Vec<String> {
    let mut steps = Vec::new();
    for statement in texts.iter().flat_map(|text| split_statements(text)) {
        if !fold_into(&mut steps, &statement) {
            seal_named(&mut steps, &statement);
            steps.push(FoldedStatement::parse(statement));
        }
    }
    steps.into_iter().map(FoldedStatement::into_sql).collect()
}

/// One statement of the folded list.
enum FoldedStatement {
    Table {
        name: String,
        /// Columns and constraints as written, then the folded ones.
        items: Vec<String>,
        /// The text after the closing parenthesis.
        tail: String,
        /// Whether a statement was found that cannot be folded into this table, so that no later
        /// one may be.
        is_sealed: bool,
    },
    Other(String),
}

impl FoldedStatement {
    fn parse(statement: String) -> Self {
        match parse_create_table(&statement) {
            Some((name, items, tail)) => {
                Self::Table { name, items: vec![items], tail, is_sealed: false }
            }
            None => Self::Other(statement),
        }
    }

    fn into_sql(self) -> String {
        match self {
            Self::Table { name, items, tail, .. } => {
                format!("CREATE TABLE {name} ({}){tail}", items.join(",\n    "))
            }
            Self::Other(statement) => statement,
        }
    }
}

/// Name, content of the parentheses and tail of a CREATE TABLE.
fn parse_create_table(statement: &str) -> Option<(String, String, String)> {
    let rest = statement.strip_prefix("CREATE TABLE ")?;
    let (name, rest) = rest.split_once('(')?;
    let (items, tail) = rest.rsplit_once(')')?;
    let name = name.trim();
    is_plain_name(name).then(|| (name.to_owned(), items.trim().to_owned(), tail.to_owned()))
}

/// Adds a column or index to its table, or removes a folded index again; `false` when the statement
/// must be kept.
fn fold_into(steps: &mut [FoldedStatement], statement: &str) -> bool {
    let words: Vec<&str> = statement.split_whitespace().collect();
    match words[..] {
        ["ALTER", "TABLE", table, "ADD", "COLUMN", _, ..] => {
            let column = statement.split_once("ADD COLUMN").map_or("", |(_, column)| column.trim());
            let upper = column.to_ascii_uppercase();
            // More than one change, an explicit position, or a table that may be created later.
            let is_alone = !["ADD ", "DROP ", "MODIFY ", "REFERENCES", " FIRST", " AFTER "]
                .iter()
                .any(|word| upper.contains(word));
            is_alone
                && open_table(steps, table).map(|items| items.push(column.to_owned())).is_some()
        }
        ["CREATE", "INDEX", ref rest @ ..] => fold_index(steps, "KEY", rest),
        ["CREATE", "UNIQUE", "INDEX", ref rest @ ..] => fold_index(steps, "UNIQUE KEY", rest),
        ["DROP", "INDEX", index, "ON", table] => {
            let starts = [format!("KEY {index} "), format!("UNIQUE KEY {index} ")];
            let Some(items) = open_table(steps, table) else { return false };
            let at = items.iter().position(|item| starts.iter().any(|s| item.starts_with(s)));
            at.map(|at| items.remove(at)).is_some()
        }
        _ => false,
    }
}

fn fold_index(steps: &mut [FoldedStatement], kind: &str, words: &[&str]) -> bool {
    let [index, "ON", table, columns @ ..] = words else { return false };
    let columns = columns.join(" ");
    if !columns.starts_with('(') || !columns.ends_with(')') {
        return false;
    }
    let Some(items) = open_table(steps, table) else { return false };
    items.push(format!("{kind} {index} {columns}"));
    true
}

/// The items of the CREATE TABLE of `table`, while statements may be folded into it.
fn open_table<'s>(steps: &'s mut [FoldedStatement], table: &str) -> Option<&'s mut Vec<String>> {
    steps.iter_mut().rev().find_map(|step| match step {
        FoldedStatement::Table { name, items, is_sealed: false, .. } if name == table => {
            Some(items)
        }
        FoldedStatement::Table { .. } | FoldedStatement::Other(_) => None,
    })
}

/// Forbids folding into tables whose structure a kept statement changes.
fn seal_named(steps: &mut [FoldedStatement], statement: &str) {
    let changes_rows =
        ["INSERT", "UPDATE", "DELETE"].iter().any(|verb| statement.starts_with(verb));
    let names: Vec<&str> = statement.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    for step in steps {
        if let FoldedStatement::Table { name, is_sealed, .. } = step
            && !changes_rows
            && !statement.starts_with("CREATE TABLE ")
        {
            *is_sealed |= names.contains(&name.as_str());
        }
    }
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The statements of a migration without their comments.
fn split_statements(text: &str) -> Vec<String> {
    let (mut statements, mut current, mut quote) = (Vec::new(), String::new(), None);
    for line in text.lines() {
        if quote.is_none() && line.trim_start().starts_with("--") {
            continue;
        }
        for c in line.chars() {
            match (quote, c) {
                (None, '\'' | '"' | '`') => quote = Some(c),
                (Some(open), _) if c == open => quote = None,
                _ => {}
            }
            if c == ';' && quote.is_none() {
                statements.push(std::mem::take(&mut current));
            } else {
                current.push(c);
            }
        }
        current.push('\n');
    }
    statements.push(current);
    let statements = statements.into_iter().map(|s| s.trim().to_owned());
    statements.filter(|statement| !statement.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "-- t: it's a table; really\nCREATE TABLE t (\n    a INT,\n    PRIMARY KEY (a)\n) ENGINE = X;";

    fn folded(later: &str) -> Vec<String> {
        fold_statements(&[TABLE, later])
    }

    #[test]
    fn columns_and_indexes_go_into_their_table() {
        let later = "ALTER TABLE t ADD COLUMN b VARCHAR(5) NOT NULL DEFAULT 'x;y';\n\
                     CREATE INDEX ix_b ON t (b, a);\nCREATE UNIQUE INDEX ux_b ON t (b);\n\
                     CREATE INDEX ix_gone ON t (a);\nDROP INDEX ix_gone ON t;";
        let expected = "CREATE TABLE t (a INT,\n    PRIMARY KEY (a),\n    b VARCHAR(5) NOT NULL DEFAULT \
                        'x;y',\n    KEY ix_b (b, a),\n    UNIQUE KEY ux_b (b)) ENGINE = X";
        assert_eq!(folded(later), [expected]);
    }

    #[test]
    fn what_cannot_be_folded_stays_in_its_place_and_keeps_what_follows_there() {
        for change in [
            "ALTER TABLE t MODIFY COLUMN a BIGINT",
            "ALTER TABLE t ADD COLUMN c INT, ADD COLUMN d INT",
            "ALTER TABLE t ADD COLUMN c INT AFTER a",
            "ALTER TABLE t ADD COLUMN c INT REFERENCES later (id)",
            "ALTER TABLE t RENAME COLUMN a TO z",
            "DROP INDEX ix_of_the_table ON t",
            "DROP TABLE t",
            "RENAME TABLE t TO u",
        ] {
            let all = folded(&format!("{change};\nALTER TABLE t ADD COLUMN last INT;"));
            assert_eq!(all[1..], [change, "ALTER TABLE t ADD COLUMN last INT"], "{change}");
        }
    }

    #[test]
    fn rows_are_written_after_their_table_has_all_its_columns() {
        let all = folded(
            "INSERT INTO t (a) VALUES (1);\nUPDATE t SET a = 2;\nALTER TABLE t ADD COLUMN b INT;",
        );
        assert!(all[0].contains("b INT"), "{all:?}");
        assert_eq!(all[1..], ["INSERT INTO t (a) VALUES (1)", "UPDATE t SET a = 2"]);
    }
}
