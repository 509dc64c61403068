//! Jobs that wait for a person: nothing is held meanwhile, one decision counts, and none is lost.

use crate::flow::cluster::{node, pass, until_states};
use crate::flow::lease::until;
use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use procession::domain::access::approval::{ApprovalStatus, ApprovalVerdict, ApproverRefused};
use procession::domain::action::rerun::UnknownJobs;
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::cluster::node_placement::NodeRole;
use procession::domain::id::{BatchId, JobCode};
use procession::domain::job::Definition;
use procession::domain::job::queue::QueueStatus;
use procession::domain::source::DialectName;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::opening::create_batch::open_for_anyone;
use procession::engine::operate::approvals::{DecisionRefused, DecisionRequest, decide};
use procession::engine::operate::pause;
use procession::store::approval::Approval;
use procession::store::audit::Operator;
use procession::store::batch::Going;
use procession::store::{self, approval};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// RELEASE waits between two jobs; more keys of it are given.
fn yaml(more: &str) -> Definition {
    defs(&format!(
        "
owners: {{ heads: {{ email: [head@bank.example] }} }}
jobs:
  LOAD: {{ type: NOOP }}
  RELEASE:
    type: APPROVAL
    depends_on: [LOAD]
    owner: heads
    approval: {{ role: operator, question: 'Post the month?' }}
    {more}
  POST: {{ type: NOOP, depends_on: [RELEASE] }}
  OTHER: {{ type: NOOP, depends_on: [LOAD] }}
"
    ))
}

fn person(name: &str) -> Operator {
    Operator::new(name.to_owned(), "10.1.1.1".to_owned())
}

/// Decides about RELEASE, as the command line does.
async fn say(
    bench: &Bench,
    id: BatchId,
    (name, verdict, comment): (&str, ApprovalVerdict, Option<&str>),
) -> Result<(Approval, bool), DecisionRefused> {
    let mut tx = bench.db.begin_read().await.expect("read");
    let batch = store::batch::get(&mut tx, id).await.expect("the batch");
    let code = JobCode::parse("RELEASE").expect("a code");
    let row = store::queue::of_job(&mut tx, id, &code).await.expect("read").expect("the job");
    drop(tx);
    let by = person(name);
    let request =
        DecisionRequest { batch: &batch, row: &row, verdict, comment, by: &by, grants: None };
    let decided = decide(&bench.db, &request, bench.clock.now()).await;
    decided.map_err(|error| error.downcast::<DecisionRefused>().expect("a refusal"))
}

/// Opens the batch and beats until RELEASE waits.
async fn until_it_waits(
    bench: &Bench,
    defs: &Definition,
    process: &mut QueueDispatcher,
) -> BatchId {
    let ids = process.open_batches(defs, &order(), "li.na").await.expect("open");
    let waits = "SELECT COUNT(*) AS n FROM job_approval WHERE status = 'WAITING'";
    while bench.number(waits).await == 0 || !bench.states(ids[0]).await.contains("OTHER=SUCCESS") {
        if !process.run_tick().await.expect("beat") {
            tokio::select! {
                () = process.wait_for_report() => {}
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
        }
    }
    ids[0]
}

/// Beats once something has come, and twice at least.
async fn some_beats(process: &mut QueueDispatcher) {
    for _ in 0..20 {
        if !process.run_tick().await.expect("beat") {
            tokio::select! {
                () = process.wait_for_report() => {}
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
        }
    }
}

async fn approvals(bench: &Bench) -> Vec<String> {
    let mut tx = bench.db.begin_read().await.expect("read");
    let filter = approval::ApprovalFilter::default();
    let page = approval::list_page(&mut tx, &filter, None, None, 100).await.expect("page");
    page.iter().rev().map(|a| a.decision.status.to_string()).collect()
}

async fn it_holds_no_slot_and_goes_on_once_approved(mut bench: Bench) {
    bench.options.max_parallel = 1;
    let defs = yaml("");
    let mut process = bench.process().await;
    let id = until_it_waits(&bench, &defs, &mut process).await;
    let states = "LOAD=SUCCESS RELEASE=RUNNING POST=PENDING OTHER=SUCCESS";
    assert_eq!(bench.states(id).await, states, "the one slot was OTHER's");
    // Written by the attempt behind its question.
    let is_written = async || bench.rows(id).await[1].waits_on.is_some();
    until("the row says what it waits for", is_written).await;
    let waits_on = bench.rows(id).await[1].waits_on.clone().expect("what it waits for");
    assert!(waits_on.starts_with("approval by an operator of default, until "), "{waits_on}");
    let mails = "SELECT COUNT(*) AS n FROM email_notifications \
                 WHERE type = 'approval_wanted' AND recipient_email = 'head@bank.example' \
                 AND status = 'pending'";
    assert_eq!(bench.number(mails).await, 1);
    let (there, written) = say(&bench, id, ("wang", ApprovalVerdict::Approve, Some("agrees")))
        .await
        .expect("approved");
    assert!(written && there.decision.status == ApprovalStatus::Approved);
    finish(&bench, &mut process).await;
    assert_eq!(bench.batch("default").await.status, BatchStatus::Success);
    let row = bench.rows(id).await[1].clone();
    assert_eq!(row.error_message.as_deref(), Some("approved by wang: agrees"));
    assert_eq!(row.waits_on, None);
    let logged = "SELECT COUNT(*) AS n FROM job_execution_logs \
                  WHERE status = 'SUCCESS' AND error_message = 'approved by wang: agrees'";
    assert_eq!(bench.number(logged).await, 1);
    let outputs = bench.outputs(id, "RELEASE").await;
    assert_eq!(outputs.value("decided_by").as_deref(), Some("wang"));
    assert_eq!(outputs.value("comment").as_deref(), Some("agrees"));
    let audit = "SELECT COUNT(*) AS n FROM audit_log WHERE action = 'approve' AND actor = 'wang' \
                 AND job_code = 'RELEASE' AND batch_no = '202407'";
    assert_eq!(bench.number(audit).await, 1);
    // The same decision again changes nothing, another one is refused.
    let again = say(&bench, id, ("wang", ApprovalVerdict::Approve, None)).await.expect("the same");
    assert!(!again.1);
    let refused =
        say(&bench, id, ("zhao", ApprovalVerdict::Reject, Some("no"))).await.expect_err("late");
    assert!(refused.to_string().contains("approved by wang: agrees at "), "{refused}");
    assert_eq!(bench.number(audit).await, 1);
}

async fn a_rejection_is_not_tried_again(bench: Bench) {
    let defs = yaml("retry_count: 3");
    let mut process = bench.process().await;
    let id = until_it_waits(&bench, &defs, &mut process).await;
    let refused =
        say(&bench, id, ("wang", ApprovalVerdict::Reject, Some(" "))).await.expect_err("why");
    assert_eq!(refused, DecisionRefused::NoComment);
    say(&bench, id, ("wang", ApprovalVerdict::Reject, Some("wrong rates")))
        .await
        .expect("rejected");
    finish(&bench, &mut process).await;
    let states = "LOAD=SUCCESS RELEASE=FAILED POST=UPSTREAM_FAILED OTHER=SUCCESS";
    assert_eq!(bench.states(id).await, states);
    let row = bench.rows(id).await[1].clone();
    assert_eq!(row.error_message.as_deref(), Some("rejected by wang: wrong rates"));
    // Started over it asks anew.
    bench.clock.advance(1_000);
    let there = bench.batch("default").await;
    process.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    some_beats(&mut process).await;
    assert_eq!(approvals(&bench).await, ["REJECTED", "WAITING"]);
    say(&bench, id, ("wang", ApprovalVerdict::Approve, None)).await.expect("approved");
    finish(&bench, &mut process).await;
    assert_eq!(bench.batch("default").await.status, BatchStatus::Success);
}

async fn a_decision_made_while_no_process_runs_counts(bench: Bench) {
    let defs = yaml("");
    let mut first = bench.process().await;
    let id = until_it_waits(&bench, &defs, &mut first).await;
    drop(first);
    bench.clock.advance(16_000);
    say(&bench, id, ("wang", ApprovalVerdict::Approve, None)).await.expect("approved");
    let mut second = bench.process().await;
    let there = bench.batch("default").await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut second).await;
    assert_eq!(bench.batch("default").await.status, BatchStatus::Success);
    assert_eq!(approvals(&bench).await, ["APPROVED"], "it was asked once");
    let mails = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'approval_wanted'";
    assert_eq!(bench.number(mails).await, 1, "and told once");
}

/// The first process dies, or leaves in order; the next waits on for the same approval.
async fn the_next_process_waits_on(bench: Bench) {
    let defs = yaml("");
    let mut first = bench.process().await;
    let id = until_it_waits(&bench, &defs, &mut first).await;
    let stop = CancellationToken::new();
    stop.cancel();
    first.run_until_done(&stop).await.expect("ends");
    first.leave().await.expect("leave");
    assert_eq!(approvals(&bench).await, ["WAITING"]);
    let mut second = bench.process().await;
    let there = bench.batch("default").await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    some_beats(&mut second).await;
    drop(second);
    bench.clock.advance(16_000);
    let mut third = bench.process().await;
    let there = bench.batch("default").await;
    third.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    some_beats(&mut third).await;
    assert_eq!(approvals(&bench).await, ["WAITING"]);
    let deadline = "SELECT COUNT(*) AS n FROM job_approval WHERE deadline > create_time";
    assert_eq!(bench.number(deadline).await, 1);
    say(&bench, id, ("wang", ApprovalVerdict::Approve, None)).await.expect("approved");
    finish(&bench, &mut third).await;
    assert_eq!(bench.batch("default").await.status, BatchStatus::Success);
    assert_eq!(bench.rows(id).await[1].attempt, 3);
    let mails = "SELECT COUNT(*) AS n FROM email_notifications WHERE type = 'approval_wanted'";
    assert_eq!(bench.number(mails).await, 1);
}

async fn time_runs_out_as_the_job_says(bench: Bench) {
    let defs = yaml("retry_count: 1\n    timeout_sec: 1");
    let mut process = bench.process().await;
    let ids = process.open_batches(&defs, &order(), "li.na").await.expect("open");
    finish(&bench, &mut process).await;
    let states = "LOAD=SUCCESS RELEASE=TIMEOUT POST=UPSTREAM_FAILED OTHER=SUCCESS";
    assert_eq!(bench.states(ids[0]).await, states);
    assert_eq!(approvals(&bench).await, ["EXPIRED", "EXPIRED"], "each attempt asks anew");
    let message = bench.rows(ids[0]).await[1].error_message.clone().unwrap_or_default();
    assert!(message.contains("nobody decided in time"), "{message}");
    let refused =
        say(&bench, ids[0], ("wang", ApprovalVerdict::Approve, None)).await.expect_err("late");
    assert!(refused.to_string().contains("nobody decided in time"), "{refused}");
}

async fn a_kill_ends_the_question(bench: Bench) {
    let defs = yaml("");
    let mut process = bench.process().await;
    let id = until_it_waits(&bench, &defs, &mut process).await;
    let (by, now) = (person("zhao"), bench.clock.now());
    assert!(pause::stop_batch(&bench.db, id, &by, "wrong month", now).await.expect("stop"));
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(bench.rows(id).await[1].status, QueueStatus::Killed);
    assert_eq!(approvals(&bench).await, ["WITHDRAWN"]);
    let refused =
        say(&bench, id, ("wang", ApprovalVerdict::Approve, None)).await.expect_err("ended");
    assert!(refused.to_string().contains("stopped before a decision"), "{refused}");
}

async fn a_batch_that_is_paused_starts_nothing_after_it(bench: Bench) {
    let defs = yaml("");
    let mut process = bench.process().await;
    let id = until_it_waits(&bench, &defs, &mut process).await;
    let zhao = person("zhao");
    let set = |to| pause::set_going(&bench.db, id, to, &zhao, "look first", bench.clock.now());
    assert!(set(Going::Paused).await.expect("pause"));
    process.poll_changes().await.expect("look");
    say(&bench, id, ("wang", ApprovalVerdict::Approve, None)).await.expect("approved");
    some_beats(&mut process).await;
    let states = "LOAD=SUCCESS RELEASE=SUCCESS POST=PENDING OTHER=SUCCESS";
    assert_eq!(bench.states(id).await, states);
    assert!(set(Going::On).await.expect("go on"));
    process.poll_changes().await.expect("look");
    finish(&bench, &mut process).await;
    assert_eq!(bench.batch("default").await.status, BatchStatus::Success);
}

/// Twenty times an approval, a rejection and a time-out at the same moment.
async fn of_several_decisions_at_once_one_wins(bench: Bench) {
    let defs = yaml("");
    let mut process = bench.process().await;
    let id = until_it_waits(&bench, &defs, &mut process).await;
    drop(process);
    for round in 0..20 {
        bench.by_hand("UPDATE job_approval SET status = 'WAITING', end_time = NULL").await;
        let (db, now) = (&bench.db, bench.clock.now());
        let close = async {
            let mut tx = db.begin().await.expect("begin");
            let row = tx.fetch_optional("SELECT approval_id FROM job_approval", &[]).await;
            let key = row.expect("read").expect("a row").get_int("approval_id").expect("a key");
            let key = procession::domain::access::approval::ApprovalId(key);
            let won = approval::close(&mut tx, key, ApprovalStatus::Expired, now).await;
            let won = won.expect("close");
            tx.commit().await.expect("commit");
            won
        };
        let approve = say(&bench, id, ("wang", ApprovalVerdict::Approve, None));
        let reject = say(&bench, id, ("zhao", ApprovalVerdict::Reject, Some("no")));
        let (approved, rejected, closed) = tokio::join!(approve, reject, close);
        let winners = [approved.is_ok_and(|(_, w)| w), rejected.is_ok_and(|(_, w)| w), closed];
        let won = winners.iter().filter(|won| **won).count();
        assert_eq!(won, 1, "round {round}: {winners:?}");
    }
}

/// Who opened it, who fired its schedule, who started jobs over, and who did that to the batch that opened it.
async fn who_started_a_batch_does_not_approve_it(bench: Bench) {
    let defs = yaml("");
    let mut process = bench.process().await;
    let id = until_it_waits(&bench, &defs, &mut process).await;
    let own = |name: &str| DecisionRefused::Approver(ApproverRefused::OwnBatch(name.to_owned()));
    let refused = say(&bench, id, ("li.na", ApprovalVerdict::Approve, None)).await;
    assert_eq!(refused.map(|_| ()), Err(own("li.na")));
    let now = "(SELECT create_time FROM job_batch)";
    for sql in [
        format!(
            "INSERT INTO audit_log (actor, host, action, batch_id, create_time) \
             VALUES ('chen', 'h', 'rerun', {}, {now})",
            id.0
        ),
        format!(
            "INSERT INTO job_firing (firing_id, trigger_id, planned_at, source, handler, status, fire_at, \
             create_time, update_time) VALUES (77, 1, {now}, 'MANUAL', 'h', 'FIRED', {now}, {now}, {now})"
        ),
        format!(
            "INSERT INTO audit_log (actor, host, action, create_time) \
             VALUES ('zhou', 'h', 'schedule fire-now', {now})"
        ),
        "UPDATE job_batch SET firing_id = 77".to_owned(),
    ] {
        bench.by_hand(&sql).await;
    }
    for name in ["chen", "zhou"] {
        let refused = say(&bench, id, (name, ApprovalVerdict::Reject, Some("no"))).await;
        assert_eq!(refused.map(|_| ()), Err(own(name)));
    }
    say(&bench, id, ("wang", ApprovalVerdict::Approve, None)).await.expect("a second person");
    finish(&bench, &mut process).await;
    assert_eq!(bench.batch("default").await.status, BatchStatus::Success);
}

async fn a_starter_is_known_through_a_sub_batch(bench: Bench) {
    let text = "
groups: { close: {}, detail: {} }
jobs:
  SUB: { group: close, type: BATCH, sub_batch: { group: detail } }
  RELEASE: { group: detail, type: APPROVAL, approval: { users: [wang], permission: force } }
  OTHER: { group: detail, type: NOOP }
";
    let defs = defs(text);
    bench.apply(&defs).await;
    let mut process = bench.process().await;
    let order = BatchOrder { group: Some(defs.groups[0].code.clone()), ..order() };
    process.open_batches(&defs, &order, "li.na").await.expect("open");
    while bench.number("SELECT COUNT(*) AS n FROM job_approval").await == 0 {
        some_beats(&mut process).await;
    }
    let child = bench.batch("detail").await.batch_id;
    let refused =
        say(&bench, child, ("li.na", ApprovalVerdict::Approve, None)).await.expect_err("own");
    assert!(refused.to_string().starts_with("li.na started this batch"), "{refused}");
    say(&bench, child, ("wang", ApprovalVerdict::Approve, None)).await.expect("approved");
    finish(&bench, &mut process).await;
    assert_eq!(bench.batch("close").await.status, BatchStatus::Success);
}

async fn where_the_definition_allows_it_one_person_is_enough(bench: Bench) {
    let text = "
jobs:
  RELEASE: { type: APPROVAL, approval: { role: admin, four_eyes: false } }
  OTHER: { type: NOOP }
";
    let mut process = bench.process().await;
    let id = until_it_waits(&bench, &defs(text), &mut process).await;
    say(&bench, id, ("li.na", ApprovalVerdict::Approve, None)).await.expect("approved");
    finish(&bench, &mut process).await;
    assert_eq!(bench.batch("default").await.status, BatchStatus::Success);
}

/// It waits on a worker; that one dies, and another waits on for the same approval.
async fn another_worker_waits_on(bench: Bench) {
    let defs = yaml("");
    bench.apply(&defs).await;
    let ids = open_for_anyone(&bench.db, &defs, &order(), "li.na", bench.clock.now()).await;
    let id = ids.expect("open")[0];
    let mut first = node(&bench, "w", &[NodeRole::Worker], &[], 4).await;
    let mut owner = node(&bench, "o", &[NodeRole::Scheduler], &[], 4).await;
    assert_eq!(owner.take_batches().await.expect("take"), 1);
    let waits = "LOAD=SUCCESS RELEASE=RUNNING POST=PENDING OTHER=SUCCESS";
    until_states(&bench, &mut [&mut owner, &mut first], id, waits).await;
    while approvals(&bench).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(first);
    let mut second = node(&bench, "v", &[NodeRole::Worker], &[], 4).await;
    pass(&bench, 18_000, &mut [&mut owner, &mut second]).await;
    while bench.rows(id).await[1].attempt != 2 {
        until_states(&bench, &mut [&mut owner, &mut second], id, waits).await;
    }
    say(&bench, id, ("wang", ApprovalVerdict::Approve, None)).await.expect("approved");
    let done = "LOAD=SUCCESS RELEASE=SUCCESS POST=SUCCESS OTHER=SUCCESS";
    until_states(&bench, &mut [&mut owner, &mut second], id, done).await;
    assert_eq!(approvals(&bench).await, ["APPROVED"]);
}

on_each_database! {
    another_worker_waits_on
    it_holds_no_slot_and_goes_on_once_approved
    a_rejection_is_not_tried_again
    a_decision_made_while_no_process_runs_counts
    the_next_process_waits_on
    time_runs_out_as_the_job_says
    a_kill_ends_the_question
    a_batch_that_is_paused_starts_nothing_after_it
    of_several_decisions_at_once_one_wins
    who_started_a_batch_does_not_approve_it
    a_starter_is_known_through_a_sub_batch
    where_the_definition_allows_it_one_person_is_enough
}
