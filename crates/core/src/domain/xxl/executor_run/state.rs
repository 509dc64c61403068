//! State machine of a run: what is known of it, and the effect of each event.

use super::{RunStatus, StopWhy, UnreportedEnd};
use crate::domain::executor::GONE_MS;
use crate::domain::time::Millis;

/// Milliseconds for which a run that was busy before may be idle, without a report of its end,
/// until it counts as lost; also the limit for an idle run of which it is unknown whether it was
/// accepted.
pub const IDLE_MS: i64 = 60_000;
/// Milliseconds until the first poll of an accepted run.
const FIRST_LOOK_MS: i64 = 1_000;
/// Milliseconds between two polls.
const LOOK_MS: i64 = 30_000;
/// Milliseconds between two polls of a run that is being stopped, at first.
const STOPPING_LOOK_MS: i64 = 250;
/// The same, at last.
const STOPPING_LOOK_MAX_MS: i64 = 2_000;
/// Milliseconds between two stop orders.
const KILL_AGAIN_MS: i64 = 5_000;

/// Result of the call to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Posted {
    /// The executor accepted it.
    Taken,
    /// The executor refused, with its reason.
    Refused(String),
    /// Nothing was sent; with the reason.
    NotSent(String),
    /// It was sent, and the answer does not tell whether it was accepted.
    Unknown(String),
}

/// An executor's answer about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// It is running the job, or has a run of it queued.
    Busy,
    /// It is not.
    Idle,
    /// It did not answer.
    Silent,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The call to run was answered, or failed.
    Posted(Posted),
    /// A poll was answered, or failed.
    Looked(Looked),
    /// The job is to be stopped.
    Stop(StopWhy),
    /// Its next poll is due.
    Due,
    /// Its executor has gone: it neither answers nor registers.
    Gone,
    /// Its end is recorded in the row.
    Told,
}

/// An action to perform; writes come before calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunDo {
    /// Record that the executor accepted it.
    Began,
    /// Record that it was seen busy.
    SawBusy,
    /// Record since when it is idle.
    SawIdle,
    /// Record that it is being stopped.
    Stopping(StopWhy),
    /// Record how it ended, unless an executor reported its end.
    End(UnreportedEnd, String),
    /// Call the next executor, if there is one; otherwise it was not reached.
    Next(String),
    /// Poll whether it is busy.
    Look,
    /// Send the stop order.
    Kill,
    /// Check whether its executor is still registered.
    Miss,
}

/// What is known of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunState {
    /// State.
    pub status: RunStatus,
    /// Whether this process is waiting for the answer to the call to run.
    pub is_posting: bool,
    /// Whether its executor has reported it busy.
    pub was_busy: bool,
    /// Since when its executor reports it idle.
    pub idle_since: Option<Millis>,
    /// When the executor last answered anything.
    pub heard: Millis,
    /// Why it is being stopped.
    pub stopping: Option<StopWhy>,
    /// When the stop was requested.
    pub stop_at: Option<Millis>,
    /// When the stop order was last sent.
    pub killed_at: Option<Millis>,
    /// Whether a poll is in flight.
    pub is_looking: bool,
    /// When the next poll is due.
    pub next: Option<Millis>,
}

impl RunState {
    /// A waiting run.
    pub fn waiting(now: Millis) -> Self {
        Self {
            status: RunStatus::Waiting,
            is_posting: false,
            was_busy: false,
            idle_since: None,
            heard: now,
            stopping: None,
            stop_at: None,
            killed_at: None,
            is_looking: false,
            next: None,
        }
    }

    /// A run recorded by an earlier process; it is polled at once.
    pub fn found(
        status: RunStatus,
        was_busy: bool,
        idle_since: Option<Millis>,
        stopping: Option<StopWhy>,
        now: Millis,
    ) -> Self {
        let next = matches!(status, RunStatus::Asked | RunStatus::Running).then_some(now);
        let stop_at = stopping.map(|_| now);
        Self { status, was_busy, idle_since, stopping, stop_at, next, ..Self::waiting(now) }
    }

    /// Applies an event. `give_up_ms` limits the wait for a run that is being stopped.
    pub fn apply_event(&mut self, event: &RunEvent, give_up_ms: i64, now: Millis) -> Vec<RunDo> {
        if !self.status.is_open() {
            return Vec::new();
        }
        match event {
            RunEvent::Told => {
                self.mark_finished();
                Vec::new()
            }
            RunEvent::Stop(why) => self.request_stop(*why, now),
            RunEvent::Posted(answer) if self.is_posting => self.posted(answer, now),
            RunEvent::Looked(looked) if self.is_looking => self.looked(*looked, give_up_ms, now),
            RunEvent::Gone => {
                let said = "its executor is gone: it has not answered, nor said that it is there, \
                            for 90 s; whether the run took effect is not known";
                self.finish_run(UnreportedEnd::Lost, said.to_owned())
            }
            RunEvent::Due => self.handle_due(give_up_ms, now),
            RunEvent::Posted(_) | RunEvent::Looked(_) => Vec::new(),
        }
    }

    fn mark_finished(&mut self) {
        (self.status, self.next) = (RunStatus::Told, None);
        (self.is_posting, self.is_looking) = (false, false);
    }

    fn finish_run(&mut self, ended: UnreportedEnd, said: String) -> Vec<RunDo> {
        self.mark_finished();
        vec![RunDo::End(ended, said)]
    }

    fn request_stop(&mut self, why: StopWhy, now: Millis) -> Vec<RunDo> {
        if self.stopping.is_some() {
            return Vec::new();
        }
        (self.stopping, self.stop_at) = (Some(why), Some(now));
        match self.status {
            RunStatus::Waiting => {
                self.finish_run(UnreportedEnd::Stopped(why), "no executor was asked".to_owned())
            }
            _ => {
                // While the call to run is unanswered there is nothing to stop yet.
                self.next = Some(now);
                vec![RunDo::Stopping(why)]
            }
        }
    }

    /// No other executor can be called.
    pub fn not_reached(&mut self, said: String) -> Vec<RunDo> {
        self.finish_run(UnreportedEnd::NotReached, said)
    }

    /// Records that an executor is about to be called.
    pub fn begin_posting(&mut self, now: Millis) {
        (self.status, self.is_posting, self.heard) = (RunStatus::Asked, true, now);
    }

    fn posted(&mut self, answer: &Posted, now: Millis) -> Vec<RunDo> {
        self.is_posting = false;
        match (answer, self.stopping) {
            (Posted::Taken, _) => {
                (self.status, self.heard) = (RunStatus::Running, now);
                let first = if self.stopping.is_some() { 0 } else { FIRST_LOOK_MS };
                self.next = Some(now.plus_ms(first));
                vec![RunDo::Began]
            }
            (Posted::Unknown(_), _) => {
                self.next = Some(now);
                Vec::new()
            }
            (Posted::Refused(_) | Posted::NotSent(_), Some(why)) => {
                self.finish_run(UnreportedEnd::Stopped(why), "no executor has taken it".to_owned())
            }
            (Posted::Refused(said), None) => self.finish_run(UnreportedEnd::Refused, said.clone()),
            (Posted::NotSent(said), None) => {
                self.status = RunStatus::Waiting;
                vec![RunDo::Next(said.clone())]
            }
        }
    }

    fn handle_due(&mut self, give_up_ms: i64, now: Millis) -> Vec<RunDo> {
        if self.next.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.next = None;
        if self.is_too_late(give_up_ms, now) {
            return self.give_up();
        }
        if self.is_posting || self.is_looking {
            // Polling continues after the answer; a stop has a time limit anyway.
            self.next = self.stop_at.map(|at| at.plus_ms(give_up_ms)).filter(|at| *at > now);
            return Vec::new();
        }
        self.is_looking = true;
        vec![RunDo::Look]
    }

    fn is_too_late(&self, give_up_ms: i64, now: Millis) -> bool {
        self.stop_at.is_some_and(|at| now.since(at) >= give_up_ms)
    }

    fn give_up(&mut self) -> Vec<RunDo> {
        let said = "it was ordered to stop, and its executor has not reported its end; it may still be running";
        self.finish_run(UnreportedEnd::Unconfirmed, said.to_owned())
    }

    fn looked(&mut self, looked: Looked, give_up_ms: i64, now: Millis) -> Vec<RunDo> {
        self.is_looking = false;
        let mut dos = Vec::new();
        match looked {
            Looked::Busy => {
                (self.heard, self.idle_since) = (now, None);
                if self.status == RunStatus::Asked {
                    self.status = RunStatus::Running;
                    dos.push(RunDo::Began);
                }
                if !self.was_busy {
                    self.was_busy = true;
                    dos.push(RunDo::SawBusy);
                }
            }
            Looked::Idle => {
                self.heard = now;
                if self.idle_since.is_none() {
                    self.idle_since = Some(now);
                    dos.push(RunDo::SawIdle);
                }
            }
            Looked::Silent => {}
        }
        dos.extend(match self.stopping {
            Some(_) => self.continue_stop(give_up_ms, now),
            None => self.watch_on(looked, now),
        });
        dos
    }

    /// Repeats the stop order until the executor reports the end of the run, or the time limit has
    /// passed.
    ///
    /// An idle executor proves nothing: XXL-JOB in Java (2.5.0 and 3.4.2, measured) forgets a job
    /// at `/kill` and answers "idle" at once, while a handler that ignores interrupts (blocking
    /// JDBC) continues for an unlimited time; the next run began 11 to 12 s beside it.
    fn continue_stop(&mut self, give_up: i64, now: Millis) -> Vec<RunDo> {
        if self.is_too_late(give_up, now) {
            return self.give_up();
        }
        let age = self.stop_at.map_or(0, |at| now.since(at));
        let pause = (age / 2).clamp(STOPPING_LOOK_MS, STOPPING_LOOK_MAX_MS);
        let last = self.stop_at.map_or(now, |at| at.plus_ms(give_up));
        self.next = Some(now.plus_ms(pause).min(last.max(now)));
        if self.killed_at.is_some_and(|at| now.since(at) < KILL_AGAIN_MS) {
            return Vec::new();
        }
        self.killed_at = Some(now);
        vec![RunDo::Kill]
    }

    fn watch_on(&mut self, looked: Looked, now: Millis) -> Vec<RunDo> {
        self.next = Some(now.plus_ms(LOOK_MS));
        let idle = self.idle_since.map_or(0, |since| now.since(since));
        let is_believed = self.was_busy || self.status == RunStatus::Asked;
        if looked == Looked::Idle && is_believed && idle >= IDLE_MS {
            let said = match self.status {
                RunStatus::Asked => {
                    "its executor gave no answer when it was asked, does not run it, and has not \
                     told its end; whether it ran is not known"
                }
                _ => {
                    "its executor ran it, does not any more, and has not told its end for 60 s; it may \
                     have been started anew. Whether the run took effect is not known"
                }
            };
            return self.finish_run(UnreportedEnd::Lost, said.to_owned());
        }
        if looked == Looked::Silent && now.since(self.heard) >= GONE_MS {
            return vec![RunDo::Miss];
        }
        Vec::new()
    }
}
