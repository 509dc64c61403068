//! Counts the changes of the definition, so that whoever keeps it in memory asks one row whether it
//! still holds.

use crate::store::Tx;
use anyhow::{Context as _, Result};

const NAME: &str = "definition_epoch";

/// How often the definition has been changed.
pub async fn read(tx: &mut Tx) -> Result<i64> {
    asked(tx, "SELECT value FROM procession_meta WHERE name = ?").await
}

/// Counts one change more; two that change at once count one after the other.
pub(super) async fn bump(tx: &mut Tx) -> Result<()> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT value FROM procession_meta WHERE name = ?{lock}");
    let next = asked(tx, &sql).await? + 1;
    let row = vec![NAME.into(), next.to_string().into()];
    tx.upsert_many("procession_meta", "name", &["name", "value"], [row])
        .await
        .context("count a change of the definition")
}

async fn asked(tx: &mut Tx, sql: &str) -> Result<i64> {
    let row = tx.fetch_optional(sql, &[NAME.into()]).await?;
    let text = row.map(|row| row.text("value")).transpose()?;
    text.map_or(Ok(0), |text| text.parse().context("procession_meta.definition_epoch"))
}
