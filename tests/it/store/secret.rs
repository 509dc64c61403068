//! `store::secret`: sealed texts under names.

use super::{Place, later};
use procession::store::secret::{self, Stored};

pub(super) async fn secrets_are_put_listed_and_removed(place: Place) {
    let long = format!("v1:{}", "A1+/".repeat(4_000));
    let mut tx = place.db.begin().await.expect("begin");
    secret::put(&mut tx, "PG", "v1:old", "ann", later(1)).await.expect("put");
    secret::put(&mut tx, "LEDGER", &long, "ann", later(2)).await.expect("put");
    secret::put(&mut tx, "PG", "v1:new", "bob", later(3)).await.expect("put again");
    // The same again changes no row on MySQL, and is no reason to insert it twice.
    secret::put(&mut tx, "PG", "v1:new", "bob", later(3)).await.expect("put the same");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let stored = |name: &str, by: &str, at| Stored { name: name.into(), by: by.into(), at };
    let all = secret::list(&mut tx).await.expect("list");
    assert_eq!(all, [stored("LEDGER", "ann", later(2)), stored("PG", "bob", later(3))]);
    assert_eq!(secret::sealed(&mut tx, "PG").await.expect("read").as_deref(), Some("v1:new"));
    assert_eq!(secret::sealed(&mut tx, "LEDGER").await.expect("read"), Some(long));
    assert_eq!(secret::sealed(&mut tx, "NONE").await.expect("read"), None);
    assert!(secret::remove(&mut tx, "PG").await.expect("remove"));
    assert!(!secret::remove(&mut tx, "PG").await.expect("remove"), "it is gone");
    assert_eq!(secret::list(&mut tx).await.expect("list").len(), 1);
}
