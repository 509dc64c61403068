//! The state of this process's lease, for the parts that must act on it. `cluster::heartbeat`
//! renews the lease.

use tokio::sync::watch;

/// The state of the lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Life {
    /// Everything that runs here must end, and nothing may start.
    pub(in crate::engine) is_fenced: bool,
    /// How often other processes may have taken over this process's batches, so that all of them
    /// must be read again.
    pub(in crate::engine) doubts: u64,
}

/// Returns when everything that runs here must end; never while the lease is valid.
pub(in crate::engine) async fn fenced(mut life: watch::Receiver<Life>) {
    if life.wait_for(|life| life.is_fenced).await.is_err() {
        std::future::pending().await
    }
}
