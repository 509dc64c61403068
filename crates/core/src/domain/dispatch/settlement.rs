//! Translates the outcome of an attempt into a change of its row: done, retried, or given up.

use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, AttemptStage, Retry};
use crate::domain::job::queue::{NOT_LOOKED_UP, QueueEvent};
use crate::domain::job::retry::ErrorClass;
use crate::domain::job::{AfterCrash, JobDef};
use crate::domain::source::tx_class::OnUnknown;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;

/// The change of a queue row that an outcome causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The event to apply to the row.
    pub event: QueueEvent,
    /// New value of `try_count`: the number of retries, including the one scheduled now.
    pub try_count: u32,
    /// Earliest start of the retry, for `RetryLater`.
    pub not_before: Option<Millis>,
    /// The message to store.
    pub message: Option<String>,
    /// Whether the owners are notified: after a final failure, timeout or unknown outcome.
    pub tell_owners: bool,
    /// New number of consecutive attempts whose outcome is unknown.
    pub unresolved: u32,
}

/// Facts about an attempt beside its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryContext {
    /// Failed attempts before it.
    pub failed_before: u32,
    /// Jitter of the delay: any number, the same for the same attempt.
    pub roll: u64,
    /// Whether a retry is permitted.
    pub retries: Retries,
    /// Consecutive attempts before it whose outcome is unknown.
    pub unresolved: u32,
}

/// Whether retries take place at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// As the job defines.
    AsDefined,
    /// None: the batch stops because of an earlier failure.
    Stopped,
}

/// Decides about the outcome of an attempt of `job` at `now`.
///
/// A failure or timeout is retried while `failed_before < retry_count`, if its class and SQLSTATE
/// are accepted by the job's retry policy. An unknown outcome is retried only if the job is also
/// declared idempotent, because its effect may have happened. A body stopped by an operator is
/// never retried automatically.
///
/// For a recorded job (`tx: same`, `tx: ledger`) an unknown outcome is never final: the next
/// attempt looks it up before doing anything, and this is repeated until it is known. An attempt
/// that could not look it up says nothing about the job either, whatever stopped it. Neither of
/// these, nor an attempt that was handed back, counts against the job's retries. Only what no
/// look-up can answer (`Retry::Never`) is given up as unknown.
pub fn settle(
    job: &JobDef,
    this: RetryContext,
    outcome: &AttemptOutcome,
    now: Millis,
) -> Settlement {
    let try_count = this.failed_before;
    let message = outcome.message.as_ref().map(|m| storable(m.as_bytes(), MESSAGE_MAX));
    let done = |event| Settlement {
        event,
        try_count,
        not_before: None,
        message: message.clone(),
        tell_owners: false,
        unresolved: 0,
    };
    let look_again = || {
        let unresolved = this.unresolved + 1;
        let delay = i64::from(LOOK_AGAIN_MS << (unresolved - 1).min(6)).min(LOOK_AGAIN_MAX_MS);
        let not_before = Some(now.plus_ms(delay));
        Settlement { not_before, unresolved, ..done(QueueEvent::RetryLater) }
    };
    let return_it = || Settlement { not_before: Some(now), ..done(QueueEvent::RetryLater) };
    if this.unresolved > 0 && outcome.reach == AttemptStage::Before {
        // The operator who killed it, or could repair it, is told that its outcome is unknown.
        let is_given_up = outcome.end == AttemptEnd::Killed || outcome.retry == Retry::Never;
        let lose = || Settlement {
            unresolved: this.unresolved,
            tell_owners: true,
            ..done(QueueEvent::LoseTrack)
        };
        return if is_given_up { lose() } else { look_again() };
    }
    let may_retry = may_retry(job, this, outcome);
    let give_up = |event| Settlement { tell_owners: true, ..done(event) };
    // A rerun of a recorded job looks it up.
    let open = this.unresolved + u32::from(job.tx.is_recorded());
    let leave_open = |event| Settlement { unresolved: open, ..give_up(event) };
    let retry = || Settlement {
        try_count: try_count + 1,
        not_before: Some(now.plus_ms(delay_ms(job, this))),
        ..done(QueueEvent::RetryLater)
    };
    match outcome.end {
        AttemptEnd::Success => done(QueueEvent::Succeed),
        AttemptEnd::Warning => done(QueueEvent::Warn),
        AttemptEnd::Failed if may_retry => retry(),
        AttemptEnd::Failed => give_up(QueueEvent::Fail),
        AttemptEnd::TimedOut if may_retry => retry(),
        AttemptEnd::TimedOut => give_up(QueueEvent::TimeOut),
        AttemptEnd::Killed => done(QueueEvent::Kill),
        AttemptEnd::Returned if outcome.reach == AttemptStage::Before || job.tx.is_recorded() => {
            return_it()
        }
        AttemptEnd::Unknown if can_be_looked_up(job, this, outcome) => look_again(),
        AttemptEnd::Returned | AttemptEnd::Unknown => match job.when_unknown() {
            OnUnknown::Retry if outcome.end == AttemptEnd::Returned => return_it(),
            OnUnknown::Retry if may_retry => retry(),
            OnUnknown::Retry | OnUnknown::Hold => leave_open(QueueEvent::LoseTrack),
            // The ledger contradicts itself; the run after this failure has another key.
            OnUnknown::Fail if outcome.retry == Retry::Never => give_up(QueueEvent::Fail),
            OnUnknown::Fail => leave_open(QueueEvent::Fail),
        },
    }
}

/// Initial delay in milliseconds before an outcome is looked up again; doubled each time.
const LOOK_AGAIN_MS: u32 = 1_000;
/// Maximum delay in milliseconds between two look-ups.
const LOOK_AGAIN_MAX_MS: i64 = 60_000;

/// Whether the next attempt can learn the outcome of this one: its ledger entry was not found to be
/// contradictory.
fn can_be_looked_up(job: &JobDef, this: RetryContext, outcome: &AttemptOutcome) -> bool {
    let is_worth_it = outcome.retry == Retry::Allowed && this.retries == Retries::AsDefined;
    job.is_looked_up() && is_worth_it
}

fn may_retry(job: &JobDef, this: RetryContext, outcome: &AttemptOutcome) -> bool {
    let (class, sqlstate) = match (&outcome.end, &outcome.error) {
        (AttemptEnd::TimedOut, _) => (ErrorClass::Timeout, None),
        (_, Some(error)) => (error.class, error.sqlstate.as_deref()),
        (_, None) => (ErrorClass::Other, None),
    };
    outcome.retry == Retry::Allowed
        && this.retries == Retries::AsDefined
        && this.failed_before < job.retry_count
        && job.retry.may_retry(class, sqlstate)
}

fn delay_ms(job: &JobDef, this: RetryContext) -> i64 {
    let delay = job.retry.delay_ms(job.retry_delay_sec, this.failed_before + 1, this.roll);
    i64::try_from(delay).unwrap_or(i64::MAX)
}

/// As `settled`, for a try that is to be stopped for good, by an operator or with its batch: it is not
/// made again, and counts no retry. What it did is not known if nobody could tell, or if that was still to be looked up.
pub fn stopped(settled: Settlement, this: RetryContext, end: &AttemptEnd) -> Settlement {
    let settled = Settlement { try_count: this.failed_before, ..settled };
    match (settled.event, settled.unresolved) {
        (QueueEvent::RetryLater, 0) if *end == AttemptEnd::Unknown => Settlement {
            event: QueueEvent::LoseTrack,
            not_before: None,
            tell_owners: true,
            ..settled
        },
        (QueueEvent::RetryLater, 0) => {
            Settlement { event: QueueEvent::Kill, not_before: None, ..settled }
        }
        (QueueEvent::RetryLater, 1..) => {
            let last =
                settled.message.map_or_else(String::new, |said| format!("; it said: {said}"));
            Settlement {
                event: QueueEvent::LoseTrack,
                not_before: None,
                message: Some(storable(format!("{NOT_LOOKED_UP}{last}").as_bytes(), MESSAGE_MAX)),
                tell_owners: true,
                ..settled
            }
        }
        _ => settled,
    }
}

/// The fate of a row whose worker died while it ran, the `crashes`-th in a row. A lost worker is
/// not the job's fault, so no retry is used up; but a job that would be restarted is parked after
/// `park_after` crashes, caused by it or not.
pub fn settle_orphan(
    job: &JobDef,
    after_crash: AfterCrash,
    crashes: u32,
    park_after: u32,
) -> QueueEvent {
    let again = if crashes >= park_after { QueueEvent::Park } else { QueueEvent::Orphan };
    match (after_crash, job.when_unknown()) {
        (AfterCrash::StartsAgain, _) => QueueEvent::Orphan,
        (AfterCrash::AsDeclared, _) if job.tx.is_recorded() => again,
        (AfterCrash::AsDeclared, OnUnknown::Retry) => again,
        (AfterCrash::AsDeclared, OnUnknown::Hold) => QueueEvent::LoseTrack,
        (AfterCrash::AsDeclared, OnUnknown::Fail) => QueueEvent::Fail,
    }
}

/// Whether the outcome of a job whose worker died stays unknown: it may not be restarted, and
/// nothing can look it up.
pub fn is_lost_for_good(job: &JobDef, after_crash: AfterCrash) -> bool {
    matches!(settle_orphan(job, after_crash, 1, u32::MAX), QueueEvent::LoseTrack | QueueEvent::Fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{GroupCode, JobCode, JobType};
    use crate::domain::job::outcome::JobOutputs;
    use crate::domain::job::retry::RetryPolicy;
    use crate::domain::source::tx_class::TxClass;
    use proptest::prelude::*;

    fn job(retry_count: u32, idempotent: bool) -> JobDef {
        let mut job = JobDef::with_defaults(
            JobCode::parse("A").expect("code"),
            GroupCode::parse("g").expect("group"),
            JobType::parse("SQL").expect("type"),
        );
        job.retry_count = retry_count;
        job.retry_delay_sec = 30;
        job.idempotent = idempotent;
        job
    }

    fn after(failed_before: u32) -> RetryContext {
        RetryContext { failed_before, roll: 7, retries: Retries::AsDefined, unresolved: 0 }
    }

    #[test]
    fn the_table() {
        use QueueEvent as E;
        // (end, retries before, retries allowed, idempotent) -> (event, owners notified)
        for (end, tries, allowed, idempotent, event, told) in [
            (AttemptEnd::Success, 0, 3, false, E::Succeed, false),
            (AttemptEnd::Warning, 0, 3, false, E::Warn, false),
            (AttemptEnd::Failed, 0, 0, false, E::Fail, true),
            (AttemptEnd::Failed, 0, 2, false, E::RetryLater, false),
            (AttemptEnd::Failed, 1, 2, false, E::RetryLater, false),
            (AttemptEnd::Failed, 2, 2, false, E::Fail, true),
            (AttemptEnd::TimedOut, 1, 2, false, E::RetryLater, false),
            (AttemptEnd::TimedOut, 2, 2, false, E::TimeOut, true),
            (AttemptEnd::Killed, 0, 9, true, E::Kill, false),
            (AttemptEnd::Unknown, 0, 9, false, E::LoseTrack, true),
            (AttemptEnd::Unknown, 0, 1, true, E::RetryLater, false),
            (AttemptEnd::Unknown, 1, 1, true, E::LoseTrack, true),
        ] {
            let outcome = AttemptOutcome {
                end: end.clone(),
                ..AttemptOutcome::success(JobOutputs::default())
            };
            let settled = settle(&job(allowed, idempotent), after(tries), &outcome, Millis(1_000));
            assert_eq!(
                (settled.event, settled.tell_owners),
                (event, told),
                "{end:?} {tries}/{allowed}"
            );
            let later = (event == E::RetryLater).then_some(Millis(31_000));
            assert_eq!(settled.not_before, later);
            // Retries, not failures: the last attempt adds none.
            let retries = tries + u32::from(event == E::RetryLater);
            assert_eq!(settled.try_count, retries, "{end:?} {tries}/{allowed}");
        }
    }

    /// A job of a transaction class, idempotent or not, with a policy for unknown outcomes.
    fn classed(tx: TxClass, idempotent: bool, on_unknown: Option<OnUnknown>) -> JobDef {
        JobDef { tx, on_unknown, ..job(1, idempotent) }
    }

    #[test]
    fn what_becomes_of_a_job_whose_worker_died() {
        use {AfterCrash as A, OnUnknown as O, QueueEvent as E, TxClass as T};
        for (job, after_crash, first, third) in [
            (classed(T::None, true, None), A::AsDeclared, E::Orphan, E::Park),
            (classed(T::None, false, None), A::AsDeclared, E::LoseTrack, E::LoseTrack),
            (classed(T::None, false, None), A::StartsAgain, E::Orphan, E::Orphan),
            (classed(T::None, true, Some(O::Hold)), A::AsDeclared, E::LoseTrack, E::LoseTrack),
            (classed(T::None, false, Some(O::Fail)), A::AsDeclared, E::Fail, E::Fail),
            (classed(T::Ledger, false, None), A::AsDeclared, E::Orphan, E::Park),
            (classed(T::Same, false, Some(O::Fail)), A::AsDeclared, E::Orphan, E::Park),
        ] {
            assert_eq!(settle_orphan(&job, after_crash, 1, 3), first, "{job:?}");
            assert_eq!(settle_orphan(&job, after_crash, 3, 3), third, "{job:?}");
        }
    }

    #[test]
    fn an_unknown_outcome_is_never_guessed() {
        use {AttemptEnd as D, AttemptStage as R, OnUnknown as O, QueueEvent as E, TxClass as T};
        // (class, idempotent, policy, unknown attempts before, end, stage) -> (event, unknown
        // attempts after, retry used up)
        for (tx, idempotent, policy, open, end, reach, event, after, charged) in [
            (T::None, false, None, 0, D::Unknown, R::Body, E::LoseTrack, 0, 0),
            (T::None, false, Some(O::Fail), 0, D::Unknown, R::Body, E::Fail, 0, 0),
            (T::None, true, None, 0, D::Unknown, R::Body, E::RetryLater, 0, 1),
            (T::Ledger, false, None, 0, D::Unknown, R::Body, E::RetryLater, 1, 0),
            (T::Same, false, Some(O::Fail), 4, D::Unknown, R::Body, E::RetryLater, 5, 0),
            // Could not look up: neither a failure nor a timeout of the job.
            (T::Ledger, false, None, 1, D::Failed, R::Before, E::RetryLater, 2, 0),
            (T::Ledger, false, None, 1, D::TimedOut, R::Before, E::RetryLater, 2, 0),
            (T::Ledger, false, None, 1, D::Killed, R::Before, E::LoseTrack, 1, 0),
            // Looked up, then ran.
            (T::Ledger, false, None, 1, D::Failed, R::Body, E::RetryLater, 0, 1),
            (T::Ledger, false, None, 1, D::Success, R::Body, E::Succeed, 0, 0),
            // Handed back.
            (T::None, false, None, 0, D::Returned, R::Before, E::RetryLater, 0, 0),
            (T::None, false, None, 0, D::Returned, R::Body, E::LoseTrack, 0, 0),
            (T::None, true, None, 0, D::Returned, R::Body, E::RetryLater, 0, 0),
            (T::Ledger, false, None, 0, D::Returned, R::Body, E::RetryLater, 0, 0),
        ] {
            let job = classed(tx, idempotent, policy);
            let this = RetryContext { unresolved: open, ..self::after(0) };
            let outcome = AttemptOutcome { reach, ..AttemptOutcome::ended(end, "no") };
            let settled = settle(&job, this, &outcome, Millis(0));
            let found = (settled.event, settled.unresolved, settled.try_count);
            assert_eq!(found, (event, after, charged), "{outcome:?} of {tx:?}");
        }
    }

    #[test]
    fn what_no_look_can_answer_is_settled_as_of_any_other_job() {
        use {OnUnknown as O, QueueEvent as E, TxClass as T};
        for (tx, policy, event) in [
            (T::Ledger, None, E::LoseTrack),
            (T::Same, Some(O::Hold), E::LoseTrack),
            (T::Ledger, Some(O::Fail), E::Fail),
            // A retry would find the same ledger entry again.
            (T::Ledger, Some(O::Retry), E::LoseTrack),
        ] {
            let outcome =
                AttemptOutcome::ended(AttemptEnd::Unknown, "no").caught("it committed by itself");
            let settled = settle(&classed(tx, true, policy), after(0), &outcome, Millis(0));
            assert_eq!((settled.event, settled.tell_owners), (event, true), "{tx:?} {policy:?}");
            assert_eq!(settled.unresolved, u32::from(event == E::LoseTrack), "{policy:?}");
        }
    }

    #[test]
    fn a_refusal_of_a_job_with_an_open_outcome_does_not_wait_for_ever() {
        let job = classed(TxClass::Ledger, false, None);
        let this = RetryContext { unresolved: 2, ..after(0) };
        let refused = AttemptOutcome::ended(AttemptEnd::Failed, "caught committing by itself")
            .before_it_began();
        let refused = AttemptOutcome { retry: Retry::Never, ..refused };
        let settled = settle(&job, this, &refused, Millis(0));
        assert_eq!((settled.event, settled.unresolved), (QueueEvent::LoseTrack, 2));
        assert!(settled.tell_owners);
    }

    #[test]
    fn looks_come_slower_and_slower() {
        let job = classed(TxClass::Ledger, false, None);
        let delays: Vec<_> = [0, 1, 5, 6, 99]
            .map(|unresolved| {
                let this = RetryContext { unresolved, ..after(0) };
                settle(&job, this, &AttemptOutcome::ended(AttemptEnd::Unknown, "no"), Millis(0))
                    .not_before
            })
            .into();
        let expected = [1_000, 2_000, 32_000, 60_000, 60_000].map(|ms| Some(Millis(ms)));
        assert_eq!(delays, expected);
    }

    #[test]
    fn what_is_fatal_is_never_tried_again() {
        let fatal = AttemptOutcome {
            retry: Retry::Never,
            ..AttemptOutcome::ended(AttemptEnd::Failed, "no")
        };
        let settled = settle(&job(5, true), after(0), &fatal, Millis(0));
        assert_eq!((settled.event, settled.tell_owners), (QueueEvent::Fail, true));
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
        let failed = |end| AttemptOutcome::ended(end, "no");
        for (outcome, event) in [
            (failed(AttemptEnd::Failed), QueueEvent::Fail),
            (
                failed(AttemptEnd::Failed).of_class(C::Deadlock, Some("40001")),
                QueueEvent::RetryLater,
            ),
            (
                failed(AttemptEnd::Failed).of_class(C::LockWait, Some("55P03")),
                QueueEvent::RetryLater,
            ),
            (failed(AttemptEnd::Failed).of_class(C::LockWait, None), QueueEvent::Fail),
            (failed(AttemptEnd::TimedOut), QueueEvent::RetryLater),
            (failed(AttemptEnd::Unknown).of_class(C::ConnectionLost, None), QueueEvent::LoseTrack),
        ] {
            let settled = settle(&job, after(2), &outcome, Millis(0));
            assert_eq!(settled.event, event, "{outcome:?}");
            let third = (event == QueueEvent::RetryLater).then_some(Millis(120_000));
            assert_eq!(settled.not_before, third, "30 s, doubled twice");
        }
    }

    #[test]
    fn nothing_is_tried_again_once_the_batch_stops() {
        let stopped = RetryContext { retries: Retries::Stopped, ..after(0) };
        for (end, event) in [
            (AttemptEnd::Success, QueueEvent::Succeed),
            (AttemptEnd::Failed, QueueEvent::Fail),
            (AttemptEnd::TimedOut, QueueEvent::TimeOut),
            (AttemptEnd::Unknown, QueueEvent::LoseTrack),
        ] {
            let settled =
                settle(&job(5, true), stopped, &AttemptOutcome::ended(end, "no"), Millis(0));
            assert_eq!(settled.event, event);
        }
    }

    #[test]
    fn what_is_to_stop_is_not_tried_again_and_not_called_harmless() {
        use {AttemptEnd as D, QueueEvent as E, TxClass as T};
        for (tx, idempotent, open, end, event, after) in [
            (T::None, false, 0, D::Failed, E::Kill, 0),
            (T::None, true, 0, D::Unknown, E::LoseTrack, 0),
            (T::Ledger, false, 0, D::Unknown, E::LoseTrack, 1),
            (T::Ledger, false, 1, D::Failed, E::Kill, 0),
            (T::Ledger, false, 0, D::Success, E::Succeed, 0),
            (T::Ledger, false, 0, D::Killed, E::Kill, 0),
        ] {
            let job = classed(tx, idempotent, None);
            let this = RetryContext { unresolved: open, ..self::after(0) };
            let outcome = AttemptOutcome::ended(end, "no");
            let settled = stopped(settle(&job, this, &outcome, Millis(0)), this, &outcome.end);
            assert_eq!(settled.try_count, this.failed_before, "a retry that is not made is none");
            assert_eq!(
                (settled.event, settled.unresolved),
                (event, after),
                "{outcome:?} of {tx:?}"
            );
            assert_eq!(settled.not_before, None);
            assert_eq!(settled.tell_owners, event == E::LoseTrack);
        }
        // Nor is a recorded job of unknown outcome when retries have been stopped.
        let stopped = RetryContext { retries: Retries::Stopped, ..after(0) };
        let job = classed(T::Ledger, false, Some(OnUnknown::Fail));
        let settled =
            settle(&job, stopped, &AttemptOutcome::ended(AttemptEnd::Unknown, "no"), Millis(0));
        assert_eq!((settled.event, settled.unresolved), (E::Fail, 1));
    }

    proptest! {
        /// However a job fails, it is retried at most `retry_count` times.
        #[test]
        fn tries_are_bounded(allowed in 0u32..6, ends in prop::collection::vec(0..3u8, 20)) {
            let job = job(allowed, true);
            let mut tries = 0;
            let mut starts = 0;
            for end in ends {
                starts += 1;
                let end = [AttemptEnd::Failed, AttemptEnd::TimedOut, AttemptEnd::Unknown][end as usize].clone();
                let settled = settle(&job, after(tries), &AttemptOutcome::ended(end, "no"), Millis(0));
                tries = settled.try_count;
                if settled.event != QueueEvent::RetryLater { break; }
            }
            prop_assert_eq!(starts, allowed + 1);
        }
    }
}
