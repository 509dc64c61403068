//! Applies the state of the other nodes to the batches here: where their jobs may run, what was
//! reported of them, and which nodes are dead.

use crate::domain::dag::Node as Place;
use crate::domain::id::{BatchId, NodeId, QueueId};
use crate::domain::job::Takes;
use crate::domain::time::Millis;
use crate::engine::attempt::run::{AttemptReport, What};
use crate::engine::cluster::registry::{Judged, NodeIntake, RemoteAttemptTable, Sites};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::writes::Changes;
use crate::handler;
use crate::store::hosted::{self, HostedReports, Reported, Unread};
use crate::store::node::{self, NodeMember};
use crate::store::{Stale, Tx};
use anyhow::Result;
use std::collections::{BTreeSet, HashMap, HashSet};

impl QueueDispatcher {
    /// What is known of attempts of a batch that is about to be read. An attempt of this node that
    /// has ended, and whose report is not written yet, is no longer a body here but did run.
    pub(super) fn others(
        &self,
        id: BatchId,
        members: &[NodeMember],
        judged: Judged,
        reports: &HostedReports,
    ) -> RemoteAttemptTable {
        let here = self.running.hosted.of_batch(id);
        let decided = self.fleet.held_locks.decided();
        let mut others = RemoteAttemptTable::new(members, judged, reports, here, decided);
        let late = self.reports.late.iter().filter(|late| late.by.is_none());
        let late = late.map(|late| (late.queue_id, late.attempt));
        let is_ended = |r: &&AttemptReport| r.by.is_none() && matches!(r.what, What::Ended(..));
        let waiting = self.reports.waiting.iter().filter(is_ended).map(|r| (r.queue_id, r.attempt));
        others.note_reported(late.chain(waiting), self.process.node.id());
        others
    }

    /// The nodes that may run jobs now; `freed` have ended, which is not committed yet.
    pub(super) fn sites(&self, freed: &[(BatchId, Place)]) -> Sites {
        let freed: HashSet<_> = freed.iter().copied().collect();
        let mut used = self.running.hosted.slots_used();
        let mut ours: HashMap<&NodeId, Vec<Millis>> = HashMap::new();
        for (id, active) in &self.batches.active {
            let works = |node: Place| {
                handler::kind_of(active.job_at(node)).takes == Takes::Slots
                    && !freed.contains(&(*id, node))
            };
            used += active.in_hand().filter(|node| works(*node)).count();
            for (node, there) in active.away.iter().filter(|(node, _)| works(**node)) {
                let since = active.row_at(*node).start_time.unwrap_or_default();
                ours.entry(there).or_default().push(since);
            }
        }
        let rest =
            if self.process.heart.is_resting() { NodeIntake::Rests } else { NodeIntake::Works };
        let labels = self.batches.active.values().flat_map(|a| a.labels.iter().cloned()).collect();
        self.fleet.sites(&self.process.node, rest, used, &ours, labels)
    }

    /// Notes that a job was given to another node, after the commit.
    pub(super) fn send_away(&mut self, id: BatchId, place: Place, node: NodeId) {
        self.fleet.poll_sooner(self.process.clock.uptime());
        if let Some(active) = self.batches.active.get_mut(&id) {
            active.away.insert(place, node);
        }
    }

    /// Polls the other nodes: which are alive, what they report, and what they give this node to
    /// run. `true` when there was anything.
    pub async fn look_around(&mut self) -> Result<bool> {
        let began = self.process.clock.uptime();
        let any = self.look_at_others().await?;
        self.fleet.note_look(self.process.clock.uptime().since(began));
        Ok(any)
    }

    async fn look_at_others(&mut self) -> Result<bool> {
        let mut any = false;
        if !self.batches.active.is_empty() {
            let now = self.process.clock.now();
            let mut tx = self.process.db.begin_read().await?;
            let mut members = node::members(&mut tx, now).await?;
            let is_awaited = self.batches.active.values().any(|a| !a.away.is_empty());
            let reports = match is_awaited {
                true => hosted::reports_for(&mut tx, self.process.node.id()).await?,
                false => HostedReports::default(),
            };
            drop(tx);
            members.retain(|m| m.node.node_id != *self.process.node.id());
            self.fleet.note_members(members, &reports);
            any = self.hear_reports(reports);
            if any {
                self.fleet.poll_sooner(self.process.clock.uptime());
            }
            self.mourn().await?;
        }
        Ok(self.run_remote_attempts().await? || any)
    }

    /// Applies reports of other nodes, each once; `true` when one is new.
    pub(super) fn hear_reports(&mut self, reports: HostedReports) -> bool {
        self.leave_unread(reports.unread);
        let mut any = false;
        for Reported { queue_id, attempt, owner, outcome } in reports.read {
            let is_it = |r: &AttemptReport| {
                r.queue_id == queue_id && r.attempt == attempt && matches!(r.what, What::Ended(..))
            };
            let is_late =
                self.reports.late.iter().any(|l| l.queue_id == queue_id && l.attempt == attempt);
            // A batch that is not in memory yet reads its reports later.
            if is_late
                || !self.batches.places.contains_key(&queue_id)
                || self.reports.waiting.iter().any(is_it)
            {
                continue;
            }
            any = true;
            let what = What::Ended(Box::new(outcome), Vec::new());
            self.reports.waiting.push(AttemptReport { queue_id, attempt, by: Some(owner), what });
        }
        any
    }

    /// Logs once per report that it cannot be read. Its row is left for a process that can read the
    /// report.
    fn leave_unread(&mut self, unread: Vec<Unread>) {
        for Unread { queue_id, attempt, owner, why } in unread {
            if self.fleet.note_unread((queue_id, attempt)) {
                tracing::error!(
                    queue_id = queue_id.0,
                    attempt,
                    node = owner.0,
                    error = why,
                    "the report of a try that has ended cannot be read; its job stays as it is until a \
                     process has the batch that can: start this one anew with the program of that node"
                );
            }
        }
    }

    /// Reads batches again whose jobs run on dead nodes; the rows then decide what becomes of the
    /// jobs.
    async fn mourn(&mut self) -> Result<()> {
        if !self.process.heart.may_take_over() {
            return Ok(());
        }
        let reported: HashSet<(QueueId, u32)> =
            self.reports.waiting.iter().map(|r| (r.queue_id, r.attempt)).collect();
        let (me, now) = (self.process.node.id(), self.process.clock.now());
        let (mut bereft, mut of_the_dead) = (BTreeSet::new(), HashSet::new());
        for (id, active) in &self.batches.active {
            for (place, there) in &active.away {
                let row = active.row_at(*place);
                let key = (row.queue_id, row.attempt);
                let is_dead = there != me && !self.fleet.lives(there);
                if !is_dead || reported.contains(&key) || self.fleet.is_unread(key) {
                    continue;
                }
                of_the_dead.insert(key);
                let waits =
                    active.waits_for_lock(*place) && !active.is_past_time_limit(*place, now);
                if !(waits && self.fleet.held_locks.is_awaited(key)) {
                    bereft.insert(*id);
                }
            }
        }
        self.fleet.held_locks.keep_only(&of_the_dead);
        if bereft.is_empty() {
            return Ok(());
        }
        self.course.stale = true;
        for id in bereft {
            self.load_batch(id).await?;
        }
        self.recount();
        self.course.stale = false;
        Ok(())
    }
}

/// Fails as stale when an attempt that `owed` has settled in this transaction was reported since
/// `known` was read: a silent node may still report until its row is locked, but not later.
pub(super) async fn refuse_overtaken(
    tx: &mut Tx,
    id: BatchId,
    owed: &Changes,
    known: &HostedReports,
) -> Result<()> {
    let settled = owed.settled.iter().map(|s| (s.queue_id, s.attempt));
    let adopted = owed.adopted.iter().map(|a| (a.queue_id, a.attempt));
    let written: HashSet<(QueueId, u32)> = settled.chain(adopted).collect();
    if written.is_empty() {
        return Ok(());
    }
    let known: HashSet<_> = known.tries().collect();
    let reports = hosted::reports_of(tx, id).await?;
    let news =
        reports.tries().filter(|this| written.contains(&(this.0, this.1)) && !known.contains(this));
    let (expected, news) = (u64::try_from(written.len())?, u64::try_from(news.count())?);
    match news {
        0 => Ok(()),
        _ => Err(Stale::Rows { expected, found: expected.saturating_sub(news) }.into()),
    }
}
