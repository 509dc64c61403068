//! `procession_meta`: the newest heartbeat of any process, and the gap that a restored backup has
//! left.

use crate::domain::cluster::metadata_gap::{HistoryMark, MetadataGap};
use crate::domain::time::Millis;
use crate::store::{self, Tx};
use anyhow::{Context as _, Result};

/// Milliseconds since 1970 in thirteen digits, so that texts compare like numbers.
const NEWEST: &str = "newest_heartbeat";
const GAP: &str = "metadata_gap";
const START: &str = "newest_start";

/// The database's record of its own past.
pub async fn read_mark(tx: &mut Tx) -> Result<HistoryMark> {
    let sql = format!(
        "SELECT name, value FROM procession_meta WHERE name IN ('{NEWEST}', '{GAP}', '{START}')"
    );
    let rows = tx.fetch_all(&sql, &[]).await?;
    let mut mark = HistoryMark::default();
    for row in rows {
        let value = row.get_text("value")?;
        let millis =
            || value.parse().map(Millis).context("procession_meta: a time in milliseconds");
        match row.get_text("name")?.as_str() {
            GAP => {
                mark.gap =
                    Some(serde_json::from_str(&value).context("procession_meta.metadata_gap")?)
            }
            START => mark.newest_start = Some(millis()?),
            _ => mark.newest = Some(millis()?),
        }
    }
    Ok(mark)
}

/// Raises the newest heartbeat; a later one of another process is kept.
pub async fn raise(tx: &mut Tx, mark: &HistoryMark, to: Millis) -> Result<()> {
    raise_time(tx, NEWEST, mark.newest, to).await
}

/// Raises the time at which a process last started.
pub async fn raise_start(tx: &mut Tx, mark: &HistoryMark, to: Millis) -> Result<()> {
    raise_time(tx, START, mark.newest_start, to).await
}

async fn raise_time(tx: &mut Tx, name: &str, there: Option<Millis>, to: Millis) -> Result<()> {
    let value = format!("{:013}", to.0);
    if there.is_none() {
        // Another process may have inserted the first, earlier one meanwhile: it was kept, this
        // process took its own for committed, and the installation was suspended for a gap that did
        // not exist (p11_leader, November 2026).
        store::meta_or_insert(tx, name, &value).await?;
    }
    let sql = "UPDATE procession_meta SET value = ? WHERE name = ? AND value < ?";
    tx.execute(sql, &[value.as_str().into(), name.into(), value.as_str().into()])
        .await
        .with_context(|| format!("raise {name}"))?;
    Ok(())
}

/// Records a gap. An existing one is kept: it began earlier.
pub async fn open_gap(tx: &mut Tx, gap: &MetadataGap) -> Result<()> {
    store::meta_or_insert(tx, GAP, &serde_json::to_string(gap)?).await?;
    Ok(())
}

/// The recorded gap, its row locked until the end of the transaction.
pub async fn lock_gap(tx: &mut Tx) -> Result<Option<MetadataGap>> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT value FROM procession_meta WHERE name = ?{lock}");
    let row = tx.fetch_optional(&sql, &[GAP.into()]).await?;
    let value = row.map(|row| row.get_text("value")).transpose()?;
    value
        .map(|value| serde_json::from_str(&value).context("procession_meta.metadata_gap"))
        .transpose()
}

/// Removes the recorded gap.
pub async fn close(tx: &mut Tx) -> Result<()> {
    tx.execute("DELETE FROM procession_meta WHERE name = ?", &[GAP.into()])
        .await
        .context("accept the restored metadata")?;
    Ok(())
}
