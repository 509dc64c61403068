//! `executor_run`: what executors were asked to run, and what became of it. A status changes only by
//! compare-and-set.

mod telling;

pub use telling::{Known, Told, known, open_runs, tell};
