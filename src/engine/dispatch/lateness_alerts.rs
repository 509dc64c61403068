//! Lateness alerts: notifies owners when something is late or will be. The timers are recomputed
//! when a batch is read, so they survive the process; an alert that was missed meanwhile is sent by
//! the next tick.

use crate::domain::batch::history::History;
use crate::domain::dag::Node;
use crate::domain::dispatch::why::{
    BatchRelation, ProcessLoad, ResumePath, Situation, WaitReason, explain,
};
use crate::domain::forecast::delay::{DelayInput, DelayReport, JobTimes};
use crate::domain::forecast::eta::{self, Forecast, JobProgress};
use crate::domain::forecast::lateness::{Alarm, HELD_AFTER_SEC, is_missed};
use crate::domain::id::{BatchId, JobCode, QueueId};
use crate::domain::notice::Notice;
use crate::domain::notice::notice_late::{self, LateJob, Of};
use crate::domain::time::Millis;
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::long_running_alerts::LongRunningAlert;
use crate::engine::dispatch::writes::{Changes, JobNotices};
use std::collections::HashMap;

impl Active {
    /// Notifies owners of what is late now, and of what will be.
    fn tell_late(
        &mut self,
        load: Option<&ProcessLoad>,
        total: u32,
        changes: &mut Changes,
        now: Millis,
    ) {
        let due = self.alarms.take_due(now);
        if self.is_killing() || self.readiness.is_done() {
            self.alarms.silence();
            return;
        }
        let missed: Vec<_> =
            due.into_iter().filter(|(_, alarm)| is_missed(*alarm, &self.rows)).collect();
        if !missed.is_empty() {
            let whys = load.map_or_else(HashMap::new, |load| self.waiting_reasons(load, now));
            for (at, alarm) in missed {
                let (row, notices) = self.late_notices(at, alarm, &whys, total, now);
                changes.told.push(LongRunningAlert::Late(self.batch.batch_id, at, alarm));
                self.push_notices(row, notices, changes);
            }
        }
        self.foretell(total, changes, now);
    }

    fn late_notices(
        &self,
        at: Millis,
        alarm: Alarm,
        whys: &HashMap<JobCode, WaitReason>,
        total: u32,
        now: Millis,
    ) -> (Option<QueueId>, Vec<Notice>) {
        let of = self.told_of(now);
        let of_job = |node: Node| {
            let job = LateJob { def: self.job_at(node), row: self.row_at(node) };
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
                let since = at.plus_ms(-i64::from(after) * 1_000);
                (row, notice_late::held_long(of, job, since))
            }
            Alarm::Batch => {
                let open = self.rows.iter().filter(|row| !row.status.is_final());
                let open: Vec<&str> = open.map(|row| row.job_code.as_str()).collect();
                let history = self.alarms.history();
                let why = self.delays(&history, None, total, now);
                (None, notice_late::batch_late(of, at, &open, &why))
            }
        }
    }

    /// Evaluates the forecast when it is due, and notifies owners when the batch will be late.
    fn foretell(&mut self, total: u32, changes: &mut Changes, now: Millis) {
        let Some((history, due, before)) = self.alarms.forecast_due(now) else { return };
        let standing: Vec<JobProgress> = self.rows.iter().map(JobProgress::from).collect();
        let forecast = eta::forecast(&self.snapshot, &self.dag, &standing, &history, total, now);
        let Some(forecast) = forecast else {
            // None of its jobs has a history, and none will get one in this process.
            self.alarms.end_forecasts();
            return;
        };
        let (is_told, foretold) = before.after(forecast.end.since(due));
        if is_told {
            let why = self.delays(&history, Some(&forecast), total, now);
            let (of, times) = (self.told_of(now), foretold.times);
            let notices = notice_late::will_be_late(of, due, &forecast, &why, times);
            changes.told.push(LongRunningAlert::Forecast(self.batch.batch_id, foretold));
            self.push_notices(None, notices, changes);
        }
        // The forecast counts as sent once it is committed.
        self.alarms.note_forecast(if is_told { before } else { foretold }, now);
    }

    /// The causes of the delay, as far as the rows show them.
    fn delays(
        &self,
        history: &History,
        forecast: Option<&Forecast>,
        total: u32,
        now: Millis,
    ) -> DelayReport {
        let times: Vec<JobTimes> = self.rows.iter().map(JobTimes::from).collect();
        let (snapshot, dag, opened) = (&self.snapshot, &self.dag, self.batch.create_time);
        let input = DelayInput { snapshot, dag, times: &times, history, total, opened, now };
        input.explain(&input.decisive_chain(forecast))
    }

    fn push_notices(&self, row: Option<QueueId>, notices: Vec<Notice>, changes: &mut Changes) {
        changes.batches.insert(self.batch.batch_id, self.batch.revision);
        if !notices.is_empty() {
            changes.notices.push(JobNotices::plain(self.batch.batch_id, row, notices));
        }
    }

    pub(super) fn told_of(&self, now: Millis) -> Of<'_> {
        Of { batch: &self.batch, snapshot: &self.snapshot, now }
    }

    /// Why each unfinished job is unfinished.
    fn waiting_reasons(&self, load: &ProcessLoad, now: Millis) -> HashMap<JobCode, WaitReason> {
        let outside: Vec<_> = self.outside.iter().cloned().collect();
        let values = &self.batch.values;
        let opened = ResumePath::Ordered(values.batch_no.clone(), values.group.clone());
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
    /// Notifies owners of lateness in any batch.
    pub(super) fn tell_late(&mut self, changes: &mut Changes, now: Millis) {
        let due = self.batches.active.iter().filter(|(_, active)| active.alarms.is_due(now));
        let due: Vec<BatchId> = due.map(|(id, _)| *id).collect();
        let total = self.fleet.max_parallel;
        for id in due {
            // A forecast needs no load.
            let is_missed = self.batches.active.get(&id).is_some_and(|a| a.alarms.has_come(now));
            let load = is_missed.then(|| self.load_as_seen_by(id));
            if let Some(active) = self.batches.active.get_mut(&id) {
                active.tell_late(load.as_ref(), total, changes, now);
            }
        }
    }

    /// The load of this process, used to explain why a job of one batch waits.
    fn load_as_seen_by(&self, id: BatchId) -> ProcessLoad {
        let (here, others) = self.sites(&[]).into_nodes();
        let deferrals =
            self.batches.active.get(&id).map(|active| active.ready.deferrals().to_vec());
        let mut load = ProcessLoad::new(self.fleet.max_parallel, self.batches.ageing_ms)
            .with_sites(here, others)
            .deferring(deferrals.unwrap_or_default());
        for (other, active) in &self.batches.active {
            let whose = if *other == id { BatchRelation::This } else { BatchRelation::Other };
            load.count_running(&active.batch, &active.snapshot, &active.rows, whose);
        }
        load
    }
}
