//! The end of a row of `job_queue` as its body writes it, in its own transaction on this database.

use crate::db::SqlValue;
use crate::domain::id::{NodeId, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;

/// The end of a try whose body writes it itself, in its own transaction on this database: the
/// statement and its values, which must find one row. Accepted only for the current attempt and
/// owner, as `settle` is; a row that is being stopped has ended well all the same.
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
