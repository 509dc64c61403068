//! The proxy does what it is told: before an echo server, and before both database servers.

use crate::trust::proxy::{End, Moment, Orders, Proxy, Way};
use crate::trust::targets::{server, session};
use procession::domain::source::DialectName;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

/// Says everything back, and keeps what it heard.
async fn echo() -> (String, tokio::sync::mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (sender, heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut buffer = vec![0; 65_536];
                while let Ok(size @ 1..) = stream.read(&mut buffer).await {
                    let _nobody_asks = sender.send(buffer[..size].to_vec());
                    if stream.write_all(&buffer[..size]).await.is_err() {
                        break;
                    }
                }
                let _nobody_asks = sender.send(Vec::new());
            });
        }
    });
    (address, heard)
}

async fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(("127.0.0.1", proxy.port())).await.expect("the proxy")
}

async fn said(stream: &mut TcpStream, text: &str) -> std::io::Result<String> {
    stream.write_all(text.as_bytes()).await?;
    let mut buffer = vec![0; text.len()];
    let size =
        timeout(Duration::from_secs(20), stream.read(&mut buffer)).await.expect("an answer")?;
    Ok(String::from_utf8_lossy(&buffer[..size]).into_owned())
}

/// Nothing comes, although there is time.
async fn is_silent(stream: &mut TcpStream) -> bool {
    timeout(Duration::from_millis(300), stream.read(&mut [0; 16])).await.is_err()
}

#[tokio::test]
async fn what_passes_passes_and_what_is_slow_comes_later() {
    let (address, _heard) = echo().await;
    let proxy = Proxy::before(&address).await;
    let mut stream = connect(&proxy).await;
    assert_eq!(said(&mut stream, "hello").await.expect("an answer"), "hello");
    proxy.order(Orders { latency: Duration::from_millis(150), ..Orders::pass() });
    let start = Instant::now();
    assert_eq!(said(&mut stream, "hello").await.expect("an answer"), "hello");
    assert!(start.elapsed() >= Duration::from_millis(300), "there and back");
    proxy.order(Orders { bandwidth: 50, ..Orders::pass() });
    let start = Instant::now();
    assert_eq!(said(&mut stream, "0123456789").await.expect("an answer"), "0123456789");
    assert!(start.elapsed() >= Duration::from_millis(400), "10 bytes at 50 a second, twice");
}

#[tokio::test]
async fn a_black_hole_tells_nobody_and_heals() {
    let (address, mut heard) = echo().await;
    let proxy = Proxy::before(&address).await;
    let mut stream = connect(&proxy).await;
    said(&mut stream, "hello").await.expect("an answer");
    heard.recv().await.expect("heard");
    proxy.order(Orders::black_hole());
    stream.write_all(b"lost?").await.expect("nobody says no");
    assert!(is_silent(&mut stream).await && heard.try_recv().is_err());
    // As with TCP: what was on its way comes when the way is free again.
    proxy.heal();
    let mut buffer = [0; 5];
    stream.read_exact(&mut buffer).await.expect("the rest");
    assert_eq!(&buffer, b"lost?");
    // One way: the server hears, and nobody hears the server.
    proxy.order(Orders { silent: vec![Way::ToClient], ..Orders::pass() });
    stream.write_all(b"one way").await.expect("nobody says no");
    assert_eq!(heard.recv().await.expect("heard"), b"lost?");
    assert_eq!(heard.recv().await.expect("heard"), b"one way");
    assert!(is_silent(&mut stream).await);
}

#[tokio::test]
async fn connections_end_as_they_are_told() {
    let (address, mut heard) = echo().await;
    let proxy = Proxy::before(&address).await;
    let (mut one, mut two) = (connect(&proxy).await, connect(&proxy).await);
    said(&mut one, "one").await.expect("an answer");
    said(&mut two, "two").await.expect("an answer");
    proxy.order_one(0, Orders { end: Some(End::Reset), ..Orders::pass() });
    let gone = timeout(Duration::from_secs(20), one.read(&mut [0; 9])).await.expect("told");
    assert_eq!(gone.expect_err("RST").kind(), ErrorKind::ConnectionReset);
    assert_eq!(said(&mut two, "two").await.expect("an answer"), "two");
    proxy.order(Orders { after_bytes: Some((9, End::Close)), ..Orders::pass() });
    assert_eq!(said(&mut two, "abcdefg").await.expect("an answer"), "abc");
    assert_eq!(two.read(&mut [0; 9]).await.expect("FIN"), 0);
    proxy.heal();
    let mut three = connect(&proxy).await;
    assert_eq!(said(&mut three, "three").await.expect("an answer"), "three");
    proxy.cut_all(End::Close);
    assert_eq!(three.read(&mut [0; 9]).await.expect("FIN"), 0);
    let mut four = connect(&proxy).await;
    assert_eq!(said(&mut four, "four").await.expect("an answer"), "four");
    assert_eq!(proxy.connections(), 4);
    while heard.recv().await.expect("heard") != b"four" {}
}

#[tokio::test]
async fn a_pattern_cuts_one_connection_before_or_after_the_server_has_it() {
    let (address, mut heard) = echo().await;
    let proxy = Proxy::before(&address).await;
    for (moment, arrives) in
        [(Moment::Before, false), (Moment::Forwarded, true), (Moment::Answered, true)]
    {
        let mut stream = connect(&proxy).await;
        said(&mut stream, "hello").await.expect("an answer");
        proxy.order(Orders::cut("Commit", moment, End::Close));
        // In two pieces, which the proxy has to put together.
        assert_eq!(said(&mut stream, "COM").await.expect("an answer"), "COM");
        assert_eq!(said(&mut stream, "MIT;").await.expect("the end"), "", "{moment:?}");
        let mut all = Vec::new();
        loop {
            match heard.recv().await.expect("heard") {
                end if end.is_empty() => break,
                piece => all.extend(piece),
            }
        }
        assert_eq!(String::from_utf8_lossy(&all).ends_with("MIT;"), arrives, "{moment:?}");
        // Met once: the next connection may say it.
        let mut next = connect(&proxy).await;
        assert_eq!(said(&mut next, "commit").await.expect("an answer"), "commit");
        drop(next);
        while !heard.recv().await.expect("heard").is_empty() {}
    }
    assert_eq!(proxy.cuts(), 3);
}

/// The three places at which a commit can be lost, and what the server made of each.
#[tokio::test]
async fn a_cut_at_commit_before_both_servers() {
    for dialect in [DialectName::Mysql, DialectName::Postgres] {
        crate::trust::targets::with_database(dialect, |url| async move {
            let mut direct = session(&url).await;
            direct.run_statement("CREATE TABLE t (n INT)", &[]).await.expect("a table");
            for (moment, is_there) in [(Moment::Before, "0"), (Moment::Answered, "1")] {
                let (proxy, through) = Proxy::of_url(&url).await;
                let mut body = session(&through).await;
                body.run_statement("BEGIN", &[]).await.expect("begin");
                body.run_statement("INSERT INTO t VALUES (1)", &[]).await.expect("a row");
                proxy.order(Orders::cut("commit", moment, End::Reset));
                let lost = body.run_statement("COMMIT", &[]).await;
                assert!(lost.is_err(), "{dialect:?} {moment:?}: {lost:?}, {} cuts", proxy.cuts());
                assert_eq!(proxy.cuts(), 1, "{dialect:?} {moment:?}");
                crate::trust::targets::wait_for(&url, "SELECT COUNT(*) FROM t", is_there).await;
            }
        })
        .await;
        assert!(server(dialect).contains("127.0.0.1"), "tests restart and cut only what is here");
    }
}
