//! Accuracy on a corpus of routines written for this test, with hand-written expectations.

use crate::domain::source::DialectName::{self, Mysql, Postgres};
use crate::lineage::{
    AccessMode, BodyFacts, BodyKind, BodyText, Catalogue, ObjectName, RoutineLanguage, SourceText,
    parse_routine, read_body,
};
use std::collections::BTreeSet;
use std::path::Path;

/// A routine of the corpus.
struct CorpusRoutine {
    name: String,
    text: String,
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
    calls: BTreeSet<String>,
    is_dynamic: bool,
}

fn corpus(dialect: DialectName) -> Vec<CorpusRoutine> {
    let path = format!("../../tests/data/lineage/{dialect}.sql");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(path).expect("the corpus");
    text.split("\n-- == ").skip(1).map(routine).collect()
}

fn routine(part: &str) -> CorpusRoutine {
    let (name, rest) = part.split_once('\n').expect("a name");
    let names = |key: &str| -> BTreeSet<String> {
        let of_key = |line: &str| line.strip_prefix(&format!("-- {key}: ")).map(str::to_owned);
        let line = rest.lines().take_while(|line| line.starts_with("--")).find_map(of_key);
        line.iter().flat_map(|line| line.split(", ")).map(str::to_owned).collect()
    };
    let head = rest.lines().take_while(|line| line.starts_with("--"));
    let is_dynamic = head.clone().any(|line| line == "-- dynamic");
    let lines: Vec<&str> = rest.lines().skip(head.count()).filter(|line| *line != "//").collect();
    CorpusRoutine {
        name: name.to_owned(),
        text: lines.join("\n"),
        reads: names("reads"),
        writes: names("writes"),
        calls: names("calls"),
        is_dynamic,
    }
}

fn read(one: &CorpusRoutine, dialect: DialectName) -> BodyFacts {
    let catalogue = Catalogue::new(dialect, vec!["public".to_owned()], false);
    let made = parse_routine(&one.text, dialect).unwrap_or_else(|| panic!("{}", one.name));
    let BodyText::Text(text) = &made.routine.body else { panic!("a text") };
    let kind = match made.routine.language {
        RoutineLanguage::Procedural => BodyKind::Procedural,
        _ => BodyKind::Sql,
    };
    let params = &made.routine.params;
    read_body(
        &SourceText { text, first_line: 1, kind, params, path: &catalogue.search_path },
        &catalogue,
    )
}

/// The tables of an access list, without the routine's temporary ones.
fn tables(facts: &BodyFacts, is_wanted: impl Fn(AccessMode) -> bool) -> BTreeSet<String> {
    let is_own = |name: &ObjectName| {
        !facts.temporary.contains(&name.name.to_lowercase())
            && name.schema.as_deref() != Some("pg_temp")
    };
    let wanted = facts.accesses.iter().filter(|one| is_wanted(one.mode) && is_own(&one.table));
    wanted.map(|one| one.table.to_string()).collect()
}

#[test]
fn nearly_every_access_of_static_sql_is_found_and_every_dynamic_body_flagged() {
    let (mut routines, mut expected, mut found, mut right) = (0, 0, 0, 0);
    let mut faults = Vec::new();
    for dialect in [Mysql, Postgres] {
        for one in corpus(dialect) {
            routines += 1;
            let facts = read(&one, dialect);
            let reads = tables(&facts, |mode| mode == AccessMode::Read);
            let writes = tables(&facts, AccessMode::is_write);
            for (what, wanted, got) in
                [("reads", &one.reads, &reads), ("writes", &one.writes, &writes)]
            {
                expected += wanted.len();
                found += got.len();
                right += wanted.intersection(got).count();
                if wanted != got {
                    faults.push(format!("{dialect} {} {what} {wanted:?}, found {got:?}", one.name));
                }
            }
            let called: BTreeSet<String> = facts
                .calls
                .iter()
                .flat_map(|call| [call.routine.to_string(), call.routine.name.clone()])
                .collect();
            assert!(one.calls.is_subset(&called), "{dialect} {}: {called:?}", one.name);
            assert_eq!(!facts.dynamic.is_empty(), one.is_dynamic, "{dialect} {}", one.name);
            assert_eq!(facts.unreadable, [], "{dialect} {}", one.name);
            for place in &facts.read_by_words {
                faults.push(format!("{dialect} {} by words: {place:?}", one.name));
            }
        }
    }
    assert!(routines >= 150, "{routines} routines");
    let share = |part: usize, whole: usize| part as f64 / whole as f64;
    let (precision, recall) = (share(right, found), share(right, expected));
    let report = format!("{expected} accesses, precision {precision:.4}, recall {recall:.4}");
    assert!(precision >= 0.99 && recall >= 0.99, "{report}\n{}", faults.join("\n"));
}
