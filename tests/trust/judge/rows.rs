//! J5: the tables of Procession itself: one row per job, only legal changes, each with its log row and
//! its mails, nothing left open without a reason.

use super::{Crime, Judge, LogRow, Name, Promise, QueueRow, Records, Violation, Wanted, order};
use procession::domain::job::queue::{QueueEvent, QueueStatus};
use std::collections::BTreeMap;

/// What this judge finds.
pub(super) fn judge(records: &Records<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut report = |wanted: &Wanted, crime, said| {
        let (class, name) = (wanted.class, wanted.name.clone());
        found.push(Violation { judge: Judge::Rows, crime, class, name, said });
    };
    let mut counts = BTreeMap::<&Name, usize>::new();
    records.history.rows.iter().for_each(|row| *counts.entry(&row.name).or_default() += 1);
    for wanted in &records.history.wanted {
        match counts.remove(&wanted.name).unwrap_or_default() {
            1 => {}
            0 if wanted.answer == super::Answer::Lost => continue,
            count => report(wanted, Crime::BadRow, format!("{count} rows in job_queue")),
        }
        let Some(row) = records.rows.get(&wanted.name) else { continue };
        let logs = records.logs.get(&row.queue_id).map_or(&[][..], Vec::as_slice);
        changes(row, logs, |said| report(wanted, Crime::BadRow, said));
        mails(records, wanted, row, logs, |said| report(wanted, Crime::BadRow, said));
        if let Some(said) = unexplained(records, wanted, row, logs) {
            report(wanted, Crime::Unexplained, said);
        }
    }
    for (name, _) in counts {
        let (judge, crime, class) = (Judge::Rows, Crime::BadRow, super::Class::Once);
        let said = "a row of a job that nobody opened".to_owned();
        found.push(Violation { judge, crime, class, name: name.clone(), said });
    }
    found
}

fn may_follow(from: QueueStatus, to: QueueStatus) -> bool {
    QueueEvent::ALL.into_iter().any(|event| from.after(event) == Ok(to))
}

/// The story of a row begins at PENDING, which is not logged, and each log row is the next step of it.
fn changes(row: &QueueRow, logs: &[&LogRow], mut report: impl FnMut(String)) {
    let (mut status, mut attempt) = (QueueStatus::Pending, 0);
    for log in logs {
        if !may_follow(status, log.status) {
            report(format!("{status} was followed by {}", log.status));
        }
        status = log.status;
        attempt += u32::from(status == QueueStatus::Running);
        if log.attempt != attempt {
            report(format!("{status} of attempt {}, where {attempt} is due", log.attempt));
            attempt = log.attempt;
        }
    }
    if (row.status, row.attempt) != (status, attempt) {
        let (row_is, no) = (row.status, row.attempt);
        report(format!("the row is {row_is} ({no}), its last log row {status} ({attempt})"));
    }
}

/// What owners are told of: that a body's last try ended badly or in doubt.
fn due(before: QueueStatus, log: &LogRow) -> Option<&'static str> {
    use QueueStatus as S;
    match (before, log.status) {
        (S::Running | S::Killing, S::Failed) => Some("failed"),
        (S::Running | S::Killing, S::Timeout) => Some("timeout"),
        (S::Running | S::Killing | S::RetryWait, S::Unknown) => Some("unknown"),
        _ => None,
    }
}

/// Kinds of mail that belong to a change of status; others (`running_long`) are sent in between.
const OF_A_CHANGE: [&str; 3] = ["failed", "timeout", "unknown"];

fn mails(
    records: &Records<'_>,
    wanted: &Wanted,
    row: &QueueRow,
    logs: &[&LogRow],
    mut report: impl FnMut(String),
) {
    let mut before = QueueStatus::Pending;
    let mut wants = BTreeMap::<&str, usize>::new();
    for log in logs {
        let kind = due(before, log);
        if let Some(kind) = kind {
            *wants.entry(kind).or_default() += wanted.told;
            if log.is_notified != (wanted.told > 0) {
                report(format!("the log row of {} says notified: {}", log.status, log.is_notified));
            }
        }
        before = log.status;
    }
    for kind in OF_A_CHANGE {
        let of_it = |mail: &&super::Mail| mail.queue_id == row.queue_id && mail.kind == kind;
        let is = records.history.mails.iter().filter(of_it).count();
        let wanted = wants.get(kind).copied().unwrap_or_default();
        if is != wanted {
            report(format!("{is} mails `{kind}` in the outbox, {wanted} are due"));
        }
    }
}

/// Why a row that did not end well is as it is; `None` when that can be said.
fn unexplained(
    records: &Records<'_>,
    wanted: &Wanted,
    row: &QueueRow,
    logs: &[&LogRow],
) -> Option<String> {
    use QueueStatus as S;
    let before = logs.iter().rev().nth(1).map_or(S::Pending, |log| log.status);
    let is_parked = matches!(before, S::Running | S::Killing);
    match row.status {
        S::Success | S::Warning => None,
        S::Held if is_parked => None,
        // Whoever may not start twice stays in doubt; whoever may has tried as often as it may.
        S::Unknown if wanted.class.promise() == Promise::AtMost => None,
        S::Failed if wanted.failing > 0 => None,
        S::UpstreamFailed | S::Pending if order::blocked_by(records, wanted).is_some() => None,
        status => Some(format!("{status} after {before}, and nothing says why")),
    }
}
