//! remote: asks servers of XXL-JOB. In: what is to be said. Out: what they answered.
//! May name: domain, wire, outbound. Never: SQL, a task, another try.
//! Invariant: it speaks to the addresses it was given and to no other, and to these alone it shows the token.

pub mod admin;
mod client;
pub mod executors;
