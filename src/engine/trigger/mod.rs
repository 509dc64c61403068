//! The trigger core: schedules become firings, firings become batches.
//!
//! `planner` writes rows under the schedule lock, `core` runs the timer ring, `pools` and `firer`
//! fire, `hand_over` is the handler that opens batches, `missed_firing_notices` notifies owners.

mod calendars;
pub mod core;
pub mod firer;
mod follow;
mod group_fire;
mod hand_over;
mod late;
mod missed_firing_notices;
mod one;
pub mod planner;
pub mod pools;
pub mod schedule_actions;

use crate::engine::cluster::process::ClusterProcess;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::trigger::core::{Planning, Ticking, TriggerCore};
use crate::engine::trigger::firer::Firer;
use crate::engine::trigger::planner::Planner;
use crate::engine::trigger::pools::{FiringPools, Widths};
use crate::store::Db;
use std::sync::Arc;

/// Connections to the same database for short locks: the server soon releases the locks of a
/// process that has stopped.
#[derive(Clone)]
pub struct TriggerDatabases {
    /// For work under the schedule lock (`Keeping::Brief`).
    pub planning: Db,
    /// For opening the batches of firings (`Keeping::Firing`).
    pub firing: Db,
}

impl QueueDispatcher {
    /// The trigger core of this process, under the same lease.
    pub fn trigger_core(&self, databases: TriggerDatabases, widths: Widths) -> TriggerCore {
        let process = self.process().clone();
        let ClusterProcess { db, clock, node, heart, meter, hints, secret_stores } = process;
        let node = node.id().clone();
        let planner = Planner::new(databases.planning, clock.clone(), node.clone(), meter.clone());
        let firer = Arc::new(
            Firer::new(databases.firing, clock.clone(), node, meter.clone())
                .with_secret_stores(secret_stores),
        );
        let pools = FiringPools::new(firer, widths);
        TriggerCore {
            planning: Planning::new(
                db,
                clock.clone(),
                meter.clone(),
                planner,
                hints,
                heart.clone(),
            ),
            ticking: Ticking::new(clock, meter, pools, heart),
        }
    }
}
