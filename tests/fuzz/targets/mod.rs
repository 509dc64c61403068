//! What fuzzing calls: one function for each kind of text that strangers hand to Procession. Each takes any bytes
//! and panics when a property does not hold.
//!
//! Two programs run these functions: `make test` on the corpora in `tests/data/fuzz` and on mutations of them
//! (`tests/fuzz/mod.rs`), and `make fuzz` with libFuzzer (`fuzz/`, a crate of its own whose library this file is).
//! So nothing here may need more than the public interface of `procession`.

mod batch_number;
mod bundle;
mod calendar;
mod cron;
mod definition;
mod expression;
mod import;
mod parameter;
mod place;
mod xxl_message;
mod xxl_tables;

use std::time::Duration;

/// A function that is fuzzed, by the name of its corpus folder.
#[derive(Clone, Copy)]
pub struct FuzzTarget {
    /// The name: of the corpus folder, of the binary in `fuzz/fuzz_targets`, of the test.
    pub name: &'static str,
    /// Panics when a property does not hold.
    pub check: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget { name: "definition", check: definition::check },
    FuzzTarget { name: "calendar", check: calendar::check },
    FuzzTarget { name: "cron", check: cron::check },
    FuzzTarget { name: "batch_number", check: batch_number::check },
    FuzzTarget { name: "expression", check: expression::check },
    FuzzTarget { name: "parameter", check: parameter::check },
    FuzzTarget { name: "xxl_message", check: xxl_message::check },
    FuzzTarget { name: "import_crontab", check: import::check_crontab },
    FuzzTarget { name: "import_pg_timetable", check: import::check_pg_timetable },
    FuzzTarget { name: "import_azkaban", check: import::check_azkaban },
    FuzzTarget { name: "import_dolphinscheduler", check: import::check_dolphinscheduler },
    FuzzTarget { name: "import_control_m", check: import::check_control_m },
    FuzzTarget { name: "import_airflow", check: import::check_airflow },
    FuzzTarget { name: "import_tables", check: import::check_tables },
    FuzzTarget { name: "import_xxl_job", check: import::check_xxl_job },
];

/// Longest input. A longer one says no more, and is only slower.
pub const LENGTH_MAX: usize = 64 * 1024;

/// Processor time that one input may take in optimised code.
pub const BUDGET: Duration = Duration::from_secs(1);

/// Runs the target of this name.
///
/// # Panics
/// When a property does not hold, or the input takes more than [`BUDGET`].
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.unwrap_or_else(|| panic!("no fuzz target is called {name}"));
    run_within(target, input, BUDGET);
}

/// Runs a target; too slow is a failure like any other.
///
/// # Panics
/// When a property does not hold, or the input takes more processor time than `budget`.
pub fn run_within(target: &FuzzTarget, input: &[u8], budget: Duration) {
    if input.len() > LENGTH_MAX {
        return;
    }
    let before = thread_cpu_time();
    (target.check)(input);
    let (Some(before), Some(after)) = (before, thread_cpu_time()) else { return };
    let (taken, length) = (after.saturating_sub(before), input.len());
    assert!(taken <= budget, "{}: {length} bytes take {taken:?} of processor time", target.name);
}

/// Processor time of this thread, so that other programs on the machine do not count; `None` where the system does
/// not say.
fn thread_cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// The input as text; `None` where it is none, because every reader is handed text that was decoded before.
fn text_of(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}
