//! An executor of XXL-JOB that does what a test tells it: it speaks over real sockets, keeps what it was
//! asked, and runs nothing.

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use procession::wire::xxl::XxlDialect;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// What its admin has to show it.
pub(crate) const TOKEN: &str = "a-token-of-twenty-five-chars";

/// What it does with `/run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It takes it.
    Takes,
    /// It says no.
    Refuses,
    /// It takes it, and a gateway answers in its place.
    TakesAndIsSilent,
    /// It does not take it, and a gateway answers in its place.
    Loses,
}

/// What it was asked.
struct Heard {
    path: String,
    /// What its admin called it.
    app: Option<String>,
    body: Value,
}

struct Room {
    dialect: Mutex<XxlDialect>,
    manner: Mutex<Manner>,
    /// Whether it says so when it is busy.
    tells_busy: Mutex<bool>,
    /// Whether its handlers end when they are interrupted.
    obeys: Mutex<bool>,
    /// Runs that it has forgotten because of a kill, and whose handlers run on; by the number of their job.
    running_on: Mutex<BTreeMap<i64, BTreeSet<i64>>>,
    /// Runs whose ends it is going to report.
    to_report: Mutex<Vec<i64>>,
    /// Runs that it was asked for with a time-out.
    limited: Mutex<BTreeSet<i64>>,
    /// Whether the log files of its runs are gone.
    has_lost_logs: Mutex<bool>,
    heard: Mutex<Vec<Heard>>,
    /// Runs it has, by the number of their job.
    runs: Mutex<BTreeMap<i64, BTreeSet<i64>>>,
    /// Most runs that it had of one job at once.
    most: Mutex<usize>,
    /// Logs, by run.
    logs: Mutex<BTreeMap<i64, Vec<String>>>,
}

/// An executor; it goes away when this is dropped.
pub(crate) struct Program {
    pub(crate) address: SocketAddr,
    room: Arc<Room>,
    task: JoinHandle<()>,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Program {
    pub(crate) async fn begin() -> Self {
        let room = Arc::new(Room {
            dialect: Mutex::new(XxlDialect::D1),
            manner: Mutex::new(Manner::Takes),
            tells_busy: Mutex::new(true),
            obeys: Mutex::new(true),
            running_on: Mutex::default(),
            to_report: Mutex::default(),
            limited: Mutex::default(),
            has_lost_logs: Mutex::default(),
            heard: Mutex::default(),
            runs: Mutex::default(),
            most: Mutex::default(),
            logs: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("listen");
        let address = listener.local_addr().expect("address");
        let router = Router::new().fallback(answer).with_state(room.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("serve") });
        Self { address, room, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on it is of this version.
    pub(crate) fn speaks(&self, dialect: XxlDialect) {
        *self.room.dialect.lock().expect("lock") = dialect;
    }

    pub(crate) fn is(&self, manner: Manner) {
        *self.room.manner.lock().expect("lock") = manner;
    }

    /// Whether its handlers end when they are interrupted; one that does not is forgotten at a kill and
    /// runs on, as in Java (2.5.0, 3.4.2).
    pub(crate) fn obeys(&self, obeys: bool) {
        *self.room.obeys.lock().expect("lock") = obeys;
    }

    /// The log files of its runs are gone.
    pub(crate) fn loses_logs(&self) {
        *self.room.has_lost_logs.lock().expect("lock") = true;
    }

    /// The runs whose ends it has to report now, because they were killed.
    pub(crate) fn take_reports(&self) -> Vec<i64> {
        std::mem::take(&mut *self.room.to_report.lock().expect("lock"))
    }

    /// Bodies that came to a path.
    pub(crate) fn heard(&self, path: &str) -> Vec<Value> {
        let heard = self.room.heard.lock().expect("lock");
        heard.iter().filter(|asked| asked.path == path).map(|asked| asked.body.clone()).collect()
    }

    /// What it was called by each who asked, whatever they asked.
    pub(crate) fn called(&self) -> BTreeSet<Option<String>> {
        self.room.heard.lock().expect("lock").iter().map(|asked| asked.app.clone()).collect()
    }

    /// Runs that it has.
    pub(crate) fn has(&self) -> Vec<i64> {
        self.room.runs.lock().expect("lock").values().flatten().copied().collect()
    }

    /// Most runs of one job that it had at once.
    pub(crate) fn most(&self) -> usize {
        *self.room.most.lock().expect("lock")
    }

    /// It has a run that somebody else asked it for.
    pub(crate) fn takes(&self, job: i64, log: i64) {
        self.room.runs.lock().expect("lock").entry(job).or_default().insert(log);
    }

    /// It has a run no more.
    pub(crate) fn ends(&self, log: i64) {
        for runs in [&self.room.runs, &self.room.running_on] {
            for runs in runs.lock().expect("lock").values_mut() {
                runs.remove(&log);
            }
        }
    }

    /// It is done with a run and tells its admin so; the code of the answer, none when there is no answer.
    pub(crate) async fn tells(&self, door: &str, log: i64, code: i64) -> Option<i64> {
        self.ends(log);
        let end = json!([{ "logId": log, "logDateTim": 0, "handleCode": code, "handleMsg": "ok" }]);
        let body = end.to_string();
        let head = format!(
            "POST /xxl-job-admin/api/callback HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(door).await.ok()?;
        stream.write_all((head + &body).as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str::<Value>(body).ok()?["code"].as_i64()
    }

    pub(crate) fn prints(&self, log: i64, line: &str) {
        self.room.logs.lock().expect("lock").entry(log).or_default().push(line.to_owned());
    }
}

/// What was asked for is under `data` from 3.3 on, and under `content` before.
fn reply(dialect: XxlDialect, code: i64, msg: &str, value: Value) -> Response {
    let name = match dialect {
        XxlDialect::D0 | XxlDialect::D1 => "content",
        XxlDialect::D2 | XxlDialect::D3 => "data",
    };
    axum::response::Html(json!({"code": code, "msg": msg, name: value}).to_string()).into_response()
}

async fn answer(State(room): State<Arc<Room>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, 1_000_000).await.expect("body");
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let app = header("XXL-JOB-APPNAME").map(str::to_owned);
    let dialect = *room.dialect.lock().expect("lock");
    let is_called = app.is_some();
    let heard = Heard { path: path.clone(), app, body: body.clone() };
    room.heard.lock().expect("lock").push(heard);
    let say = |code, msg| reply(dialect, code, msg, Value::Null);
    if header("XXL-JOB-ACCESS-TOKEN") != Some(TOKEN) || (dialect == XxlDialect::D3 && !is_called) {
        return say(500, "The access token is wrong.");
    }
    let job = body["jobId"].as_i64().unwrap_or_default();
    let is_busy = room.runs.lock().expect("lock").get(&job).is_some_and(|runs| !runs.is_empty());
    match (path.as_str(), dialect) {
        ("/beat", _) => say(200, ""),
        ("/idleBeat", _) if is_busy && *room.tells_busy.lock().expect("lock") => {
            say(500, "job thread is running")
        }
        ("/idleBeat", _) => say(200, ""),
        ("/run", XxlDialect::D0 | XxlDialect::D1 | XxlDialect::D2)
        | ("/trigger", XxlDialect::D3) => run(&room, dialect, job, &body),
        ("/kill", _) => {
            kill(&room, job);
            say(200, "")
        }
        ("/log", _) => log(&room, dialect, &body),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// It forgets what it runs of the job, so that it says at once that it is idle. The end of a run is reported
/// when its handler has ended; of one that was asked for with a time-out at once.
fn kill(room: &Room, job: i64) {
    let runs = room.runs.lock().expect("lock").remove(&job).unwrap_or_default();
    let limited = room.limited.lock().expect("lock");
    let obeys = *room.obeys.lock().expect("lock");
    let reported = runs.iter().filter(|run| obeys || limited.contains(run));
    room.to_report.lock().expect("lock").extend(reported);
    if !obeys {
        room.running_on.lock().expect("lock").entry(job).or_default().extend(runs);
    }
}

fn run(room: &Room, dialect: XxlDialect, job: i64, body: &Value) -> Response {
    let manner = *room.manner.lock().expect("lock");
    let log = body["logId"].as_i64().expect("a key");
    if body["executorTimeout"].as_i64() > Some(0) {
        room.limited.lock().expect("lock").insert(log);
    }
    if matches!(manner, Manner::Takes | Manner::TakesAndIsSilent) {
        let mut runs = room.runs.lock().expect("lock");
        let of_job = runs.entry(job).or_default();
        of_job.insert(log);
        let running_on = room.running_on.lock().expect("lock");
        let beside = running_on.get(&job).map_or(0, BTreeSet::len);
        let mut most = room.most.lock().expect("lock");
        *most = (*most).max(of_job.len() + beside);
    }
    match manner {
        Manner::Takes => reply(dialect, 200, "", Value::Null),
        Manner::Refuses => reply(dialect, 500, "job handler is not found", Value::Null),
        Manner::TakesAndIsSilent | Manner::Loses => StatusCode::GATEWAY_TIMEOUT.into_response(),
    }
}

/// As Java's executors have it: the whole rest, and where nothing is new, an end before its beginning. The time
/// at which the run was sent says in which file to look; its name is another from 3.5 on.
fn log(room: &Room, dialect: XxlDialect, body: &Value) -> Response {
    let from = body["fromLineNum"].as_u64().expect("a line");
    let time = if dialect == XxlDialect::D3 { "logDateTime" } else { "logDateTim" };
    if *room.has_lost_logs.lock().expect("lock") {
        let notice = "readLog fail, logFile not exists";
        let page =
            json!({"fromLineNum": from, "toLineNum": 0, "logContent": notice, "isEnd": true});
        return reply(dialect, 200, "", page);
    }
    let logs = room.logs.lock().expect("lock");
    let lines = logs.get(&body["logId"].as_i64().expect("a key"));
    let Some(lines) = lines.filter(|_| body[time].is_i64()) else {
        return reply(dialect, 200, "", Value::Null);
    };
    let skip = usize::try_from(from).expect("small") - 1;
    let rest: Vec<&str> = lines.iter().skip(skip).map(String::as_str).collect();
    let to = if rest.is_empty() { 0 } else { lines.len() };
    let content = rest.iter().map(|line| format!("{line}\n")).collect::<String>();
    let page = json!({"fromLineNum": from, "toLineNum": to, "logContent": content, "isEnd": false});
    reply(dialect, 200, "", page)
}
