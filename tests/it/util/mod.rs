//! Scratch databases on the servers the environment names, and a bench to run one task on.

pub(crate) mod bench;
pub(crate) mod cut;
pub(crate) mod host;
pub(crate) mod port;
pub(crate) mod relay;
pub(crate) mod template;

use futures_util::FutureExt;
use procession::config::Config;
use procession::db::session::{Session, SessionTarget, let_all_through};
use procession::db::{ConnectSettings, Db, SessionTimeouts};
use procession::domain::source::DialectName;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::Path;
use std::time::Duration;

/// The server of a dialect; a missing one is a failure, never a skip.
pub(crate) fn server(dialect: DialectName) -> String {
    let (variable, example) = match dialect {
        DialectName::Mysql => ("PROCESSION_TEST_MYSQL", "mysql://root@127.0.0.1:3306"),
        DialectName::Postgres => ("PROCESSION_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432"),
        DialectName::Sqlite => panic!("SQLite has no server"),
    };
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("set {variable} to a server to test on, such as {example}"))
}

/// Settings of a file. The program of a test is the test itself, which cannot supervise scripts: asked to, it
/// would run other tests.
pub(crate) fn config(file: &Path) -> Config {
    let mut config = Config::load_file(Some(file)).expect("settings");
    config.script.supervisor = Some(env!("CARGO_BIN_EXE_procession").into());
    config
}

/// A database of one test.
pub(crate) struct Scratch {
    pub(crate) dialect: DialectName,
    pub(crate) name: String,
    pub(crate) url: String,
    _dir: Option<tempfile::TempDir>,
}

/// What a scratch database has in it at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Nothing,
    /// The current tables of Procession.
    Tables,
}

/// A connection pool as tests use it; makes a missing SQLite file.
pub(crate) async fn connect(url: &str) -> Db {
    let settings = ConnectSettings {
        url: url.to_owned().into(),
        password: None,
        rotated_password: None,
        max_connections: 4,
        connect_timeout: Duration::from_secs(20),
        statement_timeout: Duration::from_secs(30),
        may_create: true,
        keeping: SessionTimeouts::Usual,
    };
    Db::connect(&settings).await.expect("connect")
}

/// Runs all migrations.
async fn migrate(url: &str) {
    let db = connect(url).await;
    db.migrate().await.expect("migrate");
    db.close().await;
}

/// Makes an empty database, runs `test` on it, and drops it, whether the test panicked or not.
pub(crate) async fn with_scratch<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(std::sync::Arc<Scratch>) -> Fut,
    Fut: Future<Output = ()>,
{
    run_on_scratch(dialect, Content::Nothing, test).await;
}

/// The same with the current tables of Procession in it.
pub(crate) async fn with_migrated_scratch<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(std::sync::Arc<Scratch>) -> Fut,
    Fut: Future<Output = ()>,
{
    run_on_scratch(dialect, Content::Tables, test).await;
}

async fn run_on_scratch<F, Fut>(dialect: DialectName, content: Content, test: F)
where
    F: FnOnce(std::sync::Arc<Scratch>) -> Fut,
    Fut: Future<Output = ()>,
{
    let name = format!("procession_test_{}", uuid::Uuid::new_v4().simple());
    if dialect == DialectName::Sqlite {
        let dir = tempfile::tempdir().expect("temporary folder");
        let file = dir.path().join("scratch.db");
        if content == Content::Tables {
            template::copy_sqlite(&file).await;
        }
        let url = format!("sqlite:{}", file.display());
        test(std::sync::Arc::new(Scratch { dialect, name, url, _dir: Some(dir) })).await;
        return;
    }
    let server = server(dialect);
    let base = server.trim_end_matches('/').to_owned();
    let admin = match dialect {
        DialectName::Postgres => format!("{base}/postgres"),
        _ => base.clone(),
    };
    let (utf8, force) = match dialect {
        DialectName::Postgres => ("", " WITH (FORCE)"),
        _ => (" CHARACTER SET utf8mb4", ""),
    };
    let url = format!("{base}/{name}");
    if (dialect, content) == (DialectName::Postgres, Content::Tables) {
        template::create_postgres(&base, &name).await;
    } else {
        query(&admin, &format!("CREATE DATABASE {name}{utf8}")).await;
    }
    let scratch = Scratch { dialect, url: url.clone(), name: name.clone(), _dir: None };
    let ran = AssertUnwindSafe(async {
        if (dialect, content) == (DialectName::Mysql, Content::Tables) {
            template::fill_mysql(&url).await;
        }
        test(std::sync::Arc::new(scratch)).await;
    });
    let ran = ran.catch_unwind().await;
    query(&admin, &format!("DROP DATABASE {name}{force}")).await;
    if let Err(panic) = ran {
        resume_unwind(panic);
    }
}

/// A connection of its own.
pub(crate) async fn session(url: &str) -> Session {
    let target = SessionTarget {
        url: url.to_owned(),
        password: None,
        label: "test".to_owned(),
        timeout: Duration::from_secs(10),
        guard: let_all_through,
    };
    Session::open_session(&target).await.unwrap_or_else(|e| panic!("{url}: {e}"))
}

/// Rows of one statement on a connection of its own.
pub(crate) async fn query(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    let mut session = session(url).await;
    let done = session.run_statement(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    session.close().await;
    done.sets.into_iter().next().map(|set| set.rows).unwrap_or_default()
}

/// A table as the migrations make it, for data sources that have it as well.
pub(crate) fn migrated(dialect: DialectName, table: &str) -> String {
    let text = match dialect {
        DialectName::Sqlite => include_str!("../../../migrations/sqlite/0003_trust.sql"),
        DialectName::Mysql => include_str!("../../../migrations/mysql/0003_trust.sql"),
        DialectName::Postgres => include_str!("../../../migrations/postgres/0003_trust.sql"),
    };
    let head = format!("CREATE TABLE {table} (");
    let mut statements = text.split(';').filter_map(|s| s.find(&head).map(|at| s[at..].to_owned()));
    statements.next().unwrap_or_else(|| panic!("no migration makes {table}"))
}

impl Scratch {
    /// Runs statements, each on its own.
    pub(crate) async fn setup(&self, statements: &[&str]) {
        for sql in statements {
            query(&self.url, sql).await;
        }
    }

    /// The one value of a statement.
    pub(crate) async fn value(&self, sql: &str) -> String {
        let rows = query(&self.url, sql).await;
        rows.first().and_then(|r| r[0].clone()).unwrap_or_else(|| "NULL".to_owned())
    }

    /// Whether a session is in the server's process list.
    pub(crate) async fn is_listed(&self, session: &str) -> bool {
        let sql = match self.dialect {
            DialectName::Postgres => {
                format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {session}")
            }
            _ => {
                format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {session}")
            }
        };
        self.value(&sql).await != "0"
    }

    /// Waits until a statement gives `expected`; a bounded loop, not a sleep.
    pub(crate) async fn wait_for(&self, sql: &str, expected: &str) {
        for _ in 0..400 {
            if self.value(sql).await == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{sql}: {expected} never came, it is {}", self.value(sql).await);
    }
}
