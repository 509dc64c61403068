//! Limits concurrent logins: each hashes a password, which takes memory and time on purpose.

use crate::app::access::NotIn;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Seconds after which a refused login may be retried.
const RETRY_AFTER: u32 = 2;

/// Maximum number of concurrent logins; clones share it.
#[derive(Clone)]
pub(super) struct LoginLimit(Arc<Semaphore>);

impl LoginLimit {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// A permit for one login, before the database or a hash is used; held until the login has
    /// ended.
    pub(super) fn enter(&self) -> Result<OwnedSemaphorePermit, NotIn> {
        self.0.clone().try_acquire_owned().map_err(|_| NotIn::Busy(RETRY_AFTER))
    }
}
