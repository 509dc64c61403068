//! The commit of a tick: one statement where that suffices, else a transaction of several.

use crate::domain::time::Millis;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::writes::Changes;
use crate::store::Together;
use anyhow::Result;

impl QueueDispatcher {
    /// Writes changes that are already made in memory; on any error memory is read again before the
    /// next tick, because after a lost COMMIT only the rows know the truth.
    pub(super) async fn commit(&mut self, changes: &Changes, now: Millis) -> Result<()> {
        self.course.stale = true;
        if !self.commit_hop(changes, now).await? {
            let mut tx = self.process.db.begin().await?;
            changes.write(&mut tx, self.process.node.id(), now).await?;
            before_commit(changes);
            tx.commit().await?;
        }
        tracing::trace!(target: "procession::moment", id = 0, "committed");
        if !changes.settled.is_empty() {
            failpoint!("complete.after_commit");
        }
        if !changes.claimed.is_empty() {
            failpoint!("claim.after");
        }
        self.course.stale = false;
        self.trace(&changes.ended, &changes.finished, now);
        Ok(())
    }

    /// Writes the changes of a hop in one statement where possible. `false` when nothing was
    /// written: several statements are needed, or one that was refused must be identified.
    async fn commit_hop(&self, changes: &Changes, now: Millis) -> Result<bool> {
        if !self.process.db.takes_together() {
            return Ok(false);
        }
        let hop = changes.single_statements(self.process.node.id(), &self.process.db, now);
        let Some(hop) = hop else { return Ok(false) };
        before_commit(changes);
        Ok(self.process.db.commit_together(hop).await? == Together::Done)
    }
}

/// Failpoints at which a test ends the process before anything is committed.
fn before_commit(changes: &Changes) {
    if !changes.settled.is_empty() {
        failpoint!("complete.before_commit");
    }
    if !changes.claimed.is_empty() {
        failpoint!("claim.before");
    }
}
