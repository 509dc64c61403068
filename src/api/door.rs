//! The door: opened before the work begins, attended by a task of its own beside it.

use crate::api::events;
use crate::api::house::House;
use crate::api::limited::{Limited, Peer};
use crate::api::router;
use crate::config::Listening;
use axum::Router;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// An address that cannot be listened on; its text names the setting and the cure.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: cannot listen on {address}: {cause}; {cure}")]
pub struct NoListener {
    address: SocketAddr,
    cause: std::io::Error,
    setting: &'static str,
    cure: &'static str,
}

/// What says where a door is, and what helps when it cannot be there.
const FRONT: (&str, &str) = (
    "http.listen",
    "give another address (--http ADDR or http.listen, port 0 for any free one), or --http off",
);

/// A door that is open and not yet attended: whoever connects waits.
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
}

/// Connections that may wait to be accepted. Of 1,000 executors that came at once, 305 found the usual 128
/// places taken and said their first word a second later, when TCP tries again.
const BACKLOG: u32 = 4_096;

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // The address of a process that has just ended is free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// How long answers that are on their way may take once the door closes.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Door {
    /// Opens it.
    pub async fn open(address: SocketAddr) -> Result<Self, NoListener> {
        Self::open_as(FRONT, address).await
    }

    /// Opens one that has another setting and another cure.
    pub async fn open_as(
        (setting, cure): (&'static str, &'static str),
        address: SocketAddr,
    ) -> Result<Self, NoListener> {
        let said = |cause| NoListener { address, cause, setting, cure };
        let listener = listen(address).map_err(said)?;
        let address = listener.local_addr().map_err(said)?;
        Ok(Self { listener, address })
    }

    /// Where it is: with the port that the system chose, when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is cancelled, and half a second longer at most.
    pub async fn attend(self, house: Arc<House>, stop: CancellationToken) {
        let closing = house.reads.closing.clone();
        let watching = events::attend(house.clone(), stop.clone());
        let close = async {
            stop.cancelled().await;
            closing.cancel();
        };
        let held = house.executors.keep_refused(&stop);
        let serving = self.answer(router(house.clone()), LAST_WORDS, stop.clone());
        tokio::join!(serving, watching, close, held);
        // What executors said and is being written; who is not answered says it again.
        let written = tokio::time::timeout(LAST_WORDS, house.executors.close()).await;
        if written.is_err() {
            tracing::debug!("the last words of executors were left to be said again");
        }
    }

    /// Has `router` answer in a task of its own, until that is closed and `last` longer at most.
    pub fn staffed(self, router: Router, last: Duration) -> Attended {
        let stop = CancellationToken::new();
        let task = tokio::spawn(self.answer(router, last, stop.clone()));
        Attended { task: Some(task), stop: stop.drop_guard() }
    }

    async fn answer(self, router: Router, last: Duration, stop: CancellationToken) {
        let closes = stop.clone().cancelled_owned();
        let service = router.into_make_service_with_connect_info::<Peer>();
        let server = axum::serve(Limited::new(self.listener), service);
        let served = server.with_graceful_shutdown(closes);
        let too_long = async {
            stop.cancelled().await;
            tokio::time::sleep(last).await;
        };
        tokio::select! {
            ended = served => {
                if let Err(error) = ended {
                    tracing::error!(%error, "the front door broke down; the work goes on without it");
                }
            }
            () = too_long => {}
        }
    }
}

/// A door that is open; who knocks waits until it is attended.
pub struct Front(Option<Door>);

impl Front {
    /// Opens the door if there is to be one.
    pub async fn open(options: &Listening) -> Result<Self, NoListener> {
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
    pub fn attend(self, house: Arc<House>) -> Attended {
        let stop = CancellationToken::new();
        let attend = self.0.map(|door| door.attend(house, stop.clone()));
        Attended { task: attend.map(tokio::spawn), stop: stop.drop_guard() }
    }
}

/// The task that answers; it ends when this is dropped.
pub struct Attended {
    task: Option<JoinHandle<()>>,
    stop: DropGuard,
}

impl Attended {
    /// Closes the door, and waits for the last answers as long as they may take.
    pub async fn close(self) {
        drop(self.stop);
        if let Some(task) = self.task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the front door broke down");
        }
    }
}
