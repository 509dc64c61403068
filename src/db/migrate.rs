//! Brings the schema to the version this binary knows, and refuses one that is behind or ahead.

use crate::db::{Db, Dialect, Error, Pools, Result};
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, MySqlPool, SqlSafeStr, SqlitePool};

// `run_direct` below and not `run`: a future with sqlx's `run` in it cannot move between threads.

/// Number and title of each migration and its text per dialect; the same numbers in all three.
static MIGRATIONS: &[(i64, &str, [&str; 3])] = &[(
    1,
    "first tables",
    [
        include_str!("../../migrations/sqlite/0001_first_tables.sql"),
        include_str!("../../migrations/mysql/0001_first_tables.sql"),
        include_str!("../../migrations/postgres/0001_first_tables.sql"),
    ],
)];

/// How the schema stands to this binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// As this binary knows it.
    Current,
    /// Migrations are missing; the number is the last one applied, 0 for an empty database.
    Behind(i64),
    /// A newer binary has migrated it; the number is the last one applied.
    Ahead(i64),
    /// The migration of this number broke off half-way (MySQL cannot undo DDL).
    Broken(i64),
}

/// The last migration this binary knows.
pub fn known() -> i64 {
    MIGRATIONS.last().map_or(0, |m| m.0)
}

fn migrator(dialect: Dialect) -> Migrator {
    let at = Dialect::ALL.iter().position(|d| *d == dialect).unwrap_or_default();
    let migrations = MIGRATIONS.iter().map(|(version, title, texts)| {
        let sql = AssertSqlSafe(texts[at]).into_sql_str();
        Migration::new(*version, (*title).into(), MigrationType::Simple, sql, false)
    });
    Migrator::with_migrations(migrations.collect())
}

impl Db {
    /// Applies what is missing; gives the numbers applied now. A server lock keeps two processes
    /// from migrating at once.
    pub async fn migrate(&self) -> Result<Vec<i64>> {
        let before = match self.schema().await? {
            Schema::Current => return Ok(Vec::new()),
            Schema::Behind(last) => last,
            state @ (Schema::Ahead(_) | Schema::Broken(_)) => return Err(refusal(state)),
        };
        let migrator = migrator(self.dialect());
        match &self.pools {
            Pools::Sqlite { writer, .. } => on_sqlite(&migrator, writer).await,
            Pools::Mysql(pool) => on_mysql(&migrator, pool).await,
            Pools::Postgres(pool) => {
                let mut conn = pool.acquire().await?;
                migrator.run_direct(None, &mut *conn, false).await.map_err(of_migration)
            }
        }?;
        Ok(MIGRATIONS.iter().map(|m| m.0).filter(|v| *v > before).collect())
    }

    /// How the schema stands to this binary; changes nothing.
    pub async fn schema(&self) -> Result<Schema> {
        let mut tx = self.read().await?;
        let table = match self.dialect() {
            Dialect::Sqlite => {
                "SELECT count(*) AS n FROM sqlite_master WHERE name = '_sqlx_migrations'"
            }
            Dialect::Mysql => {
                "SELECT count(*) AS n FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name = '_sqlx_migrations'"
            }
            Dialect::Postgres => {
                "SELECT count(*) AS n FROM pg_class WHERE oid = to_regclass('_sqlx_migrations')"
            }
        };
        let there = tx.fetch_optional(table, &[]).await?.ok_or(Error::Missing("count"))?;
        if there.int("n")? == 0 {
            return Ok(Schema::Behind(0));
        }
        drop(tx);
        self.compare().await.map_err(of_migration)
    }

    async fn compare(&self) -> std::result::Result<Schema, MigrateError> {
        let table = "_sqlx_migrations";
        let (dirty, applied) = match &self.pools {
            Pools::Sqlite { reader, .. } => {
                let mut conn = reader.acquire().await?;
                (conn.dirty_version(table).await?, conn.list_applied_migrations(table).await?)
            }
            Pools::Mysql(pool) => {
                let mut conn = pool.acquire().await?;
                (conn.dirty_version(table).await?, conn.list_applied_migrations(table).await?)
            }
            Pools::Postgres(pool) => {
                let mut conn = pool.acquire().await?;
                (conn.dirty_version(table).await?, conn.list_applied_migrations(table).await?)
            }
        };
        let last = applied.iter().map(|m| m.version).max().unwrap_or(0);
        Ok(match dirty {
            Some(version) => Schema::Broken(version),
            None if last > known() => Schema::Ahead(last),
            None if last < known() => Schema::Behind(last),
            None => Schema::Current,
        })
    }

    /// Refuses to go on with a schema that is not this binary's, saying what to do.
    pub async fn require_current(&self) -> Result<()> {
        match self.schema().await? {
            Schema::Current => Ok(()),
            other => Err(refusal(other)),
        }
    }
}

/// In one transaction that has the write lock from the start: sqlx locks nothing on SQLite, and the
/// second of two new processes would find half of the tables there.
async fn on_sqlite(migrator: &Migrator, writer: &SqlitePool) -> Result<()> {
    let mut tx = writer.begin_with("BEGIN IMMEDIATE").await?;
    migrator.run_direct(None, &mut *tx, false).await.map_err(of_migration)?;
    Ok(tx.commit().await?)
}

/// Under a lock of ours: sqlx waits for its own without end, which MariaDB does not do (its
/// `GET_LOCK(name, -1)` gives up at once and says so to nobody).
async fn on_mysql(migrator: &Migrator, pool: &MySqlPool) -> Result<()> {
    const NAME: &str = "CONCAT('procession:', SHA1(DATABASE()))";
    let mut conn = pool.acquire().await?;
    let lock = AssertSqlSafe(format!("SELECT COALESCE(GET_LOCK({NAME}, 600), 0) = 1"));
    if !sqlx::query_scalar::<_, bool>(lock).fetch_one(&mut *conn).await? {
        return Err(Error::TryAgain("another process has been migrating for 10 minutes".into()));
    }
    let ran = migrator.run_direct(None, &mut *conn, false).await.map_err(of_migration);
    let unlock = AssertSqlSafe(format!("DO RELEASE_LOCK({NAME})"));
    sqlx::query(unlock).execute(&mut *conn).await?;
    ran
}

fn refusal(state: Schema) -> Error {
    let known = known();
    Error::Settings(match state {
        Schema::Current => "the schema is current".to_owned(),
        Schema::Behind(0) => {
            "the database has no Procession tables yet; run: procession migrate".to_owned()
        }
        Schema::Behind(last) => format!(
            "the schema is at version {last}, this binary needs {known}; run: procession migrate"
        ),
        Schema::Ahead(last) => format!(
            "the schema is at version {last}, this binary knows only {known}: a newer Procession \
             has migrated it; use that version, or restore a backup taken before"
        ),
        Schema::Broken(version) => format!(
            "migration {version} broke off half-way; restore the backup taken before it, or undo \
             its statements by hand, delete its row from _sqlx_migrations and run: procession migrate"
        ),
    })
}

fn of_migration(error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(cause) => cause.into(),
        other => Error::Settings(format!("the schema cannot be migrated: {other}")),
    }
}
