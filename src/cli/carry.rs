//! Runs a batch that an operator reopened to its end, in this process.

use crate::app::App;
use crate::cli::Global;
use crate::cli::progress::{self, Show};
use crate::cli::run::{standings, to_the_end};
use crate::cli::watch::RunWatch;
use crate::domain::action::rerun::UnknownJobs;
use crate::domain::id::BatchId;
use crate::engine::opening::refused::OpeningRefusal;
use crate::store;
use anyhow::Result;
use tokio::sync::mpsc;

/// Runs the batch to its end. If another process has just claimed it, that process does.
pub(super) async fn carry(global: &Global, app: &App, id: BatchId) -> Result<()> {
    let (tells, news) = mpsc::unbounded_channel();
    let mut dispatcher = app.dispatcher(Some(tells)).await?;
    let mut tx = app.db.begin_read().await?;
    let there = store::batch::get(&mut tx, id).await?;
    drop(tx);
    let renewals = dispatcher.keep_lease();
    let resumed = dispatcher.resume(&there, UnknownJobs::Leave, None).await;
    renewals.end_and_wait().await;
    if let Err(error) = resumed {
        dispatcher.leave().await?;
        let taken = matches!(
            error.downcast_ref(),
            Some(OpeningRefusal::Owned { .. } | OpeningRefusal::Hurried(..))
        );
        return if taken { Ok(()) } else { Err(error) };
    }
    let ids = [id];
    let standing = standings(app, &dispatcher, &ids).await?;
    let (total, done) = standing.first().map_or((0, 0), |one| (one.jobs, one.ended));
    let expected = RunWatch::for_batches(app, &ids, global.language());
    let show = if global.json { Show::Nothing } else { Show::for_terminal() };
    let shown = progress::watch(news, show, total, done, expected);
    let sender = app.sender(&dispatcher)?;
    to_the_end(dispatcher, sender, shown, global.language()).await
}
