//! Actions of people: on jobs and batches, approvals, change requests, and the hash chain over the
//! audit log. Everything is written to rows; a dispatcher reads them and acts accordingly.

pub mod approvals;
pub mod audit_chain;
pub mod audit_watch;
pub mod change_requests;
pub mod operator_actions;
pub mod pause;
