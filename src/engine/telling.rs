//! What whoever watches a batch hears of it. No I/O.

use crate::domain::dag::Node;
use crate::domain::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::engine::News;
use crate::engine::active::Active;

impl Active {
    /// A job as whoever watches hears of it.
    pub(super) fn news(&self, node: Node, now: Millis) -> News {
        let row = &self.rows[node.at()];
        let tried = matches!(row.status, QueueStatus::Running) || row.end_time.is_some();
        let end_time = row.end_time.filter(|_| row.status != QueueStatus::Running);
        let took = row.start_time.filter(|_| tried).zip(end_time);
        News {
            at: now,
            batch_no: self.batch.values.batch_no.clone(),
            group: self.batch.values.group.clone(),
            job_code: row.job_code.clone(),
            status: row.status,
            attempt: row.attempt,
            took_ms: took.map(|(s, e)| e.since(s)),
            message: row.error_message.clone(),
            not_before: row.not_before.filter(|_| row.status == QueueStatus::RetryWait),
        }
    }

    /// What operators changed since `before` was read. Not what runs: that was told when it started,
    /// and `before` may hold ends that were not committed.
    pub(super) fn changed_since(&self, before: &Self, now: Millis) -> Vec<News> {
        let rows = self.rows.iter().zip(&before.rows);
        let told = |new: QueueStatus, old: QueueStatus| new != old && new != QueueStatus::Running;
        let changed = (0..).zip(rows).filter(|(_, (new, old))| told(new.status, old.status));
        changed.map(|(place, _)| self.news(Node(place), now)).collect()
    }
}
