//! An executor with its port on a scratch database, a process that runs batches, and an admin.

use crate::util::with_migrated_scratch;
use crate::xxl::admin::{Admin, TOKEN};
use procession::api::executor::{ExecutorEndpoint, ExecutorRequestLimits};
use procession::api::{Attended, Door};
use procession::db::sqlite_file::ProtectedFiles;
use procession::db::{ConnectSettings, Db};
use procession::definition;
use procession::domain::batch::Batch;
use procession::domain::id::{BatchNo, GroupCode};
use procession::domain::job::script_isolation::ScriptUsers;
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use procession::domain::xxl::xxl_run::AppName;
use procession::engine::clock::Clock;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::xxl::executor::{Executor, ExecutorOptions};
use procession::remote::admin::{AdminSettings, Admins};
use procession::store;
use procession::wire::xxl::XxlDialect;
use secrecy::SecretString;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// 2024-08-01T00:00:00Z.
pub(crate) const START: Millis = Millis(1_722_470_400_000);
pub(crate) const APP: &str = "month-end-executor";

/// Two groups of one type, and one that fails.
const DEFINITION: &str = "
defaults: { type: NOOP }
groups:
  month_end: { type: monthly }
  quarter_end: { type: quarterly }
  broken: { type: daily }
jobs:
  A: { group: month_end }
  B: { group: month_end, depends_on: [A] }
  Q: { group: quarter_end }
  F: { group: broken, type: SCRIPT, interpreter: sh, script: 'echo no rates today >&2; exit 3' }
  G: { group: broken, depends_on: [F] }
";

pub(crate) struct Bench {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) url: String,
    pub(crate) admin: Admin,
    pub(crate) executor: Arc<Executor>,
    pub(crate) door: SocketAddr,
    _attended: Attended,
}

pub(crate) async fn on<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(Bench) -> Fut,
    Fut: Future<Output = ()>,
{
    with_migrated_scratch(dialect, |scratch| async move {
        let db = connect(&scratch.url).await;
        test(Bench::on(db, &scratch.url, XxlDialect::D1).await).await;
    })
    .await;
}

pub(crate) async fn connect(url: &str) -> Db {
    let settings = ConnectSettings {
        url: url.to_owned().into(),
        password: None,
        rotated_password: None,
        max_connections: 4,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_secs(30),
        may_create: true,
        keeping: procession::db::SessionTimeouts::Usual,
    };
    Db::connect(&settings).await.expect("connect")
}

/// What an executor is to this admin.
pub(crate) fn options(admins: Vec<String>, dialect: Option<XxlDialect>) -> ExecutorOptions {
    let settings = AdminSettings {
        addresses: admins.clone(),
        app_name: APP.to_owned(),
        token: TOKEN.into(),
        dialect,
        limit: Duration::from_secs(5),
        tls: procession::outbound::ClientTlsFiles::default(),
    };
    ExecutorOptions {
        app_name: AppName::parse(APP).expect("name"),
        address: "http://127.0.0.1:9999/".to_owned(),
        admin: admins.join(", "),
        admins: Admins::new(&settings).expect("admins"),
    }
}

/// As the tests of `/run` send it.
pub(crate) fn asked(job: i64, log: i64, params: &str) -> Value {
    json!({
        "jobId": job, "executorHandler": "queueDispatcherHandler", "executorParams": params,
        "executorBlockStrategy": "SERIAL_EXECUTION", "executorTimeout": 0, "logId": log,
        "logDateTime": START.0, "glueType": "BEAN", "glueSource": "", "glueUpdatetime": START.0,
        "broadcastIndex": 0, "broadcastTotal": 1,
    })
}

/// The same with some of its fields otherwise.
pub(crate) fn with(mut ask: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().expect("an object") {
        ask[name] = value.clone();
    }
    ask
}

pub(crate) const JULY: &str = r#"{"batchNo":"202407","type":"monthly"}"#;

impl Bench {
    pub(crate) async fn on(db: Db, url: &str, dialect: XxlDialect) -> Self {
        let (clock, admin) = (Clock::set_by_hand(START), Admin::of(dialect).await);
        apply(&db, &clock).await;
        let options = options(vec![admin.url()], None);
        let executor = Arc::new(Executor::new(db.clone(), clock.clone(), options));
        let limits = ExecutorRequestLimits { body: 10_000, patience: Duration::from_millis(200) };
        let (door, _attended) = attend(&executor, limits).await;
        Self { db, clock, url: url.to_owned(), admin, executor, door, _attended }
    }

    /// One on SQLite, with an admin of this dialect.
    pub(crate) async fn sqlite(dialect: XxlDialect) -> (Self, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("folder");
        let url = format!("sqlite:{}", dir.path().join("x.db").display());
        crate::util::template::copy_sqlite(&dir.path().join("x.db")).await;
        let db = connect(&url).await;
        (Self::on(db, &url, dialect).await, dir)
    }

    /// What this process would be after it died: another, which knows the rows alone.
    pub(crate) async fn reborn(&mut self) {
        let options = options(vec![self.admin.url()], None);
        self.executor = Arc::new(Executor::new(self.db.clone(), self.clock.clone(), options));
        let (door, attended) = attend(&self.executor, ExecutorRequestLimits::default()).await;
        (self.door, self._attended) = (door, attended);
    }

    /// Asks as the admin does, and gives the code and the words.
    pub(crate) async fn ask(&self, path: &str, body: &Value) -> (i64, String) {
        let reply = self.reply(path, body).await;
        let words = reply["msg"].as_str().unwrap_or_default().to_owned();
        (reply["code"].as_i64().expect("a code"), words)
    }

    pub(crate) async fn reply(&self, path: &str, body: &Value) -> Value {
        let token = format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n");
        let text = post(self.door, path, &token, &body.to_string()).await;
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// Follows until nothing moves any more.
    pub(crate) async fn follow(&self) {
        for _ in 0..100 {
            if self.executor.follow().await.expect("follow").moved == 0 {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// A process that runs batches takes all there are and runs them to their end.
    pub(crate) async fn work(&self) {
        let mut process = self.process().await;
        process.take_batches().await.expect("take");
        for _ in 0..10_000 {
            if process.is_idle() {
                process.leave().await.expect("leave");
                return;
            }
            if process.run_tick().await.expect("beat") {
                continue;
            }
            match process.next_wake() {
                Some(at) if process.running() == 0 => {
                    self.clock.advance(at.since(self.clock.now()))
                }
                _ => process.wait_for_report().await,
            }
        }
        panic!("the batches do not end");
    }

    async fn process(&self) -> QueueDispatcher {
        let keeper = Some(env!("CARGO_BIN_EXE_procession").into());
        start(&self.db, &self.clock, Duration::from_millis(500), keeper).await
    }

    pub(crate) async fn batch(&self, no: &str, group: &str) -> Option<Batch> {
        let (no, group) =
            (BatchNo::parse(no).expect("no"), GroupCode::parse(group).expect("group"));
        let mut tx = self.db.begin_read().await.expect("read");
        store::batch::find_batch(&mut tx, &no, &group).await.expect("find")
    }

    /// One number of a query `SELECT … AS n`.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let mut tx = self.db.begin_read().await.expect("read");
        let row = tx.fetch_optional(sql, &[]).await.expect(sql).expect("a row");
        row.get_int("n").expect("a number")
    }

    /// `101 DONE 200 TAKEN` of each run, by its key.
    pub(crate) async fn runs(&self) -> Vec<String> {
        let sql = "SELECT log_id, status, stopping, handle_code, callback FROM xxl_run \
                   ORDER BY log_id, run_id";
        let mut tx = self.db.begin_read().await.expect("read");
        let rows = tx.fetch_all(sql, &[]).await.expect("rows");
        let words = |row: &procession::db::Row| {
            let stopping = row.opt_text("stopping").expect("text");
            let code = row.opt_int("handle_code").expect("int");
            let words = [
                Some(row.get_int("log_id").expect("int").to_string()),
                row.opt_text("status").expect("text"),
                stopping,
                code.map(|code| code.to_string()),
                row.opt_text("callback").expect("text").filter(|word| word != "NONE"),
            ];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        rows.iter().map(words).collect()
    }
}

async fn apply(db: &Db, clock: &Clock) {
    let read = |_: &Path| Ok(DEFINITION.to_owned());
    let loaded =
        definition::load_definition(Path::new("x.yaml"), &read, &procession::app::job_kinds());
    let defs = loaded.unwrap_or_else(|faults| panic!("{faults}")).definition;
    let mut tx = db.begin().await.expect("begin");
    let stored = store::job::definition(&mut tx).await.expect("stored");
    store::job::apply(&mut tx, &stored, &defs, clock.now()).await.expect("apply");
    tx.commit().await.expect("commit");
}

pub(crate) async fn attend(
    executor: &Arc<Executor>,
    limits: ExecutorRequestLimits,
) -> (SocketAddr, Attended) {
    let any = "127.0.0.1:0".parse().expect("address");
    let door = Door::open_socket(any).await.expect("door");
    let address = door.address();
    let desk = ExecutorEndpoint::new(executor.clone(), &SecretString::from(TOKEN), limits);
    (address, door.staffed(desk.router(), Duration::from_millis(500)))
}

/// Sends one request byte by byte as it is, and gives what comes back.
pub(crate) async fn raw(to: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(to).await.expect("connect");
    stream.write_all(request).await.expect("send");
    let mut answer = Vec::new();
    // Whoever is cut off has had an answer before.
    let _cut = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// The body of the answer to a POST; its status must be 200.
pub(crate) async fn post(to: SocketAddr, path: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}Content-Length: {len}\r\n\r\n{body}"
    );
    let answer = raw(to, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

/// A process that dispatches; what it is to stop it waits for so long.
pub(crate) async fn start(
    db: &Db,
    clock: &Clock,
    kill_grace: Duration,
    keeper: Option<PathBuf>,
) -> QueueDispatcher {
    let handlers = procession::handler::HandlerOptions {
        interpreters: BTreeMap::from([("sh".to_owned(), PathBuf::from("/bin/sh"))]),
        script_env: vec!["PATH".to_owned()],
        kill_grace,
        kill_confirm: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        away: Duration::ZERO,
        idle: Duration::from_secs(60),
        look_every: Duration::from_secs(5),
        script_lease: Duration::from_secs(60),
        keeper,
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
    let options = procession::engine::EngineOptions {
        max_parallel: 4,
        ageing_ms: 600_000,
        lease_ms: 15_000,
        log_flush_ms: 50,
        log_max_bytes: 100_000,
        park_after: 3,
        drain_ms: 60_000,
        executor_tls: procession::outbound::ClientTlsFiles::default(),
        node: procession::engine::NodeOptions::default(),
        secret_stores: Default::default(),
    };
    let process = QueueDispatcher::start(db.clone(), clock.clone(), &options, handlers, None);
    process.await.expect("start")
}
