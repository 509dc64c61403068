//! Whether a body has begun, and whether it still may.
//!
//! A process that leaves stops what has not begun and waits for what has, unless that can be started
//! again. Between asking and stopping a body must not slip through, so both go through here.

use crate::domain::cluster::lease::BodyProgress;
use std::sync::{Mutex, PoisonError};

/// The gate before one body.
#[derive(Debug)]
pub(in crate::engine) struct Gate(Mutex<GateState>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateState {
    /// It waits, for a lock or a connection, or gets ready.
    Open,
    /// It was let through.
    Begun,
    /// It waits and will not be let through.
    Shut,
}

impl Gate {
    pub(in crate::engine) fn new() -> Self {
        Self(Mutex::new(GateState::Open))
    }

    /// The body is about to begin; `false` when it must not.
    pub(in crate::engine) fn try_pass(&self) -> bool {
        self.change(|state| match state {
            GateState::Open | GateState::Begun => GateState::Begun,
            GateState::Shut => GateState::Shut,
        }) == GateState::Begun
    }

    /// The body is to wait once more before it does anything; it asks again.
    pub(super) fn step_back(&self) {
        self.change(|state| match state {
            GateState::Open | GateState::Begun => GateState::Open,
            GateState::Shut => GateState::Shut,
        });
    }

    /// Keeps a body from beginning; says whether that came in time.
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
