//! Stops what runs on a server in increasingly forceful steps, and checks until it is gone.
//!
//! Dropping the connection stops nothing. On PostgreSQL: cancel repeatedly, because a body that
//! catches `query_canceled` swallows it and then reports success; end the session after the grace
//! period; check the process list. On MySQL and MariaDB the session is ended at once, because `KILL
//! QUERY` ends one statement of a procedure and not the procedure: a SLEEP returns 1, a CONTINUE
//! handler catches the rest, and the next statement runs. The requested stop determines the
//! outcome, not what the server returned meanwhile.

use crate::db::control::Control;
use crate::db::fault::{ErrorCondition, SessionError};
use crate::db::session::{Brake, Session, SessionId, SessionTarget};
use crate::db::target::{StopMeans, TargetDatabase};
use crate::domain::job::outcome::{JobOutputs, Stream};
use crate::handler::liveness_probe::WatchedSession;
use crate::handler::run_on_source::BodyFault;
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{Context, StopReason, UNCONFIRMED};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Interval between two cancels.
const REPEAT: Duration = Duration::from_millis(200);
/// Maximum time that the end of a job waits for one query about its session.
const TELL_WITHIN: Duration = Duration::from_secs(2);
/// Time limit for the proof that a session holds its lock. A new session over TLS takes eight round
/// trips, 0.8 s on a connection with 100 ms latency; a quarter of the default lease, which is what
/// is left when the process is fenced, is 3.75 s.
const PROOF_WITHIN: Duration = Duration::from_millis(1_500);
/// Poll interval of the process list.
const LOOK: Duration = Duration::from_millis(50);

/// How a guarded body ended.
pub(crate) enum GuardedEnd {
    /// By itself.
    Own(Result<JobOutputs, BodyFault>),
    /// It was stopped; its future has ended and its session can be closed.
    Stopped(StopReason),
    /// It was stopped; its future had to be dropped, the flag tells whether it is gone.
    LeftBehind(StopReason, bool),
}

/// The means to stop one session.
pub(crate) struct Ladder<'a> {
    target: &'a SessionTarget,
    lock_name: &'a str,
    ctx: &'a Context,
    database: &'static dyn TargetDatabase,
    id: Option<SessionId>,
    brake: Brake,
    was_sent: AtomicBool,
    /// The present obstacle to querying the server, if any.
    trouble: Mutex<Option<String>>,
}

impl<'a> Ladder<'a> {
    /// The escalation for `session`.
    pub(crate) fn new(
        session: &Session,
        target: &'a SessionTarget,
        lock_name: &'a str,
        ctx: &'a Context,
    ) -> Self {
        Self {
            target,
            lock_name,
            ctx,
            database: session.database(),
            id: session.id().cloned(),
            brake: session.brake(),
            was_sent: AtomicBool::new(false),
            trouble: Mutex::new(None),
        }
    }

    /// The escalation for the session `id` of a dead worker, which was found through `session`.
    pub(crate) fn of_orphan(
        session: &Session,
        id: SessionId,
        target: &'a SessionTarget,
        lock_name: &'a str,
        ctx: &'a Context,
    ) -> Self {
        Self { id: Some(id), ..Self::new(session, target, lock_name, ctx) }
    }

    /// `session 42`
    pub(crate) fn name(&self) -> String {
        self.id.as_ref().map_or("the session".to_owned(), |id| format!("session {}", id.number))
    }

    /// The text for an outcome whose end could not be confirmed.
    pub(crate) fn unconfirmed(&self) -> String {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let why = trouble.as_ref().map_or(String::new(), |trouble| format!(" ({trouble})"));
        format!("{UNCONFIRMED}: {} may still run on the server{why}", self.name())
    }

    /// Releases the session to the pool: it must not be stopped any more.
    pub(crate) fn give_back(&self, session: Session) {
        self.ctx.sessions.keep_session(self.target.clone(), session);
    }

    fn log_line(&self, text: impl AsRef<str>) {
        self.ctx.log.add_line(Stream::System, text);
    }

    /// Runs `work` to its end, or stops it on request. When its connection is found dead, it is
    /// dropped and ends like any lost connection.
    pub(crate) async fn guard(
        &self,
        work: impl Future<Output = Result<JobOutputs, BodyFault>>,
    ) -> GuardedEnd {
        let mut work = pin!(self.watched(work));
        let reason = tokio::select! {
            biased;
            done = &mut work => return GuardedEnd::Own(done),
            reason = self.reason_to_stop() => reason,
        };
        self.log_line(match reason {
            StopReason::TimedOut => "its time is up: stopping it on the server",
            StopReason::Killed => "it is to stop: stopping it on the server",
            StopReason::HandedBack => "this process leaves: stopping it on the server",
            StopReason::Fenced => "this process lost its lease: stopping it on the server",
            StopReason::Disowned => {
                "its row is another process's by now: stopping it on the server"
            }
        });
        self.brake.cancel();
        tokio::select! {
            biased;
            done = &mut work => self.judge(done, reason),
            gone = self.climb(self.grace(reason)) => GuardedEnd::LeftBehind(reason, gone),
        }
    }

    /// Returns when the task must stop. A task whose server confirms that its session holds the
    /// job's lock survives a lost lease of this process: nothing else can start the job, and
    /// stopping it would turn an outage of the metadata database into one of the job. Confirmed
    /// repeatedly while the lease is lost, because a procedure may free all locks of its session.
    async fn reason_to_stop(&self) -> StopReason {
        loop {
            let reason = self.ctx.stopped().await;
            if reason != StopReason::Fenced || self.holds_lock().await != Some(true) {
                return reason;
            }
            self.log_line(format!(
                "this process cannot renew its lease; {} holds the lock of this job on its server, so that nothing else \
                 starts it: it goes on",
                self.name()
            ));
            if let Some(reason) = self.outlive_lease().await {
                return reason;
            }
            self.log_line("this process has its lease again");
        }
    }

    /// Waits while the lease is lost; returns the reason when the task must stop meanwhile.
    async fn outlive_lease(&self) -> Option<StopReason> {
        loop {
            tokio::select! {
                biased;
                reason = self.ctx.stopped_for_good() => return Some(reason),
                () = self.ctx.lease_is_held() => return None,
                () = sleep(self.ctx.options.look_every) => {}
            }
            // An unknown state was fine a moment ago; whether the session is alive is checked
            // separately.
            if self.holds_lock().await == Some(false) {
                return Some(StopReason::Fenced);
            }
        }
    }

    /// Whether the server confirms that the task's session holds the job's lock; `None` when that
    /// cannot be learnt in time.
    async fn holds_lock(&self) -> Option<bool> {
        let id = self.id.as_ref()?;
        let look = async {
            let mut control = Control::open_control(self.target).await.ok()??;
            let holds = control.holds_lock(id, self.lock_name).await.ok();
            control.close().await;
            holds
        };
        timeout(PROOF_WITHIN, look).await.ok().flatten()
    }

    async fn watched(
        &self,
        work: impl Future<Output = Result<JobOutputs, BodyFault>>,
    ) -> Result<JobOutputs, BodyFault> {
        let Some(id) = &self.id else { return work.await };
        let watched = WatchedSession { target: self.target, id, lock_name: self.lock_name };
        tokio::select! {
            biased;
            done = work => done,
            why = self.ctx.watchers.wait_until_dead(watched, self.ctx.options.look_every) => {
                self.log_line(format!("gives the connection of {} up: {why}", self.name()));
                Err(BodyFault::At("while it ran".to_owned(), SessionError::Lost(why)))
            }
        }
    }

    /// Nothing may run after the moment at which another process takes the row of a fenced process.
    fn grace(&self, reason: StopReason) -> Duration {
        match reason {
            StopReason::TimedOut | StopReason::Killed | StopReason::HandedBack => {
                self.ctx.options.kill_grace
            }
            StopReason::Fenced | StopReason::Disowned => Duration::ZERO,
        }
    }

    /// A body that ended before the first cancel was sent has ended by itself.
    fn judge(&self, done: Result<JobOutputs, BodyFault>, reason: StopReason) -> GuardedEnd {
        let was_braked = matches!(done, Err(BodyFault::At(_, SessionError::Braked)));
        let was_sent = match self.database.capabilities().stop {
            // The cancellation flag is the cancel, and COMMIT obeys it: a success is a success.
            StopMeans::Flag => done.is_err(),
            StopMeans::EndSession | StopMeans::CancelFirst => self.was_sent.load(Ordering::SeqCst),
        };
        if was_braked || was_sent { GuardedEnd::Stopped(reason) } else { GuardedEnd::Own(done) }
    }

    /// Cancels until the grace period is over, then ends the session; returns whether it is gone.
    /// The body's future is polled at the same time and usually ends first.
    ///
    /// Without a grace period, and on MySQL, nothing is cancelled at all: a swallowed cancel lets a
    /// procedure continue with its next statement (`DO SLEEP (30); INSERT …` inserted), the end of
    /// its session never.
    pub(crate) async fn climb(&self, grace: Duration) -> bool {
        let Some(id) = &self.id else {
            // SQLite checks the flag every thousand steps; only a lock wait takes longer.
            sleep(grace + self.ctx.options.kill_confirm).await;
            return false;
        };
        if self.database.capabilities().stop == StopMeans::EndSession {
            let within = grace + self.ctx.options.kill_confirm;
            return self.confirm_within(Duration::ZERO, within).await;
        }
        let start = Stopwatch::start();
        let (mut control, mut sent, mut is_said) = (None, 0_u32, false);
        while start.elapsed() < grace {
            if let Some(open) = self.connected(&mut control).await {
                // Set before sending: the body may end at once, and this future with it.
                self.was_sent.store(true, Ordering::SeqCst);
                if !std::mem::replace(&mut is_said, true) {
                    self.log_line(format!("{} sent", self.database.cancel_request(id.number)));
                }
                match timeout(self.target.timeout, open.cancel(id)).await {
                    Ok(Ok(true)) => sent += 1,
                    Ok(Ok(false)) => return self.confirm(Duration::ZERO).await,
                    Ok(Err(error)) => self.complain(&mut control, "cancel", &error).await,
                    Err(_) => self.forget(&mut control),
                }
            }
            sleep(REPEAT).await;
        }
        match grace.is_zero() {
            true => self.log_line("there is no time to wait: ending its session"),
            false => self.log_line(format!("still runs after {sent} cancels: ending its session")),
        }
        self.confirm(Duration::ZERO).await
    }

    /// Polls the process list until the session is gone, ending it if it is still there after
    /// `patience`; `false` if it never disappeared. A large transaction stays in the list while it
    /// is rolled back, which is correct: its rows still count.
    pub(crate) async fn confirm(&self, patience: Duration) -> bool {
        self.confirm_within(patience, self.ctx.options.kill_confirm).await
    }

    async fn confirm_within(&self, patience: Duration, within: Duration) -> bool {
        let Some(id) = &self.id else { return true };
        let start = Stopwatch::start();
        let (mut control, mut last_end) = (None, None::<Stopwatch>);
        while start.elapsed() < within {
            if let Some(open) = self.connected(&mut control).await {
                let look = timeout(self.target.timeout, open.is_alive(id, self.lock_name)).await;
                match look {
                    Ok(Ok(false)) => {
                        let seconds = start.elapsed().as_secs_f64();
                        self.log_line(format!(
                            "session {} is gone after {seconds:.1} s",
                            id.number
                        ));
                        close(control).await;
                        return true;
                    }
                    Ok(Ok(true)) => {
                        let is_time = last_end.is_none_or(|at| at.elapsed() > 5 * REPEAT);
                        if start.elapsed() >= patience && is_time {
                            self.end_session(id, &mut control, last_end.is_none()).await;
                            last_end = Some(Stopwatch::start());
                        }
                    }
                    Ok(Err(error)) => self.complain(&mut control, "look for it", &error).await,
                    Err(_) => self.forget(&mut control),
                }
            }
            sleep(LOOK).await;
        }
        self.log_line(format!("session {} could not be seen to go", id.number));
        false
    }

    async fn end_session(&self, id: &SessionId, control: &mut Option<Control>, is_first: bool) {
        let Some(open) = control else { return };
        self.was_sent.store(true, Ordering::SeqCst);
        if is_first {
            self.log_line(format!("{} sent", self.database.end_request(id.number)));
        }
        match timeout(self.target.timeout, open.terminate(id)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => self.complain(control, "end its session", &error).await,
            Err(_) => self.forget(control),
        }
    }

    /// The control connection, opened when there is none; `None` when it cannot be opened now.
    async fn connected<'c>(&self, control: &'c mut Option<Control>) -> Option<&'c mut Control> {
        if control.is_none() {
            match Control::open_control(self.target).await {
                Ok(open) => {
                    self.is_well();
                    *control = open;
                }
                Err(error) => self.stumble(format!("no second connection to stop it: {error}")),
            }
        }
        control.as_mut()
    }

    /// Logs an obstacle once for as long as it stays the same: it occurs every 50 ms.
    fn stumble(&self, said: String) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.as_ref() != Some(&said) {
            self.log_line(&said);
            *trouble = Some(said);
        }
    }

    fn forget(&self, control: &mut Option<Control>) {
        self.stumble(format!("the server did not answer within {:?}", self.target.timeout));
        *control = None;
    }

    fn is_well(&self) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn complain(&self, control: &mut Option<Control>, what: &str, error: &SessionError) {
        let is_refused = error.is(ErrorCondition::NotStoppable);
        let hint = if is_refused { self.database.not_stoppable_hint() } else { "" };
        self.stumble(format!("could not {what}: {error}{hint}"));
        if !matches!(error, SessionError::Database(_)) {
            *control = None;
        }
    }

    /// After a lost connection: logs whether the session is still alive, polling for a second
    /// because an ending session needs a moment to leave the list. It is not stopped: it may be
    /// about to succeed, and the session lock keeps a second start away from it.
    ///
    /// The job's end waits for this, so it takes no longer than `TELL_WITHIN`: an unreachable
    /// server that drops packets made it wait 8 to 10 s for a connection, only to log that nothing
    /// could be learnt.
    pub(crate) async fn tell_what_became(&self) {
        let Some(id) = &self.id else { return };
        let (mut control, mut is_alive) = (None, None);
        let look = async {
            for _ in 0..5 {
                let Some(open) = self.connected(&mut control).await else { break };
                match timeout(self.target.timeout, open.is_alive(id, self.lock_name)).await {
                    Ok(Ok(answer)) => is_alive = Some(answer),
                    Ok(Err(error)) => self.complain(&mut control, "look for it", &error).await,
                    Err(_) => self.forget(&mut control),
                }
                if is_alive == Some(false) {
                    break;
                }
                sleep(REPEAT).await;
            }
        };
        if timeout(TELL_WITHIN, look).await.is_err() {
            // The connection may be in the middle of an answer.
            control = None;
        }
        self.log_line(match is_alive {
            Some(true) => format!("{} still runs; a second start waits for it", self.name()),
            Some(false) => format!("{} is gone from the server", self.name()),
            None => format!("whether {} still runs could not be learnt", self.name()),
        });
        close(control).await;
    }
}

async fn close(control: Option<Control>) {
    if let Some(control) = control {
        control.close().await;
    }
}
