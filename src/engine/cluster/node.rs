//! This process as other nodes see it: registered once per process lifetime; `heartbeat` renews its
//! lease.

use crate::domain::cluster::lease::Uptime;
use crate::domain::cluster::skew::{Measurement, SKEW_MS};
use crate::domain::id::NodeId;
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::host::host_name;
use crate::engine::options::EngineOptions;
use crate::store::{self, Db, Tx, hosted, node};
use anyhow::{Context as _, Result};

/// How long an ended process stays in the table: a month, in which people may ask what ran where.
const KEEP_MS: i64 = 30 * 24 * 3_600_000;

/// This process.
#[derive(Clone, Debug)]
pub struct LocalNode {
    id: NodeId,
    host: String,
    offer: node::Offer,
    lease_ms: i64,
    lease_until: Millis,
    asked_at: Uptime,
    /// The clock measurement at that time; `None` for a clock that a test sets.
    measured: Option<Measurement>,
    /// Distinguishes session locks on data sources from those of other installations that share the
    /// source.
    installation: String,
}

impl LocalNode {
    /// Registers the process and sets the clock by the server's.
    pub async fn join_cluster(db: &Db, clock: &Clock, options: &EngineOptions) -> Result<Self> {
        match Self::try_to_join(db, clock, options).await {
            // Another first process has named the installation at this moment: the name is there
            // now.
            Err(error) if store::is_taken(&error) => Self::try_to_join(db, clock, options).await,
            joined => joined,
        }
    }

    async fn try_to_join(db: &Db, clock: &Clock, options: &EngineOptions) -> Result<Self> {
        let fresh = uuid::Uuid::new_v4();
        let asked_at = clock.uptime();
        let mut tx = db.begin().await?;
        // Not from `asked_at`, which is before the connection was made.
        let asked = clock.uptime();
        let (server_time, named) = node::time_and_installation(&mut tx).await?;
        let measured = clock.measure(asked, server_time);
        if let Some(measured) = measured {
            clock.follow(measured.base_ms);
            tell_skew(measured);
        }
        let now = clock.now();
        let lease_ms = options.lease_ms;
        let mine = &options.node;
        let name = if mine.name.is_empty() { host_name() } else { mine.name.clone() };
        let (incarnation, namesakes) = node::lives_of(&mut tx, &name, now).await?;
        if !mine.roles.is_empty() {
            warn_of(&name, incarnation, &namesakes);
        }
        let offer = node::Offer {
            name,
            incarnation,
            roles: mine.roles.clone(),
            labels: mine.labels.clone(),
            max_parallel: options.max_parallel,
            address: mine.address.clone(),
        };
        let installation = match named {
            Some(name) => name,
            None => {
                store::meta_or_insert(&mut tx, "installation", &fresh.simple().to_string()).await?
            }
        };
        let this = Self {
            id: NodeId(fresh.to_string()),
            host: host_name(),
            offer,
            lease_ms,
            lease_until: now.plus_ms(lease_ms),
            asked_at,
            measured,
            installation: installation.chars().take(store::INSTALLATION_CHARS).collect(),
        };
        this.register(&mut tx, now, this.lease_until).await?;
        tx.commit().await.context("register this node")?;
        Ok(this)
    }

    /// The identity of this process lifetime.
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// The name set by operators; another living node may have the same.
    pub fn name(&self) -> &str {
        &self.offer.name
    }

    /// Prefix of this installation's session locks on data sources.
    pub fn installation(&self) -> &str {
        &self.installation
    }

    /// The lease duration in milliseconds.
    pub(in crate::engine) fn lease_ms(&self) -> i64 {
        self.lease_ms
    }

    /// When the first lease expires.
    pub(in crate::engine) fn lease_until(&self) -> Millis {
        self.lease_until
    }

    /// When the first lease was requested.
    pub(super) fn asked_at(&self) -> Uptime {
        self.asked_at
    }

    /// The clock measurement when it joined.
    pub(in crate::engine) fn measured(&self) -> Option<Measurement> {
        self.measured
    }

    /// Inserts its row.
    pub(in crate::engine) async fn register(
        &self,
        tx: &mut Tx,
        now: Millis,
        until: Millis,
    ) -> Result<()> {
        let row = node::NodeRow {
            node_id: self.id.clone(),
            host: self.host.clone(),
            pid: std::process::id().into(),
            lease_until: until,
        };
        node::register(tx, &row, &self.offer, env!("CARGO_PKG_VERSION"), now).await
    }

    /// Ends the lease at once, so that no other process waits for its expiry. Rows older than a
    /// month are deleted here and not at the start, where the first job waits.
    pub async fn leave(&self, db: &Db, now: Millis) -> Result<()> {
        let mut tx = db.begin().await?;
        node::renew(&mut tx, &self.id, now, now).await?;
        tx.commit().await?;
        // The next process that ends deletes the remaining rows.
        if let Err(error) = delete_old_rows(db, now).await {
            tracing::debug!("old rows of processes are not deleted: {error:#}");
        }
        Ok(())
    }
}

/// Deletes rows of processes that ended long ago, in a transaction of its own: when it still held
/// the lock on its own row, two processes that ended together could deadlock, because a DELETE of
/// MySQL may lock rows that it only reads.
async fn delete_old_rows(db: &Db, now: Millis) -> Result<()> {
    let mut tx = db.begin().await?;
    node::forget(&mut tx, now.plus_ms(-KEEP_MS)).await?;
    hosted::forget(&mut tx, now.plus_ms(-KEEP_MS)).await?;
    Ok(tx.commit().await?)
}

fn tell_skew(measured: Measurement) {
    if measured.skew_ms.abs() > SKEW_MS {
        tracing::warn!(
            skew_ms = measured.skew_ms,
            "the clock of this machine differs from the database's; the database's is gone by"
        );
    }
}

/// Warns of another living node of the same name: their ids differ, but people go by names.
fn warn_of(name: &str, incarnation: u32, namesakes: &[node::NodeRow]) {
    for other in namesakes {
        tracing::warn!(
            node = name,
            incarnation,
            other_host = other.host,
            other_pid = other.pid,
            other_id = other.node_id.0,
            "another living process has the same node name; both work, and are told apart by id \
             and incarnation. Give each its own: procession serve --name NAME, or [node] name"
        );
    }
}
