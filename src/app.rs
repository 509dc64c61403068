//! app: wires the modules together. In: settings. Out: an open database and what is built on it.
//! May name: everything. Never: SQL, words for people, a rule.
//! Invariant: the only file that knows every module.

pub mod access;
mod aside;
mod calendars;
pub mod certificate_watch;
mod definition_uses;
pub mod discovery;
pub mod executor;
pub mod executor_groups;
mod from_xxl;
mod guard;
mod ledger_history;
pub mod lineage;
mod migration;
pub mod outbox;
mod outlook;
pub mod preflight;
pub mod routines;
mod scheduler_tables;
mod schedules;
mod script_rights;
pub mod secrets;
pub mod sources;
pub mod task;
mod versions;

pub use crate::app::aside::Aside;
pub use crate::app::calendars::{
    BadCalendar, CalendarAct, CalendarChange, CalendarInUse, MakeCalendar, NoCalendar,
    changed as changed_calendar, refuse_absent_calendars,
};
pub use crate::app::definition_uses::{
    ForbiddenUses, ForeignPassword, UnknownSecret, UnknownUses, refuse_uses_by_settings,
};
pub use crate::app::from_xxl::{Brought, NotFromXxl, shown_url, xxl_tables};
pub use crate::app::guard::{DefinitionChange, Guard, LostUpdate};
pub use crate::app::migration::{RunningProcess, TablesInUse};
pub use crate::app::scheduler_tables::{NoSchedulerDatabase, scheduler_tables};
pub use crate::app::schedules::{FromGroups, look_at_schedules};
pub use crate::app::versions::{
    Applied, Authorship, BeingChanged, SharedSource, SharedThing, whoami,
};
pub use crate::db::migrate::{Schema, known as known_schema};
pub use crate::db::notice::layer as notice_layer;
#[cfg(target_os = "linux")]
pub use crate::handler::isolation_probe::PROBE_ANSWER;
pub use crate::handler::script_account::user_switching;
pub use crate::handler::script_init::run_init as run_script_init;
pub use crate::handler::script_supervisor::{
    probe as probe_isolation, run_supervisor as keep_script,
};
pub use crate::handler::supervisor_protocol::{
    INIT_WORD as SCRIPT_INIT, PROBE_WORD as ISOLATION_PROBE, WORD as KEEPER,
};

use crate::app::secrets::read_secret_settings;
use crate::config::Config;
use crate::db::{self, Dialect};
use crate::definition::{self, DefinitionDifference, Loaded};
use crate::domain::batch::{Snapshot, as_opened};
use crate::domain::id::{GroupCode, NodeId};
use crate::domain::job::borrowed::BorrowedDefinition;
use crate::domain::job::part;
use crate::domain::job::script_isolation::ScriptIsolationReport;
use crate::domain::job::{Definition, JobKind, Shared};
use crate::engine;
use crate::engine::ProgressEvent;
use crate::engine::clock::Clock;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::retention::{self, RemovalOrder, Sweeper};
use crate::engine::trigger::TriggerDatabases;
use crate::engine::trigger::core::TriggerCore;
use crate::handler::HANDLERS;
use crate::secret_store::SecretStores;
use crate::store::{self, Db};
use anyhow::{Context as _, Result};
use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use tokio::sync::mpsc;

/// An open metadata database and what is built on it.
pub struct App {
    pub config: Config,
    pub db: Db,
    pub clock: Clock,
    /// The configured secret stores.
    pub secret_stores: SecretStores,
}

/// How to treat a database without tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyDatabase {
    /// Create the tables in a new SQLite file; on a server only `migrate` creates them.
    Prepare,
    /// Refuse, and create no file.
    Refuse,
    /// Leave it as it is.
    Accept,
}

impl App {
    /// Connects to the metadata database and checks whether it can be trusted.
    pub async fn open(config: Config, empty: EmptyDatabase) -> Result<Self> {
        let (secret_stores, clock) = (config.secret_stores()?, Clock::system());
        read_secret_settings(&config, &secret_stores, clock.uptime()).await?;
        let settings = db::ConnectSettings {
            may_create: empty != EmptyDatabase::Refuse,
            ..config.database_settings()
        };
        let db = Db::connect(&settings).await.context("open the metadata database")?;
        let found = db.examine().await?;
        for warning in found.durability_warnings {
            tracing::warn!("{warning}");
        }
        if let Some(weakness) = config.database_weakness() {
            tracing::warn!("Procession's own database: {weakness}");
        }
        match (empty, found.schema) {
            (EmptyDatabase::Accept, _) => {}
            (EmptyDatabase::Prepare, Schema::Behind(0)) if db.dialect() == Dialect::Sqlite => {
                db.migrate().await?;
            }
            (_, schema) => db.require(schema)?,
        }
        Ok(Self { config, db, clock, secret_stores })
    }

    /// Closes the connections; on SQLite this writes the WAL back into the file, so that a later
    /// copy of the file is complete.
    pub async fn close(self) {
        self.db.close().await;
    }

    /// The same for HTTP requests, with connections of their own, so that requests take none from
    /// the engine.
    pub async fn for_requests(&self, max_connections: u32) -> Result<Self> {
        let settings = db::ConnectSettings { max_connections, ..self.config.database_settings() };
        let db = self.db.for_requests(&settings).await.context("connect for requests")?;
        let (config, clock) = (self.config.clone(), self.clock.clone());
        Ok(Self { config, db, clock, secret_stores: self.secret_stores.clone() })
    }

    /// Creates the dispatcher of this process.
    pub async fn dispatcher(
        &self,
        news: Option<mpsc::UnboundedSender<ProgressEvent>>,
    ) -> Result<QueueDispatcher> {
        // Settings with which no notification could be sent are refused before a batch is started.
        self.can_tell()?;
        self.compare_with_ledgers().await?;
        let secret_stores = self.secret_stores.clone();
        let engine = engine::EngineOptions { secret_stores, ..self.config.engine() };
        let handlers = self.config.handlers();
        let exporter = self.config.exporter()?;
        let (db, clock) = (self.db.clone(), self.clock.clone());
        let mut dispatcher = QueueDispatcher::start(db, clock, &engine, handlers, news).await?;
        dispatcher.trace_to(exporter);
        Ok(dispatcher)
    }

    /// Stores the script isolation of this node for display, and returns warnings for its operator.
    pub async fn report_script_isolation(&self, node: &NodeId) -> Result<Vec<String>> {
        let options = self.config.handlers();
        let probe = &options.isolation_probe;
        let means = probe.find_means(options.keeper.as_deref(), &options.script_files).await;
        let cgroups = options.script_cgroups.find_means().await;
        let limits = &options.script_limits;
        let (controllers, obstacle) = match &cgroups {
            Ok(found) => (found.controllers.clone(), None),
            Err(why) => (Vec::new(), Some(why.clone())),
        };
        let report = ScriptIsolationReport {
            cgroups: limits.cgroups.name().to_owned(),
            controllers: controllers.iter().map(|one| one.name().to_owned()).collect(),
            cgroup_obstacle: obstacle.clone(),
            limits: limits.describe_all(),
            ..options.script_users.report(&means, user_switching())
        };
        let mut tx = self.db.begin().await?;
        store::node::set_script_isolation(&mut tx, node, &serde_json::to_string(&report)?).await?;
        tx.commit().await?;
        let rights = options.script_users.warning(&means, user_switching());
        let limits = limits.warning(&controllers, obstacle.as_deref());
        Ok(rights.into_iter().chain(limits).collect())
    }

    /// The trigger core of the dispatcher's process.
    pub async fn trigger_core(&self, dispatcher: &QueueDispatcher) -> Result<TriggerCore> {
        let brief = db::ConnectSettings {
            keeping: db::SessionTimeouts::Brief,
            max_connections: 1,
            ..self.config.database_settings()
        };
        let planning =
            self.db.beside(&brief).await.context("open the door to the schedule lock")?;
        let firing = db::ConnectSettings {
            keeping: db::SessionTimeouts::Firing,
            ..self.config.database_settings()
        };
        let firing = self.db.beside(&firing).await.context("connect for firing schedules")?;
        let databases = TriggerDatabases { planning, firing };
        Ok(dispatcher.trigger_core(databases, self.config.triggers()))
    }

    /// The sweeper of the dispatcher's process; `None` when nothing is to be removed, or the node
    /// has only the worker role.
    pub fn sweeper(&self, dispatcher: &QueueDispatcher) -> Result<Option<Sweeper>> {
        let options = self.config.retention()?;
        let is_asked = options.is_on() && dispatcher.fires_schedules();
        Ok(is_asked.then(|| dispatcher.sweeper(options)))
    }

    /// The sweeper for an operator's command, in a process that does nothing else.
    pub fn sweeper_by_hand(
        &self,
        options: retention::RetentionOptions,
        wish: RemovalOrder,
    ) -> Sweeper {
        let id: String = uuid::Uuid::new_v4().simple().to_string().chars().take(8).collect();
        let me = NodeId(format!("retention-run-{}-{id}", std::process::id()));
        Sweeper::new(self.db.clone(), self.clock.clone(), me, options, wish)
    }

    /// The stored definition without schedules.
    pub async fn definition(&self) -> Result<Definition> {
        let mut tx = self.db.begin_read().await?;
        Ok(self.secret_stores.add_access(store::job::definition(&mut tx).await?))
    }

    /// Adds to a definition from a file what belongs to the installation: calendars, and which
    /// groups may use executors and the secrets that other files declare or that are stored.
    pub async fn with_installation(&self, defs: Definition) -> Result<Definition> {
        let mut tx = self.db.begin_read().await?;
        let store::shared::Installation { calendars, secrets, executor_groups } =
            store::shared::installation(&mut tx).await?;
        let stored_secrets = secrets;
        let defs = Definition { calendars, stored_secrets, executor_groups, ..defs };
        Ok(self.secret_stores.add_access(defs))
    }
}

/// Whether `apply` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    Write,
    /// Only computes the changes.
    DryRun,
}

/// The part of `stored` that `wanted` covers: its groups with their jobs, its sources.
fn its_part(stored: &Definition, wanted: &Definition) -> Definition {
    Definition {
        calendars: stored.calendars.clone(),
        stored_secrets: stored.stored_secrets.clone(),
        configured_secrets: stored.configured_secrets.clone(),
        executor_groups: stored.executor_groups.clone(),
        ..its_borrowed_part(stored, wanted).to_definition()
    }
}

/// The same without a copy of it.
fn its_borrowed_part<'a>(stored: &'a Definition, wanted: &Definition) -> BorrowedDefinition<'a> {
    let groups: HashSet<&GroupCode> = wanted.groups.iter().map(|g| &g.code).collect();
    let sources: HashSet<_> = wanted.sources.iter().map(|s| &s.name).collect();
    let all = BorrowedDefinition::from_definition(stored);
    let mut part = all.with_groups(|code| groups.contains(code));
    part.sources.retain(|s| sources.contains(&s.name));
    part.shared = Cow::Owned(named_in(&stored.shared, &wanted.shared));
    part.schedules = part::schedules_of(stored, wanted);
    part
}

/// Of what all groups share, that which has the same names in `wanted`.
fn named_in(stored: &Shared, wanted: &Shared) -> Shared {
    fn keep_stored<T: Clone>(stored: &[T], wanted: &[T], name: impl Fn(&T) -> &str) -> Vec<T> {
        let names: HashSet<&str> = wanted.iter().map(&name).collect();
        stored.iter().filter(|item| names.contains(name(item))).cloned().collect()
    }
    Shared {
        owners: keep_stored(&stored.owners, &wanted.owners, |o| &o.code),
        pools: keep_stored(&stored.pools, &wanted.pools, |p| &p.name),
        hosts: keep_stored(&stored.hosts, &wanted.hosts, |h| &h.name),
        secrets: keep_stored(&stored.secrets, &wanted.secrets, |s| &s.name),
        params: keep_stored(&stored.params, &wanted.params, |p| &p.name),
    }
}

/// How the present definition of a batch's group differs from the batch's snapshot.
pub fn differences(snapshot: &Snapshot, defs: &Definition) -> Vec<DefinitionDifference> {
    let own = snapshot.definition();
    // A list that no longer expands to the same jobs is a difference too, and shown unexpanded.
    let present = as_opened(snapshot, defs).unwrap_or_else(|_| defs.clone());
    let mut present = its_part(&present, &own);
    present.jobs.retain(|j| j.is_active);
    definition::diff_definitions(&own, &present)
}

/// Every job type of this binary.
pub fn job_kinds() -> Vec<JobKind> {
    HANDLERS.iter().map(|h| h.kind()).collect()
}

/// Reads a definition file, or the CSV pair in a directory, with everything it refers to.
pub fn load_definition(path: &Path) -> Result<Loaded> {
    let read = |file: &Path| std::fs::read_to_string(file);
    Ok(definition::load_definition(path, &read, &job_kinds())?)
}

/// Whether an error is for the user to fix: settings, definitions, orders.
pub fn is_users(error: &anyhow::Error) -> bool {
    error.chain().any(|e| {
        e.is::<definition::Faults>()
            || discovery::is_users(e)
            || e.is::<crate::domain::batch::BatchError>()
            || e.is::<crate::domain::id::BadName>()
            || e.is::<crate::engine::opening::refused::OpeningRefusal>()
            || e.is::<crate::domain::backfill::BackfillError>()
            || e.is::<crate::engine::dispatch::backfill::NotBackfilled>()
            || e.is::<crate::store::batch::BeingRemoved>()
            || e.is::<crate::store::batch::StillOpening>()
            || e.is::<crate::config::BadConfig>()
            || e.is::<access::NotGranted>()
            || e.is::<crate::domain::access::user::Unfit>()
            || e.is::<outbox::NoCarrier>()
            || e.is::<executor::BadExecutor>()
            || e.is::<executor_groups::BadGroup>()
            || e.is::<crate::domain::job::job_key::JobNameError>()
            || e.is::<SharedSource>()
            || e.is::<SharedThing>()
            || e.is::<ForbiddenUses>()
            || e.is::<UnknownUses>()
            || e.is::<ForeignPassword>()
            || e.is::<BeingChanged>()
            || e.is::<TablesInUse>()
            || e.is::<LostUpdate>()
            || e.is::<NoCalendar>()
            || e.is::<CalendarInUse>()
            || e.is::<BadCalendar>()
            || e.is::<crate::domain::calendar::CalendarError>()
            || e.is::<crate::domain::action::refusal::Refusals>()
            || e.is::<crate::engine::operate::operator_actions::Moved>()
            || e.is::<crate::engine::trigger::schedule_actions::NotDone>()
            || e.is::<crate::domain::schedule::trigger::WordFaults>()
            || e.is::<crate::domain::schedule::trigger::OrderError>()
            || e.is::<crate::domain::schedule::ScheduleError>()
            || e.is::<definition::ExportError>()
            || e.is::<crate::import::ImportError>()
            || e.is::<NotFromXxl>()
            || e.is::<NoSchedulerDatabase>()
            || e.is::<store::scheduler_tables::NoSchedulerTables>()
            || e.is::<store::xxl_admin::NoTables>()
            || e.is::<crate::domain::job::part::NoSuchSource>()
            || matches!(e.downcast_ref::<db::Error>(), Some(db::Error::Settings(_)))
    })
}
