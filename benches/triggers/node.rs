//! A process as `serve` makes one, in this process: dispatcher, heartbeat, trigger core.

use crate::place::Place;
use anyhow::Result;
use procession::app::{App, EmptyDatabase};
use procession::db::{ConnectSettings, Db, SessionTimeouts};
use procession::engine::clock::Clock;
use procession::engine::trigger::TriggerDatabases;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct Node {
    pub(crate) clock: Clock,
    pub(crate) db: Db,
    door: Db,
    stop: CancellationToken,
    task: JoinHandle<Result<()>>,
}

impl Node {
    pub(crate) async fn start(place: &Place) -> Result<Self> {
        let app = App::open(place.config.clone(), EmptyDatabase::Refuse).await?;
        let mut dispatcher = app.dispatcher(None).await?;
        // As `App::trigger_core` does; by hand, so that its statements can be counted.
        let settings = ConnectSettings {
            keeping: SessionTimeouts::Brief,
            max_connections: 1,
            ..place.config.database_settings()
        };
        let door = app.db.beside(&settings).await?;
        let firing = ConnectSettings {
            keeping: SessionTimeouts::Firing,
            ..place.config.database_settings()
        };
        let firing = app.db.beside(&firing).await?;
        let databases = TriggerDatabases { planning: door.clone(), firing };
        let core = dispatcher.trigger_core(databases, place.config.triggers());
        let stop = CancellationToken::new();
        let (clock, db) = (app.clock.clone(), app.db.clone());
        let told = stop.clone();
        let task = tokio::spawn(async move {
            tokio::join!(dispatcher.serve(&told, None), core.run(told.clone()));
            dispatcher.leave().await?;
            app.close().await;
            Ok(())
        });
        Ok(Self { clock, db, door, stop, task })
    }

    /// Statements it has sent, `BEGIN` and `COMMIT` among them.
    pub(crate) fn statements(&self, place: &Place) -> u64 {
        let own = self.db.counts().statements;
        match place.database {
            // The same door.
            crate::place::Database::Sqlite => own,
            crate::place::Database::Mysql | crate::place::Database::Postgres => {
                own + self.door.counts().statements
            }
        }
    }

    /// Sleeps until its clock shows `at`.
    pub(crate) async fn until(&self, at: procession::domain::time::Millis) {
        let left = u64::try_from(at.since(self.clock.now())).unwrap_or(0);
        tokio::time::sleep(std::time::Duration::from_millis(left)).await;
    }

    pub(crate) async fn end(self) -> Result<()> {
        self.stop.cancel();
        self.task.await?
    }
}
