//! Many schedules at once: all due in one second, or none due at all.

use crate::Size;
use crate::capture::Seen;
use crate::figures::{Figure, Used, figure, ratio, spread};
use crate::flow::whole;
use crate::machine::quantile;
use crate::node::Node;
use crate::place::Place;
use crate::schedules::{Wanted, hourly, plant};
use anyhow::{Context as _, Result};
use procession::domain::time::Millis;
use std::time::Duration;

/// Nobody waits longer for all of them.
const LONGEST: Duration = Duration::from_secs(120);

/// All due in one second. Of tenths by key and by order of firing: how late the latest is, durable,
/// beside the median of all.
pub(crate) async fn at_once(
    place: &Place,
    seen: &Seen,
    count: u32,
    size: &Size,
) -> Result<Vec<Figure>> {
    let node = Node::start(place).await?;
    // Time to write them all, and for a pass or two ahead.
    let at = whole(node.clock.now()).plus_ms(2 * size.ahead_ms);
    let wanted: Result<Vec<Wanted>> = (0..count).map(|_| hourly(at)).collect();
    plant(place, wanted?).await?;
    tokio::time::timeout(LONGEST, seen.fired(count)).await.context("wait for all firings")?;
    let took = node.clock.now().since(at);
    let passes = seen.passes();
    node.end().await?;
    let (late, durable) = lateness(place, seen, at).await?;
    let mut figures = vec![
        figure("until all were durable", "ms", took),
        figure("lost or open", "rows", i64::from(count) - i64::try_from(late.len())?),
    ];
    figures.extend(spread("late", "ms", late));
    figures.extend(spread("late, durable", "ms", durable.clone()));
    figures.push(ratio("latest tenth by key / median", "", worst_tenth(&durable)));
    let mut by_firing = durable;
    by_firing.sort_unstable();
    figures.push(ratio("latest tenth by firing / median", "", worst_tenth(&by_firing)));
    let with_rows = passes.iter().filter(|p| p.rows > 0);
    figures.push(figure("passes", "", i64::try_from(with_rows.count())?));
    figures.extend(spread("lock held", "ms", passes.iter().map(|p| p.hold_ms).collect()));
    figures.push(figure(
        "statements of a pass",
        "",
        passes.iter().map(|p| p.statements).max().unwrap_or(0),
    ));
    figures.extend(Used::now().since(Duration::from_secs(1)).into_iter().skip(1));
    Ok(figures)
}

/// When each was taken up, and when that was durable, in order of keys.
async fn lateness(place: &Place, seen: &Seen, at: Millis) -> Result<(Vec<i64>, Vec<i64>)> {
    let mut tx = place.db.begin_read().await?;
    let sql = "SELECT fired_at FROM job_firing WHERE planned_at = ? AND status = 'FIRED' \
               AND attempt = 1 ORDER BY trigger_id";
    let rows = tx.fetch_all(sql, &[at.to_utc().into()]).await?;
    let fired = rows.iter().map(|row| Ok(row.get_time("fired_at")?.timestamp_millis()));
    let fired = fired.collect::<Result<Vec<i64>>>()?;
    Ok(fired.into_iter().map(|ms| (ms - at.0, ms - at.0 + seen.commit_ms(ms))).unzip())
}

/// The median of the worst tenth as a part of the median of all.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of a run are small")]
fn worst_tenth(late: &[i64]) -> f64 {
    let median = quantile(&mut late.to_vec(), 500).max(1);
    let tenths = late.chunks(late.len().div_ceil(10).max(1));
    let worst = tenths.map(|tenth| quantile(&mut tenth.to_vec(), 500)).max().unwrap_or(0);
    worst as f64 / median as f64
}

/// Schedules of which none is due within the hour.
pub(crate) async fn idle(place: &Place, seen: &Seen, size: &Size) -> Result<Vec<Figure>> {
    let (count, seconds) = size.idle;
    let node = Node::start(place).await?;
    let at = whole(node.clock.now()).plus_ms(30 * 60_000);
    let wanted: Result<Vec<Wanted>> = (0..count).map(|_| hourly(at)).collect();
    plant(place, wanted?).await?;
    // Hints of the writing and the first looks are over then.
    node.until(node.clock.now().plus_ms(size.ahead_ms)).await;
    let (used, said) = (Used::now(), node.statements(place));
    node.until(node.clock.now().plus_ms(i64::from(seconds) * 1_000)).await;
    let used = used.since(Duration::from_secs(seconds.into()));
    let said = node.statements(place) - said;
    let per_second = |n: u64| u32::try_from(n).map(|n| f64::from(n) / f64::from(seconds));
    let mut figures = vec![
        figure("schedules", "rows", count.into()),
        ratio("statements", "1/s", per_second(said)?),
        figure("passes", "", i64::try_from(seen.passes().len())?),
    ];
    figures.extend(used);
    node.end().await?;
    Ok(figures)
}
