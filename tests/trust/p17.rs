//! P-17: 5,000 schedules due in one second, on two processes; and the four policies for a firing whose
//! batch before still runs.

use crate::trust::clockwork::{ALL, Clockwork, SERVERS, SETTINGS, on, together};
use crate::trust::judge::fires::{Late, Pace};
use crate::trust::oracle::rows;
use crate::trust::ticks::{LATE, Tick, unhurried};
use procession::domain::source::DialectName;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// So many schedules of one second, once; each is fired, and soon.
async fn storm(dialect: DialectName, home: String, count: usize) {
    let mut clockwork = Clockwork::on(dialect, &home, SETTINGS, Vec::new()).await;
    let mut workers = vec![clockwork.serve_plainly("one"), clockwork.serve_plainly("two")];
    clockwork.until_serving(&workers).await;
    // Far enough ahead for so many to be written, mostly; else they are due in the next minute.
    let second = (clockwork.ticks.now().await / 1_000 + 20) % 60;
    let ticks = (0..count).map(|n| Tick::row(n, Pace::Seconds(vec![second]))).collect();
    clockwork.ticks.replace(ticks);
    clockwork.ticks.schedule().await;
    let begun = Instant::now();
    let until_due = (second * 1_000 - clockwork.ticks.now().await).rem_euclid(60_000);
    let fired = "SELECT COUNT(*) FROM job_firing WHERE status = 'FIRED'";
    let said =
        || workers.iter().map(crate::trust::nodes::Worker::said).collect::<Vec<_>>().join("\n");
    clockwork.until_at_least(fired, count as i64, said).await;
    let due_again = Duration::from_millis(until_due as u64 + 55_000);
    assert!(begun.elapsed() < due_again, "it is due again");
    let judged =
        clockwork.end(&format!("{count} in one second"), &mut workers, unhurried(LATE)).await;
    assert_eq!(judged.times.fired, count);
}

/// When batches of a schedule ran, in the order of their begins: number, status, begin and end.
async fn batches(home: &str, code: &str) -> Vec<(String, String, String, String)> {
    let sql = format!(
        "SELECT batch_no, status, create_time, end_time FROM job_batch WHERE group_code = 'g_{code}' \
         ORDER BY create_time, batch_id"
    );
    let cell = |row: &Vec<Option<String>>, i: usize| row[i].clone().unwrap_or_default();
    let of_row = |row| (cell(&row, 0), cell(&row, 1), cell(&row, 2), cell(&row, 3));
    rows(home, &sql).await.into_iter().map(of_row).collect()
}

/// Four schedules of every two seconds with bodies of five, each with another policy.
async fn overlaps(dialect: DialectName, home: String) {
    let of = |(number, overlap): (usize, &'static str)| Tick {
        overlap,
        takes_ms: 5_000,
        ..Tick::body(number, Pace::Every(2))
    };
    let policies = ["queue", "skip", "parallel", "replace"];
    let ticks = policies.into_iter().enumerate().map(of).collect();
    let mut clockwork = Clockwork::on(dialect, &home, SETTINGS, ticks).await;
    let mut workers = vec![clockwork.serve_plainly("one"), clockwork.serve_plainly("two")];
    clockwork.until_serving(&workers).await;
    clockwork.ticks.schedule().await;
    sleep(Duration::from_secs(7)).await;
    clockwork.ticks.retire().await;
    sleep(Duration::from_secs(6)).await;
    clockwork.until_done(|| workers[0].said()).await;
    let all = clockwork.ticks.firings().await;
    let mut counts = BTreeMap::<(String, String), usize>::new();
    for (row, _) in &all {
        *counts.entry((row.code.clone(), row.status.to_string())).or_default() += 1;
    }
    let count = |code: &str, status: &str| {
        counts.get(&(code.to_owned(), status.to_owned())).copied().unwrap_or_default()
    };
    let silent = "SELECT COUNT(*) FROM job_firing WHERE status = 'SKIPPED' AND reason IS NULL";
    assert_eq!(clockwork.ask(silent).await, "0", "each skipped time says why");
    let of_all = |code: &str| all.iter().filter(|(row, _)| row.code == code).count();
    // Each planned time has fired, but for those that were left out.
    for code in ["S00", "S02", "S03"] {
        assert_eq!(count(code, "FIRED"), of_all(code), "{code}: {counts:?}");
    }
    assert!(count("S01", "SKIPPED") > 0 && count("S01", "FIRED") > 0, "{counts:?}");
    assert_eq!(count("S01", "SKIPPED") + count("S01", "FIRED"), of_all("S01"), "{counts:?}");
    for (code, policy) in ["S00", "S01", "S02", "S03"].into_iter().zip(policies) {
        let batches = batches(&clockwork.home, code).await;
        assert_eq!(batches.len(), count(code, "FIRED"), "{policy}: {batches:?}");
        let overlapping = batches.windows(2).filter(|two| two[1].2 < two[0].3).count();
        assert_eq!(overlapping > 0, policy == "parallel", "{policy}: {batches:?}");
        let numbers: Vec<&String> = batches.iter().map(|batch| &batch.0).collect();
        assert!(numbers.is_sorted(), "{policy} is out of order: {batches:?}");
        let killed = batches.iter().filter(|batch| batch.1 == "KILLED").count();
        assert_eq!(killed > 0, policy == "replace", "{policy}: {batches:?}");
    }
    // What was replaced has no effect, so only the others are judged.
    let late = Late { fires: 60_000, made_up: 60_000, body: 60_000 };
    let firings = clockwork.ticks.firings().await;
    clockwork.ticks.forget("S03");
    let firings = firings.into_iter().filter(|(row, _)| row.code != "S03").collect();
    let times = clockwork.ticks.judged(firings, late).await;
    crate::trust::scene::report(&format!("overlaps on {dialect:?}\n{times}"));
    assert!(times.is_clean(), "{times}\n{counts:?}");
    for worker in &mut workers {
        worker.leave(Duration::from_secs(60)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_in_one_second_are_all_fired() {
    together(ALL.map(|dialect| on(dialect, |d, url| storm(d, url, 5_000))).into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_overlap_policy_does_what_it_says() {
    together(SERVERS.map(|dialect| on(dialect, overlaps)).into()).await;
}
