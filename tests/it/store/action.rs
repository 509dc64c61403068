//! What operators do, as rows: fenced, on record, and leaving alone what they do not mean.

use super::{Place, T0, all_of, assert_stale, chain, code, later, me, no, opened, running};
use procession::domain::action::RowChange;
use procession::domain::job::job_key::JobFilter;
use procession::domain::job::queue::{QueueStatus, RunMode};
use procession::domain::source::DialectName;
use procession::store::action::{Move, write};
use procession::store::audit::{AuditEntry, AuditFilter, Operator};
use procession::store::queue::SettledRow;
use procession::store::{self, Tx, queue};

async fn committed(
    place: &Place,
    work: impl AsyncFnOnce(&mut Tx) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut tx = place.db.begin().await.expect("begin");
    work(&mut tx).await?;
    tx.commit().await.expect("commit");
    Ok(())
}

fn what(from: QueueStatus, to: QueueStatus, change: RowChange) -> Move<'static> {
    Move { from, to, change, note: Some("held by li: 月末") }
}

pub(super) async fn an_action_is_fenced(place: Place) {
    let (id, rows) = opened(&place, &["A", "B"]).await;
    let ids: Vec<i64> = rows.iter().map(|r| r.queue_id.0).collect();
    let (pending, held, queued) = (QueueStatus::Pending, QueueStatus::Held, QueueStatus::Queued);
    let before = all_of(&place, "job_queue").await;
    for (from, to, change) in [
        (queued, held, RowChange::State),
        (queued, pending, RowChange::StartOver),
        (queued, queued, RowChange::Mode(Some(RunMode::NoExec))),
        (queued, queued, RowChange::Priority(7)),
        (queued, queued, RowChange::NoTime),
    ] {
        let late = async |tx: &mut Tx| write(tx, &ids, what(from, to, change), later(5)).await;
        assert_stale(committed(&place, late).await);
    }
    assert_eq!(all_of(&place, "job_queue").await, before);
    for (from, to, change) in [
        (pending, held, RowChange::State),
        (held, held, RowChange::Mode(Some(RunMode::NoExec))),
        (held, held, RowChange::Priority(-7)),
    ] {
        let act = async |tx: &mut Tx| write(tx, &ids[1..], what(from, to, change), later(5)).await;
        committed(&place, act).await.expect("act");
    }
    let mut tx = place.db.begin_read().await.expect("read");
    let after = queue::of_batch(&mut tx, id).await.expect("rows");
    assert_eq!(after[0], rows[0], "its neighbour is left alone");
    assert_eq!((after[1].status, after[1].run_mode), (held, Some(RunMode::NoExec)));
    assert_eq!((after[1].priority, after[1].end_time), (Some(-7), None));
    assert_eq!(after[1].error_message.as_deref(), Some("held by li: 月末"));
}

pub(super) async fn what_a_body_left_behind_stays(place: Place) {
    let (id, row) = running(&place).await;
    let failed = SettledRow {
        queue_id: row.queue_id,
        attempt: 1,
        owner: Some(me()),
        from: QueueStatus::Running,
        to: QueueStatus::Failed,
        try_count: 1,
        not_before: None,
        error_message: Some("no rate".to_owned()),
        outputs: None,
        large_values: procession::domain::job::outcome::LargeValues::default(),
        crash_count: 0,
        unresolved: 0,
    };
    committed(&place, async |tx| queue::settle(tx, &failed, later(40)).await).await.expect("fail");
    let forced = what(QueueStatus::Failed, QueueStatus::Forced, RowChange::State);
    let ids = [row.queue_id.0];
    committed(&place, async |tx| write(tx, &ids, forced, later(90)).await).await.expect("force");
    let mut tx = place.db.begin_read().await.expect("read");
    let row = queue::of_batch(&mut tx, id).await.expect("rows").remove(0);
    assert_eq!((row.status, row.attempt), (QueueStatus::Forced, 1));
    assert_eq!((row.start_time, row.end_time), (Some(later(10)), Some(later(40))));
}

/// A job held at 22:00 and started over at 21:00 must not start at 21:00.
pub(super) async fn a_row_that_never_started_keeps_its_time(place: Place) {
    let (id, row) = running(&place).await;
    let at = match place.dialect() {
        DialectName::Sqlite => "2030-01-01T00:00:00.000Z",
        DialectName::Mysql | DialectName::Postgres => "2030-01-01 00:00:00.000",
    };
    let killed = async |mode: &str| {
        let set = format!("not_before = '{at}', run_mode = '{mode}', status = 'KILLED'");
        place.by_hand(&format!("UPDATE job_queue SET {set}")).await;
    };
    killed("ICE").await;
    let ids = [row.queue_id.0];
    let over = async |tx: &mut Tx| queue::reset(tx, &ids, QueueStatus::Killed, later(50)).await;
    committed(&place, over).await.expect("reset");
    let read = async || {
        let mut tx = place.db.begin_read().await.expect("read");
        queue::of_batch(&mut tx, id).await.expect("rows").remove(0)
    };
    let started = read().await;
    assert_eq!((started.not_before, started.run_mode), (None, None), "it had started");
    killed("NOEXEC").await;
    committed(&place, over).await.expect("reset");
    let never = read().await;
    assert!(never.not_before.is_some(), "it had not");
    assert_eq!(never.run_mode, Some(RunMode::NoExec), "what is wanted with it stays");
}

pub(super) async fn acts_are_on_record_and_found(place: Place) {
    let (id, _) = opened(&place, &["A", "B"]).await;
    let li = Operator::new("li".to_owned(), "主机".to_owned());
    let entry = |job: &str, action: &str| AuditEntry {
        action: action.to_owned(),
        group: None,
        batch: Some((id, no("202407"))),
        job: Some(code(job)),
        detail: Some(serde_json::json!({"before": {"status": "FAILED"}})),
        reason: Some("rates are in; 'quoted'".to_owned()),
    };
    let (first, second) = (entry("A", "hold"), entry("B", "force-success"));
    let standing = AuditEntry { batch: None, detail: None, ..entry("A", "ice") };
    let all = [first.clone(), second.clone(), standing.clone()];
    committed(&place, async |tx| store::audit::record(tx, &li, &all, later(3)).await)
        .await
        .expect("record");
    let mut tx = place.db.begin_read().await.expect("read");
    let mut found = async |filter: AuditFilter, limit| {
        let records = store::audit::list_records(&mut tx, &filter, limit).await.expect("list");
        assert!(records.iter().all(|r| r.at == later(3) && r.by == li));
        records.into_iter().map(|r| r.entry).collect::<Vec<_>>()
    };
    assert_eq!(found(AuditFilter::default(), 9).await, [standing.clone(), second, first.clone()]);
    assert_eq!(found(AuditFilter::default(), 1).await.len(), 1, "the latest");
    let of_a = AuditFilter { job: JobFilter::parse("A").ok(), ..AuditFilter::default() };
    assert_eq!(found(of_a.clone(), 9).await, [standing, first.clone()]);
    let in_batch = AuditFilter { batch_no: Some(no("202407")), ..of_a };
    assert_eq!(found(in_batch, 9).await, [first]);
}

pub(super) async fn standing_modes_reach_new_batches_alone(place: Place) {
    let (old, _) = opened(&place, &["A", "B", "C"]).await;
    let defs = chain("month_end", &["A", "B", "C"]);
    let mut tx = place.db.begin().await.expect("begin");
    let empty = procession::domain::job::Definition::default();
    store::job::apply(&mut tx, &empty, &defs, T0).await.expect("apply");
    let key = |text: &str| procession::domain::job::job_key::JobKey {
        group: super::group_code("month_end"),
        code: code(text),
    };
    for (job, mode) in [("A", RunMode::Ice), ("B", RunMode::NoExec)] {
        let set = store::run_mode::set_standing(&mut tx, &key(job), Some(mode), later(1)).await;
        assert!(set.expect("set"));
    }
    let none = store::run_mode::set_standing(&mut tx, &key("NONE"), None, later(1)).await;
    assert!(!none.expect("no such job"));
    // Applying another definition of the job leaves them alone.
    let mut mended = defs.clone();
    mended.jobs[0].retry_count = 9;
    store::job::apply(&mut tx, &defs, &mended, later(2)).await.expect("apply");
    let standing = store::run_mode::standing(&mut tx).await.expect("standing");
    assert_eq!(standing.len(), 2);
    let id = super::write_batch(&mut tx, &mended, "202408").await.expect("batch");
    let iced = store::run_mode::take_over(&mut tx, id, &mended.groups[0].code, "on ice", later(3))
        .await
        .expect("take over");
    let rows = queue::of_batch(&mut tx, id).await.expect("rows");
    assert_eq!(iced, [rows[0].queue_id]);
    let states: Vec<_> = rows.iter().map(|r| (r.status, r.run_mode)).collect();
    let pending = QueueStatus::Pending;
    assert_eq!(
        states,
        [
            (QueueStatus::Skipped, Some(RunMode::Ice)),
            (pending, Some(RunMode::NoExec)),
            (pending, None)
        ]
    );
    let before = queue::of_batch(&mut tx, old).await.expect("rows");
    assert!(before.iter().all(|r| r.run_mode.is_none() && r.status == pending));
}
