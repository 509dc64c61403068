//! `store::audit_seal` and `engine::operate::audit_chain`.

use super::{Place, T0, later};
use procession::domain::access::audit_chain::AuditHead;
use procession::domain::time::Millis;
use procession::engine::clock::Clock;
use procession::engine::operate::audit_chain::{ChainBreak, ChainReport, seal_acts, verify};
use procession::store::Db;
use procession::store::audit::{AuditFilter, Operator, list_records, record_one};
use serde_json::json;

/// Two hours after the acts: nothing can still come before them.
const AFTER_ACTS: i64 = 7_200_000;

async fn act(db: &Db, at: Millis) {
    let by = Operator::new("安娜".to_owned(), "10.0.0.7".to_owned());
    let mut tx = db.begin().await.expect("begin");
    record_one(&mut tx, &by, "user add", json!({"user": "bob", "n": 1}), at).await.expect("act");
    tx.commit().await.expect("commit");
}

async fn seal(db: &Db, at: Millis) -> usize {
    seal_acts(db, &Clock::set_by_hand(at)).await.expect("sealed")
}

async fn look(db: &Db, kept: &[AuditHead]) -> ChainReport {
    verify(db, kept).await.expect("looked at")
}

async fn broken(place: &Place) -> ChainBreak {
    let report = look(&place.db, &[]).await;
    report.first_break.clone().unwrap_or_else(|| panic!("{report:?}"))
}

/// An act with a key of its own, as somebody writes it by hand, or as a later commit of an earlier key.
async fn insert(place: &Place, audit_id: i64, at: &str) {
    let sql = format!(
        "INSERT INTO audit_log (audit_id, actor, host, action, create_time) \
         VALUES ({audit_id}, 'a', 'h', 'x', '{at}')"
    );
    place.by_hand(&sql).await;
}

pub(super) async fn acts_are_chained_a_moment_after_their_commit(place: Place) {
    assert_eq!(look(&place.db, &[]).await.head, AuditHead::EMPTY);
    for ms in 0..3 {
        act(&place.db, later(ms)).await;
    }
    assert_eq!(look(&place.db, &[]).await.waiting, 3, "not sealed yet");
    assert_eq!(seal(&place.db, later(10)).await, 3);
    let first = look(&place.db, &[]).await;
    assert_eq!((first.verified, first.waiting, first.head.seal_no), (3, 0, 3));
    assert_eq!(first.first_break, None);
    act(&place.db, later(20)).await;
    let mut tx = place.db.begin_read().await.expect("read");
    let all = list_records(&mut tx, &AuditFilter::default(), 10).await.expect("acts");
    let seals: Vec<Option<i64>> = all.iter().map(|a| a.seal.map(|seal| seal.seal_no)).collect();
    assert_eq!(seals, [None, Some(3), Some(2), Some(1)], "the newest first");
    drop(tx);
    assert_eq!(seal(&place.db, later(30)).await, 1);
    assert_eq!(seal(&place.db, later(30)).await, 0, "once");
    let second = look(&place.db, &[first.head]).await;
    assert_eq!((second.head.seal_no, second.first_break), (4, None));
}

/// Keys are given before the commit: one that comes later than higher ones is chained behind them.
pub(super) async fn an_act_that_commits_late_is_chained_late(place: Place) {
    insert(&place, 100, "2024-07-01 00:00:00.000").await;
    let at = Millis::parse("2024-07-01T00:10:00Z").expect("a time");
    assert_eq!(seal(&place.db, at).await, 1);
    insert(&place, 50, "2024-07-01 00:00:01.000").await;
    assert_eq!(seal(&place.db, at).await, 1);
    let report = look(&place.db, &[]).await;
    assert_eq!((report.verified, report.waiting, report.first_break), (2, 0, None));
    // Two hours later none can come: one that is there all the same was written by hand.
    seal(&place.db, at.plus_ms(AFTER_ACTS)).await;
    insert(&place, 60, "2024-07-01 00:00:02.000").await;
    assert_eq!(seal(&place.db, at.plus_ms(AFTER_ACTS)).await, 0);
    assert_eq!(broken(&place).await, ChainBreak::ActAdded(60));
}

pub(super) async fn every_change_by_hand_is_found(place: Place) {
    for audit_id in 1..=5 {
        insert(&place, audit_id, "2024-07-01 00:00:00.000").await;
    }
    seal(&place.db, Millis::parse("2024-07-01T03:00:00Z").expect("a time")).await;
    let kept = look(&place.db, &[]).await.head;
    assert_eq!(kept.seal_no, 5);
    for (change, back) in [
        ("actor = 'b'", "actor = 'a'"),
        ("reason = ''", "reason = NULL"),
        ("detail = '{}'", "detail = NULL"),
    ] {
        place.by_hand(&format!("UPDATE audit_log SET {change} WHERE audit_id = 2")).await;
        let wanted = ChainBreak::ActChanged { seal_no: 2, audit_id: 2 };
        assert_eq!(broken(&place).await, wanted, "{change}");
        place.by_hand(&format!("UPDATE audit_log SET {back} WHERE audit_id = 2")).await;
    }
    assert_eq!(look(&place.db, &[kept]).await.first_break, None);
    place.by_hand("UPDATE audit_seal SET audit_id = 40 WHERE seal_no = 4").await;
    assert_eq!(broken(&place).await, ChainBreak::Link { seal_no: 4, audit_id: 40 });
    place.by_hand("UPDATE audit_seal SET audit_id = 4 WHERE seal_no = 4").await;
    // The end is cut off: the head row says so, and when that was changed too, a head that was kept elsewhere.
    place.by_hand("DELETE FROM audit_log WHERE audit_id = 5").await;
    place.by_hand("DELETE FROM audit_seal WHERE seal_no = 5").await;
    assert!(matches!(broken(&place).await, ChainBreak::End { .. }));
    let found = look(&place.db, &[]).await.head;
    let sql = format!("UPDATE audit_head SET seal_no = 4, chain_hash = '{}'", found.hash);
    place.by_hand(&sql).await;
    assert_eq!(look(&place.db, &[]).await.first_break, None);
    let wanted = Some(ChainBreak::KeptHead(kept));
    assert_eq!(look(&place.db, &[kept]).await.first_break, wanted);
    place.by_hand("DELETE FROM audit_log WHERE audit_id = 2").await;
    assert!(matches!(broken(&place).await, ChainBreak::ActMissing { seal_no: 2, audit_id: 2, .. }));
    place.by_hand("DELETE FROM audit_seal WHERE seal_no = 2").await;
    assert_eq!(broken(&place).await, ChainBreak::SealMissing(2));
    place.by_hand("DELETE FROM audit_seal").await;
    place.by_hand("DELETE FROM audit_head").await;
    assert_eq!(broken(&place).await, ChainBreak::HeadMissing);
}

pub(super) async fn several_processes_make_one_chain(place: Place) {
    let mut tasks = Vec::new();
    for task in 0..4 {
        let db = place.open().await;
        tasks.push(tokio::spawn(async move {
            for n in 0..20 {
                act(&db, T0.plus_ms(task * 100 + n)).await;
                seal(&db, T0.plus_ms(1_000)).await;
            }
            db.close().await;
        }));
    }
    for task in tasks {
        task.await.expect("a process");
    }
    let report = look(&place.db, &[]).await;
    assert_eq!((report.verified, report.waiting, report.head.seal_no), (80, 0, 80));
    assert_eq!(report.first_break, None);
}
