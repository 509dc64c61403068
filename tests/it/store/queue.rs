//! `store::queue`: a row changes only for who saw it as it is.

use super::write_batch;
use super::{
    Place, T0, all_of, assert_stale, chain, code, group_code, later, me, no, opened, other, running,
};
use crate::util::query;
use procession::domain::id::{BatchId, QueueId};
use procession::domain::job::queue::{QueueEntry, QueueStatus};
use procession::domain::source::DialectName;
use procession::domain::text::{MESSAGE_MAX, storable};
use procession::store::queue::{self, NewEntry, SettledRow};
use procession::store::{self, Tx};
use std::collections::BTreeSet;

async fn rows_of(place: &Place, id: BatchId) -> Vec<QueueEntry> {
    let mut tx = place.db.begin_read().await.expect("read");
    queue::of_batch(&mut tx, id).await.expect("rows")
}

/// Runs `change` and commits even when it is refused, which the dispatcher never does: a refused
/// change must not have touched a row by itself.
async fn committed(
    place: &Place,
    change: impl AsyncFnOnce(&mut Tx) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut tx = place.db.begin().await.expect("begin");
    let result = change(&mut tx).await;
    tx.commit().await.expect("commit");
    result
}

pub(super) async fn rows_are_generated_in_order(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let id = write_batch(&mut tx, &chain("month_end", &["ignored"]), "1").await.expect("batch");
    let codes = [code("Z"), code("总账"), code("a")];
    let entries: Vec<NewEntry<'_>> = codes
        .iter()
        .zip([None, Some(later(3_600_001)), None])
        .map(|(job_code, not_before)| NewEntry { job_code, not_before })
        .collect();
    queue::generate(&mut tx, id, "202407", &entries, T0).await.expect("generate");
    tx.commit().await.expect("commit");
    let rows = rows_of(&place, id).await;
    let expected = |at: usize, job_code: &str, not_before| QueueEntry {
        not_before,
        ..QueueEntry::generated(rows[at].queue_id, id, code(job_code))
    };
    let found = [
        expected(0, "ignored", None),
        expected(1, "Z", None),
        expected(2, "总账", Some(later(3_600_001))),
        expected(3, "a", None),
    ];
    assert_eq!(rows, found);
    assert!(rows_of(&place, BatchId(404)).await.is_empty());
}

pub(super) async fn a_job_is_in_a_batch_number_once(place: Place) {
    let (id, _) = opened(&place, &["A", "B"]).await;
    let before = all_of(&place, "job_queue").await;
    let mut tx = place.db.begin().await.expect("begin");
    let codes = [code("NEW"), code("B")];
    let entries = codes.each_ref().map(|job_code| NewEntry { job_code, not_before: None });
    let error = queue::generate(&mut tx, id, "202407", &entries, T0).await.expect_err("B is taken");
    assert!(store::is_taken(&error), "{error:#}");
    drop(tx);
    assert_eq!(all_of(&place, "job_queue").await, before);
    let mut tx = place.db.begin().await.expect("begin");
    let other = write_batch(&mut tx, &chain("other", &["A"]), "202407").await.expect("batch");
    queue::generate(&mut tx, other, "202407", &entries, T0).await.expect("another batch");
    tx.commit().await.expect("commit");
}

pub(super) async fn a_transition_is_fenced(place: Place) {
    let (id, rows) = opened(&place, &["A", "B", "C"]).await;
    let ids: Vec<i64> = rows.iter().map(|r| r.queue_id.0).collect();
    let (pending, queued, killed) =
        (QueueStatus::Pending, QueueStatus::Queued, QueueStatus::Killed);
    let before = all_of(&place, "job_queue").await;
    assert_stale(
        committed(&place, async |tx| queue::transition(tx, &ids, queued, killed, later(5)).await)
            .await,
    );
    assert_eq!(all_of(&place, "job_queue").await, before);

    committed(&place, async |tx| queue::transition(tx, &ids[..2], pending, queued, later(5)).await)
        .await
        .expect("two of three");
    committed(&place, async |tx| queue::transition(tx, &[], pending, queued, later(5)).await)
        .await
        .expect("none is always well");
    // One of three is not as expected, so the transaction is thrown away.
    let before = all_of(&place, "job_queue").await;
    let mut tx = place.db.begin().await.expect("begin");
    assert_stale(queue::transition(&mut tx, &ids, queued, killed, later(6)).await);
    drop(tx);
    assert_eq!(all_of(&place, "job_queue").await, before);

    committed(&place, async |tx| queue::transition(tx, &ids[1..2], queued, killed, later(7)).await)
        .await
        .expect("kill B");
    let rows = rows_of(&place, id).await;
    let states: Vec<_> = rows.iter().map(|r| (r.status, r.end_time)).collect();
    assert_eq!(states, [(queued, None), (killed, Some(later(7))), (pending, None)]);
}

pub(super) async fn a_claim_is_fenced(place: Place) {
    let (id, row) = running(&place).await;
    let ids = [row.queue_id.0];
    assert_eq!((row.status, row.attempt), (QueueStatus::Running, 1));
    assert_eq!((row.owner, row.start_time), (Some(me()), Some(later(10))));
    let before = all_of(&place, "job_queue").await;
    for wrong in [QueueStatus::Pending, QueueStatus::RetryWait, QueueStatus::Queued] {
        let claimed =
            committed(&place, async |tx| queue::claim(tx, &ids, wrong, &other(), later(20)).await);
        assert_stale(claimed.await);
    }
    let absent = committed(&place, async |tx| {
        queue::claim(tx, &[404], QueueStatus::Pending, &me(), T0).await
    });
    assert_stale(absent.await);
    assert_eq!(all_of(&place, "job_queue").await, before);

    // The next start forgets what the last one said.
    let failed = SettledRow {
        to: QueueStatus::RetryWait,
        try_count: 1,
        error_message: Some("no".to_owned()),
        outputs: Some("{}".to_owned()),
        large_values: procession::domain::job::outcome::LargeValues::default(),
        crash_count: 0,
        unresolved: 0,
        not_before: Some(later(30)),
        ..ended(row.queue_id)
    };
    committed(&place, async |tx| queue::settle(tx, &failed, later(25)).await)
        .await
        .expect("settle");
    committed(&place, async |tx| {
        queue::claim(tx, &ids, QueueStatus::RetryWait, &other(), later(31)).await
    })
    .await
    .expect("claim again");
    let again = rows_of(&place, id).await.remove(0);
    assert_eq!((again.attempt, again.try_count), (2, 1));
    assert_eq!((again.owner, again.start_time), (Some(other()), Some(later(31))));
    assert_eq!((again.end_time, again.error_message), (None, None));
    let mut tx = place.db.begin_read().await.expect("read");
    assert!(queue::outputs(&mut tx, &[row.queue_id]).await.expect("outputs").is_empty());
}

/// A success of the first attempt of `me`.
pub(super) fn ended(queue_id: QueueId) -> SettledRow {
    SettledRow {
        queue_id,
        attempt: 1,
        owner: Some(me()),
        from: QueueStatus::Running,
        to: QueueStatus::Success,
        try_count: 0,
        not_before: None,
        error_message: None,
        outputs: None,
        large_values: procession::domain::job::outcome::LargeValues::default(),
        crash_count: 0,
        unresolved: 0,
    }
}

pub(super) async fn a_settlement_is_fenced(place: Place) {
    let (id, row) = running(&place).await;
    let right = ended(row.queue_id);
    let before = all_of(&place, "job_queue").await;
    let wrong = [
        SettledRow { attempt: 0, ..right.clone() },
        SettledRow { attempt: 2, ..right.clone() },
        SettledRow { owner: Some(other()), ..right.clone() },
        SettledRow { owner: None, ..right.clone() },
        SettledRow { from: QueueStatus::Killing, ..right.clone() },
        SettledRow { from: QueueStatus::Pending, ..right.clone() },
        SettledRow { queue_id: QueueId(404), ..right.clone() },
    ];
    for settled in wrong {
        assert_stale(
            committed(&place, async |tx| queue::settle(tx, &settled, later(40)).await).await,
        );
        assert_eq!(all_of(&place, "job_queue").await, before, "{settled:?}");
    }
    let failed = SettledRow {
        to: QueueStatus::Failed,
        try_count: 3,
        error_message: Some("ORA-00060: 死锁".to_owned()),
        outputs: Some("{\"rows_affected\":3}".to_owned()),
        large_values: procession::domain::job::outcome::LargeValues::default(),
        ..right
    };
    committed(&place, async |tx| queue::settle(tx, &failed, later(40)).await)
        .await
        .expect("settle");
    let row = rows_of(&place, id).await.remove(0);
    assert_eq!((row.status, row.try_count, row.attempt), (QueueStatus::Failed, 3, 1));
    assert_eq!((row.end_time, row.not_before), (Some(later(40)), None));
    assert_eq!(row.error_message.as_deref(), Some("ORA-00060: 死锁"));
}

pub(super) async fn a_late_result_changes_nothing(place: Place) {
    let (id, row) = running(&place).await;
    let ids = [row.queue_id.0];
    // The process died, another takes the row, runs it again and still holds it.
    committed(&place, async |tx| {
        let (from, to) = (QueueStatus::Running, QueueStatus::RetryWait);
        queue::transition(tx, &ids, from, to, later(100)).await?;
        queue::claim(tx, &ids, to, &other(), later(110)).await
    })
    .await
    .expect("second start");
    let before = all_of(&place, "job_queue").await;
    let late = ended(row.queue_id);
    assert_stale(committed(&place, async |tx| queue::settle(tx, &late, later(120)).await).await);
    // Nor does a result of the first attempt by the one that has the second.
    let mixed = SettledRow { owner: Some(other()), ..ended(row.queue_id) };
    assert_stale(committed(&place, async |tx| queue::settle(tx, &mixed, later(120)).await).await);
    assert_eq!(all_of(&place, "job_queue").await, before);
    let right = SettledRow { owner: Some(other()), attempt: 2, ..ended(row.queue_id) };
    committed(&place, async |tx| queue::settle(tx, &right, later(130)).await)
        .await
        .expect("second");
    assert_eq!(rows_of(&place, id).await[0].status, QueueStatus::Success);
    // A result is recorded once.
    assert_stale(committed(&place, async |tx| queue::settle(tx, &right, later(140)).await).await);
}

pub(super) async fn a_stop_that_began_has_no_end_yet(place: Place) {
    let (id, row) = running(&place).await;
    let stopping = SettledRow { to: QueueStatus::Killing, ..ended(row.queue_id) };
    committed(&place, async |tx| queue::settle(tx, &stopping, later(40)).await)
        .await
        .expect("stop");
    let row = rows_of(&place, id).await.remove(0);
    assert_eq!((row.status, row.end_time), (QueueStatus::Killing, None));
    assert_eq!(row.owner, Some(me()));
}

pub(super) async fn a_rerun_starts_over_but_counts_on(place: Place) {
    let (id, row) = running(&place).await;
    let failed = SettledRow {
        to: QueueStatus::Failed,
        try_count: 2,
        error_message: Some("no".to_owned()),
        outputs: Some("{}".to_owned()),
        large_values: procession::domain::job::outcome::LargeValues::default(),
        not_before: Some(later(5)),
        ..ended(row.queue_id)
    };
    committed(&place, async |tx| queue::settle(tx, &failed, later(40)).await).await.expect("fail");
    let ids = [row.queue_id.0];
    let before = all_of(&place, "job_queue").await;
    let wrong =
        committed(&place, async |tx| queue::reset(tx, &ids, QueueStatus::Success, later(50)).await);
    assert_stale(wrong.await);
    assert_eq!(all_of(&place, "job_queue").await, before);
    committed(&place, async |tx| queue::reset(tx, &ids, QueueStatus::Failed, later(50)).await)
        .await
        .expect("reset");
    let row = rows_of(&place, id).await.remove(0);
    let expected = QueueEntry {
        status: QueueStatus::Pending,
        try_count: 0,
        attempt: 1,
        owner: None,
        not_before: None,
        start_time: None,
        end_time: None,
        error_message: None,
        ..row.clone()
    };
    assert_eq!(row, expected);
    let mut tx = place.db.begin_read().await.expect("read");
    assert!(queue::outputs(&mut tx, &[row.queue_id]).await.expect("outputs").is_empty());
}

pub(super) async fn a_row_is_ours_only_while_it_runs_for_us(place: Place) {
    let (_, row) = running(&place).await;
    let mut tx = place.db.begin().await.expect("begin");
    let id = row.queue_id;
    assert!(queue::is_ours(&mut tx, id, 1, &me()).await.expect("ours"));
    assert!(!queue::is_ours(&mut tx, id, 2, &me()).await.expect("attempt"));
    assert!(!queue::is_ours(&mut tx, id, 1, &other()).await.expect("owner"));
    assert!(!queue::is_ours(&mut tx, QueueId(404), 1, &me()).await.expect("row"));
    let stopping = SettledRow { to: QueueStatus::Killing, ..ended(id) };
    queue::settle(&mut tx, &stopping, later(20)).await.expect("stop");
    assert!(!queue::is_ours(&mut tx, id, 1, &me()).await.expect("state"));
}

pub(super) async fn outputs_are_read_by_row(place: Place) {
    let (_, rows) = opened(&place, &["A", "B"]).await;
    let ids: Vec<i64> = rows.iter().map(|r| r.queue_id.0).collect();
    // More than MySQL's TEXT holds.
    let json = format!("{{\"values\":{{\"名\":\"{}\"}}}}", "值🧾".repeat(20_000));
    committed(&place, async |tx| {
        queue::claim(tx, &ids, QueueStatus::Pending, &me(), later(10)).await?;
        let settled = SettledRow { outputs: Some(json.clone()), ..ended(rows[1].queue_id) };
        queue::settle(tx, &settled, later(20)).await
    })
    .await
    .expect("settle");
    let mut tx = place.db.begin_read().await.expect("read");
    let asked = [rows[0].queue_id, rows[1].queue_id, QueueId(404)];
    let found = queue::outputs(&mut tx, &asked).await.expect("outputs");
    assert_eq!(found, [(rows[1].queue_id, json)]);
}

pub(super) async fn any_message_can_be_stored(place: Place) {
    let (id, row) = running(&place).await;
    let mut bytes =
        b"nul \0 bad \xff\xfe\xc3( lone \xed\xa0\x80 esc \x1b[31m '\"\\ ? \r\n\ttab ".to_vec();
    bytes.extend("错误 🧾".repeat(20_000).as_bytes());
    let message = storable(&bytes, MESSAGE_MAX);
    assert!(message.len() > MESSAGE_MAX - 100, "{}", message.len());
    let failed = SettledRow {
        to: QueueStatus::Failed,
        error_message: Some(message.clone()),
        ..ended(row.queue_id)
    };
    committed(&place, async |tx| queue::settle(tx, &failed, later(40)).await)
        .await
        .expect("settle");
    assert_eq!(rows_of(&place, id).await[0].error_message.as_ref(), Some(&message));
}

pub(super) async fn what_ended_well_is_found_over_the_batches_of_a_group(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let mut expected = Vec::new();
    for (batch_no, of, to) in [
        ("202405", "month_end", QueueStatus::Success),
        ("202406", "month_end", QueueStatus::Warning),
        ("202407", "month_end", QueueStatus::Failed),
        ("202408", "month_end", QueueStatus::Forced),
        ("202409", "month_end", QueueStatus::Skipped),
        ("202410", "other", QueueStatus::Success),
    ] {
        let id = write_batch(&mut tx, &chain(of, &["A", "B"]), batch_no).await.expect("batch");
        let rows = queue::of_batch(&mut tx, id).await.expect("rows");
        let ids: Vec<i64> = rows.iter().map(|r| r.queue_id.0).collect();
        queue::transition(&mut tx, &ids, QueueStatus::Pending, to, later(10)).await.expect("end");
        if matches!(to, QueueStatus::Success | QueueStatus::Warning) && of == "month_end" {
            expected.push((no(batch_no), rows[0].queue_id));
        }
    }
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin_read().await.expect("read");
    let of = group_code("month_end");
    let mut found = queue::ended_well(&mut tx, &of, &code("A")).await.expect("found");
    found.sort_by_key(|(_, row)| row.0);
    assert_eq!(found, expected);
    assert!(queue::ended_well(&mut tx, &of, &code("a")).await.expect("none").is_empty());
}

/// A million ended rows would else have left entries of each of their states behind in it.
pub(super) async fn a_hop_touches_no_index(place: Place) {
    let codes: Vec<String> = (0..100).map(|n| format!("J{n:03}")).collect();
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    let (_, rows) = opened(&place, &codes).await;
    let rows = &rows[..8];
    let columns = match place.dialect() {
        DialectName::Sqlite => {
            "SELECT c.name FROM pragma_index_list('job_queue') i JOIN pragma_index_info(i.name) c"
        }
        DialectName::Mysql => {
            "SELECT CAST(column_name AS CHAR) FROM information_schema.statistics \
             WHERE table_schema = DATABASE() AND table_name = 'job_queue'"
        }
        DialectName::Postgres => {
            "SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid \
             AND (a.attnum = ANY (i.indkey) OR pg_get_expr(i.indpred, i.indrelid) ~ a.attname) \
             WHERE i.indrelid = 'job_queue'::regclass"
        }
    };
    let indexed = query(&place.scratch.url, columns).await;
    let indexed: BTreeSet<String> = indexed.into_iter().flatten().flatten().collect();
    let known = ["batch_id", "batch_no", "hosted_by", "job_code", "queue_id"];
    let known: BTreeSet<String> = known.into_iter().map(str::to_owned).collect();
    assert!(indexed.is_subset(&known) && indexed.contains("hosted_by"), "{indexed:?}");

    let ids: Vec<i64> = rows.iter().map(|r| r.queue_id.0).collect();
    let mut tx = place.db.begin().await.expect("begin");
    queue::claim(&mut tx, &ids, QueueStatus::Pending, &me(), later(10)).await.expect("claim");
    let ends: Vec<SettledRow> = rows.iter().map(|r| ended(r.queue_id)).collect();
    queue::settle_all(&mut tx, &ends, later(20)).await.expect("settle");
    if place.dialect() == DialectName::Postgres {
        let sql = "SELECT pg_stat_get_xact_tuples_updated(c) AS changed, \
                   pg_stat_get_xact_tuples_hot_updated(c) AS stayed \
                   FROM (VALUES ('job_queue'::regclass)) AS t (c)";
        let row = tx.fetch_optional(sql, &[]).await.expect("counts").expect("row");
        let counts = (row.get_int("changed").expect("int"), row.get_int("stayed").expect("int"));
        assert_eq!(counts, (16, 16), "rows that needed no new entry in any index");
    }
}
