//! The row changes of an operator's action.

use crate::domain::action::RowChange;
use crate::domain::action::action_plan::Cause;
use crate::domain::job::queue::{QueueStatus, RunMode};
use crate::engine::operate::operator_actions::ActionRow;
use schemars::JsonSchema;
use serde::Serialize;

/// A row that changes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ActionRowDetail {
    /// The job code.
    pub job_code: String,
    /// The state before.
    pub from: String,
    /// The state after.
    pub to: String,
    /// The state after as text: `PENDING (no-exec), priority 5`.
    pub then: String,
    /// Whether the job was named; otherwise the change follows from others.
    pub asked: bool,
}

impl ActionRowDetail {
    /// The document of a row change.
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

/// A state with the run mode of the job.
pub fn state(status: QueueStatus, mode: Option<RunMode>) -> String {
    match mode {
        None => status.to_string(),
        Some(RunMode::Ice) => format!("{status} (ice)"),
        Some(RunMode::NoExec) => format!("{status} (no-exec)"),
        Some(RunMode::NoWait) => format!("{status} (no parents)"),
    }
}

/// The state of a row after the action, as text.
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
