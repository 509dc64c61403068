//! XXL-JOB from both sides: `admin` has executors run jobs, `executor` runs batches for another admin.
//! `rejected_access` counts callers without the right token.

pub mod admin;
pub mod executor;
mod rejected_access;
