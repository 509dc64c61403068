//! Sessions that bodies are done with and that are as new: kept open for the next body on the same
//! server, for some seconds.
//!
//! A body still has its session to itself. It takes its own session lock and is told its own facts, and
//! whatever ended otherwise than well closes its session, as does a server that cannot be asked to make
//! one as new.

use crate::db::renew::Renewal;
use crate::db::session::{Session, Target};
use crate::db::turn::Turns;
use crate::handler::stopwatch::Stopwatch;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

/// How long a session waits for the next body. Much shorter than `source.idle_sec`, after which the
/// server ends it, and short enough that nobody finds his `DROP DATABASE` refused for long.
const KEEP: Duration = Duration::from_secs(5);
/// How long making one as new may take.
const RENEW: Duration = Duration::from_secs(2);

/// The sessions of this process that wait for a body.
#[derive(Debug)]
pub struct Sessions {
    /// At most so many.
    most: usize,
    shelf: Mutex<Shelf>,
    /// Those that are being made as new.
    renewing: TaskTracker,
    /// Who writes to a file of SQLite, by its URL.
    turns: Mutex<HashMap<String, Turns>>,
}

#[derive(Debug, Default)]
struct Shelf {
    idle: Vec<Idle>,
    /// Counts the times at which all that was kept was given up.
    cleared: u64,
    is_watched: bool,
}

#[derive(Debug)]
struct Idle {
    target: Target,
    session: Session,
    since: Stopwatch,
}

impl Sessions {
    /// Keeps so many sessions at most, over all servers.
    pub fn new(most: usize) -> Self {
        let (shelf, renewing, turns) = (Mutex::default(), TaskTracker::new(), Mutex::default());
        Self { most, shelf, renewing, turns }
    }

    /// Where sessions of this process to the same file wait for each other.
    pub(crate) fn turns(&self, target: &Target) -> Turns {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry(target.url.clone()).or_default().clone()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session to `target` that is as new; the one used last, because the others may grow old.
    pub(crate) fn take(&self, target: &Target) -> Option<Session> {
        let mut shelf = self.shelf();
        let fits = |idle: &Idle| idle.since.elapsed() < KEEP && idle.target.is_same(target);
        let at = shelf.idle.iter().rposition(fits)?;
        Some(shelf.idle.remove(at).session)
    }

    /// Takes the session of a body that ended by itself. In a task of its own, because nobody waits for
    /// what is only of use to the next body.
    pub(crate) fn keep(self: &Arc<Self>, target: Target, mut session: Session) {
        let (this, cleared) = (Arc::clone(self), self.shelf().cleared);
        self.renewing.spawn(async move {
            let renewed = timeout(RENEW, session.renew()).await;
            if matches!(renewed, Ok(Ok(Renewal::AsNew))) {
                this.put(Idle { target, session, since: Stopwatch::start() }, cleared).await;
            } else {
                session.close().await;
            }
        });
    }

    async fn put(self: &Arc<Self>, idle: Idle, cleared: u64) {
        let too_many = {
            let mut shelf = self.shelf();
            if shelf.cleared != cleared || shelf.idle.len() >= self.most {
                Some(idle.session)
            } else {
                shelf.idle.push(idle);
                if !std::mem::replace(&mut shelf.is_watched, true) {
                    tokio::spawn(watch(Arc::downgrade(self)));
                }
                None
            }
        };
        if let Some(session) = too_many {
            session.close().await;
        }
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
    pub(crate) fn forget(&self, target: &Target) {
        self.shelf().idle.retain(|idle| !idle.target.is_same(target));
    }
}

/// Closes what nobody took, until nothing is left.
async fn watch(sessions: std::sync::Weak<Sessions>) {
    loop {
        sleep(KEEP).await;
        let Some(sessions) = sessions.upgrade() else { return };
        let (old, is_over): (Vec<Idle>, bool) = {
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
