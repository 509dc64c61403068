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

/// How long a process that has ended is told of.
pub const ENDED_MS: i64 = 24 * 3_600_000;

/// Processes, and how many batches each has.
pub struct Members {
    /// They, in the order of their names.
    pub all: Vec<NodeMember>,
    batches: HashMap<NodeId, usize>,
    now: Millis,
}

impl Members {
    /// Those that live, and those that ended no longer ago than `back_ms`.
    pub async fn read_members(tx: &mut Tx, back_ms: i64, now: Millis) -> Result<Self> {
        let all = store::node::members_with_isolation(tx, now.plus_ms(-back_ms)).await?;
        let mut batches = HashMap::new();
        for member in &all {
            let id = &member.node.node_id;
            batches.insert(id.clone(), store::batch::of_owner(tx, id).await?.len());
        }
        Ok(Self { all, batches, now })
    }

    /// How many batches one of them has.
    pub fn batches_of(&self, member: &NodeMember) -> usize {
        self.batches.get(&member.node.node_id).copied().unwrap_or_default()
    }

    /// All of them as documents.
    pub fn details(&self) -> Vec<NodeDetail> {
        let now = self.now;
        let one = |m: &NodeMember| {
            NodeDetail::from_member(m, self.batches_of(m), is_double(m, &self.all, now), now)
        };
        self.all.iter().map(one).collect()
    }
}

/// Whether another living process that serves has the same name.
pub fn is_double(member: &NodeMember, all: &[NodeMember], now: Millis) -> bool {
    let serves = |m: &NodeMember| m.node.lease_until > now && !m.offer.roles.is_empty();
    let same = |m: &&NodeMember| {
        m.offer.name == member.offer.name && m.node.node_id != member.node.node_id && serves(m)
    };
    serves(member) && all.iter().find(same).is_some()
}

/// How an id begins.
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

/// What it is for.
pub fn roles(member: &NodeMember) -> Vec<&'static str> {
    member.offer.roles.iter().copied().map(NodeRole::as_str).collect()
}

/// A process that shares the database.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NodeDetail {
    /// The name that its operators gave it.
    pub name: String,
    /// Which life of that name it is, counted from 1.
    pub incarnation: u32,
    /// Its number.
    pub id: String,
    /// Its host.
    pub host: String,
    /// Its process there.
    pub pid: i64,
    /// What it is for: `scheduler`, `worker`.
    pub roles: Vec<&'static str>,
    /// Labels that jobs may ask for.
    pub labels: Vec<String>,
    /// Jobs it runs, and has still to begin.
    pub running: u32,
    /// Jobs it runs at once, at most.
    pub max_parallel: u32,
    /// Batches that it dispatches.
    pub batches: usize,
    /// When it started, UTC.
    pub started_at: String,
    /// When it was heard of last, UTC.
    pub heartbeat_at: String,
    /// How long ago that was, in milliseconds.
    pub heartbeat_age_ms: i64,
    /// For how long it counts as alive without another heartbeat, in milliseconds.
    pub lease_left_ms: i64,
    /// Milliseconds by which the database's clock is ahead of its own.
    pub skew_ms: i64,
    /// `alive`, `draining` or `dead`.
    pub state: &'static str,
    /// Whether another living process that serves has the same name.
    pub same_name: bool,
    /// Where it answers to HTTP.
    pub address: Option<String>,
    /// The version of its program.
    pub version: String,
    /// What scripts are kept from there; null before it is known.
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
