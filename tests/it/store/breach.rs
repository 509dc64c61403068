//! `store::breach`: jobs that committed by themselves.

use super::{Place, later};
use procession::domain::id::{BatchNo, GroupCode, JobCode, JobType, QueueId};
use procession::domain::job::{Definition, Group, JobDef};
use procession::domain::tx_class::TxClass;
use procession::store::{self, breach};

fn code(text: &str) -> JobCode {
    JobCode::parse(text).expect("code")
}

fn definition(jobs: &[(&str, TxClass)]) -> Definition {
    let group = GroupCode::parse("g").expect("group");
    let noop = JobType::parse("SQL").expect("type");
    let job = |(name, tx): &(&str, TxClass)| JobDef {
        tx: *tx,
        ..JobDef::bare(code(name), group.clone(), noop.clone())
    };
    Definition {
        groups: vec![Group::bare(group.clone())],
        jobs: jobs.iter().map(job).collect(),
        ..Definition::default()
    }
}

async fn marked(place: &Place) -> Vec<String> {
    let mut tx = place.db.read().await.expect("read");
    let all = breach::all(&mut tx).await.expect("marks");
    all.into_keys().map(|job| job.to_string()).collect()
}

async fn apply(place: &Place, wanted: &Definition) {
    let mut tx = place.db.begin().await.expect("begin");
    let stored = store::job::definition(&mut tx).await.expect("stored");
    store::job::apply(&mut tx, &stored, wanted, later(9)).await.expect("apply");
    tx.commit().await.expect("commit");
}

pub(super) async fn a_mark_is_kept_replaced_and_taken_away(place: Place) {
    let no = BatchNo::parse("202407").expect("no");
    let mut tx = place.db.begin().await.expect("begin");
    let mark = breach::mark;
    mark(&mut tx, &code("A"), &no, QueueId(7), 1, "the first", later(1)).await.expect("mark");
    mark(&mut tx, &code("A"), &no, QueueId(8), 2, "又一次", later(2)).await.expect("again");
    mark(&mut tx, &code("A"), &no, QueueId(8), 2, "又一次", later(2)).await.expect("the same");
    mark(&mut tx, &code("B"), &no, QueueId(9), 1, "x", later(3)).await.expect("another");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let found = breach::of_job(&mut tx, &code("A")).await.expect("read").expect("marked");
    assert_eq!((found.queue_id, found.attempt, found.said.as_str()), (QueueId(8), 2, "又一次"));
    assert_eq!((found.batch_no, found.at), (no, later(2)));
    let defs = definition(&[("A", TxClass::Ledger), ("B", TxClass::None), ("C", TxClass::Same)]);
    let of_jobs = breach::of_jobs(&mut tx, &defs).await.expect("read");
    let codes: Vec<&str> = of_jobs.iter().map(|b| b.job_code.as_str()).collect();
    assert_eq!(codes, ["A"], "B is declared for what it does");
    assert!(breach::clear(&mut tx, &code("A")).await.expect("clear"));
    assert!(!breach::clear(&mut tx, &code("A")).await.expect("clear"), "it is gone");
    assert_eq!(breach::of_job(&mut tx, &code("A")).await.expect("read"), None);
}

pub(super) async fn applying_another_class_or_removing_the_job_ends_a_mark(place: Place) {
    use TxClass::{Ledger, None, Same};
    apply(&place, &definition(&[("A", Ledger), ("B", Ledger), ("C", Ledger), ("D", Same)])).await;
    let no = BatchNo::parse("202407").expect("no");
    let mut tx = place.db.begin().await.expect("begin");
    for (at, job) in ["A", "B", "C", "D", "ELSEWHERE"].into_iter().enumerate() {
        let row = QueueId(at as i64 + 1);
        breach::mark(&mut tx, &code(job), &no, row, 1, "x", later(1)).await.expect("mark");
    }
    tx.commit().await.expect("commit");
    // A as it was, B given up, C removed, D of another class that is not kept either.
    apply(&place, &definition(&[("A", Ledger), ("B", None), ("D", Ledger)])).await;
    assert_eq!(marked(&place).await, ["A", "D", "ELSEWHERE"]);
}
