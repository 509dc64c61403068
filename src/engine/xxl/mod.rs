//! XXL-JOB in both roles: `admin` lets executors run jobs, `executor` runs batches for another
//! admin. `rejected_access` records callers without a valid token.

pub mod admin;
pub mod executor;
mod rejected_access;
