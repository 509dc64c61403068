//! One HTTP/1.1 connection: its requests, time limits and end.

use crate::api::connection_limit::{ConnectionPlace, InFlight, Peer, TrackedConnection};
use crate::api::tls::ConnectionSecurity;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, EXPECT};
use axum::response::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Interval between two checks of the time limits.
const CHECK: Duration = Duration::from_millis(500);
/// Maximum number of unread body bytes that are read so that the connection can be kept.
const DRAIN_MAX: usize = 256 * 1024;
/// Time limit for reading them.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// The answer to a refused connection.
const NO_ROOM: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\
    Retry-After: 2\r\nConnection: close\r\nContent-Length: ";
const NO_ROOM_BODY: &str = "{\"type\":\"urn:procession:problem:too-many-connections\",\
    \"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"too many connections have requests under \
    way; try again in 2 seconds, or ask the administrator of the server to raise limits.connections or \
    limits.connections_per_address\"}";

/// Refuses a connection when the limit is reached.
pub(super) async fn refuse(mut stream: TcpStream) {
    let text = format!("{NO_ROOM}{}\r\n\r\n{NO_ROOM_BODY}", NO_ROOM_BODY.len());
    let sent = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    };
    // A client that is gone needs no answer.
    let _sent = tokio::time::timeout(DRAIN_LIMIT, sent).await;
}

/// Serves the requests of a connection until it ends, exceeds a time limit or is evicted.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    security: ConnectionSecurity,
    peer: SocketAddr,
    place: ConnectionPlace,
    router: Router,
    stop: CancellationToken,
    limits: crate::config::ConnectionLimits,
) {
    let connection = place.connection.clone();
    let io = TokioIo::new(WatchedStream { stream, connection: connection.clone() });
    let answer = service_fn(|request: hyper::Request<Incoming>| {
        answer(router.clone(), request, peer, security, connection.clone())
    });
    let mut serving = std::pin::pin!(http1::Builder::new().serve_connection(io, answer));
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // The client closed the connection.
            _ended = serving.as_mut() => return,
            () = connection.evicted.cancelled() => return,
            () = stop.cancelled(), if !is_stopping => {
                is_stopping = true;
                serving.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep(CHECK) => {
                if connection.is_overdue(&limits, Instant::now()) {
                    return;
                }
            }
        }
    }
}

async fn answer(
    router: Router,
    request: hyper::Request<Incoming>,
    peer: SocketAddr,
    security: ConnectionSecurity,
    connection: Arc<TrackedConnection>,
) -> Result<Response, Infallible> {
    let in_flight = connection.begin_request();
    let (mut parts, incoming) = request.into_parts();
    parts.extensions.insert(ConnectInfo(Peer(peer)));
    parts.extensions.insert(security);
    parts.extensions.insert(connection);
    let waits = parts.headers.contains_key(EXPECT);
    let rest = RequestBody(Arc::new(Mutex::new(incoming)));
    let request = Request::from_parts(parts, Body::new(rest.clone()));
    let mut response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    // hyper closes a connection whose body was not read; the client is told, or the rest is read.
    let is_read = match waits {
        true => rest.is_read(),
        false => rest.drain().await,
    };
    if !is_read {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|inner| Body::new(AnswerBody { inner, _in_flight: in_flight })))
}

/// The body of a request, whose rest can be read after the handler.
#[derive(Clone)]
struct RequestBody(Arc<Mutex<Incoming>>);

impl RequestBody {
    fn is_read(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
    }

    /// Reads the rest if it is small and arrives soon; returns whether nothing is left.
    async fn drain(&self) -> bool {
        if self.is_read() {
            return true;
        }
        let mut left = DRAIN_MAX;
        let read = async {
            loop {
                let mut body = self.clone();
                match std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                    None => return true,
                    Some(Err(_)) => return false,
                    Some(Ok(frame)) => {
                        let bytes = frame.data_ref().map_or(0, Bytes::len);
                        let Some(rest) = left.checked_sub(bytes) else { return false };
                        left = rest;
                    }
                }
            }
        };
        tokio::time::timeout(DRAIN_LIMIT, read).await.unwrap_or(false)
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.is_read()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).size_hint()
    }
}

/// An answer; its request is in flight until all of it is sent.
struct AnswerBody {
    inner: Body,
    _in_flight: InFlight,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.inner)
    }
}

/// A stream that notes when bytes arrive and when the client accepts none.
struct WatchedStream<S> {
    stream: S,
    connection: Arc<TrackedConnection>,
}

impl<S> WatchedStream<S> {
    fn note_write<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.connection.note_write(written.is_pending());
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.connection.note_read();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.note_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.note_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
