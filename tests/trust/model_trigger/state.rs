//! What the model knows of the database and of two nodes, and what can happen to them.

/// Planned times: whose, and at which tick. The first schedule has two, the second one.
pub(crate) const TIMES: [(usize, u8); 3] = [(0, 1), (0, 2), (1, 2)];
/// The planned times of each schedule, in order.
pub(crate) const OF: [&[usize]; 2] = [&[0, 1], &[2]];

/// Rows of one planned time, by what became of them; more than one only without the unique key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rows {
    pub(crate) pending: u8,
    pub(crate) fired: u8,
    pub(crate) missed: u8,
}

impl Rows {
    pub(crate) fn all(self) -> u8 {
        self.pending + self.fired + self.missed
    }
}

/// What a pass has read and means to write: from where to where each schedule goes on, and which of
/// those times are missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) from: [u8; 2],
    pub(crate) to: [u8; 2],
    /// One bit each.
    pub(crate) missed: u8,
}

impl View {
    /// The planned times of it.
    pub(crate) fn times(self) -> impl Iterator<Item = usize> {
        (0..2).flat_map(move |t| {
            OF[t][usize::from(self.from[t])..usize::from(self.to[t])].iter().copied()
        })
    }

    pub(crate) fn is_missed(self, time: usize) -> bool {
        self.missed >> time & 1 == 1
    }

    /// Those that are to fire, one bit each.
    pub(crate) fn pending(self) -> u8 {
        self.times().filter(|time| !self.is_missed(*time)).fold(0, |bits, time| bits | 1 << time)
    }
}

/// How far a node is with its pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Idle,
    /// Its transaction is open, and has the lock if there is one.
    Began,
    Read(View),
    Written(View),
    /// Rows are committed and next times are not; only by a mistake.
    Half(View),
    /// Committed; its ring does not know yet.
    Done(View),
}

/// A transaction as the server has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tx {
    pub(crate) has_lock: bool,
    pub(crate) wrote: Option<View>,
}

/// How far a firing is that was taken from the ring, or found overdue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Taken {
    pub(crate) time: usize,
    pub(crate) is_rescue: bool,
    /// Half of it is committed; only by a mistake.
    pub(crate) is_half: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) is_up: bool,
    pub(crate) is_paused: bool,
    pub(crate) step: Step,
    /// One bit for each planned time.
    pub(crate) ring: u8,
    pub(crate) taken: Option<Taken>,
}

impl Node {
    pub(crate) fn is_idle(&self) -> bool {
        self.step == Step::Idle && self.ring == 0 && self.taken.is_none()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// Ticks of the database's clock.
    pub(crate) clock: u8,
    pub(crate) has_lock_row: bool,
    /// Place in `OF` of each schedule's next planned time.
    pub(crate) next: [u8; 2],
    pub(crate) rows: [Rows; 3],
    /// Batches opened for each planned time: what firing means.
    pub(crate) opened: [u8; 3],
    /// Transactions that are open on the server.
    pub(crate) tx: [Option<Tx>; 2],
    pub(crate) nodes: [Node; 2],
    /// How much may still go wrong.
    pub(crate) troubles_left: u8,
    /// A batch was opened before its planned time.
    pub(crate) was_early: bool,
    /// A schedule's next time was set to where it was already, or to an earlier one.
    pub(crate) went_back: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Act {
    Tick,
    /// The next step of a pass: lock, read, write, commit, push to the ring.
    Plan(usize),
    /// Takes a planned time from the ring.
    Turn(usize, usize),
    /// Finds one that is overdue.
    Rescue(usize, usize),
    /// Fires what was taken, or the other half of it.
    Fire(usize),
    Crash(usize),
    Restart(usize),
    Pause(usize),
    Wake(usize),
    /// The server ends the session of a node that is stopped.
    EndSession(usize),
    AnswerLost(usize),
    /// Somebody deletes the lock row.
    DeleteLock,
}
