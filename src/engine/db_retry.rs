//! Queries of a worker to Procession's own database. The job is not to blame when the database is
//! unavailable, full or reports a transient error, so the query is repeated until it succeeds or
//! the job is to stop.

use crate::handler::StopReason;
use crate::store;
use anyhow::Result;
use std::time::Duration;
use tokio::sync::watch;

/// The first and the longest pause between two attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Repeats the query until it succeeds, fails with an error that will not pass, or `stop` is set;
/// then the last error is returned.
pub(super) async fn answered<T, F, Fut>(
    stop: &watch::Receiver<Option<StopReason>>,
    question: F,
) -> Result<T>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let mut stop = stop.clone();
    let (mut pause, longest) = PAUSES;
    loop {
        let error = match question().await {
            Err(error) if store::is_transient(&error) => error,
            done => return done,
        };
        tracing::debug!(error = format!("{error:#}"), "our database gave no answer; asking again");
        tokio::select! {
            Ok(_) = stop.wait_for(Option::is_some) => return Err(error),
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(longest);
    }
}

/// Repeats the query until it succeeds or fails with an error that will not pass: for facts that
/// are needed before anything else is written.
pub(super) async fn answered_at_last<T, F, Fut>(question: F) -> Result<T>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let (_nobody_stops_it, stop) = watch::channel(None);
    answered(&stop, question).await
}
