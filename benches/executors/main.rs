//! Measures this installation as the admin of XXL-JOB's executors: registrations, ends that are told, runs.
//!
//! A real `serve` on scratch databases; the executors are of here, ten of them listen. What was answered with
//! 200 and is not stored counts as lost. docs/performance.md says what the figures mean.

#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

mod admin;
#[expect(dead_code, reason = "shared with the benchmark of batches, which uses all of it")]
#[path = "../batches/body.rs"]
mod body;
mod effects;
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
#[path = "../common/place_clock.rs"]
mod place_clock;
mod registrations;
mod runs;
#[expect(dead_code, reason = "shared with the benchmark of triggers, which uses all of it")]
#[path = "../triggers/schedules.rs"]
mod schedules;
#[path = "../common/slow_line.rs"]
mod slow_line;
mod told;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use effects::{Load, Work};
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
    /// Schedules of every second, each of which opens a batch of one job: how late the jobs have ended
    Effects,
}

impl Scene {
    fn word(self) -> &'static str {
        match self {
            Self::Registrations => "registrations",
            Self::Told => "told",
            Self::Runs => "runs",
            Self::Effects => "effects",
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
    /// What the jobs of `effects` do; everything unless given
    #[arg(long, value_enum, value_delimiter = ',')]
    work: Vec<Work>,
    /// Firings each second of `effects`; 20, 100, 300 and 1,000 unless given, 100 where no scene is named
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: Vec<u32>,
    /// For how many seconds `effects` fires
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: u32,
    /// `engine.max_parallel` of the process for `effects`: how many jobs it runs at once
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    max_parallel: u32,
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

    /// What `scene` is measured with, one after the other; of most scenes there is one form.
    fn loads(&self, scene: Scene) -> Vec<Option<Load>> {
        if scene != Scene::Effects {
            return vec![None];
        }
        let works = match self.work.as_slice() {
            [] => Work::value_variants(),
            given => given,
        };
        let (rates, seconds) = match self.rate.as_slice() {
            _ if self.smoke => (&[5][..], 2),
            [] if self.scenes.is_empty() => (&[100][..], self.seconds),
            [] => (&[20, 100, 300, 1_000][..], self.seconds),
            given => (given, self.seconds),
        };
        let load = |work: &Work, rate: &u32| {
            Some(Load { work: *work, rate: *rate, seconds, max_parallel: self.max_parallel })
        };
        works.iter().flat_map(|work| rates.iter().map(move |rate| load(work, rate))).collect()
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
    let forms = scenes.into_iter();
    let forms =
        forms.flat_map(|scene| args.loads(scene).into_iter().map(move |load| (scene, load)));
    for (scene, load) in forms {
        let name = load.map_or(String::new(), |load| format!(" {load}"));
        let name = format!("{}{name}", scene.word());
        for database in &databases {
            eprintln_progress(&name, *database);
            let place = Place::make(*database).await?;
            let before = machine::load();
            let measured = match (scene, load) {
                (Scene::Registrations, _) => registrations::measure(&place, size.executors).await,
                (Scene::Told, _) => told::measure(&place, size.told).await,
                (Scene::Runs, _) => runs::measure(&place, size.runs).await,
                (Scene::Effects, load) => effects::measure(&place, load.unwrap_or_default()).await,
            };
            place.remove().await?;
            let report = Report {
                scene: name.clone(),
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
fn eprintln_progress(name: &str, database: Database) {
    eprintln!("bench: {name} on {} (load {})", database.name(), machine::load());
}
