//! The tables of another scheduler, in its own database: read, never written. Each value is read as
//! text, because types differ between releases; the columns are read first, because they differ
//! too.

use crate::db::{Dialect, Row};
use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerServer, SchedulerTable, SchedulerTables, TablePresence, WantedTable,
    WantedTables,
};
use crate::store::Tx;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// The database is not that scheduler's; `Display` is the message for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSchedulerTables {
    /// A table is missing or not readable for this user.
    #[error(
        "there is no table {table} here, or this user may not read it; name the database of {system} in the URL, and \
         GRANT SELECT on its tables to the user"
    )]
    Table {
        /// The table with its schema.
        table: String,
        system: &'static str,
    },
}

/// Reads all wanted tables, as of the start of the transaction.
///
/// # Errors
///
/// [`NoSchedulerTables`] when this is not a database of that scheduler.
pub async fn read_tables(tx: &mut Tx, wanted: &WantedTables) -> Result<SchedulerTables> {
    let mut tables = Vec::new();
    for table in wanted.tables {
        let name = table.full_name();
        let found = find_table(tx, table)
            .await
            .with_context(|| format!("look which columns {name} has"))?;
        match (found, table.presence) {
            (Some(found), _) => tables
                .push(read_rows(tx, table, found).await.with_context(|| format!("read {name}"))?),
            (None, TablePresence::Optional) => {}
            (None, TablePresence::Needed) => {
                return Err(NoSchedulerTables::Table { table: name, system: wanted.system }.into());
            }
        }
    }
    let server = server(tx, wanted.settings)
        .await
        .context("ask the server's version, time zone and settings")?;
    Ok(SchedulerTables { tables, server })
}

/// A table in the database's spelling.
struct FoundTable {
    schema: String,
    name: String,
    columns: Vec<FoundColumn>,
}

/// A column that this user may read.
struct FoundColumn {
    name: String,
    data_type: String,
}

/// The table, ignoring the case of its name; `None` when this user may read none of its columns.
async fn find_table(tx: &mut Tx, table: &WantedTable) -> Result<Option<FoundTable>> {
    let text = text_type(tx.dialect());
    let (schema, order) = match (table.schema, tx.dialect()) {
        ("", Dialect::Mysql) => ("table_schema = DATABASE()", "table_schema"),
        ("", Dialect::Postgres | Dialect::Sqlite) => (
            "table_schema = ANY(current_schemas(false))",
            "array_position(current_schemas(false), table_schema::name)",
        ),
        (_, _) => ("LOWER(table_schema) = ?", "table_schema"),
    };
    let sql = format!(
        "SELECT CAST(table_schema AS {text}) AS s, CAST(table_name AS {text}) AS t, CAST(column_name AS {text}) AS c, \
         CAST(data_type AS {text}) AS d FROM information_schema.columns \
         WHERE {schema} AND LOWER(table_name) = ? ORDER BY {order}, table_name, ordinal_position"
    );
    let mut values = Vec::new();
    if !table.schema.is_empty() {
        values.push(table.schema.to_lowercase().into());
    }
    values.push(table.table.to_lowercase().into());
    let mut found: Option<FoundTable> = None;
    for row in tx.fetch_all(&sql, &values).await? {
        let (schema, name): (String, String) = (row.get_text("s")?, row.get_text("t")?);
        let column = FoundColumn { name: row.get_text("c")?, data_type: row.get_text("d")? };
        match &mut found {
            None => found = Some(FoundTable { schema, name, columns: vec![column] }),
            Some(first) if first.schema == schema && first.name == name => {
                first.columns.push(column);
            }
            // In another schema, or in another case.
            Some(_) => {}
        }
    }
    Ok(found)
}

/// A column as text; a binary column in hexadecimal digits.
fn column_text(column: &FoundColumn, quoted: &str, dialect: Dialect) -> String {
    let data_type = column.data_type.to_lowercase();
    let is_binary = matches!(
        data_type.as_str(),
        "bytea" | "blob" | "tinyblob" | "mediumblob" | "longblob" | "binary" | "varbinary"
    );
    match (dialect, is_binary, data_type.as_str()) {
        (Dialect::Mysql, true, _) => format!("CAST(LOWER(HEX({quoted})) AS CHAR)"),
        (Dialect::Mysql, false, "bit") => format!("CAST({quoted} + 0 AS CHAR)"),
        (Dialect::Postgres | Dialect::Sqlite, true, _) => format!("encode({quoted}, 'hex')"),
        (_, false, _) => format!("CAST({quoted} AS {})", text_type(dialect)),
    }
}

async fn read_rows(tx: &mut Tx, table: &WantedTable, found: FoundTable) -> Result<SchedulerTable> {
    let dialect = tx.dialect();
    let quote = if dialect == Dialect::Mysql { '`' } else { '"' };
    let quoted =
        |name: &str| format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")));
    let list = found.columns.iter().enumerate().map(|(at, column)| {
        format!("{} AS v{at}", column_text(column, &quoted(&column.name), dialect))
    });
    let order = table.order.iter().map(|wanted| {
        let own = found.columns.iter().find(|column| column.name.eq_ignore_ascii_case(wanted));
        own.map_or_else(|| (*wanted).to_owned(), |column| quoted(&column.name))
    });
    let condition = if table.condition.is_empty() { "1 = 1" } else { table.condition };
    // Names come from the server and are quoted; the rest is constant in this program.
    let sql = format!(
        "SELECT {} FROM {}.{} WHERE {condition} ORDER BY {}",
        list.collect::<Vec<_>>().join(", "),
        quoted(&found.schema),
        quoted(&found.name),
        order.collect::<Vec<_>>().join(", ")
    );
    let rows = tx.fetch_all(&sql, &[]).await?;
    let columns: Vec<String> =
        found.columns.iter().map(|column| column.name.to_lowercase()).collect();
    let one = |row: &Row| -> Result<SchedulerRow> {
        let values = columns
            .iter()
            .enumerate()
            .map(|(at, name)| Ok((name.clone(), row.opt_text(&format!("v{at}"))?)));
        Ok(SchedulerRow(values.collect::<Result<_>>()?))
    };
    let rows = rows.iter().map(one).collect::<Result<_>>()?;
    Ok(SchedulerTable { name: table.full_name(), columns, rows })
}

fn text_type(dialect: Dialect) -> &'static str {
    if dialect == Dialect::Mysql { "CHAR" } else { "TEXT" }
}

/// Facts about the server. Its time zone is that of a new session, not of ours.
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
            // Whatever the zone of the session; CONVERT_TZ knows SYSTEM even without time zone
            // tables.
            "SELECT CAST(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', @@global.time_zone)) AS CHAR) AS v",
        ),
        // Sessions of this program use UTC, and only superusers may read the configuration file:
        // log_timezone is derived from it, and a zone of the database takes precedence.
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
