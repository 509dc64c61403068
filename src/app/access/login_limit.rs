//! How many log-ins there may be at once: each hashes a password, which takes memory and time on purpose.

use crate::app::access::NotIn;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Seconds after which a log-in that found no room may be tried again.
const RETRY_AFTER: u32 = 2;

/// Log-ins at once; clones share it.
#[derive(Clone)]
pub(super) struct LoginLimit(Arc<Semaphore>);

impl LoginLimit {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// Room for one, before the database or a hash is touched; held until it has ended.
    pub(super) fn enter(&self) -> Result<OwnedSemaphorePermit, NotIn> {
        self.0.clone().try_acquire_owned().map_err(|_| NotIn::Busy(RETRY_AFTER))
    }
}
