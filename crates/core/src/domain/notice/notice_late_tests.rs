//! The content and event keys of lateness notifications.

use super::*;
use crate::domain::dag::Node;
use crate::domain::forecast::certainty::{Certainty, Confidence};
use crate::domain::forecast::delay::{ChainLink, DelayCause, DelayKind};
use crate::domain::id::{BatchId, GroupCode, JobCode, JobType, QueueId};
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::{Group, Shared};

fn setting() -> (Batch, Snapshot, QueueEntry) {
    let code = GroupCode::parse("month_end").expect("group");
    let emails = ["ops@bank.example", "channel:ops"].map(str::to_owned).to_vec();
    let group = Group { notify_email: emails, ..Group::with_defaults(code.clone()) };
    let job = JobCode::parse("GL_POST").expect("code");
    let def =
        JobDef::with_defaults(job.clone(), code.clone(), JobType::parse("NOOP").expect("type"));
    let snapshot = Snapshot {
        group,
        jobs: vec![def],
        dependencies: vec![],
        sources: vec![],
        externals: vec![],
        shared: Shared::default(),
        calendars: Default::default(),
    };
    let batch = Batch { batch_id: BatchId(7), ..Batch::sample("202407", &code) };
    let mut row = QueueEntry::generated(QueueId(42), BatchId(7), job);
    row.error_message = Some("held by li: month is\nnot closed".to_owned());
    (batch, snapshot, row)
}

/// Checks the event, key and subject of what is sent, and that the text contains these parts.
fn check(sent: &[Notice], [event, key, subject]: [&str; 3], parts: [&str; 4]) {
    let to: Vec<&str> = sent.iter().map(|n| n.to.address.as_str()).collect();
    assert_eq!(to, ["ops@bank.example", "channel:ops"], "{event}");
    assert_eq!((sent[0].letter.event.as_str(), sent[0].event_key.as_deref()), (event, Some(key)));
    assert_eq!(sent[0].letter.subject_line(Lang::En), format!("[Procession] {subject}"));
    for part in parts {
        let body = sent[0].letter.plain(Lang::En) + &sent[0].letter.plain(Lang::Zh);
        assert!(body.contains(part), "{part} in {body}");
    }
}

#[test]
fn each_event_of_a_job_says_what_where_and_under_which_key() {
    let (batch, snapshot, row) = setting();
    let of = Of { batch: &batch, snapshot: &snapshot, now: Millis(7_200_000) };
    let job = LateJob { def: &snapshot.jobs[0], row: &row };
    let parent = JobCode::parse("FX_LOAD").expect("code");
    let why = WaitReason::Parents(vec![(parent, QueueStatus::Running)]);
    let at = Millis(3_600_000);
    let subject = "GL_POST has not started in batch 202407 (month_end)";
    check(
        &late_start(of, job, at, Some(&why)),
        ["late_start", "late_start:42:3600000", subject],
        ["waits for FX_LOAD", "等待 FX_LOAD", "1970-01-01T01:00:00.000Z", "PENDING"],
    );
    let subject = "GL_POST is late in batch 202407 (month_end)";
    check(
        &late_finish(of, job, at, None),
        ["late_finish", "late_finish:42:3600000", subject],
        ["至今未结束", "it was due at 1970-01-01T01:00", "batch why 202407", "PENDING"],
    );
    let subject = "GL_POST is still held in batch 202407 (month_end)";
    check(
        &held_long(of, job, at),
        ["held_long", "held_long:42:3600000", subject],
        ["held for 1 h 00 min", "已挂起", "job release 202407 GL_POST", "held by li"],
    );
    let usual = Durations::from_newest_first(&[60_000; 6]).expect("tries");
    let subject = "GL_POST still runs after 3 min 20 s in batch 202407 (month_end)";
    check(
        &running_long_notices(of, job, &usual, 200_000),
        ["running_long", "running_long:42:0", subject],
        ["p95 1 min 00 s, 6 tries", "长于往常", "1800 s", "次数：0"],
    );
}

#[test]
fn each_event_of_a_batch_says_what_and_under_which_key() {
    let (batch, snapshot, _) = setting();
    let of = Of { batch: &batch, snapshot: &snapshot, now: Millis(7_200_000) };
    let at = Millis(3_600_000);
    let link =
        ChainLink { job: Node(0), waited_ms: 0, ran_ms: Some(7_200_000), usual_ms: Some(60_000) };
    let cause = DelayCause {
        job: Node(0),
        kind: DelayKind::TookLonger,
        ms: 7_140_000,
        took: Some((7_200_000, 60_000)),
        resource: None,
        held_by: None,
    };
    let why = DelayReport { chain: vec![link], causes: vec![cause] };
    check(
        &batch_late(of, at, &["GL_POST", "TB"], &why),
        ["late_finish", "late_finish:b7:3600000", "batch 202407 (month_end) is late"],
        [
            "2: GL_POST, TB",
            "已晚 1 h 00 min:GL_POST 耗时 2 h",
            "Late by 1 h 00 min: GL_POST took 2 h",
            "usually 1 min",
        ],
    );
    let forecast = Forecast {
        now: of.now,
        jobs: vec![],
        end: Millis(9_000_000),
        bad_end: Millis(9_600_000),
        confidence: Confidence { certainty: Certainty::Sure, doubt: None },
        bound: Millis(9_000_000),
        path: vec![Node(0)],
        open: 1,
        assumed: vec![],
        held: vec![],
        left_out: vec![],
    };
    let subject = "batch 202407 (month_end) will be late by 1 h 30 min";
    check(
        &will_be_late(of, at, &forecast, &why, 2),
        ["will_be_late", "will_be_late:7:3600000:2", subject],
        [
            "1970-01-01T02:30",
            "How sure this is: sure.",
            "预计晚 1 h 30 min:GL_POST",
            "1970-01-01T02:40",
        ],
    );
}
