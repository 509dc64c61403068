//! When a failed try is made again, and how long it waits.

use serde::{Deserialize, Serialize};

/// Kinds of error that a definition can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The database chose this transaction as a deadlock's victim.
    Deadlock,
    /// A lock was not granted in time.
    LockWait,
    /// A serialisable transaction met another.
    Serialization,
    /// No connection, or it broke.
    ConnectionLost,
    /// The body ran past its time.
    Timeout,
    /// A script's exit code was not 0.
    ExitCode,
    /// An HTTP status that is not the wanted one.
    HttpStatus,
    /// A success rule or a check said no.
    Check,
    /// Anything else.
    Other,
}

/// Beyond `retry_count` and `retry_delay_sec`: how the delay grows and what is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct RetryPolicy {
    /// The delay is multiplied by this, in percent, after each try: 200 doubles it; none keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_percent: Option<u32>,
    /// Longest delay in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay_sec: Option<u32>,
    /// The delay varies by up to this share of itself, in percent, so that jobs that failed together
    /// do not come back together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_percent: Option<u32>,
    /// Only errors of these classes are tried again; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<ErrorClass>,
    /// Or those with one of these SQLSTATE codes (5 characters; 2 for a whole class).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_sqlstate: Vec<String>,
    /// Never those with one of these SQLSTATE codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_on_sqlstate: Vec<String>,
}

impl RetryPolicy {
    /// Whether nothing is said.
    pub fn is_plain(&self) -> bool {
        self == &Self::default()
    }
}
