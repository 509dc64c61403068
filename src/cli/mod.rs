//! cli: the command line. In: arguments. Out: text or JSON, and an exit code.
//! May name: domain, lineage, definition, import, picture, store, engine, config, app, view, api, outbound. Never: SQL, a decision.
//! Invariant: exit code 0 is success, 1 a batch that failed or a diff that found something, 2 the user's input, 3 Procession itself, or a server that cannot be reached.

mod act;
mod act_args;
mod act_words;
mod approval;
mod audit;
mod audit_chain;
mod backfill;
mod backfill_args;
mod backfill_progress;
mod backfill_words;
mod batch;
mod batch_no;
mod batch_open;
mod batch_ref;
mod breach;
mod broken;
mod calendar;
mod calendar_args;
mod calendar_show;
mod calendar_words;
mod carry;
mod change_request;
mod dag;
mod define;
mod discover;
mod due;
mod eta;
mod event;
mod executor;
mod executor_group;
mod export;
mod four_eyes;
mod group_access;
mod health;
mod heard;
mod help;
mod history;
mod import;
mod import_database;
mod import_xxl;
mod job;
#[cfg(target_os = "linux")]
mod keeper;
mod ldap;
mod lineage;
mod lineage_verb;
mod logs;
mod metadata;
mod migrate;
mod node;
mod notify;
mod opening_progress;
mod order;
mod out;
mod outbox;
mod params;
mod plan;
mod plan_words;
mod preflight;
mod progress;
mod reference;
mod resume;
mod retention;
mod retention_words;
mod run;
mod schedule;
mod schedule_act;
mod schedule_args;
mod schedule_next;
mod schedule_nodes;
mod schedule_words;
mod secret;
mod serve;
mod server;
mod source;
mod source_words;
mod stats;
mod stop;
mod tries;
mod user;
mod watch;
mod why;

pub use reference::reference_page;

use crate::api::NoListener;
use crate::app::{self, App, EmptyDatabase};
use crate::cli::batch_ref::BatchRef;
use crate::config::Config;
use crate::domain::access::approval::ApprovalVerdict;
use crate::domain::text::lang::Lang;
use anyhow::Result;
use clap::{ArgMatches, Args, FromArgMatches as _, Parser, Subcommand};
use secrecy::SecretString;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// Runs DAGs of stored procedures, SQL and scripts, once per batch number, on your own database.
#[derive(Parser)]
#[command(name = "procession", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 success · 1 the batch failed, or diff or --lineage found something · 2 your input · 3 Procession failed, or a server cannot be reached · 4 the change waits for a second person"
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// Flags of every verb.
#[derive(Args)]
struct Global {
    /// Metadata database: sqlite:FILE, mysql://user@host:3306/db or postgres://user@host:5432/db
    /// [default: sqlite:procession.db]
    #[arg(long, env = "PROCESSION_DB", hide_env_values = true, global = true, value_name = "URL")]
    db: Option<String>,
    /// Ask this server's API in place of a database: https://procession.bank.example; the token stands in
    /// PROCESSION_TOKEN or in --token-file
    #[arg(long, env = "PROCESSION_SERVER", global = true, value_name = "URL")]
    server: Option<String>,
    /// File with the token for --server
    #[arg(long, env = "PROCESSION_TOKEN_FILE", global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file with the authorities that vouch for --server [default: those that this machine trusts]
    #[arg(long, env = "PROCESSION_TLS_CA", global = true, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Settings file [default: procession.toml, if it is there]
    #[arg(long, env = "PROCESSION_CONFIG", global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON for scripts instead of text for people
    #[arg(long, global = true)]
    json: bool,
    /// Language for people: en or zh [default: that of the locale]
    #[arg(long, env = "PROCESSION_LANG", global = true, value_name = "LANG", value_parser = parse_lang)]
    lang: Option<Lang>,
    /// Say more of what happens inside (-v, -vv); RUST_LOG works too
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// How this program's own log is written to stderr: text, or a JSON object per line
    #[arg(
        long,
        env = "PROCESSION_LOG_FORMAT",
        global = true,
        value_name = "FORMAT",
        value_enum,
        default_value_t
    )]
    log_format: LogFormat,
}

/// How the program's own log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a batch: apply FILE, open the batch, run it to its end
    Run(run::RunArgs),
    /// Run open, unclaimed batches until stopped; several servers may share one database
    Serve(serve::ServeArgs),
    /// Be an executor of an XXL-JOB admin: keep its cron and console, open batches here
    Executor(executor::ExecutorArgs),
    /// Show what `run` would do and what it would refuse, without doing anything
    Plan(plan::PlanArgs),
    /// Check a definition file; needs no database, except with --connect or --lineage
    Check(define::DefinitionCheckArgs),
    /// What the jobs of a file do to tables, by the texts of their procedures and statements: show, impact
    #[command(subcommand)]
    Lineage(lineage_verb::LineageVerb),
    /// Draft a definition from the procedures of a data source: all of a schema, or those that a serial master calls
    Discover(discover::DiscoverArgs),
    /// Store the definitions of a file; prints what changes
    Apply(define::ApplyArgs),
    /// Print what `apply` would change; exit code 1 when something differs
    Diff(define::DiffArgs),
    /// Export stored definitions as a definition file
    Export(export::DefinitionExportArgs),
    /// Convert another system's jobs into definition files, with a report of everything that could not be
    /// converted exactly: crontab, control-m, sql-server-agent, dolphinscheduler, airflow, mysql-events,
    /// pg-cron, pgagent, quartz, pg-timetable, azkaban, xxl-job
    #[command(subcommand)]
    Import(import::ImportVerb),
    /// The versions of a group: who changed what, when
    History(history::HistoryArgs),
    /// Go back to an earlier version of a group
    Rollback(history::RollbackArgs),
    /// Print the JSON Schema of definition files, for editors
    Schema,
    /// Make or update Procession's own tables
    Migrate(migrate::MigrateArgs),
    /// Batches: open, wait, list, show, why, eta, no; kill, pause, resume, rerun
    #[command(subcommand)]
    Batch(batch::BatchVerb),
    /// Run the batches of a range, 202401..202412, as one thing; list, show, stop, resume
    Backfill(backfill::BackfillArgs),
    /// Jobs: list, show, stats, trust; in a batch: hold, release, skip, ice, thaw, no-exec, normal,
    /// force-success, force-failure, kill, priority, start-now, rerun
    #[command(subcommand)]
    Job(job::JobVerb),
    /// Approve a waiting job of type APPROVAL: its batch continues
    Approve(approval::DecisionArgs),
    /// Reject a waiting job of type APPROVAL: it fails and is not retried
    Reject(approval::DecisionArgs),
    /// List the approvals that jobs wait for, with --all past ones too
    Approvals(approval::ApprovalsArgs),
    /// Changes that wait for a second person: list, show, approve, reject, break-glass
    #[command(subcommand)]
    ChangeRequest(change_request::ChangeRequestVerb),
    /// Schedules: list, show, next, firings; add, edit, pause, resume, remove, fire-now, skip-next
    #[command(subcommand)]
    Schedule(Box<schedule::ScheduleVerb>),
    /// Events that schedules wait for: send
    #[command(subcommand)]
    Event(event::EventVerb),
    /// Who did what to which batch or job, when and why; verify, export
    Audit(audit::AuditArgs),
    /// Parameters: which layer gives a job its values
    #[command(subcommand)]
    Params(params::ParamsVerb),
    /// Calendars of working days: import, add, combine, day, list, show, check, export, remove
    #[command(subcommand)]
    Calendar(calendar_args::CalendarVerb),
    /// The servers that share the database: roles, load, draining
    #[command(subcommand)]
    Node(node::NodeVerb),
    /// After a restored backup: show, restored, accept
    #[command(subcommand)]
    Metadata(metadata::MetadataVerb),
    /// Show the health of the local server; exit code 1 when it is not healthy
    Health(health::HealthArgs),
    /// Users of the console and the API: add, list, set, reset-password, token, disable, remove, sessions,
    /// setup-secret
    #[command(subcommand)]
    User(Box<user::UserVerb>),
    /// The directory that users log in with: check
    #[command(subcommand)]
    Ldap(ldap::LdapVerb),
    /// Executors of XXL-JOB that jobs call: list, show, add, set, token, remove
    #[command(subcommand)]
    ExecutorGroup(Box<executor_group::ExecutorGroupVerb>),
    /// Secrets: sealed, stored, never shown
    #[command(subcommand)]
    Secret(secret::SecretVerb),
    /// Outbox of notifications: list, show, send, resend, ack, purge
    #[command(subcommand)]
    Outbox(outbox::OutboxVerb),
    /// Notifications: test, preview, events, snooze, snoozes, wake
    #[command(subcommand)]
    Notify(notify::NotifyVerb),
    /// Retention of old rows: preview what is removed and why the rest stays, run
    #[command(subcommand)]
    Retention(retention::RetentionVerb),
    /// Data sources: list, check, prepare, prune
    #[command(subcommand)]
    Source(source::SourceVerb),
    /// What a job of a batch printed and what its database said
    Logs(logs::LogsArgs),
    /// Export the DAG of a file, a group or a batch in the format of a front end
    Dag(dag::DagArgs),
    /// Print the completions of a shell: bash, zsh, fish, powershell
    Completions(help::CompletionsArgs),
    /// Print the manual page, or write a page for each verb into a folder
    Man(help::ManArgs),
}

/// The arguments contradict each other; the message contains a hint.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct BadInput(String);

/// The result of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VerbResult {
    Well,
    BatchFailed,
    /// `diff` found differences.
    Differs,
    /// The process is not healthy.
    Unwell,
    /// The chain of the audit log is broken.
    Broken,
    /// Nothing is done yet: the change waits for a second person.
    Waits,
}

/// Runs the program and returns its exit code.
pub fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(code) = keeper::asked() {
        return code;
    }
    failpoint_setup!();
    let matches = help::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    hide_environment();
    start_log(&cli.global);
    // What is printed for scripts stays English.
    out::set_language(if cli.global.json { Lang::En } else { cli.global.language() });
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            out::error(&format!("cannot start: {error}"));
            return ExitCode::from(3);
        }
    };
    match runtime.block_on(dispatch(cli, &matches)) {
        Ok(VerbResult::Well) => ExitCode::SUCCESS,
        Ok(VerbResult::Waits) => ExitCode::from(4),
        Ok(
            VerbResult::BatchFailed | VerbResult::Differs | VerbResult::Unwell | VerbResult::Broken,
        ) => ExitCode::from(1),
        Err(error) => {
            out::error(&format!("{error:#}"));
            let users = error.chain().any(|e| e.is::<BadInput>() || e.is::<NoListener>())
                || app::is_users(&error);
            ExitCode::from(if users { 2 } else { 3 })
        }
    }
}

/// Keeps scripts of the same user from reading this process's environment, and with it passwords,
/// through /proc; root can still read it. A refusal is ignored.
fn hide_environment() {
    #[cfg(target_os = "linux")]
    let _may_fail = nix::sys::prctl::set_dumpable(false);
}

fn start_log(global: &Global) {
    let level = match global.verbose {
        0 => "warn",
        1 => "procession=info,warn",
        _ => "procession=debug,info",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let lines = match global.log_format {
        LogFormat::Text => lines.with_ansi(out::is_terminal()).with_filter(filter).boxed(),
        // Fields beside the message, where log collectors expect them.
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            lines.with_current_span(false).with_span_list(false).with_filter(filter).boxed()
        }
    };
    tracing_subscriber::registry().with(lines).with(app::notice_layer()).init();
}

async fn dispatch(cli: Cli, matches: &ArgMatches) -> Result<VerbResult> {
    let global = cli.global;
    if let Some(address) = global.server.as_deref().filter(|_| !server::is_local(matches)) {
        return server::dispatch(&global, address, matches).await;
    }
    match cli.verb {
        Verb::Run(args) => run::run_batch(&global, args).await,
        Verb::Serve(args) => serve::serve(&global, &args).await,
        Verb::Executor(args) => executor::executor(&global, &args).await,
        Verb::Plan(args) => plan::print_plan(&global, &args).await,
        Verb::Check(args) => define::check(&global, &args).await,
        Verb::Lineage(verb) => lineage_verb::lineage(&global, &verb).await,
        Verb::Discover(args) => discover::discover(&global, &args).await,
        Verb::Apply(args) => define::apply(&global, &args).await,
        Verb::Diff(args) => define::diff_definition(&global, &args).await,
        Verb::Export(args) => export::export(&global, &args).await,
        Verb::Import(verb) => import::import(&global, &verb).await,
        Verb::History(args) => history::history(&global, &args).await,
        Verb::Rollback(args) => history::rollback(&global, &args).await,
        Verb::Schema => define::schema(),
        Verb::Migrate(args) => migrate::migrate(&global, &args).await,
        Verb::Batch(verb) => batch::batch(&global, verb).await,
        Verb::Backfill(args) => backfill::backfill(&global, args).await,
        Verb::Job(verb) => job::run_job_verb(&global, verb).await,
        Verb::Approve(args) => approval::decide_job(&global, &args, ApprovalVerdict::Approve).await,
        Verb::Reject(args) => approval::decide_job(&global, &args, ApprovalVerdict::Reject).await,
        Verb::Approvals(args) => approval::approvals(&global, &args).await,
        Verb::ChangeRequest(verb) => change_request::change_request(&global, &verb).await,
        Verb::Schedule(verb) => schedule::schedule(&global, *verb).await,
        Verb::Event(verb) => event::event(&global, &verb).await,
        Verb::Audit(args) => audit::audit(&global, &args).await,
        Verb::Params(verb) => params::params(&global, verb).await,
        Verb::Calendar(verb) => calendar::calendar(&global, verb).await,
        Verb::Metadata(verb) => metadata::metadata(&global, verb).await,
        Verb::Node(verb) => node::run_node_verb(&global, verb).await,
        Verb::Health(args) => health::health(&global, &args).await,
        Verb::User(verb) => user::run_user_verb(&global, *verb).await,
        Verb::Ldap(verb) => ldap::run_ldap_verb(&global, verb).await,
        Verb::ExecutorGroup(verb) => executor_group::executor_group(&global, *verb).await,
        Verb::Secret(verb) => secret::secret(&global, verb).await,
        Verb::Outbox(verb) => outbox::outbox(&global, verb).await,
        Verb::Notify(verb) => notify::notify(&global, verb).await,
        Verb::Retention(verb) => retention::retention(&global, verb).await,
        Verb::Source(verb) => source::source(&global, verb).await,
        Verb::Logs(args) => logs::print_logs(&global, &args).await,
        Verb::Dag(args) => dag::print_dag(&global, &args).await,
        Verb::Completions(args) => help::print_completions(&args),
        Verb::Man(args) => help::write_man_pages(&args),
    }
}

fn parse_lang(code: &str) -> Result<Lang, String> {
    Lang::from_code(code).ok_or_else(|| "known languages are en and zh".to_owned())
}

impl Global {
    /// The requested language, else that of the locale, else English.
    fn language(&self) -> Lang {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        self.lang.or_else(|| Lang::from_code(&locale.unwrap_or_default())).unwrap_or_default()
    }

    fn config(&self) -> Result<Config> {
        let mut config = Config::load_file(self.config.as_deref())?;
        if let Some(url) = &self.db {
            config.database.url = SecretString::from(url.clone());
        }
        if let Some(file) = std::env::var_os("PROCESSION_DB_PASSWORD_FILE") {
            config.database.password_file = file.into();
        }
        config.database.password = config.find_password()?;
        Ok(config)
    }

    async fn open_app(&self, empty: EmptyDatabase) -> Result<App> {
        App::open(self.config()?, empty).await
    }
}
