//! Resource pools and locks, shared by jobs of all groups.

use serde::{Deserialize, Serialize};

/// A named pool of slots: the load that a database or a licence permits at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotPool {
    /// Unique name.
    pub name: String,
    /// Total number of slots.
    pub slots: u32,
}

/// The slots that a job occupies in a pool while it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PoolUse {
    /// Name of the pool.
    pub pool: String,
    /// Number of slots occupied.
    pub weight: u32,
}

/// How a job holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LockMode {
    /// No other job may hold the lock.
    Exclusive,
    /// Other jobs may hold the lock in shared mode.
    Shared,
}

/// A named lock that a job holds while it runs; two jobs that need it exclusively never run
/// together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LockUse {
    /// Name of the lock; it needs no declaration.
    pub lock: String,
    /// Exclusive or shared.
    pub mode: LockMode,
}
