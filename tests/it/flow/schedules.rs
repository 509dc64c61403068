//! What people do to schedules, with a clock set by hand: next times, pauses, firings by hand and by
//! event, and what is on record of it.

use crate::flow::{Bench, START, defs, on, on_each_database};
use procession::domain::calendar::{Calendar, CalendarDayRule, DayKind, DayOrigin};
use procession::domain::id::{CalendarCode, TriggerCode};
use procession::domain::schedule::firing::{Firing, FiringStatus, Source};
use procession::domain::schedule::trigger::{
    FiringOverrides, TriggerDef, TriggerStatus, TriggerWords,
};
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use procession::engine::trigger::TriggerDatabases;
use procession::engine::trigger::pools::Widths;
use procession::engine::trigger::schedule_actions::{
    self, EventFiringResult, NotDone, ScheduleActionOrigin, ScheduleStanding,
};
use procession::store::audit::{AuditFilter, Operator};
use procession::store::{self, firing};
use std::collections::BTreeMap;

const GROUPS: &str = "groups: {g: {time_zone: Asia/Shanghai}, h: {}}\n\
                      jobs: {A: {type: NOOP, group: g}, B: {type: NOOP, group: h}}\n";

fn code(text: &str) -> TriggerCode {
    TriggerCode::parse(text).expect("code")
}

fn def(json: &str) -> TriggerDef {
    let words: TriggerWords = serde_json::from_str(json).expect(json);
    words.parse_trigger(Some(chrono_tz::Asia::Shanghai)).unwrap_or_else(|faults| panic!("{faults}"))
}

/// 02:00 of every day in Shanghai, 18:00 UTC.
fn nightly() -> TriggerDef {
    def(r#"{"code":"N","group":"g","batch_no":"day(-1)","cron":"0 0 2 * * ?"}"#)
}

fn hours(n: i64) -> Millis {
    START.plus_ms(n * 3_600_000)
}

fn operator() -> Operator {
    Operator::new("zhao".to_owned(), "h".to_owned())
}

async fn add(bench: &Bench, def: &TriggerDef, now: Millis) -> anyhow::Result<ScheduleStanding> {
    let by = operator();
    let deed = ScheduleActionOrigin { by: &by, reason: Some("why"), now };
    schedule_actions::add_schedule(&bench.db, def, &BTreeMap::new(), deed).await
}

async fn firings(bench: &Bench, stands: &ScheduleStanding) -> Vec<Firing> {
    let mut tx = bench.db.begin_read().await.expect("read");
    let mut all =
        firing::of_trigger(&mut tx, stands.trigger.trigger_id, 100).await.expect("firings");
    all.reverse();
    all
}

async fn actions(bench: &Bench) -> String {
    let mut tx = bench.db.begin_read().await.expect("read");
    let all =
        store::audit::list_records(&mut tx, &AuditFilter::default(), 100).await.expect("audit");
    assert!(all.iter().all(|r| r.by == operator() && r.entry.reason.is_some()), "{all:?}");
    all.iter().rev().map(|r| r.entry.action.clone()).collect::<Vec<_>>().join(", ")
}

fn refusal(error: anyhow::Error) -> String {
    assert!(error.is::<NotDone>(), "{error:#}");
    error.to_string()
}

/// `job_def.next_run_time` of a job.
async fn next_run(bench: &Bench, job: &str) -> Option<Millis> {
    let mut tx = bench.db.begin_read().await.expect("read");
    let sql = "SELECT next_run_time FROM job_def WHERE job_code = ?";
    let row = tx.fetch_optional(sql, &[job.into()]).await.expect("read").expect("a job");
    row.opt_time("next_run_time").expect("a time").map(Millis::from)
}

async fn jobs_say_when_they_run_next(bench: Bench) {
    let yaml = "groups: {g: {type: daily}, h: {type: daily}, i: {}}\n\
                jobs: {A: {type: NOOP, group: g}, OFF: {type: NOOP, group: g, is_active: false}, \
                B: {type: NOOP, group: h}, C: {type: NOOP, group: i}}\n";
    bench.apply(&defs(yaml)).await;
    let (by, n) = (operator(), code("N"));
    let deed = |now| ScheduleActionOrigin { by: &by, reason: Some("why"), now };
    add(&bench, &nightly(), START).await.expect("add");
    let of = async |jobs: [&str; 4]| {
        let mut found = Vec::new();
        for job in jobs {
            found.push(next_run(&bench, job).await);
        }
        found
    };
    let jobs = ["A", "OFF", "B", "C"];
    assert_eq!(of(jobs).await, [Some(hours(18)), None, None, None], "of its group alone");
    // The earlier of two counts, and one by type moves each group of the type.
    let by_type = def(r#"{"code":"T","type":"daily","batch_no":"day(-2)","cron":"0 0 1 * * ?"}"#);
    add(&bench, &by_type, START).await.expect("add");
    assert_eq!(of(jobs).await, [Some(hours(17)), None, Some(hours(17)), None]);
    schedule_actions::pause(&bench.db, &code("T"), deed(START)).await.expect("pause");
    assert_eq!(of(jobs).await, [Some(hours(18)), None, None, None]);
    schedule_actions::resume(&bench.db, &code("T"), deed(START)).await.expect("resume");
    schedule_actions::remove(&bench.db, &n, deed(START)).await.expect("remove");
    assert_eq!(of(jobs).await, [Some(hours(17)), None, Some(hours(17)), None]);
    // A schedule that goes over to another group leaves the old one.
    add(&bench, &nightly(), START).await.expect("add");
    schedule_actions::remove(&bench.db, &code("T"), deed(START)).await.expect("remove");
    let elsewhere = |def: TriggerDef| -> anyhow::Result<TriggerDef> {
        let mut order = def.order.clone().expect("an order");
        order.group = Some(procession::domain::id::GroupCode::parse("i").expect("code"));
        Ok(TriggerDef { order: Some(order), ..def })
    };
    let none = BTreeMap::new();
    schedule_actions::edit_schedule(&bench.db, &n, &elsewhere, &none, deed(START))
        .await
        .expect("edit");
    assert_eq!(of(jobs).await, [None, None, None, Some(hours(18))]);
    // The pass that plans 02:00 writes the next night.
    let mut process = bench.process().await;
    let widths = Widths { fast: 1, slow: 1 };
    let mut core = process.trigger_core(
        TriggerDatabases { planning: bench.db.clone(), firing: bench.db.clone() },
        widths,
    );
    bench.clock.advance(18 * 3_600_000 - 2_000);
    process.heartbeat().await.expect("heartbeat");
    core.planning.run_tick().await.expect("plan");
    assert_eq!(of(jobs).await, [None, None, None, Some(hours(42))]);
}

async fn a_schedule_is_made_changed_paused_resumed_and_removed(bench: Bench) {
    bench.apply(&defs(GROUPS)).await;
    let (by, n) = (operator(), code("N"));
    let deed = |now| ScheduleActionOrigin { by: &by, reason: Some("why"), now };
    let made = add(&bench, &nightly(), START).await.expect("add");
    assert_eq!(made.trigger.next_time, Some(hours(18)));
    let twice = refusal(add(&bench, &nightly(), START).await.expect_err("twice"));
    assert!(twice.contains("schedule N is there already"), "{twice}");
    // Another hour; what it said before is left.
    let later = |def: TriggerDef| -> anyhow::Result<TriggerDef> {
        let mut words = TriggerWords::from(def);
        words.timing.cron = Some("0 0 3 * * ?".to_owned());
        Ok(words.parse_trigger(None)?)
    };
    let none = BTreeMap::new();
    let edited = schedule_actions::edit_schedule(&bench.db, &n, &later, &none, deed(START))
        .await
        .expect("edit");
    assert_eq!((edited.trigger.next_time, edited.trigger.revision), (Some(hours(19)), 2));
    let paused = schedule_actions::pause(&bench.db, &n, deed(hours(1))).await.expect("pause");
    assert_eq!((paused.trigger.status, paused.trigger.next_time), (TriggerStatus::Paused, None));
    assert_eq!(paused.trigger.reason.as_deref(), Some("paused by zhao: why"));
    let error =
        refusal(schedule_actions::pause(&bench.db, &n, deed(hours(1))).await.expect_err("twice"));
    assert!(error.contains("paused already"), "{error}");
    // A change does not wake it.
    let edited = schedule_actions::edit_schedule(&bench.db, &n, &later, &none, deed(hours(2)))
        .await
        .expect("edit");
    assert_eq!((edited.trigger.status, edited.trigger.next_time), (TriggerStatus::Paused, None));
    // Three nights later: none of them is made up for.
    let on = schedule_actions::resume(&bench.db, &n, deed(hours(80))).await.expect("resume");
    assert_eq!(
        (on.trigger.status, on.trigger.next_time),
        (TriggerStatus::Enabled, Some(hours(91)))
    );
    assert!(firings(&bench, &on).await.is_empty());
    let (skipped, on) =
        schedule_actions::skip_next(&bench.db, &n, deed(hours(80))).await.expect("skip");
    assert_eq!((skipped.planned, on.trigger.next_time), (hours(91), Some(hours(115))));
    let left = firings(&bench, &on).await;
    assert_eq!((left[0].status, left[0].planned_at), (FiringStatus::Skipped, hours(91)));
    assert_eq!(left[0].reason.as_deref(), Some("left out by zhao: why"));
    // What was left out is not planned again by a change.
    let edited = schedule_actions::edit_schedule(&bench.db, &n, &later, &none, deed(hours(81)))
        .await
        .expect("edit");
    assert_eq!(edited.trigger.next_time, Some(hours(115)));
    schedule_actions::remove(&bench.db, &n, deed(hours(81))).await.expect("remove");
    let gone =
        refusal(schedule_actions::remove(&bench.db, &n, deed(hours(81))).await.expect_err("gone"));
    assert!(gone.contains("there is no schedule N; there is none at all"), "{gone}");
    let wanted = "schedule add, schedule edit, schedule pause, schedule edit, schedule resume, \
                  schedule skip-next, schedule edit, schedule remove";
    assert_eq!(actions(&bench).await, wanted);
}

async fn what_would_not_do_what_is_meant_is_not_saved(bench: Bench) {
    bench.apply(&defs(GROUPS)).await;
    for (json, said) in [
        (r#"{"code":"S","group":"x","batch_no":"day(0)","cron":"0 0 2 * * ?"}"#, "no group x"),
        (r#"{"code":"S","group":"g","batch_no":"month(0)","cron":"0 0 2 * * ?"}"#, "again at"),
        (
            r#"{"code":"S","group":"g","batch_no":"day(0)","cron":"0 0 2 * * ?","calendar":"cn",
                "shift":"skip"}"#,
            "there is no calendar cn",
        ),
        (r#"{"code":"S","group":"g","batch_no":"same","after":"g"}"#, "without end: S (after g)"),
    ] {
        let error = refusal(add(&bench, &def(json), START).await.expect_err(json));
        assert!(error.starts_with("schedule S is not saved:\n  "), "{error}");
        assert!(error.contains(said), "{json}: {error}");
    }
    assert_eq!(actions(&bench).await, "");
    // A circle that the second closes.
    let first = def(r#"{"code":"S","group":"h","batch_no":"same","after":"g"}"#);
    add(&bench, &first, START).await.expect("add");
    let second = def(r#"{"code":"T","group":"g","batch_no":"same","after":"h"}"#);
    let error = refusal(add(&bench, &second, START).await.expect_err("a circle"));
    assert!(error.contains("T (after h) -> S (after g)"), "{error}");
}

async fn a_firing_by_hand_has_a_moment_of_its_own(bench: Bench) {
    bench.apply(&defs(GROUPS)).await;
    let by = operator();
    let deed = |now| ScheduleActionOrigin { by: &by, reason: Some("why"), now };
    let made = add(&bench, &nightly(), START).await.expect("add");
    schedule_actions::pause(&bench.db, &code("N"), deed(START)).await.expect("pause");
    let json = r#"{"batchNo":"20240101","params":{"p":"secret"}}"#;
    let given = FiringOverrides::parse(Some(json)).expect("given");
    let plain = FiringOverrides::default();
    // A whole second is the clock's; and no two are of one moment.
    for (given, planned) in [(&given, START.plus_ms(1)), (&plain, START.plus_ms(2))] {
        let fired = schedule_actions::fire_now(&bench.db, &code("N"), given, deed(START))
            .await
            .expect("fire");
        assert_eq!(fired.planned, planned);
    }
    let all = firings(&bench, &made).await;
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|f| f.source == Source::Manual && f.status == FiringStatus::Pending));
    assert_eq!((all[0].params.as_deref(), all[1].params.as_deref()), (Some(json), None));
    assert_eq!(all[0].nominal_date.map(|d| d.to_string()).as_deref(), Some("2024-08-01"));
    let mut tx = bench.db.begin_read().await.expect("read");
    let record =
        store::audit::list_records(&mut tx, &AuditFilter::default(), 2).await.expect("audit").pop();
    let detail = record.and_then(|r| r.entry.detail).expect("detail").to_string();
    assert!(detail.contains("\"p\"") && !detail.contains("secret"), "names, no values: {detail}");
}

async fn an_event_fires_all_that_wait_for_it_and_once_under_a_key(bench: Bench) {
    bench.apply(&defs(GROUPS)).await;
    let by = operator();
    let deed = |now| ScheduleActionOrigin { by: &by, reason: Some("why"), now };
    let waits =
        |json: &str| def(&format!(r#"{{"batch_no":"time(%H%M%S)","event":"closed",{json}}}"#));
    let first = add(&bench, &waits(r#""code":"E1","group":"g""#), START).await.expect("add");
    // It is 08:00 in Shanghai.
    let closed = waits(r#""code":"E2","group":"h","blackouts":[{"daily":"07:00-09:00"}]"#);
    let second = add(&bench, &closed, START).await.expect("add");
    let send = async |name: &str, key, now| {
        schedule_actions::event(&bench.db, name, &FiringOverrides::default(), key, deed(now)).await
    };
    let error = refusal(send("close", None, START).await.expect_err("a slip"));
    assert!(error.contains("did you mean closed?"), "{error}");
    let EventFiringResult::Fired(fired) = send("closed", Some("k"), START).await.expect("send")
    else {
        panic!("the first time")
    };
    let left: Vec<(&str, bool)> =
        fired.iter().map(|f| (f.code.as_str(), f.left_out.is_some())).collect();
    assert_eq!(left, [("E1", false), ("E2", true)]);
    let again = send("closed", Some("k"), hours(5)).await.expect("send");
    assert_eq!(again, EventFiringResult::Before(START));
    send("closed", None, hours(5)).await.expect("send");
    let fates = async |stands: &ScheduleStanding| {
        let all = firings(&bench, stands).await;
        all.iter().map(|f| f.status.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(fates(&first).await, "PENDING PENDING");
    assert_eq!(fates(&second).await, "SKIPPED PENDING");
}

async fn a_calendar_that_changes_moves_next_times(bench: Bench) {
    bench.apply(&defs(GROUPS)).await;
    let cn = CalendarCode::parse("cn").expect("code");
    let mut calendar = Calendar::with_defaults(cn.clone());
    let put = async |calendar: &Calendar| {
        let mut tx = bench.db.begin().await.expect("begin");
        store::calendar::put_calendar(&mut tx, calendar, START).await.expect("put");
        tx.commit().await.expect("commit");
    };
    put(&calendar).await;
    let json = r#"{"code":"M","group":"g","batch_no":"month(0)","rule":"last working day of month",
        "at":"18:00","calendar":"cn"}"#;
    // 30 August 2024 is a Friday; 18:00 in Shanghai is 10:00 UTC.
    let friday = hours(29 * 24 + 10);
    let made = add(&bench, &def(json), START).await.expect("add");
    assert_eq!(made.trigger.next_time, Some(friday));
    assert!(schedule_actions::replan(&bench.db, &cn, START).await.expect("replan").is_empty());
    let off = CalendarDayRule { kind: DayKind::Off, label: None, origin: DayOrigin::Hand };
    calendar.days.insert("2024-08-30".parse().expect("day"), off);
    put(&calendar).await;
    let moved = schedule_actions::replan(&bench.db, &cn, START).await.expect("replan");
    let moved: Vec<_> = moved.iter().map(|t| (t.def.code.as_str(), t.next_time)).collect();
    assert_eq!(moved, [("M", Some(friday.plus_ms(-24 * 3_600_000)))]);
}

async fn what_is_over_ends_and_a_later_time_revives_it(bench: Bench) {
    bench.apply(&defs(GROUPS)).await;
    let by = operator();
    let deed = |now| ScheduleActionOrigin { by: &by, reason: Some("why"), now };
    let once = r#"{"code":"O","group":"g","batch_no":"adhoc","once_at":"2024-08-01T09:00"}"#;
    add(&bench, &def(once), START).await.expect("add");
    schedule_actions::pause(&bench.db, &code("O"), deed(START)).await.expect("pause");
    let error =
        schedule_actions::resume(&bench.db, &code("O"), deed(hours(2))).await.expect_err("over");
    let error = refusal(error);
    assert!(error.contains("has no planned time from now on"), "{error}");
    let (_, stands) = {
        let change = |def: TriggerDef| -> anyhow::Result<TriggerDef> {
            let mut words = TriggerWords::from(def);
            words.timing.once_at = Some("2024-08-02T09:00".to_owned());
            Ok(words.parse_trigger(None)?)
        };
        let none = BTreeMap::new();
        schedule_actions::edit_schedule(&bench.db, &code("O"), &change, &none, deed(hours(2)))
            .await
            .expect("edit");
        schedule_actions::resume(&bench.db, &code("O"), deed(hours(2))).await.expect("resume");
        schedule_actions::skip_next(&bench.db, &code("O"), deed(hours(2))).await.expect("skip")
    };
    assert_eq!(stands.trigger.next_time, None);
}

on_each_database! {
    a_schedule_is_made_changed_paused_resumed_and_removed
    jobs_say_when_they_run_next
    what_would_not_do_what_is_meant_is_not_saved
    a_firing_by_hand_has_a_moment_of_its_own
    an_event_fires_all_that_wait_for_it_and_once_under_a_key
    a_calendar_that_changes_moves_next_times
    what_is_over_ends_and_a_later_time_revives_it
}
