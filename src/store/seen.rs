//! Conditions that lists share: visible rows, and text search.

use crate::db::SqlValue;
use crate::domain::id::GroupCode;
use std::collections::BTreeSet;

/// What the caller may see, where some of it belongs to no group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditScope {
    /// Everything.
    All,
    /// Everything that belongs to a group.
    AllGroups,
    /// What belongs to these groups.
    Groups(BTreeSet<GroupCode>),
}

impl AuditScope {
    /// The condition on a column with the group code, and its values.
    pub fn condition(&self, column: &str) -> (String, Vec<SqlValue>) {
        match self {
            Self::All => (String::new(), Vec::new()),
            Self::AllGroups => (format!(" AND {column} IS NOT NULL"), Vec::new()),
            Self::Groups(seen) => among(column, Some(seen)),
        }
    }
}

/// ` AND column IN (…)` and its values; empty for all groups, and a false condition for none.
pub fn among(column: &str, groups: Option<&BTreeSet<GroupCode>>) -> (String, Vec<SqlValue>) {
    match groups {
        None => (String::new(), Vec::new()),
        Some(none) if none.is_empty() => (" AND 1 = 0".to_owned(), Vec::new()),
        Some(some) => {
            let places = vec!["?"; some.len()].join(", ");
            let values = some.iter().map(|code| code.as_str().into()).collect();
            (format!(" AND {column} IN ({places})"), values)
        }
    }
}

/// A condition that a number is one of these, and its values; a false condition for none.
pub(super) fn any_of(column: &str, ids: &BTreeSet<i64>) -> (String, Vec<SqlValue>) {
    if ids.is_empty() {
        return ("1 = 0".to_owned(), Vec::new());
    }
    let places = vec!["?"; ids.len()].join(", ");
    (format!("{column} IN ({places})"), ids.iter().map(|id| (*id).into()).collect())
}

/// ` AND (…)` that is true where one of these columns contains a text, ignoring case.
pub(super) fn holds(columns: &[&str], text: &str) -> (String, Vec<SqlValue>) {
    let like = format!("%{}%", plain(&text.to_lowercase()));
    let one = |column: &&str| format!("LOWER({column}) LIKE ? ESCAPE '!'");
    let all: Vec<String> = columns.iter().map(one).collect();
    (format!(" AND ({})", all.join(" OR ")), vec![like.as_str().into(); columns.len()])
}

/// A text escaped for LIKE.
pub(super) fn plain(text: &str) -> String {
    let special = |c: char| matches!(c, '%' | '_' | '!');
    text.chars().flat_map(|c| special(c).then_some('!').into_iter().chain([c])).collect()
}
