//! `executor_registry`: the addresses under which executors have registered, and when they last
//! did.

use crate::db::{Row, SqlValue};
use crate::domain::executor::{GONE_MS, Registration, Spoken};
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::AppName;
use crate::store::Tx;
use crate::store::executor_group::texts;
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Addresses per statement.
const MOST: usize = 512;

/// A registration of an executor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct There {
    pub app_name: AppName,
    pub address: String,
    /// Whether it sent its app name in a header.
    pub shows_app_name: bool,
}

/// Stores registrations in few statements. Each executor registers every half minute, so most are
/// known already.
pub async fn note_seen(tx: &mut Tx, all: &BTreeSet<There>, now: Millis) -> Result<()> {
    let mut alike: BTreeMap<(&AppName, bool), Vec<&str>> = BTreeMap::new();
    for there in all {
        let key = (&there.app_name, there.shows_app_name);
        alike.entry(key).or_default().push(&there.address);
    }
    for ((app, shows), addresses) in alike {
        for addresses in addresses.chunks(MOST) {
            seen_alike(tx, app, shows, addresses, now).await?;
        }
    }
    Ok(())
}

async fn seen_alike(
    tx: &mut Tx,
    app: &AppName,
    shows: bool,
    addresses: &[&str],
    now: Millis,
) -> Result<()> {
    let (places, list) = texts(addresses.iter().copied());
    // MariaDB evaluates from left to right: what depends on the old time comes before the new one.
    let sql = format!(
        "UPDATE executor_registry SET create_time = CASE WHEN update_time < ? THEN ? ELSE create_time END, \
         shows_app_name = ?, update_time = ? WHERE app_name = ? AND address IN ({places})"
    );
    let mut values: Vec<SqlValue> = vec![
        now.plus_ms(-GONE_MS).to_utc().into(),
        now.to_utc().into(),
        i64::from(shows).into(),
        now.to_utc().into(),
        app.as_str().into(),
    ];
    values.extend(list.iter().cloned());
    let known = tx.execute(&sql, &values).await.context("note where executors are")?;
    if known == addresses.len() as u64 {
        return Ok(());
    }
    let sql = format!(
        "SELECT address FROM executor_registry WHERE app_name = ? AND address IN ({places})"
    );
    let values = [vec![app.as_str().into()], list].concat();
    let rows = tx.fetch_all(&sql, &values).await.context("look where executors are")?;
    let known: BTreeSet<String> =
        rows.iter().map(|row| row.get_text("address")).collect::<Result<_, _>>()?;
    let new = addresses.iter().filter(|address| !known.contains(**address)).map(|address| {
        vec![
            app.as_str().into(),
            (*address).into(),
            i64::from(shows).into(),
            now.to_utc().into(),
            now.to_utc().into(),
        ]
    });
    let columns = ["app_name", "address", "shows_app_name", "create_time", "update_time"];
    // Another process may receive the same registration at the same time.
    tx.upsert_many("executor_registry", "app_name, address", &columns, new)
        .await
        .context("note where new executors are")
}

/// Removes executors that have deregistered.
pub async fn remove_gone(tx: &mut Tx, all: &BTreeSet<(AppName, String)>) -> Result<u64> {
    let mut by_app: BTreeMap<&AppName, Vec<&str>> = BTreeMap::new();
    for (app, address) in all {
        by_app.entry(app).or_default().push(address);
    }
    let mut removed = 0;
    for (app, addresses) in by_app {
        for addresses in addresses.chunks(MOST) {
            let (places, list) = texts(addresses.iter().copied());
            let sql = format!(
                "DELETE FROM executor_registry WHERE app_name = ? AND address IN ({places})"
            );
            let values = [vec![app.as_str().into()], list].concat();
            removed += tx.execute(&sql, &values).await.context("note who is gone")?;
        }
    }
    Ok(removed)
}

/// The registered executors of a group that are alive, by address; of every group when none is
/// named.
pub async fn alive(tx: &mut Tx, app: Option<&AppName>, now: Millis) -> Result<Vec<Registration>> {
    Ok(list_executors(tx, app)
        .await?
        .into_iter()
        .filter(|executor| executor.is_there(now))
        .collect())
}

/// The executors of a group, including those that are no longer alive; of every group when none is
/// named.
pub async fn list_executors(tx: &mut Tx, app: Option<&AppName>) -> Result<Vec<Registration>> {
    let of_app = if app.is_some() { " WHERE app_name = ?" } else { "" };
    let sql = format!(
        "SELECT app_name, address, shows_app_name, create_time, update_time FROM executor_registry{of_app} \
         ORDER BY app_name, address"
    );
    let values: Vec<SqlValue> = app.map(|app| app.as_str().into()).into_iter().collect();
    let rows = tx.fetch_all(&sql, &values).await.context("look where executors are")?;
    let mut all = rows.iter().map(of_row).collect::<Result<Vec<_>>>()?;
    // Each database sorts texts in its own way; routes need one order.
    all.sort_by(|a, b| (&a.app_name, &a.address).cmp(&(&b.app_name, &b.address)));
    Ok(all)
}

/// Removes up to `most` executors that have not registered since then.
pub async fn forget(tx: &mut Tx, before: Millis, most: u32) -> Result<u64> {
    let sql = "SELECT registry_id FROM executor_registry WHERE update_time < ? ORDER BY registry_id LIMIT ?";
    let values = [before.to_utc().into(), most.into()];
    let rows = tx.fetch_all(sql, &values).await.context("look who is gone")?;
    let ids: Vec<i64> =
        rows.iter().map(|row| row.get_int("registry_id")).collect::<Result<_, _>>()?;
    // One that registers meanwhile is kept.
    let sql = "DELETE FROM executor_registry WHERE update_time < ? AND registry_id";
    tx.execute_in(sql, &[before.to_utc().into()], &ids, "", &[]).await.context("forget who is gone")
}

fn of_row(row: &Row) -> Result<Registration> {
    let dialect = if row.get_flag("shows_app_name")? { Spoken::Trigger } else { Spoken::Run };
    Ok(Registration {
        app_name: AppName::parse(&row.get_text("app_name")?)?,
        address: row.get_text("address")?,
        dialect,
        since: row.get_time("create_time")?.into(),
        seen: row.get_time("update_time")?.into(),
    })
}
