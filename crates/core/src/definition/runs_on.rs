//! Determines the data source of a job and checks that the body can run there.

use crate::definition::fault::FaultReport;
use crate::definition::job::{JobContext, given_place};
use crate::definition::near::did_you_mean;
use crate::definition::raw::{RawJob, RawSql};
use crate::domain::id::SourceName;
use crate::domain::job::{BodyPart, JobDef, JobKind};
use crate::domain::source::routine_name::RoutineName;
use crate::domain::source::{DataSource, DialectName};

/// The job's source: its own, the default one, or the only one.
pub(crate) fn source(
    whose: &str,
    raw: &RawJob,
    kind: &JobKind,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) -> Option<SourceName> {
    let Some((whose, word)) = given_place(whose, &raw.settings.source, &around.defaults.source)
    else {
        let only = around.sources.first().filter(|_| around.sources.len() == 1)?;
        return kind.needs.contains(&BodyPart::Source).then(|| only.name.clone());
    };
    let found = around.sources.iter().find(|s| s.name.as_str() == word.value);
    if found.is_none() {
        let hint = did_you_mean(&word.value, around.sources.iter().map(|s| s.name.as_str()));
        let what = format!("{whose}: source {} is not defined", word.value);
        report.fault(&word.at, what, format!("{hint}define it under sources"));
    }
    found.map(|s| s.name.clone())
}

fn source_of<'a>(def: &JobDef, sources: &'a [DataSource]) -> Option<&'a DataSource> {
    sources.iter().find(|s| Some(&s.name) == def.source.as_ref())
}

/// Checks that a procedure has a callable name, and that it exists where that is known.
pub(crate) fn check_procedure(
    whose: &str,
    raw: &RawJob,
    def: &JobDef,
    sources: &[DataSource],
    report: &mut FaultReport,
) {
    let (Some(name), Some(_)) = (&raw.proc_name, &def.proc_name) else {
        return;
    };
    // Argument types may follow, which select one of several overloads; only PostgreSQL knows them.
    let are_types =
        |list: &str| list.chars().all(|c| c.is_alphanumeric() || " _.,()[]\"".contains(c));
    let parsed = RoutineName::parse(&name.value);
    if !parsed.is_some_and(|name| name.types.is_none_or(are_types)) {
        let what = format!("{whose}: proc_name {:?} is not the name of a procedure", name.value);
        let fix = "write procedure, schema.procedure or schema.package.procedure, a part with other characters \
                   in \"…\"; with types behind it, as in post(integer, text), where several have the name";
        report.fault(&name.at, what, fix);
        return;
    }
    let Some(source) = source_of(def, sources) else {
        return;
    };
    let sqlite = DialectName::of_url(&source.url) == Some(DialectName::Sqlite);
    if sqlite && !source.procedures.contains_key(&name.value) {
        let known = source.procedures.keys().map(String::as_str);
        let hint = did_you_mean(&name.value, known);
        let what = format!(
            "{whose} calls {}, which is not among the procedures of source {} (SQLite has none of its own)",
            name.value, source.name
        );
        report.fault(
            &name.at,
            what,
            format!("{hint}add it to procedures or procedures_file of that source"),
        );
    }
}

/// Checks that SQL given per dialect includes the dialect of the source.
pub(crate) fn check_dialect(
    whose: &str,
    raw: &RawJob,
    def: &JobDef,
    sources: &[DataSource],
    report: &mut FaultReport,
) {
    let (Some(sql), Some(source)) = (&def.sql, source_of(def, sources)) else {
        return;
    };
    let Some(dialect) = DialectName::of_url(&source.url) else {
        return;
    };
    if sql.text_for(dialect).is_none() {
        let at = raw.sql.as_deref().map(RawSql::place).or(raw.sql_file.as_ref().map(|f| &f.at));
        let what =
            format!("{whose} has no SQL for {dialect}, the dialect of its source {}", source.name);
        report.fault(at.unwrap_or(&raw.code.at), what, format!("add the text for {dialect}"));
    }
}
