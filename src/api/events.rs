//! Publishes changes of batches and jobs to front ends as they happen (server-sent events).
//!
//! An event is only a signal to read again, like a hint between processes. One task of the process
//! polls once a second for all listeners, and not at all while there are none.

use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::state::ApiState;
use crate::api::stream_access::{self, StreamAccess};
use crate::api::watch::ChangeWatch;
use crate::app::App;
use crate::domain::access::{Grants, Permission};
use crate::domain::id::GroupCode;
use crate::store::changed::{self, ChangedBatch, ChangedJob};
use anyhow::Result;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, broadcast};
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

/// Poll interval.
const LOOK: Duration = Duration::from_secs(1);
/// Number of events that may wait for a listener; a slower one is disconnected, and resumes where
/// it was.
const WAITING: usize = 4_096;
/// Maximum duration of a stream; the client reconnects, and its session counts as used.
const LASTS: Duration = Duration::from_secs(50);
/// Interval of keep-alive comments.
const BEAT: Duration = Duration::from_secs(15);
/// Maximum number of changes read per poll, or for a listener that resumes.
const MOST: u32 = 2_000;
/// Number of keys before the last one that are sent again to a listener that resumes: they may have
/// been committed later.
const AGAIN: i64 = 64;

pub(super) fn routes() -> Noun {
    Noun::new("events").media(
        "streamEvents",
        "/events",
        "text/event-stream",
        CallerNeeds::Somewhere(Permission::View),
        "Stream events of batches and jobs (SSE); `event: reset` means that events were missed",
        listen,
    )
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StreamedEvent {
    /// All changes up to this key were sent before it.
    id: i64,
    /// `batch` or `job`.
    kind: &'static str,
    group: GroupCode,
    batch_no: String,
    data: Value,
}

impl StreamedEvent {
    pub(super) fn job_changed(changed: &ChangedJob) -> Self {
        let batch = &changed.batch;
        let data = json!({
            "group": batch.group, "batch_no": batch.batch_no, "job": changed.job_code,
            "status": changed.status, "attempt": changed.attempt, "at": changed.at.to_string(),
        });
        let batch_no = batch.batch_no.to_string();
        Self { id: changed.log_id, kind: "job", group: batch.group.clone(), batch_no, data }
    }

    pub(super) fn batch(pulse: &ChangedBatch, id: i64) -> Self {
        let data = json!({
            "group": pulse.group, "batch_no": pulse.batch_no, "status": pulse.status.as_str(),
            "revision": pulse.revision, "is_paused": pulse.is_paused,
        });
        let batch_no = pulse.batch_no.to_string();
        Self { id, kind: "batch", group: pulse.group.clone(), batch_no, data }
    }

    fn frame(&self) -> String {
        format!("id: {}\nevent: {}\ndata: {}\n\n", self.id, self.kind, self.data)
    }
}

/// Distributes events to listeners.
pub(super) struct EventHub {
    told: broadcast::Sender<Arc<StreamedEvent>>,
    /// The last known state; `None` while there are no listeners.
    watch: Mutex<Option<ChangeWatch>>,
}

impl Default for EventHub {
    fn default() -> Self {
        Self { told: broadcast::Sender::new(WAITING), watch: Mutex::default() }
    }
}

impl EventHub {
    /// Polls for changes and publishes them.
    pub(super) async fn poll_changes(&self, app: &App) -> Result<()> {
        let mut watch = self.watch.lock().await;
        if self.told.receiver_count() == 0 {
            *watch = None;
            return Ok(());
        }
        let mut tx = app.db.begin_read().await?;
        let Some(seen) = &mut *watch else {
            *watch = Some(ChangeWatch::new(
                changed::last_key(&mut tx).await?,
                changed::open_batches(&mut tx).await?,
            ));
            return Ok(());
        };
        let late = changed::of_keys(&mut tx, &seen.left_out()).await?;
        let fresh = changed::after(&mut tx, seen.last_key(), MOST).await?;
        let open = changed::open_batches(&mut tx).await?;
        let ended = changed::of_batches(&mut tx, &seen.ended(&open)).await?;
        drop(tx);
        for told in seen.take_changes(late, fresh, open, ended) {
            // No listener is left: the next poll notices that.
            let _ = self.told.send(Arc::new(told));
        }
        Ok(())
    }
}

/// Polls once a second until it is stopped.
pub(super) async fn attend(house: Arc<ApiState>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = stop.cancelled() => return,
        }
        if let Err(error) = house.poll_changes().await {
            tracing::warn!(error = format!("{error:#}"), "could not look what has changed");
        }
    }
}

/// Ends revoked streams until it is stopped.
pub(super) async fn end_revoked(house: Arc<ApiState>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(stream_access::CHECK) => {}
            () = stop.cancelled() => return,
        }
        if let Err(error) = house.end_revoked_streams().await {
            tracing::warn!(error = format!("{error:#}"), "could not check who may see streams");
        }
    }
}

/// Filter of events.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct EventStreamQuery {
    /// Only batches of this group.
    group: Option<String>,
    /// Only batches with this number.
    batch_no: Option<String>,
}

/// One listener.
struct Listener {
    grants: Grants,
    which: EventStreamQuery,
    told: broadcast::Receiver<Arc<StreamedEvent>>,
    /// What to send before any published event.
    first: VecDeque<String>,
    ends: Pin<Box<Sleep>>,
    stop: CancellationToken,
    access: StreamAccess,
}

impl Listener {
    fn hears(&self, told: &StreamedEvent) -> bool {
        let EventStreamQuery { group, batch_no } = &self.which;
        self.grants.allow(Permission::View, &told.group)
            && group.as_deref().is_none_or(|code| code == told.group.as_str())
            && batch_no.as_deref().is_none_or(|no| no == told.batch_no)
    }

    /// The next piece; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        if self.access.ended.is_cancelled() {
            return None;
        }
        if let Some(text) = self.first.pop_front() {
            return Some(text);
        }
        loop {
            tokio::select! {
                biased;
                () = self.access.ended.cancelled() => return None,
                () = &mut self.ends => return None,
                () = self.stop.cancelled() => return None,
                told = self.told.recv() => match told {
                    Ok(told) if self.hears(&told) => return Some(told.frame()),
                    Ok(_) => {}
                    // Too slow: after reconnecting it gets what it missed.
                    Err(_) => return None,
                },
                () = tokio::time::sleep(BEAT) => return Some(": still here\n\n".to_owned()),
            }
        }
    }
}

async fn listen(ask: ApiRequest, _: Nothing, which: EventStreamQuery) -> Result<Response, Problem> {
    let caller = ask.caller()?;
    let grants = caller.grants.clone();
    let access = ask.house.streams.add_stream(caller.known.clone());
    // Before the missed changes are read, so that nothing falls in between.
    let told = ask.house.reads.events.told.subscribe();
    let stop = ask.house.reads.closing.clone();
    let ends = Box::pin(tokio::time::sleep(LASTS));
    let first = VecDeque::from(["retry: 500\n\n".to_owned()]);
    let mut listener = Listener { grants, which, told, first, ends, stop, access };
    // For a first listener the state is read now, and not a second later.
    ask.house.poll_changes().await?;
    let last = ask.headers.get("last-event-id").and_then(|v| v.to_str().ok()?.trim().parse().ok());
    if let Some(last) = last {
        let missed = missed(&ask.house.app, last).await?;
        let heard = missed.map(|all| all.into_iter().filter(|told| listener.hears(told)).collect());
        let frames: Vec<String> = heard.map_or_else(
            || vec!["event: reset\ndata: {}\n\n".to_owned()],
            |all: Vec<StreamedEvent>| all.iter().map(StreamedEvent::frame).collect(),
        );
        listener.first.extend(frames);
    }
    let pieces = stream::unfold(listener, |mut listener| async move {
        let text = listener.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), listener))
    });
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// The changes of jobs since a key; `None` when they are too many.
async fn missed(app: &App, last: i64) -> Result<Option<Vec<StreamedEvent>>> {
    let mut tx = app.db.begin_read().await?;
    let newest = changed::last_key(&mut tx).await?;
    let from = (last - AGAIN).max(0);
    if last < 0 || last > newest || newest - from > i64::from(MOST) {
        return Ok(None);
    }
    let missed = changed::after(&mut tx, from, MOST).await?;
    Ok(Some(missed.iter().map(StreamedEvent::job_changed).collect()))
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
