//! The steps of the model: what nodes do, what befalls them, what the target does by itself.

use crate::trust::model::{Kind, LEASE, Mutant, Protocol};
use crate::trust::model_state::{Act, Phase, State, Status, Step, Task};

impl Protocol {
    /// A step of a node that is up and not stopped.
    pub(crate) fn work(self, s: &mut State, act: Act, n: u8) -> Option<()> {
        let at = usize::from(n);
        let node = s.nodes[at];
        (node.is_up && !node.is_paused).then_some(())?;
        match act {
            Act::Claim(_) => {
                let is_open = matches!(s.row.status, Status::Pending | Status::RetryWait);
                // The nodes are alike, so the first claim is the first node's.
                (s.row.attempt > 0 || n == 0).then_some(())?;
                (is_open && node.task.is_none() && node.lease > 0).then_some(())?;
                s.row.status = Status::Running;
                s.row.attempt += 1;
                s.row.owner = Some((n, node.life));
                let (attempt, step) = (s.row.attempt, Step::Preparing(0));
                s.nodes[at].task = Some(Task { attempt, step });
            }
            Act::Prepare(_) => self.prepare(s, n)?,
            Act::SendCommit(_) => {
                let own = Self::session(s, n)?;
                (s.sessions[own].phase == Phase::Returned).then_some(())?;
                s.sessions[own].phase = Phase::Commit;
                s.nodes[at].task.as_mut()?.step = Step::Committing;
            }
            Act::Settle(_) => self.settle(s, n)?,
            Act::TakeOver(_) => {
                let (owner, life) = s.row.owner?;
                let theirs = s.nodes[usize::from(owner)];
                let is_over = theirs.life != life || theirs.lease == 0;
                let is_other = (owner, life) != (n, node.life);
                (s.row.status == Status::Running && is_over && is_other).then_some(())?;
                self.in_doubt(&mut s.row);
            }
            _ => {
                node.task?;
                // Others may have taken over what it was about to begin.
                let is_waiting = matches!(node.task?.step, Step::Preparing(_));
                if self.kind == Kind::Script
                    && node.lease == 0
                    && is_waiting
                    && !self.is(Mutant::NoLapse)
                {
                    self.give_up(s, n)?;
                }
                s.nodes[at].lease = LEASE;
                // The keeper hears of the renewal and lets its script live as much longer.
                if self.kind == Kind::Script
                    && let Some(own) = Self::session(s, n)
                {
                    let deadline = self.deadline(LEASE);
                    s.sessions[own].deadline = deadline;
                }
            }
        }
        Some(())
    }

    /// What befalls a node.
    pub(crate) fn trouble(self, s: &mut State, act: Act, n: u8) -> Option<()> {
        let node = &mut s.nodes[usize::from(n)];
        match act {
            Act::Crash(_) => {
                (node.is_up && node.task.is_some() && node.crashes_left > 0).then_some(())?;
                node.crashes_left -= 1;
                (node.is_up, node.is_paused, node.task) = (false, false, None);
                s.sessions.iter_mut().filter(|x| x.node == n).for_each(|x| x.is_orphan = true);
            }
            Act::Restart(_) => {
                // Another life has a row of its own in cluster_node; the old one's lease runs on, so
                // it may start only when that is over. Sooner is the same with fewer orders.
                (!node.is_up && node.lease == 0).then_some(())?;
                (node.is_up, node.life, node.lease) = (true, node.life + 1, LEASE);
            }
            Act::Pause(_) => {
                (node.task.is_some() && !node.is_paused && node.pauses_left > 0).then_some(())?;
                node.pauses_left -= 1;
                node.is_paused = true;
            }
            Act::Wake(_) => {
                node.is_paused.then_some(())?;
                node.is_paused = false;
            }
            _ => {
                let task = node.task.as_mut()?;
                let is_open = matches!(task.step, Step::Sent | Step::Committing);
                (is_open && s.cuts_left > 0 && self.kind != Kind::Script).then_some(())?;
                task.step = Step::InDoubt;
                s.cuts_left -= 1;
                s.sessions.iter_mut().filter(|x| x.node == n).for_each(|x| x.is_orphan = true);
            }
        }
        Some(())
    }

    /// What happens on the target by itself.
    pub(crate) fn target(self, s: &mut State, act: Act, i: usize) -> Option<()> {
        let session = *s.sessions.get(i)?;
        match act {
            Act::BodyEnds(_) => {
                (session.phase == Phase::Body).then_some(())?;
                self.body_ends(s, i);
            }
            Act::BodyDies(_) => {
                let is_alone = session.phase == Phase::Body && session.is_orphan;
                (is_alone && self.kind != Kind::Recorded).then_some(())?;
                s.sessions.remove(i);
            }
            Act::Commits(_) => {
                (session.phase == Phase::Commit).then_some(())?;
                s.effects += 1;
                s.ledger = true;
                s.sessions.remove(i);
                self.answer(s, session.node, session.is_orphan);
            }
            _ => {
                let is_idle = matches!(session.phase, Phase::Idle | Phase::Returned);
                let is_stopped = s.nodes[usize::from(session.node)].is_paused;
                (is_idle && (session.is_orphan || is_stopped)).then_some(())?;
                self.lost(s, i);
            }
        }
        Some(())
    }
}
