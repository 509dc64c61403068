//! `store::history`: how long jobs took.

use super::{Place, chain, code, group_code, later, write_batch};
use procession::domain::batch::history::{History, TRIES};
use procession::domain::job::queue::QueueStatus;
use procession::store::log::{self, ExecutionLog};
use procession::store::{self, Tx};

/// Ends of tries, each `JOB STATUS milliseconds`; no milliseconds for a change that is no try.
async fn logged(tx: &mut Tx, defs_of: &str, batch_no: &str, words: &[&str]) {
    let mut jobs: Vec<&str> = Vec::new();
    for word in words {
        let job = word.split(' ').next().expect("job");
        if !jobs.contains(&job) {
            jobs.push(job);
        }
    }
    let id = write_batch(tx, &chain(defs_of, &jobs), batch_no).await.expect("batch");
    let rows = store::queue::of_batch(tx, id).await.expect("rows");
    for word in words {
        let parts: Vec<&str> = word.split(' ').collect();
        let row = rows.iter().find(|r| r.job_code.as_str() == parts[0]).expect("row");
        let took: Option<i64> = parts.get(2).map(|ms| ms.parse().expect("milliseconds"));
        let log = ExecutionLog {
            queue_id: row.queue_id,
            status: QueueStatus::parse(parts[1]).expect("a state"),
            start_time: took.map(|_| later(0)),
            end_time: took.map(later),
            error_message: None,
            notified: false,
            try_count: 0,
            attempt: 1,
            owner: None,
        };
        log::append(tx, &[log], later(0)).await.expect("log");
    }
}

async fn read(place: &Place, group: &str) -> History {
    let mut tx = place.db.begin_read().await.expect("read");
    store::history::of_group(&mut tx, &group_code(group)).await.expect("history")
}

fn shown(history: &History, job: &str) -> Option<(usize, i64, i64, i64)> {
    history.get(&code(job)).map(|d| (d.tries, d.p50, d.p95, d.last))
}

pub(super) async fn good_tries_of_the_group_make_its_history(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let first =
        ["A SUCCESS 100", "B RUNNING", "B RETRY_WAIT 9000", "B SUCCESS 30", "C FAILED 9000"];
    logged(&mut tx, "month_end", "202405", &first).await;
    let second = ["A WARNING 300", "B TIMEOUT 9000", "B FORCED", "C SKIPPED", "D KILLED 9000"];
    logged(&mut tx, "month_end", "202406", &second).await;
    // A rerun of the same row is a try like any other.
    let third = ["A SUCCESS 500", "A PENDING", "A SUCCESS 200", "B UNKNOWN 9000", "D SUCCESS 0"];
    logged(&mut tx, "month_end", "202407", &third).await;
    logged(&mut tx, "other", "202408", &["X SUCCESS 7"]).await;
    tx.commit().await.expect("commit");

    let history = read(&place, "month_end").await;
    assert_eq!(shown(&history, "A"), Some((4, 200, 500, 200)));
    assert_eq!(shown(&history, "B"), Some((1, 30, 30, 30)));
    assert_eq!(shown(&history, "C"), None);
    assert_eq!(shown(&history, "D"), Some((1, 0, 0, 0)));
    assert_eq!(shown(&history, "X"), None);
    assert_eq!(shown(&read(&place, "other").await, "X"), Some((1, 7, 7, 7)));
    assert_eq!(read(&place, "nobody").await, History::default());
}

pub(super) async fn only_the_newest_tries_and_batches_count(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    for number in 0..45 {
        // One job succeeds each time, and takes a millisecond longer; one did so only long ago.
        let rare = if number < 3 { "RARE SUCCESS 77" } else { "RARE FAILED 5" };
        let often = format!("OFTEN SUCCESS {}", 1_000 + number);
        logged(&mut tx, "month_end", &format!("N{number}"), &[&often, rare]).await;
    }
    tx.commit().await.expect("commit");
    let history = read(&place, "month_end").await;
    assert_eq!(shown(&history, "OFTEN"), Some((TRIES, 1_034, 1_043, 1_044)));
    assert_eq!(shown(&history, "RARE"), None);
}

pub(super) async fn durations_of_groups_with_the_same_codes_are_kept_apart(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    logged(&mut tx, "month_end", "202407", &["LOAD SUCCESS 1000"]).await;
    logged(&mut tx, "other", "202407", &["LOAD SUCCESS 77"]).await;
    let of_job = store::history::of_job(&mut tx, "other", "LOAD").await.expect("read");
    tx.commit().await.expect("commit");
    assert_eq!(of_job.map(|d| (d.tries, d.p50)), Some((1, 77)));
    assert_eq!(shown(&read(&place, "month_end").await, "LOAD"), Some((1, 1000, 1000, 1000)));
    assert_eq!(shown(&read(&place, "other").await, "LOAD"), Some((1, 77, 77, 77)));
}
