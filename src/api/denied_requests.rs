//! Audit records of requests refused for lack of a permission: who, what, from where; limited in
//! number.

use crate::app::App;
use crate::domain::time::Millis;
use crate::store::audit::{Operator, record_one};
use anyhow::Result;
use axum::http::StatusCode;
use serde_json::json;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Refusals of one user at one route share a record for this many milliseconds.
const SAME_MS: i64 = 60_000;
/// Maximum number of records written by one process in that time.
const MOST: usize = 60;
/// Maximum length of a stored path, in characters.
const PATH_MAX: usize = 200;

/// The caller of requests with an unknown token.
const UNKNOWN_TOKEN: &str = "(unknown token)";

/// The caller of a request; set once it is identified.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestCaller {
    name: Arc<OnceLock<String>>,
    /// Whether the request was about a group that the caller does not see.
    is_hidden: Arc<AtomicBool>,
}

impl RequestCaller {
    /// Sets the caller. Calling it again for one request has no effect.
    pub(super) fn set_name(&self, name: &str) {
        let _same = self.name.set(name.to_owned());
    }

    /// Notes that the request was about a group that the caller does not see; the answer is "not
    /// found".
    pub(super) fn note_hidden(&self) {
        self.is_hidden.store(true, Ordering::Relaxed);
    }

    /// The caller of a refusal to be recorded: an identified one, or one with an unknown token.
    /// Wrong paths and requests without a login are not recorded.
    pub(super) fn denied(&self, status: StatusCode, shows_token: bool) -> Option<String> {
        let is_hidden = self.is_hidden.load(Ordering::Relaxed);
        match status {
            StatusCode::FORBIDDEN => self.name.get().cloned(),
            StatusCode::NOT_FOUND if is_hidden => self.name.get().cloned(),
            StatusCode::UNAUTHORIZED if shows_token => Some(UNKNOWN_TOKEN.to_owned()),
            _ => None,
        }
    }
}

/// A refused request.
pub(super) struct DeniedRequest<'a> {
    pub(super) caller: String,
    pub(super) address: String,
    pub(super) method: &'a str,
    /// The route, or the path where there is none.
    pub(super) route: &'a str,
    pub(super) path: &'a str,
    pub(super) status: StatusCode,
}

/// The recently written records.
#[derive(Default)]
pub(super) struct DeniedRequests {
    recent: Mutex<HashMap<(String, String), RecentDenials>>,
}

/// Refusals of one user at one route.
struct RecentDenials {
    since: Millis,
    /// Number of refusals since then without a record of their own.
    unwritten: u64,
}

impl DeniedRequests {
    /// Whether this one is recorded, with the number of similar ones before it that were not.
    fn admit(&self, caller: &str, route: &str, now: Millis) -> Option<u64> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (caller.to_owned(), route.to_owned());
        if let Some(same) = recent.get_mut(&key) {
            if now.since(same.since) < SAME_MS {
                same.unwritten += 1;
                return None;
            }
            same.since = now;
            return Some(std::mem::take(&mut same.unwritten));
        }
        if recent.len() >= MOST {
            recent.retain(|_, denials| now.since(denials.since) < SAME_MS);
        }
        if recent.len() >= MOST {
            return None;
        }
        recent.insert(key, RecentDenials { since: now, unwritten: 0 });
        Some(0)
    }

    /// Records a refusal, unless there were too many.
    pub(super) async fn record(&self, app: &App, denied: DeniedRequest<'_>) -> Result<()> {
        let route = format!("{} {}", denied.method, denied.route);
        let now = app.clock.now();
        let Some(unwritten) = self.admit(&denied.caller, &route, now) else { return Ok(()) };
        let path: String = denied.path.chars().take(PATH_MAX).collect();
        let detail = json!({
            "method": denied.method, "path": path, "status": denied.status.as_u16(), "earlier_refusals_not_recorded": unwritten,
        });
        let by = Operator::new(denied.caller, denied.address);
        let mut tx = app.db.begin().await?;
        record_one(&mut tx, &by, "request denied", detail, now).await?;
        Ok(tx.commit().await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_bounded() {
        let denied = DeniedRequests::default();
        assert_eq!(denied.admit("eve", "POST /x", Millis(0)), Some(0));
        for _ in 0..5 {
            assert_eq!(denied.admit("eve", "POST /x", Millis(1)), None);
        }
        assert_eq!(denied.admit("eve", "POST /x", Millis(SAME_MS)), Some(5));
        let names = (0..1_000).map(|n| format!("user{n}"));
        let written = names.filter(|name| denied.admit(name, "GET /y", Millis(SAME_MS)).is_some());
        assert_eq!(written.count(), MOST - 1);
        assert_eq!(denied.admit("late", "GET /y", Millis(3 * SAME_MS)), Some(0));
    }
}
