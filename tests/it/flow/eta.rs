//! A history made by running, and what it lets one expect of the next batch.

use crate::flow::{Bench, START, defs, on, on_each_database};
use procession::domain::batch::BatchOrder;
use procession::domain::batch::history::History;
use procession::domain::dag::Node;
use procession::domain::forecast::certainty::{Certainty, DoubtReason};
use procession::domain::forecast::eta::{Forecast, JobProgress, forecast};
use procession::domain::id::{BatchId, GroupCode, JobCode};
use procession::domain::source::DialectName;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::store;

/// Three in a row, the second of which fails at its first start, and two beside them.
const YAML: &str = "
groups: { g: { max_parallel: 1 } }
jobs:
  A: { type: NOOP, priority: 9 }
  B:
    type: SCRIPT
    interpreter: sh
    retry_count: 1
    script: 'test \"$PROCESSION_ATTEMPT\" -gt 1'
    depends_on: [A]
    priority: 9
  C: { type: NOOP, depends_on: [B], priority: 9 }
  D: { type: NOOP }
";

fn order(number: &str) -> BatchOrder {
    BatchOrder::parse(&format!(r#"{{"batchNo":"{number}"}}"#)).expect("order")
}

/// One start: takes `ms` by the clock, and everything that follows from its end is done.
async fn hop(bench: &Bench, process: &mut QueueDispatcher, ms: i64) {
    while process.running() == 0 {
        assert!(process.run_tick().await.expect("beat"), "nothing starts");
    }
    process.wait_for_report().await;
    bench.clock.advance(ms);
    process.run_tick().await.expect("beat");
}

async fn opened(process: &mut QueueDispatcher, number: &str) -> BatchId {
    process.open_batches(&defs(YAML), &order(number), "test").await.expect("open").remove(0)
}

async fn history(bench: &Bench) -> History {
    let mut tx = bench.db.begin_read().await.expect("read");
    let group = GroupCode::parse("g").expect("group");
    store::history::of_group(&mut tx, &group).await.expect("history")
}

/// What is expected of a batch now, by its rows and the history there is.
async fn expected(bench: &Bench, id: BatchId) -> Option<Forecast> {
    let history = history(bench).await;
    let mut tx = bench.db.begin_read().await.expect("read");
    let snapshot = store::batch::snapshot(&mut tx, id).await.expect("snapshot");
    let rows = store::queue::of_batch(&mut tx, id).await.expect("rows");
    let standing: Vec<JobProgress> = rows.iter().map(JobProgress::from).collect();
    let dag = snapshot.build_dag().expect("dag");
    forecast(&snapshot, &dag, &standing, &history, 8, bench.clock.now())
}

async fn a_history_made_by_running_tells_the_end(bench: Bench) {
    let mut process = bench.process().await;
    let first = opened(&mut process, "202404").await;
    assert_eq!(expected(&bench, first).await, None, "nothing is known before the first run");
    // A, B (in vain), B again, C, D; one slot, so one at a time.
    let runs =
        [[100, 5_000, 1_000, 10, 40], [300, 5_000, 1_200, 20, 40], [200, 7_000, 1_100, 30, 40]];
    for (number, run) in ["202404", "202405", "202406"].iter().zip(runs) {
        if *number != "202404" {
            opened(&mut process, number).await;
        }
        for ms in run {
            hop(&bench, &mut process, ms).await;
        }
        assert!(process.is_idle());
    }
    let known = history(&bench).await;
    let of = |job: &str| {
        let found = known.get(&JobCode::parse(job).expect("code")).expect("known");
        (found.tries, found.p50, found.p95, found.last)
    };
    assert_eq!(of("A"), (3, 200, 300, 200));
    // The starts that failed and were tried again do not count.
    assert_eq!(of("B"), (3, 1_100, 1_200, 1_100));
    assert_eq!(of("C"), (3, 20, 30, 30));

    // The fourth batch, as it runs. One slot: all one after the other.
    let id = opened(&mut process, "202407").await;
    let fresh = expected(&bench, id).await.expect("expected");
    // Between the sum of the medians and what is longest of three tries each.
    assert!((1_360..=1_500).contains(&fresh.remaining()), "{fresh:?}");
    assert_eq!(fresh.open, 4);
    assert_eq!(fresh.bound.since(fresh.now), 200 + 1_100 + 20);
    assert_eq!(fresh.jobs[3].slack, Some(1_280));
    hop(&bench, &mut process, 150).await;
    // A is over in 150, B starts; 400 later 700 of it are left.
    bench.clock.advance(400);
    let running = expected(&bench, id).await.expect("expected");
    let codes: Vec<u32> = running.path.iter().map(|n| n.0).collect();
    assert!((760..=870).contains(&running.remaining()), "{running:?}");
    assert_eq!(codes, [1, 2]);
    assert!(running.jobs[1].critical && !running.jobs[0].critical);
    assert!(running.bad_end > running.end);
    // It runs longer than ever: nobody knows how long, but it is not about to end.
    assert_eq!(running.confidence.certainty, Certainty::Rough, "three tries are few");
    bench.clock.advance(60_000);
    let late = expected(&bench, id).await.expect("expected");
    assert!(late.remaining() > 20_000, "{late:?}");
    let doubt = late.confidence.doubt.expect("a reason");
    assert_eq!(
        (late.confidence.certainty, doubt.reason, doubt.jobs),
        (Certainty::Unknown, DoubtReason::Overran, vec![Node(1)])
    );
    // It fails, and all of it is before us again.
    hop(&bench, &mut process, 0).await;
    let again = expected(&bench, id).await.expect("expected");
    assert!((1_160..=1_270).contains(&again.remaining()), "{again:?}");
    for ms in [1_000, 20, 40] {
        hop(&bench, &mut process, ms).await;
    }
    let over = expected(&bench, id).await.expect("expected");
    assert_eq!((over.remaining(), over.open, over.path.len()), (0, 0, 0));
    assert!(bench.clock.now() > START);
}

on_each_database! {
    a_history_made_by_running_tells_the_end
}
