//! Earlier attempts of a batch's jobs.

use crate::cli::out;
use crate::domain::cluster::silent_node::SilentNode;
use crate::domain::executor::run_wait::RunWait;
use crate::domain::job::queue::QueueEntry;
use crate::domain::text::lang::Lang;
use crate::view::batch::BatchView;

/// Prints one line for each job with earlier attempts.
pub(super) fn print(view: &BatchView, lang: Lang) {
    for row in &view.rows {
        let words = words(row, lang);
        if !words.is_empty() {
            let between = lang.select("; ", ";");
            out::print_line(&format!("{}: {}", row.job_code, words.join(between)));
        }
    }
}

fn words(row: &QueueEntry, lang: Lang) -> Vec<String> {
    let mut words = Vec::new();
    if row.run_no > 1 {
        words.push(match lang {
            Lang::En => format!("run {}", row.run_no),
            Lang::Zh => format!("第 {} 次运行", row.run_no),
        });
    }
    if row.crash_count > 0 {
        let times = out::count(row.crash_count as usize, "worker");
        words.push(match lang {
            Lang::En => format!("{times} in a row died while it ran"),
            Lang::Zh => format!("连续 {} 个工作进程在运行它时退出", row.crash_count),
        });
    }
    if row.unresolved > 0 {
        let tries = match row.unresolved {
            1 => "1 try".to_owned(),
            n => format!("{n} tries"),
        };
        words.push(match lang {
            Lang::En => format!("the outcome of {tries} is open, the next looks it up first"),
            Lang::Zh => format!("{} 次启动的结果未知，下次启动会先查明", row.unresolved),
        });
    }
    if let Some(what) = &row.waits_on {
        words.push(match SilentNode::parse(what) {
            Some(silent) => silent.words(lang),
            None => {
                let what = RunWait::said_in(lang, what);
                format!("{}{what}", lang.select("waits for ", "等待："))
            }
        });
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{BatchId, JobCode, QueueId};
    use crate::domain::job::queue::QueueStatus;

    #[test]
    fn only_what_says_something_is_said() {
        let mut row = QueueEntry {
            status: QueueStatus::Running,
            attempt: 1,
            ..QueueEntry::generated(QueueId(1), BatchId(1), JobCode::parse("A").expect("code"))
        };
        assert_eq!(words(&row, Lang::En), Vec::<String>::new());
        (row.run_no, row.crash_count, row.unresolved) = (2, 1, 2);
        row.waits_on = Some("session 7 on the server".to_owned());
        assert_eq!(
            words(&row, Lang::En),
            [
                "run 2",
                "1 worker in a row died while it ran",
                "the outcome of 2 tries is open, the next looks it up first",
                "waits for session 7 on the server",
            ]
        );
        assert_eq!(words(&row, Lang::Zh)[0], "第 2 次运行");
    }
}
