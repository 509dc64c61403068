//! Which jobs of a batch may start now, and what an attempt that ended makes of its row.

pub mod deferral;
pub mod readiness;
pub mod ready;
pub mod settlement;
pub mod slots;
pub mod why;
