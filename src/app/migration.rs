//! `migrate`: changes the tables while no process uses them.
//!
//! A process knows the tables as they were when it was built. If it continued over a migration it
//! would read columns whose meaning has changed, and its writes would fail or miss a column. So
//! `migrate` refuses while the lease of any process is valid, and a process refuses to start on
//! tables of another version.

use crate::app::App;
use crate::db::migrate::Schema;
use crate::domain::time::Millis;
use crate::store::node::{self, NodeMember};
use anyhow::Result;
use std::fmt;
use std::time::Duration;

/// Interval at which `migrate` checks whether the leases have ended.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The migration that introduced node names. Older tables precede any release.
const NODES_HAVE_NAMES: i64 = 6;

/// A process that uses the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningProcess {
    name: String,
    host: String,
    pid: i64,
    version: String,
    lease_left_ms: i64,
}

impl RunningProcess {
    fn from_member(member: NodeMember, now: Millis) -> Self {
        let lease_left_ms = member.node.lease_until.since(now);
        let NodeMember { node, offer, version, .. } = member;
        Self { name: offer.name, host: node.host, pid: node.pid, version, lease_left_ms }
    }
}

impl fmt::Display for RunningProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, host, pid, version, lease_left_ms } = self;
        let seconds = lease_left_ms.max(&0).unsigned_abs().div_ceil(1_000);
        write!(
            f,
            "node {name}, process {pid} on {host}, version {version}, lease for {seconds} s more"
        )
    }
}

/// Processes use the tables that are to be changed, or started meanwhile.
#[derive(Debug, thiserror::Error)]
pub enum TablesInUse {
    /// Nothing was changed.
    #[error(
        "the tables cannot be changed from version {from} to {to} while processes work on them; nothing was \
         changed:\n  {}\nstop them (TERM, or systemctl stop procession) and run this again; the lease of one \
         that died ends by itself: --wait SECONDS waits for it", lines(.processes)
    )]
    Before {
        /// The version of the tables.
        from: i64,
        /// The version that this program needs.
        to: i64,
        processes: Vec<RunningProcess>,
    },
    /// The tables were changed.
    #[error(
        "the tables are at version {to}, but processes started while they were changed:\n  {}\nstop them now and start \
         them from this version: what one of an earlier version writes may fail", lines(.processes)
    )]
    Meanwhile {
        /// The version of the tables.
        to: i64,
        /// The processes that started meanwhile.
        processes: Vec<RunningProcess>,
    },
}

fn lines(processes: &[RunningProcess]) -> String {
    let lines: Vec<String> = processes.iter().map(ToString::to_string).collect();
    lines.join("\n  ")
}

impl App {
    /// Applies the missing migrations once no process uses the tables, for which it waits up to
    /// `patience`. Returns their numbers.
    pub async fn migrate(&self, patience: Duration) -> Result<Vec<i64>> {
        let to = crate::app::known_schema();
        let patience_ms = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
        let asked = self.clock.uptime();
        loop {
            // Another process may have migrated meanwhile; then the living ones have its version.
            let from = match self.db.schema().await? {
                Schema::Behind(from) if from >= NODES_HAVE_NAMES => from,
                _ => return Ok(self.db.migrate().await?),
            };
            let began = self.server_now().await?;
            let processes = self.running_processes(began).await?;
            if processes.is_empty() {
                let applied = self.db.migrate().await?;
                self.refuse_late_starters(&applied, began).await?;
                return Ok(applied);
            }
            if self.clock.uptime().since(asked) >= patience_ms {
                return Err(TablesInUse::Before { from, to, processes }.into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Reports processes that started between the check and the end of the migration: their own
    /// check of the tables is out of date.
    async fn refuse_late_starters(&self, applied: &[i64], began: Millis) -> Result<()> {
        let now = self.server_now().await?;
        let mut tx = self.db.begin_read().await?;
        let members = node::members(&mut tx, now).await?;
        drop(tx);
        let started_meanwhile = |m: &NodeMember| (began..=now).contains(&m.started_at);
        let processes: Vec<RunningProcess> = members
            .into_iter()
            .filter(started_meanwhile)
            .map(|member| RunningProcess::from_member(member, now))
            .collect();
        match processes.is_empty() || applied.is_empty() {
            true => Ok(()),
            false => {
                Err(TablesInUse::Meanwhile { to: crate::app::known_schema(), processes }.into())
            }
        }
    }

    /// The processes with valid leases at this time of the database's clock.
    async fn running_processes(&self, now: Millis) -> Result<Vec<RunningProcess>> {
        let mut tx = self.db.begin_read().await?;
        let members = node::members(&mut tx, now).await?;
        Ok(members.into_iter().map(|member| RunningProcess::from_member(member, now)).collect())
    }
}
