//! Stored definitions in the form of a definition file.

use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::domain::job::part;
use crate::domain::source::{DataSource, DialectName};

/// A group with what it names and the schedules that open it; `None` when there is no such group.
pub fn of_group(stored: &Definition, code: &GroupCode) -> Option<Definition> {
    let part = part::of_code(stored, code)?;
    let schedules = part::schedules_of(stored, &part).into_iter().cloned().collect();
    Some(Definition { schedules, ..part })
}

/// The same with only the dialect of its sources: for users who may see what runs and not where.
pub fn without_places(defs: Definition) -> Definition {
    let hidden = |source: DataSource| {
        let url = match DialectName::of_url(&source.url) {
            Some(DialectName::Sqlite) => "sqlite:hidden",
            Some(DialectName::Mysql) => "mysql://hidden/hidden",
            Some(DialectName::Postgres) | None => "postgres://hidden/hidden",
        };
        DataSource {
            url: url.to_owned(),
            password_env: None,
            password_file: None,
            password_secret: None,
            ..source
        }
    };
    Definition { sources: defs.sources.into_iter().map(hidden).collect(), ..defs }
}
