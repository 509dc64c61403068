//! Two `serve` processes, of which one is killed, or stalls: how late are the firings that follow?

use crate::Size;
use crate::figures::{Figure, figure};
use crate::flow::whole;
use crate::place::Place;
use crate::place_clock::{now, sleep_until};
use crate::schedules::{Wanted, every, plant};
use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procession::domain::time::Millis;
use std::process::{Child, Command, Stdio};

/// How long is looked what becomes of a broken process's firings; a stall lasts as long.
const AFTER: [(Signal, i64); 2] = [(Signal::SIGKILL, 10_000), (Signal::SIGSTOP, 20_000)];

/// The latest of all firings planned after one of two processes was broken, over so many times.
pub(crate) async fn failover(place: &Place, size: &Size) -> Result<Vec<Figure>> {
    let (count, times) = size.failover;
    let mut nodes = Nodes::default();
    nodes.add(place)?;
    nodes.add(place)?;
    let from = whole(now(place).await?).plus_ms(size.ahead_ms);
    let wanted: Result<Vec<Wanted>> = (0..count).map(|n| every(n, 1, from)).collect();
    plant(place, wanted?).await?;
    sleep_until(place, from.plus_ms(size.ahead_ms)).await?;
    let mut figures = Vec::new();
    for (signal, after) in AFTER {
        let (mut next, mut worst, mut rows) = (0, 0, 0);
        for _ in 0..times {
            let broken = nodes.leader(place).await?;
            let at = now(place).await?;
            kill(nodes.pid(broken)?, signal)?;
            // Of all firings that were planned then; those of the last seconds may not have come yet.
            sleep_until(place, at.plus_ms(after + 6_000)).await?;
            let late = lateness(place, (at, at.plus_ms(after))).await?;
            let first = late.iter().map(|(planned, _)| *planned).min().unwrap_or(0);
            let of_next = late.iter().filter(|(planned, _)| *planned == first);
            next = next.max(of_next.map(|(_, late)| *late).max().context("nothing was planned")?);
            worst = worst.max(late.iter().map(|(_, late)| *late).max().unwrap_or(0));
            rows += i64::try_from(late.len())?;
            match signal {
                Signal::SIGSTOP => kill(nodes.pid(broken)?, Signal::SIGCONT)?,
                _ => nodes.replace(broken, place)?,
            }
            sleep_until(place, now(place).await?.plus_ms(size.ahead_ms)).await?;
        }
        let word = signal.as_str();
        figures.push(figure(format!("{word}: next due firing late"), "ms", next));
        figures.push(figure(format!("{word}: any firing late"), "ms", worst));
        figures.push(figure(format!("{word}: firings"), "rows", rows));
    }
    let [doubles] =
        place.numbers("SELECT COUNT(*) AS n FROM job_firing WHERE attempt > 1", ["n"]).await?;
    figures.push(figure("fired twice", "rows", doubles));
    Ok(figures)
}

/// Processes that do not outlive this one's hold of them.
#[derive(Default)]
struct Nodes(Vec<Child>);

impl Nodes {
    fn add(&mut self, place: &Place) -> Result<()> {
        self.0.push(spawn(place, self.0.len())?);
        Ok(())
    }

    fn replace(&mut self, index: usize, place: &Place) -> Result<()> {
        self.0[index].wait()?;
        self.0[index] = spawn(place, index)?;
        Ok(())
    }

    fn pid(&self, index: usize) -> Result<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.0[index].id())?))
    }

    /// Which of them has the most firings ahead.
    async fn leader(&self, place: &Place) -> Result<usize> {
        let sql = "SELECT n.pid AS pid FROM job_firing f JOIN cluster_node n ON n.node_id = f.owner \
                   WHERE f.status = 'PENDING' GROUP BY n.pid ORDER BY COUNT(*) DESC LIMIT 1";
        let [pid] = place.numbers(sql, ["pid"]).await.context("who has firings")?;
        let found = self.0.iter().position(|child| i64::from(child.id()) == pid);
        found.context("a firing of neither process")
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended already is what is wanted.
            let _ended = child.kill();
            let _waited = child.wait();
        }
    }
}

fn spawn(place: &Place, index: usize) -> Result<Child> {
    let child = Command::new(env!("CARGO_BIN_EXE_procession"))
        .args(["serve", "--quiet", "--http", "off", "--name", &format!("bench-{index}")])
        .current_dir(place.folder())
        .env("PROCESSION_DB", &place.url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    child.context("start procession serve")
}

/// When each was planned, and how late it was; one that has not fired is as late as it is by now.
async fn lateness(place: &Place, (from, to): (Millis, Millis)) -> Result<Vec<(i64, i64)>> {
    let now = now(place).await?;
    let mut tx = place.db.begin_read().await?;
    let sql =
        "SELECT planned_at, fired_at FROM job_firing WHERE planned_at > ? AND planned_at <= ?";
    let rows = tx.fetch_all(sql, &[from.to_utc().into(), to.to_utc().into()]).await?;
    let read = |row: &procession::db::Row| {
        let planned = Millis::from(row.get_time("planned_at")?);
        let fired = row.opt_time("fired_at")?.map_or(now, Millis::from);
        Ok((planned.0, fired.since(planned)))
    };
    rows.iter().map(read).collect()
}
