//! Definitions of other systems.

use super::bundle::Bundle;
use super::place::assert_places;
use super::{text_of, xxl_tables};
use procession::app::job_kinds;
use procession::definition::{diff_definitions, load_definition};
use procession::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerServer, SchedulerTable, SchedulerTables,
};
use procession::domain::text::lang::Lang;
use procession::domain::time::Millis;
use procession::import::{
    Beyond, ChildJoin, Given, ImportError, ImportRequest, Imported, ImportedFiring, System,
    TableSystem, XxlAsked, import, import_tables, markdown, xxl_job,
};
use serde_json::Value;
use std::path::Path;

/// 2026-09-21, a Monday.
const NOW: Millis = Millis(1_789_948_800_000);

pub(super) fn check_crontab(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    check_bundle(System::Crontab, &Bundle::parse(text, "crontab"));
}

pub(super) fn check_pg_timetable(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    check_bundle(System::PgTimetable, &Bundle::parse(text, "chains.yaml"));
}

/// Files of flows as a bundle, or the bytes of a zip.
pub(super) fn check_azkaban(input: &[u8]) {
    if input.starts_with(b"PK") {
        let given = [Given { path: "project.zip".to_owned(), bytes: input.to_vec() }];
        return check_given(System::Azkaban, &given, &Bundle { files: Vec::new() });
    }
    let Some(text) = text_of(input) else { return };
    check_bundle(System::Azkaban, &Bundle::parse(text, "flow.job"));
}

pub(super) fn check_dolphinscheduler(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    check_bundle(System::DolphinScheduler, &Bundle::parse(text, "export.json"));
}

pub(super) fn check_control_m(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    check_bundle(System::ControlM, &Bundle::parse(text, "folders.json"));
}

pub(super) fn check_airflow(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    check_bundle(System::Airflow, &Bundle::parse(text, "dags.json"));
}

/// Tables of a scheduler as JSON: by name of the table a list of rows, which are maps.
pub(super) fn check_tables(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    let Ok(Value::Object(all)) = serde_json::from_str::<Value>(text) else { return };
    let row = |row: &Value| {
        let all = row.as_object().into_iter().flatten();
        SchedulerRow(all.map(|(k, v)| (k.clone(), v.as_str().map(str::to_owned))).collect())
    };
    let table = |(name, rows): (&String, &Value)| SchedulerTable {
        name: name.clone(),
        columns: Vec::new(),
        rows: rows.as_array().into_iter().flatten().map(row).collect(),
    };
    let server = SchedulerServer {
        url: Some("mysql://reader@db.bank.example:3306/bank".to_owned()),
        zone: Some("Asia/Shanghai".to_owned()),
        ..SchedulerServer::default()
    };
    let tables = SchedulerTables { tables: all.iter().map(table).collect(), server };
    for system in TableSystem::ALL {
        match import_tables(system, &tables, &asked(), &job_kinds()) {
            Ok(made) => assert_sound(&made),
            Err(ImportError::Unreadable(faults)) => assert!(!faults.to_string().is_empty()),
            Err(ImportError::Unwritable(error)) => {
                panic!("the importer made what no file can say: {error}")
            }
        }
    }
}

/// An admin's tables as JSON.
pub(super) fn check_xxl_job(input: &[u8]) {
    let Some(tables) = text_of(input).and_then(xxl_tables::parse) else { return };
    for (children, beyond) in [(ChildJoin::All, Beyond::Told), (ChildJoin::Any, Beyond::Written)] {
        let wish = XxlAsked { children, beyond };
        match xxl_job(&tables, &asked(), wish, &job_kinds()) {
            Ok(made) => assert_sound(&made.imported),
            Err(error) => assert_refusal(&error, &Bundle { files: Vec::new() }),
        }
    }
}

fn asked() -> ImportRequest {
    ImportRequest {
        group: None,
        zone: Some(chrono_tz::Asia::Shanghai),
        crontab_users: None,
        firing: ImportedFiring::AsThere,
        now: NOW,
    }
}

fn check_bundle(system: System, bundle: &Bundle) {
    let given = |(path, text): &(String, String)| Given {
        path: path.clone(),
        bytes: text.clone().into_bytes(),
    };
    let given: Vec<Given> = bundle.files.iter().map(given).collect();
    check_given(system, &given, bundle);
}

fn check_given(system: System, given: &[Given], bundle: &Bundle) {
    match import(system, given, &asked(), &job_kinds()) {
        Ok(made) => assert_sound(&made),
        Err(error) => assert_refusal(&error, bundle),
    }
}

/// The text and the files beside it are read as the very same definition, and the report can be written.
fn assert_sound(made: &Imported) {
    let read = |path: &Path| {
        if path == Path::new("definition.yaml") {
            return Ok(made.text.clone());
        }
        let file = made.files.iter().find(|file| Path::new(&file.path) == path);
        let bytes = file.map(|file| file.bytes.clone()).unwrap_or_default();
        String::from_utf8(bytes).map_err(std::io::Error::other)
    };
    let loaded = load_definition(Path::new("definition.yaml"), &read, &job_kinds())
        .unwrap_or_else(|faults| panic!("what was imported is refused: {faults}\n{}", made.text));
    let changes = diff_definitions(&made.definition, &loaded.definition);
    assert!(
        changes.is_empty(),
        "what was imported is read differently: {changes:?}\n{}",
        made.text
    );
    for lang in Lang::ALL {
        assert!(!markdown(made, "source", lang).is_empty());
        for note in &made.notes {
            assert!(!note.message.pick(lang).is_empty(), "a note says nothing: {note:?}");
        }
    }
}

/// A refusal is of what was given, with places; that our own text is refused or differs is a defect of ours.
fn assert_refusal(error: &ImportError, bundle: &Bundle) {
    match error {
        ImportError::Unreadable(faults) => assert_places(faults, bundle),
        ImportError::Unwritable(error) => panic!("the importer made what no file can say: {error}"),
    }
}
