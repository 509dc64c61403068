//! Translates the end of a run on executors into the outcome of the job's attempt.

use super::{StopWhy, UnreportedEnd};
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs};
use crate::domain::job::queue::KILL_UNCONFIRMED;
use crate::domain::job::retry::ErrorClass;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The end of a run, or of one shard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The executor's key of the run.
    pub log_id: i64,
    /// Address of the executor.
    pub address: Option<String>,
    /// Shard index and number of shards.
    pub shard: (i64, i64),
    /// Why it was stopped.
    pub stopping: Option<StopWhy>,
    /// How it ended when no executor reported its end.
    pub result: Option<UnreportedEnd>,
    /// The code that the executor reported.
    pub code: Option<i64>,
    /// The message of the executor, or about the run.
    pub said: String,
}

/// XXL-JOB's code for success.
const DONE: i64 = 200;
/// XXL-JOB's code for a timeout measured by the executor.
const TIMED_OUT: i64 = 502;
/// What pyxxl (0.4.8) reports for a run whose real end it could not report: its callback failed
/// after all its retries, and the text of that error became the message of a second callback with
/// code 500.
const LOST_CALLBACK: &str = "Connection error after retry times";

impl RunEnd {
    /// The corresponding end of the attempt.
    fn attempt_end(&self) -> AttemptEnd {
        match (self.result, self.stopping) {
            (Some(UnreportedEnd::Unconfirmed | UnreportedEnd::Lost), _) => AttemptEnd::Unknown,
            (Some(UnreportedEnd::Stopped(why)), _) | (None, Some(why)) => match why {
                StopWhy::TimedOut => AttemptEnd::TimedOut,
                StopWhy::Killed | StopWhy::Covered => AttemptEnd::Killed,
            },
            (
                Some(UnreportedEnd::NotReached | UnreportedEnd::Refused | UnreportedEnd::Discarded),
                _,
            ) => AttemptEnd::Failed,
            (None, None) => match self.code {
                Some(DONE) => AttemptEnd::Success,
                Some(TIMED_OUT) => AttemptEnd::TimedOut,
                Some(_) if self.is_lost_callback() => AttemptEnd::Unknown,
                Some(_) => AttemptEnd::Failed,
                None => AttemptEnd::Unknown,
            },
        }
    }

    /// Whether the client reports only that it could not report the end.
    fn is_lost_callback(&self) -> bool {
        self.said.contains(LOST_CALLBACK)
    }

    fn words(&self) -> String {
        let at = self.address.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
        let run = format!("run {}{at}", self.log_id);
        let mut words = match (self.result, self.stopping) {
            (Some(UnreportedEnd::Unconfirmed), _) => format!("{KILL_UNCONFIRMED}: {run}"),
            (Some(UnreportedEnd::Lost), _) => format!("{run} is lost"),
            // No executor exists, answers, or is idle.
            (Some(UnreportedEnd::NotReached), _) => "no executor could take it".to_owned(),
            (Some(UnreportedEnd::Refused), _) if self.address.is_none() => {
                "no executor was asked".to_owned()
            }
            (Some(UnreportedEnd::Refused), _) => format!("{run} was refused by its executor"),
            (Some(UnreportedEnd::Discarded), _) => "not run".to_owned(),
            (Some(UnreportedEnd::Stopped(why)), _) | (None, Some(why)) => match why {
                StopWhy::Killed => format!("{run} was stopped"),
                StopWhy::TimedOut => format!("{run} was stopped, because its time was over"),
                StopWhy::Covered => {
                    format!("{run} was stopped: a later run of the job covers it (COVER_EARLY)")
                }
            },
            (None, None) => match self.code {
                Some(code) if self.attempt_end() == AttemptEnd::Unknown => format!(
                    "{run} ended with code {code}, because its executor could not report its real \
                     end; whether it took effect is not known"
                ),
                Some(code) => format!("{run} ended with code {code}"),
                None => format!("{run} ended without a code"),
            },
        };
        if !self.said.is_empty() {
            let _ = write!(words, ": {}", self.said);
        }
        words
    }

    /// Whether nothing of the run was begun.
    fn is_before(&self) -> bool {
        matches!(
            self.result,
            Some(UnreportedEnd::NotReached | UnreportedEnd::Refused | UnreportedEnd::Discarded)
        )
    }
}

/// Maximum number of shards named in a message.
const NAMED: usize = 10;

/// The combined outcome of a run's shards: success only if all succeeded.
pub fn outcome(ends: &[RunEnd]) -> AttemptOutcome {
    let Some(first) = ends.first() else {
        return AttemptOutcome::ended(AttemptEnd::Unknown, "the run is not known any more");
    };
    let bad: Vec<&RunEnd> =
        ends.iter().filter(|end| end.attempt_end() != AttemptEnd::Success).collect();
    let well = ends.len() - bad.len();
    let outputs = outputs(first, ends.len(), well);
    // An unknown outcome is more severe than a failure, because the run may have taken effect.
    let order = [AttemptEnd::Unknown, AttemptEnd::Failed, AttemptEnd::TimedOut, AttemptEnd::Killed];
    let worst = order.into_iter().find(|worst| bad.iter().any(|end| end.attempt_end() == *worst));
    let Some(worst) = worst else { return AttemptOutcome::success(outputs) };
    let message = match (ends, &bad[..]) {
        ([only], _) => only.words(),
        _ => {
            let part = |end: &&RunEnd| format!("part {}: {}", end.shard.0, end.words());
            let parts: Vec<String> = bad.iter().take(NAMED).map(part).collect();
            let more = bad.len().saturating_sub(NAMED);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let count = format!("{} of {} parts did not end well", bad.len(), ends.len());
            format!("{count}: {}{more}", parts.join("; "))
        }
    };
    let class = match worst {
        AttemptEnd::TimedOut => ErrorClass::Timeout,
        _ if bad.iter().any(|end| end.result == Some(UnreportedEnd::NotReached)) => {
            ErrorClass::ConnectionLost
        }
        _ => ErrorClass::Other,
    };
    let outcome = AttemptOutcome { outputs, ..AttemptOutcome::ended(worst, message) };
    let is_before = ends.iter().all(RunEnd::is_before);
    let outcome = if is_before { outcome.before_it_began() } else { outcome };
    outcome.of_class(class, None)
}

fn outputs(first: &RunEnd, all: usize, well: usize) -> JobOutputs {
    let mut values = BTreeMap::from([
        ("log_id".to_owned(), Some(first.log_id.to_string())),
        ("address".to_owned(), first.address.clone()),
        ("handle_code".to_owned(), first.code.map(|code| code.to_string())),
    ]);
    if first.result.is_none() {
        values.insert("handle_msg".to_owned(), Some(first.said.clone()));
    }
    if all > 1 {
        values.insert("parts".to_owned(), Some(all.to_string()));
        values.insert("parts_ended_well".to_owned(), Some(well.to_string()));
    }
    JobOutputs { values, ..JobOutputs::default() }
}
