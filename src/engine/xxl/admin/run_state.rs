//! The state of calls and runs in this process. No I/O: writes and requests are only gathered here.

mod calls;
mod lines;

use super::{CallId, Inbound};
use crate::domain::executor::LogId;
use crate::domain::executor::route::Test;
use crate::domain::executor::run_wait::RunWait;
use crate::domain::id::{BatchId, QueueId};
use crate::domain::job::outcome::{AttemptOutcome, Stream};
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{
    Posted, RunDo, RunEnd, RunEvent, RunState, StopWhy, UnreportedEnd, log_after_ms,
};
use crate::handler::log::RunLog;
use crate::handler::remote::RemoteCall;
use crate::remote::executors::ExecutorAddress;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use tokio::sync::{oneshot, watch};

/// The state of calls and runs in this process.
#[derive(Default)]
pub(super) struct RunRegister {
    pub(super) calls: HashMap<CallId, ExecutorCallState>,
    pub(super) parts: HashMap<LogId, CallRun>,
    /// Calls whose rows were not looked up yet.
    pub(super) new: Vec<CallId>,
    /// Calls that wait for their turn, by job id.
    pub(super) lines: BTreeMap<i64, VecDeque<CallId>>,
    /// Jobs whose first waiting call may start now.
    pub(super) turns: BTreeSet<i64>,
    due: BinaryHeap<Reverse<(Millis, LogId)>>,
    pub(super) writes: Writes,
    pub(super) effects: Vec<Effect>,
    /// When to poll the rows without a hint.
    pub(super) look_at: Millis,
    /// Whether to poll the rows now.
    pub(super) look_now: bool,
    /// When to check for runs that no attempt waits for.
    pub(super) tidy_at: Millis,
}

/// A call of an attempt.
pub(super) struct ExecutorCallState {
    pub(super) queue_id: QueueId,
    pub(super) attempt: u32,
    pub(super) ask: Option<RemoteCall>,
    pub(super) log: RunLog,
    /// Publishes to the attempt what it waits for.
    pub(super) waits: watch::Sender<Option<RunWait>>,
    pub(super) answer: Option<oneshot::Sender<AttemptOutcome>>,
    pub(super) stop: Option<StopWhy>,
    pub(super) job_id: i64,
    pub(super) run_no: i64,
    pub(super) batch_id: BatchId,
    /// Its runs; while it waits none, or the one that waits.
    pub(super) runs: Vec<LogId>,
    pub(super) ends: Vec<RunEnd>,
    /// Executors that are still to be checked, when each is checked before use.
    pub(super) candidates: Option<Candidates>,
}

/// Executors that are checked in turn.
pub(super) struct Candidates {
    pub(super) test: Test,
    pub(super) left: VecDeque<ExecutorAddress>,
    /// The executor being checked, or the one that is available.
    pub(super) at: Option<ExecutorAddress>,
    pub(super) is_fit: bool,
    pub(super) said: Vec<String>,
}

/// A run of a call, or a part of a broadcast.
pub(super) struct CallRun {
    pub(super) call: CallId,
    pub(super) to: Option<ExecutorAddress>,
    pub(super) job_id: i64,
    pub(super) shard: (i64, i64),
    pub(super) sent: Millis,
    pub(super) state: RunState,
    pub(super) end: Option<RunEnd>,
    lines: LogReadState,
}

/// How far its log was read.
struct LogReadState {
    next: i64,
    asked: u32,
    at: Option<Millis>,
    is_asking: bool,
    /// The pending request was sent before its run had ended.
    is_early: bool,
    /// Its run has ended, and the last lines are requested until this time.
    until: Option<Millis>,
    empty: u32,
}

/// The writes to make.
#[derive(Default)]
pub(super) struct Writes {
    pub(super) began: Vec<i64>,
    pub(super) busy: Vec<i64>,
    pub(super) idle: Vec<i64>,
    pub(super) stops: BTreeMap<StopWhy, Vec<i64>>,
    pub(super) ends: Vec<(LogId, UnreportedEnd, String)>,
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

/// Requests that are sent after the commit.
#[derive(Debug)]
pub(super) enum Effect {
    Test(CallId, Test, ExecutorAddress, i64),
    Post(LogId),
    Look(LogId, ExecutorAddress, i64),
    Kill(ExecutorAddress, i64),
    /// Log lines from this one on, of a run that was sent at that time.
    Log(LogId, ExecutorAddress, Millis, i64),
}

impl CallRun {
    pub(super) fn new(
        call: CallId,
        to: Option<ExecutorAddress>,
        job_id: i64,
        state: RunState,
    ) -> Self {
        let lines = LogReadState {
            next: 1,
            asked: 0,
            at: None,
            is_asking: false,
            is_early: false,
            until: None,
            empty: 0,
        };
        Self { call, to, job_id, shard: (0, 1), sent: Millis(0), state, end: None, lines }
    }
}

impl RunRegister {
    /// Handles an event.
    pub(super) fn take_in(&mut self, inbound: Inbound, give_up: i64, now: Millis) {
        match inbound {
            Inbound::Begin(begin) => self.begin(begin),
            Inbound::Stop(call, why) => self.stop_call(call, why, give_up, now),
            Inbound::Leave(call) => self.forget(call),
            Inbound::Tested(call, at, answer) => self.tested(call, &at, answer),
            Inbound::Posted(run, answer) => {
                self.say_posted(run, &answer);
                self.apply_event(run, &RunEvent::Posted(answer), give_up, now);
            }
            Inbound::Looked(run, looked) => {
                self.apply_event(run, &RunEvent::Looked(looked), give_up, now);
            }
            Inbound::Gone(run) => self.apply_event(run, &RunEvent::Gone, give_up, now),
            Inbound::Logged(run, page) => self.logged(run, page, now),
        }
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
        call.log.add_line(Stream::System, said);
    }

    /// Applies an event to a run.
    pub(super) fn apply_event(&mut self, run: LogId, event: &RunEvent, give_up: i64, now: Millis) {
        let Some(part) = self.parts.get_mut(&run) else { return };
        let dos = part.state.apply_event(event, give_up, now);
        if *event == RunEvent::Posted(Posted::Taken) {
            part.lines.at = Some(now.plus_ms(log_after_ms(0)));
        }
        self.apply(run, dos);
        self.schedule_run(run);
    }

    /// Stores when the run is due next.
    pub(super) fn schedule_run(&mut self, run: LogId) {
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
                // The executor of a sent run is always known.
                (RunDo::Look | RunDo::Kill, None) => {}
            }
        }
    }

    /// When the next action is due.
    pub(super) fn next(&self) -> Option<Millis> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Performs the actions that are due.
    pub(super) fn run_due(&mut self, give_up: i64, now: Millis) {
        // Runs that are due again at once wait for the next tick.
        let mut ready = BTreeSet::new();
        while let Some(Reverse((at, run))) = self.due.peek().copied() {
            if at > now {
                break;
            }
            self.due.pop();
            ready.insert(run);
        }
        for run in ready {
            self.ask_for_lines(run, now);
            self.apply_event(run, &RunEvent::Due, give_up, now);
        }
    }

    /// Whether nothing is awaited.
    pub(super) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.parts.is_empty() && self.writes.is_empty()
    }
}
