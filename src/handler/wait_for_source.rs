//! Waits for a data source that is away: one that restarts, refuses connections or has none left.
//!
//! A source that is away for some seconds is nobody's failure, and a try that waits is cheaper than one
//! that is charged to the job. Nothing of the body has been sent yet, so there is nothing to be careful
//! about but the row: it is asked again and again whether it is still ours.

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

/// The first pause between two attempts to connect; doubled each time.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Between two questions whether the row is still ours.
const CLAIM_EVERY: Duration = Duration::from_secs(3);

/// Whether somebody may take the row away from who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceWaiter {
    /// A try's own wait, which ends when the row is not its own any more.
    Try,
    /// The wait of who cleans up behind a dead worker.
    Cleaner,
}

/// The patience of one try with its source.
pub(crate) struct Away<'a> {
    ctx: &'a Context,
    source: &'a SourceName,
    at: &'a str,
    whose: SourceWaiter,
    roll: u64,
    /// Since when it is away.
    since: Option<(Stopwatch, Millis)>,
    attempts: u32,
    asked: Stopwatch,
}

/// A source that cannot be used now.
pub(crate) struct SourceUnavailable {
    /// What was tried.
    pub(crate) what: String,
    /// What came of it.
    pub(crate) error: SessionError,
    /// Whether it may be well in a moment.
    pub(crate) hope: Hope,
}

impl SourceUnavailable {
    /// No session could be opened.
    pub(crate) fn opening(source: &SourceName, at: &str, none: NoSession) -> Self {
        let what = format!("cannot connect to source '{source}' at {at}");
        Self { what, error: none.error, hope: none.hope }
    }

    /// A question of ours on a session that was there went wrong.
    pub(crate) fn asking(what: String, error: SessionError) -> Self {
        let NoSession { error, hope } = error.into();
        Self { what, error, hope }
    }

    fn reason(&self) -> String {
        address::opening(self.error.to_string())
    }

    /// The end of a try that gives up.
    fn outcome(&self, waited: &str) -> AttemptOutcome {
        let said = format!("{}: {}{waited}; nothing was run", self.what, self.reason());
        let outcome = AttemptOutcome::ended(AttemptEnd::Failed, said).before_it_began();
        match (self.hope, &self.error) {
            // No connection was there to be lost.
            (Hope::None, SessionError::Lost(_)) => outcome.of_class(ErrorClass::Other, None),
            (_, error) => classed(outcome, error),
        }
    }
}

impl<'a> Away<'a> {
    /// Patience with `source`, which has not failed yet.
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

    /// Waits before the next attempt, or gives the outcome when another makes no sense: when waiting
    /// cannot mend it, when it has been away for `Options.away`, when the row is not ours any more.
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

    /// It is back.
    pub(crate) async fn is_over(&mut self) {
        let Some((since, _)) = self.since.take() else { return };
        self.attempts = 0;
        let said =
            format!("source '{}' is back after {}", self.source, span_words(since.elapsed_ms()));
        self.ctx.log.add_line(Stream::System, said);
        self.ctx.claim.waits_on(None).await;
    }

    /// Asks every few seconds whether the row is still ours. A claim that cannot be asked for is asked
    /// for later: nothing has been run, and nothing is before it was answered.
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

    /// 0.2 s growing to 2 s, varied by a quarter each way: a hundred tries that lost the same server
    /// must not all come back in the same moment.
    fn pause(&self) -> Duration {
        let plain = (PAUSE_MIN * (1 << (self.attempts - 1).min(5))).min(PAUSE_MAX);
        let mixed =
            self.roll.wrapping_add(self.attempts.into()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let percent = u32::try_from(75 + (mixed >> 32) % 51).unwrap_or(100);
        plain * percent / 100
    }
}

/// The end of a try whose row is not its own any more.
pub(crate) fn not_ours() -> AttemptOutcome {
    let said = format!("{NOT_OURS}; nothing was run");
    AttemptOutcome::ended(AttemptEnd::Failed, said).before_it_began().of_lost_row()
}
