//! Runs one attempt of one job: its claim, secrets, log, time limit and record. It knows neither
//! the dispatcher nor XXL-JOB: the caller passes everything the attempt needs, and the attempt
//! reports how it ended.

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
