//! Runs batches: what starts next and where, what comes of it, and one commit for all of it.
//! The way of an attempt is `claim`, `launch`, then `attempt::run`, then `settle`; `run_loop` turns, `dispatcher` holds
//! what is in memory, and `commit` writes it.

pub mod acquire;
pub mod backfill;
pub(super) mod batch;
pub(super) mod claim;
pub(super) mod commit;
pub(super) mod detect_orphans;
pub mod dispatcher;
pub(super) mod end_orphans;
pub(super) mod fan_out;
pub(super) mod lateness_alerts;
pub(super) mod launch;
pub(super) mod long_running_alerts;
pub mod open;
pub(super) mod progress;
pub(super) mod run_loop;
pub(super) mod settle;
pub(super) mod shutdown;
pub(super) mod stop;
pub(super) mod sub_batches;
pub(super) mod tell_metrics;
pub(super) mod writes;
