//! What an outcome means for the row: done, tried again, or given up.

use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, AttemptStage, Retry};
use crate::domain::job::queue::{NOT_LOOKED_UP, QueueEvent};
use crate::domain::job::retry::ErrorClass;
use crate::domain::job::{AfterCrash, JobDef};
use crate::domain::source::tx_class::OnUnknown;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;

/// The change an outcome makes to its queue row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// What happens to the row.
    pub event: QueueEvent,
    /// `try_count` afterwards: how often the job was or is to be tried again.
    pub try_count: u32,
    /// When the next try may start, for `RetryLater`.
    pub not_before: Option<Millis>,
    /// The message to store.
    pub message: Option<String>,
    /// Whether the owners are told: after a final failure, time-out or unknown outcome.
    pub tell_owners: bool,
    /// Tries in a row whose outcome is open, afterwards.
    pub unresolved: u32,
}

/// What is known of a try beside its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryContext {
    /// Failed tries before it.
    pub failed_before: u32,
    /// Any number, the same for the same try; varies the delay.
    pub roll: u64,
    /// Whether another may follow.
    pub retries: Retries,
    /// Tries in a row before it whose outcome is open.
    pub unresolved: u32,
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
///
/// Of a job that is recorded (`tx: same`, `tx: ledger`) an unknown outcome is never final: the next try
/// looks it up before it does anything, so that is tried until it is known. A try that could not look
/// says nothing of the job either, whatever stopped it. Neither of them, nor a try that was handed
/// back, is charged to the job. Only what no look can answer (`Retry::Never`) is given up: it is unknown.
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
        // Whoever wants it dead, or could mend it, is told that nobody knows what became of it.
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
    // Of a job that is recorded a rerun looks it up.
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
            // Its record contradicts itself; what is run after this failure is known by another key.
            OnUnknown::Fail if outcome.retry == Retry::Never => give_up(QueueEvent::Fail),
            OnUnknown::Fail => leave_open(QueueEvent::Fail),
        },
    }
}

/// Milliseconds before an outcome that could not be looked up is looked up again; doubled each time.
const LOOK_AGAIN_MS: u32 = 1_000;
/// Milliseconds between two looks, at most.
const LOOK_AGAIN_MAX_MS: i64 = 60_000;

/// Whether the next try can learn what became of this one: its record was not found contradicting
/// itself.
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

/// What becomes of a row whose worker died while it ran, the `crashes`-th in a row. A lost worker is
/// not the job's fault, so no try is charged; but a job that is to start again is parked when
/// `park_after` workers have died of it (or beside it: nobody can tell).
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

/// Whether nobody could tell what a job did whose worker died: it may not start again, and nothing looks it up.
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
        // (end, tries before, retries allowed, idempotent) -> (event, owners told)
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
            // Retries, not failures: an attempt that is the last adds none.
            let retries = tries + u32::from(event == E::RetryLater);
            assert_eq!(settled.try_count, retries, "{end:?} {tries}/{allowed}");
        }
    }

    /// A job of a class, idempotent or not, with a policy.
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
        // (class, idempotent, policy, open tries before, end, reach) -> (event, open tries after, charged)
        for (tx, idempotent, policy, open, end, reach, event, after, charged) in [
            (T::None, false, None, 0, D::Unknown, R::Body, E::LoseTrack, 0, 0),
            (T::None, false, Some(O::Fail), 0, D::Unknown, R::Body, E::Fail, 0, 0),
            (T::None, true, None, 0, D::Unknown, R::Body, E::RetryLater, 0, 1),
            (T::Ledger, false, None, 0, D::Unknown, R::Body, E::RetryLater, 1, 0),
            (T::Same, false, Some(O::Fail), 4, D::Unknown, R::Body, E::RetryLater, 5, 0),
            // Could not look: neither a failure nor a time-out of the job.
            (T::Ledger, false, None, 1, D::Failed, R::Before, E::RetryLater, 2, 0),
            (T::Ledger, false, None, 1, D::TimedOut, R::Before, E::RetryLater, 2, 0),
            (T::Ledger, false, None, 1, D::Killed, R::Before, E::LoseTrack, 1, 0),
            // Looked, and ran.
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
            // Trying again would find the same record again.
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
        // Nor is a recorded job whose outcome is open when nothing is tried again any more.
        let stopped = RetryContext { retries: Retries::Stopped, ..after(0) };
        let job = classed(T::Ledger, false, Some(OnUnknown::Fail));
        let settled =
            settle(&job, stopped, &AttemptOutcome::ended(AttemptEnd::Unknown, "no"), Millis(0));
        assert_eq!((settled.event, settled.unresolved), (E::Fail, 1));
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
                let end = [AttemptEnd::Failed, AttemptEnd::TimedOut, AttemptEnd::Unknown][end as usize].clone();
                let settled = settle(&job, after(tries), &AttemptOutcome::ended(end, "no"), Millis(0));
                tries = settled.try_count;
                if settled.event != QueueEvent::RetryLater { break; }
            }
            prop_assert_eq!(starts, allowed + 1);
        }
    }
}
