//! Live progress of a run: a bar and the running jobs on a terminal, plain lines elsewhere.

use crate::cli::out;
use crate::domain::queue::QueueStatus;
use crate::domain::time::span_words;
use crate::engine::News;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::sync::mpsc;

/// How to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// Bar and live lines.
    Live,
    /// A line per change that matters.
    Lines,
    /// Nothing.
    Nothing,
}

/// Shows news until the sender is gone. `done` of `total` jobs are final already.
pub(super) async fn watch(
    mut news: mpsc::UnboundedReceiver<News>,
    show: Show,
    total: u64,
    done: u64,
) {
    match show {
        Show::Nothing => while news.recv().await.is_some() {},
        Show::Lines => {
            while let Some(item) = news.recv().await {
                if let Some(text) = words(&item, Show::Lines) {
                    out::note(&format!("{} {text}", item.at));
                }
            }
        }
        Show::Live => {
            let mut live = Live::new(total, done);
            while let Some(item) = news.recv().await {
                live.take(&item);
            }
            live.bar.finish_and_clear();
        }
    }
}

struct Live {
    lines: MultiProgress,
    bar: ProgressBar,
    running: HashMap<String, ProgressBar>,
    /// Jobs that were counted as over; an operator may start one over.
    over: HashSet<String>,
    failed: u64,
}

impl Live {
    fn new(total: u64, done: u64) -> Self {
        let lines = MultiProgress::new();
        let bar = lines.add(ProgressBar::new(total).with_position(done));
        let style = "{bar:32.cyan/black.bright} {pos}/{len} jobs  {elapsed_precise}  {msg}";
        bar.set_style(
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { lines, bar, running: HashMap::new(), over: HashSet::new(), failed: 0 }
    }

    fn take(&mut self, item: &News) {
        let code = item.job_code.to_string();
        match item.status {
            QueueStatus::Running => {
                let spinner = self.lines.insert_before(&self.bar, ProgressBar::new_spinner());
                let style = "  {spinner:.cyan} {msg}  {elapsed:.dim}";
                spinner.set_style(
                    ProgressStyle::with_template(style)
                        .unwrap_or_else(|_| ProgressStyle::default_spinner()),
                );
                let again = if item.attempt > 1 {
                    format!(" (start {})", item.attempt)
                } else {
                    String::new()
                };
                spinner.set_message(format!("{code}{again}"));
                spinner.enable_steady_tick(Duration::from_millis(120));
                self.running.insert(code, spinner);
            }
            QueueStatus::Killing => {
                if let Some(spinner) = self.running.get(&code) {
                    spinner.set_message(format!("{code} is being stopped"));
                }
            }
            _ => {
                if let Some(spinner) = self.running.remove(&code) {
                    spinner.finish_and_clear();
                    self.lines.remove(&spinner);
                }
            }
        }
        if !item.status.is_final() && self.over.remove(item.job_code.as_str()) {
            self.bar.dec(1);
        }
        if item.status.is_final() && self.over.insert(item.job_code.to_string()) {
            self.bar.inc(1);
            if item.status.blocks_children() {
                self.failed += 1;
                self.bar.set_message(format!("{} not well", self.failed));
            }
        }
        if let Some(text) = words(item, Show::Live) {
            // An error here means that the terminal is gone.
            let _ = self.lines.println(text);
        }
    }
}

/// One change as a line; `None` for those that only fill the screen.
fn words(item: &News, show: Show) -> Option<String> {
    let status = match show {
        Show::Live => out::coloured(item.status),
        Show::Lines | Show::Nothing => item.status.to_string(),
    };
    let code = &item.job_code;
    let took = item.took_ms.map(|ms| format!("  {}", span_words(ms))).unwrap_or_default();
    let message = out::clean(item.message.as_deref().unwrap_or_default());
    let message = message.as_ref();
    match item.status {
        QueueStatus::Pending | QueueStatus::Queued => None,
        QueueStatus::Running if show == Show::Live => None,
        QueueStatus::Running if item.attempt > 1 => {
            Some(format!("{code} {status} (start {})", item.attempt))
        }
        QueueStatus::Running => Some(format!("{code} {status}")),
        QueueStatus::RetryWait => {
            let delay = item.not_before.map_or(0, |at| at.since(item.at));
            let next = span_words(delay);
            Some(format!("{code} {status}{took}  next try in {next}: {}", out::brief(message, 300)))
        }
        _ if message.is_empty() => Some(format!("{code} {status}{took}")),
        _ => Some(format!("{code} {status}{took}: {}", out::brief(message, 300))),
    }
}
