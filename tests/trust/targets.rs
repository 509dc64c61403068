//! Databases of one test each, on the servers that the environment names.

use futures_util::FutureExt;
use procession::db::session::{Session, SessionTarget, let_all_through};
use procession::domain::source::DialectName;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

/// The server of a dialect; a missing one is a failure, never a skip.
pub(crate) fn server(dialect: DialectName) -> String {
    let (variable, example) = match dialect {
        DialectName::Mysql => ("PROCESSION_TEST_MYSQL", "mysql://root@127.0.0.1:3306"),
        DialectName::Postgres => ("PROCESSION_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432"),
        DialectName::Sqlite => panic!("SQLite has no server"),
    };
    let url = std::env::var(variable)
        .unwrap_or_else(|_| panic!("set {variable} to a server to test on, such as {example}"));
    url.trim_end_matches('/').to_owned()
}

/// How often a connection is asked for. Where `make test` builds the release beside the last stories, PostgreSQL once
/// gave none within ten seconds.
const TRIES: usize = 6;

/// A connection of its own.
pub(crate) async fn session(url: &str) -> Session {
    let mut last = String::new();
    for _ in 0..TRIES {
        match try_session(url).await {
            Ok(session) => return session,
            Err(error) => last = error,
        }
    }
    panic!("{url}: {last}")
}

/// The same where the server may be away.
pub(crate) async fn try_session(url: &str) -> Result<Session, String> {
    let (password, timeout) = (None, Duration::from_secs(10));
    let target = SessionTarget {
        url: url.to_owned(),
        password,
        label: "test".to_owned(),
        timeout,
        guard: let_all_through,
    };
    Session::open_session(&target).await.map_err(|e| e.to_string())
}

/// Rows of one statement on a connection of its own.
pub(crate) async fn query(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    let mut session = session(url).await;
    let done = session.run_statement(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    session.close().await;
    done.sets.into_iter().next().map(|set| set.rows).unwrap_or_default()
}

/// Waits until a statement gives `expected`; a bounded loop for something that does come.
pub(crate) async fn wait_for(url: &str, sql: &str, expected: &str) {
    let mut last = None;
    for _ in 0..1_200 {
        last = query(url, sql).await.first().and_then(|row| row[0].clone());
        if last.as_deref() == Some(expected) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{sql}: {expected} never came, it is {last:?}");
}

/// Makes a database on `server`, and gives its URL and what drops it.
pub(crate) async fn make(dialect: DialectName, server: &str) -> (String, [String; 2]) {
    let name = format!("procession_test_{}", uuid::Uuid::new_v4().simple());
    let (admin, utf8, force) = match dialect {
        DialectName::Postgres => (format!("{server}/postgres"), "", " WITH (FORCE)"),
        _ => (server.to_owned(), " CHARACTER SET utf8mb4", ""),
    };
    query(&admin, &format!("CREATE DATABASE {name}{utf8}")).await;
    (format!("{server}/{name}"), [admin, format!("DROP DATABASE {name}{force}")])
}

/// Makes a database, runs `test` on it, and drops it, whether the test panicked or not.
pub(crate) async fn with_database<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(String) -> Fut,
    Fut: Future<Output = ()>,
{
    let (url, [admin, drop_it]) = make(dialect, &server(dialect)).await;
    let ran = AssertUnwindSafe(test(url)).catch_unwind().await;
    query(&admin, &drop_it).await;
    if let Err(panic) = ran {
        resume_unwind(panic);
    }
}
