//! Decides which runs may start, and on which executor: under one lock for all processes.

mod desk;

use super::run_state::{CallRun, Candidates, ExecutorCallState, RunRegister};
use super::{Admin, CallId};
use crate::domain::executor::LogId;
use crate::domain::executor::run_wait::RunWait;
use crate::domain::id::BatchId;
use crate::domain::job::job_key::JobKey;
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{RunState, RunStatus, StopWhy, UnreportedEnd};
use crate::domain::xxl::xxl_run::AppName;
use crate::engine::secrets::executor_token;
use crate::handler::remote::{RemoteBody, RemoteCall};
use crate::remote::executors::ExecutorAddress;
use crate::store::Tx;
use crate::store::executor_run::{
    self as rows, ExecutorRunRow, NewExecutorRun, RunExecutorGroup, RunQueueEntry,
};
use anyhow::Result;
use desk::{DispatchContext, JobCalls};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::PoisonError;

/// A fact that holds once the transaction is committed.
pub(super) enum CommittedFact {
    /// The row no longer belongs to this attempt.
    NotOurs(CallId),
    /// There is nothing to end.
    Nothing(CallId),
    /// An earlier start has left rows.
    Found(CallId, Vec<(ExecutorRunRow, Option<ExecutorAddress>)>),
    /// It is to stop, and nothing had begun.
    Stopped(CallId, StopWhy),
    /// It waits in the queue, with a row.
    Waits(CallId, ExecutorRunRow, Option<RunWait>),
    /// It waits in the queue, and executors are being checked for idleness.
    Tests(CallId, ExecutorRunRow, Candidates),
    /// Executors are to receive a run request.
    Asked(CallId, ExecutorRunRow, Vec<(LogId, ExecutorAddress, (i64, i64))>),
    /// It has ended.
    Over(CallId, ExecutorRunRow),
}

impl CommittedFact {
    /// The call it concerns.
    pub(super) fn call(&self) -> CallId {
        match self {
            Self::NotOurs(call) | Self::Nothing(call) | Self::Stopped(call, _) => *call,
            Self::Found(call, _) | Self::Waits(call, ..) | Self::Tests(call, ..) => *call,
            Self::Asked(call, ..) | Self::Over(call, _) => *call,
        }
    }
}

/// The decision on a call.
enum CallDecision {
    /// It waits for this run, or for the one before it in the same transaction.
    Wait(Option<RunWait>),
    Ask(Vec<ExecutorAddress>),
    Test(Candidates),
    End(UnreportedEnd, String),
}

/// A call that has no row yet.
struct Fresh {
    id: CallId,
    entry: RunQueueEntry,
    job_id: i64,
}

/// A call with the decision on it.
struct DecidedCall<'a> {
    id: CallId,
    call: &'a ExecutorCallState,
    ask: &'a RemoteCall,
    entry: (i64, BatchId),
    job_id: i64,
    decision: CallDecision,
}

impl Admin {
    /// Looks up new calls, and decides which runs start.
    pub(super) async fn turns(
        &self,
        tx: &mut Tx,
        book: &RunRegister,
        now: Millis,
    ) -> Result<Vec<CommittedFact>> {
        let mut desk = DispatchContext::new(self, now);
        let mut facts = Vec::new();
        let fresh = self.look_up(tx, book, &mut desk, &mut facts).await?;
        let mut by_job: BTreeMap<i64, Vec<Fresh>> = BTreeMap::new();
        for one in fresh {
            by_job.entry(one.job_id).or_default().push(one);
        }
        let waits = |job: &&i64| book.lines.contains_key(job);
        let jobs: BTreeSet<i64> =
            by_job.keys().chain(book.turns.iter().filter(waits)).copied().collect();
        let jobs: Vec<i64> = jobs.into_iter().collect();
        let in_line: Vec<i64> =
            jobs.iter().copied().filter(|job| !desk.rounds.contains_key(job)).collect();
        desk.rounds.extend(rows::rounds(tx, &in_line).await?);
        let mut open: BTreeMap<i64, Vec<ExecutorRunRow>> = BTreeMap::new();
        for run in rows::open_of_jobs(tx, &jobs).await? {
            open.entry(run.job_id).or_default().push(run);
        }
        let mut decided = Vec::new();
        for job in jobs {
            let mut fresh = by_job.remove(&job).unwrap_or_default();
            fresh.sort_by_key(|one| one.entry.batch_id);
            let open = open.remove(&job).unwrap_or_default();
            let calls = JobCalls { job_id: job, fresh, open: &open };
            desk.of_job(tx, book, calls, &mut decided).await?;
        }
        let turned: Vec<i64> = std::mem::take(&mut desk.turned).into_iter().collect();
        rows::took_turns(tx, &turned).await?;
        self.write_decided(tx, decided, &mut facts, now).await?;
        Ok(facts)
    }

    /// Reads the rows of new calls; returns those without any.
    async fn look_up(
        &self,
        tx: &mut Tx,
        book: &RunRegister,
        desk: &mut DispatchContext<'_>,
        facts: &mut Vec<CommittedFact>,
    ) -> Result<Vec<Fresh>> {
        let calls = |id: &CallId| book.calls.get(id).map(|call| (*id, call));
        let new: Vec<(CallId, &ExecutorCallState)> = book.new.iter().filter_map(calls).collect();
        let queue: Vec<_> = new.iter().map(|(_, call)| call.queue_id).collect();
        let mut entries = rows::entries(tx, &queue).await?;
        let mut there: HashMap<_, Vec<ExecutorRunRow>> = HashMap::new();
        for run in rows::of_rows(tx, &queue).await? {
            there.entry(run.queue_id).or_default().push(run);
        }
        let (mut fresh, mut adopted) = (Vec::new(), Vec::new());
        for (id, call) in new {
            let entry = entries.remove(&call.queue_id);
            let is_ours = |entry: &RunQueueEntry| {
                entry.owner.as_ref() == Some(&self.me) && entry.attempt == call.attempt
            };
            let Some(entry) = entry.filter(is_ours) else {
                facts.push(CommittedFact::NotOurs(id));
                continue;
            };
            let mut runs = there.remove(&call.queue_id).unwrap_or_default();
            runs.retain(|run| run.run_no == entry.run_no);
            match (&call.ask, runs.is_empty()) {
                (None, true) => facts.push(CommittedFact::Nothing(id)),
                (Some(_), true) if call.stop.is_some() => {
                    facts.extend(call.stop.map(|why| CommittedFact::Stopped(id, why)));
                }
                (Some(ask), true) => {
                    let (job_id, rounds) = match entry.job {
                        Some(known) => known,
                        None => {
                            let (group, code) = (entry.group.clone(), ask.job.clone());
                            (rows::number(tx, &JobKey { group, code }).await?, 0)
                        }
                    };
                    desk.rounds.insert(job_id, rounds);
                    fresh.push(Fresh { id, entry, job_id });
                }
                (_, false) => {
                    adopted.extend(runs.iter().map(|run| run.log_id.0));
                    facts.push(CommittedFact::Found(id, desk.with_targets(tx, runs).await?));
                }
            }
        }
        rows::adopt(tx, &adopted, &self.me, desk.now).await?;
        Ok(fresh)
    }

    async fn write_decided(
        &self,
        tx: &mut Tx,
        decided: Vec<DecidedCall<'_>>,
        facts: &mut Vec<CommittedFact>,
        now: Millis,
    ) -> Result<()> {
        let mut new = Vec::new();
        for one in &decided {
            let first = one.call.runs.first().copied();
            match (&one.decision, first) {
                (CallDecision::Ask(to), Some(run)) => {
                    let total = i64::try_from(to.len())?;
                    let Some(to) = to.first() else { continue };
                    // Covered by a later run meanwhile: its other parts must not begin alone.
                    if !rows::note_request(tx, run, &to.address, total, now).await? {
                        continue;
                    }
                }
                (CallDecision::End(ended, said), Some(run)) => {
                    rows::end_run(tx, run, *ended, said, now).await?;
                }
                (CallDecision::Wait(_) | CallDecision::Test(_), _) | (_, None) => {}
            }
            new.extend(one.new_rows(first));
        }
        rows::insert(tx, &new, &self.me, now).await?;
        drop(new);
        let queue: Vec<_> = decided.iter().map(|one| one.call.queue_id).collect();
        let mut written: HashMap<_, Vec<ExecutorRunRow>> = HashMap::new();
        for run in rows::of_rows(tx, &queue).await? {
            written.entry(run.queue_id).or_default().push(run);
        }
        let mut last: HashMap<i64, LogId> = HashMap::new();
        for one in decided {
            let mut runs = written.remove(&one.call.queue_id).unwrap_or_default();
            runs.retain(|run| run.run_no == one.entry.0);
            let before = last.get(&one.job_id).copied();
            let stays = !matches!(one.decision, CallDecision::End(..));
            last.extend(runs.first().filter(|_| stays).map(|run| (one.job_id, run.log_id)));
            facts.extend(one.into_fact(runs, before));
        }
        Ok(())
    }

    /// Runs with the executors that they were sent to.
    pub(super) async fn targets(
        &self,
        tx: &mut Tx,
        runs: Vec<ExecutorRunRow>,
        now: Millis,
    ) -> Result<Vec<(ExecutorRunRow, Option<ExecutorAddress>)>> {
        DispatchContext::new(self, now).with_targets(tx, runs).await
    }

    /// An executor with its token.
    fn target(
        &self,
        app: &AppName,
        group: &RunExecutorGroup,
        address: &str,
    ) -> Result<ExecutorAddress, String> {
        let spoken = group.spoken(address);
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tokens.get(app).filter(|(sealed, _)| *sealed == group.sealed);
        let token = match known {
            Some((_, token)) => token.clone(),
            None => {
                let token = executor_token::open_token(app, &group.sealed)
                    .map_err(|error| error.to_string())?;
                tokens.insert(app.clone(), (group.sealed.clone(), token.clone()));
                token
            }
        };
        Ok(ExecutorAddress { address: address.to_owned(), app: app.clone(), token, spoken })
    }
}

impl<'a> DecidedCall<'a> {
    /// The rows it needs besides an existing one.
    fn new_rows(&'a self, first: Option<LogId>) -> Vec<NewExecutorRun<'a>> {
        let (handler, glue_type) = match &self.ask.what {
            RemoteBody::Bean(name) => (Some(name.as_str()), "BEAN"),
            RemoteBody::Glue { language, .. } => (None, language.glue_type()),
        };
        let row = |address, shard, ended| NewExecutorRun {
            queue_id: self.call.queue_id,
            run_no: self.entry.0,
            attempt: self.call.attempt,
            batch_id: self.entry.1,
            job: &self.ask.job,
            job_id: self.job_id,
            app: &self.ask.app,
            handler,
            glue_type,
            params: &self.ask.params,
            block: self.ask.block,
            address,
            shard,
            ended,
        };
        let skip = usize::from(first.is_some());
        match &self.decision {
            CallDecision::Ask(to) => {
                let total = i64::try_from(to.len()).unwrap_or(i64::MAX);
                let each = (0..).zip(to).skip(skip);
                each.map(|(n, to)| row(Some(to.address.as_str()), (n, total), None)).collect()
            }
            _ if skip == 1 => Vec::new(),
            CallDecision::Wait(_) | CallDecision::Test(_) => vec![row(None, (0, 1), None)],
            CallDecision::End(ended, said) => vec![row(None, (0, 1), Some((*ended, said)))],
        }
    }

    fn into_fact(self, runs: Vec<ExecutorRunRow>, before: Option<LogId>) -> Option<CommittedFact> {
        let first = runs.first()?.clone();
        Some(match self.decision {
            CallDecision::Wait(wait) => {
                let wait = wait.or(before.map(RunWait::Turn));
                CommittedFact::Waits(self.id, first, wait)
            }
            CallDecision::Test(candidates) => CommittedFact::Tests(self.id, first, candidates),
            CallDecision::End(..) => CommittedFact::Over(self.id, first),
            // A run that has ended meanwhile is noticed when its row is read.
            CallDecision::Ask(to) => {
                let asked = |run: &&ExecutorRunRow| run.status == RunStatus::Asked;
                let at = |run: &ExecutorRunRow| {
                    let to = to.iter().find(|to| Some(&to.address) == run.address.as_ref())?;
                    Some((run.log_id, to.clone(), run.shard))
                };
                let parts = runs.iter().filter(asked).filter_map(at).collect();
                CommittedFact::Asked(self.id, first, parts)
            }
        })
    }
}

/// How to continue a run that was found.
pub(super) fn found(
    call: CallId,
    run: &ExecutorRunRow,
    to: Option<ExecutorAddress>,
    now: Millis,
) -> CallRun {
    let (was_busy, idle_since) = (run.busy_time.is_some(), run.idle_time);
    let state = RunState::found(run.status, was_busy, idle_since, run.stopping, now);
    let mut part = CallRun::new(call, to, run.job_id, state);
    part.shard = run.shard;
    part.sent = run.trigger_time.filter(|_| run.address.is_some()).unwrap_or(Millis(0));
    part
}
