//! Waits for a secret store that is unavailable: restarting, sealed or unreachable.
//!
//! The job is not charged for that, as with a data source that is unavailable
//! (`handler/wait_for_source.rs`): nothing of the body has been sent yet, so the attempt waits as
//! long as it would wait for a source, and checks that it still owns its row.

use crate::domain::cluster::lease::Uptime;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, Stream};
use crate::domain::job::retry::ErrorClass;
use crate::domain::time::span_words;
use crate::engine::attempt::claim_check::RowClaim;
use crate::engine::attempt::run::{AttemptOrder, Surroundings};
use crate::handler::run_on_source::end_of;
use crate::handler::{Claim as _, NOT_OURS, StopReason};
use crate::secret_store::{ConfiguredSecret, SecretStoreError};
use secrecy::SecretString;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The first pause between two requests; doubled after each.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Interval between two claim checks, in milliseconds.
const CLAIM_EVERY_MS: i64 = 3_000;

/// One attempt's wait for one secret store.
pub(super) struct AwaitedStore<'a> {
    job: &'a AttemptOrder,
    around: &'a Surroundings,
    claim: RowClaim,
    store: &'a str,
    /// Since when the store is unavailable.
    since: Option<Uptime>,
    requests: u32,
    asked: Uptime,
}

impl<'a> AwaitedStore<'a> {
    /// A wait that has not begun.
    pub(in crate::engine) fn new(
        job: &'a AttemptOrder,
        around: &'a Surroundings,
        store: &'a str,
    ) -> Self {
        let claim = RowClaim::for_attempt(job, around);
        let asked = around.clock.uptime();
        Self { job, around, claim, store, since: None, requests: 0, asked }
    }

    /// Reads a secret, and waits while the store is unavailable.
    pub(in crate::engine) async fn read_secret(
        &mut self,
        name: &str,
        secret: &ConfiguredSecret,
    ) -> Result<SecretString, AttemptOutcome> {
        loop {
            let now = self.around.clock.uptime();
            let reading = self.around.secret_stores.read_secret(secret, now);
            let read = tokio::select! {
                biased;
                reason = stopped(self.job) => return Err(self.stopped(reason)),
                read = reading => read,
            };
            match read {
                Ok(read) => {
                    self.is_back().await;
                    return Ok(read.value);
                }
                Err(SecretStoreError::Unusable(why)) => {
                    self.claim_is_free().await;
                    return Err(AttemptOutcome::ended(
                        AttemptEnd::Failed,
                        format!("secret {name}: {why}"),
                    ));
                }
                Err(SecretStoreError::Away(why)) => self.wait_for_store(name, &why).await?,
            }
        }
    }

    /// Waits before the next request; `Err` is the outcome when the store has been unavailable for
    /// too long.
    async fn wait_for_store(&mut self, name: &str, why: &str) -> Result<(), AttemptOutcome> {
        self.requests += 1;
        let now = self.around.clock.uptime();
        let patience = self.around.handlers.away;
        let patience_ms = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
        let is_first = self.since.is_none();
        let away_ms = now.since(*self.since.get_or_insert(now));
        if away_ms >= patience_ms {
            let (away, requests) = (span_words(away_ms), self.requests);
            let words = format!(
                "secret {name}: {why} (away for {away}, {requests} requests); nothing was run"
            );
            let outcome = AttemptOutcome::ended(AttemptEnd::Failed, words).before_it_began();
            return Err(outcome.of_class(ErrorClass::ConnectionLost, None));
        }
        if is_first {
            let waits = span_words(patience_ms);
            self.job.log.add_line(Stream::System, format!("{why}; waits up to {waits} for it"));
            let since = self.around.clock.now();
            let words = format!("secret store {} is away since {since}: {why}", self.store);
            self.claim.waits_on(Some(words)).await;
        }
        let left = Duration::from_millis(u64::try_from(patience_ms - away_ms).unwrap_or(0));
        let pause = (PAUSE_MIN * (1 << (self.requests - 1).min(5))).min(PAUSE_MAX).min(left);
        tokio::select! {
            biased;
            reason = stopped(self.job) => return Err(self.stopped(reason)),
            () = sleep(pause) => {}
        }
        self.require_claim().await
    }

    /// A failed claim check is repeated later: nothing has been run.
    async fn require_claim(&mut self) -> Result<(), AttemptOutcome> {
        let now = self.around.clock.uptime();
        if now.since(self.asked) < CLAIM_EVERY_MS {
            return Ok(());
        }
        self.asked = now;
        let limit = Duration::from_millis(CLAIM_EVERY_MS.unsigned_abs());
        match timeout(limit, self.claim.still_ours()).await {
            Ok(Ok(false)) => {
                let words = format!("{NOT_OURS}; nothing was run");
                Err(AttemptOutcome::ended(AttemptEnd::Failed, words).before_it_began())
            }
            Ok(Ok(true) | Err(_)) | Err(_) => Ok(()),
        }
    }

    async fn is_back(&mut self) {
        let Some(since) = self.since else { return };
        let away = span_words(self.around.clock.uptime().since(since));
        let words = format!("secret store {} is back after {away}", self.store);
        self.job.log.add_line(Stream::System, words);
        self.claim_is_free().await;
    }

    async fn claim_is_free(&mut self) {
        if self.since.take().is_some() {
            self.claim.waits_on(None).await;
        }
    }

    fn stopped(&self, reason: StopReason) -> AttemptOutcome {
        let words = format!("stopped while it read secrets of secret store {}", self.store);
        AttemptOutcome::ended(end_of(reason), words).before_it_began()
    }
}

/// Returns when the attempt must stop, with the reason.
async fn stopped(job: &AttemptOrder) -> StopReason {
    let mut stop = job.stop.clone();
    loop {
        if let Some(reason) = *stop.borrow_and_update() {
            return reason;
        }
        if stop.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}
