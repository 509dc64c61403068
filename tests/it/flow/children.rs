//! Batches that jobs open, and waiting that takes no slot.

use crate::flow::{Bench, START, defs, finish, on, on_each_database, order};
use procession::domain::action::rerun::UnknownJobs;
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::job::queue::QueueStatus;
use procession::domain::source::DialectName;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::store;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// `close` opens a batch of `detail` between two jobs of its own. Every body leaves a mark.
fn yaml(folder: &str) -> String {
    format!(
        "
groups: {{ close: {{}}, detail: {{ params: {{ region: none, scale: '1' }} }} }}
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true, group: close }}
jobs:
  BEFORE: {{ script: &mark 'echo $PROCESSION_JOB_CODE $PROCESSION_ATTEMPT $PROCESSION_PARAM_REGION >> {folder}/ran' }}
  SUB:
    type: BATCH
    depends_on: [BEFORE]
    sub_batch: {{ group: detail }}
    params: [{{ name: region, value: '${{batch_no}}-east' }}]
  AFTER: {{ depends_on: [SUB], script: 'test \"$PROCESSION_PARAM_N\" = 2', params: [{{ name: n, value: '${{jobs.SUB.ended_well}}' }}] }}
  D1: {{ group: detail, script: *mark, params: [{{ name: region, value: '${{params.region}}' }}] }}
  D2: {{ group: detail, depends_on: [D1], script: *mark }}
"
    )
}

fn ran(folder: &tempfile::TempDir) -> BTreeMap<String, u32> {
    let text = std::fs::read_to_string(folder.path().join("ran")).unwrap_or_default();
    let mut seen = BTreeMap::new();
    text.lines().for_each(|line| *seen.entry(line.trim().to_owned()).or_default() += 1);
    seen
}

async fn a_sub_batch_runs_with_its_parameters_and_takes_no_slot(mut bench: Bench) {
    bench.options.max_parallel = 1;
    let folder = tempfile::tempdir().expect("folder");
    let defs = defs(&yaml(&folder.path().display().to_string()));
    bench.apply(&defs).await;
    let mut process = bench.process().await;
    let order = BatchOrder { group: Some(defs.groups[0].code.clone()), ..order() };
    let ids = process.open_batches(&defs, &order, "test").await.expect("open");
    finish(&bench, &mut process).await;
    let said: Vec<_> = bench.rows(ids[0]).await.into_iter().map(|r| r.error_message).collect();
    assert_eq!(bench.states(ids[0]).await, "BEFORE=SUCCESS SUB=SUCCESS AFTER=SUCCESS", "{said:?}");
    let child = bench.batch("detail").await;
    assert_eq!(child.status, BatchStatus::Success);
    assert_eq!(child.values.params["region"], "202407-east");
    assert!(!child.values.params.contains_key("scale"), "that is the group's own");
    assert_eq!(child.values.business_date, "2024-07-31".parse().ok());
    assert_eq!(child.started_by, "batch 202407 of group close");
    let outputs = bench.outputs(ids[0], "SUB").await;
    let value = |name: &str| outputs.value(name);
    assert_eq!(value("batch_no").as_deref(), Some("202407"));
    assert_eq!(value("batch_id"), Some(child.batch_id.0.to_string()));
    assert_eq!(
        (value("status"), value("jobs")),
        (Some("SUCCESS".to_owned()), Some("2".to_owned()))
    );
    assert!(ran(&folder).contains_key("D1 1 202407-east"), "{:?}", ran(&folder));
}

/// Beats `beats` times as far as there is something to do; `false` when all ended before.
async fn some_beats(process: &mut QueueDispatcher, beats: u32) -> bool {
    for _ in 0..beats {
        if process.is_idle() {
            return false;
        }
        if !process.run_tick().await.expect("beat") {
            process.wait_for_report().await;
        }
    }
    !process.is_idle()
}

async fn killed_between_any_two_beats(bench: Bench) {
    for beats in 0..40 {
        let folder = tempfile::tempdir().expect("folder");
        let defs = defs(&yaml(&folder.path().display().to_string()));
        bench.apply(&defs).await;
        let no = format!(r#"{{"batchNo":"kill-{beats}","group":"close"}}"#);
        let mut first = bench.process().await;
        let order = BatchOrder::parse(&no).expect("order");
        let ids = first.open_batches(&defs, &order, "test").await.expect("open");
        let was_open = some_beats(&mut first, beats).await;
        drop(first);
        if !was_open {
            assert!(beats > 6, "a sub-batch takes some beats");
            return;
        }
        bench.clock.advance(16_000);
        let mut second = bench.process().await;
        let there = bench.batch_of(&format!("kill-{beats}"), "close").await.expect("the parent");
        second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
        finish(&bench, &mut second).await;
        assert_eq!(second.results()[&ids[0]], BatchStatus::Success, "killed after {beats} beats");
        let child = bench.batch_of(&format!("kill-{beats}"), "detail").await.expect("the child");
        assert_eq!(child.status, BatchStatus::Success, "killed after {beats} beats");
        let made = "SELECT COUNT(*) AS n FROM job_batch WHERE group_code = 'detail'";
        assert_eq!(bench.number(made).await, i64::from(beats) + 1, "one child each");
        for (line, times) in ran(&folder) {
            assert_eq!(times, 1, "{line} ran {times} times, killed after {beats} beats");
        }
        for row in bench.rows(child.batch_id).await {
            let history = bench.history(child.batch_id, row.job_code.as_str()).await;
            let ends = history.iter().filter(|h| h.starts_with("SUCCESS")).count();
            assert_eq!(ends, 1, "{}: {history:?}", row.job_code);
        }
    }
    panic!("the batch never ended within 40 beats, so the last beats were not tried");
}

/// D2 fails until a file is there.
fn failing(folder: &str) -> String {
    yaml(folder).replace(
        "depends_on: [D1], script: *mark",
        &format!("depends_on: [D1], script: 'test -e {folder}/mended'"),
    )
}

async fn a_failure_is_named_and_gone_on_with(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let defs = defs(&failing(&folder.path().display().to_string()));
    bench.apply(&defs).await;
    let mut process = bench.process().await;
    let order = BatchOrder { group: Some(defs.groups[0].code.clone()), ..order() };
    let ids = process.open_batches(&defs, &order, "test").await.expect("open");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(ids[0]).await, "BEFORE=SUCCESS SUB=FAILED AFTER=UPSTREAM_FAILED");
    let said = bench.rows(ids[0]).await[1].error_message.clone();
    assert_eq!(said.as_deref(), Some("batch 202407 of group detail ended FAILED: D2 (FAILED)"));
    assert_eq!(bench.outputs(ids[0], "SUB").await.value("failed").as_deref(), Some("1"));
    // The database's clock goes on between a failure and what somebody does about it.
    bench.clock.advance(1_000);
    std::fs::write(folder.path().join("mended"), "").expect("a file");
    let there = bench.batch("close").await;
    process.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(ids[0]).await, "BEFORE=SUCCESS SUB=SUCCESS AFTER=SUCCESS");
    let rows = bench.rows(bench.batch("detail").await.batch_id).await;
    assert_eq!((rows[0].attempt, rows[1].attempt), (1, 2), "only what failed started over");
}

/// The child failed and the process died before the parent heard of it: it hears of it now, and the
/// failed job is not tried once more than allowed.
async fn an_end_that_nobody_heard_of_is_reported(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let defs = defs(&failing(&folder.path().display().to_string()));
    bench.apply(&defs).await;
    let order = BatchOrder { group: Some(defs.groups[0].code.clone()), ..order() };
    let mut first = bench.process().await;
    let ids = first.open_batches(&defs, &order, "test").await.expect("open");
    loop {
        if !first.run_tick().await.expect("beat") {
            first.wait_for_report().await;
        }
        let child = bench.batch_of("202407", "detail").await;
        if child.is_some_and(|child| child.status == BatchStatus::Failed) {
            break;
        }
    }
    assert_eq!(bench.rows(ids[0]).await[1].status, QueueStatus::Running, "not heard yet");
    drop(first);
    bench.clock.advance(16_000);
    let mut second = bench.process().await;
    let there = bench.batch("close").await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut second).await;
    assert_eq!(bench.states(ids[0]).await, "BEFORE=SUCCESS SUB=FAILED AFTER=UPSTREAM_FAILED");
    let rows = bench.rows(bench.batch("detail").await.batch_id).await;
    assert_eq!((rows[0].attempt, rows[1].attempt), (1, 1));
}

async fn a_kill_of_the_parent_kills_the_child(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let text = yaml(&folder.path().display().to_string())
        .replace("depends_on: [D1], script: *mark", "depends_on: [D1], script: 'sleep 60'");
    let defs = defs(&text);
    bench.apply(&defs).await;
    let mut process = bench.process().await;
    let order = BatchOrder { group: Some(defs.groups[0].code.clone()), ..order() };
    let ids = process.open_batches(&defs, &order, "test").await.expect("open");
    let running =
        "SELECT COUNT(*) AS n FROM job_queue WHERE job_code = 'D2' AND status = 'RUNNING'";
    while bench.number(running).await == 0 {
        if !process.run_tick().await.expect("beat") {
            process.wait_for_report().await;
        }
    }
    let mut tx = bench.db.begin().await.expect("begin");
    store::batch::request_kill(&mut tx, ids[0], "wrong month", bench.clock.now())
        .await
        .expect("ask");
    tx.commit().await.expect("commit");
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(ids[0]).await, "BEFORE=SUCCESS SUB=KILLED AFTER=KILLED");
    let child = bench.batch("detail").await;
    assert_eq!(bench.states(child.batch_id).await, "D1=SUCCESS D2=KILLED");
    assert_eq!(child.status, BatchStatus::Killed);
    assert_eq!(child.reason.as_deref(), Some("job SUB, which opened it, was stopped"));
}

async fn a_batch_of_somebody_else_is_not_taken(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let defs = defs(&yaml(&folder.path().display().to_string()));
    bench.apply(&defs).await;
    let mut process = bench.process().await;
    let own = BatchOrder { group: Some(defs.groups[1].code.clone()), ..order() };
    process.open_batches(&defs, &own, "somebody").await.expect("open");
    finish(&bench, &mut process).await;
    let order = BatchOrder { group: Some(defs.groups[0].code.clone()), ..order() };
    let ids = process.open_batches(&defs, &order, "test").await.expect("open");
    finish(&bench, &mut process).await;
    let row = &bench.rows(ids[0]).await[1];
    assert_eq!(row.status, QueueStatus::Failed);
    let said = row.error_message.clone().expect("why");
    assert!(said.contains("exists already (SUCCESS) and was not opened by this job"), "{said}");
}

async fn rings_that_no_file_shows_are_refused(bench: Bench) {
    // Each file alone is sound; together they would go back through the months for ever.
    for (group, job, other) in [("a", "GO_B", "b"), ("b", "GO_A", "a")] {
        let text = format!(
            "groups: {{ {group}: {{}} }}\njobs: {{ {job}: {{ type: BATCH, sub_batch: {{ group: {other}, batch: prev }} }} }}"
        );
        bench.apply(&defs(&text)).await;
    }
    let mut tx = bench.db.begin_read().await.expect("read");
    let stored = store::job::definition(&mut tx).await.expect("stored");
    drop(tx);
    let mut process = bench.process().await;
    let order = BatchOrder { group: Some(stored.groups[0].code.clone()), ..order() };
    let ids = process.open_batches(&stored, &order, "test").await.expect("open");
    finish(&bench, &mut process).await;
    assert_eq!(process.results()[&ids[0]], BatchStatus::Failed);
    let inner = bench.batch_of("202406", "b").await.expect("the second");
    let said = bench.rows(inner.batch_id).await[0].error_message.clone().expect("why");
    assert!(said.contains("in a ring: a 202407 -> b 202406 -> a 202405"), "{said}");
    assert!(bench.batch_of("202405", "a").await.is_none());
    // A group that is not defined is an answer too, and nothing is left behind.
    let text = "groups: { c: {} }\njobs: { GO_C: { type: BATCH, sub_batch: { group: nowhere } } }";
    let ids = process.open_batches(&defs(text), &super::order(), "test").await.expect("open");
    finish(&bench, &mut process).await;
    let said = bench.rows(ids[0]).await[0].error_message.clone().expect("why");
    assert!(said.contains("no group nowhere; groups that exist: a"), "{said}");
}

/// WAITS asks for what FILLS does, and there is one slot.
fn waiting(url: &str) -> String {
    format!(
        "
sources: {{ s: {{ url: '{url}' }} }}
jobs:
  WAITS: {{ type: SENSOR, source: s, priority: 9, sensor: {{ poll_sec: 1 }}, sql: 'SELECT COUNT(*) FROM arrived' }}
  FILLS: {{ type: SQL, source: s, sql: 'INSERT INTO arrived VALUES (1)' }}
  AFTER: {{ type: NOOP, depends_on: [WAITS] }}
"
    )
}

async fn a_sensor_takes_no_slot_while_it_waits(mut bench: Bench) {
    bench.options.max_parallel = 1;
    let folder = tempfile::tempdir().expect("folder");
    let url = format!("sqlite:{}", folder.path().join("s.db").display());
    crate::util::query(&url, "CREATE TABLE arrived (a INT)").await;
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(&waiting(&url)), &order(), "test").await.expect("open");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(ids[0]).await, "WAITS=SUCCESS FILLS=SUCCESS AFTER=SUCCESS");
    assert!(bench.clock.now() >= START);
}

/// A process that is to end does not wait for what only waits; whoever resumes asks on.
async fn a_process_that_ends_leaves_a_sensor_to_the_next(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let url = format!("sqlite:{}", folder.path().join("s.db").display());
    crate::util::query(&url, "CREATE TABLE arrived (a INT)").await;
    let text = waiting(&url)
        .replace("type: SQL, source: s, sql: 'INSERT INTO arrived VALUES (1)'", "type: NOOP");
    let mut first = bench.process().await;
    let ids = first.open_batches(&defs(&text), &order(), "test").await.expect("open");
    while bench.states(ids[0]).await != "WAITS=RUNNING FILLS=SUCCESS AFTER=PENDING" {
        if !first.run_tick().await.expect("beat") {
            first.wait_for_report().await;
        }
    }
    let stop = CancellationToken::new();
    stop.cancel();
    first.run_until_done(&stop).await.expect("ends");
    first.leave().await.expect("leave");
    crate::util::query(&url, "INSERT INTO arrived VALUES (1)").await;
    let mut second = bench.process().await;
    let there = bench.batch("default").await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut second).await;
    assert_eq!(bench.states(ids[0]).await, "WAITS=SUCCESS FILLS=SUCCESS AFTER=SUCCESS");
    let history = bench.history(ids[0], "WAITS").await;
    assert_eq!(history, ["RUNNING#1", "RETRY_WAIT#1", "RUNNING#2", "SUCCESS#2"]);
}

/// The same of a sub-batch: what works inside is waited for, what waits outside is not.
async fn a_process_that_ends_leaves_a_sub_batch_to_the_next(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let defs = defs(&yaml(&folder.path().display().to_string()));
    bench.apply(&defs).await;
    let order = BatchOrder { group: Some(defs.groups[0].code.clone()), ..order() };
    let mut first = bench.process().await;
    let ids = first.open_batches(&defs, &order, "test").await.expect("open");
    let running =
        "SELECT COUNT(*) AS n FROM job_queue WHERE job_code = 'D1' AND status = 'RUNNING'";
    while bench.number(running).await == 0 {
        if !first.run_tick().await.expect("beat") {
            first.wait_for_report().await;
        }
    }
    let stop = CancellationToken::new();
    stop.cancel();
    first.run_until_done(&stop).await.expect("ends");
    first.leave().await.expect("leave");
    let child = bench.batch("detail").await;
    assert_eq!(bench.states(child.batch_id).await, "D1=SUCCESS D2=QUEUED");
    let mut second = bench.process().await;
    let there = bench.batch("close").await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut second).await;
    assert_eq!(bench.states(ids[0]).await, "BEFORE=SUCCESS SUB=SUCCESS AFTER=SUCCESS");
    assert!(ran(&folder).values().all(|times| *times == 1), "{:?}", ran(&folder));
}

on_each_database! {
    a_process_that_ends_leaves_a_sub_batch_to_the_next
    a_sub_batch_runs_with_its_parameters_and_takes_no_slot
    killed_between_any_two_beats
    a_failure_is_named_and_gone_on_with
    an_end_that_nobody_heard_of_is_reported
    a_kill_of_the_parent_kills_the_child
    a_batch_of_somebody_else_is_not_taken
    rings_that_no_file_shows_are_refused
    a_sensor_takes_no_slot_while_it_waits
    a_process_that_ends_leaves_a_sensor_to_the_next
}
