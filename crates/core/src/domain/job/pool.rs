//! Resource pools and locks that jobs of any group share.

use serde::{Deserialize, Serialize};

/// A named pool of slots: what a database or a licence can bear at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotPool {
    /// Unique name.
    pub name: String,
    /// Slots there are.
    pub slots: u32,
}

/// What a job takes from a pool while it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PoolUse {
    /// The pool.
    pub pool: String,
    /// Slots taken.
    pub weight: u32,
}

/// How a job holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LockMode {
    /// Alone.
    Exclusive,
    /// Together with others that share it.
    Shared,
}

/// A named lock that a job holds while it runs; two jobs that need it exclusively never run together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LockUse {
    /// The lock; it exists by being named.
    pub lock: String,
    /// How.
    pub mode: LockMode,
}
