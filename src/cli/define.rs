//! `check`, `apply`, `diff` and `schema`.

use crate::app::lineage::{DefinitionLineage, check_lineage};
use crate::app::preflight::{
    PreflightFinding, PreflightReport, PreflightSeverity, check_calendars, check_jobs,
};
use crate::app::sources::place;
use crate::app::{self, App, Apply, Authorship, EmptyDatabase, NoCalendar, UnknownSecret};
use crate::cli::lineage::Strictness;
use crate::cli::{Global, VerbResult, breach, calendar, four_eyes, lineage, out, preflight};
use crate::config::Config;
use crate::definition::{self, DefinitionDifference, DefinitionFault, Faults, Loaded};
use crate::domain::job::Definition;
use crate::domain::job::preflight::PreflightProblem;
use crate::domain::source::DataSource;
use crate::domain::text::lang::Lang;
use crate::engine::clock::Clock;
use crate::engine::operate::operator_actions::operator_here;
use crate::view::change::{DefinitionChangeDetail, FaultAt};
use crate::view::preflight::PreflightDocument;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Arguments of `check`.
#[derive(Args)]
pub(super) struct DefinitionCheckArgs {
    /// Definition file (YAML, JSON) or folder with job_def.csv and job_dependency.csv
    file: PathBuf,
    /// Ask the data sources too: routines, parameters, rights, whether what runs can be stopped, statements; and the
    /// metadata database, where there is one, for calendars. Nothing is run. Exit code 3 when all that is wrong is
    /// that a source cannot be reached
    #[arg(long)]
    connect: bool,
    /// Read what the jobs' procedures and statements do to tables, and tell which jobs without an order between them
    /// touch the same rows. Needs the data sources; nothing is run. Exit code 1 when there is such a conflict
    #[arg(long)]
    lineage: bool,
    /// With --lineage: exit code 1 also for what is only possible, because SQL is made at run time
    #[arg(long, requires = "lineage")]
    strict: bool,
}

/// Arguments of `apply`.
#[derive(Args)]
pub(super) struct ApplyArgs {
    /// Definition file (YAML, JSON) or folder with job_def.csv and job_dependency.csv
    file: PathBuf,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    by: AuthorArgs,
}

/// Arguments of `diff`.
#[derive(Args)]
pub(super) struct DiffArgs {
    /// Definition file (YAML, JSON) or folder with job_def.csv and job_dependency.csv
    file: PathBuf,
}

/// Who changes a definition, and why.
#[derive(Args)]
pub(super) struct AuthorArgs {
    /// Who makes the change, for `history` [default: the user]
    #[arg(long, value_name = "NAME", value_parser = author)]
    author: Option<String>,
    /// What the change is for, for `history`
    #[arg(long, value_name = "TEXT", value_parser = remark)]
    remark: Option<String>,
}

/// Maximum length of a remark or reason, in characters; MySQL's TEXT holds 65,535 bytes.
const REMARK_MAX: usize = 10_000;

fn author(word: &str) -> Result<String, String> {
    if word.trim().is_empty() || word.chars().count() > 255 || word.contains(char::is_control) {
        return Err("write 1 to 255 characters on one line".to_owned());
    }
    Ok(word.to_owned())
}

/// Validates a remark or reason.
pub(super) fn remark(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.contains('\0') || text.chars().count() > REMARK_MAX {
        return Err(format!("write 1 to {REMARK_MAX} characters"));
    }
    Ok(text.to_owned())
}

impl AuthorArgs {
    /// The author and the remark, as the versions store them.
    pub(super) fn authorship(&self) -> Authorship {
        let by = operator_here(&self.author.clone().unwrap_or_else(app::whoami));
        Authorship { by, remark: self.remark.clone() }
    }
}

pub(super) async fn check(global: &Global, args: &DefinitionCheckArgs) -> Result<VerbResult> {
    // The settings are checked as well: a fault there would stop the run too.
    let config = global.config()?;
    let loaded = match app::load_definition(&args.file) {
        Ok(loaded) => loaded,
        Err(error) => {
            if let Some(faults) = error.downcast_ref::<Faults>().filter(|_| global.json) {
                print_faults(args, faults)?;
            }
            return Err(error);
        }
    };
    let looked = app::look_at_schedules(&loaded, Clock::system().now());
    if let Some(faults) = looked.as_ref().err().and_then(|e| e.downcast_ref::<Faults>())
        && global.json
    {
        print_faults(args, faults)?;
    }
    let loaded = Loaded { warnings: [loaded.warnings.clone(), looked?].concat(), ..loaded };
    print_warnings(&loaded);
    let defs = &loaded.definition;
    app::refuse_uses_by_settings(&config, defs)?;
    let lineage = match args.lineage {
        true => Some(check_lineage(&config, defs).await?),
        false => None,
    };
    let report = if args.connect { Some(look_from_here(config, defs).await?) } else { None };
    if global.json {
        let found = report.as_ref().map(PreflightDocument::from_report);
        out::print_json(&json!({
            "file": args.file, "ok": found.as_ref().is_none_or(|found| found.ok), "groups": defs.groups.len(), "jobs": defs.jobs.len(),
            "dependencies": defs.dependencies.len(), "sources": defs.sources.len(),
            "schedules": defs.schedules.len(),
            "warnings": loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "preflight": found,
            "lineage": lineage,
        }))?;
        return end_check(global, args, report.as_ref(), lineage.as_ref());
    }
    let goes_on = report.is_some() || lineage.is_some();
    print_counts(args, defs, goes_on);
    if let Some(report) = &report {
        preflight::print(report, global.language());
    }
    if let Some(found) = &lineage {
        lineage::print(found, global.language());
    }
    let ended = end_check(global, args, report.as_ref(), lineage.as_ref())?;
    if goes_on && ended == VerbResult::Well {
        out::print_line(&out::message(&format!("{}: no faults", args.file.display())));
    }
    Ok(ended)
}

/// What a definition holds. While something is still to be checked this is no verdict: that comes last.
fn print_counts(args: &DefinitionCheckArgs, defs: &Definition, goes_on: bool) {
    let verdict = if goes_on { "" } else { "no faults; " };
    let counts = format!(
        "{}: {verdict}{}, {}, {}, {}{}",
        args.file.display(),
        out::count(defs.jobs.len(), "job"),
        out::count(defs.dependencies.len(), "dependency"),
        out::count(defs.groups.len(), "group"),
        out::count(defs.sources.len(), "source"),
        match defs.schedules.len() {
            0 => String::new(),
            n => format!(", {}", out::count(n, "schedule")),
        }
    );
    out::print_line(&out::message(&counts));
}

/// The result of a check: faults that keep jobs from running take precedence over conflicts between
/// jobs.
fn end_check(
    global: &Global,
    args: &DefinitionCheckArgs,
    report: Option<&PreflightReport>,
    found: Option<&DefinitionLineage>,
) -> Result<VerbResult> {
    let ended = report.map_or(Ok(VerbResult::Well), |report| {
        preflight::check_result(report, global.language())
    })?;
    let strictness = if args.strict { Strictness::Possible } else { Strictness::Certain };
    found.map_or(Ok(ended), |found| lineage::check_result(found, strictness, global.language()))
}

/// Checks the sources of a definition, and calendars in the metadata database where there is one.
async fn look_from_here(config: Config, defs: &Definition) -> Result<PreflightReport> {
    let mut report = check_jobs(&config, &defs.sources, &defs.jobs, &defs.dependencies).await;
    find_absent_files(&mut report, &defs.sources);
    if let Some(app) = App::open_if_there(config).await? {
        let stored = app.calendars().await;
        let unknown = app.look_at_uses(defs, None).await;
        app.close().await;
        report.findings.extend(check_calendars(&stored?, defs));
        match unknown {
            Ok(unknown) => unknown.iter().for_each(warn_of_secret),
            // Reported as a finding already.
            Err(error) if error.is::<NoCalendar>() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(report)
}

/// Missing SQLite files. A job would create an empty one, so `run` does not object; a user who asks
/// whether the sources can be reached has most likely written a wrong path.
fn find_absent_files(report: &mut PreflightReport, sources: &[DataSource]) {
    let told: Vec<_> = report.findings.iter().filter_map(|found| found.source.clone()).collect();
    let reached = report.sources.iter().filter(|of| of.is_reached).map(|of| of.source.clone());
    let known: Vec<_> = reached.chain(told).collect();
    let asked: Vec<_> = report.sources.iter().map(|of| of.source.clone()).collect();
    for source in sources.iter().filter(|s| asked.contains(&s.name) && !known.contains(&s.name)) {
        let at = place(source).at.unwrap_or_else(|why| why);
        let why = format!(
            "there is no file {at}; a job would make an empty one; create it (sqlite3 FILE), or correct the url"
        );
        report.findings.push(PreflightFinding {
            severity: PreflightSeverity::Error,
            group: None,
            job: None,
            source: Some(source.name.clone()),
            problem: PreflightProblem::SourceRefused { why },
        });
    }
}

fn print_faults(args: &DefinitionCheckArgs, faults: &Faults) -> Result<()> {
    let faults: Vec<_> = faults.as_slice().iter().map(FaultAt::from_fault).collect();
    out::print_json(&json!({"file": args.file, "ok": false, "faults": faults}))
}

pub(super) async fn apply(global: &Global, args: &ApplyArgs) -> Result<VerbResult> {
    let how = if args.dry_run { Apply::DryRun } else { Apply::Write };
    let changes = changes(global, &args.file, how, &args.by.authorship()).await?;
    print_changes(global, &changes, how)?;
    Ok(VerbResult::Well)
}

pub(super) async fn diff_definition(global: &Global, args: &DiffArgs) -> Result<VerbResult> {
    let changes = changes(global, &args.file, Apply::DryRun, &Authorship::of_user()).await?;
    print_changes(global, &changes, Apply::DryRun)?;
    Ok(if changes.is_empty() { VerbResult::Well } else { VerbResult::Differs })
}

async fn changes(
    global: &Global,
    file: &Path,
    how: Apply,
    by: &Authorship,
) -> Result<Vec<DefinitionDifference>> {
    let loaded = app::load_definition(file)?;
    print_warnings(&loaded);
    let app = match how {
        Apply::Write => global.open_app(EmptyDatabase::Prepare).await?,
        // A preview creates no database.
        Apply::DryRun => match App::open_if_there(global.config()?).await? {
            Some(app) => app,
            None => {
                app::look_at_schedules(&loaded, Clock::system().now())?
                    .iter()
                    .for_each(print_warning);
                return Ok(definition::diff_definitions(
                    &Definition::default(),
                    &loaded.definition,
                ));
            }
        },
    };
    app.look_at_schedules(&loaded).await?.iter().for_each(print_warning);
    app.look_at_uses(&loaded.definition, None).await?.iter().for_each(warn_of_secret);
    if how == Apply::Write && app.config.four_eyes()?.is_on() {
        let ahead = app.apply_all(&loaded.definition, Apply::DryRun, by).await?;
        record_bypass(&app, &loaded.definition, ahead.len(), by, global.language()).await?;
    }
    let changes = app.apply_all(&loaded.definition, how, by).await?;
    if how == Apply::Write {
        breach::warn_breaches(&app, &loaded.definition, global.language()).await?;
        calendar::warn_calendars(&app, global.language()).await?;
    }
    app.close().await;
    Ok(changes)
}

/// Records that a definition is stored that needs a second person over the API.
pub(super) async fn record_bypass(
    app: &App,
    defs: &Definition,
    changes: usize,
    by: &Authorship,
    lang: Lang,
) -> Result<()> {
    if changes == 0 {
        return Ok(());
    }
    let groups: Vec<&str> = defs.groups.iter().map(|group| group.code.as_str()).collect();
    let summary = format!("store a definition of {} ({changes} changes)", groups.join(", "));
    four_eyes::record(app, four_eyes::applied(defs), &summary, by.remark.as_deref(), lang).await
}

/// Prints the changes and their number.
pub(super) fn print_changes(
    global: &Global,
    changes: &[DefinitionDifference],
    how: Apply,
) -> Result<()> {
    if global.json {
        let all: Vec<Value> = changes.iter().map(change_json).collect();
        return out::print_json(&json!({"applied": how == Apply::Write, "changes": all}));
    }
    out::lines(changes.iter().map(DefinitionDifference::to_string));
    let verdict = match (changes.len(), how) {
        (0, _) => "no changes".to_owned(),
        (n, Apply::Write) => format!("{} applied", out::count(n, "change")),
        (n, Apply::DryRun) => format!("{} would be applied", out::count(n, "change")),
    };
    out::print_line(&out::message(&verdict));
    Ok(())
}

/// A change for scripts, with complete fields.
pub(super) fn change_json(change: &DefinitionDifference) -> Value {
    json!(DefinitionChangeDetail::from_change(change))
}

/// The JSON Schema of definition files.
pub(super) fn schema() -> Result<VerbResult> {
    out::print_json(&definition::schema(&app::job_kinds()))?;
    Ok(VerbResult::Well)
}

fn print_warnings(loaded: &Loaded) {
    loaded.warnings.iter().for_each(print_warning);
}

fn warn_of_secret(unknown: &UnknownSecret) {
    out::eprint_line(&format!("warning: {}; {}", unknown.describe(), unknown.fix()));
}

fn print_warning(warning: &DefinitionFault) {
    out::eprint_line(&format!("warning: {warning}"));
}
