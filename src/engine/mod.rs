//! engine: runs. In: orders and a store. Out: rows that changed, and events about them.
//! May name: domain, secret_store, store, handler, remote, notify, trace. Never: SQL, HTTP, words for people.
//! Invariant: nothing outside the database happens before the commit that records it.
//! Story order: clock, db_retry, host, lease, news, options, hints, secrets, observe, opening, attempt, cluster, operate, xxl, dispatch, trigger, outbox, retention.
//! Each folder is a part, and names only parts that stand before it in that order
//! (tests/it/layers.rs). `opening` writes the rows of a batch, `attempt` runs one attempt,
//! `cluster` keeps the lease and knows the other nodes, `operate` carries out operators' commands,
//! and `dispatch` decides what starts next and connects the other parts.

pub mod attempt;
pub mod clock;
pub mod cluster;
mod db_retry;
pub mod dispatch;
pub mod hints;
mod host;
mod lease;
mod news;
pub mod observe;
pub mod opening;
pub mod operate;
mod options;
pub mod outbox;
pub mod retention;
pub mod secrets;
pub mod trigger;
pub mod xxl;

pub use crate::domain::cluster::node_placement::{NodeRole, Roles};
pub use cluster::node::LocalNode;
pub use host::host_name;
pub use news::ProgressEvent;
pub use opening::cross_batch::read_awaited as outside;
pub use options::{EngineOptions, NodeOptions};
