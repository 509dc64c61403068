//! The steps of the model: what nodes do, what befalls them, what the server does by itself.

use super::state::{Act, Node, OF, State, Step, TIMES, Taken, Tx, View};
use super::{AHEAD, END, FAST, LATE, Mutant, OVERDUE};

/// The protocol with or without mistakes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol {
    pub(crate) mutants: &'static [Mutant],
    /// How much goes wrong.
    pub(crate) troubles: u8,
}

impl Protocol {
    pub(crate) fn is(self, mutant: Mutant) -> bool {
        self.mutants.contains(&mutant)
    }

    /// `None`: it cannot happen now.
    pub(crate) fn step(self, s: &mut State, act: Act) -> Option<()> {
        match act {
            Act::Plan(n) | Act::Turn(n, _) | Act::Rescue(n, _) | Act::Fire(n) => {
                (s.nodes[n].is_up && !s.nodes[n].is_paused).then_some(())?;
                match act {
                    Act::Turn(_, time) => self.turn(s, n, time),
                    Act::Rescue(_, time) => self.rescue(s, n, time),
                    Act::Fire(_) => self.fire(s, n),
                    _ => self.plan(s, n),
                }
            }
            Act::Tick => {
                (s.clock < END).then_some(())?;
                s.clock += 1;
                Some(())
            }
            _ => self.trouble(s, act),
        }
    }

    /// The time that a node goes by.
    fn now(self, s: &State, n: usize) -> u8 {
        s.clock + if self.is(Mutant::OwnClock) && n == 0 { FAST } else { 0 }
    }

    fn plan(self, s: &mut State, n: usize) -> Option<()> {
        let step = s.nodes[n].step;
        // The server has ended its session: its next statement says so, and nothing was written.
        if matches!(step, Step::Began | Step::Read(_) | Step::Written(_)) && s.tx[n].is_none() {
            s.nodes[n].step = Step::Idle;
            return Some(());
        }
        match step {
            Step::Idle => self.begin(s, n)?,
            Step::Began => s.nodes[n].step = self.read(s, n)?,
            Step::Read(view) => self.write(s, n, view)?,
            Step::Written(view) => {
                s.tx[n] = None;
                self.insert(s, view);
                Self::advance(s, view);
                s.nodes[n].step = Step::Done(view);
            }
            Step::Half(view) => {
                let is_blocked = s.tx[1 - n].is_some_and(|tx| tx.wrote.is_some());
                (!is_blocked).then_some(())?;
                Self::advance(s, view);
                s.nodes[n].step = Step::Done(view);
            }
            Step::Done(view) => {
                if !self.is(Mutant::EarlyPush) {
                    s.nodes[n].ring |= view.pending();
                }
                s.nodes[n].step = Step::Idle;
            }
        }
        Some(())
    }

    /// What is due soon and has no row.
    fn due(self, s: &State, n: usize) -> View {
        let (mut to, mut missed) = (s.next, 0);
        for (t, of) in OF.iter().enumerate() {
            for time in &of[usize::from(s.next[t])..] {
                let at = TIMES[*time].1;
                if at <= self.now(s, n) + AHEAD {
                    to[t] += 1;
                    missed |= u8::from(self.now(s, n) > at + LATE) << time;
                }
            }
        }
        View { from: s.next, to, missed }
    }

    fn begin(self, s: &mut State, n: usize) -> Option<()> {
        (self.due(s, n).to != s.next).then_some(())?;
        // The nodes are alike, so the first pass is the first node's.
        let is_untouched =
            s.next == [0; 2] && s.rows[0].all() == 0 && s.nodes[0].is_idle() && s.nodes[0].is_up;
        (n == 0 || !is_untouched || s.nodes[0].is_paused).then_some(())?;
        if self.is(Mutant::ReadThenLock) {
            s.tx[n] = Some(Tx { has_lock: false, wrote: None });
            s.nodes[n].step = self.read(s, n)?;
            return Some(());
        }
        if !s.has_lock_row && !self.is(Mutant::Unnoticed) {
            s.has_lock_row = true; // and the next pass takes it
            return Some(());
        }
        let has_lock = self.lock(s)?;
        s.tx[n] = Some(Tx { has_lock, wrote: None });
        s.nodes[n].step = Step::Began;
        Some(())
    }

    /// Whether there was something to lock; `None` while another has it.
    fn lock(self, s: &State) -> Option<bool> {
        let is_taken = s.tx.iter().flatten().any(|tx| tx.has_lock);
        (!s.has_lock_row || !is_taken).then_some(s.has_lock_row)
    }

    fn read(self, s: &mut State, n: usize) -> Option<Step> {
        let view = self.due(s, n);
        if view.to == view.from {
            s.tx[n] = None;
            return Some(Step::Idle);
        }
        Some(Step::Read(view))
    }

    fn write(self, s: &mut State, n: usize, view: View) -> Option<()> {
        if self.is(Mutant::ReadThenLock) {
            s.tx[n].as_mut()?.has_lock = self.lock(s)?;
        }
        // Another's uncommitted rows of the same times, or next times of the same schedules: it waits.
        let theirs = s.tx[1 - n].and_then(|tx| tx.wrote);
        let is_blocked = theirs.is_some_and(|theirs| {
            (0..2).any(|t| theirs.to[t] > theirs.from[t] && view.to[t] > view.from[t])
        });
        (!is_blocked).then_some(())?;
        let has_rows = !self.is(Mutant::MemoryOnly);
        let is_keyed = has_rows && !self.is(Mutant::NoKey);
        if is_keyed && view.times().any(|time| s.rows[time].all() > 0) {
            // The key is taken: all of it is undone.
            (s.tx[n], s.nodes[n].step) = (None, Step::Idle);
            return Some(());
        }
        if self.is(Mutant::EarlyPush) {
            s.nodes[n].ring |= view.pending();
        }
        if self.is(Mutant::TwoCommits) {
            s.tx[n] = None;
            self.insert(s, view);
            s.nodes[n].step = Step::Half(view);
        } else {
            s.tx[n].as_mut()?.wrote = Some(view);
            s.nodes[n].step = Step::Written(view);
        }
        Some(())
    }

    fn insert(self, s: &mut State, view: View) {
        for time in view.times() {
            if view.is_missed(time) {
                s.rows[time].missed += 1;
            } else if !self.is(Mutant::MemoryOnly) {
                s.rows[time].pending += 1;
            }
        }
    }

    fn advance(s: &mut State, view: View) {
        for t in (0..2).filter(|t| view.to[*t] > view.from[*t]) {
            s.went_back |= view.to[t] <= s.next[t];
            s.next[t] = view.to[t];
        }
    }

    fn turn(self, s: &mut State, n: usize, time: usize) -> Option<()> {
        let is_there = s.nodes[n].ring >> time & 1 == 1 && s.nodes[n].taken.is_none();
        (is_there && self.now(s, n) >= TIMES[time].1).then_some(())?;
        s.nodes[n].ring &= !(1 << time);
        s.nodes[n].taken = Some(Taken { time, is_rescue: false, is_half: false });
        Some(())
    }

    fn rescue(self, s: &mut State, n: usize, time: usize) -> Option<()> {
        let is_free = s.nodes[n].taken.is_none() && !self.is(Mutant::NoRescue);
        let is_overdue = self.now(s, n) >= TIMES[time].1 + OVERDUE;
        (is_free && is_overdue && s.rows[time].pending > 0).then_some(())?;
        if self.is(Mutant::RescueInserts) {
            // With the key there is no second row, and so no rescue.
            self.is(Mutant::NoKey).then_some(())?;
            (s.rows[time].all() < 3).then_some(())?;
            s.rows[time].pending += 1;
        }
        s.nodes[n].taken = Some(Taken { time, is_rescue: true, is_half: false });
        Some(())
    }

    fn fire(self, s: &mut State, n: usize) -> Option<()> {
        let taken = s.nodes[n].taken.take()?;
        let time = taken.time;
        let is_compared = !self.is(Mutant::NoCompare) && !self.is(Mutant::MemoryOnly);
        let is_ours = s.rows[time].pending > 0;
        let half = Some(Taken { is_half: true, ..taken });
        if self.is(Mutant::OpenThenMark) && !taken.is_half {
            s.nodes[n].taken = half;
        } else if is_ours && !(self.is(Mutant::MarkThenOpen) && taken.is_half) {
            s.rows[time].pending -= 1;
            s.rows[time].fired += 1;
            if self.is(Mutant::MarkThenOpen) {
                s.nodes[n].taken = half;
                return Some(());
            }
        }
        let is_opened = match taken.is_half {
            true => self.is(Mutant::MarkThenOpen),
            false => is_ours || !is_compared,
        };
        if is_opened {
            s.opened[time] += 1;
            s.was_early |= s.clock < TIMES[time].1;
        }
        Some(())
    }

    /// What befalls a node or the lock row; a node that is stopped may be woken, and one that crashed may
    /// be started again, at no cost.
    fn trouble(self, s: &mut State, act: Act) -> Option<()> {
        let left = s.troubles_left.checked_sub(1);
        match act {
            Act::Crash(n) => {
                s.troubles_left = left?;
                let node = s.nodes[n];
                (node.is_up && !node.is_idle()).then_some(())?;
                let (is_up, is_paused, step, ring, taken) = (false, false, Step::Idle, 0, None);
                s.nodes[n] = Node { is_up, is_paused, step, ring, taken };
                s.tx[n] = None;
            }
            Act::Restart(n) => {
                (!s.nodes[n].is_up).then_some(())?;
                s.nodes[n].is_up = true;
            }
            Act::Pause(n) => {
                s.troubles_left = left?;
                let node = &mut s.nodes[n];
                (node.is_up && !node.is_paused && !node.is_idle()).then_some(())?;
                node.is_paused = true;
            }
            Act::Wake(n) => {
                s.nodes[n].is_paused.then_some(())?;
                s.nodes[n].is_paused = false;
            }
            Act::EndSession(n) => {
                (s.nodes[n].is_paused && !self.is(Mutant::NoLimit)).then_some(())?;
                let tx = s.tx[n].as_mut()?;
                if self.is(Mutant::LateCommit) {
                    tx.has_lock.then_some(())?;
                    tx.has_lock = false;
                } else {
                    s.tx[n] = None;
                }
            }
            Act::AnswerLost(n) => {
                s.troubles_left = left?;
                let node = &mut s.nodes[n];
                (matches!(node.step, Step::Done(_)) && !node.is_paused).then_some(())?;
                node.step = Step::Idle;
            }
            _ => {
                s.troubles_left = left?;
                // Who holds the row keeps it from being deleted.
                let is_held = s.tx.iter().flatten().any(|tx| tx.has_lock);
                (s.has_lock_row && !is_held).then_some(())?;
                s.has_lock_row = false;
            }
        }
        Some(())
    }
}
