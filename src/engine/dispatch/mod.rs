//! Runs batches: what starts next and where, what comes of it, and one commit for all of it.
//! The way of an attempt is `claim`, `launch`, then `attempt::run`, then `settle`; `run_loop` turns, `dispatcher` holds
//! what is in memory, and `commit` writes it.

pub mod acquire;
pub mod backfill;
mod batch;
mod claim;
mod commit;
mod cross_batch;
mod detect_orphans;
pub mod dispatcher;
mod end_orphans;
mod fan_out;
mod host_attempts;
mod late_results;
mod lateness_alerts;
mod launch;
mod lock_waits;
mod long_running_alerts;
mod look_around;
pub mod open;
mod progress;
mod reported_values;
mod run_loop;
mod settle;
mod shutdown;
mod stop;
mod sub_batches;
mod tell_metrics;
mod traces;
mod writes;
