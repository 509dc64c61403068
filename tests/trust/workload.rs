//! What a chaos run runs: a group of jobs of all classes, by seed, and its batches.

use crate::trust::dice::Dice;
use crate::trust::judge::{Answer, Class, Wanted};
use crate::trust::oracle::{Job, Keys};
use procession::domain::source::DialectName;
use std::path::Path;

/// A definition, and what its jobs promise.
pub(crate) struct Workload {
    pub(crate) yaml: String,
    /// Class and parents of each job.
    jobs: Vec<(String, Class, Vec<String>)>,
}

/// Where bodies run, and what the program can do.
pub(crate) struct Place<'a> {
    /// URL of the target, by way of the proxy.
    pub(crate) target: &'a str,
    pub(crate) target_dialect: DialectName,
    /// URL of the metadata database.
    pub(crate) home: &'a str,
    pub(crate) home_dialect: DialectName,
    pub(crate) fx_file: &'a Path,
    pub(crate) keys: Keys,
}

/// Mail addresses that hear of each job.
const TOLD: usize = 1;

impl Workload {
    /// A group of `count` jobs.
    pub(crate) fn of(dice: &mut Dice, count: usize, place: &Place<'_>) -> Self {
        let (target, home) = (place.target, place.home);
        let mut yaml = format!(
            "sources:\n  target: {{ url: \"{target}\", max_parallel: 12 }}\n  home: {{ url: \"{home}\" }}\n\
             groups: {{ chaos: {{ notify_email: [chaos@bank.example], type: adhoc }} }}\n\
             defaults: {{ group: chaos, timeout_sec: 120, retry_count: 50, retry_delay_sec: 1 }}\njobs:\n"
        );
        let mut jobs: Vec<(String, Class, Vec<String>)> = Vec::new();
        for number in 0..count {
            let code = format!("J{number:02}");
            let class = class(dice, place.keys);
            // Whatever may end in doubt has few children, or most of the batch would not run.
            let mut parents = Vec::new();
            for _ in 0..dice.between(0, 3) {
                let above = jobs.get(dice.between(0, count as u64) as usize);
                let is_rare = dice.between(0, 8) == 0;
                parents.extend(
                    above.filter(|job| is_rare || !may_be_in_doubt(job.1)).map(|job| job.0.clone()),
                );
            }
            parents.sort();
            parents.dedup();
            let takes_ms = match (class, place.keys) {
                // Longer than a lease, so that a body whose worker was killed meets the next try.
                (Class::Script | Class::ScriptRepeat, Keys::Given) => {
                    dice.pick(&[(8, 0), (4, 200), (2, 5_000)])
                }
                _ => dice.pick(&[(12, 0), (6, 40), (3, 200), (1, 900)]),
            };
            let dialect = match class {
                Class::Same => place.home_dialect,
                _ => place.target_dialect,
            };
            let (body, fx_file, keys) = (dice.between(0, 2), place.fx_file, place.keys);
            let (code_, parents_) = (&code, &parents);
            let job = Job {
                code: code_,
                class,
                dialect,
                body,
                takes_ms,
                parents: parents_,
                fx_file,
                keys,
            };
            yaml.push_str(&job.yaml());
            jobs.push((code, class, parents));
        }
        Self { yaml, jobs }
    }

    /// What one batch of it is to leave.
    pub(crate) fn wanted(&self, batch_no: &str, answer: Answer) -> Vec<Wanted> {
        let of_job = |(code, class, parents): &(String, Class, Vec<String>)| Wanted {
            name: (batch_no.to_owned(), code.clone()),
            class: *class,
            parents: parents.clone(),
            told: TOLD,
            failing: 0,
            answer,
        };
        self.jobs.iter().map(of_job).collect()
    }
}

fn class(dice: &mut Dice, keys: Keys) -> Class {
    use Class as C;
    match keys {
        Keys::Given => dice.pick(&[
            (8, C::Ledger),
            (4, C::Same),
            (3, C::Once),
            (4, C::Repeat),
            (1, C::Script),
            (2, C::ScriptRepeat),
        ]),
        Keys::Made => {
            dice.pick(&[(3, C::Once), (4, C::Repeat), (1, C::Script), (2, C::ScriptRepeat)])
        }
    }
}

fn may_be_in_doubt(class: Class) -> bool {
    matches!(class, Class::Once | Class::Script)
}
