//! Imports of small files: nothing is silently imported wrong.

mod airflow;
mod azkaban;
mod control_m;
mod counts;
mod dolphin;
mod dolphin_tables;
mod keys;
mod mysql_events;
mod pg_timetable;
mod postgres_schedulers;
mod quartz;
mod sql_server;

use crate::domain::job::{BodyPart, JobDef, JobKind};
use crate::domain::time::Millis;
use crate::import::{Given, ImportError, ImportRequest, Imported, System, import};

/// 2026-09-21, a Monday.
pub(super) const NOW: Millis = Millis(1_789_948_800_000);

pub(super) const KINDS: &[JobKind] = &[
    kind("PROC", &[BodyPart::Source, BodyPart::ProcName]),
    kind("SQL", &[BodyPart::Source, BodyPart::Sql]),
    kind("SCRIPT", &[BodyPart::Script, BodyPart::Interpreter]),
    kind("NOOP", &[]),
    kind("HTTP", &[BodyPart::Http]),
    kind("BATCH", &[BodyPart::SubBatch]),
    kind("HANDLER", &[BodyPart::Executor]),
    kind("GLUE", &[BodyPart::Executor, BodyPart::Script]),
];

const fn kind(name: &'static str, needs: &'static [BodyPart]) -> JobKind {
    const MAY_HAVE: &[BodyPart] =
        &[BodyPart::Transaction, BodyPart::Tx, BodyPart::WorkingDir, BodyPart::Params];
    JobKind { name, about: "For tests.", needs, may_have: MAY_HAVE, ..JobKind::PLAIN }
}

pub(super) fn asked() -> ImportRequest {
    ImportRequest {
        group: None,
        zone: Some(chrono_tz::Asia::Shanghai),
        crontab_users: None,
        now: NOW,
    }
}

pub(super) fn given(path: &str, text: &str) -> Given {
    Given { path: path.to_owned(), bytes: text.as_bytes().to_vec() }
}

pub(super) fn import_files(system: System, files: &[Given]) -> Result<Imported, ImportError> {
    import(system, files, &asked(), KINDS)
}

/// Imports one valid file.
pub(super) fn import_text(system: System, path: &str, text: &str) -> Imported {
    import_files(system, &[given(path, text)]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(super) fn job<'a>(made: &'a Imported, code: &str) -> &'a JobDef {
    let found = made.definition.jobs.iter().find(|job| job.code.as_str() == code);
    found.unwrap_or_else(|| panic!("no job {code} in\n{}", made.text))
}

pub(super) fn script(made: &Imported, code: &str) -> String {
    job(made, code).script.clone().unwrap_or_default()
}

/// Whether a note about an item contains these words, in English.
pub(super) fn has_note(made: &Imported, about: &str, words: &str) -> bool {
    made.notes.iter().any(|note| note.about == about && note.said.en.contains(words))
}
