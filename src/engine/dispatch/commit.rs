//! The commit of a beat: one statement where that is all it takes, else a transaction of several.

use crate::domain::time::Millis;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::writes::Changes;
use crate::store::Together;
use anyhow::Result;

impl QueueDispatcher {
    /// Writes changes that memory has made already; whatever goes wrong, memory is read anew before
    /// the next beat, because after a lost COMMIT only the rows know.
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

    /// Writes what a hop has in one statement, where that can be done. `false` when nothing was written:
    /// by several statements, or to learn what was refused.
    async fn commit_hop(&self, changes: &Changes, now: Millis) -> Result<bool> {
        if !self.process.db.takes_together() {
            return Ok(false);
        }
        let hop = changes.single_statements(self.process.node.id(), self.process.db.dialect(), now);
        let Some(hop) = hop else { return Ok(false) };
        before_commit(changes);
        Ok(self.process.db.commit_together(hop).await? == Together::Done)
    }
}

/// The places at which a test ends the process while nothing is committed yet.
fn before_commit(changes: &Changes) {
    if !changes.settled.is_empty() {
        failpoint!("complete.before_commit");
    }
    if !changes.claimed.is_empty() {
        failpoint!("claim.before");
    }
}
