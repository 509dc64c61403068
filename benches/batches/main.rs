//! Measures how fast batches are dispatched, beside what the database itself can do.
//!
//! Procession runs in this process, through its library, as `run` has it; the floors do the same work
//! just before and just after on the same server. `make bench` runs it and docs/performance.md says what
//! the figures mean.

#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

mod body;
mod capture;
mod cell;
mod compare;
mod figures;
mod floor;
mod history;
#[path = "../common/machine.rs"]
mod machine;
mod nodes;
#[path = "../common/place.rs"]
mod place;
mod product;
mod report;
mod scene;
#[path = "../common/shape.rs"]
mod shape;
#[path = "../common/slow_line.rs"]
mod slow_line;
mod trust;

use anyhow::{Context as _, Result};
use body::Body;
use capture::Seen;
use cell::Cell;
use clap::{Parser, ValueEnum as _};
use place::Database;
use scene::Scene;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures the dispatching of batches on scratch databases, beside the floors
#[derive(Parser)]
pub(crate) struct Options {
    /// Which scenes; a choice of them unless given
    #[arg(value_enum)]
    scenes: Vec<Scene>,
    /// On which databases; on all unless given
    #[arg(long, value_enum, value_delimiter = ',')]
    db: Vec<Database>,
    /// Which bodies; unless given, a choice for each scene
    #[arg(long, value_enum, value_delimiter = ',')]
    body: Vec<Body>,
    /// One line of JSON for each cell in place of tables
    #[arg(long)]
    json: bool,
    /// Every scene with every body; hours
    #[arg(long)]
    all: bool,
    /// The lines of JSON go to this file as well
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Measure nothing; say what changed between two such files
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    compare: Option<Vec<PathBuf>>,
    /// Small: that it works, not how fast
    #[arg(long)]
    smoke: bool,
    /// Jobs at once
    #[arg(long, default_value_t = 8)]
    max_parallel: u32,
    /// How often a small scene is run
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Rows of batches that have ended, before it begins; the floors have none
    #[arg(long, default_value_t = 0)]
    finished_rows: usize,
    /// Said by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// What is measured unless one asks for more: all three databases in some twelve minutes. A chain of
/// 10,000 alone takes as long.
const SCENES: [Scene; 10] = [
    Scene::Chain100,
    Scene::Chain1000,
    Scene::Fan1000,
    Scene::Layered2000,
    Scene::Flat10000,
    Scene::Layered10000,
    Scene::Full100x100,
    Scene::Many10,
    Scene::Many100,
    Scene::Nodes,
];

type Wanted = (Scene, Database, Body);

impl Options {
    /// The cells, in the order in which they are measured.
    fn wanted(&self) -> Vec<Wanted> {
        let scenes = match self.scenes.as_slice() {
            [] if self.smoke => vec![Scene::Smoke],
            [] if self.all => Scene::value_variants()[1..].to_vec(),
            [] => SCENES.to_vec(),
            given => given.to_vec(),
        };
        let databases = match self.db.as_slice() {
            [] if self.smoke => vec![Database::Sqlite],
            [] => Database::value_variants().to_vec(),
            given => given.to_vec(),
        };
        let mut wanted = Vec::new();
        for scene in scenes {
            // Two processes share a server.
            let places = databases.iter().filter(|db| {
                let only = **db == Database::Postgres || !self.db.is_empty();
                scene != Scene::Nodes || (only && **db != Database::Sqlite)
            });
            for database in places {
                let bodies = match self.body.as_slice() {
                    // What a start takes says nothing there, but for the way to the other process.
                    _ if scene == Scene::Nodes => scene.usual(),
                    [] if self.all => Body::value_variants(),
                    [] => scene.usual(),
                    given => given,
                };
                let fits = |body: &&Body| **body != Body::Script || scene.is_small();
                wanted.extend(bodies.iter().filter(fits).map(|body| (scene, *database, *body)));
            }
        }
        wanted
    }
}

fn main() -> ExitCode {
    // Scripts are kept by this program, as they are by `procession`.
    #[cfg(target_os = "linux")]
    {
        let mut words = std::env::args_os().skip(1);
        if words.next().is_some_and(|word| word == procession::app::KEEPER) {
            return procession::app::keep_script(words)
                .map_or(ExitCode::from(3), |()| ExitCode::SUCCESS);
        }
    }
    let options = Options::parse();
    let done = match options.compare.as_deref() {
        Some([old, new]) => compare::files(old, new).map(|said| print!("{said}")),
        _ => run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::from(if error.is::<compare::Unreadable>() { 2 } else { 3 })
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let seen = Seen::install();
    let file = options
        .out
        .as_ref()
        .map(|path| File::create(path).with_context(|| format!("write {}", path.display())));
    let file = file.transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let cells = runtime.block_on(async {
        tokio::select! {
            cells = measure(options, &seen, file) => cells,
            stopped = place::stopped() => Err(stopped),
        }
    })?;
    if !options.json {
        print!("{}", report::tables(&cells));
    }
    Ok(())
}

async fn measure(options: &Options, seen: &Seen, mut file: Option<File>) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for (scene, database, body) in options.wanted() {
        let (word, load) = (body.word(), machine::load());
        say(&format!("{} {word} on {} (load {load})", scene.word(), database.name()));
        let cell = cell::measure(scene, body, database, (options, seen)).await?;
        let line = cell.json();
        if options.json {
            println!("{line}");
        }
        if let Some(file) = &mut file {
            writeln!(file, "{line}")?;
        }
        cells.push(cell);
    }
    Ok(cells)
}

#[expect(clippy::print_stderr, reason = "a run takes minutes")]
fn say(said: &str) {
    eprintln!("bench: {said}");
}
