//! One tick: events, due actions, one transaction, and the requests that follow it.

use super::dispatch::{CommittedFact, found};
use super::run_state::RunRegister;
use super::{Admin, CallId, Inbound};
use crate::domain::executor::LogId;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome};
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{RunEnd, RunEvent, RunStatus, StopWhy};
use crate::handler::NOT_OURS;
use crate::remote::executors::ExecutorAddress;
use crate::store::Tx;
use crate::store::executor_run::{self as rows, ExecutorRunRow};
use crate::store::hint::{self, HintTopic};
use anyhow::{Context as _, Result};
use std::sync::Arc;

/// Poll intervals in milliseconds: where hints come from this process alone, and where they come
/// from all.
const LOOK_MS: (i64, i64) = (1_000, 5_000);

/// Whether a transaction also decides which runs start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnDecisions {
    Given,
    None,
}

/// What a transaction has found.
#[derive(Default)]
struct TickFindings {
    facts: Vec<CommittedFact>,
    /// Runs that this process has ended; others were ended elsewhere.
    ended: Vec<LogId>,
    beaten: bool,
    gone: Vec<LogId>,
}

impl Admin {
    /// One tick: all pending work. `true` when there was any. After an error the next tick repeats
    /// the writes.
    pub async fn run_tick(self: &Arc<Self>) -> Result<bool> {
        let mut book = self.book.lock().await;
        let now = self.clock.now();
        let inbox = self.take_inbox();
        let mut any = !inbox.is_empty();
        for inbound in inbox {
            book.take_in(inbound, self.give_up_ms, now);
        }
        book.run_due(self.give_up_ms, now);
        if !book.parts.is_empty() && (book.look_now || now >= book.look_at) {
            self.poll_rows(&mut book, now).await?;
        }
        any |= self.write(&mut book, now).await?;
        for effect in std::mem::take(&mut book.effects) {
            any = true;
            self.send_request(&book, effect, now);
        }
        Ok(any)
    }

    /// Polls the rows in the next tick.
    pub async fn look_soon(&self) {
        self.book.lock().await.look_now = true;
    }

    /// Reads which runs of this process have ended, and which others request to stop.
    async fn poll_rows(&self, book: &mut RunRegister, now: Millis) -> Result<()> {
        let mut tx = self.db.begin_read().await?;
        let told = rows::list_reported(&mut tx, &self.me).await?;
        let is_time = now >= book.look_at;
        let unwanted = match is_time || book.look_now {
            true => rows::unwanted(&mut tx, &self.me).await?,
            false => Vec::new(),
        };
        drop(tx);
        book.look_now = false;
        if is_time {
            book.look_at = now.plus_ms(self.hints.poll_interval(LOOK_MS.0, LOOK_MS.1));
            // Other processes may have freed capacity.
            let waiting: Vec<i64> = book.lines.keys().copied().collect();
            book.turns.extend(waiting);
        }
        for run in told {
            book.finish_run(run.log_id, run.run_end(), self.give_up_ms, now);
        }
        for run in unwanted {
            if let Some(why) = run.stopping {
                book.apply_event(run.log_id, &RunEvent::Stop(why), self.give_up_ms, now);
            }
        }
        Ok(())
    }

    async fn write(&self, book: &mut RunRegister, now: Millis) -> Result<bool> {
        let has_turn = |job: &i64| book.lines.contains_key(job);
        let turns = match !book.new.is_empty() || book.turns.iter().any(has_turn) {
            true => TurnDecisions::Given,
            false => TurnDecisions::None,
        };
        if book.writes.is_empty() && turns == TurnDecisions::None {
            book.turns.clear();
            return Ok(false);
        }
        let written = match self.transact(book, turns, now).await {
            Ok(written) => written,
            Err(error) => {
                book.doubt();
                return Err(error);
            }
        };
        let writes = std::mem::take(&mut book.writes);
        book.turns.clear();
        if turns == TurnDecisions::Given {
            book.new.clear();
        }
        book.look_now |= written.beaten;
        for (run, ended, said) in writes.ends {
            if written.ended.contains(&run)
                && let Some(part) = book.parts.get(&run)
            {
                let end = RunEnd {
                    log_id: run.0,
                    address: part.to.as_ref().map(|to| to.address.clone()),
                    shard: part.shard,
                    stopping: part.state.stopping,
                    result: Some(ended),
                    code: None,
                    said,
                };
                book.finish_run(run, end, self.give_up_ms, now);
            }
        }
        for run in written.gone {
            self.receive(Inbound::Gone(run));
        }
        for fact in written.facts {
            let call = fact.call();
            self.apply_fact(book, fact, now);
            self.stop_found(book, call, now);
        }
        Ok(true)
    }

    async fn transact(
        &self,
        book: &RunRegister,
        gives_turns: TurnDecisions,
        now: Millis,
    ) -> Result<TickFindings> {
        let mut tx = self.db.begin().await?;
        if gives_turns == TurnDecisions::Given {
            rows::lock_runs(&mut tx, now).await?;
        }
        let mut written = self.write_events(&mut tx, book, now).await?;
        if gives_turns == TurnDecisions::Given {
            written.facts = self.turns(&mut tx, book, now).await?;
        }
        failpoint!("admin.before_commit");
        tx.commit().await.context("write what became of runs of executors")?;
        failpoint!("admin.after_commit");
        Ok(written)
    }

    async fn write_events(
        &self,
        tx: &mut Tx,
        book: &RunRegister,
        now: Millis,
    ) -> Result<TickFindings> {
        let writes = &book.writes;
        let mut written = TickFindings::default();
        rows::began(tx, &writes.began, now).await?;
        rows::saw_busy(tx, &writes.busy, now).await?;
        rows::saw_idle(tx, &writes.idle, now).await?;
        for (why, runs) in &writes.stops {
            rows::stop_runs(tx, runs, *why, now).await?;
        }
        for (run, said) in &writes.back {
            rows::wait_again(tx, *run, &self.me, said, now).await?;
        }
        for (run, ended, said) in &writes.ends {
            match rows::end_run(tx, *run, *ended, said, now).await? {
                true => written.ended.push(*run),
                false => written.beaten = true,
            }
        }
        if !written.ended.is_empty() {
            // Other calls may wait for their turn.
            hint::send_hint(tx, HintTopic::Run).await?;
        }
        for run in &writes.missed {
            let to = book.parts.get(run).and_then(|part| part.to.as_ref());
            let Some(to) = to else { continue };
            if !rows::address_is_seen(tx, &to.app, &to.address, now).await? {
                written.gone.push(*run);
            }
        }
        Ok(written)
    }

    /// Applies a fact found under the lock.
    fn apply_fact(&self, book: &mut RunRegister, fact: CommittedFact, now: Millis) {
        match fact {
            CommittedFact::NotOurs(call) => {
                let said = format!("{NOT_OURS}; nothing was run");
                let lost =
                    AttemptOutcome::ended(AttemptEnd::Failed, said).before_it_began().of_lost_row();
                book.answer(call, lost);
            }
            CommittedFact::Nothing(call) => {
                let said = "its worker died; no executor was asked for it, so nothing of it runs";
                book.answer(call, AttemptOutcome::ended(AttemptEnd::Killed, said));
            }
            CommittedFact::Found(call, runs) => self.go_on(book, call, runs, now),
            CommittedFact::Waits(call, run, wait) => {
                book.stand(call, &run, now);
                book.waits_for(call, wait);
            }
            CommittedFact::Tests(call, run, candidates) => {
                book.stand(call, &run, now);
                book.waits_for(call, None);
                book.find_idle_executor(call, candidates);
            }
            CommittedFact::Stopped(call, why) => {
                let end = if why == StopWhy::TimedOut {
                    AttemptEnd::TimedOut
                } else {
                    AttemptEnd::Killed
                };
                book.refuse(call, end, "stopped before an executor was asked");
            }
            CommittedFact::Asked(call, run, parts) => {
                book.note_job(call, &run);
                book.asked(call, parts, now);
            }
            CommittedFact::Over(call, run) => {
                let (log_id, end) = (run.log_id, run.run_end());
                book.add_part(call, log_id, found(call, &run, None, now));
                book.finish_run(log_id, end, self.give_up_ms, now);
            }
        }
    }

    /// Continues runs that an earlier start of the attempt has begun.
    fn go_on(
        &self,
        book: &mut RunRegister,
        id: CallId,
        runs: Vec<(ExecutorRunRow, Option<ExecutorAddress>)>,
        now: Millis,
    ) {
        let Some(call) = book.calls.get(&id) else { return };
        let (attempt, can_ask) = (call.attempt, call.ask.is_some());
        let mut over = Vec::new();
        let mut ours = Vec::new();
        for (run, to) in runs {
            let log_id = run.log_id;
            // Written by a transaction of this start whose answer was lost: it was not sent.
            let is_unsent = run.attempt == attempt && run.status == RunStatus::Asked;
            match (run.status, to) {
                (RunStatus::Told | RunStatus::Done | RunStatus::Unconfirmed, to) => {
                    over.push((log_id, run.run_end()));
                    book.add_part(id, log_id, found(id, &run, to, now));
                }
                (RunStatus::Waiting, _) if can_ask => {
                    book.stand(id, &run, now);
                    book.turns.insert(run.job_id);
                }
                (_, Some(to)) if is_unsent && can_ask && run.stopping.is_none() => {
                    book.note_job(id, &run);
                    ours.push((log_id, to, run.shard));
                }
                (_, to) => {
                    book.add_part(id, log_id, found(id, &run, to, now));
                    book.schedule_run(log_id);
                }
            }
        }
        // It would leave the queue.
        if !ours.is_empty() {
            book.asked(id, ours, now);
        }
        for (log_id, end) in over {
            book.finish_run(log_id, end, self.give_up_ms, now);
        }
    }

    fn stop_found(&self, book: &mut RunRegister, id: CallId, now: Millis) {
        let Some(call) = book.calls.get(&id) else { return };
        let Some(why) = call.stop else { return };
        for run in call.runs.clone() {
            book.apply_event(run, &RunEvent::Stop(why), self.give_up_ms, now);
        }
    }
}
