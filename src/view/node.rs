//! The processes that share a database.

use crate::domain::cluster::node_placement::NodeRole;
use crate::domain::id::NodeId;
use crate::domain::job::script_isolation::ScriptIsolationReport;
use crate::domain::time::Millis;
use crate::store::node::NodeMember;
use crate::store::{self, Tx};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// How long an ended process is shown, in milliseconds.
pub const ENDED_MS: i64 = 24 * 3_600_000;

/// Processes, with the number of batches of each.
pub struct Members {
    /// The processes, by name.
    pub all: Vec<NodeMember>,
    batches: HashMap<NodeId, usize>,
    now: Millis,
}

impl Members {
    /// Living processes, and those that ended no longer ago than `back_ms`.
    pub async fn read_members(tx: &mut Tx, back_ms: i64, now: Millis) -> Result<Self> {
        let all = store::node::members_with_isolation(tx, now.plus_ms(-back_ms)).await?;
        let mut batches = HashMap::new();
        for member in &all {
            let id = &member.node.node_id;
            batches.insert(id.clone(), store::batch::of_owner(tx, id).await?.len());
        }
        Ok(Self { all, batches, now })
    }

    /// Number of batches that a process owns.
    pub fn batches_of(&self, member: &NodeMember) -> usize {
        self.batches.get(&member.node.node_id).copied().unwrap_or_default()
    }

    /// The documents of all of them.
    pub fn details(&self) -> Vec<NodeDetail> {
        let now = self.now;
        let one = |m: &NodeMember| {
            NodeDetail::from_member(m, self.batches_of(m), is_double(m, &self.all, now), now)
        };
        self.all.iter().map(one).collect()
    }
}

/// Whether another living serving process has the same name.
pub fn is_double(member: &NodeMember, all: &[NodeMember], now: Millis) -> bool {
    let serves = |m: &NodeMember| m.node.lease_until > now && !m.offer.roles.is_empty();
    let same = |m: &&NodeMember| {
        m.offer.name == member.offer.name && m.node.node_id != member.node.node_id && serves(m)
    };
    serves(member) && all.iter().find(same).is_some()
}

/// The beginning of an id.
pub fn short(id: &NodeId) -> &str {
    id.0.split('-').next().unwrap_or_default()
}

/// `alive`, `draining` or `dead`.
pub fn state(member: &NodeMember, now: Millis) -> &'static str {
    match (member.node.lease_until > now, member.is_draining) {
        (false, _) => "dead",
        (true, true) => "draining",
        (true, false) => "alive",
    }
}

/// The roles of a process.
pub fn roles(member: &NodeMember) -> Vec<&'static str> {
    member.offer.roles.iter().copied().map(NodeRole::as_str).collect()
}

/// A process that shares the database.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NodeDetail {
    /// The name set by its operators.
    pub name: String,
    /// The number of process lifetimes under that name, counted from 1.
    pub incarnation: u32,
    /// The node id.
    pub id: String,
    /// The host.
    pub host: String,
    /// The process id.
    pub pid: i64,
    /// The roles: `scheduler`, `worker`.
    pub roles: Vec<&'static str>,
    /// Labels that jobs may require.
    pub labels: Vec<String>,
    /// Number of jobs it runs or is about to begin.
    pub running: u32,
    /// Maximum number of jobs it runs at once.
    pub max_parallel: u32,
    /// Number of batches that it dispatches.
    pub batches: usize,
    /// When it started, UTC.
    pub started_at: String,
    /// Its last heartbeat, UTC.
    pub heartbeat_at: String,
    /// The age of that, in milliseconds.
    pub heartbeat_age_ms: i64,
    /// Remaining time of its lease, in milliseconds.
    pub lease_left_ms: i64,
    /// Milliseconds by which the database's clock is ahead of its own.
    pub skew_ms: i64,
    /// `alive`, `draining` or `dead`.
    pub state: &'static str,
    /// Whether another living serving process has the same name.
    pub same_name: bool,
    /// The address of its HTTP server.
    pub address: Option<String>,
    /// The program version.
    pub version: String,
    /// The script isolation; null before it is known.
    pub scripts: Option<ScriptIsolationReport>,
}

impl NodeDetail {
    fn from_member(member: &NodeMember, batches: usize, is_double: bool, now: Millis) -> Self {
        let (node, offer) = (&member.node, &member.offer);
        Self {
            name: offer.name.clone(),
            incarnation: offer.incarnation,
            id: node.node_id.0.clone(),
            host: node.host.clone(),
            pid: node.pid,
            roles: roles(member),
            labels: offer.labels.clone(),
            running: member.said.running,
            max_parallel: offer.max_parallel,
            batches,
            started_at: member.started_at.to_string(),
            heartbeat_at: member.heartbeat_at.to_string(),
            heartbeat_age_ms: now.since(member.heartbeat_at),
            lease_left_ms: node.lease_until.since(now).max(0),
            skew_ms: member.said.skew_ms,
            state: state(member, now),
            same_name: is_double,
            address: offer.address.clone(),
            version: member.version.clone(),
            scripts: member.script_isolation.clone(),
        }
    }
}
