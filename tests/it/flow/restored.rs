//! Procession's own database goes back in time while nodes run: nothing that has happened happens again.

use crate::flow::triggers::{Here, add, node, opening, pass};
use crate::flow::{Bench, defs, finish, on, on_each_database};
use crate::util::query;
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::cluster::metadata_gap::HistoryMark;
use procession::domain::schedule::overlap::Overlap;
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use procession::engine::opening::create_batch::open_for_anyone;
use procession::engine::trigger::schedule_actions::{
    NotDone, OpenBatchesPolicy, PastTimes, ScheduleActionOrigin, accept_gap, declare_gap,
    refuse_while_suspended,
};
use procession::store::audit::Operator;
use procession::store::metadata_gap;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A table and its columns, without those that the server works out.
struct TableColumns {
    table: String,
    columns: String,
}

async fn tables(bench: &Bench) -> Vec<TableColumns> {
    let sql = if bench.url.starts_with("sqlite") {
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c \
         WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'"
    } else if bench.url.starts_with("mysql") {
        "SELECT table_name, column_name FROM information_schema.columns \
         WHERE table_schema = DATABASE() AND extra NOT LIKE '%STORED%' AND extra NOT LIKE '%VIRTUAL%'"
    } else {
        "SELECT table_name, column_name FROM information_schema.columns \
         WHERE table_schema = current_schema() AND is_generated = 'NEVER'"
    };
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for mut row in query(&bench.url, sql).await {
        let (column, table) = (row.pop().flatten(), row.pop().flatten());
        found.entry(table.expect("a table")).or_default().push(column.expect("a column"));
    }
    assert!(found.contains_key("job_firing"), "{found:?}");
    let all = found.into_iter();
    all.map(|(table, columns)| TableColumns { table, columns: columns.join(", ") }).collect()
}

/// A copy of every table, as a dump has it.
async fn back_up(bench: &Bench) -> Vec<TableColumns> {
    let tables = tables(bench).await;
    for TableColumns { table, columns } in &tables {
        let copy = format!("CREATE TABLE backup_{table} AS SELECT {columns} FROM {table}");
        bench.by_hand(&copy).await;
    }
    tables
}

/// Puts the copies back, all in one transaction, while everybody is connected.
async fn restore(bench: &Bench, tables: &[TableColumns]) {
    let mut tx = bench.db.begin().await.expect("begin");
    // As dumps do: the order of the tables is not that of their foreign keys.
    let unordered = match &bench.url[..5] {
        "mysql" => "SET FOREIGN_KEY_CHECKS = 0",
        "sqlit" => "PRAGMA defer_foreign_keys = ON",
        _ => "SET LOCAL session_replication_role = replica",
    };
    tx.execute(unordered, &[]).await.expect(unordered);
    for TableColumns { table, columns } in tables {
        tx.execute(&format!("DELETE FROM {table}"), &[]).await.expect("empty");
        let copy = format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM backup_{table}");
        tx.execute(&copy, &[]).await.expect("copy");
    }
    if bench.url.starts_with("mysql") {
        tx.execute("SET FOREIGN_KEY_CHECKS = 1", &[]).await.expect("as before");
    }
    tx.commit().await.expect("restore");
}

fn operator() -> Operator {
    Operator::new("dba".to_owned(), "desk".to_owned())
}

fn deed(by: &Operator, now: Millis) -> ScheduleActionOrigin<'_> {
    ScheduleActionOrigin { by, reason: Some("restored the backup of noon"), now }
}

/// The batch numbers of the group that a schedule opens, in order.
async fn numbers(bench: &Bench) -> Vec<String> {
    let sql = "SELECT batch_no FROM job_batch WHERE group_code = 'ticks' ORDER BY batch_id";
    let rows = query(&bench.url, sql).await;
    rows.into_iter().map(|row| row[0].clone().expect("a number")).collect()
}

/// What `/readyz` says of the past.
async fn history(here: &Here) -> (bool, String) {
    let vitals = here.process.vitals(&CancellationToken::new(), Duration::from_secs(60));
    let reasons = vitals.ready().await;
    let found = reasons.into_iter().find(|reason| reason.name == "history");
    found.map(|reason| (reason.ok, reason.detail)).expect("a reason of that name")
}

const JOBS: &str = "
groups: { default: {}, ticks: {} }
jobs:
  CLOSE: { group: default, type: NOOP }
  TICK: { group: ticks, type: NOOP }
";

/// A node with a schedule that opens a batch every ten seconds, half a minute of it, and an open batch that nobody
/// has taken yet.
async fn half_a_minute(bench: &Bench) -> Here {
    let mut here = node(bench).await;
    let defs = defs(JOBS);
    bench.apply(&defs).await;
    let stamp = r#"{"batchNo":"time(%H%M%S)","group":"ticks"}"#;
    let mut def = opening("TICKS", 10, stamp);
    def.overlap = Overlap::Parallel;
    add(bench, &def).await;
    pass(bench, &mut here, 30_000).await;
    assert_eq!(numbers(bench).await.len(), 3);
    let order = BatchOrder::parse(r#"{"batchNo":"202407","group":"default"}"#).expect("order");
    open_for_anyone(&bench.db, &defs, &order, "test", bench.clock.now()).await.expect("open");
    here
}

async fn nothing_that_happened_happens_again(bench: Bench) {
    let mut here = half_a_minute(&bench).await;
    let backup = back_up(&bench).await;
    // What the backup does not know: six more firings, and the batch is run.
    pass(&bench, &mut here, 60_000).await;
    let fired: BTreeSet<String> = numbers(&bench).await.into_iter().collect();
    assert_eq!(fired.len(), 9);
    here.process.take_batches().await.expect("take");
    finish(&bench, &mut here.process).await;
    assert_eq!(bench.batch("default").await.status, BatchStatus::Success);
    let known_until = bench.clock.now();
    here.process.heartbeat().await.expect("heartbeat");
    assert!(history(&here).await.0);

    restore(&bench, &backup).await;
    pass(&bench, &mut here, 60_000).await;
    assert_eq!(numbers(&bench).await.len(), 3, "nothing is fired by rows of the past");
    assert_eq!(here.process.take_batches().await.expect("take"), 0);
    assert_eq!(bench.batch("default").await.status, BatchStatus::Running);
    assert_eq!(bench.states(bench.batch("default").await.batch_id).await, "CLOSE=PENDING");
    let (ok, detail) = history(&here).await;
    assert!(!ok && detail.contains("procession metadata show"), "{detail}");
    let gap = metadata_gap::read_mark(&mut bench.db.begin_read().await.expect("read"))
        .await
        .expect("mark");
    let gap = gap.gap.expect("a gap on record");
    assert_eq!(gap.known_until, known_until);
    assert!(gap.restored_to < known_until.plus_ms(-55_000), "{gap:?}");
    let refused = refuse_while_suspended(&mut bench.db.begin_read().await.expect("read")).await;
    assert!(refused.expect_err("run starts nothing").is::<NotDone>());

    // A process that remembers nothing reads it.
    let mut second = node(&bench).await;
    second.process.heartbeat().await.expect("heartbeat");
    assert!(!history(&second).await.0);
    pass(&bench, &mut second, 20_000).await;
    assert_eq!(numbers(&bench).await.len(), 3);

    let (by, now) = (operator(), bench.clock.now());
    let done =
        accept_gap(&bench.db, PastTimes::MarkFired, OpenBatchesPolicy::Pause, deed(&by, now));
    let done = done.await.expect("accept");
    // The three of the schedule and the one that nobody had taken.
    assert_eq!((done.schedules, done.batches), (1, 4));
    for here in [&mut here, &mut second] {
        here.process.heartbeat().await.expect("heartbeat");
        assert!(history(here).await.0);
    }
    pass(&bench, &mut here, 30_000).await;
    let now_fired = numbers(&bench).await;
    assert_eq!(now_fired.len(), 6, "{now_fired:?}");
    let again: Vec<_> = now_fired[3..].iter().filter(|no| fired.contains(*no)).collect();
    assert!(again.is_empty(), "fired twice: {again:?}");
    // Paused: nobody takes it before somebody has looked.
    here.process.take_batches().await.expect("take");
    finish_a_little(&mut here).await;
    assert_eq!(bench.states(bench.batch("default").await.batch_id).await, "CLOSE=PENDING");
    let audit =
        bench.number("SELECT COUNT(*) AS n FROM audit_log WHERE action = 'metadata accept'");
    assert_eq!(audit.await, 1);
    // There is nothing more to accept.
    let again =
        accept_gap(&bench.db, PastTimes::Fire, OpenBatchesPolicy::GoOn, deed(&by, now)).await;
    assert!(matches!(again.expect_err("no gap").downcast_ref(), Some(NotDone::NoGap)));
}

async fn finish_a_little(here: &mut Here) {
    for _ in 0..20 {
        here.process.run_tick().await.expect("beat");
    }
}

/// For a restore while no process ran, and a choice that lets what was lost run again.
async fn a_declared_gap_may_be_fired_by_policy(bench: Bench) {
    let here = half_a_minute(&bench).await;
    let backup = back_up(&bench).await;
    drop(here);
    restore(&bench, &backup).await;
    bench.clock.advance(60_000);
    let by = operator();
    let gap = declare_gap(&bench.db, deed(&by, bench.clock.now())).await.expect("declare");
    assert!(gap.restored_to < bench.clock.now().plus_ms(-55_000), "{gap:?}");
    let twice = declare_gap(&bench.db, deed(&by, bench.clock.now())).await;
    assert!(matches!(twice.expect_err("once").downcast_ref(), Some(NotDone::Suspended(_))));
    let mut here = node(&bench).await;
    pass(&bench, &mut here, 20_000).await;
    assert_eq!(numbers(&bench).await.len(), 3);
    let now = bench.clock.now();
    let done =
        accept_gap(&bench.db, PastTimes::Fire, OpenBatchesPolicy::GoOn, deed(&by, now)).await;
    let done = done.expect("accept");
    assert_eq!((done.schedules, done.firings, done.batches), (0, 0, 0));
    pass(&bench, &mut here, 20_000).await;
    // The policy `once`, which is the default: one for all that were missed, and what is due from then on.
    let mut fired = numbers(&bench).await;
    fired.sort();
    let wanted = ["000010", "000020", "000030", "000140", "000150", "000200", "000210"];
    assert_eq!(fired, wanted);
    here.process.take_batches().await.expect("take");
    finish(&bench, &mut here.process).await;
    assert_eq!(bench.batch("default").await.status, BatchStatus::Success);
}

/// What a waiting firing waits for has ended in the lost time, and it may have fired then.
async fn a_firing_that_waited_is_left_out_too(bench: Bench) {
    let here = half_a_minute(&bench).await;
    drop(here);
    bench.by_hand("UPDATE job_firing SET status = 'WAITING'").await;
    bench.clock.advance(60_000);
    let by = operator();
    declare_gap(&bench.db, deed(&by, bench.clock.now())).await.expect("declare");
    let now = bench.clock.now();
    let done =
        accept_gap(&bench.db, PastTimes::MarkFired, OpenBatchesPolicy::GoOn, deed(&by, now)).await;
    let skipped = bench.number("SELECT COUNT(*) AS n FROM job_firing WHERE status = 'SKIPPED'");
    let (done, skipped) = (done.expect("accept"), skipped.await);
    assert!(done.firings >= 3, "{done:?}");
    assert!(skipped >= 3, "{skipped}");
    let waiting = bench.number("SELECT COUNT(*) AS n FROM job_firing WHERE status = 'WAITING'");
    assert_eq!(waiting.await, 0);
}

/// Nodes that write in turn, a clock that goes back and a row that is gone are no restore.
async fn what_is_no_restore_suspends_nothing(bench: Bench) {
    let (mut first, mut second) = (bench.process().await, bench.process().await);
    for step in 0..20 {
        bench.clock.advance(if step == 10 { -3_600_000 } else { 5_000 });
        if step == 15 {
            bench.by_hand("DELETE FROM cluster_node").await;
        }
        first.heartbeat().await.expect("heartbeat");
        second.heartbeat().await.expect("heartbeat");
    }
    let mark = metadata_gap::read_mark(&mut bench.db.begin_read().await.expect("read"))
        .await
        .expect("mark");
    assert_eq!(mark.gap, None);
    assert!(mark.newest.is_some());
}

/// Two processes that start at once both read that there is no heartbeat yet.
async fn the_later_of_two_first_heartbeats_stays(bench: Bench) {
    let none = HistoryMark::default();
    // Later than any heartbeat of the bench.
    let base = 9_000_000_000_000;
    for at in [base + 100, base + 200, base + 150] {
        let mut tx = bench.db.begin().await.expect("begin");
        metadata_gap::raise(&mut tx, &none, Millis(at)).await.expect("raise");
        metadata_gap::raise_start(&mut tx, &none, Millis(at)).await.expect("raise");
        tx.commit().await.expect("commit");
    }
    let mark = metadata_gap::read_mark(&mut bench.db.begin_read().await.expect("read"))
        .await
        .expect("mark");
    let later = Some(Millis(base + 200));
    assert_eq!((mark.newest, mark.newest_start), (later, later));
}

on_each_database! {
    nothing_that_happened_happens_again
    a_declared_gap_may_be_fired_by_policy
    a_firing_that_waited_is_left_out_too
    what_is_no_restore_suspends_nothing
    the_later_of_two_first_heartbeats_stays
}
