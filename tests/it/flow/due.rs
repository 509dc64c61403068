//! What is late is told while it is late, once, whoever dispatches the batch meanwhile.

use crate::flow::{Bench, START, defs, finish, on, on_each_database, order};
use procession::domain::action::OperatorAction;
use procession::domain::action::rerun::{RerunScope, UnknownJobs};
use procession::domain::batch::{Batch, BatchOrder};
use procession::domain::calendar::{Calendar, CalendarDayRule, Calendars, DayKind, DayOrigin};
use procession::domain::id::{BatchId, CalendarCode, JobCode};
use procession::domain::source::DialectName;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::operate::operator_actions::{self, Command};
use procession::engine::operate::pause;
use procession::store;
use procession::store::audit::Operator;
use procession::store::batch::Going;
use std::path::Path;

const MINUTE: i64 = 60_000;

/// A script that ends when the test opens its gate.
fn gated(folder: &Path) -> String {
    format!("while [ ! -e {}/go ]; do sleep 0.02; done", folder.display())
}

fn open_gate(folder: &Path) {
    std::fs::write(folder.join("go"), "").expect("gate");
}

async fn batch(bench: &Bench, id: BatchId) -> Batch {
    let mut tx = bench.db.begin_read().await.expect("read");
    store::batch::get(&mut tx, id).await.expect("batch")
}

fn li() -> Operator {
    Operator::new("li".to_owned(), "desk".to_owned())
}

/// How many different mails of a type there are: the outbox knows those of one key apart.
async fn told(bench: &Bench, kind: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) AS n FROM email_notifications WHERE type = '{kind}'");
    bench.number(&sql).await
}

/// How many rows of the outbox have a type and a text in their body.
async fn said(bench: &Bench, kind: &str, text: &str) -> i64 {
    // The row's text is in one language, its letter in both.
    let sql = format!(
        "SELECT COUNT(*) AS n FROM email_notifications WHERE type = '{kind}' \
         AND (body LIKE '%{text}%' OR letter LIKE '%{text}%')"
    );
    bench.number(&sql).await
}

async fn opened(process: &mut QueueDispatcher, yaml: &str, number: &str) -> BatchId {
    let order = BatchOrder::parse(&format!(r#"{{"batchNo":"{number}"}}"#)).expect("order");
    process.open_batches(&defs(yaml), &order, "test").await.expect("open").remove(0)
}

/// Another process takes a batch over, after the lease of the one before is over.
async fn taken_over(bench: &Bench, id: BatchId) -> QueueDispatcher {
    bench.clock.advance(16_000);
    let there = batch(bench, id).await;
    let mut process = bench.process().await;
    process.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    process
}

async fn quiet(process: &mut QueueDispatcher) {
    for _ in 0..100 {
        if !process.run_tick().await.expect("beat") {
            return;
        }
    }
    panic!("it does not come to rest");
}

async fn late_jobs_are_told_before_they_end_and_when_they_never_started(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let runs = gated(folder.path());
    let yaml = format!(
        "
groups: {{ g: {{ due: 15m, notify_email: [ops@bank.example, 'channel:ops'] }} }}
defaults: {{ type: NOOP }}
jobs:
  SLOW: {{ type: SCRIPT, interpreter: sh, script: '{runs}', due: '00:10', idempotent: true }}
  NEXT: {{ depends_on: [SLOW], start_by: 5m, due: +1d 08:00 }}
  QUICK: {{ start_by: 1m, due: 10m }}
"
    );
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs(&yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    quiet(&mut process).await;
    assert_eq!(bench.states(ids[0]).await, "SLOW=RUNNING NEXT=PENDING QUICK=SUCCESS");
    let wake = process.next_wake();
    assert_eq!(wake, Some(START.plus_ms(MINUTE)), "timers, not questions");
    bench.clock.advance(5 * MINUTE);
    // The commit that tells fails: the next tells it.
    bench.by_hand("ALTER TABLE email_notifications RENAME TO away").await;
    process.run_tick().await.expect_err("a table is away");
    bench.by_hand("ALTER TABLE away RENAME TO email_notifications").await;
    quiet(&mut process).await;
    let all = "SELECT COUNT(*) AS n FROM email_notifications";
    assert_eq!((told(&bench, "late_start").await, bench.number(all).await), (2, 2));
    assert_eq!(said(&bench, "late_start", "waits for SLOW").await, 2);
    assert_eq!(said(&bench, "late_start", "等待 SLOW").await, 2);
    assert_eq!(process.next_wake(), Some(START.plus_ms(10 * MINUTE)));
    bench.clock.advance(5 * MINUTE);
    quiet(&mut process).await;
    assert_eq!((told(&bench, "late_finish").await, bench.number(all).await), (2, 4));
    assert_eq!(said(&bench, "late_finish", "runs (start 1").await, 2, "before it ended");
    // Memory that is read anew, because an operator changed something, tells nothing again.
    bench.by_hand("UPDATE job_batch SET revision = revision + 1").await;
    process.poll_changes().await.expect("look");
    quiet(&mut process).await;
    assert_eq!(bench.number(all).await, 4, "once");
    // Nobody has the batch when it is due; whoever takes it tells.
    drop(process);
    bench.clock.advance(10 * MINUTE);
    let mut second = taken_over(&bench, ids[0]).await;
    quiet(&mut second).await;
    assert_eq!((told(&bench, "late_start").await, told(&bench, "late_finish").await), (2, 4));
    assert_eq!(said(&bench, "late_finish", "SLOW, NEXT").await, 2, "the batch, with what is open");
    let before = bench.number(all).await;
    quiet(&mut second).await;
    assert_eq!(bench.number(all).await, before);
    assert_eq!(second.next_wake(), Some(START.plus_ms(32 * 60 * MINUTE)), "that of NEXT is left");
    open_gate(folder.path());
    finish(&bench, &mut second).await;
    assert_eq!(bench.states(ids[0]).await, "SLOW=SUCCESS NEXT=SUCCESS QUICK=SUCCESS");
    assert_eq!(bench.number(all).await, before, "what is done is not late");
}

async fn a_paused_batch_is_late_and_what_is_given_up_is_not(bench: Bench) {
    let yaml = "
groups: { g: { notify_email: [ops@bank.example] } }
defaults: { type: NOOP, start_by: 10m }
jobs: { A: {}, B: { schedule_time: '02:00' }, C: { depends_on: [B] } }
";
    let mut process = bench.process().await;
    let id = opened(&mut process, yaml, "1").await;
    let now = bench.clock.now();
    pause::set_going(&bench.db, id, Going::Paused, &li(), "rates", now).await.expect("pause");
    process.poll_changes().await.expect("look");
    act(&bench, id, OperatorAction::Skip, "C").await;
    process.poll_changes().await.expect("look");
    bench.clock.advance(10 * MINUTE);
    quiet(&mut process).await;
    assert_eq!(bench.states(id).await, "A=PENDING B=PENDING C=SKIPPED");
    assert_eq!(told(&bench, "late_start").await, 2);
    assert_eq!(said(&bench, "late_start", "the batch is paused").await, 1);
    assert_eq!(said(&bench, "late_start", "not before 2024-08-01T02:00").await, 1);
}

async fn what_is_started_over_is_late_by_what_comes_after(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = format!(
        "
groups: {{ g: {{ due: 60m, notify_email: [ops@bank.example] }} }}
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  A: {{ due: 30m, script: 'test -e {}/go' }}
  B: {{ due: 30m, script: 'exit 0' }}
",
        folder.path().display()
    );
    let mut process = bench.process().await;
    let id = opened(&mut process, &yaml, "1").await;
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "A=FAILED B=SUCCESS");
    let rerun = OperatorAction::Rerun(RerunScope::These, UnknownJobs::Leave);
    // Before it is due, and the process dies: whoever takes it over tells.
    bench.clock.advance(20 * MINUTE);
    act(&bench, id, rerun, "A").await;
    pause::set_going(&bench.db, id, Going::Paused, &li(), "x", bench.clock.now())
        .await
        .expect("pause");
    bench.clock.advance(20 * MINUTE);
    let mut process = taken_over(&bench, id).await;
    quiet(&mut process).await;
    assert_eq!(told(&bench, "late_finish").await, 1, "A is, B was in time");
    drop(process);
    // Both were over before the second start.
    bench.clock.advance(60 * MINUTE);
    let mut process = taken_over(&bench, id).await;
    quiet(&mut process).await;
    assert_eq!(told(&bench, "late_finish").await, 2, "the batch as well");
    pause::set_going(&bench.db, id, Going::On, &li(), "x", bench.clock.now()).await.expect("go on");
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "A=FAILED B=SUCCESS");
    let all = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'late_finish'";
    let before = bench.number(all).await;
    bench.clock.advance(24 * 60 * MINUTE);
    act(&bench, id, rerun, "B").await;
    let mut process = taken_over(&bench, id).await;
    finish(&bench, &mut process).await;
    assert_eq!(bench.number(all).await, before, "long after it was due nobody hears of it again");
}

async fn a_batch_that_failed_in_time_and_goes_on_too_late_is_late(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let go = folder.path().join("go");
    let yaml = format!(
        "
groups: {{ g: {{ due: 60m, notify_email: [ops@bank.example] }} }}
defaults: {{ type: SCRIPT, interpreter: sh, idempotent: true }}
jobs:
  A: {{ script: 'test -e {}' }}
  B: {{ script: 'exit 0', depends_on: [A] }}
",
        go.display()
    );
    let mut process = bench.process().await;
    let id = opened(&mut process, &yaml, "1").await;
    finish(&bench, &mut process).await;
    drop(process);
    bench.clock.advance(120 * MINUTE);
    assert_eq!(
        told(&bench, "late_finish").await,
        0,
        "it had ended, badly, and its owners know that"
    );
    std::fs::write(&go, "").expect("the cure");
    act(&bench, id, OperatorAction::Rerun(RerunScope::Downstream, UnknownJobs::Leave), "A").await;
    let mut process = taken_over(&bench, id).await;
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "A=SUCCESS B=SUCCESS");
    assert_eq!(told(&bench, "late_finish").await, 1);
}

async fn act(bench: &Bench, batch: BatchId, action: OperatorAction, job: &str) {
    let (jobs, by) = ([JobCode::parse(job).expect("code")], li());
    let command =
        Command { batch, action, jobs: &jobs, latest: None, by: &by, reason: "month is open" };
    let now = bench.clock.now();
    let ahead = operator_actions::look_ahead(&bench.db, &command, now).await.expect("look ahead");
    operator_actions::carry_out(&bench.db, &command, &ahead.lines, now).await.expect("act");
}

async fn a_hold_is_told_once_after_its_time(bench: Bench) {
    let yaml = "
groups: { g: { held_after_sec: 3600, notify_email: [ops@bank.example] } }
jobs: { A: { type: NOOP, schedule_time: '20:00' } }
";
    let mut process = bench.process().await;
    let id = opened(&mut process, yaml, "1").await;
    quiet(&mut process).await;
    act(&bench, id, OperatorAction::Hold, "A").await;
    process.poll_changes().await.expect("look");
    assert_eq!(process.next_wake(), Some(START.plus_ms(60 * MINUTE)));
    // Another process counts on from the hold.
    drop(process);
    bench.clock.advance(30 * MINUTE);
    let mut process = taken_over(&bench, id).await;
    quiet(&mut process).await;
    assert_eq!(told(&bench, "held_long").await, 0);
    assert_eq!(process.next_wake(), Some(START.plus_ms(60 * MINUTE)));
    bench.clock.advance(30 * MINUTE);
    quiet(&mut process).await;
    assert_eq!(said(&bench, "held_long", "month is open").await, 1);
    bench.clock.advance(24 * 60 * MINUTE);
    quiet(&mut process).await;
    let all = "SELECT COUNT(*) AS n FROM email_notifications";
    assert_eq!(bench.number(all).await, 1, "once");
    // The next hold is another.
    act(&bench, id, OperatorAction::Release, "A").await;
    process.poll_changes().await.expect("look");
    act(&bench, id, OperatorAction::Hold, "A").await;
    process.poll_changes().await.expect("look");
    bench.clock.advance(59 * MINUTE);
    quiet(&mut process).await;
    assert_eq!(bench.number(all).await, 1);
    bench.clock.advance(MINUTE);
    quiet(&mut process).await;
    assert_eq!(bench.number(all).await, 2);
}

/// One batch whose jobs take so many minutes each, one after the other.
async fn ran(
    bench: &Bench,
    process: &mut QueueDispatcher,
    (yaml, no): (&str, &str),
    minutes: &[i64],
) {
    opened(process, yaml, no).await;
    for minutes in minutes {
        while process.running() == 0 {
            assert!(process.run_tick().await.expect("beat"), "nothing starts");
        }
        process.wait_for_report().await;
        bench.clock.advance(minutes * MINUTE);
        process.run_tick().await.expect("beat");
    }
    quiet(process).await;
    assert!(process.is_idle());
}

async fn a_try_that_is_not_usual_is_told_of(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let runs = gated(folder.path());
    let yaml = format!(
        "
groups: {{ g: {{ slow_after: 2, notify_email: [ops@bank.example] }} }}
jobs: {{ A: {{ type: SCRIPT, interpreter: sh, script: '{runs}', timeout_sec: 36000 }} }}
"
    );
    open_gate(folder.path());
    let mut process = bench.process().await;
    for no in ["1", "2", "3", "4", "5"] {
        assert_eq!(told(&bench, "running_long").await, 0);
        ran(&bench, &mut process, (&yaml, no), &[10]).await;
    }
    std::fs::remove_file(folder.path().join("go")).expect("gate");
    let id = opened(&mut process, &yaml, "6").await;
    process.run_tick().await.expect("beat");
    assert_eq!(process.next_wake(), Some(bench.clock.now().plus_ms(20 * MINUTE)));
    bench.clock.advance(20 * MINUTE);
    quiet(&mut process).await;
    assert_eq!(said(&bench, "running_long", "p95 10 min 00 s, 5 tries").await, 1);
    bench.clock.advance(200 * MINUTE);
    quiet(&mut process).await;
    assert_eq!(told(&bench, "running_long").await, 1, "once");
    open_gate(folder.path());
    finish(&bench, &mut process).await;
    assert_eq!(bench.states(id).await, "A=SUCCESS");
    let lines = "SELECT COUNT(*) AS n FROM job_log_line WHERE stream = 'system' \
                 AND line_text = 'still runs after 20 min 00 s; told 1 address'";
    assert_eq!(bench.number(lines).await, 1, "in the log of the try");
}

async fn a_batch_that_will_be_late_is_told_of_before_it_is(bench: Bench) {
    let yaml = "
groups: { g: { due: 35m, notify_email: [ops@bank.example] } }
templates: { t: { type: SCRIPT, interpreter: sh, script: 'exit 0' } }
defaults: { group: g, idempotent: true }
jobs: { A: { template: t }, B: { template: t, depends_on: [A] }, C: { template: t, depends_on: [B] } }
";
    let mut process = bench.process().await;
    ran(&bench, &mut process, (yaml, "1"), &[10, 10, 10]).await;
    assert_eq!(told(&bench, "will_be_late").await, 0);
    let id = opened(&mut process, yaml, "2").await;
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    // A takes 20 minutes instead of ten, so the end is at 40.
    bench.clock.advance(9 * MINUTE);
    let due = bench.clock.now().plus_ms(26 * MINUTE);
    assert_eq!(told(&bench, "will_be_late").await, 0, "in time so far");
    bench.clock.advance(11 * MINUTE);
    process.run_tick().await.expect("beat");
    assert_eq!(told(&bench, "will_be_late").await, 1, "when something ended");
    assert_eq!(said(&bench, "will_be_late", "late by 5 min 00 s").await, 1);
    assert_eq!(said(&bench, "will_be_late", "B -> C").await, 1);
    // Whose fault it is, and that one batch is no past to rely on.
    let fault = "Expected to be late by 5 min 00 s: A took 20 min 00 s, usually 10 min 00 s";
    assert_eq!(said(&bench, "will_be_late", fault).await, 1);
    assert_eq!(said(&bench, "will_be_late", "rough: fewer than 5 good tries of B").await, 1);
    assert_eq!(said(&bench, "will_be_late", &due.to_string()).await, 1);
    // Memory that is read anew tells nothing again.
    bench.by_hand("UPDATE job_batch SET revision = revision + 1").await;
    process.poll_changes().await.expect("look");
    bench.clock.advance(2 * MINUTE);
    quiet(&mut process).await;
    let all = "SELECT COUNT(*) AS n FROM email_notifications";
    assert_eq!(bench.number(all).await, 1);
    // Nor does, under another key, another process.
    drop(process);
    let mut second = taken_over(&bench, id).await;
    quiet(&mut second).await;
    let keys = "SELECT COUNT(DISTINCT type) AS n FROM email_notifications";
    assert_eq!(bench.number(keys).await, 1);
    finish(&bench, &mut second).await;
}

async fn working_days_are_those_of_the_calendar_that_was_there(bench: Bench) {
    let yaml = "
groups: { g: { time_zone: Asia/Shanghai, calendar: cn, due: workday(+1) 08:00, notify_email: [a@b.c] } }
jobs: { A: { type: NOOP, schedule_time: '23:00', start_by: workday(1) 12:00 } }
";
    let code = CalendarCode::parse("cn").expect("code");
    let mut cn = Calendar::with_defaults(code);
    let off = CalendarDayRule { kind: DayKind::Off, label: None, origin: DayOrigin::List(2024) };
    // Friday, the day after that of the batch.
    cn.days.insert("2024-08-02".parse().expect("day"), off);
    let defs = {
        let mut defs = defs(yaml);
        defs.calendars = Calendars::new(vec![cn]).expect("sound");
        defs
    };
    let mut process = bench.process().await;
    let id = process.open_batches(&defs, &order(), "test").await.expect("open")[0];
    quiet(&mut process).await;
    // 12:00 in Shanghai is 04:00; 08:00 on Monday, 5 August is midnight.
    assert_eq!(process.next_wake(), Some(START.plus_ms(4 * 60 * MINUTE)));
    act(&bench, id, OperatorAction::Hold, "A").await;
    process.poll_changes().await.expect("look");
    bench.clock.advance(4 * 60 * MINUTE);
    quiet(&mut process).await;
    assert_eq!(told(&bench, "late_start").await, 1);
    // What a process finds that reads the batch from its rows.
    drop(process);
    let mut second = taken_over(&bench, id).await;
    bench.clock.advance(4 * 24 * 60 * MINUTE - 4 * 60 * MINUTE - 16_001);
    quiet(&mut second).await;
    assert_eq!(told(&bench, "late_finish").await, 0);
    bench.clock.advance(1);
    quiet(&mut second).await;
    assert_eq!(said(&bench, "late_finish", "2024-08-05T00:00:00").await, 1);
}

/// The page's own example is a definition, and says what the page says it does.
#[test]
fn the_page_shows_a_definition() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/lateness.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, rest) = page.split_once("```yaml\n").expect("an example");
    let (yaml, _) = rest.split_once("```").expect("its end");
    let defs = defs(yaml);
    let words = defs.jobs.iter().map(|j| [j.start_by, j.due].map(|d| d.map(|d| d.to_string())));
    let of = |word: &str| Some(word.to_owned());
    let wanted = [[of("30m"), of("+1d 02:00")], [None, of("+1d 06:00")], [None, None]];
    assert_eq!(words.collect::<Vec<_>>(), wanted);
    let group = &defs.groups[0];
    assert_eq!(group.due.map(|due| due.to_string()), of("workday(+2) 08:00"));
    assert_eq!(
        (group.slow_after.map(|f| f.times(10)), group.held_after_sec),
        (Some(20), Some(14_400))
    );
    // Each form of the table is one.
    let (_, table) = page.split_once("## By when").expect("the table");
    let forms = table.lines().filter(|line| line.starts_with("| `"));
    let forms = forms.flat_map(|line| {
        let cell = line.split('|').nth(1).expect("a cell");
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    });
    let forms: Vec<String> = forms.collect();
    assert_eq!(forms.len(), 8, "{forms:?}");
    for form in &forms {
        assert!(form.parse::<procession::domain::schedule::due::DueRule>().is_ok(), "{form}");
    }
}

on_each_database! {
    late_jobs_are_told_before_they_end_and_when_they_never_started
    a_paused_batch_is_late_and_what_is_given_up_is_not
    what_is_started_over_is_late_by_what_comes_after
    a_batch_that_failed_in_time_and_goes_on_too_late_is_late
    a_hold_is_told_once_after_its_time
    a_try_that_is_not_usual_is_told_of
    a_batch_that_will_be_late_is_told_of_before_it_is
    working_days_are_those_of_the_calendar_that_was_there
}
