//! Waits for an unavailable data source: restarting, refusing connections or out of connections.
//!
//! A source that is unavailable for some seconds is nobody's failure, and waiting is cheaper than a
//! failed attempt that is charged to the job. No statement of the body has been sent yet, so only
//! the row matters: the claim is checked repeatedly.

use crate::db::connect_error::{Hope, NoSession};
use crate::db::fault::SessionError;
use crate::domain::id::SourceName;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, Stream};
use crate::domain::job::retry::ErrorClass;
use crate::domain::time::{Millis, span_words};
use crate::handler::address;
use crate::handler::run_on_source::classed;
use crate::handler::stopwatch::{Stopwatch, now};
use crate::handler::{AttemptTask, Context, NOT_OURS};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The first pause between two attempts to connect; doubled after each.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Interval between two claim checks.
const CLAIM_EVERY: Duration = Duration::from_secs(3);

/// Whether another process may take the row away from the waiting one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceWaiter {
    /// The wait of an attempt, which ends when its row belongs to another.
    Try,
    /// The wait of a process that cleans up after a dead worker.
    Cleaner,
}

/// The wait of one attempt for its source.
pub(crate) struct Away<'a> {
    ctx: &'a Context,
    source: &'a SourceName,
    at: &'a str,
    whose: SourceWaiter,
    roll: u64,
    /// Since when the source is unavailable.
    since: Option<(Stopwatch, Millis)>,
    attempts: u32,
    asked: Stopwatch,
}

/// A source that cannot be used now.
pub(crate) struct SourceUnavailable {
    /// What was tried.
    pub(crate) what: String,
    pub(crate) error: SessionError,
    /// Whether it may work again shortly.
    pub(crate) hope: Hope,
}

impl SourceUnavailable {
    /// No session could be opened.
    pub(crate) fn opening(source: &SourceName, at: &str, none: NoSession) -> Self {
        let what = format!("cannot connect to source '{source}' at {at}");
        Self { what, error: none.error, hope: none.hope }
    }

    /// A query on an existing session failed.
    pub(crate) fn asking(what: String, error: SessionError) -> Self {
        let NoSession { error, hope } = error.into();
        Self { what, error, hope }
    }

    fn reason(&self) -> String {
        address::opening(self.error.to_string())
    }

    /// The outcome of an attempt that gives up.
    fn outcome(&self, waited: &str) -> AttemptOutcome {
        let said = format!("{}: {}{waited}; nothing was run", self.what, self.reason());
        let outcome = AttemptOutcome::ended(AttemptEnd::Failed, said).before_it_began();
        match (self.hope, &self.error) {
            // There was no connection to lose.
            (Hope::None, SessionError::Lost(_)) => outcome.of_class(ErrorClass::Other, None),
            (_, error) => classed(outcome, error),
        }
    }
}

impl<'a> Away<'a> {
    /// The wait for `source`, which has not failed yet.
    pub(crate) fn new(
        task: &AttemptTask,
        ctx: &'a Context,
        source: &'a SourceName,
        at: &'a str,
        whose: SourceWaiter,
    ) -> Self {
        let roll = task.queue_id.0.unsigned_abs().wrapping_add(task.attempt.into());
        let asked = Stopwatch::start();
        Self { ctx, source, at, whose, roll, since: None, attempts: 0, asked }
    }

    /// Waits before the next attempt, or returns the outcome when another is pointless: when
    /// waiting cannot fix the error, when the source has been unavailable for `Options.away`, when
    /// the row belongs to another.
    pub(crate) async fn wait_for_source(
        &mut self,
        trouble: SourceUnavailable,
    ) -> Result<(), AttemptOutcome> {
        self.attempts += 1;
        let is_first = self.since.is_none();
        let (since, moment) = *self.since.get_or_insert_with(|| (Stopwatch::start(), now()));
        let is_over = match trouble.hope {
            Hope::None => return Err(trouble.outcome("")),
            Hope::Once => self.attempts > 1,
            Hope::Soon | Hope::Here => false,
        };
        let patience = self.ctx.options.away;
        if is_over || since.elapsed() >= patience {
            let waited = match self.attempts {
                1 => String::new(),
                n => format!(" (away for {}, {n} attempts)", span_words(since.elapsed_ms())),
            };
            return Err(trouble.outcome(&waited));
        }
        if is_first {
            let (source, at, why) = (self.source, self.at, trouble.reason());
            let waits = span_words(i64::try_from(patience.as_millis()).unwrap_or(i64::MAX));
            let said = format!("source '{source}' at {at} is away, waits up to {waits}: {why}");
            self.ctx.log.add_line(Stream::System, said);
            let said = format!("source '{source}' is away since {moment}: {why}");
            self.ctx.claim.waits_on(Some(said)).await;
        }
        sleep(self.pause().min(patience.saturating_sub(since.elapsed()))).await;
        self.still_wanted().await
    }

    /// The source is available again.
    pub(crate) async fn is_over(&mut self) {
        let Some((since, _)) = self.since.take() else { return };
        self.attempts = 0;
        let said =
            format!("source '{}' is back after {}", self.source, span_words(since.elapsed_ms()));
        self.ctx.log.add_line(Stream::System, said);
        self.ctx.claim.waits_on(None).await;
    }

    /// Checks the claim every few seconds. A failed check is repeated later: nothing has been run,
    /// and nothing is before it succeeds.
    pub(crate) async fn still_wanted(&mut self) -> Result<(), AttemptOutcome> {
        if self.whose == SourceWaiter::Cleaner || self.asked.elapsed() < CLAIM_EVERY {
            return Ok(());
        }
        let answer = timeout(CLAIM_EVERY, self.ctx.claim.still_ours()).await;
        self.asked = Stopwatch::start();
        match answer {
            Ok(Ok(false)) => Err(not_ours()),
            Ok(Ok(true) | Err(_)) | Err(_) => Ok(()),
        }
    }

    /// 0.2 s growing to 2 s, varied by a quarter each way: a hundred attempts that lost the same
    /// server must not all return at the same moment.
    fn pause(&self) -> Duration {
        let plain = (PAUSE_MIN * (1 << (self.attempts - 1).min(5))).min(PAUSE_MAX);
        let mixed =
            self.roll.wrapping_add(self.attempts.into()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let percent = u32::try_from(75 + (mixed >> 32) % 51).unwrap_or(100);
        plain * percent / 100
    }
}

/// The outcome of an attempt whose row belongs to another.
pub(crate) fn not_ours() -> AttemptOutcome {
    let said = format!("{NOT_OURS}; nothing was run");
    AttemptOutcome::ended(AttemptEnd::Failed, said).before_it_began().of_lost_row()
}
