//! When something is late, and when it no longer is.

use super::*;
use crate::domain::id::{BatchId, GroupCode, JobCode, JobType, QueueId};
use crate::domain::job::Shared;
use proptest::prelude::*;

fn job(code: &str) -> JobDef {
    let group = GroupCode::parse("g").expect("group");
    let job_type = JobType::parse("NOOP").expect("type");
    JobDef::with_defaults(JobCode::parse(code).expect("code"), group, job_type)
}

fn row(status: QueueStatus) -> QueueEntry {
    let code = JobCode::parse("A").expect("code");
    QueueEntry { status, ..QueueEntry::generated(QueueId(1), BatchId(1), code) }
}

fn snapshot(jobs: Vec<JobDef>, due: Option<&str>) -> Snapshot {
    let code = GroupCode::parse("g").expect("group");
    Snapshot {
        group: Group {
            time_zone: Some("Asia/Shanghai".to_owned()),
            due: due.map(|d| d.parse().expect("due")),
            ..Group::with_defaults(code)
        },
        jobs,
        dependencies: vec![],
        sources: vec![],
        externals: vec![],
        shared: Shared::default(),
        calendars: Default::default(),
    }
}

#[test]
fn the_moments_of_a_batch_are_found_from_its_opening() {
    let (mut a, mut b) = (job("A"), job("B"));
    a.start_by = Some("30m".parse().expect("due"));
    a.due = Some("workday(+1) 08:00".parse().expect("due"));
    b.due = Some("08:00".parse().expect("due"));
    // 02:00 in Shanghai on Friday, 2 January 2026.
    let opened = Millis(1_767_290_400_000);
    let found = moments(&snapshot(vec![a, b], Some("+1d 09:00")), opened);
    let words: Vec<String> = found.iter().map(|(at, alarm)| format!("{at} {alarm:?}")).collect();
    let wanted = [
        "2026-01-01T18:30:00.000Z Start(Node(0))",
        "2026-01-05T00:00:00.000Z Finish(Node(0))",
        "2026-01-02T00:00:00.000Z Finish(Node(1))",
        "2026-01-03T01:00:00.000Z Batch",
    ];
    assert_eq!(words, wanted);
    assert!(moments(&snapshot(vec![job("A")], None), opened).is_empty());
}

#[test]
fn what_is_done_or_given_up_is_not_late() {
    use QueueStatus as S;
    let node = Node(0);
    for status in S::ALL {
        let rows = [row(status)];
        let waits = matches!(status, S::Pending | S::Held | S::Queued);
        assert_eq!(is_missed(Alarm::Start(node), &rows), waits, "start {status:?}");
        assert_eq!(is_missed(Alarm::Finish(node), &rows), !status.is_final(), "end {status:?}");
        assert_eq!(is_missed(Alarm::Batch, &rows), !status.is_final(), "batch {status:?}");
        assert_eq!(is_missed(Alarm::Release(node), &rows), status == S::Held, "held {status:?}");
    }
    // A job that waits for a slot after a failed attempt, or after its worker died, has started.
    let again = [QueueEntry { try_count: 1, ..row(S::Queued) }];
    assert!(!is_missed(Alarm::Start(node), &again));
    let again = [QueueEntry { crash_count: 1, ..row(S::Queued) }];
    assert!(!is_missed(Alarm::Start(node), &again));
    assert!(!is_missed(Alarm::Start(Node(7)), &again), "a job that is not there");
}

#[test]
fn what_runs_again_is_not_held_against_moments_before() {
    let other = QueueEntry { queue_id: QueueId(2), ..row(QueueStatus::Running) };
    let rows = [row(QueueStatus::Pending), other];
    let at = |node: u32| Alarm::Finish(Node(node));
    let started = |was_bad| HashMap::from([(QueueId(1), Again { since: Millis(500), was_bad })]);
    let again = started(false);
    for (moment, alarm, wanted) in [
        (499, at(0), true),
        (500, at(0), true),
        (501, at(0), false),
        (499, Alarm::Start(Node(0)), true),
        (499, at(1), false),
        (499, Alarm::Release(Node(0)), false),
        // The other has been running all the time.
        (499, Alarm::Batch, false),
    ] {
        let found = is_of_an_earlier_run(Millis(moment), alarm, &rows, &again);
        assert_eq!(found, wanted, "{moment} {alarm:?}");
    }
    let rows =
        [row(QueueStatus::Pending), QueueEntry { status: QueueStatus::Success, ..rows[1].clone() }];
    assert!(is_of_an_earlier_run(Millis(499), Alarm::Batch, &rows, &again));
    assert!(!is_of_an_earlier_run(Millis(501), Alarm::Batch, &rows, &again));
    let failed = started(true);
    let said = "it had failed, so it was not done by then";
    assert!(!is_of_an_earlier_run(Millis(499), Alarm::Batch, &rows, &failed), "{said}");
    assert!(is_of_an_earlier_run(Millis(499), at(0), &rows, &failed), "the job was told");
}

#[test]
fn how_late_something_is() {
    let due = Millis(1_000);
    for (status, end, now, wanted) in [
        (QueueStatus::Running, None, 1_000, None),
        (QueueStatus::Running, None, 1_500, Some(500)),
        // The end of an earlier attempt is irrelevant.
        (QueueStatus::RetryWait, Some(900), 1_500, Some(500)),
        (QueueStatus::Success, Some(900), 9_000, None),
        (QueueStatus::Success, Some(1_200), 9_000, Some(200)),
        (QueueStatus::Failed, Some(1_200), 9_000, Some(200)),
        (QueueStatus::Skipped, None, 9_000, None),
        (QueueStatus::UpstreamFailed, None, 9_000, None),
    ] {
        let row = QueueEntry { end_time: end.map(Millis), ..row(status) };
        let found = Lateness::of_job(due, &row, Millis(now));
        assert_eq!((found.due, found.late_by), (due, wanted), "{status} {end:?} {now}");
    }
}

#[test]
fn slow_is_by_its_own_past_and_by_a_minute_at_least() {
    let mut group = Group::with_defaults(GroupCode::parse("g").expect("group"));
    let mut job = job("A");
    let of = |tries: usize, ms: i64| Durations::from_newest_first(&vec![ms; tries]);
    let hour = 3_600_000;
    assert_eq!(slow_after(&job, &group, of(20, hour).as_ref()), None, "nobody asks");
    group.slow_after = Some("3".parse().expect("factor"));
    assert_eq!(slow_after(&job, &group, of(20, hour).as_ref()), Some(3 * hour));
    job.slow_after = Some("1.5".parse().expect("factor"));
    for (durations, wanted) in [
        (None, None),
        (of(4, hour), None),
        (of(5, hour), Some(hour * 3 / 2)),
        (of(20, 2_000), Some(62_000)),
        (of(20, 120_000), Some(180_000)),
        (of(20, 0), Some(60_000)),
    ] {
        assert_eq!(slow_after(&job, &group, durations.as_ref()), wanted, "{durations:?}");
    }
}

#[test]
fn a_forecast_is_told_once_and_again_after_it_recovered() {
    let minute = 60_000;
    let mut said = Foretold::default();
    for (late_by, wanted) in [
        (-minute, false),
        (0, false),
        (1, true),
        (minute, false),
        (100 * minute, false),
        // In time again, then late by little, then by more.
        (0, false),
        (minute, false),
        (5 * minute, false),
        (5 * minute + 1, true),
        (50 * minute, false),
        (-1, false),
        (6 * minute, true),
    ] {
        let (told, after) = said.after(late_by);
        assert_eq!(told, wanted, "{late_by} after {said:?}");
        said = after;
    }
    assert_eq!(said.times, 3);
}

proptest! {
    #[test]
    fn nothing_is_told_twice_without_being_in_time_between(
        lates in prop::collection::vec(-10 * RELAPSE_MS..10 * RELAPSE_MS, 0..40)
    ) {
        let (mut said, mut in_time) = (Foretold::default(), true);
        for late_by in lates {
            let (told, after) = said.after(late_by);
            prop_assert!(!told || (in_time && late_by > 0));
            in_time = if told { false } else { in_time || late_by <= 0 };
            said = after;
        }
    }
}
