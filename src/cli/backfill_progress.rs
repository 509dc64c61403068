//! Live progress of a backfill: a bar of batches and a line per open batch on a terminal, plain
//! lines elsewhere.

use crate::cli::out;
use crate::cli::progress::{Show, words};
use crate::domain::backfill::EntryStatus;
use crate::domain::id::{BatchNo, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::text::lang::Lang;
use crate::domain::time::span_words;
use crate::engine::ProgressEvent;
use crate::engine::dispatch::backfill::BatchNews;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// Progress events of jobs and of batches.
pub(super) type AllNews = (UnboundedReceiver<ProgressEvent>, UnboundedReceiver<BatchNews>);

/// Shows events until both senders are dropped. `done` of `total` batches are final already.
pub(super) async fn watch(
    (mut jobs, mut batches): AllNews,
    show: Show,
    done: usize,
    total: usize,
    lang: Lang,
) {
    let mut live = match show {
        Show::Live => Some(BackfillProgress::new(done, total, lang)),
        Show::Lines | Show::Nothing => None,
    };
    loop {
        tokio::select! {
            // A batch ends after its jobs do.
            biased;
            Some(item) = jobs.recv() => match (&mut live, show) {
                (Some(live), _) => live.apply_change(&item),
                (None, Show::Lines) => {
                    let text = job_words(&item, show);
                    text.iter().for_each(|text| out::eprint_line(&format!("{} {text}", item.at)));
                }
                (None, Show::Live | Show::Nothing) => {}
            },
            Some(item) = batches.recv() => match (&mut live, show) {
                (Some(live), _) => live.batch(&item),
                (None, Show::Lines) => {
                    out::eprint_line(&format!("{} {}", item.at, batch_words(&item, lang)));
                }
                (None, Show::Live | Show::Nothing) => {}
            },
            else => break,
        }
    }
    if let Some(live) = live {
        live.bar.finish_and_clear();
    }
}

/// A line about a single job, only if an operator may have to look at it.
fn job_words(item: &ProgressEvent, show: Show) -> Option<String> {
    let tried = matches!(item.status, QueueStatus::RetryWait | QueueStatus::Killing);
    let failed = item.status.blocks_children() && item.status != QueueStatus::UpstreamFailed;
    let text = words(item, show).filter(|_| tried || failed)?;
    Some(format!("{} {text}", item.batch_no))
}

fn batch_words(item: &BatchNews, lang: Lang) -> String {
    let (no, done, total) = (&item.batch_no, item.done, item.total);
    let of = match lang {
        Lang::En => format!("{done} of {total} batches"),
        Lang::Zh => format!("{done}/{total} 个批次"),
    };
    let took = item.took_ms.map(|ms| format!("  {}", span_words(ms))).unwrap_or_default();
    let message = item.message.as_ref().map(|m| format!(": {m}")).unwrap_or_default();
    match (item.status, lang) {
        (EntryStatus::Open, Lang::En) => {
            let jobs = out::count(usize::try_from(item.jobs).unwrap_or(0), "job");
            format!("{no} begins, {jobs}  ({of})")
        }
        (EntryStatus::Open, Lang::Zh) => format!("{no} 开始，{} 个作业（{of}）", item.jobs),
        (status, _) => format!("{no} {status}{took}  ({of}){message}"),
    }
}

struct BackfillProgress {
    lines: MultiProgress,
    bar: ProgressBar,
    open: HashMap<BatchNo, BatchProgressLine>,
    lang: Lang,
}

struct BatchProgressLine {
    spinner: ProgressBar,
    jobs: u64,
    done: u64,
    running: BTreeSet<JobCode>,
}

impl BackfillProgress {
    fn new(done: usize, total: usize, lang: Lang) -> Self {
        let lines = MultiProgress::new();
        let bar = lines.add(ProgressBar::new(total as u64).with_position(done as u64));
        let style = match lang {
            Lang::En => "{bar:32.cyan/black.bright} {pos} of {len} batches  {elapsed_precise}",
            Lang::Zh => "{bar:32.cyan/black.bright} {pos}/{len} 个批次  {elapsed_precise}",
        };
        bar.set_style(
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { lines, bar, open: HashMap::new(), lang }
    }

    /// The line of a batch; a batch that was taken over sends events before it is announced.
    fn batch_line(&mut self, no: &BatchNo) -> &mut BatchProgressLine {
        let Self { lines, bar, open, .. } = self;
        open.entry(no.clone()).or_insert_with(|| {
            let spinner = lines.insert_before(bar, ProgressBar::new_spinner());
            let style = "  {spinner:.cyan} {msg}  {elapsed:.dim}";
            spinner.set_style(
                ProgressStyle::with_template(style)
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            spinner.enable_steady_tick(Duration::from_millis(120));
            BatchProgressLine { spinner, jobs: 0, done: 0, running: BTreeSet::new() }
        })
    }

    fn apply_change(&mut self, item: &ProgressEvent) {
        let line = self.batch_line(&item.batch_no);
        match item.status {
            QueueStatus::Running => {
                line.running.insert(item.job_code.clone());
            }
            QueueStatus::Killing => {}
            _ => {
                line.running.remove(&item.job_code);
            }
        }
        line.done += u64::from(item.status.is_final());
        line.update_message(&item.batch_no);
        if let Some(text) = job_words(item, Show::Live) {
            // An error here means that the terminal is gone.
            let _ = self.lines.println(text);
        }
    }

    fn batch(&mut self, item: &BatchNews) {
        self.bar.set_position(item.done as u64);
        if item.status == EntryStatus::Open {
            let line = self.batch_line(&item.batch_no);
            line.jobs = item.jobs;
            line.update_message(&item.batch_no);
            return;
        }
        if let Some(line) = self.open.remove(&item.batch_no) {
            line.spinner.finish_and_clear();
            self.lines.remove(&line.spinner);
        }
        let _ = self.lines.println(batch_words(item, self.lang));
    }
}

impl BatchProgressLine {
    fn update_message(&self, no: &BatchNo) {
        let running: Vec<&str> = self.running.iter().map(JobCode::as_str).collect();
        let (done, jobs) = (self.done, self.jobs.max(self.done));
        let running = out::brief(&running.join(", "), 60);
        self.spinner.set_message(format!("{no}  {done}/{jobs}  {running}"));
    }
}
