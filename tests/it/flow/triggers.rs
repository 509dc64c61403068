//! Schedules fire: on time, once, across the death of a process between any two steps; misses are rows
//! and mails; batches that overlap do what their schedule says.

use crate::flow::{Bench, defs, finish, on, on_each_database};
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::calendar::Calendar;
use procession::domain::id::{BatchNo, CalendarCode, GroupCode, TriggerCode};
use procession::domain::job::Definition;
use procession::domain::schedule::firing::{Firing, FiringStatus, NewFiring, Source, TriggerId};
use procession::domain::schedule::misfire::{Misfire, MisfirePolicy};
use procession::domain::schedule::overlap::Overlap;
use procession::domain::schedule::trigger::{NOOP, QUEUE_DISPATCHER, TriggerDef};
use procession::domain::schedule::{BatchEndFilter, DayRule, FiringRule, Timing};
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::opening::create_batch::open_for_anyone;
use procession::engine::trigger::TriggerDatabases;
use procession::engine::trigger::core::TriggerCore;
use procession::engine::trigger::planner::LockGone;
use procession::engine::trigger::pools::Widths;
use procession::engine::trigger::schedule_actions::{self, ScheduleActionOrigin};
use procession::store::audit::Operator;
use procession::store::trigger::ScheduleProgress;
use procession::store::{self, firing, trigger};
use std::collections::BTreeMap;

/// Every `every_sec`, for nobody, unless the test says otherwise.
fn every(code: &str, every_sec: i64) -> TriggerDef {
    TriggerDef {
        code: TriggerCode::parse(code).expect("code"),
        name: code.to_owned(),
        timing: Timing::plain(FiringRule::FixedRate { every_sec }, chrono_tz::UTC),
        handler: NOOP.to_owned(),
        order: None,
        misfire: Misfire::default(),
        overlap: Overlap::default(),
        retry_count: 1,
        retry_delay_sec: 10,
        timeout_sec: 60,
        notify_email: vec!["ops@bank.example".to_owned()],
        owner: None,
        starts_paused: false,
    }
}

pub(super) fn opening(code: &str, every_sec: i64, order: &str) -> TriggerDef {
    TriggerDef {
        handler: QUEUE_DISPATCHER.to_owned(),
        order: Some(serde_json::from_str(order).expect("order")),
        ..every(code, every_sec)
    }
}

/// A node: its dispatcher, which holds the lease, and its trigger core.
pub(super) struct Here {
    pub(super) process: QueueDispatcher,
    pub(super) core: TriggerCore,
}

pub(super) async fn node(bench: &Bench) -> Here {
    let process = bench.process().await;
    let databases = TriggerDatabases { planning: bench.db.clone(), firing: bench.db.clone() };
    let core = process.trigger_core(databases, Widths { fast: 2, slow: 1 });
    Here { process, core }
}

/// Writes a schedule whose next time is the first after now.
pub(super) async fn add(bench: &Bench, def: &TriggerDef) -> TriggerId {
    let now = bench.clock.now();
    let mut tx = bench.db.begin().await.expect("begin");
    let id = trigger::insert(&mut tx, def, "test", now).await.expect("insert");
    let there = trigger::find_trigger(&mut tx, &def.code).await.expect("find").expect("there");
    let calendars = store::calendar::list_calendars(&mut tx).await.expect("calendars");
    let next = there.next_after(&calendars, now).expect("next").map(|planned| planned.at);
    let standing =
        ScheduleProgress { trigger_id: id, revision: 1, next_time: next, last_time: None };
    trigger::advance(&mut tx, &[standing], now).await.expect("advance");
    tx.commit().await.expect("commit");
    id
}

async fn firings(bench: &Bench, id: TriggerId) -> Vec<Firing> {
    let mut tx = bench.db.begin_read().await.expect("read");
    let mut all = firing::of_trigger(&mut tx, id, 10_000).await.expect("firings");
    all.reverse();
    all
}

/// `FIRED MISFIRED …`, in the order of their planned times.
async fn fates(bench: &Bench, id: TriggerId) -> String {
    let all = firings(bench, id).await;
    all.iter().map(|f| f.status.as_str()).collect::<Vec<_>>().join(" ")
}

async fn beat(here: &mut Here) {
    here.core.run_tick().await.expect("beat");
}

/// Lets time pass in steps of a fifth of a second.
pub(super) async fn pass(bench: &Bench, here: &mut Here, ms: i64) {
    for step in 0..ms / 200 {
        bench.clock.advance(200);
        if step % 5 == 0 {
            here.process.heartbeat().await.expect("heartbeat");
        }
        beat(here).await;
    }
}

/// Under overload the queue holds firings that are missed by the time their turn comes. None of them
/// costs a statement; their policy decides about all in one pass, and what comes next is on time.
async fn missed_firings_leave_the_queue_and_the_next_ones_fire(bench: Bench) {
    let mut here = node(&bench).await;
    bench.apply(&defs("jobs: { A: { type: NOOP } }")).await;
    let mut ids = Vec::new();
    for place in 0..40 {
        let order = r#"{"batchNo":"time(%H%M%S)","group":"default"}"#;
        let mut def = opening(&format!("BURST_{place}"), 10, order);
        def.misfire.policy = if place % 2 == 0 { MisfirePolicy::Skip } else { MisfirePolicy::Once };
        def.overlap = Overlap::Parallel;
        ids.push(add(&bench, &def).await);
    }
    bench.clock.advance(8_000);
    let found = here.core.planning.run_tick().await.expect("plan");
    assert_eq!(found.firings.len(), 40);
    here.core.ticking.add_firings(found.firings);
    bench.clock.advance(2_000);
    here.core.ticking.fire_due();
    // The process was busy for so long.
    bench.clock.advance(5_001);
    here.process.heartbeat().await.expect("heartbeat");
    let before = bench.db.counts().statements;
    here.core.ticking.run_tick().await;
    assert_eq!(bench.db.counts().statements, before, "a missed firing costs nothing");
    assert_eq!(here.core.firings_held(), 0);
    for id in &ids {
        assert_eq!(fates(&bench, *id).await, "PENDING");
    }
    let found = here.core.planning.run_tick().await.expect("decide");
    assert!(found.failed.is_none(), "{:?}", found.failed);
    assert_eq!(found.firings.iter().filter(|f| f.source == Source::Misfire).count(), 20);
    for (place, id) in ids.iter().enumerate() {
        let wanted = if place % 2 == 0 { "MISFIRED" } else { "PENDING" };
        assert!(fates(&bench, *id).await.starts_with(wanted), "{place}");
    }
    here.core.ticking.add_firings(found.firings);
    pass(&bench, &mut here, 6_000).await;
    for id in &ids {
        let all = firings(&bench, *id).await;
        let next = all.get(1).expect("the next planned time");
        assert!(next.status.is_final() && next.status != FiringStatus::Misfired, "{next:?}");
        assert_eq!(next.source, Source::Cron);
    }
}

/// Four groups whose jobs wait until the night, and forty with one job each.
fn one_job_groups() -> Definition {
    let mut yaml = "groups: { held: {}, taken: {}, pair: {}, beside: {} }\njobs:\n".to_owned();
    for group in ["held", "taken", "pair", "beside"] {
        yaml.push_str(&format!(
            "  {group}: {{ type: NOOP, group: {group}, schedule_time: '23:00' }}\n"
        ));
    }
    for place in 0..40 {
        yaml.push_str(&format!("  P{place}: {{ type: NOOP, group: p{place} }}\n"));
    }
    let groups: String = (0..40).map(|place| format!("p{place}: {{}}, ")).collect();
    defs(&yaml.replace("groups: {", &format!("groups: {{ {groups}")))
}

/// Firings that come at one moment share a transaction, and each is decided by its own order and policy.
async fn firings_of_one_moment_share_a_transaction(bench: Bench) {
    let mut here = node(&bench).await;
    let all = one_job_groups();
    bench.apply(&all).await;
    let order = |group: &str, no: &str| format!(r#"{{"batchNo":"{no}","group":"{group}"}}"#);
    let stamp = "time(%H%M%S)";
    let mut plain = Vec::new();
    for place in 0..40 {
        let def = opening(&format!("PLAIN_{place}"), 10, &order(&format!("p{place}"), stamp));
        plain.push(add(&bench, &def).await);
    }
    // Each of them has something ahead, or is refused.
    let add_one = async |code: &str, order: String, overlap: Overlap| {
        add(&bench, &TriggerDef { overlap, ..opening(code, 10, &order) }).await
    };
    for (group, no) in [("held", "before"), ("taken", "one")] {
        let order = BatchOrder {
            group: Some(GroupCode::parse(group).expect("group")),
            batch_no: BatchNo::parse(no).expect("number"),
            ..crate::flow::order()
        };
        let opened = open_for_anyone(&bench.db, &all, &order, "test", bench.clock.now()).await;
        opened.expect("open");
    }
    let held = add_one("HELD", order("held", stamp), Overlap::Queue).await;
    let taken = add_one("TAKEN", order("taken", "one"), Overlap::Parallel).await;
    let gone = add_one("GONE", order("nowhere", stamp), Overlap::Queue).await;
    let first = add_one("PAIR_A", order("pair", "a"), Overlap::Queue).await;
    let second = add_one("PAIR_B", order("pair", "b"), Overlap::Queue).await;
    let left = add_one("BESIDE_A", order("beside", "a"), Overlap::Parallel).await;
    let right = add_one("BESIDE_B", order("beside", "b"), Overlap::Parallel).await;
    bench.clock.advance(9_000);
    here.process.heartbeat().await.expect("heartbeat");
    let found = here.core.planning.run_tick().await.expect("plan");
    assert_eq!(found.firings.len(), 47);
    here.core.ticking.add_firings(found.firings);
    bench.clock.advance(1_000);
    let before = bench.db.counts().statements;
    here.core.ticking.run_tick().await;
    let statements = bench.db.counts().statements - before;
    for id in plain.iter().chain([&first, &left, &right]) {
        let fired = firings(&bench, *id).await.remove(0);
        assert_eq!((fired.status, fired.attempt), (FiringStatus::Fired, 1), "{:?}", fired.reason);
        assert!(fired.batch_no.is_some() && fired.fired_at.is_some());
    }
    assert_eq!(fates(&bench, held).await, "WAITING");
    assert_eq!(fates(&bench, second).await, "WAITING");
    assert_eq!(fates(&bench, taken).await, "SKIPPED");
    assert_eq!(fates(&bench, gone).await, "FAILED");
    let opened = "SELECT COUNT(*) AS n FROM job_batch b JOIN job_firing f ON f.firing_id = b.firing_id \
                  AND f.batch_no = b.batch_no JOIN job_queue q ON q.batch_id = b.batch_id";
    assert_eq!(bench.number(opened).await, 43);
    // One by one 43 firings took more than 700.
    assert!(statements < 200, "{statements} statements");
}

async fn every_planned_time_fires_once_and_not_early(bench: Bench) {
    let mut here = node(&bench).await;
    let start = bench.clock.now();
    let id = add(&bench, &every("TICK", 2)).await;
    pass(&bench, &mut here, 21_000).await;
    let all = firings(&bench, id).await;
    let done: Vec<&Firing> = all.iter().filter(|f| f.status == FiringStatus::Fired).collect();
    assert!(done.len() >= 10, "{}", done.len());
    for (place, firing) in (1i64..).zip(&done) {
        assert_eq!(firing.planned_at, start.plus_ms(place * 2_000));
        let fired = firing.fired_at.expect("fired");
        let late = fired.since(firing.planned_at);
        assert!((0..400).contains(&late), "{late} ms late");
        assert_eq!(firing.attempt, 1);
        assert_eq!(firing.source, Source::Cron);
    }
    // What is decided ahead waits for its time.
    let rest: Vec<_> = all.iter().filter(|f| f.status != FiringStatus::Fired).collect();
    assert!(
        rest.iter().all(|f| f.status == FiringStatus::Pending && f.fire_at > bench.clock.now())
    );
}

async fn what_a_dead_node_decided_another_fires_once(bench: Bench) {
    let mut dead = node(&bench).await;
    let id = add(&bench, &every("TICK", 1)).await;
    let found = dead.core.planning.run_tick().await.expect("plan");
    assert_eq!(found.firings.len(), 5, "five seconds ahead");
    drop(dead);
    let mut heir = node(&bench).await;
    let mut last = 0;
    for _ in 0..40 {
        bench.clock.advance(200);
        heir.process.heartbeat().await.expect("heartbeat");
        beat(&mut heir).await;
        let all = firings(&bench, id).await;
        let done = all.iter().filter(|f| f.status == FiringStatus::Fired).count();
        assert!(done >= last);
        last = done;
    }
    let all = firings(&bench, id).await;
    for firing in all.iter().filter(|f| f.fire_at.plus_ms(2_400) < bench.clock.now()) {
        assert_eq!(firing.status, FiringStatus::Fired, "{firing:?}");
        assert_eq!(firing.attempt, 1, "once");
        assert!(firing.fired_at.expect("fired").since(firing.planned_at) < 3_000);
    }
    assert!(last >= 6);
}

/// One was thought dead, and is not: both have the same firings on their rings.
async fn two_nodes_with_the_same_firings_fire_each_once(bench: Bench) {
    let (mut here, mut there) = (node(&bench).await, node(&bench).await);
    let order = r#"{"batchNo":"time(%H%M%S)","group":"default"}"#;
    bench.apply(&defs("jobs: { A: { type: NOOP } }")).await;
    let tick = add(&bench, &every("TICK", 1)).await;
    let def = TriggerDef { overlap: Overlap::Parallel, ..opening("OPEN", 1, order) };
    let open = add(&bench, &def).await;
    let found = here.core.planning.run_tick().await.expect("plan").firings;
    here.core.ticking.add_firings(found.clone());
    there.core.ticking.add_firings(found);
    bench.clock.advance(5_000);
    tokio::join!(here.core.ticking.run_tick(), there.core.ticking.run_tick());
    for id in [tick, open] {
        assert_eq!(fates(&bench, id).await, ["FIRED"; 5].join(" "));
    }
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_batch").await, 5);
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_queue").await, 5);
    let both = "SELECT COUNT(*) AS n FROM job_batch b JOIN job_firing f ON f.firing_id = b.firing_id \
                WHERE f.batch_no = b.batch_no AND b.started_by = 'schedule OPEN'";
    assert_eq!(bench.number(both).await, 5);
}

async fn a_lock_row_that_is_gone_is_put_back(bench: Bench) {
    let mut here = node(&bench).await;
    let id = add(&bench, &every("TICK", 1)).await;
    bench.by_hand("DELETE FROM job_lock").await;
    let found = here.core.planning.run_tick().await.expect("look");
    let error = found.failed.expect("nothing is locked");
    assert!(error.is::<LockGone>(), "{error:#}");
    assert_eq!(fates(&bench, id).await, "", "and nothing was planned");
    bench.clock.advance(1_000);
    beat(&mut here).await;
    assert!(fates(&bench, id).await.starts_with("FIRED PENDING"));
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_lock").await, 1);
    assert_eq!(bench.number("SELECT epoch AS n FROM job_lock").await, 1, "signed by its holder");
}

async fn misses_are_rows_and_one_mail(bench: Bench) {
    let mut here = node(&bench).await;
    let mut ids = Vec::new();
    for (code, policy) in [
        ("ONCE", MisfirePolicy::Once),
        ("SKIP", MisfirePolicy::Skip),
        ("ALL", MisfirePolicy::All),
        ("TWO", MisfirePolicy::Newest(2)),
    ] {
        let misfire = Misfire { policy, ..Misfire::default() };
        ids.push(add(&bench, &TriggerDef { misfire, ..every(code, 3_600) }).await);
    }
    bench.clock.advance(3 * 3_600_000 + 60_000);
    here.process.heartbeat().await.expect("heartbeat");
    beat(&mut here).await;
    for (id, wanted) in ids.iter().zip([
        "MISFIRED MISFIRED FIRED",
        "MISFIRED MISFIRED MISFIRED",
        "FIRED FIRED FIRED",
        "MISFIRED FIRED FIRED",
    ]) {
        assert_eq!(fates(&bench, *id).await, wanted);
    }
    let late = firings(&bench, ids[0]).await.pop().expect("the newest");
    assert_eq!(late.source, Source::Misfire);
    assert!(late.reason.expect("why").contains("misfire policy"));
    let mails = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'misfire'";
    assert_eq!(bench.number(mails).await, 4, "one for each schedule");
    beat(&mut here).await;
    assert_eq!(bench.number(mails).await, 4, "and no more");
}

async fn a_batch_number_that_is_there_is_left_out_and_told(bench: Bench) {
    let mut here = node(&bench).await;
    bench.apply(&defs("jobs: { A: { type: NOOP } }")).await;
    let order = r#"{"batchNo":"202407","group":"default"}"#;
    let def = TriggerDef { overlap: Overlap::Parallel, ..opening("SAME", 5, order) };
    let id = add(&bench, &def).await;
    bench.clock.advance(5_000);
    beat(&mut here).await;
    here.process.take_batches().await.expect("take");
    finish(&bench, &mut here.process).await;
    bench.clock.advance(5_000);
    beat(&mut here).await;
    assert!(fates(&bench, id).await.starts_with("FIRED SKIPPED"));
    let left = firings(&bench, id).await.remove(1);
    assert!(left.reason.expect("why").contains("exists already (SUCCESS)"));
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_batch").await, 1);
    let mails = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'firing_skipped'";
    assert_eq!(bench.number(mails).await, 1);
}

async fn an_order_that_is_refused_fails_and_is_told(bench: Bench) {
    let mut here = node(&bench).await;
    let order = r#"{"batchNo":"202407","group":"nobody"}"#;
    let id = add(&bench, &opening("WRONG", 5, order)).await;
    bench.clock.advance(5_000);
    beat(&mut here).await;
    assert!(fates(&bench, id).await.starts_with("FAILED"));
    let failed = firings(&bench, id).await.remove(0);
    assert!(failed.reason.expect("why").contains("no group nobody"));
    let mails = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'firing_failed'";
    assert_eq!(bench.number(mails).await, 1);
}

async fn what_overlaps_does_what_its_schedule_says(bench: Bench) {
    let mut here = node(&bench).await;
    let yaml = "
jobs:
  Q: { group: q, type: NOOP, schedule_time: '23:59' }
  S: { group: s, type: NOOP, schedule_time: '23:59' }
  P: { group: p, type: NOOP, schedule_time: '23:59' }
  R: { group: r, type: NOOP, schedule_time: '23:59' }
groups: { q: {}, s: {}, p: {}, r: {} }
";
    bench.apply(&defs(yaml)).await;
    let mut ids = Vec::new();
    for (group, overlap) in [
        ("q", Overlap::Queue),
        ("s", Overlap::Skip),
        ("p", Overlap::Parallel),
        ("r", Overlap::Replace),
    ] {
        let order = format!(r#"{{"batchNo":"time(%H%M%S)","group":"{group}"}}"#);
        ids.push(add(&bench, &TriggerDef { overlap, ..opening(group, 10, &order) }).await);
    }
    pass(&bench, &mut here, 10_000).await;
    while here.process.take_batches().await.expect("take") > 0 {}
    pass(&bench, &mut here, 10_000).await;
    let starts = |words: &str, all: String| assert!(all.starts_with(words), "{all}");
    starts("FIRED WAITING", fates(&bench, ids[0]).await);
    starts("FIRED SKIPPED", fates(&bench, ids[1]).await);
    starts("FIRED FIRED", fates(&bench, ids[2]).await);
    starts("FIRED WAITING", fates(&bench, ids[3]).await);
    let skipped = firings(&bench, ids[1]).await.remove(1).reason.expect("why");
    assert!(skipped.contains("is RUNNING; overlap policy: skip"), "{skipped}");
    // The batch that is replaced is killed, and the next opened once it has ended.
    here.process.poll_changes().await.expect("look");
    while here.process.run_tick().await.expect("beat") {}
    pass(&bench, &mut here, 4_000).await;
    starts("FIRED FIRED", fates(&bench, ids[3]).await);
    let killed = "SELECT COUNT(*) AS n FROM job_batch WHERE group_code = 'r' AND status = 'KILLED'";
    assert_eq!(bench.number(killed).await, 1);
    // Three wait in the queue; when the first batch ends, the earliest goes and the others wait on.
    pass(&bench, &mut here, 16_000).await;
    starts("FIRED WAITING WAITING", fates(&bench, ids[0]).await);
    bench.by_hand("UPDATE job_batch SET status = 'SUCCESS' WHERE group_code = 'q'").await;
    pass(&bench, &mut here, 4_000).await;
    starts("FIRED FIRED WAITING", fates(&bench, ids[0]).await);
}

/// Under overload the newest firing goes first, while earlier ones are still pending. With `skip` it
/// waited for them, and all later ones for it: 4,200 firings waited, which `skip` forbids.
async fn who_skips_does_not_wait_for_a_pending_firing(bench: Bench) {
    let mut here = node(&bench).await;
    let yaml = "
jobs:
  S: { group: s, type: NOOP, schedule_time: '23:59' }
  Q: { group: q, type: NOOP, schedule_time: '23:59' }
groups: { s: {}, q: {} }
";
    bench.apply(&defs(yaml)).await;
    let mut ids = Vec::new();
    for (group, overlap) in [("s", Overlap::Skip), ("q", Overlap::Queue)] {
        let order = format!(r#"{{"batchNo":"time(%H%M%S)","group":"{group}"}}"#);
        let id = add(&bench, &TriggerDef { overlap, ..opening(group, 10, &order) }).await;
        let now = bench.clock.now();
        let pending = NewFiring {
            trigger_id: id,
            planned_at: now.plus_ms(8_000),
            nominal_date: None,
            source: Source::Cron,
            handler: QUEUE_DISPATCHER.to_owned(),
            status: FiringStatus::Pending,
            // Not taken up meanwhile, as if it stood at the end of the queue.
            fire_at: now.plus_ms(3_600_000),
            params: None,
            parent_batch_id: None,
            missed_until: None,
            reason: None,
        };
        let mut tx = bench.db.begin().await.expect("begin");
        firing::append(&mut tx, &[pending], None, now).await.expect("write");
        tx.commit().await.expect("commit");
        ids.push(id);
    }
    pass(&bench, &mut here, 10_000).await;
    assert_eq!(fates(&bench, ids[0]).await, "PENDING FIRED");
    assert_eq!(fates(&bench, ids[1]).await, "PENDING WAITING");
}

/// It would stop every schedule if one could.
async fn a_schedule_that_cannot_be_read_stops_no_other(bench: Bench) {
    let mut here = node(&bench).await;
    let bad = add(&bench, &every("BAD", 1)).await;
    let good = add(&bench, &every("GOOD", 1)).await;
    bench.by_hand("UPDATE job_trigger SET body = '{' WHERE trigger_code = 'BAD'").await;
    bench.clock.advance(1_000);
    beat(&mut here).await;
    assert!(fates(&bench, good).await.starts_with("FIRED"));
    assert_eq!(fates(&bench, bad).await, "");
    let ended = "SELECT COUNT(*) AS n FROM job_trigger WHERE trigger_status = 'ENDED' \
                 AND trigger_code = 'BAD' AND reason LIKE 'it cannot be read%'";
    assert_eq!(bench.number(ended).await, 1);
}

/// Somebody set a next time back by hand: a time that has a row already is left out.
async fn a_time_that_has_a_row_is_not_planned_twice(bench: Bench) {
    let mut here = node(&bench).await;
    let id = add(&bench, &every("TICK", 5)).await;
    let start = bench.clock.now();
    pass(&bench, &mut here, 10_000).await;
    let mut tx = bench.db.begin().await.expect("begin");
    let back = ScheduleProgress {
        trigger_id: id,
        revision: 1,
        next_time: Some(start.plus_ms(5_000)),
        last_time: None,
    };
    trigger::advance(&mut tx, &[back], bench.clock.now()).await.expect("advance");
    tx.commit().await.expect("commit");
    bench.clock.advance(200);
    here.core.run_tick().await.expect_err("a key is taken");
    bench.clock.advance(5_000);
    beat(&mut here).await;
    let all = firings(&bench, id).await;
    assert!(all.windows(2).all(|w| w[0].planned_at < w[1].planned_at));
    assert!(all.iter().filter(|f| f.status == FiringStatus::Fired).count() >= 3);
}

/// A schedule of one time has ended when that has come.
async fn the_last_time_ends_a_schedule(bench: Bench) {
    let mut here = node(&bench).await;
    let at = bench.clock.now().plus_ms(3_000).to_utc().naive_utc();
    let timing = Timing::plain(FiringRule::Once { at }, chrono_tz::UTC);
    let id = add(&bench, &TriggerDef { timing, ..every("LAST", 1) }).await;
    pass(&bench, &mut here, 5_000).await;
    assert_eq!(fates(&bench, id).await, "FIRED");
    let ended = "SELECT COUNT(*) AS n FROM job_trigger WHERE trigger_status = 'ENDED'";
    assert_eq!(bench.number(ended).await, 1);
    assert_eq!(firings(&bench, id).await[0].planned_at, Millis::from(at.and_utc()));
}

/// A dead node's batch of the trigger core is taken and run like any other.
async fn a_batch_of_a_schedule_runs(bench: Bench) {
    let mut here = node(&bench).await;
    bench.apply(&defs("jobs: { A: { type: NOOP }, B: { type: NOOP, depends_on: [A] } }")).await;
    let order = r#"{"batchNo":"month(-1)","group":"default","params":{}}"#;
    add(&bench, &opening("MONTH", 10, order)).await;
    pass(&bench, &mut here, 10_000).await;
    assert_eq!(here.process.take_batches().await.expect("take"), 1);
    finish(&bench, &mut here.process).await;
    let done = "SELECT COUNT(*) AS n FROM job_queue WHERE status = 'SUCCESS'";
    assert_eq!(bench.number(done).await, 2);
    let ended = format!(
        "SELECT COUNT(*) AS n FROM job_batch WHERE status = '{}' AND firing_id IS NOT NULL",
        BatchStatus::Success.as_str()
    );
    assert_eq!(bench.number(&ended).await, 1);
}

/// Runs the batches that nobody has to their ends.
async fn run_batches(bench: &Bench, here: &mut Here) {
    while here.process.take_batches().await.expect("take") > 0 {
        finish(bench, &mut here.process).await;
    }
}

async fn the_end_of_a_batch_makes_another_fire_once(bench: Bench) {
    let mut here = node(&bench).await;
    let yaml = "
jobs: { A: { group: first, type: NOOP }, B: { group: second, type: NOOP } }
groups: { first: {}, second: {} }
";
    bench.apply(&defs(yaml)).await;
    let order = r#"{"batchNo":"time(%H%M%S)","group":"first"}"#;
    add(&bench, &opening("FIRST", 10, order)).await;
    let after = |on| FiringRule::After { group: GroupCode::parse("first").expect("group"), on };
    let order = r#"{"batchNo":"same","group":"second","params":{}}"#;
    let timing = Timing::plain(after(BatchEndFilter::Success), chrono_tz::UTC);
    let second = add(&bench, &TriggerDef { timing, ..opening("SECOND", 1, order) }).await;
    let timing = Timing::plain(after(BatchEndFilter::End), chrono_tz::UTC);
    let any = add(&bench, &TriggerDef { timing, ..every("ANY", 1) }).await;
    pass(&bench, &mut here, 10_000).await;
    run_batches(&bench, &mut here).await;
    pass(&bench, &mut here, 4_000).await;
    let fired = firings(&bench, second).await;
    assert_eq!(fired.len(), 1, "{fired:?}");
    assert_eq!((fired[0].status, fired[0].source), (FiringStatus::Fired, Source::Parent));
    let first = "SELECT COUNT(*) AS n FROM job_batch a JOIN job_batch b ON a.batch_no = b.batch_no \
                 WHERE a.group_code = 'first' AND b.group_code = 'second'";
    assert_eq!(bench.number(first).await, 1);
    pass(&bench, &mut here, 7_000).await;
    assert_eq!(fates(&bench, second).await, "FIRED", "once");
    // A bad end counts for the one that asks for any.
    bench.by_hand("UPDATE job_batch SET status = 'FAILED' WHERE status = 'RUNNING'").await;
    let end = format!("UPDATE job_batch SET end_time = '{}'", sql_time(&bench));
    bench.by_hand(&format!("{end} WHERE end_time IS NULL")).await;
    pass(&bench, &mut here, 4_000).await;
    assert_eq!(fates(&bench, second).await, "FIRED");
    assert_eq!(fates(&bench, any).await, "FIRED FIRED");
}

/// A moment as the database takes it in a statement by hand.
fn sql_time(bench: &Bench) -> String {
    let form = if bench.url.starts_with("sqlite") {
        "%Y-%m-%dT%H:%M:%S%.3f+00:00"
    } else {
        "%Y-%m-%d %H:%M:%S%.3f"
    };
    bench.clock.now().to_utc().format(form).to_string()
}

async fn a_fixed_delay_counts_from_the_end(bench: Bench) {
    let mut here = node(&bench).await;
    bench.apply(&defs("jobs: { A: { type: NOOP } }")).await;
    let timing = Timing::plain(FiringRule::FixedDelay { every_sec: 10 }, chrono_tz::UTC);
    let order = r#"{"batchNo":"time(%H%M%S)","group":"default"}"#;
    let id = add(&bench, &TriggerDef { timing, ..opening("DELAY", 1, order) }).await;
    pass(&bench, &mut here, 12_000).await;
    assert_eq!(fates(&bench, id).await, "FIRED");
    pass(&bench, &mut here, 20_000).await;
    assert_eq!(fates(&bench, id).await, "FIRED", "its batch still runs");
    run_batches(&bench, &mut here).await;
    let ended = bench.clock.now();
    pass(&bench, &mut here, 14_000).await;
    let all = firings(&bench, id).await;
    assert_eq!(all.len(), 2, "{all:?}");
    let gap = all[1].planned_at.since(ended);
    assert!((9_000..=11_000).contains(&gap), "{gap} ms after the end");
}

async fn what_a_node_leaves_is_fired_on_time(bench: Bench) {
    let mut leaving = node(&bench).await;
    let id = add(&bench, &every("TICK", 1)).await;
    let found = leaving.core.planning.run_tick().await.expect("plan");
    assert_eq!(found.firings.len(), 5);
    leaving.core.planning.leave().await.expect("leave");
    let mut heir = node(&bench).await;
    pass(&bench, &mut heir, 5_000).await;
    for firing in firings(&bench, id).await.iter().take(5) {
        assert_eq!(firing.status, FiringStatus::Fired);
        assert!(firing.fired_at.expect("fired").since(firing.planned_at) < 400, "{firing:?}");
    }
}

/// The flow begins in August 2024: in October the list of 2025 is asked for, once a month.
async fn a_calendar_that_ends_is_told_of_once_a_month(bench: Bench) {
    let mut here = node(&bench).await;
    let mut calendar = Calendar::with_defaults(CalendarCode::parse("cn").expect("code"));
    calendar.years = [2024].into();
    let mut tx = bench.db.begin().await.expect("begin");
    store::calendar::put_calendar(&mut tx, &calendar, bench.clock.now()).await.expect("calendar");
    tx.commit().await.expect("commit");
    let rule = DayRule::parse("last working day of month").expect("rule");
    let at = "18:00:00".parse().expect("time");
    let timing = Timing {
        calendar: Some(calendar.code.clone()),
        ..Timing::plain(FiringRule::Rule { rule, at }, chrono_tz::UTC)
    };
    add(&bench, &TriggerDef { timing, ..every("MONTH", 1) }).await;
    let mut told = Vec::new();
    for _ in 0..13 {
        here.process.heartbeat().await.expect("heartbeat");
        beat(&mut here).await;
        let mails = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'calendar_ends'";
        told.push(bench.number(mails).await);
        bench.clock.advance(10 * 86_400_000);
    }
    // From 1 August in steps of ten days: 10 October is the eighth look.
    assert_eq!(told, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2]);
}

/// The clock has decided five firings ahead when somebody pauses, changes or skips.
async fn what_was_decided_ahead_heeds_people(bench: Bench) {
    let mut here = node(&bench).await;
    let codes = ["PAUSE", "MOVE", "SAME", "SKIP"].map(|code| every(code, 2));
    let mut ids = Vec::new();
    for def in &codes {
        ids.push(add(&bench, def).await);
    }
    beat(&mut here).await;
    assert_eq!(fates(&bench, ids[0]).await, "PENDING PENDING");
    let by = Operator::new("ann".to_owned(), "desk".to_owned());
    let deed = ScheduleActionOrigin { by: &by, reason: Some("year end"), now: bench.clock.now() };
    schedule_actions::pause(&bench.db, &codes[0].code, deed).await.expect("pause");
    let moved = |def: TriggerDef| {
        let timing = Timing::plain(FiringRule::FixedRate { every_sec: 3 }, chrono_tz::UTC);
        Ok(TriggerDef { timing, ..def })
    };
    schedule_actions::edit_schedule(&bench.db, &codes[1].code, &moved, &BTreeMap::new(), deed)
        .await
        .expect("edit");
    let renamed = |def: TriggerDef| Ok(TriggerDef { name: "other".to_owned(), ..def });
    schedule_actions::edit_schedule(&bench.db, &codes[2].code, &renamed, &BTreeMap::new(), deed)
        .await
        .expect("edit");
    let (skipped, _) =
        schedule_actions::skip_next(&bench.db, &codes[3].code, deed).await.expect("skip");
    assert_eq!(skipped.planned, bench.clock.now().plus_ms(2_000));
    pass(&bench, &mut here, 5_000).await;
    assert_eq!(fates(&bench, ids[0]).await, "SKIPPED SKIPPED");
    let reason = firings(&bench, ids[0]).await.remove(0).reason.expect("why");
    assert_eq!(reason, "paused by ann: year end");
    let starts = |words: &str, all: String| assert!(all.starts_with(words), "{all}");
    starts("SKIPPED SKIPPED", fates(&bench, ids[1]).await);
    starts("FIRED FIRED", fates(&bench, ids[2]).await);
    starts("SKIPPED FIRED", fates(&bench, ids[3]).await);
}

/// All nodes were gone when firings came due that one of them had decided: those are misses too.
async fn what_nobody_did_goes_by_the_misfire_policy(bench: Bench) {
    let mut gone = node(&bench).await;
    let mut ids = Vec::new();
    for (code, policy) in
        [("ONCE", MisfirePolicy::Once), ("SKIP", MisfirePolicy::Skip), ("ALL", MisfirePolicy::All)]
    {
        let misfire = Misfire { policy, ..Misfire::default() };
        ids.push(add(&bench, &TriggerDef { misfire, ..every(code, 4) }).await);
    }
    let found = gone.core.planning.run_tick().await.expect("plan");
    assert_eq!(found.firings.len(), 3);
    gone.core.planning.leave().await.expect("leave");
    bench.clock.advance(60_000);
    let mut heir = node(&bench).await;
    beat(&mut heir).await;
    // 15 planned times in a minute; the last two are merely late.
    let misses = "MISFIRED ".repeat(13);
    assert_eq!(
        fates(&bench, ids[1]).await.split(" PENDING").next(),
        Some(&*format!("{misses}FIRED FIRED"))
    );
    let once = fates(&bench, ids[0]).await;
    assert_eq!(once.matches("FIRED").count() - once.matches("MISFIRED").count(), 3, "{once}");
    assert!(once.starts_with(&"MISFIRED ".repeat(12)), "{once}");
    let all = fates(&bench, ids[2]).await;
    assert!(all.starts_with(&"FIRED ".repeat(15)), "{all}");
    assert_eq!(firings(&bench, ids[2]).await[0].source, Source::Misfire);
}

/// Another session has a firing of one schedule: those of the others are decided all the same. SQLite has one lock for all.
async fn a_locked_firing_keeps_those_of_no_other_schedule(bench: Bench) {
    let mut gone = node(&bench).await;
    let misfire = Misfire { policy: MisfirePolicy::All, ..Misfire::default() };
    let def = |code| TriggerDef { misfire, ..every(code, 3_600) };
    let (held, free) = (add(&bench, &def("HELD")).await, add(&bench, &def("FREE")).await);
    bench.clock.advance(3_600_000 - 1_000);
    gone.process.heartbeat().await.expect("heartbeat");
    assert_eq!(gone.core.planning.run_tick().await.expect("plan").firings.len(), 2);
    gone.core.planning.leave().await.expect("leave");
    bench.clock.advance(61_000);
    let mut heir = node(&bench).await;
    if bench.db.dialect() != store::Dialect::Sqlite {
        let mut other = bench.db.begin().await.expect("another session");
        let sql = "UPDATE job_firing SET reason = 'held' WHERE trigger_id = ?";
        other.execute(sql, &[held.0.into()]).await.expect("its row");
        beat(&mut heir).await;
        assert_eq!(fates(&bench, free).await, "FIRED");
        assert_eq!(fates(&bench, held).await, "PENDING");
        other.rollback().await.expect("undone");
    }
    beat(&mut heir).await;
    assert_eq!(
        (fates(&bench, held).await, fates(&bench, free).await),
        ("FIRED".into(), "FIRED".into())
    );
}

on_each_database! {
    a_locked_firing_keeps_those_of_no_other_schedule
    what_nobody_did_goes_by_the_misfire_policy
    what_was_decided_ahead_heeds_people
    a_calendar_that_ends_is_told_of_once_a_month
    the_end_of_a_batch_makes_another_fire_once
    a_fixed_delay_counts_from_the_end
    what_a_node_leaves_is_fired_on_time
    every_planned_time_fires_once_and_not_early
    missed_firings_leave_the_queue_and_the_next_ones_fire
    firings_of_one_moment_share_a_transaction
    what_a_dead_node_decided_another_fires_once
    two_nodes_with_the_same_firings_fire_each_once
    a_lock_row_that_is_gone_is_put_back
    misses_are_rows_and_one_mail
    a_batch_number_that_is_there_is_left_out_and_told
    an_order_that_is_refused_fails_and_is_told
    what_overlaps_does_what_its_schedule_says
    a_schedule_that_cannot_be_read_stops_no_other
    who_skips_does_not_wait_for_a_pending_firing
    a_time_that_has_a_row_is_not_planned_twice
    the_last_time_ends_a_schedule
    a_batch_of_a_schedule_runs
}
