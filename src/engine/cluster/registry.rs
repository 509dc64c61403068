//! The other nodes: where jobs of batches that are dispatched here may run, who of them lives, and
//! what they report.
//!
//! The process that has a batch stays the only one that writes its rows. One that runs a job for it
//! writes a report, and this one settles it as if it came from a body of its own.

use crate::domain::dag::Node as Place;
use crate::domain::id::{BatchId, NodeId, QueueId};
use crate::domain::job::Takes;
use crate::domain::lease::Uptime;
use crate::domain::node_placement::{self, Bodies, Load, Roles, Site, Want};
use crate::domain::slots::{Resource, Slots};
use crate::domain::time::Millis;
use crate::engine::attempt::run::{Report, What};
use crate::engine::cluster::held_locks::{AttemptKey, HeldLocks};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::writes::{Changes, Runner};
use crate::handler::{self, StopReason};
use crate::store::hosted::{self, Reported, Reports, Unread};
use crate::store::node::{self, Member};
use crate::store::{Stale, Tx};
use anyhow::Result;
use std::collections::{BTreeSet, HashMap, HashSet};
use tokio::sync::watch;

/// What this node is for, and the others that lived when it was last looked.
pub(in crate::engine) struct Fleet {
    pub(in crate::engine) roles: Roles,
    labels: Vec<String>,
    pub(in crate::engine) max_parallel: u32,
    peers: Vec<Member>,
    /// Tries whose reports this program cannot read, and that was said.
    unread: HashSet<(QueueId, u32)>,
    /// When something last went to another node or came from one.
    stirred_at: Option<Uptime>,
    /// Milliseconds that the last look at them took.
    look_ms: i64,
    /// What data sources say of attempts of those that are dead.
    pub(in crate::engine) held_locks: HeldLocks,
}

impl Fleet {
    pub(in crate::engine) fn new(roles: Roles, labels: Vec<String>, max_parallel: u32) -> Self {
        let (peers, unread) = (Vec::new(), HashSet::new());
        let held_locks = HeldLocks::default();
        Self {
            roles,
            labels,
            max_parallel,
            peers,
            unread,
            stirred_at: None,
            look_ms: 0,
            held_locks,
        }
    }

    /// Something went to another node or came from one: more may come soon.
    pub(in crate::engine) fn stir(&mut self, at: Uptime) {
        self.stirred_at = Some(at);
    }

    /// Milliseconds since something last went to another node or came from one.
    pub(in crate::engine) fn quiet_ms(&self, now: Uptime) -> i64 {
        self.stirred_at.map_or(i64::MAX, |at| now.since(at))
    }

    /// Milliseconds that the last look at the other nodes took.
    pub(in crate::engine) fn look_ms(&self) -> i64 {
        self.look_ms
    }

    fn lives(&self, id: &NodeId) -> bool {
        self.peers.iter().any(|peer| peer.node.node_id == *id)
    }
}

/// What is known of tries whose rows name other nodes than the one that reads them.
#[derive(Debug, Default)]
pub(in crate::engine) struct Others {
    /// Nodes that live, or may: what they run is theirs.
    living: HashSet<NodeId>,
    /// Whether a node that is not among them is dead.
    judged: Judged,
    /// Tries that have ended, as their nodes reported; settled soon.
    reported: HashSet<(QueueId, u32, NodeId)>,
    /// Tries that run in this very process, with their switches.
    pub(in crate::engine) here: HashMap<(QueueId, u32), watch::Sender<Option<StopReason>>>,
    /// Tries whose locks on their data sources need not be waited for.
    pub(in crate::engine) decided_locks: HashSet<AttemptKey>,
}

/// Whether it may be said of a node that it is dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) enum Judged {
    /// Whoever has no lease is.
    ByLease,
    /// Nobody is: leases may have run out because the database was away.
    #[default]
    NotYet,
}

impl Others {
    pub(in crate::engine) fn new(
        members: &[Member],
        judged: Judged,
        reports: &Reports,
        here: HashMap<(QueueId, u32), watch::Sender<Option<StopReason>>>,
    ) -> Self {
        let living = members.iter().map(|m| m.node.node_id.clone()).collect();
        let reported = reports.tries().map(|(row, attempt, by)| (row, attempt, by.clone()));
        let decided_locks = HashSet::new();
        Self { living, judged, reported: reported.collect(), here, decided_locks }
    }

    /// Whether a try is in the hands of another node, or has been and will be settled by its report.
    pub(in crate::engine) fn has(
        &self,
        queue_id: QueueId,
        attempt: u32,
        owner: &NodeId,
        me: &NodeId,
    ) -> bool {
        let lives = self.judged == Judged::NotYet || self.living.contains(owner);
        (owner != me && lives) || self.reported.contains(&(queue_id, attempt, owner.clone()))
    }
}

/// Where jobs may run at this beat; taken room is not given twice.
pub(in crate::engine) struct Sites {
    here: Site,
    others: Vec<Site>,
    labels: BTreeSet<String>,
}

impl Sites {
    /// The node of this process, and the others.
    pub(in crate::engine) fn into_nodes(self) -> (Site, Vec<Site>) {
        (self.here, self.others)
    }

    /// Which node runs a job whose place is free; `None` stays here.
    pub(in crate::engine) fn assign(&mut self, want: Option<Want<'_>>) -> Runner {
        let Some(want) = want else { return Runner::Here };
        let took = u32::from(want.takes == Takes::Slots);
        match node_placement::place(want, &self.here, &self.others) {
            node_placement::Place::There(id) => {
                for site in self.others.iter_mut().filter(|site| site.node == id) {
                    site.room = site.room.saturating_sub(took);
                }
                Runner::There(id)
            }
            // Nowhere cannot come: what is offered is the sum of what is free.
            node_placement::Place::Here | node_placement::Place::Nowhere(_) => {
                self.here.room = self.here.room.saturating_sub(took);
                Runner::Here
            }
        }
    }

    /// Sets the limits of places to what is free now.
    pub(in crate::engine) fn offer(&self, slots: &mut Slots) {
        let labels = self.labels.iter().map(|label| Some(label.as_str()));
        for label in labels.chain([None]) {
            let room = label.map_or(Resource::Total, |label| Resource::Label(label.to_owned()));
            slots.offer(room, node_placement::room_for(label, &self.here, &self.others));
            let sites = node_placement::sites_for(label, &self.here, &self.others);
            slots.offer(Resource::Node(label.map(str::to_owned)), sites);
        }
    }
}

impl QueueDispatcher {
    /// What is known of tries of a batch that is about to be read. A try of this node that has ended,
    /// and whose report is not written yet, is no body here any more and did run all the same.
    pub(in crate::engine) fn others(
        &self,
        id: BatchId,
        members: &[Member],
        judged: Judged,
        reports: &Reports,
    ) -> Others {
        let mut others = Others::new(members, judged, reports, self.hosted.of_batch(id));
        let late = self.late.iter().filter(|late| late.by.is_none());
        let late = late.map(|late| (late.queue_id, late.attempt));
        let is_ended = |r: &&Report| r.by.is_none() && matches!(r.what, What::Ended(..));
        let waiting = self.waiting.iter().filter(is_ended).map(|r| (r.queue_id, r.attempt));
        let ours = |(row, attempt)| (row, attempt, self.node.id().clone());
        others.reported.extend(late.chain(waiting).map(ours));
        others.decided_locks = self.fleet.held_locks.decided();
        others
    }

    /// Where jobs may run now; `freed` have ended, which is not committed yet.
    pub(in crate::engine) fn sites(&self, freed: &[(BatchId, Place)]) -> Sites {
        let freed: HashSet<_> = freed.iter().copied().collect();
        let mut used = self.hosted.used();
        let mut ours: HashMap<&NodeId, Vec<Millis>> = HashMap::new();
        for (id, active) in &self.active {
            let works = |node: Place| {
                handler::kind_of(active.job(node)).takes == Takes::Slots
                    && !freed.contains(&(*id, node))
            };
            used += active.in_hand().filter(|node| works(*node)).count();
            for (node, there) in active.away.iter().filter(|(node, _)| works(**node)) {
                let since = active.row(*node).start_time.unwrap_or_default();
                ours.entry(there).or_default().push(since);
            }
        }
        let fleet = &self.fleet;
        let rests = self.heart.is_resting();
        let here = Site {
            node: self.node.id().clone(),
            name: self.node.name().to_owned(),
            labels: fleet.labels.clone(),
            bodies: if rests { Bodies::Elsewhere } else { node_placement::runs_own(&fleet.roles) },
            room: fleet.max_parallel.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX)),
        };
        let others = fleet.peers.iter().map(|peer| site(peer, &ours)).collect();
        let labels = self.active.values().flat_map(|a| a.labels.iter().cloned()).collect();
        Sites { here, others, labels }
    }

    /// A job was given to another node, and that is committed.
    pub(in crate::engine) fn send_away(&mut self, id: BatchId, place: Place, node: NodeId) {
        self.fleet.stir(self.clock.uptime());
        if let Some(active) = self.active.get_mut(&id) {
            active.away.insert(place, node);
        }
    }

    /// Looks what other nodes have to say: which live, what they report, and what they give this one
    /// to run. `true` when there was anything.
    pub async fn look_around(&mut self) -> Result<bool> {
        let began = self.clock.uptime();
        let any = self.look_at_others().await?;
        self.fleet.look_ms = self.clock.uptime().since(began);
        Ok(any)
    }

    async fn look_at_others(&mut self) -> Result<bool> {
        let mut any = false;
        if !self.active.is_empty() {
            let now = self.clock.now();
            let mut tx = self.db.read().await?;
            let mut members = node::members(&mut tx, now).await?;
            let is_awaited = self.active.values().any(|a| !a.away.is_empty());
            let reports = match is_awaited {
                true => hosted::reports_for(&mut tx, self.node.id()).await?,
                false => Reports::default(),
            };
            drop(tx);
            members.retain(|m| m.node.node_id != *self.node.id());
            self.fleet.peers = members;
            let there: HashSet<_> = reports.tries().map(|(row, no, _)| (row, no)).collect();
            self.fleet.unread.retain(|this| there.contains(this));
            any = self.hear_reports(reports);
            if any {
                self.fleet.stir(self.clock.uptime());
            }
            self.mourn().await?;
        }
        Ok(self.host().await? || any)
    }

    /// Takes reports of other nodes in, each once; `true` when one is new.
    pub(in crate::engine) fn hear_reports(&mut self, reports: Reports) -> bool {
        self.leave_unread(reports.unread);
        let mut any = false;
        for Reported { queue_id, attempt, owner, outcome } in reports.read {
            let is_it = |r: &Report| {
                r.queue_id == queue_id && r.attempt == attempt && matches!(r.what, What::Ended(..))
            };
            let is_late = self.late.iter().any(|l| l.queue_id == queue_id && l.attempt == attempt);
            // A batch that is not in memory yet reads its reports when it is.
            if is_late || !self.places.contains_key(&queue_id) || self.waiting.iter().any(is_it) {
                continue;
            }
            any = true;
            let what = What::Ended(Box::new(outcome), Vec::new());
            self.waiting.push(Report { queue_id, attempt, by: Some(owner), what });
        }
        any
    }

    /// Says once of each report that it cannot be read. Its row is left: whoever can read it settles it.
    fn leave_unread(&mut self, unread: Vec<Unread>) {
        for Unread { queue_id, attempt, owner, why } in unread {
            if self.fleet.unread.insert((queue_id, attempt)) {
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

    /// Reads batches anew whose jobs run on nodes that are dead; the rows then say what becomes of them.
    async fn mourn(&mut self) -> Result<()> {
        if !self.heart.may_take_over() {
            return Ok(());
        }
        let reported: HashSet<(QueueId, u32)> =
            self.waiting.iter().map(|r| (r.queue_id, r.attempt)).collect();
        let (me, now) = (self.node.id(), self.clock.now());
        let (mut bereft, mut of_the_dead) = (BTreeSet::new(), HashSet::new());
        for (id, active) in &self.active {
            for (place, there) in &active.away {
                let row = active.row(*place);
                let key = (row.queue_id, row.attempt);
                let is_dead = there != me && !self.fleet.lives(there);
                if !is_dead || reported.contains(&key) || self.fleet.unread.contains(&key) {
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
        self.stale = true;
        for id in bereft {
            self.load(id).await?;
        }
        self.recount();
        self.stale = false;
        Ok(())
    }
}

/// Fails as stale when a try that `owed` has settled in this transaction was reported since `known`
/// was read: a node that was silent has a say until its row is locked. From then on it has none.
pub(in crate::engine) async fn refuse_overtaken(
    tx: &mut Tx,
    id: BatchId,
    owed: &Changes,
    known: &Reports,
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

/// A node as a place for jobs; `ours` are the starts of those that it runs for us.
fn site(peer: &Member, ours: &HashMap<&NodeId, Vec<Millis>>) -> Site {
    let ours = ours.get(&peer.node.node_id).map(Vec::as_slice).unwrap_or_default();
    let count = |jobs: usize| u32::try_from(jobs).unwrap_or(u32::MAX);
    let since = ours.iter().filter(|at| peer.counted_at.is_none_or(|counted| **at > counted));
    let load = Load {
        max_parallel: peer.offer.max_parallel,
        said: peer.said.running,
        ours: count(ours.len()),
        since: count(since.count()),
    };
    let works = peer.offer.roles.contains(&node_placement::Role::Worker) && !peer.is_draining;
    Site {
        node: peer.node.node_id.clone(),
        name: peer.offer.name.clone(),
        labels: peer.offer.labels.clone(),
        bodies: if works { Bodies::Run } else { Bodies::Elsewhere },
        room: load.room(),
    }
}
