//! Questions of a worker to our own database. That it is away, full or asks to try again is no fault
//! of the job, so they are asked again until there is an answer or the job is to stop.

use crate::handler::StopReason;
use crate::store;
use anyhow::Result;
use std::time::Duration;
use tokio::sync::watch;

/// The first pause between two tries, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Asks until there is an answer, or an error that will be the same the next time, or `stop` says
/// that nobody wants to know any more; then the last error is given.
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

/// Asks until there is an answer, or an error that will be the same the next time: for what has to be
/// known before anything else is written.
pub(super) async fn answered_at_last<T, F, Fut>(question: F) -> Result<T>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let (_nobody_stops_it, stop) = watch::channel(None);
    answered(&stop, question).await
}
