//! `cluster_node`: one row per life of a process; its lease covers all that the process owns.

use crate::domain::id::NodeId;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// What others see of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its identity, new at every start.
    pub node_id: NodeId,
    /// Host name.
    pub host: String,
    /// Process id on that host.
    pub pid: i64,
    /// Until when it may be taken for alive.
    pub lease_until: Millis,
}

/// Announces a process.
pub async fn register(tx: &mut Tx, node: &Node, version: &str, now: Millis) -> Result<()> {
    tx.execute(
        "INSERT INTO cluster_node (node_id, host, pid, version, started_at, heartbeat_at, lease_until) \
         VALUES (?, ?, ?, ?, ?, ?, ?)",
        &[
            node.node_id.0.as_str().into(),
            node.host.as_str().into(),
            node.pid.into(),
            version.into(),
            now.to_utc().into(),
            now.to_utc().into(),
            node.lease_until.to_utc().into(),
        ],
    )
    .await
    .context("register this node")?;
    Ok(())
}

/// Renews a lease; `false` when the row is gone.
pub async fn renew(tx: &mut Tx, node: &NodeId, now: Millis, until: Millis) -> Result<bool> {
    let found = tx
        .execute(
            "UPDATE cluster_node SET heartbeat_at = ?, lease_until = ? WHERE node_id = ?",
            &[now.to_utc().into(), until.to_utc().into(), node.0.as_str().into()],
        )
        .await
        .context("renew this node's lease")?;
    Ok(found == 1)
}

/// A process by its identity.
pub async fn find(tx: &mut Tx, node: &NodeId) -> Result<Option<Node>> {
    let row = tx
        .fetch_optional(
            "SELECT node_id, host, pid, lease_until FROM cluster_node WHERE node_id = ?",
            &[node.0.as_str().into()],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Node {
        node_id: NodeId(row.text("node_id")?),
        host: row.text("host")?,
        pid: row.int("pid")?,
        lease_until: row.time("lease_until")?.into(),
    }))
}

/// How many processes have a lease that holds.
pub async fn alive(tx: &mut Tx, now: Millis) -> Result<usize> {
    let sql = "SELECT COUNT(*) AS n FROM cluster_node WHERE lease_until > ?";
    let row = tx.fetch_optional(sql, &[now.to_utc().into()]).await.context("count the nodes")?;
    Ok(row.map(|row| row.int("n")).transpose()?.map_or(0, |n| usize::try_from(n).unwrap_or(0)))
}

/// Forgets processes whose leases ended before `before`; every run leaves a row behind.
pub async fn forget(tx: &mut Tx, before: Millis) -> Result<()> {
    tx.execute("DELETE FROM cluster_node WHERE lease_until < ?", &[before.to_utc().into()])
        .await
        .context("forget old nodes")?;
    Ok(())
}
