//! Hints: heard after the commit, by everybody on PostgreSQL and in the same process elsewhere; and a
//! line that breaks is made anew.

use crate::flow::lease::until;
use crate::flow::{Bench, defs, on, on_each_database, order};
use crate::util::query;
use procession::db::hint::{Ear, HintScope, ReceivedHint};
use procession::db::{ConnectSettings, Db};
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use procession::engine::hints::{Hints, Woken};
use procession::engine::opening::create_batch::open_for_anyone;
use procession::store::hint::{self, HintTopic};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// So long that a test which waits for it has failed.
const LONG: Duration = Duration::from_secs(20);
/// What is not there now does not come.
const SHORT: Duration = Duration::from_millis(300);

async fn elsewhere(url: &str) -> Db {
    let settings = ConnectSettings {
        url: url.to_owned().into(),
        password: None,
        rotated_password: None,
        max_connections: 2,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_secs(30),
        may_create: false,
        keeping: procession::db::SessionTimeouts::Usual,
    };
    Db::connect(&settings).await.expect("connect")
}

async fn hear(ear: &mut Ear) -> ReceivedHint {
    tokio::time::timeout(LONG, ear.next()).await.expect("something is heard")
}

async fn nothing(ear: &mut Ear) {
    let heard = tokio::time::timeout(SHORT, ear.next()).await;
    assert!(heard.is_err(), "{heard:?}");
}

/// One that hears everybody.
async fn ear(db: &Db) -> Ear {
    let mut ear = db.listen();
    assert_eq!((hear(&mut ear).await, ear.reach()), (ReceivedHint::Gap, HintScope::Everywhere));
    ear
}

async fn say(db: &Db, words: &[&'static str]) {
    let mut tx = db.begin().await.expect("begin");
    for word in words {
        tx.send_hint(word).await.expect("hint");
    }
    tx.commit().await.expect("commit");
}

fn word(word: &str) -> ReceivedHint {
    ReceivedHint::Word(word.to_owned())
}

async fn a_process_hears_itself_once_and_after_the_commit(bench: Bench) {
    let mut ear = bench.db.listen();
    if DialectName::Postgres == dialect(&bench) {
        assert_eq!(hear(&mut ear).await, ReceivedHint::Gap);
    }
    let mut tx = bench.db.begin().await.expect("begin");
    tx.send_hint("batch").await.expect("hint");
    nothing(&mut ear).await;
    tx.rollback().await.expect("undo");
    nothing(&mut ear).await;
    say(&bench.db, &["batch", "work", "batch"]).await;
    assert_eq!((hear(&mut ear).await, hear(&mut ear).await), (word("batch"), word("work")));
    nothing(&mut ear).await;
}

fn dialect(bench: &Bench) -> DialectName {
    match bench.url.split(':').next().expect("a scheme") {
        "sqlite" => DialectName::Sqlite,
        "mysql" => DialectName::Mysql,
        _ => DialectName::Postgres,
    }
}

async fn waiters_hear_what_they_wait_for_each_for_themselves(bench: Bench) {
    let mut one = Hints::new(bench.db.clone(), bench.clock.clone());
    let mut two = one.clone();
    let listening = one.listen();
    let now = bench.clock.now();
    // What is said while one connects is heard of as a gap; so begin when nothing is left of it.
    if dialect(&bench) == DialectName::Postgres {
        for waiter in [&mut one, &mut two] {
            tokio::time::timeout(LONG, waiter.wait_for_topic(&HintTopic::ALL))
                .await
                .expect("a gap");
            assert_eq!(waiter.poll_interval(1, 2), 2);
        }
    } else {
        assert_eq!(one.poll_interval(1, 2), 1);
    }
    assert_eq!(one.wait_until(&HintTopic::ALL, now).await, Woken::Time, "nothing was said");
    let mut tx = bench.db.begin().await.expect("begin");
    hint::send_hint(&mut tx, HintTopic::Trigger).await.expect("hint");
    hint::send_hint(&mut tx, HintTopic::Work).await.expect("hint");
    tx.commit().await.expect("commit");
    let later = now.plus_ms(60_000);
    assert_eq!(one.wait_until(&[HintTopic::Work], later).await, Woken::Told);
    assert_eq!(one.wait_until(&[HintTopic::Work], now).await, Woken::Time, "answered");
    assert_eq!(one.wait_until(&[HintTopic::Batch], now).await, Woken::Time, "others");
    // Kept for whoever has not asked yet.
    assert_eq!(one.wait_until(&[HintTopic::Trigger], now).await, Woken::Told);
    assert_eq!(two.wait_until(&[HintTopic::Work], Millis(0)).await, Woken::Told);
    listening.end_and_wait().await;
    assert_eq!(one.poll_interval(1, 2), 1);
}

on_each_database! {
    a_process_hears_itself_once_and_after_the_commit
    waiters_hear_what_they_wait_for_each_for_themselves
}

/// Where no other process can hear it, a hint costs no statement.
async fn nothing_is_sent_where_nobody_can_hear_it(bench: Bench) {
    let mut tx = bench.db.begin().await.expect("begin");
    let before = bench.db.counts().statements;
    tx.send_hint("batch").await.expect("hint");
    assert_eq!(bench.db.counts().statements, before);
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn nothing_is_sent_on_sqlite() {
    on(DialectName::Sqlite, nothing_is_sent_where_nobody_can_hear_it).await;
}

#[tokio::test]
async fn nothing_is_sent_on_mariadb() {
    on(DialectName::Mysql, nothing_is_sent_where_nobody_can_hear_it).await;
}

#[tokio::test]
async fn processes_hear_each_other_on_postgres() {
    on(DialectName::Postgres, async |bench: Bench| {
        let other = elsewhere(&bench.url).await;
        let (mut here, mut there) = (ear(&bench.db).await, ear(&other).await);
        say(&bench.db, &["batch"]).await;
        assert_eq!((hear(&mut here).await, hear(&mut there).await), (word("batch"), word("batch")));
        say(&other, &["stop", "work"]).await;
        for ear in [&mut here, &mut there] {
            assert_eq!((hear(ear).await, hear(ear).await), (word("stop"), word("work")));
            nothing(ear).await;
        }
        let mut tx = other.begin().await.expect("begin");
        tx.send_hint("batch").await.expect("hint");
        drop(tx);
        nothing(&mut here).await;
        // Another installation in the same database.
        query(&bench.url, "CREATE SCHEMA other").await;
        let apart = elsewhere(&format!("{}?options=-csearch_path%3Dother", bench.url)).await;
        say(&apart, &["batch"]).await;
        nothing(&mut here).await;
    })
    .await;
}

#[tokio::test]
async fn a_line_that_breaks_is_made_anew_and_told_of() {
    on(DialectName::Postgres, async |bench: Bench| {
        let other = elsewhere(&bench.url).await;
        let mut ear = ear(&bench.db).await;
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                    WHERE datname = current_database() AND query LIKE 'LISTEN%'";
        assert_eq!(query(&bench.url, kill).await.len(), 1, "one listens");
        assert_eq!((hear(&mut ear).await, ear.reach()), (ReceivedHint::Gap, HintScope::Here));
        // What this process says itself is heard meanwhile.
        say(&bench.db, &["work"]).await;
        let mut heard = hear(&mut ear).await;
        while ear.reach() == HintScope::Here {
            assert_eq!(heard, word("work"));
            heard = hear(&mut ear).await;
        }
        say(&other, &["batch"]).await;
        while heard != word("batch") {
            heard = hear(&mut ear).await;
        }
    })
    .await;
}

/// As a pooler in transaction mode: all is passed on but what was not asked for.
async fn deaf_relay(server: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let port = listener.local_addr().expect("address").port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.expect("the server");
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
            tokio::spawn(async move {
                let mut head = [0; 5];
                while from_server.read_exact(&mut head).await.is_ok() {
                    let length = u32::from_be_bytes(head[1..].try_into().expect("four bytes"));
                    let mut body = vec![0; usize::try_from(length).expect("a length") - 4];
                    from_server.read_exact(&mut body).await.expect("a message");
                    if head[0] != b'A' {
                        let sent = to_client.write_all(&[&head[..], &body].concat()).await;
                        if sent.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn where_words_do_not_come_through_it_is_known() {
    on(DialectName::Postgres, async |bench: Bench| {
        let server = url::Url::parse(&bench.url).expect("a URL");
        let port = deaf_relay(format!("127.0.0.1:{}", server.port().expect("a port"))).await;
        let mut by_relay = server.clone();
        by_relay.set_port(Some(port)).expect("a port");
        by_relay.set_query(Some("sslmode=disable"));
        let db = elsewhere(by_relay.as_str()).await;
        let mut ear = db.listen();
        // LISTEN is answered, so that only its silence tells.
        let listens = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%' \
                       AND datname = current_database()";
        let waits = until("it listens", async || !query(&bench.url, listens).await.is_empty());
        tokio::select! {
            heard = ear.next() => panic!("{heard:?}"),
            () = waits => {}
        }
        nothing(&mut ear).await;
        assert_eq!(ear.reach(), HintScope::Here);
        // Its own words it hears.
        say(&db, &["work"]).await;
        assert_eq!(hear(&mut ear).await, word("work"));
    })
    .await;
}

/// Its clock stands still, so that no look is ever due again: what it takes it was told of.
#[tokio::test]
async fn a_process_that_serves_takes_at_once_what_another_opens() {
    on(DialectName::Postgres, async |bench: Bench| {
        let other = elsewhere(&bench.url).await;
        let mut process = bench.process().await;
        let (stop, hints) = (CancellationToken::new(), Arc::new(process.hints()));
        let work = process.serve(&stop, None);
        let opened = async {
            until("it hears everybody", async || hints.poll_interval(1, 2) == 2).await;
            // Until it has looked, found nothing, and rests.
            let mut last = 0;
            until("it rests", async || {
                let now = bench.db.counts().statements;
                std::mem::replace(&mut last, now) == now
            })
            .await;
            let defs = defs("jobs: { A: { type: NOOP } }");
            let now = bench.clock.now();
            let ids = open_for_anyone(&other, &defs, &order(), "test", now).await.expect("open");
            until("the batch ends", async || bench.states(ids[0]).await == "A=SUCCESS").await;
            stop.cancel();
        };
        tokio::join!(work, opened);
    })
    .await;
}
