//! The trigger core: schedules become firings, firings become batches.

pub mod acting;
pub mod planner;
mod telling;
