//! Log lines on their way to the database: they cost no lease, and a write that fails loses none.

use crate::flow::lease::until;
use crate::flow::{Bench, defs, on, order};
use crate::util::Scratch;
use procession::db::{ConnectSettings, Db, SessionTimeouts};
use procession::domain::batch::BatchStatus;
use procession::domain::source::DialectName;
use procession::engine::clock::Clock;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

/// Lines that a talkative script prints.
const MANY: i64 = 6_000;

/// Numbers of the lines of a script, however many times they are stored.
const PRINTED: &str = "SELECT COUNT(*) AS n FROM job_log_line WHERE stream = 'stdout'";

/// Whoever cannot write within two seconds gives up, as a busy process does after its own time.
async fn impatient(url: &str) -> Db {
    let settings = ConnectSettings {
        url: url.to_owned().into(),
        password: None,
        rotated_password: None,
        max_connections: 4,
        connect_timeout: Duration::from_secs(2),
        statement_timeout: Duration::from_secs(30),
        may_create: false,
        keeping: SessionTimeouts::Usual,
    };
    Db::connect(&settings).await.expect("connect")
}

/// Three scripts print more than the file takes within a lease, all at once, and are not stopped for it.
async fn three_talkative_scripts_do_not_cost_the_lease(bench: Bench) {
    let mut options = bench.options.clone();
    (options.lease_ms, options.log_max_bytes) = (3_000, 4_000_000);
    let db = impatient(&bench.url).await;
    let bench = Bench { db, clock: Clock::system(), options, ..bench };
    // Each line takes SQLite some tenths of a millisecond, as a slow disk does.
    let count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 4000)";
    bench
        .by_hand(&format!(
            "CREATE TRIGGER slow AFTER INSERT ON job_log_line \
             BEGIN SELECT (SELECT COUNT(*) FROM ({count} SELECT x FROM c)); END"
        ))
        .await;
    let mut process = bench.process().await;
    let yaml = format!(
        "
defaults: {{ type: SCRIPT, interpreter: sh }}
jobs:
  A: {{ script: 'seq 1 {MANY}; sleep 6' }}
  B: {{ script: 'seq 1 {MANY}; sleep 6' }}
  C: {{ script: 'seq 1 {MANY}; sleep 6' }}
"
    );
    let ids = process.open_batches(&defs(&yaml), &order(), "test").await.expect("open");
    process.run_until_done(&CancellationToken::new()).await.expect("run");
    assert_eq!(bench.states(ids[0]).await, "A=SUCCESS B=SUCCESS C=SUCCESS");
    assert!(bench.rows(ids[0]).await.iter().all(|row| row.attempt == 1));
    assert_eq!(bench.number(PRINTED).await, 3 * MANY);
}

/// While the database refuses lines they are kept, and stored as soon as it takes them.
async fn lines_that_are_refused_are_sent_again(bench: Bench) {
    bench.by_hand("CREATE TABLE refusal (n INTEGER)").await;
    bench.by_hand("INSERT INTO refusal VALUES (1)").await;
    bench
        .by_hand(
            "CREATE TRIGGER refuse BEFORE INSERT ON job_log_line \
             WHEN EXISTS (SELECT 1 FROM refusal) BEGIN SELECT RAISE(ABORT, 'refused'); END",
        )
        .await;
    let folder = tempfile::tempdir().expect("folder");
    let mut process = bench.process().await;
    let defs = defs(&waiting_script(folder.path(), 100));
    let ids = process.open_batches(&defs, &order(), "test").await.expect("open");
    let stop = CancellationToken::new();
    let watch = async {
        until("it prints", async || folder.path().join("printed").exists()).await;
        // Several times as long as a line waits before it is sent.
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(bench.number(PRINTED).await, 0);
        bench.by_hand("DELETE FROM refusal").await;
        until("its lines are stored", async || bench.number(PRINTED).await == 100).await;
        std::fs::write(folder.path().join("go"), "").expect("file");
    };
    let (ran, ()) = tokio::join!(process.run_until_done(&stop), watch);
    ran.expect("run");
    assert_eq!(process.results()[&ids[0]], BatchStatus::Success);
    assert_eq!(bench.number(PRINTED).await, 101);
}

/// A script that prints, waits, and prints once more.
fn waiting_script(folder: &Path, lines: i64) -> String {
    let folder = folder.display();
    let wait = format!("while ! test -e {folder}/go; do sleep 0.05; done");
    format!(
        "
jobs:
  A:
    type: SCRIPT
    interpreter: sh
    script: 'seq 1 {lines}; touch {folder}/printed; {wait}; echo end'
"
    )
}

/// The answer to a commit of lines is lost: they are there once, and the end of the try is written.
async fn lines_whose_commit_has_no_answer_are_stored_once(bench: Bench) {
    let mut process = bench.process().await;
    // The first time while it runs, the second when it has ended.
    let script = "seq 1 10; sleep 1; seq 11 1500";
    let yaml = format!("jobs: {{ A: {{ type: SCRIPT, interpreter: sh, script: '{script}' }} }}");
    fail::cfg("log.after_commit", "1*return(error)->1*off->2*return(error)").expect("a failpoint");
    let ids = process.open_batches(&defs(&yaml), &order(), "test").await.expect("open");
    process.run_until_done(&CancellationToken::new()).await.expect("run");
    fail::remove("log.after_commit");
    assert_eq!(process.results()[&ids[0]], BatchStatus::Success);
    assert_eq!(bench.number(PRINTED).await, 1_500);
}

/// The lines of a try that has ended go with its end, but not all in one transaction.
async fn the_end_of_a_talkative_try_is_written_in_groups(bench: Bench) {
    let options =
        procession::engine::EngineOptions { log_flush_ms: 600_000, ..bench.options.clone() };
    let bench = Bench { options, ..bench };
    let mut process = bench.process().await;
    let yaml = "jobs: { A: { type: SCRIPT, interpreter: sh, script: 'seq 1 3000' } }";
    let ids = process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    let stored = bench.number(PRINTED).await;
    assert!((2_500..3_000).contains(&stored), "{stored}");
    process.run_until_done(&CancellationToken::new()).await.expect("run");
    assert_eq!(process.results()[&ids[0]], BatchStatus::Success);
    assert_eq!(bench.number(PRINTED).await, 3_000);
}

/// A renewal takes no turn behind others, whatever waits for the one writer or for a connection.
async fn a_renewal_waits_behind_nothing(scratch: Arc<Scratch>) {
    let db = crate::util::connect(&scratch.url).await;
    let is_sqlite = scratch.url.starts_with("sqlite:");
    let mut held = Vec::new();
    // All there are: one writer, or four connections.
    for _ in 0..if is_sqlite { 1 } else { 4 } {
        held.push(db.begin().await.expect("begin"));
    }
    let (order, mut came) = tokio::sync::mpsc::unbounded_channel();
    let mut waiting = Vec::new();
    for number in 1..=5 {
        let (db, order) = (db.clone(), order.clone());
        waiting.push(tokio::spawn(async move {
            let tx = db.begin().await.expect("begin");
            order.send(number).expect("send");
            tx.rollback().await.expect("rollback");
        }));
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let lease = db.for_lease();
    waiting.push(tokio::spawn(async move {
        let tx = lease.begin().await.expect("begin");
        order.send(0).expect("send");
        tx.rollback().await.expect("rollback");
    }));
    if !is_sqlite {
        assert_eq!(came.recv().await, Some(0), "it has a connection of its own");
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    held.truncate(0);
    let mut all = Vec::new();
    while let Some(number) = came.recv().await {
        all.push(number);
    }
    let wanted: &[i32] = if is_sqlite { &[0, 1, 2, 3, 4, 5] } else { &[1, 2, 3, 4, 5] };
    match is_sqlite {
        true => assert_eq!(all, wanted),
        false => assert_eq!(all.len(), wanted.len()),
    }
    for task in waiting {
        task.await.expect("no panic");
    }
}

/// Keeps what the program's own log would say.
#[derive(Clone, Default)]
struct ProgramLog(Arc<Mutex<String>>);

impl<S: tracing::Subscriber> Layer<S> for ProgramLog {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut text = self.0.lock().expect("lock");
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            text.push_str(&format!("{field}={value:?} "));
        });
    }
}

/// What a process logs while somebody keeps its lease from being renewed for longer than a third of it.
async fn logged_while_its_row_is_locked(bench: Bench, wanted: &str) {
    let log = ProgramLog::default();
    let subscriber = tracing_subscriber::registry().with(log.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut options = bench.options.clone();
    options.lease_ms = 1_500;
    let bench = Bench { clock: Clock::system(), options, ..bench };
    let process = bench.process().await;
    let mut tx = bench.db.begin().await.expect("begin");
    tx.execute("UPDATE cluster_node SET pid = pid + 1", &[]).await.expect("lock");
    let hold = async {
        // Due after 500 ms, late after 1,000.
        tokio::time::sleep(Duration::from_millis(1_300)).await;
        tx.rollback().await.expect("rollback");
    };
    tokio::join!(process.pass_time(Duration::from_millis(1_800)), hold);
    let text = log.0.lock().expect("lock").clone();
    assert!(text.contains(&format!("is late: it waits for {wanted}")), "{text}");
    assert!(text.contains("the late renewal of the lease is written"), "{text}");
}

async fn it_is_logged_that_the_writer_is_waited_for(bench: Bench) {
    logged_while_its_row_is_locked(bench, "its turn to write").await;
}

async fn it_is_logged_that_an_answer_is_waited_for(bench: Bench) {
    logged_while_its_row_is_locked(bench, "the database to answer").await;
}

mod late {
    use super::*;

    #[tokio::test]
    async fn sqlite() {
        on(DialectName::Sqlite, it_is_logged_that_the_writer_is_waited_for).await;
    }

    #[tokio::test]
    async fn mariadb() {
        on(DialectName::Mysql, it_is_logged_that_an_answer_is_waited_for).await;
    }

    #[tokio::test]
    async fn postgres() {
        on(DialectName::Postgres, it_is_logged_that_an_answer_is_waited_for).await;
    }
}

mod one_writer {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn three_talkative_scripts_do_not_cost_the_lease() {
        on(DialectName::Sqlite, super::three_talkative_scripts_do_not_cost_the_lease).await;
    }

    #[tokio::test]
    async fn lines_that_are_refused_are_sent_again() {
        on(DialectName::Sqlite, super::lines_that_are_refused_are_sent_again).await;
    }
}

mod once {
    use super::*;

    async fn run(dialect: DialectName) {
        on(dialect, lines_whose_commit_has_no_answer_are_stored_once).await;
        on(dialect, the_end_of_a_talkative_try_is_written_in_groups).await;
    }

    #[tokio::test]
    async fn sqlite() {
        run(DialectName::Sqlite).await;
    }

    #[tokio::test]
    async fn mariadb() {
        run(DialectName::Mysql).await;
    }

    #[tokio::test]
    async fn postgres() {
        run(DialectName::Postgres).await;
    }
}

mod precedence {
    use super::*;
    use crate::util::with_migrated_scratch;

    #[tokio::test]
    async fn sqlite() {
        with_migrated_scratch(DialectName::Sqlite, a_renewal_waits_behind_nothing).await;
    }

    #[tokio::test]
    async fn mariadb() {
        with_migrated_scratch(DialectName::Mysql, a_renewal_waits_behind_nothing).await;
    }

    #[tokio::test]
    async fn postgres() {
        with_migrated_scratch(DialectName::Postgres, a_renewal_waits_behind_nothing).await;
    }
}
