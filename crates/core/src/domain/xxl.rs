//! Runs on executors of XXL-JOB: their states, and the rows of its own database.

pub mod executor_run;
pub mod xxl_run;
pub mod xxl_tables;
