//! Records refused requests to the APIs for executors and admins of XXL-JOB.
//!
//! The first refusal of each reason is recorded at once, and those that follow within a minute
//! together: a client that sends a thousand requests per second must not fill the table.

use crate::domain::cluster::lease::Uptime;
use crate::engine::clock::Clock;
use crate::store::Db;
use crate::store::audit::{self, Operator};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The actor of a record when no known token was sent.
pub(super) const STRANGER: &str = "unknown, without the token";
/// Minimum time between two records of one reason, in milliseconds.
const ONCE_MS: i64 = 60_000;
/// Interval at which held-back refusals are checked.
const LOOK: Duration = Duration::from_secs(30);
/// Time limit for recording, per check and before the process ends.
const PATIENCE: Duration = Duration::from_millis(500);

/// One refused caller as recorded: the client, and an object of what is known.
#[derive(Clone, Debug)]
pub(super) struct Knock {
    pub(in crate::engine) by: Operator,
    pub(in crate::engine) detail: Value,
}

/// Unrecorded refusals of one reason.
#[derive(Debug, Default)]
struct Unsaid {
    /// When one was last recorded.
    last: Option<Uptime>,
    /// Number of refusals since.
    times: u64,
    /// The last refused caller.
    knock: Option<Knock>,
}

/// Which refusals to record now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefusalSelection {
    /// Those that were held back for a minute.
    Due,
    /// All of them: the process ends.
    All,
}

/// Refusals that are not recorded yet, by reason.
pub(in crate::engine) struct RejectedAccesses {
    db: Db,
    clock: Clock,
    unsaid: Mutex<BTreeMap<&'static str, Unsaid>>,
}

impl RejectedAccesses {
    pub(in crate::engine) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock, unsaid: Mutex::default() }
    }

    /// Notes a refusal.
    pub(in crate::engine) async fn note_refusal(&self, why: &'static str, knock: Knock) {
        let now = self.clock.uptime();
        let is_first = {
            let mut all = self.unsaid();
            let unsaid = all.entry(why).or_default();
            unsaid.times += 1;
            unsaid.knock = Some(knock);
            unsaid.last.is_none_or(|last| now.since(last) >= ONCE_MS)
        };
        if is_first {
            self.write_record(why, now).await;
        }
    }

    /// Records held-back refusals as they become due, until `stop`: nothing else would record those
    /// of a client that has stopped.
    pub(in crate::engine) async fn record_held_back(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {
                    let _in_time = tokio::time::timeout(PATIENCE, self.say_due()).await;
                }
                () = stop.cancelled() => {}
            }
        }
    }

    /// Records what was held back for a minute.
    pub(super) async fn say_due(&self) {
        self.say_held(RefusalSelection::Due).await;
    }

    /// Records everything that is left: the process ends.
    pub(in crate::engine) async fn close(&self) {
        if tokio::time::timeout(PATIENCE, self.say_held(RefusalSelection::All)).await.is_err() {
            tracing::error!("not all refusals are on record");
        }
    }

    async fn say_held(&self, held: RefusalSelection) {
        let now = self.clock.uptime();
        let is_due = |unsaid: &Unsaid| {
            let is_late = unsaid.last.is_none_or(|last| now.since(last) >= ONCE_MS);
            unsaid.times > 0 && (held == RefusalSelection::All || is_late)
        };
        let due: Vec<&'static str> = self
            .unsaid()
            .iter()
            .filter(|(_, unsaid)| is_due(unsaid))
            .map(|(why, _)| *why)
            .collect();
        for why in due {
            self.write_record(why, now).await;
        }
    }

    async fn write_record(&self, why: &'static str, now: Uptime) {
        let Some(mut taken) = self.take_held_back(why, now) else { return };
        let (times, peer) = (taken.times, taken.knock.by.host.as_str());
        tracing::warn!(peer, times, why, "somebody was refused");
        match self.record(why, &taken.knock, times).await {
            Ok(()) => taken.times = 0,
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "a refusal is not on record yet");
            }
        }
    }

    fn take_held_back(&self, why: &'static str, now: Uptime) -> Option<TakenRefusals<'_>> {
        let mut all = self.unsaid();
        let unsaid = all.get_mut(why).filter(|unsaid| unsaid.times > 0)?;
        let knock = unsaid.knock.clone()?;
        unsaid.last = Some(now);
        Some(TakenRefusals { from: self, why, knock, times: std::mem::take(&mut unsaid.times) })
    }

    async fn record(&self, why: &str, knock: &Knock, times: u64) -> Result<()> {
        let mut detail = knock.detail.clone();
        (detail["why"], detail["times"]) = (json!(why), json!(times));
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        audit::record_one(&mut tx, &knock.by, "xxl-refused", detail, now).await?;
        tx.commit().await.context("put a refusal on record")
    }

    fn unsaid(&self) -> MutexGuard<'_, BTreeMap<&'static str, Unsaid>> {
        self.unsaid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refusals that are being recorded. If that fails or is cancelled, they are held back again.
struct TakenRefusals<'a> {
    from: &'a RejectedAccesses,
    why: &'static str,
    knock: Knock,
    times: u64,
}

impl Drop for TakenRefusals<'_> {
    fn drop(&mut self) {
        if let Some(unsaid) = self.from.unsaid().get_mut(self.why) {
            unsaid.times += self.times;
        }
    }
}
