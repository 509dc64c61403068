//! `cluster_node`: one row per process lifetime; its lease covers all that the process owns.

use crate::db::Row;
use crate::domain::cluster::node_placement::{NodeRole, Roles};
use crate::domain::id::NodeId;
use crate::domain::job::script_isolation::ScriptIsolationReport;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// A process as other processes see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its identity, new at every start.
    pub node_id: NodeId,
    pub host: String,
    /// Process id on that host.
    pub pid: i64,
    /// Until when it counts as alive.
    pub lease_until: Millis,
}

/// Registers a process, with what it offers.
pub async fn register(
    tx: &mut Tx,
    node: &NodeRow,
    offer: &Offer,
    version: &str,
    now: Millis,
) -> Result<()> {
    let roles: Vec<&str> = offer.roles.iter().map(|role| role.as_str()).collect();
    tx.execute(
        "INSERT INTO cluster_node (node_id, host, pid, version, started_at, heartbeat_at, lease_until, \
         node_name, incarnation, roles, labels, max_parallel, address) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        &[
            node.node_id.0.as_str().into(),
            node.host.as_str().into(),
            node.pid.into(),
            version.into(),
            now.to_utc().into(),
            now.to_utc().into(),
            node.lease_until.to_utc().into(),
            offer.name.as_str().into(),
            offer.incarnation.into(),
            roles.join(",").into(),
            serde_json::to_string(&offer.labels)?.into(),
            offer.max_parallel.into(),
            offer.address.as_deref().into(),
        ],
    )
    .await
    .context("register this node")?;
    Ok(())
}

/// Stores the script isolation of this node, as JSON.
pub async fn set_script_isolation(tx: &mut Tx, id: &NodeId, report: &str) -> Result<()> {
    let sql = "UPDATE cluster_node SET script_isolation = ? WHERE node_id = ?";
    tx.execute(sql, &[report.into(), id.0.as_str().into()])
        .await
        .context("write how this node isolates scripts")?;
    Ok(())
}

/// The server's clock, and the name of this installation if it has one.
pub async fn time_and_installation(tx: &mut Tx) -> Result<(Millis, Option<String>)> {
    let name = "SELECT value FROM procession_meta WHERE name = 'installation'";
    let [time, name] = tx.fetch_sets([tx.dialect().clock_query(), name]).await?;
    let time = time.first().context("the server told no time")?.get_time("t")?;
    let name = name.first().map(|row| row.get_text("value")).transpose()?;
    Ok((time.into(), name))
}

/// Renews a lease; `false` when the row is missing.
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

pub async fn find_node(tx: &mut Tx, id: &NodeId) -> Result<Option<NodeRow>> {
    let row = tx
        .fetch_optional(
            "SELECT node_id, host, pid, lease_until FROM cluster_node WHERE node_id = ?",
            &[id.0.as_str().into()],
        )
        .await?;
    row.as_ref().map(node_of_row).transpose()
}

/// Number of processes with a valid lease.
pub async fn alive(tx: &mut Tx, now: Millis) -> Result<usize> {
    let sql = "SELECT COUNT(*) AS n FROM cluster_node WHERE lease_until > ?";
    let row = tx.fetch_optional(sql, &[now.to_utc().into()]).await.context("count the nodes")?;
    Ok(row.map(|row| row.get_int("n")).transpose()?.map_or(0, |n| usize::try_from(n).unwrap_or(0)))
}

/// Removes processes whose leases ended before `before`; every `run` leaves a row.
pub async fn forget(tx: &mut Tx, before: Millis) -> Result<()> {
    tx.execute("DELETE FROM cluster_node WHERE lease_until < ?", &[before.to_utc().into()])
        .await
        .context("forget old nodes")?;
    Ok(())
}

/// What a process offers to the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The name set by operators; two living processes may have the same.
    pub name: String,
    /// The number of process lifetimes under that name, from 1.
    pub incarnation: u32,
    pub roles: Roles,
    /// Labels that jobs may require.
    pub labels: Vec<String>,
    /// Maximum number of jobs it runs at once.
    pub max_parallel: u32,
    /// The address of its HTTP server.
    pub address: Option<String>,
}

/// What a process reports with each heartbeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatReport {
    /// Number of jobs it runs or is about to begin.
    pub running: u32,
    /// Milliseconds by which the database's clock is ahead of its own.
    pub skew_ms: i64,
    /// Whether it was told to shut down.
    pub stay: Stay,
}

/// Whether a process stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stay {
    #[default]
    Stays,
    /// It takes nothing new and shuts down.
    Leaves,
}

/// A process with everything known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMember {
    /// Identity and lease.
    pub node: NodeRow,
    pub offer: Offer,
    /// Its last report.
    pub said: HeartbeatReport,
    /// When it counted its running jobs.
    pub counted_at: Option<Millis>,
    /// Whether it takes nothing new, by its own report or an operator's command.
    pub is_draining: bool,
    /// Its script isolation; `None` for a version that does not report it, or before it is known.
    pub script_isolation: Option<ScriptIsolationReport>,
    /// The program version.
    pub version: String,
    pub started_at: Millis,
    pub heartbeat_at: Millis,
}

/// The number of this process lifetime under a name; and the living processes that have the name
/// already and take work for others.
pub async fn lives_of(tx: &mut Tx, name: &str, now: Millis) -> Result<(u32, Vec<NodeRow>)> {
    // A name may have thousands of rows: every `run` leaves one.
    let rows = tx
        .fetch_all(
            "SELECT node_id, host, pid, lease_until, incarnation, \
             CASE WHEN lease_until > ? AND roles <> '' THEN 1 ELSE 0 END AS is_namesake \
             FROM cluster_node WHERE node_name = ? AND (lease_until > ? OR incarnation = \
             (SELECT MAX(n.incarnation) FROM cluster_node n WHERE n.node_name = ?)) ORDER BY started_at",
            &[now.to_utc().into(), name.into(), now.to_utc().into(), name.into()],
        )
        .await?;
    let (mut last, mut namesakes) = (0, Vec::new());
    for row in &rows {
        last = last.max(row.opt_int("incarnation")?.unwrap_or(0));
        if row.get_flag("is_namesake")? {
            namesakes.push(node_of_row(row)?);
        }
    }
    Ok((u32::try_from(last)?.saturating_add(1), namesakes))
}

fn node_of_row(row: &Row) -> Result<NodeRow> {
    Ok(NodeRow {
        node_id: NodeId(row.get_text("node_id")?),
        host: row.get_text("host")?,
        pid: row.get_int("pid")?,
        lease_until: row.get_time("lease_until")?.into(),
    })
}

/// Stores the report of a process; `true` when it must take nothing new.
pub async fn store_heartbeat(
    tx: &mut Tx,
    id: &NodeId,
    said: HeartbeatReport,
    now: Millis,
) -> Result<bool> {
    let leaves = said.stay == Stay::Leaves;
    let me = id.0.as_str();
    tx.execute(
        "UPDATE cluster_node SET running = ?, skew_ms = ?, counted_at = ?, \
         is_draining = CASE WHEN ? = 1 THEN 1 ELSE is_draining END WHERE node_id = ?",
        &[
            said.running.into(),
            said.skew_ms.into(),
            now.to_utc().into(),
            i64::from(leaves).into(),
            me.into(),
        ],
    )
    .await
    .context("say how this node stands")?;
    let sql = "SELECT is_draining FROM cluster_node WHERE node_id = ?";
    let row = tx.fetch_optional(sql, &[me.into()]).await?;
    Ok(row.map(|row| row.get_flag("is_draining")).transpose()?.unwrap_or(false))
}

/// Sets whether a process takes anything new; `false` when there is no such row.
pub async fn set_draining(tx: &mut Tx, id: &NodeId, stay: Stay) -> Result<bool> {
    let sql = "UPDATE cluster_node SET is_draining = ? WHERE node_id = ?";
    let leaves = i64::from(stay == Stay::Leaves);
    let found = tx.execute(sql, &[leaves.into(), id.0.as_str().into()]).await;
    Ok(found.context("say whether a node takes anything new")? == 1)
}

/// Processes whose leases are valid after `since`, by name; without their script isolation.
/// `migrate` runs this on tables of earlier versions too.
pub async fn members(tx: &mut Tx, since: Millis) -> Result<Vec<NodeMember>> {
    let sql = "SELECT node_id, host, pid, version, started_at, heartbeat_at, lease_until, node_name, \
               incarnation, roles, labels, max_parallel, running, counted_at, is_draining, address, \
               skew_ms FROM cluster_node WHERE lease_until > ? ORDER BY node_name, started_at, node_id";
    let rows = tx.fetch_all(sql, &[since.to_utc().into()]).await.context("read cluster_node")?;
    rows.iter().map(member).collect()
}

/// Like `members`, with their script isolation.
pub async fn members_with_isolation(tx: &mut Tx, since: Millis) -> Result<Vec<NodeMember>> {
    let mut members = members(tx, since).await?;
    let sql = "SELECT node_id, script_isolation FROM cluster_node WHERE lease_until > ?";
    let rows = tx.fetch_all(sql, &[since.to_utc().into()]).await.context("read cluster_node")?;
    for row in rows {
        let (id, text) = (row.get_text("node_id")?, row.opt_text("script_isolation")?);
        if let Some(member) = members.iter_mut().find(|member| member.node.node_id.0 == id) {
            // An unknown format of a newer version is omitted.
            member.script_isolation = text.and_then(|text| serde_json::from_str(&text).ok());
        }
    }
    Ok(members)
}

fn member(row: &Row) -> Result<NodeMember> {
    let labels = row.opt_text("labels")?.unwrap_or_else(|| "[]".to_owned());
    let is_draining = row.get_flag("is_draining")?;
    Ok(NodeMember {
        node: node_of_row(row)?,
        offer: Offer {
            name: row.get_text("node_name")?,
            incarnation: u32::try_from(row.get_int("incarnation")?)?,
            // Unknown roles of a newer version are ignored.
            roles: row.get_text("roles")?.split(',').filter_map(NodeRole::parse).collect(),
            labels: serde_json::from_str(&labels).context("read the labels of a node")?,
            max_parallel: u32::try_from(row.get_int("max_parallel")?)?,
            address: row.opt_text("address")?,
        },
        said: HeartbeatReport {
            running: u32::try_from(row.get_int("running")?)?,
            skew_ms: row.get_int("skew_ms")?,
            stay: if is_draining { Stay::Leaves } else { Stay::Stays },
        },
        counted_at: row.opt_time("counted_at")?.map(Millis::from),
        is_draining,
        script_isolation: None,
        version: row.get_text("version")?,
        started_at: row.get_time("started_at")?.into(),
        heartbeat_at: row.get_time("heartbeat_at")?.into(),
    })
}
