//! Definition files: YAML, JSON, and the pair of CSV tables.

use super::bundle::Bundle;
use super::place::{assert_place, assert_places};
use super::text_of;
use procession::app::job_kinds;
use procession::definition::{
    Budget, DefinitionFormat, Loaded, ScheduleCheckContext, diff_definitions, export,
    load_definition, load_within,
};
use procession::domain::time::Millis;
use std::collections::BTreeMap;
use std::path::Path;

/// 2026-09-21, a Monday.
const NOW: Millis = Millis(1_789_948_800_000);

/// A definition that is accepted can be written, in both forms, and read again as the same; a refusal has places.
pub(super) fn check(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    let bundle = Bundle::parse(text, main_file(text));
    let Some((main, _)) = bundle.files.first() else { return };
    match load_within(Path::new(main), &bundle.reader(), &job_kinds(), server_budget()) {
        Err(faults) => assert_places(&faults, &bundle),
        Ok(loaded) => {
            loaded.warnings.iter().for_each(|warning| assert_place(warning, &bundle));
            check_schedules(&loaded, &bundle);
            check_writing(&loaded);
        }
    }
}

/// The form of a single file, which has no name: a table begins with its columns, JSON with a brace.
fn main_file(text: &str) -> &'static str {
    let first = text.lines().next().unwrap_or_default();
    match first {
        _ if first.starts_with("job_code,") => "job_def.csv",
        _ if text.trim_start().starts_with('{') => "dag.json",
        _ => "dag.yaml",
    }
}

/// What a server allows by default (`[limits]`).
fn server_budget() -> Budget {
    Budget {
        bytes: 67_108_864,
        depth: 24,
        nodes: 500_000,
        aliases: 100_000,
        jobs: 50_000,
        for_each_items: 10_000,
        is_of_server: true,
        ..Budget::default()
    }
}

fn check_schedules(loaded: &Loaded, bundle: &Bundle) {
    let expected = BTreeMap::new();
    let look = ScheduleCheckContext { calendars: None, now: NOW, expected: &expected, stored: &[] };
    match loaded.look_at_schedules(look) {
        Ok(warnings) => warnings.iter().for_each(|warning| assert_place(warning, bundle)),
        Err(faults) => assert_places(&faults, bundle),
    }
}

fn check_writing(loaded: &Loaded) {
    for (name, format) in
        [("again.yaml", DefinitionFormat::Yaml), ("again.json", DefinitionFormat::Json)]
    {
        let text = export(&loaded.definition, &job_kinds(), format)
            .unwrap_or_else(|error| panic!("an accepted definition cannot be written: {error}"));
        let again = load_definition(Path::new(name), &|_| Ok(text.clone()), &job_kinds())
            .unwrap_or_else(|faults| panic!("what was written is refused: {faults}\n{text}"));
        let changes = diff_definitions(&loaded.definition, &again.definition);
        assert!(changes.is_empty(), "{name} is read differently: {changes:?}\n{text}");
        let second = export(&again.definition, &job_kinds(), format);
        assert_eq!(second.ok().as_deref(), Some(text.as_str()), "written twice, {name} differs");
    }
}
