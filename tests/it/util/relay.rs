//! A relay between a test and a server that can stop to pass bytes without closing anything, as a
//! firewall that forgets a connection does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Default)]
struct Line {
    is_cut: AtomicBool,
    /// How often it was cut. What was connected before stays silent for ever.
    cuts: AtomicU64,
    /// How often a client sent something after it had heard from the server, or first.
    round_trips: AtomicU64,
    /// What is looked for in what clients send.
    mark: Mutex<Vec<u8>>,
    /// How many round trips there had been when it came first; 0 while it has not.
    trips_at_mark: AtomicU64,
}

impl Line {
    fn look_for_mark(&self, sent: &[u8]) {
        let mark = self.mark.lock().expect("no test breaks here");
        if !mark.is_empty() && sent.windows(mark.len()).any(|part| part == &mark[..]) {
            let trips = self.round_trips.load(Ordering::SeqCst);
            let _first =
                self.trips_at_mark.compare_exchange(0, trips, Ordering::SeqCst, Ordering::SeqCst);
        }
    }
}

pub(crate) struct Relay {
    line: Arc<Line>,
    port: u16,
}

impl Relay {
    /// Passes everything to the server at `host:port`.
    pub(crate) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let port = listener.local_addr().expect("address").port();
        let (line, server) = (Arc::new(Line::default()), server.to_owned());
        let passing = Arc::clone(&line);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, server.clone(), Arc::clone(&passing)));
            }
        });
        Self { line, port }
    }

    /// The database of `url`, by way of the relay.
    pub(crate) fn url(&self, url: &str) -> String {
        let mut url = url::Url::parse(url).expect("a URL");
        url.set_port(Some(self.port)).expect("a port");
        url.to_string()
    }

    /// Round trips so far, over all connections.
    pub(crate) fn round_trips(&self) -> u64 {
        self.line.round_trips.load(Ordering::SeqCst)
    }

    /// Remembers how many round trips there had been when a client first sent `text`.
    pub(crate) fn mark(&self, text: &str) {
        *self.line.mark.lock().expect("no test breaks here") = text.as_bytes().to_vec();
    }

    /// How many there had been, the one of the text among them; `None` when nobody sent it.
    pub(crate) fn trips_to_mark(&self) -> Option<u64> {
        Some(self.line.trips_at_mark.load(Ordering::SeqCst)).filter(|trips| *trips > 0)
    }

    /// Nothing passes any more, and nothing is closed.
    pub(crate) fn cut(&self) {
        self.line.is_cut.store(true, Ordering::SeqCst);
        self.line.cuts.fetch_add(1, Ordering::SeqCst);
    }

    /// What connects from now on is served.
    pub(crate) fn heal(&self) {
        self.line.is_cut.store(false, Ordering::SeqCst);
    }
}

async fn connect(client: TcpStream, server: String, line: Arc<Line>) {
    let before = line.cuts.load(Ordering::SeqCst);
    if line.is_cut.load(Ordering::SeqCst) {
        let _kept_open = client;
        std::future::pending::<()>().await;
        return;
    }
    let Ok(server) = TcpStream::connect(&server).await else { return };
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    let client_was_last = Arc::new(AtomicBool::new(false));
    let pass = |mut from: tokio::net::tcp::OwnedReadHalf,
                mut to: tokio::net::tcp::OwnedWriteHalf,
                is_client: bool| {
        let (line, client_was_last) = (Arc::clone(&line), Arc::clone(&client_was_last));
        async move {
            let mut bytes = vec![0; 16_384];
            while let Ok(count @ 1..) = from.read(&mut bytes).await {
                if line.cuts.load(Ordering::SeqCst) != before {
                    std::future::pending::<()>().await;
                }
                if !client_was_last.swap(is_client, Ordering::SeqCst) && is_client {
                    line.round_trips.fetch_add(1, Ordering::SeqCst);
                }
                if is_client {
                    line.look_for_mark(&bytes[..count]);
                }
                if to.write_all(&bytes[..count]).await.is_err() {
                    break;
                }
            }
            if line.cuts.load(Ordering::SeqCst) != before {
                std::future::pending::<()>().await;
            }
        }
    };
    // Either end closing closes the other.
    tokio::select! {
        () = pass(from_client, to_server, true) => {}
        () = pass(from_server, to_client, false) => {}
    }
}
