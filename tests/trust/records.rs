//! Reads from the metadata database what the judges ask for. Reads only.

use crate::trust::judge::{History, LogRow, Mail, QueueRow};
use crate::trust::oracle::rows;
use procession::domain::job::queue::QueueStatus;

/// Queue rows, log rows and mails of everything that is there.
pub(crate) async fn read(url: &str) -> History {
    let mut history = History::default();
    let queue =
        "SELECT queue_id, batch_no, job_code, status, skip_kind, attempt, run_no FROM job_queue";
    for row in rows(url, queue).await {
        history.rows.push(QueueRow {
            queue_id: number(&row, 0),
            name: (text(&row, 1), text(&row, 2)),
            status: status(&text(&row, 3), row[4].as_deref()),
            attempt: number(&row, 5) as u32,
            run_no: number(&row, 6) as u32,
        });
    }
    // NOTIFIED says that a mail has gone; that one was written is in the outbox.
    let logs = "SELECT l.log_id, l.queue_id, l.status, l.attempt, (SELECT COUNT(*) FROM \
                email_notifications m WHERE m.log_id = l.log_id) FROM job_execution_logs l";
    for row in rows(url, logs).await {
        history.logs.push(LogRow {
            log_id: number(&row, 0),
            queue_id: number(&row, 1),
            status: status(&text(&row, 2), None),
            attempt: number(&row, 3) as u32,
            is_notified: number(&row, 4) > 0,
        });
    }
    let mails = "SELECT queue_id, type FROM email_notifications WHERE queue_id IS NOT NULL";
    for row in rows(url, mails).await {
        // It is told in place of the other.
        let kind = text(&row, 1).replace("kill_unconfirmed", "unknown");
        history.mails.push(Mail { queue_id: number(&row, 0), kind });
    }
    history
}

fn text(row: &[Option<String>], at: usize) -> String {
    row[at].clone().unwrap_or_default()
}

fn number(row: &[Option<String>], at: usize) -> i64 {
    text(row, at).parse().unwrap_or_else(|_| panic!("no number: {row:?}"))
}

fn status(word: &str, skip_kind: Option<&str>) -> QueueStatus {
    QueueStatus::stored(word, skip_kind).unwrap_or_else(|| panic!("{word:?} is no status"))
}
