//! The tables of an XXL-JOB admin, in its own database: read, never written. The set of columns
//! depends on the release, so the columns are read first.

use crate::db::{Dialect, Row};
use crate::domain::xxl::xxl_tables::{
    Signs, UnreadColumn, XxlGroup, XxlJob, XxlSchema, XxlTables, XxlUser,
};
use crate::store::Tx;
use anyhow::{Context as _, Result, bail};
use secrecy::SecretString;
use std::collections::BTreeMap;

const GROUPS: &str = "xxl_job_group";
const JOBS: &str = "xxl_job_info";
const USERS: &str = "xxl_job_user";

/// The database is not an admin's, or of an unknown release; `Display` is the message for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTables {
    /// A table is missing or not readable for this user.
    #[error(
        "there is no table {0} here, or this user may not read it; name the database of XXL-JOB's admin \
         (often xxl_job) in the URL, and GRANT SELECT on its tables to the user"
    )]
    Table(&'static str),
    /// A column is missing or not readable for this user.
    #[error(
        "table {table} has no column {column}, or this user may not read it; tables of XXL-JOB 2.2 to \
         3.5 are known"
    )]
    Column {
        table: &'static str,
        /// The column, with its names in other releases.
        column: String,
    },
    /// A value that is not a valid number.
    #[error("{table}, id {id}: {column} is `{value}`, which is no whole number")]
    Number {
        table: &'static str,
        id: String,
        column: &'static str,
        /// The value found.
        value: String,
    },
}

/// A column: our name, its names in the releases, and whether a row is complete without it.
struct XxlColumn {
    of_ours: &'static str,
    names: &'static [&'static str],
    needed: Needed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Yes,
    No,
}

const fn needed(of_ours: &'static str, names: &'static [&'static str]) -> XxlColumn {
    XxlColumn { of_ours, names, needed: Needed::Yes }
}

const fn possible(of_ours: &'static str, names: &'static [&'static str]) -> XxlColumn {
    XxlColumn { of_ours, names, needed: Needed::No }
}

const OF_GROUPS: [XxlColumn; 6] = [
    needed("id", &["id"]),
    needed("app_name", &["app_name"]),
    needed("title", &["title", "name"]),
    needed("address_type", &["address_type"]),
    needed("address_list", &["address_list"]),
    possible("access_token", &["access_token"]),
];

const OF_JOBS: [XxlColumn; 19] = [
    needed("id", &["id"]),
    needed("job_group", &["job_group"]),
    needed("title", &["job_desc", "name"]),
    possible("author", &["author"]),
    possible("alarm_email", &["alarm_email"]),
    possible("schedule_type", &["schedule_type"]),
    needed("schedule_conf", &["schedule_conf", "job_cron"]),
    possible("misfire", &["misfire_strategy"]),
    needed("route", &["executor_route_strategy"]),
    needed("handler", &["executor_handler"]),
    needed("param", &["executor_param"]),
    needed("block", &["executor_block_strategy"]),
    needed("timeout", &["executor_timeout"]),
    needed("retries", &["executor_fail_retry_count"]),
    needed("glue_type", &["glue_type"]),
    needed("glue_source", &["glue_source"]),
    needed("children", &["child_jobid"]),
    needed("trigger_status", &["trigger_status"]),
    possible("next_time", &["trigger_next_time"]),
];

const OF_USERS: [XxlColumn; 5] = [
    needed("id", &["id"]),
    needed("username", &["username"]),
    possible("password", &["password"]),
    needed("role", &["role"]),
    possible("permission", &["permission"]),
];

/// Types of columns, by table and column.
type XxlColumnTypes = BTreeMap<(String, String), String>;

/// Reads everything, as of the start of the transaction.
///
/// # Errors
///
/// [`NoTables`] when this is not a database of XXL-JOB's admin.
pub async fn read_all(tx: &mut Tx) -> Result<XxlTables> {
    let columns = columns(tx).await?;
    let has = |table: &str, column: &str| columns.contains_key(&key(table, column));
    for table in [GROUPS, JOBS] {
        if !columns.keys().any(|(t, _)| t == table) {
            return Err(NoTables::Table(table).into());
        }
    }
    let param = columns.get(&key(JOBS, "executor_param"));
    let schema = XxlSchema::from_columns(Signs {
        job_cron: has(JOBS, "job_cron"),
        job_name: has(JOBS, "name") && !has(JOBS, "job_desc"),
        user_token: has(USERS, "token"),
        long_param: param.is_some_and(|ty| ty.contains("text")),
    });
    let groups = read_rows(tx, &columns, GROUPS, &OF_GROUPS).await?;
    let jobs = read_rows(tx, &columns, JOBS, &OF_JOBS).await?;
    let users = match has(USERS, "id") && has(USERS, "username") && has(USERS, "role") {
        true => Some(read_rows(tx, &columns, USERS, &OF_USERS).await?),
        false => None,
    };
    Ok(XxlTables {
        schema,
        groups: groups.iter().map(group).collect::<Result<_>>()?,
        jobs: jobs.iter().map(|row| job_of_row(row, schema)).collect::<Result<_>>()?,
        users: users.map(|rows| rows.iter().map(user_of_row).collect()).transpose()?,
        server_zone: server_zone(tx).await?,
        unread: unread(&columns),
    })
}

/// The columns that no query of this module reads.
fn unread(columns: &XxlColumnTypes) -> Vec<UnreadColumn> {
    let tables: [(&'static str, &[XxlColumn]); 3] =
        [(GROUPS, &OF_GROUPS), (JOBS, &OF_JOBS), (USERS, &OF_USERS)];
    let mut found = Vec::new();
    for (table, wanted) in tables {
        let read = |name: &str| {
            let first =
                |c: &&XxlColumn| c.names.iter().find(|n| columns.contains_key(&key(table, n)));
            wanted.iter().filter_map(|c| first(&c)).any(|first| *first == name)
        };
        let own = columns.keys().filter(|(t, column)| t == table && !read(column));
        found.extend(own.map(|(_, column)| UnreadColumn { table, column: column.clone() }));
    }
    found
}

fn key(table: &str, column: &str) -> (String, String) {
    (table.to_owned(), column.to_owned())
}

/// The columns that this user may read.
async fn columns(tx: &mut Tx) -> Result<XxlColumnTypes> {
    let (text, here) = match tx.dialect() {
        Dialect::Mysql => ("CHAR", "table_schema = DATABASE()"),
        Dialect::Postgres => ("TEXT", "table_schema = ANY (current_schemas(false))"),
        Dialect::Sqlite => bail!("tables of XXL-JOB are on MySQL, MariaDB or PostgreSQL"),
    };
    let sql = format!(
        "SELECT CAST(LOWER(table_name) AS {text}) AS t, CAST(LOWER(column_name) AS {text}) AS c, \
         CAST(LOWER(data_type) AS {text}) AS ty FROM information_schema.columns \
         WHERE {here} AND LOWER(table_name) IN (?, ?, ?)"
    );
    let tables = [GROUPS.into(), JOBS.into(), USERS.into()];
    let found = tx.fetch_all(&sql, &tables).await.context("look which columns there are")?;
    let one = |row: &Row| Ok(((row.get_text("t")?, row.get_text("c")?), row.get_text("ty")?));
    found.iter().map(one).collect()
}

/// All rows, each value as text: the types of numbers differ between releases and forks.
async fn read_rows(
    tx: &mut Tx,
    columns: &XxlColumnTypes,
    table: &'static str,
    wanted: &[XxlColumn],
) -> Result<Vec<Row>> {
    let text = if tx.dialect() == Dialect::Mysql { "CHAR" } else { "TEXT" };
    let mut list = Vec::new();
    for XxlColumn { of_ours, names, needed } in wanted {
        let found = names.iter().find(|name| columns.contains_key(&key(table, name)));
        match (found, needed) {
            (Some(name), _) => list.push(format!("CAST({name} AS {text}) AS {of_ours}")),
            (None, Needed::No) => list.push(format!("CAST(NULL AS {text}) AS {of_ours}")),
            (None, Needed::Yes) => {
                return Err(NoTables::Column { table, column: names.join(" or ") }.into());
            }
        }
    }
    // Every part is a constant of this file.
    let sql = format!("SELECT {} FROM {table} ORDER BY {table}.id", list.join(", "));
    tx.fetch_all(&sql, &[]).await.with_context(|| format!("read {table}"))
}

fn number(table: &'static str, row: &Row, column: &'static str) -> Result<i64> {
    let Some(value) = row.opt_text(column)? else { return Ok(0) };
    match value.trim() {
        // PostgreSQL's boolean values.
        "true" => Ok(1),
        "false" | "" => Ok(0),
        text => match text.parse() {
            Ok(number) => Ok(number),
            Err(_) => {
                let id = row.opt_text("id")?.unwrap_or_default();
                Err(NoTables::Number { table, id, column, value }.into())
            }
        },
    }
}

fn text_of(row: &Row, column: &str) -> Result<String> {
    Ok(row.opt_text(column)?.unwrap_or_default())
}

fn secret(row: &Row, column: &str) -> Result<Option<SecretString>> {
    let value = row.opt_text(column)?.filter(|value| !value.trim().is_empty());
    Ok(value.map(SecretString::from))
}

fn group(row: &Row) -> Result<XxlGroup> {
    Ok(XxlGroup {
        id: number(GROUPS, row, "id")?,
        app_name: text_of(row, "app_name")?,
        title: text_of(row, "title")?,
        address_type: number(GROUPS, row, "address_type")?,
        address_list: text_of(row, "address_list")?,
        access_token: secret(row, "access_token")?,
    })
}

fn job_of_row(row: &Row, schema: XxlSchema) -> Result<XxlJob> {
    let n = |column| number(JOBS, row, column);
    let t = |column| text_of(row, column);
    let schedule_type = match schema {
        // In that release every job has a cron expression.
        XxlSchema::V2_2 => "CRON".to_owned(),
        _ => t("schedule_type")?,
    };
    Ok(XxlJob {
        id: n("id")?,
        job_group: n("job_group")?,
        title: t("title")?,
        author: t("author")?,
        alarm_email: t("alarm_email")?,
        schedule_type,
        schedule_conf: t("schedule_conf")?,
        misfire: t("misfire")?,
        route: t("route")?,
        handler: t("handler")?,
        param: t("param")?,
        block: t("block")?,
        timeout: n("timeout")?,
        retries: n("retries")?,
        glue_type: t("glue_type")?,
        glue_source: t("glue_source")?,
        children: t("children")?,
        trigger_status: n("trigger_status")?,
        next_time: n("next_time")?,
    })
}

fn user_of_row(row: &Row) -> Result<XxlUser> {
    Ok(XxlUser {
        id: number(USERS, row, "id")?,
        name: text_of(row, "username")?,
        password: secret(row, "password")?,
        role: number(USERS, row, "role")?,
        permission: text_of(row, "permission")?,
    })
}

/// The time zone of the server, not that of this session.
async fn server_zone(tx: &mut Tx) -> Result<Option<String>> {
    let sql = match tx.dialect() {
        Dialect::Mysql => "SELECT CAST(@@global.time_zone AS CHAR) AS zone",
        Dialect::Postgres => "SELECT CAST(current_setting('TimeZone') AS TEXT) AS zone",
        Dialect::Sqlite => return Ok(None),
    };
    let row = tx.fetch_optional(sql, &[]).await.context("ask the server's time zone")?;
    let zone = row.map(|row| row.opt_text("zone")).transpose()?.flatten();
    Ok(zone.filter(|zone| zone.contains('/')))
}
