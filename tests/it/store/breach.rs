//! `store::breach`: jobs that committed by themselves.

use super::{Place, later};
use procession::domain::id::{BatchNo, GroupCode, JobCode, JobType, QueueId};
use procession::domain::job::job_key::JobKey;
use procession::domain::job::{Definition, Group, JobDef};
use procession::domain::source::tx_class::TxClass;
use procession::store::breach::Breach;
use procession::store::{self, breach};

fn key(text: &str) -> JobKey {
    JobKey { group: GroupCode::parse("g").expect("group"), code: code(text) }
}

fn mark(job: &str, queue_id: i64, attempt: u32, said: &str, at: i64) -> Breach {
    let batch_no = BatchNo::parse("202407").expect("no");
    let (queue_id, said) = (QueueId(queue_id), said.to_owned());
    Breach { job: key(job), batch_no, queue_id, attempt, said, at: later(at) }
}

fn code(text: &str) -> JobCode {
    JobCode::parse(text).expect("code")
}

fn definition(jobs: &[(&str, TxClass)]) -> Definition {
    let group = GroupCode::parse("g").expect("group");
    let noop = JobType::parse("SQL").expect("type");
    let job = |(name, tx): &(&str, TxClass)| JobDef {
        tx: *tx,
        ..JobDef::with_defaults(code(name), group.clone(), noop.clone())
    };
    Definition {
        groups: vec![Group::with_defaults(group.clone())],
        jobs: jobs.iter().map(job).collect(),
        ..Definition::default()
    }
}

async fn marked(place: &Place) -> Vec<String> {
    let mut tx = place.db.begin_read().await.expect("read");
    let all = breach::list_marks(&mut tx).await.expect("marks");
    all.into_keys().map(|job| job.to_string()).collect()
}

async fn apply(place: &Place, wanted: &Definition) {
    let mut tx = place.db.begin().await.expect("begin");
    let stored = store::job::definition(&mut tx).await.expect("stored");
    store::job::apply(&mut tx, &stored, wanted, later(9)).await.expect("apply");
    tx.commit().await.expect("commit");
}

pub(super) async fn a_mark_is_kept_replaced_and_taken_away(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let mut theirs = mark("A", 4, 1, "theirs", 1);
    theirs.job.group = GroupCode::parse("h").expect("group");
    for one in [
        mark("A", 7, 1, "the first", 1),
        mark("A", 8, 2, "又一次", 2),
        mark("A", 8, 2, "又一次", 2),
        mark("B", 9, 1, "x", 3),
        theirs.clone(),
    ] {
        breach::mark_job(&mut tx, &one).await.expect("mark");
    }
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let found = breach::of_job(&mut tx, &key("A")).await.expect("read").expect("marked");
    assert_eq!((found.queue_id, found.attempt, found.said.as_str()), (QueueId(8), 2, "又一次"));
    assert_eq!((found.batch_no.as_str(), found.at), ("202407", later(2)));
    let defs = definition(&[("A", TxClass::Ledger), ("B", TxClass::None), ("C", TxClass::Same)]);
    let of_jobs = breach::of_jobs(&mut tx, &defs).await.expect("read");
    let codes: Vec<&str> = of_jobs.iter().map(|b| b.job.code.as_str()).collect();
    assert_eq!(codes, ["A"], "B is declared for what it does");
    assert!(breach::clear(&mut tx, &key("A")).await.expect("clear"));
    assert!(!breach::clear(&mut tx, &key("A")).await.expect("clear"), "it is gone");
    assert_eq!(breach::of_job(&mut tx, &key("A")).await.expect("read"), None);
    assert_eq!(breach::of_job(&mut tx, &theirs.job).await.expect("read"), Some(theirs));
}

pub(super) async fn applying_another_class_or_removing_the_job_ends_a_mark(place: Place) {
    use TxClass::{Ledger, None, Same};
    apply(&place, &definition(&[("A", Ledger), ("B", Ledger), ("C", Ledger), ("D", Same)])).await;
    let mut tx = place.db.begin().await.expect("begin");
    for (at, job) in ["A", "B", "C", "D", "ELSEWHERE"].into_iter().enumerate() {
        breach::mark_job(&mut tx, &mark(job, at as i64 + 1, 1, "x", 1)).await.expect("mark");
    }
    tx.commit().await.expect("commit");
    // A as it was, B given up, C removed, D of another class that is not kept either.
    apply(&place, &definition(&[("A", Ledger), ("B", None), ("D", Ledger)])).await;
    assert_eq!(marked(&place).await, ["g.A", "g.D", "g.ELSEWHERE"]);
}
