//! When owners hear that something is late, or will be: timers of a batch, found when it is read, so that
//! they outlive a process. What was missed meanwhile is told by the next beat.

use crate::domain::batch::{Batch, Snapshot};
use crate::domain::dag::Node;
use crate::domain::eta::{self, Standing};
use crate::domain::history::{Durations, History};
use crate::domain::id::{BatchId, JobCode, QueueId};
use crate::domain::lateness::{
    self, Again, Alarm, Foretold, HELD_AFTER_SEC, is_missed, is_of_an_earlier_run, moments,
};
use crate::domain::notice::Notice;
use crate::domain::notice_late::{self, Job, Of};
use crate::domain::queue::{QueueEntry, QueueStatus};
use crate::domain::time::Millis;
use crate::domain::why::{Load, Opened, Situation, Whose, Why, explain};
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::long_running_alerts::Told;
use crate::engine::dispatch::writes::{Changes, JobNotices};
use crate::store::{self, Tx};
use anyhow::Result;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// How often a forecast is made while nothing ends, and how often at most while much does: it costs time
/// in the order of the batch.
const FORECAST_MS: i64 = 60_000;
const FORECAST_LEAST_MS: i64 = 10_000;

/// The moments of one batch that somebody may have to hear of.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Alarms {
    open: BTreeSet<(Millis, Alarm)>,
    /// Told by this process and committed: rows that are read anew do not bring them back.
    told: HashSet<(Millis, Alarm)>,
    history: Option<Arc<History>>,
    forecast: Option<Foresight>,
}

/// When a batch is due, and what its forecasts said.
#[derive(Clone, Copy, Debug)]
struct Foresight {
    due: Millis,
    next: Millis,
    last: Option<Millis>,
    foretold: Foretold,
}

/// What alarms need beyond the rows of a batch.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Past {
    history: Option<Arc<History>>,
    /// Since when jobs that are held are.
    held: HashMap<QueueId, Millis>,
    /// When jobs were started over.
    again: HashMap<QueueId, Again>,
}

impl Past {
    /// Reads what is needed; `before` are the alarms that memory has already. Most batches need nothing.
    pub(in crate::engine) async fn read(
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
    /// Those of a batch as its rows stand; `before` is what this process had.
    pub(in crate::engine) fn of(
        batch: &Batch,
        snapshot: &Snapshot,
        rows: &[QueueEntry],
        (before, past): (Self, Past),
        now: Millis,
    ) -> Self {
        let is_new = |(at, alarm): &(Millis, Alarm)| {
            !before.told.contains(&(*at, *alarm))
                && is_missed(*alarm, rows)
                && !is_of_an_earlier_run((*at, *alarm), rows, &past.again)
        };
        let moments = moments(snapshot, batch.create_time);
        let due = moments.iter().find(|(_, alarm)| *alarm == Alarm::Batch).map(|(at, _)| *at);
        let after = i64::from(snapshot.group.held_after_sec.unwrap_or(HELD_AFTER_SEC)) * 1_000;
        let held = (0..).map(Node).zip(rows).filter(|(_, row)| row.status == QueueStatus::Held);
        let held = held.map(|(node, row)| {
            let since = past.held.get(&row.queue_id).copied().unwrap_or(now);
            (since.plus(after), Alarm::Release(node))
        });
        let open = moments.iter().copied().chain(held).filter(is_new).collect();
        let fresh = |due| Foresight { due, next: now, last: None, foretold: Foretold::default() };
        let forecast = due.map(|due| match before.forecast {
            Some(known) => Foresight { due, ..known },
            None => fresh(due),
        });
        Self { open, told: before.told, history: past.history, forecast }
    }

    /// The next moment at which there is something to look at.
    pub(in crate::engine) fn next(&self) -> Option<Millis> {
        let alarm = self.open.first().map(|(at, _)| *at);
        let forecast = self.forecast.map(|f| f.next).filter(|next| !self.is_past_due(*next));
        alarm.into_iter().chain(forecast).min()
    }

    /// From the moment on at which the batch is due there is nothing to foretell.
    fn is_past_due(&self, now: Millis) -> bool {
        self.forecast.is_none_or(|f| f.due <= now) || self.history.is_none()
    }

    /// What is known of how long a job took.
    pub(in crate::engine) fn durations(&self, code: &JobCode) -> Option<&Durations> {
        self.history.as_ref()?.get(code)
    }

    /// A try has ended, so the forecast may be another.
    pub(in crate::engine) fn heard_end(&mut self, now: Millis) {
        if let Some(foresight) = &mut self.forecast {
            let soon = foresight.last.map_or(now, |last| last.plus(FORECAST_LEAST_MS).max(now));
            foresight.next = foresight.next.min(soon);
        }
    }

    /// What was told is committed.
    pub(in crate::engine) fn note_told(&mut self, at: Millis, alarm: Alarm) {
        self.told.insert((at, alarm));
    }

    /// The forecast was told, and that is committed.
    pub(in crate::engine) fn note_foretold(&mut self, foretold: Foretold) {
        if let Some(foresight) = &mut self.forecast {
            foresight.foretold = foretold;
        }
    }

    /// Nothing can be late any more, until its rows are read again.
    fn rest(&mut self) {
        self.open.clear();
        self.forecast = None;
    }

    /// Whether a moment has come.
    fn has_come(&self, now: Millis) -> bool {
        self.open.first().is_some_and(|(at, _)| *at <= now)
    }

    /// Whether there is something to look at.
    fn is_due(&self, now: Millis) -> bool {
        self.next().is_some_and(|at| at <= now)
    }

    /// Takes out the moments that have come.
    fn take_due(&mut self, now: Millis) -> Vec<(Millis, Alarm)> {
        let mut found = Vec::new();
        while let Some(first) = self.open.first().copied().filter(|(at, _)| *at <= now) {
            self.open.remove(&first);
            found.push(first);
        }
        found
    }
}

impl Active {
    /// Tells owners of what is late by now, and of what will be.
    fn tell_late(&mut self, load: Option<&Load>, total: u32, changes: &mut Changes, now: Millis) {
        let due = self.alarms.take_due(now);
        if self.is_killing() || self.readiness.is_done() {
            self.alarms.rest();
            return;
        }
        let missed: Vec<_> =
            due.into_iter().filter(|(_, alarm)| is_missed(*alarm, &self.rows)).collect();
        if !missed.is_empty() {
            let whys = load.map_or_else(HashMap::new, |load| self.whys(load, now));
            for (at, alarm) in missed {
                let (row, notices) = self.late_notices(at, alarm, &whys, now);
                changes.told.push(Told::Late(self.batch.batch_id, at, alarm));
                self.push_notices(row, notices, changes);
            }
        }
        self.foretell(total, changes, now);
    }

    fn late_notices(
        &self,
        at: Millis,
        alarm: Alarm,
        whys: &HashMap<JobCode, Why>,
        now: Millis,
    ) -> (Option<QueueId>, Vec<Notice>) {
        let of = self.told_of(now);
        let of_job = |node: Node| {
            let job = Job { def: self.job(node), row: self.row(node) };
            (job, whys.get(&job.def.code), Some(job.row.queue_id))
        };
        match alarm {
            Alarm::Start(node) => {
                let (job, why, row) = of_job(node);
                (row, notice_late::late_start(of, job, at, why))
            }
            Alarm::Finish(node) => {
                let (job, why, row) = of_job(node);
                (row, notice_late::late_finish(of, job, at, why))
            }
            Alarm::Release(node) => {
                let (job, _, row) = of_job(node);
                let after = self.snapshot.group.held_after_sec.unwrap_or(HELD_AFTER_SEC);
                let since = at.plus(-i64::from(after) * 1_000);
                (row, notice_late::held_long(of, job, since))
            }
            Alarm::Batch => {
                let open = self.rows.iter().filter(|row| !row.status.is_final());
                let open: Vec<&str> = open.map(|row| row.job_code.as_str()).collect();
                (None, notice_late::batch_late(of, at, &open))
            }
        }
    }

    /// Looks at the forecast, when it is time, and tells owners when it says that the batch will be late.
    fn foretell(&mut self, total: u32, changes: &mut Changes, now: Millis) {
        let (history, foresight) = (self.alarms.history.clone(), self.alarms.forecast);
        let (Some(history), Some(foresight)) = (history, foresight) else { return };
        if self.alarms.is_past_due(now) {
            self.alarms.forecast = None;
            return;
        }
        if foresight.next > now {
            return;
        }
        let standing: Vec<Standing> = self.rows.iter().map(Standing::from).collect();
        let forecast = eta::forecast(&self.snapshot, &self.dag, &standing, &history, total, now);
        let Some(forecast) = forecast else {
            // None of its jobs has a past, and none will have in this process.
            self.alarms.forecast = None;
            return;
        };
        let due = foresight.due;
        let (is_told, foretold) = foresight.foretold.after(forecast.end.since(due));
        if is_told {
            let notices =
                notice_late::will_be_late(self.told_of(now), due, &forecast, foretold.times);
            changes.told.push(Told::Forecast(self.batch.batch_id, foretold));
            self.push_notices(None, notices, changes);
        }
        // That it was told is known when it is committed.
        let foretold = if is_told { foresight.foretold } else { foretold };
        let next = now.plus(FORECAST_MS);
        self.alarms.forecast = Some(Foresight { next, last: Some(now), foretold, ..foresight });
    }

    fn push_notices(&self, row: Option<QueueId>, notices: Vec<Notice>, changes: &mut Changes) {
        changes.batches.insert(self.batch.batch_id, self.batch.revision);
        if !notices.is_empty() {
            changes.notices.push(JobNotices::plain(self.batch.batch_id, row, notices));
        }
    }

    pub(in crate::engine) fn told_of(&self, now: Millis) -> Of<'_> {
        Of { batch: &self.batch, snapshot: &self.snapshot, now }
    }

    /// Why each job that has not ended has not.
    fn whys(&self, load: &Load, now: Millis) -> HashMap<JobCode, Why> {
        let outside: Vec<_> = self.outside.iter().cloned().collect();
        let values = &self.batch.values;
        let opened = Opened::Ordered(values.batch_no.clone(), values.group.clone());
        let situation = Situation {
            batch: &self.batch,
            snapshot: &self.snapshot,
            dag: &self.dag,
            rows: &self.rows,
            load,
            outside: &outside,
            dispatched: true,
            opened: &opened,
            stopping_since: &|_| None,
        };
        explain(situation, now).into_iter().map(|(code, _, why)| (code, why)).collect()
    }
}

impl QueueDispatcher {
    /// Tells owners of what is late in any batch.
    pub(in crate::engine) fn tell_late(&mut self, changes: &mut Changes, now: Millis) {
        let due = self.active.iter().filter(|(_, active)| active.alarms.is_due(now));
        let due: Vec<BatchId> = due.map(|(id, _)| *id).collect();
        let total = self.fleet.max_parallel;
        for id in due {
            // A forecast needs none.
            let is_missed = self.active.get(&id).is_some_and(|a| a.alarms.has_come(now));
            let load = is_missed.then(|| self.load_as_seen_by(id));
            if let Some(active) = self.active.get_mut(&id) {
                active.tell_late(load.as_ref(), total, changes, now);
            }
        }
    }

    /// What runs in this process, for whoever explains why a job of one batch waits.
    fn load_as_seen_by(&self, id: BatchId) -> Load {
        let (here, others) = self.sites(&[]).into_nodes();
        let deferrals = self.active.get(&id).map(|active| active.ready.deferrals().to_vec());
        let mut load = Load::new(self.fleet.max_parallel, self.ageing_ms)
            .on(here, others)
            .deferring(deferrals.unwrap_or_default());
        for (other, active) in &self.active {
            let whose = if *other == id { Whose::This } else { Whose::Other };
            load.add(&active.batch, &active.snapshot, &active.rows, whose);
        }
        load
    }
}
