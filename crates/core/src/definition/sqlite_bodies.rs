//! Bodies that a SQLite source will not run, refused before they are stored.

use crate::definition::fault::{Place, Report};
use crate::definition::raw::{RawJob, RawSql};
use crate::domain::job::JobDef;
use crate::domain::source::{DialectName, Source};
use crate::domain::sqlite_confinement::find_forbidden_statement;

/// Refuses a job whose SQL leaves the file of its SQLite source.
pub(crate) fn check_job(
    def: &JobDef,
    whose: &str,
    raw: &RawJob,
    sources: &[Source],
    report: &mut Report,
) {
    let source = sources.iter().find(|source| Some(&source.name) == def.source.as_ref());
    let dialect = source.and_then(|source| DialectName::of_url(&source.url));
    if dialect != Some(DialectName::Sqlite) {
        return;
    }
    let inline = raw.sql.as_deref().map(RawSql::at);
    let at = inline.or(raw.sql_file.as_ref().map(|file| &file.at)).unwrap_or(&raw.code.at);
    if let Some(text) = def.sql.as_ref().and_then(|sql| sql.of(DialectName::Sqlite)) {
        check_text(text, &format!("{whose}: line {{}} of its sql"), at, report);
    }
}

/// Refuses a text that leaves the file of its SQLite source; `{}` in `whose` is the line.
pub(crate) fn check_text(text: &str, whose: &str, at: &Place, report: &mut Report) {
    if let Some(found) = find_forbidden_statement(text) {
        let whose = whose.replace("{}", &found.line.to_string());
        report.fault(at, format!("{whose}: {}", found.kind), found.kind.fix());
    }
}
