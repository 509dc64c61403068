//! Backfills that a serving process runs in the background, each with a dispatcher of its own, as
//! `procession backfill` would.

use crate::app::App;
use crate::domain::id::BackfillId;
use crate::domain::job::Definition;
use crate::engine::dispatch::backfill::{Request, Resumption};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use anyhow::{Context as _, Result};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The background backfills, on the runtime and the connections of the engine: a request only
/// starts one.
pub struct Aside {
    app: Arc<App>,
    runtime: Handle,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Aside {
    /// On this database and the calling runtime.
    pub fn new(app: &App) -> Self {
        let app = App {
            config: app.config.clone(),
            db: app.db.clone(),
            clock: app.clock.clone(),
            secret_stores: app.secret_stores.clone(),
        };
        Self {
            app: Arc::new(app),
            runtime: Handle::current(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Starts a backfill, which runs until it has ended or this is ended.
    pub async fn backfill(&self, defs: Definition, request: Request) -> Result<BackfillId> {
        let app = self.app.clone();
        let begun = self.runtime.spawn(async move {
            let mut dispatcher = app.dispatcher(None).await?;
            match dispatcher.start_backfill(&defs, &request, None).await {
                Ok(id) => Ok((dispatcher, id)),
                Err(error) => {
                    dispatcher.leave().await?;
                    Err(error)
                }
            }
        });
        let (dispatcher, id) = begun.await.context("begin a backfill")??;
        self.run_backfill(dispatcher, id);
        Ok(id)
    }

    /// Resumes a backfill that was stopped, that failed, or whose process died.
    pub async fn resume(&self, defs: Definition, asked: Resumption) -> Result<()> {
        let (app, id) = (self.app.clone(), asked.id);
        let begun = self.runtime.spawn(async move {
            let mut dispatcher = app.dispatcher(None).await?;
            match dispatcher.resume_backfill(&defs, &asked, None).await {
                Ok(_) => Ok::<_, anyhow::Error>(dispatcher),
                Err(error) => {
                    dispatcher.leave().await?;
                    Err(error)
                }
            }
        });
        self.run_backfill(begun.await.context("go on with a backfill")??, id);
        Ok(())
    }

    fn run_backfill(&self, mut dispatcher: QueueDispatcher, id: BackfillId) {
        let stop = self.stop.clone();
        let run = async move {
            let ended = dispatcher.run_until_done(&stop).await;
            if let Err(error) = ended.and(dispatcher.leave().await) {
                tracing::error!(error = format!("{error:#}"), "backfill {id} was left");
            }
        };
        self.tasks.spawn_on(run, &self.runtime);
    }

    /// Starts nothing more, and shuts down what runs. Unfinished backfills are continued by
    /// `backfill resume`.
    pub async fn end_and_wait(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
