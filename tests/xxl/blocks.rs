//! What becomes of a run while an earlier one of its job is not over.

use crate::xxl::desk::{Bench, JULY, asked, with};
use crate::xxl::on_each_database;
use procession::domain::source::DialectName;
use serde_json::{Value, json};

on_each_database! {
    in_series_one_waits_for_the_other
    a_later_one_is_discarded
    an_earlier_one_is_covered
    of_two_processes_each_run_has_one_batch
}

const AUGUST: &str = r#"{"batchNo":"202408","type":"monthly"}"#;

fn run(log: i64, params: &str, strategy: &str) -> Value {
    with(asked(7, log, params), json!({"executorBlockStrategy": strategy}))
}

async fn in_series_one_waits_for_the_other(bench: Bench) {
    bench.ask("/run", &run(101, JULY, "SERIAL_EXECUTION")).await;
    let (code, said) = bench.ask("/run", &run(102, AUGUST, "UNHEARD_OF")).await;
    assert_eq!((code, said.as_str()), (200, "taken; waits for run 101"));
    bench.follow().await;
    assert_eq!(bench.runs().await, ["101 RUNNING", "102 WAITING"]);
    // Another job's do not wait.
    bench.ask("/run", &asked(9, 103, r#"{"batchNo":"2024Q3","type":"quarterly"}"#)).await;
    bench.follow().await;
    assert_eq!(bench.runs().await, ["101 RUNNING", "102 WAITING", "103 RUNNING"]);
    bench.work().await;
    bench.follow().await;
    assert_eq!(bench.runs().await, ["101 DONE 200 DUE", "102 RUNNING", "103 DONE 200 DUE"]);
    assert!(bench.batch("202408", "month_end").await.is_some());
}

async fn a_later_one_is_discarded(bench: Bench) {
    bench.ask("/run", &run(101, JULY, "DISCARD_LATER")).await;
    let (code, said) = bench.ask("/run", &run(102, AUGUST, "DISCARD_LATER")).await;
    assert_eq!(code, 500);
    assert!(said.contains("run 101 of job 7 is not over"), "{said}");
    bench.follow().await;
    bench.work().await;
    bench.follow().await;
    assert_eq!(bench.ask("/run", &run(103, AUGUST, "DISCARD_LATER")).await.0, 200);
    assert_eq!(bench.runs().await, ["101 DONE 200 DUE", "103 WAITING"]);
}

async fn an_earlier_one_is_covered(bench: Bench) {
    bench.ask("/run", &run(101, JULY, "COVER_EARLY")).await;
    bench.follow().await;
    bench
        .ask("/run", &run(102, r#"{"batchNo":"202409","type":"monthly"}"#, "SERIAL_EXECUTION"))
        .await;
    assert_eq!(bench.ask("/run", &run(103, AUGUST, "COVER_EARLY")).await.0, 200);
    bench.follow().await;
    // It never runs beside what it covers.
    assert_eq!(bench.runs().await, ["101 RUNNING COVERED", "102 DONE 500 DUE", "103 WAITING"]);
    bench.work().await;
    bench.follow().await;
    assert_eq!(bench.runs().await, ["101 DONE COVERED 500 DUE", "102 DONE 500 DUE", "103 RUNNING"]);
    assert!(bench.batch("202409", "month_end").await.is_none());
    bench.work().await;
    bench.follow().await;
    bench.executor.report_ends().await.expect("tell");
    let taken = bench.admin.taken();
    let codes: Vec<(i64, i64)> = taken.iter().map(|t| (t.0, t.1)).collect();
    assert_eq!(codes, [(101, 500), (102, 500), (103, 200)]);
    assert!(taken[0].2.contains("COVER_EARLY") && taken[1].2.contains("COVER_EARLY"), "{taken:?}");
}

/// Two of one appname on one database, as an admin routes to either.
async fn of_two_processes_each_run_has_one_batch(bench: Bench) {
    let db = crate::xxl::desk::connect(&bench.url).await;
    let options = crate::xxl::desk::options(vec![bench.admin.url()], None);
    let other =
        procession::engine::xxl::executor::Executor::new(db.clone(), bench.clock.clone(), options);
    for round in 0..10_i64 {
        let params = format!(r#"{{"batchNo":"r{round}","type":"monthly","freeText":true}}"#);
        bench.ask("/run", &asked(round, round, &params)).await;
        for _ in 0..4 {
            // Whoever is asked to try again does so at its next look.
            let _ = tokio::join!(bench.executor.follow(), other.follow());
        }
    }
    bench.follow().await;
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_batch").await, 10);
    for _ in 0..10 {
        bench.work().await;
        let _ = tokio::join!(bench.executor.follow(), other.follow());
        let _ = tokio::join!(bench.executor.report_ends(), other.report_ends());
    }
    bench.follow().await;
    bench.executor.report_ends().await.expect("tell");
    let told: usize =
        bench.admin.heard("callback").iter().map(|h| h.body.as_array().map_or(0, Vec::len)).sum();
    assert_eq!((told, bench.admin.taken().len()), (10, 10));
    assert!(bench.admin.taken().iter().all(|t| t.1 == 200), "{:?}", bench.admin.taken());
    db.close().await;
}
