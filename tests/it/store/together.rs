//! `Db::commit_together`: all of it or nothing, as the same statements one by one.

use super::{Place, T0, all_of, later, me, opened, other};
use procession::db::Error as DbError;
use procession::domain::id::QueueId;
use procession::domain::job::outcome::Stream;
use procession::domain::job::queue::{Acknowledgement, QueueStatus};
use procession::store::log::{self, ExecutionLog, LogPosition, NewLine};
use procession::store::queue::{self, SettledRow};
use procession::store::{CountedStatement, Dialect, Together, batch};
use std::collections::BTreeMap;

const RUNNING: QueueStatus = QueueStatus::Running;

fn ended(queue_id: QueueId, outputs: Option<&str>) -> SettledRow {
    SettledRow {
        queue_id,
        attempt: 1,
        owner: Some(me()),
        from: RUNNING,
        to: QueueStatus::Success,
        try_count: 0,
        not_before: None,
        error_message: None,
        outputs: outputs.map(str::to_owned),
        large_values: procession::domain::job::outcome::LargeValues::default(),
        crash_count: 0,
        unresolved: 0,
    }
}

fn logged(queue_id: QueueId) -> ExecutionLog {
    ExecutionLog {
        queue_id,
        status: QueueStatus::Success,
        start_time: Some(later(10)),
        end_time: Some(later(20)),
        error_message: None,
        notified: false,
        try_count: 0,
        attempt: 1,
        owner: Some(me()),
    }
}

/// Whether the server is MySQL itself, which takes no compound statement outside of a procedure.
async fn is_mysql_itself(place: &Place) -> bool {
    place.db.dialect() == Dialect::Mysql
        && !place.scratch.value("SELECT VERSION()").await.contains("MariaDB")
}

/// A hop: A and B end, C and D start; and the same with C in another state than it is.
pub(super) async fn a_hop_is_written_whole_or_not_at_all(place: Place) {
    let (id, rows) = opened(&place, &["A", "B", "C", "D"]).await;
    let at = |n: usize| rows[n].queue_id;
    let mut tx = place.db.begin().await.expect("begin");
    let (first, pending) = ([at(0).0, at(1).0], QueueStatus::Pending);
    queue::give_to_node(&mut tx, &first, pending, &me(), Acknowledgement::Yes, later(10))
        .await
        .expect("claim");
    tx.commit().await.expect("commit");
    let hop = |from: QueueStatus, revision: i64, owner| -> Vec<CountedStatement> {
        let held = BTreeMap::from([(id, revision)]);
        let settled = [ended(at(0), Some(r#"{"n":1}"#)), ended(at(1), None)];
        let mut all = batch::lock_statements(&owner, &held, place.db.dialect());
        all.extend(queue::settled_alike(&settled, later(20)));
        all.push(queue::given(&[at(2).0, at(3).0], from, &me(), Acknowledgement::Yes, later(20)));
        all.push(log::appended(&[logged(at(0)), logged(at(1))], later(20)));
        all
    };
    let rows_now =
        async || (all_of(&place, "job_queue").await, all_of(&place, "job_execution_logs").await);
    let before = rows_now().await;
    let together = async |all| place.db.commit_together(all).await.expect("together");
    if is_mysql_itself(&place).await {
        assert_eq!(together(hop(pending, 0, me())).await, Together::OneByOne);
        assert_eq!(rows_now().await, before);
        return;
    }
    // Another state, another revision, another owner: each alone is enough.
    let queued = QueueStatus::Queued;
    for refused in [hop(queued, 0, me()), hop(pending, 1, me()), hop(pending, 0, other())] {
        assert_eq!(together(refused).await, Together::Refused);
        assert_eq!(rows_now().await, before);
    }
    // What the database itself refuses at the end takes back what came before it.
    let lines = vec![(at(0), 1, vec![(1, later(20), Stream::Stdout, "a".to_owned()); 2])];
    let twice = [hop(pending, 0, me()), vec![log::lines(&lines)]].concat();
    let error = place.db.commit_together(twice).await.expect_err("the same line twice");
    assert!(matches!(error, DbError::Unique(_)), "{error:?}");
    assert_eq!(rows_now().await, before);
    // More than one text should hold is for a transaction of several, but on PostgreSQL, which is given
    // arrays.
    if place.db.dialect() != Dialect::Postgres {
        let many = vec![log::appended(&vec![logged(at(0)); 513], later(20))];
        assert_eq!(together(many).await, Together::OneByOne);
    }
    assert_eq!(together(hop(pending, 0, me())).await, Together::Done);
    let mut tx = place.db.begin_read().await.expect("read");
    let found = queue::of_batch(&mut tx, id).await.expect("rows");
    let states: Vec<_> =
        found.iter().map(|r| (r.status, r.attempt, r.start_time, r.end_time)).collect();
    let (success, start, end) = (QueueStatus::Success, Some(later(10)), Some(later(20)));
    let (ended, runs) = ((success, 1, start, end), (RUNNING, 1, end, None));
    assert_eq!(states, [ended, ended, runs, runs]);
    let outputs = queue::outputs(&mut tx, &[at(0), at(1)]).await.expect("outputs");
    assert_eq!(outputs, [(at(0), r#"{"n":1}"#.to_owned())]);
    let logs = log::of_entry(&mut tx, at(1)).await.expect("logs");
    assert_eq!(logs.last().map(|change| change.log.clone()), Some(logged(at(1))));
    assert!(later(20) > T0);
}

/// Many ends at once: those that end alike go together, each with its own outputs; a row that takes two
/// steps takes both.
pub(super) async fn many_ends_keep_their_own_outputs(place: Place) {
    let codes: Vec<String> = (0..150).map(|n| format!("J{n:03}")).collect();
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    let (id, rows) = opened(&place, &codes).await;
    let ids: Vec<i64> = rows.iter().map(|r| r.queue_id.0).collect();
    let mut tx = place.db.begin().await.expect("begin");
    queue::claim(&mut tx, &ids, QueueStatus::Pending, &me(), later(10)).await.expect("claim");
    let text = |n: usize| (!n.is_multiple_of(3)).then(|| format!("{{\"n\":{n}}}"));
    let mut all: Vec<SettledRow> =
        rows.iter().enumerate().map(|(n, r)| ended(r.queue_id, text(n).as_deref())).collect();
    // The last one is stopped first, and then ends.
    let last = all.pop().expect("the last");
    all.push(SettledRow { to: QueueStatus::Killing, outputs: None, ..last.clone() });
    all.push(SettledRow { from: QueueStatus::Killing, to: QueueStatus::Killed, ..last });
    queue::settle_all(&mut tx, &all, later(20)).await.expect("settle");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin_read().await.expect("read");
    let found = queue::of_batch(&mut tx, id).await.expect("rows");
    assert!(found[..149].iter().all(|r| r.status == QueueStatus::Success));
    assert_eq!(found[149].status, QueueStatus::Killed);
    let of: Vec<QueueId> = rows.iter().map(|r| r.queue_id).collect();
    let outputs: BTreeMap<_, _> =
        queue::outputs(&mut tx, &of).await.expect("outputs").into_iter().collect();
    for (n, row) in rows.iter().enumerate() {
        assert_eq!(outputs.get(&row.queue_id).cloned(), text(n), "{n}");
    }
}

/// Few rows and many, which do not travel alike everywhere, with text that is hard to carry.
pub(super) async fn rows_of_a_hop_keep_every_character(place: Place) {
    let (_, rows) = opened(&place, &["A", "B"]).await;
    let hard = [
        "",
        "月末🧾",
        "a\"b\\c'd`e",
        "line\nline\r\n\ttab",
        "null",
        "[1]",
        "\u{1}\u{1f}\u{7f}\u{2028}",
        "%$?:x",
        "{\"a\":1}",
    ];
    for (attempt, count) in [(1, 1), (2, 4), (3, 5), (4, 200)] {
        let text = |n: u64| hard[usize::try_from(n).expect("small") % hard.len()].to_owned();
        let at = |n: u64| later(i64::try_from(n).expect("small") * 1_001);
        let lines: Vec<NewLine> =
            (1..=count).map(|n| (n, at(n), Stream::Stdout, text(n))).collect();
        let of = [(rows[0].queue_id, attempt, lines.clone())];
        let change = ExecutionLog {
            attempt,
            error_message: Some(text(count)),
            start_time: None,
            owner: None,
            ..logged(rows[1].queue_id)
        };
        let changes = vec![change.clone(); usize::try_from(count).expect("small")];
        let all = vec![log::appended(&changes, later(20)), log::lines(&of)];
        let done = place.db.commit_together(all.clone()).await.expect("together");
        // More than a packet holds goes one by one on PostgreSQL, and each in several statements.
        let is_too_long = count > 100 && place.db.dialect() == Dialect::Postgres;
        let goes_alone = is_too_long || is_mysql_itself(&place).await;
        assert_eq!(done, if goes_alone { Together::OneByOne } else { Together::Done });
        if goes_alone {
            let mut tx = place.db.begin().await.expect("begin");
            for statement in all {
                tx.run_statement(statement).await.expect("run");
            }
            tx.commit().await.expect("commit");
        }
        let mut tx = place.db.begin_read().await.expect("read");
        let found =
            log::lines_after(&mut tx, rows[0].queue_id, LogPosition::start_of(attempt), 500).await;
        let found: Vec<NewLine> = found
            .expect("lines")
            .into_iter()
            .map(|line| (line.line_no, line.at, Stream::Stdout, line.text))
            .collect();
        assert_eq!(found, lines);
        let found = log::of_entry(&mut tx, rows[1].queue_id).await.expect("logs");
        let found: Vec<_> =
            found.into_iter().map(|change| change.log).filter(|l| l.attempt == attempt).collect();
        assert_eq!(found, changes);
    }
}
