//! What all groups share: owners, pools, hosts, sources of secrets, parameters; a table each.

use crate::db::Value;
use crate::domain::group_access::GroupAccess;
use crate::domain::job::Shared;
use crate::domain::pool::Pool;
use crate::domain::shared_definitions::{Owner, SecretSource};
use crate::domain::time::Millis;
use crate::store::columns::upsert;
use crate::store::{Tx, secret};
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Tables of what all groups share: name of the table and of its key.
const SHARED: [(&str, &str); 5] = [
    ("job_owner", "owner_name"),
    ("resource_pool", "pool_name"),
    ("http_host", "host_name"),
    ("secret_source", "secret_name"),
    ("global_param", "param_name"),
];

/// What all groups share, in the order it was first written.
pub(super) async fn read(tx: &mut Tx) -> Result<Shared> {
    Ok(Shared {
        owners: owners(tx).await?,
        pools: bodies(tx, SHARED[1]).await?,
        hosts: bodies(tx, SHARED[2]).await?,
        secrets: bodies(tx, SHARED[3]).await?,
        params: bodies(tx, SHARED[4]).await?,
    })
}

/// The owners, in the order they were first written.
pub(super) async fn owners(tx: &mut Tx) -> Result<Vec<Owner>> {
    bodies(tx, SHARED[0]).await
}

/// Which groups may use which secret, declared or stored; a declared one goes before a stored one.
pub async fn access_of_secrets(tx: &mut Tx) -> Result<BTreeMap<String, GroupAccess>> {
    let declared: Vec<SecretSource> = bodies(tx, SHARED[3]).await?;
    let mut access = secret::read_access(tx).await?;
    access.extend(declared.into_iter().map(|secret| (secret.name, secret.access)));
    Ok(access)
}

async fn bodies<T: DeserializeOwned>(tx: &mut Tx, (table, key): (&str, &str)) -> Result<Vec<T>> {
    let id = key.replace("_name", "_id");
    let sql = format!("SELECT body FROM {table} ORDER BY {id}");
    let rows = tx.fetch_all(&sql, &[]).await?;
    let all = rows.iter().map(|row| Ok(serde_json::from_str(&row.text("body")?)?));
    all.collect::<Result<_>>().with_context(|| format!("read {table}"))
}

async fn write_one<T: Serialize + PartialEq>(
    tx: &mut Tx,
    (table, key): (&str, &'static str),
    (stored, wanted): (&[T], &[T]),
    name: impl Fn(&T) -> Vec<(&'static str, Value)>,
    now: Millis,
) -> Result<()> {
    for item in wanted.iter().filter(|w| !stored.contains(w)) {
        let mut columns = name(item);
        columns.push(("body", serde_json::to_string(item)?.into()));
        upsert(tx, table, key, columns, now).await?;
    }
    Ok(())
}

/// Makes the tables say what `wanted` says; what it does not name stays.
pub(super) async fn write(
    tx: &mut Tx,
    stored: &Shared,
    wanted: &Shared,
    now: Millis,
) -> Result<()> {
    let named = |key: &'static str, name: &str| vec![(key, Value::from(name))];
    let [owner, pool, host, secret, param] = SHARED;
    write_one(tx, owner, (&stored.owners, &wanted.owners), |o| named(owner.1, &o.code), now)
        .await?;
    let slots = |p: &Pool| vec![(pool.1, Value::from(p.name.as_str())), ("slots", p.slots.into())];
    write_one(tx, pool, (&stored.pools, &wanted.pools), slots, now).await?;
    write_one(tx, host, (&stored.hosts, &wanted.hosts), |h| named(host.1, &h.name), now).await?;
    let secrets = (&stored.secrets[..], &wanted.secrets[..]);
    write_one(tx, secret, secrets, |s| named(secret.1, &s.name), now).await?;
    write_one(tx, param, (&stored.params, &wanted.params), |p| named(param.1, &p.name), now).await
}
