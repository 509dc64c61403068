//! An application that a job submits to a cluster: its request, its id per attempt, and the meaning
//! of the cluster's answers.

pub mod flink;
pub mod spark;

use crate::domain::job::application::spark::SparkOptions;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// The submission of a FLINK or SPARK job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationCall {
    /// Name of the registered host: the REST address of the cluster. None: `spark-submit` runs on
    /// the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The program. FLINK: absolute path of the jar on the node that runs the job. SPARK: path or
    /// URL of a jar or Python file that the driver's host can read.
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
    /// What only SPARK jobs have.
    #[serde(flatten)]
    pub spark: SparkOptions,
    /// Longest pause between two polls, in seconds.
    pub poll_sec: u32,
}

impl ApplicationCall {
    /// Default of `poll_sec`, in seconds.
    pub const POLL_SEC: u32 = 5;

    /// Where it runs: the host, or the master of `spark-submit`.
    fn describe_place(&self) -> &str {
        let master = self.spark.master.as_deref();
        self.host.as_deref().or(master).unwrap_or("no cluster")
    }
}

/// The key of the application of an attempt: 32 hex digits derived from its idempotency key and
/// number.
pub fn application_key(idempotency_key: &str, attempt: u32) -> String {
    let hash = digest(&SHA256, format!("{idempotency_key}#{attempt}").as_bytes());
    hash.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The informative lines of an error: the exception and its causes, without stack frames.
pub fn causes(text: &str) -> Vec<&str> {
    let is_of_stack =
        |line: &&str| line.starts_with("at ") || line.starts_with("... ") || line.is_empty();
    text.lines().map(str::trim).filter(|line| !is_of_stack(line)).collect()
}

/// The last cause in a Java stack trace, which is the one that explains the failure.
pub fn root_cause(stack: &str) -> String {
    let lines = causes(stack);
    let last = lines.iter().rev().find_map(|line| line.strip_prefix("Caused by: "));
    last.or(lines.first().copied()).unwrap_or_default().to_owned()
}

impl Display for ApplicationCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}", self.file, self.describe_place())?;
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
