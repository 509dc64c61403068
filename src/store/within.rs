//! The end of a row of `job_queue`, written by its body in its own transaction on the metadata
//! database.

use crate::db::SqlValue;
use crate::domain::id::{NodeId, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;

/// The statement and values that end an attempt within the transaction of its body; it must change
/// one row. Accepted only for the present attempt and owner, like `settle`; a row that is being
/// stopped has succeeded nevertheless.
pub fn end_within(
    queue_id: QueueId,
    attempt: u32,
    owner: &NodeId,
    to: QueueStatus,
    message: Option<&str>,
    outputs: Option<&str>,
    now: Millis,
) -> (String, Vec<SqlValue>) {
    let sql = "UPDATE job_queue SET status = ?, error_message = ?, outputs = ?, not_before = NULL, \
               crash_count = 0, unresolved = 0, waits_on = NULL, hosted_by = NULL, end_time = ?, \
               update_time = ? \
               WHERE queue_id = ? AND attempt = ? AND owner = ? AND status IN (?, ?)";
    let values = vec![
        to.as_str().into(),
        message.into(),
        outputs.into(),
        now.to_utc().into(),
        now.to_utc().into(),
        queue_id.0.into(),
        attempt.into(),
        owner.0.as_str().into(),
        QueueStatus::Running.as_str().into(),
        QueueStatus::Killing.as_str().into(),
    ];
    (sql.to_owned(), values)
}
