//! What a job does, as the product is told it and as a bare client does it.

use crate::place::{Database, Scratch};
use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use procession::db::session::{Session, SessionTarget, let_all_through};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// What each job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Body {
    /// Nothing (type NOOP)
    Noop,
    /// `SELECT 1` (type SQL)
    Select,
    /// A procedure that inserts one row (type PROC)
    Call,
    /// The same, which is given a value
    CallWith,
    /// `true` (type SCRIPT)
    Script,
}

/// The table that a call writes, and the procedure that does it where there are such.
const TABLE: [&str; 3] = [
    "CREATE TABLE bench_fx (id INTEGER PRIMARY KEY, n BIGINT NOT NULL)",
    "CREATE TABLE bench_fx (id BIGINT AUTO_INCREMENT PRIMARY KEY, n BIGINT NOT NULL)",
    "CREATE TABLE bench_fx (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n BIGINT NOT NULL)",
];
const INSERT: &str = "INSERT INTO bench_fx (n) VALUES (1)";
const INSERT_IT: &str = "INSERT INTO bench_fx (n) VALUES (p_n)";

impl Body {
    /// As one types it.
    pub(crate) fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
    }

    /// The keys of a job of a definition.
    pub(crate) fn keys(self) -> &'static str {
        match self {
            Self::Noop => "type: NOOP",
            Self::Select => "type: SQL, source: data, sql: SELECT 1",
            Self::Call => "type: PROC, source: data, proc_name: bench_put",
            Self::CallWith => {
                "type: PROC, source: data, proc_name: bench_put_it, \
                 params: [{ name: p_n, type: int, value: '1' }]"
            }
            Self::Script => "type: SCRIPT, interpreter: sh, script: 'true'",
        }
    }
}

/// Where bodies run: a database of its own on the same server, on SQLite a file of its own.
pub(crate) struct Data {
    scratch: Scratch,
}

impl Data {
    pub(crate) async fn make(database: Database) -> Result<Self> {
        let scratch = Scratch::make(database).await?;
        let mut session = open(&scratch.url).await?;
        let (table, language) = match database {
            Database::Sqlite => (TABLE[0], None),
            Database::Mysql => (TABLE[1], Some(("", ""))),
            Database::Postgres => (TABLE[2], Some(("LANGUAGE sql AS '", "'"))),
        };
        let routines = language.into_iter().flat_map(|(before, after)| {
            [("bench_put()", INSERT), ("bench_put_it(p_n BIGINT)", INSERT_IT)]
                .map(|(name, sql)| format!("CREATE PROCEDURE {name} {before}{sql}{after}"))
        });
        for sql in std::iter::once(table.to_owned()).chain(routines) {
            session.run_statement(&sql, &[]).await.map_err(|e| anyhow::anyhow!("{sql}: {e}"))?;
        }
        session.close().await;
        Ok(Self { scratch })
    }

    /// The source of a definition.
    pub(crate) fn yaml(&self) -> String {
        let procedures = match self.scratch.database {
            Database::Sqlite => {
                let given = INSERT_IT.replace("p_n", ":p_n");
                format!("\n    procedures: {{ bench_put: {INSERT}, bench_put_it: '{given}' }}")
            }
            Database::Mysql | Database::Postgres => String::new(),
        };
        format!("sources:\n  data:\n    url: {}{procedures}\n", self.scratch.url)
    }

    /// How often the procedure ran.
    pub(crate) async fn rows(&self) -> Result<i64> {
        let mut session = open(&self.scratch.url).await?;
        let found = session.run_statement("SELECT COUNT(*) FROM bench_fx", &[]).await;
        let found = found.map_err(|e| anyhow::anyhow!("{e}"))?;
        session.close().await;
        let text = found.sets.first().and_then(|set| set.first(0)).context("a count")?;
        text.trim().parse().with_context(|| format!("'{text}' is no count"))
    }

    pub(crate) async fn remove(self) -> Result<()> {
        self.scratch.remove().await
    }

    /// A client for each of so many tasks.
    pub(crate) async fn clients(&self, body: Body, tasks: usize) -> Result<Vec<Client>> {
        let mut clients = Vec::new();
        for _ in 0..tasks {
            clients.push(match (body, clients.first()) {
                (Body::Noop, _) => Client::Nothing,
                (Body::Script, _) => Client::Script,
                // SQLite has one writer: eight that wait for each other by polling are slower.
                (Body::Call | Body::CallWith, Some(Client::Session(first, sql)))
                    if self.scratch.database == Database::Sqlite =>
                {
                    Client::Session(Arc::clone(first), sql)
                }
                (Body::Select | Body::Call | Body::CallWith, _) => {
                    let session = Arc::new(Mutex::new(open(&self.scratch.url).await?));
                    Client::Session(session, self.statement(body))
                }
            });
        }
        Ok(clients)
    }

    fn statement(&self, body: Body) -> &'static str {
        match (body, self.scratch.database) {
            (Body::Call | Body::CallWith, Database::Sqlite) => INSERT,
            (Body::Call, Database::Mysql | Database::Postgres) => "CALL bench_put()",
            (Body::CallWith, Database::Mysql | Database::Postgres) => "CALL bench_put_it(1)",
            (Body::Noop | Body::Select | Body::Script, _) => "SELECT 1",
        }
    }
}

async fn open(url: &str) -> Result<Session> {
    let timeout = Duration::from_secs(10);
    let target = SessionTarget {
        url: url.to_owned(),
        password: None,
        label: "bench".to_owned(),
        timeout,
        guard: let_all_through,
    };
    Ok(Session::open_session(&target).await?)
}

/// Runs bodies for one task, with a connection that stays.
#[derive(Clone)]
pub(crate) enum Client {
    /// There is nothing to do.
    Nothing,
    /// A process for each.
    Script,
    /// A statement for each.
    Session(Arc<Mutex<Session>>, &'static str),
}

impl Client {
    pub(crate) async fn run(&self) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Script => {
                let ended =
                    tokio::process::Command::new("sh").args(["-c", "true"]).status().await?;
                if !ended.success() {
                    bail!("true ended {ended}");
                }
                Ok(())
            }
            Self::Session(session, sql) => {
                let done = session.lock().await.run_statement(sql, &[]).await;
                done.map(|_| ()).map_err(|e| anyhow::anyhow!("{sql}: {e}"))
            }
        }
    }

    /// Says good-bye.
    pub(crate) async fn end(self) {
        if let Self::Session(session, _) = self
            && let Some(session) = Arc::into_inner(session)
        {
            session.into_inner().close().await;
        }
    }
}
