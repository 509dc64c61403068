//! `store::outbox`, `store::node` and `store::meta`.

use super::{Place, T0, later, me, other, running};
use procession::domain::id::NodeId;
use procession::domain::notice::Notice;
use procession::domain::time::Millis;
use procession::store::node::{self, Node};
use procession::store::{self, outbox};

pub(super) async fn mails_wait_in_the_outbox(place: Place) {
    let (batch, row) = running(&place).await;
    let mail = |to: &str| Notice {
        recipient: to.to_owned(),
        subject: "[Procession] 总账 failed in batch 202407".to_owned(),
        body: "作业执行失败 🧾\n".repeat(2_300),
        kind: "failed",
        event_key: None,
    };
    let mails = [mail("gl@bank.example"), mail("ops@bank.example")];
    let mut tx = place.db.begin().await.expect("begin");
    outbox::enqueue(&mut tx, batch, row.queue_id, &[], T0).await.expect("none");
    outbox::enqueue(&mut tx, batch, row.queue_id, &mails, later(3)).await.expect("mails");
    tx.commit().await.expect("commit");
    let mut tx = place.db.read().await.expect("read");
    let rows =
        tx.fetch_all("SELECT * FROM email_notifications ORDER BY id", &[]).await.expect("rows");
    assert_eq!(rows.len(), 2);
    for (row_of, mail) in rows.iter().zip(&mails) {
        let text = |column: &str| row_of.text(column).expect("text");
        let int = |column: &str| row_of.int(column).expect("int");
        assert_eq!(text("recipient_email"), mail.recipient);
        assert_eq!(text("subject"), mail.subject);
        assert_eq!(text("body"), mail.body);
        assert_eq!((text("status"), text("type")), ("pending".to_owned(), "failed".to_owned()));
        assert_eq!((int("retry_count"), int("is_system")), (0, 1));
        assert_eq!((int("queue_id"), int("batch_id")), (row.queue_id.0, batch.0));
        assert_eq!(row_of.opt_time("send_time").expect("time"), None);
        assert_eq!(row_of.opt_text("fail_reason").expect("text"), None);
        for column in ["created_at", "updated_at"] {
            assert_eq!(Millis::from(row_of.time(column).expect("time")), later(3));
        }
    }
}

pub(super) async fn a_lease_is_renewed_and_found(place: Place) {
    let mine = Node {
        node_id: me(),
        host: "会计-01.bank.example".to_owned(),
        pid: 4_194_304,
        lease_until: later(15_000),
    };
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(node::find(&mut tx, &me()).await.expect("find"), None);
    assert!(!node::renew(&mut tx, &me(), T0, later(1)).await.expect("renew"));
    node::register(&mut tx, &mine, "0.1.0", T0).await.expect("register");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(node::find(&mut tx, &me()).await.expect("find"), Some(mine.clone()));
    assert_eq!(node::find(&mut tx, &other()).await.expect("find"), None);
    assert!(node::renew(&mut tx, &me(), later(5_000), later(20_001)).await.expect("renew"));
    // The same once more finds the row too, though it changes nothing.
    assert!(node::renew(&mut tx, &me(), later(5_000), later(20_001)).await.expect("renew"));
    let renewed = Node { lease_until: later(20_001), ..mine.clone() };
    assert_eq!(node::find(&mut tx, &me()).await.expect("find"), Some(renewed));
    let error = node::register(&mut tx, &mine, "0.1.0", T0).await.expect_err("one life, one row");
    assert!(store::is_taken(&error), "{error:#}");
}

pub(super) async fn processes_of_long_ago_are_forgotten(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    for (id, until) in [("old", T0), ("edge", later(1_000)), ("new", later(2_000))] {
        let node_id = NodeId(id.to_owned());
        let node = Node { node_id, host: "h".to_owned(), pid: 1, lease_until: until };
        node::register(&mut tx, &node, "v", T0).await.expect("register");
    }
    node::forget(&mut tx, later(1_000)).await.expect("forget");
    let rows = tx.fetch_all("SELECT node_id FROM cluster_node ORDER BY node_id", &[]).await;
    let left: Vec<String> =
        rows.expect("rows").iter().map(|row| row.text("node_id").expect("text")).collect();
    assert_eq!(left, ["edge", "new"]);
}

pub(super) async fn facts_are_kept_from_the_first_call_on(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let first = store::meta(&mut tx, "installation", "first 🧾").await.expect("meta");
    let second = store::meta(&mut tx, "installation", "second").await.expect("meta");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let third = store::meta(&mut tx, "installation", "third").await.expect("meta");
    let elsewhere = store::meta(&mut tx, "Installation", "other").await.expect("meta");
    assert_eq!(
        [&*first, &*second, &*third, &*elsewhere],
        ["first 🧾", "first 🧾", "first 🧾", "other"]
    );
}
