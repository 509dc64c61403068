//! Old rows: what goes and what stays, on the three databases.

mod figures;
mod partitions;
mod plans;
mod program;
mod seed;
mod steps;

use crate::flow::{Bench, START, defs, on, on_each_database};
use procession::domain::batch::BatchOrder;
use procession::domain::id::{BatchId, BatchNo, GroupCode};
use procession::domain::retention::{
    DAY_MS, EndedBadly, GroupRetentionRule, KeepReason, RetentionNeed, Window,
};
use procession::domain::source::DialectName;
use procession::engine::operate::audit_chain::{ChainBreak, seal_acts, verify};
use procession::engine::retention::{Beat, RetentionIdleReason, RetentionOptions};
use procession::store::retention::{self, Aged, Cursor};
use procession::store::{self, Tx};
use seed::{
    Old, ago, count_all, finish, look, mail, old, options, orphans, pass, put, run, sweeper, there,
};
use std::collections::BTreeMap;
use steps::{
    a_batch_that_is_being_removed_is_told_and_left_alone,
    a_kill_between_any_two_steps_loses_nothing, a_live_batch_is_never_waited_for_nor_touched,
    of_two_processes_one_removes, one_log_larger_than_a_step_goes_in_parts,
    what_is_started_over_between_look_and_mark_stays,
    whoever_sweeps_for_a_while_gives_its_turn_back,
};

on_each_database! {
    each_reason_keeps_its_batch_and_no_other
    what_is_open_in_the_ledger_keeps_the_batch_of_its_own_group
    what_the_preview_counts_is_what_goes
    lines_go_earlier_than_rows
    a_group_may_have_a_rule_of_its_own
    firings_stay_with_their_batches_and_the_newest_of_a_schedule_for_ever
    the_audit_log_is_kept_until_it_is_told_otherwise
    forecasts_see_the_same_with_forty_batches_as_with_all
    a_backfill_goes_after_its_batches
    nothing_is_done_out_of_the_window_or_when_it_is_off
    a_limit_is_kept
    a_batch_that_an_open_one_asks_for_stays
    a_kill_between_any_two_steps_loses_nothing
    of_two_processes_one_removes
    a_batch_that_is_being_removed_is_told_and_left_alone
    a_live_batch_is_never_waited_for_nor_touched
    one_log_larger_than_a_step_goes_in_parts
    what_is_started_over_between_look_and_mark_stays
    whoever_sweeps_for_a_while_gives_its_turn_back
}

async fn each_reason_keeps_its_batch_and_no_other(bench: Bench) {
    // Group `g` keeps its newest; `bad` keeps no failures, so that only needs speak for them.
    let told = GroupRetentionRule { badly: EndedBadly::Go, ..options().rule };
    let bad = GroupCode::parse("bad").expect("group");
    let options = RetentionOptions { groups: BTreeMap::from([(bad, told)]), ..options() };
    let expected = one_for_each_reason(&bench).await;
    let marks = "INSERT INTO failure_mark (queue_id, batch_id, attempt, update_time) \
                 SELECT queue_id, batch_id, attempt, update_time FROM job_queue";
    run(&bench, marks, &[]).await;
    let survey = look(&bench, &options).await;
    let mut wanted: BTreeMap<(&str, KeepReason), u64> = BTreeMap::new();
    for (_, of) in &expected {
        *wanted.entry(*of).or_default() += 1;
    }
    let mut found = BTreeMap::new();
    for group in &survey.groups {
        let name = if group.group.as_str() == "g" { "g" } else { "bad" };
        found.extend(group.kept.iter().map(|(kept, n)| ((name, *kept), *n)));
    }
    assert_eq!(found, wanted);
    assert_eq!(survey.groups.iter().map(|g| g.goes.batches).sum::<u64>(), 4);

    pass(&bench, &options).await;
    let mut stay: Vec<String> = expected.into_iter().map(|(no, _)| no).collect();
    stay.sort();
    let mut left = [there(&bench, "g").await, there(&bench, "bad").await].concat();
    left.sort();
    assert_eq!(left, stay);
    // What stays has all of its rows, and what went has none.
    assert_eq!(orphans(&bench).await, 0);
    let rows = i64::try_from(stay.len()).expect("few") * 2;
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_queue").await, rows);
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM failure_mark").await, rows);
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_execution_logs").await, rows * 2);
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_log_line").await, rows * 3);
    // Each that went is on record, with who and why.
    let sql = "SELECT COUNT(*) AS n FROM audit_log WHERE action = 'batch remove' AND reason = 'old' \
               AND actor = 'tester'";
    assert_eq!(bench.number(sql).await, 4);
}

/// Two groups with the same codes and the same batch number: one goes, and nothing of the other.
async fn what_is_open_in_the_ledger_keeps_the_batch_of_its_own_group(bench: Bench) {
    let mut ids = Vec::new();
    for group in ["a", "b", "c"] {
        ids.push(put(&bench, Old { group, jobs: 1, ..old("202407", 91) }).await);
        put(&bench, Old { group, jobs: 1, ..old("later", 1) }).await;
    }
    let set = "UPDATE job_queue SET job_code = 'LOAD', key_has_group = 1, run_no = 2";
    run(&bench, set, &[]).await;
    seed::put_values(&bench, 2).await;
    // Of `a` its last run, of `b` the one before, and nothing of `c`.
    for key in ["a/202407/LOAD/2", "b/202407/LOAD/1"] {
        seed::open_in_ledger(&bench, key, "202407", "LOAD").await;
    }
    let survey = look(&bench, &options()).await;
    let gone: Vec<(String, u64)> =
        survey.groups.iter().map(|g| (g.group.to_string(), g.goes.batches)).collect();
    assert_eq!(gone, [("a".into(), 0), ("b".into(), 0), ("c".into(), 1)]);
    pass(&bench, &options()).await;
    for (group, left) in [("a", 2), ("b", 2), ("c", 1)] {
        assert_eq!(there(&bench, group).await.len(), left, "{group}");
    }
    assert_eq!(orphans(&bench).await, 0);
    let of_row = "queue_id IN (SELECT queue_id FROM job_queue WHERE batch_id =";
    for (id, kept) in [(ids[0], 1), (ids[1], 1), (ids[2], 0)] {
        for (table, each) in
            [("job_execution_logs", 2), ("job_log_line", 3), ("job_output_value", 2)]
        {
            let sql = format!("SELECT COUNT(*) AS n FROM {table} WHERE {of_row} {})", id.0);
            assert_eq!(bench.number(&sql).await, each * kept, "{table} of batch {}", id.0);
        }
        let sql =
            format!("SELECT COUNT(*) AS n FROM email_notifications WHERE batch_id = {}", id.0);
        assert_eq!(bench.number(&sql).await, kept, "mails of batch {}", id.0);
    }
}

/// Four batches that go, and one for each reason to stay: its number, its group and the reason.
async fn one_for_each_reason(bench: &Bench) -> Vec<(String, (&'static str, KeepReason))> {
    let mut expected: Vec<(String, (&str, KeepReason))> = Vec::new();
    put(bench, old("goes-1", 91)).await;
    put(bench, old("goes-2", 500)).await;
    put(bench, Old { status: "WARNING", ..old("warned", 91) }).await;
    for (no, need) in [
        ("unknown", RetentionNeed::Unknown),
        ("unresolved", RetentionNeed::OpenOutcome),
        ("running", RetentionNeed::OpenOutcome),
        ("ledger", RetentionNeed::OpenOutcome),
        ("mail", RetentionNeed::UnsentMail),
        ("backfill", RetentionNeed::Backfill),
        ("stopped", RetentionNeed::Backfill),
        ("child", RetentionNeed::Parent),
        ("followed", RetentionNeed::Firing),
        ("breach", RetentionNeed::Breach),
    ] {
        let id = put(bench, Old { group: "bad", status: "FAILED", ..old(no, 91) }).await;
        need_it(bench, no, id).await;
        expected.push((no.to_owned(), ("bad", KeepReason::Needed(need))));
    }
    put(bench, Old { group: "bad", status: "FAILED", ..old("bad-goes", 91) }).await;
    put(bench, Old { status: "FAILED", ..old("failed", 500) }).await;
    put(bench, Old { status: "KILLED", ..old("killed", 500) }).await;
    put(bench, old("young", 89)).await;
    put(bench, old("newest", 300)).await;
    run(
        bench,
        "UPDATE job_batch SET end_time = NULL, status = 'RUNNING' WHERE batch_no = 'parent'",
        &[],
    )
    .await;
    expected.push(("failed".into(), ("g", KeepReason::EndedBadly)));
    expected.push(("killed".into(), ("g", KeepReason::EndedBadly)));
    expected.push(("young".into(), ("g", KeepReason::Young)));
    expected.push(("newest".into(), ("g", KeepReason::Newest)));
    expected.push(("parent".into(), ("bad", KeepReason::Open)));

    expected
}

/// Makes something need a batch.
async fn need_it(bench: &Bench, why: &str, id: BatchId) {
    let sql = format!("SELECT MIN(queue_id) AS n FROM job_queue WHERE batch_id = {}", id.0);
    let row = bench.number(&sql).await;
    let at = ago(91).to_utc();
    match why {
        "unknown" => set(bench, "status = 'UNKNOWN'", row).await,
        "unresolved" => set(bench, "unresolved = 1", row).await,
        "running" => set(bench, "status = 'HELD'", row).await,
        "ledger" => {
            // Its rows are those of an earlier version, whose keys have no group.
            seed::open_in_ledger(bench, "ledger/bad_1/1", "ledger", "bad_1").await;
        }
        "mail" => {
            let mut tx = bench.db.begin().await.expect("begin");
            mail(&mut tx, id.0, "pending", ago(91)).await;
            tx.commit().await.expect("commit");
        }
        "backfill" | "stopped" => {
            let status = if why == "stopped" { "STOPPED" } else { "RUNNING" };
            let backfill = add_backfill(bench, "bad", status, &[why]).await;
            let sql = "UPDATE job_batch SET backfill_id = ? WHERE batch_id = ?";
            run(bench, sql, &[backfill.into(), id.0.into()]).await;
        }
        "child" => {
            let parent =
                put(bench, Old { group: "bad", status: "FAILED", ..old("parent", 1) }).await;
            let sql = "UPDATE job_batch SET parent_queue_id = (SELECT MIN(queue_id) FROM job_queue \
                       WHERE batch_id = ?) WHERE batch_no = 'child'";
            run(bench, sql, &[parent.0.into()]).await;
        }
        "followed" => firing(bench, 1, "PENDING", 91, Some(id)).await,
        "breach" => {
            let sql = "INSERT INTO tx_breach (group_code, job_code, batch_no, queue_id, attempt, said, \
                       create_time) VALUES ('bad', 'bad_0', 'breach', ?, 1, 'x', ?)";
            run(bench, sql, &[row.into(), at.into()]).await;
        }
        other => panic!("{other}"),
    }
}

async fn set(bench: &Bench, what: &str, row: i64) {
    run(bench, &format!("UPDATE job_queue SET {what} WHERE queue_id = ?"), &[row.into()]).await;
}

async fn add_backfill(bench: &Bench, group: &str, status: &str, numbers: &[&str]) -> i64 {
    let at = ago(200).to_utc();
    let mut tx = bench.db.begin().await.expect("begin");
    let id = tx
        .insert_id(
            "INSERT INTO backfill (group_code, range_text, status, options, started_by, create_time, \
             end_time, update_time) VALUES (?, 'x', ?, '{}', 't', ?, ?, ?)",
            "backfill_id",
            &[group.into(), status.into(), at.into(), at.into(), at.into()],
        )
        .await
        .expect("backfill");
    for (place, no) in (0i64..).zip(numbers) {
        let sql = "INSERT INTO backfill_batch (backfill_id, place, batch_no, status, update_time) \
                   VALUES (?, ?, ?, 'SUCCESS', ?)";
        let values = [id.into(), place.into(), (*no).into(), at.into()];
        tx.execute(sql, &values).await.expect("entry");
    }
    tx.commit().await.expect("commit");
    id
}

async fn firing(bench: &Bench, trigger: i64, status: &str, days: i64, parent: Option<BatchId>) {
    let at = ago(days).to_utc();
    let sql = "INSERT INTO job_firing (trigger_id, planned_at, source, handler, status, fire_at, \
               parent_batch_id, create_time, update_time) VALUES (?, ?, 'cron', 'h', ?, ?, ?, ?, ?)";
    let values = [
        trigger.into(),
        at.into(),
        status.into(),
        at.into(),
        parent.map(|id| id.0).into(),
        at.into(),
        at.into(),
    ];
    run(bench, sql, &values).await;
}

async fn what_the_preview_counts_is_what_goes(bench: Bench) {
    let options = RetentionOptions {
        rule: GroupRetentionRule { lines_ms: Some(30 * DAY_MS), ..options().rule },
        firings_ms: Some(60 * DAY_MS),
        mails_ms: Some(60 * DAY_MS),
        rows_per_step: 13,
        ..options()
    };
    for at in 0..70i64 {
        let no = format!("b{at:03}");
        let status = if at % 9 == 0 { "FAILED" } else { "SUCCESS" };
        let batch = put(&bench, Old { status, ..old(&no, 20 + at * 3) }).await;
        firing(&bench, 7, "FIRED", 20 + at * 3, None).await;
        let sql = "UPDATE job_batch SET firing_id = (SELECT MAX(firing_id) FROM job_firing) \
                   WHERE batch_id = ?";
        run(&bench, sql, &[batch.0.into()]).await;
        firing(&bench, 8, "SKIPPED", 20 + at * 3, (at % 2 == 0).then_some(batch)).await;
    }
    let backfill = add_backfill(&bench, "g", "SUCCESS", &["b060", "b061"]).await;
    let sql = "UPDATE job_batch SET backfill_id = ? WHERE batch_no IN ('b060', 'b061')";
    run(&bench, sql, &[backfill.into()]).await;
    let survey = look(&bench, &options).await;
    let before = count_all(&bench).await;
    let removed = pass(&bench, &options).await;
    assert_eq!(survey.totals(), removed);
    let n: u64 = removed.values().sum();
    assert_eq!(before - count_all(&bench).await, i64::try_from(n).expect("few"));
    for table in
        ["job_batch", "job_log_line", "job_firing", "email_notifications", "backfill_batch"]
    {
        assert!(removed.get(table).is_some_and(|n| *n > 0), "{table}: {removed:?}");
    }
    assert_eq!(orphans(&bench).await, 0);
    // Afterwards nothing more is to go, and a second pass finds nothing.
    assert_eq!(look(&bench, &options).await.totals(), BTreeMap::new());
    assert_eq!(pass(&bench, &options).await, BTreeMap::new());
}

async fn lines_go_earlier_than_rows(bench: Bench) {
    let rule = GroupRetentionRule { lines_ms: Some(30 * DAY_MS), ..options().rule };
    let options = RetentionOptions { rule, rows_per_step: 4, ..options() };
    let well = put(&bench, old("well", 31)).await;
    let failed = put(&bench, Old { status: "FAILED", ..old("failed", 31) }).await;
    let young = put(&bench, old("young", 29)).await;
    let survey = look(&bench, &options).await;
    assert_eq!(survey.totals(), BTreeMap::from([("job_log_line", 6)]));
    assert_eq!(pass(&bench, &options).await, BTreeMap::from([("job_log_line", 6)]));
    for (id, lines) in [(well, 0), (failed, 6), (young, 6)] {
        let sql = format!(
            "SELECT COUNT(*) AS n FROM job_log_line l JOIN job_queue q ON q.queue_id = l.queue_id \
             WHERE q.batch_id = {}",
            id.0
        );
        assert_eq!(bench.number(&sql).await, lines);
        let mut tx = bench.db.begin_read().await.expect("read");
        let gone = retention::lines_gone(&mut tx, id).await.expect("gone");
        assert_eq!(gone, (lines == 0).then(|| bench.clock.now()));
    }
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_execution_logs").await, 12);
    assert_eq!(look(&bench, &options).await.lines(), 0);
    // One that ran again since prints anew, and its lines go anew.
    let sql = "UPDATE job_batch SET end_time = ? WHERE batch_id = ?";
    let later = bench.clock.now().plus_ms(1_000).to_utc();
    run(&bench, sql, &[later.into(), well.0.into()]).await;
    bench.clock.advance(40 * DAY_MS);
    assert_eq!(look(&bench, &options).await.lines(), 2, "well and young");
}

async fn a_group_may_have_a_rule_of_its_own(bench: Bench) {
    let of = |word: &str| GroupCode::parse(word).expect("group");
    let base = options().rule;
    let groups = BTreeMap::from([
        (of("long"), GroupRetentionRule { batches_ms: Some(3_650 * DAY_MS), ..base }),
        (of("never"), GroupRetentionRule { batches_ms: None, ..base }),
        (of("two"), GroupRetentionRule { keep: 2, ..base }),
    ]);
    let options = RetentionOptions { groups, ..options() };
    for group in ["g", "long", "never", "two"] {
        for no in ["1", "2", "3"] {
            put(&bench, Old { group, ..old(&format!("{group}-{no}"), 200) }).await;
        }
    }
    pass(&bench, &options).await;
    let mut counts = Vec::new();
    for group in ["g", "long", "never", "two"] {
        counts.push(there(&bench, group).await.len());
    }
    assert_eq!(counts, [1, 3, 3, 2]);
    assert_eq!(there(&bench, "two").await, ["two-2", "two-3"], "the newest are those opened last");
}

async fn firings_stay_with_their_batches_and_the_newest_of_a_schedule_for_ever(bench: Bench) {
    let options = RetentionOptions { firings_ms: Some(30 * DAY_MS), rows_per_step: 2, ..options() };
    for days in [400, 300, 200, 31, 29] {
        firing(&bench, 1, "FIRED", days, None).await;
    }
    for (days, status) in [(300, "FAILED"), (299, "SKIPPED"), (298, "MISFIRED"), (297, "PENDING")] {
        firing(&bench, 2, status, days, None).await;
    }
    firing(&bench, 3, "FIRED", 900, None).await;
    let kept = put(&bench, Old { status: "FAILED", ..old("kept", 200) }).await;
    firing(&bench, 4, "FIRED", 200, Some(kept)).await;
    firing(&bench, 4, "FIRED", 199, None).await;
    let survey = look(&bench, &options).await;
    let of = survey.aged.iter().find(|a| a.kind == Aged::Firings).expect("firings");
    // 400, 300, 200 and 31 of the first; SKIPPED and MISFIRED of the second.
    assert_eq!((of.goes.batches, of.needed), (6, 3));
    assert_eq!(pass(&bench, &options).await, BTreeMap::from([("job_firing", 6)]));
    for (trigger, n) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
        let sql = format!("SELECT COUNT(*) AS n FROM job_firing WHERE trigger_id = {trigger}");
        assert_eq!(bench.number(&sql).await, n, "{trigger}");
    }
}

async fn the_audit_log_is_kept_until_it_is_told_otherwise(bench: Bench) {
    for days in [400, 200, 10] {
        let sql =
            "INSERT INTO audit_log (actor, host, action, create_time) VALUES ('a', 'h', 'x', ?)";
        run(&bench, sql, &[ago(days).to_utc().into()]).await;
    }
    put(&bench, old("1", 400)).await;
    put(&bench, old("2", 400)).await;
    let old_acts = "SELECT COUNT(*) AS n FROM audit_log WHERE action = 'x'";
    pass(&bench, &options()).await;
    assert_eq!(bench.number(old_acts).await, 3);
    seal_acts(&bench.db, &bench.clock).await.expect("sealed");
    let kept = verify(&bench.db, &[]).await.expect("looked at").head;
    let told = RetentionOptions { audit_ms: Some(100 * DAY_MS), ..options() };
    assert_eq!(pass(&bench, &told).await, BTreeMap::from([("audit_log", 2)]));
    assert_eq!(bench.number(old_acts).await, 1);
    let ends = "SELECT COUNT(*) AS n FROM audit_log WHERE action = 'retention'";
    assert_eq!(bench.number(ends).await, 2);
    // What was removed keeps its place in the chain, and a row that goes by hand is no such thing.
    seal_acts(&bench.db, &bench.clock).await.expect("sealed");
    let report = verify(&bench.db, &[kept]).await.expect("looked at");
    assert_eq!((report.removed, report.waiting, report.first_break), (2, 0, None));
    run(&bench, "DELETE FROM audit_log WHERE action = 'x'", &[]).await;
    let report = verify(&bench.db, &[]).await.expect("looked at");
    assert!(matches!(report.first_break, Some(ChainBreak::ActMissing { .. })), "{report:?}");
}

async fn forecasts_see_the_same_with_forty_batches_as_with_all(bench: Bench) {
    for at in 0..60 {
        let status = if at % 4 == 0 { "FAILED" } else { "SUCCESS" };
        put(&bench, Old { status, ..old(&format!("n{at}"), 400 - at) }).await;
    }
    let group = GroupCode::parse("g").expect("group");
    let mut tx = bench.db.begin_read().await.expect("read");
    let before = store::history::of_group(&mut tx, &group).await.expect("history");
    drop(tx);
    let options =
        RetentionOptions { rule: GroupRetentionRule { keep: 40, ..options().rule }, ..options() };
    let removed = pass(&bench, &options).await;
    assert_eq!(removed.get("job_batch"), Some(&5), "45 ended well");
    let mut tx = bench.db.begin_read().await.expect("read");
    let after = store::history::of_group(&mut tx, &group).await.expect("history");
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
    assert_ne!(
        format!("{after:?}"),
        format!("{:?}", procession::domain::batch::history::History::from_tries([]))
    );
}

async fn a_backfill_goes_after_its_batches(bench: Bench) {
    let numbers: Vec<String> = (0..30).map(|n| format!("f{n:02}")).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let kept = add_backfill(&bench, "g", "SUCCESS", &["kept"]).await;
    let failed = add_backfill(&bench, "g", "FAILED", &["nothing"]).await;
    let gone = add_backfill(&bench, "g", "SUCCESS", &numbers).await;
    put(&bench, Old { status: "FAILED", ..old("kept", 200) }).await;
    let sql = "UPDATE job_batch SET backfill_id = ? WHERE batch_no = 'kept'";
    run(&bench, sql, &[kept.into()]).await;
    let options = RetentionOptions { rows_per_step: 7, ..options() };
    let removed = pass(&bench, &options).await;
    assert_eq!(removed, BTreeMap::from([("backfill", 1), ("backfill_batch", 30)]));
    let there =
        format!("SELECT COUNT(*) AS n FROM backfill WHERE backfill_id IN ({kept}, {failed})");
    assert_eq!(bench.number(&there).await, 2);
    assert_eq!(
        bench
            .number(&format!("SELECT COUNT(*) AS n FROM backfill WHERE backfill_id = {gone}"))
            .await,
        0
    );
}

async fn nothing_is_done_out_of_the_window_or_when_it_is_off(bench: Bench) {
    put(&bench, old("1", 200)).await;
    put(&bench, old("2", 200)).await;
    // It is midnight UTC.
    let at = |text: &str| Some(Window::parse(text, "UTC").expect("window"));
    let closed = RetentionOptions { window: at("02:00-06:00"), ..options() };
    let mut one = sweeper(&bench, "one", &closed);
    let beat = one.run_step(bench.clock.now()).await.expect("beat");
    assert_eq!(beat, Beat::Rests(RetentionIdleReason::Window, START.plus_ms(2 * 3_600_000)));
    bench.clock.advance(2 * 3_600_000);
    let removed = finish(&bench, &mut one).await;
    assert_eq!(removed.get("job_batch"), Some(&1));
    // Then it rests, and begins anew after an hour.
    let beat = one.run_step(bench.clock.now()).await.expect("beat");
    assert!(matches!(beat, Beat::Rests(RetentionIdleReason::Done, _)), "{beat:?}");
    bench.clock.advance(3_600_000);
    assert_eq!(finish(&bench, &mut one).await, BTreeMap::new());
    let rule = GroupRetentionRule { batches_ms: None, ..options().rule };
    let off = RetentionOptions { rule, ..options() };
    let beat = sweeper(&bench, "two", &off).run_step(bench.clock.now()).await.expect("beat");
    assert!(matches!(beat, Beat::Rests(RetentionIdleReason::Off, _)), "{beat:?}");
    // What is half removed when the window closes is finished, and nothing is begun any more.
    bench.clock.advance(20 * 3_600_000);
    for at in 0..130 {
        put(&bench, old(&format!("more{at}"), 200)).await;
    }
    let night = RetentionOptions { window: at("22:00-06:00"), rows_per_step: 50, ..options() };
    let mut three = sweeper(&bench, "three", &night);
    while matches!(three.run_step(bench.clock.now()).await.expect("beat"), Beat::Did(d) if d.is_empty())
    {
    }
    bench.clock.advance(8 * 3_600_000);
    while let Beat::Did(_) = three.run_step(bench.clock.now()).await.expect("beat") {}
    let half = "SELECT COUNT(*) AS n FROM job_batch WHERE remove_time IS NOT NULL";
    assert_eq!(bench.number(half).await, 0);
    assert!(there(&bench, "g").await.len() > 60, "the rest waits for the next night");
}

async fn a_limit_is_kept(bench: Bench) {
    for at in 0..80 {
        put(&bench, Old { jobs: 1, lines: 0, ..old(&format!("{at:02}"), 300 - at) }).await;
    }
    let (db, clock) = (bench.db.clone(), bench.clock.clone());
    let by = store::audit::Operator::new("a".to_owned(), "h".to_owned());
    let wish = procession::engine::retention::RemovalOrder { by, reason: None, limit: Some(70) };
    let me = procession::domain::id::NodeId("one".to_owned());
    let mut limited = procession::engine::retention::Sweeper::new(db, clock, me, options(), wish);
    let removed = finish(&bench, &mut limited).await;
    assert_eq!(removed.get("job_batch"), Some(&70));
    assert_eq!(there(&bench, "g").await[0], "70", "the oldest went first");
}

async fn a_batch_that_an_open_one_asks_for_stays(bench: Bench) {
    const QUARTER: &str = "
jobs:
  M: { type: NOOP, group: month_end }
  Q: { type: NOOP, group: quarter_end, depends_on: [{ job: M, group: month_end, batch: months }] }
groups:
  month_end: {}
  quarter_end: {}
";
    let defs = defs(QUARTER);
    bench.apply(&defs).await;
    for no in ["202301", "202302", "202303", "202304", "202305", "202306", "202309"] {
        put(&bench, Old { group: "month_end", ..old(no, 200) }).await;
    }
    let mut process = bench.process().await;
    let order = BatchOrder::parse(r#"{"batchNo":"2023Q2","group":"quarter_end"}"#).expect("order");
    process.open_batches(&defs, &order, "test").await.expect("open");
    let survey = look(&bench, &options()).await;
    let months = survey.groups.iter().find(|g| g.group.as_str() == "month_end").expect("months");
    assert_eq!(months.kept.get(&KeepReason::Needed(RetentionNeed::Named)), Some(&3), "{months:?}");
    pass(&bench, &options()).await;
    // 2023Q2 is open and 2023Q3 comes next; 202309 is also the newest.
    assert_eq!(there(&bench, "month_end").await, ["202304", "202305", "202306", "202309"]);
}

/// One page of what would go of group `g`.
async fn candidates(tx: &mut Tx, bench: &Bench) -> Vec<retention::Candidate> {
    let group = GroupCode::parse("g").expect("group");
    let cut = bench.clock.now().plus_ms(-90 * DAY_MS);
    retention::candidates(tx, &group, cut, Cursor::START).await.expect("candidates")
}

fn number(word: &str) -> BatchNo {
    BatchNo::parse(word).expect("number")
}
