//! An application that a job submits to a cluster: its request, its id per attempt, and the meaning
//! of the cluster's answers.

pub mod flink;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// The submission of a FLINK job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationCall {
    /// Name of the registered host: the REST address of the cluster.
    pub host: String,
    /// Absolute path of the jar on the node that runs the job.
    pub file: String,
    /// Entry class; none: as the jar's manifest declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_class: Option<String>,
    /// Arguments; `{name}` is replaced by the parameter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Configuration entries of the application.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conf: BTreeMap<String, String>,
    /// Parallelism; none: the cluster's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u32>,
    /// Longest pause between two polls, in seconds.
    pub poll_sec: u32,
}

impl ApplicationCall {
    /// Default of `poll_sec`, in seconds.
    pub const POLL_SEC: u32 = 5;
}

impl Display for ApplicationCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}", self.file, self.host)?;
        if let Some(class) = &self.main_class {
            write!(f, ", {class}")?;
        }
        if !self.args.is_empty() {
            write!(f, ", {}", self.args.join(" "))?;
        }
        Ok(())
    }
}

/// State of an application as reported by the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationState {
    /// It has not ended.
    Active,
    /// It ended well.
    Finished,
    /// It ended with an error.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// The cluster suspended it without a final result.
    Suspended,
}

/// The cluster's report on an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationReport {
    /// The state it means for the job.
    pub state: ApplicationState,
    /// The state in the cluster's own word.
    pub word: String,
    /// Progress text for the log.
    pub progress: String,
    /// Running time in milliseconds.
    pub duration_ms: Option<i64>,
}

/// Maximum number of earlier attempts that are looked up.
const LOOKED_UP: u32 = 20;

/// Attempts whose applications may still be running when `attempt` begins, newest first.
pub fn earlier_attempts(attempt: u32) -> impl Iterator<Item = u32> {
    (attempt.saturating_sub(LOOKED_UP).max(1)..attempt).rev()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_earlier_attempt_is_looked_up_first() {
        let of = |attempt| earlier_attempts(attempt).collect::<Vec<_>>();
        assert_eq!((of(0), of(1), of(4)), (vec![], vec![], vec![3, 2, 1]));
        assert_eq!((of(100).len(), of(100)[0]), (20, 99));
    }
}
