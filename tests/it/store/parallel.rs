//! Two processes at once: two `Db` handles on one database, real threads.

use super::{Place, T0, chain, is_stale, later, me, opened, other, write_batch};
use procession::domain::batch::{Batch, BatchStatus};
use procession::domain::id::NodeId;
use procession::domain::job::queue::QueueStatus;
use procession::domain::source::DialectName;
use procession::store::{self, Db, batch, queue};
use std::sync::Arc;
use tokio::sync::Barrier;

/// What became of a change that another process wants too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    First,
    TooLate,
}

/// Claims all rows, and tries again as often as the database asks, as the dispatcher does.
async fn claim(db: Db, start: Arc<Barrier>, ids: Vec<i64>, owner: NodeId) -> Came {
    start.wait().await;
    loop {
        let mut tx = db.begin().await.expect("begin");
        match queue::claim(&mut tx, &ids, QueueStatus::Pending, &owner, later(1)).await {
            Ok(()) => match tx.commit().await {
                Ok(()) => return Came::First,
                Err(error) => assert!(error.is_transient(), "{error:#}"),
            },
            Err(error) if is_stale(&error) => return Came::TooLate,
            Err(error) => assert!(store::is_transient(&error), "{error:#}"),
        }
    }
}

pub(super) async fn of_two_claimers_one_wins(place: Place) {
    let elsewhere = place.open().await;
    let jobs: Vec<String> = (0..40).map(|n| format!("J{n}")).collect();
    let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
    let (id, rows) = opened(&place, &jobs).await;
    let ids: Vec<i64> = rows.iter().map(|r| r.queue_id.0).collect();
    let (mut mine, mut attempt) = (0, 0);
    for _ in 0..8 {
        let start = Arc::new(Barrier::new(2));
        let backwards = ids.iter().rev().copied().collect();
        let here = tokio::spawn(claim(place.db.clone(), start.clone(), ids.clone(), me()));
        let there = tokio::spawn(claim(elsewhere.clone(), start, backwards, other()));
        let (here, there) = (here.await.expect("here"), there.await.expect("there"));
        let mut came = [here, there];
        came.sort();
        assert_eq!(came, [Came::First, Came::TooLate]);
        mine += u32::from(here == Came::First);
        attempt += 1;
        let winner = if here == Came::First { me() } else { other() };
        let mut tx = place.db.begin().await.expect("begin");
        let rows = queue::of_batch(&mut tx, id).await.expect("rows");
        assert!(rows.iter().all(|r| r.owner.as_ref() == Some(&winner) && r.attempt == attempt));
        queue::reset(&mut tx, &ids, QueueStatus::Running, later(2)).await.expect("reset");
        tx.commit().await.expect("commit");
    }
    assert!(mine <= 8);
    elsewhere.close().await;
}

/// Runs a future on a thread of its own.
fn apart<F: Future<Output = Came>>(
    work: impl FnOnce() -> F + Send + 'static,
) -> tokio::task::JoinHandle<Came> {
    let here = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || here.block_on(work()))
}

/// Opens the batch, and says who came first by the unique key.
async fn open(db: Db, start: Arc<Barrier>, batch_no: String) -> Came {
    let defs = chain("month_end", &["A", "B", "C"]);
    start.wait().await;
    loop {
        let mut tx = db.begin().await.expect("begin");
        match write_batch(&mut tx, &defs, &batch_no).await {
            Ok(_) => match tx.commit().await {
                Ok(()) => return Came::First,
                Err(error) => assert!(error.is_transient(), "{error:#}"),
            },
            Err(error) if store::is_taken(&error) => return Came::TooLate,
            Err(error) => assert!(store::is_transient(&error), "{error:#}"),
        }
    }
}

pub(super) async fn of_two_openers_one_wins(place: Place) {
    let elsewhere = place.open().await;
    for round in 0..8 {
        let start = Arc::new(Barrier::new(2));
        let number = format!("2024{round:02}");
        let (db, at, no) = (place.db.clone(), start.clone(), number.clone());
        let here = apart(move || open(db, at, no));
        let db = elsewhere.clone();
        let there = apart(move || open(db, start, number));
        let mut came = [here.await.expect("here"), there.await.expect("there")];
        came.sort();
        assert_eq!(came, [Came::First, Came::TooLate]);
    }
    let rows = super::all_of(&place, "job_queue").await;
    assert_eq!(rows.len(), 24);
    elsewhere.close().await;
}

/// Takes the batch over from `me`.
async fn take(db: Db, start: Arc<Barrier>, seen: Batch) -> Came {
    start.wait().await;
    let mut tx = db.begin().await.expect("begin");
    let status = seen.status;
    let taken = batch::take_over(&mut tx, &seen, &other(), status, later(5)).await;
    tx.commit().await.expect("commit");
    if taken.expect("take over") { Came::First } else { Came::TooLate }
}

pub(super) async fn a_held_batch_is_not_taken_over_before_the_commit(place: Place) {
    let elsewhere = place.open().await;
    let (id, _) = opened(&place, &["A"]).await;
    let mut tx = place.db.begin().await.expect("begin");
    let seen = batch::get(&mut tx, id).await.expect("batch");
    batch::lock_owned(&mut tx, id, &me(), 0).await.expect("ours");
    let start = Arc::new(Barrier::new(2));
    let (db, at, theirs) = (elsewhere.clone(), start.clone(), seen.clone());
    let taking = apart(move || take(db, at, theirs));
    start.wait().await;
    // The other has its chance while we ask and write; what we hold stays ours.
    for _ in 0..50 {
        batch::lock_owned(&mut tx, id, &me(), 0).await.expect("still ours");
    }
    assert!(!taking.is_finished(), "the other waits for our commit");
    batch::finish_all(&mut tx, &[(seen.clone(), BatchStatus::Success)], &me(), later(1))
        .await
        .expect("end");
    tx.commit().await.expect("commit");
    assert_eq!(taking.await.expect("taking"), Came::TooLate);
    elsewhere.close().await;
}

/// Adds one, reading first: without the write lock from the start, one of two that have read would
/// be refused on SQLite, and would lose the other's on a server that takes no lock at the read.
async fn add_one(db: &Db) {
    let mut tx = db.begin().await.expect("begin");
    let lock = if db.dialect() == procession::db::Dialect::Sqlite { "" } else { " FOR UPDATE" };
    let sql = format!("SELECT pid FROM cluster_node WHERE node_id = 'n'{lock}");
    let row = tx.fetch_optional(&sql, &[]).await.expect("read").expect("row");
    let next = row.get_int("pid").expect("int") + 1;
    let sql = "UPDATE cluster_node SET pid = ? WHERE node_id = 'n'";
    assert_eq!(tx.execute(sql, &[next.into()]).await.expect("write"), 1);
    tx.commit().await.expect("commit");
}

pub(super) async fn writers_of_two_processes_take_turns(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let node = store::node::NodeRow {
        node_id: NodeId("n".into()),
        host: "h".into(),
        pid: 0,
        lease_until: T0,
    };
    store::node::register(&mut tx, &node, &store::node::Offer::default(), "v", T0)
        .await
        .expect("register");
    tx.commit().await.expect("commit");
    let elsewhere = place.open().await;
    let per_task = if place.dialect() == DialectName::Sqlite { 25 } else { 10 };
    let tasks: Vec<_> = [&place.db, &elsewhere, &place.db, &elsewhere]
        .into_iter()
        .cloned()
        .map(|db| {
            tokio::spawn(async move {
                for _ in 0..per_task {
                    add_one(&db).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no writer is refused");
    }
    let mut tx = place.db.begin_read().await.expect("read");
    let row =
        tx.fetch_optional("SELECT pid FROM cluster_node", &[]).await.expect("q").expect("row");
    assert_eq!(row.get_int("pid").expect("int"), 4 * per_task);
    drop(tx);
    elsewhere.close().await;
}
