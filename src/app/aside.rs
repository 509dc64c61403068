//! Backfills that a process runs beside what it serves, each in hands of its own, as `procession backfill`
//! would.

use crate::app::App;
use crate::domain::id::BackfillId;
use crate::domain::job::Definition;
use crate::engine::backfill::{Request, Resumption};
use crate::engine::dispatcher::QueueDispatcher;
use anyhow::Result;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What runs beside.
#[derive(Default)]
pub struct Aside {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Aside {
    /// Begins a backfill, and runs it until it has ended or this is ended.
    pub async fn backfill(
        &self,
        app: &App,
        defs: &Definition,
        request: &Request,
    ) -> Result<BackfillId> {
        let mut dispatcher = app.dispatcher(None).await?;
        match dispatcher.start_backfill(defs, request, None).await {
            Ok(id) => {
                self.run(dispatcher, id);
                Ok(id)
            }
            Err(error) => {
                dispatcher.leave().await?;
                Err(error)
            }
        }
    }

    /// Goes on with one that was stopped, failed, or whose process died.
    pub async fn resume(&self, app: &App, defs: &Definition, asked: &Resumption) -> Result<()> {
        let mut dispatcher = app.dispatcher(None).await?;
        if let Err(error) = dispatcher.resume_backfill(defs, asked, None).await {
            dispatcher.leave().await?;
            return Err(error);
        }
        self.run(dispatcher, asked.id);
        Ok(())
    }

    fn run(&self, mut dispatcher: QueueDispatcher, id: BackfillId) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let ended = dispatcher.run_until_done(&stop).await;
            if let Err(error) = ended.and(dispatcher.leave().await) {
                tracing::error!(error = format!("{error:#}"), "backfill {id} was left");
            }
        });
    }

    /// Starts nothing more, and waits for what runs, as a process that is told to stop does. What is left is
    /// gone on with by `backfill resume`.
    pub async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
