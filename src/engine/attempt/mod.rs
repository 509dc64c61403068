//! Runs one attempt of one job: its claim, its secrets, its log, its time limit and what it leaves on record.
//! It knows no dispatcher and no XXL-JOB: an attempt is told what it needs, and reports how it ended.

pub(super) mod approvals;
pub(super) mod child_batches;
pub(super) mod claim_ack;
pub(super) mod claim_check;
mod earlier_checks;
pub(super) mod end_orphan;
mod large_outputs;
mod log_storage;
pub(super) mod record;
pub(super) mod run;
pub mod secret_reader;
mod secret_store_wait;
pub(super) mod start_gate;
