//! `logs`: the log lines of a job of a batch, and its changes of state; `-f` follows.

use crate::app::{App, EmptyDatabase};
use crate::cli::{BadInput, BatchRef, Global, VerbResult, out};
use crate::domain::id::QueueId;
use crate::domain::job::job_key::find_named;
use crate::domain::job::outcome::Stream;
use crate::domain::job::queue::QueueStatus;
use crate::domain::text::lang::Lang;
use crate::store::log::LogPosition;
use crate::store::{self, log};
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::borrow::Cow;
use std::time::Duration;

/// Arguments of `logs`.
#[derive(Args)]
pub(super) struct LogsArgs {
    #[command(flatten)]
    batch: BatchRef,
    /// Job: CODE or group.CODE, or an alias
    job: String,
    /// Go on until the job has ended
    #[arg(short, long)]
    follow: bool,
    /// Only this start of the job
    #[arg(long)]
    attempt: Option<u32>,
}

/// Lines per query.
const PAGE: u32 = 1_000;

pub(super) async fn print_logs(global: &Global, args: &LogsArgs) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let batch = args.batch.find_with_jobs(&app, std::slice::from_ref(&args.job)).await?;
    let mut code = args.job.trim().to_owned();
    let row = {
        let mut tx = app.db.begin_read().await?;
        let snapshot = store::batch::snapshot(&mut tx, batch.batch_id).await?;
        if let Ok(job) = find_named(&snapshot.jobs, &code) {
            code = job.code.to_string();
        }
        let rows = store::queue::of_batch(&mut tx, batch.batch_id).await?;
        rows.into_iter().find(|r| r.job_code.as_str() == code)
    };
    let Some(row) = row else {
        let (no, group) = (&batch.values.batch_no, &batch.values.group);
        let message = format!(
            "batch {no} of group {group} has no job {code}; procession batch show {no} --group {group} \
             lists them"
        );
        return Err(BadInput(message).into());
    };
    let gone = {
        let mut tx = app.db.begin_read().await?;
        store::retention::lines_gone(&mut tx, batch.batch_id).await?
    };
    if let Some(at) = gone.map(out::local_time) {
        out::eprint_line(&match global.language() {
            Lang::En => format!(
                "the lines of this batch were old and were removed at {at} (log_lines_days)"
            ),
            Lang::Zh => format!("该批次的日志行已到期限，于 {at} 删除（log_lines_days）"),
        });
    }
    let mut reader = LogPrinter {
        queue_id: row.queue_id,
        after: LogPosition::default(),
        changes: 0,
        only: args.attempt,
    };
    loop {
        // The state is read before the lines: when it is final, no line arrives later.
        let ended = state(&app, &reader).await?.is_final();
        while reader.print_page(global, &app).await? {}
        if !args.follow || ended {
            return Ok(VerbResult::Well);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

async fn state(app: &App, reader: &LogPrinter) -> Result<QueueStatus> {
    let mut tx = app.db.begin_read().await?;
    let changes = log::of_entry(&mut tx, reader.queue_id).await?;
    Ok(changes.last().map_or(QueueStatus::Pending, |c| c.log.status))
}

struct LogPrinter {
    queue_id: QueueId,
    after: LogPosition,
    changes: usize,
    only: Option<u32>,
}

impl LogPrinter {
    /// Prints new changes of state and lines by time; `true` when there may be more.
    async fn print_page(&mut self, global: &Global, app: &App) -> Result<bool> {
        let mut tx = app.db.begin_read().await?;
        let changes = log::of_entry(&mut tx, self.queue_id).await?;
        let lines = log::lines_after(&mut tx, self.queue_id, self.after, PAGE).await?;
        drop(tx);
        let more = lines.len() == PAGE as usize;
        if let Some(last) = lines.last() {
            self.after = last.position();
        }
        let wanted = |attempt: u32| self.only.is_none_or(|only| only == attempt);
        // By attempt, then by time; at the same millisecond RUNNING comes before its lines, an end
        // after.
        let mut items: Vec<((u32, i64, u8, u64), String)> = Vec::new();
        for line in lines.iter().filter(|l| wanted(l.attempt)) {
            items.push(((line.attempt, line.at.0, 1, line.line_no), line_words(global, line)));
        }
        for (i, change) in changes.iter().enumerate().skip(self.changes) {
            let attempt = change.log.attempt;
            let place = if change.log.status == QueueStatus::Running { 0 } else { 2 };
            if wanted(attempt) {
                items.push(((attempt, change.at.0, place, i as u64), change_words(global, change)));
            }
        }
        self.changes = changes.len();
        items.sort_by_key(|(key, _)| *key);
        items.iter().for_each(|(_, text)| out::print_line(text));
        Ok(more)
    }
}

fn line_words(global: &Global, line: &log::LogLine) -> String {
    if global.json {
        return json!({
            "attempt": line.attempt, "line_no": line.line_no, "stream": line.stream,
            "text": line.text, "at": line.at.to_string(),
        })
        .to_string();
    }
    // What the job or its database printed is theirs.
    let text = match line.stream == Stream::System.as_str() {
        true => out::message(&line.text),
        false => Cow::Borrowed(line.text.as_str()),
    };
    format!("{} {:>8} | {text}", out::precise_local_time(line.at), line.stream)
}

fn change_words(global: &Global, change: &log::LoggedChange) -> String {
    let log = &change.log;
    if global.json {
        return json!({
            "attempt": log.attempt, "status": log.status, "at": change.at.to_string(),
            "error_message": log.error_message, "try_count": log.try_count,
        })
        .to_string();
    }
    let message = log.error_message.as_ref();
    let message = message.map(|m| format!(": {}", out::message(m))).unwrap_or_default();
    let at = out::precise_local_time(change.at);
    format!("{at} -- start {} {}{message}", log.attempt, log.status)
}
