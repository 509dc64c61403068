//! An executor of XXL-JOB that does what a test tells it: it speaks over real sockets, keeps what it was
//! asked, and runs nothing.

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

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

struct Room {
    manner: Mutex<Manner>,
    /// Whether it says so when it is busy.
    tells_busy: Mutex<bool>,
    /// Whether it stops what it is told to stop.
    obeys: Mutex<bool>,
    heard: Mutex<Vec<(String, Value)>>,
    /// Runs it has, by the number of their job.
    runs: Mutex<BTreeMap<i64, BTreeSet<i64>>>,
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
            manner: Mutex::new(Manner::Takes),
            tells_busy: Mutex::new(true),
            obeys: Mutex::new(true),
            heard: Mutex::default(),
            runs: Mutex::default(),
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

    pub(crate) fn is(&self, manner: Manner) {
        *self.room.manner.lock().expect("lock") = manner;
    }

    pub(crate) fn obeys(&self, obeys: bool) {
        *self.room.obeys.lock().expect("lock") = obeys;
    }

    /// Bodies that came to a path.
    pub(crate) fn heard(&self, path: &str) -> Vec<Value> {
        let heard = self.room.heard.lock().expect("lock");
        heard.iter().filter(|(at, _)| at == path).map(|(_, body)| body.clone()).collect()
    }

    /// Runs that it has.
    pub(crate) fn has(&self) -> Vec<i64> {
        self.room.runs.lock().expect("lock").values().flatten().copied().collect()
    }

    /// It has a run no more.
    pub(crate) fn ends(&self, log: i64) {
        for runs in self.room.runs.lock().expect("lock").values_mut() {
            runs.remove(&log);
        }
    }

    pub(crate) fn prints(&self, log: i64, line: &str) {
        self.room.logs.lock().expect("lock").entry(log).or_default().push(line.to_owned());
    }
}

fn reply(code: i64, msg: &str, content: Value) -> Response {
    axum::response::Html(json!({"code": code, "msg": msg, "content": content}).to_string())
        .into_response()
}

async fn answer(State(room): State<Arc<Room>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, 1_000_000).await.expect("body");
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let path = parts.uri.path().to_owned();
    room.heard.lock().expect("lock").push((path.clone(), body.clone()));
    let token = parts.headers.get("XXL-JOB-ACCESS-TOKEN").and_then(|v| v.to_str().ok());
    if token != Some(crate::admin::TOKEN) {
        return reply(500, "The access token is wrong.", Value::Null);
    }
    let job = body["jobId"].as_i64().unwrap_or_default();
    let is_busy = room.runs.lock().expect("lock").get(&job).is_some_and(|runs| !runs.is_empty());
    match path.as_str() {
        "/beat" => reply(200, "", Value::Null),
        "/idleBeat" if is_busy && *room.tells_busy.lock().expect("lock") => {
            reply(500, "job thread is running", Value::Null)
        }
        "/idleBeat" => reply(200, "", Value::Null),
        "/run" => run(&room, job, &body),
        "/kill" => {
            if *room.obeys.lock().expect("lock") {
                room.runs.lock().expect("lock").remove(&job);
            }
            reply(200, "", Value::Null)
        }
        "/log" => log(&room, &body),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn run(room: &Room, job: i64, body: &Value) -> Response {
    let manner = *room.manner.lock().expect("lock");
    let log = body["logId"].as_i64().expect("a key");
    if matches!(manner, Manner::Takes | Manner::TakesAndIsSilent) {
        room.runs.lock().expect("lock").entry(job).or_default().insert(log);
    }
    match manner {
        Manner::Takes => reply(200, "", Value::Null),
        Manner::Refuses => reply(500, "job handler is not found", Value::Null),
        Manner::TakesAndIsSilent | Manner::Loses => StatusCode::GATEWAY_TIMEOUT.into_response(),
    }
}

/// As Java's executors have it: the whole rest, and where nothing is new, an end before its beginning.
fn log(room: &Room, body: &Value) -> Response {
    let from = body["fromLineNum"].as_u64().expect("a line");
    let logs = room.logs.lock().expect("lock");
    let Some(lines) = logs.get(&body["logId"].as_i64().expect("a key")) else {
        return reply(200, "", Value::Null);
    };
    let skip = usize::try_from(from).expect("small") - 1;
    let rest: Vec<&str> = lines.iter().skip(skip).map(String::as_str).collect();
    let to = if rest.is_empty() { 0 } else { lines.len() };
    let content = rest.iter().map(|line| format!("{line}\n")).collect::<String>();
    let page = json!({"fromLineNum": from, "toLineNum": to, "logContent": content, "isEnd": false});
    reply(200, "", page)
}
