//! remote: calls servers of XXL-JOB. In: messages. Out: their answers.
//! May name: domain, wire, outbound. Never: SQL, a task, a retry.
//! Invariant: it connects only to the addresses it was given, and sends the token to no other.

pub mod admin;
mod client;
pub mod executors;
