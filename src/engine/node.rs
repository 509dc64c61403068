//! This process as others see it: registered once per life, its lease renewed by a heartbeat.

use crate::domain::id::NodeId;
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::store::{self, Db, node};
use anyhow::{Context as _, Result, bail};

/// How long a process that has gone is remembered: a month, in which somebody may ask who ran what.
const KEEP_MS: i64 = 30 * 24 * 3_600_000;

/// This process.
#[derive(Clone, Debug)]
pub struct Node {
    id: NodeId,
    host: String,
    lease_ms: i64,
    lease_until: Millis,
    /// Names session locks on data sources apart from those of other installations that share one.
    installation: String,
}

impl Node {
    /// Registers this life of the process and sets the clock by the server.
    pub async fn join(db: &Db, clock: &Clock, lease_ms: i64) -> Result<Self> {
        let fresh = uuid::Uuid::new_v4();
        let mut tx = db.begin().await?;
        let skew = clock.correct(tx.server_time().await?.into());
        if skew.abs() > 2_000 {
            tracing::warn!(skew_ms = skew, "the clock of this machine differs from the database's");
        }
        let now = clock.now();
        let installation =
            store::meta(&mut tx, "installation", &fresh.simple().to_string()).await?;
        let this = Self {
            id: NodeId(fresh.to_string()),
            host: host_name(),
            lease_ms,
            lease_until: now.plus(lease_ms),
            installation: installation.chars().take(store::INSTALLATION_CHARS).collect(),
        };
        let row = node::Node {
            node_id: this.id.clone(),
            host: this.host.clone(),
            pid: std::process::id().into(),
            lease_until: this.lease_until,
        };
        node::forget(&mut tx, now.plus(-KEEP_MS)).await?;
        node::register(&mut tx, &row, env!("CARGO_PKG_VERSION"), now).await?;
        tx.commit().await.context("register this node")?;
        Ok(this)
    }

    /// The identity of this life.
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// Marks this process's session locks on data sources.
    pub fn installation(&self) -> &str {
        &self.installation
    }

    /// How often the lease is renewed: three times within its length.
    pub fn heartbeat_ms(&self) -> i64 {
        self.lease_ms / 3
    }

    /// Renews the lease and the clock's correction. `false` when it had run out before: others may
    /// have taken over what was ours, so memory has to be held against the rows.
    pub async fn beat(&mut self, db: &Db, clock: &Clock) -> Result<bool> {
        let mut tx = db.begin().await?;
        clock.correct(tx.server_time().await?.into());
        let now = clock.now();
        let until = now.plus(self.lease_ms);
        if !node::renew(&mut tx, &self.id, now, until).await? {
            bail!("this node's row is gone from cluster_node");
        }
        tx.commit().await?;
        let was_alive = now < self.lease_until;
        self.lease_until = until;
        Ok(was_alive)
    }

    /// Ends the lease at once, so that nobody has to wait for it.
    pub async fn leave(&self, db: &Db, now: Millis) -> Result<()> {
        let mut tx = db.begin().await?;
        node::renew(&mut tx, &self.id, now, now).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// The name of this machine.
pub fn host_name() -> String {
    // std has no host name; /etc/hostname and $HOSTNAME are what the machines we run on offer.
    let file = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match file.trim() {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}
