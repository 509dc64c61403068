//! One firing, one batch, one job, as shops of XXL-JOB have it: how late is the end of the job?
//!
//! All schedules are due in the same moment of each second, which is the worst way to spread them.

use crate::admin::{APP, Admin, command};
use crate::body::{Body, Data};
use crate::fakes::Fakes;
use crate::figures::{Figure, figure, ratio, spread};
use crate::pace::{Used, since};
use crate::place::Place;
use crate::place_clock::{now, sleep_until};
use crate::schedules::{Wanted, every, plant};
use anyhow::{Result, ensure};
use clap::ValueEnum;
use procession::domain::schedule::misfire::MisfirePolicy;
use procession::domain::time::Millis;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// How long after the last firing batches may be open.
const PATIENCE: Duration = Duration::from_secs(120);
/// From the write of the schedules to the first firing.
const LEAD_MS: i64 = 4_000;

/// What each job does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Work {
    /// Nothing
    #[default]
    Noop,
    /// A procedure that inserts one row
    Proc,
    /// A run on one of ten executors of XXL-JOB
    Handler,
}

/// So many firings each second, for so many seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) work: Work,
    pub(crate) rate: u32,
    pub(crate) seconds: u32,
    /// Jobs that the process runs at once; runs on executors do not count.
    pub(crate) max_parallel: u32,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let work = self.work.to_possible_value();
        let work = work.as_ref().map_or("", |work| work.get_name());
        write!(f, "{work} {}/s, {} at once", self.rate, self.max_parallel)
    }
}

/// A firing and the job that it led to.
struct Effect {
    planned_at: i64,
    is_fired: bool,
    /// Of the job; none while it has not ended, or where no batch was opened.
    end_time: Option<i64>,
}

pub(crate) async fn measure(place: &Place, load: Load) -> Result<Vec<Figure>> {
    let data = Data::make(place.database).await?;
    let settings = format!("[engine]\nmax_parallel = {}\n", load.max_parallel);
    std::fs::write(place.folder().join("procession.toml"), settings)?;
    std::fs::write(place.folder().join("d.yaml"), definition(load, &data))?;
    command(place, &["apply", "d.yaml"])?;
    let admin = Admin::start(place).await?;
    let fakes = match load.work {
        Work::Handler => Some(Fakes::start(10, admin.address).await?),
        Work::Noop | Work::Proc => None,
    };
    let from = Millis((now(place).await?.0 / 1_000) * 1_000 + LEAD_MS);
    let until = from.plus_ms(i64::from(load.seconds) * 1_000);
    plant(place, wanted(load, from, until)?).await?;
    sleep_until(place, from).await?;
    let used = Used::now(&admin);
    sleep_until(place, until).await?;
    let processor = used.since(&admin);
    let (at_end, begun) = (open(place).await?, Instant::now());
    let left = until_ended(place).await?;
    let recovered = since(begun);
    drop(admin);
    drop(fakes);
    let mut rows = figures(place, load, (from, until)).await?;
    rows.push(figure("batches open after the last second", "batches", at_end));
    rows.push(figure("until none was open", "ms", recovered));
    rows.push(figure("still open after two minutes", "batches", left));
    if load.work == Work::Proc {
        let sql = "SELECT COUNT(*) AS n FROM job_queue WHERE status = 'SUCCESS'";
        let [ended] = place.numbers(sql, ["n"]).await?;
        let effects = data.rows().await?;
        ensure!(effects == ended, "{ended} procedures ended well, and {effects} ran");
    }
    rows.push(processor);
    data.remove().await?;
    Ok(rows)
}

fn definition(load: Load, data: &Data) -> String {
    let handler =
        format!("type: HANDLER, executor: {{ app: {APP}, handler: h, send: none, route: ROUND }}");
    let keys = match load.work {
        Work::Noop => Body::Noop.keys(),
        Work::Proc => Body::Call.keys(),
        Work::Handler => &handler,
    };
    let numbers = || 0..load.rate;
    let jobs: String = numbers().map(|n| format!("  J{n}: {{ group: g{n}, {keys} }}\n")).collect();
    let groups: String = numbers().map(|n| format!("  g{n}: {{}}\n")).collect();
    format!("{}jobs:\n{jobs}groups:\n{groups}", data.yaml())
}

/// A schedule of every second for each group. What is missed is skipped, as imports from XXL-JOB have it.
fn wanted(load: Load, from: Millis, until: Millis) -> Result<Vec<Wanted>> {
    let one = |n: u32| {
        let mut wanted = every(n, 1, from)?;
        wanted.order = Some(format!(r#"{{"batchNo":"time(%H%M%S)","group":"g{n}"}}"#));
        wanted.misfire.policy = MisfirePolicy::Skip;
        let zone = wanted.timing.zone;
        wanted.timing.end = Some(until.to_utc().with_timezone(&zone).naive_local());
        Ok(wanted)
    };
    (0..load.rate).map(one).collect()
}

async fn figures(place: &Place, load: Load, span: (Millis, Millis)) -> Result<Vec<Figure>> {
    let effects = effects(place, span).await?;
    let planned = i64::from(load.rate) * i64::from(load.seconds);
    let rows = i64::try_from(effects.len())?;
    let fired = effects.iter().filter(|effect| effect.is_fired).count();
    let late = |effect: &Effect| Some(effect.end_time? - effect.planned_at);
    let late: Vec<i64> = effects.iter().filter_map(late).collect();
    let ended = i64::try_from(late.len())?;
    let mut figures = vec![
        figure("planned", "firings", planned),
        figure("without a row", "firings", planned - rows),
        figure("fired", "firings", i64::try_from(fired)?),
        figure("jobs ended", "jobs", ended),
    ];
    figures.extend(spread("job ended, after its planned time", "ms", late));
    let [shed] = place
        .numbers("SELECT COUNT(*) AS n FROM job_firing WHERE status = 'MISFIRED'", ["n"])
        .await?;
    figures.push(figure("missed, by their policy", "firings", shed));
    let share = 100.0 * f64::from(u32::try_from(ended)?) / f64::from(u32::try_from(planned)?);
    figures.push(ratio("jobs ended, of planned", "%", share));
    Ok(figures)
}

async fn effects(place: &Place, (from, until): (Millis, Millis)) -> Result<Vec<Effect>> {
    let mut tx = place.db.begin_read().await?;
    let sql = "SELECT f.planned_at, f.status, q.end_time FROM job_firing f \
               LEFT JOIN job_batch b ON b.firing_id = f.firing_id \
               LEFT JOIN job_queue q ON q.batch_id = b.batch_id \
               WHERE f.planned_at >= ? AND f.planned_at < ?";
    let found = tx.fetch_all(sql, &[from.to_utc().into(), until.to_utc().into()]).await?;
    let read = |row: &procession::db::Row| {
        Ok(Effect {
            planned_at: row.get_time("planned_at")?.timestamp_millis(),
            is_fired: row.get_text("status")? == "FIRED",
            end_time: row.opt_time("end_time")?.map(|at| at.timestamp_millis()),
        })
    };
    found.iter().map(read).collect()
}

/// Firings that are to be done and batches that are open.
async fn open(place: &Place) -> Result<i64> {
    let sql = "SELECT (SELECT COUNT(*) FROM job_firing WHERE status IN ('PENDING', 'WAITING')) \
               + (SELECT COUNT(*) FROM job_batch WHERE end_time IS NULL) AS n";
    Ok(place.numbers(sql, ["n"]).await?[0])
}

/// Returns when nothing is open any more, with 0; or after so long, with what is.
async fn until_ended(place: &Place) -> Result<i64> {
    let begun = Instant::now();
    loop {
        let open = open(place).await?;
        if open == 0 || begun.elapsed() > PATIENCE {
            return Ok(open);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
