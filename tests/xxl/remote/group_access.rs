//! Executors that belong to groups: a job of another group reaches none of them, also when that was said after its batch
//! had been opened. What an executor runs already goes on.

use super::hall::Hall;
use super::on_each;
use procession::domain::access::group_access::GroupAccess;
use procession::domain::batch::BatchStatus;
use procession::domain::executor::{Addressing, GluePolicy};
use procession::domain::id::GroupCode;
use procession::store;

on_each! {
    executors_of_another_group_are_not_asked
    a_run_that_was_asked_for_goes_on_when_its_executors_are_closed
    who_may_use_executors_is_read_with_the_definition
}

fn group(code: &str) -> GroupCode {
    GroupCode::parse(code).expect("a code")
}

async fn narrow(hall: &Hall, access: GroupAccess) {
    let addresses = hall.programs.iter().map(|program| program.url()).collect();
    hall.group_for(Addressing::Fixed(addresses), GluePolicy::Refused, access).await;
}

async fn executors_of_another_group_are_not_asked(mut hall: Hall) {
    narrow(&hall, GroupAccess { owner_group: Some(group("wages")), groups: None }).await;
    let wages = hall.with_second_group().await;
    let id = hall.open("202407").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "FAILED");
    assert_eq!(
        said,
        "no executor was asked: group pay may not use executor group pay-executor, which is for wages (owner); ask \
         an administrator of all groups to let the group use it (procession executor-group set NAME --group GROUP, \
         or the page Executors)"
    );
    assert_eq!(hall.runs().await, ["1 DONE REFUSED"]);
    assert!(hall.programs[0].called().is_empty(), "it was asked something");
    // Its owner's jobs of the same code are run by them.
    let id = hall.open_in("202407", wages).await;
    hall.comes_to(&["1 DONE REFUSED", "2 RUNNING"]).await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    // A list lets the other group in.
    let groups = Some(vec![group("pay")]);
    narrow(&hall, GroupAccess { owner_group: Some(group("wages")), groups }).await;
    let id = hall.open("202408").await;
    hall.comes_to(&["1 DONE REFUSED", "2 DONE 200", "3 RUNNING"]).await;
    hall.tell(3, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
}

async fn a_run_that_was_asked_for_goes_on_when_its_executors_are_closed(mut hall: Hall) {
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    narrow(&hall, GroupAccess { owner_group: None, groups: Some(Vec::new()) }).await;
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    let id = hall.open("202408").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    assert!(hall.pay(id).await.1.contains("which is for no group"), "{:?}", hall.pay(id).await);
}

async fn who_may_use_executors_is_read_with_the_definition(hall: Hall) {
    let access = GroupAccess { owner_group: Some(group("wages")), groups: Some(vec![group("x")]) };
    for wanted in [GroupAccess::default(), access] {
        narrow(&hall, wanted.clone()).await;
        let mut tx = hall.db.begin_read().await.expect("read");
        let stored = store::job::definition(&mut tx).await.expect("stored");
        let installation = store::shared::installation(&mut tx).await.expect("installation");
        assert_eq!(stored.executor_groups["pay-executor"], wanted);
        assert_eq!(installation.executor_groups, stored.executor_groups);
    }
}
