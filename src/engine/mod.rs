//! engine: runs. In: orders and a store. Out: rows that changed, and news of them.
//! May name: domain, secret_store, store, handler, remote, notify, trace. Never: SQL, HTTP, words for people.
//! Invariant: nothing outside the database happens before the commit that records it.
//! `dispatcher` decides what starts next, `worker` runs it, `operator_actions` does what operators ask for, `node` and
//! `heartbeat` keep the lease of this process, `acquire_batches` takes unowned batches. `executor` is an executor of an
//! XXL-JOB admin, `admin` is the admin of other executors.

pub mod attempt;
pub mod clock;
pub mod cluster;
mod db_retry;
pub mod dispatch;
pub mod hints;
pub mod observe;
pub mod opening;
pub mod operate;
pub mod outbox;
pub mod retention;
pub mod secrets;
pub mod trigger;
pub mod xxl;

use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::remote::executors::ClientTlsFiles;
use crate::secret_store::SecretStores;

pub use crate::domain::node_placement::{Role, Roles};
pub use cluster::node::Node;
pub use cluster::node::host_name;
pub use opening::cross_batch::read as outside;

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct Options {
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

/// News of a change that is committed; for whoever shows progress. Losing one loses nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// When.
    pub at: Millis,
    /// Which batch.
    pub batch_no: BatchNo,
    /// Of which group.
    pub group: GroupCode,
    /// Which job.
    pub job_code: JobCode,
    /// Its state from now on.
    pub status: QueueStatus,
    /// Which start.
    pub attempt: u32,
    /// How long the try took, when one ended; milliseconds.
    pub took_ms: Option<i64>,
    /// What was said.
    pub message: Option<String>,
    /// When it may start again.
    pub not_before: Option<Millis>,
}
