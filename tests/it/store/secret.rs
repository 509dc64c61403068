//! `store::secret`: sealed texts under names.

use super::{Place, later};
use procession::domain::access::group_access::GroupAccess;
use procession::domain::id::GroupCode;
use procession::store::epoch::{self, Epoch};
use procession::store::sealed_text::{self, SealedRow};
use procession::store::secret::{self, SealedSecret, StoredSecretInfo};

pub(super) async fn secrets_are_put_listed_and_removed(place: Place) {
    let long = format!("v1:{}", "A1+/".repeat(4_000));
    let mut tx = place.db.begin().await.expect("begin");
    let sealed = |text: &str, access| SealedSecret { sealed: text.to_owned(), access };
    let for_all = |text: &str| sealed(text, GroupAccess::default());
    let group = |code: &str| GroupCode::parse(code).expect("a code");
    let for_fin = GroupAccess { owner_group: Some(group("fin")), groups: Some(vec![group("gl")]) };
    let new = || sealed("v1:new", for_fin.clone());
    secret::put_secret(&mut tx, "PG", &for_all("v1:old"), "ann", later(1)).await.expect("put");
    secret::put_secret(&mut tx, "LEDGER", &for_all(&long), "ann", later(2)).await.expect("put");
    secret::put_secret(&mut tx, "PG", &new(), "bob", later(3)).await.expect("put again");
    // The same again changes no row on MySQL, and is no reason to insert it twice.
    secret::put_secret(&mut tx, "PG", &new(), "bob", later(3)).await.expect("put the same");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let stored = |name: &str, by: &str, at, access| StoredSecretInfo {
        name: name.into(),
        by: by.into(),
        at,
        access,
    };
    let all = secret::list_secrets(&mut tx).await.expect("list");
    let everybody = GroupAccess::default();
    let expected = [
        stored("LEDGER", "ann", later(2), everybody.clone()),
        stored("PG", "bob", later(3), for_fin.clone()),
    ];
    assert_eq!(all, expected);
    let found = secret::find_secret(&mut tx, "PG").await.expect("read").expect("PG");
    assert_eq!((found.sealed.as_str(), &found.access), ("v1:new", &for_fin));
    // A new password opens nothing that was shut.
    let kept = secret::access_to_store(&mut tx, "PG", None).await.expect("read");
    assert_eq!(kept, for_fin);
    let opened = secret::access_to_store(&mut tx, "PG", Some(everybody.clone())).await;
    assert_eq!(opened.expect("read"), everybody);
    let found = secret::find_secret(&mut tx, "LEDGER").await.expect("read").expect("LEDGER");
    assert_eq!(found.sealed, long);
    assert!(secret::find_secret(&mut tx, "NONE").await.expect("read").is_none());
    assert!(secret::remove(&mut tx, "PG").await.expect("remove"));
    assert!(!secret::remove(&mut tx, "PG").await.expect("remove"), "it is gone");
    assert_eq!(secret::list_secrets(&mut tx).await.expect("list").len(), 1);
}

/// Schedules keep the definition in memory until this count changes.
pub(super) async fn another_rule_of_a_secret_counts_as_a_change_of_the_definition(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let only = |code: &str| GroupAccess {
        owner_group: Some(GroupCode::parse(code).expect("a code")),
        groups: None,
    };
    let sealed = |text: &str, access| SealedSecret { sealed: text.to_owned(), access };
    let mut seen = epoch::read_epoch(&mut tx, Epoch::Definition).await.expect("read");
    for (text, access, counts) in [
        ("v1:a", GroupAccess::default(), true),
        ("v1:b", GroupAccess::default(), false),
        ("v1:b", only("fin"), true),
        ("v1:c", only("fin"), false),
        ("v1:c", only("risk"), true),
    ] {
        secret::put_secret(&mut tx, "PG", &sealed(text, access), "ann", later(1))
            .await
            .expect("put");
        let now = epoch::read_epoch(&mut tx, Epoch::Definition).await.expect("read");
        assert_eq!(now > seen, counts, "{text}");
        seen = now;
    }
    secret::remove(&mut tx, "PG").await.expect("remove");
    assert!(epoch::read_epoch(&mut tx, Epoch::Definition).await.expect("read") > seen);
}

pub(super) async fn a_sealed_text_is_replaced_only_where_it_still_stands(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let sealed =
        |text: &str| SealedSecret { sealed: text.to_owned(), access: GroupAccess::default() };
    secret::put_secret(&mut tx, "PG", &sealed("v1:old"), "ann", later(1)).await.expect("put");
    let all = sealed_text::replaceable(&mut tx).await.expect("read");
    let [old] = &all[..] else { panic!("one text, and there are {all:?}") };
    assert_eq!(old.row, SealedRow::StoredSecret("PG".to_owned()));
    assert!(sealed_text::replace(&mut tx, old, "v1:new").await.expect("replace"));
    // Another process has stored a new value meanwhile: it stays.
    assert!(!sealed_text::replace(&mut tx, old, "v1:newer").await.expect("replace"));
    let found = secret::find_secret(&mut tx, "PG").await.expect("read").expect("PG");
    assert_eq!(found.sealed, "v1:new");
    let listed = secret::list_secrets(&mut tx).await.expect("list");
    assert_eq!(
        (listed[0].by.as_str(), listed[0].at),
        ("ann", later(1)),
        "the value is the old one"
    );
}
