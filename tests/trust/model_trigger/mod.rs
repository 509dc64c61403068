//! A model of lock, firings and ring: two nodes, two schedules, three planned times. Three things go wrong
//! between any two steps of either node: it crashes, it is stopped (SIGSTOP) for a while or for ever, an
//! answer to its COMMIT is lost, the lock row is deleted. The checker walks every order of steps.
//!
//! Left out: what an operator does to schedules, policies of overlap, and the batch itself, whose opening
//! is one write of the transaction that fires.

mod passing;
mod state;
mod tests;

use passing::Protocol;
use state::{Act, Node, Rows, State, Step, TIMES};
use stateright::{Model, Property};

/// A mistake built into the protocol. Some are harmless alone, because of something else that holds; the
/// tests say of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mutant {
    /// No rows: what was planned is on the ring and nowhere else (XXL-JOB).
    MemoryOnly,
    /// The ring knows before the commit (XXL-JOB).
    EarlyPush,
    /// No unique key of schedule and planned time.
    NoKey,
    /// Rows are committed first and next times then.
    TwoCommits,
    /// That the lock row is gone is not noticed.
    Unnoticed,
    /// What is due is read before the lock is held.
    ReadThenLock,
    /// A stalled holder keeps the lock: its session has no limit.
    NoLimit,
    /// A stalled holder loses the lock and nothing else: its writes may still be committed, as where lock
    /// and writes go over two connections (XXL-JOB), or where a lock is a row with a time.
    LateCommit,
    /// Fires whatever the row says by now.
    NoCompare,
    /// Fired is committed first, and its batch is opened then.
    MarkThenOpen,
    /// The batch is opened first, and fired is written then.
    OpenThenMark,
    /// What is overdue gets another row.
    RescueInserts,
    /// Nobody looks for what is overdue.
    NoRescue,
    /// Each node goes by its own clock; that of the first is fast.
    OwnClock,
}

/// Ticks that a pass looks ahead.
const AHEAD: u8 = 1;
/// Ticks after which a pending row is anybody's.
const OVERDUE: u8 = 1;
/// Ticks after which a planned time is missed and no longer merely late.
const LATE: u8 = 2;
/// The last tick; all planned times are overdue then, and the first would be missed.
const END: u8 = 4;
/// Ticks by which a fast clock is fast.
const FAST: u8 = 2;
/// Rounds in which everything has to be decided once nothing more befalls the nodes.
const ROUNDS: usize = 16;

impl Protocol {
    fn undecided(s: &State) -> bool {
        (0..TIMES.len()).any(|i| s.opened[i] == 0 && s.rows[i].missed == 0)
    }

    /// Whether everything is decided in a few rounds of those that run, when all is past and nothing more
    /// befalls anybody. A node that is stopped stays so while another runs; when none does, all are
    /// woken and started again.
    fn decides(self, s: &State) -> bool {
        let (mut s, mut round) = (*s, 0);
        if s.nodes.iter().all(|node| !node.is_up || node.is_paused) {
            for node in &mut s.nodes {
                (node.is_up, node.is_paused) = (true, false);
            }
        }
        while Self::undecided(&s) && round < ROUNDS {
            for n in 0..2 {
                let times = (0..TIMES.len()).flat_map(|i| [Act::Turn(n, i), Act::Rescue(n, i)]);
                let acts = [Act::EndSession(n), Act::Plan(n), Act::Fire(n)].into_iter();
                for act in acts.chain(times) {
                    let mut after = s;
                    if self.step(&mut after, act).is_some() {
                        s = after;
                    }
                }
            }
            round += 1;
        }
        !Self::undecided(&s)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Act;

    fn init_states(&self) -> Vec<State> {
        let (is_up, is_paused, step, ring, taken) = (true, false, Step::Idle, 0, None);
        let node = Node { is_up, is_paused, step, ring, taken };
        vec![State {
            clock: 0,
            has_lock_row: true,
            next: [0; 2],
            rows: [Rows::default(); 3],
            opened: [0; 3],
            tx: [None; 2],
            nodes: [node; 2],
            troubles_left: self.troubles,
            was_early: false,
            went_back: false,
        }]
    }

    fn actions(&self, s: &State, acts: &mut Vec<Act>) {
        acts.extend((s.clock < END).then_some(Act::Tick));
        acts.push(Act::DeleteLock);
        for n in 0..2 {
            let of_node = [Act::Plan, Act::Fire, Act::Crash, Act::Restart, Act::Pause, Act::Wake];
            acts.extend(of_node.map(|act| act(n)));
            acts.extend([Act::EndSession(n), Act::AnswerLost(n)]);
            acts.extend((0..TIMES.len()).flat_map(|i| [Act::Turn(n, i), Act::Rescue(n, i)]));
        }
    }

    fn next_state(&self, last: &State, act: Act) -> Option<State> {
        let mut s = *last;
        self.step(&mut s, act)?;
        (s != *last).then_some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Self>::always("fires once", |_, s| s.opened.iter().all(|n| *n <= 1)),
            Property::<Self>::always("fired or missed, not both", |_, s| {
                (0..TIMES.len()).all(|i| s.opened[i] == 0 || s.rows[i].missed == 0)
            }),
            Property::<Self>::always("never early", |_, s| !s.was_early),
            Property::<Self>::always("next times only advance", |_, s| !s.went_back),
            Property::<Self>::always("none is lost", |m, s| {
                s.clock < END || !Self::undecided(s) || m.decides(s)
            }),
            Property::<Self>::sometimes("a time is missed, and says so", |_, s| {
                s.rows.iter().any(|rows| rows.missed > 0)
            }),
            Property::<Self>::sometimes("all is fired", |_, s| s.opened == [1; 3]),
        ]
    }
}
