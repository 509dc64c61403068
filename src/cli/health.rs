//! `health`: asks the `serve` of this machine how it is, for whoever starts it anew and has no curl.

use crate::cli::{Ended, Global, out};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How long the whole conversation may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
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

pub(super) async fn health(global: &Global, args: &HealthArgs) -> Result<Ended> {
    let mut config = global.config()?;
    if let Some(listen) = &args.http {
        config.http.listen.clone_from(listen);
    }
    let Some(address) = config.http()?.listen.map(reachable) else {
        bail!("http.listen is off, so nobody can ask; give it an address, or --http ADDR");
    };
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let asked = tokio::time::timeout(PATIENCE, ask(address, path)).await;
    let answer = asked.with_context(|| format!("no answer from {address} within 5 s"))?;
    let (is_well, said) = answer.with_context(|| format!("ask {address}{path}"))?;
    out::line(said.trim_end());
    Ok(if is_well { Ended::Well } else { Ended::Unwell })
}

/// Who listens on every address is asked on this machine's own.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

/// One question in HTTP/1.0, which closes behind its answer: a client with TLS, for four words on this
/// machine, would be most of what this command does.
async fn ask(address: SocketAddr, path: &str) -> Result<(bool, String)> {
    let mut stream = TcpStream::connect(address).await.context("connect")?;
    let question = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(question.as_bytes()).await.context("ask")?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer).await.context("read the answer")?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("that is no HTTP")?;
    let status = head.split(' ').nth(1).context("that is no HTTP")?;
    Ok((status == "200", body.to_owned()))
}
