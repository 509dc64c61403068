use super::*;
use crate::domain::batch::BatchStatus;
use crate::domain::id::{BatchId, BatchNo, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;

fn pulse(id: i64, status: BatchStatus) -> ChangedBatch {
    ChangedBatch {
        batch_id: BatchId(id),
        batch_no: BatchNo::parse("202407").expect("a number"),
        group: GroupCode::parse("gl").expect("a group"),
        status,
        revision: 0,
        is_paused: false,
    }
}

fn change(log_id: i64, batch: i64) -> ChangedJob {
    ChangedJob {
        log_id,
        at: Millis(0),
        job_code: JobCode::parse("A").expect("a code"),
        status: QueueStatus::Running,
        attempt: 1,
        batch: pulse(batch, BatchStatus::Running),
    }
}

fn message(told: &[StreamedEvent]) -> Vec<String> {
    told.iter().map(|t| format!("{} {} {}", t.id, t.kind, t.data["status"])).collect()
}

#[test]
fn jobs_are_told_in_order_and_what_was_committed_late_is_not_missed() {
    let mut watch = ChangeWatch::new(10, vec![pulse(1, BatchStatus::Running)]);
    let open = || vec![pulse(1, BatchStatus::Running)];
    let told = watch.take_changes(vec![], vec![change(11, 1), change(14, 1)], open(), vec![]);
    assert_eq!(message(&told), ["11 job \"RUNNING\"", "14 job \"RUNNING\""]);
    assert_eq!((watch.last_key(), watch.left_out()), (14, vec![12, 13]));
    let told = watch.take_changes(vec![change(13, 1)], vec![change(15, 1)], open(), vec![]);
    assert_eq!(message(&told), ["13 job \"RUNNING\"", "15 job \"RUNNING\""]);
    assert_eq!(watch.left_out(), [12]);
    for _ in 0..10 {
        watch.take_changes(vec![], vec![], open(), vec![]);
    }
    assert_eq!(watch.left_out(), [0; 0], "what never came is not looked for for ever");
    watch.take_changes(vec![], vec![change(1_000_000, 1)], open(), vec![]);
    assert_eq!(watch.left_out().len(), 500, "a gap does not become a list");
}

#[test]
fn a_batch_is_told_of_when_it_opens_changes_and_ends_and_not_in_between() {
    let mut watch = ChangeWatch::new(0, vec![]);
    let running = || vec![pulse(1, BatchStatus::Running)];
    assert_eq!(
        message(&watch.take_changes(vec![], vec![], running(), vec![])),
        ["0 batch \"RUNNING\""]
    );
    assert_eq!(message(&watch.take_changes(vec![], vec![], running(), vec![])), [""; 0]);
    assert_eq!(watch.ended(&[]), [BatchId(1)]);
    let ended = vec![pulse(1, BatchStatus::Failed)];
    assert_eq!(message(&watch.take_changes(vec![], vec![], vec![], ended)), ["0 batch \"FAILED\""]);
    // Opened and ended between two polls.
    let mut quick = change(1, 2);
    quick.batch.status = BatchStatus::Success;
    let told = watch.take_changes(vec![], vec![quick], vec![], vec![]);
    assert_eq!(message(&told), ["1 job \"RUNNING\"", "1 batch \"SUCCESS\""]);
}

#[test]
fn a_frame_is_one_event() {
    let frame = StreamedEvent::job_changed(&change(7, 1)).frame();
    assert!(frame.starts_with("id: 7\nevent: job\ndata: {"), "{frame}");
    assert!(frame.ends_with("}\n\n") && frame.lines().count() == 4, "{frame}");
}
