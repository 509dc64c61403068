//! The tables of another scheduler, in a database of its own: read, never written. Each value is asked for as a text, for
//! types differ between releases; columns are asked for first, for so do they.

use crate::db::{Dialect, Row};
use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerServer, SchedulerTable, SchedulerTables, TablePresence, WantedTable,
    WantedTables,
};
use crate::store::Tx;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// A database that is not the scheduler's; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSchedulerTables {
    /// A table is not there for us.
    #[error(
        "there is no table {table} here, or this user may not read it; name the database of {system} in the URL, and \
         GRANT SELECT on its tables to the user"
    )]
    Table {
        /// The table with its schema.
        table: String,
        /// The scheduler.
        system: &'static str,
    },
}

/// Reads all that is wanted, as of the moment at which the transaction began.
///
/// # Errors
/// [`NoSchedulerTables`] when this is no database of that scheduler.
pub async fn read_tables(tx: &mut Tx, wanted: &WantedTables) -> Result<SchedulerTables> {
    let mut tables = Vec::new();
    for table in wanted.tables {
        let name = format!("{}.{}", table.schema, table.table);
        let columns =
            columns(tx, table).await.with_context(|| format!("look which columns {name} has"))?;
        match (columns.is_empty(), table.presence) {
            (false, _) => tables
                .push(read_rows(tx, table, columns).await.with_context(|| format!("read {name}"))?),
            (true, TablePresence::Optional) => {}
            (true, TablePresence::Needed) => {
                return Err(NoSchedulerTables::Table { table: name, system: wanted.system }.into());
            }
        }
    }
    let server = server(tx, wanted.settings)
        .await
        .context("ask the server's version, time zone and settings")?;
    Ok(SchedulerTables { tables, server })
}

/// The columns that this user may read, as the database spells them.
async fn columns(tx: &mut Tx, table: &WantedTable) -> Result<Vec<String>> {
    let text = text_type(tx.dialect());
    let sql = format!(
        "SELECT CAST(column_name AS {text}) AS c FROM information_schema.columns \
         WHERE LOWER(table_schema) = ? AND LOWER(table_name) = ? ORDER BY ordinal_position"
    );
    let names = [table.schema.to_lowercase().into(), table.table.to_lowercase().into()];
    tx.fetch_all(&sql, &names).await?.iter().map(|row| Ok(row.get_text("c")?)).collect()
}

async fn read_rows(
    tx: &mut Tx,
    table: &WantedTable,
    columns: Vec<String>,
) -> Result<SchedulerTable> {
    let text = text_type(tx.dialect());
    let quote = if tx.dialect() == Dialect::Mysql { '`' } else { '"' };
    let quoted =
        |name: &str| format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")));
    let list = columns
        .iter()
        .enumerate()
        .map(|(at, name)| format!("CAST({} AS {text}) AS v{at}", quoted(name)));
    let condition = if table.condition.is_empty() { "1 = 1" } else { table.condition };
    let (schema, name) = (table.schema, table.table);
    // Names of columns are the server's own and quoted; the rest is in the code of this program.
    let sql = format!(
        "SELECT {} FROM {schema}.{name} WHERE {condition} ORDER BY {}",
        list.collect::<Vec<_>>().join(", "),
        table.order.join(", ")
    );
    let found = tx.fetch_all(&sql, &[]).await?;
    let columns: Vec<String> = columns.iter().map(|name| name.to_lowercase()).collect();
    let one = |row: &Row| -> Result<SchedulerRow> {
        let values = columns
            .iter()
            .enumerate()
            .map(|(at, name)| Ok((name.clone(), row.opt_text(&format!("v{at}"))?)));
        Ok(SchedulerRow(values.collect::<Result<_>>()?))
    };
    let rows = found.iter().map(one).collect::<Result<_>>()?;
    Ok(SchedulerTable { name: format!("{schema}.{name}"), columns, rows })
}

fn text_type(dialect: Dialect) -> &'static str {
    if dialect == Dialect::Mysql { "CHAR" } else { "TEXT" }
}

/// What a server says of itself. Its time zone is that of a new session, and not the one of ours.
async fn server(tx: &mut Tx, names: &[&str]) -> Result<SchedulerServer> {
    let mut settings = BTreeMap::new();
    for name in names {
        let sql = match tx.dialect() {
            Dialect::Mysql => format!("SELECT CAST(@@global.{name} AS CHAR) AS v"),
            Dialect::Postgres | Dialect::Sqlite => {
                format!("SELECT CAST(current_setting('{name}', true) AS TEXT) AS v")
            }
        };
        if let Some(value) = query_text(tx, &sql).await? {
            settings.insert((*name).to_owned(), value);
        }
    }
    let (version, zone, offset) = match tx.dialect() {
        Dialect::Mysql => (
            "SELECT CAST(VERSION() AS CHAR) AS v",
            "SELECT CAST(CASE @@global.time_zone WHEN 'SYSTEM' THEN @@system_time_zone ELSE @@global.time_zone END AS CHAR) AS v",
            // Whatever zone the session has; CONVERT_TZ knows SYSTEM without the tables of zones.
            "SELECT CAST(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', @@global.time_zone)) AS CHAR) AS v",
        ),
        // A session of this program is in UTC, and what the configuration file says only superusers may read: log_timezone is
        // made with it, and a zone of the database goes before it.
        Dialect::Postgres | Dialect::Sqlite => (
            "SELECT CAST(version() AS TEXT) AS v",
            "SELECT CAST(COALESCE((SELECT substr(c, 10) FROM pg_catalog.pg_db_role_setting s, unnest(s.setconfig) c \
             WHERE s.setrole = 0 AND lower(c) LIKE 'timezone=%' AND s.setdatabase = \
             (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())), \
             current_setting('log_timezone', true)) AS TEXT) AS v",
            "SELECT CAST(NULL AS TEXT) AS v",
        ),
    };
    let version = query_text(tx, version).await?.unwrap_or_default();
    let zone = query_text(tx, zone).await?;
    let utc_offset_sec = query_text(tx, offset).await?.and_then(|text| text.trim().parse().ok());
    Ok(SchedulerServer { url: None, version, zone, utc_offset_sec, settings })
}

async fn query_text(tx: &mut Tx, sql: &str) -> Result<Option<String>> {
    let row = tx.fetch_optional(sql, &[]).await?;
    Ok(row.map(|row| row.opt_text("v")).transpose()?.flatten())
}
