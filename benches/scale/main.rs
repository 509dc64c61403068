//! Measures size: a million dependencies, a batch of 100,000 jobs, what they cost while they wait.
//!
//! Each figure is of a `procession` process as a user starts it, on a scratch database of its own.

#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

mod file;
#[path = "../common/place.rs"]
#[expect(dead_code, reason = "the other benches use more of it")]
mod place;
mod process;
#[path = "../common/slow_line.rs"]
mod slow_line;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use place::{Database, Place};
use process::{Served, run};
use std::time::{Duration, Instant};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scene {
    /// A definition of 100 by 100 fully connected layers: checked, applied, applied again
    Import,
    /// A batch of 100,000 jobs is opened
    Open,
    /// A process serves 100,000 jobs that wait for a time
    Wait,
}

/// Measures what size costs, on scratch databases
#[derive(Parser)]
struct Args {
    /// What is measured; everything unless given
    #[arg(value_enum)]
    scenes: Vec<Scene>,
    /// On which databases; on all unless given
    #[arg(long, value_enum, value_delimiter = ',')]
    db: Vec<Database>,
    /// One line of JSON for each figure
    #[arg(long)]
    json: bool,
    /// Small and short: that it works, not how fast
    #[arg(long)]
    smoke: bool,
    /// Said by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// One figure, and what it is to be at most.
struct Figure {
    what: &'static str,
    value: f64,
    unit: &'static str,
    most: Option<f64>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&args))
}

async fn measure(args: &Args) -> Result<()> {
    let scenes = if args.scenes.is_empty() { Scene::value_variants() } else { &args.scenes[..] };
    let databases = match args.db.as_slice() {
        [] if args.smoke => vec![Database::Sqlite],
        [] => Database::value_variants().to_vec(),
        given => given.to_vec(),
    };
    for scene in scenes {
        for database in &databases {
            let place = Place::make(*database).await?;
            let figures = match scene {
                Scene::Import => import(&place, args).await,
                Scene::Open => open(&place, args).await,
                Scene::Wait => wait(&place, args).await,
            };
            place.remove().await?;
            figures?.iter().for_each(|figure| say(args, *scene, *database, figure));
        }
    }
    Ok(())
}

fn say(args: &Args, scene: Scene, database: Database, figure: &Figure) {
    let scene = scene.to_possible_value().map_or(String::new(), |v| v.get_name().to_owned());
    let Figure { what, value, unit, most } = figure;
    if args.json {
        let line = serde_json::json!({"scene": scene, "database": database.name(), "what": what,
            "value": value, "unit": unit, "most": most});
        println!("{line}");
        return;
    }
    let most = most.map_or(String::new(), |most| format!("  (to be {most} at most)"));
    println!("{scene:7} {:14} {what:38} {value:>9.2} {unit}{most}", database.name());
}

fn figure(what: &'static str, value: f64, unit: &'static str, most: Option<f64>) -> Figure {
    Figure { what, value, unit, most }
}

async fn import(place: &Place, args: &Args) -> Result<Vec<Figure>> {
    let (layers, width) = if args.smoke { (5, 5) } else { (100, 100) };
    file::layers(&place.folder().join("big.yaml"), layers, width, 1_800)?;
    file::layers(&place.folder().join("changed.yaml"), layers, width, 60)?;
    let mut figures = Vec::new();
    let steps: [(&'static str, &'static str, &[&str]); 5] = [
        ("check: time", "check: memory", &["check", "big.yaml"]),
        ("apply: time", "apply: memory", &["apply", "big.yaml"]),
        ("apply, nothing differs: time", "its memory", &["apply", "big.yaml"]),
        ("apply, one job differs: time", "its memory", &["apply", "changed.yaml"]),
        ("dag: time", "dag: memory", &["dag", "big.yaml"]),
    ];
    for (i, (time, memory, words)) in steps.into_iter().enumerate() {
        let took = run(place.folder(), &place.url, words)?;
        let (seconds, mib) = if i == 1 { (Some(10.0), Some(512.0)) } else { (None, None) };
        figures.push(figure(time, took.time.as_secs_f64(), "s", seconds));
        figures.push(figure(memory, took.peak_mib as f64, "MiB", mib));
    }
    let sql = "SELECT COUNT(*) AS n FROM job_dependency";
    let [written] = place.numbers(sql, ["n"]).await?;
    ensure!(usize::try_from(written)? == (layers - 1) * width * width, "{written} dependencies");
    Ok(figures)
}

/// From the command to the last row, which a process that serves writes in steps.
#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
async fn open(place: &Place, args: &Args) -> Result<Vec<Figure>> {
    let jobs = if args.smoke { 100 } else { 100_000 };
    file::flat(&place.folder().join("flat.yaml"), jobs, file::When::AtOnce)?;
    let applied = run(place.folder(), &place.url, &["apply", "flat.yaml"])?;
    let words = ["batch", "open", "--batch-no", "1", "--group", "flat"];
    let served = Served::start(place.folder(), &place.url)?;
    let began = Instant::now();
    let opened = run(place.folder(), &place.url, &words)?;
    until_open(place).await?;
    let took = began.elapsed();
    let [written] = place.numbers("SELECT COUNT(*) AS n FROM job_queue", ["n"]).await?;
    ensure!(usize::try_from(written)? == jobs, "{written} rows");
    Ok(vec![
        figure("apply: time", applied.time.as_secs_f64(), "s", None),
        figure("apply: memory", applied.peak_mib as f64, "MiB", None),
        figure("batch open: time", took.as_secs_f64(), "s", Some(4.0)),
        figure("batch open: memory of the command", opened.peak_mib as f64, "MiB", None),
        figure("batch open: memory of serve", served.peak_mib() as f64, "MiB", None),
    ])
}

/// Returns when a process has taken the batch and all its rows are there.
#[expect(clippy::disallowed_methods, reason = "a limit of real time")]
async fn until_open(place: &Place) -> Result<()> {
    let began = Instant::now();
    // A hundred jobs may have ended before it is looked for, and then the batch has no owner any more.
    let open = "SELECT COUNT(*) AS n FROM job_batch \
                WHERE unwritten_jobs = 0 AND (owner IS NOT NULL OR end_time IS NOT NULL)";
    while place.numbers(open, ["n"]).await? == [0] {
        ensure!(began.elapsed() < Duration::from_secs(120), "the batch is not open");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn wait(place: &Place, args: &Args) -> Result<Vec<Figure>> {
    let (jobs, seconds) = if args.smoke { (100, 1) } else { (100_000, 30) };
    file::flat(&place.folder().join("flat.yaml"), jobs, file::When::Tonight)?;
    run(place.folder(), &place.url, &["apply", "flat.yaml"])?;
    let above = |mib: u64, idle: u64| mib.saturating_sub(idle) as f64;
    let served = Served::start(place.folder(), &place.url)?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let idle_mib = served.memory_mib();
    let idle = load(&served, seconds).await;
    let words = ["batch", "open", "--batch-no", "1", "--group", "flat"];
    run(place.folder(), &place.url, &words)?;
    until_open(place).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let waiting = load(&served, seconds).await;
    Ok(vec![
        figure("idle process: memory", idle_mib as f64, "MiB", None),
        figure("idle process: processor", idle, "% of one", Some(1.0)),
        figure(
            "jobs waiting: memory above idle",
            above(served.memory_mib(), idle_mib),
            "MiB",
            Some(200.0),
        ),
        figure("jobs waiting: peak above idle", above(served.peak_mib(), idle_mib), "MiB", None),
        figure("jobs waiting: processor", waiting, "% of one", Some(1.0)),
    ])
}

/// How much of a processor it takes while it is left alone.
#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
async fn load(served: &Served, seconds: u64) -> f64 {
    let (before, began) = (served.processor(), Instant::now());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let took = served.processor().saturating_sub(before);
    took.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0
}
