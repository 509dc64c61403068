//! What all groups share: owners, pools, hosts, sources of secrets, parameters; a table each.

use crate::db::{Row, SqlValue};
use crate::domain::access::group_access::GroupAccess;
use crate::domain::calendar::Calendars;
use crate::domain::job::Shared;
use crate::domain::job::pool::SlotPool;
use crate::domain::job::shared_definitions::{Owner, SecretFrom, SecretSource};
use crate::domain::time::Millis;
use crate::store::columns::upsert;
use crate::store::{Tx, calendar, executor_group, secret};
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Tables of what all groups share: name of the table and of its key.
const SHARED: [SharedTable; 5] = [
    SharedTable { table: "job_owner", key: "owner_name" },
    SharedTable { table: "resource_pool", key: "pool_name" },
    SharedTable { table: "http_host", key: "host_name" },
    SharedTable { table: "secret_source", key: "secret_name" },
    SharedTable { table: "global_param", key: "param_name" },
];

/// A table of what groups share, and the column of the name.
#[derive(Clone, Copy)]
struct SharedTable {
    table: &'static str,
    key: &'static str,
}

/// Asks for owners.
pub(super) const OWNER_QUERY: &str = "SELECT body FROM job_owner ORDER BY owner_id";
/// The query for the secrets that definitions declare.
const SECRET_QUERY: &str = "SELECT body FROM secret_source ORDER BY secret_id";

/// The queries for all shared objects, one per table.
pub(super) const QUERIES: [&str; 5] = [
    OWNER_QUERY,
    "SELECT body FROM resource_pool ORDER BY pool_id",
    "SELECT body FROM http_host ORDER BY host_id",
    SECRET_QUERY,
    "SELECT body FROM global_param ORDER BY param_id",
];

/// The shared objects, in the order in which they were first written, from the results of
/// `QUERIES`.
pub(super) fn from_rows(
    [owner_rows, pools, hosts, secrets, params]: &[Vec<Row>; 5],
) -> Result<Shared> {
    Ok(Shared {
        owners: owners(owner_rows)?,
        pools: bodies(pools, "resource_pool")?,
        hosts: bodies(hosts, "http_host")?,
        secrets: bodies(secrets, "secret_source")?,
        params: bodies(params, "global_param")?,
    })
}

/// The owners, from the result of `OWNER_QUERY`.
pub(super) fn owners(rows: &[Row]) -> Result<Vec<Owner>> {
    bodies(rows, "job_owner")
}

/// What belongs to the installation and is in no definition file.
#[derive(Debug)]
pub struct Installation {
    pub calendars: Calendars,
    /// Which groups may use which secret, declared or stored.
    pub secrets: BTreeMap<String, GroupAccess>,
    /// Which groups may use which executor group.
    pub executor_groups: BTreeMap<String, GroupAccess>,
}

/// Reads what is in no definition file.
pub async fn installation(tx: &mut Tx) -> Result<Installation> {
    let [days, calendars] = calendar::QUERIES;
    let queries = [days, calendars, SECRET_QUERY, secret::LIST_QUERY, executor_group::ACCESS_QUERY];
    let [days, calendars, declared, stored, executors] =
        tx.fetch_sets(queries).await.context("read calendars, secrets and executor groups")?;
    Ok(Installation {
        calendars: calendar::from_rows(&days, &calendars)?,
        secrets: access(&declared, &stored)?,
        executor_groups: executor_group::access_of(&executors)?,
    })
}

/// The secrets that definitions declare.
pub async fn declared_secrets(tx: &mut Tx) -> Result<Vec<SecretSource>> {
    let rows = tx.fetch_all(SECRET_QUERY, &[]).await.context("read secret_source")?;
    bodies(&rows, "secret_source")
}

/// The files that hold secrets according to the definitions: secrets, and passwords of data
/// sources.
pub async fn secret_files(tx: &mut Tx) -> Result<Vec<String>> {
    const PASSWORDS: &str = "SELECT password_file FROM data_source WHERE password_file IS NOT NULL";
    let [declared, passwords] =
        tx.fetch_sets([SECRET_QUERY, PASSWORDS]).await.context("read files of secrets")?;
    let declared: Vec<SecretSource> = bodies(&declared, "secret_source")?;
    let declared = declared.into_iter().filter_map(|secret| match secret.from {
        SecretFrom::File(path) => Some(Ok(path)),
        SecretFrom::Env(_) | SecretFrom::Sealed(_) => None,
    });
    declared.chain(passwords.iter().map(|row| Ok(row.get_text("password_file")?))).collect()
}

/// Which groups may use which secret, declared or stored; a declared one takes precedence over a
/// stored one.
pub async fn access_of_secrets(tx: &mut Tx) -> Result<BTreeMap<String, GroupAccess>> {
    let [declared, stored] =
        tx.fetch_sets([SECRET_QUERY, secret::LIST_QUERY]).await.context("read secrets")?;
    access(&declared, &stored)
}

fn access(declared: &[Row], stored: &[Row]) -> Result<BTreeMap<String, GroupAccess>> {
    let declared: Vec<SecretSource> = bodies(declared, "secret_source")?;
    let mut access = secret::access_of(stored)?;
    access.extend(declared.into_iter().map(|secret| (secret.name, secret.access)));
    Ok(access)
}

fn bodies<T: DeserializeOwned>(rows: &[Row], table: &str) -> Result<Vec<T>> {
    let all = rows.iter().map(|row| Ok(serde_json::from_str(&row.get_text("body")?)?));
    all.collect::<Result<_>>().with_context(|| format!("read {table}"))
}

async fn write_one<T: Serialize + PartialEq>(
    tx: &mut Tx,
    to: SharedTable,
    stored: &[T],
    wanted: &[T],
    name: impl Fn(&T) -> Vec<(&'static str, SqlValue)>,
    now: Millis,
) -> Result<()> {
    for item in wanted.iter().filter(|w| !stored.contains(w)) {
        let mut columns = name(item);
        columns.push(("body", serde_json::to_string(item)?.into()));
        upsert(tx, to.table, to.key, columns, now).await?;
    }
    Ok(())
}

/// Makes the tables match `wanted`; what it does not name is kept.
pub(super) async fn write(
    tx: &mut Tx,
    stored: &Shared,
    wanted: &Shared,
    now: Millis,
) -> Result<()> {
    let named = |key: &'static str, name: &str| vec![(key, SqlValue::from(name))];
    let [owner, pool, host, secret, param] = SHARED;
    write_one(tx, owner, &stored.owners, &wanted.owners, |o| named(owner.key, &o.code), now)
        .await?;
    let slots =
        |p: &SlotPool| vec![(pool.key, SqlValue::from(p.name.as_str())), ("slots", p.slots.into())];
    write_one(tx, pool, &stored.pools, &wanted.pools, slots, now).await?;
    write_one(tx, host, &stored.hosts, &wanted.hosts, |h| named(host.key, &h.name), now).await?;
    write_one(tx, secret, &stored.secrets, &wanted.secrets, |s| named(secret.key, &s.name), now)
        .await?;
    write_one(tx, param, &stored.params, &wanted.params, |p| named(param.key, &p.name), now).await
}
