//! The short run of the fuzz targets: every file of the corpora, then mutations of them for a second or two, through the
//! functions that `make fuzz` gives to libFuzzer (`targets`). Without coverage it finds less in an hour, and more than
//! nothing in a second.
//!
//! An input depends on the seed and its number alone, so a failure comes again. `PROCESSION_FUZZ_SEED` sets the seed,
//! `PROCESSION_FUZZ_SEC` the seconds for each target. An input that fails is written to `target/fuzz-failures`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it runs for a while, and tells how to repeat a failure"
)]

mod mutation;
#[expect(unreachable_pub, reason = "a library of its own for libFuzzer")]
mod targets;

use mutation::Mutator;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use targets::{FuzzTarget, TARGETS};

/// The seed, unless another is asked for.
const SEED: u64 = 20_261_124;
/// Milliseconds of mutated inputs for each target, unless more are asked for.
const SHORT_MS: u64 = 1_500;

/// Processor time that one input may take: code that is not optimised takes some ten times longer.
fn budget() -> Duration {
    if cfg!(debug_assertions) { targets::BUDGET * 5 } else { targets::BUDGET }
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn number_from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}; give a whole number")))
}

/// Files of a corpus by name, so that the order is the same on every machine.
fn corpus(target: &FuzzTarget) -> Vec<(String, Vec<u8>)> {
    let folder = root("tests/data/fuzz").join(target.name);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.expect("an entry of a folder").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a file of the corpus"))
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{} is empty", folder.display());
    found
}

/// Runs one input; what fails is kept, and named together with how it came about.
fn run_input(target: &FuzzTarget, input: &[u8], origin: &str) {
    let run = || targets::run_within(target, input, budget());
    let Err(panic) = std::panic::catch_unwind(run) else { return };
    let folder = root("target/fuzz-failures");
    std::fs::create_dir_all(&folder).expect("a folder for failures");
    let file = folder.join(format!("{}-{:016x}", target.name, mutation::digest(input)));
    std::fs::write(&file, input).expect("the input can be kept");
    let start = String::from_utf8_lossy(&input[..input.len().min(300)]).into_owned();
    eprintln!("fuzz: {} fails on {origin}: {start:?}", target.name);
    eprintln!("fuzz: once fixed, keep it: cp {} tests/data/fuzz/{}/", file.display(), target.name);
    std::panic::resume_unwind(panic);
}

fn run_shortly(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let files = corpus(target);
    for (file, input) in &files {
        run_input(target, input, file);
    }
    let seed = number_from_environment("PROCESSION_FUZZ_SEED").unwrap_or(SEED);
    let seconds = number_from_environment("PROCESSION_FUZZ_SEC").map(Duration::from_secs);
    let length = seconds.unwrap_or(Duration::from_millis(SHORT_MS));
    let mutator = Mutator::new(seed, files.into_iter().map(|(_, input)| input).collect());
    let (began, mut count) = (Instant::now(), 0_u64);
    while began.elapsed() < length {
        run_input(target, &mutator.input(count), &format!("input {count} of seed {seed}"));
        count += 1;
    }
    println!("fuzz: {name}: {count} inputs of seed {seed} in {:?}", began.elapsed());
    assert!(count > 0, "no input was tried");
}

/// One test for each target, so that they run beside each other.
macro_rules! short_runs {
    ($($target:ident),* $(,)?) => {
        $(#[test]
        fn $target() {
            run_shortly(stringify!($target));
        })*

        const TESTED: &[&str] = &[$(stringify!($target)),*];
    };
}

short_runs!(
    definition,
    calendar,
    cron,
    batch_number,
    expression,
    parameter,
    xxl_message,
    import_crontab,
    import_pg_timetable,
    import_azkaban,
    import_dolphinscheduler,
    import_control_m,
    import_airflow,
    import_tables,
    import_xxl_job,
);

/// Each target has a corpus, a test here and a program for libFuzzer; and none of these is of no target.
#[test]
fn every_target_is_run_by_both_programs() {
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let tested: BTreeSet<String> = TESTED.iter().map(|&name| name.to_owned()).collect();
    let files = |folder: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(root(folder)).expect(folder);
        let paths = entries.map(|entry| entry.expect("an entry of a folder").path());
        paths.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect()
    };
    assert_eq!(names, tested, "tests");
    assert_eq!(names, files("tests/data/fuzz"), "corpora");
    assert_eq!(names, files("fuzz/fuzz_targets"), "programs");
    let manifest: toml::Table =
        toml::from_str(&std::fs::read_to_string(root("fuzz/Cargo.toml")).expect("fuzz/Cargo.toml"))
            .expect("TOML");
    let bins = manifest["bin"].as_array().expect("programs").iter();
    let bins: BTreeSet<String> =
        bins.map(|bin| bin["name"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(names, bins, "fuzz/Cargo.toml");
    for name in &names {
        let path = root("fuzz/fuzz_targets").join(format!("{name}.rs"));
        let program = std::fs::read_to_string(path).expect("a program");
        assert!(program.contains(&format!("run(\"{name}\", input)")), "{name}:\n{program}");
        targets::run(name, b"");
    }
}

/// A run can be repeated: the same seed gives the same inputs, another seed others.
#[test]
fn inputs_depend_on_seed_and_number_alone() {
    let corpus = vec![b"0 0 2 * * ?".to_vec(), b"*/5 * * * *".to_vec()];
    let (one, two) = (Mutator::new(7, corpus.clone()), Mutator::new(8, corpus.clone()));
    let inputs = |mutator: &Mutator| (0..200).map(|n| mutator.input(n)).collect::<Vec<_>>();
    assert_eq!(inputs(&one), inputs(&Mutator::new(7, corpus)));
    assert_ne!(inputs(&one), inputs(&two));
    let distinct: BTreeSet<Vec<u8>> = inputs(&one).into_iter().collect();
    assert!(distinct.len() > 150, "{} distinct inputs", distinct.len());
    assert_eq!(one.input(150), inputs(&one)[150]);
}
