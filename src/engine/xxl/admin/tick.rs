//! One beat: what has happened, what is due, one transaction, and what is sent after it.

use super::dispatch::{Fact, found};
use super::run_state::Book;
use super::{Admin, CallId, Inbound};
use crate::domain::executor::LogId;
use crate::domain::job::outcome::{End, Outcome};
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{RunEnd, RunEvent, RunStatus, StopWhy};
use crate::handler::NOT_OURS;
use crate::remote::executors::To;
use crate::store::Tx;
use crate::store::executor_run::{self as rows, Run};
use crate::store::hint::{self, Topic};
use anyhow::{Context as _, Result};
use std::sync::Arc;

/// Between two looks at rows when nobody hints: where hints come from this process alone, and where they
/// come from all.
const LOOK_MS: (i64, i64) = (1_000, 5_000);

/// Whether a transaction decides about turns too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turns {
    Given,
    None,
}

/// What a transaction has found.
#[derive(Default)]
struct TickFindings {
    facts: Vec<Fact>,
    /// Runs that this process has ended; others were faster with the rest.
    ended: Vec<LogId>,
    beaten: bool,
    gone: Vec<LogId>,
}

impl Admin {
    /// One turn: everything that waits. `true` when anything was to be done. After an error what was to be
    /// written is written by the next.
    pub async fn beat(self: &Arc<Self>) -> Result<bool> {
        let mut book = self.book.lock().await;
        let now = self.clock.now();
        let inbox = self.take_inbox();
        let mut any = !inbox.is_empty();
        for inbound in inbox {
            book.take_in(inbound, self.give_up_ms, now);
        }
        book.wake(self.give_up_ms, now);
        if !book.parts.is_empty() && (book.look_now || now >= book.look_at) {
            self.look(&mut book, now).await?;
        }
        any |= self.write(&mut book, now).await?;
        for effect in std::mem::take(&mut book.effects) {
            any = true;
            self.send(&book, effect, now);
        }
        Ok(any)
    }

    /// Rows are to be looked at in the next beat.
    pub async fn look_soon(&self) {
        self.book.lock().await.look_now = true;
    }

    /// Reads which runs of this process have ended, and which others want stopped.
    async fn look(&self, book: &mut Book, now: Millis) -> Result<()> {
        let mut tx = self.db.read().await?;
        let told = rows::told(&mut tx, &self.me).await?;
        let is_time = now >= book.look_at;
        let unwanted = match is_time || book.look_now {
            true => rows::unwanted(&mut tx, &self.me).await?,
            false => Vec::new(),
        };
        drop(tx);
        book.look_now = false;
        if is_time {
            book.look_at = now.plus(self.hints.pace(LOOK_MS.0, LOOK_MS.1));
            // Others may have made room.
            let waiting: Vec<i64> = book.lines.keys().copied().collect();
            book.turns.extend(waiting);
        }
        for run in told {
            book.over(run.log_id, run.end(), self.give_up_ms, now);
        }
        for run in unwanted {
            if let Some(why) = run.stopping {
                book.step(run.log_id, &RunEvent::Stop(why), self.give_up_ms, now);
            }
        }
        Ok(())
    }

    async fn write(&self, book: &mut Book, now: Millis) -> Result<bool> {
        let has_turn = |job: &i64| book.lines.contains_key(job);
        let turns = match !book.new.is_empty() || book.turns.iter().any(has_turn) {
            true => Turns::Given,
            false => Turns::None,
        };
        if book.writes.is_empty() && turns == Turns::None {
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
        if turns == Turns::Given {
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
                book.over(run, end, self.give_up_ms, now);
            }
        }
        for run in written.gone {
            self.hear(Inbound::Gone(run));
        }
        for fact in written.facts {
            let call = fact.call();
            self.heed(book, fact, now);
            self.stop_found(book, call, now);
        }
        Ok(true)
    }

    async fn transact(&self, book: &Book, gives_turns: Turns, now: Millis) -> Result<TickFindings> {
        let mut tx = self.db.begin().await?;
        if gives_turns == Turns::Given {
            rows::hold(&mut tx, now).await?;
        }
        let mut written = self.write_events(&mut tx, book, now).await?;
        if gives_turns == Turns::Given {
            written.facts = self.turns(&mut tx, book, now).await?;
        }
        failpoint!("admin.before_commit");
        tx.commit().await.context("write what became of runs of executors")?;
        failpoint!("admin.after_commit");
        Ok(written)
    }

    async fn write_events(&self, tx: &mut Tx, book: &Book, now: Millis) -> Result<TickFindings> {
        let writes = &book.writes;
        let mut written = TickFindings::default();
        rows::began(tx, &writes.began, now).await?;
        rows::saw_busy(tx, &writes.busy, now).await?;
        rows::saw_idle(tx, &writes.idle, now).await?;
        for (why, runs) in &writes.stops {
            rows::stop(tx, runs, *why, now).await?;
        }
        for (run, said) in &writes.back {
            rows::wait_again(tx, (*run, &self.me), said, now).await?;
        }
        for (run, ended, said) in &writes.ends {
            match rows::end(tx, *run, (*ended, said), now).await? {
                true => written.ended.push(*run),
                false => written.beaten = true,
            }
        }
        if !written.ended.is_empty() {
            // Others may wait for their turn.
            hint::give(tx, Topic::Run).await?;
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

    /// Takes in what was found under the lock.
    fn heed(&self, book: &mut Book, fact: Fact, now: Millis) {
        match fact {
            Fact::NotOurs(call) => {
                let said = format!("{NOT_OURS}; nothing was run");
                let lost = Outcome::ended(End::Failed, said).before_it_began().of_lost_row();
                book.answer(call, lost);
            }
            Fact::Nothing(call) => {
                let said = "its worker died; no executor was asked for it, so nothing of it runs";
                book.answer(call, Outcome::ended(End::Killed, said));
            }
            Fact::Found(call, runs) => self.go_on(book, call, runs, now),
            Fact::Waits(call, run, wait) => {
                book.stand(call, &run, now);
                book.waits_for(call, wait);
            }
            Fact::Tests(call, run, candidates) => {
                book.stand(call, &run, now);
                book.waits_for(call, None);
                book.test(call, candidates);
            }
            Fact::Stopped(call, why) => {
                let end = if why == StopWhy::TimedOut { End::TimedOut } else { End::Killed };
                book.refuse(call, end, "stopped before an executor was asked");
            }
            Fact::Asked(call, run, parts) => {
                book.know(call, &run);
                book.asked(call, parts, now);
            }
            Fact::Over(call, run) => {
                let (log_id, end) = (run.log_id, run.end());
                book.put(call, log_id, found(call, &run, None, now));
                book.over(log_id, end, self.give_up_ms, now);
            }
        }
    }

    /// Goes on with the runs that an earlier start of the try has begun.
    fn go_on(&self, book: &mut Book, id: CallId, runs: Vec<(Run, Option<To>)>, now: Millis) {
        let Some(call) = book.calls.get(&id) else { return };
        let (attempt, can_ask) = (call.attempt, call.ask.is_some());
        let mut over = Vec::new();
        let mut ours = Vec::new();
        for (run, to) in runs {
            let log_id = run.log_id;
            // Written by a transaction of this start whose answer was lost: nobody has sent it.
            let is_unsent = run.attempt == attempt && run.status == RunStatus::Asked;
            match (run.status, to) {
                (RunStatus::Told | RunStatus::Done | RunStatus::Unconfirmed, to) => {
                    over.push((log_id, run.end()));
                    book.put(id, log_id, found(id, &run, to, now));
                }
                (RunStatus::Waiting, _) if can_ask => {
                    book.stand(id, &run, now);
                    book.turns.insert(run.job_id);
                }
                (_, Some(to)) if is_unsent && can_ask && run.stopping.is_none() => {
                    book.know(id, &run);
                    ours.push((log_id, to, run.shard));
                }
                (_, to) => {
                    book.put(id, log_id, found(id, &run, to, now));
                    book.arm(log_id);
                }
            }
        }
        // It would leave the line.
        if !ours.is_empty() {
            book.asked(id, ours, now);
        }
        for (log_id, end) in over {
            book.over(log_id, end, self.give_up_ms, now);
        }
    }

    fn stop_found(&self, book: &mut Book, id: CallId, now: Millis) {
        let Some(call) = book.calls.get(&id) else { return };
        let Some(why) = call.stop else { return };
        for run in call.runs.clone() {
            book.step(run, &RunEvent::Stop(why), self.give_up_ms, now);
        }
    }
}
