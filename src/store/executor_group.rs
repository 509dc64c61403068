//! `executor_group`: executors of one app name, and the token they share with this installation,
//! sealed and as a digest.

use crate::db::{Row, SqlValue};
use crate::domain::access::group_access::GroupAccess;
use crate::domain::executor::{Addressing, ExecutorGroup, GluePolicy};
use crate::domain::id::GroupCode;
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::AppName;
use crate::store::epoch::{self, Epoch};
use crate::store::{Tx, group_access};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of addresses that an operator may enter; as many as the column holds.
pub const ADDRESSES_MOST: usize = 200;

/// A token in its stored form.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptToken {
    /// Sealed under the installation's key, because it is sent to executors.
    pub sealed: String,
    /// The digest by which an incoming token is found.
    pub digest: String,
}

impl std::fmt::Debug for KeptToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeptToken")
    }
}

/// A group with its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGroup {
    pub group: ExecutorGroup,
    pub create_time: Millis,
    pub update_time: Millis,
}

pub async fn add_group(
    tx: &mut Tx,
    group: &ExecutorGroup,
    token: &KeptToken,
    now: Millis,
) -> Result<i64> {
    let sql = "INSERT INTO executor_group (app_name, title, addresses, allows_glue, owner_group, allowed_groups, \
               token_sealed, token_hash, create_time, update_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let values = [
        group.app_name.as_str().into(),
        group.title.as_str().into(),
        addresses(&group.addressing)?.into(),
        glue_value(group.glue),
        owner(group).into(),
        group_access::allowed_groups_text(&group.access)?.into(),
        token.sealed.as_str().into(),
        token.digest.as_str().into(),
        now.to_utc().into(),
        now.to_utc().into(),
    ];
    let id = tx.insert_id(sql, "group_id", &values).await.context("add the executor group")?;
    // Schedules cache the permissions as part of the definition.
    epoch::bump_epoch(tx, Epoch::Definition).await?;
    Ok(id)
}

/// Updates all of a group except its token; returns whether it existed.
pub async fn update_group(tx: &mut Tx, group: &ExecutorGroup, now: Millis) -> Result<bool> {
    let sql = "UPDATE executor_group SET title = ?, addresses = ?, allows_glue = ?, owner_group = ?, \
               allowed_groups = ?, update_time = ? WHERE app_name = ?";
    let values = [
        group.title.as_str().into(),
        addresses(&group.addressing)?.into(),
        glue_value(group.glue),
        owner(group).into(),
        group_access::allowed_groups_text(&group.access)?.into(),
        now.to_utc().into(),
        group.app_name.as_str().into(),
    ];
    let is_there = tx.execute(sql, &values).await.context("change the executor group")? > 0;
    epoch::bump_epoch(tx, Epoch::Definition).await?;
    Ok(is_there)
}

/// Replaces the token of a group; returns whether the group existed. The old token is invalid from
/// then on.
pub async fn set_token(tx: &mut Tx, app: &AppName, token: &KeptToken, now: Millis) -> Result<bool> {
    let sql = "UPDATE executor_group SET token_sealed = ?, token_hash = ?, update_time = ? \
               WHERE app_name = ?";
    let values = [
        token.sealed.as_str().into(),
        token.digest.as_str().into(),
        now.to_utc().into(),
        app.as_str().into(),
    ];
    Ok(tx.execute(sql, &values).await.context("change the token of the executor group")? > 0)
}

/// Removes a group and its registrations; returns whether it existed.
pub async fn remove(tx: &mut Tx, app: &AppName) -> Result<bool> {
    let sql = "DELETE FROM executor_registry WHERE app_name = ?";
    tx.execute(sql, &[app.as_str().into()]).await.context("remove registrations")?;
    let sql = "DELETE FROM executor_group WHERE app_name = ?";
    let is_removed =
        tx.execute(sql, &[app.as_str().into()]).await.context("remove the executor group")? > 0;
    epoch::bump_epoch(tx, Epoch::Definition).await?;
    Ok(is_removed)
}

/// Reads which groups may use which executor group.
pub(super) const ACCESS_QUERY: &str =
    "SELECT app_name, owner_group, allowed_groups FROM executor_group ORDER BY app_name";

/// The permissions by app name, from the result of `ACCESS_QUERY`.
pub(super) fn access_of(rows: &[Row]) -> Result<BTreeMap<String, GroupAccess>> {
    rows.iter()
        .map(|row| Ok((row.get_text("app_name")?, group_access::access_of_row(row)?)))
        .collect()
}

fn owner(group: &ExecutorGroup) -> Option<&str> {
    group.access.owner_group.as_ref().map(GroupCode::as_str)
}

/// All groups, by name.
pub async fn list_groups(tx: &mut Tx) -> Result<Vec<StoredGroup>> {
    let sql = format!("SELECT {COLUMNS} FROM executor_group ORDER BY app_name");
    let rows = tx.fetch_all(&sql, &[]).await.context("list the executor groups")?;
    rows.iter().map(of_row).collect()
}

pub async fn find_group(tx: &mut Tx, app: &AppName) -> Result<Option<StoredGroup>> {
    let sql = format!("SELECT {COLUMNS} FROM executor_group WHERE app_name = ?");
    let row = tx.fetch_optional(&sql, &[app.as_str().into()]).await;
    row.context("read the executor group")?.as_ref().map(of_row).transpose()
}

/// The sealed token of a group.
pub async fn sealed_token(tx: &mut Tx, app: &AppName) -> Result<Option<String>> {
    let sql = "SELECT token_sealed FROM executor_group WHERE app_name = ?";
    let row = tx.fetch_optional(sql, &[app.as_str().into()]).await;
    let row = row.context("read the token of the executor group")?;
    Ok(row.map(|row| row.get_text("token_sealed")).transpose()?)
}

/// The groups whose token has one of these digests, by digest. The row is found by its digest and
/// not by comparing tokens, so that the duration reveals nothing about a token.
pub async fn of_tokens(
    tx: &mut Tx,
    digests: &BTreeSet<String>,
) -> Result<BTreeMap<String, BTreeSet<AppName>>> {
    let (places, values) = texts(digests.iter().map(String::as_str));
    let sql = format!(
        "SELECT token_hash, app_name FROM executor_group WHERE token_hash IN ({places}) ORDER BY app_name"
    );
    by_digest(&tx.fetch_all(&sql, &values).await.context("look for a token")?)
}

/// The groups of every token, by its digest.
pub async fn tokens(tx: &mut Tx) -> Result<BTreeMap<String, BTreeSet<AppName>>> {
    let sql = "SELECT token_hash, app_name FROM executor_group ORDER BY app_name";
    by_digest(&tx.fetch_all(sql, &[]).await.context("look for tokens")?)
}

fn by_digest(rows: &[Row]) -> Result<BTreeMap<String, BTreeSet<AppName>>> {
    let mut found: BTreeMap<String, BTreeSet<AppName>> = BTreeMap::new();
    for row in rows {
        let app = AppName::parse(&row.get_text("app_name")?)?;
        found.entry(row.get_text("token_hash")?).or_default().insert(app);
    }
    Ok(found)
}

/// A list of texts and its placeholders, padded to a power of two with the last text, so that only
/// a few statements need to be prepared.
pub(super) fn texts<'a>(all: impl Iterator<Item = &'a str>) -> (String, Vec<SqlValue>) {
    let mut values: Vec<SqlValue> = all.map(SqlValue::from).collect();
    let size = values.len().next_power_of_two();
    let filler = values.last().cloned().unwrap_or_else(|| "".into());
    values.resize(size, filler);
    (vec!["?"; size].join(","), values)
}

const COLUMNS: &str = "app_name, title, addresses, allows_glue, owner_group, allowed_groups, create_time, update_time";

fn of_row(row: &Row) -> Result<StoredGroup> {
    let addressing = match row.opt_text("addresses")? {
        None => Addressing::Registered,
        Some(text) => Addressing::Fixed(serde_json::from_str(&text)?),
    };
    let glue = if row.get_flag("allows_glue")? { GluePolicy::Allowed } else { GluePolicy::Refused };
    let group = ExecutorGroup {
        app_name: AppName::parse(&row.get_text("app_name")?)?,
        title: row.get_text("title")?,
        addressing,
        glue,
        access: group_access::access_of_row(row)?,
    };
    let (create_time, update_time) = (row.get_time("create_time")?, row.get_time("update_time")?);
    Ok(StoredGroup { group, create_time: create_time.into(), update_time: update_time.into() })
}

fn addresses(addressing: &Addressing) -> Result<Option<String>> {
    Ok(match addressing {
        Addressing::Registered => None,
        Addressing::Fixed(all) => Some(serde_json::to_string(all)?),
    })
}

fn glue_value(glue: GluePolicy) -> SqlValue {
    i64::from(glue == GluePolicy::Allowed).into()
}
