//! Checks on the server whether a running body's session is still alive, over a second connection
//! that all bodies of this process on the same server share.
//!
//! A driver that waits for an answer waits forever when the network silently drops packets: sqlx
//! sets no keep-alive, and TCP has nothing to retransmit. A failed machine between here and the
//! server would leave its CALL "running" until its time limit.
//!
//! With E = `Options.look_every` and L = the shorter of E and `connect_timeout`, a dead connection
//! is noticed within 3E + L when the server cannot be reached (three probes in a row), and within
//! 3E when it can and has no such session (two probes in a row), after the session was seen there
//! once. Bodies that end within E cost nothing.

use crate::db::control::{Control, Sight};
use crate::db::fault::SessionError;
use crate::db::session::{SessionId, SessionTarget};
use crate::handler::stopwatch::Stopwatch;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

/// Number of consecutive unanswered probes after which the connection is given up.
const SILENCES: u32 = 3;
/// Number of consecutive probes that do not find the session.
const ABSENCES: u32 = 2;

/// The result of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ProbeResult {
    /// The session is alive.
    There,
    /// The server has no such session.
    NotThere,
    /// The server was restarted since.
    Restarted,
    /// No answer.
    Silence(String),
    /// Nothing was learnt: another server answered, or this one refused the login.
    Unclear,
}

/// The results of the probes of one session so far.
#[derive(Clone, Debug, Default)]
struct ProbeHistory {
    was_there: bool,
    absences: u32,
    silences: u32,
}

impl ProbeHistory {
    /// Why the connection counts as dead after this probe, if it does.
    ///
    /// A missing session counts only if it was seen there before: behind PgBouncer or ProxySQL the
    /// number that a session got may be another's, and a healthy body must not be given up for
    /// that.
    fn after(&mut self, look: ProbeResult) -> Option<String> {
        match look {
            ProbeResult::There => *self = Self { was_there: true, ..Self::default() },
            ProbeResult::Unclear => (self.absences, self.silences) = (0, 0),
            ProbeResult::NotThere if !self.was_there => self.silences = 0,
            ProbeResult::NotThere => {
                (self.absences, self.silences) = (self.absences + 1, 0);
                if self.absences >= ABSENCES {
                    return Some("its session is gone from the server".to_owned());
                }
            }
            ProbeResult::Restarted => return Some("the server was started anew".to_owned()),
            ProbeResult::Silence(why) => {
                (self.absences, self.silences) = (0, self.silences + 1);
                if self.silences >= SILENCES {
                    return Some(format!("the server cannot be reached: {why}"));
                }
            }
        }
        None
    }
}

/// Second connections of this process, one per server and user; each is opened with the first body
/// that runs longer than one interval, and closed with the last.
#[derive(Debug, Default)]
pub struct Watchers(Mutex<Vec<Weak<TargetProbe>>>);

/// The probe of one target, shared by its bodies.
#[derive(Debug)]
struct TargetProbe {
    target: SessionTarget,
    line: tokio::sync::Mutex<ProbeConnection>,
}

#[derive(Debug, Default)]
struct ProbeConnection {
    control: Option<Control>,
    /// Number of unanswered probes, and the last of them.
    silences: u64,
    last: Option<(Stopwatch, String)>,
}

/// One session to watch.
pub(crate) struct WatchedSession<'a> {
    pub(crate) target: &'a SessionTarget,
    pub(crate) id: &'a SessionId,
    pub(crate) lock_name: &'a str,
}

impl Watchers {
    fn watch_post(&self, target: &SessionTarget) -> Arc<TargetProbe> {
        let mut posts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        posts.retain(|post| post.strong_count() > 0);
        let known = posts.iter().filter_map(Weak::upgrade).find(|p| p.target.is_same(target));
        known.unwrap_or_else(|| {
            let post = Arc::new(TargetProbe { target: target.clone(), line: Default::default() });
            posts.push(Arc::downgrade(&post));
            post
        })
    }

    /// Returns, with the reason, when the connection of `watched` counts as dead.
    pub(crate) async fn wait_until_dead(
        &self,
        watched: WatchedSession<'_>,
        every: Duration,
    ) -> String {
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        let post = self.watch_post(watched.target);
        let (mut vitals, mut seen) = (ProbeHistory::default(), 0);
        loop {
            let look = post.probe_once(&watched, every, &mut seen).await;
            if let Some(why) = vitals.after(look) {
                return why;
            }
            ticks.tick().await;
        }
    }
}

impl TargetProbe {
    /// Probes once. An unanswered probe of another body since this body's last one counts for this
    /// one as well: fifty bodies must not wait for fifty timeouts one after the other.
    async fn probe_once(
        &self,
        watched: &WatchedSession<'_>,
        every: Duration,
        seen: &mut u64,
    ) -> ProbeResult {
        let mut line = self.line.lock().await;
        if let Some((at, why)) = &line.last
            && line.silences > *seen
            && at.elapsed() < every
        {
            *seen = line.silences;
            return ProbeResult::Silence(why.clone());
        }
        // Taken out while it is used: a body that ends drops this in the middle of an answer, and a
        // connection with half an answer must be dropped with it.
        let control = line.control.take();
        let limit = self.target.timeout.min(every);
        let look = match timeout(limit, self.query_session(control, watched)).await {
            Ok(Ok((control, sight))) => {
                line.control = control;
                sight
            }
            Ok(Err(look)) => look,
            Err(_) => ProbeResult::Silence(format!("no answer within {limit:?}")),
        };
        match &look {
            ProbeResult::Silence(why) => {
                line.silences += 1;
                line.last = Some((Stopwatch::start(), why.clone()));
                *seen = line.silences;
            }
            ProbeResult::There
            | ProbeResult::NotThere
            | ProbeResult::Restarted
            | ProbeResult::Unclear => line.last = None,
        }
        look
    }

    /// Queries over the existing connection, and over a new one when that is broken.
    async fn query_session(
        &self,
        control: Option<Control>,
        watched: &WatchedSession<'_>,
    ) -> Result<(Option<Control>, ProbeResult), ProbeResult> {
        if let Some(mut open) = control
            && let Ok(sight) = open.look_at_session(watched.id, watched.lock_name).await
        {
            return Ok((Some(open), look_of(sight)));
        }
        let opened =
            Control::open_control(&self.target).await.map_err(|none| match none.is_silence() {
                true => ProbeResult::Silence(none.to_string()),
                false => ProbeResult::Unclear,
            })?;
        let Some(mut open) = opened else { return Err(ProbeResult::Unclear) };
        match open.look_at_session(watched.id, watched.lock_name).await {
            Ok(sight) => Ok((Some(open), look_of(sight))),
            Err(SessionError::Lost(why)) => Err(ProbeResult::Silence(why)),
            Err(SessionError::Database(_) | SessionError::Braked) => Err(ProbeResult::Unclear),
        }
    }
}

fn look_of(sight: Sight) -> ProbeResult {
    match sight {
        Sight::There => ProbeResult::There,
        Sight::NotThere => ProbeResult::NotThere,
        Sight::Restarted => ProbeResult::Restarted,
        Sight::OtherServer(_) => ProbeResult::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the probe after which the connection is given up, counted from 1.
    fn given_up(looks: &[ProbeResult]) -> Option<usize> {
        let mut vitals = ProbeHistory::default();
        looks.iter().position(|look| vitals.after(look.clone()).is_some()).map(|at| at + 1)
    }

    #[test]
    fn the_table() {
        use ProbeResult::{NotThere as N, Restarted as R, There as T, Unclear as U};
        let s = || ProbeResult::Silence("refused".to_owned());
        for (looks, at) in [
            (vec![T, T, N, N], Some(4)),
            (vec![T, N, T, N, T], None),
            // Never seen there: a proxy assigns other numbers.
            (vec![N, N, N, N], None),
            (vec![N, N, s(), s(), s()], Some(5)),
            (vec![s(), s(), s()], Some(3)),
            (vec![T, s(), s(), T, s(), s()], None),
            // A server that answers is alive, whatever it answers.
            (vec![T, s(), s(), U, s(), s()], None),
            (vec![T, N, U, N, s(), N], None),
            (vec![T, U, U, U, U], None),
            (vec![R], Some(1)),
        ] {
            assert_eq!(given_up(&looks), at, "{looks:?}");
        }
    }
}
