//! A run requested from an executor: its state, and the next step.
//!
//! The row is written before the executor is called, so that a process that dies forgets no run,
//! and each run is requested once: when it is unknown whether an executor took a run, the executor
//! is asked whether it is busy, and the run is never requested again.

mod state;
mod told;

pub use state::{IDLE_MS, Looked, Posted, RunDo, RunEvent, RunState};
pub use told::{RunEnd, outcome};

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It waits for its turn among the runs of its job, or for an executor.
    Waiting,
    /// An executor is being called; it is not known yet whether it took the run.
    Asked,
    /// An executor has accepted it.
    Running,
    /// It has ended, and its result is known.
    Told,
    /// The result is recorded in the job's row.
    Done,
    /// The job's row is UNKNOWN, because the run was ordered to stop and its executor did not
    /// report the end. No other run of the job begins until it does, or until an operator decides
    /// about that row.
    Unconfirmed,
}

impl RunStatus {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Waiting, Self::Asked, Self::Running, Self::Told, Self::Done, Self::Unconfirmed];

    /// The word in the `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "WAITING",
            Self::Asked => "ASKED",
            Self::Running => "RUNNING",
            Self::Told => "TOLD",
            Self::Done => "DONE",
            Self::Unconfirmed => "UNCONFIRMED",
        }
    }

    /// Parses the word in the column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// Whether it blocks other runs of its job.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Asked | Self::Running)
    }
}

/// Why a run is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopWhy {
    /// Its job was stopped.
    Killed,
    /// Its job timed out.
    TimedOut,
    /// A later run of the job replaces it.
    Covered,
}

impl StopWhy {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Killed, Self::TimedOut, Self::Covered];

    /// The word in the `stopping` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Killed => "KILLED",
            Self::TimedOut => "TIMED_OUT",
            Self::Covered => "COVERED",
        }
    }

    /// Parses the word in the column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }
}

/// The end of a run that no executor reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnreportedEnd {
    /// It was stopped, and has ended.
    Stopped(StopWhy),
    /// No executor could be reached, so the run was not requested.
    NotReached,
    /// The executor refused it; without an executor's name, it may not be sent to any.
    Refused,
    /// An earlier run of the job had not ended, and the block strategy discards this one then.
    Discarded,
    /// Its outcome cannot be determined.
    Lost,
    /// It was ordered to stop, and its executor did not report its end in time.
    Unconfirmed,
}

impl UnreportedEnd {
    const WORDS: [(&'static str, Self); 8] = [
        ("KILLED", Self::Stopped(StopWhy::Killed)),
        ("TIMED_OUT", Self::Stopped(StopWhy::TimedOut)),
        ("COVERED", Self::Stopped(StopWhy::Covered)),
        ("NOT_REACHED", Self::NotReached),
        ("REFUSED", Self::Refused),
        ("DISCARDED", Self::Discarded),
        ("LOST", Self::Lost),
        ("UNCONFIRMED", Self::Unconfirmed),
    ];

    /// The word in the `result` column.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, ended)| *ended == self).map_or("", |(word, _)| word)
    }

    /// Parses the word in the column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, ended)| *ended)
    }
}

/// Milliseconds after the start of a run at which its log is fetched for the `n`-th time, from 0.
pub fn log_after_ms(n: u32) -> i64 {
    let doubling = 2_000_i64 << n.min(5);
    if n < 5 { doubling } else { 62_000 + i64::from(n - 5) * 60_000 }
}

#[cfg(test)]
mod tests;
