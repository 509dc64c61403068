//! Migrates the schema to the version of this binary, and refuses an older or newer one.

mod fold;
mod list;

use crate::db::decode::hex_digits;
use crate::db::pool::ConnectionPool;
use crate::db::shell_quote;
use crate::db::{Db, Dialect, DialectPools, Error, Result, Row, Tx};
use fold::fold_statements;
use list::MIGRATIONS;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, MySql, MySqlConnection, PgConnection, Postgres,
    SqlSafeStr, Sqlite,
};

// `run_direct` below and not `run`: a future with sqlx's `run` in it is not Send.

/// The schema version compared with this binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The version of this binary.
    Current,
    /// Migrations are missing; the number is the last one applied, 0 for an empty database.
    Behind(i64),
    /// A newer binary has migrated it; the number is the last one applied.
    Ahead(i64),
    /// The migration of this number was interrupted (MySQL cannot roll DDL back).
    Broken(i64),
    /// The migration of this number differs from ours: from another program, or edited.
    Foreign(i64),
}

/// The last migration of this binary.
pub fn known() -> i64 {
    MIGRATIONS.last().map_or(0, |m| m.0)
}

/// The numbers of all migrations of this binary, in order.
fn known_versions() -> Vec<i64> {
    MIGRATIONS.iter().map(|m| m.0).collect()
}

/// The index of a dialect's text in `MIGRATIONS`.
fn text_index(dialect: Dialect) -> usize {
    Dialect::ALL.iter().position(|d| *d == dialect).unwrap_or_default()
}

fn migrator(dialect: Dialect) -> Migrator {
    let at = text_index(dialect);
    let migrations = MIGRATIONS.iter().map(|(version, title, texts)| {
        let sql = AssertSqlSafe(texts[at]).into_sql_str();
        Migration::new(*version, (*title).into(), MigrationType::Simple, sql, false)
    });
    Migrator::with_migrations(migrations.collect())
}

/// sqlx's own table of applied migrations.
const APPLIED: &str = "_sqlx_migrations";

/// The tables that these migrations create.
fn made_by(dialect: Dialect, versions: &[i64]) -> impl Iterator<Item = &'static str> {
    let at = text_index(dialect);
    let texts = MIGRATIONS.iter().filter(move |m| versions.contains(&m.0)).map(move |m| m.2[at]);
    texts
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split([' ', '(']).next())
}

impl Db {
    /// Applies the missing migrations; returns the numbers applied by this call. A server lock
    /// keeps two processes from migrating at once. A database in which one of our table names is
    /// taken is left unchanged.
    pub async fn migrate(&self) -> Result<Vec<i64>> {
        match self.schema().await? {
            Schema::Current => return Ok(Vec::new()),
            // What looks interrupted may be another process in the middle of it; `apply` checks
            // again under the lock.
            Schema::Behind(_) | Schema::Broken(_) => {}
            state @ (Schema::Ahead(_) | Schema::Foreign(_)) => return Err(self.refusal(state)),
        }
        match &self.pools {
            DialectPools::Sqlite { writer, .. } => self.on_sqlite(writer).await,
            DialectPools::Mysql(pool) => self.on_mysql(pool).await,
            DialectPools::Postgres(pool) => self.on_postgres(pool).await,
        }
    }

    /// In one transaction that has the write lock from the start: sqlx locks nothing on SQLite, and
    /// the second of two new processes would find half of the tables there.
    async fn on_sqlite(&self, writer: &ConnectionPool<Sqlite>) -> Result<Vec<i64>> {
        let mut lent = writer.acquire().await?;
        let mut tx = lent.raw_connection()?.begin_with("BEGIN IMMEDIATE").await?;
        let sql = "SELECT name FROM sqlite_master";
        let there = sqlx::query_scalar(sql).fetch_all(&mut *tx).await?;
        let applied = self.apply(&mut *tx, there).await?;
        tx.commit().await?;
        lent.mark_clean();
        Ok(applied)
    }

    /// Under a lock of our own: sqlx waits for its lock without limit, which MariaDB does not
    /// support (its `GET_LOCK(name, -1)` silently gives up at once). A failed session is closed
    /// with whatever it holds.
    async fn on_mysql(&self, pool: &ConnectionPool<MySql>) -> Result<Vec<i64>> {
        // A lock name has at most 64 characters. MySQL 9 has neither SHA1() nor MD5().
        const NAME: &str = "CONCAT('procession:', LEFT(SHA2(DATABASE(), 256), 40))";
        let mut lent = pool.acquire().await?;
        let conn = lent.raw_connection()?;
        let lock = AssertSqlSafe(format!("SELECT COALESCE(GET_LOCK({NAME}, 600), 0) = 1"));
        if !sqlx::query_scalar::<_, bool>(lock).fetch_one(&mut *conn).await? {
            return Err(Error::TryAgain(
                "another process has been migrating for 10 minutes".into(),
            ));
        }
        let sql = "SELECT CAST(table_name AS CHAR) FROM information_schema.tables \
                   WHERE table_schema = DATABASE()";
        let there: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut *conn).await?;
        let ran = if there.iter().any(|name| name == APPLIED) {
            self.apply(&mut *conn, there).await?
        } else {
            self.refuse_taken_names(&known_versions(), &there)?;
            apply_folded(&mut *conn).await?
        };
        let unlock = AssertSqlSafe(format!("DO RELEASE_LOCK({NAME})"));
        sqlx::query(unlock).execute(&mut *conn).await?;
        lent.mark_clean();
        Ok(ran)
    }

    /// Under sqlx's own lock, which is reentrant per session. A failed session is closed, because
    /// it may hold the lock.
    async fn on_postgres(&self, pool: &ConnectionPool<Postgres>) -> Result<Vec<i64>> {
        let mut lent = pool.acquire().await?;
        let applied = self.locked_on_postgres(lent.raw_connection()?).await?;
        lent.mark_clean();
        Ok(applied)
    }

    async fn locked_on_postgres(&self, conn: &mut PgConnection) -> Result<Vec<i64>> {
        conn.lock().await.map_err(of_migration)?;
        let sql = "SELECT c.relname::text FROM pg_class c \
                   JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema()";
        let there = sqlx::query_scalar(sql).fetch_all(&mut *conn).await?;
        let applied = self.apply(conn, there).await?;
        conn.unlock().await.map_err(of_migration)?;
        Ok(applied)
    }

    /// Applies what is missing now, with the lock held; `there` are the existing table names.
    async fn apply<C: Migrate>(&self, conn: &mut C, there: Vec<String>) -> Result<Vec<i64>> {
        let mut before = Vec::new();
        if there.iter().any(|name| name == APPLIED) {
            if let Some(version) = conn.dirty_version(APPLIED).await.map_err(of_migration)? {
                return Err(self.refusal(Schema::Broken(version)));
            }
            before = conn.list_applied_migrations(APPLIED).await.map_err(of_migration)?;
        }
        let mut missing = known_versions();
        missing.retain(|version| before.iter().all(|b| b.version != *version));
        self.refuse_taken_names(&missing, &there)?;
        migrator(self.dialect()).run_direct(None, conn, false).await.map_err(of_migration)?;
        Ok(missing)
    }

    /// Refuses when one of the names in `there` is that of a table which the `missing` migrations
    /// create.
    fn refuse_taken_names(&self, missing: &[i64], there: &[String]) -> Result<()> {
        let taken: Vec<&str> = made_by(self.dialect(), missing)
            .filter(|ours| there.iter().any(|name| name.eq_ignore_ascii_case(ours)))
            .collect();
        if taken.is_empty() {
            return Ok(());
        }
        Err(Error::Settings(format!(
            "the database {} has tables of another program by names that Procession needs: {}; \
             nothing was changed; use a database or schema of its own for Procession",
            self.shown,
            taken.join(", ")
        )))
    }

    /// Compares the schema version with this binary; changes nothing.
    pub async fn schema(&self) -> Result<Schema> {
        let mut tx = self.begin_read().await?;
        let table = tx.fetch_all(table_query(self.dialect()), &[]).await?;
        schema_behind(&mut tx, &table).await
    }

    /// Refuses to continue with a schema of another version; the error contains a hint.
    pub async fn require_current(&self) -> Result<()> {
        self.require(self.schema().await?)
    }

    /// The same for a schema state that was read already.
    pub fn require(&self, found: Schema) -> Result<()> {
        match found {
            Schema::Current => Ok(()),
            other => Err(self.refusal(other)),
        }
    }

    fn refusal(&self, state: Schema) -> Error {
        let known = known();
        let cure = format!("procession migrate --db {}", shell_quote::quote_word(&self.shown));
        Error::Settings(match state {
            Schema::Current => "the schema is current".to_owned(),
            Schema::Behind(0) => {
                format!("the database {} has no Procession tables yet; run: {cure}", self.shown)
            }
            Schema::Behind(last) => {
                format!("the schema is at version {last}, this binary needs {known}; run: {cure}")
            }
            Schema::Ahead(last) => format!(
                "the schema is at version {last}, this binary knows only {known}: a newer Procession \
                 has migrated it; use that version, or restore a backup taken before"
            ),
            Schema::Broken(1) => format!(
                "migration 1 broke off half-way; nothing of Procession's was there before it: drop the \
                 tables that it made, and _sqlx_migrations, or restore a backup of what else is in the \
                 database, and run: {cure}"
            ),
            Schema::Broken(version) => format!(
                "migration {version} broke off half-way; restore the backup taken before it, or undo \
                 its statements by hand, delete its row from _sqlx_migrations and run: {cure}"
            ),
            Schema::Foreign(version) => format!(
                "migration {version} in _sqlx_migrations of {} is not Procession's: the table belongs \
                 to another program, or a migration was edited; use a database or schema of its own \
                 for Procession",
                self.shown
            ),
        })
    }
}

/// Creates all tables in a MySQL database that has none of them. Meanwhile the first migration
/// counts as interrupted, which is correct if the process ends here: DDL cannot be rolled back.
async fn apply_folded(conn: &mut MySqlConnection) -> Result<Vec<i64>> {
    conn.ensure_migrations_table(APPLIED).await.map_err(of_migration)?;
    let ours = migrator(Dialect::Mysql);
    record(conn, ours.iter().take(1), MigrationProgress::Begun).await?;
    let texts: Vec<&str> = MIGRATIONS.iter().map(|m| m.2[text_index(Dialect::Mysql)]).collect();
    for statement in fold_statements(&texts) {
        conn.execute(AssertSqlSafe(statement)).await?;
    }
    record(conn, ours.iter(), MigrationProgress::Applied).await?;
    Ok(known_versions())
}

/// The state of migrations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MigrationProgress {
    Begun,
    Applied,
}

/// Writes rows into sqlx's table, in one statement.
async fn record<'m>(
    conn: &mut MySqlConnection,
    migrations: impl Iterator<Item = &'m Migration> + Clone,
    progress: MigrationProgress,
) -> Result<()> {
    let places = vec!["(?, ?, ?, ?, -1)"; migrations.clone().count()].join(", ");
    let sql = format!(
        "INSERT INTO {APPLIED} (version, description, success, checksum, execution_time) \
         VALUES {places} ON DUPLICATE KEY UPDATE success = VALUES(success)"
    );
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for migration in migrations {
        query = query.bind(migration.version).bind(migration.description.to_string());
        query =
            query.bind(progress == MigrationProgress::Applied).bind(migration.checksum.to_vec());
    }
    query.execute(conn).await?;
    Ok(())
}

/// The query whether the table of applied migrations exists.
pub(in crate::db) const fn table_query(dialect: Dialect) -> &'static str {
    match dialect {
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
    }
}

/// The schema state, given the result of `table_query`.
pub(in crate::db) async fn schema_behind(tx: &mut Tx, table: &[Row]) -> Result<Schema> {
    if table.first().ok_or(Error::Missing("count"))?.get_int("n")? == 0 {
        return Ok(Schema::Behind(0));
    }
    let dialect = tx.dialect();
    let checksum = match dialect {
        Dialect::Postgres => "encode(checksum, 'hex')",
        Dialect::Sqlite | Dialect::Mysql => "HEX(checksum)",
    };
    let sql = format!(
        "SELECT version, CASE WHEN success THEN 1 ELSE 0 END AS is_whole, {checksum} AS checksum \
         FROM {APPLIED} ORDER BY version"
    );
    let (ours, mut state, mut last) = (migrator(dialect), Schema::Current, 0);
    for row in tx.fetch_all(&sql, &[]).await? {
        let (version, checksum) = (row.get_int("version")?, row.get_text("checksum")?);
        last = version;
        let is_other = |known: &Migration| {
            known.version == version && !hex_digits(&known.checksum).eq_ignore_ascii_case(&checksum)
        };
        if ours.iter().any(is_other) {
            return Ok(Schema::Foreign(version));
        }
        if !row.get_flag("is_whole")? && state == Schema::Current {
            state = Schema::Broken(version);
        }
    }
    Ok(match state {
        Schema::Current if last > known() => Schema::Ahead(last),
        Schema::Current if last < known() => Schema::Behind(last),
        state => state,
    })
}

fn of_migration(error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(cause) => cause.into(),
        other => Error::Settings(format!("the schema cannot be migrated: {other}")),
    }
}
