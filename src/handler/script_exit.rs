//! How a script ended, supervised or not.

use crate::handler::StopReason;
use std::process::ExitStatus;

/// The end of a script and of its processes.
pub(crate) enum ScriptEnding {
    /// By itself; its remaining processes are handled.
    Own(ExitStatus),
    /// The kernel killed it, or a process that it needed, for lack of memory. All are proven gone.
    OutOfMemory(ExitStatus),
    /// It was stopped; it and everything it started are proven gone.
    Stopped(StopReason),
    /// Its supervisor ended it, because the worker did not renew the lease; all are proven gone.
    Lapsed,
    /// Its result, or whether it is gone, is unknown.
    Unknown(String),
}

/// The log line of a stop request: reason and action.
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

/// The log line when the grace period is over.
pub(crate) const FORCED: &str = "still there after the grace: KILL sent to its process group";

/// The log line when the kernel killed for lack of memory; the end of the script names the limit.
pub(crate) const OUT_OF_MEMORY: &str = "the memory it may use was used up: the kernel killed it";

/// The log line when it could not start processes.
pub(crate) fn out_of_processes(times: u64) -> String {
    format!(
        "it had as many processes as it may (script.max_processes): {times} more were not started"
    )
}

/// The log line when nothing is left.
pub(crate) fn ended_words(pid: i32, seconds: f64) -> String {
    format!("process {pid} and all it started are gone after {seconds:.1} s")
}

/// The log line for a process that was still running at the end.
pub(crate) fn left_words(pid: i32, name: &str, fate: LeftProcessOutcome) -> String {
    let fate = match fate {
        LeftProcessOutcome::Killed => "killed",
        LeftProcessOutcome::LeftAlone => "left alone: it left the group",
    };
    format!("left behind: process {pid} ({name}), {fate}")
}

/// What was done with a process that the script left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftProcessOutcome {
    /// It was killed.
    Killed,
    /// It left the group on purpose, and the script succeeded.
    LeftAlone,
}
