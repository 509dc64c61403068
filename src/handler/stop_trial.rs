//! Tests whether work on a data source can be stopped: runs a statement of our own, ends it in the
//! way bodies are ended, and polls until it is gone.
//!
//! It leaves nothing on the server. On PostgreSQL the statement is in a SECURITY DEFINER function
//! that swallows cancels, in the schema for temporary objects, which goes with its session. MySQL
//! and MariaDB have no temporary procedures, and a procedure of another definer makes the
//! difference there: whether such a one could be stopped is derived from the user's privileges
//! alone.

use crate::db::control::Control;
use crate::db::fault::SessionError;
use crate::db::results::Results;
use crate::db::session::{Session, SessionId, SessionTarget};
use crate::db::target::StopMeans;
use crate::handler::stopwatch::Stopwatch;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Poll interval of the process list.
const LOOK: Duration = Duration::from_millis(50);
/// Interval between a cancel and the end of the session, and between two of those.
const REPEAT: Duration = Duration::from_millis(200);
/// How long the statement may take to appear in the process list.
const BEGIN: Duration = Duration::from_secs(2);

/// The result of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopTrial {
    /// What was run and stopped.
    pub ran: TrialBody,
    /// How long it took to be gone, or why its end could not be confirmed.
    pub gone: Result<Duration, String>,
    /// Whether a procedure with the privileges of another user could be stopped too.
    pub definers: DefinerStop,
}

/// What was run and stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialBody {
    /// A statement: SLEEP, pg_sleep, a long query.
    Statement,
    /// A SECURITY DEFINER function that swallows cancels.
    DefinerFunction,
}

impl TrialBody {
    /// Its value in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::DefinerFunction => "definer_function",
        }
    }
}

/// Whether a running procedure of another definer could be stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinerStop {
    /// The server lets a user end its own sessions whatever runs on them.
    AsOwn,
    /// The user has the privilege to end sessions of others.
    Granted,
    /// The user lacks it; the statement that grants it.
    Denied(String),
    /// The user's privileges could not be read: why.
    Unknown(String),
}

impl DefinerStop {
    /// Whether it is possible; `None` when that is unknown.
    pub fn is_possible(&self) -> Option<bool> {
        match self {
            Self::AsOwn | Self::Granted => Some(true),
            Self::Denied(_) => Some(false),
            Self::Unknown(_) => None,
        }
    }

    /// The statement that would make it possible.
    pub fn grant(&self) -> Option<&str> {
        match self {
            Self::Denied(grant) => Some(grant),
            Self::AsOwn | Self::Granted | Self::Unknown(_) => None,
        }
    }
}

/// Runs a statement on `session`, which holds the lock `lock_name`, and stops it from a second one.
pub(crate) async fn try_stop(
    mut session: Session,
    target: &SessionTarget,
    lock_name: &str,
    patience: Duration,
) -> StopTrial {
    let definers = can_stop_definers(&mut session).await;
    let database = session.database();
    // Longer than the wait for its end, but limited.
    let trial = database.trial_statement(&mut session, patience.as_secs() + 5).await;
    let ran = if trial.is_stubborn { TrialBody::DefinerFunction } else { TrialBody::Statement };
    if database.capabilities().stop == StopMeans::Flag {
        let gone = try_interrupt(&mut session, &trial.text, patience).await;
        session.close().await;
        return StopTrial { ran, gone, definers };
    }
    let gone = match Control::open_control(target).await {
        Ok(Some(mut control)) => {
            let gone = stop_running(&mut session, &trial.text, &mut control, lock_name, patience);
            let gone = gone.await;
            control.close().await;
            gone
        }
        Ok(None) => Ok(Duration::ZERO),
        Err(none) => Err(format!("no second connection to stop it: {none}")),
    };
    drop(session);
    StopTrial { ran, gone, definers }
}

/// Whether the user may end a session that runs another user's SQL SECURITY DEFINER procedure.
async fn can_stop_definers(session: &mut Session) -> DefinerStop {
    if session.database().capabilities().stops_definers {
        return DefinerStop::AsOwn;
    }
    match session.read_privileges().await {
        Ok(Some(own)) if own.may_stop_other_users() => return DefinerStop::Granted,
        Ok(_) => {}
        Err(error) => return DefinerStop::Unknown(error.to_string()),
    }
    let user = session.server_identity().await.ok().and_then(|whom| whom.user);
    DefinerStop::Denied(session.database().definer_stop_grant(user.as_deref()))
}

async fn stop_running(
    session: &mut Session,
    statement: &str,
    control: &mut Control,
    lock_name: &str,
    patience: Duration,
) -> Result<Duration, String> {
    let Some(id) = session.id().cloned() else { return Ok(Duration::ZERO) };
    let means = session.database().capabilities().stop;
    if !control.is_alive(&id, lock_name).await.map_err(describe)? {
        let said = "a session does not see another one of the same user; a killed body could not be told from a \
                    living one";
        return Err(said.to_owned());
    }
    let mut runs = pin!(session.run_statement(statement, &[]));
    tokio::select! {
        biased;
        ended = &mut runs => return Err(describe_early_end(ended)),
        seen = wait_until_busy(control, &id) => seen?,
    }
    let start = Stopwatch::start();
    let left = async {
        let _it_is_to_be_stopped = runs.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        gone = timeout(patience, end_session(control, &id, lock_name, means)) => match gone {
            Ok(gone) => gone.map(|()| start.elapsed()),
            Err(_) => Err(format!("a running statement was still there {patience:?} after its session was ended")),
        },
        () = left => Err("the statement ended".to_owned()),
    }
}

fn describe(error: SessionError) -> String {
    error.to_string()
}

fn describe_early_end(ended: Result<Results, SessionError>) -> String {
    let why = ended.err().map_or("it ended at once".to_owned(), describe);
    format!("the statement that was to be stopped did not run: {why}")
}

/// A statement that does not appear in time is stopped nevertheless.
async fn wait_until_busy(control: &mut Control, id: &SessionId) -> Result<(), String> {
    let start = Stopwatch::start();
    while start.elapsed() < BEGIN {
        if control.is_busy(id).await.map_err(describe)? {
            break;
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// Like `Ladder`: first cancels the statement where that is done, which bodies may swallow.
async fn end_session(
    control: &mut Control,
    id: &SessionId,
    lock_name: &str,
    means: StopMeans,
) -> Result<(), String> {
    if means == StopMeans::CancelFirst {
        control.cancel(id).await.map_err(describe)?;
        sleep(REPEAT).await;
    }
    let mut last_end = None::<Stopwatch>;
    while control.is_alive(id, lock_name).await.map_err(describe)? {
        if last_end.is_none_or(|at| at.elapsed() > 5 * REPEAT) {
            control.terminate(id).await.map_err(describe)?;
            last_end = Some(Stopwatch::start());
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// A statement that runs in this process is interrupted by the session's cancellation flag.
async fn try_interrupt(
    session: &mut Session,
    statement: &str,
    patience: Duration,
) -> Result<Duration, String> {
    let brake = session.brake();
    let mut runs = pin!(session.run_statement(statement, &[]));
    tokio::select! {
        biased;
        ended = &mut runs => return Err(describe_early_end(ended)),
        () = sleep(LOOK) => {}
    }
    let start = Stopwatch::start();
    brake.cancel();
    match timeout(patience, runs).await {
        Ok(Err(_)) => Ok(start.elapsed()),
        Ok(Ok(_)) => Err("a statement that was interrupted ran on to its end".to_owned()),
        Err(_) => Err(format!("a statement still ran {patience:?} after it was interrupted")),
    }
}
