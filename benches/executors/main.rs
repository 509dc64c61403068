//! Measures this installation as the admin of XXL-JOB's executors: registrations, ends that are told, runs.
//!
//! A real `serve` on scratch databases; the executors are of here, ten of them listen. What was answered with
//! 200 and is not stored counts as lost. docs/performance.md says what the figures mean.

#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

mod admin;
mod fakes;
#[expect(dead_code, reason = "shared with the other benchmark, which uses all of it")]
#[path = "../common/figures.rs"]
mod figures;
#[expect(dead_code, reason = "shared with the other benchmarks, which use all of it")]
#[path = "../common/machine.rs"]
mod machine;
mod pace;
#[expect(dead_code, reason = "shared with the other benchmarks, which use all of it")]
#[path = "../common/place.rs"]
mod place;
mod registrations;
mod runs;
#[path = "../common/slow_line.rs"]
mod slow_line;
mod told;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use figures::{Report, table};
use place::{Database, Place};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scene {
    /// 1,000 executors that register, at once and then each in its time
    Registrations,
    /// 2,000 ends of runs each second, told in lists of 50
    Told,
    /// 500 runs each second through ten executors, from the open batch to the end of the job
    Runs,
}

impl Scene {
    fn word(self) -> &'static str {
        match self {
            Self::Registrations => "registrations",
            Self::Told => "told",
            Self::Runs => "runs",
        }
    }
}

/// Measures this installation as the admin of executors, on scratch databases
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
    /// Small and short: that it works, and that nothing is lost, not how fast
    #[arg(long)]
    smoke: bool,
    /// Said by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// How much of each scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Executors, and in how many seconds all of them register once more.
    pub(crate) executors: (usize, u32),
    /// Lists each second, ends in each, for so many seconds.
    pub(crate) told: (u32, i64, u32),
    /// Runs of a batch, of which one is opened each second, for so many seconds.
    pub(crate) runs: (usize, u32),
}

impl Args {
    fn size(&self) -> Size {
        if self.smoke {
            return Size { executors: (50, 1), told: (10, 10, 1), runs: (20, 2) };
        }
        Size { executors: (1_000, 30), told: (40, 50, 20), runs: (500, 20) }
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let all = runtime.block_on(async {
        tokio::select! {
            all = measure(&args) => all,
            stopped = place::stopped() => Err(stopped),
        }
    })?;
    if !args.json {
        print!("{}", table(&all));
    }
    Ok(())
}

async fn measure(args: &Args) -> Result<Vec<Report>> {
    let size = args.size();
    let scenes = match args.scenes.as_slice() {
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
            let before = machine::load();
            let measured = match scene {
                Scene::Registrations => registrations::measure(&place, size.executors).await,
                Scene::Told => told::measure(&place, size.told).await,
                Scene::Runs => runs::measure(&place, size.runs).await,
            };
            place.remove().await?;
            let report = Report {
                scene: scene.word(),
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
    eprintln!("bench: {} on {} (load {})", scene.word(), database.name(), machine::load());
}
