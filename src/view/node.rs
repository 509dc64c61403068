//! The processes that share a database.

use crate::domain::cluster::node_placement::Role;
use crate::domain::id::NodeId;
use crate::domain::time::Millis;
use crate::store::node::Member;
use crate::store::{self, Tx};
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;

/// How long a process that has ended is told of.
pub const ENDED_MS: i64 = 24 * 3_600_000;

/// Processes, and how many batches each has.
pub struct Members {
    /// They, in the order of their names.
    pub all: Vec<Member>,
    batches: HashMap<NodeId, usize>,
    now: Millis,
}

impl Members {
    /// Those that live, and those that ended no longer ago than `back_ms`.
    pub async fn read(tx: &mut Tx, back_ms: i64, now: Millis) -> Result<Self> {
        let all = store::node::members_with_isolation(tx, now.plus(-back_ms)).await?;
        let mut batches = HashMap::new();
        for member in &all {
            let id = &member.node.node_id;
            batches.insert(id.clone(), store::batch::of_owner(tx, id).await?.len());
        }
        Ok(Self { all, batches, now })
    }

    /// How many batches one of them has.
    pub fn has(&self, member: &Member) -> usize {
        self.batches.get(&member.node.node_id).copied().unwrap_or_default()
    }

    /// All of them as documents.
    pub fn as_json(&self) -> Vec<Value> {
        let now = self.now;
        let one = |m: &Member| as_json(m, self.has(m), is_double(m, &self.all, now), now);
        self.all.iter().map(one).collect()
    }
}

/// Whether another living process that serves has the same name.
pub fn is_double(member: &Member, all: &[Member], now: Millis) -> bool {
    let serves = |m: &Member| m.node.lease_until > now && !m.offer.roles.is_empty();
    let same = |m: &&Member| {
        m.offer.name == member.offer.name && m.node.node_id != member.node.node_id && serves(m)
    };
    serves(member) && all.iter().find(same).is_some()
}

/// How an id begins.
pub fn short(id: &NodeId) -> &str {
    id.0.split('-').next().unwrap_or_default()
}

/// `alive`, `draining` or `dead`.
pub fn state(member: &Member, now: Millis) -> &'static str {
    match (member.node.lease_until > now, member.is_draining) {
        (false, _) => "dead",
        (true, true) => "draining",
        (true, false) => "alive",
    }
}

/// What it is for.
pub fn roles(member: &Member) -> Vec<&'static str> {
    member.offer.roles.iter().copied().map(Role::as_str).collect()
}

/// A process, and how many batches it has.
fn as_json(member: &Member, batches: usize, is_double: bool, now: Millis) -> Value {
    json!({
        "name": member.offer.name,
        "incarnation": member.offer.incarnation,
        "id": member.node.node_id,
        "host": member.node.host,
        "pid": member.node.pid,
        "roles": roles(member),
        "labels": member.offer.labels,
        "running": member.said.running,
        "max_parallel": member.offer.max_parallel,
        "batches": batches,
        "started_at": member.started_at.to_string(),
        "heartbeat_at": member.heartbeat_at.to_string(),
        "heartbeat_age_ms": now.since(member.heartbeat_at),
        "lease_left_ms": member.node.lease_until.since(now).max(0),
        "skew_ms": member.said.skew_ms,
        "state": state(member, now),
        "same_name": is_double,
        "address": member.offer.address,
        "version": member.version,
        "scripts": member.script_isolation,
    })
}
