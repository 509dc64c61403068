//! The pool of sessions whose bodies have ended: a session that is reset, or will be reset together
//! with the next lock, is kept open for the next body on the same server, for some seconds.
//!
//! A body still has its session to itself. It takes its own session lock and sets its own facts. A
//! session is closed after any end but a success, and on a server that cannot reset sessions.

use crate::db::session::{Session, SessionTarget};
use crate::db::session_reset::Renewal;
use crate::db::sqlite_write_lock::WriteLockQueue;
use crate::handler::stopwatch::Stopwatch;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

/// How long a session waits for the next body. Much shorter than `source.idle_sec`, after which the
/// server ends it, and short enough that no `DROP DATABASE` is blocked for long.
const KEEP: Duration = Duration::from_secs(5);
/// How long a session may wait to be reset together with the next body's lock, and the interval at
/// which unclaimed ones are reset. What a body left there (locks, temporary tables) stays that
/// long.
const PUT_OFF: Duration = Duration::from_millis(20);
/// Time limit of a reset.
const RENEW: Duration = Duration::from_secs(2);
/// How long a body waits for a session that is being reset: as long as opening another takes.
const WAIT: Duration = Duration::from_millis(100);

/// The idle sessions of this process.
#[derive(Debug)]
pub struct SessionPool {
    /// Maximum number of idle sessions.
    most: usize,
    shelf: Mutex<Shelf<Session>>,
    /// Sessions that are being reset.
    renewing: TaskTracker,
    /// The write lock queues of SQLite files, by URL.
    turns: Mutex<HashMap<String, WriteLockQueue>>,
}

/// The idle sessions; generic for tests.
#[derive(Debug)]
struct Shelf<S> {
    idle: Vec<IdleSession<S>>,
    /// The targets of the sessions that are being reset.
    coming: Vec<SessionTarget>,
    /// Bodies waiting for one of them, in order of arrival.
    waiting: VecDeque<(SessionTarget, oneshot::Sender<S>)>,
    /// Number of times that all sessions were dropped.
    cleared: u64,
    is_watched: bool,
    /// Whether a task resets the sessions whose reset was postponed.
    is_seen_to: bool,
}

#[derive(Debug)]
struct IdleSession<S> {
    target: SessionTarget,
    session: S,
    since: Stopwatch,
}

impl SessionPool {
    /// A pool of at most `most` sessions, over all servers.
    pub fn new(most: usize) -> Self {
        let (shelf, renewing, turns) = (Mutex::default(), TaskTracker::new(), Mutex::default());
        Self { most, shelf, renewing, turns }
    }

    /// The queue in which sessions of this process wait to write to the same file.
    pub(crate) fn turns(&self, target: &SessionTarget) -> WriteLockQueue {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry(target.url.clone()).or_default().clone()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<Session>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session to `target` that is reset or will be by its next lock; the most recently used one,
    /// so that the others can expire. One that is being reset is waited for, which takes some
    /// milliseconds while opening another takes up to a hundred: 10,000 bodies, eight at a time,
    /// opened 29 sessions.
    pub(crate) async fn take_session(&self, target: &SessionTarget) -> Option<Session> {
        let coming = {
            let mut shelf = self.shelf();
            match shelf.idle_for(target) {
                Some(session) => return Some(session),
                None => shelf.coming_for(target)?,
            }
        };
        timeout(WAIT, coming).await.ok()?.ok()
    }

    /// Takes back the session of a body that succeeded.
    pub(crate) fn keep_session(self: &Arc<Self>, target: SessionTarget, mut session: Session) {
        if !session.put_renewal_off() {
            return self.renew(ReturningSession::new(self, target), session);
        }
        if let Some(session) = ReturningSession::new(self, target).arrive(session) {
            self.renewing.spawn(session.close());
        } else if !std::mem::replace(&mut self.shelf().is_seen_to, true) {
            tokio::spawn(see_to(Arc::downgrade(self)));
        }
    }

    /// Resets a session in a task of its own, so that the end of its body is reported meanwhile.
    fn renew(self: &Arc<Self>, coming: ReturningSession, mut session: Session) {
        self.renewing.spawn(async move {
            let renewed = timeout(RENEW, session.renew()).await;
            let left = match renewed {
                Ok(Ok(Renewal::AsNew)) => coming.arrive(session),
                _ => {
                    drop(coming);
                    Some(session)
                }
            };
            if let Some(session) = left {
                session.close().await;
            }
        });
    }

    /// Resets sessions whose reset was postponed and that were not claimed for `least`. Returns
    /// whether there are younger ones.
    pub fn renew_put_off(self: &Arc<Self>, least: Duration) -> bool {
        let is_due = |idle: &mut IdleSession<Session>| {
            idle.session.is_used() && idle.since.elapsed() >= least
        };
        let mut shelf = self.shelf();
        let due: Vec<IdleSession<Session>> = shelf.idle.extract_if(.., is_due).collect();
        let any = shelf.idle.iter().any(|idle| idle.session.is_used());
        shelf.is_seen_to = any;
        // While the lock is held, so that `clear` cannot come in between.
        let due: Vec<(ReturningSession, Session)> = due
            .into_iter()
            .map(|idle| (ReturningSession::from_shelf(&mut shelf, self, idle.target), idle.session))
            .collect();
        drop(shelf);
        due.into_iter().for_each(|(coming, session)| self.renew(coming, session));
        any
    }

    /// Returns when no session is being reset.
    pub async fn settled(&self) {
        self.renewing.close();
        self.renewing.wait().await;
        self.renewing.reopen();
    }

    /// Drops all idle sessions, and those being reset.
    pub async fn clear(&self) {
        let all = {
            let mut shelf = self.shelf();
            shelf.cleared += 1;
            std::mem::take(&mut shelf.idle)
        };
        for idle in all {
            idle.session.close().await;
        }
        self.settled().await;
    }

    /// Drops the idle sessions of a server of which one session turned out to be gone.
    pub(crate) fn forget(&self, target: &SessionTarget) {
        self.shelf().idle.retain(|idle| !idle.target.is_same(target));
    }
}

impl<S> Default for Shelf<S> {
    fn default() -> Self {
        let (idle, coming, waiting) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { idle, coming, waiting, cleared: 0, is_watched: false, is_seen_to: false }
    }
}

impl<S> Shelf<S> {
    fn idle_for(&mut self, target: &SessionTarget) -> Option<S> {
        let fits =
            |idle: &IdleSession<S>| idle.since.elapsed() < KEEP && idle.target.is_same(target);
        let at = self.idle.iter().rposition(fits)?;
        Some(self.idle.remove(at).session)
    }

    /// The next session being reset that no body waits for yet.
    fn coming_for(&mut self, target: &SessionTarget) -> Option<oneshot::Receiver<S>> {
        self.waiting.retain(|(_, waiter)| !waiter.is_closed());
        if self.coming_to(target) <= self.waiting_for(target) {
            return None;
        }
        let (sender, coming) = oneshot::channel();
        self.waiting.push_back((target.clone(), sender));
        Some(coming)
    }

    fn coming_to(&self, target: &SessionTarget) -> usize {
        self.coming.iter().filter(|coming| coming.is_same(target)).count()
    }

    fn waiting_for(&self, target: &SessionTarget) -> usize {
        self.waiting.iter().filter(|(waits, _)| waits.is_same(target)).count()
    }

    /// Passes the session to a waiting body; returns it if there is none.
    fn hand_on(&mut self, target: &SessionTarget, mut session: S) -> Option<S> {
        while let Some(at) = self.waiting.iter().position(|(waits, _)| waits.is_same(target)) {
            match self.waiting.remove(at)?.1.send(session) {
                Ok(()) => return None,
                // The body was stopped meanwhile.
                Err(back) => session = back,
            }
        }
        Some(session)
    }

    /// A session that was being reset has arrived, or never will: bodies without one left to wait
    /// for open their own, last arrivals first.
    fn has_come(&mut self, target: &SessionTarget) {
        if let Some(at) = self.coming.iter().position(|coming| coming.is_same(target)) {
            self.coming.swap_remove(at);
        }
        self.waiting.retain(|(_, waiter)| !waiter.is_closed());
        let last = self.waiting.iter().rposition(|(waits, _)| waits.is_same(target));
        if self.waiting_for(target) > self.coming_to(target)
            && let Some(last) = last
        {
            self.waiting.remove(last);
        }
    }
}

/// A session on its way back to the pool, mostly being reset. If it is dropped, it does not arrive,
/// and a waiting body opens its own.
struct ReturningSession {
    sessions: Arc<SessionPool>,
    target: SessionTarget,
    /// The value of `cleared` when the reset began.
    cleared: u64,
}

impl ReturningSession {
    fn new(sessions: &Arc<SessionPool>, target: SessionTarget) -> Self {
        Self::from_shelf(&mut sessions.shelf(), sessions, target)
    }

    fn from_shelf(
        shelf: &mut Shelf<Session>,
        sessions: &Arc<SessionPool>,
        target: SessionTarget,
    ) -> Self {
        shelf.coming.push(target.clone());
        Self { sessions: Arc::clone(sessions), target, cleared: shelf.cleared }
    }

    /// The session is reset, or the next lock resets it. Returns a session that is not needed.
    fn arrive(self, session: Session) -> Option<Session> {
        let mut shelf = self.sessions.shelf();
        if shelf.cleared != self.cleared {
            return Some(session);
        }
        let session = shelf.hand_on(&self.target, session)?;
        if shelf.idle.len() >= self.sessions.most {
            return Some(session);
        }
        let (target, since) = (self.target.clone(), Stopwatch::start());
        shelf.idle.push(IdleSession { target, session, since });
        if !std::mem::replace(&mut shelf.is_watched, true) {
            tokio::spawn(watch(Arc::downgrade(&self.sessions)));
        }
        None
    }
}

impl Drop for ReturningSession {
    fn drop(&mut self) {
        self.sessions.shelf().has_come(&self.target);
    }
}

/// Resets unclaimed sessions, until there is none of that kind.
async fn see_to(sessions: std::sync::Weak<SessionPool>) {
    loop {
        sleep(PUT_OFF).await;
        if sessions.upgrade().is_none_or(|sessions| !sessions.renew_put_off(PUT_OFF)) {
            return;
        }
    }
}

/// Closes unclaimed sessions, until none is left.
async fn watch(sessions: std::sync::Weak<SessionPool>) {
    loop {
        sleep(KEEP).await;
        let Some(sessions) = sessions.upgrade() else { return };
        let (old, is_over): (Vec<IdleSession<Session>>, bool) = {
            let mut shelf = sessions.shelf();
            let old = shelf.idle.extract_if(.., |idle| idle.since.elapsed() >= KEEP).collect();
            shelf.is_watched = !shelf.idle.is_empty();
            (old, !shelf.is_watched)
        };
        for idle in old {
            idle.session.close().await;
        }
        if is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::session::let_all_through;

    fn to(url: &str) -> SessionTarget {
        let (url, label) = (url.to_owned(), String::new());
        SessionTarget {
            url,
            password: None,
            label,
            timeout: Duration::from_secs(1),
            guard: let_all_through,
        }
    }

    #[test]
    fn one_waits_for_each_that_is_coming_to_the_same_server() {
        let (mut shelf, here) = (Shelf::<u8>::default(), to("mysql://here/x"));
        assert!(shelf.coming_for(&here).is_none());
        shelf.coming = vec![here.clone(), to("mysql://there/x"), here.clone()];
        let (mut first, mut second) = (shelf.coming_for(&here), shelf.coming_for(&here));
        assert!(first.is_some() && second.is_some() && shelf.coming_for(&here).is_none());
        assert_eq!(shelf.hand_on(&to("mysql://there/x"), 1), Some(1));
        assert_eq!(shelf.hand_on(&here, 2), None);
        shelf.has_come(&here);
        assert_eq!(shelf.hand_on(&here, 3), None);
        shelf.has_come(&here);
        let got = |one: &mut Option<oneshot::Receiver<u8>>| one.as_mut()?.try_recv().ok();
        assert_eq!((got(&mut first), got(&mut second)), (Some(2), Some(3)));
        assert_eq!((shelf.coming.len(), shelf.waiting.len()), (1, 0));
    }

    #[test]
    fn who_has_none_to_wait_for_is_told_and_who_was_stopped_is_passed_over() {
        let (mut shelf, here) = (Shelf::<u8>::default(), to("mysql://here/x"));
        shelf.coming = vec![here.clone(), here.clone(), here.clone()];
        let stopped = shelf.coming_for(&here);
        let mut second = shelf.coming_for(&here).expect("one is coming");
        let mut third = shelf.coming_for(&here).expect("one is coming");
        drop(stopped);
        // One is gone: two are being reset, and two bodies wait.
        shelf.has_come(&here);
        assert_eq!(second.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        // A second one is: the last waiting body opens its own.
        shelf.has_come(&here);
        assert_eq!(third.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(shelf.hand_on(&here, 7), None);
        shelf.has_come(&here);
        assert_eq!(second.try_recv(), Ok(7));
        assert_eq!(shelf.hand_on(&here, 8), Some(8));
        assert!(shelf.coming.is_empty() && shelf.waiting.is_empty());
    }
}
