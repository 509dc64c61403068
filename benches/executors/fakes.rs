//! Ten executors: they take whatever they are asked, and tell its end at once, in lists.

use crate::admin::{APP, Line};
use anyhow::Result;
use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How often an end is told that gets no yes, and how long is waited in between.
const TRIES: u32 = 100;
const AGAIN: Duration = Duration::from_millis(20);

/// What executors have seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// When each run came, by its key.
    pub(crate) came: HashMap<i64, Instant>,
    /// Keys that came more than once.
    pub(crate) twice: usize,
    /// Milliseconds until a list of ends was answered.
    pub(crate) answered: Vec<i64>,
    /// Ends that were answered with 200.
    pub(crate) taken: usize,
    /// Ends that were not.
    pub(crate) refused: usize,
}

/// Executors that end with this value.
pub(crate) struct Fakes {
    pub(crate) seen: Arc<Mutex<Seen>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Fakes {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

#[derive(Clone)]
struct Room {
    seen: Arc<Mutex<Seen>>,
    open: Arc<Mutex<HashSet<i64>>>,
    ended: UnboundedSender<(i64, i64)>,
}

impl Fakes {
    /// Starts so many, registered.
    pub(crate) async fn start(count: usize, admin: SocketAddr) -> Result<Self> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut tasks = Vec::new();
        for _ in 0..count {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            let url = format!("http://{}", listener.local_addr()?);
            let (ended, ends) = unbounded_channel();
            let room = Room { seen: seen.clone(), open: Arc::default(), ended };
            let router = Router::new().fallback(answer).with_state(room.clone());
            tasks.push(tokio::spawn(async move {
                let _served = axum::serve(listener, router).await;
            }));
            let mut line = Line::open(admin).await?;
            let body =
                json!({"registryGroup": "EXECUTOR", "registryKey": APP, "registryValue": url});
            anyhow::ensure!(line.say("registry", &body.to_string()).await?, "not registered");
            tasks.push(tokio::spawn(tell(line, ends, room)));
        }
        Ok(Self { seen, tasks })
    }
}

/// Tells what has ended, all that is there at a time, fifty at most.
async fn tell(mut line: Line, mut ends: UnboundedReceiver<(i64, i64)>, room: Room) {
    let mut list = Vec::new();
    while ends.recv_many(&mut list, 50).await > 0 {
        // What else ends in these milliseconds goes along.
        tokio::time::sleep(Duration::from_millis(5)).await;
        while list.len() < 50
            && let Ok(more) = ends.try_recv()
        {
            list.push(more);
        }
        let item =
            |(_, log): &(i64, i64)| json!({"logId": log, "logDateTim": 0, "handleCode": 200});
        let body = json!(list.iter().map(item).collect::<Vec<_>>()).to_string();
        let start = Instant::now();
        // As every client does: who gets no yes connects anew and says it again.
        let mut tries = 1;
        while !line.say("callback", &body).await.unwrap_or(false) && tries < TRIES {
            tries += 1;
            tokio::time::sleep(AGAIN).await;
        }
        let taken = tries < TRIES;
        let mut seen = room.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.answered.push(crate::pace::since(start));
        if taken {
            seen.taken += list.len()
        } else {
            seen.refused += list.len()
        }
        // Never both locks in this order: a run that comes takes them in the other.
        drop(seen);
        let mut open = room.open.lock().unwrap_or_else(PoisonError::into_inner);
        for (job, _) in list.drain(..) {
            open.remove(&job);
        }
    }
}

async fn answer(State(room): State<Room>, request: Request) -> String {
    let path = request.uri().path().to_owned();
    let body = to_bytes(request.into_body(), 1_000_000).await.unwrap_or_else(|_| Bytes::new());
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let job = body["jobId"].as_i64().unwrap_or(0);
    let mut open = room.open.lock().unwrap_or_else(PoisonError::into_inner);
    let code = match path.as_str() {
        "/run" => {
            let log = body["logId"].as_i64().unwrap_or(0);
            let mut seen = room.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.came.insert(log, Instant::now()).is_some() {
                seen.twice += 1;
            }
            open.insert(job);
            // Nobody listens any more when everything ends.
            let _told = room.ended.send((job, log));
            200
        }
        "/idleBeat" if open.contains(&job) => 500,
        "/log" => 500,
        _ => 200,
    };
    json!({"code": code, "msg": null, "content": null}).to_string()
}
