//! What admins are told, in each of their dialects, and when they are away.

use crate::xxl::admin::{Admin, Mood, TOKEN};
use crate::xxl::desk::{APP, Bench, JULY, asked, options};
use procession::engine::xxl::executor::Executor;
use procession::wire::xxl::XxlDialect;
use serde_json::json;

/// A run that is over.
async fn over(bench: &Bench, log: i64) {
    let params = format!(r#"{{"batchNo":"r{log}","type":"monthly","freeText":true}}"#);
    bench.ask("/run", &asked(7, log, &params)).await;
    bench.follow().await;
    bench.work().await;
    bench.follow().await;
}

#[tokio::test]
async fn every_version_is_told_what_it_reads() {
    for dialect in XxlDialect::ALL {
        for said in [None, Some(dialect)] {
            let (bench, _dir) = Bench::sqlite(dialect).await;
            let options = options(vec![bench.admin.url()], said);
            let executor = Executor::new(bench.db.clone(), bench.clock.clone(), options);
            executor.register().await.unwrap_or_else(|e| panic!("{dialect:?}: {e}"));
            for log in [101, 102] {
                over(&bench, log).await;
                assert_eq!(
                    executor.report_ends().await.expect("tell").taken,
                    1,
                    "{dialect:?} {said:?}"
                );
            }
            let codes: Vec<(i64, i64)> = bench.admin.taken().iter().map(|t| (t.0, t.1)).collect();
            assert_eq!(codes, [(101, 200), (102, 200)], "{dialect:?} {said:?}");
            // What is found out is found out once.
            let tries = bench.admin.heard("callback").len();
            let wanted = if dialect == XxlDialect::D3 && said.is_none() { 3 } else { 2 };
            assert_eq!(tries, wanted, "{dialect:?} {said:?}");
            let registry = &bench.admin.heard("registry")[0];
            let body = json!({
                "registryGroup": "EXECUTOR", "registryKey": APP,
                "registryValue": "http://127.0.0.1:9999/",
            });
            assert_eq!(registry.body, body);
            assert_eq!(registry.headers["xxl-job-access-token"], TOKEN);
            assert_eq!(registry.headers["xxl-job-appname"], APP);
            executor.deregister().await.expect("removed");
            assert_eq!(bench.admin.heard("registryRemove")[0].body, body);
        }
    }
}

#[tokio::test]
async fn an_admin_that_is_away_is_told_until_it_takes_it() {
    let (bench, _dir) = Bench::sqlite(XxlDialect::D2).await;
    over(&bench, 101).await;
    for mood in [Mood::Refuses, Mood::Html, Mood::Redirects, Mood::Floods] {
        bench.admin.is(mood);
        let told = bench.executor.report_ends().await.expect("tell");
        assert_eq!((told.taken, told.again), (0, 1), "{mood:?}");
        // Not at once again.
        let told = bench.executor.report_ends().await.expect("tell");
        assert_eq!((told.taken, told.again), (0, 0), "{mood:?}");
        bench.clock.advance(30_000);
    }
    // What an answer repeats of the token is not written down.
    let sql = format!("SELECT COUNT(*) AS n FROM xxl_run WHERE callback_error LIKE '%{TOKEN}%'");
    assert_eq!(bench.number(&sql).await, 0);
    let sql =
        "SELECT COUNT(*) AS n FROM xxl_run WHERE callback_error LIKE '%more than 65536 bytes%'";
    assert_eq!(bench.number(sql).await, 1);
    assert!(bench.admin.heard("callback").iter().all(|h| !h.path.contains("elsewhere")));
    bench.admin.is(Mood::Takes);
    assert_eq!(bench.executor.report_ends().await.expect("tell").taken, 1);
    assert_eq!(bench.admin.taken().len(), 1);
    assert_eq!(bench.runs().await, ["101 DONE 200 TAKEN"]);
}

#[tokio::test]
async fn what_was_taken_and_not_answered_is_told_again_and_counts_once() {
    let (bench, _dir) = Bench::sqlite(XxlDialect::D1).await;
    over(&bench, 101).await;
    bench.admin.is(Mood::TakesAndFails);
    assert_eq!(bench.executor.report_ends().await.expect("tell").again, 1);
    bench.admin.is(Mood::Takes);
    bench.clock.advance(30_000);
    assert_eq!(bench.executor.report_ends().await.expect("tell").taken, 1);
    assert_eq!(bench.admin.taken().len(), 1);
}

#[tokio::test]
async fn of_several_admins_the_first_that_answers_is_told() {
    let (bench, _dir) = Bench::sqlite(XxlDialect::D1).await;
    let second = Admin::of(XxlDialect::D1).await;
    // Nobody listens at the first.
    let gone = Admin::of(XxlDialect::D1).await;
    let nobody = gone.url();
    drop(gone);
    bench.admin.is(Mood::Refuses);
    let options = options(vec![nobody, bench.admin.url(), second.url()], None);
    let executor = Executor::new(bench.db.clone(), bench.clock.clone(), options);
    over(&bench, 101).await;
    assert_eq!(executor.report_ends().await.expect("tell").taken, 1);
    executor.register().await.expect("registered");
    assert_eq!((second.taken().len(), second.heard("registry").len()), (1, 1));
    assert_eq!(bench.admin.taken().len(), 0);
}

#[tokio::test]
async fn many_ends_are_told_together() {
    let (bench, _dir) = Bench::sqlite(XxlDialect::D1).await;
    for log in 0..120 {
        let ask = asked(log, log, JULY);
        let part = json!({"broadcastIndex": 1, "broadcastTotal": 2});
        bench.ask("/run", &crate::xxl::desk::with(ask, part)).await;
    }
    let mut sizes = Vec::new();
    loop {
        match bench.executor.report_ends().await.expect("tell").taken {
            0 => break,
            taken => sizes.push(taken),
        }
    }
    assert_eq!(sizes, [50, 50, 20]);
    assert_eq!(bench.admin.taken().len(), 120);
}
