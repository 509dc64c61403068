//! What this process knows of the calls of its tries and of their runs. No I/O: what is to be written and
//! what is to be sent is gathered here.

use super::{Begin, CallId, Inbound};
use crate::domain::executor::LogId;
use crate::domain::executor_run::{
    Ended, Posted, RunDo, RunEnd, RunEvent, RunState, StopWhy, log_after_ms, outcome,
};
use crate::domain::id::{BatchId, QueueId};
use crate::domain::outcome::{End, Outcome, Stream};
use crate::domain::route::Test;
use crate::domain::time::Millis;
use crate::handler::log::RunLog;
use crate::handler::remote::RemoteCall;
use crate::remote::executors::{LogPage, To};
use crate::store::executor_run::Run;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use tokio::sync::oneshot;

/// What this process knows.
#[derive(Default)]
pub(super) struct Book {
    pub(super) calls: HashMap<CallId, Call>,
    pub(super) parts: HashMap<LogId, Part>,
    /// Calls of which it was not looked yet what rows there are.
    pub(super) new: Vec<CallId>,
    /// Calls that wait for their turn, by the number of their job.
    pub(super) lines: BTreeMap<i64, VecDeque<CallId>>,
    /// Jobs whose first in line may have its turn now.
    pub(super) turns: BTreeSet<i64>,
    due: BinaryHeap<Reverse<(Millis, LogId)>>,
    pub(super) writes: Writes,
    pub(super) effects: Vec<Effect>,
    /// When rows are looked at without a hint.
    pub(super) look_at: Millis,
    /// Rows are to be looked at now.
    pub(super) look_now: bool,
    /// When it is looked for what nobody waits for.
    pub(super) tidy_at: Millis,
}

/// A call of a try.
pub(super) struct Call {
    pub(super) queue_id: QueueId,
    pub(super) attempt: u32,
    pub(super) ask: Option<RemoteCall>,
    pub(super) log: RunLog,
    pub(super) answer: Option<oneshot::Sender<Outcome>>,
    pub(super) stop: Option<StopWhy>,
    pub(super) job_id: i64,
    pub(super) run_no: i64,
    pub(super) batch_id: BatchId,
    /// Its runs; before its turn none, or the one that waits.
    pub(super) runs: Vec<LogId>,
    pub(super) ends: Vec<RunEnd>,
    /// Executors that are still to be tried, when each is asked first whether it can.
    pub(super) candidates: Option<Candidates>,
}

/// Executors that are asked in turn whether they can.
pub(super) struct Candidates {
    pub(super) test: Test,
    pub(super) left: VecDeque<To>,
    /// The one that is asked, or said that it can.
    pub(super) at: Option<To>,
    pub(super) is_fit: bool,
    pub(super) said: Vec<String>,
}

/// A run of a call, or a part of one.
pub(super) struct Part {
    pub(super) call: CallId,
    pub(super) to: Option<To>,
    pub(super) job_id: i64,
    pub(super) shard: (i64, i64),
    pub(super) sent: Millis,
    pub(super) state: RunState,
    pub(super) end: Option<RunEnd>,
    lines: Lines,
}

/// How far its log was read.
struct Lines {
    next: i64,
    asked: u32,
    at: Option<Millis>,
    is_asking: bool,
    /// Its run is over, and these are the last.
    until: Option<Millis>,
    empty: u32,
}

/// What is to be written.
#[derive(Default)]
pub(super) struct Writes {
    pub(super) began: Vec<i64>,
    pub(super) busy: Vec<i64>,
    pub(super) idle: Vec<i64>,
    pub(super) stops: BTreeMap<StopWhy, Vec<i64>>,
    pub(super) ends: Vec<(LogId, Ended, String)>,
    pub(super) back: Vec<(LogId, String)>,
    pub(super) missed: Vec<LogId>,
}

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.began.is_empty()
            && self.busy.is_empty()
            && self.idle.is_empty()
            && self.stops.is_empty()
            && self.ends.is_empty()
            && self.back.is_empty()
            && self.missed.is_empty()
    }
}

/// What is sent once everything is written.
#[derive(Debug)]
pub(super) enum Effect {
    Test(CallId, Test, To, i64),
    Post(LogId),
    Look(LogId, To, i64),
    Kill(To, i64),
    /// Lines from this one on, of a run that was sent then.
    Log(LogId, To, Millis, i64),
}

/// How long the last lines of a log are asked for.
const LAST_LINES_MS: i64 = 20_000;
/// The pause before a log that is empty is asked for once more.
const LINES_AGAIN_MS: i64 = 300;

impl Part {
    pub(super) fn new(call: CallId, to: Option<To>, job_id: i64, state: RunState) -> Self {
        let lines = Lines { next: 1, asked: 0, at: None, is_asking: false, until: None, empty: 0 };
        Self { call, to, job_id, shard: (0, 1), sent: Millis(0), state, end: None, lines }
    }
}

impl Book {
    /// Takes in what has happened.
    pub(super) fn take_in(&mut self, inbound: Inbound, give_up: i64, now: Millis) {
        match inbound {
            Inbound::Begin(begin) => self.begin(begin),
            Inbound::Stop(call, why) => self.stop(call, why, give_up, now),
            Inbound::Leave(call) => self.forget(call),
            Inbound::Tested(call, at, answer) => self.tested(call, &at, answer),
            Inbound::Posted(run, answer) => {
                self.say_posted(run, &answer);
                self.step(run, &RunEvent::Posted(answer), give_up, now);
            }
            Inbound::Looked(run, looked) => {
                self.step(run, &RunEvent::Looked(looked), give_up, now);
            }
            Inbound::Gone(run) => self.step(run, &RunEvent::Gone, give_up, now),
            Inbound::Logged(run, page) => self.logged(run, page, now),
        }
    }

    fn begin(&mut self, begin: Begin) {
        let Begin { id, queue_id, attempt, ask, log, answer } = begin;
        self.calls.insert(
            id,
            Call {
                queue_id,
                attempt,
                ask,
                log,
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

    fn stop(&mut self, id: CallId, why: StopWhy, give_up: i64, now: Millis) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.stop.get_or_insert(why);
        // Of a new one it is first looked what rows there are.
        for run in call.runs.clone() {
            self.step(run, &RunEvent::Stop(why), give_up, now);
        }
    }

    /// What a row says of the job of a call.
    pub(super) fn know(&mut self, id: CallId, run: &Run) {
        if let Some(call) = self.calls.get_mut(&id) {
            (call.job_id, call.run_no, call.batch_id) = (run.job_id, run.run_no, run.batch_id);
        }
    }

    /// A run of a call, or a part of one.
    pub(super) fn put(&mut self, id: CallId, run: LogId, part: Part) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if !call.runs.contains(&run) {
            call.runs.push(run);
        }
        self.parts.insert(run, part);
    }

    /// A call is the last in line.
    pub(super) fn stand(&mut self, id: CallId, run: &Run, now: Millis) {
        self.know(id, run);
        if !self.parts.contains_key(&run.log_id) {
            self.put(id, run.log_id, Part::new(id, None, run.job_id, RunState::waiting(now)));
        }
        let line = self.lines.entry(run.job_id).or_default();
        if !line.contains(&id) {
            line.push_back(id);
        }
    }

    /// Executors are asked whether they can, one after the other.
    pub(super) fn test(&mut self, id: CallId, candidates: Candidates) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let (test, job_id) = (candidates.test, call.job_id);
        self.effects.extend(candidates.at.clone().map(|to| Effect::Test(id, test, to, job_id)));
        call.candidates = Some(candidates);
    }

    /// Executors are to be asked; that is written.
    pub(super) fn asked(&mut self, id: CallId, parts: Vec<(LogId, To, (i64, i64))>, now: Millis) {
        let Some(job_id) = self.calls.get(&id).map(|call| call.job_id) else { return };
        if let Some(line) = self.lines.get_mut(&job_id) {
            line.retain(|waiting| *waiting != id);
            if line.is_empty() {
                self.lines.remove(&job_id);
            }
        }
        for (run, to, shard) in parts {
            let mut part = Part::new(id, Some(to), job_id, RunState::waiting(now));
            (part.shard, part.sent) = (shard, now);
            part.state.ask(now);
            self.put(id, run, part);
            self.effects.push(Effect::Post(run));
        }
    }

    /// A call is not of this process any more; its rows stay as they are.
    pub(super) fn forget(&mut self, id: CallId) {
        let Some(call) = self.calls.remove(&id) else { return };
        for run in call.runs {
            self.parts.remove(&run);
        }
        self.new.retain(|new| *new != id);
        self.leave_line(call.job_id, id);
    }

    pub(super) fn leave_line(&mut self, job_id: i64, id: CallId) {
        if let Some(line) = self.lines.get_mut(&job_id) {
            line.retain(|waiting| *waiting != id);
            if line.is_empty() {
                self.lines.remove(&job_id);
            }
            self.turns.insert(job_id);
        }
    }

    fn tested(&mut self, id: CallId, address: &str, answer: Result<(), String>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let Some(candidates) = &mut call.candidates else { return };
        // It may have been routed anew meanwhile.
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

    /// Tries the next executor; without one the run ends.
    fn next_candidate(&mut self, id: CallId, said: &str) {
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

    fn say_posted(&self, run: LogId, answer: &Posted) {
        let Some(part) = self.parts.get(&run) else { return };
        let Some(call) = self.calls.get(&part.call) else { return };
        let at = part.to.as_ref().map(|to| to.address.as_str()).unwrap_or_default();
        let said = match answer {
            Posted::Taken => format!("{at} has taken it as run {run}"),
            Posted::Refused(said) => format!("{at} refused run {run}: {said}"),
            Posted::NotSent(said) => format!("{at} was not reached: {said}"),
            Posted::Unknown(said) => format!(
                "whether {at} has taken run {run} is not known ({said}); it is looked whether it is busy"
            ),
        };
        call.log.line(Stream::System, said);
    }

    /// What an event makes of a run.
    pub(super) fn step(&mut self, run: LogId, event: &RunEvent, give_up: i64, now: Millis) {
        let Some(part) = self.parts.get_mut(&run) else { return };
        let dos = part.state.step(event, give_up, now);
        if *event == RunEvent::Posted(Posted::Taken) {
            part.lines.at = Some(now.plus(log_after_ms(0)));
        }
        self.apply(run, dos);
        self.arm(run);
    }

    /// Remembers when the run is due next.
    pub(super) fn arm(&mut self, run: LogId) {
        let Some(part) = self.parts.get(&run) else { return };
        let next = part.state.next.into_iter().chain(part.lines.at).min();
        self.due.extend(next.map(|at| Reverse((at, run))));
    }

    fn apply(&mut self, run: LogId, dos: Vec<RunDo>) {
        let Some(part) = self.parts.get(&run) else { return };
        let (to, job_id, call) = (part.to.clone(), part.job_id, part.call);
        for one in dos {
            match (one, &to) {
                (RunDo::Began, _) => self.writes.began.push(run.0),
                (RunDo::SawBusy, _) => self.writes.busy.push(run.0),
                (RunDo::SawIdle, _) => self.writes.idle.push(run.0),
                (RunDo::Stopping(why), _) => {
                    self.writes.stops.entry(why).or_default().push(run.0);
                }
                (RunDo::End(ended, said), _) => self.writes.ends.push((run, ended, said)),
                (RunDo::Miss, _) => self.writes.missed.push(run),
                (RunDo::Next(said), _) => {
                    self.writes.back.push((run, said.clone()));
                    self.next_candidate(call, &said);
                    self.stand_first(job_id, call);
                }
                (RunDo::Look, Some(to)) => {
                    self.effects.push(Effect::Look(run, to.clone(), job_id));
                }
                (RunDo::Kill, Some(to)) => self.effects.push(Effect::Kill(to.clone(), job_id)),
                // Where it was sent is always known.
                (RunDo::Look | RunDo::Kill, None) => {}
            }
        }
    }

    /// A run that no executor took is the first in line again.
    fn stand_first(&mut self, job_id: i64, id: CallId) {
        let goes_on = self.calls.get(&id).is_some_and(|call| call.candidates.is_some());
        if goes_on {
            let line = self.lines.entry(job_id).or_default();
            line.retain(|waiting| *waiting != id);
            line.push_front(id);
        }
    }

    /// When something is due.
    pub(super) fn next(&self) -> Option<Millis> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Does what is due by now.
    pub(super) fn wake(&mut self, give_up: i64, now: Millis) {
        while let Some(Reverse((at, run))) = self.due.peek().copied() {
            if at > now {
                return;
            }
            self.due.pop();
            self.ask_for_lines(run, now);
            self.step(run, &RunEvent::Due, give_up, now);
        }
    }

    fn ask_for_lines(&mut self, run: LogId, now: Millis) {
        let Some(part) = self.parts.get_mut(&run) else { return };
        if part.lines.at.is_none_or(|at| at > now) || part.lines.is_asking {
            return;
        }
        part.lines.at = None;
        if let Some(to) = part.to.clone() {
            part.lines.is_asking = true;
            self.effects.push(Effect::Log(run, to, part.sent, part.lines.next));
        }
    }

    fn logged(&mut self, run: LogId, page: Option<LogPage>, now: Millis) {
        let Some(part) = self.parts.get_mut(&run) else { return };
        part.lines.is_asking = false;
        let is_there = page.is_some();
        let text = page.map(|page| page.log_content).unwrap_or_default();
        // Counted by what came: what a page says of its numbers differs from client to client.
        let count = i64::try_from(text.lines().count()).unwrap_or(0);
        if let Some(call) = self.calls.get(&part.call) {
            for line in text.lines() {
                match part.shard {
                    (_, 1) => call.log.line(Stream::Stdout, line),
                    (index, _) => call.log.line(Stream::Stdout, format!("[part {index}] {line}")),
                }
            }
        }
        part.lines.next += count;
        match part.lines.until {
            None => {
                part.lines.asked += 1;
                part.lines.at = Some(part.sent.plus(log_after_ms(part.lines.asked)).max(now));
            }
            Some(until) => {
                part.lines.empty = if count == 0 { part.lines.empty + 1 } else { 0 };
                let enough = if part.lines.next > 1 { 1 } else { 2 };
                if !is_there || part.lines.empty >= enough || now >= until {
                    self.close(run);
                    return;
                }
                let pause = if count > 0 { 0 } else { LINES_AGAIN_MS };
                part.lines.at = Some(now.plus(pause));
                if pause == 0 {
                    self.ask_for_lines(run, now);
                }
            }
        }
        self.arm(run);
    }

    /// A run is over, and its row says so. What is left of its log is read first.
    pub(super) fn over(&mut self, run: LogId, end: RunEnd, give_up: i64, now: Millis) {
        let Some(part) = self.parts.get_mut(&run) else { return };
        if part.end.is_some() {
            return;
        }
        let has_log = part.sent > Millis(0)
            && part.to.is_some()
            && !matches!(end.result, Some(Ended::NotReached | Ended::Refused | Ended::Discarded));
        part.state.step(&RunEvent::Told, give_up, now);
        part.end = Some(end);
        let (job_id, call) = (part.job_id, part.call);
        self.turns.insert(job_id);
        self.leave_line(job_id, call);
        if !has_log {
            self.close(run);
            return;
        }
        if let Some(part) = self.parts.get_mut(&run) {
            part.lines.until = Some(now.plus(LAST_LINES_MS));
            part.lines.at = Some(now);
        }
        self.ask_for_lines(run, now);
        self.arm(run);
    }

    /// Nothing more is to be read of a run; when it was the last of its call, the try hears.
    fn close(&mut self, run: LogId) {
        let Some(mut part) = self.parts.remove(&run) else { return };
        let Some(call) = self.calls.get_mut(&part.call) else { return };
        call.ends.extend(part.end.take());
        if call.ends.len() < call.runs.len() {
            return;
        }
        call.ends.sort_by_key(|end| end.shard);
        let outcome = outcome(&call.ends);
        self.answer(part.call, outcome);
    }

    /// Tells a try how it ended.
    pub(super) fn answer(&mut self, id: CallId, outcome: Outcome) {
        if let Some(answer) = self.calls.get_mut(&id).and_then(|call| call.answer.take()) {
            // A try that is gone was stopped, and its row says so.
            let _ = answer.send(outcome);
        }
        self.forget(id);
    }

    /// A try ends without a run.
    pub(super) fn refuse(&mut self, id: CallId, end: End, said: &str) {
        self.answer(id, Outcome::ended(end, said).before_it_began());
    }

    /// After a transaction that failed: what it was to write may be there. Calls that wait look again.
    pub(super) fn doubt(&mut self) {
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

    /// Whether anything is to be waited for.
    pub(super) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.parts.is_empty() && self.writes.is_empty()
    }
}
