//! Decides which jobs of a batch may start now, and what the end of an attempt changes in its row.

pub mod deferral;
pub mod readiness;
pub mod ready;
pub mod settlement;
pub mod slots;
pub mod why;
