//! The log lines of a job of a batch.

use crate::app::App;
use crate::domain::id::QueueId;
use crate::store::log::{self, LogLine, LogPosition};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

/// A line that a job printed, or a message about it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LogLineDetail {
    /// The attempt number.
    pub attempt: u32,
    /// The line number within that attempt.
    pub line_no: u64,
    /// The stream: stdout, stderr, the database, or Procession.
    pub stream: String,
    /// The text, with the job's colour codes.
    pub text: String,
    /// The time.
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
