//! Rules between nodes: leases, clock differences, silent nodes, and the placement of jobs on
//! nodes.

pub mod lease;
pub mod metadata_gap;
pub mod node_placement;
pub mod poll_interval;
pub mod silent_node;
pub mod skew;
