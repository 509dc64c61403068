//! What an operator's action changes, to the row.

use crate::domain::action::Change;
use crate::domain::action_plan::Cause;
use crate::domain::queue::{QueueStatus, RunMode};
use crate::engine::operate::operator_actions::Line;
use schemars::JsonSchema;
use serde::Serialize;

/// A row that changes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
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

impl Row {
    /// Of a line.
    pub fn of(line: &Line) -> Self {
        Self {
            job_code: line.job_code.to_string(),
            from: line.from.to_string(),
            to: line.to.to_string(),
            then: then(line),
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
pub fn then(line: &Line) -> String {
    let (mut mode, mut more) = (line.mode, Vec::new());
    for change in &line.changes {
        match change {
            Change::Mode(to) => mode = *to,
            Change::StartOver => mode = mode.filter(|m| *m == RunMode::NoExec),
            Change::Priority(n) => more.push(format!("priority {n}")),
            Change::NoTime => more.push("now".to_owned()),
            Change::State => {}
        }
    }
    let state = state(line.to, mode);
    if more.is_empty() { state } else { format!("{state}, {}", more.join(", ")) }
}
