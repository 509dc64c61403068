//! import: converts definitions of other systems. In: their text or rows. Out: a definition, schedules, a report.
//! May name: domain, definition. Never: a database, a file, a clock, the network.
//! Invariant: what leaves this module passes `check`, and what is not carried over as it was is a note of the report.
//! Story order: note (what is said), keys and columns (what source formats say), name (titles become codes), draft
//! (what is gathered), schedule (when it fires), batch_numbers, tally (what was read, and what became of it),
//! finish (sound, and as text), report (for people); what systems share: body, sql_statement, routine_parameters,
//! scheduler_source, interval, time_fields, calendar_names, counted_days, step_flow, step_jobs, live_zone, exported_rows, xml; then one file per system.

mod airflow;
mod azkaban;
mod batch_numbers;
mod body;
mod calendar_names;
mod columns;
mod control_m;
mod counted_days;
mod crontab;
mod dolphin;
mod draft;
mod exported_rows;
mod finish;
mod interval;
mod keys;
mod live_zone;
mod mysql_events;
mod name;
mod note;

mod pg_cron;
mod pg_timetable;
mod pgagent;
mod quartz;
mod report;
mod routine_parameters;
mod schedule;
mod scheduler_source;
mod sql_server;
mod sql_statement;
mod step_flow;
mod step_jobs;
mod tally;
#[cfg(test)]
mod tests;
mod time_fields;
mod tree;
mod unzip;
mod xml;
mod xxl_job;

pub use batch_numbers::BatchNumberCount;
pub use draft::Draft;
pub use finish::{ImportError, Imported, SideFile};
pub use name::NameMaker;
pub use note::{BilingualSentence, ImportOrigin, Level, Note};
pub use report::{line, markdown, resume_command, summary};
pub use schedule::SourceScheduleState;
pub use tally::{CountedKind, ItemCount, ItemOutcome, ReadItem};
pub use xxl_job::{Beyond, ChildJoin, ImportedUser, NewExecutors, XxlAsked, XxlImport, xxl_job};

use crate::domain::job::JobKind;
use crate::domain::source::scheduler_tables::{SchedulerTables, WantedTables};
use crate::domain::time::Millis;
use chrono_tz::Tz;

/// A scheduling system whose files can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// crontab(5), of a user or of the system.
    Crontab,
    /// Apache DolphinScheduler's export.
    DolphinScheduler,
    /// pg_timetable's chains.
    PgTimetable,
    /// Azkaban's flows.
    Azkaban,
    /// Folders of Control-M's Automation API.
    ControlM,
    /// Serialized DAGs of Airflow.
    Airflow,
    /// Exported tables of SQL Server Agent.
    SqlServerAgent,
}

impl System {
    /// Display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crontab => "crontab",
            Self::DolphinScheduler => "DolphinScheduler",
            Self::PgTimetable => "pg_timetable",
            Self::Azkaban => "Azkaban",
            Self::ControlM => "Control-M",
            Self::Airflow => "Airflow",
            Self::SqlServerAgent => "SQL Server Agent",
        }
    }
}

/// A scheduling system whose database tables can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableSystem {
    /// Events of MySQL and MariaDB.
    MysqlEvents,
    /// Jobs of the extension pg_cron.
    PgCron,
    /// Jobs of pgAgent.
    PgAgent,
    /// Chains of pg_timetable.
    PgTimetable,
    /// Jobs of a JDBC JobStore of Quartz.
    Quartz,
    /// Serialized DAGs in Airflow's database.
    Airflow,
    /// Workflows in DolphinScheduler's database.
    DolphinScheduler,
}

impl TableSystem {
    /// Every system.
    pub const ALL: [Self; 7] = [
        Self::MysqlEvents,
        Self::PgCron,
        Self::PgAgent,
        Self::PgTimetable,
        Self::Quartz,
        Self::Airflow,
        Self::DolphinScheduler,
    ];

    /// Display name.
    pub fn name(self) -> &'static str {
        self.wanted().system
    }

    /// The tables and columns read from its database.
    pub fn wanted(self) -> &'static WantedTables {
        match self {
            Self::MysqlEvents => &mysql_events::WANTED,
            Self::PgCron => &pg_cron::WANTED,
            Self::PgAgent => &pgagent::WANTED,
            Self::PgTimetable => &pg_timetable::tables::WANTED,
            Self::Quartz => &quartz::WANTED,
            Self::Airflow => &airflow::WANTED,
            Self::DolphinScheduler => &dolphin::tables::WANTED,
        }
    }
}

/// A file to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Path as the user gave it, or within the given directory.
    pub path: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Whether the lines of a crontab name the user they run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrontabUsers {
    /// As in `/etc/crontab` and `/etc/cron.d`.
    Named,
    /// A user's own crontab names no user.
    Own,
}

/// The user's options for an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportRequest {
    /// Code of the resulting group; a prefix of the codes when there are several.
    pub group: Option<String>,
    /// Time zone, where the source does not give one.
    pub zone: Option<Tz>,
    /// Whether crontabs name users; none: decided by the path or the lines.
    pub crontab_users: Option<CrontabUsers>,
    /// The current time: schedules are checked against it.
    pub now: Millis,
    /// Whether schedules are created paused, to be resumed one by one.
    pub firing: ImportedFiring,
}

/// Whether imported schedules fire once they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ImportedFiring {
    /// As in the other system.
    #[default]
    AsThere,
    /// Each is created paused.
    Paused,
}

/// Converts files of a system to a definition.
///
/// # Errors
/// What cannot be parsed at all, each fault with its file and line.
pub fn import(
    system: System,
    given: &[Given],
    asked: &ImportRequest,
    kinds: &[JobKind],
) -> Result<Imported, ImportError> {
    let mut draft = Draft::new(asked.clone());
    match system {
        System::Crontab => crontab::read_crontabs(given, &mut draft),
        System::PgTimetable => pg_timetable::read_chains(given, &mut draft),
        System::Azkaban => azkaban::read_projects(given, &mut draft),
        System::ControlM => control_m::read_folders(given, &mut draft),
        System::Airflow => airflow::read_serialized(given, &mut draft),
        System::SqlServerAgent => sql_server::read_jobs(given, &mut draft),
        System::DolphinScheduler => dolphin::read_exports(given, &mut draft),
    }
    draft.finish(kinds)
}

/// Converts tables of a system to a definition.
///
/// # Errors
/// What cannot be parsed at all, each fault with its table and row.
pub fn import_tables(
    system: TableSystem,
    tables: &SchedulerTables,
    asked: &ImportRequest,
    kinds: &[JobKind],
) -> Result<Imported, ImportError> {
    let mut draft = Draft::new(asked.clone());
    match system {
        TableSystem::MysqlEvents => mysql_events::read_events(tables, &mut draft),
        TableSystem::PgCron => pg_cron::read_jobs(tables, &mut draft),
        TableSystem::PgAgent => pgagent::read(tables, &mut draft),
        TableSystem::PgTimetable => pg_timetable::tables::read_chains(tables, &mut draft),
        TableSystem::Quartz => quartz::read_store(tables, &mut draft),
        TableSystem::Airflow => airflow::read_tables(tables, &mut draft),
        TableSystem::DolphinScheduler => dolphin::tables::read_tables(tables, &mut draft),
    }
    draft.finish(kinds)
}
