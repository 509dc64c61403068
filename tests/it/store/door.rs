//! `db`: what every statement of the store relies on.

use super::{Place, T0, chain, code, later, opened, write_batch};
use chrono::{DateTime, Utc};
use procession::db::{ConnectSettings, Error, Row, SqlValue};
use procession::domain::job::queue::QueueStatus;
use procession::domain::time::Millis;
use procession::store::queue::{self, NewEntry};
use procession::store::{Db, Tx};

const NODE: &str = "INSERT INTO cluster_node (node_id, host, pid, version, started_at, heartbeat_at, \
                    lease_until) VALUES (?, ?, ?, ?, ?, ?, ?)";

/// A row of a table that takes any text, number and time.
async fn put(tx: &mut Tx, id: &str, pid: i64, at: DateTime<Utc>) {
    let values: [SqlValue; 7] =
        [id.into(), "h".into(), pid.into(), "v".into(), at.into(), at.into(), at.into()];
    tx.execute(NODE, &values).await.expect("insert");
}

async fn node_row(tx: &mut Tx, id: &str) -> Row {
    let sql = "SELECT * FROM cluster_node WHERE node_id = ?";
    tx.fetch_optional(sql, &[id.into()]).await.expect("query").expect("row")
}

fn moment(text: &str) -> DateTime<Utc> {
    text.parse().expect("a moment")
}

const MOMENTS: [&str; 7] = [
    "1970-01-01T00:00:00.001Z",
    "2024-02-29T23:59:59.999Z",
    "2024-07-31T18:00:00Z",
    "2024-07-31T18:00:00.007Z",
    "2024-07-31T18:00:00.100Z",
    "2038-01-19T03:14:08Z",
    "9999-12-31T23:59:59.999Z",
];

pub(super) async fn times_keep_milliseconds_and_come_back_as_utc(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    for text in MOMENTS {
        put(&mut tx, text, 1, moment(text)).await;
    }
    tx.commit().await.expect("commit");
    // Another process, another connection.
    let db = place.open().await;
    let mut tx = db.begin_read().await.expect("read");
    for text in MOMENTS {
        let row = node_row(&mut tx, text).await;
        assert_eq!(row.get_time("lease_until").expect("time"), moment(text));
        assert_eq!(Millis::from(row.get_time("started_at").expect("time")).to_utc(), moment(text));
    }
    drop(tx);
    db.close().await;
}

pub(super) async fn times_sort_as_times(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    for (at, text) in MOMENTS.iter().enumerate().rev() {
        put(&mut tx, text, i64::try_from(at).expect("fits"), moment(text)).await;
    }
    let sql = "SELECT node_id FROM cluster_node ORDER BY lease_until";
    let rows = tx.fetch_all(sql, &[]).await.expect("rows");
    let sorted: Vec<String> = rows.iter().map(|r| r.get_text("node_id").expect("text")).collect();
    assert_eq!(sorted, MOMENTS);
    for (at, text) in MOMENTS.iter().enumerate() {
        let sql = "SELECT COUNT(*) AS n FROM cluster_node WHERE lease_until <= ?";
        let row = tx.fetch_optional(sql, &[moment(text).into()]).await.expect("query");
        let found = row.expect("row").get_int("n").expect("int");
        assert_eq!(found, i64::try_from(at + 1).expect("fits"), "up to {text}");
    }
}

pub(super) async fn finer_times_are_cut_to_milliseconds(place: Place) {
    let fine = moment("2024-07-31T18:00:00.123999999Z");
    let mut tx = place.db.begin().await.expect("begin");
    put(&mut tx, "fine", 1, fine).await;
    let found = node_row(&mut tx, "fine").await.get_time("lease_until").expect("time");
    assert_eq!(found, moment("2024-07-31T18:00:00.123Z"));
}

pub(super) async fn null_stays_null(place: Place) {
    let values: [SqlValue; 7] = [
        "g".into(),
        "name".into(),
        SqlValue::Text(None),
        None::<&str>.into(),
        None::<u32>.into(),
        T0.to_utc().into(),
        T0.to_utc().into(),
    ];
    let mut tx = place.db.begin().await.expect("begin");
    tx.execute(
        "INSERT INTO job_group (group_code, group_name, batch_type, owner, max_parallel, params, \
         create_time, update_time) VALUES (?, ?, ?, ?, ?, NULL, ?, ?)",
        &values,
    )
    .await
    .expect("insert");
    let sql = "SELECT g.*, NULL AS absent FROM job_group g";
    let row = tx.fetch_optional(sql, &[]).await.expect("query").expect("row");
    assert_eq!(row.opt_text("batch_type").expect("text"), None);
    assert_eq!(row.opt_int("max_parallel").expect("int"), None);
    assert_eq!(row.opt_text("absent").expect("text"), None);
    let refused = row.get_text("owner").expect_err("NULL is no text").to_string();
    assert_eq!(refused, "column owner: is NULL");
    let refused = row.get_int("max_parallel").expect_err("NULL is no number").to_string();
    assert_eq!(refused, "column max_parallel: is NULL");
    // An empty text is not NULL.
    let (sql, owner) = ("UPDATE job_group SET owner = ?", [SqlValue::from("")]);
    tx.execute(sql, &owner).await.expect("update");
    let row = tx.fetch_optional("SELECT owner FROM job_group", &[]).await.expect("query");
    assert_eq!(row.expect("row").opt_text("owner").expect("text").as_deref(), Some(""));

    put(&mut tx, "n", 1, T0.to_utc()).await;
    let error = tx
        .execute("UPDATE cluster_node SET lease_until = ?", &[SqlValue::Time(None)])
        .await
        .expect_err("NOT NULL");
    assert!(matches!(error, Error::Database(_)), "{error:?}");
}

pub(super) async fn text_keeps_every_character(place: Place) {
    let hard = [
        "月末结账 🧾 𠮷 é e\u{301}",
        "'single' \"double\" `tick` \\ \\n \\' %s ${x} :x $1 ?",
        "line\r\nline\n\ttab\u{1b}[31m",
        " spaces ",
        "",
        "\u{10FFFF}\u{FFFD}\u{FEFF}",
    ];
    let mut tx = place.db.begin().await.expect("begin");
    for (at, text) in hard.iter().enumerate() {
        put(&mut tx, &at.to_string(), 1, T0.to_utc()).await;
        let values = [(*text).into(), at.to_string().into()];
        tx.execute("UPDATE cluster_node SET host = ? WHERE node_id = ?", &values)
            .await
            .expect("set");
        let row = node_row(&mut tx, &at.to_string()).await;
        assert_eq!(row.get_text("host").expect("text"), *text);
    }
}

pub(super) async fn numbers_keep_all_their_bits(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    for number in [i64::MIN, -1, 0, 1, i64::from(u32::MAX), i64::MAX] {
        put(&mut tx, &number.to_string(), number, T0.to_utc()).await;
        let row = node_row(&mut tx, &number.to_string()).await;
        assert_eq!(row.get_int("pid").expect("int"), number);
    }
}

pub(super) async fn many_rows_cross_the_limit_of_bound_values(place: Place) {
    const MANY: usize = 25_000;
    let mut tx = place.db.begin().await.expect("begin");
    let id = write_batch(&mut tx, &chain("month_end", &["FIRST"]), "1").await.expect("batch");
    let codes: Vec<_> = (0..MANY).map(|n| code(&format!("J{n:05}"))).collect();
    let entries: Vec<NewEntry<'_>> =
        codes.iter().map(|job_code| NewEntry { job_code, not_before: None }).collect();
    queue::generate(&mut tx, id, "1", &entries, T0).await.expect("generate");
    let rows = queue::of_batch(&mut tx, id).await.expect("rows");
    assert!(rows[1..].iter().map(|r| &r.job_code).eq(&codes), "in the order they were given");
    let ids: Vec<i64> = rows.iter().map(|r| r.queue_id.0).collect();
    let (from, to) = (QueueStatus::Pending, QueueStatus::Killed);
    queue::transition(&mut tx, &ids, from, to, later(1)).await.expect("transition");
    let counts = procession::store::batch::counts(&mut tx, id).await.expect("counts");
    assert_eq!(counts, [(to, 25_001)]);
    tx.rollback().await.expect("rollback");
}

pub(super) async fn many_ids_cross_the_limit_of_bound_values(place: Place) {
    let (_, rows) = opened(&place, &["A", "B", "C"]).await;
    // Real ones at both ends and in the middle of 70,000.
    let mut ids: Vec<i64> = (1..=70_000).map(|n| -n).collect();
    for (at, row) in [0, 40_000, 70_002].into_iter().zip(&rows) {
        ids.insert(at.min(ids.len()), row.queue_id.0);
    }
    let mut tx = place.db.begin().await.expect("begin");
    let before = "UPDATE job_queue SET attempt = attempt + ?, owner = ? WHERE queue_id";
    let first: [SqlValue; 2] = [1i64.into(), "me".into()];
    let last: [SqlValue; 1] = ["PENDING".into()];
    let found = tx.execute_in(before, &first, &ids, "AND status = ?", &last).await.expect("update");
    assert_eq!(found, 3);
    let sql = "SELECT COUNT(*) AS n FROM job_queue WHERE attempt = 1 AND owner = 'me'";
    let row = tx.fetch_optional(sql, &[]).await.expect("query").expect("row");
    assert_eq!(row.get_int("n").expect("int"), 3);
    assert_eq!(tx.execute_in(before, &first, &[], "AND status = ?", &last).await.expect("none"), 0);
}

pub(super) async fn found_rows_count_even_when_nothing_changes(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    put(&mut tx, "a", 1, T0.to_utc()).await;
    put(&mut tx, "b", 1, T0.to_utc()).await;
    for _ in 0..2 {
        let found = tx.execute("UPDATE cluster_node SET pid = ?", &[7i64.into()]).await;
        assert_eq!(found.expect("update"), 2);
    }
    let none = tx.execute("UPDATE cluster_node SET pid = 8 WHERE pid = ?", &[1i64.into()]).await;
    assert_eq!(none.expect("update"), 0);
    assert_eq!(tx.execute("DELETE FROM cluster_node", &[]).await.expect("delete"), 2);
}

pub(super) async fn generated_keys_are_given(place: Place) {
    let sql = "INSERT INTO job_dependency (group_code, job_code, depends_on) VALUES ('g', ?, ?)";
    let mut tx = place.db.begin().await.expect("begin");
    let mut last = 0;
    for name in ["A", "B", "C"] {
        let id = tx.insert_id(sql, "id", &[name.into(), "X".into()]).await.expect("insert");
        assert!(id > last, "{id} after {last}");
        let find = "SELECT id FROM job_dependency WHERE job_code = ?";
        let row = tx.fetch_optional(find, &[name.into()]).await.expect("query").expect("row");
        assert_eq!(row.get_int("id").expect("int"), id);
        last = id;
    }
}

async fn nodes(db: &Db) -> i64 {
    let mut tx = db.begin_read().await.expect("read");
    let row = tx.fetch_optional("SELECT COUNT(*) AS n FROM cluster_node", &[]).await;
    row.expect("query").expect("row").get_int("n").expect("int")
}

pub(super) async fn an_undone_transaction_leaves_a_usable_connection(place: Place) {
    // With one connection, whatever the first transaction leaves behind meets the second.
    let settings = ConnectSettings { max_connections: 1, ..super::settings(&place.scratch.url) };
    let db = Db::connect(&settings).await.expect("connect");
    for round in 0..3 {
        let mut tx = db.begin().await.expect("begin");
        put(&mut tx, "dropped", 1, T0.to_utc()).await;
        drop(tx);
        let mut tx = db.begin().await.expect("begin");
        put(&mut tx, "rolled back", 1, T0.to_utc()).await;
        tx.rollback().await.expect("rollback");
        let mut tx = db.begin().await.expect("begin");
        put(&mut tx, "failed", 1, T0.to_utc()).await;
        tx.execute("SELECT no_such_column FROM cluster_node", &[]).await.expect_err("no column");
        drop(tx);
        let mut tx = db.begin().await.expect("begin");
        put(&mut tx, &format!("kept {round}"), 1, T0.to_utc()).await;
        tx.commit().await.expect("commit");
    }
    assert_eq!(nodes(&db).await, 3);
    db.close().await;
}

pub(super) async fn only_committed_rows_are_read(place: Place) {
    let mut writer = place.db.begin().await.expect("begin");
    put(&mut writer, "a", 1, T0.to_utc()).await;
    // A reader neither waits for the writer nor sees its rows, here and in another process.
    let elsewhere = place.open().await;
    assert_eq!((nodes(&place.db).await, nodes(&elsewhere).await), (0, 0));
    writer.commit().await.expect("commit");
    assert_eq!((nodes(&place.db).await, nodes(&elsewhere).await), (1, 1));
    elsewhere.close().await;
}

fn is_database(error: &Error) -> bool {
    matches!(error, Error::Database(_)) && !error.is_transient()
}

pub(super) async fn errors_are_told_apart(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    put(&mut tx, "a", 1, T0.to_utc()).await;
    let values: Vec<SqlValue> = vec![
        "a".into(),
        "h".into(),
        1i64.into(),
        "v".into(),
        T0.to_utc().into(),
        T0.to_utc().into(),
        T0.to_utc().into(),
    ];
    let error = tx.execute(NODE, &values).await.expect_err("taken");
    assert!(matches!(error, Error::Unique(_)) && !error.is_transient(), "{error:?}");
    drop(tx);
    let mut tx = place.db.begin().await.expect("begin");
    let error = tx.execute("SELEKT 1", &[]).await.expect_err("no SQL");
    assert!(is_database(&error), "{error:?}");
    drop(tx);
    // A foreign key that points nowhere is refused everywhere, and is not a taken key.
    let mut tx = place.db.begin().await.expect("begin");
    let sql = "INSERT INTO job_execution_logs (queue_id, status, log_time) VALUES (404, 'X', ?)";
    let error = tx.execute(sql, &[T0.to_utc().into()]).await.expect_err("no such row");
    assert!(is_database(&error), "{error:?}");
    drop(tx);
    let mut tx = place.db.begin_read().await.expect("read");
    let row = tx.fetch_optional("SELECT 1 AS one", &[]).await.expect("query").expect("row");
    let error = row.get_text("two").expect_err("no column");
    assert!(matches!(error, Error::Column { .. }), "{error:?}");
    assert_eq!(row.get_int("one").expect("the column that is there"), 1);
    drop(tx);
}

pub(super) async fn the_servers_clock_and_version_are_known(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    let first = tx.server_time().await.expect("time");
    let second = tx.server_time().await.expect("time");
    assert!(second >= first, "{second} after {first}");
    // Loosely: that the zone is right. More would test the machine.
    let here = procession::engine::clock::Clock::system().now();
    let apart = here.since(first.into()).abs();
    assert!(apart < 20 * 60_000, "{first} is {apart} ms away");
    let version = tx.check_version().await.expect("new enough");
    assert!(version.chars().any(|c| c.is_ascii_digit()), "{version}");
}
