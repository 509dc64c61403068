//! `store::batch`: opening, taking over, stopping and ending batches.

use super::assert_stale;
use super::{
    Place, T0, all_of, chain, group, group_code, job, later, me, no, on_migrated, opened, order,
};
use super::{insert_batch, other, running, write_batch};
use crate::util::query;
use procession::domain::batch::{Batch, BatchPlan, BatchStatus, plan};
use procession::domain::id::{BatchId, NodeId};
use procession::domain::job::queue::QueueStatus;
use procession::domain::source::DialectName;
use procession::store::batch::{BatchRevision, Going};
use procession::store::{self, Tx, batch};
use std::collections::BTreeMap;

async fn get(place: &Place, id: BatchId) -> Batch {
    let mut tx = place.db.begin_read().await.expect("read");
    batch::get(&mut tx, id).await.expect("batch")
}

async fn insert(tx: &mut Tx, plan: &BatchPlan) -> anyhow::Result<BatchId> {
    insert_batch(tx, plan, "tester").await
}

fn full_plan() -> BatchPlan {
    let mut order = order("2024Q3");
    order.business_date = "2024-02-29".parse().ok();
    order.params = BTreeMap::from([
        ("地区".to_owned(), "华东 🏦".to_owned()),
        ("quote".to_owned(), "it's \"x\" \\ ?".to_owned()),
    ]);
    let mut defs = chain("quarter", &["A", "B"]);
    defs.groups[0].batch_type = Some("quarterly".to_owned());
    defs.groups[0].batch_timeout_sec = Some(90);
    plan(&defs, &order, T0).expect("plan").remove(0)
}

pub(super) async fn a_batch_comes_back_as_it_was_planned(place: Place) {
    let plan = full_plan();
    let mut tx = place.db.begin().await.expect("begin");
    let id = insert_batch(&mut tx, &plan, "O'Neil 李").await.expect("insert");
    tx.commit().await.expect("commit");
    let expected = Batch {
        batch_id: id,
        values: plan.values.clone(),
        batch_type: Some("quarterly".to_owned()),
        status: BatchStatus::Running,
        owner: Some(me()),
        started_by: "O'Neil 李".to_owned(),
        create_time: T0,
        end_time: None,
        reason: None,
        deadline: Some(T0.plus_ms(90_000)),
        revision: 0,
        is_paused: false,
        removing: None,
        unwritten_jobs: 0,
    };
    assert_eq!(get(&place, id).await, expected);
    let mut tx = place.db.begin_read().await.expect("read");
    let found =
        batch::find_batch(&mut tx, &no("2024Q3"), &group_code("quarter")).await.expect("find");
    assert_eq!(found, Some(expected));
    let none =
        batch::find_batch(&mut tx, &no("2024Q3"), &group_code("month_end")).await.expect("find");
    assert_eq!(none, None);
    assert_eq!(batch::snapshot(&mut tx, id).await.expect("snapshot"), plan.snapshot);
}

pub(super) async fn a_batch_number_is_taken_once_per_group(place: Place) {
    let (first, _) = opened(&place, &["A"]).await;
    let before = all_of(&place, "job_batch").await;
    let plan_of = |group: &str, number: &str| {
        plan(&chain(group, &["Z"]), &order(number), T0).expect("plan").remove(0)
    };
    let mut tx = place.db.begin().await.expect("begin");
    let error = insert(&mut tx, &plan_of("month_end", "202407")).await.expect_err("taken");
    assert!(store::is_taken(&error), "{error:#}");
    assert!(!store::is_transient(&error), "{error:#}");
    assert!(format!("{error:#}").contains("write batch 202407 of group month_end"), "{error:#}");
    drop(tx);
    assert_eq!(all_of(&place, "job_batch").await, before);
    let mut tx = place.db.begin().await.expect("begin");
    let second = insert(&mut tx, &plan_of("month_end_2", "202407")).await.expect("other group");
    let third = insert(&mut tx, &plan_of("month_end", "202408")).await.expect("other number");
    tx.commit().await.expect("commit");
    assert!(first.0 < second.0 && second.0 < third.0, "{first:?} {second:?} {third:?}");
}

pub(super) async fn nothing_stays_of_a_batch_whose_transaction_fails_later(place: Place) {
    opened(&place, &["A"]).await;
    let before = (all_of(&place, "job_batch").await, all_of(&place, "job_queue").await);
    let mut tx = place.db.begin().await.expect("begin");
    // Another group may have a job of the same code under this number.
    write_batch(&mut tx, &chain("late", &["Z", "A"]), "202407").await.expect("a batch");
    let again = write_batch(&mut tx, &chain("month_end", &["A"]), "202407").await;
    let error = again.expect_err("the batch is there");
    assert!(store::is_taken(&error), "{error:#}");
    drop(tx);
    assert_eq!((all_of(&place, "job_batch").await, all_of(&place, "job_queue").await), before);
}

pub(super) async fn batches_are_listed_newest_first(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    for (group, number) in [("g1", "202401"), ("g1", "202402"), ("g2", "202401"), ("g1", "202403")]
    {
        let plan = plan(&chain(group, &["A"]), &order(number), T0).expect("plan").remove(0);
        insert(&mut tx, &plan).await.expect("insert");
    }
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin_read().await.expect("read");
    let words = |found: Vec<Batch>| -> Vec<String> {
        found.iter().map(|b| format!("{}/{}", b.values.batch_no, b.values.group)).collect()
    };
    let newest = batch::list_batches(&mut tx, None, 3).await.expect("list");
    assert_eq!(words(newest), ["202403/g1", "202401/g2", "202402/g1"]);
    let of_one = batch::list_batches(&mut tx, Some(&no("202401")), u32::MAX).await.expect("list");
    assert_eq!(words(of_one), ["202401/g1", "202401/g2"]);
    let all = batch::list_batches(&mut tx, None, u32::MAX).await.expect("list");
    assert_eq!(all.len(), 4);
    assert!(batch::list_batches(&mut tx, None, 0).await.expect("list").is_empty());
}

async fn take_over(place: &Place, seen: &Batch, owner: &NodeId, to: BatchStatus) -> bool {
    let mut tx = place.db.begin().await.expect("begin");
    let taken = batch::take_over(&mut tx, seen, owner, to, later(50)).await.expect("take over");
    tx.commit().await.expect("commit");
    taken
}

pub(super) async fn taking_over_is_fenced(place: Place) {
    let (id, _) = opened(&place, &["A"]).await;
    let seen = get(&place, id).await;
    let before = all_of(&place, "job_batch").await;
    let killing = Batch { status: BatchStatus::Killing, ..seen.clone() };
    let nobodys = Batch { owner: None, ..seen.clone() };
    let theirs = Batch { owner: Some(NodeId("third".to_owned())), ..seen.clone() };
    for wrong in [killing, nobodys, theirs] {
        assert!(!take_over(&place, &wrong, &other(), BatchStatus::Running).await, "{wrong:?}");
    }
    assert_eq!(all_of(&place, "job_batch").await, before);
    assert!(take_over(&place, &seen, &other(), BatchStatus::Running).await);
    assert_eq!(get(&place, id).await, Batch { owner: Some(other()), ..seen.clone() });
    // Whoever saw the same owner comes too late.
    assert!(!take_over(&place, &seen, &NodeId("third".to_owned()), BatchStatus::Running).await);

    // An ended batch is nobody's; starting it over clears its end.
    let mut tx = place.db.begin().await.expect("begin");
    batch::finish_all(&mut tx, &[(seen.clone(), BatchStatus::Failed)], &other(), later(60))
        .await
        .expect("x");
    tx.commit().await.expect("commit");
    let ended = get(&place, id).await;
    assert_eq!((ended.owner.clone(), ended.end_time), (None, Some(later(60))));
    assert!(take_over(&place, &ended, &me(), BatchStatus::Running).await);
    let again = get(&place, id).await;
    assert_eq!((again.owner, again.end_time), (Some(me()), None));
    assert_eq!(again.status, BatchStatus::Running);
}

pub(super) async fn only_the_owner_holds_a_batch(place: Place) {
    let (id, _) = opened(&place, &["A"]).await;
    let seen = get(&place, id).await;
    let before = all_of(&place, "job_batch").await;
    let mut tx = place.db.begin().await.expect("begin");
    batch::lock_owned(&mut tx, id, &me(), 0).await.expect("ours");
    assert_stale(batch::lock_owned(&mut tx, id, &other(), 0).await);
    assert_stale(batch::lock_owned(&mut tx, BatchId(404), &me(), 0).await);
    assert_stale(batch::lock_owned(&mut tx, id, &me(), 1).await);
    batch::revise(&mut tx, &seen, later(8)).await.expect("revise");
    assert_stale(batch::lock_owned(&mut tx, id, &me(), 0).await);
    batch::lock_owned(&mut tx, id, &me(), 1).await.expect("as it is now");
    batch::finish_all(&mut tx, &[(seen.clone(), BatchStatus::Success)], &me(), later(9))
        .await
        .expect("finish");
    assert_stale(batch::lock_owned(&mut tx, id, &me(), 1).await);
    tx.rollback().await.expect("rollback");
    assert_eq!(all_of(&place, "job_batch").await, before);
}

pub(super) async fn a_kill_is_asked_of_a_batch_that_runs(place: Place) {
    let (id, _) = opened(&place, &["A"]).await;
    let seen = get(&place, id).await;
    let mut tx = place.db.begin().await.expect("begin");
    let state = |pulses: Vec<BatchRevision>| {
        pulses.iter().map(|p| (p.batch_id, p.status)).collect::<Vec<_>>()
    };
    let pulses = batch::pulses(&mut tx, &me()).await.expect("pulses");
    assert_eq!(state(pulses), [(id, BatchStatus::Running)]);
    assert!(batch::request_kill(&mut tx, id, "错了 'wrong' file", later(5)).await.expect("kill"));
    tx.commit().await.expect("commit");
    let killing = get(&place, id).await;
    assert_eq!(killing.status, BatchStatus::Killing);
    assert_eq!(killing.reason.as_deref(), Some("错了 'wrong' file"));
    let mut tx = place.db.begin().await.expect("begin");
    let pulses = batch::pulses(&mut tx, &me()).await.expect("pulses");
    assert_eq!(state(pulses), [(id, BatchStatus::Killing)]);
    assert!(batch::pulses(&mut tx, &other()).await.expect("pulses").is_empty());
    assert!(batch::request_kill(&mut tx, id, "again", later(6)).await.expect("kill"));
    batch::finish_all(&mut tx, &[(seen.clone(), BatchStatus::Killed)], &me(), later(7))
        .await
        .expect("finish");
    assert!(batch::pulses(&mut tx, &me()).await.expect("pulses").is_empty());
    assert!(!batch::request_kill(&mut tx, id, "too late", later(8)).await.expect("kill"));
    tx.commit().await.expect("commit");
    assert_eq!(get(&place, id).await.reason.as_deref(), Some("again"));
    let mut tx = place.db.begin().await.expect("begin");
    assert!(!batch::request_kill(&mut tx, BatchId(404), "no such", later(8)).await.expect("kill"));
}

pub(super) async fn an_ended_batch_that_is_revised_is_open_and_nobodys(place: Place) {
    let (id, _) = opened(&place, &["A"]).await;
    let mut tx = place.db.begin().await.expect("begin");
    let seen = batch::lock_batch(&mut tx, id).await.expect("lock");
    batch::set_going(&mut tx, id, Going::Paused, later(1)).await.expect("pause");
    batch::request_kill(&mut tx, id, "wrong month", later(2)).await.expect("kill");
    batch::finish_all(&mut tx, &[(seen.clone(), BatchStatus::Killed)], &me(), later(3))
        .await
        .expect("finish");
    tx.commit().await.expect("commit");
    let ended = get(&place, id).await;
    assert!(ended.is_paused && ended.reason.is_some() && ended.end_time.is_some());
    let mut tx = place.db.begin().await.expect("begin");
    batch::revise(&mut tx, &ended, later(4)).await.expect("revise");
    tx.commit().await.expect("commit");
    let open = get(&place, id).await;
    let (status, revision) = (BatchStatus::Running, seen.revision + 2);
    let expected = Batch {
        status,
        revision,
        is_paused: false,
        removing: None,
        unwritten_jobs: 0,
        reason: None,
        end_time: None,
        owner: None,
        ..ended
    };
    assert_eq!(open, expected);
}

/// Jobs A → B, C defined and in a batch, X of another group; A ran and failed, C waits for nothing
/// and never started.
async fn half_run(place: &Place) -> Batch {
    let mut defs = chain("month_end", &["A", "B"]);
    defs.jobs.push(job("month_end", "C"));
    let mut tx = place.db.begin().await.expect("begin");
    let mut all = defs.clone();
    all.groups.push(group("other"));
    all.jobs.push(job("other", "X"));
    let empty = procession::domain::job::Definition::default();
    store::job::apply(&mut tx, &empty, &all, T0).await.expect("apply");
    let id = write_batch(&mut tx, &defs, "202407").await.expect("batch");
    let rows = store::queue::of_batch(&mut tx, id).await.expect("rows");
    let a = [rows[0].queue_id.0];
    store::queue::claim(&mut tx, &a, QueueStatus::Pending, &me(), later(10)).await.expect("claim");
    let (from, to) = (QueueStatus::Running, QueueStatus::Failed);
    store::queue::transition(&mut tx, &a, from, to, later(20)).await.expect("fail");
    let (from, to) = (QueueStatus::Pending, QueueStatus::UpstreamFailed);
    let b = [rows[1].queue_id.0];
    store::queue::transition(&mut tx, &b, from, to, later(20)).await.expect("upstream");
    let batch = batch::get(&mut tx, id).await.expect("batch");
    tx.commit().await.expect("commit");
    batch
}

pub(super) async fn finishing_notes_the_last_run_of_each_job(place: Place) {
    let seen = half_run(&place).await;
    let mut tx = place.db.begin().await.expect("begin");
    batch::finish_all(&mut tx, &[(seen.clone(), BatchStatus::Failed)], &me(), later(30))
        .await
        .expect("ok");
    let sql = "SELECT job_code, status, last_run_time, update_time FROM job_def ORDER BY job_code";
    let rows = tx.fetch_all(sql, &[]).await.expect("rows");
    tx.commit().await.expect("commit");
    let noted: Vec<_> = rows
        .iter()
        .map(|row| {
            let started = row.opt_time("last_run_time").expect("time").map(Into::into);
            (
                row.get_text("job_code").expect("code"),
                row.opt_text("status").expect("status"),
                started,
            )
        })
        .collect();
    let never = |code: &str| (code.to_owned(), None, None);
    let ran = ("A".to_owned(), Some("FAILED".to_owned()), Some(later(10)));
    assert_eq!(noted, [ran, never("B"), never("C"), never("X")]);
    // The definition did not change.
    assert!(rows.iter().all(|r| r.get_time("update_time").expect("time") == T0.to_utc()));
    let ended = get(&place, seen.batch_id).await;
    assert_eq!((ended.status, ended.owner), (BatchStatus::Failed, None));
    assert_eq!(ended.end_time, Some(later(30)));
}

/// Rows of `job_queue` that were read in a transaction on PostgreSQL.
async fn read_so_far(tx: &mut Tx) -> i64 {
    let sql = "SELECT seq_tup_read + COALESCE(idx_tup_fetch, 0) AS n FROM pg_stat_xact_user_tables \
               WHERE relname = 'job_queue'";
    tx.fetch_all(sql, &[]).await.expect("rows")[0].get_int("n").expect("n")
}

/// The server has no statistics of what was written a moment ago, and joined by the batch number alone: 2,000
/// jobs read each of 2,000 rows, in 0.56 s.
#[tokio::test]
async fn finishing_reads_rows_by_their_keys_on_tables_that_are_new() {
    let jobs: Vec<String> = (0..300).map(|n| format!("job-{n:03}")).collect();
    let test = |place: Place| async move {
        let defs = chain("month_end", &jobs.iter().map(String::as_str).collect::<Vec<_>>());
        let mut tx = place.db.begin().await.expect("begin");
        let empty = procession::domain::job::Definition::default();
        store::job::apply(&mut tx, &empty, &defs, T0).await.expect("apply");
        let id = write_batch(&mut tx, &defs, "202407").await.expect("batch");
        tx.execute("UPDATE job_queue SET start_time = create_time", &[]).await.expect("started");
        tx.commit().await.expect("commit");
        let seen = get(&place, id).await;
        let mut tx = place.db.begin().await.expect("begin");
        let before = read_so_far(&mut tx).await;
        let done =
            batch::finish_all(&mut tx, &[(seen.clone(), BatchStatus::Success)], &me(), later(30))
                .await;
        done.expect("finish");
        let read = read_so_far(&mut tx).await - before;
        // Three values of each row: when it ran, what it came to, whether it ran at all.
        assert!((300..=1_000).contains(&read), "{read} rows read for 300 jobs");
    };
    on_migrated(DialectName::Postgres, test).await;
}

/// How many rows PostgreSQL believes a table to have; -1 (0 before PostgreSQL 14) is that it never looked.
async fn believed(place: &Place, table: &str) -> String {
    let sql = format!("SELECT reltuples::bigint FROM pg_class WHERE oid = '{table}'::regclass");
    query(&place.scratch.url, &sql).await[0][0].clone().expect("a number")
}

/// What was written many at a time and never looked at is planned with a guess: each page of `job_def` walked
/// and sorted all of it, which was 0.56 of the 4.4 s in which a batch of 100,000 jobs was opened.
#[tokio::test]
async fn tables_with_many_new_rows_are_known() {
    let jobs: Vec<String> = (0..1_200).map(|n| format!("job-{n:04}")).collect();
    let test = |place: Place| async move {
        let words: Vec<&str> = jobs.iter().map(String::as_str).collect();
        let few = chain("few", &["A", "B"]);
        let mut many = chain("few", &["A", "B"]);
        many.groups.push(group("many"));
        let added = chain("many", &words);
        many.jobs.extend(added.jobs.clone());
        many.dependencies.extend(added.dependencies.clone());
        let empty = procession::domain::job::Definition::default();
        let tables = ["job_def", "job_dependency", "job_queue"];
        let mut tx = place.db.begin().await.expect("begin");
        store::job::apply(&mut tx, &empty, &few, T0).await.expect("apply");
        write_batch(&mut tx, &few, "202406").await.expect("batch");
        tx.commit().await.expect("commit");
        for table in tables {
            assert!(["-1", "0"].contains(&believed(&place, table).await.as_str()), "{table}");
        }
        let mut tx = place.db.begin().await.expect("begin");
        store::job::apply(&mut tx, &few, &many, T0).await.expect("apply");
        write_batch(&mut tx, &added, "202407").await.expect("batch");
        tx.commit().await.expect("commit");
        for (table, rows) in tables.into_iter().zip(["1202", "1200", "1202"]) {
            assert_eq!(believed(&place, table).await, rows, "{table}");
        }
    };
    on_migrated(DialectName::Postgres, test).await;
}

pub(super) async fn finishing_somebody_elses_batch_changes_nothing(place: Place) {
    let seen = half_run(&place).await;
    let before = (all_of(&place, "job_batch").await, all_of(&place, "job_def").await);
    let mut tx = place.db.begin().await.expect("begin");
    let done =
        batch::finish_all(&mut tx, &[(seen.clone(), BatchStatus::Success)], &other(), later(30))
            .await;
    done.expect_err("it is another process's");
    tx.commit().await.expect("commit");
    assert_eq!((all_of(&place, "job_batch").await, all_of(&place, "job_def").await), before);
}

pub(super) async fn jobs_are_counted_by_state(place: Place) {
    let seen = half_run(&place).await;
    let mut tx = place.db.begin_read().await.expect("read");
    let mut counts = batch::counts(&mut tx, seen.batch_id).await.expect("counts");
    counts.sort();
    let one = |status| (status, 1u64);
    let mut expected =
        vec![one(QueueStatus::Pending), one(QueueStatus::Failed), one(QueueStatus::UpstreamFailed)];
    expected.sort();
    assert_eq!(counts, expected);
    assert!(batch::counts(&mut tx, BatchId(404)).await.expect("counts").is_empty());
}

pub(super) async fn a_missing_batch_is_named(place: Place) {
    running(&place).await;
    let mut tx = place.db.begin_read().await.expect("read");
    let error = batch::get(&mut tx, BatchId(404)).await.expect_err("no such batch");
    assert!(error.to_string().contains("404"), "{error:#}");
    let error = batch::snapshot(&mut tx, BatchId(404)).await.expect_err("no such batch");
    assert!(error.to_string().contains("404"), "{error:#}");
}
