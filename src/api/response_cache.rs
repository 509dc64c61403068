//! Caches of expensive answers that are requested often. Losing them costs only time.

use crate::api::events::EventHub;
use crate::api::problem::Problem;
use crate::app::App;
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use crate::picture::{ArrowDirection, DagView, PicturePlaces};
use crate::view::batches::{Listed, Prospect};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// How long a forecast of a batch is reused, in milliseconds.
const FRESH_MS: i64 = 15_000;
/// Number of forecasts computed for one request; the other batches have none this time.
const AT_ONCE: usize = 20;
/// Number of cached forecasts.
const PROSPECTS: usize = 500;
/// Number of cached layouts: 1 MB for 2,000 jobs.
const PICTURES: usize = 16;

/// The caches, and the events.
#[derive(Default)]
pub(super) struct Reads {
    prospects: Mutex<HashMap<BatchId, (Millis, i64, Prospect)>>,
    places: Mutex<Vec<(String, ArrowDirection, Arc<PicturePlaces>)>>,
    /// Distributes events to listeners.
    pub(super) events: EventHub,
    /// Cancelled when the listener closes, so that event streams end.
    pub(super) closing: CancellationToken,
}

impl Reads {
    /// The forecasts of the open ones of these batches.
    pub(super) async fn prospects(
        &self,
        app: &App,
        listed: &[Listed],
        now: Millis,
    ) -> Result<HashMap<BatchId, Prospect>, Problem> {
        let mut found = HashMap::new();
        let mut left = AT_ONCE;
        for batch in listed.iter().map(|l| &l.batch).filter(|b| !b.status.is_final()) {
            let id = batch.batch_id;
            if let Some(known) = self.prospect(id, batch.revision, now) {
                found.insert(id, known);
            } else if left > 0 && batch.removing.is_none() && batch.unwritten_jobs == 0 {
                left -= 1;
                let fresh = Prospect::read_prospect(app, id).await?;
                self.remember(id, batch.revision, fresh, now);
                found.insert(id, fresh);
            }
        }
        Ok(found)
    }

    fn prospect(&self, id: BatchId, revision: i64, now: Millis) -> Option<Prospect> {
        let all = self.prospects.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (at, of, known) = all.get(&id)?;
        (*of == revision && now.since(*at) < FRESH_MS).then_some(*known)
    }

    fn remember(&self, id: BatchId, revision: i64, prospect: Prospect, now: Millis) {
        let mut all = self.prospects.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if all.len() >= PROSPECTS {
            all.retain(|_, (at, _, _)| now.since(*at) < FRESH_MS);
        }
        if all.len() < PROSPECTS {
            all.insert(id, (now, revision, prospect));
        }
    }

    /// The node positions of a stable layout of this view.
    pub(super) fn places(&self, view: &DagView, direction: ArrowDirection) -> Arc<PicturePlaces> {
        let outline = view.outline();
        let all = || self.places.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is = |of: &(String, ArrowDirection, Arc<PicturePlaces>)| {
            of.0 == outline && of.1 == direction
        };
        if let Some((_, _, known)) = all().iter().find(|of| is(of)) {
            return known.clone();
        }
        // Without the lock: a large layout must not block others.
        let fresh = Arc::new(PicturePlaces::from_view(view, direction));
        let mut all = all();
        if all.len() >= PICTURES {
            all.remove(0);
        }
        all.push((outline, direction, fresh.clone()));
        fresh
    }
}
