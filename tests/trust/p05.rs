//! P-05: a database that asks to try again at any statement, and answers to COMMIT that are lost. The
//! loop never ends, no try is charged, and no try starts twice.

use crate::util::{Scratch, with_scratch};
use procession::db::sqlite_file::ProtectedFiles;
use procession::db::{ConnectSettings, Db};
use procession::definition;
use procession::domain::batch::BatchOrder;
use procession::domain::job::Definition;
use procession::domain::job::queue::QueueStatus;
use procession::domain::job::script_isolation::ScriptUsers;
use procession::domain::source::DialectName;
use procession::engine::EngineOptions;
use procession::engine::clock::Clock;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::handler;
use procession::store;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What is set to fail is set for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// Places that fail for as long as this lives.
struct Failing(&'static [&'static str]);

impl Failing {
    fn at(places: &'static [(&'static str, &'static str)], names: &'static [&'static str]) -> Self {
        for (name, how) in places {
            fail::cfg(*name, how).expect("a failpoint");
        }
        Self(names)
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        for name in self.0 {
            fail::remove(*name);
        }
    }
}

const JOBS: usize = 40;

/// Three layers and a join; every third job runs a statement on a database, of its own or of ours.
fn yaml(url: &str) -> String {
    let mut text = format!(
        "sources: {{ s: {{ url: '{url}', max_parallel: 2 }} }}\ndefaults: {{ type: NOOP, idempotent: true }}\njobs:\n"
    );
    for n in 0..JOBS {
        let after = match n {
            0 => String::new(),
            1..20 => "depends_on: [J0]".to_owned(),
            20..39 => format!("depends_on: [J{}, J{}]", n - 19, (n - 19) % 19 + 1),
            _ => format!(
                "depends_on: [{}]",
                (20..39).map(|n| format!("J{n}")).collect::<Vec<_>>().join(", ")
            ),
        };
        let body = if n % 3 == 1 { "type: SQL, source: s, sql: 'SELECT 1'" } else { "" };
        let words: Vec<&str> =
            [after.as_str(), body].into_iter().filter(|w| !w.is_empty()).collect();
        text.push_str(&format!("  J{n}: {{ {} }}\n", words.join(", ")));
    }
    text
}

fn defs(yaml: &str) -> Definition {
    let text = yaml.to_owned();
    let read = move |_: &Path| Ok(text.clone());
    let loaded =
        definition::load_definition(Path::new("p05.yaml"), &read, &procession::app::job_kinds());
    loaded.unwrap_or_else(|faults| panic!("{faults}")).definition
}

async fn connect(scratch: &Scratch) -> Db {
    let settings = ConnectSettings {
        url: scratch.url.clone().into(),
        password: None,
        rotated_password: None,
        max_connections: 4,
        connect_timeout: Duration::from_secs(20),
        statement_timeout: Duration::from_secs(30),
        may_create: true,
        keeping: procession::db::SessionTimeouts::Usual,
    };
    Db::connect(&settings).await.expect("connect")
}

async fn process(db: &Db) -> QueueDispatcher {
    let options = EngineOptions {
        max_parallel: 4,
        ageing_ms: 600_000,
        lease_ms: 60_000,
        log_flush_ms: 50,
        log_max_bytes: 100_000,
        park_after: 3,
        drain_ms: 60_000,
        executor_tls: procession::outbound::ClientTlsFiles::default(),
        node: procession::engine::NodeOptions::default(),
        secret_stores: Default::default(),
    };
    let handlers = handler::HandlerOptions {
        interpreters: BTreeMap::new(),
        script_env: Vec::new(),
        kill_grace: Duration::from_millis(500),
        kill_confirm: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        away: Duration::ZERO,
        idle: Duration::from_secs(60),
        look_every: Duration::from_secs(5),
        script_lease: Duration::from_secs(60),
        keeper: None,
        script_limits: Default::default(),
        script_cgroups: Default::default(),
        script_users: ScriptUsers::default(),
        script_files: Default::default(),
        isolation_probe: Default::default(),
        secrets_in_files: false,
        protected_files: ProtectedFiles::default(),
        verify_tls: true,
        outputs: procession::domain::job::output_limits::OutputLimits::default(),
    };
    let clock = Clock::system();
    QueueDispatcher::start(db.clone(), clock, &options, handlers, None).await.expect("start")
}

/// `attempt status` of each log row, as it was written.
async fn history(db: &Db, row: procession::domain::id::QueueId) -> Vec<(u32, String)> {
    let mut tx = db.begin_read().await.expect("read");
    let changes = store::log::of_entry(&mut tx, row).await.expect("log");
    changes.iter().map(|c| (c.log.attempt, c.log.status.to_string())).collect()
}

async fn run(scratch: &Scratch, places: &'static [(&'static str, &'static str)]) {
    let db = connect(scratch).await;
    db.migrate().await.expect("migrate");
    // A file of its own for the bodies on SQLite: they are not to wait for our writer.
    let folder = tempfile::tempdir().expect("folder");
    let url = match scratch.dialect {
        DialectName::Sqlite => {
            let file = folder.path().join("s.db");
            std::fs::write(&file, "").expect("an empty file is an empty database");
            format!("sqlite:{}", file.display())
        }
        _ => scratch.url.clone(),
    };
    let mut process = process(&db).await;
    let order = BatchOrder::parse(r#"{"batchNo":"202407"}"#).expect("order");
    let id = process.open_batches(&defs(&yaml(&url)), &order, "test").await.expect("open")[0];

    let failing = Failing::at(places, &["db.statement", "db.commit.before", "db.commit.after"]);
    let stop = CancellationToken::new();
    let whole = tokio::time::timeout(Duration::from_secs(300), process.run_until_done(&stop));
    let done = whole.await.expect("the batch ends");
    drop(failing);
    done.expect("the loop goes on");

    let mut tx = db.begin_read().await.expect("read");
    let rows = store::queue::of_batch(&mut tx, id).await.expect("rows");
    drop(tx);
    assert_eq!(rows.len(), JOBS);
    for row in rows {
        let history = history(&db, row.queue_id).await;
        let said = format!("{}: {} {history:?} {:?}", row.job_code, row.status, row.error_message);
        assert_eq!(row.status, QueueStatus::Success, "{said}");
        assert_eq!((row.try_count, row.unresolved, row.crash_count), (0, 0, 0), "{said}");
        let started: Vec<u32> =
            history.iter().filter(|(_, word)| word == "RUNNING").map(|(n, _)| *n).collect();
        assert_eq!(started, (1..=row.attempt).collect::<Vec<_>>(), "{said}");
        let ended = history.iter().filter(|(_, word)| word == "SUCCESS").count();
        assert_eq!(ended, 1, "{said}");
    }
    db.close().await;
}

async fn on(dialect: DialectName) {
    for places in [
        &[("db.statement", "5%return(error)")] as &'static [_],
        &[("db.commit.after", "10%return(error)")],
        &[
            ("db.statement", "5%return(error)"),
            ("db.commit.before", "5%return(error)"),
            ("db.commit.after", "5%return(error)"),
        ],
    ] {
        with_scratch(dialect, |scratch| async move { run(&scratch, places).await }).await;
    }
}

/// One test at a time, on a runtime of its own.
fn alone(dialect: DialectName) {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    runtime.block_on(on(dialect));
}

#[test]
fn nothing_starts_twice_and_nothing_is_charged_on_sqlite() {
    alone(DialectName::Sqlite);
}

#[test]
fn nothing_starts_twice_and_nothing_is_charged_on_mysql() {
    alone(DialectName::Mysql);
}

#[test]
fn nothing_starts_twice_and_nothing_is_charged_on_postgres() {
    alone(DialectName::Postgres);
}
