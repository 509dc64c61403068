//! `store::node` and `store::meta_or_insert`.

use super::{Place, T0, later, me, other};
use procession::domain::id::NodeId;
use procession::store;
use procession::store::node::{self, NodeRow, Offer};

pub(super) async fn a_lease_is_renewed_and_found(place: Place) {
    let mine = NodeRow {
        node_id: me(),
        host: "会计-01.bank.example".to_owned(),
        pid: 4_194_304,
        lease_until: later(15_000),
    };
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(node::find_node(&mut tx, &me()).await.expect("find"), None);
    assert!(!node::renew(&mut tx, &me(), T0, later(1)).await.expect("renew"));
    node::register(&mut tx, &mine, &Offer::default(), "0.1.0", T0).await.expect("register");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(node::find_node(&mut tx, &me()).await.expect("find"), Some(mine.clone()));
    assert_eq!(node::find_node(&mut tx, &other()).await.expect("find"), None);
    assert!(node::renew(&mut tx, &me(), later(5_000), later(20_001)).await.expect("renew"));
    // The same once more finds the row too, though it changes nothing.
    assert!(node::renew(&mut tx, &me(), later(5_000), later(20_001)).await.expect("renew"));
    let renewed = NodeRow { lease_until: later(20_001), ..mine.clone() };
    assert_eq!(node::find_node(&mut tx, &me()).await.expect("find"), Some(renewed));
    let error = node::register(&mut tx, &mine, &Offer::default(), "0.1.0", T0)
        .await
        .expect_err("one life, one row");
    assert!(store::is_taken(&error), "{error:#}");
}

pub(super) async fn processes_of_long_ago_are_forgotten(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    for (id, until) in [("old", T0), ("edge", later(1_000)), ("new", later(2_000))] {
        let node_id = NodeId(id.to_owned());
        let node = NodeRow { node_id, host: "h".to_owned(), pid: 1, lease_until: until };
        node::register(&mut tx, &node, &Offer::default(), "v", T0).await.expect("register");
    }
    node::forget(&mut tx, later(1_000)).await.expect("forget");
    let rows = tx.fetch_all("SELECT node_id FROM cluster_node ORDER BY node_id", &[]).await;
    let left: Vec<String> =
        rows.expect("rows").iter().map(|row| row.get_text("node_id").expect("text")).collect();
    assert_eq!(left, ["edge", "new"]);
}

pub(super) async fn facts_are_kept_from_the_first_call_on(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let first = store::meta_or_insert(&mut tx, "installation", "first 🧾").await.expect("meta");
    let second = store::meta_or_insert(&mut tx, "installation", "second").await.expect("meta");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let third = store::meta_or_insert(&mut tx, "installation", "third").await.expect("meta");
    let elsewhere = store::meta_or_insert(&mut tx, "Installation", "other").await.expect("meta");
    assert_eq!(
        [&*first, &*second, &*third, &*elsewhere],
        ["first 🧾", "first 🧾", "first 🧾", "other"]
    );
}
