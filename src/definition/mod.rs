//! definition: reads and writes what a user defines. In: text of a file. Out: a `Definition`, or every fault with its place and cure.
//! May name: domain. Never: a database, a clock, the network.
//! Invariant: a `Definition` that leaves this room is complete, consistent and acyclic.

mod fault;
mod fields;
mod near;
mod node;
mod raw;
