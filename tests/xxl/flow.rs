//! A run that an admin asks for: its batch, its end, its log, and what is refused.

use crate::xxl::desk::{Bench, JULY, START, asked, with};
use crate::xxl::on_each_database;
use procession::domain::batch::BatchStatus;
use procession::domain::source::DialectName;
use serde_json::{Value, json};

on_each_database! {
    a_run_opens_a_batch_and_its_end_is_told
    a_failed_batch_is_told_with_what_failed
    a_batch_that_is_there_is_refused_and_says_so
    the_log_of_a_run_is_read_page_by_page
    a_kill_is_on_record_before_it_is_answered
    a_run_that_is_over_time_is_stopped_and_told_as_such
    of_a_broadcast_one_part_does_the_work
    what_is_old_and_told_is_forgotten
}

async fn a_run_opens_a_batch_and_its_end_is_told(bench: Bench) {
    let ask = asked(7, 101, r#"{"batchNo":"month(-1)","type":"monthly"}"#);
    assert_eq!(bench.ask("/run", &ask).await, (200, "taken".to_owned()));
    // It is a row before anything else happens, and asked again it is the same run.
    assert_eq!(bench.runs().await, ["101 WAITING"]);
    assert_eq!(bench.ask("/run", &ask).await.0, 200);
    bench.follow().await;
    let batch = bench.batch("202407", "month_end").await.expect("opened");
    assert_eq!(batch.owner, None);
    assert_eq!(batch.started_by, "xxl-job month-end-executor job 7 log 101");
    assert_eq!(
        bench.ask("/run", &ask).await,
        (200, "run 101 is known already (RUNNING)".to_owned())
    );
    assert_eq!(bench.ask("/idleBeat", &json!({"jobId": 7})).await.0, 500);
    assert_eq!(bench.executor.report_ends().await.expect("tell").taken, 0);
    bench.work().await;
    bench.follow().await;
    assert_eq!(bench.runs().await, ["101 DONE 200 DUE"]);
    assert_eq!(bench.ask("/idleBeat", &json!({"jobId": 7})).await.0, 200);
    assert_eq!(bench.executor.report_ends().await.expect("tell").taken, 1);
    assert_eq!(bench.executor.report_ends().await.expect("tell").taken, 0);
    let said = "batch 202407 of month_end ended SUCCESS: 2 SUCCESS";
    assert_eq!(bench.admin.taken(), [(101, 200, said.to_owned())]);
    assert_eq!(bench.admin.heard("callback").len(), 1);
    assert_eq!(bench.runs().await, ["101 DONE 200 TAKEN"]);
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_batch").await, 1);
}

async fn a_failed_batch_is_told_with_what_failed(bench: Bench) {
    bench.ask("/run", &asked(8, 102, r#"{"batchNo":"20240731","group":"broken"}"#)).await;
    bench.follow().await;
    bench.work().await;
    bench.follow().await;
    bench.executor.report_ends().await.expect("tell");
    let [(102, 500, said)] = &bench.admin.taken()[..] else { panic!("{:?}", bench.admin.taken()) };
    assert!(
        said.starts_with("batch 20240731 of broken ended FAILED: 1 FAILED, 1 UPSTREAM_FAILED"),
        "{said}"
    );
    assert!(said.contains("; F FAILED: "), "{said}");
}

async fn a_batch_that_is_there_is_refused_and_says_so(bench: Bench) {
    bench.ask("/run", &asked(7, 101, JULY)).await;
    bench.follow().await;
    bench.work().await;
    bench.follow().await;
    bench.ask("/run", &asked(7, 102, JULY)).await;
    // Nobody knows such a type.
    bench.ask("/run", &asked(7, 103, r#"{"batchNo":"202407","type":"weekly"}"#)).await;
    // No month has this number.
    bench.ask("/run", &asked(7, 104, r#"{"batchNo":"2024-07","type":"monthly"}"#)).await;
    bench.follow().await;
    bench.executor.report_ends().await.expect("tell");
    let taken = bench.admin.taken();
    let codes: Vec<(i64, i64)> = taken.iter().map(|t| (t.0, t.1)).collect();
    assert_eq!(codes, [(101, 200), (102, 500), (103, 500), (104, 500)]);
    assert!(
        taken[1].2.contains("batch 202407 of group month_end exists already (SUCCESS)"),
        "{taken:?}"
    );
    assert!(taken[2].2.contains("no group of type weekly"), "{taken:?}");
    assert!(taken[3].2.contains("group month_end is monthly, and 2024-07"), "{taken:?}");
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_batch").await, 1);
}

async fn lines(bench: &Bench, from: i64) -> (i64, i64, bool, Vec<String>) {
    let reply =
        bench.reply("/log", &json!({"logDateTim": 0, "logId": 101, "fromLineNum": from})).await;
    assert_eq!(reply["code"], 200);
    assert_eq!(reply["content"], reply["data"]);
    let page = &reply["data"];
    let text = page["logContent"].as_str().expect("text");
    let number = |name: &str| page[name].as_i64().expect("a number");
    let lines = text.lines().map(str::to_owned).collect();
    (number("fromLineNum"), number("toLineNum"), page["isEnd"].as_bool().expect("a bool"), lines)
}

async fn the_log_of_a_run_is_read_page_by_page(bench: Bench) {
    let (from, to, is_end, text) = lines(&bench, 1).await;
    assert_eq!((from, to, is_end), (1, 0, true), "{text:?}");
    assert!(text[0].contains("not known here"), "{text:?}");
    bench.ask("/run", &asked(7, 101, JULY)).await;
    let (_, to, is_end, first) = lines(&bench, 1).await;
    assert_eq!((to, is_end), (1, false));
    assert!(first[0].ends_with("run 101 of job 7 was taken"), "{first:?}");
    bench.follow().await;
    let (from, to, is_end, opened) = lines(&bench, 2).await;
    assert_eq!((from, to, is_end, opened.len()), (2, 2, false, 1));
    assert!(opened[0].ends_with("batch 202407 of group month_end was opened"), "{opened:?}");
    // Nothing new: the last line is before the first.
    let (from, to, is_end, none) = lines(&bench, 3).await;
    assert_eq!((from, to, is_end, none.len()), (3, 2, false, 0));
    bench.work().await;
    // What has just been written waits a second, because of two batches the later may be numbered first.
    assert_eq!(lines(&bench, 3).await.1, 2);
    bench.clock.advance(1_000);
    let (_, to, is_end, changes) = lines(&bench, 3).await;
    assert_eq!((to, is_end), (6, false), "{changes:?}");
    assert!(changes[0].contains(" 202407 A RUNNING (start 1)"), "{changes:?}");
    assert!(changes[3].contains(" 202407 B SUCCESS (start 1)"), "{changes:?}");
    bench.follow().await;
    let (_, to, is_end, last) = lines(&bench, 7).await;
    assert_eq!((to, is_end, last.len()), (7, true, 1), "{last:?}");
    assert!(
        last[0].contains("over: code 200: batch 202407 of month_end ended SUCCESS"),
        "{last:?}"
    );
    assert_eq!(lines(&bench, 8).await.1, 7);
    let (_, to, is_end, all) = lines(&bench, -5).await;
    assert_eq!((to, is_end, all.len()), (7, true, 7));
    // Since 3.5 its time has another name.
    let ask = json!({"logDateTime": START.0, "logId": 101, "fromLineNum": 7});
    assert_eq!(bench.reply("/log", &ask).await["data"]["toLineNum"], 7);
}

async fn a_kill_is_on_record_before_it_is_answered(bench: Bench) {
    assert_eq!(bench.ask("/kill", &json!({"jobId": 7})).await.0, 200);
    bench.ask("/run", &asked(7, 101, JULY)).await;
    bench.follow().await;
    bench.ask("/run", &asked(7, 102, r#"{"batchNo":"202408","type":"monthly"}"#)).await;
    bench.ask("/run", &asked(8, 103, r#"{"batchNo":"2024Q3","type":"quarterly"}"#)).await;
    bench.follow().await;
    let (code, said) = bench.ask("/kill", &json!({"jobId": 7})).await;
    assert_eq!((code, said.as_str()), (200, "2 runs are being stopped"));
    let runs = bench.runs().await;
    assert_eq!(runs, ["101 RUNNING KILLED", "102 DONE 500 DUE", "103 RUNNING"]);
    let batch = bench.batch("202407", "month_end").await.expect("batch");
    assert_eq!(batch.status, BatchStatus::Killing);
    let kills = "SELECT COUNT(*) AS n FROM audit_log WHERE action = 'kill' AND actor = 'xxl-job month-end-executor'";
    assert_eq!(bench.number(kills).await, 1);
    // Nothing is said of its end before it has ended.
    bench.follow().await;
    bench.executor.report_ends().await.expect("tell");
    assert_eq!(bench.admin.taken().len(), 1);
    bench.work().await;
    bench.follow().await;
    bench.executor.report_ends().await.expect("tell");
    let taken = bench.admin.taken();
    let codes: Vec<(i64, i64)> = taken.iter().map(|t| (t.0, t.1)).collect();
    assert_eq!(codes, [(102, 500), (101, 500), (103, 200)]);
    assert!(taken[1].2.starts_with("killed by the XXL-JOB admin; batch 202407"), "{taken:?}");
    assert!(bench.batch("202408", "month_end").await.is_none());
}

async fn a_run_that_is_over_time_is_stopped_and_told_as_such(bench: Bench) {
    bench.ask("/run", &with(asked(7, 101, JULY), json!({"executorTimeout": 30}))).await;
    bench.follow().await;
    bench.clock.advance(29_999);
    bench.follow().await;
    assert_eq!(bench.runs().await, ["101 RUNNING"]);
    bench.clock.advance(1);
    bench.follow().await;
    assert_eq!(bench.runs().await, ["101 RUNNING TIMED_OUT"]);
    bench.work().await;
    bench.follow().await;
    bench.executor.report_ends().await.expect("tell");
    let taken = bench.admin.taken();
    assert_eq!((taken[0].0, taken[0].1), (101, 502));
    assert!(taken[0].2.starts_with("ran longer than its executorTimeout"), "{taken:?}");
}

async fn of_a_broadcast_one_part_does_the_work(bench: Bench) {
    let part = |index: i64| {
        with(asked(7, 100 + index, JULY), json!({"broadcastIndex": index, "broadcastTotal": 3}))
    };
    for index in [2, 0, 1] {
        assert_eq!(bench.ask("/run", &part(index)).await.0, 200);
    }
    assert_eq!(bench.ask("/run", &part(3)).await, (500, "there is no part 3 of 3".to_owned()));
    bench.follow().await;
    assert_eq!(bench.runs().await, ["100 RUNNING", "101 DONE 200 DUE", "102 DONE 200 DUE"]);
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_batch").await, 1);
    bench.executor.report_ends().await.expect("tell");
    assert!(bench.admin.taken().iter().all(|t| t.2.contains("opened by part 0 alone")));
}

async fn what_is_old_and_told_is_forgotten(bench: Bench) {
    for log in [101, 102] {
        let part = json!({"broadcastIndex": 1, "broadcastTotal": 2});
        bench.ask("/run", &with(asked(7, log, JULY), part)).await;
        if log == 101 {
            bench.executor.report_ends().await.expect("tell");
        }
    }
    bench.clock.advance(30 * 86_400_000);
    assert_eq!(bench.executor.forget().await.expect("forget"), 0);
    bench.clock.advance(1);
    assert_eq!(bench.executor.forget().await.expect("forget"), 1);
    // What was not told is kept, however old.
    assert_eq!(bench.runs().await, ["102 DONE 200 DUE"]);
}

#[tokio::test]
async fn what_is_no_run_of_ours_is_refused_at_once() {
    let (bench, _dir) = Bench::sqlite(procession::wire::xxl::XxlDialect::D1).await;
    let run = |fields: Value| with(asked(7, 101, JULY), fields);
    for (ask, said) in [
        (run(json!({"glueType": "GLUE_SHELL", "glueSource": "id"})), "GLUE_SHELL is not run here"),
        (run(json!({"glueType": "GLUE_GROOVY"})), "no script of an admin is"),
        (
            run(json!({"executorHandler": "demoJobHandler"})),
            "job handler [demoJobHandler] is not known",
        ),
        (run(json!({"executorHandler": null})), "job handler [] is not known"),
        (
            run(json!({"executorHandler": "workerHandler"})),
            "jobs of a batch are started by Procession",
        ),
        (run(json!({"executorParams": ""})), "the job has no parameters"),
        (run(json!({"executorParams": "202407"})), "parameters are not usable"),
        (
            run(json!({"executorParams": "{\"batchNo\":\"202407\",\"typ\":\"monthly\"}"})),
            "unknown field",
        ),
        (json!({"jobId": 7}), "the request is none of XXL-JOB's"),
        (json!([]), "the request is none of XXL-JOB's"),
    ] {
        let (code, words) = bench.ask("/run", &ask).await;
        assert_eq!(code, 500, "{ask}");
        assert!(words.contains(said), "{ask}: {words}");
    }
    assert_eq!(bench.runs().await, Vec::<String>::new());
}
