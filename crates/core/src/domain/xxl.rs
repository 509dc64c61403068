//! Runs on XXL-JOB executors: their states, and the rows of XXL-JOB's own database.

pub mod executor_run;
pub mod xxl_run;
pub mod xxl_tables;
