//! Whether a body has begun, and whether it still may.
//!
//! A process that leaves stops what has not begun and waits for what has, unless that can be started
//! again. Between asking and stopping a body must not slip through, so both go through here.

use crate::domain::lease::Progress;
use std::sync::{Mutex, PoisonError};

/// The gate before one body.
#[derive(Debug)]
pub(in crate::engine) struct Gate(Mutex<State>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits, for a lock or a connection, or gets ready.
    Open,
    /// It was let through.
    Begun,
    /// It waits and will not be let through.
    Shut,
}

impl Gate {
    pub(in crate::engine) fn new() -> Self {
        Self(Mutex::new(State::Open))
    }

    /// The body is about to begin; `false` when it must not.
    pub(in crate::engine) fn pass(&self) -> bool {
        self.change(|state| match state {
            State::Open | State::Begun => State::Begun,
            State::Shut => State::Shut,
        }) == State::Begun
    }

    /// The body is to wait once more before it does anything; it asks again.
    pub(super) fn step_back(&self) {
        self.change(|state| match state {
            State::Open | State::Begun => State::Open,
            State::Shut => State::Shut,
        });
    }

    /// Keeps a body from beginning; says whether that came in time.
    pub(in crate::engine) fn shut(&self) -> Progress {
        match self.change(|state| match state {
            State::Open | State::Shut => State::Shut,
            State::Begun => State::Begun,
        }) {
            State::Begun => Progress::Begun,
            State::Open | State::Shut => Progress::NotBegun,
        }
    }

    /// How far the body has come.
    pub(in crate::engine) fn progress(&self) -> Progress {
        match self.change(|state| state) {
            State::Begun => Progress::Begun,
            State::Open | State::Shut => Progress::NotBegun,
        }
    }

    fn change(&self, to: impl Fn(State) -> State) -> State {
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
        assert_eq!(gate.progress(), Progress::NotBegun);
        assert_eq!(gate.shut(), Progress::NotBegun);
        assert!(!gate.pass());
        gate.step_back();
        assert!(!gate.pass());
        assert_eq!(gate.progress(), Progress::NotBegun);
    }

    #[test]
    fn what_has_begun_is_not_kept_from_it() {
        let gate = Gate::new();
        assert!(gate.pass());
        assert_eq!(gate.shut(), Progress::Begun);
        assert!(gate.pass());
        gate.step_back();
        assert_eq!(gate.shut(), Progress::NotBegun);
        assert!(!gate.pass());
    }
}
