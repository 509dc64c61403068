//! `db` when something breaks: operations that are dropped half-way, statements that fail, servers
//! that end a session or fall silent, files that are full.

use super::{Place, T0, settings};
use crate::util::relay::Relay;
use crate::util::{query, with_scratch};
use procession::db::{ConnectSettings, Error, SqlValue};
use procession::domain::source::DialectName;
use procession::store::{Db, Tx};
use std::task::Poll;
use std::time::Duration;

const NODE: &str = "INSERT INTO cluster_node (node_id, host, pid, version, started_at, heartbeat_at, \
                    lease_until) VALUES (?, 'h', 1, 'v', ?, ?, ?)";

async fn put(tx: &mut Tx, id: &str) -> Result<u64, Error> {
    let at = SqlValue::from(T0.to_utc());
    tx.execute(NODE, &[id.into(), at.clone(), at.clone(), at]).await
}

async fn count(tx: &mut Tx, like: &str) -> i64 {
    let sql = "SELECT COUNT(*) AS n FROM cluster_node WHERE node_id LIKE ?";
    let row = tx.fetch_optional(sql, &[like.into()]).await.expect("query").expect("row");
    row.get_int("n").expect("int")
}

/// Drops `work` when it has been polled so often, or at its end.
async fn dropped_after<F: Future>(polls: u32, work: F) -> Option<F::Output> {
    let mut work = Box::pin(work);
    let mut left = polls;
    std::future::poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Drops `work` in the middle, each time at another point.
async fn dropped_somewhere<F: Future>(round: u32, work: F) -> Option<F::Output> {
    if round.is_multiple_of(2) {
        return dropped_after(round / 2 % 7, work).await;
    }
    let patience = Duration::from_micros(u64::from(round) * 37 % 1_500);
    tokio::time::timeout(patience, work).await.ok()
}

/// A transaction of which nobody will hear again, on any connection to this database.
fn open_transactions(place: &Place) -> Option<String> {
    Some(match place.dialect() {
        DialectName::Sqlite => return None,
        DialectName::Mysql => format!(
            "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p \
             ON p.id = t.trx_mysql_thread_id WHERE p.db = '{}' AND p.command = 'Sleep'",
            place.scratch.name
        ),
        DialectName::Postgres => "SELECT count(*) FROM pg_stat_activity WHERE datname = \
                                  current_database() AND state LIKE 'idle in transaction%'"
            .to_owned(),
    })
}

const ROUNDS: u32 = 240;

pub(super) async fn what_is_dropped_half_way_leaves_nothing_behind(place: Place) {
    let db =
        Db::connect(&ConnectSettings { max_connections: 2, ..settings(&place.scratch.url) }).await;
    let db = db.expect("connect");
    let mut tx = db.begin().await.expect("begin");
    put(&mut tx, "row").await.expect("insert");
    tx.commit().await.expect("commit");
    // Again and again before anybody borrows, who might set it right unknowingly.
    for round in 0..ROUNDS {
        drop(dropped_somewhere(round, db.begin()).await);
    }
    if let Some(sql) = open_transactions(&place) {
        place.scratch.wait_for(&sql, "0").await;
    }
    let mut cut = [0, 0, 0];
    for round in 0..ROUNDS {
        if let Some(tx) = dropped_somewhere(round, db.begin()).await {
            drop(tx.expect("begin"));
        } else {
            cut[0] += 1;
        }

        let mut tx = db.begin().await.expect("begin");
        put(&mut tx, "ghost").await.expect("no ghost of a round before");
        let lock = "UPDATE cluster_node SET pid = pid + 1 WHERE node_id = 'row'";
        cut[1] += u32::from(dropped_somewhere(round, tx.execute(lock, &[])).await.is_none());
        drop(tx);

        let mut tx = db.begin().await.expect("begin");
        put(&mut tx, &format!("commit {round}")).await.expect("insert");
        tx.execute(lock, &[]).await.expect("the row is free");
        match dropped_somewhere(round, tx.commit()).await {
            Some(done) => done.expect("commit"),
            None => cut[2] += 1,
        }
    }
    // How many depends on how busy the machine is; on a very busy one 20 of the begins were cut.
    assert!(cut.iter().all(|n| *n > 10), "begin, statement, commit dropped: {cut:?}");
    if let Some(sql) = open_transactions(&place) {
        place.scratch.wait_for(&sql, "0").await;
    }
    let (mut one, mut two) =
        (db.begin_read().await.expect("read"), db.begin_read().await.expect("read"));
    assert_eq!((count(&mut one, "ghost").await, count(&mut two, "ghost").await), (0, 0));
    // All that were not cut are there; those that were may be.
    let kept = count(&mut one, "commit%").await;
    let (all, sure) = (i64::from(ROUNDS), i64::from(ROUNDS - cut[2]));
    assert!((sure..=all).contains(&kept), "{kept} of {all}, {cut:?}");
    drop((one, two));
    db.close().await;
}

pub(super) async fn a_transaction_of_which_a_statement_failed_can_only_be_undone(place: Place) {
    for _ in 0..3 {
        let mut tx = place.db.begin().await.expect("begin");
        put(&mut tx, "half").await.expect("insert");
        put(&mut tx, "half").await.expect_err("taken");
        // MySQL and SQLite would take it.
        let error = put(&mut tx, "other half").await.expect_err("failed before");
        assert!(error.to_string().contains("can only be undone"), "{error}");
        let error = tx.commit().await.expect_err("failed before");
        assert!(error.to_string().contains("can only be undone"), "{error}");
        let mut tx = place.db.begin().await.expect("begin");
        put(&mut tx, "half").await.expect("insert");
        put(&mut tx, "half").await.expect_err("taken");
        tx.rollback().await.expect("undone");
    }
    let mut tx = place.db.begin_read().await.expect("read");
    assert_eq!(count(&mut tx, "%half").await, 0);
}

/// Statements with which a server says an error by its code.
fn says(dialect: DialectName, code: &str, text: &str) -> String {
    match dialect {
        DialectName::Postgres => {
            format!("DO $$ BEGIN RAISE EXCEPTION '{text}' USING ERRCODE = '{code}'; END $$")
        }
        _ => format!("CALL raise_error({code}, '{text}')"),
    }
}

/// MySQL takes no SIGNAL by the protocol of prepared statements, but a CALL.
const RAISE_ERROR: &str = "CREATE PROCEDURE raise_error(code INT, message VARCHAR(128)) \
     SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = code, MESSAGE_TEXT = message";

pub(super) async fn what_passes_with_time_is_told_from_what_does_not(place: Place) {
    let full = "Error writing file (Errcode: 28 \"No space left on device\")";
    let cases: &[(&str, &str, &str)] = match place.dialect() {
        DialectName::Sqlite => return,
        DialectName::Postgres => &[
            ("40001", "serialization", "again"),
            ("40P01", "deadlock", "again"),
            ("55P03", "lock", "again"),
            ("53100", "disk full", "full"),
            ("53200", "memory", "again"),
            ("53300", "connections", "again"),
            ("57P01", "shutdown", "again"),
            ("57P03", "starts", "again"),
            ("25006", "read-only", "again"),
            ("08006", "gone", "lost"),
            ("22012", "division", "final"),
        ],
        DialectName::Mysql => &[
            ("1205", "lock", "again"),
            ("1213", "deadlock", "again"),
            ("1040", "connections", "again"),
            ("1021", "disk", "full"),
            ("1114", "table full", "full"),
            ("1030", "Got error 28 from storage engine", "full"),
            ("1026", full, "full"),
            ("1026", "Error writing file (Errcode: 5 \"Input/output error\")", "final"),
            ("1290", "the --read-only option", "again"),
            ("1836", "read-only", "again"),
            ("1053", "shutdown", "again"),
            ("1927", "killed", "lost"),
            ("1365", "division", "final"),
        ],
    };
    if place.dialect() == DialectName::Mysql {
        place.scratch.setup(&[RAISE_ERROR]).await;
    }
    for (code, text, class) in cases {
        let mut tx = place.db.begin().await.expect("begin");
        let error = tx.execute(&says(place.dialect(), code, text), &[]).await.expect_err("said so");
        let found = match &error {
            Error::TryAgain(_) => "again",
            Error::NoSpace(_) => "full",
            Error::Lost(_) => "lost",
            Error::Database(_) => "final",
            _ => "else",
        };
        assert_eq!(found, *class, "{code} {text}: {error:?}");
        assert_eq!(error.is_transient(), *class != "final", "{code}");
        // Dropped or not, the next connection is a good one.
        drop(tx);
        place.db.begin().await.expect("begin").rollback().await.expect("rollback");
    }
}

/// Ends all other sessions on the database, as a restart does.
async fn end_sessions(place: &Place) {
    let ids = match place.dialect() {
        DialectName::Postgres => {
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
                                  AND pid <> pg_backend_pid()"
        }
        _ => {
            "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> \
              CONNECTION_ID()"
        }
    };
    for row in query(&place.scratch.url, ids).await {
        let id = row[0].clone().expect("a session");
        let end = match place.dialect() {
            DialectName::Postgres => format!("SELECT pg_terminate_backend({id})"),
            _ => format!("KILL {id}"),
        };
        query(&place.scratch.url, &end).await;
        place.scratch.wait_for(&listed(place, &id), "0").await;
    }
}

fn listed(place: &Place, id: &str) -> String {
    match place.dialect() {
        DialectName::Postgres => format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {id}"),
        _ => format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}"),
    }
}

pub(super) async fn a_session_that_the_server_ended_is_replaced(place: Place) {
    if place.dialect() == DialectName::Sqlite {
        return;
    }
    for _ in 0..3 {
        let mut open = place.db.begin().await.expect("begin");
        put(&mut open, "undone").await.expect("insert");
        let others = [place.db.begin().await, place.db.begin().await];
        for tx in others {
            tx.expect("begin").rollback().await.expect("rollback");
        }
        end_sessions(&place).await;
        let error = put(&mut open, "more").await.expect_err("its session is gone");
        assert!(error.is_transient(), "{error:?}");
        drop(open);
        // No borrower after that one meets a dead connection.
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(place.db.begin().await.expect("a new connection"));
        }
        assert_eq!(count(&mut all[0], "undone").await, 0);
        // Nor when none was noticed to be gone before.
        for tx in all {
            tx.rollback().await.expect("rollback");
        }
        end_sessions(&place).await;
        place.db.begin().await.expect("another").rollback().await.expect("rollback");
    }
}

// --- silence ---------------------------------------------------------------------------------------

/// Longer than any answer of a server takes here.
const LIMIT: Duration = Duration::from_secs(2);

async fn a_silent_server_is_given_up(dialect: DialectName) {
    with_scratch(dialect, |scratch| async move {
        let address = url::Url::parse(&scratch.url).expect("a URL");
        let host = address.host_str().unwrap_or("127.0.0.1");
        let port =
            address.port().unwrap_or(if dialect == DialectName::Mysql { 3306 } else { 5432 });
        let relay = Relay::to(&format!("{host}:{port}")).await;
        let settings = ConnectSettings {
            statement_timeout: LIMIT,
            max_connections: 3,
            ..settings(&relay.url(&scratch.url))
        };
        let db = Db::connect(&settings).await.expect("connect");
        db.migrate().await.expect("migrate");
        for step in ["statement", "commit", "nothing"] {
            // Three connections: one in use, one idle, one whose undoing goes into the void.
            let mut used = db.begin().await.expect("begin");
            let (idle, dropped) = (db.begin().await.expect("begin"), db.begin().await);
            put(&mut used, step).await.expect("insert");
            idle.rollback().await.expect("rollback");
            relay.cut();
            drop(dropped);
            let lost = async {
                match step {
                    "statement" => put(&mut used, "more").await.map(|_| ()),
                    "commit" => used.commit().await,
                    _ => db.begin().await.map(|_| ()),
                }
            };
            let lost = tokio::time::timeout(LIMIT * 4, lost).await.expect(step);
            let error = lost.expect_err("nobody answers");
            assert!(matches!(error, Error::Lost(_)), "{step}: {error:?}");
            assert!(error.to_string().contains("no answer within 2s"), "{step}: {error}");
            relay.heal();
            // The idle one, which is warm, is as dead as the one that was noticed.
            let mut tx = db.begin().await.expect("at once");
            assert_eq!(count(&mut tx, step).await, 0);
            tx.rollback().await.expect("rollback");
        }
        db.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_silent_server_is_given_up_on_mysql() {
    a_silent_server_is_given_up(DialectName::Mysql).await;
}

#[tokio::test]
async fn a_silent_server_is_given_up_on_postgres() {
    a_silent_server_is_given_up(DialectName::Postgres).await;
}

// --- full ------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_full_file_is_waited_for() {
    with_scratch(DialectName::Sqlite, |scratch| async move {
        let db = Db::connect(&settings(&scratch.url)).await.expect("connect");
        db.migrate().await.expect("migrate");
        for round in 0..5 {
            // Of the one connection that writes; a new one has no such limit, as if there were space.
            let mut tx = db.begin().await.expect("begin");
            let pages = tx.fetch_all("PRAGMA page_count", &[]).await.expect("pages");
            let pages = pages[0].get_int("page_count").expect("int");
            let sql = format!("PRAGMA max_page_count = {}", pages + 4);
            tx.fetch_all(&sql, &[]).await.expect("limit");
            tx.commit().await.expect("commit");

            let mut tx = db.begin().await.expect("begin");
            let error = loop {
                let id = format!("{round} {}", "x".repeat(4_000));
                let sql = format!("UPDATE cluster_node SET host = '{id}'");
                if let Err(error) = put(&mut tx, &uuid::Uuid::new_v4().to_string()).await {
                    break error;
                }
                if let Err(error) = tx.execute(&sql, &[]).await {
                    break error;
                }
            };
            assert!(matches!(error, Error::NoSpace(_)), "{error:?}");
            assert!(error.to_string().contains("full"), "{error}");
            drop(tx);

            let mut tx = db.begin().await.expect("begin, there being space");
            assert_eq!(count(&mut tx, "%").await, round);
            put(&mut tx, &round.to_string()).await.expect("insert");
            tx.commit().await.expect("commit");
        }
        db.close().await;
    })
    .await;
}
