//! Whose rows somebody sees, as a condition on a column that names the group.

use crate::db::Value;
use crate::domain::id::GroupCode;
use std::collections::BTreeSet;

/// ` AND column IN (…)` and its values; nothing where all groups are seen, and what never holds where
/// none is.
pub fn among(column: &str, groups: Option<&BTreeSet<GroupCode>>) -> (String, Vec<Value>) {
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
