//! definition: reads and writes what a user defines. In: text of a file. Out: a `Definition`, or every fault with its place and cure.
//! May name: domain. Never: a database, a clock, the network.
//! Invariant: a `Definition` that leaves this room is complete, consistent and acyclic.
//! Story order: load (which form), node or csv (the tree), read and raw (what the user said), build,
//! source, job, check (what it means), diff (what changed).

mod body;
mod build;
mod check;
mod checks;
mod csv;
mod declare;
mod diff;
mod external;
mod fault;
mod fields;
mod files;
mod job;
mod job_kinds;
mod keys;
mod limits;
mod load;
mod near;
mod node;
mod params;
mod raw;
mod read;
mod read_checks;
mod read_kinds;
mod read_limits;
mod read_params;
mod read_parents;
mod runs_on;
mod shape;
mod source;

pub use diff::Change;
pub use diff::FieldChange;
pub use diff::How;
pub use diff::Thing;
pub use diff::diff;
pub use fault::Fault;
pub use fault::Faults;
pub use load::Loaded;
pub use load::load;
pub(crate) use near::did_you_mean;

#[cfg(test)]
mod tests;
