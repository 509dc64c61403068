//! Progress of opening a batch of many jobs: a bar on a terminal, a line per tenth elsewhere.

use crate::cli::out;
use crate::cli::progress::Show;
use crate::domain::text::lang::Lang;
use crate::engine::opening::unfinished_opening::OpeningProgress;
use indicatif::{ProgressBar, ProgressStyle};

/// Shows the steps of openings, one batch after the other.
pub(super) struct OpeningDisplay {
    show: Show,
    lang: Lang,
    bar: Option<ProgressBar>,
    tenths: usize,
}

impl OpeningDisplay {
    pub(super) fn new(show: Show, lang: Lang) -> Self {
        Self { show, lang, bar: None, tenths: 0 }
    }

    /// Shows a step.
    pub(super) fn show_progress(&mut self, progress: &OpeningProgress) {
        match self.show {
            Show::Nothing => {}
            Show::Live => self.show_bar(progress),
            Show::Lines => {
                let tenths = progress.written * 10 / progress.total.max(1);
                if tenths != self.tenths {
                    self.tenths = tenths;
                    out::eprint_line(&describe(progress, self.lang));
                }
            }
        }
    }

    fn show_bar(&mut self, progress: &OpeningProgress) {
        let style = "{bar:32.cyan/black.bright} {msg}  {elapsed_precise}";
        let bar = self.bar.get_or_insert_with(|| {
            let plain = |_| ProgressStyle::default_bar();
            let style = ProgressStyle::with_template(style).unwrap_or_else(plain);
            ProgressBar::new(0).with_style(style)
        });
        bar.set_length(progress.total as u64);
        bar.set_position(progress.written as u64);
        bar.set_message(describe(progress, self.lang));
    }
}

impl Drop for OpeningDisplay {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

fn describe(progress: &OpeningProgress, lang: Lang) -> String {
    let OpeningProgress { batch_no, group, written, total } = progress;
    match lang {
        Lang::En => format!("opening batch {batch_no} of group {group}: {written} of {total} jobs"),
        Lang::Zh => format!("正在开启批次 {batch_no}（作业组 {group}）：{written}/{total} 个作业"),
    }
}
