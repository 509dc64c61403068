//! J3: effects lost, unexpected, doubled beyond what the class of their job allows.

use super::{Class, Crime, Effect, Judge, Name, Phase, Promise, Records, Violation, Wanted};
use procession::domain::job::queue::QueueStatus;
use std::collections::BTreeMap;

/// What this judge finds.
pub(super) fn judge(records: &Records<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, effects) in &records.effects {
        if !records.wanted.contains_key(name) || !records.rows.contains_key(name) {
            let said = format!("{} effects of a job that nobody opened", effects.len());
            found.push(violation(Class::Once, Crime::Unexpected, name, said));
        }
    }
    for wanted in &records.history.wanted {
        if let Some(row) = records.rows.get(&wanted.name) {
            of_job(records, wanted, row.status, &mut found);
        }
    }
    found
}

fn of_job(records: &Records<'_>, job: &Wanted, status: QueueStatus, found: &mut Vec<Violation>) {
    let begins = records.of_phase(&job.name, Phase::Begin);
    let ends = records.of_phase(&job.name, Phase::End);
    let mut report = |crime, said| found.push(violation(job.class, crime, &job.name, said));
    let is_done = matches!(status, QueueStatus::Success | QueueStatus::Warning);
    if is_done && ends.is_empty() {
        report(Crime::Lost, format!("{status} without an effect, {} begins", begins.len()));
    }
    match job.class.promise() {
        Promise::Exactly => {
            if ends.len() > 1 {
                report(Crime::Doubled, format!("{} effects of one key", ends.len()));
            }
            // They are one transaction, so one without the other was torn out of it.
            if begins.len() > ends.len() {
                report(Crime::Doubled, format!("{} begins, {} ends", begins.len(), ends.len()));
            }
            if status.is_final() && !is_done && !ends.is_empty() {
                report(Crime::Unexpected, format!("an effect, and its row says {status}"));
            }
        }
        Promise::AtMost => {
            if ends.len() > 1 {
                report(Crime::Doubled, format!("{} effects of one key", ends.len()));
            }
            if begins.len() > 1 + job.failing {
                let said =
                    format!("{} starts, of which one was not to be tried again", begins.len());
                report(Crime::Doubled, said);
            }
        }
        Promise::AtLeast => {
            for (life, count) in per_life(&begins).into_iter().chain(per_life(&ends)) {
                if count > 1 {
                    report(Crime::Doubled, format!("life {life} is there {count} times"));
                }
            }
            let attempts: Vec<u32> = ends.iter().filter_map(|end| end.attempt).collect();
            if !attempts.is_sorted_by(|one, next| one < next) {
                report(Crime::Doubled, format!("effects of attempts {attempts:?}"));
            }
        }
    }
}

fn per_life<'a>(effects: &[&'a Effect]) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    effects.iter().for_each(|effect| *counts.entry(effect.life.as_str()).or_default() += 1);
    counts
}

fn violation(class: Class, crime: Crime, name: &Name, said: String) -> Violation {
    Violation { judge: Judge::Effects, crime, class, name: name.clone(), said }
}
