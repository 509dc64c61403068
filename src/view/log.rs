//! What a job of a batch printed.

use crate::app::App;
use crate::domain::id::QueueId;
use crate::store::log::{self, LogLine, LogPosition};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

/// A line that a job printed, or that was said about it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LogLineDetail {
    /// Which start of the job.
    pub attempt: u32,
    /// Its number within that start.
    pub line_no: u64,
    /// Where it came from: stdout, stderr, the database, or Procession.
    pub stream: String,
    /// Its text, with whatever colours the job gave it.
    pub text: String,
    /// When it came.
    pub at: String,
}

impl From<&LogLine> for LogLineDetail {
    fn from(line: &LogLine) -> Self {
        Self {
            attempt: line.attempt,
            line_no: line.line_no,
            stream: line.stream.clone(),
            text: line.text.clone(),
            at: line.at.to_string(),
        }
    }
}

/// Which lines of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSelection {
    /// Behind this line.
    After(LogPosition),
    /// The last ones of its attempt before this line.
    Before(LogPosition),
}

/// At most `limit` of them, oldest first.
pub async fn lines(
    app: &App,
    row: QueueId,
    wanted: LogSelection,
    limit: u32,
) -> Result<Vec<LogLine>> {
    let mut tx = app.db.begin_read().await?;
    match wanted {
        LogSelection::After(position) => log::lines_after(&mut tx, row, position, limit).await,
        LogSelection::Before(position) => log::lines_before(&mut tx, row, position, limit).await,
    }
}
