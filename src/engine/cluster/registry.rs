//! The other nodes: which of them are alive, where jobs of this process's batches may run, and what
//! the nodes report.
//!
//! Only the owner of a batch writes its rows. A node that runs a job for it writes a report, and
//! the owner settles the report like one of its own bodies.

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
    /// The node that dispatches the batch.
    Here,
    /// Another node.
    There(NodeId),
}

/// Whether this node takes new work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum NodeIntake {
    /// No new work.
    Rests,
    /// New work is accepted.
    Works,
}

/// The roles of this node, and the other nodes alive at the last poll.
pub(in crate::engine) struct Fleet {
    pub(in crate::engine) roles: Roles,
    labels: Vec<String>,
    pub(in crate::engine) max_parallel: u32,
    peers: Vec<NodeMember>,
    /// Attempts whose reports this version cannot read, after that was logged.
    unread: HashSet<(QueueId, u32)>,
    /// When a job or report was last exchanged with another node.
    stirred_at: Option<Uptime>,
    /// Duration of the last poll of the other nodes, in milliseconds.
    look_ms: i64,
    /// State of locks held by attempts of dead nodes.
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

    /// Notes that a job or report was exchanged with another node: more may follow soon.
    pub(in crate::engine) fn poll_sooner(&mut self, at: Uptime) {
        self.stirred_at = Some(at);
    }

    /// Milliseconds since a job or report was last exchanged with another node.
    pub(in crate::engine) fn quiet_ms(&self, now: Uptime) -> i64 {
        self.stirred_at.map_or(i64::MAX, |at| now.since(at))
    }

    /// Stores the living nodes after a poll. Forgets unreadable reports that no node holds any
    /// more.
    pub(in crate::engine) fn note_members(
        &mut self,
        others: Vec<NodeMember>,
        reports: &HostedReports,
    ) {
        self.peers = others;
        let there: HashSet<_> = reports.tries().map(|(row, no, _)| (row, no)).collect();
        self.unread.retain(|this| there.contains(this));
    }

    /// Notes that a report cannot be read; `true` the first time.
    pub(in crate::engine) fn note_unread(&mut self, key: AttemptKey) -> bool {
        self.unread.insert(key)
    }

    /// Whether the report of an attempt cannot be read.
    pub(in crate::engine) fn is_unread(&self, key: AttemptKey) -> bool {
        self.unread.contains(&key)
    }

    /// Notes how long the last poll of the other nodes took, in milliseconds.
    pub(in crate::engine) fn note_look(&mut self, took_ms: i64) {
        self.look_ms = took_ms;
    }

    /// Nodes on which jobs with `labels` may run: `used` jobs occupy slots here, `ours` are the
    /// start times of this node's jobs that run elsewhere.
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

    /// Duration of the last poll of the other nodes, in milliseconds.
    pub(in crate::engine) fn look_ms(&self) -> i64 {
        self.look_ms
    }

    /// Whether another node was alive at the last poll.
    pub(in crate::engine) fn lives(&self, id: &NodeId) -> bool {
        self.peers.iter().any(|peer| peer.node.node_id == *id)
    }
}

/// What is known of attempts whose rows name another node than the reading one.
#[derive(Debug, Default)]
pub(in crate::engine) struct RemoteAttemptTable {
    /// Nodes that are or may be alive: they keep what they run.
    living: HashSet<NodeId>,
    /// Whether a node that is not among them counts as dead.
    judged: Judged,
    /// Attempts that have ended according to their nodes; they are settled soon.
    reported: HashSet<(QueueId, u32, NodeId)>,
    /// Attempts that run in this process, with their stop switches.
    pub(in crate::engine) here: HashMap<(QueueId, u32), watch::Sender<Option<StopReason>>>,
    /// Attempts whose locks on their data sources no longer need to be awaited.
    pub(in crate::engine) decided_locks: HashSet<AttemptKey>,
}

/// Whether nodes may be declared dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) enum Judged {
    /// A node without a valid lease is dead.
    ByLease,
    /// No node is dead: leases may have expired because the database was unavailable.
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

    /// Notes attempts of this node that have ended and whose reports are not written yet.
    pub(in crate::engine) fn note_reported(
        &mut self,
        tries: impl Iterator<Item = AttemptKey>,
        by: &NodeId,
    ) {
        self.reported.extend(tries.map(|(row, attempt)| (row, attempt, by.clone())));
    }

    /// Whether another node runs an attempt, or has reported it and it will be settled.
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

/// Nodes that may run jobs at this tick; an assigned slot is not assigned twice.
pub(in crate::engine) struct Sites {
    here: Site,
    others: Vec<Site>,
    labels: BTreeSet<String>,
}

impl Sites {
    /// The node of this process, and the other nodes.
    pub(in crate::engine) fn into_nodes(self) -> (Site, Vec<Site>) {
        (self.here, self.others)
    }

    /// Assigns the node that runs a job; `None` as the request means here.
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
            // `Nowhere` cannot happen: the offered slots are the sum of the free ones.
            node_placement::JobPlacement::Here | node_placement::JobPlacement::Nowhere(_) => {
                self.here.room = self.here.room.saturating_sub(took);
                AttemptRunner::Here
            }
        }
    }

    /// Sets the slot limits to what is free now.
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

/// A node as a place to run jobs; `ours` are the start times of the jobs that it runs for this
/// node.
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
