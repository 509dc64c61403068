//! The start of a batch: the rows of an order, the definition it takes over, and the state of its
//! conditions and of its dependencies on other batches. Everything here works on rows in a
//! transaction of the caller, and holds no batch in memory.

pub mod create_batch;
pub(super) mod cross_batch;
pub(super) mod edge_conditions;
pub(super) mod large_values;
pub(super) mod refresh_definition;
pub mod refused;
pub mod unfinished_opening;
