//! Rejects bodies that a SQLite source would refuse to run, before they are stored.

use crate::definition::fault::{FaultReport, SourcePlace};
use crate::definition::raw::{RawJob, RawSql};
use crate::domain::job::JobDef;
use crate::domain::source::sqlite_confinement::find_forbidden_statement;
use crate::domain::source::{DataSource, DialectName};

/// Rejects a job whose SQL accesses anything outside the file of its SQLite source.
pub(crate) fn check_job(
    def: &JobDef,
    whose: &str,
    raw: &RawJob,
    sources: &[DataSource],
    report: &mut FaultReport,
) {
    let source = sources.iter().find(|source| Some(&source.name) == def.source.as_ref());
    let dialect = source.and_then(|source| DialectName::of_url(&source.url));
    if dialect != Some(DialectName::Sqlite) {
        return;
    }
    let inline = raw.sql.as_deref().map(RawSql::place);
    let at = inline.or(raw.sql_file.as_ref().map(|file| &file.at)).unwrap_or(&raw.code.at);
    if let Some(text) = def.sql.as_ref().and_then(|sql| sql.text_for(DialectName::Sqlite)) {
        check_text(text, &format!("{whose}: line {{}} of its sql"), at, report);
    }
}

/// Rejects a text that accesses anything outside the file of its SQLite source; `{}` in `whose` is replaced by the
/// line.
pub(crate) fn check_text(text: &str, whose: &str, at: &SourcePlace, report: &mut FaultReport) {
    if let Some(found) = find_forbidden_statement(text) {
        let whose = whose.replace("{}", &found.line.to_string());
        report.fault(at, format!("{whose}: {}", found.kind), found.kind.hint_text());
    }
}
