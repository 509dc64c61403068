//! A run that an executor was asked for: how far it is, and what is done next.
//!
//! It is a row before the executor is asked, so that a process which dies forgets none, and it is asked
//! for once: whoever cannot know whether an executor took a run looks whether it is busy, and never asks
//! again.

mod state;
mod told;

pub use state::{IDLE_MS, Looked, Posted, RunDo, RunEvent, RunState};
pub use told::{RunEnd, outcome};

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It waits for its turn among the runs of its job, or for an executor.
    Waiting,
    /// An executor is being asked; whether it took the run is not known yet.
    Asked,
    /// An executor has taken it.
    Running,
    /// It is over, and its end is known.
    Told,
    /// The job's row says how it ended.
    Done,
    /// The job's row is UNKNOWN, because the run was ordered to stop and its executor did not report its end.
    /// No other run of the job begins until it does, or until an operator decides about that row.
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

    /// The state a column's word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// Whether it keeps other runs of its job from their turn.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Asked | Self::Running)
    }
}

/// Why a run is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopWhy {
    /// Its job was stopped.
    Killed,
    /// Its job ran out of time.
    TimedOut,
    /// A later run of the job covers it.
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

    /// The reason a column's word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }
}

/// How a run ended that no executor told the end of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnreportedEnd {
    /// It was stopped, and is over.
    Stopped(StopWhy),
    /// No executor could take it, so none was asked.
    NotReached,
    /// The executor refused it; when none is named, it may not be sent to any.
    Refused,
    /// An earlier run of the job was not over, and its strategy is to discard this one then.
    Discarded,
    /// What became of it will not be known.
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

    /// The end a column's word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, ended)| *ended)
    }
}

/// Milliseconds after the start of a run at which its log is asked for the `n`-th time, from 0.
pub fn log_after_ms(n: u32) -> i64 {
    let doubling = 2_000_i64 << n.min(5);
    if n < 5 { doubling } else { 62_000 + i64::from(n - 5) * 60_000 }
}

#[cfg(test)]
mod tests;
