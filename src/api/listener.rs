//! The HTTP listeners: opened before the engine starts, served by a task of their own beside it.

use crate::api::carry_out;
use crate::api::connection_limit::ConnectionTable;
use crate::api::events;
use crate::api::request_runtime::RequestRuntime;
use crate::api::state::ApiState;
use crate::api::tls::{ConnectionSecurity, ListenerTls};
use crate::api::{connection, probe_router, router};
use crate::config::{ConnectionLimits, Doorway, ListeningOptions};
use axum::Router;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// An address that cannot be listened on; the message names the setting and the hint.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: cannot listen on {address}: {cause}; {cure}")]
pub struct NoListener {
    address: SocketAddr,
    cause: std::io::Error,
    setting: &'static str,
    cure: &'static str,
}

/// The setting that says where a door is, and what helps when it cannot be there.
#[derive(Clone, Copy, Debug)]
pub struct ListenerSetting {
    /// What it is called.
    pub setting: &'static str,
    /// What helps.
    pub cure: &'static str,
}

/// Where requests come in.
const FRONT: ListenerSetting = ListenerSetting {
    setting: "http.listen",
    cure: "give another address (--http ADDR or http.listen, port 0 for any free one), or --http off",
};

/// Where probes alone are answered.
const PROBES: ListenerSetting = ListenerSetting {
    setting: "http.probes",
    cure: "give another address (port 0 for any free one), or http.probes = \"off\"",
};

/// A listener that is open and not yet served: connecting clients wait.
pub struct Door {
    /// Not bound to a runtime yet: another one may serve it.
    listener: std::net::TcpListener,
    address: SocketAddr,
    /// `None` without TLS.
    tls: Option<Arc<ListenerTls>>,
}

/// Length of the accept queue. Of 1,000 executors that connected at once, 305 found the usual 128
/// slots taken and sent their first byte a second later, when TCP retries.
const BACKLOG: u32 = 4_096;

fn listen(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // The address of a process that has just ended is free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Limits for connections of an executor's admin, which sends a token with each request.
const STAFFED_LIMITS: ConnectionLimits = ConnectionLimits {
    total: 512,
    per_address: 512,
    without_login: 512,
    header_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(60),
    stalled_timeout: Duration::from_secs(30),
};

/// Time limit of answers in flight once the listener closes.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Door {
    /// Opens a listener for requests.
    pub async fn open_socket(address: SocketAddr) -> Result<Self, NoListener> {
        Self::open_as(FRONT, address).await
    }

    /// Opens a listener with another setting and hint.
    pub async fn open_as(
        setting: ListenerSetting,
        address: SocketAddr,
    ) -> Result<Self, NoListener> {
        let ListenerSetting { setting, cure } = setting;
        let failure = |cause| NoListener { address, cause, setting, cure };
        let listener = listen(address).map_err(failure)?;
        let address = listener.local_addr().map_err(failure)?;
        Ok(Self { listener, address, tls: None })
    }

    /// Adds TLS.
    #[must_use]
    pub fn with_tls(self, tls: Option<Arc<ListenerTls>>) -> Self {
        Self { tls, ..self }
    }

    /// Its address, with the port that the system chose when 0 was configured.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled, and at most half a second longer.
    pub async fn attend(self, house: Arc<ApiState>, stop: CancellationToken) {
        let closing = house.reads.closing.clone();
        let watching = events::attend(house.clone(), stop.clone());
        let revoking = events::end_revoked(house.clone(), stop.clone());
        let close = async {
            stop.cancelled().await;
            closing.cancel();
        };
        let held = house.executors.keep_refused(&stop);
        let carrying_out = carry_out::attend(house.clone(), stop.clone());
        let limits = house.app.config.limits.connections();
        let table = ConnectionTable::new(limits, house.doorway.clone());
        let serving = self.answer(router(house.clone()), table, LAST_WORDS, stop.clone());
        tokio::join!(serving, watching, revoking, close, held, carrying_out);
        // Messages of executors that are being written; an executor without an answer repeats its
        // message.
        let written = tokio::time::timeout(LAST_WORDS, house.executors.close()).await;
        if written.is_err() {
            tracing::debug!("the last words of executors were left to be said again");
        }
    }

    /// Serves `router` in a task of its own, until that is closed and at most `last` longer.
    pub fn staffed(self, router: Router, last: Duration) -> Attended {
        let stop = CancellationToken::new();
        let table = ConnectionTable::new(STAFFED_LIMITS, Doorway::default());
        let task = tokio::spawn(self.answer(router, table, last, stop.clone()));
        Attended { tasks: vec![task], runtimes: Vec::new(), stop: stop.drop_guard() }
    }

    /// Serves only probes until `stop` is cancelled.
    async fn answer_probes(self, house: Arc<ApiState>, stop: CancellationToken) {
        let limits = house.app.config.probe_connections();
        let table = ConnectionTable::new(limits, house.doorway.clone());
        self.answer(probe_router(house), table, LAST_WORDS, stop).await;
    }

    async fn answer(
        self,
        router: Router,
        table: Arc<ConnectionTable>,
        last: Duration,
        stop: CancellationToken,
    ) {
        let listener = match TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, "the listener failed; the work goes on without it");
                return;
            }
        };
        let connections = TaskTracker::new();
        if let Some(tls) = self.tls.clone() {
            let stop = stop.clone();
            connections.spawn(async move { tls.keep_current(stop).await });
        }
        let admission = Admission { table, router, tls: self.tls, stop: stop.clone() };
        let broken = CancellationToken::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let serving = admission.clone().admit(stream, peer);
                    let broken = broken.clone();
                    connections.spawn(async move {
                        tokio::select! {
                            () = serving => {}
                            () = broken.cancelled() => {}
                        }
                    });
                }
                // A fault of one client, or no file descriptor is left: a moment later there may be
                // one.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        drop(listener);
        connections.close();
        if tokio::time::timeout(last, connections.wait()).await.is_err() {
            broken.cancel();
            connections.wait().await;
        }
    }
}

/// What each connection of a listener is served with.
#[derive(Clone)]
struct Admission {
    table: Arc<ConnectionTable>,
    router: Router,
    tls: Option<Arc<ListenerTls>>,
    stop: CancellationToken,
}

impl Admission {
    /// Serves a connection, once there is a slot for it. A handshake counts as a connection without
    /// a login, and may take as long as the head of a request.
    async fn admit(self, stream: TcpStream, peer: SocketAddr) {
        let Self { table, router, tls, stop } = self;
        let (place, tls) = match (table.enter(peer.ip()).await, tls) {
            (Some(place), tls) => (place, tls),
            (None, None) => return connection::refuse(stream).await,
            // A client that waits for a handshake can read no answer.
            (None, Some(_)) => return,
        };
        let limits = *table.limits();
        let Some(tls) = tls else {
            let security = ConnectionSecurity::Clear;
            return connection::serve(stream, security, peer, place, router, stop, limits).await;
        };
        let handshake = tokio::time::timeout(limits.header_timeout, tls.accept(stream));
        let evicted = place.connection.evicted.clone();
        let secured = tokio::select! {
            done = handshake => done,
            () = evicted.cancelled() => return,
            () = stop.cancelled() => return,
        };
        match secured {
            Ok(Ok((stream, security))) => {
                connection::serve(stream, security, peer, place, router, stop, limits).await;
            }
            Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
        }
    }
}

/// The listeners of a process; connecting clients wait until they are served.
pub struct Front {
    requests: Option<Door>,
    probes: Option<Door>,
}

impl Front {
    /// Opens the configured listeners.
    pub async fn open_listeners(options: &ListeningOptions) -> Result<Self, NoListener> {
        let requests = match options.listen {
            Some(address) => Some(Door::open_socket(address).await?),
            None => None,
        };
        let probes = match options.probes {
            Some(address) => Some(Door::open_as(PROBES, address).await?),
            None => None,
        };
        Ok(Self { requests, probes })
    }

    /// Adds TLS for requests, and for probes if `probes` says so.
    #[must_use]
    pub fn with_tls(
        self,
        requests: Option<Arc<ListenerTls>>,
        probes: Option<Arc<ListenerTls>>,
    ) -> Self {
        Self {
            requests: self.requests.map(|door| door.with_tls(requests)),
            probes: self.probes.map(|door| door.with_tls(probes)),
        }
    }

    /// The address for requests.
    pub fn address(&self) -> Option<SocketAddr> {
        self.requests.as_ref().map(Door::address)
    }

    /// The address for probes only.
    pub fn probes(&self) -> Option<SocketAddr> {
        self.probes.as_ref().map(Door::address)
    }

    /// Starts to serve, requests and probes each on a runtime of their own.
    pub fn attend(self, house: Arc<ApiState>) -> std::io::Result<Attended> {
        let stop = CancellationToken::new();
        let (mut tasks, mut runtimes) = (Vec::new(), Vec::new());
        if let Some(door) = self.requests {
            let runtime = RequestRuntime::for_requests()?;
            tasks.extend(runtime.spawn(door.attend(house.clone(), stop.clone())));
            runtimes.push(runtime);
        }
        if let Some(door) = self.probes {
            let runtime = RequestRuntime::for_probes()?;
            tasks.extend(runtime.spawn(door.answer_probes(house, stop.clone())));
            runtimes.push(runtime);
        }
        Ok(Attended { tasks, runtimes, stop: stop.drop_guard() })
    }
}

/// The serving tasks; they end when this is dropped.
pub struct Attended {
    tasks: Vec<JoinHandle<()>>,
    runtimes: Vec<RequestRuntime>,
    stop: DropGuard,
}

impl Attended {
    /// Closes the listeners, and waits for the last answers within their time limit.
    pub async fn close(self) {
        drop(self.stop);
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "a listener broke down");
            }
        }
        drop(self.runtimes);
    }
}
