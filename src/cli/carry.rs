//! Carries a batch that an operator opened again to its end, in this process.

use crate::app::App;
use crate::cli::progress::{self, Show};
use crate::cli::run::{stop_on_signal, totals};
use crate::cli::watch::Watch;
use crate::cli::{Global, out};
use crate::domain::id::BatchId;
use crate::domain::rerun::UnknownJobs;
use crate::engine::opening::Refused;
use crate::store;
use anyhow::{Context as _, Result};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Runs the batch to its end. When another process has just taken it, that one does.
pub(super) async fn carry(global: &Global, app: &App, id: BatchId) -> Result<()> {
    let (sender, news) = mpsc::unbounded_channel();
    let mut dispatcher = app.dispatcher(Some(sender)).await?;
    let mut tx = app.db.read().await?;
    let there = store::batch::get(&mut tx, id).await?;
    drop(tx);
    if let Err(error) = dispatcher.resume(&there, UnknownJobs::Leave, None).await {
        dispatcher.leave().await?;
        let taken =
            matches!(error.downcast_ref(), Some(Refused::Owned { .. } | Refused::Hurried(..)));
        return if taken { Ok(()) } else { Err(error) };
    }
    let (total, done) = totals(app, &[id]).await?;
    let show = match (global.json, out::is_terminal()) {
        (true, _) => Show::Nothing,
        (false, true) => Show::Live,
        (false, false) => Show::Lines,
    };
    let stop = CancellationToken::new();
    let work = async {
        let mut dispatcher = dispatcher;
        let ended = dispatcher.run_until_done(&stop).await;
        // Leaving drops the sender of news, which ends the watching.
        let left = dispatcher.leave().await;
        ended.and(left.context("end this process's lease"))
    };
    let expected = Watch::of(app, &[id], global.lang()).await;
    let watched =
        async { tokio::join!(work, progress::watch(news, show, (total, done), expected)) };
    let (worked, ()) = tokio::select! {
        both = watched => both,
        never = stop_on_signal(&stop, global.lang()) => match never {},
    };
    worked
}
