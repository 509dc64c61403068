//! The trigger core: schedules become firings, firings become batches.

pub mod core;
pub mod firer;
mod hand_over;
pub mod planner;
pub mod pools;
mod telling;
