//! Settings of the engine.

use crate::domain::cluster::node_placement::Roles;
use crate::remote::executors::ClientTlsFiles;
use crate::secret_store::SecretStores;

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Jobs that run at once in this process, at most.
    pub max_parallel: u32,
    /// Waiting that counts as much as one point of priority.
    pub ageing_ms: i64,
    /// How long a process may be silent before others may take over what it owns.
    pub lease_ms: i64,
    /// How often a running body's new log lines are stored.
    pub log_flush_ms: u64,
    /// Bytes of log kept per try.
    pub log_max_bytes: usize,
    /// A job is parked when so many workers in a row have died while it ran.
    pub park_after: u32,
    /// How long a process that leaves waits for what runs before it hands back what may be.
    pub drain_ms: i64,
    /// What TLS to executors of XXL-JOB needs.
    pub executor_tls: ClientTlsFiles,
    /// What this process is to others.
    pub node: NodeOptions,
    /// Where secrets of the installation are.
    pub secret_stores: SecretStores,
}

/// What a process is to others.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    /// Its name; the machine's when it is empty.
    pub name: String,
    /// What it is for; with none it does its own order and is offered nothing.
    pub roles: Roles,
    /// Labels that jobs may ask for.
    pub labels: Vec<String>,
    /// Where it answers to HTTP.
    pub address: Option<String>,
}
