//! What people do: actions on jobs and batches, approvals, change requests, and the chain that seals the record of it.
//! Everything is written to rows; a dispatcher reads them and follows.

pub mod approvals;
pub mod audit_chain;
pub mod audit_watch;
pub mod change_requests;
pub mod operator_actions;
pub mod pause;
