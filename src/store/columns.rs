//! Writes rows by column name, and reads and writes the JSON column with all other fields.

use crate::db::SqlValue;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

/// A row to be written; its first columns are the key.
pub(super) type RowColumns = Vec<(&'static str, SqlValue)>;

/// The fields of a value that have no columns of their own, as JSON.
pub(super) fn other_fields(value: &impl Serialize, columns: &[&str]) -> Result<String> {
    let Json::Object(mut fields) = serde_json::to_value(value)? else { bail!("not a structure") };
    fields.retain(|name, _| !columns.contains(&name.as_str()));
    Ok(serde_json::to_string(&fields)?)
}

/// The value composed of columns and the JSON of the other fields.
pub(super) fn joined<T: DeserializeOwned>(rest: Option<String>, columns: Json) -> Result<T> {
    let mut fields: Map<String, Json> =
        rest.map_or_else(|| Ok(Map::new()), |text| serde_json::from_str(&text))?;
    let Json::Object(columns) = columns else { bail!("not a structure") };
    fields.extend(columns.into_iter().filter(|(_, value)| !value.is_null()));
    Ok(serde_json::from_value(Json::Object(fields))?)
}

/// Like `joined`, for a million rows: the text of both is parsed once as one object, without a JSON
/// tree.
pub(super) fn spliced<T: DeserializeOwned>(rest: &str, columns: &impl Serialize) -> Result<T> {
    let mut text = serde_json::to_string(columns)?;
    let rest = rest.trim().strip_prefix('{').context("not a structure")?.trim_start();
    if !rest.starts_with('}') {
        text.pop();
        text.push(',');
        text.push_str(rest);
    }
    Ok(serde_json::from_str(&text)?)
}

/// Inserts or replaces a row.
pub(super) async fn upsert(
    tx: &mut Tx,
    table: &str,
    key: &str,
    columns: RowColumns,
    now: Millis,
) -> Result<()> {
    let value = columns[0].1.clone();
    let sql = format!("SELECT {key} FROM {table} WHERE {key} = ?");
    if tx.fetch_optional(&sql, &[value]).await?.is_some() {
        return update(tx, table, &[key], columns, now).await;
    }
    insert(tx, table, vec![columns], now).await
}

/// Updates the row with the same key: the first columns, as many as `keys` names.
pub(super) async fn update(
    tx: &mut Tx,
    table: &str,
    keys: &[&str],
    columns: RowColumns,
    now: Millis,
) -> Result<()> {
    let (key, rest) = columns.split_at(keys.len());
    let sets: Vec<String> = rest.iter().map(|(name, _)| format!("{name} = ?")).collect();
    let mut values: Vec<SqlValue> = rest.iter().map(|(_, value)| value.clone()).collect();
    values.push(now.to_utc().into());
    values.extend(key.iter().map(|(_, value)| value.clone()));
    let is_row: Vec<String> = keys.iter().map(|name| format!("{name} = ?")).collect();
    let (sets, is_row) = (sets.join(", "), is_row.join(" AND "));
    let sql = format!("UPDATE {table} SET {sets}, update_time = ? WHERE {is_row}");
    tx.execute(&sql, &values).await.with_context(|| format!("write {table}"))?;
    Ok(())
}

/// Inserts rows, all with the same columns.
pub(super) async fn insert(
    tx: &mut Tx,
    table: &str,
    rows: Vec<RowColumns>,
    now: Millis,
) -> Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut names: Vec<&str> = first.iter().map(|(name, _)| *name).collect();
    names.extend(["create_time", "update_time"]);
    let values = rows.into_iter().map(|columns| {
        let mut row: Vec<SqlValue> = columns.into_iter().map(|(_, value)| value).collect();
        row.extend([now.to_utc().into(), now.to_utc().into()]);
        row
    });
    tx.insert_many(table, &names, values).await.with_context(|| format!("write {table}"))
}
