//! This process among others: its lease and heartbeat, the other nodes and what they report.
//! It says who lives and what runs where; what becomes of a batch is decided by whoever dispatches it.

pub mod health;
pub(super) mod heartbeat;
pub(super) mod held_locks;
pub(super) mod late_results;
pub(super) mod node;
pub(super) mod process;
pub(super) mod registry;
pub(super) mod remote_attempts;
mod suspension;
