//! A server as if it were far away: what is sent to it and what it answers arrives half a round trip later.

use anyhow::{Context as _, Result};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;
use url::Url;

/// The round trip in milliseconds, as `make bench RTT=5` sets it.
const VARIABLE: &str = "PROCESSION_BENCH_RTT";

/// Ports of this process by the servers behind them.
static LINES: Mutex<Option<HashMap<String, u16>>> = Mutex::new(None);

/// The round trip that is added; none unless one was asked for.
pub(crate) fn round_trip() -> Result<Option<Duration>> {
    let Some(text) = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let ms: u64 = text.parse().with_context(|| format!("{VARIABLE}={text} is no number of ms"))?;
    Ok(Some(Duration::from_millis(ms)).filter(|round_trip| !round_trip.is_zero()))
}

/// The server of `url`, by way of a slow line if one was asked for. `port` is used where the URL has none.
pub(crate) fn via_slow_line(url: String, port: u16) -> Result<String> {
    let Some(round_trip) = round_trip()? else { return Ok(url) };
    let mut parsed = Url::parse(&url)?;
    let host = parsed.host_str().context("a server has a host")?;
    let server = format!("{host}:{}", parsed.port().unwrap_or(port));
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = lines.get_or_insert_with(HashMap::new);
    let here = match lines.get(&server) {
        Some(here) => *here,
        None => {
            let here = lay_line(server.clone(), round_trip / 2)?;
            lines.insert(server, here);
            here
        }
    };
    parsed.set_host(Some("127.0.0.1"))?;
    parsed.set_port(Some(here)).map_err(|()| anyhow::anyhow!("{url}: no port can be set"))?;
    Ok(parsed.to_string().trim_end_matches('/').to_owned())
}

/// On a thread of its own, so that what is measured does not wait for the line, nor the line for it.
fn lay_line(server: String, delay: Duration) -> Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("slow line".to_owned()).spawn(move || {
        runtime.block_on(async {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            while let Ok((client, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(&server).await {
                        connect(client, server, delay).await;
                    }
                });
            }
        });
    })?;
    Ok(port)
}

async fn connect(client: TcpStream, server: TcpStream, delay: Duration) {
    let _without_it_it_is_only_slower = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    // Either end closing closes the other.
    tokio::select! {
        () = pass(from_client, to_server, delay) => {}
        () = pass(from_server, to_client, delay) => {}
    }
}

/// Passes bytes on when their time has come; more may be on their way meanwhile.
async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    delay: Duration,
) {
    let (sender, mut on_their_way) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let sends = async {
        let mut bytes = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            if sender.send((Instant::now() + delay, bytes[..count].to_vec())).is_err() {
                break;
            }
        }
        drop(sender);
    };
    let arrives = async {
        while let Some((at, bytes)) = on_their_way.recv().await {
            tokio::time::sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                break;
            }
        }
    };
    tokio::join!(sends, arrives);
}
