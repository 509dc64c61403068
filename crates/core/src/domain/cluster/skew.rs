//! This process's estimate of the database's clock: measured, corrected in small steps, and
//! distrusted when it jumps.
//!
//! A process counts time on the machine's monotonic clock and adds the offset to the database's
//! clock, so a wrong local wall clock has no effect. What can jump is the database's clock (another
//! server after a fail-over) or the monotonic clock (a suspended machine): then nothing is
//! scheduled and nothing taken over until two measurements agree.

use crate::domain::cluster::lease::Uptime;
use crate::domain::time::Millis;

/// One measurement of the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// When the answer arrived.
    pub at: Uptime,
    /// Offset of the database's clock to the monotonic clock, in milliseconds.
    pub base_ms: i64,
    /// Offset of the database's clock to this machine's wall clock, in milliseconds.
    pub skew_ms: i64,
    /// Uncertainty of both offsets in milliseconds: half of the round trip, plus rounding.
    pub slack_ms: i64,
}

/// Relation of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockVerdict {
    /// Unchanged.
    Steady,
    /// Unchanged, and this machine's wall clock is this many milliseconds behind the database's
    /// (ahead, when negative). Procession does not use it; people who compare logs do.
    Skewed(i64),
    /// The database's clock moved this many milliseconds more than the monotonic clock. Nothing may
    /// be scheduled or taken over.
    Jumped(i64),
}

impl ClockVerdict {
    /// Whether the current time is reliable.
    pub fn is_sure(self) -> bool {
        match self {
            Self::Steady | Self::Skewed(_) => true,
            Self::Jumped(_) => false,
        }
    }
}

/// Difference of wall clocks in milliseconds above which a warning is logged.
pub const SKEW_MS: i64 = 2_000;
/// Step of the database's clock in milliseconds that is accepted without confirmation.
const STEP_MS: i64 = 100;
/// Uncertainty in milliseconds above which a measurement decides nothing.
const GOOD_MS: i64 = 500;
/// Clocks may drift by one part in this number; time servers correct by half of that at most.
const DRIFT: i64 = 1_000;

impl Measurement {
    /// A measurement from a request sent at `asked` and answered at `answered`, with the local wall
    /// clock `wall` at the answer; the server read its clock somewhere between.
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

/// State derived from the measurements.
#[derive(Clone, Copy, Debug)]
pub struct Skew {
    /// The accepted measurement.
    agreed: Measurement,
    last: Measurement,
    /// The last measurement after one that disagreed.
    doubted: Option<Measurement>,
}

impl Skew {
    /// Starts with a first measurement, which is accepted.
    pub fn new(first: Measurement) -> Self {
        Self { agreed: first, last: first, doubted: None }
    }

    /// Processes a measurement.
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

    /// Relation of the clocks after the last measurement.
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

    /// Offset of the database's clock to the monotonic clock to use, in milliseconds.
    pub fn base_ms(&self) -> i64 {
        self.agreed.base_ms
    }

    /// The last measurement.
    pub fn last_measurement(&self) -> Measurement {
        self.last
    }
}

/// The accepted measurement, moved no further than a new one requires: a slow answer is imprecise
/// and must not undo what fast ones established.
fn followed(before: &Measurement, new: Measurement) -> Measurement {
    let (low, high) = (new.base_ms - new.slack_ms, new.base_ms + new.slack_ms);
    let base_ms = before.base_ms.clamp(low, high);
    let aged = before.slack_ms + new.at.since(before.at).abs() / DRIFT;
    // The truth lies in the new measurement's range, possibly at its other end from the base.
    let widest = 2 * new.slack_ms;
    let slack_ms = if base_ms == before.base_ms { aged.min(widest) } else { widest };
    Measurement { base_ms, slack_ms, ..new }
}

#[cfg(test)]
#[path = "skew_tests.rs"]
mod tests;
