//! The lateness alerts and forecasts of a batch. They are recomputed when the batch is read, so
//! they survive the process.

use crate::domain::batch::history::{Durations, History};
use crate::domain::batch::{Batch, Snapshot};
use crate::domain::dag::Node;
use crate::domain::forecast::lateness::{
    self, Again, Alarm, Foretold, HELD_AFTER_SEC, is_missed, is_of_an_earlier_run, moments,
};
use crate::domain::id::{JobCode, QueueId};
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::time::Millis;
use crate::store::{self, Tx};
use anyhow::Result;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Forecast interval in milliseconds, while nothing ends and at most while much does: a forecast
/// costs time proportional to the size of the batch.
const FORECAST_MS: i64 = 60_000;
const FORECAST_LEAST_MS: i64 = 10_000;

/// When a batch is due, and the results of its forecasts.
#[derive(Clone, Copy, Debug)]
struct Foresight {
    due: Millis,
    next: Millis,
    last: Option<Millis>,
    foretold: Foretold,
}

/// The times of one batch at which an alert may be due.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Alarms {
    open: BTreeSet<(Millis, Alarm)>,
    /// Alerts sent by this process and committed: reading the rows again does not repeat them.
    told: HashSet<(Millis, Alarm)>,
    history: Option<Arc<History>>,
    forecast: Option<Foresight>,
}

/// What alerts need beyond the rows of a batch.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct AlarmHistory {
    history: Option<Arc<History>>,
    /// Since when held jobs are held.
    held: HashMap<QueueId, Millis>,
    /// When jobs were rerun.
    again: HashMap<QueueId, Again>,
}

impl AlarmHistory {
    /// Reads the history for alerts; `before` are the alerts in memory. Most batches need nothing.
    pub(in crate::engine) async fn read_past(
        tx: &mut Tx,
        batch: &Batch,
        snapshot: &Snapshot,
        rows: &[QueueEntry],
        before: &Alarms,
    ) -> Result<Self> {
        let history = match &before.history {
            None if lateness::asks_history(snapshot) => {
                Some(Arc::new(store::history::of_group(tx, &snapshot.group.code).await?))
            }
            known => known.clone(),
        };
        let any = rows.iter().any(|row| row.status == QueueStatus::Held);
        let held = match any {
            true => store::log::held_since(tx, batch.batch_id).await?,
            false => HashMap::new(),
        };
        let any = rows.iter().any(|row| row.run_no > 1 && !row.status.is_final());
        let again = match any {
            true => store::log::started_over(tx, batch.batch_id).await?,
            false => HashMap::new(),
        };
        Ok(Self { history, held, again })
    }
}

impl Alarms {
    /// The alerts of a batch in its present state; `before` is what this process had.
    pub(in crate::engine) fn for_batch(
        batch: &Batch,
        snapshot: &Snapshot,
        rows: &[QueueEntry],
        before: Self,
        past: AlarmHistory,
        now: Millis,
    ) -> Self {
        let is_new = |(at, alarm): &(Millis, Alarm)| {
            !before.told.contains(&(*at, *alarm))
                && is_missed(*alarm, rows)
                && !is_of_an_earlier_run(*at, *alarm, rows, &past.again)
        };
        let moments = moments(snapshot, batch.create_time);
        let due = moments.iter().find(|(_, alarm)| *alarm == Alarm::Batch).map(|(at, _)| *at);
        let after = i64::from(snapshot.group.held_after_sec.unwrap_or(HELD_AFTER_SEC)) * 1_000;
        let held = (0..).map(Node).zip(rows).filter(|(_, row)| row.status == QueueStatus::Held);
        let held = held.map(|(node, row)| {
            let since = past.held.get(&row.queue_id).copied().unwrap_or(now);
            (since.plus_ms(after), Alarm::Release(node))
        });
        let open = moments.iter().copied().chain(held).filter(is_new).collect();
        let fresh = |due| Foresight { due, next: now, last: None, foretold: Foretold::default() };
        let forecast = due.map(|due| match before.forecast {
            Some(known) => Foresight { due, ..known },
            None => fresh(due),
        });
        Self { open, told: before.told, history: past.history, forecast }
    }

    /// The next time at which an alert or forecast is due.
    pub(in crate::engine) fn next(&self) -> Option<Millis> {
        let alarm = self.open.first().map(|(at, _)| *at);
        let forecast = self.forecast.map(|f| f.next).filter(|next| !self.is_past_due(*next));
        alarm.into_iter().chain(forecast).min()
    }

    /// Once the batch is overdue there is nothing to forecast.
    fn is_past_due(&self, now: Millis) -> bool {
        self.forecast.is_none_or(|f| f.due <= now) || self.history.is_none()
    }

    /// The known durations of a job.
    pub(in crate::engine) fn durations(&self, code: &JobCode) -> Option<&Durations> {
        self.history.as_ref()?.get(code)
    }

    /// The durations of the jobs of the group; empty for a batch without forecasts.
    pub(in crate::engine) fn history(&self) -> Arc<History> {
        self.history.clone().unwrap_or_default()
    }

    /// Notes that an attempt has ended, so the forecast may change.
    pub(in crate::engine) fn heard_end(&mut self, now: Millis) {
        if let Some(foresight) = &mut self.forecast {
            let soon = foresight.last.map_or(now, |last| last.plus_ms(FORECAST_LEAST_MS).max(now));
            foresight.next = foresight.next.min(soon);
        }
    }

    /// Notes a sent alert, after the commit.
    pub(in crate::engine) fn note_told(&mut self, at: Millis, alarm: Alarm) {
        self.told.insert((at, alarm));
    }

    /// Notes a sent forecast, after the commit.
    pub(in crate::engine) fn note_foretold(&mut self, foretold: Foretold) {
        if let Some(foresight) = &mut self.forecast {
            foresight.foretold = foretold;
        }
    }

    /// Ends all alerts, until the rows are read again.
    pub(in crate::engine) fn silence(&mut self) {
        self.open.clear();
        self.forecast = None;
    }

    /// The inputs of the forecast that is due now: the history, when the batch is due, and the
    /// previous forecast.
    pub(in crate::engine) fn forecast_due(
        &mut self,
        now: Millis,
    ) -> Option<(Arc<History>, Millis, Foretold)> {
        let (history, foresight) = (self.history.clone()?, self.forecast?);
        if self.is_past_due(now) {
            self.forecast = None;
            return None;
        }
        (foresight.next <= now).then_some((history, foresight.due, foresight.foretold))
    }

    /// Stores a forecast; the next one is due some time later.
    pub(in crate::engine) fn note_forecast(&mut self, foretold: Foretold, now: Millis) {
        if let Some(foresight) = &mut self.forecast {
            let next = now.plus_ms(FORECAST_MS);
            *foresight = Foresight { next, last: Some(now), foretold, ..*foresight };
        }
    }

    /// Makes no more forecasts: no job of the batch has a history.
    pub(in crate::engine) fn end_forecasts(&mut self) {
        self.forecast = None;
    }

    /// Whether an alert is due.
    pub(in crate::engine) fn has_come(&self, now: Millis) -> bool {
        self.open.first().is_some_and(|(at, _)| *at <= now)
    }

    /// Whether an alert or forecast is due.
    pub(in crate::engine) fn is_due(&self, now: Millis) -> bool {
        self.next().is_some_and(|at| at <= now)
    }

    /// Takes out the alerts that are due.
    pub(in crate::engine) fn take_due(&mut self, now: Millis) -> Vec<(Millis, Alarm)> {
        let mut found = Vec::new();
        while let Some(first) = self.open.first().copied().filter(|(at, _)| *at <= now) {
            self.open.remove(&first);
            found.push(first);
        }
        found
    }
}
