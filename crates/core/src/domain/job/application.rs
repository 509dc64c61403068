//! An application that a job submits to a cluster: what is asked for, under which id, and what the cluster's answers mean.

pub mod flink;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// What a FLINK job submits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationCall {
    /// Name of the registered host: the REST address of the cluster.
    pub host: String,
    /// The jar, an absolute path on the node that runs the job.
    pub file: String,
    /// Its entry class; none leaves it to the jar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_class: Option<String>,
    /// Arguments; `{name}` is replaced by the parameter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Configuration of the application.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conf: BTreeMap<String, String>,
    /// Parallelism; none leaves it to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u32>,
    /// Longest pause between two polls, in seconds.
    pub poll_sec: u32,
}

impl ApplicationCall {
    /// Longest pause between two polls when the definition does not say.
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

/// What a cluster knows of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationState {
    /// It has not ended.
    Active,
    /// It ended well.
    Finished,
    /// It ended with an error.
    Failed,
    /// It was cancelled, and is gone.
    Cancelled,
    /// The cluster gave it up without an end of its own.
    Suspended,
}

/// An answer about an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationReport {
    /// What it means.
    pub state: ApplicationState,
    /// The cluster's own word for it.
    pub word: String,
    /// How far it is, for the log.
    pub progress: String,
    /// Milliseconds it has run.
    pub duration_ms: Option<i64>,
}

/// How many earlier attempts are looked up.
const LOOKED_UP: u32 = 20;

/// The attempts whose applications may still be open when `attempt` begins, the newest first.
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
