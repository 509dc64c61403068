//! Runs from the question to the end: done, refused, stopped, without an answer, without an end.

use super::hall::Hall;
use super::on_each;
use crate::xxl::program_of_others::Manner;
use procession::domain::batch::BatchStatus;

on_each! {
    a_run_goes_its_way
    a_run_that_is_refused_fails
    a_stopped_run_is_stopped_there_whatever_is_told_afterwards
    a_stop_that_is_not_seen_is_not_claimed
    a_run_whose_answer_is_lost_is_not_asked_for_again
    a_run_that_nobody_has_is_lost
    an_end_that_the_client_could_not_report_is_unknown
    a_log_file_that_is_missing_is_asked_for_once
    two_groups_with_one_code_have_numbers_of_their_own
}

async fn a_run_goes_its_way(mut hall: Hall) {
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let asked = hall.programs[0].heard("/run");
    assert_eq!(asked.len(), 1);
    let ask = &asked[0];
    assert_eq!(ask.as_object().expect("an object").len(), 12, "{ask}");
    assert_eq!((ask["logId"].as_i64(), ask["glueType"].as_str()), (Some(1), Some("BEAN")));
    assert_eq!(ask["executorHandler"], "payHandler");
    assert_eq!(ask["executorBlockStrategy"], "SERIAL_EXECUTION");
    assert_eq!((&ask["broadcastIndex"], &ask["broadcastTotal"]), (&0.into(), &1.into()));
    let params: serde_json::Value =
        serde_json::from_str(ask["executorParams"].as_str().expect("text")).expect("json");
    assert_eq!((&params["batchNo"], &params["params"]["branch"]), (&"202407".into(), &"SH".into()));
    hall.programs[0].prints(1, "begun");
    hall.pass(3).await;
    hall.programs[0].prints(1, "paid 3 branches");
    hall.tell(1, 200, "done").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.runs().await, ["1 DONE 200"]);
    assert_eq!(hall.lines().await, ["begun", "paid 3 branches"]);
    // What is told again, and otherwise, changes nothing.
    hall.tell(1, 500, "no").await;
    assert_eq!(hall.runs().await, ["1 DONE 200"]);
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
}

async fn a_run_that_is_refused_fails(mut hall: Hall) {
    hall.programs[0].is(Manner::Refuses);
    let id = hall.open("202407").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "FAILED");
    assert!(
        said.contains("was refused by its executor: code 500: job handler is not found"),
        "{said}"
    );
    assert_eq!(hall.runs().await, ["1 DONE REFUSED"]);
}

async fn a_stopped_run_is_stopped_there_whatever_is_told_afterwards(mut hall: Hall) {
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.stop(id).await;
    hall.until("killed", async |hall| {
        hall.clock.advance(300);
        hall.process.results().contains_key(&id)
    })
    .await;
    assert_eq!(hall.process.results()[&id], BatchStatus::Killed);
    assert_eq!(hall.pay(id).await.0, "KILLED");
    assert_eq!(hall.programs[0].heard("/kill").len(), 1);
    hall.tell(1, 200, "ended well after all").await;
    assert_eq!(hall.runs().await, ["1 DONE 500"]);
}

async fn a_stop_that_is_not_seen_is_not_claimed(mut hall: Hall) {
    hall.programs[0].obeys(false);
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.stop(id).await;
    hall.until_given_up(id).await;
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "UNKNOWN");
    assert!(said.contains("kill unconfirmed: run 1 at http://"), "{said}");
    assert_eq!(hall.runs().await, ["1 UNCONFIRMED UNCONFIRMED"]);
    // A late report is kept as evidence and changes nothing; a second one not even that.
    hall.tell(1, 200, "ended well after all").await;
    hall.tell(1, 500, "no").await;
    hall.pass(3).await;
    assert_eq!(hall.runs().await, ["1 DONE UNCONFIRMED 200"]);
    assert_eq!(hall.pay(id).await.0, "UNKNOWN");
}

async fn an_end_that_the_client_could_not_report_is_unknown(mut hall: Hall) {
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.tell(1, 500, "Connection error after retry times 3").await;
    hall.until("ended", async |hall| hall.process.results().contains_key(&id)).await;
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "UNKNOWN", "{said}");
    assert!(said.contains("whether it took effect is not known"), "{said}");
}

async fn a_log_file_that_is_missing_is_asked_for_once(mut hall: Hall) {
    hall.programs[0].loses_logs();
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/log").len(), 1);
    assert_eq!(hall.lines().await, [""; 0]);
    let sql =
        "SELECT line_text FROM job_log_line WHERE stream = 'system' AND line_text LIKE '%readLog%'";
    let mut tx = hall.db.begin_read().await.expect("read");
    let rows = tx.fetch_all(sql, &[]).await.expect("rows");
    let notices: Vec<_> = rows.iter().map(|row| row.get_text("line_text").expect("text")).collect();
    assert_eq!(notices, ["its executor has no log of run 1: readLog fail, logFile not exists"]);
}

async fn a_run_whose_answer_is_lost_is_not_asked_for_again(mut hall: Hall) {
    hall.programs[0].is(Manner::TakesAndIsSilent);
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.pass(70).await;
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
}

async fn a_run_that_nobody_has_is_lost(mut hall: Hall) {
    hall.programs[0].is(Manner::Loses);
    let id = hall.open("202407").await;
    hall.comes_to(&["1 ASKED"]).await;
    hall.pass(100).await;
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "UNKNOWN", "{said}");
    assert!(said.contains("is lost: its executor gave no answer when it was asked"), "{said}");
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
    // One that was busy and is not any more.
    hall.programs[0].is(Manner::Takes);
    let id = hall.open("202408").await;
    hall.comes_to(&["1 DONE LOST", "2 RUNNING"]).await;
    hall.pass(7).await;
    hall.programs[0].ends(2);
    hall.pass(130).await;
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "UNKNOWN", "{said}");
    assert!(said.contains("is lost: its executor ran it, does not any more"), "{said}");
}

/// Jobs of one code and batch number in two groups: job and run are known by different numbers, and the end of one
/// run is the end of its own job alone.
async fn two_groups_with_one_code_have_numbers_of_their_own(mut hall: Hall) {
    let second = hall.with_second_group().await;
    let (pay, wages) = (hall.open("202407").await, hall.open_in("202407", second).await);
    hall.comes_to(&["1 RUNNING", "2 RUNNING"]).await;
    let asked = hall.programs[0].heard("/run");
    let numbers = |name: &str| -> std::collections::BTreeSet<i64> {
        asked.iter().map(|ask| ask[name].as_i64().expect("a number")).collect()
    };
    assert_eq!(numbers("logId").len(), 2, "{asked:?}");
    assert_eq!(numbers("jobId").len(), 2, "{asked:?}");
    // Which of the two runs is the second group's.
    let mut tx = hall.db.begin_read().await.expect("read");
    let sql = "SELECT log_id FROM executor_run WHERE batch_id = ?";
    let row = tx.fetch_optional(sql, &[wages.0.into()]).await.expect("row").expect("a run");
    let log = row.get_int("log_id").expect("a number");
    drop(tx);
    hall.programs[0].prints(log, "the wages are wrong");
    hall.pass(3).await;
    hall.tell(log, 500, "no money").await;
    assert_eq!(hall.ends(wages).await, BatchStatus::Failed);
    let (status, said) = hall.pay(wages).await;
    assert_eq!((status.as_str(), said.contains("no money")), ("FAILED", true), "{said}");
    assert_eq!(hall.pay(pay).await.0, "RUNNING");
    hall.tell(3 - log, 200, "done").await;
    assert_eq!(hall.ends(pay).await, BatchStatus::Success);
    assert_eq!(hall.pay(wages).await.0, "FAILED");
}
