//! A listener that strangers cannot use up: so many connections at once, each for so long.
//!
//! Nobody has to say who he is here. Without a limit, whoever opens connections and says nothing takes
//! the file descriptors from the work.

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// Connections at once; further ones wait.
const MOST: usize = 256;
/// How long one may be kept. Prometheus keeps its own from scrape to scrape and makes a new one gladly.
const KEPT: Duration = Duration::from_secs(60);

pub(super) struct Limited {
    inner: TcpListener,
    places: Arc<Semaphore>,
    kept: Duration,
}

impl Limited {
    pub(super) fn new(inner: TcpListener) -> Self {
        Self { inner, places: Arc::new(Semaphore::new(MOST)), kept: KEPT }
    }
}

impl axum::serve::Listener for Limited {
    type Io = Kept;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Kept, SocketAddr) {
        let place = self.places.clone().acquire_owned().await;
        let place = place.expect("nobody closes the places");
        // Waits itself when the system has no file descriptors left.
        let (stream, address) = axum::serve::Listener::accept(&mut self.inner).await;
        let ends = Box::pin(tokio::time::sleep(self.kept));
        (Kept { stream, ends, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

impl Connected<IncomingStream<'_, Limited>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Limited>) -> Self {
        Self(*stream.remote_addr())
    }
}

/// A connection and its place; it breaks when its time is over.
pub(super) struct Kept {
    stream: TcpStream,
    ends: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl Kept {
    fn in_time(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.ends.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Kept {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.in_time(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Kept {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.in_time(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.in_time(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::serve::Listener as _;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn who_says_nothing_is_shown_out_and_makes_room() {
        let inner = TcpListener::bind("127.0.0.1:0").await.expect("listen");
        let address = inner.local_addr().expect("address");
        let mut door =
            Limited { inner, places: Arc::new(Semaphore::new(1)), kept: Duration::from_millis(1) };
        let _first = TcpStream::connect(address).await.expect("connect");
        let _second = TcpStream::connect(address).await.expect("connect");
        let (mut kept, _) = door.accept().await;
        let said = kept.read(&mut [0; 1]).await.expect_err("its time is over");
        assert_eq!(said.kind(), io::ErrorKind::TimedOut);
        assert_eq!(door.places.available_permits(), 0, "the second waits");
        drop(kept);
        door.accept().await;
    }
}
