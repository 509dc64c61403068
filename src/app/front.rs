//! The front door beside the work: opened before it begins, attended by a task of its own.

use crate::api::{Door, NoListener, Options};
use crate::engine::vitals::Vitals;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A door that is open; who knocks waits until it is attended.
pub struct Front(Option<Door>);

impl Front {
    /// Opens the door if there is to be one.
    pub async fn open(options: &Options) -> Result<Self, NoListener> {
        Ok(Self(match options.listen {
            Some(address) => Some(Door::open(address).await?),
            None => None,
        }))
    }

    /// Where it is.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.as_ref().map(Door::address)
    }

    /// Answers from now on.
    pub fn attend(self, vitals: Vitals) -> Attended {
        let stop = CancellationToken::new();
        let attend = self.0.map(|door| door.attend(Arc::new(vitals), stop.clone()));
        Attended { task: attend.map(tokio::spawn), stop: stop.drop_guard() }
    }
}

/// The task that answers; it ends when this is dropped.
pub struct Attended {
    task: Option<JoinHandle<()>>,
    stop: DropGuard,
}

impl Attended {
    /// Closes the door, and waits for the last answers half a second at most.
    pub async fn close(self) {
        drop(self.stop);
        if let Some(task) = self.task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the front door broke down");
        }
    }
}
