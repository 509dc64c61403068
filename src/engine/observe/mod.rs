//! Metrics, traces and lateness alerts of this process. Other parts record plain values here; this
//! module queries none of them.

pub(super) mod lateness;
pub mod metrics;
pub mod traces;
