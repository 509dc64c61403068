//! TLS of a listener: the handshake, and certificates that are reloaded when their files change.

use crate::config::{BadConfig, ListenerTlsFiles};
use rustls::ServerConfig;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// Interval between two checks of the files.
const RELOAD: Duration = Duration::from_secs(5);
/// The answer to HTTP without TLS.
const NO_TLS: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\
    Content-Length: 45\r\n\r\nthis address speaks TLS; write https:// here\n";

/// The protection of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionSecurity {
    /// Nothing.
    Clear,
    /// TLS.
    Tls,
    /// TLS with a verified client certificate.
    MutualTls,
}

/// TLS of a listener.
#[derive(Debug)]
pub struct ListenerTls {
    files: ListenerTlsFiles,
    current: RwLock<Arc<ServerConfig>>,
    digest: [u8; 32],
}

impl ListenerTls {
    /// Reads its files.
    pub fn load_files(files: ListenerTlsFiles) -> Result<Arc<Self>, BadConfig> {
        let config = files.read_files()?;
        Ok(Arc::new(Self { files, current: RwLock::new(config.server), digest: config.digest }))
    }

    fn current(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reloads the files when they change, until `stop` is cancelled. Open connections keep what
    /// they began with. Unusable files change nothing: one may be written, and the other not yet.
    pub(super) async fn keep_current(&self, stop: CancellationToken) {
        let mut digest = self.digest;
        let mut last_fault = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RELOAD) => {}
            }
            match self.files.read_files() {
                Ok(config) if config.digest != digest => {
                    digest = config.digest;
                    last_fault = None;
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) = config.server;
                    tracing::info!("the certificate of the listener was read anew");
                }
                Ok(_) => last_fault = None,
                Err(fault) => {
                    let fault = fault.to_string();
                    if last_fault.as_ref() != Some(&fault) {
                        tracing::error!("the listener keeps the certificate of before: {fault}");
                    }
                    last_fault = Some(fault);
                }
            }
        }
    }

    /// Performs the TLS handshake of a connection; the caller sets the time limit.
    pub(super) async fn accept(
        &self,
        mut stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, ConnectionSecurity)> {
        let mut first = [0];
        // A handshake begins with byte 22, a request with a capital letter.
        if stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
            stream.write_all(NO_TLS.as_bytes()).await?;
            stream.shutdown().await?;
            return Err(io::Error::other("a request without TLS"));
        }
        let stream = TlsAcceptor::from(self.current()).accept(stream).await?;
        let has_certificate = stream.get_ref().1.peer_certificates().is_some();
        let security = match has_certificate {
            true => ConnectionSecurity::MutualTls,
            false => ConnectionSecurity::Tls,
        };
        Ok((stream, security))
    }
}
