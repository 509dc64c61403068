//! Firings second after second: steady ones that do nothing, and ones that open batches.

use crate::Size;
use crate::capture::Seen;
use crate::figures::{Figure, Used, figure, ratio, spread};
use crate::floor::Floor;
use crate::node::Node;
use crate::place::Place;
use crate::schedules::{Wanted, every, plant};
use anyhow::Result;
use procession::definition;
use procession::domain::time::Millis;
use procession::store;
use std::path::Path;
use std::time::Duration;

/// One row that was to fire in the measured time.
struct Fired {
    planned_at: i64,
    fired_at: Option<i64>,
}

/// `rate` firings each second for so many seconds.
pub(crate) async fn steady(place: &Place, seen: &Seen, size: &Size) -> Result<Vec<Figure>> {
    let (rate, seconds) = size.steady;
    let node = Node::start(place).await?;
    let from = whole(node.clock.now()).plus_ms(size.ahead_ms);
    let wanted: Result<Vec<Wanted>> = (0..rate * 2).map(|n| every(n, 2, from)).collect();
    plant(place, wanted?).await?;
    let floor = Floor::start(place, &node.db).await?;
    let span =
        (from.plus_ms(size.ahead_ms), from.plus_ms(size.ahead_ms + i64::from(seconds) * 1_000));
    node.until(span.0).await;
    seen.clear();
    let (used, said) = (Used::now(), node.statements(place));
    node.until(span.1).await;
    let (used, said) =
        (used.since(Duration::from_secs(seconds.into())), node.statements(place) - said);
    let passes = seen.passes();
    node.until(span.1.plus_ms(3_000)).await;
    let floor = floor.end().await?;
    node.end().await?;
    let rows = rows(place, span).await?;
    let mut figures = vec![figure("firings", "rows", i64::try_from(rows.len())?)];
    let planned = i64::from(rate) * i64::from(seconds);
    let open = rows.iter().filter(|row| row.fired_at.is_none()).count();
    figures.push(figure("lost or open", "rows", planned - i64::try_from(rows.len() - open)?));
    figures.extend(lateness(&rows, seen));
    figures.extend(floor);
    figures.extend(spread("lock waited for", "ms", passes.iter().map(|p| p.wait_ms).collect()));
    figures.extend(spread("lock held", "ms", passes.iter().map(|p| p.hold_ms).collect()));
    figures.extend(spread(
        "statements of a pass",
        "",
        passes.iter().map(|p| p.statements).collect(),
    ));
    figures.push(ratio(
        "statements in all",
        "1/s",
        f64::from(u32::try_from(said)?) / f64::from(seconds),
    ));
    figures.extend(used);
    Ok(figures)
}

/// `rate` batches of one job each second for so many seconds.
pub(crate) async fn batches(place: &Place, seen: &Seen, size: &Size) -> Result<Vec<Figure>> {
    let (rate, seconds) = size.batches;
    let count = rate * 2;
    let mut yaml = "jobs:\n".to_owned();
    for n in 0..count {
        yaml.push_str(&format!("  J{n}: {{ group: g{n}, type: NOOP }}\n"));
    }
    yaml.push_str("groups:\n");
    for n in 0..count {
        yaml.push_str(&format!("  g{n}: {{}}\n"));
    }
    apply(place, &yaml).await?;
    let node = Node::start(place).await?;
    let from = whole(node.clock.now()).plus_ms(size.ahead_ms);
    let order = |n: u32| format!(r#"{{"batchNo":"time(%H%M%S)","group":"g{n}"}}"#);
    let wanted: Result<Vec<Wanted>> =
        (0..count).map(|n| Ok(Wanted { order: Some(order(n)), ..every(n, 2, from)? })).collect();
    plant(place, wanted?).await?;
    let floor = Floor::start(place, &node.db).await?;
    let span = (from, from.plus_ms(i64::from(seconds) * 1_000));
    node.until(span.0).await;
    let used = Used::now();
    node.until(span.1).await;
    let used = used.since(Duration::from_secs(seconds.into()));
    let floor = floor.end().await?;
    let rows = rows(place, span).await?;
    let done = "SELECT COUNT(*) AS n FROM job_batch WHERE status = 'SUCCESS'";
    let [ended] = place.numbers(done, ["n"]).await?;
    node.end().await?;
    let fired = rows.iter().filter(|row| row.fired_at.is_some_and(|at| at < span.1.0)).count();
    let rate_of = |n: f64| n / f64::from(seconds);
    let mut figures = vec![
        ratio("due", "1/s", rate.into()),
        ratio("opened", "1/s", rate_of(f64::from(u32::try_from(fired)?))),
        ratio("ended well", "1/s", rate_of(f64::from(u32::try_from(ended)?))),
    ];
    figures.extend(lateness(&rows, seen).into_iter().take(3));
    figures.extend(floor);
    figures.extend(used);
    Ok(figures)
}

async fn apply(place: &Place, yaml: &str) -> Result<()> {
    let text = yaml.to_owned();
    let read = move |_: &Path| Ok(text.clone());
    let loaded =
        definition::load_definition(Path::new("bench.yaml"), &read, &procession::app::job_kinds())?;
    let mut tx = place.db.begin().await?;
    let stored = store::job::definition(&mut tx).await?;
    store::job::apply(&mut tx, &stored, &loaded.definition, Millis(0)).await?;
    Ok(tx.commit().await?)
}

/// The next whole second.
pub(crate) fn whole(now: Millis) -> Millis {
    Millis((now.0.div_euclid(1_000) + 1) * 1_000)
}

/// How late rows say that they were taken up, and how late that was durable.
fn lateness(rows: &[Fired], seen: &Seen) -> Vec<Figure> {
    let late = rows.iter().filter_map(|row| Some((row.fired_at?, row.fired_at? - row.planned_at)));
    let (taken, durable) = late.map(|(at, ms)| (ms, ms + seen.commit_ms(at))).unzip();
    let mut figures = spread("late", "ms", taken);
    figures.extend(spread("late, durable", "ms", durable));
    figures
}

async fn rows(place: &Place, (from, to): (Millis, Millis)) -> Result<Vec<Fired>> {
    let mut tx = place.db.begin_read().await?;
    let sql =
        "SELECT planned_at, fired_at FROM job_firing WHERE planned_at >= ? AND planned_at < ?";
    let found = tx.fetch_all(sql, &[from.to_utc().into(), to.to_utc().into()]).await?;
    let read = |row: &procession::db::Row| {
        Ok(Fired {
            planned_at: row.get_time("planned_at")?.timestamp_millis(),
            fired_at: row.opt_time("fired_at")?.map(|at| at.timestamp_millis()),
        })
    };
    found.iter().map(read).collect()
}
