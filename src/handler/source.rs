//! Data sources without a job: whether bodies can run there and be stopped, and the ledger that
//! class `ledger` needs.

pub use crate::handler::stop_trial::{DefinerStop, StopTrial, TrialBody};

use crate::db::OpenSearchPath;
use crate::db::connect_error::Hope;
use crate::db::fault::SessionError;
use crate::db::ledger::{self, LedgerState, ServerIdentity};
use crate::db::session::{Session, SessionTarget};
use crate::db::session_lock::Lock;
use crate::db::target;
use crate::domain::source::transport::SourceTransport;
use crate::domain::source::{DataSource, DialectName};
use crate::domain::time::Millis;
use crate::handler::run_on_source::reach;
use crate::handler::stop_trial::try_stop;
use crate::handler::{HandlerOptions, address};
use crate::secret_store::secret_file::SecretFile;
use std::path::Path;

/// The address of a source, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAddress {
    /// Its dialect; `None` when its URL is not readable.
    pub dialect: Option<DialectName>,
    /// Host and port, or file, without a password; else why that cannot be shown.
    pub at: Result<String, String>,
    /// The environment variable that replaces its URL, if it is set.
    pub replaced_by: Option<String>,
    /// The origin of its password, and whether it is available.
    pub password: Option<(String, Password)>,
}

/// Whether a password is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Password {
    Set,
    /// Missing, so no connection can be opened.
    Missing,
    /// A secret that was not read.
    NotAsked,
}

/// The address of a source, without connecting to it.
pub fn place(source: &DataSource) -> SourceAddress {
    let env = std::env::var(source.url_env()).ok();
    let url = env.as_deref().unwrap_or(&source.url);
    let dialect = DialectName::of_url(url);
    let shown = target::of_url(url).map(|database| address::shown(database, url));
    let is_there = |there: bool| if there { Password::Set } else { Password::Missing };
    let of_secret = source.password_secret.as_ref().map(|secret| {
        let is_read = source.read_password.0.is_some();
        let state = if is_read { Password::Set } else { Password::NotAsked };
        (format!("secret {secret}"), state)
    });
    let password = match (&source.password_env, &source.password_file) {
        _ if of_secret.is_some() => of_secret,
        (Some(name), _) => Some((name.clone(), is_there(std::env::var(name).is_ok()))),
        (None, Some(file)) => {
            Some((file.clone(), is_there(SecretFile::read_file(Path::new(file)).is_ok())))
        }
        (None, None) => None,
    };
    SourceAddress {
        dialect,
        at: shown.unwrap_or_else(|| {
            Err("its URL must begin with sqlite:, mysql:// or postgres://".to_owned())
        }),
        replaced_by: env.as_ref().map(|_| source.url_env()),
        password,
    }
}

/// Whether the server of a source holds the lock of a body for as long as that lives.
pub fn has_session_locks(source: &DataSource) -> bool {
    target::of_url(&source.url).is_none_or(|database| !database.capabilities().is_file)
}

/// The result of checking a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCheckResult {
    /// The server, its version and our user.
    pub whom: ServerIdentity,
    /// Whether a session holds a lock against another one.
    pub lock: Result<(), String>,
    /// Whether the work of a session can be stopped from another and be seen to be gone.
    pub stops: StopTrial,
    /// Whether sessions can be reset and kept open for the next body; if not, the statement that
    /// allows it.
    pub keeps_sessions: Result<(), String>,
    /// The state of its ledger.
    pub ledger: LedgerState,
    /// Whether rows of the ledger can be written; `None` without a ledger.
    pub writes: Option<Result<(), String>>,
    /// Whether it is Procession's own database, as class `same` requires; `None` when not checked.
    pub is_home: Option<bool>,
    /// Privileges of its user beyond the data, by their names there.
    pub powers: Vec<String>,
    /// Other users who may create objects in a schema of the search path.
    pub open_path: Option<OpenSearchPath>,
    /// What protects the connection to its server; a file needs nothing.
    pub transport: Option<SourceTransport>,
}

/// The source cannot be reached, or refused; `Display` is the message for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{said}")]
pub struct SourceFault {
    /// What is wrong.
    pub said: String,
    /// Whether its server does not answer, so that there may be nothing to correct here.
    pub is_away: bool,
}

impl SourceFault {
    /// A fault of what was asked for: the address, the password, the rights, the ledger.
    pub fn of_settings(said: impl Into<String>) -> Self {
        Self { said: said.into(), is_away: false }
    }

    /// A server that does not answer.
    pub fn away(said: impl Into<String>) -> Self {
        Self { said: said.into(), is_away: true }
    }
}

fn failed(source: &DataSource, what: &str, error: &SessionError) -> SourceFault {
    let said = format!("source '{}': {what}: {error}", source.name);
    SourceFault { said, is_away: matches!(error, SessionError::Lost(_)) }
}

async fn open_session(
    source: &DataSource,
    options: &HandlerOptions,
) -> Result<(Session, SessionTarget), SourceFault> {
    let reached = reach(source, "source".to_owned(), options);
    let (target, at) = reached.map_err(SourceFault::of_settings)?;
    let session = Session::open_session(&target).await.map_err(|error| {
        let why = address::opening(error.to_string());
        let said = format!("cannot connect to source '{}' at {at}: {why}", source.name);
        SourceFault { said, is_away: error.hope != Hope::None }
    })?;
    Ok((session, target))
}

/// Checks everything that bodies need from a source. Changes nothing there, except that SQLite
/// creates a missing file, as it would for a body.
///
/// `home` is a query that only Procession's own database answers, with the prefix of the answer.
pub async fn check(
    source: &DataSource,
    options: &HandlerOptions,
    home: Option<(&str, &str)>,
) -> Result<SourceCheckResult, SourceFault> {
    let (mut session, target) = open_session(source, options).await?;
    let said = |what: &'static str| move |error: SessionError| failed(source, what, &error);
    let whom = session.server_identity().await.map_err(said("cannot ask who we are"))?;
    let ledger = session.ledger().await.map_err(said("cannot look at its ledger"))?;
    let writes = match ledger {
        LedgerState::Fits => Some(session.try_ledger().await.map_err(|error| error.to_string())),
        LedgerState::Absent | LedgerState::Other(_) => None,
    };
    let is_home = match home {
        Some((sql, answer)) => Some(
            session.answers(sql, answer).await.map_err(said("cannot ask whose database it is"))?,
        ),
        None => None,
    };
    let powers = session.server_powers().await.map_err(said("cannot ask for the user's rights"))?;
    let open_path = session.open_search_path().await;
    let open_path = open_path.map_err(said("cannot ask for its search_path"))?;
    let name = format!("procession:check:{}", std::process::id());
    let kept = keeps_sessions(&mut session, whom.user.as_deref(), options).await;
    let keeps_sessions = kept.map_err(said("cannot ask what a body leaves on a session"))?;
    let lock = take_lock(&mut session, &target, &name).await;
    let stops = try_stop(session, &target, &name, options.kill_confirm).await;
    let transport = SourceTransport::of_url(&target.url);
    Ok(SourceCheckResult {
        whom,
        lock,
        stops,
        keeps_sessions,
        ledger,
        writes,
        is_home,
        powers,
        open_path,
        transport,
    })
}

/// Takes a lock and checks that another session is blocked by it, which fails behind a proxy that
/// sends each statement to another connection.
async fn take_lock(
    session: &mut Session,
    target: &SessionTarget,
    name: &str,
) -> Result<(), String> {
    if session.database().capabilities().is_file {
        return Ok(());
    }
    let words = |error: SessionError| error.to_string();
    if session.try_lock(name).await.map_err(words)? != Lock::Gained {
        return Err("another session holds the lock of this check; try again".to_owned());
    }
    let mut other = Session::open_session(target).await.map_err(|none| none.to_string())?;
    let got = other.try_lock(name).await.map_err(words);
    other.close().await;
    if got? == Lock::Gained {
        return Err("two sessions got the same lock; is there a pooling proxy in between? bodies \
                    need a connection of their own"
            .to_owned());
    }
    Ok(())
}

/// Whether the server lets us verify that a session is reset after a body; if not, the grants to
/// make.
async fn keeps_sessions(
    session: &mut Session,
    user: Option<&str>,
    options: &HandlerOptions,
) -> Result<Result<(), String>, SessionError> {
    let Some(grant) = session.database().reset_grant(user) else { return Ok(Ok(())) };
    // As for a body, and counts the traces it leaves.
    session.limit_idle(options.idle).await?;
    if session.can_be_kept() {
        return Ok(Ok(()));
    }
    Ok(Err(grant))
}

/// The result of preparing a source's ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// It existed already.
    WasThere,
    /// It was created.
    Made,
    /// It would be created.
    WouldMake,
    /// Another object has that name: the difference.
    Other(String),
    /// It exists, but this user cannot write it: the server's error.
    NotWritable(String),
    /// It does not exist and this user may not create it: the server's error.
    Refused(String),
}

/// Whether a source is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceChange {
    Make,
    /// Only checked.
    Look,
}

/// Prepares the ledger of a source: returns the result, and our user there.
pub async fn prepare(
    source: &DataSource,
    options: &HandlerOptions,
    change: SourceChange,
) -> Result<(Prepared, ServerIdentity), SourceFault> {
    let (mut session, _) = open_session(source, options).await?;
    let said = |what: &'static str| move |error: SessionError| failed(source, what, &error);
    let whom = session.server_identity().await.map_err(said("cannot ask who we are"))?;
    let look = "cannot look at its ledger";
    let mut prepared = match session.ledger().await.map_err(said(look))? {
        LedgerState::Fits => Prepared::WasThere,
        LedgerState::Other(why) => Prepared::Other(why),
        LedgerState::Absent if change == SourceChange::Look => Prepared::WouldMake,
        LedgerState::Absent => match session.make_ledger().await {
            Ok(()) => Prepared::Made,
            Err(lost @ SessionError::Lost(_)) => return Err(said("make the ledger")(lost)),
            // It may have been created by another process at the same time.
            Err(error) => match session.ledger().await.map_err(said(look))? {
                LedgerState::Fits => Prepared::WasThere,
                LedgerState::Absent => Prepared::Refused(error.to_string()),
                LedgerState::Other(why) => Prepared::Other(why),
            },
        },
    };
    if prepared == Prepared::WasThere {
        prepared = match session.try_ledger().await {
            Ok(()) => Prepared::WasThere,
            Err(lost @ SessionError::Lost(_)) => return Err(said("try the ledger")(lost)),
            Err(error) => Prepared::NotWritable(error.to_string()),
        };
    }
    session.close().await;
    Ok((prepared, whom))
}

/// The statement that creates the ledger on this kind of database, and the grants for `user` when
/// another user runs it.
pub fn for_the_dba(dialect: DialectName, user: Option<&str>) -> Vec<String> {
    let Some(database) = target::named(dialect.as_str()) else { return Vec::new() };
    let grant = user.and_then(|user| ledger::grant(database, user));
    std::iter::once(database.ledger_table().to_owned()).chain(grant).collect()
}

/// Rows removed in one transaction, so that no body waits long for it.
const GROUP: u32 = 1_000;

/// When the latest attempt of an installation began according to the ledger of a source; `None`
/// when it contains none, or when there is no ledger.
pub async fn last_ledger_attempt(
    source: &DataSource,
    options: &HandlerOptions,
    installation: &str,
) -> Result<Option<Millis>, SourceFault> {
    let (mut session, _) = open_session(source, options).await?;
    let said = |what: &'static str| move |error: SessionError| failed(source, what, &error);
    let ledger = session.ledger().await.map_err(said("cannot look at its ledger"))?;
    let last = match ledger {
        LedgerState::Fits => {
            let asked = session.last_ledger_attempt(installation).await;
            asked.map_err(said("cannot read its ledger"))?
        }
        LedgerState::Absent | LedgerState::Other(_) => None,
    };
    session.close().await;
    Ok(last.map(Millis))
}

/// Removes the rows of effects from before `cut`, `YYYY-MM-DD HH:MM:SS` in UTC; with `Look` only
/// counts them.
pub async fn prune(
    source: &DataSource,
    options: &HandlerOptions,
    cut: &str,
    change: SourceChange,
) -> Result<u64, SourceFault> {
    let (mut session, _) = open_session(source, options).await?;
    let said = |what: &'static str| move |error: SessionError| failed(source, what, &error);
    match session.ledger().await.map_err(said("cannot look at its ledger"))? {
        LedgerState::Fits => {}
        LedgerState::Absent => {
            return Err(SourceFault::of_settings(format!(
                "source '{}' has no ledger",
                source.name
            )));
        }
        LedgerState::Other(why) => {
            let said = format!("source '{}' has another {}: {why}", source.name, ledger::TABLE);
            return Err(SourceFault::of_settings(said));
        }
    }
    let mut count = 0;
    if change == SourceChange::Look {
        count = session.old_of_ledger(cut).await.map_err(said("cannot count old rows"))?;
    } else {
        let what = "cannot remove old rows (the user needs DELETE on procession_ledger for it)";
        loop {
            let removed = session.prune_ledger(cut, GROUP).await.map_err(said(what))?;
            count += removed;
            if removed < u64::from(GROUP) {
                break;
            }
        }
    }
    session.close().await;
    Ok(count)
}
