//! The two large examples: no false race, and every order that data needs is told when it is taken away.

use procession_core::definition;
use procession_core::domain::dag::Dag;
use procession_core::domain::id::JobCode;
use procession_core::domain::job::{BodyPart, Definition, JobKind};
use procession_core::domain::source::DialectName;
use procession_core::domain::source::statement::split;
use procession_core::lineage::{
    Catalogue, ConflictReport, JobLineage, LineageTarget, ObjectName, Table, find_conflicts,
    job_lineage, parse_routine,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const KINDS: &[JobKind] = &[
    JobKind {
        name: "PROC",
        needs: &[BodyPart::Source, BodyPart::ProcName],
        may_have: &[BodyPart::Tx, BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "SQL",
        needs: &[BodyPart::Source, BodyPart::Sql],
        may_have: &[BodyPart::Transaction, BodyPart::Tx, BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "SCRIPT",
        needs: &[BodyPart::Script, BodyPart::Interpreter],
        may_have: &[BodyPart::WorkingDir, BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind { name: "NOOP", ..JobKind::PLAIN },
];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dag-examples")
}

fn load(name: &str) -> Definition {
    let read = |path: &Path| std::fs::read_to_string(path);
    let path = examples().join(format!("{name}.yaml"));
    definition::load_definition(&path, &read, KINDS).expect("an example").definition
}

/// What the set-up job of an example leaves in the catalogue, as far as its text says.
fn catalogue(name: &str, dialect: DialectName) -> Catalogue {
    let mut catalogue = Catalogue::new(dialect, vec!["public".to_owned()], false);
    let path = examples().join(name).join(format!("setup.{dialect}.sql"));
    let text = std::fs::read_to_string(path).expect("a set-up file");
    for statement in split(&text, dialect) {
        if let Some(mut made) = parse_routine(&statement.text, dialect) {
            made.routine.name = ObjectName::within("public", &made.routine.name.name);
            catalogue.add_routine(made.routine);
        } else if let Some(rest) = statement.text.strip_prefix("CREATE TABLE IF NOT EXISTS ") {
            let (table, columns) = rest.split_once('(').expect("columns");
            let lines = columns.lines().map(str::trim).filter(|line| !line.is_empty());
            let names = lines.filter_map(|line| line.split_whitespace().next());
            let is_column = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            let columns = names.filter(is_column).map(str::to_owned).collect();
            let name = ObjectName::within("public", table.trim());
            catalogue.add_table(name, Table { columns, ..Table::default() });
        }
    }
    catalogue
}

fn lineages(defs: &Definition, name: &str, dialect: DialectName) -> Vec<JobLineage> {
    let source = &defs.sources[0];
    let target = LineageTarget {
        server: "server".to_owned(),
        catalogue: Ok(catalogue(name, dialect)),
        procedures: match dialect {
            DialectName::Sqlite => source.procedures.clone(),
            DialectName::Mysql | DialectName::Postgres => BTreeMap::new(),
        },
    };
    let targets = BTreeMap::from([(source.name.clone(), target)]);
    defs.jobs.iter().map(|job| job_lineage(job, &targets)).collect()
}

/// The report with one dependency taken away.
fn report_without(
    defs: &Definition,
    jobs: &[JobLineage],
    without: Option<(&str, &str)>,
) -> ConflictReport {
    let codes: Vec<JobCode> = defs.jobs.iter().map(|job| job.code.clone()).collect();
    let kept: Vec<_> = defs
        .dependencies
        .iter()
        .filter(|one| Some((one.depends_on.as_str(), one.job_code.as_str())) != without)
        .cloned()
        .collect();
    find_conflicts(jobs, &Dag::build(&codes, &kept).expect("a DAG"))
}

fn print(report: &ConflictReport) -> Vec<String> {
    report
        .conflicts
        .iter()
        .map(|one| {
            format!(
                "{:?} {} {} {} [{}] {} | {} {} [{}] {}",
                one.kind,
                one.table,
                one.first.job,
                one.first.verb,
                one.first.rows,
                one.first.place,
                one.second.job,
                one.second.verb,
                one.second.rows,
                one.second.place
            )
        })
        .collect()
}

#[test]
fn the_examples_have_no_false_race() {
    for name in ["month-end-close", "quarter-end-consolidation"] {
        let defs = load(name);
        for dialect in DialectName::ALL {
            let jobs = lineages(&defs, name, dialect);
            for job in &jobs {
                let is_script = job.code.as_str() == "REPORT_PACK";
                assert!(job.reading.is_whole() || is_script, "{name} {dialect} {:?}", job.code);
                assert_eq!(job.reading.read_by_words, [], "{name} {dialect} {:?}", job.code);
            }
            let report = report_without(&defs, &jobs, None);
            assert_eq!(print(&report), Vec::<String>::new(), "{name} on {dialect}");
            let coverage = report.coverage;
            assert_eq!(coverage.safe_pairs, coverage.pairs, "{name} on {dialect}");
        }
    }
}

#[test]
fn an_order_that_data_needs_is_told_when_it_is_taken_away() {
    for name in ["month-end-close", "quarter-end-consolidation"] {
        let defs = load(name);
        for dialect in DialectName::ALL {
            let jobs = lineages(&defs, name, dialect);
            let mut silent = Vec::new();
            for one in &defs.dependencies {
                let edge = (one.depends_on.as_str(), one.job_code.as_str());
                if report_without(&defs, &jobs, Some(edge)).conflicts.is_empty() {
                    silent.push(format!("{} -> {}", edge.0, edge.1));
                }
            }
            let without_data: &[&str] =
                if name.starts_with("month") { MONTH_END } else { QUARTER_END };
            assert_eq!(silent, without_data, "{name} on {dialect}");
        }
    }
}

/// Dependencies of the month-end close that hand on no data, or that another path orders too.
const MONTH_END: &[&str] = &[
    "SL_AP -> SL_RECON",
    "SL_AR -> SL_RECON",
    "POST_GL -> SL_RECON",
    "SL_RECON -> CLOSE_FIGURES",
    "JOURNAL_STATS -> CLOSE_FIGURES",
    "PERIOD_LOCK -> MONTH_CLOSED",
];

/// Those of the consolidation.
const QUARTER_END: &[&str] =
    &["PACKAGE_STATUS -> CONSOLIDATED_TB", "GROUP_BALANCE_SHEET -> QUARTER_CLOSED"];
