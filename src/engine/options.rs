//! Settings of the engine.

use crate::domain::cluster::node_placement::Roles;
use crate::remote::executors::ClientTlsFiles;
use crate::secret_store::SecretStores;

/// Settings of the engine, from the configuration.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Maximum number of jobs that run at once in this process.
    pub max_parallel: u32,
    /// Waiting time that raises the priority by one point, in milliseconds (ageing).
    pub ageing_ms: i64,
    /// Lease duration in milliseconds: a process silent for longer may lose its batches to others.
    pub lease_ms: i64,
    /// Interval at which new log lines of running bodies are stored, in milliseconds.
    pub log_flush_ms: u64,
    /// Maximum log size per attempt, in bytes.
    pub log_max_bytes: usize,
    /// Number of consecutive worker deaths after which a job is parked.
    pub park_after: u32,
    /// How long a shutdown waits for running bodies before it hands back those that may start
    /// elsewhere, in milliseconds.
    pub drain_ms: i64,
    /// TLS files for connections to XXL-JOB executors.
    pub executor_tls: ClientTlsFiles,
    /// Identity and roles of this node.
    pub node: NodeOptions,
    /// The configured secret stores.
    pub secret_stores: SecretStores,
}

/// How a process appears to other nodes.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    /// The node name; if empty, the host name.
    pub name: String,
    /// The roles of the node; a node without roles runs only its own order and is given no jobs.
    pub roles: Roles,
    /// Labels that jobs may require.
    pub labels: Vec<String>,
    /// The address of its HTTP server.
    pub address: Option<String>,
}
