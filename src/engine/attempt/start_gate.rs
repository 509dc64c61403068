//! Records whether a body has begun, and decides whether it still may.
//!
//! A process that shuts down stops bodies that have not begun, and waits for those that have unless
//! they can be started again. No body may begin between the check and the stop, so both go through
//! this gate.

use crate::domain::cluster::lease::BodyProgress;
use std::sync::{Mutex, PoisonError};

/// The start gate of one body.
#[derive(Debug)]
pub(in crate::engine) struct Gate(Mutex<GateState>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateState {
    /// The body waits for a lock or a connection, or prepares.
    Open,
    /// The body was allowed to begin.
    Begun,
    /// The body waits and must not begin.
    Shut,
}

impl Gate {
    pub(in crate::engine) fn new() -> Self {
        Self(Mutex::new(GateState::Open))
    }

    /// Called when the body is about to begin; `false` when it must not.
    pub(in crate::engine) fn try_pass(&self) -> bool {
        self.change(|state| match state {
            GateState::Open | GateState::Begun => GateState::Begun,
            GateState::Shut => GateState::Shut,
        }) == GateState::Begun
    }

    /// The body has to wait again before it has any effect, and will ask again.
    pub(super) fn step_back(&self) {
        self.change(|state| match state {
            GateState::Open | GateState::Begun => GateState::Open,
            GateState::Shut => GateState::Shut,
        });
    }

    /// Prevents the body from beginning; returns whether that was in time.
    pub(in crate::engine) fn close_gate(&self) -> BodyProgress {
        match self.change(|state| match state {
            GateState::Open | GateState::Shut => GateState::Shut,
            GateState::Begun => GateState::Begun,
        }) {
            GateState::Begun => BodyProgress::Begun,
            GateState::Open | GateState::Shut => BodyProgress::NotBegun,
        }
    }

    /// How far the body has come.
    pub(in crate::engine) fn progress(&self) -> BodyProgress {
        match self.change(|state| state) {
            GateState::Begun => BodyProgress::Begun,
            GateState::Open | GateState::Shut => BodyProgress::NotBegun,
        }
    }

    fn change(&self, to: impl Fn(GateState) -> GateState) -> GateState {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = to(*state);
        *state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_slips_through_a_gate_that_is_shut() {
        let gate = Gate::new();
        assert_eq!(gate.progress(), BodyProgress::NotBegun);
        assert_eq!(gate.close_gate(), BodyProgress::NotBegun);
        assert!(!gate.try_pass());
        gate.step_back();
        assert!(!gate.try_pass());
        assert_eq!(gate.progress(), BodyProgress::NotBegun);
    }

    #[test]
    fn what_has_begun_is_not_kept_from_it() {
        let gate = Gate::new();
        assert!(gate.try_pass());
        assert_eq!(gate.close_gate(), BodyProgress::Begun);
        assert!(gate.try_pass());
        gate.step_back();
        assert_eq!(gate.close_gate(), BodyProgress::NotBegun);
        assert!(!gate.try_pass());
    }
}
