//! The serving loop: claims open, unowned batches, dispatches them, and continues until it is
//! stopped. Several processes on one database share the batches.
//!
//! Processes share batches, not jobs: one process settles a job and claims the next in one commit,
//! which needs the whole batch in one memory (docs/adr/0003 and 0008).

mod batch_reports;

pub use batch_reports::{BatchOutcome, Served};

use crate::domain::batch::Batch;
use crate::domain::cluster::lease::share;
use crate::domain::cluster::node_placement::NodeRole;
use crate::domain::id::{BatchId, BatchNo, GroupCode, QueueId};
use crate::domain::time::Millis;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::run_loop::{
    Pause, Rounds, error_label, is_lost, is_revised, will_pass,
};
use crate::engine::dispatch::tell_metrics::NAME;
use crate::engine::observe::metrics::Meter;
use crate::engine::opening::unfinished_opening::UnfinishedOpening;
use crate::store::batch::StillOpening;
use crate::store::claim::{self, ClaimScope};
use crate::store::hint::HintTopic;
use crate::store::{Tx, batch};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// An error that concerns one batch and need not stop the others.
#[derive(Debug, thiserror::Error)]
#[error("go on with the batch (batch_id {})", .0.0)]
pub(super) struct OfBatch(pub(super) BatchId);

/// The state of the serving loop.
pub(super) struct Serving {
    max_parallel: u32,
    /// Claimed batches whose end was not reported yet.
    taken: BTreeMap<BatchId, (BatchNo, GroupCode)>,
    /// Batches whose rows may name this process, while memory does not hold them yet.
    owed: BTreeMap<BatchId, (BatchNo, GroupCode, BatchOutcome)>,
    /// Of those, the ones whose queue rows are written in steps.
    openings: BTreeMap<BatchId, UnfinishedOpening>,
    /// Batches that cannot be continued here, with their bodies here that have not ended.
    outcasts: BTreeMap<BatchId, BTreeSet<QueueId>>,
    /// Until when these batches are excluded from claiming, and how long that was, in milliseconds.
    shunned: HashMap<BatchId, (Millis, i64)>,
    news: Option<mpsc::UnboundedSender<Served>>,
    meter: Arc<Meter>,
}

/// How long a batch that could not be continued is excluded at first, in milliseconds; doubled each
/// time.
const SHUN_MS: i64 = 10_000;
/// The longest exclusion, in milliseconds.
const SHUN_MAX_MS: i64 = 600_000;
/// Number of batches read in one transaction, which locks all of them meanwhile.
const TOGETHER_MOST: usize = 64;
/// Poll interval for open batches while there are some, in milliseconds.
const TAKE_MS: i64 = 1_000;
/// Poll intervals when nothing has happened for a while, in milliseconds; the second where hints of
/// every process are delivered, so that the poll only has to find batches of dead processes.
const TAKE_IDLE_MS: (i64, i64) = (2_000, 5_000);

impl Serving {
    pub(super) fn new(max_parallel: u32, meter: Arc<Meter>) -> Self {
        Self {
            max_parallel,
            taken: BTreeMap::new(),
            owed: BTreeMap::new(),
            openings: BTreeMap::new(),
            outcasts: BTreeMap::new(),
            shunned: HashMap::new(),
            news: None,
            meter,
        }
    }

    /// Notes the end of a body of an excluded batch.
    pub(super) fn note_end(&mut self, row: QueueId) {
        for rows in self.outcasts.values_mut() {
            rows.remove(&row);
        }
    }

    /// Whether bodies of excluded batches still run.
    pub(super) fn is_running(&self) -> bool {
        self.outcasts.values().any(|rows| !rows.is_empty())
    }

    /// Batches that memory does not hold and whose rows may name this process.
    pub(super) fn put_down(&self) -> Vec<BatchId> {
        self.owed.keys().chain(self.outcasts.keys()).copied().collect()
    }

    /// Marks all of them as released.
    pub(super) fn is_put_down(&mut self, at: Millis) {
        (self.owed, self.outcasts) = (BTreeMap::new(), BTreeMap::new());
        self.openings.clear();
        for (no, group) in std::mem::take(&mut self.taken).into_values() {
            self.tell_of(no, group, at, BatchOutcome::GivenBack);
        }
    }

    fn tell_of(&self, batch_no: BatchNo, group: GroupCode, at: Millis, what: BatchOutcome) {
        match &what {
            BatchOutcome::Taken | BatchOutcome::TakenOver => self.meter.batch_taken(what.as_str()),
            BatchOutcome::Ended(status) => self.meter.batch_ended(status.as_str()),
            BatchOutcome::GivenBack | BatchOutcome::Lost | BatchOutcome::CastOut(_) => {
                self.meter.batch_ended(what.as_str());
            }
        }
        if let Some(sender) = &self.news {
            // The receiver may be gone; the rows hold the same facts.
            let _ = sender.send(Served { at, batch_no, group, what });
        }
    }

    fn is_shunned(&self, id: BatchId, now: Millis) -> bool {
        self.shunned.get(&id).is_some_and(|(until, _)| *until > now)
    }

    /// Excludes a batch for a while; until the end of this process when bodies of it ran here:
    /// their rows name this process, which would take a body that it does not run for one that
    /// never started. Another process recognises orphans.
    fn avoid_batch(&mut self, id: BatchId, running: &BTreeSet<QueueId>, now: Millis) {
        if !running.is_empty() {
            self.shunned.insert(id, (Millis(i64::MAX), SHUN_MAX_MS));
            return;
        }
        let pause = self.shunned.get(&id).map_or(SHUN_MS, |(_, last)| last * 2).min(SHUN_MAX_MS);
        self.shunned.insert(id, (now.plus_ms(pause), pause));
    }
}

impl QueueDispatcher {
    /// Claims and dispatches batches until `stop` is cancelled, then shuts down in order
    /// (`shutdown`). No error ends it: an error of one batch ends the work on that batch here, any
    /// other is waited out.
    pub async fn serve(
        &mut self,
        stop: &CancellationToken,
        news: Option<mpsc::UnboundedSender<Served>>,
    ) {
        self.serving.news = news;
        let (beating, keeping) = (self.process.heart.start(), self.admin.start());
        let (mut hints, listening) = (self.process.hints.clone(), self.process.hints.listen());
        let mut work = self.process.hints.clone();
        let (mut rounds, mut looks) =
            (Rounds::new(self.process.clock.now()), PollSchedule::new(self.process.clock.now()));
        loop {
            self.measure();
            self.set_course(stop);
            let turned = self.serve_round(&mut rounds, &mut looks).await;
            self.note_round(&turned);
            self.tell_ends(&mut looks);
            match turned {
                Ok(true) => rounds.pause = Pause::default(),
                Ok(false) if self.course.draining => {
                    let until = rounds.next();
                    self.rest_until(&mut rounds, until, stop).await;
                }
                Ok(false) => {
                    let until = rounds.next().min(looks.at);
                    let told = tokio::select! {
                        () = self.rest_until(&mut rounds, until, stop) => None,
                        () = hints.wait_for_topic(&[HintTopic::Batch]) => Some(HintTopic::Batch),
                        () = work.wait_for_topic(&[HintTopic::Work]) => Some(HintTopic::Work),
                    };
                    let now = self.process.clock.now();
                    if told == Some(HintTopic::Work) {
                        rounds.around_at = now;
                    } else if told.is_some() {
                        rounds.look_at = now;
                        looks.poll_no_later(now);
                    }
                }
                Err(error) => self.wait_after_error(error, &mut rounds.pause).await,
            }
            if self.course.draining && self.is_idle() && self.has_put_all_down() {
                break;
            }
        }
        listening.end_and_wait().await;
        keeping.end_and_wait().await;
        beating.end_and_wait().await;
        self.process.meter.loop_ended(NAME);
    }

    /// One round of `serve`. `false` when there was nothing to do.
    async fn serve_round(&mut self, rounds: &mut Rounds, looks: &mut PollSchedule) -> Result<bool> {
        let mut opens = false;
        if !self.may_part() {
            self.load_owed().await?;
            opens = self.write_opening_steps().await?;
            self.give_outcasts_back().await;
        }
        let turned = self.round(rounds).await?;
        let now = self.process.clock.now();
        looks.follow_clock(now);
        if self.course.draining || now < looks.at || self.course.stale {
            return Ok(turned || opens);
        }
        looks.at = now.plus_ms(looks.pause);
        looks.pause = self.process.hints.poll_interval(TAKE_IDLE_MS.0, TAKE_IDLE_MS.1);
        let took = self.take_batches().await?;
        if took > 0 {
            looks.poll_no_later(now.plus_ms(TAKE_MS));
        }
        Ok(turned || opens || took > 0)
    }

    /// Claims open, unowned batches up to the limit; returns their number. One statement when there
    /// are none.
    pub async fn take_batches(&mut self) -> Result<usize> {
        if !self.course.draining {
            // A batch that was claimed before and could not be read then has no other owner to wait
            // for.
            self.load_owed().await?;
        }
        // A paused batch runs nothing and does not count towards the limit.
        let open = self.batches.active.values().filter(|a| !a.batch.is_paused).count();
        let more = share(open, self.serving.max_parallel);
        let roles = &self.fleet.roles;
        let dispatches = roles.is_empty() || roles.contains(&NodeRole::Scheduler);
        let rests = self.course.draining || self.process.heart.is_resting() || !dispatches;
        if rests || self.process.heart.lease_state().is_fenced || more == 0 {
            return Ok(0);
        }
        let whose = if self.process.heart.may_take_over() {
            ClaimScope::DeadOnesToo
        } else {
            ClaimScope::Nobodys
        };
        let now = self.process.clock.now();
        let shunned = self.serving.shunned.values().filter(|(until, _)| *until > now).count();
        let limit = more + shunned;
        let mut tx = self.process.db.begin_read().await?;
        let found = claim::find_claimable(&mut tx, whose, limit, now).await?;
        drop(tx);
        if found.iter().all(|id| self.serving.is_shunned(*id, now)) {
            return Ok(0);
        }
        let mut tx = self.process.db.begin().await?;
        let mut free = claim::lock_claimable(&mut tx, whose, limit, now).await?;
        free.retain(|b| !self.serving.is_shunned(b.batch_id, now));
        free.truncate(more);
        let ids: Vec<BatchId> = free.iter().map(|batch| batch.batch_id).collect();
        batch::take_all(&mut tx, &ids, self.process.node.id(), now).await?;
        for there in &free {
            self.note_taken(&mut tx, there, now).await?;
        }
        failpoint!("recover.step");
        tx.commit().await.context("take batches")?;
        failpoint!("recover.step");
        self.load_owed().await?;
        Ok(free.len())
    }

    /// Renews an expired deadline of a claimed batch, and notes that the batch must be read.
    async fn note_taken(&mut self, tx: &mut Tx, there: &Batch, now: Millis) -> Result<()> {
        // A snapshot that cannot be read is reported when the batch is loaded.
        if there.deadline.is_some_and(|at| at <= now)
            // Also of a batch that is still being opened: it would be overdue once it is open.
            && let Ok((_, snapshot)) = batch::get_with_snapshot(tx, there.batch_id).await
        {
            let deadline = there.deadline_resumed(snapshot.group.batch_timeout_sec, now);
            batch::set_deadline(tx, there.batch_id, deadline).await?;
        }
        let fate =
            if there.owner.is_some() { BatchOutcome::TakenOver } else { BatchOutcome::Taken };
        let (no, group) = (there.values.batch_no.clone(), there.values.group.clone());
        // Before the commit: if its answer is lost, only the row knows the owner.
        self.serving.owed.insert(there.batch_id, (no, group, fate));
        Ok(())
    }

    /// Reads batches into memory that may belong to this process: small and quiet ones together,
    /// the rest one by one.
    async fn load_owed(&mut self) -> Result<()> {
        let ids: Vec<BatchId> = self.serving.owed.keys().copied().collect();
        for ids in ids.chunks(TOGETHER_MOST).filter(|ids| ids.len() > 1) {
            let loaded = match self.load_together(ids).await {
                Ok(loaded) => loaded,
                Err(error) if will_pass(&error) => return Err(error),
                // The failing batch is found when they are read one by one.
                Err(_) => Vec::new(),
            };
            for id in loaded {
                if let Some((no, group, fate)) = self.serving.owed.remove(&id) {
                    let now = self.process.clock.now();
                    self.serving.tell_of(no.clone(), group.clone(), now, fate);
                    self.serving.taken.insert(id, (no, group));
                }
            }
        }
        let opening: BTreeSet<BatchId> = self.serving.openings.keys().copied().collect();
        for id in self.serving.owed.keys().copied().collect::<Vec<_>>() {
            if !opening.contains(&id) {
                self.load_one_owed(id).await?;
            }
        }
        Ok(())
    }

    async fn load_one_owed(&mut self, id: BatchId) -> Result<()> {
        let loaded = self.load_nobodys(id).await;
        match loaded {
            Err(error) if error.is::<StillOpening>() => {
                tracing::info!("{error:#}");
                self.serving
                    .openings
                    .insert(id, UnfinishedOpening::read_batch(&self.process.db, id).await?);
                return Ok(());
            }
            // The answer may be lost: the batch stays noted.
            Err(error) if will_pass(&error) && !is_lost(&error) => return Err(error),
            loaded => self.note_loaded(id, loaded),
        }
        Ok(())
    }

    /// Handles the result of reading a batch that may belong to this process.
    fn note_loaded(&mut self, id: BatchId, loaded: Result<()>) {
        let Some((no, group, fate)) = self.serving.owed.remove(&id) else { return };
        match loaded {
            Ok(()) => {
                self.serving.tell_of(no.clone(), group.clone(), self.process.clock.now(), fate);
                self.serving.taken.insert(id, (no, group));
            }
            // The commit that was to claim it never happened, or another process has claimed it
            // since.
            Err(error) if is_lost(&error) => {}
            Err(error) => {
                self.serving.taken.insert(id, (no, group));
                self.cast_out(id, &error);
            }
        }
    }

    /// Writes the next queue rows of each batch that is opened in steps; a batch that has all of
    /// them is read next. `true` when there was one: the next step follows after a round of the
    /// other batches.
    async fn write_opening_steps(&mut self) -> Result<bool> {
        let ids: Vec<BatchId> = self.serving.openings.keys().copied().collect();
        for id in &ids {
            let Some(opening) = self.serving.openings.get_mut(id) else { continue };
            match opening
                .write_step(&self.process.db, self.process.node.id(), self.process.clock.now())
                .await
            {
                Ok(false) => {}
                // After an error the state is read from the row again.
                Ok(true) => drop(self.serving.openings.remove(id)),
                Err(error) => {
                    self.serving.openings.remove(id);
                    return Err(error);
                }
            }
        }
        Ok(!ids.is_empty())
    }

    /// Waits as long as an error requires, and releases the batch that it concerns.
    async fn wait_after_error(&mut self, error: anyhow::Error, pause: &mut Pause) {
        if is_lost(&error) {
            tracing::warn!("{error:#}");
        } else if is_revised(&error) {
            // An operator's change came first; the next turn reads the present rows.
            tracing::debug!("{error:#}");
        } else if let (false, Some(OfBatch(id))) = (will_pass(&error), error.downcast_ref()) {
            self.cast_out(*id, &error);
        } else {
            self.process.meter.beat_failed(error_label(&error));
            pause.after(&error).await;
        }
    }

    /// Excludes a batch that cannot be continued: its bodies here are stopped, and it is released
    /// once they have ended. This process does not claim it again for a while.
    fn cast_out(&mut self, id: BatchId, error: &anyhow::Error) {
        let now = self.process.clock.now();
        self.ends.waiters.remove(&id);
        let mut running = BTreeSet::new();
        if let Some(active) = self.batches.active.remove(&id) {
            active.stop_all();
            running.extend(active.in_hand().map(|node| active.row_at(node).queue_id));
            self.keep_bodies(id, &active);
        }
        self.serving.avoid_batch(id, &running, now);
        let has_run = !running.is_empty();
        self.serving.outcasts.insert(id, running);
        let said = format!("{error:#}");
        let again = if has_run {
            "this process does not take it again, because bodies of it ran here: another one does, \
             or this one after a restart"
        } else {
            "it is tried again later"
        };
        tracing::error!(
            batch_id = id.0,
            error = said,
            "this batch cannot be gone on with; it is given back, the others go on; {again}"
        );
        if let Some((no, group)) = self.serving.taken.remove(&id) {
            self.serving.tell_of(no, group, now, BatchOutcome::CastOut(said));
        }
    }

    /// Releases excluded batches of which nothing runs here any more. One that cannot be released
    /// is kept and tried again; the others continue meanwhile.
    async fn give_outcasts_back(&mut self) {
        let outcasts = self.serving.outcasts.iter();
        let gone: Vec<BatchId> =
            outcasts.filter(|(_, rows)| rows.is_empty()).map(|(id, _)| *id).collect();
        for id in gone {
            match self.give_back(id).await {
                Ok(()) => drop(self.serving.outcasts.remove(&id)),
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(batch_id = id.0, error, "a batch is not given back; trying on");
                    return;
                }
            }
        }
    }

    async fn give_back(&self, id: BatchId) -> Result<()> {
        let mut tx = self.process.db.begin().await?;
        claim::give_back(&mut tx, id, self.process.node.id(), self.process.clock.now()).await?;
        tx.commit().await.context("give a batch back")
    }

    /// Reports batches that have ended or have another owner, and forgets them: this process may
    /// run for months. Freed capacity triggers a poll at once.
    fn tell_ends(&mut self, looks: &mut PollSchedule) {
        let now = self.process.clock.now();
        for (id, status) in std::mem::take(&mut self.ends.results) {
            self.serving.shunned.remove(&id);
            if let Some((no, group)) = self.serving.taken.remove(&id) {
                self.serving.tell_of(no, group, now, BatchOutcome::Ended(status));
                looks.poll_no_later(now);
            }
        }
        let here = |id: &BatchId| self.batches.active.contains_key(id);
        let lost: Vec<_> = self.serving.taken.extract_if(.., |id, _| !here(id)).collect();
        for (_, (no, group)) in lost {
            self.serving.tell_of(no, group, now, BatchOutcome::Lost);
        }
    }
}

/// When to poll for batches.
struct PollSchedule {
    at: Millis,
    pause: i64,
}

impl PollSchedule {
    fn new(now: Millis) -> Self {
        Self { at: now, pause: TAKE_MS }
    }

    /// The database's clock may have been set back: no poll is further away than the longest
    /// interval.
    fn follow_clock(&mut self, now: Millis) {
        self.at = self.at.min(now.plus_ms(TAKE_IDLE_MS.1));
    }

    fn poll_no_later(&mut self, at: Millis) {
        (self.at, self.pause) = (at, TAKE_MS);
    }
}
