//! A process dies, or its database fails it: whoever comes after goes on from the rows, and asks for nothing twice.

use super::hall::{Hall, process};
use super::on_each;
use crate::xxl::program_of_others::Manner;
use procession::domain::batch::BatchStatus;
use std::time::{Duration, Instant};

on_each! {
    a_process_that_dies_is_gone_on_from
    an_end_that_was_told_while_nobody_lived_is_heard
    a_run_that_nobody_waits_for_is_ended
    whoever_finds_a_run_that_was_asked_for_does_not_ask_again
    one_that_waits_is_sent_once_by_whoever_takes_it_over
    a_beat_that_fails_loses_nothing
}

async fn a_process_that_dies_is_gone_on_from(mut hall: Hall) {
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.programs[0].prints(1, "first");
    hall.dies().await;
    hall.until("adopted", async |hall| {
        let me = "SELECT COUNT(DISTINCT node_id) AS n FROM executor_run";
        let mut tx = hall.db.begin_read().await.expect("read");
        let row = tx.fetch_optional(me, &[]).await.expect("row").expect("a row");
        row.get_int("n").expect("n") == 1 && !hall.programs[0].heard("/idleBeat").is_empty()
    })
    .await;
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
    assert_eq!(hall.runs().await, ["1 DONE 200"]);
    assert_eq!(hall.lines().await, ["first"]);
}

async fn an_end_that_was_told_while_nobody_lived_is_heard(mut hall: Hall) {
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.tell(1, 200, "").await;
    // Before it has heard of it.
    hall.dies().await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
    assert_eq!(hall.runs().await, ["1 DONE 200"]);
}

async fn a_run_that_nobody_waits_for_is_ended(mut hall: Hall) {
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    // An operator declares it done behind everybody's back.
    let mut tx = hall.db.begin().await.expect("begin");
    let sql = "UPDATE job_queue SET status = 'FORCED', owner = NULL WHERE batch_id = ? AND job_code = 'PAY'";
    tx.execute(sql, &[first.0.into()]).await.expect("force");
    tx.commit().await.expect("commit");
    hall.process = process(&hall.db, &hall.clock).await;
    hall.process.executors().tidy_now().await.expect("tidy");
    hall.until("stopped", async |hall| {
        hall.clock.advance(300);
        hall.runs().await == ["1 TOLD 500"]
    })
    .await;
    assert_eq!(hall.programs[0].has(), Vec::<i64>::new());
    assert_eq!(hall.first_log().await, 1);
}

async fn whoever_finds_a_run_that_was_asked_for_does_not_ask_again(mut hall: Hall) {
    for (manner, ended) in [(Manner::TakesAndIsSilent, "SUCCESS"), (Manner::Loses, "UNKNOWN")] {
        hall.programs[0].is(manner);
        let before: i64 = hall.runs().await.len().try_into().expect("small");
        let log = before + 1;
        let id = hall.open(&format!("20240{log}")).await;
        let asked = usize::try_from(log).expect("small");
        hall.until("asked for", async |hall| hall.programs[0].heard("/run").len() == asked).await;
        // It knows nothing of an answer.
        hall.dies().await;
        if manner == Manner::Loses {
            hall.pass(100).await;
        } else {
            let running = format!("{log} RUNNING");
            hall.until("found", async |hall| hall.runs().await.last() == Some(&running)).await;
            hall.tell(log, 200, "").await;
            assert_eq!(hall.ends(id).await, BatchStatus::Success);
        }
        let (status, said) = hall.pay(id).await;
        assert_eq!(status, ended, "{said}");
        assert_eq!(hall.programs[0].heard("/run").len(), asked);
    }
}

async fn one_that_waits_is_sent_once_by_whoever_takes_it_over(mut hall: Hall) {
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let second = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING", "2 WAITING"]).await;
    hall.dies().await;
    while hall.process.take_batches().await.expect("take") > 0 {}
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(first).await, BatchStatus::Success);
    hall.comes_to(&["1 DONE 200", "2 RUNNING"]).await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 2);
}

#[expect(clippy::disallowed_methods, reason = "whoever is asked answers in real time")]
async fn a_beat_that_fails_loses_nothing(mut hall: Hall) {
    let away = "ALTER TABLE executor_run RENAME TO away";
    let back = "ALTER TABLE away RENAME TO executor_run";
    let id = hall.open("202407").await;
    hall.process.run_tick().await.expect("beat");
    hall.by_hand(away).await;
    // The try has asked, and nothing can be written.
    let end = Instant::now() + Duration::from_secs(30);
    while hall.process.executors().run_tick().await.is_ok() {
        hall.process.run_tick().await.expect("beat");
        assert!(Instant::now() < end, "it never asked");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(hall.programs[0].heard("/run").len(), 0);
    hall.by_hand(back).await;
    hall.comes_to(&["1 RUNNING"]).await;
    // Nor can it be read that it has ended.
    hall.tell(1, 200, "").await;
    hall.by_hand(away).await;
    assert!(hall.process.executors().run_tick().await.is_err());
    hall.by_hand(back).await;
    hall.process.executors().look_soon().await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
    assert_eq!(hall.runs().await, ["1 DONE 200"]);
}
