//! Runs attempts for batches that other nodes dispatch, and continues those whose batch was lost.

use crate::domain::cluster::lease::{BodyProgress, may_be_handed_back};
use crate::domain::id::{BatchId, JobCode, QueueId};
use crate::domain::job::Takes;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs};
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::params;
use crate::engine::attempt::run::{
    AttemptReport, UpstreamOutputs as Outs, What, request_stop, run_task,
};
use crate::engine::cluster::late_results::Late;
use crate::engine::cluster::remote_attempts::{HostedAttempt, takes_work};
use crate::engine::dispatch::batch::Active;
use crate::engine::dispatch::claim::parents_of;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::launch::{LaunchContext, LaunchParts};
use crate::handler::{self, StopReason};
use crate::store::hosted::{self, HostedRow};
use crate::store::queue::RowHolder;
use crate::store::{Tx, queue};
use anyhow::{Context as _, Result};
use std::collections::{HashMap, HashSet};
use tokio::sync::watch;

impl QueueDispatcher {
    /// Handles a report of a body of this process: settled for a batch that is dispatched here,
    /// else written for the owner of the batch.
    pub(super) fn take_report(&mut self, report: AttemptReport) {
        let AttemptReport { queue_id, attempt, .. } = report;
        let is_hosted = self.running.hosted.runs_here(queue_id, attempt);
        match (is_hosted, report.what) {
            (true, What::Ended(outcome, lines)) => {
                self.serving.note_end(queue_id);
                self.fleet.poll_sooner(self.process.clock.uptime());
                self.running.hosted.end_attempt(queue_id);
                self.running.bodies.remove(&queue_id);
                self.reports.late.push(Late::of_ours(queue_id, attempt, *outcome, lines));
            }
            // The row is not this node's to write; the outcome will show that the time limit
            // passed.
            (true, What::Stopping) => {}
            (_, what) => self.reports.waiting.push(AttemptReport { what, ..report }),
        }
    }

    /// Runs what other nodes have given to this one, and stops what they request. `true` when there
    /// was anything. One statement when there is nothing.
    pub(super) async fn run_remote_attempts(&mut self) -> Result<bool> {
        if self.fleet.roles.is_empty() && !self.running.hosted.is_owing() {
            return Ok(false);
        }
        let mut tx = self.process.db.begin_read().await?;
        let given = hosted::given(&mut tx, self.process.node.id()).await?;
        drop(tx);
        self.stop_unwanted(&given).await?;
        let new: Vec<HostedRow> = given.into_iter().filter(|g| self.is_new(g)).collect();
        let queued = self.running.hosted.take_queued();
        if self.process.heart.lease_state().is_fenced || new.is_empty() {
            self.say_load();
            return Ok(false);
        }
        let mut any = false;
        let mut room = self.free_slots();
        for given in new {
            any |= self.host_one(given, &mut room, &queued).await?;
        }
        self.say_load();
        Ok(any)
    }

    /// Whether an attempt is unknown here: it neither runs nor has ended.
    fn is_new(&self, given: &HostedRow) -> bool {
        let row = given.queue_id;
        // An earlier start that still ends here is waited for.
        let runs = self.running.hosted.runs_any(row) || self.batches.places.contains_key(&row);
        let is_it = |r: &AttemptReport| r.queue_id == row && r.attempt == given.attempt;
        let ended =
            self.reports.late.iter().any(|l| l.queue_id == row && l.attempt == given.attempt);
        !runs && !ended && !given.is_reported && !self.reports.waiting.iter().any(is_it)
    }

    /// Stops bodies whose rows request it, and those whose rows no longer belong to this node.
    async fn stop_unwanted(&mut self, given: &[HostedRow]) -> Result<()> {
        let there: HashMap<(QueueId, u32), QueueStatus> =
            given.iter().map(|g| ((g.queue_id, g.attempt), g.status)).collect();
        let mut missing = Vec::new();
        for (row, this) in self.running.hosted.iter() {
            match there.get(&(row, this.attempt)) {
                Some(QueueStatus::Killing) => request_stop(&this.stop, StopReason::Killed),
                Some(_) => {}
                None => missing.push((row, this.attempt)),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let mut tx = self.process.db.begin_read().await?;
        for (row, attempt) in missing {
            let whose = queue::whose(&mut tx, row).await?;
            let is_ours = whose.is_some_and(|RowHolder { attempt: try_no, owner, status }| {
                // A body of class `same` ends its row itself, and is about to say so.
                let may_be_ended = matches!(status, QueueStatus::Success | QueueStatus::Warning);
                let runs = matches!(status, QueueStatus::Running | QueueStatus::Killing);
                let by_us = owner.as_ref() == Some(self.process.node.id());
                try_no == attempt && by_us && (runs || may_be_ended)
            });
            if let Some(this) = self.running.hosted.get(row).filter(|_| !is_ours) {
                request_stop(&this.stop, StopReason::Disowned);
            }
        }
        Ok(())
    }

    /// How many more jobs this node can run.
    fn free_slots(&self) -> usize {
        let most = usize::try_from(self.fleet.max_parallel).unwrap_or(usize::MAX);
        most.saturating_sub(self.working())
    }

    /// Starts one job that was given to this node; hands it back when it must not run, or leaves it
    /// for later when no slot is free. Jobs in `queued` are not queried again. `true` when
    /// something was done.
    async fn host_one(
        &mut self,
        given: HostedRow,
        room: &mut usize,
        queued: &HashSet<(QueueId, u32)>,
    ) -> Result<bool> {
        let back = |end, why: &str| {
            let outcome = AttemptOutcome::ended(end, why).before_it_began();
            Late::of_ours(given.queue_id, given.attempt, outcome, Vec::new())
        };
        if given.status == QueueStatus::Killing {
            self.reports.late.push(back(AttemptEnd::Killed, "stopped before it began"));
            return Ok(true);
        }
        if !takes_work(&self.fleet.roles) || self.course.draining || self.process.heart.is_resting()
        {
            self.reports
                .late
                .push(back(AttemptEnd::Returned, "handed back: its node takes no new work"));
            return Ok(true);
        }
        if *room == 0 && queued.contains(&(given.queue_id, given.attempt)) {
            self.running.hosted.wait_for_room(given.queue_id, given.attempt);
            return Ok(false);
        }
        let now = self.process.clock.now();
        let mut tx = self.process.db.begin().await?;
        let Some(row) = hosted::take_given(&mut tx, &given, self.process.node.id(), now).await?
        else {
            tx.rollback().await?;
            return Ok(false);
        };
        let parts = match self.parts_of(&mut tx, &given, row).await {
            Ok(parts) => parts,
            Err(error) if crate::store::is_transient(&error) => return Err(error),
            Err(error) => {
                tx.rollback().await?;
                return Ok(self.refuse(&error, back));
            }
        };
        let works = handler::kind_of(&parts.def).takes == Takes::Slots;
        if works && *room == 0 {
            // Not taken: the owner may give it to another node.
            tx.rollback().await?;
            self.running.hosted.wait_for_room(given.queue_id, given.attempt);
            return Ok(false);
        }
        failpoint!("host.before_take");
        tx.commit().await.context("take a job that another node gave this one")?;
        failpoint!("host.after_take");
        *room -= usize::from(works);
        Ok(self.start_hosted(&given, parts))
    }

    /// Starts what this node has taken; `false` when its batch is not in memory.
    fn start_hosted(&mut self, given: &HostedRow, parts: LaunchParts) -> bool {
        let snapshot = self.running.hosted.snapshot_of(given.batch_id);
        let Some(snapshot) = snapshot else { return false };
        let (stopper, stop) = watch::channel(None);
        let this = HostedAttempt {
            batch_id: given.batch_id,
            attempt: given.attempt,
            def: parts.def.clone(),
            stop: stopper.clone(),
        };
        self.running.hosted.keep_attempt(given.queue_id, this);
        let job = self.job_of(parts, (stopper, stop));
        let body = self.body_of(LaunchContext::from_job(&job));
        self.running.bodies.insert(given.queue_id, body);
        tokio::spawn(run_task(job, snapshot, self.running.around.clone()));
        self.fleet.poll_sooner(self.process.clock.uptime());
        true
    }

    /// Fails a job that cannot be read here before its body begins, so that the failure is
    /// reported. After a database error the job is left and tried again.
    fn refuse(&mut self, error: &anyhow::Error, back: impl Fn(AttemptEnd, &str) -> Late) -> bool {
        let name = self.process.node.name();
        let why = format!(
            "node {name} cannot read the job that it was given, and nothing of it began: {error:#}. If \
             that node has another version of Procession, give it the same"
        );
        let late = back(AttemptEnd::Failed, &why);
        let is_final = hosted::is_unreadable(error);
        tracing::error!(queue_id = late.queue_id.0, is_final, "{why}");
        self.reports.late.extend(is_final.then_some(late));
        is_final
    }

    /// Reads what an attempt needs from the rows of its batch.
    async fn parts_of(
        &mut self,
        tx: &mut Tx,
        given: &HostedRow,
        row: QueueEntry,
    ) -> Result<LaunchParts> {
        let id = given.batch_id;
        let known = self.running.hosted.batch_of(tx, given, &row.job_code).await?;
        let place = known.places.get(&row.job_code);
        let place = place.with_context(|| format!("the snapshot has no job {}", row.job_code))?;
        let place = crate::domain::dag::Node(*place);
        let def = known.snapshot.jobs[place.index()].clone();
        let parents = parents_of(&known.dag, place);
        let mut outputs = Outs::new();
        let mut read: HashMap<JobCode, Option<JobOutputs>> = HashMap::new();
        for (code, name) in params::outputs_asked(&def, &parents) {
            if !read.contains_key(&code) {
                let found = hosted::outputs_of(tx, id, &code).await?;
                read.insert(code.clone(), found);
            }
            let found = read.get(&code).and_then(Option::as_ref);
            if let Some(value) = found.and_then(|outputs| outputs.output(&name)) {
                outputs.insert((code, name), value);
            }
        }
        Ok(LaunchParts { batch: known.batch.clone(), row, def, parents, outputs, fixed: None })
    }

    /// Stops hosted bodies that may start again elsewhere, because this process shuts down.
    pub(super) fn hand_back_hosted(&self) {
        for (row, this) in self.running.hosted.iter() {
            let after_crash = handler::kind_of(&this.def).after_crash;
            let shut = || {
                self.running.bodies.get(&row).map_or(BodyProgress::Begun, |b| b.gate.close_gate())
            };
            if may_be_handed_back(&this.def, after_crash, BodyProgress::Begun)
                || may_be_handed_back(&this.def, after_crash, shut())
            {
                request_stop(&this.stop, StopReason::HandedBack);
            }
        }
    }

    /// Sets the load that the next heartbeat reports.
    pub(super) fn say_load(&self) {
        let load = self.working() + self.running.hosted.queued();
        self.process.heart.set_running(u32::try_from(load).unwrap_or(u32::MAX));
    }
}

impl QueueDispatcher {
    /// Keeps the bodies of a batch that is no longer dispatched here as remote attempts: the owner
    /// of the batch gets their results.
    pub(super) fn keep_bodies(&mut self, id: BatchId, active: &Active) {
        for (node, stop) in &active.stops {
            let row = active.row_at(*node);
            // It has ended and only its report is not settled; it would never end again, and would
            // occupy a slot as long as this process runs.
            let has_ended = |r: &AttemptReport| {
                let is_it = r.queue_id == row.queue_id && r.attempt == row.attempt;
                is_it && r.by.is_none() && matches!(r.what, What::Ended(..))
            };
            if self.reports.waiting.iter().any(has_ended) {
                self.running.bodies.remove(&row.queue_id);
                continue;
            }
            let def = active.job_at(*node).clone();
            let this =
                HostedAttempt { batch_id: id, attempt: row.attempt, def, stop: stop.clone() };
            self.running.hosted.keep_attempt(row.queue_id, this);
        }
        self.batches.places.retain(|_, (batch, _)| *batch != id);
        self.running.hosted.note_owing();
    }

    /// Takes over attempts that ran here for another node, because their batch is dispatched here
    /// now; ends that were not reported yet are settled.
    pub(super) fn come_home(&mut self, id: BatchId) {
        let (active, places) = (self.batches.active.get(&id), &self.batches.places);
        self.running.hosted.come_home(id, |row| {
            let place = places.get(&row).map(|(_, place)| *place);
            place.zip(active).is_some_and(|(place, active)| active.stops.contains_key(&place))
        });
        let is_home = |late: &mut Late| {
            late.by.is_none() && places.get(&late.queue_id).is_some_and(|(batch, _)| *batch == id)
        };
        let home: Vec<Late> = self.reports.late.extract_if(.., is_home).collect();
        self.reports.waiting.extend(home.into_iter().map(|late| AttemptReport {
            queue_id: late.queue_id,
            attempt: late.attempt,
            by: None,
            what: What::Ended(Box::new(late.outcome), late.lines),
        }));
    }
}
