//! What happens to batches and their jobs, told to front ends as it happens (server-sent events).
//!
//! An event is a word to look again, as a hint between processes is. One task of the process looks once a
//! second for all who listen, and not at all while nobody does.

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

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// Events that may wait for a listener; who is slower is shown out, and goes on where he was.
const WAITING: usize = 4_096;
/// A stream ends by itself after so long; its client asks again, and its session counts as used.
const LASTS: Duration = Duration::from_secs(50);
/// A sign of life when there is nothing to tell.
const BEAT: Duration = Duration::from_secs(15);
/// Changes that are read for one look, or for one who comes back.
const MOST: u32 = 2_000;
/// Keys before his last one that are told again to one who comes back: they may have been committed later.
const AGAIN: i64 = 64;

pub(super) fn routes() -> Noun {
    Noun::new("events").media(
        "/events", "text/event-stream",
        CallerNeeds::Somewhere(Permission::View),
        "What happens to batches and jobs, as it happens; `event: reset` says that too much was missed",
        listen,
    )
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StreamedEvent {
    /// Up to which change of a job all has been told with it.
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

/// Where those who listen hear.
pub(super) struct EventHub {
    told: broadcast::Sender<Arc<StreamedEvent>>,
    /// What was seen last; none while nobody listens.
    watch: Mutex<Option<ChangeWatch>>,
}

impl Default for EventHub {
    fn default() -> Self {
        Self { told: broadcast::Sender::new(WAITING), watch: Mutex::default() }
    }
}

impl EventHub {
    /// Looks what has changed and tells it.
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
            // Nobody listens any more: the next look sees it.
            let _ = self.told.send(Arc::new(told));
        }
        Ok(())
    }
}

/// Looks once a second until it is stopped.
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

/// What is listened to.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct EventStreamQuery {
    /// Only batches of this group.
    group: Option<String>,
    /// Only batches of this number.
    batch_no: Option<String>,
}

/// One who listens.
struct Listener {
    grants: Grants,
    which: EventStreamQuery,
    told: broadcast::Receiver<Arc<StreamedEvent>>,
    /// What is to be sent before anything that is told.
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

    /// The next piece; none at the end.
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
                    // Too slow: whoever comes back is told what he missed.
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
    // Before what was missed is read, so that nothing falls between the two.
    let told = ask.house.reads.events.told.subscribe();
    let stop = ask.house.reads.closing.clone();
    let ends = Box::pin(tokio::time::sleep(LASTS));
    let first = VecDeque::from(["retry: 500\n\n".to_owned()]);
    let mut listener = Listener { grants, which, told, first, ends, stop, access };
    // Of a first listener the state of things is looked at now, and not after a second.
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

/// What happened to jobs since a change; none when it is too much to tell.
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
