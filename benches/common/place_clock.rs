//! The clock of a scratch database, by which rows are written.

use crate::place::Place;
use anyhow::Result;
use procession::domain::time::Millis;
use std::time::Duration;

/// The database's clock.
pub(crate) async fn now(place: &Place) -> Result<Millis> {
    Ok(place.db.begin_read().await?.server_time().await?.into())
}

/// Sleeps until that clock shows `at`.
pub(crate) async fn sleep_until(place: &Place, at: Millis) -> Result<()> {
    let left = at.since(now(place).await?);
    tokio::time::sleep(Duration::from_millis(u64::try_from(left).unwrap_or(0))).await;
    Ok(())
}
