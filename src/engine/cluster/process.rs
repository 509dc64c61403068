//! State shared by every loop of one process.

use crate::engine::clock::Clock;
use crate::engine::cluster::heartbeat::Heart;
use crate::engine::cluster::node::LocalNode;
use crate::engine::hints::Hints;
use crate::engine::observe::metrics::Meter;
use crate::engine::options::EngineOptions;
use crate::secret_store::SecretStores;
use crate::store::Db;
use anyhow::Result;
use std::sync::Arc;

/// One process of the cluster: its database, clock, identity and lease. Clones refer to the same
/// process.
#[derive(Clone)]
pub(in crate::engine) struct ClusterProcess {
    pub(in crate::engine) db: Db,
    pub(in crate::engine) clock: Clock,
    pub(in crate::engine) node: LocalNode,
    /// Renews the lease, and reports when it is in doubt.
    pub(in crate::engine) heart: Arc<Heart>,
    pub(in crate::engine) meter: Arc<Meter>,
    pub(in crate::engine) hints: Hints,
    /// The configured secret stores.
    pub(in crate::engine) secret_stores: SecretStores,
}

impl ClusterProcess {
    /// Joins the cluster.
    pub(in crate::engine) async fn join_cluster(
        db: Db,
        clock: Clock,
        options: &EngineOptions,
    ) -> Result<Self> {
        let node = LocalNode::join_cluster(&db, &clock, options).await?;
        let (meter, hints) = (Arc::<Meter>::default(), Hints::new(db.clone(), clock.clone()));
        let heart = Arc::new(Heart::new(db.clone(), clock.clone(), node.clone(), meter.clone()));
        let secret_stores = options.secret_stores.clone();
        Ok(Self { db, clock, node, heart, meter, hints, secret_stores })
    }
}
