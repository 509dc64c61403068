//! Forecasts when a batch will end, which jobs decide that, and whether it is late.

pub mod certainty;
pub mod deadline_standing;
pub mod delay;
pub mod delay_words;
pub mod dry_run;
pub mod eta;
pub mod lateness;
pub mod remaining;
pub mod simulation;
pub mod slack;
pub mod timeline;
