//! A model of claim, lease, session lock and ledger: two nodes, one row, one target. Each node may crash
//! once and be stopped (SIGSTOP) once; one answer may be lost. The checker walks every order of steps.
//!
//! Left out, so that the walk takes seconds: the unique key of the ledger table (a second guard, which
//! would hide mutants that do not read it), failures that a body reports itself, operators.

use crate::trust::model_state::{Act, NodeState, Phase, Row, Session, State, Status, Step};
use stateright::{Model, Property};

/// What the body promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// `same` or `ledger`: body and ledger row are one transaction.
    Recorded,
    /// Commits by itself; may happen once.
    Once,
    /// Commits by itself; may happen again.
    Repeat,
    /// A script that may happen again: no session lock, its keeper ends it before the lease is over.
    Script,
}

/// A mistake built into the protocol, which the checker has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mutant {
    /// Bodies run without the session lock.
    NoLock,
    /// The claim is checked first and the lock taken then.
    CheckThenLock,
    /// A completion is accepted whatever the row says by now.
    NoFence,
    /// The ledger is read before the lock is held.
    ReadThenLock,
    /// A retry does not read the ledger.
    NoRead,
    /// A keeper ends its body when the lease is over, not before.
    NoMargin,
    /// A lease that was over is renewed as if it had not been.
    NoLapse,
    /// An orphan that may happen once is started again.
    Guess,
}

/// Ticks of a lease. The keeper needs one tick to end a script.
pub(crate) const LEASE: u8 = 2;
const KILL: u8 = 1;
/// Attempts after which no path is followed.
const ATTEMPTS: u8 = 3;

/// The protocol for a kind of body, with or without a mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol {
    pub(crate) kind: Kind,
    pub(crate) mutant: Option<Mutant>,
}

/// What is done before a body is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Lock,
    Check,
    Read,
    Send,
}

impl Protocol {
    pub(crate) fn is(self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn order(self) -> &'static [Before] {
        use Before as B;
        match (self.kind, self.mutant) {
            (Kind::Script, _) => &[B::Check, B::Send],
            (_, Some(Mutant::NoLock)) => &[B::Check, B::Read, B::Send],
            (_, Some(Mutant::CheckThenLock)) => &[B::Check, B::Lock, B::Read, B::Send],
            (_, Some(Mutant::ReadThenLock)) => &[B::Read, B::Lock, B::Check, B::Send],
            (_, Some(Mutant::NoRead)) => &[B::Lock, B::Check, B::Send],
            _ => &[B::Lock, B::Check, B::Read, B::Send],
        }
    }

    pub(crate) fn session(s: &State, n: u8) -> Option<usize> {
        s.sessions.iter().position(|x| x.node == n && !x.is_orphan)
    }

    /// Whether the row is still the claim of this task.
    fn holds(s: &State, n: u8, attempt: u8) -> bool {
        let me = (n, s.nodes[usize::from(n)].life);
        s.row.status == Status::Running && s.row.attempt == attempt && s.row.owner == Some(me)
    }

    pub(crate) fn prepare(self, s: &mut State, n: u8) -> Option<()> {
        let mut task = s.nodes[usize::from(n)].task?;
        let Step::Preparing(at) = task.step else { return None };
        task.step = Step::Preparing(at + 1);
        let own = Self::session(s, n);
        let was_opened = at > 0;
        match (self.order()[usize::from(at)], own) {
            // The server has ended its session: it never began.
            (_, None) if was_opened => return self.give_up(s, n),
            (Before::Lock, own) => {
                if s.sessions.iter().any(|x| x.has_lock) {
                    return None;
                }
                let own = own.unwrap_or_else(|| Self::open(s, n, task.attempt));
                s.sessions[own].has_lock = true;
            }
            (_, None) => {
                Self::open(s, n, task.attempt);
                return self.prepare(s, n);
            }
            (Before::Check, Some(own)) => {
                if !Self::holds(s, n, task.attempt) {
                    s.sessions.remove(own);
                    s.nodes[usize::from(n)].task = None;
                    return Some(());
                }
            }
            (Before::Read, Some(own)) => {
                if self.kind == Kind::Recorded && s.ledger {
                    s.sessions.remove(own);
                    task.step = Step::Done;
                }
            }
            (Before::Send, Some(own)) => {
                let deadline = self.deadline(s.nodes[usize::from(n)].lease);
                if self.kind == Kind::Script && deadline == 0 {
                    return self.give_up(s, n);
                }
                s.sessions[own].phase = Phase::Body;
                s.sessions[own].deadline = if self.kind == Kind::Script { deadline } else { 0 };
                s.starts += 1;
                s.began_after_success |= s.row.status == Status::Success;
                task.step = Step::Sent;
            }
        }
        s.nodes[usize::from(n)].task = Some(task);
        Some(())
    }

    fn open(s: &mut State, node: u8, attempt: u8) -> usize {
        let (phase, has_lock, is_orphan) = (Phase::Idle, false, false);
        s.sessions.push(Session { node, attempt, phase, has_lock, is_orphan, deadline: 0 });
        s.sessions.len() - 1
    }

    /// Ticks until a script is gone whose node has a lease of so many: its keeper begins to end it one
    /// kill before the lease is over; without a margin, when it is.
    pub(crate) fn deadline(self, lease: u8) -> u8 {
        let begin = if self.is(Mutant::NoMargin) { lease } else { lease.saturating_sub(KILL) };
        if begin == 0 { 0 } else { begin + KILL }
    }

    /// A try that never began: the row waits for the next, and what was open stays open.
    pub(crate) fn give_up(self, s: &mut State, n: u8) -> Option<()> {
        let task = s.nodes[usize::from(n)].task.take()?;
        s.sessions.retain(|x| x.node != n || x.is_orphan);
        if Self::holds(s, n, task.attempt) {
            s.row.status = Status::RetryWait;
            s.row.owner = None;
        }
        Some(())
    }

    /// What is made of a try whose end nobody saw.
    pub(crate) fn in_doubt(self, row: &mut Row) {
        row.owner = None;
        row.status = match self.kind {
            Kind::Once if !self.is(Mutant::Guess) => Status::Unknown,
            _ => Status::RetryWait,
        };
        row.unresolved = 1;
    }

    pub(crate) fn settle(self, s: &mut State, n: u8) -> Option<()> {
        let task = s.nodes[usize::from(n)].task?;
        matches!(task.step, Step::Done | Step::InDoubt).then_some(())?;
        s.nodes[usize::from(n)].task = None;
        let is_ours = Self::holds(s, n, task.attempt);
        if !is_ours && !self.is(Mutant::NoFence) {
            return Some(());
        }
        s.stale_applied |= !is_ours;
        match task.step {
            Step::Done => (s.row.status, s.row.owner) = (Status::Success, None),
            _ => self.in_doubt(&mut s.row),
        }
        Some(())
    }

    /// The body of a session ends by itself.
    pub(crate) fn body_ends(self, s: &mut State, i: usize) {
        let Session { node, is_orphan, .. } = s.sessions[i];
        if self.kind == Kind::Recorded {
            if is_orphan {
                s.sessions.remove(i); // rolled back: nobody is there to commit
            } else {
                s.sessions[i].phase = Phase::Returned;
            }
            return;
        }
        s.effects += 1;
        s.sessions.remove(i);
        self.answer(s, node, is_orphan);
    }

    pub(crate) fn answer(self, s: &mut State, node: u8, is_orphan: bool) {
        if let Some(task) = s.nodes[usize::from(node)].task.as_mut().filter(|_| !is_orphan) {
            task.step = Step::Done;
        }
    }

    /// Whoever waits for a session that is no more hears an error.
    pub(crate) fn lost(self, s: &mut State, i: usize) {
        let gone = s.sessions.remove(i);
        let task = s.nodes[usize::from(gone.node)].task.as_mut().filter(|_| !gone.is_orphan);
        if let Some(task) = task.filter(|t| matches!(t.step, Step::Sent | Step::Committing)) {
            task.step = Step::InDoubt;
        }
    }

    fn tick(self, s: &mut State) {
        // Whoever is up and has nothing to do renews in time; that only adds orders.
        for node in s.nodes.iter_mut().filter(|node| !node.is_up || node.task.is_some()) {
            node.lease = node.lease.saturating_sub(1);
        }
        if self.kind == Kind::Script {
            s.sessions.iter_mut().for_each(|x| x.deadline = x.deadline.saturating_sub(1));
            let is_over = |x: &Session| x.phase == Phase::Body && x.deadline == 0;
            while let Some(i) = s.sessions.iter().position(is_over) {
                self.lost(s, i);
            }
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Act;

    fn init_states(&self) -> Vec<State> {
        let (life, task, crashes_left, pauses_left) = (0, None, 1, 1);
        let (is_up, is_paused, lease) = (true, false, LEASE);
        let node = NodeState { life, is_up, is_paused, crashes_left, pauses_left, lease, task };
        let (status, attempt, owner, unresolved) = (Status::Pending, 0, None, 0);
        vec![State {
            row: Row { status, attempt, owner, unresolved },
            nodes: [node; 2],
            sessions: Vec::new(),
            ledger: false,
            effects: 0,
            starts: 0,
            cuts_left: 1,
            stale_applied: false,
            began_after_success: false,
            shrunk: false,
        }]
    }

    fn actions(&self, s: &State, acts: &mut Vec<Act>) {
        let is_due = s.nodes.iter().any(|node| node.lease > 0) && !s.sessions.is_empty()
            || s.row.owner.is_some();
        acts.extend(is_due.then_some(Act::Tick));
        for n in 0..2 {
            let of_node =
                [Act::Claim, Act::Prepare, Act::SendCommit, Act::Settle, Act::TakeOver, Act::Renew];
            acts.extend(of_node.map(|act| act(n)));
            acts.extend([Act::Crash, Act::Restart, Act::Pause, Act::Wake, Act::Cut].map(|a| a(n)));
        }
        for i in 0..s.sessions.len() {
            acts.extend([Act::BodyEnds, Act::BodyDies, Act::Commits, Act::Ended].map(|a| a(i)));
        }
    }

    fn next_state(&self, last: &State, act: Act) -> Option<State> {
        let mut s = last.clone();
        match act {
            Act::BodyEnds(i) | Act::BodyDies(i) | Act::Commits(i) | Act::Ended(i) => {
                self.target(&mut s, act, i)?;
            }
            Act::Tick => self.tick(&mut s),
            Act::Claim(n) | Act::Prepare(n) | Act::SendCommit(n) => self.work(&mut s, act, n)?,
            Act::Settle(n) | Act::TakeOver(n) | Act::Renew(n) => self.work(&mut s, act, n)?,
            Act::Crash(n) | Act::Restart(n) | Act::Pause(n) | Act::Wake(n) | Act::Cut(n) => {
                self.trouble(&mut s, act, n)?;
            }
        }
        s.shrunk |= s.row.attempt < last.row.attempt;
        s.sessions.sort();
        (s != *last).then_some(s)
    }

    fn within_boundary(&self, s: &State) -> bool {
        s.row.attempt <= ATTEMPTS
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::<Self>::always("a success has its effect", |_, s| {
                s.row.status != Status::Success || s.effects > 0
            }),
            Property::<Self>::always("one effect", |m, s| {
                matches!(m.kind, Kind::Repeat | Kind::Script) || s.effects <= 1
            }),
            Property::<Self>::always("never two live bodies", |_, s| {
                s.sessions.iter().filter(|x| x.phase != Phase::Idle).count() <= 1
            }),
            Property::<Self>::always("a stale completion changes nothing", |_, s| !s.stale_applied),
            Property::<Self>::always("what may start once starts once", |m, s| {
                m.kind != Kind::Once || s.starts <= 1
            }),
            Property::<Self>::always("nothing begins after success", |_, s| !s.began_after_success),
            Property::<Self>::always("attempts only grow", |_, s| !s.shrunk),
        ];
        all.push(match self.kind {
            Kind::Once => Property::<Self>::sometimes("an outcome is unknown", |_, s| {
                s.row.status == Status::Unknown
            }),
            _ => Property::<Self>::sometimes("another node completes it", |_, s| {
                s.row.status == Status::Success && s.row.attempt > 1
            }),
        });
        all
    }
}
