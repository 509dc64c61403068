//! The database's clock as this process knows it: measured, followed in small steps, and doubted when
//! it jumps.
//!
//! A process counts time on the machine's own count, which nobody can set, and adds what the
//! database's clock is ahead of it. So a wall clock that is set wrong, here, moves nothing. What can
//! jump is the database's clock (another server after a fail-over), or the count (a machine that was
//! suspended): then nothing is scheduled and nothing taken over until two measurements agree.

use crate::domain::cluster::lease::Uptime;
use crate::domain::time::Millis;

/// One look at the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// When its answer was there.
    pub at: Uptime,
    /// How far the database's clock is ahead of this process's count, milliseconds.
    pub base_ms: i64,
    /// How far it is ahead of this machine's wall clock, milliseconds.
    pub skew_ms: i64,
    /// How wrong both may be, milliseconds: half of the round trip, and a rounding.
    pub slack_ms: i64,
}

/// How the clocks stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockVerdict {
    /// As they did before.
    Steady,
    /// As they did before, and this machine's wall clock is so many milliseconds behind the
    /// database's (ahead, when negative). Nothing of ours goes by it; people who compare logs do.
    Skewed(i64),
    /// The database's clock went so many milliseconds further than this process counted. Nothing is to
    /// be scheduled or taken over.
    Jumped(i64),
}

impl ClockVerdict {
    /// Whether what time it is can be relied on.
    pub fn is_sure(self) -> bool {
        match self {
            Self::Steady | Self::Skewed(_) => true,
            Self::Jumped(_) => false,
        }
    }
}

/// Wall clocks that differ by more are worth a word.
pub const SKEW_MS: i64 = 2_000;
/// A step of the database's clock that is followed without ado, milliseconds.
const STEP_MS: i64 = 100;
/// A measurement that may be wrong by more than this settles nothing.
const GOOD_MS: i64 = 500;
/// Clocks may drift apart by a thousandth; time servers correct by half of that at most.
const DRIFT: i64 = 1_000;

impl Measurement {
    /// Asked and answered at these moments, when the wall clock here said `wall` at the answer; the
    /// server read its clock somewhere between.
    pub fn taken(asked: Uptime, answered: Uptime, server: Millis, wall: Millis) -> Self {
        let half = (answered.since(asked).max(0) + 1) / 2;
        Self {
            at: answered,
            base_ms: server.plus_ms(half).0.saturating_sub(answered.0),
            skew_ms: server.plus_ms(half).since(wall),
            slack_ms: half + 1,
        }
    }

    fn agrees(&self, other: &Self) -> bool {
        let drift = self.at.since(other.at).abs() / DRIFT;
        let apart = self.base_ms.saturating_sub(other.base_ms).saturating_abs();
        apart <= self.slack_ms + other.slack_ms + drift + STEP_MS
    }

    fn is_good(&self) -> bool {
        self.slack_ms <= GOOD_MS
    }
}

/// What the measurements have come to.
#[derive(Clone, Copy, Debug)]
pub struct Skew {
    /// What is gone by.
    agreed: Measurement,
    last: Measurement,
    /// The last measurement after one that did not agree.
    doubted: Option<Measurement>,
}

impl Skew {
    /// By a first measurement, which has to be believed.
    pub fn new(first: Measurement) -> Self {
        Self { agreed: first, last: first, doubted: None }
    }

    /// Takes a measurement in.
    pub fn observe(&mut self, new: Measurement) -> ClockVerdict {
        self.last = new;
        match self.doubted {
            None if self.agreed.agrees(&new) => self.agreed = followed(&self.agreed, new),
            None => self.doubted = Some(new),
            Some(before) if before.is_good() && new.is_good() && before.agrees(&new) => {
                (self.agreed, self.doubted) = (followed(&before, new), None);
            }
            Some(_) => self.doubted = Some(new),
        }
        self.verdict()
    }

    /// How the clocks stand.
    pub fn verdict(&self) -> ClockVerdict {
        let skew = self.last.skew_ms;
        match self.doubted {
            Some(doubted) => {
                ClockVerdict::Jumped(doubted.base_ms.saturating_sub(self.agreed.base_ms))
            }
            None if skew.saturating_abs() > SKEW_MS + self.last.slack_ms => {
                ClockVerdict::Skewed(skew)
            }
            None => ClockVerdict::Steady,
        }
    }

    /// How far the database's clock is ahead of this process's count, milliseconds: what to go by.
    pub fn base_ms(&self) -> i64 {
        self.agreed.base_ms
    }

    /// The last measurement.
    pub fn last_measurement(&self) -> Measurement {
        self.last
    }
}

/// What was gone by, moved no further than a new measurement asks for: a slow answer says little, and
/// must not undo what quick ones said.
fn followed(before: &Measurement, new: Measurement) -> Measurement {
    let (low, high) = (new.base_ms - new.slack_ms, new.base_ms + new.slack_ms);
    let base_ms = before.base_ms.clamp(low, high);
    let aged = before.slack_ms + new.at.since(before.at).abs() / DRIFT;
    // The truth is somewhere in the new measurement's range, and the base may be at the other end of it.
    let widest = 2 * new.slack_ms;
    let slack_ms = if base_ms == before.base_ms { aged.min(widest) } else { widest };
    Measurement { base_ms, slack_ms, ..new }
}

#[cfg(test)]
#[path = "skew_tests.rs"]
mod tests;
