//! engine: runs. In: orders and a store. Out: rows that changed, and news of them.
//! May name: domain, store, handler, remote, notify, trace. Never: SQL, HTTP, words for people.
//! Invariant: nothing outside the database happens before the commit that records it.
//! `dispatcher` decides what goes next, `worker` does it, `acting` does what operators say, `node`
//! and `heartbeat` say that we are alive, `serving` takes what nobody has, `executor` is one of XXL-JOB's,
//! `admin` is the admin of others.

pub mod acting;
mod active;
pub mod admin;
mod alarms;
mod asking;
pub mod backfill;
mod changes;
mod children;
mod claiming;
pub mod clock;
mod committing;
mod conditions;
pub mod dispatcher;
mod earlier;
mod ending;
pub mod executor;
mod finishing;
mod fleet;
mod gate;
pub mod generating;
mod heartbeat;
pub mod hints;
mod hosting;
mod large_values;
mod late;
mod leaving;
mod lists;
mod measuring;
pub mod meter;
mod node;
pub mod opening;
mod orphans;
pub mod outbox;
mod outside;
mod patience;
mod picking;
mod recording;
mod refused;
mod renewing;
pub mod retention;
pub mod seal;
pub mod secret;
pub mod serving;
pub mod standing;
mod starting;
mod stopping;
mod suspension;
mod telling;
pub mod traces;
pub mod trigger;
mod turning;
pub mod vitals;
mod watching;
mod worker;

use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::queue::QueueStatus;
use crate::domain::time::Millis;

pub use crate::domain::place::{Role, Roles};
pub use node::Node;
pub use node::host_name;
pub use outside::read as outside;

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
    /// What this process is to others.
    pub node: NodeOptions,
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
