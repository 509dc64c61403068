//! Rows that a dead process left running: settled by the rules, or ended because a stop was
//! requested. No I/O.

use crate::domain::dag::Node;
use crate::domain::dispatch::settlement::{Settlement, settle_orphan};
use crate::domain::id::NodeId;
use crate::domain::job::JobDef;
use crate::domain::job::queue::{Acknowledgement, QueueEntry, QueueEvent, QueueStatus};
use crate::domain::time::Millis;
use crate::engine::cluster::registry::RemoteAttemptTable;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::writes::Changes;
use crate::handler::{self, StopReason};
use crate::store::hosted::Untaken;
use crate::store::queue::Adopted;

/// A row in a running state whose body this process does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OrphanRow {
    /// Claimed by this process, and the answer to the commit was lost: bodies start only after the
    /// commit, so this one never did.
    NeverStarted,
    /// A stop was requested; what a dead process left of it may still run.
    WantedDead(StopReason),
    /// Its process died.
    Lost,
    /// Its node died before it took the row, so its body never began.
    NeverTaken,
}

impl Active {
    /// Settles what a dead process left running, and rows that were claimed here and never started.
    /// May be called repeatedly for the same rows: what was committed before is not repeated.
    pub(super) fn adopt_orphans(
        &mut self,
        me: &NodeId,
        park_after: u32,
        changes: &mut Changes,
        now: Millis,
    ) {
        for i in 0..self.rows.len() {
            let node = Node(i as u32);
            match self.found(node, me) {
                None => {}
                Some(OrphanRow::NeverTaken) => self.place_again(node, changes, now),
                Some(OrphanRow::NeverStarted) => self.start_later(node, changes, now),
                Some(OrphanRow::WantedDead(reason)) => {
                    self.take_over(node, me, reason, changes, now)
                }
                Some(OrphanRow::Lost) => self.settle_lost(node, park_after, changes, now),
            }
        }
    }

    /// Notes which jobs run on other nodes, and takes over those that ran here for another node.
    /// Attempts of dead nodes whose locks may still be held on their data sources count as running
    /// there until that is decided, or until their time limit passes.
    pub(super) fn come_home(&mut self, me: &NodeId, others: &RemoteAttemptTable, now: Millis) {
        for i in 0..self.rows.len() {
            let (node, row) = (Node(i as u32), &self.rows[i]);
            let Some(owner) = row.owner.clone() else { continue };
            let may_be_ours = match row.status {
                QueueStatus::Running | QueueStatus::Killing => owner == *me,
                // Its body has ended the row itself and reports that soon.
                QueueStatus::Success | QueueStatus::Warning => owner == *me,
                QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued => false,
                QueueStatus::RetryWait | QueueStatus::Failed | QueueStatus::Timeout => false,
                QueueStatus::Killed | QueueStatus::Skipped | QueueStatus::NotTaken => false,
                QueueStatus::UpstreamFailed | QueueStatus::Forced | QueueStatus::Unknown => false,
            };
            if may_be_ours && let Some(stop) = others.here.get(&(row.queue_id, row.attempt)) {
                self.stops.insert(node, stop.clone());
            }
            let (key, runs) = (
                (row.queue_id, row.attempt),
                matches!(row.status, QueueStatus::Running | QueueStatus::Killing),
            );
            let is_away = others.has_attempt(row.queue_id, row.attempt, &owner, me);
            if !runs || self.stops.contains_key(&node) {
                continue;
            }
            let may_be_held = owner != *me && !others.decided_locks.contains(&key);
            if is_away {
                self.away.insert(node, owner);
            } else if may_be_held && self.waits_for_lock(node) {
                if self.is_past_time_limit(node, now) {
                    self.overdue.insert(node);
                } else {
                    self.away.insert(node, owner);
                    self.lock_waits.insert(node);
                }
            }
        }
    }

    fn found(&self, node: Node, me: &NodeId) -> Option<OrphanRow> {
        let row = self.row_at(node);
        let is_ours = row.owner.as_ref() == Some(me);
        match row.status {
            _ if self.away.contains_key(&node) => None,
            QueueStatus::Running | QueueStatus::Killing
                if is_ours && self.stops.contains_key(&node) =>
            {
                None
            }
            // KILLING without a message, in a batch that is not being stopped, comes only from a
            // time limit.
            QueueStatus::Killing if !self.killing && !row.is_wanted_dead() => {
                Some(OrphanRow::WantedDead(StopReason::TimedOut))
            }
            QueueStatus::Killing => Some(OrphanRow::WantedDead(StopReason::Killed)),
            QueueStatus::Running if is_ours => Some(OrphanRow::NeverStarted),
            QueueStatus::Running if self.overdue.contains(&node) => {
                Some(OrphanRow::WantedDead(StopReason::TimedOut))
            }
            QueueStatus::Running if row.taken == Acknowledgement::NotYet => {
                Some(OrphanRow::NeverTaken)
            }
            QueueStatus::Running if self.killing => Some(OrphanRow::WantedDead(StopReason::Killed)),
            QueueStatus::Running => Some(OrphanRow::Lost),
            QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued => None,
            QueueStatus::RetryWait | QueueStatus::Success | QueueStatus::Warning => None,
            QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::Killed => None,
            QueueStatus::Skipped | QueueStatus::NotTaken | QueueStatus::UpstreamFailed => None,
            QueueStatus::Forced | QueueStatus::Unknown => None,
        }
    }

    fn place_again(&mut self, node: Node, changes: &mut Changes, now: Millis) {
        let row = self.row_at(node);
        let message = format!("{} before it took the job; it goes to another", worker_died(row));
        let settlement = Settlement {
            event: QueueEvent::Orphan,
            try_count: row.try_count,
            not_before: Some(now),
            message: Some(message),
            tell_owners: false,
            unresolved: row.unresolved,
        };
        changes.withdrawn.extend(row.owner.clone().map(|owner| Untaken {
            queue_id: row.queue_id,
            attempt: row.attempt,
            owner,
        }));
        self.record_end(node, &settlement, None, changes, now);
    }

    fn start_later(&mut self, node: Node, changes: &mut Changes, now: Millis) {
        let row = self.row_at(node);
        let settlement = Settlement {
            event: QueueEvent::Orphan,
            try_count: row.try_count,
            not_before: Some(now),
            message: Some("claimed, but never started: the database was away".to_owned()),
            tell_owners: false,
            unresolved: row.unresolved,
        };
        self.record_end(node, &settlement, None, changes, now);
    }

    /// Takes the row over in the state in which it is to be ended; its attempt number does not
    /// change, so that the owner check refuses any later report of its process. What is left of the
    /// body is ended after the commit (`to_end`); if this process dies as well, the next one does
    /// the same.
    fn take_over(
        &mut self,
        node: Node,
        me: &NodeId,
        reason: StopReason,
        changes: &mut Changes,
        now: Millis,
    ) {
        self.to_end.push((node, reason));
        let row = &mut self.rows[node.index()];
        if row.owner.as_ref() == Some(me) {
            return;
        }
        let died = worker_died(row);
        row.crash_count += 1;
        changes.adopted.push(Adopted {
            queue_id: row.queue_id,
            attempt: row.attempt,
            from: row.status,
            owner: row.owner.replace(me.clone()),
            crash_count: row.crash_count,
        });
        row.waits_on = None;
        if row.status == QueueStatus::Running {
            row.status = QueueStatus::Killing;
            self.change(node, QueueStatus::Killing);
        }
        self.log_change(node, changes, now);
        if let Some(log) = changes.logs.last_mut() {
            log.error_message = Some(format!("{died}; what it left running is ended"));
        }
    }

    fn settle_lost(&mut self, node: Node, park_after: u32, changes: &mut Changes, now: Millis) {
        let (job, kind) = (self.job_at(node), handler::kind_of(self.job_at(node)));
        let crashes = self.row_at(node).crash_count + 1;
        let event = settle_orphan(job, kind.after_crash, crashes, park_after);
        let row = self.row_at(node);
        let settlement = Settlement {
            event,
            try_count: row.try_count,
            not_before: (event == QueueEvent::Orphan).then_some(now),
            message: Some(self.words(job, row, event, crashes)),
            tell_owners: event != QueueEvent::Orphan,
            unresolved: row.unresolved + u32::from(job.is_looked_up()),
        };
        self.rows[node.index()].crash_count = crashes;
        self.record_end(node, &settlement, None, changes, now);
    }

    /// What is said of a row whose process died.
    fn words(&self, job: &JobDef, row: &QueueEntry, event: QueueEvent, crashes: u32) -> String {
        let (no, died) = (&self.batch.values.batch_no, worker_died(row));
        match event {
            QueueEvent::Orphan if job.is_looked_up() => {
                format!("{died} while it ran; the next try looks up what became of it")
            }
            QueueEvent::Orphan => format!("{died}; starts again, which is safe"),
            QueueEvent::Park => format!(
                "{crashes} workers in a row died while it ran; parked. Look at it, then: procession \
                 job release {no} {} --group {} --reason WHY",
                job.code, self.batch.values.group
            ),
            QueueEvent::Fail => format!(
                "{died} while it ran; whether it took effect is not known, which its definition counts \
                 as failed (on_unknown: fail)"
            ),
            // The hint is given where the row is explained (`why`).
            _ => format!("{died} while it ran; whether it took effect is not known"),
        }
    }
}

/// `its worker (node 1a2b) died`
fn worker_died(row: &QueueEntry) -> String {
    let owner = row.owner.as_ref().and_then(|o| o.0.split('-').next()).unwrap_or("unknown");
    format!("its worker (node {owner}) died")
}
