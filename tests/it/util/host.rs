//! A small HTTP server of the test's own, on a port that the system gives.

use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What it answers to one request.
pub(crate) enum Reply {
    /// Status, further header lines, body.
    Say(u16, String, Vec<u8>),
    /// These bytes and nothing more, then the end of the connection.
    Raw(Vec<u8>),
    /// Nothing, for ever.
    Hang,
    /// A body without end.
    Endless,
}

impl Reply {
    /// A short text.
    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::Say(status, String::new(), body.as_bytes().to_vec())
    }
}

/// The server and what it has been asked.
pub(crate) struct Host {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    count: watch::Receiver<usize>,
}

impl Host {
    /// Starts one that answers with `reply`, given the whole request as text.
    pub(crate) async fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (asked, reply) = (Arc::new(Mutex::new(Vec::new())), Arc::new(reply));
        let (counter, count) = watch::channel(0);
        let (list, counter) = (asked.clone(), Arc::new(counter));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (list, counter, reply) = (list.clone(), counter.clone(), reply.clone());
                tokio::spawn(async move {
                    // A client that went away is part of some tests.
                    let _ = serve(stream, &list, &counter, &*reply).await;
                });
            }
        });
        Self { url, asked, count }
    }

    /// The requests so far, each with head and body.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("the list").clone()
    }

    /// Returns when so many requests have come.
    pub(crate) async fn heard(&self, requests: usize) {
        let mut count = self.count.clone();
        count.wait_for(|n| *n >= requests).await.expect("the server lives");
    }
}

async fn serve(
    mut stream: TcpStream,
    list: &Mutex<Vec<String>>,
    counter: &watch::Sender<usize>,
    reply: &(dyn Fn(&str) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let request = read(&mut stream).await?;
    if request.is_empty() {
        return Ok(());
    }
    let answer = reply(&request);
    list.lock().expect("the list").push(request);
    counter.send_modify(|n| *n += 1);
    match answer {
        Reply::Say(status, more, body) => {
            let head =
                format!("HTTP/1.1 {status} Word\r\nContent-Length: {}\r\n{more}\r\n", body.len());
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body).await?;
            stream.shutdown().await
        }
        Reply::Raw(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        }
        Reply::Hang => std::future::pending().await,
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            let chunk = vec![b'x'; 65_536];
            loop {
                stream.write_all(&chunk).await?;
            }
        }
    }
}

async fn read(stream: &mut TcpStream) -> std::io::Result<String> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4_096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>())?
                    .ok()
            });
            if body.len() >= length.unwrap_or(0) {
                return Ok(text.into_owned());
            }
        }
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Ok(String::new());
        }
        bytes.extend_from_slice(&chunk[..count]);
    }
}
