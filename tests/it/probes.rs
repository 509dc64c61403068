//! `/healthz`, `/readyz` and `/metrics` of a process that really listens.

use crate::cli::procession;
use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use crate::util::relay::Relay;
use crate::util::{query, server, with_scratch};
use procession::api::Door;
use procession::app::App;
use procession::db::{ConnectSettings, Db};
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use procession::engine::clock::Clock;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::store::{self, node::Stay};
use reqwest::{Client, Method, StatusCode};
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// More than any answer may take; a request that takes longer fails its test.
const PATIENCE: Duration = Duration::from_secs(5);

/// Plain HTTP; the library wants to know how it would speak TLS all the same.
fn client() -> Client {
    let provider = Arc::new(default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let client = Client::builder().tls_backend_preconfigured(tls).no_proxy().timeout(PATIENCE);
    client.build().expect("a client")
}

/// A door that is attended.
struct House {
    client: Client,
    address: SocketAddr,
    leaves: CancellationToken,
    closes: CancellationToken,
    task: JoinHandle<()>,
}

impl House {
    async fn of(process: &QueueDispatcher, bench: &Bench) -> Self {
        let door =
            Door::open_socket("127.0.0.1:0".parse().expect("address")).await.expect("a free port");
        let address = door.address();
        let (leaves, closes) = (CancellationToken::new(), CancellationToken::new());
        let mut config = crate::util::config(Path::new("/dev/null"));
        config.database.url = bench.url.clone().into();
        let app = App {
            config,
            db: bench.db.clone(),
            clock: Clock::system(),
            secret_stores: Default::default(),
        };
        let vitals = process.vitals(&leaves, Duration::from_secs(120));
        let house = procession::api::ApiState::open_state(&app, vitals).await.expect("a house");
        let task = tokio::spawn(door.attend(Arc::new(house), closes.clone()));
        Self { client: client(), address, leaves, closes, task }
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let asked = self.client.get(format!("http://{}{path}", self.address));
        let answer = asked.send().await.expect("an answer");
        (answer.status(), answer.text().await.expect("text"))
    }

    /// The reasons why not, as JSON.
    async fn not_ready(&self) -> (StatusCode, Vec<(String, String)>) {
        let asked = self.client.get(format!("http://{}/readyz", self.address));
        let answer = asked.header("accept", "application/json").send().await.expect("an answer");
        let status = answer.status();
        let said: Value = serde_json::from_str(&answer.text().await.expect("text")).expect("JSON");
        assert_eq!(said["ok"].as_bool(), Some(status == StatusCode::OK));
        let reasons = said["reasons"].as_array().expect("reasons");
        let text = |r: &Value, key: &str| r[key].as_str().expect("text").to_owned();
        let bad = reasons.iter().filter(|r| r["ok"] == false);
        (status, bad.map(|r| (text(r, "name"), text(r, "detail"))).collect())
    }

    /// Asks until exactly these are why it is not ready.
    async fn until_not_ready_for(&self, names: &[&str]) {
        for _ in 0..400 {
            let (_, bad) = self.not_ready().await;
            if bad.iter().map(|(name, _)| name.as_str()).eq(names.iter().copied()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("not ready for {names:?} never came, it is {:?}", self.not_ready().await);
    }

    async fn close(self) {
        self.closes.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("it closes").expect("in order");
    }
}

/// A bench whose clock runs.
fn running(bench: Bench) -> Bench {
    Bench { clock: Clock::system(), ..bench }
}

async fn a_process_that_serves_is_alive_and_ready(bench: Bench) {
    let bench = running(bench);
    let mut process = bench.process().await;
    let house = House::of(&process, &bench).await;
    let asked = async {
        house.until_not_ready_for(&[]).await;
        let (status, text) = house.get("/healthz").await;
        assert_eq!(status, StatusCode::OK, "{text}");
        assert!(text.starts_with("ok\n") && text.contains("dispatcher   ok"), "{text}");
        assert!(text.contains("heartbeat    ok"), "{text}");
        let (status, text) = house.get("/readyz").await;
        assert_eq!(status, StatusCode::OK, "{text}");
        for name in ["database", "schema", "lease", "clock", "draining", "dispatcher"] {
            assert!(text.lines().any(|l| l.starts_with(name)), "{name} is missing in {text}");
        }
        house.leaves.cancel();
        // Known at once, whatever the loops do.
        let (status, bad) = house.not_ready().await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(bad.iter().any(|(name, _)| name == "draining"), "{bad:?}");
    };
    let leaves = house.leaves.clone();
    tokio::join!(process.serve(&leaves, None), asked);
    // Loops that ended in order are not missed.
    assert_eq!(house.get("/healthz").await.0, StatusCode::OK);
    house.close().await;
}

async fn one_that_an_operator_drains_is_not_ready(bench: Bench) {
    let bench = running(bench);
    let mut process = bench.process().await;
    let house = House::of(&process, &bench).await;
    let draining = async || {
        let (status, bad) = house.not_ready().await;
        let found = bad.into_iter().find(|(name, _)| name == "draining");
        (status, found.map(|(_, detail)| detail))
    };
    assert_eq!(draining().await.1, None);
    for stay in [Stay::Leaves, Stay::Stays] {
        let mut tx = bench.db.begin().await.expect("begin");
        let members = store::node::members(&mut tx, bench.clock.now()).await.expect("members");
        let [member] = &members[..] else { panic!("one node: {members:?}") };
        assert!(
            store::node::set_draining(&mut tx, &member.node.node_id, stay).await.expect("mark")
        );
        tx.commit().await.expect("commit");
        process.heartbeat().await.expect("heartbeat");
        let (status, said) = draining().await;
        match stay {
            Stay::Leaves => {
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
                assert!(said.expect("draining").contains("node undrain"));
            }
            Stay::Stays => assert_eq!(said, None),
        }
    }
    house.close().await;
}

/// Reads are answered all the while, as on a disk that is full.
async fn one_that_cannot_write_is_not_ready(bench: Bench) {
    let mut process = bench.process().await;
    let house = House::of(&process, &bench).await;
    let bad = async || {
        let (_, bad) = house.not_ready().await;
        bad.into_iter().map(|(name, detail)| format!("{name}: {detail}")).collect::<Vec<_>>()
    };
    assert_eq!(bad().await, Vec::<String>::new());
    query(&bench.url, "ALTER TABLE cluster_node RENAME TO cluster_node_aside").await;
    process.heartbeat().await.expect_err("nothing is written");
    let (status, text) = house.get("/readyz").await;
    let is_degraded = status == StatusCode::OK && text.starts_with("ok, degraded\n");
    assert!(
        is_degraded && text.contains("writes       LOOK   nothing could be written for"),
        "{text}"
    );
    // More than half of a lease of 15 s.
    bench.clock.advance(8_000);
    let said = bad().await;
    assert!(
        said.len() == 1 && said[0].starts_with("writes: nothing could be written for"),
        "{said:?}"
    );
    assert!(said[0].ends_with("the log of this process says why"), "{said:?}");
    query(&bench.url, "ALTER TABLE cluster_node_aside RENAME TO cluster_node").await;
    process.heartbeat().await.expect("a renewal");
    assert_eq!(bad().await, Vec::<String>::new());
    house.close().await;
}

/// What `writes` says comes from the lease, which is written all the while on a server.
async fn a_row_that_another_session_locks_is_told_of(bench: Bench) {
    let mut process = bench.process().await;
    let house = House::of(&process, &bench).await;
    let defs = defs("jobs:\n  A: { type: NOOP }\n");
    let opened = process.open_batches(&defs, &order(), "test").await.expect("it is opened");
    let mut stranger = bench.db.begin().await.expect("a session of somebody else");
    let lock = "UPDATE job_queue SET priority = priority + 1 WHERE batch_id = ?";
    stranger.execute(lock, &[opened[0].0.into()]).await.expect("a lock");
    let told = async {
        let text = "no step of any batch could be written for";
        for _ in 0..600 {
            let (_, said) = house.get("/readyz").await;
            if let Some(line) = said.lines().find(|line| line.contains(text)) {
                // SQLite has one lock for all, and how its wait ends depends on which statement waits.
                let is_sqlite = bench.url.starts_with("sqlite");
                assert!(is_sqlite || line.contains("another session"), "{line}");
                assert!(line.starts_with("dispatch"), "{line}");
                stranger.rollback().await.expect("it lets go");
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it was never told: {}", house.get("/readyz").await.1);
    };
    let leaves = CancellationToken::new();
    let (ended, ()) = tokio::join!(process.run_until_done(&leaves), told);
    ended.expect("it goes on by itself");
    let (_, said) = house.get("/readyz").await;
    assert!(said.contains("the last step of batches is written"), "{said}");
    house.close().await;
}

/// As when more schedules fire than the processes may dispatch at once, or all are drained.
async fn a_batch_that_no_process_takes_is_told_of(bench: Bench) {
    let mut process = bench.process().await;
    let house = House::of(&process, &bench).await;
    let line = async || {
        let (status, said) = house.get("/readyz").await;
        let line = said.lines().find(|line| line.starts_with("batches")).map(str::to_owned);
        (status, line.unwrap_or(said))
    };
    let defs = defs("jobs:\n  A: { type: NOOP }\n");
    let opened = process.open_batches(&defs, &order(), "test").await.expect("it is opened");
    assert!(line().await.1.ends_with("open ones are taken"), "it has one: {:?}", line().await);
    let mut tx = bench.db.begin().await.expect("begin");
    let now = Millis::from(tx.server_time().await.expect("the time"));
    let give_back = "UPDATE job_batch SET owner = NULL, update_time = ? WHERE batch_id = ?";
    let values = [now.plus_ms(-90_000).to_utc().into(), opened[0].0.into()];
    assert_eq!(tx.execute(give_back, &values).await.expect(give_back), 1);
    tx.commit().await.expect("commit");
    // An answer of the database is the present one for a second.
    bench.clock.advance(1_100);
    let (status, said) = line().await;
    assert_eq!(status, StatusCode::OK, "{said}");
    assert!(said.starts_with("batches      LOOK   an open one has waited for 9"), "{said}");
    house.close().await;
}

async fn another_schema_is_not_ready(bench: Bench) {
    let process = bench.process().await;
    let house = House::of(&process, &bench).await;
    let known = procession::app::known_schema();
    let newer = format!("UPDATE _sqlx_migrations SET version = 9999 WHERE version = {known}");
    query(&bench.url, &newer).await;
    let (status, bad) = house.not_ready().await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(bad.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["schema"]);
    house.close().await;
}

async fn what_ran_is_counted_and_nothing_of_it_told(bench: Bench) {
    let mut process = bench.process().await;
    let house = House::of(&process, &bench).await;
    let yaml = "
jobs:
  CANARY_A: { type: SCRIPT, interpreter: sh, script: 'exit 0', params: [{ name: X, value: canary-value }] }
  CANARY_B: { type: SCRIPT, interpreter: sh, script: 'exit 7', depends_on: [CANARY_A] }
  CANARY_C: { type: NOOP }
";
    process.open_batches(&defs(yaml), &order(), "canary-user").await.expect("open");
    finish(&bench, &mut process).await;
    let meter = process.meter();
    meter.fired("fired", "cron", 1_500);
    meter.misfired(2);
    meter.record_lock(3, 7);
    meter.record_pass(4, 3, 6);
    meter.record_ring(11);
    meter.overdue(5);
    process.heartbeat().await.expect("a renewal");
    let (status, text) = house.get("/metrics").await;
    assert_eq!(status, StatusCode::OK);
    well_formed(&text);
    for line in [
        "procession_job_starts_total{type=\"SCRIPT\"} 2",
        "procession_job_starts_total{type=\"NOOP\"} 1",
        "procession_job_ends_total{type=\"SCRIPT\",result=\"success\"} 1",
        "procession_job_ends_total{type=\"SCRIPT\",result=\"failed\"} 1",
        "procession_job_duration_seconds_count{type=\"SCRIPT\"} 2",
        "procession_firings_total{result=\"fired\",source=\"cron\"} 1",
        "procession_firing_lateness_seconds_bucket{le=\"1.0\",source=\"cron\"} 0",
        "procession_firing_lateness_seconds_bucket{le=\"5.0\",source=\"cron\"} 1",
        "procession_misfires_total 2",
        "procession_schedule_lock_wait_seconds_bucket{le=\"0.005\"} 1",
        "procession_schedule_lock_hold_seconds_bucket{le=\"0.005\"} 0",
        "procession_scheduler_pass_statements_sum 6.0",
        "procession_scheduler_due_total 4",
        "procession_ring_firings 11",
        "procession_overdue_firings 5",
        "procession_nodes_alive 1",
        "procession_fences_total 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing in {text}");
    }
    let version = format!("procession_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version), "{text}");
    for number in ["process_resident_memory_bytes", "database_statements_total"] {
        let line = text.lines().find(|l| l.starts_with(&format!("procession_{number} ")));
        let value = line.and_then(|l| l.rsplit(' ').next()?.parse::<f64>().ok());
        assert!(value.is_some_and(|v| v > 1.0), "{number}: {line:?}");
    }
    for path in ["/", "/healthz", "/readyz", "/metrics", "/canary"] {
        let said = house.get(path).await.1.to_lowercase();
        let name = bench.url.rsplit('/').next().expect("a name");
        for secret in ["canary_", "canary-", "127.0.0.1", name] {
            assert!(!said.contains(secret), "{path} tells {secret}: {said}");
        }
    }
    house.close().await;
}

/// The form of OpenMetrics, as far as a reader trips over it.
fn well_formed(text: &str) {
    assert!(text.ends_with("# EOF\n"), "{text}");
    let mut declared = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, rest @ ..] => assert!(!rest.is_empty(), "{name} has no help"),
            ["#", "TYPE", name, _] => declared.push((*name).to_owned()),
            ["#", "EOF"] => {}
            [sample, value] => {
                let name = sample.split('{').next().expect("a name");
                assert!(name.starts_with("procession_"), "{line}");
                assert!(declared.iter().any(|d| name.starts_with(d.as_str())), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
            _ => panic!("{line}"),
        }
    }
    let before = declared.len();
    declared.sort();
    declared.dedup();
    assert_eq!(declared.len(), before, "a name twice");
}

on_each_database! {
    a_process_that_serves_is_alive_and_ready
    one_that_an_operator_drains_is_not_ready
    another_schema_is_not_ready
    one_that_cannot_write_is_not_ready
    a_row_that_another_session_locks_is_told_of
    a_batch_that_no_process_takes_is_told_of
    what_ran_is_counted_and_nothing_of_it_told
}

#[tokio::test]
async fn only_what_is_there_is_answered_and_only_to_those_who_read() {
    on(DialectName::Sqlite, async |bench: Bench| {
        let process = bench.process().await;
        let house = House::of(&process, &bench).await;
        for (method, path, wanted) in [
            (Method::GET, "/", 200),
            (Method::HEAD, "/healthz", 200),
            (Method::POST, "/healthz", 405),
            (Method::DELETE, "/metrics", 405),
            (Method::TRACE, "/readyz", 405),
            (Method::GET, "/readyz/", 404),
            (Method::GET, "/../etc/passwd", 404),
            (Method::POST, "/api/run", 404),
        ] {
            let url = format!("http://{}{path}", house.address);
            let answer = house.client.request(method.clone(), url).send().await.expect("an answer");
            assert_eq!(answer.status().as_u16(), wanted, "{method} {path}");
            // The page of the console is asked for again each time, and answered 304 when it is the same.
            let caching = if path == "/" { "no-cache" } else { "no-store" };
            for (name, value) in [("x-content-type-options", "nosniff"), ("cache-control", caching)]
            {
                assert_eq!(answer.headers()[name], value, "{method} {path}");
            }
        }
        let answer = house.get("/metrics").await;
        assert_eq!(answer.0, StatusCode::OK);
        // One that says nothing does not keep the door open.
        let _silent = TcpStream::connect(house.address).await.expect("connect");
        house.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_loop_that_hangs_is_not_alive() {
    on(DialectName::Sqlite, async |bench: Bench| {
        let process = bench.process().await;
        let house = House::of(&process, &bench).await;
        process.meter().loop_turned("scheduler", bench.clock.uptime());
        assert_eq!(house.get("/healthz").await.0, StatusCode::OK);
        bench.clock.advance(120_001);
        let (status, text) = house.get("/healthz").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(text.contains("scheduler    NOT OK has not turned for 120001 ms"), "{text}");
        process.meter().loop_turned("scheduler", bench.clock.uptime());
        assert_eq!(house.get("/healthz").await.0, StatusCode::OK);
        house.close().await;
    })
    .await;
}

/// A network that swallows everything: the answer is "not ready", and comes.
async fn a_silent_database_makes_not_ready_and_not_silent(dialect: DialectName) {
    with_scratch(dialect, |scratch| async move {
        let server = url::Url::parse(&server(dialect)).expect("a URL");
        let port = server.port().expect("a port");
        let relay = Relay::to(&format!("127.0.0.1:{port}")).await;
        let settings = ConnectSettings {
            url: relay.url(&scratch.url).into(),
            password: None,
            rotated_password: None,
            max_connections: 4,
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            may_create: false,
            keeping: procession::db::SessionTimeouts::Usual,
        };
        let db = Db::connect(&settings).await.expect("connect");
        db.migrate().await.expect("migrate");
        let mut bench = Bench::of(db, Clock::system(), &scratch.url);
        bench.options.lease_ms = 1_500;
        let mut process = bench.process().await;
        let house = House::of(&process, &bench).await;
        let leaves = house.leaves.clone();
        let asked = async {
            house.until_not_ready_for(&[]).await;
            relay.cut();
            house.until_not_ready_for(&["database", "writes", "lease"]).await;
            assert_eq!(house.get("/healthz").await.0, StatusCode::OK);
            let (status, text) = house.get("/metrics").await;
            assert!(
                status == StatusCode::OK && text.contains("procession_fences_total 1"),
                "{text}"
            );
            relay.heal();
        };
        // It cannot leave in order while the database is silent; that is not what is asked here.
        tokio::select! {
            () = process.serve(&leaves, None) => panic!("nobody told it to leave"),
            () = asked => {}
        }
        house.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_silent_postgres_makes_not_ready_and_not_silent() {
    a_silent_database_makes_not_ready_and_not_silent(DialectName::Postgres).await;
}

#[tokio::test]
async fn a_silent_mariadb_makes_not_ready_and_not_silent() {
    a_silent_database_makes_not_ready_and_not_silent(DialectName::Mysql).await;
}

/// The real program: it tells where it listens, answers there, and ends when it is told to.
#[tokio::test]
async fn serve_tells_where_it_listens() {
    let folder = tempfile::tempdir().expect("folder");
    let mut command = procession(folder.path());
    command.args(["serve", "--http", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
    let told = lines.find_map(|line| {
        let line = line.expect("text");
        Some(line.split_once("http://")?.1.trim_end_matches('/').to_owned())
    });
    let address = told.expect("it says where");
    let answer = client().get(format!("http://{address}/healthz")).send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK);
    // The same port twice is the user's to mend.
    let mut second = procession(folder.path());
    let second = second.args(["serve", "--http", &address]).output().expect("it runs");
    let said = String::from_utf8(second.stderr).expect("text");
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("http.listen") && said.contains(&address), "{said}");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("TERM");
    let ended = tokio::task::spawn_blocking(move || child.wait().expect("it ends"));
    let ended = tokio::time::timeout(PATIENCE, ended).await.expect("soon").expect("in order");
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn an_address_that_is_none_is_refused_by_its_key() {
    let folder = tempfile::tempdir().expect("folder");
    for given in ["localhost:80", "8088", "127.0.0.1:99999", "http://127.0.0.1:80"] {
        let ran =
            procession(folder.path()).args(["serve", "--http", given]).output().expect("runs");
        let said = String::from_utf8(ran.stderr).expect("text");
        assert_eq!(ran.status.code(), Some(2), "{said}");
        assert!(said.contains("http.listen is") && said.contains(given), "{said}");
    }
}
