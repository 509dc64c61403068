//! What nodes know of each other: leases, clocks that differ, nodes that fall silent, where a job may run.

pub mod lease;
pub mod metadata_gap;
pub mod node_placement;
pub mod poll_interval;
pub mod silent_node;
pub mod skew;
