//! What an operator's action changes, to the row.

use crate::domain::action::RowChange;
use crate::domain::action::action_plan::Cause;
use crate::domain::job::queue::{QueueStatus, RunMode};
use crate::engine::operate::operator_actions::ActionRow;
use schemars::JsonSchema;
use serde::Serialize;

/// A row that changes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ActionRowDetail {
    /// The job.
    pub job_code: String,
    /// Its state before.
    pub from: String,
    /// Its state afterwards.
    pub to: String,
    /// Its state afterwards in words: `PENDING (no-exec), priority 5`.
    pub then: String,
    /// Whether it was named; otherwise it follows from others.
    pub asked: bool,
}

impl ActionRowDetail {
    /// Of a line.
    pub fn from_line(line: &ActionRow) -> Self {
        Self {
            job_code: line.job_code.to_string(),
            from: line.from.to_string(),
            to: line.to.to_string(),
            then: state_after(line),
            asked: line.cause == Cause::Asked,
        }
    }
}

/// A state, and what an operator wants with the job.
pub fn state(status: QueueStatus, mode: Option<RunMode>) -> String {
    match mode {
        None => status.to_string(),
        Some(RunMode::Ice) => format!("{status} (ice)"),
        Some(RunMode::NoExec) => format!("{status} (no-exec)"),
        Some(RunMode::NoWait) => format!("{status} (no parents)"),
    }
}

/// The state of a row afterwards, in words.
pub fn state_after(line: &ActionRow) -> String {
    let (mut mode, mut more) = (line.mode, Vec::new());
    for change in &line.changes {
        match change {
            RowChange::Mode(to) => mode = *to,
            RowChange::StartOver => mode = mode.filter(|m| *m == RunMode::NoExec),
            RowChange::Priority(n) => more.push(format!("priority {n}")),
            RowChange::NoTime => more.push("now".to_owned()),
            RowChange::State => {}
        }
    }
    let state = state(line.to, mode);
    if more.is_empty() { state } else { format!("{state}, {}", more.join(", ")) }
}
