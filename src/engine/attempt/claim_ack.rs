//! Whether the commit that claims a row has succeeded.
//!
//! A body that needs a session and its lock gets both while its claim is being committed, which
//! takes as long (ADR 25). Until the commit is acknowledged the attempt writes and reports nothing;
//! if the commit fails, the task ends without a trace.

use tokio::sync::watch;

/// Announces the commit of claims. Dropping it without an announcement means that they were not
/// committed, or that the outcome of the commit is unknown.
pub(in crate::engine) struct Claiming(watch::Sender<bool>);

impl Claiming {
    pub(in crate::engine) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// The receiver for a task that begins before the outcome of the commit is known.
    pub(in crate::engine) fn awaited(&self) -> ClaimAck {
        ClaimAck(self.0.subscribe())
    }

    pub(in crate::engine) fn committed(self) {
        self.0.send_replace(true);
    }
}

/// The task's view of the commit that claims its row.
#[derive(Clone)]
pub(in crate::engine) struct ClaimAck(watch::Receiver<bool>);

impl ClaimAck {
    /// For a row whose claim was committed before its task began.
    pub(in crate::engine) fn before() -> Self {
        Self(watch::channel(true).1)
    }

    /// Whether the claim is known to be committed.
    pub(in crate::engine) fn is_known(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the outcome of the commit.
    pub(super) async fn is_committed(&self) -> bool {
        self.0.clone().wait_for(|is_committed| *is_committed).await.is_ok()
    }

    /// Returns only once the claim is committed.
    pub(in crate::engine) async fn wait_until_committed(&self) {
        if !self.is_committed().await {
            std::future::pending::<()>().await;
        }
    }

    /// Returns only once it is certain that the claim was not committed.
    pub(in crate::engine) async fn wait_until_lost(&self) {
        if self.is_committed().await {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn what_is_committed_is_known_from_then_on() {
        let claiming = Claiming::new();
        let claimed = claiming.awaited();
        assert_eq!(claimed.is_committed().now_or_never(), None);
        assert_eq!(claimed.wait_until_lost().now_or_never(), None);
        assert_eq!(claimed.wait_until_committed().now_or_never(), None);
        claiming.committed();
        assert_eq!(claimed.wait_until_committed().now_or_never(), Some(()));
        assert_eq!(claimed.is_committed().now_or_never(), Some(true));
        assert_eq!(claimed.wait_until_lost().now_or_never(), None);
        assert_eq!(claimed.is_committed().now_or_never(), Some(true), "asked again");
        assert_eq!(ClaimAck::before().is_committed().now_or_never(), Some(true));
    }

    #[test]
    fn what_nobody_commits_is_lost() {
        let claiming = Claiming::new();
        let claimed = claiming.awaited();
        drop(claiming);
        assert_eq!(claimed.is_committed().now_or_never(), Some(false));
        assert_eq!(claimed.wait_until_lost().now_or_never(), Some(()));
        assert_eq!(claimed.wait_until_committed().now_or_never(), None);
    }
}
