//! Hints: words that say "look, something was written", told at the commit to whoever listens in this
//! process, and on PostgreSQL in any other. Losing one costs time and never work, so whoever listens
//! also looks by itself now and then.

use crate::db::{Db, Dialect, DialectPools, Result, SqlValue, Tx};
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::Sleep;

/// The channel of the tables in this schema: two installations in one database do not hear each other.
const CHANNEL: &str = "'procession_' || md5(current_schema())";
/// Hints that may wait for one who listens; those that he misses he is told of as one `Gap`.
const WAITING: usize = 64;
/// How often it is tried whether words still come through, in seconds: also what keeps a connection
/// through a firewall alive.
const CHECK: Duration = Duration::from_secs(30);
/// How long a word of our own may take to come back, and a connection to be made.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first pause before the line is tried again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// How often it is tried again where words do not come through.
const DEAF: Duration = Duration::from_secs(300);
/// The word with which it is tried.
const ECHO: &str = "echo";

/// Where the hints of one process meet.
pub(in crate::db) struct HintHub {
    here: broadcast::Sender<&'static str>,
    /// Tells our own words from those of others.
    tag: String,
    /// Whether the server takes words; some that speak like PostgreSQL do not.
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

    /// Tells those who listen in this process.
    pub(in crate::db) fn notify_listeners(&self, words: &[&'static str]) {
        for word in words {
            // Nobody listens here: that is what most processes are like.
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
    /// Gives a hint when this transaction is committed; the same word twice is one. `word` is a
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

/// What was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceivedHint {
    /// A hint.
    Word(String),
    /// Hints may have been missed; whoever listens must look by itself.
    Gap,
}

/// How far hints come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintScope {
    /// Only those of this process are heard for now.
    Here,
    /// Those of every process on this database are heard.
    Everywhere,
}

/// Listens for hints. Dropped, it lets go of its connection, which is one more than the pool's.
pub struct Ear {
    db: Db,
    here: broadcast::Receiver<&'static str>,
    line: HintConnection,
    pause: Duration,
    /// It was said that words do not come through.
    has_warned: bool,
}

/// The connection to the other processes.
enum HintConnection {
    /// There can be none.
    Never,
    Down(Pin<Box<Sleep>>),
    Rising(BoxFuture<'static, Result<PgListener>>),
    Up {
        listener: PgListener,
        check: HintProof,
        /// Whether a word of our own has ever come back, and whether the one has that was sent last.
        is_proven: bool,
        has_echoed: bool,
    },
}

/// The proof that words come through.
enum HintProof {
    Rests(Pin<Box<Sleep>>),
    Sends(BoxFuture<'static, Result<()>>),
    Waits(Pin<Box<Sleep>>),
}

/// What came of a look at the line.
enum Came {
    Word(String),
    Lost,
    Next(HintProof),
    Unheard,
}

impl Db {
    /// Listens for hints from now on. Nothing is sent before `next` is called.
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
    /// How far it hears at this moment.
    pub fn reach(&self) -> HintScope {
        match self.line {
            HintConnection::Up { is_proven: true, .. } => HintScope::Everywhere,
            HintConnection::Up { .. }
            | HintConnection::Never
            | HintConnection::Down(_)
            | HintConnection::Rising(_) => HintScope::Here,
        }
    }

    /// The next hint. Never fails: a line that breaks is made anew, and `Gap` is what is heard of it.
    /// May be dropped at any point.
    pub async fn next(&mut self) -> ReceivedHint {
        loop {
            let heard = tokio::select! {
                word = self.here.recv() => match word {
                    Ok(word) => Some(ReceivedHint::Word(word.to_owned())),
                    // Closed it cannot be: `db` holds the hub.
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
                    // It may be back before its commit is answered.
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

    /// Our own words were heard when they were said; only the echo is waited for.
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
        // What was said before is not known.
        (!std::mem::replace(is_proven, true)).then_some(ReceivedHint::Gap)
    }
}

impl HintConnection {
    /// Waits for what comes over the line, or makes it. May be dropped at any point.
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
                // The database is away: the line is most likely too.
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

/// A pool of sqlx's, because its listener asks for one; it is for one connection, which is made anew
/// here and never by it.
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

/// Over another connection: a pooler may give both to the same session.
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
    /// Looks once whether the server takes words at all: asked in a transaction that writes, a "no"
    /// would undo it.
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
