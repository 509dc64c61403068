//! Who asked without showing the token, on record.

use super::Executor;
use crate::domain::lease::Uptime;
use crate::domain::text::storable;
use crate::store::audit::{self, Entry, Operator};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::sync::PoisonError;

/// Between two records: whoever knocks a thousand times a second must not fill the table.
const ONCE_MS: i64 = 60_000;
/// Longest word of a stranger that is written, in bytes.
const WORD_MAX: usize = 60;

/// What was refused and is not on record yet.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    last: Option<Uptime>,
    unsaid: u64,
}

impl Executor {
    /// Notes that somebody asked for `what` without showing the token.
    pub async fn note_refused(&self, peer: &str, what: &str) {
        let now = self.clock.uptime();
        let count = {
            let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            refusals.unsaid += 1;
            if refusals.last.is_some_and(|last| now.since(last) < ONCE_MS) {
                return;
            }
            refusals.last = Some(now);
            std::mem::take(&mut refusals.unsaid)
        };
        tracing::warn!(peer, count, "somebody asked this executor without showing the token");
        if let Err(error) = self.record_refused(peer, what, count).await {
            Self::log_failure("that somebody was refused is not on record", &error);
        }
    }

    async fn record_refused(&self, peer: &str, what: &str, count: u64) -> Result<()> {
        let what = storable(what.as_bytes(), WORD_MAX);
        let by = Operator { actor: "unknown, without the token".to_owned(), host: peer.to_owned() };
        let entry = Entry {
            action: "xxl-refused".to_owned(),
            group: None,
            batch: None,
            job: None,
            detail: Some(json!({
                "appname": self.app_name().as_str(), "asked": what, "times": count,
            })),
            reason: None,
        };
        let mut tx = self.db.begin().await?;
        audit::record(&mut tx, &by, &[entry], self.clock.now()).await?;
        tx.commit().await.context("put a refusal on record")
    }
}
