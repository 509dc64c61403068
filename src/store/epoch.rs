//! Counts the changes of the definition, and of the calendars, so that whoever keeps it in memory asks one row whether it
//! still holds.

use crate::store::Tx;
use anyhow::{Context as _, Result};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// Changes of the definition.
    Definition,
    /// Changes of calendars.
    Calendars,
}

impl Epoch {
    fn name(self) -> &'static str {
        match self {
            Self::Definition => "definition_epoch",
            Self::Calendars => "calendar_epoch",
        }
    }
}

/// How often it has been changed.
pub async fn read_epoch(tx: &mut Tx, of: Epoch) -> Result<i64> {
    asked(tx, of, "SELECT value FROM procession_meta WHERE name = ?").await
}

/// Counts one change more; two that change at once count one after the other.
pub(super) async fn bump_epoch(tx: &mut Tx, of: Epoch) -> Result<()> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT value FROM procession_meta WHERE name = ?{lock}");
    let next = asked(tx, of, &sql).await? + 1;
    let row = vec![of.name().into(), next.to_string().into()];
    tx.upsert_many("procession_meta", "name", &["name", "value"], [row])
        .await
        .with_context(|| format!("count {}", of.name()))
}

async fn asked(tx: &mut Tx, of: Epoch, sql: &str) -> Result<i64> {
    let row = tx.fetch_optional(sql, &[of.name().into()]).await?;
    let text = row.map(|row| row.get_text("value")).transpose()?;
    text.map_or(Ok(0), |text| {
        text.parse().with_context(|| format!("procession_meta.{}", of.name()))
    })
}
