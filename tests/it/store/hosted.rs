//! Rows that one process gives to another, and the reports that come back.

use crate::store::queue::ended;
use crate::store::{Place, T0, assert_stale, later, me, opened, other, running};
use procession::domain::batch::BatchStatus;
use procession::domain::cluster::node_placement::NodeRole;
use procession::domain::id::{NodeId, QueueId};
use procession::domain::job::outcome::{AttemptEnd, AttemptOutcome, ErrorInfo};
use procession::domain::job::queue::{Acknowledgement, QueueStatus};
use procession::domain::job::retry::ErrorClass;
use procession::store::hosted::{self, HostedRow, Reported, Untaken};
use procession::store::node::{self, HeartbeatReport, NodeRow, Offer, Stay};
use procession::store::queue::{Adopted, SettledRow, settle};
use procession::store::{Tx, batch, claim, queue};

fn third() -> NodeId {
    NodeId("third".to_owned())
}

/// A committed row that `me`, whose batch it is, gave to `other`.
async fn given(place: &Place) -> HostedRow {
    let (id, rows) = opened(place, &["A"]).await;
    let mut tx = place.db.begin().await.expect("begin");
    let (ids, pending, taken) =
        ([rows[0].queue_id.0], QueueStatus::Pending, Acknowledgement::NotYet);
    queue::give_to_node(&mut tx, &ids, pending, &other(), taken, later(10)).await.expect("give");
    tx.commit().await.expect("commit");
    let status = QueueStatus::Running;
    let (queue_id, revision) = (rows[0].queue_id, 0);
    HostedRow { queue_id, batch_id: id, attempt: 1, status, revision, is_reported: false }
}

pub(super) async fn a_job_is_given_and_taken_once(place: Place) {
    let row = given(&place).await;
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(hosted::given(&mut tx, &me()).await.expect("given"), []);
    assert_eq!(hosted::given(&mut tx, &other()).await.expect("given"), std::slice::from_ref(&row));
    for (wrong, node) in [
        (row.clone(), me()),
        (HostedRow { attempt: 2, ..row.clone() }, other()),
        (HostedRow { queue_id: QueueId(9_999), ..row.clone() }, other()),
    ] {
        assert_eq!(
            hosted::take_given(&mut tx, &wrong, &node, later(20)).await.expect("take"),
            None
        );
    }
    let taken =
        hosted::take_given(&mut tx, &row, &other(), later(20)).await.expect("take").expect("ours");
    assert_eq!((taken.attempt, taken.taken, taken.owner), (1, Acknowledgement::Yes, Some(other())));
    // The answer to the commit of the same may have been lost.
    assert!(hosted::take_given(&mut tx, &row, &other(), later(20)).await.expect("take").is_some());
    let untaken = Untaken { queue_id: row.queue_id, attempt: 1, owner: other() };
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    assert_stale(hosted::withdraw(&mut tx, &untaken).await);
}

pub(super) async fn what_was_not_taken_is_withdrawn(place: Place) {
    let row = given(&place).await;
    let mut tx = place.db.begin().await.expect("begin");
    for owner in [me(), third()] {
        let wrong = Untaken { queue_id: row.queue_id, attempt: 1, owner };
        assert_stale(hosted::withdraw(&mut tx, &wrong).await);
    }
    let untaken = Untaken { queue_id: row.queue_id, attempt: 1, owner: other() };
    hosted::withdraw(&mut tx, &untaken).await.expect("withdraw");
    let (from, to) = (QueueStatus::Running, QueueStatus::RetryWait);
    queue::transition(&mut tx, &[row.queue_id.0], from, to, later(30)).await.expect("again");
    assert_eq!(hosted::take_given(&mut tx, &row, &other(), later(31)).await.expect("take"), None);
    tx.commit().await.expect("commit");
}

pub(super) async fn a_report_is_written_once_and_only_for_ones_own(place: Place) {
    let row = given(&place).await;
    let outcome = AttemptOutcome {
        error: Some(ErrorInfo { class: ErrorClass::Deadlock, sqlstate: Some("40001".into()) }),
        ..AttemptOutcome::ended(AttemptEnd::Failed, "ORA-00060: 死锁").before_it_began().for_good()
    };
    let right = Reported { queue_id: row.queue_id, attempt: 1, owner: other(), outcome };
    let mut tx = place.db.begin().await.expect("begin");
    for wrong in [
        Reported { owner: third(), ..right.clone() },
        Reported { attempt: 2, ..right.clone() },
        Reported { queue_id: QueueId(9_999), ..right.clone() },
    ] {
        assert!(!hosted::report(&mut tx, &wrong, later(40)).await.expect("report"), "{wrong:?}");
    }
    assert!(hosted::report(&mut tx, &right, later(40)).await.expect("report"));
    assert!(hosted::report(&mut tx, &right, later(41)).await.expect("once more"));
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(hosted::reports_for(&mut tx, &other()).await.expect("reports").read, []);
    assert_eq!(
        hosted::reports_for(&mut tx, &me()).await.expect("reports").read,
        std::slice::from_ref(&right)
    );
    assert_eq!(
        hosted::reports_of(&mut tx, row.batch_id).await.expect("reports").read,
        std::slice::from_ref(&right)
    );
    let there = hosted::given(&mut tx, &other()).await.expect("given");
    assert!(there[0].is_reported);
    hosted::forget(&mut tx, later(40)).await.expect("forget");
    assert_eq!(hosted::reports_of(&mut tx, row.batch_id).await.expect("reports").read.len(), 1);
    hosted::remove(&mut tx, row.queue_id, 2).await.expect("remove");
    assert_eq!(hosted::reports_of(&mut tx, row.batch_id).await.expect("reports").read.len(), 1);
    hosted::remove(&mut tx, row.queue_id, 1).await.expect("remove");
    assert_eq!(hosted::reports_of(&mut tx, row.batch_id).await.expect("reports").read, []);
    // What was settled otherwise is not reported any more, unless its body did it.
    let to = QueueStatus::Success;
    queue::transition(&mut tx, &[row.queue_id.0], QueueStatus::Running, to, later(50))
        .await
        .expect("settled");
    assert!(!hosted::report(&mut tx, &right, later(51)).await.expect("report"));
    let outcome =
        AttemptOutcome { is_recorded: true, ..AttemptOutcome::success(Default::default()) };
    let recorded = Reported { outcome, ..right };
    assert!(hosted::report(&mut tx, &recorded, later(51)).await.expect("report"));
    hosted::remove_all(&mut tx, &[row.batch_id]).await.expect("remove");
    assert_eq!(hosted::reports_of(&mut tx, row.batch_id).await.expect("reports").read, []);
}

/// What a process runs of its own batch is not work for others.
pub(super) async fn ones_own_rows_are_not_given(place: Place) {
    let (_, row) = running(&place).await;
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(row.taken, Acknowledgement::Yes);
    assert_eq!(hosted::given(&mut tx, &me()).await.expect("given"), []);
    // Unless the batch is nobody's now, or another's.
    assert!(claim::give_back(&mut tx, row.batch_id, &me(), later(10)).await.expect("give back"));
    assert_eq!(hosted::given(&mut tx, &me()).await.expect("given").len(), 1);
    let seen = batch::get(&mut tx, row.batch_id).await.expect("batch");
    let to = BatchStatus::Running;
    assert!(batch::take_over(&mut tx, &seen, &other(), to, later(20)).await.expect("take over"));
    assert_eq!(hosted::given(&mut tx, &me()).await.expect("given").len(), 1);
    assert_eq!(hosted::given(&mut tx, &other()).await.expect("given"), []);
}

/// A body may go on where it runs when its batch is taken from its node; the node finds its row until it ends.
pub(super) async fn what_goes_on_elsewhere_is_found_until_it_ends(place: Place) {
    let (id, row) = running(&place).await;
    let mut tx = place.db.begin().await.expect("begin");
    let seen = batch::get(&mut tx, id).await.expect("batch");
    let to = BatchStatus::Running;
    assert!(batch::take_over(&mut tx, &seen, &other(), to, later(20)).await.expect("take over"));
    hosted::note_dispatcher(&mut tx, id, Some(&me())).await.expect("its own dispatcher's");
    assert_eq!(host(&mut tx, row.queue_id).await, None);
    hosted::note_dispatcher(&mut tx, id, Some(&other())).await.expect("note");
    let found = async |tx: &mut Tx| -> Vec<QueueStatus> {
        hosted::given(tx, &me()).await.expect("given").iter().map(|g| g.status).collect()
    };
    assert_eq!(found(&mut tx).await, [QueueStatus::Running]);
    let end = |from, to| SettledRow { from, to, ..ended(row.queue_id) };
    let killing = end(QueueStatus::Running, QueueStatus::Killing);
    settle(&mut tx, &killing, later(30)).await.expect("stopping");
    assert_eq!(found(&mut tx).await, [QueueStatus::Killing]);
    let retry = end(QueueStatus::Killing, QueueStatus::Pending);
    settle(&mut tx, &retry, later(40)).await.expect("ended");
    assert_eq!(found(&mut tx).await, []);
    // It ran there once; now it runs where its batch is, and nobody looks for it.
    assert_eq!(host(&mut tx, row.queue_id).await, None);
    queue::claim(&mut tx, &[row.queue_id.0], QueueStatus::Pending, &other(), later(50))
        .await
        .expect("claim");
    assert_eq!(host(&mut tx, row.queue_id).await, None);
}

/// What a row says of where it is hosted.
async fn host(tx: &mut Tx, row: QueueId) -> Option<String> {
    let sql = "SELECT hosted_by FROM job_queue WHERE queue_id = ?";
    let found = tx.fetch_optional(sql, &[row.0.into()]).await.expect("row").expect("row");
    found.opt_text("hosted_by").expect("text")
}

pub(super) async fn what_is_adopted_is_hosted_no_more(place: Place) {
    let row = given(&place).await;
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(host(&mut tx, row.queue_id).await, Some(other().0));
    let adopted = Adopted {
        queue_id: row.queue_id,
        attempt: 1,
        from: QueueStatus::Running,
        owner: Some(other()),
        crash_count: 1,
    };
    queue::adopt(&mut tx, &adopted, &me(), later(80)).await.expect("adopt");
    assert_eq!(host(&mut tx, row.queue_id).await, None);
    assert_eq!(hosted::given(&mut tx, &other()).await.expect("given"), []);
}

pub(super) async fn nodes_say_what_they_offer_and_how_they_stand(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(node::lives_of(&mut tx, "账务-1", T0).await.expect("lives").0, 1);
    let mut all = Vec::new();
    for (id, roles, until) in [
        (me(), vec![NodeRole::Scheduler, NodeRole::Worker], later(15_000)),
        (other(), vec![NodeRole::Worker], later(1)),
        (third(), vec![], later(15_000)),
    ] {
        let node = NodeRow { node_id: id.clone(), host: "h".into(), pid: 7, lease_until: until };
        let (incarnation, _) = node::lives_of(&mut tx, "账务-1", T0).await.expect("lives");
        let offer = Offer {
            name: "账务-1".into(),
            incarnation,
            roles: roles.into_iter().collect(),
            labels: vec!["etl".into(), "大机".into()],
            max_parallel: 8,
            address: Some("http://h:1".into()),
        };
        node::register(&mut tx, &node, &offer, "0.1.0", T0).await.expect("register");
        all.push((node, offer));
    }
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let (next, namesakes) = node::lives_of(&mut tx, "账务-1", later(1)).await.expect("lives");
    // The one that is dead is none, nor the one that is offered nothing.
    assert_eq!((next, namesakes), (4, vec![all[0].0.clone()]));
    let said = HeartbeatReport { running: 3, skew_ms: -250, stay: Stay::Stays };
    assert!(!node::store_heartbeat(&mut tx, &me(), said, later(2)).await.expect("say"));
    let members = node::members(&mut tx, later(1)).await.expect("members");
    let mine = members.iter().find(|m| m.node.node_id == me()).expect("mine");
    assert_eq!((members.len(), &mine.node, &mine.offer), (2, &all[0].0, &all[0].1));
    assert_eq!((mine.said, mine.counted_at, mine.is_draining), (said, Some(later(2)), false));
    // A mark of an operator stays, whatever the node says; one that leaves marks itself.
    assert!(node::set_draining(&mut tx, &me(), Stay::Leaves).await.expect("mark"));
    assert!(node::store_heartbeat(&mut tx, &me(), said, later(3)).await.expect("say"));
    assert!(node::set_draining(&mut tx, &me(), Stay::Stays).await.expect("mark"));
    assert!(!node::store_heartbeat(&mut tx, &me(), said, later(4)).await.expect("say"));
    let leaves = HeartbeatReport { stay: Stay::Leaves, ..said };
    assert!(node::store_heartbeat(&mut tx, &me(), leaves, later(5)).await.expect("say"));
    let gone = NodeId("gone".into());
    assert!(!node::set_draining(&mut tx, &gone, Stay::Leaves).await.expect("nobody"));
}
