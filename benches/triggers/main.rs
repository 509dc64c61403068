//! Measures the trigger core: how late firings are, how long the lock is held, what it costs.
//!
//! Real trigger cores, with the dispatcher and the heartbeat that `serve` runs beside them, on scratch
//! databases of their own; `make bench` runs all of it and docs/performance.md says what the figures mean.

#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

mod capture;
mod failover;
#[path = "../common/figures.rs"]
mod figures;
mod floor;
mod flow;
#[expect(dead_code, reason = "shared with the other benchmark, which uses all of it")]
#[path = "../common/machine.rs"]
mod machine;
mod node;
#[path = "../common/place.rs"]
mod place;
#[path = "../common/place_clock.rs"]
mod place_clock;
mod schedules;
#[path = "../common/slow_line.rs"]
mod slow_line;
mod sweeps;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use figures::{Report, table};
use place::{Database, Place};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scene {
    /// So many firings each second for a minute
    Steady,
    /// 5,000 due in one second
    Burst,
    /// 20,000 due in one second
    Flood,
    /// Firings that open batches of one job each
    Batches,
    /// 10,000 schedules of which none is due
    Idle,
    /// Two `serve` processes, of which one is killed, or stalls
    Failover,
}

/// Measures the trigger core on scratch databases
#[derive(Parser)]
pub(crate) struct Args {
    /// What is measured; everything unless given
    #[arg(value_enum)]
    scenes: Vec<Scene>,
    /// On which databases; on all unless given
    #[arg(long, value_enum, value_delimiter = ',')]
    db: Vec<Database>,
    /// One line of JSON for each scene and database in place of tables
    #[arg(long)]
    json: bool,
    /// Small and short: that it works, not how fast
    #[arg(long)]
    smoke: bool,
    /// Seconds of a steady run
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Firings each second of a steady run
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Said by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// How much of each scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Milliseconds between writing schedules and the first that is due; longer than a pass looks ahead.
    pub(crate) ahead_ms: i64,
    /// Firings each second, and for how many seconds.
    pub(crate) steady: (u32, u32),
    pub(crate) burst: u32,
    pub(crate) flood: u32,
    /// Firings each second that open a batch, and for how many seconds.
    pub(crate) batches: (u32, u32),
    /// Schedules, and for how many seconds they are left alone.
    pub(crate) idle: (u32, u32),
    /// Schedules of every second, and how often a process is broken in each way.
    pub(crate) failover: (u32, u32),
}

impl Args {
    fn size(&self) -> Size {
        if self.smoke {
            return Size {
                ahead_ms: 2_000,
                steady: (20, 1),
                burst: 50,
                flood: 100,
                batches: (5, 1),
                idle: (100, 1),
                failover: (5, 1),
            };
        }
        Size {
            ahead_ms: 8_000,
            steady: (self.rate, self.seconds),
            burst: 5_000,
            flood: 20_000,
            batches: (100, 20),
            idle: (10_000, 30),
            failover: (100, 3),
        }
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let seen = capture::install();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let all = runtime.block_on(async {
        tokio::select! {
            all = measure(&args, &seen) => all,
            stopped = place::stopped() => Err(stopped),
        }
    })?;
    if !args.json {
        print!("{}", table(&all));
    }
    Ok(())
}

async fn measure(args: &Args, seen: &capture::Seen) -> Result<Vec<Report>> {
    let size = args.size();
    let scenes = match args.scenes.as_slice() {
        [] if args.smoke => vec![Scene::Steady, Scene::Burst, Scene::Batches, Scene::Idle],
        [] => Scene::value_variants().to_vec(),
        given => given.to_vec(),
    };
    let databases = match args.db.as_slice() {
        [] if args.smoke => vec![Database::Sqlite],
        [] => Database::value_variants().to_vec(),
        given => given.to_vec(),
    };
    let mut all = Vec::new();
    for scene in scenes {
        for database in &databases {
            eprintln_progress(scene, *database);
            let place = Place::make(*database).await?;
            seen.clear();
            let before = machine::load();
            let measured = match scene {
                Scene::Steady => flow::steady(&place, seen, &size).await,
                Scene::Batches => flow::batches(&place, seen, &size).await,
                Scene::Burst => sweeps::at_once(&place, seen, size.burst, &size).await,
                Scene::Flood => sweeps::at_once(&place, seen, size.flood, &size).await,
                Scene::Idle => sweeps::idle(&place, seen, &size).await,
                Scene::Failover => failover::failover(&place, &size).await,
            };
            place.remove().await?;
            let report = Report {
                scene: word(scene).to_owned(),
                database: *database,
                load: (before, machine::load()),
                rows: measured?,
            };
            if args.json {
                println!("{}", report.json());
            }
            all.push(report);
        }
    }
    Ok(all)
}

#[expect(clippy::print_stderr, reason = "a run takes minutes")]
fn eprintln_progress(scene: Scene, database: Database) {
    eprintln!("bench: {} on {} (load {})", word(scene), database.name(), machine::load());
}

/// The word of a scene, as one types it.
fn word(scene: Scene) -> &'static str {
    match scene {
        Scene::Steady => "steady",
        Scene::Burst => "burst",
        Scene::Flood => "flood",
        Scene::Batches => "batches",
        Scene::Idle => "idle",
        Scene::Failover => "failover",
    }
}
