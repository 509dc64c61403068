//! Hints: wake-ups about written rows, sent at the commit to listeners in this process, and on
//! PostgreSQL in every process. A lost hint costs time and never work, because listeners also poll
//! from time to time.

use crate::db::{Db, Dialect, DialectPools, Result, SqlValue, Tx};
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::Sleep;

/// The channel of the tables in this schema: two installations in one database do not receive each
/// other's hints.
const CHANNEL: &str = "'procession_' || md5(current_schema())";
/// Number of hints that may wait for a listener; missed ones are reported as one `Gap`.
const WAITING: usize = 64;
/// Interval of the test whether hints are delivered; also keeps the connection alive through
/// firewalls.
const CHECK: Duration = Duration::from_secs(30);
/// Time limit for the return of our own test hint, and for opening a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first pause before the connection is tried again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// Interval of the test where hints are not delivered.
const DEAF: Duration = Duration::from_secs(300);
/// The test hint.
const ECHO: &str = "echo";

/// The distribution of hints within one process.
pub(in crate::db) struct HintHub {
    here: broadcast::Sender<&'static str>,
    /// Distinguishes our own hints from those of others.
    tag: String,
    /// Whether the server supports notifications; some that speak PostgreSQL's protocol do not.
    tells: AtomicBool,
}

impl HintHub {
    pub(in crate::db) fn new() -> Arc<Self> {
        let tag = uuid::Uuid::new_v4().simple().to_string();
        Arc::new(Self {
            here: broadcast::Sender::new(WAITING),
            tag: tag.chars().take(8).collect(),
            tells: AtomicBool::new(true),
        })
    }

    /// Wakes the listeners in this process.
    pub(in crate::db) fn notify_listeners(&self, words: &[&'static str]) {
        for word in words {
            // Most processes have no listener.
            let _ = self.here.send(word);
        }
    }
}

impl std::fmt::Debug for HintHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hub")
    }
}

impl Tx {
    /// Sends a hint when this transaction is committed; repeated hints are sent once. `word` is a
    /// short word without blanks.
    pub async fn send_hint(&mut self, word: &'static str) -> Result<()> {
        if self.hints.contains(&word) {
            return Ok(());
        }
        self.hints.push(word);
        if self.dialect() == Dialect::Postgres && self.hub.tells.load(Ordering::Relaxed) {
            let text = format!("{word} {}", self.hub.tag);
            self.notify(&text).await?;
        }
        Ok(())
    }

    async fn notify(&mut self, text: &str) -> Result<()> {
        let sql = format!("SELECT pg_notify({CHANNEL}, ?)");
        self.fetch_all(&sql, &[SqlValue::from(text)]).await.map(drop)
    }
}

/// What a listener receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceivedHint {
    /// A hint.
    Word(String),
    /// Hints may have been missed; the listener must poll.
    Gap,
}

/// How far hints are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintScope {
    /// Only hints of this process arrive for now.
    Here,
    /// Hints of every process on this database arrive.
    Everywhere,
}

/// Listens for hints. Dropping it closes its connection, which is additional to the pool's.
pub struct Ear {
    db: Db,
    here: broadcast::Receiver<&'static str>,
    line: HintConnection,
    pause: Duration,
    /// Whether it was logged that hints are not delivered.
    has_warned: bool,
}

/// The connection to the other processes.
enum HintConnection {
    /// Not possible on this database.
    Never,
    Down(Pin<Box<Sleep>>),
    Rising(BoxFuture<'static, Result<PgListener>>),
    Up {
        listener: PgListener,
        check: HintProof,
        /// Whether a test hint has ever returned, and whether the last one has.
        is_proven: bool,
        has_echoed: bool,
    },
}

/// The state of the delivery test.
enum HintProof {
    Rests(Pin<Box<Sleep>>),
    Sends(BoxFuture<'static, Result<()>>),
    Waits(Pin<Box<Sleep>>),
}

/// The result of waiting on the connection.
enum Came {
    Word(String),
    Lost,
    Next(HintProof),
    Unheard,
}

impl Db {
    /// Starts to listen for hints. Nothing is sent before `next` is called.
    pub fn listen(&self) -> Ear {
        let here = self.hub.here.subscribe();
        let line = match &self.pools {
            DialectPools::Postgres(_) => HintConnection::Down(after(Duration::ZERO)),
            DialectPools::Sqlite { .. } | DialectPools::Mysql(_) => HintConnection::Never,
        };
        Ear { db: self.clone(), here, line, pause: PAUSES.0, has_warned: false }
    }
}

impl Ear {
    /// How far hints are delivered at present.
    pub fn reach(&self) -> HintScope {
        match self.line {
            HintConnection::Up { is_proven: true, .. } => HintScope::Everywhere,
            HintConnection::Up { .. }
            | HintConnection::Never
            | HintConnection::Down(_)
            | HintConnection::Rising(_) => HintScope::Here,
        }
    }

    /// The next hint. Never fails: a broken connection is opened again, and reported as a `Gap`.
    /// May be dropped at any point.
    pub async fn next(&mut self) -> ReceivedHint {
        loop {
            let heard = tokio::select! {
                word = self.here.recv() => match word {
                    Ok(word) => Some(ReceivedHint::Word(word.to_owned())),
                    // The channel cannot be closed: `db` holds the sender.
                    Err(_) => Some(ReceivedHint::Gap),
                },
                came = self.line.next_hint(&self.db) => self.take_news(came),
            };
            if let Some(heard) = heard {
                return heard;
            }
        }
    }

    fn take_news(&mut self, came: Came) -> Option<ReceivedHint> {
        match came {
            Came::Next(check) => {
                if let HintConnection::Up { check: present, has_echoed, .. } = &mut self.line {
                    // The test hint may return before its commit is acknowledged.
                    let is_back =
                        matches!(check, HintProof::Waits(_)) && std::mem::take(has_echoed);
                    *present = if is_back { HintProof::Rests(after(CHECK)) } else { check };
                }
                None
            }
            Came::Word(text) => self.understand(&text),
            Came::Lost => {
                let was = self.reach();
                self.line = HintConnection::Down(after(self.pause));
                self.pause = (self.pause * 2).min(PAUSES.1);
                (was == HintScope::Everywhere).then_some(ReceivedHint::Gap)
            }
            Came::Unheard => {
                let was = self.reach();
                if was == HintScope::Here && !std::mem::replace(&mut self.has_warned, true) {
                    tracing::warn!(
                        "hints of other processes do not come through (LISTEN is not heard; a pooler \
                         in transaction mode?); this process looks by itself, more often"
                    );
                }
                self.line = HintConnection::Down(after(if was == HintScope::Here {
                    DEAF
                } else {
                    PAUSES.0
                }));
                (was == HintScope::Everywhere).then_some(ReceivedHint::Gap)
            }
        }
    }

    /// Our own hints were delivered locally; of those only the test hint matters here.
    fn understand(&mut self, text: &str) -> Option<ReceivedHint> {
        let (word, tag) = text.split_once(' ')?;
        if tag != self.db.hub.tag {
            return (word != ECHO).then(|| ReceivedHint::Word(word.to_owned()));
        }
        let HintConnection::Up { check, is_proven, has_echoed, .. } = &mut self.line else {
            return None;
        };
        if word != ECHO {
            return None;
        }
        match check {
            HintProof::Waits(_) => *check = HintProof::Rests(after(CHECK)),
            // Not dropped in the middle: that would cost its connection.
            HintProof::Sends(_) => *has_echoed = true,
            HintProof::Rests(_) => {}
        }
        self.pause = PAUSES.0;
        // Earlier hints may have been missed.
        (!std::mem::replace(is_proven, true)).then_some(ReceivedHint::Gap)
    }
}

impl HintConnection {
    /// Waits for a hint on the connection, or opens it. May be dropped at any point.
    async fn next_hint(&mut self, db: &Db) -> Came {
        loop {
            match self {
                Self::Never => std::future::pending().await,
                Self::Down(pause) => {
                    pause.await;
                    *self = match &db.pools {
                        DialectPools::Postgres(pool) => {
                            Self::Rising(Box::pin(open_listener(pool.options().clone())))
                        }
                        DialectPools::Sqlite { .. } | DialectPools::Mysql(_) => Self::Never,
                    };
                }
                Self::Rising(rising) => match rising.await {
                    Ok(listener) => {
                        let check = HintProof::Sends(Box::pin(say_echo(db.clone())));
                        *self = Self::Up { listener, check, is_proven: false, has_echoed: false };
                    }
                    Err(error) => {
                        tracing::debug!(%error, "hints of other processes are not heard; trying on");
                        return Came::Lost;
                    }
                },
                Self::Up { listener, check, .. } => {
                    return tokio::select! {
                        came = next_notification(listener) => came,
                        came = check.next_hint(db) => came,
                    };
                }
            }
        }
    }
}

impl HintProof {
    async fn next_hint(&mut self, db: &Db) -> Came {
        match self {
            Self::Rests(pause) => {
                pause.await;
                Came::Next(Self::Sends(Box::pin(say_echo(db.clone()))))
            }
            Self::Sends(sends) => match sends.await {
                Ok(()) => Came::Next(Self::Waits(after(PATIENCE))),
                // The database is unavailable: most likely the connection is lost too.
                Err(_) => Came::Lost,
            },
            Self::Waits(pause) => {
                pause.await;
                Came::Unheard
            }
        }
    }
}

fn after(time: Duration) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(time))
}

/// sqlx's listener requires one of its pools; it has one connection, which is reopened here and
/// never by the pool.
async fn open_listener(options: PgConnectOptions) -> Result<PgListener> {
    let made = async {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(PATIENCE)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options)
            .await?;
        let channel = format!("SELECT {CHANNEL}");
        let channel: String =
            sqlx::query_scalar(sqlx::AssertSqlSafe(channel)).fetch_one(&pool).await?;
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.ignore_pool_close_event(true);
        listener.eager_reconnect(false);
        listener.listen(&channel).await?;
        Ok::<_, sqlx::Error>(listener)
    };
    match tokio::time::timeout(PATIENCE * 2, made).await {
        Ok(made) => Ok(made?),
        Err(_) => Err(crate::db::Error::Lost("no answer to LISTEN".to_owned())),
    }
}

/// Over a different connection: a pooler may map both to the same session.
async fn say_echo(db: Db) -> Result<()> {
    let mut tx = db.begin().await?;
    let text = format!("{ECHO} {}", db.hub.tag);
    tx.notify(&text).await?;
    tx.commit().await
}

async fn next_notification(listener: &mut PgListener) -> Came {
    match listener.try_recv().await {
        Ok(Some(said)) => Came::Word(said.payload().to_owned()),
        Ok(None) | Err(_) => Came::Lost,
    }
}

impl Db {
    /// Tests once whether the server supports notifications: in a transaction that writes, an error
    /// would roll it back.
    pub(in crate::db) async fn learn_to_hint(&self) {
        if self.dialect() != Dialect::Postgres {
            return;
        }
        match self.query_rows(&format!("SELECT pg_notify({CHANNEL}, '{ECHO}')"), &[]).await {
            Err(error) if !error.is_transient() => {
                tracing::debug!(%error, "this server takes no hints; other processes look by themselves");
                self.hub.tells.store(false, Ordering::Relaxed);
            }
            Ok(_) | Err(_) => {}
        }
    }
}
