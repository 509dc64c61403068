//! An admin of XXL-JOB that keeps what it is told: it speaks one dialect, takes only what that version
//! takes, and can be away.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use procession::wire::xxl::XxlDialect;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

pub(crate) const TOKEN: &str = "a-token-of-twenty-five-chars";

/// What an admin does with what it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Takes = 0,
    /// Code 500: its database is away.
    Refuses = 1,
    /// A page of a proxy.
    Html = 2,
    /// Somewhere else.
    Redirects = 3,
    /// More than anybody wants to read.
    Floods = 4,
    /// Takes it, and its answer is lost.
    TakesAndFails = 5,
}

pub(crate) struct Heard {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

struct Room {
    dialect: XxlDialect,
    mood: AtomicU8,
    heard: Mutex<Vec<Heard>>,
    /// Log rows, as an admin keeps them: key, code, words.
    taken: Mutex<Vec<(i64, i64, String)>>,
}

pub(crate) struct Admin {
    pub(crate) address: SocketAddr,
    room: Arc<Room>,
    task: JoinHandle<()>,
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Admin {
    pub(crate) async fn of(dialect: XxlDialect) -> Self {
        let room = Arc::new(Room {
            dialect,
            mood: AtomicU8::new(0),
            heard: Mutex::default(),
            taken: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("listen");
        let address = listener.local_addr().expect("address");
        let router = Router::new().fallback(answer).with_state(room.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("serve") });
        Self { address, room, task }
    }

    pub(crate) fn url(&self) -> String {
        let root = if self.room.dialect == XxlDialect::D3 { "" } else { "/xxl-job-admin" };
        format!("http://{}{root}", self.address)
    }

    pub(crate) fn is(&self, mood: Mood) {
        self.room.mood.store(mood as u8, Ordering::SeqCst);
    }

    /// Ends that it took, each once: a repeat of a run whose end is known is ignored.
    pub(crate) fn taken(&self) -> Vec<(i64, i64, String)> {
        self.room.taken.lock().expect("lock").clone()
    }

    /// Bodies that came to a path, with what was said of who asks.
    pub(crate) fn heard(&self, name: &str) -> Vec<Heard> {
        let heard = self.room.heard.lock().expect("lock");
        let of = |h: &&Heard| h.path.ends_with(&format!("/api/{name}"));
        let copy = |h: &Heard| Heard {
            path: h.path.clone(),
            headers: h.headers.clone(),
            body: h.body.clone(),
        };
        heard.iter().filter(of).map(copy).collect()
    }
}

fn reply(room: &Room, code: i64, msg: Option<&str>) -> Response {
    let body = match room.dialect {
        XxlDialect::D0 | XxlDialect::D1 => json!({"code": code, "msg": msg, "content": null}),
        XxlDialect::D2 | XxlDialect::D3 => {
            json!({"code": code, "msg": msg.unwrap_or("Success"), "data": null, "success": code == 200})
        }
    };
    ([(header::CONTENT_TYPE, "application/json;charset=UTF-8")], body.to_string()).into_response()
}

async fn answer(State(room): State<Arc<Room>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, 1_000_000).await.expect("body");
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let root = if room.dialect == XxlDialect::D3 { "/api/" } else { "/xxl-job-admin/api/" };
    if !path.starts_with(root) {
        return (StatusCode::NOT_FOUND, "no such page").into_response();
    }
    let headers = parts.headers;
    let token = headers.get("XXL-JOB-ACCESS-TOKEN").and_then(|v| v.to_str().ok());
    let named = headers.contains_key("XXL-JOB-APPNAME");
    room.heard.lock().expect("lock").push(Heard {
        path: path.clone(),
        headers: headers.clone(),
        body: body.clone(),
    });
    if token != Some(TOKEN) || (room.dialect == XxlDialect::D3 && !named) {
        return reply(&room, 500, Some("The access token is wrong."));
    }
    match room.mood.load(Ordering::SeqCst) {
        1 => return reply(&room, 500, Some(&format!("no database, says {TOKEN}"))),
        2 => return axum::response::Html("<html>Log in</html>").into_response(),
        3 => {
            let to = [(header::LOCATION, "/elsewhere/api/callback")];
            return (StatusCode::TEMPORARY_REDIRECT, to).into_response();
        }
        4 => return Body::from(vec![b'x'; 1_000_000]).into_response(),
        _ => {}
    }
    if path.ends_with("/callback") {
        let Some(items) = read(room.dialect, &body) else {
            return match room.dialect {
                // An exception page up to 3.2.
                XxlDialect::D0 | XxlDialect::D1 => {
                    StatusCode::INTERNAL_SERVER_ERROR.into_response()
                }
                XxlDialect::D2 | XxlDialect::D3 => reply(&room, 500, Some("parse error")),
            };
        };
        let mut taken = room.taken.lock().expect("lock");
        for item in items {
            if !taken.iter().any(|known| known.0 == item.0) {
                taken.push(item);
            }
        }
    }
    if room.mood.load(Ordering::SeqCst) == Mood::TakesAndFails as u8 {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    reply(&room, 200, None)
}

/// What this version makes of a callback, unless it cannot read it.
fn read(dialect: XxlDialect, body: &Value) -> Option<Vec<(i64, i64, String)>> {
    let (items, time) = match dialect {
        XxlDialect::D3 => (body.get("callbackList")?.as_array()?, "logDateTime"),
        XxlDialect::D0 | XxlDialect::D1 | XxlDialect::D2 => (body.as_array()?, "logDateTim"),
    };
    let item = |item: &Value| {
        item.get(time)?.as_i64()?;
        let (code, words) = match dialect {
            XxlDialect::D0 => (&item["executeResult"]["code"], &item["executeResult"]["msg"]),
            XxlDialect::D1 | XxlDialect::D2 | XxlDialect::D3 => {
                (&item["handleCode"], &item["handleMsg"])
            }
        };
        let words = words.as_str().unwrap_or_default().to_owned();
        Some((item["logId"].as_i64()?, code.as_i64()?, words))
    };
    items.iter().map(item).collect()
}
