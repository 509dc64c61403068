//! Who is at fault, by batches whose times are written down.

use super::*;
use crate::domain::batch::{BatchOrder, BatchPlan, plan};
use crate::domain::forecast::delay_words::Punctuality;
use crate::domain::id::{GroupCode, JobCode, JobType};
use crate::domain::job::pool::LockMode;
use crate::domain::job::{Definition, Group, JobDef, JobDependency};
use crate::domain::text::lang::Lang;

const MINUTE: i64 = 60_000;

/// Jobs in the order of `jobs`, each after the one before it where it is written `A>B`.
fn batch(jobs: &[&str], edges: &[(&str, &str)]) -> (BatchPlan, Dag) {
    let group = GroupCode::parse("g").expect("group");
    let code = |word: &str| JobCode::parse(word).expect("code");
    let kind = JobType::parse("NOOP").expect("type");
    let mut defs = Definition::default();
    defs.groups.push(Group::with_defaults(group.clone()));
    defs.jobs
        .extend(jobs.iter().map(|j| JobDef::with_defaults(code(j), group.clone(), kind.clone())));
    let edge =
        |(parent, child): &(&str, &str)| JobDependency::plain(&group, code(child), code(parent), 0);
    defs.dependencies.extend(edges.iter().map(edge));
    let order = BatchOrder::parse(r#"{"batchNo":"202407"}"#).expect("order");
    let plan = plan(&defs, &order, Millis(0)).expect("plan").remove(0);
    let dag = plan.snapshot.build_dag().expect("dag");
    (plan, dag)
}

/// A job that ran from minute to minute.
fn ran(start: i64, end: i64) -> JobTimes {
    let (start, end) = (Some(Millis(start * MINUTE)), Some(Millis(end * MINUTE)));
    JobTimes { status: QueueStatus::Success, first_start: start, start, end, ..waits() }
}

fn runs(start: i64) -> JobTimes {
    let start = Some(Millis(start * MINUTE));
    JobTimes { status: QueueStatus::Running, first_start: start, start, ..waits() }
}

fn waits() -> JobTimes {
    JobTimes {
        status: QueueStatus::Pending,
        first_start: None,
        start: None,
        end: None,
        not_before: None,
        released: None,
        started_over: None,
    }
}

/// The causes in words, at a minute; every job usually takes ten.
fn causes(batch: &(BatchPlan, Dag), times: &[JobTimes], now: i64) -> String {
    let report = report(batch, times, now);
    let snapshot = &batch.0.snapshot;
    let words = report.causes.iter().map(|cause| cause.describe(snapshot, Lang::En));
    words.collect::<Vec<_>>().join("; ")
}

fn report((plan, dag): &(BatchPlan, Dag), times: &[JobTimes], now: i64) -> DelayReport {
    let usual = plan.snapshot.jobs.iter().map(|job| (job.code.clone(), 10 * MINUTE));
    let history = History::from_tries(usual);
    let input = DelayInput {
        snapshot: &plan.snapshot,
        dag,
        times,
        history: &history,
        total: 2,
        opened: Millis(0),
        now: Millis(now * MINUTE),
    };
    let chain = input.decisive_chain(None);
    input.explain(&chain)
}

#[test]
fn the_job_that_took_longer_is_named_before_the_one_that_waited() {
    // C decides: B, which was early, is not on the chain.
    let batch = batch(&["A", "B", "C", "D"], &[("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")]);
    let times = [ran(0, 10), ran(10, 15), ran(12, 45), ran(45, 55)];
    let found = report(&batch, &times, 55);
    let chain: Vec<u32> = found.chain.iter().map(|link| link.job.0).collect();
    assert_eq!(chain, [0, 2, 3]);
    let link = found.chain[1];
    assert_eq!(
        (link.waited_ms, link.ran_ms, link.usual_ms),
        (2 * MINUTE, Some(33 * MINUTE), Some(10 * MINUTE))
    );
    let long = "C took 33 min 00 s, usually 10 min 00 s (+23 min 00 s)";
    assert_eq!(causes(&batch, &times, 55), format!("{long}; C started 2 min 00 s late"));
    let snapshot = &batch.0.snapshot;
    assert_eq!(
        found.sentence(snapshot, Punctuality::Late(25 * MINUTE), Lang::En).expect("words"),
        format!("Late by 25 min 00 s: {long}; C started 2 min 00 s late.")
    );
    let zh = found.sentence(snapshot, Punctuality::WillBeLate(MINUTE), Lang::Zh).expect("words");
    assert!(zh.starts_with("预计晚 1 min 00 s:C 耗时 33 min"), "{zh}");
}

#[test]
fn nothing_is_blamed_where_all_went_as_usual() {
    let batch = batch(&["A", "B"], &[("A", "B")]);
    let found = report(&batch, &[ran(0, 10), ran(10, 21)], 21);
    assert!(found.causes.is_empty(), "{found:?}");
    let words = found.sentence(&batch.0.snapshot, Punctuality::InTime, Lang::En).expect("words");
    assert_eq!(
        words,
        "What decides the end: A -> B, none of which took longer than usual or waited."
    );
    let nothing = report(&batch, &[waits(), waits()], 0);
    assert_eq!(nothing.sentence(&batch.0.snapshot, Punctuality::InTime, Lang::En), None);
}

#[test]
fn a_slot_or_a_lock_that_another_had_is_named_with_its_holder() {
    let mut batch = batch(&["A", "B", "C"], &[]);
    // Two slots: C began when A ended.
    let times = [ran(0, 30), ran(0, 40), ran(30, 52)];
    let words = causes(&batch, &times, 52);
    let slot = "C waited 30 min 00 s for a slot, in use by A";
    assert!(words.starts_with(slot), "{words}");
    for at in [1, 2] {
        let lock =
            crate::domain::job::pool::LockUse { lock: "gl".into(), mode: LockMode::Exclusive };
        batch.0.snapshot.jobs[at].locks.push(lock);
    }
    let times = [ran(0, 1), ran(0, 40), ran(40, 52)];
    let words = causes(&batch, &times, 52);
    assert!(words.starts_with("C waited 40 min 00 s for lock gl, in use by B"), "{words}");
    // It waits still, and runs by no clock.
    let words = causes(&batch, &[ran(0, 1), runs(0), waits()], 25);
    assert!(words.starts_with("B took 25 min 00 s"), "{words}");
}

#[test]
fn holds_retries_times_and_approvals_have_their_share() {
    let mut batch = batch(&["A", "B"], &[("A", "B")]);
    let b = JobTimes {
        first_start: Some(Millis(35 * MINUTE)),
        released: Some(Millis(33 * MINUTE)),
        ..ran(47, 57)
    };
    let words = causes(&batch, &[ran(0, 10), b], 57);
    assert_eq!(
        words,
        "B was held for 23 min 00 s; B was retried for 12 min 00 s; B started 2 min 00 s late"
    );
    // A planned time delays nothing, what came after it does.
    batch.0.snapshot.jobs[1].schedule_time = chrono::NaiveTime::from_hms_opt(0, 20, 0);
    let b = JobTimes { not_before: Some(Millis(20 * MINUTE)), ..ran(23, 33) };
    assert_eq!(causes(&batch, &[ran(0, 10), b], 33), "B started 3 min 00 s late");
    batch.0.snapshot.jobs[1].job_type = JobType::parse("APPROVAL").expect("type");
    let words = causes(&batch, &[ran(0, 10), runs(20)], 80);
    assert!(words.starts_with("B waited 1 h 00 min for approval"), "{words}");
    let held = JobTimes { status: QueueStatus::Held, ..waits() };
    let found = report(&batch, &[ran(0, 10), held], 80);
    assert_eq!(found.chain.len(), 1, "what is over decides where nothing runs: {found:?}");
}

#[test]
fn another_batch_is_named_where_nothing_of_this_one_was_in_the_way() {
    let mut batch = batch(&["A"], &[]);
    let other = r#"{"job_code":"A","group":"feeds","batch":"202406"}"#;
    batch.0.snapshot.externals.push(serde_json::from_str(other).expect("external"));
    assert_eq!(causes(&batch, &[ran(15, 25)], 25), "A waited 15 min 00 s for group feeds");
}

#[test]
fn the_log_knows_earlier_attempts_holds_and_restarts() {
    use QueueStatus as S;
    let change = |minute: i64, status, start: Option<i64>| StateChange {
        at: Millis(minute * MINUTE),
        status,
        start: start.map(|minute| Millis(minute * MINUTE)),
    };
    let row = ran(70, 80);
    let log = [
        change(0, S::Pending, None),
        change(5, S::Running, Some(5)),
        change(9, S::Failed, Some(5)),
        change(40, S::Pending, None),
        change(41, S::Held, None),
        change(55, S::Pending, None),
        change(56, S::Running, Some(56)),
        change(60, S::RetryWait, Some(56)),
        change(70, S::Running, Some(70)),
        change(80, S::Success, Some(70)),
    ];
    let times = row.with_changes(&log);
    let minutes = |at: Option<Millis>| at.map(|at| at.0 / MINUTE);
    assert_eq!(
        [times.started_over, times.released, times.first_start, times.start].map(minutes),
        [Some(40), Some(55), Some(56), Some(70)]
    );
    let words = causes(&batch(&["A"], &[]), &[times], 80);
    assert_eq!(
        words,
        "A was started over after 40 min 00 s; A was held for 15 min 00 s; \
         A was retried for 14 min 00 s; A started 1 min 00 s late"
    );
    // A row without a log is what it is.
    assert_eq!(row.with_changes(&[]), row);
}
