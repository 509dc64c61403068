//! What an outcome means for the row: done, tried again, or given up.

use crate::domain::job::{AfterCrash, JobDef};
use crate::domain::outcome::{End, Outcome, Retry};
use crate::domain::queue::Event;
use crate::domain::retry::ErrorClass;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;

/// The change an outcome makes to its queue row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// What happens to the row.
    pub event: Event,
    /// `try_count` afterwards.
    pub try_count: u32,
    /// When the next try may start, for `RetryLater`.
    pub not_before: Option<Millis>,
    /// The message to store.
    pub message: Option<String>,
    /// Whether the owners are told: after a final failure, time-out or unknown outcome.
    pub tell_owners: bool,
}

/// What is known of a try beside its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Try {
    /// Failed tries before it.
    pub failed_before: u32,
    /// Any number, the same for the same try; varies the delay.
    pub roll: u64,
    /// Whether another may follow.
    pub retries: Retries,
}

/// Whether tries are made again at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// As the job says.
    AsDefined,
    /// None: the batch stops at a failure that is there already.
    Stopped,
}

/// Judges the outcome of a try of `job` at `now`.
///
/// A failure or time-out is tried again while `failed_before < retry_count`, if its class and SQLSTATE
/// are among those that the job's retry policy names. An unknown outcome is tried again only if the
/// job is declared idempotent as well, because its effect may already be there. A body that an
/// operator stopped is never tried again by itself.
pub fn settle(job: &JobDef, this: Try, outcome: &Outcome, now: Millis) -> Settlement {
    let try_count = this.failed_before;
    let message = outcome.message.as_ref().map(|m| storable(m.as_bytes(), MESSAGE_MAX));
    let done = |event| Settlement {
        event,
        try_count,
        not_before: None,
        message: message.clone(),
        tell_owners: false,
    };
    let may_retry = may_retry(job, this, outcome);
    let give_up = |event| Settlement { tell_owners: true, try_count: try_count + 1, ..done(event) };
    let retry = || Settlement {
        try_count: try_count + 1,
        not_before: Some(now.plus(delay_ms(job, this))),
        ..done(Event::RetryLater)
    };
    match outcome.end {
        End::Success => done(Event::Succeed),
        End::Warning => done(Event::Warn),
        End::Failed if may_retry => retry(),
        End::Failed => give_up(Event::Fail),
        End::TimedOut if may_retry => retry(),
        End::TimedOut => give_up(Event::TimeOut),
        End::Killed => done(Event::Kill),
        End::Unknown if job.idempotent && may_retry => retry(),
        End::Unknown => give_up(Event::LoseTrack),
    }
}

fn may_retry(job: &JobDef, this: Try, outcome: &Outcome) -> bool {
    let (class, sqlstate) = match (&outcome.end, &outcome.error) {
        (End::TimedOut, _) => (ErrorClass::Timeout, None),
        (_, Some(error)) => (error.class, error.sqlstate.as_deref()),
        (_, None) => (ErrorClass::Other, None),
    };
    outcome.retry == Retry::Allowed
        && this.retries == Retries::AsDefined
        && this.failed_before < job.retry_count
        && job.retry.may_retry(class, sqlstate)
}

fn delay_ms(job: &JobDef, this: Try) -> i64 {
    let delay = job.retry.delay_ms(job.retry_delay_sec, this.failed_before + 1, this.roll);
    i64::try_from(delay).unwrap_or(i64::MAX)
}

/// What becomes of a row whose worker died while it ran. A lost worker is not the job's fault, so
/// no try is charged.
pub fn settle_orphan(job: &JobDef, after_crash: AfterCrash) -> Event {
    match after_crash {
        AfterCrash::StartsAgain => Event::Orphan,
        AfterCrash::AsDeclared if job.idempotent => Event::Orphan,
        AfterCrash::AsDeclared => Event::LoseTrack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{GroupCode, JobCode, JobType};
    use crate::domain::outcome::Outputs;
    use crate::domain::retry::RetryPolicy;
    use proptest::prelude::*;

    fn job(retry_count: u32, idempotent: bool) -> JobDef {
        let mut job = JobDef::bare(
            JobCode::parse("A").expect("code"),
            GroupCode::parse("g").expect("group"),
            JobType::parse("SQL").expect("type"),
        );
        job.retry_count = retry_count;
        job.retry_delay_sec = 30;
        job.idempotent = idempotent;
        job
    }

    fn after(failed_before: u32) -> Try {
        Try { failed_before, roll: 7, retries: Retries::AsDefined }
    }

    #[test]
    fn the_table() {
        use Event as E;
        // (end, tries before, retries allowed, idempotent) -> (event, owners told)
        for (end, tries, allowed, idempotent, event, told) in [
            (End::Success, 0, 3, false, E::Succeed, false),
            (End::Warning, 0, 3, false, E::Warn, false),
            (End::Failed, 0, 0, false, E::Fail, true),
            (End::Failed, 0, 2, false, E::RetryLater, false),
            (End::Failed, 1, 2, false, E::RetryLater, false),
            (End::Failed, 2, 2, false, E::Fail, true),
            (End::TimedOut, 1, 2, false, E::RetryLater, false),
            (End::TimedOut, 2, 2, false, E::TimeOut, true),
            (End::Killed, 0, 9, true, E::Kill, false),
            (End::Unknown, 0, 9, false, E::LoseTrack, true),
            (End::Unknown, 0, 1, true, E::RetryLater, false),
            (End::Unknown, 1, 1, true, E::LoseTrack, true),
        ] {
            let outcome = Outcome { end: end.clone(), ..Outcome::success(Outputs::default()) };
            let settled = settle(&job(allowed, idempotent), after(tries), &outcome, Millis(1_000));
            assert_eq!(
                (settled.event, settled.tell_owners),
                (event, told),
                "{end:?} {tries}/{allowed}"
            );
            let later = (event == E::RetryLater).then_some(Millis(31_000));
            assert_eq!(settled.not_before, later);
        }
        assert_eq!(settle_orphan(&job(0, true), AfterCrash::AsDeclared), E::Orphan);
        assert_eq!(settle_orphan(&job(0, false), AfterCrash::AsDeclared), E::LoseTrack);
        assert_eq!(settle_orphan(&job(0, false), AfterCrash::StartsAgain), E::Orphan);
    }

    #[test]
    fn what_is_fatal_is_never_tried_again() {
        let fatal = Outcome { retry: Retry::Never, ..Outcome::ended(End::Failed, "no") };
        let settled = settle(&job(5, true), after(0), &fatal, Millis(0));
        assert_eq!((settled.event, settled.tell_owners), (Event::Fail, true));
    }

    #[test]
    fn only_errors_of_the_named_classes_are_tried_again() {
        use ErrorClass as C;
        let mut job = job(5, true);
        job.retry = RetryPolicy {
            on: vec![C::Deadlock, C::Timeout],
            on_sqlstate: vec!["55P03".to_owned()],
            backoff_percent: Some(200),
            ..RetryPolicy::default()
        };
        let failed = |end| Outcome::ended(end, "no");
        for (outcome, event) in [
            (failed(End::Failed), Event::Fail),
            (failed(End::Failed).of_class(C::Deadlock, Some("40001")), Event::RetryLater),
            (failed(End::Failed).of_class(C::LockWait, Some("55P03")), Event::RetryLater),
            (failed(End::Failed).of_class(C::LockWait, None), Event::Fail),
            (failed(End::TimedOut), Event::RetryLater),
            (failed(End::Unknown).of_class(C::ConnectionLost, None), Event::LoseTrack),
        ] {
            let settled = settle(&job, after(2), &outcome, Millis(0));
            assert_eq!(settled.event, event, "{outcome:?}");
            let third = (event == Event::RetryLater).then_some(Millis(120_000));
            assert_eq!(settled.not_before, third, "30 s, doubled twice");
        }
    }

    #[test]
    fn nothing_is_tried_again_once_the_batch_stops() {
        let stopped = Try { retries: Retries::Stopped, ..after(0) };
        for (end, event) in [
            (End::Success, Event::Succeed),
            (End::Failed, Event::Fail),
            (End::TimedOut, Event::TimeOut),
            (End::Unknown, Event::LoseTrack),
        ] {
            let settled = settle(&job(5, true), stopped, &Outcome::ended(end, "no"), Millis(0));
            assert_eq!(settled.event, event);
        }
    }

    proptest! {
        /// However a job fails, it is tried at most `retry_count` times again.
        #[test]
        fn tries_are_bounded(allowed in 0u32..6, ends in prop::collection::vec(0..3u8, 20)) {
            let job = job(allowed, true);
            let mut tries = 0;
            let mut starts = 0;
            for end in ends {
                starts += 1;
                let end = [End::Failed, End::TimedOut, End::Unknown][end as usize].clone();
                let settled = settle(&job, after(tries), &Outcome::ended(end, "no"), Millis(0));
                tries = settled.try_count;
                if settled.event != Event::RetryLater { break; }
            }
            prop_assert_eq!(starts, allowed + 1);
        }
    }
}
