//! Step by step: bounded, interruptible, one process at a time, and in nobody's way.

use super::seed::{
    Old, count_all, finish, look, old, options, orphans, pass, put, put_values, sweeper, there,
};
use super::{candidates, number};
use crate::flow::{self, Bench, defs};
use futures_util::FutureExt as _;
use procession::db::Dialect;
use procession::domain::batch::BatchOrder;
use procession::domain::id::GroupCode;
use procession::engine::retention::{
    Beat, LeftTables, RetentionIdleReason, RetentionOptions, SweepOutcome,
};
use procession::store;
use procession::store::batch::BeingRemoved;
use procession::store::retention::{self, Dropped};

async fn seed(bench: &Bench, batches: i64) {
    seed_batches(bench, batches).await;
    put_values(bench, 2).await;
}

async fn seed_batches(bench: &Bench, batches: i64) {
    for at in 0..batches {
        put(bench, old(&format!("b{at:03}"), 100 + at)).await;
    }
}

pub(super) async fn a_kill_between_any_two_steps_loses_nothing(bench: Bench) {
    seed(&bench, 12).await;
    let options = RetentionOptions { rows_per_step: 7, ..options() };
    let wanted = look(&bench, &options).await.totals();
    // The process dies after each of its steps, and the next one waits until its turn is forgotten.
    let (mut removed, mut lives) = (std::collections::BTreeMap::new(), 0);
    loop {
        lives += 1;
        let mut one = sweeper(&bench, &format!("life-{lives}"), &options);
        let before = count_all(&bench).await;
        let ended = loop {
            match one.run_step(bench.clock.now()).await.expect("beat") {
                Beat::Did(rows) if rows.values().sum::<u64>() == 0 => {}
                Beat::Did(rows) => {
                    let n: u64 = rows.values().sum();
                    assert!(n <= 7, "{rows:?}");
                    let gone = before - count_all(&bench).await;
                    assert_eq!(gone, i64::try_from(n).expect("few"), "one step is one transaction");
                    for (table, n) in rows {
                        *removed.entry(table).or_insert(0) += n;
                    }
                    break false;
                }
                Beat::Ended(_) => break true,
                Beat::Rests(rest, _) => panic!("{rest:?}"),
            }
        };
        assert_eq!(orphans(&bench).await, 0, "children go before parents");
        if ended {
            break;
        }
        bench.clock.advance(60_000);
    }
    assert!(lives > 20, "{lives}");
    assert_eq!(removed, wanted);
    assert_eq!(there(&bench, "g").await, ["b011"]);
    // Nothing was put on record twice.
    let acts = "SELECT COUNT(*) AS n FROM audit_log WHERE action = 'batch remove'";
    assert_eq!(bench.number(acts).await, 11);
}

pub(super) async fn of_two_processes_one_removes(bench: Bench) {
    seed(&bench, 4).await;
    let options = RetentionOptions { rows_per_step: 7, ..options() };
    let (mut one, mut two) = (sweeper(&bench, "one", &options), sweeper(&bench, "two", &options));
    let beat = one.run_step(bench.clock.now()).await.expect("beat");
    assert!(matches!(beat, Beat::Did(_)), "{beat:?}");
    loop {
        let other = two.run_step(bench.clock.now()).await.expect("beat");
        assert!(
            matches!(&other, Beat::Rests(RetentionIdleReason::Theirs(owner), _) if owner.0 == "one"),
            "{other:?}"
        );
        // A turn that goes on is never forgotten, however long it takes.
        bench.clock.advance(20_000);
        if let Beat::Ended(removed) = one.run_step(bench.clock.now()).await.expect("beat") {
            assert_eq!(removed.get("job_batch"), Some(&3));
            break;
        }
    }
    // The turn was left to the other, which finds nothing more.
    assert!(finish(&bench, &mut two).await.is_empty());
    // One that stalls in the middle loses its turn, and does nothing more when it wakes.
    put(&bench, old("c1", 50)).await;
    put(&bench, Old { lines: 40, ..old("c2", 200) }).await;
    let (mut one, mut two) =
        (sweeper(&bench, "three", &options), sweeper(&bench, "four", &options));
    while matches!(one.run_step(bench.clock.now()).await.expect("beat"), Beat::Did(d) if d.is_empty())
    {
    }
    bench.clock.advance(60_000);
    let beat = two.run_step(bench.clock.now()).await.expect("beat");
    assert!(matches!(beat, Beat::Did(_)), "{beat:?}");
    let late = one.run_step(bench.clock.now()).await.expect("beat");
    assert!(matches!(late, Beat::Rests(RetentionIdleReason::Theirs(_), _)), "{late:?}");
    finish(&bench, &mut two).await;
    assert_eq!(orphans(&bench).await, 0);
}

pub(super) async fn a_batch_that_is_being_removed_is_told_and_left_alone(bench: Bench) {
    let defs = defs("groups: { g: {} }\njobs:\n  A: { type: NOOP }\n");
    bench.apply(&defs).await;
    seed(&bench, 3).await;
    let options = RetentionOptions { rows_per_step: 5, ..options() };
    let mut one = sweeper(&bench, "one", &options);
    while matches!(one.run_step(bench.clock.now()).await.expect("beat"), Beat::Did(d) if d.is_empty())
    {
    }
    drop(one);
    let mut tx = bench.db.begin().await.expect("begin");
    let listed = store::batch::list_batches(&mut tx, None, 10).await.expect("list");
    let marked: Vec<_> = listed.iter().filter(|b| b.removing.is_some()).collect();
    assert_eq!(marked.len(), 2, "both are marked, and their rows not yet gone");
    // Whoever wants to do anything with it is told.
    let error =
        store::batch::lock_batch(&mut tx, marked[0].batch_id).await.expect_err("being removed");
    assert!(error.is::<BeingRemoved>(), "{error:#}");
    assert!(error.to_string().contains("is being removed since"), "{error:#}");
    tx.rollback().await.expect("rollback");
    let mut process = bench.process().await;
    let there = bench.batch_of("b000", "g").await.expect("there");
    let unknown = procession::domain::action::rerun::UnknownJobs::Leave;
    let error = process.resume(&there, unknown, None).await.expect_err("being removed");
    assert!(error.is::<BeingRemoved>(), "{error:#}");
    // Its number is taken until it is gone, and free then.
    let order = BatchOrder::parse(r#"{"batchNo":"b000","group":"g"}"#).expect("order");
    process.open_batches(&defs, &order, "test").await.expect_err("its rows are still there");
    bench.clock.advance(60_000);
    pass(&bench, &options).await;
    process.open_batches(&defs, &order, "test").await.expect("the number is free");
}

pub(super) async fn a_live_batch_is_never_waited_for_nor_touched(bench: Bench) {
    const CHAIN: &str = "
groups: { g: {} }
jobs:
  A: { type: NOOP }
  B: { type: NOOP, depends_on: [A] }
  C: { type: NOOP, depends_on: [B] }
  D: { type: NOOP, depends_on: [C] }
";
    let defs = defs(CHAIN);
    bench.apply(&defs).await;
    seed(&bench, 10).await;
    let mut process = bench.process().await;
    process.open_batches(&defs, &flow::order(), "test").await.expect("open");
    seed_after(&bench).await;
    let options = RetentionOptions { rows_per_step: 3, ..options() };
    let mut one = sweeper(&bench, "one", &options);
    // Turn by turn: each finds what it needs unlocked.
    let mut ended = false;
    for _ in 0..4 {
        ended |= matches!(one.run_step(bench.clock.now()).await.expect("step"), Beat::Ended(_));
        process.run_tick().await.expect("beat");
    }
    assert!(!ended, "the pass is longer than that");
    if bench.db.dialect() != Dialect::Sqlite {
        amidst_a_step(&bench, &mut process).await;
    }
    flow::finish(&bench, &mut process).await;
    finish(&bench, &mut one).await;
    let live = bench.batch("g").await;
    assert_eq!(bench.states(live.batch_id).await, "A=SUCCESS B=SUCCESS C=SUCCESS D=SUCCESS");
    assert_eq!(
        bench.history(live.batch_id, "A").await.last().map(String::as_str),
        Some("SUCCESS#1")
    );
    assert_eq!(
        there(&bench, "g").await,
        ["202407", "z"],
        "the last two are the newest and the live one"
    );
}

/// Old rows behind the live ones, so that they stand on both sides.
async fn seed_after(bench: &Bench) {
    put(bench, old("y", 100)).await;
    put(bench, old("z", 100)).await;
}

/// A step that has removed rows and not committed: what it holds, dispatching does not want. (SQLite has
/// one writer; there a step is waited for.)
async fn amidst_a_step(
    bench: &Bench,
    process: &mut procession::engine::dispatch::dispatcher::QueueDispatcher,
) {
    let mut tx = bench.db.begin().await.expect("begin");
    let marked = retention::marked(&mut tx, 64).await.expect("marked");
    assert!(!marked.is_empty());
    let mut dropped = Dropped::new(20);
    retention::finish_some(&mut tx, &marked, LeftTables::default(), &mut dropped)
        .await
        .expect("a step");
    assert!(dropped.total() > 0);
    for _ in 0..3 {
        process.run_tick().await.expect("beat");
    }
    tx.rollback().await.expect("rollback");
}

pub(super) async fn one_log_larger_than_a_step_goes_in_parts(bench: Bench) {
    put(&bench, Old { jobs: 3, lines: 1_000, ..old("big", 200) }).await;
    put(&bench, old("newest", 100)).await;
    put_values(&bench, 100).await;
    let options = RetentionOptions { rows_per_step: 70, ..options() };
    let wanted = look(&bench, &options).await.totals();
    let mut one = sweeper(&bench, "one", &options);
    let (mut most, mut steps) = (0, 0);
    loop {
        match one.run_step(bench.clock.now()).await.expect("beat") {
            Beat::Did(rows) => {
                most = most.max(rows.values().sum::<u64>());
                steps += 1;
            }
            Beat::Ended(removed) => {
                assert_eq!(removed, wanted);
                break;
            }
            Beat::Rests(rest, _) => panic!("{rest:?}"),
        }
    }
    assert_eq!(most, 70, "a step is as large as it may be, and no larger");
    assert!(steps >= 43, "{steps}");
    assert_eq!(orphans(&bench).await, 0);
}

pub(super) async fn what_is_started_over_between_look_and_mark_stays(bench: Bench) {
    seed(&bench, 4).await;
    let mut tx = bench.db.begin_read().await.expect("read");
    let found = candidates(&mut tx, &bench).await;
    drop(tx);
    assert_eq!(found.len(), 4);
    // One is revised, one has an owner, one ends later than was seen.
    for (no, set) in [
        ("b000", "revision = revision + 1"),
        ("b001", "owner = 'somebody'"),
        ("b002", "status = 'RUNNING', end_time = NULL"),
    ] {
        bench.by_hand(&format!("UPDATE job_batch SET {set} WHERE batch_no = '{no}'")).await;
    }
    let mut tx = bench.db.begin().await.expect("begin");
    let marked = retention::mark_batches(&mut tx, &found, bench.clock.now()).await.expect("mark");
    let group = GroupCode::parse("g").expect("group");
    let last = store::batch::find_batch(&mut tx, &number("b003"), &group).await.expect("find");
    assert_eq!(marked, [last.expect("there").batch_id]);
    tx.rollback().await.expect("rollback");
}

/// Whose turn it is.
async fn turn_of(bench: &Bench) -> Option<String> {
    let mut tx = bench.db.begin_read().await.expect("read");
    let sql = "SELECT owner FROM job_lock WHERE lock_name = ?";
    let row = tx.fetch_optional(sql, &[store::lock::RETENTION_LOCK.into()]).await.expect("row");
    row.and_then(|row| row.opt_text("owner").expect("text"))
}

/// On every way out: the time is up, a step fails, whoever asked goes away, the pass has ended.
pub(super) async fn whoever_sweeps_for_a_while_gives_its_turn_back(bench: Bench) {
    seed(&bench, 12).await;
    let options = RetentionOptions { rows_per_step: 7, ..options() };
    let wanted = look(&bench, &options).await.totals();
    let one = |name: &str| sweeper(&bench, name, &options);
    // The clock stands, so no time at all is one step.
    let swept = one("one").sweep_for(Some(0), |_| ()).await.expect("sweep");
    assert_eq!(swept, SweepOutcome::Left(Default::default()));
    assert_eq!(turn_of(&bench).await, None);

    bench.by_hand("ALTER TABLE job_queue RENAME TO away").await;
    one("two").sweep_for(None, |_| ()).await.expect_err("a step fails");
    bench.by_hand("ALTER TABLE away RENAME TO job_queue").await;
    assert_eq!(turn_of(&bench).await, None);

    // While it is another's turn nothing is done, and the turn stays the other's.
    let mut three = one("three");
    let beat = three.run_step(bench.clock.now()).await.expect("beat");
    assert!(matches!(beat, Beat::Did(_)), "{beat:?}");
    let swept = one("four").sweep_for(None, |_| ()).await.expect("sweep");
    assert!(
        matches!(&swept, SweepOutcome::Rests(RetentionIdleReason::Theirs(o), _) if o.0 == "three"),
        "{swept:?}"
    );
    assert_eq!(turn_of(&bench).await.as_deref(), Some("three"));
    three.end_turn().await.expect("end");

    let swept = one("five").sweep_for(None, |_| ()).await.expect("sweep");
    assert_eq!(swept, SweepOutcome::Ended(wanted));
    assert_eq!(turn_of(&bench).await, None);
    assert_eq!(there(&bench, "g").await, ["b011"]);

    put(&bench, old("c", 100)).await;
    let asked = one("six").sweep_for(None, |_| ()).now_or_never();
    assert!(asked.is_none(), "it was begun, and nobody waits for it any more");
    let ends = async || there(&bench, "g").await == ["c"] && turn_of(&bench).await.is_none();
    for _ in 0..1_000 {
        if ends().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it goes to its end all the same: {:?}", turn_of(&bench).await);
}
