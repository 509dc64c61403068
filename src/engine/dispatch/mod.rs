//! Runs batches: decides what starts next and where, settles the results, and commits all of it at
//! once. An attempt passes through `claim`, `launch`, `attempt::run` and `settle`; `run_loop`
//! drives the ticks, `dispatcher` holds the memory state, and `commit` writes it.

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
