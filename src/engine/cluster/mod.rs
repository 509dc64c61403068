//! This process within the cluster: its lease and heartbeat, the other nodes and their reports. It
//! knows which nodes are alive and what runs where; the dispatcher of a batch decides what follows
//! from that.

pub mod health;
pub(super) mod heartbeat;
pub(super) mod held_locks;
pub(super) mod late_results;
pub(super) mod node;
pub(super) mod process;
pub(super) mod registry;
pub(super) mod remote_attempts;
mod suspension;
