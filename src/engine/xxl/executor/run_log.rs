//! The log of a run, built from its row and the changes of its batches' rows.
//!
//! Line numbers never change: an admin requests the lines after those it has.

use super::Executor;
use crate::domain::batch::Batch;
use crate::domain::text::truncate_text;
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::{XxlLogId, XxlRun, XxlStatus};
use crate::store::xxl_run::{self, ShownChange};
use anyhow::Result;

/// Lines per page.
const LINES_MOST: usize = 500;
/// Maximum length of a line, in bytes.
const LINE_MAX: usize = 2_000;
/// Changes are shown only when they are this old, in milliseconds: those of two batches are
/// numbered in the order of their commits.
const SETTLED_MS: i64 = 1_000;

/// Lines of the log of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLogPage {
    /// The number of the first line.
    pub from: i64,
    /// The number of the last line; less than `from` when there is none.
    pub to: i64,
    /// The lines.
    pub text: String,
    /// Whether further lines may follow.
    pub end: LogEnd,
}

/// Whether further lines may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// They may.
    Open,
    /// They cannot.
    Reached,
}

impl Executor {
    /// Lines of the log of a run, from this number on; the first line has number 1.
    pub async fn read_log(&self, log: XxlLogId, from: i64) -> Result<RunLogPage> {
        let from = from.max(1);
        let mut tx = self.db.begin_read().await?;
        let Some(run) = xxl_run::latest(&mut tx, self.app_name(), log).await? else {
            let text = format!("run {log} is not known here; it was never taken, or is long over");
            return Ok(RunLogPage { from, to: 0, text, end: LogEnd::Reached });
        };
        let ids = run.batches.clone().unwrap_or_default();
        let mut lines = head_lines(&run, &xxl_run::batches(&mut tx, &ids).await?, ids.len());
        let heads = i64::try_from(lines.len())?;
        let skip = usize::try_from(from - 1).unwrap_or(usize::MAX);
        lines.drain(..skip.min(lines.len()));
        let until = run.end_time.unwrap_or(self.clock.now().plus_ms(-SETTLED_MS));
        let room = LINES_MOST.saturating_sub(lines.len());
        let behind = (from - 1 - heads).max(0);
        // One more than there is room for says whether these are all.
        let most = u32::try_from(room + 1)?;
        let changes = xxl_run::changes(&mut tx, &ids, until, behind, most).await?;
        let is_all = changes.len() <= room;
        lines.extend(changes.iter().take(room).map(words));
        let mut end = LogEnd::Open;
        if let (XxlStatus::Done, true, Some(result)) = (run.status, is_all, &run.result) {
            end = LogEnd::Reached;
            let total = xxl_run::count_changes(&mut tx, &ids, until).await?;
            // Follows the last change; an admin that has it already gets nothing.
            if from <= heads + total + 1 {
                let at = run.end_time.unwrap_or_default();
                lines.push(format!("{at} over: code {}: {}", result.code, result.message));
            }
        }
        let to = from - 1 + i64::try_from(lines.len())?;
        let clipped: Vec<String> = lines.iter().map(|line| truncate_text(line, LINE_MAX)).collect();
        Ok(RunLogPage { from, to, text: clipped.join("\n"), end })
    }
}

/// The lines before the first change: their number does not change once batches are open.
fn head_lines(run: &XxlRun, there: &[Batch], opened: usize) -> Vec<String> {
    let XxlRun { log_id, job_id, create_time, .. } = run;
    let mut lines = vec![format!("{create_time} run {log_id} of job {job_id} was taken")];
    for at in 0..opened {
        lines.push(match there.get(at) {
            Some(batch) => {
                let (no, group, opened) =
                    (&batch.values.batch_no, &batch.values.group, batch.create_time);
                format!("{opened} batch {no} of group {group} was opened")
            }
            None => "a batch of it was old and was removed".to_owned(),
        });
    }
    lines
}

fn words(change: &ShownChange) -> String {
    let ShownChange { at, batch_no, job_code, status, attempt, said } = change;
    let at: &Millis = at;
    let said = said.as_deref().unwrap_or_default();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let colon = if said.is_empty() { "" } else { ": " };
    format!("{at} {batch_no} {job_code} {status} (start {attempt}){colon}{said}")
}
