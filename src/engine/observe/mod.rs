//! What this process says of itself: meters and spans.
//! Whoever does something worth counting tells it in plain values; it asks nobody.

pub(super) mod lateness;
pub mod metrics;
pub mod traces;
