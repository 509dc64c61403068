//! Live progress of a run: a bar and the running jobs on a terminal, plain lines elsewhere.

use crate::cli::out;
use crate::cli::watch::RunWatch;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::span_words;
use crate::engine::ProgressEvent;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;
use tokio::sync::mpsc;

/// How to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// A bar and live lines.
    Live,
    /// A line per significant change.
    Lines,
    /// Nothing.
    Nothing,
}

impl Show {
    /// The suitable way for the output: a bar on a terminal, lines in a log.
    pub(super) fn for_terminal() -> Self {
        if out::is_terminal() { Self::Live } else { Self::Lines }
    }
}

/// Shows events until the sender is dropped. `done` of `total` jobs are final already; `expected`
/// forecasts the end.
pub(super) async fn watch(
    mut news: mpsc::UnboundedReceiver<ProgressEvent>,
    show: Show,
    total: u64,
    done: u64,
    expected: impl Future<Output = RunWatch>,
) {
    match show {
        Show::Nothing => while news.recv().await.is_some() {},
        Show::Lines => {
            let mut expected = expected.await;
            expected.line_if_due().iter().for_each(|text| out::eprint_line(text));
            while let Some(item) = news.recv().await {
                if let Some(text) = words(&item, Show::Lines) {
                    out::eprint_line(&format!("{} {text}", out::precise_local_time(item.at)));
                }
                expected.apply_change(&item);
                expected.line_if_due().iter().for_each(|text| out::eprint_line(text));
            }
        }
        Show::Live => show_live(news, BatchProgress::new(total, done), expected.await).await,
    }
}

/// The forecast is updated once a second and not at each change, because it walks over the whole
/// batch; and also without changes, because a long-running job delays the end.
async fn show_live(
    mut news: mpsc::UnboundedReceiver<ProgressEvent>,
    mut live: BatchProgress,
    mut expected: RunWatch,
) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            item = news.recv() => match item {
                Some(item) => {
                    expected.apply_change(&item);
                    live.apply_change(&item);
                }
                None => break,
            },
            _ = second.tick() => live.set_expected(expected.words()),
        }
    }
    live.bar.finish_and_clear();
}

struct BatchProgress {
    lines: MultiProgress,
    bar: ProgressBar,
    running: HashMap<String, ProgressBar>,
    /// Jobs that were counted as ended; an operator may rerun one.
    over: HashSet<String>,
    failed: u64,
    /// Jobs that wait for an operator's release, and with them this run.
    held: BTreeSet<String>,
    expected: Option<String>,
}

impl BatchProgress {
    fn new(total: u64, done: u64) -> Self {
        let lines = MultiProgress::new();
        let bar = lines.add(ProgressBar::new(total).with_position(done));
        let style = "{bar:32.cyan/black.bright} {pos}/{len} jobs  {elapsed_precise}  {msg}";
        bar.set_style(
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            lines,
            bar,
            running: HashMap::new(),
            over: HashSet::new(),
            failed: 0,
            held: BTreeSet::new(),
            expected: None,
        }
    }

    fn set_expected(&mut self, expected: Option<String>) {
        self.expected = expected;
        self.update_message();
    }

    fn update_message(&self) {
        let failed = (self.failed > 0).then(|| format!("{} not well", self.failed));
        let held: Vec<&str> = self.held.iter().take(3).map(String::as_str).collect();
        let held = (!held.is_empty()).then(|| format!("waits for release of {}", held.join(", ")));
        let words: Vec<String> =
            failed.into_iter().chain(held).chain(self.expected.clone()).collect();
        self.bar.set_message(words.join("  "));
    }

    fn apply_change(&mut self, item: &ProgressEvent) {
        let code = item.job_code.to_string();
        let was = self.held.len();
        match item.status {
            QueueStatus::Held => drop(self.held.insert(code.clone())),
            _ => drop(self.held.remove(&code)),
        }
        if self.held.len() != was {
            self.update_message();
        }
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
                self.update_message();
            }
        }
        if let Some(text) = words(item, Show::Live) {
            // An error here means that the terminal is gone.
            let _ = self.lines.println(text);
        }
    }
}

/// One change as a line; `None` for minor ones.
pub(super) fn words(item: &ProgressEvent, show: Show) -> Option<String> {
    let status = match show {
        Show::Live => out::coloured(item.status),
        Show::Lines | Show::Nothing => item.status.to_string(),
    };
    let code = &item.job_code;
    let took = item.took_ms.map(|ms| format!("  {}", span_words(ms))).unwrap_or_default();
    let message = out::message(item.message.as_deref().unwrap_or_default());
    let message = out::clean(&message);
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
            let next = format!("next try in {}", span_words(delay));
            let next = out::message(&next);
            Some(format!("{code} {status}{took}  {next}: {}", out::brief(message, 300)))
        }
        // The run does not end before an operator releases it.
        QueueStatus::Held => {
            let sentence = out::brief(message, 300);
            Some(format!("{code} {status}: {sentence}; this run waits until it is released"))
        }
        _ if message.is_empty() => Some(format!("{code} {status}{took}")),
        _ => Some(format!("{code} {status}{took}: {}", out::brief(message, 300))),
    }
}
