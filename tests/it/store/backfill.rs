//! `store::backfill`.

use super::{Place, chain, group_code, later, me, no, other, write_batch};
use procession::domain::backfill::{
    BackfillEntry, BackfillFailurePolicy, BackfillOptions, BackfillSelection, BackfillStatus,
    EntryStatus, RangeOrder,
};
use procession::domain::batch::BatchStatus;
use procession::domain::id::{BackfillId, BatchId};
use procession::domain::job::queue::QueueStatus;
use procession::store::backfill::{self, NewBackfill};
use procession::store::node::{self, NodeRow, Offer};
use procession::store::{self, Tx};
use std::collections::BTreeMap;

use super::T0;

fn options() -> BackfillOptions {
    BackfillOptions {
        parallel: 3,
        order: Some(RangeOrder::Desc),
        only: BackfillSelection::Undone,
        on_failure: BackfillFailurePolicy::GoOn,
        params: BTreeMap::from([("rate".to_owned(), "七.1 🧾".to_owned())]),
        free_text: true,
    }
}

fn entry(batch_no: &str, status: EntryStatus, message: Option<&str>) -> BackfillEntry {
    BackfillEntry { batch_no: no(batch_no), status, message: message.map(str::to_owned) }
}

/// A backfill of 202401 to 202403, owned by `me`.
async fn written(tx: &mut Tx) -> BackfillId {
    let entries = [
        entry("202403", EntryStatus::Pending, None),
        entry("202402", EntryStatus::Left, None),
        entry("202401", EntryStatus::Pending, Some("月末 message")),
    ];
    let (group, options) = (group_code("month_end"), options());
    let new = NewBackfill {
        group: &group,
        range: "202401..202403",
        options: &options,
        started_by: "会计",
        reason: Some("a new column 🧾"),
    };
    backfill::insert(tx, &new, &entries, &me(), T0).await.expect("insert")
}

pub(super) async fn a_backfill_comes_back_as_it_went_in(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let id = written(&mut tx).await;
    let second = written(&mut tx).await;
    tx.commit().await.expect("commit");
    assert!(second > id);
    let mut tx = place.db.begin_read().await.expect("read");
    let row = backfill::find_backfill(&mut tx, id).await.expect("find").expect("there");
    assert_eq!(row.group, group_code("month_end"));
    assert_eq!((row.status, row.owner.clone()), (BackfillStatus::Running, Some(me())));
    assert_eq!((row.range.as_str(), row.started_by.as_str()), ("202401..202403", "会计"));
    assert_eq!((row.options.clone(), row.reason.as_deref()), (options(), Some("a new column 🧾")));
    assert_eq!((row.create_time, row.end_time), (T0, None));
    let entries = backfill::entries(&mut tx, id).await.expect("entries");
    let wanted = [
        entry("202403", EntryStatus::Pending, None),
        entry("202402", EntryStatus::Left, None),
        entry("202401", EntryStatus::Pending, Some("月末 message")),
    ];
    assert_eq!(entries, wanted);
    let counts = backfill::counts(&mut tx, id).await.expect("counts");
    assert_eq!(counts, BTreeMap::from([(EntryStatus::Pending, 2), (EntryStatus::Left, 1)]));
    let listed = backfill::list_backfills(&mut tx, 1).await.expect("list");
    assert_eq!(listed.iter().map(|b| b.id).collect::<Vec<_>>(), [second]);
    assert_eq!(backfill::find_backfill(&mut tx, BackfillId(9_999)).await.expect("find"), None);
}

pub(super) async fn a_backfill_changes_hands_by_compare_and_set(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let id = written(&mut tx).await;
    let seen = backfill::find_backfill(&mut tx, id).await.expect("find").expect("there");
    assert!(backfill::lock_owned(&mut tx, id, &me()).await.expect("hold"));
    assert!(!backfill::lock_owned(&mut tx, id, &other()).await.expect("hold"));
    let mark = async |tx: &mut Tx, from, to, message| {
        backfill::set_entry_status(tx, id, 0, from, to, message, later(5)).await.expect("mark")
    };
    use EntryStatus::{Failed, Open, Pending};
    assert!(!mark(&mut tx, Open, Failed, None).await, "it is PENDING");
    assert!(mark(&mut tx, Pending, Open, None).await);
    assert!(mark(&mut tx, Open, Failed, Some("why")).await);
    let entries = backfill::entries(&mut tx, id).await.expect("entries");
    assert_eq!(entries[0], entry("202403", Failed, Some("why")));
    assert_eq!(entries[2].status, Pending, "the others are left alone");
    assert!(backfill::request_stop(&mut tx, id, later(6)).await.expect("stop"));
    let one = BackfillOptions { parallel: 1, ..options() };
    let taken = async |tx: &mut Tx, seen: &backfill::Backfill| {
        backfill::take_over(tx, seen, &one, &other(), later(7)).await.expect("take over")
    };
    assert!(!taken(&mut tx, &seen).await, "it is STOPPING meanwhile");
    let seen = backfill::find_backfill(&mut tx, id).await.expect("find").expect("there");
    assert_eq!(seen.status, BackfillStatus::Stopping);
    assert!(taken(&mut tx, &seen).await);
    let failed = BackfillStatus::Failed;
    assert!(!backfill::finish(&mut tx, id, &me(), failed, later(8)).await.expect("not mine"));
    assert!(backfill::finish(&mut tx, id, &other(), failed, later(8)).await.expect("finish"));
    let row = backfill::find_backfill(&mut tx, id).await.expect("find").expect("there");
    assert_eq!((row.status, row.owner.clone(), row.end_time), (failed, None, Some(later(8))));
    assert_eq!(row.options, one);
    assert!(!backfill::request_stop(&mut tx, id, later(9)).await.expect("it has ended"));
    // From nobody, and its end is forgotten.
    assert!(taken(&mut tx, &row).await);
    let row = backfill::find_backfill(&mut tx, id).await.expect("find").expect("there");
    assert_eq!((row.status, row.end_time), (BackfillStatus::Running, None));
}

pub(super) async fn a_backfill_is_shown_with_its_batches(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let id = written(&mut tx).await;
    let defs = chain("month_end", &["A", "B", "C"]);
    let batch = write_batch(&mut tx, &defs, "202403").await.expect("batch");
    // Another group's batch of the same number is not one of its own.
    write_batch(&mut tx, &chain("elsewhere", &["X"]), "202401").await.expect("batch");
    let rows = store::queue::of_batch(&mut tx, batch).await.expect("rows");
    let ids = [rows[0].queue_id.0, rows[1].queue_id.0];
    store::queue::claim(&mut tx, &ids, QueueStatus::Pending, &me(), T0).await.expect("claim");
    for (row, to) in rows.iter().zip([QueueStatus::Success, QueueStatus::Timeout]) {
        let settled = store::queue::SettledRow {
            queue_id: row.queue_id,
            attempt: 1,
            owner: Some(me()),
            from: QueueStatus::Running,
            to,
            try_count: 1,
            not_before: None,
            error_message: None,
            outputs: None,
            large_values: procession::domain::job::outcome::LargeValues::default(),
            crash_count: 0,
            unresolved: 0,
        };
        store::queue::settle(&mut tx, &settled, later(3)).await.expect("settle");
    }
    assert_eq!(backfill::opened_by(&mut tx, batch).await.expect("opened by"), None);
    backfill::adopt(&mut tx, batch, id).await.expect("adopt");
    assert_eq!(backfill::opened_by(&mut tx, batch).await.expect("opened by"), Some(id));
    backfill::adopt(&mut tx, BatchId(9_999), id).await.expect_err("no such batch");
    let shown = backfill::shown(&mut tx, id).await.expect("shown");
    let numbers: Vec<&str> = shown.iter().map(|s| s.entry.batch_no.as_str()).collect();
    assert_eq!(numbers, ["202403", "202402", "202401"]);
    let first = shown[0].batch.as_ref().expect("its batch");
    assert_eq!((first.batch_id, first.status), (batch, BatchStatus::Running));
    use QueueStatus::{Pending, Success, Timeout};
    assert_eq!(first.jobs, BTreeMap::from([(Success, 1), (Timeout, 1), (Pending, 1)]));
    assert_eq!(first.failed, [(super::code("B"), Timeout)]);
    assert!(shown[1..].iter().all(|s| s.batch.is_none()));
}

pub(super) async fn the_batches_of_a_group_stand_with_who_has_them(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let group = group_code("month_end");
    assert!(backfill::standing(&mut tx, &group).await.expect("none").is_empty());
    let defs = chain("month_end", &["A"]);
    write_batch(&mut tx, &defs, "202401").await.expect("batch");
    let (host, lease_until) = ("会计-01".to_owned(), later(15_000));
    let standing = backfill::standing(&mut tx, &group).await.expect("standing");
    // Its process is not in cluster_node (any more).
    assert_eq!(standing[&no("202401")].holder, None);
    let mine = NodeRow { node_id: me(), host: host.clone(), pid: 7, lease_until };
    node::register(&mut tx, &mine, &Offer::default(), "v", T0).await.expect("register");
    let standing = backfill::standing(&mut tx, &group).await.expect("standing");
    let one = &standing[&no("202401")];
    assert_eq!(one.status, BatchStatus::Running);
    let holder = one.holder.as_ref().expect("held");
    assert_eq!((&holder.host, holder.pid, holder.until), (&host, 7, lease_until));
}
