//! Change counters of the definition and of the calendars, so that a cache is validated by reading
//! one row.

use crate::store::Tx;
use anyhow::{Context as _, Result};

/// A change counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    Definition,
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

/// The present value of a counter.
pub async fn read_epoch(tx: &mut Tx, of: Epoch) -> Result<i64> {
    asked(tx, of, "SELECT value FROM procession_meta WHERE name = ?").await
}

/// Increments a counter; of two concurrent changes one waits for the other.
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
