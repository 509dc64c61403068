//! `store::trigger`, `firing`, `lock`, `event_key`: schedules, what became of their times, and who may
//! write them.

use super::{Place, later};
use procession::domain::id::{NodeId, TriggerCode};
use procession::domain::schedule::firing::{Firing, FiringStatus, NewFiring, Source, TriggerId};
use procession::domain::schedule::trigger::{TriggerDef, TriggerStatus, TriggerWords};
use procession::domain::time::Millis;
use procession::store::firing::{self, SettledFiring};
use procession::store::lock::{self, SCHEDULE_LOCK};
use procession::store::trigger::{self, ScheduleProgress};
use procession::store::{self, Tx, event_key};

fn def(code: &str) -> TriggerDef {
    let json = format!(
        r#"{{"code":"{code}","name":"调度 😀","group":"月末","batch_no":"month(-1)","cron":"0 0 2 1 * ?",
            "time_zone":"Asia/Shanghai","params":{{"p":"1"}},"misfire":{{"newest":3}}}}"#
    );
    let words: TriggerWords = serde_json::from_str(&json).expect("words");
    words.parse_trigger(None).expect("sound")
}

async fn made(tx: &mut Tx, code: &str, next: Option<Millis>) -> TriggerId {
    let id = trigger::insert(tx, &def(code), "test", later(1)).await.expect("insert");
    stand(tx, id, next).await;
    id
}

async fn stand(tx: &mut Tx, id: TriggerId, next_time: Option<Millis>) {
    let row = ScheduleProgress { trigger_id: id, revision: 1, next_time, last_time: None };
    trigger::advance(tx, &[row], later(1)).await.expect("advance");
}

pub(super) async fn a_schedule_comes_back_as_it_went_in(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let id = made(&mut tx, "S", Some(later(5))).await;
    let code = TriggerCode::parse("S").expect("code");
    let found = trigger::find_trigger(&mut tx, &code).await.expect("find").expect("there");
    assert_eq!((found.trigger_id, found.revision, &found.def), (id, 1, &def("S")));
    assert_eq!((found.status, found.reason.as_deref()), (TriggerStatus::Enabled, None));
    assert_eq!(
        (found.create_time, found.next_time, found.last_time),
        (later(1), Some(later(5)), None)
    );
    let mut changed = def("S");
    changed.retry_count = 9;
    let revision =
        trigger::replace(&mut tx, &found, &changed, "file", later(2)).await.expect("replace");
    assert_eq!(revision, 2);
    trigger::set_status(&mut tx, &[id], TriggerStatus::Paused, Some("为何"), later(2))
        .await
        .expect("set");
    let again = trigger::find_trigger(&mut tx, &code).await.expect("find").expect("there");
    assert_eq!((again.revision, again.def.retry_count, again.origin.as_str()), (2, 9, "file"));
    assert_eq!((again.status, again.reason.as_deref()), (TriggerStatus::Paused, Some("为何")));
    assert_eq!(again.next_time, Some(later(5)), "a change of words leaves the time to its writer");
    // Codes differ by case, and one is taken once.
    made(&mut tx, "s", None).await;
    assert_eq!(trigger::codes(&mut tx).await.expect("codes").len(), 2);
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let error = trigger::insert(&mut tx, &def("S"), "test", later(3)).await.expect_err("twice");
    assert!(store::is_taken(&error), "{error:#}");
    drop(tx);
    let mut tx = place.db.begin().await.expect("begin");
    trigger::remove(&mut tx, id).await.expect("remove");
    assert_eq!(trigger::find_trigger(&mut tx, &code).await.expect("find"), None);
    assert_eq!(trigger::list_triggers(&mut tx).await.expect("all").len(), 1);
}

pub(super) async fn what_is_due_comes_in_the_order_of_time(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let mut ids = Vec::new();
    for (code, next) in [
        ("A", Some(30)),
        ("B", Some(10)),
        ("C", None),
        ("D", Some(20)),
        ("E", Some(10)),
        ("F", Some(99)),
    ] {
        ids.push(made(&mut tx, code, next.map(later)).await);
    }
    let due = |horizon, limit| (later(horizon), limit);
    for ((horizon, limit), wanted) in [
        (due(30, 10), vec![1, 4, 3, 0]),
        (due(30, 2), vec![1, 4]),
        (due(20, 10), vec![1, 4, 3]),
        (due(9, 10), vec![]),
    ] {
        let found = trigger::list_due(&mut tx, horizon, limit).await.expect("due");
        let found: Vec<TriggerId> = found.iter().map(|due| due.trigger_id).collect();
        let wanted: Vec<TriggerId> = wanted.into_iter().map(|i: usize| ids[i]).collect();
        assert_eq!(found, wanted, "{horizon} {limit}");
    }
    // Many at once, written over what is there.
    let rows: Vec<ScheduleProgress> = ids
        .iter()
        .map(|id| ScheduleProgress {
            trigger_id: *id,
            revision: 7,
            next_time: Some(later(50)),
            last_time: Some(later(40)),
        })
        .collect();
    trigger::advance(&mut tx, &rows, later(2)).await.expect("advance");
    let found = trigger::list_due(&mut tx, later(50), 10).await.expect("due");
    assert_eq!(found.len(), 6);
    assert!(found.iter().all(|due| due.revision == 7 && due.last_time == Some(later(40))));
    let keys: Vec<TriggerId> = found.iter().map(|due| due.trigger_id).collect();
    assert_eq!(keys, ids, "of one moment by key");
}

fn row(trigger_id: TriggerId, planned: Millis) -> NewFiring {
    NewFiring {
        trigger_id,
        planned_at: planned,
        nominal_date: "2024-07-31".parse().ok(),
        source: Source::Cron,
        handler: "queueDispatcherHandler".to_owned(),
        status: FiringStatus::Pending,
        fire_at: planned,
        params: Some(r#"{"batchNo":"202407"}"#.to_owned()),
        parent_batch_id: None,
        missed_until: None,
        reason: None,
    }
}

async fn newest(tx: &mut Tx, id: TriggerId) -> Firing {
    firing::of_trigger(tx, id, 1).await.expect("firings").pop().expect("one")
}

pub(super) async fn a_planned_time_has_one_row_and_settles_once(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let id = made(&mut tx, "S", None).await;
    let (me, other) = (NodeId("me".to_owned()), NodeId("other".to_owned()));
    let rows = [row(id, later(10)), row(id, later(20))];
    firing::append(&mut tx, &rows, Some(&me), later(2)).await.expect("append");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let twice = [row(id, later(30)), row(id, later(20))];
    let error = firing::append(&mut tx, &twice, Some(&me), later(3)).await.expect_err("taken");
    assert!(store::is_taken(&error), "{error:#}");
    drop(tx);
    let mut tx = place.db.begin().await.expect("begin");
    assert!(firing::is_there(&mut tx, id, later(20)).await.expect("there"));
    assert!(
        !firing::is_there(&mut tx, id, later(30)).await.expect("there"),
        "none of a failed lot stays"
    );
    assert!(firing::is_open(&mut tx, id).await.expect("open"));
    let was = newest(&mut tx, id).await;
    assert_eq!((was.planned_at, was.owner.as_ref(), was.attempt), (later(20), Some(&me), 0));
    assert_eq!(was.nominal_date.map(|d| d.to_string()).as_deref(), Some("2024-07-31"));
    let to = SettledFiring {
        status: FiringStatus::Fired,
        fire_at: was.fire_at,
        attempt: 1,
        batch_no: Some("202407"),
        reason: None,
    };
    assert!(firing::settle(&mut tx, &was, &to, &me, later(21)).await.expect("settle"));
    assert!(!firing::settle(&mut tx, &was, &to, &other, later(22)).await.expect("settle"), "once");
    let done = newest(&mut tx, id).await;
    assert_eq!((done.status, done.fired_at), (FiringStatus::Fired, Some(later(21))));
    assert_eq!((done.batch_no.as_deref(), done.owner.as_ref()), (Some("202407"), Some(&me)));
    let all = firing::newest(&mut tx).await.expect("newest");
    assert_eq!(all.iter().map(|f| f.planned_at).collect::<Vec<_>>(), [later(20)]);
    let left =
        firing::of_trigger(&mut tx, id, 10).await.expect("firings").pop().expect("the first");
    let found =
        firing::fire_all(&mut tx, &[left.firing_id, done.firing_id], &other, later(23)).await;
    assert_eq!(found.expect("fire"), 1, "what is settled is not fired again");
    assert!(!firing::is_open(&mut tx, id).await.expect("open"));
}

pub(super) async fn the_lock_row_is_held_signed_and_healed(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let held = lock::hold_lock(&mut tx, SCHEDULE_LOCK).await.expect("hold").expect("there");
    assert_eq!((held.owner, held.epoch), (None, 0));
    let me = NodeId("me".to_owned());
    lock::sign_lock(&mut tx, SCHEDULE_LOCK, &me, later(1)).await.expect("sign");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let held = lock::hold_lock(&mut tx, SCHEDULE_LOCK).await.expect("hold").expect("there");
    assert_eq!((held.owner, held.epoch), (Some(me), 1));
    // Put back where it is there: nothing changes.
    lock::restore_row(&mut tx, SCHEDULE_LOCK, later(2)).await.expect("heal");
    assert_eq!(
        lock::hold_lock(&mut tx, SCHEDULE_LOCK).await.expect("hold").expect("there").epoch,
        1
    );
    tx.commit().await.expect("commit");
    place.by_hand("DELETE FROM job_lock").await;
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(lock::hold_lock(&mut tx, SCHEDULE_LOCK).await.expect("hold"), None);
    lock::restore_row(&mut tx, SCHEDULE_LOCK, later(3)).await.expect("heal");
    assert!(lock::hold_lock(&mut tx, SCHEDULE_LOCK).await.expect("hold").is_some());
}

/// Old keys go a few at a time, and one whose turn has not come is forgotten all the same.
pub(super) async fn old_event_keys_go_a_few_at_a_time(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let key = |n: i64| vec!["closed".into(), format!("k{n:04}").into(), later(n).to_utc().into()];
    let columns = ["event_name", "event_key", "create_time"];
    tx.insert_many("event_key", &columns, (0..1_200).map(key)).await.expect("keys");
    tx.commit().await.expect("commit");
    let month = later(1_200 + event_key::KEPT_MS);
    for (key, left) in [("k1199", 700), ("new", 201), ("newer", 3), ("newest", 4)] {
        let mut tx = place.db.begin().await.expect("begin");
        let found = event_key::remember(&mut tx, "closed", key, month).await.expect("remember");
        assert_eq!(found, None, "{key}");
        tx.commit().await.expect("commit");
        assert_eq!(super::all_of(&place, "event_key").await.len(), left, "{key}");
    }
    let mut tx = place.db.begin().await.expect("begin");
    let found = event_key::remember(&mut tx, "closed", "k1199", month).await.expect("remember");
    assert_eq!(found, Some(month), "it has come again");
}

pub(super) async fn an_event_key_is_remembered_for_a_month(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    for (event, key, at, wanted) in [
        ("closed", "k", later(0), None),
        ("closed", "k", later(5), Some(later(0))),
        ("closed", "K", later(5), None),
        ("opened", "k", later(5), None),
        ("closed", "k", later(event_key::KEPT_MS), Some(later(0))),
        ("closed", "k", later(event_key::KEPT_MS + 1), None),
    ] {
        let found = event_key::remember(&mut tx, event, key, at).await.expect("remember");
        assert_eq!(found, wanted, "{event} {key} {at}");
    }
}
