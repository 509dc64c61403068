//! A TCP proxy of the test's own between a program and its database, which fails when it is told to:
//! plain tokio, one task per connection, orders for all connections or for those to come.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// How a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// RST: both sides hear of it at once.
    Reset,
    /// FIN, as when the other program has closed it.
    Close,
    /// Not a word to anybody, for ever: the black hole.
    Silence,
}

/// Where a connection breaks when a pattern passes to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The server never sees it.
    Before,
    /// The server has it; the connection ends at once.
    Forwarded,
    /// The server has it and has answered; the answer never comes.
    Answered,
}

/// What a connection does with what it is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// Added to each piece, each way.
    pub(crate) latency: Duration,
    /// Bytes a second each way; 0: as fast as it goes.
    pub(crate) bandwidth: usize,
    /// Nothing passes this way.
    pub(crate) silent: Vec<Way>,
    /// Ends the connection after so many bytes to the client, counted from its begin.
    pub(crate) after_bytes: Option<(usize, End)>,
    /// Ends the first connection on which this text passes to the server, in any case of letters.
    pub(crate) cut: Option<(String, Moment, End)>,
    /// Ends each connection at once, also new ones.
    pub(crate) end: Option<End>,
}

impl Orders {
    /// Everything passes.
    pub(crate) fn pass() -> Self {
        Self::default()
    }

    /// Nothing passes, either way, and nobody is told.
    pub(crate) fn black_hole() -> Self {
        Self { silent: vec![Way::ToServer, Way::ToClient], ..Self::default() }
    }

    /// The first connection on which `text` passes to the server breaks there.
    pub(crate) fn cut(text: &str, moment: Moment, end: End) -> Self {
        Self { cut: Some((text.to_lowercase(), moment, end)), ..Self::default() }
    }
}

/// What is known of all connections together.
#[derive(Debug, Default)]
struct Shared {
    connections: AtomicUsize,
    cuts: AtomicUsize,
    /// The turn of orders whose pattern has been met.
    spent: AtomicU64,
    /// Orders for one connection, by its number, in place of those for all.
    own: Mutex<Vec<(usize, Orders)>>,
}

/// A running proxy; dropped, it and its connections end.
pub(crate) struct Proxy {
    port: u16,
    orders: watch::Sender<(u64, Orders)>,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.order(Orders { end: Some(End::Reset), ..Orders::default() });
    }
}

impl Proxy {
    /// One in front of `server` (`127.0.0.1:3306`), on a port that the system gives.
    pub(crate) async fn before(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (orders, heard) = watch::channel((0, Orders::pass()));
        let shared = Arc::new(Shared::default());
        let (of_task, server) = (shared.clone(), server.to_owned());
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = of_task.connections.fetch_add(1, SeqCst);
                let line = Line { number, heard: heard.clone(), shared: of_task.clone() };
                tokio::spawn(line.carry(client, server.clone()));
            }
        });
        Self { port, orders, shared, accepting }
    }

    /// One in front of the server of a URL, and that URL by way of it.
    pub(crate) async fn of_url(url: &str) -> (Self, String) {
        let parsed = url::Url::parse(url).expect("a URL");
        let default = if parsed.scheme() == "mysql" { 3306 } else { 5432 };
        let host = parsed.host_str().expect("a host");
        let server = format!("{host}:{}", parsed.port().unwrap_or(default));
        let proxy = Self::before(&server).await;
        let mut through = parsed.clone();
        through.set_host(Some("127.0.0.1")).expect("a host");
        through.set_port(Some(proxy.port)).expect("a port");
        // Patterns are found in what is not encrypted; many servers have TLS switched on.
        through.set_query(Some(match parsed.scheme() {
            "mysql" => "ssl-mode=disabled",
            _ => "sslmode=disable",
        }));
        (proxy, through.to_string())
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// From now on, on all connections that have no orders of their own.
    pub(crate) fn order(&self, orders: Orders) {
        self.orders.send_modify(|(turn, now)| {
            *turn += 1;
            *now = orders;
        });
    }

    /// Everything passes again. What a connection has lost meanwhile stays lost.
    pub(crate) fn heal(&self) {
        self.shared.own.lock().expect("the list").clear();
        self.order(Orders::pass());
    }

    /// Orders for one connection, counted from 0 in the order they came.
    pub(crate) fn order_one(&self, connection: usize, orders: Orders) {
        self.shared.own.lock().expect("the list").push((connection, orders));
        self.orders.send_modify(|(turn, _)| *turn += 1);
    }

    /// Ends all present connections; new ones pass.
    pub(crate) fn cut_all(&self, end: End) {
        let all = self.connections();
        let mut own = self.shared.own.lock().expect("the list");
        own.extend((0..all).map(|n| (n, Orders { end: Some(end), ..Orders::default() })));
        drop(own);
        self.orders.send_modify(|(turn, _)| *turn += 1);
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(SeqCst)
    }

    /// Connections that a pattern or a count of bytes has ended so far.
    pub(crate) fn cuts(&self) -> usize {
        self.shared.cuts.load(SeqCst)
    }
}

/// One connection.
#[derive(Clone)]
struct Line {
    number: usize,
    heard: watch::Receiver<(u64, Orders)>,
    shared: Arc<Shared>,
}

impl Line {
    /// What it is to do, and which turn of orders that is.
    fn orders(&self) -> (u64, Orders) {
        let own = self.shared.own.lock().expect("the list");
        let mine = own.iter().rev().find(|(number, _)| *number == self.number);
        let (turn, all) = &*self.heard.borrow();
        (*turn, mine.map_or(all, |(_, orders)| orders).clone())
    }

    async fn carry(self, mut client: TcpStream, server: String) {
        // A server that is away looks to the client as it would without us.
        let Ok(mut server) = TcpStream::connect(server).await else {
            let _gone_anyway = client.set_zero_linger();
            return;
        };
        let _slower_without = (client.set_nodelay(true), server.set_nodelay(true));
        let swallow = AtomicBool::new(false);
        let broken = {
            let ((from_client, to_client), (from_server, to_server)) =
                (client.split(), server.split());
            tokio::select! {
                end = self.clone().pump(Way::ToServer, from_client, to_server, &swallow) => end,
                end = self.clone().pump(Way::ToClient, from_server, to_client, &swallow) => end,
            }
        };
        let mut heard = self.heard.clone();
        // Both ends are held open, and nobody reads, for as long as the proxy lives.
        while broken.end == End::Silence && !self.is_over() && heard.changed().await.is_ok() {}
        if broken.end == End::Reset {
            let _gone_anyway = client.set_zero_linger();
            // What was forwarded is to be read first: RST would overtake it.
            if broken.whom == Whom::Both {
                let _gone_anyway = server.set_zero_linger();
            }
        }
    }

    /// The proxy ends.
    fn is_over(&self) -> bool {
        self.heard.borrow().1.end.is_some() || self.heard.has_changed().is_err()
    }

    /// Carries bytes one way until the connection ends or is to end.
    async fn pump(
        mut self,
        way: Way,
        mut read: ReadHalf<'_>,
        mut write: WriteHalf<'_>,
        swallow: &AtomicBool,
    ) -> Broken {
        let (mut buffer, mut seen, mut count) = (vec![0; 16_384], Vec::new(), 0);
        let by_order = |end| Broken { end, whom: Whom::Both };
        loop {
            let (_, orders) = self.orders();
            if let Some(end) = orders.end {
                return by_order(end);
            }
            let is_silent = orders.silent.contains(&way);
            let size = tokio::select! {
                read = read.read(&mut buffer), if !is_silent => read.unwrap_or(0),
                changed = self.heard.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return by_order(End::Reset),
                },
            };
            if size == 0 {
                return by_order(End::Close);
            }
            let (turn, orders) = self.orders();
            tokio::time::sleep(delay(&orders, size)).await;
            let piece = &buffer[..size];
            let cut = match (way, &orders) {
                (Way::ToServer, Orders { cut: Some(cut), .. }) => {
                    self.met(turn, cut, &mut seen, piece)
                }
                (Way::ToClient, Orders { cut: Some((_, _, end)), .. }) if swallow.load(SeqCst) => {
                    return Broken { end: *end, whom: Whom::Client };
                }
                (Way::ToClient, Orders { after_bytes: Some((most, end)), .. })
                    if count + size >= *most =>
                {
                    let _as_far_as_it_goes = write.write_all(&piece[..most - count]).await;
                    self.shared.cuts.fetch_add(1, SeqCst);
                    return Broken { end: *end, whom: Whom::Client };
                }
                _ => None,
            };
            count += size;
            if let Some((Moment::Before, end)) = cut {
                return Broken { end, whom: Whom::Client };
            }
            swallow.fetch_or(matches!(cut, Some((Moment::Answered, _))), SeqCst);
            if write.write_all(piece).await.is_err() {
                return by_order(End::Close);
            }
            if let Some((Moment::Forwarded, end)) = cut {
                return Broken { end, whom: Whom::Client };
            }
        }
    }

    /// Whether the pattern has come, also in two pieces. Only the first connection meets it.
    fn met(
        &self,
        turn: u64,
        (text, moment, end): &(String, Moment, End),
        seen: &mut Vec<u8>,
        piece: &[u8],
    ) -> Option<(Moment, End)> {
        seen.extend(piece.to_ascii_lowercase());
        let found = seen.windows(text.len()).any(|part| part == text.as_bytes());
        let kept = seen.len().saturating_sub(text.len());
        seen.drain(..kept);
        (found && self.shared.spent.swap(turn, SeqCst) != turn).then_some(())?;
        self.shared.cuts.fetch_add(1, SeqCst);
        Some((*moment, *end))
    }
}

/// How a connection came to its end.
struct Broken {
    end: End,
    whom: Whom,
}

/// Who hears RST.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    Both,
    /// The server sees an end of the connection like any other, after all that was sent.
    Client,
}

fn delay(orders: &Orders, size: usize) -> Duration {
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    let carried = match u64::try_from(orders.bandwidth) {
        Ok(rate @ 1..) => Duration::from_micros(size * 1_000_000 / rate),
        _ => Duration::ZERO,
    };
    orders.latency + carried
}
