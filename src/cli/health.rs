//! `health`: asks the local `serve` process for its health, for supervisors without curl.

use crate::cli::{Global, VerbResult, out};
use crate::config::{ClientCertificateRule, ListenerTlsFiles};
use crate::outbound::tls_to_own_server;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use rustls::pki_types::ServerName;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Time limit of the whole request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of bytes read of an answer.
const ANSWER_MAX: u64 = 64 * 1024;

/// Arguments of `health`.
#[derive(Args)]
pub(super) struct HealthArgs {
    /// Where it answers: an IP address and a port [default: http.listen of the settings]
    #[arg(long, env = "PROCESSION_HTTP", value_name = "ADDR")]
    http: Option<String>,
    /// Ask whether it is ready (/readyz), and not only whether it lives (/healthz)
    #[arg(long)]
    ready: bool,
}

pub(super) async fn health(global: &Global, args: &HealthArgs) -> Result<VerbResult> {
    let mut config = global.config()?;
    if let Some(listen) = &args.http {
        config.http.listen.clone_from(listen);
    }
    let listening = config.listening_options()?;
    // If every client of the listener must present a certificate, probes are served elsewhere.
    let needs_certificate = config.http.listener_files().and_then(|files| files.client_rule())
        == Some(ClientCertificateRule::Everyone);
    let probes = listening.probes.filter(|_| needs_certificate && args.http.is_none());
    let Some(address) = probes.or(listening.listen) else {
        bail!("http.listen is off, so nobody can ask; give it an address, or --http ADDR");
    };
    let is_probes = listening.probes == Some(address);
    let tls = config.http.listener_files().filter(|_| !is_probes || config.http.probes_tls);
    let address = reachable(address);
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let asked = tokio::time::timeout(PATIENCE, http_get(address, path, tls.as_ref()));
    let answer = asked.await.with_context(|| format!("no answer from {address} within 5 s"))?;
    let (is_well, message) = answer.with_context(|| format!("ask {address}{path}"))?;
    out::print_line(message.trim_end());
    Ok(if is_well { VerbResult::Well } else { VerbResult::Unwell })
}

/// A listener on all addresses is queried on the loopback address.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

/// One request in HTTP/1.0, which closes the connection after its answer. With TLS the server must
/// present exactly the configured certificate: its name need not be this address.
async fn http_get(
    address: SocketAddr,
    path: &str,
    tls: Option<&ListenerTlsFiles>,
) -> Result<(bool, String)> {
    let stream = TcpStream::connect(address).await.context("connect")?;
    let question = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    let answer = match tls {
        None => exchange(stream, &question).await?,
        Some(files) => {
            let config = tls_to_own_server(files.own_certificate()?);
            let connector = TlsConnector::from(Arc::new(config.map_err(anyhow::Error::msg)?));
            let secured = connector.connect(ServerName::from(address.ip()), stream).await;
            exchange(secured.context("TLS with the certificate of http.tls_cert")?, &question)
                .await?
        }
    };
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("that is no HTTP")?;
    let status = head.split(' ').nth(1).context("that is no HTTP")?;
    Ok((status == "200", body.to_owned()))
}

async fn exchange<S>(mut stream: S, question: &str) -> Result<Vec<u8>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(question.as_bytes()).await.context("ask")?;
    stream.flush().await.context("ask")?;
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_MAX).read_to_end(&mut answer).await;
    match read {
        // A server that closes its connection without closing TLS has answered nevertheless.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(answer),
        read => read.map(|_| answer).context("read the answer"),
    }
}
