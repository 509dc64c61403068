//! A front door with its desk for executors, on a scratch database, and runs that they were asked for.

use crate::util::with_migrated_scratch;
use crate::xxl::desk::START;
use procession::api::admin::AdminRequestLimits;
use procession::api::{ApiState, Attended, Front};
use procession::app::{App, EmptyDatabase};
use procession::config::ListeningOptions;
use procession::db::Db;
use procession::domain::executor::{Addressing, ExecutorGroup, GluePolicy};
use procession::domain::source::DialectName;
use procession::domain::xxl::xxl_run::AppName;
use procession::engine::clock::Clock;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::secrets::executor_token::digest;
use procession::store::executor_group::{self, KeptToken};
use procession::store::executor_registry;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio_util::sync::CancellationToken;

/// Of `pay-executor` and of `stock-executor`, which one team has.
pub(crate) const TEAM: &str = "the-token-of-one-team";
/// Of `other-executor`.
pub(crate) const OTHER: &str = "the-token-of-another-team";
/// Nobody's.
pub(crate) const FORGED: &str = "the-token-of-nobody-at-all";
/// What is answered when all is well.
pub(crate) const WELL: &str = r#"{"code":200,"content":null,"data":null,"msg":null}"#;

pub(crate) struct Desk {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) house: Arc<ApiState>,
    pub(crate) door: SocketAddr,
    _process: QueueDispatcher,
    _attended: Attended,
}

pub(crate) async fn on<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(Desk) -> Fut,
    Fut: Future<Output = ()>,
{
    on_with(dialect, "", test).await;
}

/// With settings beside the defaults.
pub(crate) async fn on_with<F, Fut>(dialect: DialectName, settings: &str, test: F)
where
    F: FnOnce(Desk) -> Fut,
    Fut: Future<Output = ()>,
{
    with_migrated_scratch(dialect, |scratch| async move {
        test(Desk::open(&scratch.url, settings).await).await;
    })
    .await;
}

impl Desk {
    async fn open(url: &str, settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("procession.toml");
        std::fs::write(&file, settings).expect("settings");
        let mut config = crate::util::config(&file);
        config.database.url = url.to_owned().into();
        let mut app = App::open(config, EmptyDatabase::Accept).await.expect("open");
        app.clock = Clock::set_by_hand(START);
        let process = app.dispatcher(None).await.expect("a process");
        let vitals = process.vitals(&CancellationToken::new(), Duration::from_secs(120));
        let mut house = ApiState::open_state(&app, vitals).await.expect("a house");
        house.executor_limits =
            AdminRequestLimits { body: 300_000, patience: Duration::from_millis(300) };
        let house = Arc::new(house);
        let listen = Some("127.0.0.1:0".parse().expect("address"));
        let listening =
            ListeningOptions { listen, probes: None, stalled: Duration::from_secs(120) };
        let front = Front::open_listeners(&listening).await.expect("a door");
        let door = front.address().expect("an address");
        let attended = front.attend(house.clone()).expect("a runtime");
        let (db, clock) = (app.db.clone(), app.clock.clone());
        let desk = Self { db, clock, house, door, _process: process, _attended: attended };
        desk.group("pay-executor", TEAM).await;
        desk.group("stock-executor", TEAM).await;
        desk.group("other-executor", OTHER).await;
        desk
    }

    /// Adds a group with this token.
    pub(crate) async fn group(&self, name: &str, token: &str) {
        let group = ExecutorGroup {
            app_name: app(name),
            title: format!("{name} 支付"),
            addressing: Addressing::Registered,
            glue: GluePolicy::Refused,
            access: Default::default(),
        };
        // Sealing is not what is tried here.
        let kept = KeptToken { sealed: "v1:AAAA".to_owned(), digest: digest(token.as_bytes()) };
        let mut tx = self.db.begin().await.expect("begin");
        executor_group::add_group(&mut tx, &group, &kept, self.clock.now()).await.expect("add");
        tx.commit().await.expect("commit");
        self.house.executors.forget_tokens();
    }

    /// A run of `app` in this state; gives its key.
    pub(crate) async fn run(&self, app: &str, status: &str, stopping: Option<&str>) -> i64 {
        let mut tx = self.db.begin().await.expect("begin");
        let now = self.clock.now().to_utc();
        let sql = "INSERT INTO executor_run (queue_id, run_no, attempt, batch_id, job_code, job_id, app_name, address, \
                   handler, glue_type, params, block_strategy, shard_index, shard_total, status, stopping, \
                   node_id, create_time, update_time) \
                   SELECT COALESCE(MAX(queue_id), 0) + 1, 1, 1, 1, 'PAY', 1, ?, 'http://127.0.0.1:1', 'payHandler', \
                   'BEAN', '{}', 'SERIAL_EXECUTION', 0, 1, ?, ?, 'node-1', ?, ? FROM executor_run";
        let values = [app.into(), status.into(), stopping.into(), now.into(), now.into()];
        let id = tx.insert_id(sql, "log_id", &values).await.expect("a run");
        tx.commit().await.expect("commit");
        id
    }

    /// `TOLD 200 well` of a run.
    pub(crate) async fn state(&self, id: i64) -> String {
        let mut tx = self.db.begin_read().await.expect("read");
        let sql = "SELECT status, handle_code, handle_msg FROM executor_run WHERE log_id = ?";
        let row = tx.fetch_optional(sql, &[id.into()]).await.expect("ask").expect("a row");
        let code = row.opt_int("handle_code").expect("int").map(|code| code.to_string());
        let words = [
            row.opt_text("status").expect("text"),
            code,
            row.opt_text("handle_msg").expect("text"),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Everything that executors can change, to be compared.
    pub(crate) async fn everything(&self) -> Vec<String> {
        let mut tx = self.db.begin_read().await.expect("read");
        let mut all = Vec::new();
        for sql in [
            "SELECT CONCAT(app_name, ' ', address, ' ', update_time) AS line FROM executor_registry ORDER BY \
             app_name, address",
            "SELECT CONCAT(log_id, ' ', status, ' ', COALESCE(handle_code, -1), ' ', COALESCE(handle_msg, '-'), \
             ' ', update_time) AS line FROM executor_run ORDER BY log_id",
            "SELECT CONCAT(app_name, ' ', title, ' ', token_hash) AS line FROM executor_group ORDER BY app_name",
        ] {
            let rows = tx.fetch_all(sql, &[]).await.expect(sql);
            all.extend(rows.iter().map(|row| row.get_text("line").expect("line")));
        }
        all
    }

    /// The executors of a group that are there.
    pub(crate) async fn alive(&self, name: &str) -> Vec<String> {
        let mut tx = self.db.begin_read().await.expect("read");
        let alive = executor_registry::alive(&mut tx, Some(&app(name)), self.clock.now())
            .await
            .expect("alive");
        alive.into_iter().map(|there| there.address).collect()
    }

    pub(crate) async fn by_hand(&self, sql: &str) {
        let mut tx = self.db.begin().await.expect("begin");
        tx.execute(sql, &[]).await.expect(sql);
        tx.commit().await.expect("commit");
    }

    /// `why times` of each refusal on record, in order.
    pub(crate) async fn refusals(&self) -> Vec<String> {
        let mut tx = self.db.begin_read().await.expect("read");
        let sql = "SELECT detail FROM audit_log WHERE action = 'xxl-refused' ORDER BY audit_id";
        let rows = tx.fetch_all(sql, &[]).await.expect("rows");
        let read = |row: &procession::db::Row| {
            let detail: Value =
                serde_json::from_str(&row.get_text("detail").expect("detail")).expect("JSON");
            format!("{} {}", detail["why"].as_str().expect("why"), detail["times"])
        };
        rows.iter().map(read).collect()
    }

    /// Posts to a word below `/xxl-job-admin/api/`, and gives the code and the words.
    pub(crate) async fn post(&self, word: &str, token: &str, body: &str) -> (i64, String) {
        let headers = format!("XXL-JOB-ACCESS-TOKEN: {token}\r\n");
        code(&self.send("127.0.0.1", &format!("/xxl-job-admin/api/{word}"), &headers, body).await)
    }

    /// That an executor is there, as one says it that asks from 127.0.0.1.
    pub(crate) async fn register(&self, app: &str, address: &str, token: &str) -> (i64, String) {
        self.post("registry", token, &registry(app, address)).await
    }

    /// Posts from an address of this machine; gives the body of the answer.
    pub(crate) async fn send(&self, from: &str, path: &str, headers: &str, body: &str) -> String {
        let len = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json;charset=UTF-8\r\n{headers}Content-Length: {len}\r\n\r\n{body}"
        );
        let answer = self.raw(from, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
        assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
        assert!(head.to_lowercase().contains("connection: close"), "{head}");
        body.to_owned()
    }

    /// Sends bytes as they are, and gives what comes back.
    pub(crate) async fn raw(&self, from: &str, request: &[u8]) -> String {
        let socket = TcpSocket::new_v4().expect("a socket");
        let from: IpAddr = from.parse().expect("an address");
        socket.bind(SocketAddr::new(from, 0)).expect("an address of this machine");
        let mut stream = socket.connect(self.door).await.expect("connect");
        // Whoever is refused before his body is read may find the connection closed.
        let _cut = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _cut = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}

pub(crate) fn app(name: &str) -> AppName {
    AppName::parse(name).expect("a name")
}

pub(crate) fn registry(app: &str, address: &str) -> String {
    json!({"registryGroup": "EXECUTOR", "registryKey": app, "registryValue": address}).to_string()
}

pub(crate) fn code(text: &str) -> (i64, String) {
    let reply: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    (reply["code"].as_i64().expect("code"), reply["msg"].as_str().unwrap_or_default().to_owned())
}

/// A callback as 2.3 to 3.4 send it.
pub(crate) fn end(id: i64, code: i64, msg: &str) -> String {
    json!([{"logId": id, "logDateTim": 1, "handleCode": code, "handleMsg": msg}]).to_string()
}
