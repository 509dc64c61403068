//! Every statement of retention that finds rows, so that the plan of each can be checked.

use crate::db::{SqlValue, filled};
use crate::domain::job::queue::QueueStatus;

/// A statement that finds rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionQuery {
    /// The next group that has batches.
    NextGroup,
    /// The oldest of the newest successful batches of a group.
    NewestFrom,
    /// Batches of a group that ended long ago.
    Candidates,
    /// Batches with a row that is UNKNOWN.
    RowsUnknown,
    /// Batches with a row that has not ended or whose outcome is open.
    RowsOpen,
    /// Rows of batches with the open ledger entries of their batch number and code.
    Ledger,
    /// Batches with a notification that was not sent.
    Mails,
    /// Batches that a firing still follows.
    Firings,
    /// Batches with a marked job.
    Breaches,
    /// A batch, if it has rows in `job_execution_logs`.
    LeftLogs,
    /// A batch, if it has rows in `job_log_line`.
    LeftLines,
    /// Batches of a group that are kept for their own sake.
    Standing,
    /// The numbers of a group's batches.
    Numbers,
    /// Batches that have not ended.
    Open,
    /// Batches whose log lines may be removed.
    WithLines,
    /// Batches that are being removed.
    Marked,
    /// Rows of batches.
    Rows,
    /// The next rows of one batch.
    RowsAfter,
    /// Keys of the changes of rows.
    Logs,
    /// Number of log lines of rows, if they are few.
    Lines,
    /// Number of log lines of one row, if they are few.
    LinesOfOne,
    /// The last of so many lines of one row.
    LinesUpTo,
    /// Reports of batches.
    Reports,
    /// Keys of the stored values of rows.
    OutputValues,
    /// Executor runs of batches.
    Runs,
    /// Approvals of batches.
    Approvals,
    /// Marks of failures of batches.
    FailureMarks,
    /// Notifications of batches.
    MailsOf,
    /// Number of rows of batches.
    CountRows,
    /// Number of changes of rows.
    CountLogs,
    /// Number of log lines of rows.
    CountLines,
    /// Number of chunks of stored values of rows.
    CountOutputValues,
    /// Number of reports of batches.
    CountReports,
    /// Number of executor runs of batches.
    CountRuns,
    /// Number of approvals of batches.
    CountApprovals,
    /// Number of marks of failures of batches.
    CountFailureMarks,
    /// Number of notifications of batches.
    CountMails,
    /// Number of unfinished batches of a group.
    CountOpen,
    /// Number of batches of a group that ended late enough to be kept.
    CountYoung,
    /// Settled firings.
    Firing,
    /// Batches that firings refer to.
    OfFirings,
    /// Batches of backfills.
    OfBackfills,
    /// Sent notifications.
    SentMails,
    /// Ended backfills.
    Backfill,
    /// Audit records.
    Audit,
}

// A walk in chronological order compares the time twice: the first condition selects the index
// range, so that a page costs a page, whatever lies behind the cursor.
const NEXT_GROUP: &str = "SELECT MIN(group_code) AS group_code FROM job_batch WHERE group_code > ?";
const NEWEST_FROM: &str = "SELECT batch_id FROM job_batch WHERE group_code = ? AND status IN (?, ?) \
     ORDER BY batch_id DESC LIMIT 1 OFFSET ?";
const CANDIDATES: &str = "SELECT b.batch_id, b.batch_no, b.status, b.end_time, b.revision, \
     f.status AS backfill_status, p.status AS parent_status \
     FROM (SELECT batch_id, batch_no, status, end_time, revision, backfill_id, parent_queue_id \
     FROM job_batch WHERE group_code = ? AND end_time >= ? AND end_time < ? \
     AND (end_time > ? OR batch_id > ?) AND remove_time IS NULL ORDER BY end_time, batch_id LIMIT ?) b \
     LEFT JOIN backfill f ON f.backfill_id = b.backfill_id \
     LEFT JOIN job_queue q ON q.queue_id = b.parent_queue_id \
     LEFT JOIN job_batch p ON p.batch_id = q.batch_id ORDER BY b.end_time, b.batch_id";
const ROWS_UNKNOWN: &str =
    "SELECT DISTINCT batch_id FROM job_queue WHERE batch_id IN ({list}) AND status = 'UNKNOWN'";
const ROWS_OPEN: &str = "SELECT DISTINCT batch_id FROM job_queue WHERE batch_id IN ({list}) \
     AND (unresolved > 0 OR status IN ({open}))";
// The ledger contains only the job's code, which several groups may use; its key tells whose row it
// is.
const LEDGER: &str = "SELECT b.batch_id, b.group_code, b.batch_no, q.job_code, q.run_no, q.key_has_group, l.idem_key \
     FROM job_batch b \
     JOIN procession_ledger l ON l.batch_no = b.batch_no AND l.state = 'open' \
     JOIN job_queue q ON q.batch_id = b.batch_id AND q.job_code = l.job_code WHERE b.batch_id IN ({list})";
const MAILS: &str = "SELECT DISTINCT batch_id FROM email_notifications WHERE batch_id IN ({list}) \
     AND status IN ('pending', 'failed')";
const FIRINGS: &str = "SELECT DISTINCT parent_batch_id AS batch_id FROM job_firing \
     WHERE parent_batch_id IN ({list}) AND status IN ('PENDING', 'WAITING')";
const BREACHES: &str = "SELECT DISTINCT q.batch_id FROM tx_breach t \
     JOIN job_queue q ON q.queue_id = t.queue_id WHERE q.batch_id IN ({list})";
const LEFT_LOGS: &str = "SELECT q.batch_id FROM job_queue q \
     JOIN job_execution_logs l ON l.queue_id = q.queue_id WHERE q.batch_id = ? LIMIT 1";
const LEFT_LINES: &str = "SELECT q.batch_id FROM job_queue q \
     JOIN job_log_line l ON l.queue_id = q.queue_id WHERE q.batch_id = ? LIMIT 1";
const STANDING: &str = "SELECT batch_no, business_date FROM job_batch WHERE group_code = ? \
     AND remove_time IS NULL AND (end_time IS NULL OR end_time >= ? OR status NOT IN (?, ?) \
     OR batch_id >= ?)";
const NUMBERS: &str = "SELECT batch_no FROM job_batch WHERE group_code = ? AND remove_time IS NULL";
const OPEN: &str = "SELECT batch_id FROM job_batch WHERE status IN (?, ?)";
const WITH_LINES: &str = "SELECT batch_id, status, end_time FROM job_batch WHERE group_code = ? \
     AND end_time >= ? AND end_time < ? AND (end_time > ? OR batch_id > ?) AND remove_time IS NULL \
     AND (lines_time IS NULL OR lines_time < end_time) ORDER BY end_time, batch_id LIMIT ?";
const MARKED: &str = "SELECT batch_id FROM job_batch WHERE remove_time IS NOT NULL \
     ORDER BY remove_time, batch_id LIMIT ?";
const ROWS: &str = "SELECT queue_id FROM job_queue WHERE batch_id IN ({list}) LIMIT ?";
const ROWS_AFTER: &str = "SELECT queue_id FROM job_queue WHERE batch_id = ? AND queue_id > ? \
     ORDER BY queue_id LIMIT ?";
const LOGS: &str = "SELECT log_id FROM job_execution_logs WHERE queue_id IN ({list}) LIMIT ?";
// The inner limit bounds what is read: one attempt may have printed a hundred thousand lines.
const LINES: &str = "SELECT queue_id, COUNT(*) AS n FROM (SELECT queue_id FROM job_log_line \
     WHERE queue_id IN ({list}) LIMIT ?) t GROUP BY queue_id";
const LINES_OF_ONE: &str = "SELECT COUNT(*) AS n FROM (SELECT queue_id FROM job_log_line \
     WHERE queue_id = ? LIMIT ?) t";
const LINES_UP_TO: &str = "SELECT attempt, line_no FROM job_log_line WHERE queue_id = ? \
     ORDER BY attempt, line_no LIMIT 1 OFFSET ?";
const REPORTS: &str = "SELECT queue_id, attempt FROM job_report WHERE batch_id IN ({list}) LIMIT ?";
const OUTPUT_VALUES: &str = "SELECT queue_id, attempt, value_no, chunk_no FROM job_output_value \
     WHERE queue_id IN ({list}) LIMIT ?";
const COUNT_OUTPUT_VALUES: &str =
    "SELECT COUNT(*) AS n FROM job_output_value WHERE queue_id IN ({list})";
const RUNS: &str = "SELECT log_id FROM executor_run WHERE batch_id IN ({list}) LIMIT ?";
const APPROVALS: &str = "SELECT approval_id FROM job_approval WHERE batch_id IN ({list}) LIMIT ?";
const FAILURE_MARKS: &str = "SELECT queue_id FROM failure_mark WHERE batch_id IN ({list}) LIMIT ?";
const MAILS_OF: &str = "SELECT id FROM email_notifications WHERE batch_id IN ({list}) \
     AND status NOT IN ('pending', 'failed') LIMIT ?";
const COUNT_ROWS: &str = "SELECT COUNT(*) AS n FROM job_queue WHERE batch_id IN ({list})";
const COUNT_REPORTS: &str = "SELECT COUNT(*) AS n FROM job_report WHERE batch_id IN ({list})";
const COUNT_RUNS: &str = "SELECT COUNT(*) AS n FROM executor_run WHERE batch_id IN ({list})";
const COUNT_APPROVALS: &str = "SELECT COUNT(*) AS n FROM job_approval WHERE batch_id IN ({list})";
const COUNT_FAILURE_MARKS: &str =
    "SELECT COUNT(*) AS n FROM failure_mark WHERE batch_id IN ({list})";
const COUNT_MAILS: &str = "SELECT COUNT(*) AS n FROM email_notifications \
     WHERE batch_id IN ({list}) AND status NOT IN ('pending', 'failed')";
// By keys of rows and not by a join: for a join PostgreSQL would read all logs for 64 batches.
const COUNT_LOGS: &str = "SELECT COUNT(*) AS n FROM job_execution_logs WHERE queue_id IN ({list})";
const COUNT_LINES: &str = "SELECT COUNT(*) AS n FROM job_log_line WHERE queue_id IN ({list})";
const COUNT_OPEN: &str =
    "SELECT COUNT(*) AS n FROM job_batch WHERE group_code = ? AND end_time IS NULL";
const COUNT_YOUNG: &str =
    "SELECT COUNT(*) AS n FROM job_batch WHERE group_code = ? AND end_time >= ?";
const FIRING: &str = "SELECT f.firing_id AS row_id, f.fire_at AS at_time, 0 AS others, \
     0 AS of_batch, CASE WHEN NOT EXISTS (SELECT 1 FROM job_firing n \
     WHERE n.trigger_id = f.trigger_id AND n.planned_at > f.planned_at) THEN 1 \
     WHEN EXISTS (SELECT 1 FROM job_batch b WHERE b.firing_id = f.firing_id) \
     OR EXISTS (SELECT 1 FROM job_batch b WHERE b.batch_id = f.parent_batch_id) \
     THEN 2 ELSE 0 END AS needed \
     FROM (SELECT firing_id, fire_at, trigger_id, planned_at, parent_batch_id FROM job_firing \
     WHERE status = ? AND fire_at >= ? AND fire_at < ? AND (fire_at > ? OR firing_id > ?) \
     ORDER BY fire_at, firing_id LIMIT ?) f ORDER BY f.fire_at, f.firing_id";
const OF_FIRINGS: &str = "SELECT firing_id AS row_id, batch_id FROM job_batch \
     WHERE firing_id IN ({list}) UNION ALL SELECT f.firing_id, b.batch_id FROM job_firing f \
     JOIN job_batch b ON b.batch_id = f.parent_batch_id WHERE f.firing_id IN ({list})";
const OF_BACKFILLS: &str = "SELECT f.backfill_id AS row_id, b.batch_id FROM backfill f \
     JOIN backfill_batch e ON e.backfill_id = f.backfill_id \
     JOIN job_batch b ON b.batch_no = e.batch_no AND b.group_code = f.group_code \
     AND b.backfill_id = f.backfill_id WHERE f.backfill_id IN ({list})";
const SENT_MAILS: &str = "SELECT id AS row_id, send_time AS at_time, 0 AS others, \
     COALESCE(batch_id, 0) AS of_batch, CASE WHEN status IN ('pending', 'failed') THEN 1 ELSE 0 END \
     AS needed FROM email_notifications \
     WHERE send_time >= ? AND send_time < ? AND (send_time > ? OR id > ?) \
     ORDER BY send_time, id LIMIT ?";
const BACKFILL: &str = "SELECT f.backfill_id AS row_id, f.end_time AS at_time, \
     (SELECT COUNT(*) FROM backfill_batch e WHERE e.backfill_id = f.backfill_id) AS others, \
     0 AS of_batch, CASE WHEN EXISTS (SELECT 1 FROM backfill_batch e \
     JOIN job_batch b ON b.batch_no = e.batch_no AND b.group_code = f.group_code \
     WHERE e.backfill_id = f.backfill_id AND b.backfill_id = f.backfill_id) \
     THEN 2 ELSE 0 END AS needed FROM (SELECT backfill_id, end_time, group_code FROM backfill \
     WHERE status = ? AND end_time >= ? AND end_time < ? AND (end_time > ? OR backfill_id > ?) \
     ORDER BY end_time, backfill_id LIMIT ?) f ORDER BY f.end_time, f.backfill_id";
const AUDIT: &str = "SELECT audit_id AS row_id, create_time AS at_time, 0 AS others, \
     0 AS of_batch, 0 AS needed \
     FROM audit_log WHERE create_time >= ? AND create_time < ? AND (create_time > ? OR audit_id > ?) \
     ORDER BY create_time, audit_id LIMIT ?";

impl RetentionQuery {
    /// Every statement.
    pub const ALL: [Self; 45] = [
        Self::NextGroup,
        Self::NewestFrom,
        Self::Candidates,
        Self::RowsUnknown,
        Self::RowsOpen,
        Self::Ledger,
        Self::Mails,
        Self::Firings,
        Self::Breaches,
        Self::LeftLogs,
        Self::LeftLines,
        Self::Standing,
        Self::Numbers,
        Self::Open,
        Self::WithLines,
        Self::Marked,
        Self::Rows,
        Self::RowsAfter,
        Self::Logs,
        Self::Lines,
        Self::LinesOfOne,
        Self::LinesUpTo,
        Self::Reports,
        Self::OutputValues,
        Self::CountOutputValues,
        Self::Runs,
        Self::Approvals,
        Self::FailureMarks,
        Self::MailsOf,
        Self::CountRows,
        Self::CountLogs,
        Self::CountLines,
        Self::CountReports,
        Self::CountRuns,
        Self::CountApprovals,
        Self::CountFailureMarks,
        Self::CountMails,
        Self::CountOpen,
        Self::CountYoung,
        Self::Firing,
        Self::OfFirings,
        Self::OfBackfills,
        Self::SentMails,
        Self::Backfill,
        Self::Audit,
    ];

    fn template(self) -> &'static str {
        match self {
            Self::NextGroup => NEXT_GROUP,
            Self::NewestFrom => NEWEST_FROM,
            Self::Candidates => CANDIDATES,
            Self::RowsUnknown => ROWS_UNKNOWN,
            Self::RowsOpen => ROWS_OPEN,
            Self::Ledger => LEDGER,
            Self::Mails => MAILS,
            Self::Firings => FIRINGS,
            Self::Breaches => BREACHES,
            Self::LeftLogs => LEFT_LOGS,
            Self::LeftLines => LEFT_LINES,
            Self::Standing => STANDING,
            Self::Numbers => NUMBERS,
            Self::Open => OPEN,
            Self::WithLines => WITH_LINES,
            Self::Marked => MARKED,
            Self::Rows => ROWS,
            Self::RowsAfter => ROWS_AFTER,
            Self::Logs => LOGS,
            Self::Lines => LINES,
            Self::LinesOfOne => LINES_OF_ONE,
            Self::LinesUpTo => LINES_UP_TO,
            Self::Reports => REPORTS,
            Self::OutputValues => OUTPUT_VALUES,
            Self::CountOutputValues => COUNT_OUTPUT_VALUES,
            Self::Runs => RUNS,
            Self::Approvals => APPROVALS,
            Self::FailureMarks => FAILURE_MARKS,
            Self::MailsOf => MAILS_OF,
            Self::CountRows => COUNT_ROWS,
            Self::CountLogs => COUNT_LOGS,
            Self::CountLines => COUNT_LINES,
            Self::CountReports => COUNT_REPORTS,
            Self::CountRuns => COUNT_RUNS,
            Self::CountApprovals => COUNT_APPROVALS,
            Self::CountFailureMarks => COUNT_FAILURE_MARKS,
            Self::CountMails => COUNT_MAILS,
            Self::CountOpen => COUNT_OPEN,
            Self::CountYoung => COUNT_YOUNG,
            Self::Firing => FIRING,
            Self::OfFirings => OF_FIRINGS,
            Self::OfBackfills => OF_BACKFILLS,
            Self::SentMails => SENT_MAILS,
            Self::Backfill => BACKFILL,
            Self::Audit => AUDIT,
        }
    }

    /// The statement, with `places` keys in its list if it has one.
    pub fn statement(self, places: usize) -> String {
        let words = QueueStatus::ALL.into_iter().filter(|status| !status.is_final());
        let open: Vec<String> = words.map(|status| format!("'{}'", status.as_str())).collect();
        let list = vec!["?"; places].join(", ");
        self.template().replace("{list}", &list).replace("{open}", &open.join(", "))
    }
}

/// Maximum number of keys in a list. MariaDB turns a list of 1,000 and more into a subquery, and
/// then reads the whole table.
const LIST_MOST: usize = 256;

/// A statement for any number of keys, in as few texts as there are powers of two: the list is
/// padded with its last key, so that the texts stay prepared.
pub fn placed(
    text: RetentionQuery,
    ids: &[i64],
    last: &[SqlValue],
) -> Vec<(String, Vec<SqlValue>)> {
    ids.chunks(LIST_MOST)
        .map(|chunk| {
            let (_, mut values) = filled(chunk);
            let size = values.len();
            values.extend_from_slice(last);
            (text.statement(size), values)
        })
        .collect()
}
