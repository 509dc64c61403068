//! Runs of one job that meet: they wait, are discarded or cover each other, in one process and in two.

use super::hall::{APP, Hall, process};
use super::on_each;
use procession::domain::batch::BatchStatus;
use procession::domain::executor::LogId;
use procession::domain::executor::run_wait::RunWait;

on_each! {
    runs_of_a_job_wait_for_each_other
    a_later_run_is_discarded
    a_later_run_covers_the_earlier
    of_runs_that_come_together_the_last_covers
    two_processes_send_runs_of_a_job_one_after_the_other
    a_run_of_one_process_keeps_that_of_another_out
    a_run_of_one_process_covers_that_of_another
    a_run_that_may_still_be_running_is_waited_for_until_its_end_is_reported
    a_run_that_may_still_be_running_is_waited_for_until_an_operator_decides
    a_retry_waits_for_the_attempt_whose_stop_was_not_confirmed
    a_run_that_may_still_be_running_has_a_later_one_discarded
}

async fn runs_of_a_job_wait_for_each_other(mut hall: Hall) {
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let second = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING", "2 WAITING"]).await;
    hall.waits_for(second, Some(RunWait::Turn(LogId(1)))).await;
    let third = hall.open("202408").await;
    hall.comes_to(&["1 RUNNING", "2 WAITING", "3 WAITING"]).await;
    hall.waits_for(third, Some(RunWait::Turn(LogId(2)))).await;
    // Nobody is before it any more but the first.
    hall.stop(second).await;
    assert_eq!(hall.ends(second).await, BatchStatus::Killed);
    hall.waits_for(third, Some(RunWait::Turn(LogId(1)))).await;
    assert_eq!(hall.waits(first).await, None);
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(first).await, BatchStatus::Success);
    hall.comes_to(&["1 DONE 200", "2 DONE KILLED", "3 RUNNING"]).await;
    hall.waits_for(third, None).await;
    hall.tell(3, 500, "no money").await;
    assert_eq!(hall.ends(third).await, BatchStatus::Failed);
    let second = third;
    let said = hall.pay(second).await.1;
    assert!(said.ends_with("ended with code 500: no money"), "{said}");
    assert_eq!(hall.programs[0].heard("/run").len(), 2);
}

async fn a_later_run_is_discarded(mut hall: Hall) {
    hall.with(", block: DISCARD_LATER").await;
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let second = hall.open("202407").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Failed);
    let said = hall.pay(second).await.1;
    assert!(
        said.contains("run 1 of this job is not over, and its block strategy is DISCARD"),
        "{said}"
    );
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(first).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
}

async fn a_later_run_covers_the_earlier(mut hall: Hall) {
    hall.with(", block: COVER_EARLY").await;
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let second = hall.open("202407").await;
    hall.waits_for(second, Some(RunWait::Cover(LogId(1)))).await;
    hall.until("killed", async |hall| {
        hall.clock.advance(300);
        hall.process.executors().look_soon().await;
        hall.process.results().contains_key(&first)
    })
    .await;
    assert_eq!(hall.pay(first).await.0, "KILLED");
    hall.comes_to(&["1 DONE 500", "2 RUNNING"]).await;
    assert_eq!(hall.programs[0].has(), [2]);
    hall.waits_for(second, None).await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Success);
}

async fn of_runs_that_come_together_the_last_covers(mut hall: Hall) {
    hall.with(", block: COVER_EARLY").await;
    let mut batches = Vec::new();
    for no in ["202406", "202407", "202408"] {
        batches.push(hall.open(no).await);
    }
    // Each try has asked for its run before anybody looks, or else is covered as one that runs.
    for _ in 0..20 {
        hall.process.run_tick().await.expect("beat");
        tokio::task::yield_now().await;
    }
    hall.until("covered", async |hall| {
        hall.clock.advance(300);
        hall.process.executors().look_soon().await;
        // One that was sent before it was covered ends with the report of its executor.
        let ended = |run: &String, n: i32| {
            [format!("{n} DONE COVERED"), format!("{n} DONE 500")].contains(run)
        };
        let runs = hall.runs().await;
        matches!(&runs[..], [a, b, c] if ended(a, 1) && ended(b, 2) && c == "3 RUNNING")
    })
    .await;
    hall.tell(3, 200, "").await;
    let mut ends = Vec::new();
    for id in batches {
        ends.push(hall.ends(id).await);
    }
    ends.sort_by_key(|end| end.as_str());
    assert_eq!(ends, [BatchStatus::Killed, BatchStatus::Killed, BatchStatus::Success]);
}

async fn two_processes_send_runs_of_a_job_one_after_the_other(mut hall: Hall) {
    let mut other = process(&hall.db, &hall.clock).await;
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    std::mem::swap(&mut hall.process, &mut other);
    let second = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING", "2 WAITING"]).await;
    hall.pass(3).await;
    assert_eq!(hall.programs[0].has(), [1]);
    std::mem::swap(&mut hall.process, &mut other);
    hall.process.heartbeat().await.expect("heartbeat");
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(first).await, BatchStatus::Success);
    std::mem::swap(&mut hall.process, &mut other);
    // The other hears of it by a hint, or at the latest in a while.
    hall.pass(6).await;
    hall.comes_to(&["1 DONE 200", "2 RUNNING"]).await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 2);
}

async fn a_run_of_one_process_keeps_that_of_another_out(mut hall: Hall) {
    hall.with(", block: DISCARD_LATER").await;
    let mut other = process(&hall.db, &hall.clock).await;
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    std::mem::swap(&mut hall.process, &mut other);
    let second = hall.open("202407").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Failed);
    let (status, said) = hall.pay(second).await;
    assert_eq!(status, "FAILED");
    assert_eq!(
        said,
        "not run: run 1 of this job is not over, and its block strategy is DISCARD_LATER"
    );
    std::mem::swap(&mut hall.process, &mut other);
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(first).await, BatchStatus::Success);
    // The job is free for either.
    std::mem::swap(&mut hall.process, &mut other);
    let third = hall.open("202408").await;
    hall.comes_to(&["1 DONE 200", "2 DONE DISCARDED", "3 RUNNING"]).await;
    hall.tell(3, 200, "").await;
    assert_eq!(hall.ends(third).await, BatchStatus::Success);
    assert_eq!((hall.programs[0].heard("/run").len(), hall.programs[0].most()), (2, 1));
}

async fn a_run_of_one_process_covers_that_of_another(mut hall: Hall) {
    hall.with(", block: COVER_EARLY").await;
    let mut other = process(&hall.db, &hall.clock).await;
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    std::mem::swap(&mut hall.process, &mut other);
    let second = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING", "2 WAITING"]).await;
    hall.waits_for(second, Some(RunWait::Cover(LogId(1)))).await;
    // It is on record and nothing more: the executor is told by the process whose run it is.
    hall.pass(2).await;
    assert!(hall.programs[0].heard("/kill").is_empty());
    assert_eq!(hall.programs[0].has(), [1]);
    std::mem::swap(&mut hall.process, &mut other);
    hall.process.heartbeat().await.expect("heartbeat");
    hall.until("killed", async |hall| {
        hall.clock.advance(300);
        hall.process.executors().look_soon().await;
        hall.process.results().contains_key(&first)
    })
    .await;
    assert_eq!(hall.process.results()[&first], BatchStatus::Killed);
    let (status, said) = hall.pay(first).await;
    assert_eq!(status, "KILLED");
    assert!(said.contains("a later run of the job covers it (COVER_EARLY)"), "{said}");
    std::mem::swap(&mut hall.process, &mut other);
    hall.pass(6).await;
    hall.comes_to(&["1 DONE 500", "2 RUNNING"]).await;
    hall.waits_for(second, None).await;
    assert_eq!(hall.programs[0].has(), [2]);
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Success);
    assert_eq!((hall.programs[0].heard("/run").len(), hall.programs[0].most()), (2, 1));
}

/// Handlers that ignore interrupts: the executor says at once that it is idle, and they run on.
async fn a_run_that_may_still_be_running_is_waited_for_until_its_end_is_reported(mut hall: Hall) {
    hall.with(", block: COVER_EARLY").await;
    hall.programs[0].obeys(false);
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let second = hall.open("202407").await;
    hall.until_given_up(first).await;
    assert_eq!(hall.pay(first).await.0, "UNKNOWN");
    hall.waits_for(second, Some(RunWait::Confirmation(LogId(1)))).await;
    hall.pass(20).await;
    hall.comes_to(&["1 UNCONFIRMED UNCONFIRMED", "2 WAITING"]).await;
    hall.tell(1, 500, "interrupted").await;
    hall.pass(6).await;
    hall.comes_to(&["1 DONE UNCONFIRMED 500", "2 RUNNING"]).await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].most(), 1);
}

async fn a_run_that_may_still_be_running_is_waited_for_until_an_operator_decides(mut hall: Hall) {
    hall.programs[0].obeys(false);
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.stop(first).await;
    hall.until_given_up(first).await;
    let second = hall.open("202407").await;
    hall.waits_for(second, Some(RunWait::Confirmation(LogId(1)))).await;
    hall.pass(20).await;
    hall.comes_to(&["1 UNCONFIRMED UNCONFIRMED", "2 WAITING"]).await;
    hall.by_hand("UPDATE job_queue SET status = 'FORCED' WHERE status = 'UNKNOWN'").await;
    hall.pass(6).await;
    hall.comes_to(&["1 UNCONFIRMED UNCONFIRMED", "2 RUNNING"]).await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Success);
}

async fn a_retry_waits_for_the_attempt_whose_stop_was_not_confirmed(mut hall: Hall) {
    let call = ", block: SERIAL_EXECUTION";
    let pay = format!(
        "type: HANDLER, executor: {{ app: {APP}, handler: payHandler{call} }}, timeout_sec: 6, \
         idempotent: true, on_unknown: retry, retry_count: 1, retry_delay_sec: 1"
    );
    hall.with_pay(&pay).await;
    hall.programs[0].obeys(false);
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    // A time limit is counted in real time, what follows it by the clock that is set by hand.
    hall.until("retried", async |hall| {
        hall.clock.advance(100);
        hall.runs().await == ["1 UNCONFIRMED UNCONFIRMED", "2 WAITING"]
    })
    .await;
    hall.waits_for(id, Some(RunWait::Confirmation(LogId(1)))).await;
    hall.tell(1, 500, "interrupted").await;
    hall.pass(6).await;
    hall.comes_to(&["1 DONE UNCONFIRMED 500", "2 RUNNING"]).await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].most(), 1);
}

async fn a_run_that_may_still_be_running_has_a_later_one_discarded(mut hall: Hall) {
    hall.with(", block: DISCARD_LATER").await;
    hall.programs[0].obeys(false);
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.stop(first).await;
    hall.until_given_up(first).await;
    let second = hall.open("202407").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Failed);
    let (status, said) = hall.pay(second).await;
    assert_eq!(status, "FAILED");
    assert!(said.contains("run 1 of this job was ordered to stop"), "{said}");
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
}
