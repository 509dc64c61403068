//! Who was refused at the desk, on record.

use super::desk::Refused;
use crate::domain::lease::Uptime;
use crate::domain::xxl_run::AppName;
use crate::engine::clock::Clock;
use crate::store::Db;
use crate::store::audit::{self, Entry, Operator};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Between two records of one reason: whoever knocks a thousand times a second must not fill the table.
const ONCE_MS: i64 = 60_000;

/// What was refused for one reason and is not on record yet.
#[derive(Debug, Default)]
struct Unsaid {
    last: Option<Uptime>,
    times: u64,
}

/// Refusals by their reasons.
pub(super) struct Refusals {
    db: Db,
    clock: Clock,
    unsaid: Mutex<BTreeMap<&'static str, Unsaid>>,
}

impl Refusals {
    pub(super) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock, unsaid: Mutex::default() }
    }

    /// Notes a refusal; `apps` are the groups whose token was shown.
    pub(super) async fn note(
        &self,
        refused: &Refused,
        peer: IpAddr,
        apps: Option<&BTreeSet<AppName>>,
    ) {
        let now = self.clock.uptime();
        let times = {
            let mut all = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
            let unsaid = all.entry(refused.word()).or_default();
            unsaid.times += 1;
            if unsaid.last.is_some_and(|last| now.since(last) < ONCE_MS) {
                return;
            }
            unsaid.last = Some(now);
            std::mem::take(&mut unsaid.times)
        };
        tracing::warn!(%peer, times, why = refused.word(), "an executor was refused");
        if let Err(error) = self.record(refused, (peer, times), apps).await {
            tracing::error!(error = format!("{error:#}"), "a refusal is not on record");
        }
    }

    async fn record(
        &self,
        refused: &Refused,
        (peer, times): (IpAddr, u64),
        apps: Option<&BTreeSet<AppName>>,
    ) -> Result<()> {
        let names = apps.map(|apps| apps.iter().map(AppName::as_str).collect::<Vec<_>>().join(" "));
        let actor = match &names {
            Some(names) => format!("executor {names}").chars().take(200).collect(),
            None => "unknown, without the token".to_owned(),
        };
        let by = Operator { actor, host: peer.to_canonical().to_string() };
        let entry = Entry {
            action: "xxl-refused".to_owned(),
            group: None,
            batch: None,
            job: None,
            detail: Some(json!({
                "why": refused.word(), "said": refused.to_string(), "times": times,
            })),
            reason: None,
        };
        let mut tx = self.db.begin().await?;
        audit::record(&mut tx, &by, &[entry], self.clock.now()).await?;
        tx.commit().await.context("put a refusal on record")
    }
}
