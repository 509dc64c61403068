//! A batch of many jobs gets its queue rows in steps, by the process that has it; a process that dies between two
//! loses none, and what needs all rows is refused until they are there.

use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use procession::domain::action::rerun::UnknownJobs;
use procession::domain::batch::{Batch, BatchStatus};
use procession::domain::id::BatchId;
use procession::domain::job::Definition;
use procession::domain::source::DialectName;
use procession::engine::opening::create_batch::open_for_anyone;
use procession::engine::opening::unfinished_opening::OpeningProgress;
use procession::store;
use procession::store::batch::{ROWS_PER_STEP, StillOpening};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// Three steps, and the last of them is not full.
const JOBS: usize = 2 * ROWS_PER_STEP + 500;

/// Jobs without dependencies, and at last one after the first. None but that starts before nine o'clock.
fn many_jobs(count: usize) -> Definition {
    let mut yaml = "defaults: { type: NOOP, schedule_time: '09:00' }\njobs:\n".to_owned();
    for number in 0..count - 1 {
        writeln!(yaml, "  J{number}: {{}}").expect("text");
    }
    yaml += "  LAST: { depends_on: [J0] }\n";
    defs(&yaml)
}

async fn get(bench: &Bench, id: BatchId) -> Batch {
    store::batch::get(&mut bench.db.begin_read().await.expect("read"), id).await.expect("batch")
}

/// What the database holds of the batch: rows, different jobs among them, and rows without a start time.
async fn counts(bench: &Bench) -> [i64; 3] {
    let rows = bench.number("SELECT COUNT(*) AS n FROM job_queue").await;
    let jobs = bench.number("SELECT COUNT(DISTINCT job_code) AS n FROM job_queue").await;
    let free = "SELECT COUNT(*) AS n FROM job_queue WHERE not_before IS NULL";
    [rows, jobs, bench.number(free).await]
}

fn all_rows() -> [i64; 3] {
    [JOBS as i64, JOBS as i64, 0]
}

async fn what_is_not_open_yet_is_refused(bench: Bench) {
    let now = bench.clock.now();
    let made = open_for_anyone(&bench.db, &many_jobs(JOBS), &order(), "test", now).await;
    let id = made.expect("open")[0];
    assert_eq!(counts(&bench).await, [ROWS_PER_STEP as i64, ROWS_PER_STEP as i64, 0]);
    let batch = get(&bench, id).await;
    assert_eq!(batch.unwritten_jobs as usize, JOBS - ROWS_PER_STEP);
    let refused = store::batch::snapshot(&mut bench.db.begin_read().await.expect("read"), id).await;
    let refused = refused.expect_err("rows are missing");
    let opening: &StillOpening = refused.downcast_ref().expect("the reason");
    assert_eq!((opening.written, opening.total), (ROWS_PER_STEP as u64, JOBS as u64));
    // With other bodies it goes on once it is open.
    let mut process = bench.process().await;
    let latest = process.resume(&batch, UnknownJobs::Leave, Some(&many_jobs(JOBS))).await;
    assert!(latest.expect_err("rows are missing").is::<StillOpening>());
    process.resume(&batch, UnknownJobs::Leave, None).await.expect("resume");
    assert_eq!(counts(&bench).await, all_rows());
    assert_eq!(get(&bench, id).await.unwritten_jobs, 0);
    store::batch::snapshot(&mut bench.db.begin_read().await.expect("read"), id)
        .await
        .expect("all there");
    finish(&bench, &mut process).await;
    assert_eq!(get(&bench, id).await.status, BatchStatus::Success);
}

/// Between two steps the other batches of the process have a round.
async fn who_serves_opens_it_beside_its_other_batches(bench: Bench) {
    let now = bench.clock.now();
    // A batch of one job needs some rounds from its start to its end.
    let jobs = 8 * ROWS_PER_STEP;
    let made = open_for_anyone(&bench.db, &many_jobs(jobs), &order(), "test", now).await;
    let large = made.expect("open")[0];
    let small = defs("groups: { small: {} }\njobs: { A: { type: NOOP, group: small } }");
    let small = open_for_anyone(&bench.db, &small, &order(), "test", now).await.expect("open")[0];
    let mut process = bench.process().await;
    let stop = CancellationToken::new();
    let mut ended_before = None;
    let watch = async {
        while get(&bench, large).await.unwritten_jobs > 0 {
            let has_ended = get(&bench, small).await.status.is_final();
            ended_before = ended_before.or(has_ended.then_some(()));
            tokio::task::yield_now().await;
        }
        stop.cancel();
    };
    tokio::join!(process.serve(&stop, None), watch);
    process.leave().await.expect("leave");
    assert_eq!(get(&bench, small).await.status, BatchStatus::Success);
    assert!(ended_before.is_some(), "the small batch waited for the large one");
    assert_eq!(counts(&bench).await[0], jobs as i64 + 1);
    assert_eq!(get(&bench, large).await.owner, None, "given back");
}

/// The future is dropped within a step, as the kernel ends a process: that step is undone, the earlier ones are not.
/// Which step that is depends on who is faster, so there are some more.
async fn a_process_that_dies_between_two_steps_loses_none(bench: Bench) {
    let mut dead = bench.process().await;
    let (sender, mut first_step) = tokio::sync::mpsc::unbounded_channel::<OpeningProgress>();
    let mut report = move |progress| sender.send(progress).expect("the test listens");
    let jobs = 6 * ROWS_PER_STEP;
    let (definition, order) = (many_jobs(jobs), order());
    tokio::select! {
        biased;
        progress = first_step.recv() => {
            let progress = progress.expect("a step");
            assert_eq!((progress.written, progress.total), (2 * ROWS_PER_STEP, jobs));
        }
        opened = dead.open_each(&definition, &order, "test", &mut report) => {
            panic!("opened in one step: {opened:?}")
        }
    }
    drop(dead);
    let written = usize::try_from(counts(&bench).await[0]).expect("a count");
    assert!(written % ROWS_PER_STEP == 0 && written < jobs, "{written} rows");
    let mut heir = bench.process().await;
    for _ in 0..4 {
        bench.clock.advance(5_000);
        heir.heartbeat().await.expect("heartbeat");
    }
    assert_eq!(heir.take_batches().await.expect("take"), 1);
    let id = bench.batch("default").await.batch_id;
    let stop = CancellationToken::new();
    let watch = async {
        while get(&bench, id).await.unwritten_jobs > 0 {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    };
    tokio::join!(heir.serve(&stop, None), watch);
    heir.leave().await.expect("leave");
    assert_eq!(counts(&bench).await, [jobs as i64, jobs as i64, 0]);
}

/// Nobody had it before its time was over; that is no reason to stop it when it is open.
async fn its_time_begins_anew_when_it_is_taken(bench: Bench) {
    let mut definition = many_jobs(JOBS);
    definition.groups[0].batch_timeout_sec = Some(60);
    let now = bench.clock.now();
    let made = open_for_anyone(&bench.db, &definition, &order(), "test", now).await;
    let id = made.expect("open")[0];
    bench.clock.advance(120_000);
    let mut process = bench.process().await;
    assert_eq!(process.take_batches().await.expect("take"), 1);
    let deadline = get(&bench, id).await.deadline.expect("a deadline");
    assert!(deadline > bench.clock.now(), "{deadline} is over");
}

on_each_database! {
    what_is_not_open_yet_is_refused
    who_serves_opens_it_beside_its_other_batches
    a_process_that_dies_between_two_steps_loses_none
    its_time_begins_anew_when_it_is_taken
}
