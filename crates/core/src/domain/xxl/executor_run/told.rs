//! What the end of a run comes to for the try of its job.

use super::{StopWhy, UnreportedEnd};
use crate::domain::job::outcome::{End, Outcome, Outputs};
use crate::domain::job::queue::KILL_UNCONFIRMED;
use crate::domain::job::retry::ErrorClass;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The end of a run, or of a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The key by which the executor knows it.
    pub log_id: i64,
    /// Which executor.
    pub address: Option<String>,
    /// Which part, of how many.
    pub shard: (i64, i64),
    /// Why it was stopped.
    pub stopping: Option<StopWhy>,
    /// How it ended when no executor told its end.
    pub result: Option<UnreportedEnd>,
    /// The code that the executor told.
    pub code: Option<i64>,
    /// What the executor said, or what is to be said of it.
    pub said: String,
}

/// The executor did what it was for.
const DONE: i64 = 200;
/// Its time was over, as the executor counted it.
const TIMED_OUT: i64 = 502;
/// What pyxxl (0.4.8) reports of a run whose real end it could not report: its callback failed after all its
/// retries, and the text of that error became the message of a second callback with code 500.
const LOST_CALLBACK: &str = "Connection error after retry times";

impl RunEnd {
    /// How it counts for the try.
    fn end(&self) -> End {
        match (self.result, self.stopping) {
            (Some(UnreportedEnd::Unconfirmed | UnreportedEnd::Lost), _) => End::Unknown,
            (Some(UnreportedEnd::Stopped(why)), _) | (None, Some(why)) => match why {
                StopWhy::TimedOut => End::TimedOut,
                StopWhy::Killed | StopWhy::Covered => End::Killed,
            },
            (
                Some(UnreportedEnd::NotReached | UnreportedEnd::Refused | UnreportedEnd::Discarded),
                _,
            ) => End::Failed,
            (None, None) => match self.code {
                Some(DONE) => End::Success,
                Some(TIMED_OUT) => End::TimedOut,
                Some(_) if self.is_lost_callback() => End::Unknown,
                Some(_) => End::Failed,
                None => End::Unknown,
            },
        }
    }

    /// Whether the client reports only that it could not report how the run ended.
    fn is_lost_callback(&self) -> bool {
        self.said.contains(LOST_CALLBACK)
    }

    fn words(&self) -> String {
        let at = self.address.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
        let run = format!("run {}{at}", self.log_id);
        let mut words = match (self.result, self.stopping) {
            (Some(UnreportedEnd::Unconfirmed), _) => format!("{KILL_UNCONFIRMED}: {run}"),
            (Some(UnreportedEnd::Lost), _) => format!("{run} is lost"),
            // None is there, or answers, or is idle.
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
                Some(code) if self.end() == End::Unknown => format!(
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

    /// Whether nothing of it was begun.
    fn is_before(&self) -> bool {
        matches!(
            self.result,
            Some(UnreportedEnd::NotReached | UnreportedEnd::Refused | UnreportedEnd::Discarded)
        )
    }
}

/// Parts named in a message, at most.
const NAMED: usize = 10;

/// What the ends of a run's parts come to: well only if all did.
pub fn outcome(ends: &[RunEnd]) -> Outcome {
    let Some(first) = ends.first() else {
        return Outcome::ended(End::Unknown, "the run is not known any more");
    };
    let bad: Vec<&RunEnd> = ends.iter().filter(|end| end.end() != End::Success).collect();
    let well = ends.len() - bad.len();
    let outputs = outputs(first, ends.len(), well);
    // What is not known outweighs what failed, because it may have taken effect.
    let order = [End::Unknown, End::Failed, End::TimedOut, End::Killed];
    let worst = order.into_iter().find(|worst| bad.iter().any(|end| end.end() == *worst));
    let Some(worst) = worst else { return Outcome::success(outputs) };
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
        End::TimedOut => ErrorClass::Timeout,
        _ if bad.iter().any(|end| end.result == Some(UnreportedEnd::NotReached)) => {
            ErrorClass::ConnectionLost
        }
        _ => ErrorClass::Other,
    };
    let outcome = Outcome { outputs, ..Outcome::ended(worst, message) };
    let is_before = ends.iter().all(RunEnd::is_before);
    let outcome = if is_before { outcome.before_it_began() } else { outcome };
    outcome.of_class(class, None)
}

fn outputs(first: &RunEnd, all: usize, well: usize) -> Outputs {
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
    Outputs { values, ..Outputs::default() }
}
