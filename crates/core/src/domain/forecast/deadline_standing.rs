//! How a batch stands against its deadline: one word for a board.

use crate::domain::time::Millis;
use schemars::JsonSchema;
use serde::Serialize;

/// How a batch, past, present or planned, stands against its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeadlineStanding {
    /// Its deadline has passed, and it has not ended.
    Late,
    /// It ended without success.
    Failed,
    /// It is expected to end after its deadline.
    WillBeLate,
    /// It usually ends in time; one of twenty past batches took too long for that.
    AtRisk,
    /// It ended after its deadline.
    Missed,
    /// Nothing says when it will end.
    Unknown,
    /// It is expected to end in time.
    OnTime,
    /// It ended in time.
    Met,
    /// It has no deadline.
    NoDeadline,
}

/// The times of a batch that matter for its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineTimes {
    pub due: Option<Millis>,
    /// When it ended.
    pub ended: Option<Millis>,
    /// Whether it ended without success.
    pub has_failed: bool,
    /// When it is expected to end.
    pub expected_end: Option<Millis>,
    /// When it ends if it takes as long as one of twenty.
    pub bad_end: Option<Millis>,
}

impl DeadlineTimes {
    /// The standing at `now`.
    pub fn standing(&self, now: Millis) -> DeadlineStanding {
        if self.has_failed {
            return DeadlineStanding::Failed;
        }
        let Some(due) = self.due else { return DeadlineStanding::NoDeadline };
        if let Some(ended) = self.ended {
            return if ended > due { DeadlineStanding::Missed } else { DeadlineStanding::Met };
        }
        let is_over = |at: Option<Millis>| at.is_some_and(|at| at > due);
        match self.expected_end {
            _ if now > due => DeadlineStanding::Late,
            _ if is_over(self.expected_end) => DeadlineStanding::WillBeLate,
            _ if is_over(self.bad_end) => DeadlineStanding::AtRisk,
            Some(_) => DeadlineStanding::OnTime,
            None => DeadlineStanding::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(due: i64) -> DeadlineTimes {
        DeadlineTimes { due: Some(Millis(due)), ..DeadlineTimes::default() }
    }

    #[test]
    fn an_open_batch_is_judged_by_its_deadline_and_its_forecast() {
        let expected = |end, bad| DeadlineTimes {
            expected_end: Some(Millis(end)),
            bad_end: Some(Millis(bad)),
            ..at(100)
        };
        for (times, now, standing) in [
            (at(100), 101, DeadlineStanding::Late),
            (at(100), 100, DeadlineStanding::Unknown),
            (expected(100, 100), 50, DeadlineStanding::OnTime),
            (expected(100, 101), 50, DeadlineStanding::AtRisk),
            (expected(101, 130), 50, DeadlineStanding::WillBeLate),
            // A forecast does not excuse what is past.
            (expected(100, 100), 101, DeadlineStanding::Late),
        ] {
            assert_eq!(times.standing(Millis(now)), standing, "{times:?} at {now}");
        }
    }

    #[test]
    fn what_has_ended_met_its_deadline_or_not() {
        let ended = |end| DeadlineTimes { ended: Some(Millis(end)), ..at(100) };
        assert_eq!(ended(100).standing(Millis(500)), DeadlineStanding::Met);
        assert_eq!(ended(101).standing(Millis(500)), DeadlineStanding::Missed);
        let failed = DeadlineTimes { has_failed: true, ..ended(50) };
        assert_eq!(failed.standing(Millis(500)), DeadlineStanding::Failed);
        let free = DeadlineTimes { due: None, ..ended(50) };
        assert_eq!(free.standing(Millis(500)), DeadlineStanding::NoDeadline);
        assert_eq!(
            DeadlineTimes { has_failed: true, ..free }.standing(Millis(1)),
            DeadlineStanding::Failed
        );
    }
}
