//! `store::log`: what happened, in the order in which it did.

use super::{Place, later, me, running};
use procession::domain::id::QueueId;
use procession::domain::job::outcome::Stream;
use procession::domain::job::queue::QueueStatus;
use procession::domain::text::{LINE_MAX, MESSAGE_MAX, storable};
use procession::store::log::{self, ExecutionLog, LogLine, LogPosition};

fn change(queue_id: QueueId, status: QueueStatus) -> ExecutionLog {
    ExecutionLog {
        queue_id,
        status,
        start_time: None,
        end_time: None,
        error_message: None,
        notified: false,
        try_count: 0,
        attempt: 0,
        owner: None,
    }
}

pub(super) async fn changes_are_logged_in_order(place: Place) {
    let (_, row) = running(&place).await;
    let id = row.queue_id;
    let failed = ExecutionLog {
        start_time: Some(later(10)),
        end_time: Some(later(1_234)),
        error_message: Some(storable("死锁 \0 🧾".repeat(9_000).as_bytes(), MESSAGE_MAX)),
        notified: true,
        try_count: 2,
        attempt: 3,
        owner: Some(me()),
        ..change(id, QueueStatus::Failed)
    };
    let logs = [change(id, QueueStatus::Queued), change(id, QueueStatus::Running), failed];
    let mut tx = place.db.begin().await.expect("begin");
    log::append(&mut tx, &[], later(1)).await.expect("nothing to write");
    log::append(&mut tx, &logs, later(2_000)).await.expect("append");
    log::append(&mut tx, &[change(id, QueueStatus::Forced)], later(3_000)).await.expect("append");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin_read().await.expect("read");
    let found = log::of_entry(&mut tx, id).await.expect("logs");
    let times: Vec<_> = found.iter().map(|f| f.at).collect();
    assert_eq!(times, [later(2_000), later(2_000), later(2_000), later(3_000)]);
    let found: Vec<ExecutionLog> = found.into_iter().map(|f| f.log).collect();
    assert_eq!(found[..3], logs);
    assert_eq!(found[3], change(id, QueueStatus::Forced));
    assert!(log::of_entry(&mut tx, QueueId(404)).await.expect("none").is_empty());

    // Seconds, as operators read them by hand, and the milliseconds beside them.
    let sql = "SELECT COUNT(*) AS n FROM job_execution_logs WHERE duration = 1.224 \
               AND duration_ms = 1224 AND notify_status = 'NOTIFIED'";
    let timed = tx.fetch_optional(sql, &[]).await.expect("count").expect("a row");
    assert_eq!(timed.get_int("n").expect("n"), 1);
    let sql = "SELECT COUNT(*) AS n FROM job_execution_logs WHERE duration IS NULL \
               AND duration_ms IS NULL AND notify_status = 'UNNOTIFIED'";
    let open = tx.fetch_optional(sql, &[]).await.expect("count").expect("a row");
    assert_eq!(open.get_int("n").expect("n"), 3);
}

pub(super) async fn lines_are_paged_over_attempts(place: Place) {
    let (_, row) = running(&place).await;
    let id = row.queue_id;
    let line = |number: u64, stream: Stream| {
        (number, later(number.cast_signed() * 10), stream, format!("第{number}行"))
    };
    let streams =
        [Stream::Stdout, Stream::Stderr, Stream::Database, Stream::System, Stream::Stdout];
    let first: Vec<_> = (1..).zip(streams).map(|(n, s)| line(n, s)).collect();
    let mut tx = place.db.begin().await.expect("begin");
    log::append_lines(&mut tx, id, 2, &[line(1, Stream::Stdout)]).await.expect("second");
    log::append_lines(&mut tx, id, 1, &first[..3]).await.expect("first");
    log::append_lines(&mut tx, id, 1, &first[3..]).await.expect("more of the first");
    log::append_lines(&mut tx, id, 1, &[]).await.expect("none");
    log::append_lines(&mut tx, QueueId(id.0 + 1), 1, &first).await.expect("another row");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin_read().await.expect("read");
    let (mut after, mut pages) = (LogPosition::default(), Vec::new());
    loop {
        let page = log::lines_after(&mut tx, id, after, 2).await.expect("page");
        let Some(last) = page.last() else { break };
        after = last.position();
        pages.push(page);
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2]);
    let all: Vec<LogLine> = pages.into_iter().flatten().collect();
    let places: Vec<_> = all.iter().map(|l| (l.attempt, l.line_no, l.stream.as_str())).collect();
    let expected = [
        (1, 1, "stdout"),
        (1, 2, "stderr"),
        (1, 3, "database"),
        (1, 4, "system"),
        (1, 5, "stdout"),
        (2, 1, "stdout"),
    ];
    assert_eq!(places, expected);
    let (number, text, at) = (all[3].line_no, all[3].text.as_str(), all[3].at);
    assert_eq!((number, text, at), (4, "第4行", later(40)));
    assert!(
        log::lines_after(&mut tx, id, LogPosition { attempt: 2, line_no: 1 }, 10)
            .await
            .expect("end")
            .is_empty()
    );
    let rest = log::lines_after(&mut tx, id, LogPosition { attempt: 1, line_no: 4 }, u32::MAX)
        .await
        .expect("rest");
    assert_eq!(rest.len(), 2);
}

pub(super) async fn any_line_can_be_stored(place: Place) {
    let (_, row) = running(&place).await;
    let bytes = [b"\0\xff\x07 ".to_vec(), "保单🧾".repeat(10_000).into_bytes()].concat();
    let texts = [String::new(), storable(&bytes, LINE_MAX), " spaces at both ends ".to_owned()];
    let lines: Vec<_> =
        (1..).zip(&texts).map(|(n, text)| (n, later(1), Stream::Stdout, text.clone())).collect();
    let mut tx = place.db.begin().await.expect("begin");
    log::append_lines(&mut tx, row.queue_id, 1, &lines).await.expect("lines");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin_read().await.expect("read");
    let found =
        log::lines_after(&mut tx, row.queue_id, LogPosition::default(), 10).await.expect("lines");
    let found: Vec<String> = found.into_iter().map(|l| l.text).collect();
    assert_eq!(found, texts);
}
