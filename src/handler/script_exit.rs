//! How a script ended, whoever watched over it.

use crate::handler::StopReason;
use std::process::ExitStatus;

/// The end of a script and of what belongs to it.
pub(crate) enum ScriptEnding {
    /// By itself; what it left behind has been seen to.
    Own(ExitStatus),
    /// The kernel killed it, or a process that it needed, because its memory was used up. All are proven gone.
    OutOfMemory(ExitStatus),
    /// It was stopped; it and all it started are proven gone.
    Stopped(StopReason),
    /// Its keeper ended it, because this process gave no sign of life; all are proven gone.
    Lapsed,
    /// How it ended, or whether it is gone, is not known.
    Unknown(String),
}

/// What is said when a script is to stop: why, and what is done about it.
pub(crate) fn stopping(reason: StopReason) -> &'static str {
    match reason {
        StopReason::TimedOut => "its time is up: TERM sent to its process group",
        StopReason::Killed => "it is to stop: TERM sent to its process group",
        StopReason::HandedBack => "this process leaves: TERM sent to its process group",
        StopReason::Fenced => "this process lost its lease: KILL sent to all that it started",
        StopReason::Disowned => {
            "its row is another process's by now: KILL sent to all that it started"
        }
    }
}

/// What is said when the grace is over.
pub(crate) const FORCED: &str = "still there after the grace: KILL sent to its process group";

/// What is said when the kernel killed for memory; the end of the script says the limit.
pub(crate) const OUT_OF_MEMORY: &str = "the memory it may use was used up: the kernel killed it";

/// What is said when it could not start processes.
pub(crate) fn out_of_processes(times: u64) -> String {
    format!(
        "it had as many processes as it may (script.max_processes): {times} more were not started"
    )
}

/// What is said when nothing is left.
pub(crate) fn ended_words(pid: i32, seconds: f64) -> String {
    format!("process {pid} and all it started are gone after {seconds:.1} s")
}

/// What is said of a process that was still there at the end.
pub(crate) fn left_words(pid: i32, name: &str, fate: LeftProcessOutcome) -> String {
    let fate = match fate {
        LeftProcessOutcome::Killed => "killed",
        LeftProcessOutcome::LeftAlone => "left alone: it left the group",
    };
    format!("left behind: process {pid} ({name}), {fate}")
}

/// What was done about a process that the script left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftProcessOutcome {
    /// It was ended.
    Killed,
    /// It left the group on purpose, and the script ended well.
    LeftAlone,
}
