//! Following: a batch to its end, the log lines of a job as they arrive.

use crate::cli::server::{BATCH_JOBS, ServerVerb};
use crate::cli::{BadInput, VerbResult, out};
use crate::domain::batch::BatchStatus;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::time::Duration;

/// Poll interval.
const LOOK: Duration = Duration::from_millis(1_000);
/// Maximum number of consecutive failed polls, while the server restarts or its network is down.
const BLIND: u32 = 60;

impl ServerVerb<'_> {
    /// Waits for the end of a batch, and ends as it did.
    pub(super) async fn wait_for_batch(&self, group: &str, no: &str) -> Result<VerbResult> {
        let query = [("batch_no", no.to_owned()), ("group", group.to_owned())];
        let (mut last_line, mut blind) = (String::new(), 0);
        let status = loop {
            match self.server.list_items(&["batches"], &query, 1).await {
                Ok(found) => {
                    blind = 0;
                    let batch = found.first().ok_or_else(|| {
                        BadInput(format!("there is no batch {no} of group {group}"))
                    })?;
                    let word = batch["status"].as_str().unwrap_or_default();
                    let status = BatchStatus::parse(word).context("a state of batches")?;
                    if status.is_final() {
                        break status;
                    }
                    let now = format!("batch {no} of group {group}: {status} {}", batch["jobs"]);
                    if now != last_line && !self.arguments.has_flag("quiet") && !self.global.json {
                        out::eprint_line(&now);
                    }
                    last_line = now;
                }
                // The batch ends whether or not the server is reachable for a while.
                Err(error) if blind < BLIND && !error.is::<super::ServerRefusal>() => {
                    tracing::warn!(error = format!("{error:#}"), "cannot look; looking again");
                    blind += 1;
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(LOOK).await;
        };
        let document = self.server.get(&["groups", group, "batches", no], &[]).await?;
        self.print_document(&document, &[("jobs", BATCH_JOBS)])?;
        Ok(if status.is_success() { VerbResult::Well } else { VerbResult::BatchFailed })
    }

    /// `logs`, and with `-f` until the job has ended.
    pub(super) async fn print_logs(&self) -> Result<VerbResult> {
        let job = self.arguments.required_value("job");
        let no = self.arguments.required_value("batch_no");
        let (group, no) = self.which_with_jobs(no, std::slice::from_ref(&job)).await?;
        let path = ["groups", group.as_str(), "batches", no.as_str(), "jobs", job.as_str(), "log"];
        let attempt = self.arguments.value("attempt").map(|attempt| ("attempt", attempt));
        let mut after: Option<String> = None;
        loop {
            let mut query: Vec<(&str, String)> = attempt.clone().into_iter().collect();
            query.extend(after.clone().map(|after| ("after", after)));
            let page = self.server.get(&path, &query).await?;
            let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
            for line in items {
                self.print_log_line(line)?;
            }
            after = page["last"].as_str().map(str::to_owned).or(after);
            let is_over = page["is_over"].as_bool().unwrap_or(true);
            if page["next"].is_null() {
                if is_over || !self.arguments.has_flag("follow") {
                    return Ok(VerbResult::Well);
                }
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    fn print_log_line(&self, line: &Value) -> Result<()> {
        if self.global.json {
            out::print_line(&serde_json::to_string(line)?);
            return Ok(());
        }
        let word = |name: &str| line[name].as_str().unwrap_or_default();
        let text = if word("text").is_empty() { word("line") } else { word("text") };
        let text = match word("stream") {
            "system" => out::message(text),
            _ => text.into(),
        };
        let at = out::parse_utc(word("at"));
        let at = at.map_or_else(|| word("at").to_owned(), out::precise_local_time);
        out::print_line(&format!("{at} {} {text}", word("stream")));
        Ok(())
    }
}
