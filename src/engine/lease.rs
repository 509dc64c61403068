//! How the lease of this process stands, for whoever has to act on it. `cluster::heartbeat` renews it.

use tokio::sync::watch;

/// How the lease stands, for whoever has to act on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Life {
    /// All that runs here must end, and nothing is started.
    pub(in crate::engine) is_fenced: bool,
    /// How often others may have taken over what was ours, so that all of it is to be read anew.
    pub(in crate::engine) doubts: u64,
}

/// Returns when all that runs here must end; never while the lease holds.
pub(in crate::engine) async fn fenced(mut life: watch::Receiver<Life>) {
    if life.wait_for(|life| life.is_fenced).await.is_err() {
        std::future::pending().await
    }
}
