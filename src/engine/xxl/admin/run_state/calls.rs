//! Calls of attempts: they arrive, wait in the queue, and are sent to an executor.

use super::{CallRun, Candidates, Effect, ExecutorCallState, RunRegister};
use crate::domain::executor::LogId;
use crate::domain::executor::run_wait::RunWait;
use crate::domain::id::BatchId;
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{RunEvent, RunState, StopWhy};
use crate::engine::xxl::admin::{Begin, CallId};
use crate::remote::executors::ExecutorAddress;
use crate::store::executor_run::ExecutorRunRow;

impl RunRegister {
    pub(super) fn begin(&mut self, begin: Begin) {
        let Begin { id, queue_id, attempt, ask, log, waits, answer } = begin;
        self.calls.insert(
            id,
            ExecutorCallState {
                queue_id,
                attempt,
                ask,
                log,
                waits,
                answer: Some(answer),
                stop: None,
                job_id: 0,
                run_no: 0,
                batch_id: BatchId(0),
                runs: Vec::new(),
                ends: Vec::new(),
                candidates: None,
            },
        );
        self.new.push(id);
    }

    pub(super) fn stop_call(&mut self, id: CallId, why: StopWhy, give_up: i64, now: Millis) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.stop.get_or_insert(why);
        // The rows of a new call are looked up first.
        for run in call.runs.clone() {
            self.apply_event(run, &RunEvent::Stop(why), give_up, now);
        }
    }

    /// Stores the job id of a call from its row.
    pub(in crate::engine::xxl::admin) fn note_job(&mut self, id: CallId, run: &ExecutorRunRow) {
        if let Some(call) = self.calls.get_mut(&id) {
            (call.job_id, call.run_no, call.batch_id) = (run.job_id, run.run_no, run.batch_id);
        }
    }

    /// A run of a call, or a part of a broadcast.
    pub(in crate::engine::xxl::admin) fn add_part(
        &mut self,
        id: CallId,
        run: LogId,
        part: CallRun,
    ) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if !call.runs.contains(&run) {
            call.runs.push(run);
        }
        self.parts.insert(run, part);
    }

    /// Puts a call at the end of the queue.
    pub(in crate::engine::xxl::admin) fn stand(
        &mut self,
        id: CallId,
        run: &ExecutorRunRow,
        now: Millis,
    ) {
        self.note_job(id, run);
        if !self.parts.contains_key(&run.log_id) {
            self.add_part(
                id,
                run.log_id,
                CallRun::new(id, None, run.job_id, RunState::waiting(now)),
            );
        }
        let line = self.lines.entry(run.job_id).or_default();
        if !line.contains(&id) {
            line.push_back(id);
        }
    }

    /// Sets what a call waits for; the attempt is notified of a change.
    pub(in crate::engine::xxl::admin) fn waits_for(&self, id: CallId, wait: Option<RunWait>) {
        if let Some(call) = self.calls.get(&id) {
            call.waits.send_if_modified(|told| std::mem::replace(told, wait) != wait);
        }
    }

    /// Checks executors one after the other.
    pub(in crate::engine::xxl::admin) fn find_idle_executor(
        &mut self,
        id: CallId,
        candidates: Candidates,
    ) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let (test, job_id) = (candidates.test, call.job_id);
        self.effects.extend(candidates.at.clone().map(|to| Effect::Test(id, test, to, job_id)));
        call.candidates = Some(candidates);
    }

    /// Sends run requests to executors; they are committed.
    pub(in crate::engine::xxl::admin) fn asked(
        &mut self,
        id: CallId,
        parts: Vec<(LogId, ExecutorAddress, (i64, i64))>,
        now: Millis,
    ) {
        let Some(job_id) = self.calls.get(&id).map(|call| call.job_id) else { return };
        self.waits_for(id, None);
        if let Some(line) = self.lines.get_mut(&job_id) {
            line.retain(|waiting| *waiting != id);
            if line.is_empty() {
                self.lines.remove(&job_id);
            }
        }
        for (run, to, shard) in parts {
            let mut part = CallRun::new(id, Some(to), job_id, RunState::waiting(now));
            (part.shard, part.sent) = (shard, now);
            part.state.begin_posting(now);
            self.add_part(id, run, part);
            self.effects.push(Effect::Post(run));
        }
    }

    /// Forgets a call that no longer belongs to this process; its rows stay as they are.
    pub(in crate::engine::xxl::admin) fn forget(&mut self, id: CallId) {
        let Some(call) = self.calls.remove(&id) else { return };
        for run in call.runs {
            self.parts.remove(&run);
        }
        self.new.retain(|new| *new != id);
        self.leave_line(call.job_id, id);
    }

    pub(in crate::engine::xxl::admin) fn leave_line(&mut self, job_id: i64, id: CallId) {
        if let Some(line) = self.lines.get_mut(&job_id) {
            line.retain(|waiting| *waiting != id);
            if line.is_empty() {
                self.lines.remove(&job_id);
            }
            self.turns.insert(job_id);
        }
    }

    pub(super) fn tested(&mut self, id: CallId, address: &str, answer: Result<(), String>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let Some(candidates) = &mut call.candidates else { return };
        // It may have been routed again meanwhile.
        if candidates.at.as_ref().is_none_or(|to| to.address != address) {
            return;
        }
        match answer {
            Ok(()) => {
                candidates.is_fit = true;
                self.turns.insert(call.job_id);
            }
            Err(said) => self.next_candidate(id, &said),
        }
    }

    /// Checks the next executor; without one the run ends.
    pub(super) fn next_candidate(&mut self, id: CallId, said: &str) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let job_id = call.job_id;
        let left = call.candidates.as_mut().and_then(|candidates| {
            let at = candidates.at.take().map(|to| to.address).unwrap_or_default();
            candidates.said.push(format!("{at}: {said}"));
            candidates.is_fit = false;
            candidates.at = candidates.left.pop_front();
            candidates.at.clone().map(|to| (candidates.test, to))
        });
        if let Some((test, to)) = left {
            self.effects.push(Effect::Test(id, test, to, job_id));
            return;
        }
        let tried = call.candidates.take().map(|candidates| candidates.said.join("; "));
        let said = tried.unwrap_or_else(|| said.to_owned());
        for run in call.runs.clone() {
            if let Some(part) = self.parts.get_mut(&run) {
                let dos = part.state.not_reached(said.clone());
                self.apply(run, dos);
            }
        }
        self.leave_line(job_id, id);
    }

    /// Puts a run that no executor accepted at the head of the queue.
    pub(super) fn stand_first(&mut self, job_id: i64, id: CallId) {
        let goes_on = self.calls.get(&id).is_some_and(|call| call.candidates.is_some());
        if goes_on {
            let line = self.lines.entry(job_id).or_default();
            line.retain(|waiting| *waiting != id);
            line.push_front(id);
        }
    }

    /// After a failed transaction, which may have been committed: waiting calls read their rows
    /// again.
    pub(in crate::engine::xxl::admin) fn doubt(&mut self) {
        for (_, line) in std::mem::take(&mut self.lines) {
            for id in line {
                let Some(call) = self.calls.get_mut(&id) else { continue };
                call.candidates = None;
                for run in std::mem::take(&mut call.runs) {
                    self.parts.remove(&run);
                }
                self.new.push(id);
            }
        }
        self.look_now = true;
    }
}
