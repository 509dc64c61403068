//! Imports of small files: nothing is silently imported wrong.

mod airflow;
mod azkaban;
mod batch_numbers;
mod control_m;
mod control_m_flow;
mod counts;
mod dolphin;
mod dolphin_tables;
mod keys;
mod mysql_events;
mod pg_timetable;
mod postgres_schedulers;
mod quartz;
mod sql_server;

use crate::domain::id::JobCode;
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::trigger_rule::{Edge, EdgeTally, TriggerDecision, evaluate_edge};
use crate::domain::job::{BodyPart, JobDef, JobKind};
use crate::domain::time::Millis;
use crate::import::{Given, ImportError, ImportRequest, Imported, ImportedFiring, System, import};
use std::collections::HashMap;

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
        firing: ImportedFiring::AsThere,
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
    made.notes.iter().any(|note| note.about == about && note.message.en.contains(words))
}

/// The jobs that run when these fail, and those that stand for what was left out, without those that run nothing (NOOP). Groups run together; a dependency on another batch is
/// one on that job, and waits while it is not met.
pub(super) fn jobs_that_run(made: &Imported, failing: &[&str]) -> Vec<String> {
    let defs = &made.definition;
    let mut states: HashMap<&JobCode, QueueStatus> = HashMap::new();
    let mut ran = Vec::new();
    let fails = |job: &JobDef| {
        let stands_in = job.script.as_ref().is_some_and(|text| text.ends_with("\nexit 1\n"));
        stands_in || failing.contains(&job.code.as_str())
    };
    loop {
        let before = states.len();
        for job in defs.jobs.iter().filter(|job| job.is_active) {
            if states.contains_key(&job.code) {
                continue;
            }
            let state = |code| states.get(code).copied().unwrap_or(QueueStatus::Pending);
            let inner = defs.dependencies.iter().filter(|d| d.job_code == job.code);
            let inner = inner.map(|d| evaluate_edge(&d.when, state(&d.depends_on), |_| false));
            let outer = defs.externals.iter().filter(|e| e.job_code == job.code).map(|e| {
                let parent = e.depends_on.as_ref().expect("importers name a job");
                let edge = evaluate_edge(&e.when, state(parent), |_| false);
                edge.filter(|edge| *edge != Edge::Failed)
            });
            let edges: Vec<Option<Edge>> = inner.chain(outer).collect();
            let mut tally = EdgeTally { open: edges.len() as u32, ..EdgeTally::default() };
            edges.into_iter().flatten().for_each(|edge| tally.count_edge(edge));
            let Some(decision) = tally.decide(job.trigger_rule) else { continue };
            let end = match decision {
                TriggerDecision::Run if fails(job) => QueueStatus::Failed,
                TriggerDecision::Run => QueueStatus::Success,
                TriggerDecision::Fail => QueueStatus::UpstreamFailed,
                TriggerDecision::NotTaken => QueueStatus::NotTaken,
            };
            states.insert(&job.code, end);
            if decision == TriggerDecision::Run && job.job_type.as_str() != "NOOP" {
                ran.push(job.code.to_string());
            }
        }
        if states.len() == before {
            ran.sort();
            return ran;
        }
    }
}
