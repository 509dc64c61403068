//! `import`: converts definitions of another system, with a report.

use crate::app;
use crate::cli::import_database::{self, FromDatabase, ImportSource};
use crate::cli::import_xxl;
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::schedule::read_zone;
use crate::engine::clock::Clock;
use crate::import::{
    self, BilingualSentence, CrontabUsers, Given, ImportOrigin, ImportRequest, Imported,
    ImportedFiring, ItemOutcome, Level, Note, ReadItem, System, TableSystem,
};
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The definition file in the target directory.
const DEFINITION: &str = "definition.yaml";
/// The report file beside it.
const REPORT: &str = "import-report.md";
/// Maximum size of an input file in bytes; exports of schedulers are a few megabytes.
const LARGEST: u64 = 256 << 20;

/// Systems whose jobs can be imported.
#[derive(Subcommand)]
pub(super) enum ImportVerb {
    /// crontab files, of users or of the machine: a group and a schedule for each line
    Crontab(FromCrontabs),
    /// Workflows that Apache DolphinScheduler exported (JSON of 1.3, 2.x or 3.x), or its own tables with --url
    Dolphinscheduler(FromFilesOrDatabase),
    /// Serialised DAGs of Airflow 2 and 3: JSON of the table serialized_dag, or its own tables with --url
    Airflow(FromFilesOrDatabase),
    /// Chains of pg_timetable: its YAML, or its own tables with --url
    PgTimetable(FromFilesOrDatabase),
    /// Azkaban projects: a zip, a folder, or .job, .properties and .flow files
    Azkaban(FromFiles),
    /// Folders of Control-M, as its Automation API writes them (JSON), or older releases (XML, DEFTABLE)
    ControlM(FromFiles),
    /// Jobs of SQL Server Agent, from exported tables of msdb (CSV or JSON)
    SqlServerAgent(FromFiles),
    /// The jobs, executors and users of an XXL-JOB admin (2.2 to 3.5), read from its database
    XxlJob(import_xxl::XxlImportArgs),
    /// Events of MySQL or MariaDB (CREATE EVENT), read from the server
    MysqlEvents(FromDatabase),
    /// Jobs of the PostgreSQL extension pg_cron, read from its database
    PgCron(FromDatabase),
    /// Jobs of pgAgent, read from its database
    Pgagent(FromDatabase),
    /// Jobs and triggers of Quartz (QRTZ_ tables of a JDBC JobStore), read from MySQL, MariaDB or PostgreSQL
    Quartz(FromDatabase),
}

/// Arguments of an import from files.
#[derive(Args)]
pub(super) struct FromFiles {
    /// Files, or folders whose files are read
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) to: ImportOutputArgs,
}

/// Arguments of an import of crontabs.
#[derive(Args)]
pub(super) struct FromCrontabs {
    /// Lines name the user they run as, as in /etc/crontab and /etc/cron.d
    #[arg(long, conflicts_with = "user")]
    system: bool,
    /// Crontabs of users, whose lines name no user
    #[arg(long)]
    user: bool,
    #[command(flatten)]
    from: FromFiles,
}

/// Arguments of an import from files, or from the database in which a system keeps the same.
#[derive(Args)]
pub(super) struct FromFilesOrDatabase {
    /// Files, or folders whose files are read
    #[arg(required_unless_present = "url", conflicts_with = "url")]
    files: Vec<PathBuf>,
    /// In place of files, its database: postgres://user@host:5432/database, or mysql://…; SELECT is enough
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// File with the password [default: PROCESSION_IMPORT_PASSWORD, else none]
    #[arg(long, value_name = "FILE", requires = "url")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    to: ImportOutputArgs,
}

impl FromCrontabs {
    fn users(&self) -> Option<CrontabUsers> {
        match (self.system, self.user) {
            (true, _) => Some(CrontabUsers::Named),
            (false, true) => Some(CrontabUsers::Own),
            (false, false) => None,
        }
    }
}

/// What every import is told.
#[derive(Args)]
pub(super) struct ImportOutputArgs {
    /// Folder for the definition and the report; new, or empty
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    pub(super) out: Option<PathBuf>,
    /// Code of the group; where several come out, what their codes begin with
    #[arg(long, value_name = "CODE")]
    pub(super) group: Option<String>,
    /// Time zone of schedules, where the other system's files do not say it [default: UTC]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub(super) zone: Option<chrono_tz::Tz>,
    /// Create all schedules paused; the report has the command that resumes each
    #[arg(long)]
    pub(super) paused: bool,
    /// Print the report and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

fn parse_zone(name: &str) -> Result<chrono_tz::Tz, String> {
    read_zone(name).map_err(|e| e.to_string())
}

pub(super) async fn import(global: &Global, verb: &ImportVerb) -> Result<VerbResult> {
    let from_database = |system, args| import_database::import(global, system, args);
    match verb {
        ImportVerb::Crontab(args) => {
            let users = args.users();
            import_files(global, System::Crontab, &args.from.files, &args.from.to, users)
        }
        ImportVerb::Dolphinscheduler(args) => {
            import_either(global, EitherSystem::DOLPHIN_SCHEDULER, args).await
        }
        ImportVerb::Airflow(args) => import_either(global, EitherSystem::AIRFLOW, args).await,
        ImportVerb::PgTimetable(args) => {
            import_either(global, EitherSystem::PG_TIMETABLE, args).await
        }
        ImportVerb::Azkaban(args) => {
            import_files(global, System::Azkaban, &args.files, &args.to, None)
        }
        ImportVerb::ControlM(args) => {
            import_files(global, System::ControlM, &args.files, &args.to, None)
        }
        ImportVerb::SqlServerAgent(args) => {
            import_files(global, System::SqlServerAgent, &args.files, &args.to, None)
        }
        ImportVerb::XxlJob(args) => import_xxl::import(global, args).await,
        ImportVerb::MysqlEvents(args) => from_database(TableSystem::MysqlEvents, args).await,
        ImportVerb::PgCron(args) => from_database(TableSystem::PgCron, args).await,
        ImportVerb::Pgagent(args) => from_database(TableSystem::PgAgent, args).await,
        ImportVerb::Quartz(args) => from_database(TableSystem::Quartz, args).await,
    }
}

/// A system whose files are read, or the tables in which it stores the same.
struct EitherSystem {
    files: System,
    tables: TableSystem,
}

impl EitherSystem {
    const DOLPHIN_SCHEDULER: Self =
        Self { files: System::DolphinScheduler, tables: TableSystem::DolphinScheduler };
    const AIRFLOW: Self = Self { files: System::Airflow, tables: TableSystem::Airflow };
    const PG_TIMETABLE: Self =
        Self { files: System::PgTimetable, tables: TableSystem::PgTimetable };
}

/// Imports from files, or from the database if a URL is given.
async fn import_either(
    global: &Global,
    systems: EitherSystem,
    args: &FromFilesOrDatabase,
) -> Result<VerbResult> {
    let FromFilesOrDatabase { files, url, password_file, to } = args;
    match url {
        Some(url) => {
            let from = ImportSource { url, password_file: password_file.as_deref(), to };
            import_database::import_from(global, systems.tables, from).await
        }
        None => import_files(global, systems.files, files, to, None),
    }
}

fn import_files(
    global: &Global,
    system: System,
    files: &[PathBuf],
    to: &ImportOutputArgs,
    crontab_users: Option<CrontabUsers>,
) -> Result<VerbResult> {
    to.check()?;
    let mut found = FoundFiles::default();
    for file in files {
        collect_files(file, &mut found)?;
    }
    let asked = ImportRequest { crontab_users, ..to.asked()? };
    let mut made = import::import(system, &found.given, &asked, &app::job_kinds())?;
    made.notes.extend(hidden_note(&found.hidden));
    made.notes.sort();
    let files: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    deliver(global, &made, &format!("{} ({})", system.name(), files.join(", ")), to)
}

impl ImportOutputArgs {
    /// The request for the import modules.
    pub(super) fn asked(&self) -> Result<ImportRequest> {
        if let Some(code) = &self.group {
            crate::domain::id::GroupCode::parse(code)?;
        }
        Ok(ImportRequest {
            group: self.group.clone(),
            zone: self.zone,
            crontab_users: None,
            now: Clock::system().now(),
            firing: if self.paused { ImportedFiring::Paused } else { ImportedFiring::AsThere },
        })
    }

    /// Checks that the directory can be written, before anything is read.
    pub(super) fn check(&self) -> Result<()> {
        let Some(folder) = self.out.as_ref().filter(|_| !self.dry_run) else { return Ok(()) };
        let mut entries = match std::fs::read_dir(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => other.with_context(|| format!("look into {}", folder.display()))?,
        };
        if entries.next().is_none() {
            return Ok(());
        }
        let folder = folder.display();
        Err(BadInput(format!("--out {folder}: this folder is not empty; name a new one")).into())
    }
}

/// Prints the report and, unless it is a dry run, writes the files.
pub(super) fn deliver(
    global: &Global,
    made: &Imported,
    from: &str,
    to: &ImportOutputArgs,
) -> Result<VerbResult> {
    deliver_more(global, made, from, to, &[], json!({}))
}

/// The same, with additional output of an importer: lines, and keys of the JSON document.
pub(super) fn deliver_more(
    global: &Global,
    made: &Imported,
    from: &str,
    to: &ImportOutputArgs,
    lines: &[String],
    more: serde_json::Value,
) -> Result<VerbResult> {
    let lang = global.language();
    let folder = to.out.as_deref().filter(|_| !to.dry_run);
    if let Some(folder) = folder {
        write(folder, made, &import::markdown(made, from, lang))?;
    }
    if global.json {
        let defs = &made.definition;
        let mut document = json!({
            "from": from, "out": folder, "groups": defs.groups.len(), "jobs": defs.jobs.len(),
            "dependencies": defs.dependencies.len(), "on_other_groups": defs.externals.len(),
            "schedules": defs.schedules.len(), "left_out": made.count(Level::LeftOut),
            "look_at": made.count(Level::Look), "different": made.count(Level::Differs),
            "counts": made.item_counts(), "not_as_it_was": not_as_it_was(made), "notes": made.notes,
            "batch_numbers": made.batch_numbers(),
            "resume_commands": made.paused().map(import::resume_command).collect::<Vec<_>>(),
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            document[key] = value.clone();
        }
        out::print_json(&document)?;
        return Ok(VerbResult::Well);
    }
    for level in Level::ALL {
        let notes = made.notes.iter().filter(|n| n.level == level);
        out::lines(notes.map(|n| format!("{}: {}", level.words(lang), import::line(n, lang))));
    }
    out::lines(lines.iter().cloned());
    out::print_line(&import::summary(made, lang));
    out::lines(made.item_counts().iter().map(|count| count.line(lang)));
    out::lines(made.paused().map(import::resume_command));
    match folder {
        Some(folder) => {
            let file = folder.join(DEFINITION);
            out::print_line(&format!("{} {}", lang.select("written:", "已写入："), file.display()));
        }
        None => {
            out::print_line(lang.select("dry run: nothing was written", "试运行：未写入任何文件"))
        }
    }
    Ok(VerbResult::Well)
}

/// The items that a note or the counts do not describe as converted exactly.
fn not_as_it_was(made: &Imported) -> Vec<&ReadItem> {
    made.items.iter().filter(|item| item.outcome != ItemOutcome::Carried).collect()
}

/// Completely or not at all: the files are written into a temporary directory, which then replaces
/// the empty one.
fn write(folder: &Path, made: &Imported, report: &str) -> Result<()> {
    let name = folder.file_name().map_or_else(|| "import".into(), |n| n.to_string_lossy());
    let absolute = std::path::absolute(folder).context("find the folder")?;
    let parent = absolute.parent().unwrap_or(&absolute);
    let fresh = parent.join(format!(".{name}.{}", std::process::id()));
    std::fs::create_dir_all(&fresh)
        .map_err(anyhow::Error::from)
        .and_then(|()| write_files(&fresh, made, report))
        .and_then(|()| Ok(std::fs::rename(&fresh, &absolute)?))
        .inspect_err(|_| drop(std::fs::remove_dir_all(&fresh)))
        .with_context(|| format!("write {}", folder.display()))
}

fn write_files(folder: &Path, made: &Imported, report: &str) -> Result<()> {
    for file in &made.files {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, &file.bytes)?;
    }
    std::fs::write(folder.join(REPORT), report)?;
    std::fs::write(folder.join(DEFINITION), &made.text)?;
    Ok(())
}

/// The files in the given files and directories.
#[derive(Default)]
struct FoundFiles {
    given: Vec<Given>,
    /// Paths in directories that begin with a dot; they are not read.
    hidden: Vec<String>,
}

/// One note about hidden files; those that macOS creates are not mentioned.
fn hidden_note(hidden: &[String]) -> Option<Note> {
    let first = hidden.first()?;
    let list = hidden.iter().take(10).map(String::as_str).collect::<Vec<_>>().join(", ");
    Some(Note {
        level: Level::LeftOut,
        origin: ImportOrigin::new(first, 0),
        about: String::new(),
        message: BilingualSentence::new(
            format!("{} hidden files and folders are not read: {list}", hidden.len()),
            format!("未读取 {} 个隐藏文件和文件夹：{list}", hidden.len()),
        ),
        fix: BilingualSentence::new("name those that are needed one by one", "需要的请逐个指定"),
    })
}

/// Collects a file, or all files of a directory by name; hidden files are skipped.
fn collect_files(path: &Path, found: &mut FoundFiles) -> Result<()> {
    let unreadable = |e: std::io::Error| {
        anyhow::Error::from(BadInput(format!("{}: cannot be read: {e}", path.display())))
    };
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if about.is_dir() {
        let entries = std::fs::read_dir(path).map_err(unreadable)?;
        let mut inside: Vec<PathBuf> =
            entries.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(unreadable)?;
        inside.sort();
        let name = |p: &PathBuf| p.file_name().map(|n| n.to_string_lossy().into_owned());
        let (hidden, mut inside): (Vec<PathBuf>, Vec<PathBuf>) =
            inside.into_iter().partition(|p| name(p).is_some_and(|n| n.starts_with('.')));
        let is_of_mac =
            |p: &PathBuf| name(p).is_some_and(|n| n == ".DS_Store" || n.starts_with("._"));
        let hidden = hidden.iter().filter(|p| !is_of_mac(p));
        found.hidden.extend(hidden.map(|p| p.display().to_string()));
        // A link to a directory may form a cycle.
        inside.retain(|p| !(p.is_symlink() && p.is_dir()));
        return inside.iter().try_for_each(|one| collect_files(one, found));
    }
    if about.len() > LARGEST {
        let text = format!("{}: larger than {} MiB", path.display(), LARGEST >> 20);
        return Err(BadInput(text).into());
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    found.given.push(Given { path: path.display().to_string(), bytes });
    Ok(())
}
