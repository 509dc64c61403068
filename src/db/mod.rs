//! db: the SQL door. In: statement text with `?` and values. Out: rows, or a typed error.
//! May name: nothing of ours. Never: a word of the domain.
//! Invariant: sqlx is named here and nowhere else.

pub mod control;
mod decode;
pub mod dialect;
pub mod fault;
pub mod notice;
pub mod results;
pub mod routine;
pub mod session;
