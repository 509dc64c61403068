//! `procession_meta`: the newest heartbeat of any process, and the gap that a restored backup has left.

use crate::domain::metadata_gap::{HistoryMark, MetadataGap};
use crate::domain::time::Millis;
use crate::store::{self, Tx};
use anyhow::{Context as _, Result};

/// Milliseconds since 1970 in thirteen digits, so that texts compare as numbers do.
const NEWEST: &str = "newest_heartbeat";
const GAP: &str = "metadata_gap";

/// What the database says of its own past.
pub async fn read(tx: &mut Tx) -> Result<HistoryMark> {
    let sql =
        format!("SELECT name, value FROM procession_meta WHERE name IN ('{NEWEST}', '{GAP}')");
    let rows = tx.fetch_all(&sql, &[]).await?;
    let mut mark = HistoryMark::default();
    for row in rows {
        let value = row.text("value")?;
        if row.text("name")? == GAP {
            mark.gap = Some(serde_json::from_str(&value).context("procession_meta.metadata_gap")?);
        } else {
            let ms = value.parse().context("procession_meta.newest_heartbeat")?;
            mark.newest = Some(Millis(ms));
        }
    }
    Ok(mark)
}

/// Raises the newest heartbeat; a later one of another process stays.
pub async fn raise(tx: &mut Tx, mark: &HistoryMark, to: Millis) -> Result<()> {
    let value = format!("{:013}", to.0);
    if mark.newest.is_none() {
        // Two that write the first at once: one fails with a taken key and is asked again.
        store::meta(tx, NEWEST, &value).await?;
        return Ok(());
    }
    let sql = "UPDATE procession_meta SET value = ? WHERE name = ? AND value < ?";
    tx.execute(sql, &[value.as_str().into(), NEWEST.into(), value.as_str().into()])
        .await
        .context("raise the newest heartbeat")?;
    Ok(())
}

/// Puts a gap on record. One that is there already stays: it began earlier.
pub async fn open(tx: &mut Tx, gap: &MetadataGap) -> Result<()> {
    store::meta(tx, GAP, &serde_json::to_string(gap)?).await?;
    Ok(())
}

/// The gap on record, its row locked to the end of the transaction.
pub async fn lock(tx: &mut Tx) -> Result<Option<MetadataGap>> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT value FROM procession_meta WHERE name = ?{lock}");
    let row = tx.fetch_optional(&sql, &[GAP.into()]).await?;
    let value = row.map(|row| row.text("value")).transpose()?;
    value
        .map(|value| serde_json::from_str(&value).context("procession_meta.metadata_gap"))
        .transpose()
}

/// Takes the gap off the record.
pub async fn close(tx: &mut Tx) -> Result<()> {
    tx.execute("DELETE FROM procession_meta WHERE name = ?", &[GAP.into()])
        .await
        .context("accept the restored metadata")?;
    Ok(())
}
