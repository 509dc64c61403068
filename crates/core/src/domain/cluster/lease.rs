//! The lease of a process: how long it may continue after a renewal, what it may take over, and
//! what it may give back.
//!
//! Time is counted on the machine's monotonic clock, from *before* the renewal was sent: so the
//! lease as seen by the process always ends before the lease in the database.

use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome};
use crate::domain::job::{AfterCrash, JobDef};
use crate::domain::source::tx_class::OnUnknown;

/// A moment on the machine's monotonic clock, in milliseconds; never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(pub i64);

impl Uptime {
    /// The moment `ms` milliseconds later.
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Which other processes can write while this process waits to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// None: the database has one writer at a time (SQLite). While a renewal waits for the file, no
    /// process can take anything over, so that wait does not count.
    One,
    /// All of them.
    Many,
}

/// The next step concerning the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    /// Nothing for this many milliseconds.
    Rest(i64),
    /// Renew the lease.
    Renew,
    /// No renewal succeeded for so long that another process may take over soon: everything running
    /// here must be stopped.
    Fence,
}

/// The lease of this process, by its own clock.
#[derive(Clone, Debug)]
pub struct Lease {
    length_ms: i64,
    writers: Writers,
    /// Start of the lease: before the last successful renewal was sent.
    counted: Uptime,
    /// When the next renewal is due.
    next: Uptime,
    /// When the renewal in flight was sent.
    sent: Option<Uptime>,
    /// Since when every renewal has succeeded.
    steady: Option<Uptime>,
    is_fenced: bool,
}

impl Lease {
    /// A lease that was requested at `sent` and has been granted.
    pub fn new(length_ms: i64, writers: Writers, sent: Uptime) -> Self {
        Self {
            length_ms,
            writers,
            counted: sent,
            next: sent.plus_ms(length_ms / 3),
            sent: None,
            steady: Some(sent),
            is_fenced: false,
        }
    }

    /// The step due at `now`. A renewal in flight is not sent twice.
    pub fn next_step(&self, now: Uptime) -> LeaseStep {
        let waits_alone = self.sent.is_some() && self.writers == Writers::One;
        let fence = (!self.is_fenced && !waits_alone).then(|| self.fence_at());
        if fence.is_some_and(|at| at <= now) {
            return LeaseStep::Fence;
        }
        let renew = self.sent.is_none().then_some(self.next);
        if renew.is_some_and(|at| at <= now) {
            return LeaseStep::Renew;
        }
        let next = fence.into_iter().chain(renew).min();
        LeaseStep::Rest(next.map_or(self.length_ms, |at| at.since(now)))
    }

    /// When everything running here must be told to stop: a quarter of the lease before its end,
    /// the time that stopping takes.
    fn fence_at(&self) -> Uptime {
        let margin = (self.length_ms / 4).max(250).min(self.length_ms / 2);
        self.counted.plus_ms(self.length_ms - margin)
    }

    /// Records that everything running here was told to stop.
    pub fn fence(&mut self) {
        self.is_fenced = true;
        self.steady = None;
    }

    /// Whether starting anything is forbidden.
    pub fn is_fenced(&self) -> bool {
        self.is_fenced
    }

    /// Milliseconds by which the next renewal is overdue.
    pub fn overdue_ms(&self, now: Uptime) -> i64 {
        now.since(self.next).max(0)
    }

    /// Records that a renewal was sent.
    pub fn mark_sent(&mut self, now: Uptime) {
        self.sent = Some(now);
    }

    /// Records a successful renewal. If its answer arrived after the lease had ended by this
    /// process's clock, the fence stays until the next renewal.
    pub fn renewed(&mut self, now: Uptime) {
        let sent = self.sent.take().unwrap_or(self.counted);
        (self.counted, self.next) = (sent, sent.plus_ms(self.length_ms / 3));
        self.is_fenced &= self.fence_at() <= now;
        if !self.is_fenced {
            self.steady.get_or_insert(sent);
        }
    }

    /// Records that a renewal failed, as far as known; the next one follows soon.
    pub fn failed(&mut self, now: Uptime) {
        self.sent = None;
        self.steady = None;
        self.next = now.plus_ms((self.length_ms / 24).clamp(50, 1_000));
    }

    /// Records that a renewal failed because another process was writing all the time.
    pub fn mark_busy(&mut self, now: Uptime) {
        let waited = self.sent.map_or(0, |sent| now.since(sent));
        self.failed(now);
        if self.writers == Writers::One {
            self.counted = self.counted.plus_ms(waited);
        }
    }

    /// Whether renewals have been succeeding: a failure is logged once, until one succeeds again.
    pub fn is_steady(&self) -> bool {
        self.steady.is_some()
    }

    /// Whether this process may take over work of a process whose lease has expired: only after it
    /// has renewed its own lease for a while. When the database was unavailable, or one process
    /// wrote for long, all leases have expired; the first one to write again must not take
    /// everything from the others, which follow shortly.
    pub fn may_take_over(&self, now: Uptime) -> bool {
        let is_late = self.fence_at() <= now;
        let for_a_while = self.steady.is_some_and(|at| now.since(at) >= self.length_ms / 3);
        !self.is_fenced && !is_late && for_a_while
    }
}

/// Maximum number of open batches per job slot of a process. Most scheduled batches have one short
/// job, so a process that took only as many batches as it runs jobs was mostly waiting for the next
/// poll: of 300 firings a second 5 were run.
const BATCHES_PER_SLOT: usize = 16;

/// Number of batches that a process takes in one poll when it dispatches `open` of them and may run
/// `max_parallel` jobs: half of its remaining capacity, so that processes polling at the same time
/// get some too.
pub fn share(open: usize, max_parallel: u32) -> usize {
    let slots = usize::try_from(max_parallel).unwrap_or(usize::MAX).max(2);
    slots.saturating_mul(BATCHES_PER_SLOT).saturating_sub(open).div_ceil(2)
}

/// How far a body has got, as far as the process that runs it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyProgress {
    /// Nothing of the body was sent, and nothing will be.
    NotBegun,
    /// The body was allowed to begin.
    Begun,
}

/// The end of an attempt that was stopped because its process shuts down or lost its lease: when
/// nothing of its body was sent, or a repeated start has no second effect, no outcome is open.
pub fn returned(
    outcome: AttemptOutcome,
    after_crash: AfterCrash,
    progress: BodyProgress,
) -> AttemptOutcome {
    let is_safe = progress == BodyProgress::NotBegun || after_crash == AfterCrash::StartsAgain;
    match outcome.end {
        AttemptEnd::Returned if is_safe => outcome.before_it_began(),
        _ => outcome,
    }
}

/// Whether a running body may be stopped because its process shuts down: only when it can be
/// started again elsewhere. Any other body is awaited, because stopping it would leave an unknown
/// outcome.
pub fn may_be_handed_back(job: &JobDef, after_crash: AfterCrash, progress: BodyProgress) -> bool {
    match (progress, after_crash) {
        (BodyProgress::NotBegun, _) | (BodyProgress::Begun, AfterCrash::StartsAgain) => true,
        (BodyProgress::Begun, AfterCrash::AsDeclared) => {
            job.tx.is_recorded() || job.when_unknown() == OnUnknown::Retry
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::dispatch::settlement::{Retries, RetryContext, settle};
    use crate::domain::id::{GroupCode, JobCode, JobType};
    use crate::domain::job::queue::QueueEvent;
    use crate::domain::source::tx_class::TxClass;
    use crate::domain::time::Millis;
    use proptest::prelude::*;

    const L: i64 = 12_000;

    fn at(ms: i64) -> Uptime {
        Uptime(ms)
    }

    #[test]
    fn it_is_renewed_three_times_within_its_length() {
        let mut lease = Lease::new(L, Writers::Many, at(0));
        assert_eq!(lease.next_step(at(0)), LeaseStep::Rest(4_000));
        assert_eq!(lease.next_step(at(4_000)), LeaseStep::Renew);
        assert_eq!((lease.overdue_ms(at(3_000)), lease.overdue_ms(at(4_500))), (0, 500));
        lease.mark_sent(at(4_000));
        assert_eq!(lease.next_step(at(4_500)), LeaseStep::Rest(4_500), "until the fence");
        lease.renewed(at(7_900));
        // Counted from before it was sent, however late the answer arrives.
        assert_eq!(lease.next_step(at(7_999)), LeaseStep::Rest(1));
        assert_eq!(lease.next_step(at(8_000)), LeaseStep::Renew);
    }

    #[test]
    fn without_a_renewal_all_ends_a_quarter_before_the_end() {
        let mut lease = Lease::new(L, Writers::Many, at(0));
        lease.mark_sent(at(4_000));
        lease.failed(at(5_000));
        assert_eq!(lease.next_step(at(5_000)), LeaseStep::Rest(500), "soon again");
        lease.mark_sent(at(5_500));
        assert_eq!(lease.next_step(at(8_999)), LeaseStep::Rest(1));
        assert_eq!(lease.next_step(at(9_000)), LeaseStep::Fence);
        lease.fence();
        assert_eq!(
            lease.next_step(at(9_000)),
            LeaseStep::Rest(L),
            "told once; a renewal is on its way"
        );
        lease.failed(at(20_000));
        assert_eq!(lease.next_step(at(20_500)), LeaseStep::Renew, "tried on and on");
        lease.mark_sent(at(20_500));
        lease.renewed(at(20_500));
        assert!(!lease.is_fenced());
        assert_eq!(lease.next_step(at(20_500)), LeaseStep::Rest(4_000));
    }

    #[test]
    fn a_short_lease_has_a_margin_too() {
        let lease = Lease::new(1_000, Writers::Many, at(0));
        assert_eq!(lease.next_step(at(333)), LeaseStep::Renew);
        assert_eq!(lease.next_step(at(750)), LeaseStep::Fence);
        assert_eq!(Lease::new(300, Writers::Many, at(0)).next_step(at(149)), LeaseStep::Renew);
    }

    #[test]
    fn while_only_one_can_write_waiting_for_the_file_does_not_count() {
        for (writers, fenced_at) in [(Writers::One, 19_000), (Writers::Many, 9_000)] {
            let mut lease = Lease::new(L, writers, at(0));
            lease.mark_sent(at(4_000));
            let waits = lease.next_step(at(13_999));
            assert_eq!(waits == LeaseStep::Fence, writers == Writers::Many, "{waits:?}");
            lease.mark_busy(at(14_000));
            assert_eq!(lease.next_step(at(fenced_at)), LeaseStep::Fence);
            assert_ne!(lease.next_step(at(fenced_at - 1)), LeaseStep::Fence);
        }
        // An error other than "busy" counts with one writer too.
        let mut lease = Lease::new(L, Writers::One, at(0));
        lease.mark_sent(at(4_000));
        lease.failed(at(9_000));
        assert_eq!(lease.next_step(at(9_000)), LeaseStep::Fence);
    }

    #[test]
    fn who_could_not_renew_takes_nothing_over_at_once() {
        let mut lease = Lease::new(L, Writers::Many, at(0));
        assert!(!lease.may_take_over(at(3_999)), "has just begun");
        assert!(lease.may_take_over(at(4_000)));
        assert!(!lease.may_take_over(at(9_000)), "is late itself");
        lease.mark_sent(at(4_000));
        lease.failed(at(5_000));
        assert!(!lease.may_take_over(at(5_000)));
        lease.mark_sent(at(5_500));
        lease.renewed(at(5_600));
        assert!(!lease.may_take_over(at(9_499)));
        assert!(lease.may_take_over(at(9_500)));
        lease.fence();
        assert!(!lease.may_take_over(at(9_500)));
    }

    #[test]
    fn no_process_swallows_all() {
        for (open, max_parallel, more) in [
            (0, 8, 64),
            (64, 8, 32),
            (127, 8, 1),
            (128, 8, 0),
            (500, 8, 0),
            (0, 1, 16),
            (31, 1, 1),
            (32, 1, 0),
        ] {
            assert_eq!(share(open, max_parallel), more, "{open} of {max_parallel}");
        }
    }

    proptest! {
        /// The lease by this process's clock ends before the one in the database, whatever the
        /// answers do: by then everything running here was told to stop.
        #[test]
        fn the_fence_falls_before_the_lease_ends(
            length in 1_000_i64..60_000,
            answers in prop::collection::vec((0_u8..2, 0_i64..20_000), 1..20),
        ) {
            let mut lease = Lease::new(length, Writers::Many, at(0));
            let (mut now, mut ends) = (at(0), at(length));
            for (answer, takes) in answers {
                while let LeaseStep::Rest(ms) = lease.next_step(now) {
                    prop_assert!(ms > 0, "a loop must not spin");
                    now = now.plus_ms(ms);
                    prop_assert!(lease.is_fenced() || now < ends);
                }
                if lease.next_step(now) == LeaseStep::Fence {
                    prop_assert!(now < ends);
                    lease.fence();
                    continue;
                }
                lease.mark_sent(now);
                let (sent, answered) = (now, now.plus_ms(takes));
                while let LeaseStep::Rest(ms) = lease.next_step(now) {
                    if now.plus_ms(ms) > answered {
                        break;
                    }
                    now = now.plus_ms(ms);
                }
                if lease.next_step(now) == LeaseStep::Fence && now <= answered {
                    prop_assert!(now < ends);
                    lease.fence();
                }
                now = answered.max(now);
                prop_assert!(lease.is_fenced() || now < ends);
                match answer {
                    0 => {
                        lease.renewed(now);
                        // The database counts from its write, which is later.
                        ends = sent.plus_ms(length);
                    }
                    _ => lease.failed(now),
                }
            }
        }
    }

    /// A body that is handed back is started again elsewhere and never lost.
    #[test]
    fn what_is_handed_back_never_ends_unknown() {
        let mut job = JobDef::with_defaults(
            JobCode::parse("A").expect("code"),
            GroupCode::parse("g").expect("group"),
            JobType::parse("SQL").expect("type"),
        );
        let mut handed = 0;
        let policies = OnUnknown::ALL.map(Some).into_iter().chain([None]);
        for (policy, tx) in policies.flat_map(|p| TxClass::ALL.map(|tx| (p, tx))) {
            for idempotent in [false, true] {
                for after in [AfterCrash::StartsAgain, AfterCrash::AsDeclared] {
                    for progress in [BodyProgress::NotBegun, BodyProgress::Begun] {
                        (job.on_unknown, job.tx, job.idempotent) = (policy, tx, idempotent);
                        if !may_be_handed_back(&job, after, progress) {
                            assert_eq!((tx, progress), (TxClass::None, BodyProgress::Begun));
                            continue;
                        }
                        handed += 1;
                        let end = AttemptOutcome::ended(AttemptEnd::Returned, "no");
                        let returned = returned(end, after, progress);
                        let this = RetryContext {
                            failed_before: 0,
                            roll: 7,
                            retries: Retries::AsDefined,
                            unresolved: 0,
                        };
                        let settled = settle(&job, this, &returned, Millis(0));
                        let found = (settled.event, settled.try_count);
                        assert_eq!(found, (QueueEvent::RetryLater, 0), "{job:?} {progress:?}");
                    }
                }
            }
        }
        assert!(handed > 30, "{handed}");
    }
}
