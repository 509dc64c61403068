//! The other nodes: where jobs of batches that are dispatched here may run, who of them lives, and
//! what they report.
//!
//! The process that has a batch stays the only one that writes its rows. One that runs a job for it
//! writes a report, and this one settles it as if it came from a body of its own.

use crate::domain::cluster::lease::Uptime;
use crate::domain::cluster::node_placement::{self, Bodies, NodeLoad, Roles, Site, Want};
use crate::domain::dispatch::slots::{Resource, Slots};
use crate::domain::id::{NodeId, QueueId};
use crate::domain::job::Takes;
use crate::domain::time::Millis;
use crate::engine::cluster::held_locks::{AttemptKey, HeldLocks};
use crate::engine::cluster::node::LocalNode;
use crate::handler::StopReason;
use crate::store::hosted::HostedReports;
use crate::store::node::NodeMember;
use std::collections::{BTreeSet, HashMap, HashSet};
use tokio::sync::watch;

/// Which node runs a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) enum AttemptRunner {
    /// The one that dispatches its batch.
    Here,
    /// Another.
    There(NodeId),
}

/// Whether this node takes anything new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum NodeIntake {
    /// It does not.
    Rests,
    /// It does.
    Works,
}

/// What this node is for, and the others that lived when it was last looked.
pub(in crate::engine) struct Fleet {
    pub(in crate::engine) roles: Roles,
    labels: Vec<String>,
    pub(in crate::engine) max_parallel: u32,
    peers: Vec<NodeMember>,
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
    pub(in crate::engine) fn poll_sooner(&mut self, at: Uptime) {
        self.stirred_at = Some(at);
    }

    /// Milliseconds since something last went to another node or came from one.
    pub(in crate::engine) fn quiet_ms(&self, now: Uptime) -> i64 {
        self.stirred_at.map_or(i64::MAX, |at| now.since(at))
    }

    /// The other nodes were looked at: these live. What was not read of tries that nobody reports any more is forgotten.
    pub(in crate::engine) fn note_members(
        &mut self,
        others: Vec<NodeMember>,
        reports: &HostedReports,
    ) {
        self.peers = others;
        let there: HashSet<_> = reports.tries().map(|(row, no, _)| (row, no)).collect();
        self.unread.retain(|this| there.contains(this));
    }

    /// A report cannot be read; `true` the first time.
    pub(in crate::engine) fn note_unread(&mut self, key: AttemptKey) -> bool {
        self.unread.insert(key)
    }

    /// Whether the report of a try cannot be read.
    pub(in crate::engine) fn is_unread(&self, key: AttemptKey) -> bool {
        self.unread.contains(&key)
    }

    /// The last look at the other nodes took so long.
    pub(in crate::engine) fn note_look(&mut self, took_ms: i64) {
        self.look_ms = took_ms;
    }

    /// Where jobs may run, for those who ask for `labels`: `used` jobs take room here, `ours` are the starts of those
    /// that run elsewhere for this node.
    pub(in crate::engine) fn sites(
        &self,
        me: &LocalNode,
        rest: NodeIntake,
        used: usize,
        ours: &HashMap<&NodeId, Vec<Millis>>,
        labels: BTreeSet<String>,
    ) -> Sites {
        let bodies = match rest {
            NodeIntake::Rests => Bodies::Elsewhere,
            NodeIntake::Works => node_placement::runs_own(&self.roles),
        };
        let here = Site {
            node: me.id().clone(),
            name: me.name().to_owned(),
            labels: self.labels.clone(),
            bodies,
            room: self.max_parallel.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX)),
        };
        let others = self.peers.iter().map(|peer| site_of_node(peer, ours)).collect();
        Sites { here, others, labels }
    }

    /// Milliseconds that the last look at the other nodes took.
    pub(in crate::engine) fn look_ms(&self) -> i64 {
        self.look_ms
    }

    /// Whether another node lived when it was last looked.
    pub(in crate::engine) fn lives(&self, id: &NodeId) -> bool {
        self.peers.iter().any(|peer| peer.node.node_id == *id)
    }
}

/// What is known of tries whose rows name other nodes than the one that reads them.
#[derive(Debug, Default)]
pub(in crate::engine) struct RemoteAttemptTable {
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

impl RemoteAttemptTable {
    pub(in crate::engine) fn new(
        members: &[NodeMember],
        judged: Judged,
        reports: &HostedReports,
        here: HashMap<(QueueId, u32), watch::Sender<Option<StopReason>>>,
        decided_locks: HashSet<AttemptKey>,
    ) -> Self {
        let living = members.iter().map(|m| m.node.node_id.clone()).collect();
        let reported = reports.tries().map(|(row, attempt, by)| (row, attempt, by.clone()));
        Self { living, judged, reported: reported.collect(), here, decided_locks }
    }

    /// These tries of this node have ended, and their reports are not written yet.
    pub(in crate::engine) fn note_reported(
        &mut self,
        tries: impl Iterator<Item = AttemptKey>,
        by: &NodeId,
    ) {
        self.reported.extend(tries.map(|(row, attempt)| (row, attempt, by.clone())));
    }

    /// Whether a try is in the hands of another node, or has been and will be settled by its report.
    pub(in crate::engine) fn has_attempt(
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
    pub(in crate::engine) fn assign(&mut self, want: Option<Want<'_>>) -> AttemptRunner {
        let Some(want) = want else { return AttemptRunner::Here };
        let took = u32::from(want.takes == Takes::Slots);
        match node_placement::place(want, &self.here, &self.others) {
            node_placement::JobPlacement::There(id) => {
                for site in self.others.iter_mut().filter(|site| site.node == id) {
                    site.room = site.room.saturating_sub(took);
                }
                AttemptRunner::There(id)
            }
            // Nowhere cannot come: what is offered is the sum of what is free.
            node_placement::JobPlacement::Here | node_placement::JobPlacement::Nowhere(_) => {
                self.here.room = self.here.room.saturating_sub(took);
                AttemptRunner::Here
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

/// A node as a place for jobs; `ours` are the starts of those that it runs for us.
fn site_of_node(peer: &NodeMember, ours: &HashMap<&NodeId, Vec<Millis>>) -> Site {
    let ours = ours.get(&peer.node.node_id).map(Vec::as_slice).unwrap_or_default();
    let count = |jobs: usize| u32::try_from(jobs).unwrap_or(u32::MAX);
    let since = ours.iter().filter(|at| peer.counted_at.is_none_or(|counted| **at > counted));
    let load = NodeLoad {
        max_parallel: peer.offer.max_parallel,
        said: peer.said.running,
        ours: count(ours.len()),
        since: count(since.count()),
    };
    let works = peer.offer.roles.contains(&node_placement::NodeRole::Worker) && !peer.is_draining;
    Site {
        node: peer.node.node_id.clone(),
        name: peer.offer.name.clone(),
        labels: peer.offer.labels.clone(),
        bodies: if works { Bodies::Run } else { Bodies::Elsewhere },
        room: load.free_slots(),
    }
}
