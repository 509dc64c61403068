//! What the model knows of the metadata row, the nodes and the target, and what can happen to them.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    Pending,
    Running,
    RetryWait,
    Success,
    Unknown,
}

/// The metadata row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) status: Status,
    pub(crate) attempt: u8,
    /// (node, life)
    pub(crate) owner: Option<(u8, u8)>,
    pub(crate) unresolved: u8,
}

/// How far a worker is with its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// Claimed; these are still to be done, in the order of the protocol.
    Preparing(u8),
    /// The body was sent, and its end is waited for.
    Sent,
    /// COMMIT was sent.
    Committing,
    /// It ended well, or was found done.
    Done,
    /// Nobody can tell.
    InDoubt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    pub(crate) attempt: u8,
    pub(crate) step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeState {
    pub(crate) life: u8,
    pub(crate) is_up: bool,
    pub(crate) is_paused: bool,
    pub(crate) crashes_left: u8,
    pub(crate) pauses_left: u8,
    /// Ticks until its lease is over, as the database has it.
    pub(crate) lease: u8,
    pub(crate) task: Option<Task>,
}

/// What a session on the target is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Phase {
    Idle,
    Body,
    /// The body has returned; nothing is committed.
    Returned,
    Commit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Session {
    pub(crate) node: u8,
    pub(crate) attempt: u8,
    pub(crate) phase: Phase,
    pub(crate) has_lock: bool,
    /// Its client is gone.
    pub(crate) is_orphan: bool,
    /// Scripts: ticks until its keeper ends it.
    pub(crate) deadline: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) row: Row,
    pub(crate) nodes: [NodeState; 2],
    pub(crate) sessions: Vec<Session>,
    pub(crate) ledger: bool,
    pub(crate) effects: u8,
    pub(crate) starts: u8,
    pub(crate) cuts_left: u8,
    /// A completion of another attempt than the row's has changed it.
    pub(crate) stale_applied: bool,
    /// A body began after the row had been settled as done.
    pub(crate) began_after_success: bool,
    /// The row's attempt has become smaller.
    pub(crate) shrunk: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Act {
    Claim(u8),
    /// The next preparing step: lock, check, read the ledger, send the body.
    Prepare(u8),
    SendCommit(u8),
    Settle(u8),
    TakeOver(u8),
    Renew(u8),
    Crash(u8),
    Restart(u8),
    Pause(u8),
    Wake(u8),
    /// The connection of a node breaks, and with it any answer on its way.
    Cut(u8),
    /// The body of a session ends; with an effect when it commits by itself.
    BodyEnds(usize),
    /// A body that commits by itself ends without its effect, because its client is gone.
    BodyDies(usize),
    Commits(usize),
    /// The server ends a session that is idle, or whose client is gone.
    Ended(usize),
    Tick,
}
