//! api: the front door over HTTP. In: requests. Out: how this process is, and its meters.
//! May name: domain, store, engine. Never: SQL, a setting, a secret, a value of a job.
//! Invariant: what is answered without asking who asks tells nothing but health.
//! Every answer comes within a second or so, also when the database gives none.

mod health;
mod limited;

use crate::engine::vitals::Vitals;
use axum::Router;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;
use limited::Limited;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Settings of the front door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where it listens; nowhere when there is no address.
    pub listen: Option<SocketAddr>,
    /// How long a loop of this process may take for a turn.
    pub stalled: Duration,
}

/// An address that cannot be listened on; its text names the setting and the cure.
#[derive(Debug, thiserror::Error)]
#[error(
    "http.listen: cannot listen on {address}: {cause}; give another address (--http ADDR or http.listen, \
     port 0 for any free one), or --http off"
)]
pub struct NoListener {
    address: SocketAddr,
    cause: std::io::Error,
}

/// A door that is open and not yet attended: whoever connects waits.
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
}

/// How long answers that are on their way may take once the door closes.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Door {
    /// Opens it.
    pub async fn open(address: SocketAddr) -> Result<Self, NoListener> {
        let said = |cause| NoListener { address, cause };
        let listener = TcpListener::bind(address).await.map_err(said)?;
        let address = listener.local_addr().map_err(said)?;
        Ok(Self { listener, address })
    }

    /// Where it is: with the port that the system chose, when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is cancelled, and half a second longer at most.
    pub async fn attend(self, vitals: Arc<Vitals>, stop: CancellationToken) {
        let closes = stop.clone().cancelled_owned();
        let server = axum::serve(Limited::new(self.listener), routes(vitals));
        let served = server.with_graceful_shutdown(closes);
        let too_long = async {
            stop.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
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

fn routes(vitals: Arc<Vitals>) -> Router {
    Router::new()
        .route("/", get(async || "Procession. See /healthz, /readyz, /metrics\n"))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .fallback(async || (StatusCode::NOT_FOUND, "there is nothing here; see /\n"))
        .layer(map_response(guarded))
        .with_state(vitals)
}

/// What every answer has, refusals too.
async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
