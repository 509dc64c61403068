//! One step of a backfill: notes which batches have ended and opens the next ones, in one
//! transaction.

use super::{ActiveBackfill, BackfillCourse, BackfillTaken, BatchNews, found, order};
use crate::domain::action::rerun::UnknownJobs;
use crate::domain::backfill::{
    BackfillAction, BackfillStatus, BatchHolder, EntryStatus, ExistingBatchState, decide, hopeless,
    next, result,
};
use crate::domain::batch::open_check::plan_opening;
use crate::domain::batch::{Batch, BatchError, BatchStatus};
use crate::domain::id::{BatchId, BatchNo};
use crate::domain::job::external::ExternalWait;
use crate::domain::time::Millis;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::opening::create_batch::PackedPlan;
use crate::engine::opening::refused::OpeningRefusal;
use crate::store::backfill::BackfillBatchState;
use crate::store::{Tx, backfill, batch, node};
use anyhow::{Context as _, Result, ensure};
use std::collections::{BTreeMap, HashMap};

/// The effects of a step, published once it is committed.
#[derive(Default)]
struct AdvanceStep {
    load: Vec<BatchId>,
    news: Vec<BatchNews>,
}

/// What became of a batch that was to be opened.
enum EntryOpenResult {
    Open(BatchId),
    Not(EntryStatus, Option<String>),
}

impl QueueDispatcher {
    /// Whether a backfill here is stopping, so that nothing new is started.
    pub(in crate::engine::dispatch) fn backfill_ends(&self) -> bool {
        self.backfill.as_ref().is_some_and(|b| b.course != BackfillCourse::On)
    }

    /// Checks whether an operator has requested a stop of the backfill.
    pub async fn look_for_stop(&mut self) -> Result<()> {
        let Some(id) = self.backfill.as_ref().map(|b| b.id) else { return Ok(()) };
        let mut tx = self.process.db.begin_read().await?;
        let row = backfill::find_backfill(&mut tx, id).await?;
        drop(tx);
        let wanted = row.is_some_and(|row| row.status == BackfillStatus::Stopping);
        if let Some(backfill) = self.backfill.as_mut().filter(|_| wanted) {
            backfill.course = BackfillCourse::Stopping;
        }
        Ok(())
    }

    /// Notes which batches of the backfill have ended and opens the next ones. Costs nothing while
    /// none has ended.
    pub(in crate::engine::dispatch) async fn advance(&mut self) -> Result<()> {
        let Some(mut backfill) = self.backfill.take() else { return Ok(()) };
        match self.advance_backfill(&mut backfill).await {
            Ok(None) => self.backfill = Some(backfill),
            Ok(Some(_)) => {}
            Err(error) if error.is::<BackfillTaken>() => return Err(error),
            Err(error) => {
                backfill.stale = true;
                self.backfill = Some(backfill);
                return Err(error.context("go on with the backfill"));
            }
        }
        Ok(())
    }

    /// Stores a backfill that has not ended as STOPPED, or as FAILED if it could not have
    /// continued.
    pub(in crate::engine::dispatch) async fn put_backfill_down(&mut self) -> Result<()> {
        if self.backfill.is_none() {
            return Ok(());
        }
        self.course.draining = true;
        self.advance().await?;
        let Some(backfill) = self.backfill.take() else { return Ok(()) };
        let status = match backfill.course {
            BackfillCourse::Hopeless => BackfillStatus::Failed,
            BackfillCourse::On | BackfillCourse::Stopping => BackfillStatus::Stopped,
        };
        let mut tx = self.process.db.begin().await?;
        let now = self.process.clock.now();
        backfill::finish(&mut tx, backfill.id, self.process.node.id(), status, now).await?;
        tx.commit().await.context("put the backfill down")
    }

    async fn advance_backfill(
        &mut self,
        backfill: &mut ActiveBackfill,
    ) -> Result<Option<BackfillStatus>> {
        let gone = |open: &BTreeMap<usize, BatchId>, this: &Self| -> Vec<(usize, BatchId)> {
            let gone = open.iter().filter(|(_, id)| !this.batches.active.contains_key(id));
            gone.map(|(place, id)| (*place, *id)).collect()
        };
        if !backfill.stale && !backfill.fresh && gone(&backfill.open, self).is_empty() {
            self.give_up_hope(backfill);
            return Ok(None);
        }
        let now = self.process.clock.now();
        let mut tx = self.process.db.begin().await?;
        if !backfill::lock_owned(&mut tx, backfill.id, self.process.node.id()).await? {
            tx.rollback().await?;
            return Err(BackfillTaken(backfill.id).into());
        }
        if backfill.stale {
            backfill.read_rows(&mut tx).await?;
        }
        let mut step = AdvanceStep::default();
        for (place, id) in gone(&backfill.open, self) {
            self.note_end(&mut tx, backfill, place, id, &mut step, now).await?;
        }
        if !self.course.draining && backfill.course == BackfillCourse::On {
            self.open_next(&mut tx, backfill, &mut step, now).await?;
        }
        let ended = result(&backfill.entries, &backfill.needs, &backfill.options);
        if let Some(status) = ended {
            let ours =
                backfill::finish(&mut tx, backfill.id, self.process.node.id(), status, now).await?;
            ensure!(ours, BackfillTaken(backfill.id));
        }
        tx.commit().await?;
        backfill.stale = true;
        for id in step.load {
            self.load_batch(id).await?;
        }
        (backfill.stale, backfill.fresh) = (false, false);
        if let Some(sender) = &backfill.news {
            // The receiver may be gone; the rows hold the same facts.
            step.news.into_iter().for_each(|item| drop(sender.send(item)));
        }
        Ok(ended)
    }

    /// Handles a batch that was open and is no longer in memory: it has ended, another process owns
    /// it, or reading it failed and must be repeated.
    async fn note_end(
        &self,
        tx: &mut Tx,
        backfill: &mut ActiveBackfill,
        place: usize,
        id: BatchId,
        step: &mut AdvanceStep,
        now: Millis,
    ) -> Result<()> {
        let batch = batch::get(tx, id).await?;
        if !batch.status.is_final() && batch.owner.as_ref() == Some(self.process.node.id()) {
            step.load.push(id);
            return Ok(());
        }
        let message = "taken over by another process".to_owned();
        let (to, message) = match batch.status.is_final() {
            true => (EntryStatus::from_batch_status(batch.status), None),
            false => (EntryStatus::Refused, Some(message)),
        };
        backfill.open.remove(&place);
        backfill.set_entry(tx, place, to, message, now).await?;
        let took = batch.end_time.map(|end| end.since(batch.create_time));
        step.news.push(BatchNews { took_ms: took, ..backfill.news_of(place, now) });
        Ok(())
    }

    async fn open_next(
        &self,
        tx: &mut Tx,
        backfill: &mut ActiveBackfill,
        step: &mut AdvanceStep,
        now: Millis,
    ) -> Result<()> {
        loop {
            let next = next(&backfill.entries, &backfill.needs, &backfill.options);
            if next.is_empty() {
                return Ok(());
            }
            for (place, on) in next.blocked {
                let on = &backfill.entries[on].batch_no;
                let message = format!("waits for batch {on}, which did not end well");
                backfill
                    .set_entry(tx, place, EntryStatus::UpstreamFailed, Some(message), now)
                    .await?;
                step.news.push(backfill.news_of(place, now));
            }
            for place in next.open {
                let no = backfill.entries[place].batch_no.clone();
                match self.take_entry_turn(tx, backfill, &no, now).await? {
                    EntryOpenResult::Open(id) => {
                        backfill.set_entry(tx, place, EntryStatus::Open, None, now).await?;
                        backfill.open.insert(place, id);
                        step.load.push(id);
                        let counts = batch::counts(tx, id).await?;
                        let jobs = counts.iter().filter(|(s, _)| !s.is_final()).map(|(_, n)| n);
                        let jobs = jobs.sum();
                        step.news.push(BatchNews { jobs, ..backfill.news_of(place, now) });
                    }
                    EntryOpenResult::Not(status, message) => {
                        backfill.set_entry(tx, place, status, message, now).await?;
                        step.news.push(backfill.news_of(place, now));
                        // After a failure the rest of `next` may have to wait.
                        break;
                    }
                }
            }
        }
    }

    /// Opens or resumes a batch, depending on its present state.
    async fn take_entry_turn(
        &self,
        tx: &mut Tx,
        backfill: &ActiveBackfill,
        no: &BatchNo,
        now: Millis,
    ) -> Result<EntryOpenResult> {
        let there = batch::find_batch(tx, no, &backfill.group).await?;
        let found = self.found_now(tx, there.as_ref(), now).await?;
        let mut action = decide(&found, backfill.options.only);
        if let (Some(batch), ExistingBatchState::Interrupted(BatchStatus::Running)) =
            (&there, &found)
            && backfill::opened_by(tx, batch.batch_id).await? == Some(backfill.id)
        {
            // The backfill's own batch that was left open, not one that `--only missing` skips.
            action = BackfillAction::GoOn;
        }
        match (action, there) {
            (BackfillAction::Open, None) => self.open_one(tx, backfill, no, now).await,
            (BackfillAction::Leave, _) => Ok(EntryOpenResult::Not(EntryStatus::Left, None)),
            (_, Some(there)) => {
                match self.take_in(tx, &there, UnknownJobs::Leave, None, None, now).await {
                    Ok(_) => Ok(EntryOpenResult::Open(there.batch_id)),
                    Err(error) => refused(error),
                }
            }
            (_, None) => Ok(EntryOpenResult::Not(EntryStatus::Left, None)),
        }
    }

    async fn found_now(
        &self,
        tx: &mut Tx,
        there: Option<&Batch>,
        now: Millis,
    ) -> Result<ExistingBatchState> {
        let Some(batch) = there else { return Ok(ExistingBatchState::Missing) };
        let node = match &batch.owner {
            Some(owner) => node::find_node(tx, owner).await?,
            None => None,
        };
        let holder = node.map(|n| BatchHolder { host: n.host, pid: n.pid, until: n.lease_until });
        Ok(found(Some(&BackfillBatchState { status: batch.status, holder }), now))
    }

    async fn open_one(
        &self,
        tx: &mut Tx,
        backfill: &ActiveBackfill,
        no: &BatchNo,
        now: Millis,
    ) -> Result<EntryOpenResult> {
        let (group, options) = (&backfill.group, &backfill.options);
        let plan = match plan_opening(&backfill.defs, &order(group, no, options), now) {
            Ok(mut one) => one.pop().context("one group gives one batch")?,
            Err(error) => return refused(error.into()),
        };
        let id = self.write_plan(tx, &PackedPlan::new(plan)?, &backfill.by, now).await?;
        backfill::adopt(tx, id, backfill.id).await?;
        Ok(EntryOpenResult::Open(id))
    }

    /// Ends the backfill when nothing runs and every open batch waits for one that did not succeed:
    /// its batches stay open for a resume after the cause is fixed.
    fn give_up_hope(&self, backfill: &mut ActiveBackfill) {
        // A batch that has just ended may be awaited, and a timer may allow progress.
        let may_move = self.running() > 0 || self.course.look_soon || self.next_wake().is_some();
        if backfill.course != BackfillCourse::On || may_move || backfill.open.is_empty() {
            return;
        }
        let places: HashMap<&BatchNo, usize> =
            (0..).zip(&backfill.entries).map(|(place, e)| (&e.batch_no, place)).collect();
        let mut waits = BTreeMap::new();
        for (place, id) in &backfill.open {
            let Some(active) = self.batches.active.get(id) else { return };
            let on: Vec<usize> = active
                .outside
                .iter()
                .filter(|(_, w)| w.edge.is_none() && w.external.group == backfill.group)
                .flat_map(|(_, w)| &w.waits)
                .filter_map(|wait| match wait {
                    ExternalWait::NotThere(no) | ExternalWait::NotYet(no, _) => {
                        places.get(no).copied()
                    }
                    ExternalWait::NoneYet => None,
                })
                .collect();
            waits.insert(*place, on);
        }
        if let Some((place, on)) = hopeless(&backfill.entries, &waits, &backfill.options) {
            let (no, on) = (&backfill.entries[place].batch_no, &backfill.entries[on].batch_no);
            tracing::warn!(batch_no = %no, "waits for batch {on} of this backfill, which did not end well; the backfill ends here");
            backfill.course = BackfillCourse::Hopeless;
        }
    }
}

/// A refusal becomes the batch's result in this backfill; any other error is retried.
fn refused(error: anyhow::Error) -> Result<EntryOpenResult> {
    let hurried = matches!(error.downcast_ref(), Some(OpeningRefusal::Hurried(..)));
    if (error.is::<OpeningRefusal>() || error.is::<BatchError>()) && !hurried {
        return Ok(EntryOpenResult::Not(EntryStatus::Refused, Some(error.to_string())));
    }
    Err(error)
}

impl ActiveBackfill {
    /// Reads the rows of the backfill into memory again.
    async fn read_rows(&mut self, tx: &mut Tx) -> Result<()> {
        self.entries = backfill::entries(tx, self.id).await?;
        self.open.clear();
        for (place, entry) in self.entries.iter().enumerate() {
            if entry.status == EntryStatus::Open {
                let batch = batch::find_batch(tx, &entry.batch_no, &self.group).await?;
                let batch = batch.context("an open batch of a backfill is in job_batch")?;
                self.open.insert(place, batch.batch_id);
            }
        }
        Ok(())
    }

    async fn set_entry(
        &mut self,
        tx: &mut Tx,
        place: usize,
        to: EntryStatus,
        message: Option<String>,
        now: Millis,
    ) -> Result<()> {
        let entry = &mut self.entries[place];
        let (from, text) = (entry.status, message.as_deref());
        let found = backfill::set_entry_status(tx, self.id, place, from, to, text, now).await?;
        ensure!(found, "batch {} of backfill {} is not {from} any more", entry.batch_no, self.id);
        (entry.status, entry.message) = (to, message);
        Ok(())
    }

    fn news_of(&self, place: usize, now: Millis) -> BatchNews {
        let entry = &self.entries[place];
        BatchNews {
            at: now,
            batch_no: entry.batch_no.clone(),
            status: entry.status,
            jobs: 0,
            took_ms: None,
            message: entry.message.clone(),
            done: self.entries.iter().filter(|e| e.status.is_final()).count(),
            total: self.entries.len(),
        }
    }
}
