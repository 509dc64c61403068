//! Whose rows somebody sees, and what holds a text: conditions that lists share.

use crate::db::SqlValue;
use crate::domain::id::GroupCode;
use std::collections::BTreeSet;

/// What may be told to who asks, where some of it belongs to no group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditScope {
    /// All of it.
    All,
    /// What belongs to groups, whichever it is.
    AllGroups,
    /// What belongs to these groups.
    Groups(BTreeSet<GroupCode>),
}

impl AuditScope {
    /// The condition on a column that names the group, and its values.
    pub fn condition(&self, column: &str) -> (String, Vec<SqlValue>) {
        match self {
            Self::All => (String::new(), Vec::new()),
            Self::AllGroups => (format!(" AND {column} IS NOT NULL"), Vec::new()),
            Self::Groups(seen) => among(column, Some(seen)),
        }
    }
}

/// ` AND column IN (…)` and its values; nothing where all groups are seen, and what never holds where
/// none is.
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

/// A condition that a number is one of these, and its values; what never holds where there is none.
pub(super) fn any_of(column: &str, ids: &BTreeSet<i64>) -> (String, Vec<SqlValue>) {
    if ids.is_empty() {
        return ("1 = 0".to_owned(), Vec::new());
    }
    let places = vec!["?"; ids.len()].join(", ");
    (format!("{column} IN ({places})"), ids.iter().map(|id| (*id).into()).collect())
}

/// ` AND (…)` that holds where one of these columns holds a text, in any case of letters.
pub(super) fn holds(columns: &[&str], text: &str) -> (String, Vec<SqlValue>) {
    let like = format!("%{}%", plain(&text.to_lowercase()));
    let one = |column: &&str| format!("LOWER({column}) LIKE ? ESCAPE '!'");
    let all: Vec<String> = columns.iter().map(one).collect();
    (format!(" AND ({})", all.join(" OR ")), vec![like.as_str().into(); columns.len()])
}

/// A text of which LIKE takes every character as it is.
pub(super) fn plain(text: &str) -> String {
    let special = |c: char| matches!(c, '%' | '_' | '!');
    text.chars().flat_map(|c| special(c).then_some('!').into_iter().chain([c])).collect()
}
