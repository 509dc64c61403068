//! Sessions that bodies are done with and that are as new, or that the lock of the next body makes so: kept
//! open for it on the same server, for some seconds.
//!
//! A body still has its session to itself. It takes its own session lock and is told its own facts, and
//! whatever ended otherwise than well closes its session, as does a server that cannot be asked to make
//! one as new.

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
/// server ends it, and short enough that nobody finds his `DROP DATABASE` refused for long.
const KEEP: Duration = Duration::from_secs(5);
/// How long one may wait for a body that makes it as new together with its own lock, and how often it is looked
/// for those that nobody took. What a body left there (locks, temporary tables) is left for so long.
const PUT_OFF: Duration = Duration::from_millis(20);
/// How long making one as new may take.
const RENEW: Duration = Duration::from_secs(2);
/// How long a body waits for one: as long as opening another takes.
const WAIT: Duration = Duration::from_millis(100);

/// The sessions of this process that wait for a body.
#[derive(Debug)]
pub struct SessionPool {
    /// At most so many.
    most: usize,
    shelf: Mutex<Shelf<Session>>,
    /// Those that are being made as new.
    renewing: TaskTracker,
    /// Who writes to a file of SQLite, by its URL.
    turns: Mutex<HashMap<String, WriteLockQueue>>,
}

/// Of sessions; tests put something else there.
#[derive(Debug)]
struct Shelf<S> {
    idle: Vec<IdleSession<S>>,
    /// Where each of those that are being made as new leads.
    coming: Vec<SessionTarget>,
    /// Who waits for one of them, the first first.
    waiting: VecDeque<(SessionTarget, oneshot::Sender<S>)>,
    /// Counts the times at which all that was kept was given up.
    cleared: u64,
    is_watched: bool,
    /// Whether somebody sees to those of which making them as new was put off.
    is_seen_to: bool,
}

#[derive(Debug)]
struct IdleSession<S> {
    target: SessionTarget,
    session: S,
    since: Stopwatch,
}

impl SessionPool {
    /// Keeps so many sessions at most, over all servers.
    pub fn new(most: usize) -> Self {
        let (shelf, renewing, turns) = (Mutex::default(), TaskTracker::new(), Mutex::default());
        Self { most, shelf, renewing, turns }
    }

    /// Where sessions of this process to the same file wait for each other.
    pub(crate) fn turns(&self, target: &SessionTarget) -> WriteLockQueue {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry(target.url.clone()).or_default().clone()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<Session>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session to `target` that is as new or that its next lock makes so; the one used last, because the
    /// others may grow old. One that is being made as new is waited for, which is some milliseconds where
    /// opening another is up to a hundred: 10,000 bodies, eight at a time, opened 29 sessions.
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

    /// Takes the session of a body that ended by itself.
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

    /// Makes one as new, in a task of its own: the end of the body before is told meanwhile.
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

    /// Makes those as new of which that was put off and that nobody has taken for so long. Whether there are
    /// any whose time is not over.
    pub fn renew_put_off(self: &Arc<Self>, least: Duration) -> bool {
        let is_due = |idle: &mut IdleSession<Session>| {
            idle.session.is_used() && idle.since.elapsed() >= least
        };
        let mut shelf = self.shelf();
        let due: Vec<IdleSession<Session>> = shelf.idle.extract_if(.., is_due).collect();
        let any = shelf.idle.iter().any(|idle| idle.session.is_used());
        shelf.is_seen_to = any;
        // While nobody can give all up in between.
        let due: Vec<(ReturningSession, Session)> = due
            .into_iter()
            .map(|idle| (ReturningSession::from_shelf(&mut shelf, self, idle.target), idle.session))
            .collect();
        drop(shelf);
        due.into_iter().for_each(|(coming, session)| self.renew(coming, session));
        any
    }

    /// Returns when no session is being made as new.
    pub async fn settled(&self) {
        self.renewing.close();
        self.renewing.wait().await;
        self.renewing.reopen();
    }

    /// Gives up what is kept, and what is on its way here.
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

    /// Gives up what is kept of a server of which one session turned out to be gone.
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

    /// The next that nobody waits for yet.
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

    /// Hands it to who waits for it; gives it back when nobody does.
    fn hand_on(&mut self, target: &SessionTarget, mut session: S) -> Option<S> {
        while let Some(at) = self.waiting.iter().position(|(waits, _)| waits.is_same(target)) {
            match self.waiting.remove(at)?.1.send(session) {
                Ok(()) => return None,
                // Was stopped meanwhile.
                Err(back) => session = back,
            }
        }
        Some(session)
    }

    /// One that was coming has come, or never will: whoever has none left to wait for opens his own, the
    /// last of them.
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

/// A session that is on its way to the shelf, mostly being made as new. Dropped, it does not come, and who
/// waits for it opens one.
struct ReturningSession {
    sessions: Arc<SessionPool>,
    target: SessionTarget,
    /// How often all was given up when it began.
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

    /// It is as new, or the next lock makes it so. Gives back what there is no use for.
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

/// Makes as new what nobody took, until there is nothing of that kind.
async fn see_to(sessions: std::sync::Weak<SessionPool>) {
    loop {
        sleep(PUT_OFF).await;
        if sessions.upgrade().is_none_or(|sessions| !sessions.renew_put_off(PUT_OFF)) {
            return;
        }
    }
}

/// Closes what nobody took, until nothing is left.
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
        // One is spent: two are coming, and two wait.
        shelf.has_come(&here);
        assert_eq!(second.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        // A second one is: the last who waits opens his own.
        shelf.has_come(&here);
        assert_eq!(third.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(shelf.hand_on(&here, 7), None);
        shelf.has_come(&here);
        assert_eq!(second.try_recv(), Ok(7));
        assert_eq!(shelf.hand_on(&here, 8), Some(8));
        assert!(shelf.coming.is_empty() && shelf.waiting.is_empty());
    }
}
