//! `batch kill`: stops a batch, and waits until it has ended.

use crate::app::App;
use crate::app::whoami;
use crate::cli::batch::{print, server_now};
use crate::cli::{BadInput, BatchRef, Global, VerbResult, out};
use crate::domain::action::rerun::UnknownJobs;
use crate::domain::batch::Batch;
use crate::domain::id::BatchId;
use crate::domain::text::lang::Lang;
use crate::engine::opening::refused::OpeningRefusal;
use crate::engine::operate::operator_actions;
use crate::engine::operate::pause;
use crate::store;
use crate::view::batch::BatchView;
use anyhow::Result;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(super) async fn kill_batch(
    global: &Global,
    app: &App,
    which: &BatchRef,
    reason: &str,
    no_wait: bool,
) -> Result<VerbResult> {
    let found = which.find_batch(app).await?;
    let no = &found.values.batch_no;
    if found.status.is_final() {
        return Err(BadInput(format!("batch {no} has ended already ({})", found.status)).into());
    }
    let now = server_now(app).await?;
    let by = operator_actions::operator_here(&whoami());
    let asked = pause::stop_batch(&app.db, found.batch_id, &by, reason, now).await?;
    if !asked {
        return Err(BadInput(format!("batch {no} has just ended; nothing to stop")).into());
    }
    let is_owned = is_held(app, found.batch_id).await?;
    out::eprint_line(&match (is_owned, no_wait, global.language()) {
        (true, _, Lang::En) => format!("batch {no} is being stopped"),
        (true, _, Lang::Zh) => format!("正在停止批次 {no}"),
        (false, true, Lang::En) => format!(
            "batch {no} is marked to be stopped; no process has it: the next that serves ends it, or batch kill \
             without --no-wait"
        ),
        (false, true, Lang::Zh) => format!(
            "批次 {no} 已标记为停止；目前没有进程持有它：将由下一个服务进程结束，或去掉 --no-wait 重新执行 batch kill"
        ),
        (false, false, Lang::En) => format!("no process has batch {no}: it is ended here"),
        (false, false, Lang::Zh) => format!("没有进程持有批次 {no}：由本命令结束"),
    });
    if no_wait {
        return Ok(VerbResult::Well);
    }
    wait_for_end(app, found.batch_id).await?;
    let ended = BatchView::read_view(app, found.batch_id).await?;
    print(&ended, global.language());
    Ok(VerbResult::Well)
}

/// Whether a living process owns the batch.
async fn is_held(app: &App, id: BatchId) -> Result<bool> {
    let mut tx = app.db.begin_read().await?;
    let holder = match &store::batch::get(&mut tx, id).await?.owner {
        Some(owner) => store::node::find_node(&mut tx, owner).await?,
        None => None,
    };
    Ok(holder.is_some_and(|holder| holder.lease_until > app.clock.now()))
}

/// Waits until the owner of the batch has ended it; without an owner, ends it here.
async fn wait_for_end(app: &App, id: BatchId) -> Result<()> {
    loop {
        let mut tx = app.db.begin_read().await?;
        let batch = store::batch::get(&mut tx, id).await?;
        if batch.status.is_final() {
            return Ok(());
        }
        let holder = match &batch.owner {
            Some(owner) => store::node::find_node(&mut tx, owner).await?,
            None => None,
        };
        drop(tx);
        if holder.is_none_or(|h| h.lease_until <= app.clock.now()) {
            end_here(app, &batch).await?;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The batch has no owner: this process takes it over, only to end it.
async fn end_here(app: &App, batch: &Batch) -> Result<()> {
    let mut here = app.dispatcher(None).await?;
    let ended = match here.resume(batch, UnknownJobs::Leave, None).await {
        Ok(_) => here.run_until_done(&CancellationToken::new()).await,
        // Another process came first.
        Err(error)
            if matches!(
                error.downcast_ref(),
                Some(OpeningRefusal::Owned { .. } | OpeningRefusal::Hurried(..))
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    };
    here.leave().await?;
    ended
}
