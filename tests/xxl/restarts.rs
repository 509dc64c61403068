//! The executor dies between any two steps, or its admin is away: nothing is lost, and what an admin took
//! it took once.

use crate::xxl::admin::Mood;
use crate::xxl::desk::{Bench, JULY, asked};
use crate::xxl::on_each_database;
use procession::domain::source::DialectName;

on_each_database! {
    whoever_is_born_anew_goes_on
    what_was_told_and_not_noted_is_told_again
    a_run_whose_turn_had_come_is_opened_by_the_next
}

async fn whoever_is_born_anew_goes_on(mut bench: Bench) {
    bench.ask("/run", &asked(7, 101, JULY)).await;
    bench.reborn().await;
    bench.executor.follow().await.expect("follow");
    assert_eq!(bench.runs().await, ["101 RUNNING"]);
    bench.reborn().await;
    bench.follow().await;
    bench.admin.is(Mood::Refuses);
    bench.work().await;
    bench.reborn().await;
    bench.follow().await;
    assert_eq!(bench.executor.report_ends().await.expect("tell").again, 1);
    bench.reborn().await;
    bench.admin.is(Mood::Takes);
    bench.clock.advance(30_000);
    assert_eq!(bench.executor.report_ends().await.expect("tell").taken, 1);
    bench.reborn().await;
    assert_eq!(bench.executor.report_ends().await.expect("tell").taken, 0);
    assert_eq!(bench.admin.taken().len(), 1);
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_batch").await, 1);
    // The log is made of rows.
    let reply = bench.reply("/log", &serde_json::json!({"logId": 101, "fromLineNum": 1})).await;
    assert_eq!(reply["data"]["isEnd"], true);
}

/// As if it had died behind the admin's answer.
async fn what_was_told_and_not_noted_is_told_again(mut bench: Bench) {
    bench.ask("/run", &asked(7, 101, JULY)).await;
    bench.follow().await;
    bench.work().await;
    bench.follow().await;
    bench.executor.report_ends().await.expect("tell");
    let later = bench.clock.now().plus_ms(60_000).to_utc();
    let mut tx = bench.db.begin().await.expect("begin");
    let sql = "UPDATE xxl_run SET callback = 'DUE', callback_at = ?";
    tx.execute(sql, &[later.into()]).await.expect("as it was");
    tx.commit().await.expect("commit");
    bench.reborn().await;
    assert_eq!(bench.executor.report_ends().await.expect("tell").taken, 0);
    bench.clock.advance(60_000);
    assert_eq!(bench.executor.report_ends().await.expect("tell").taken, 1);
    assert_eq!((bench.admin.heard("callback").len(), bench.admin.taken().len()), (2, 1));
}

/// As if it had died between giving the turn and opening the batch.
async fn a_run_whose_turn_had_come_is_opened_by_the_next(mut bench: Bench) {
    bench.ask("/run", &asked(7, 101, JULY)).await;
    let mut tx = bench.db.begin().await.expect("begin");
    tx.execute("UPDATE xxl_run SET status = 'RUNNING'", &[]).await.expect("its turn");
    tx.commit().await.expect("commit");
    bench.reborn().await;
    bench.follow().await;
    assert!(bench.batch("202407", "month_end").await.is_some());
    // One that is to be stopped before its batch is open never has one.
    bench.ask("/run", &asked(8, 102, r#"{"batchNo":"202408","type":"monthly"}"#)).await;
    let mut tx = bench.db.begin().await.expect("begin");
    let sql = "UPDATE xxl_run SET status = 'RUNNING', stopping = 'KILLED' WHERE log_id = 102";
    tx.execute(sql, &[]).await.expect("stopped");
    tx.commit().await.expect("commit");
    bench.follow().await;
    assert!(bench.batch("202408", "month_end").await.is_none());
    assert_eq!(bench.runs().await[1], "102 DONE KILLED 500 DUE");
}
