//! `serve`: claims open, unowned batches and runs them, until it is stopped.

use crate::api::{ApiState, Attended, Front, ListenerTls};
use crate::app::access::DirectoryWatch;
use crate::app::certificate_watch::CertificateWatch;
use crate::app::secrets::LoginRenewal;
use crate::app::task::as_task;
use crate::app::{App, EmptyDatabase};
use crate::cli::run::{Signalled, stop_on_signal, trace_to_the_end};
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::config;
use crate::domain::batch::BatchStatus;
use crate::domain::text::lang::Lang;
use crate::engine::dispatch::acquire::{BatchOutcome, Served};
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::operate::audit_chain::AuditSealer;
use crate::engine::operate::audit_watch::AuditWatch;
use crate::engine::outbox::Sender;
use crate::engine::retention::Sweeper;
use crate::engine::trigger::core::TriggerCore;
use anyhow::Result;
use clap::Args;
use secrecy::ExposeSecret as _;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Arguments of `serve`.
#[derive(Args)]
pub(super) struct ServeArgs {
    /// Jobs at once, at most
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_parallel: Option<u32>,
    /// Where the console, the API, /healthz, /readyz and /metrics are answered: an IP address and a port (0: any free one), or
    /// off [default: 127.0.0.1:8088]
    #[arg(long, env = "PROCESSION_HTTP", value_name = "ADDR")]
    http: Option<String>,
    /// What this process is called in `node list`; the machine's name when nothing is said
    #[arg(long, value_name = "NAME", env = "PROCESSION_NODE")]
    name: Option<String>,
    /// What it is for: scheduler, worker; may be given twice
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    /// What it has: jobs that ask for this label (worker: LABEL) run here; may be given several times
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Do not tell of each batch that is taken and ends
    #[arg(short, long)]
    quiet: bool,
}

pub(super) async fn serve(global: &Global, args: &ServeArgs) -> Result<VerbResult> {
    let mut config = settings(global, args)?;
    let http = config.listening_options()?;
    let max = config.engine.max_parallel;
    let front = with_tls(Front::open_listeners(&http).await?, &config)?;
    let scheme = config.http.scheme();
    config.node.address = front.address().map(|address| format!("{scheme}://{address}"));
    let app = App::open(config, EmptyDatabase::Prepare).await?;
    let works = Works::from_app(&app).await?;
    let lang = global.language();
    announce(args, max, front.address().map(|address| format!("{scheme}://{address}/")), lang);
    let (tells, news) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let house =
        Arc::new(ApiState::open_state(&app, works.dispatcher.vitals(&stop, http.stalled)).await?);
    let open_files = app.config.protected_files().warn_of_open_modes();
    let script_rights = app.report_script_isolation(works.dispatcher.node_id()).await?;
    let directory = app.config.ldap.weakness();
    let secrets = app.warn_of_secrets().await?;
    let listener = app.config.listener_weakness();
    let open_files = open_files.into_iter().chain(script_rights);
    for warning in open_files.chain(directory).chain(secrets).chain(listener) {
        tracing::warn!("{warning}");
    }
    let attended = let_in(front, house.clone(), lang).await?;
    let gone = CancellationToken::new();
    let ending = end_aside(&house, stop.clone(), gone.clone());
    let work = async {
        let _gone = gone.drop_guard();
        works.run(&stop, tells).await;
    };
    let watched = async { tokio::join!(work, watch(news, global, args.quiet), ending) };
    tokio::select! {
        _ended = watched => {}
        never = stop_on_signal(&stop, Signalled::Serve, lang) => match never {},
    }
    attended.close().await;
    // Before the engine's own connections, so that a SQLite file is complete when this process
    // ends.
    house.app.db.close().await;
    app.close().await;
    Ok(VerbResult::Well)
}

/// The listeners with TLS, where the settings require it.
fn with_tls(front: Front, config: &config::Config) -> Result<Front> {
    let Some(files) = config.http.listener_files() else { return Ok(front) };
    let probes = match config.http.probes_tls {
        true => Some(ListenerTls::load_files(files.clone().without_client_certificates())?),
        false => None,
    };
    Ok(front.with_tls(Some(ListenerTls::load_files(files)?), probes))
}

/// The settings, with the overrides of the flags.
fn settings(global: &Global, args: &ServeArgs) -> Result<config::Config> {
    let mut config = global.config()?;
    if let Some(max) = args.max_parallel {
        config.engine.max_parallel = max;
    }
    if let Some(listen) = &args.http {
        config.http.listen.clone_from(listen);
    }
    set_node(&mut config.node, args)?;
    Ok(config)
}

/// Ends what runs beside, once this process is told to stop or has stopped.
async fn end_aside(house: &ApiState, stop: CancellationToken, gone: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = gone.cancelled() => {}
    }
    house.aside.end_and_wait().await;
}

/// All work of a serving process.
pub(super) struct Works {
    dispatcher: QueueDispatcher,
    core: Option<TriggerCore>,
    sweeper: Option<Sweeper>,
    sender: Option<Sender>,
    logins: LoginRenewal,
    certificates: CertificateWatch,
    directory: DirectoryWatch,
    sealer: AuditSealer,
    verifier: AuditWatch,
}

impl Works {
    /// Builds the work that the settings require.
    pub(super) async fn from_app(app: &App) -> Result<Self> {
        let dispatcher = app.dispatcher(None).await?;
        let core = match dispatcher.fires_schedules() {
            true => Some(app.trigger_core(&dispatcher).await?),
            false => None,
        };
        let sweeper = app.sweeper(&dispatcher)?;
        let sender = app.sender(&dispatcher)?.filter(|_| dispatcher.fires_schedules());
        let (sealer, logins) = (dispatcher.audit_sealer(), app.login_renewal());
        let certificates = app.certificate_watch(dispatcher.meter());
        let (verifier, directory) = (dispatcher.audit_watch(), app.porter().directory_watch());
        Ok(Self {
            dispatcher,
            core,
            sweeper,
            sender,
            logins,
            certificates,
            directory,
            sealer,
            verifier,
        })
    }

    /// Runs until `stop` is cancelled, and shuts down in order.
    pub(super) async fn run(self, stop: &CancellationToken, tells: mpsc::UnboundedSender<Served>) {
        let Self { mut dispatcher, core, sweeper, sender, logins, certificates, .. } = self;
        let gone = CancellationToken::new();
        let traces = trace_to_the_end(dispatcher.tracer(), gone.clone());
        let tell = send_beside(sender, stop.clone());
        let fire = as_task(fire_schedules(core, stop.clone()));
        let sweep = as_task(sweep(sweeper, stop.clone()));
        let renew = as_task(Box::pin(logins.run(stop.clone())));
        let watch = as_task(Box::pin(certificates.run(stop.clone())));
        let recheck = as_task(Box::pin(self.directory.run(stop.clone())));
        let seal = as_task(Box::pin(self.sealer.run(stop.clone())));
        let verify = as_task(Box::pin(self.verifier.run(stop.clone())));
        let told = stop.clone();
        // Boxed, like each of the others: together they were larger than the stack of the main
        // thread in a debug build.
        let dispatch = as_task(async move {
            Box::pin(dispatcher.serve(&told, Some(tells))).await;
            dispatcher
        });
        let work = async {
            let (dispatcher, (), (), (), (), (), (), (), ()) =
                tokio::join!(dispatch, fire, sweep, tell, renew, watch, recheck, seal, verify);
            let _gone = gone.drop_guard();
            // It drops the senders of events and of spans with it.
            Box::pin(dispatcher.leave()).await
        };
        let (left, ()) = tokio::join!(work, traces);
        if let Err(error) = left {
            // All batches were released before; only the lease expires by itself.
            tracing::warn!(
                error = format!("{error:#}"),
                "the lease of this process could not be ended"
            );
        }
    }
}

/// Fires schedules while this process serves.
async fn fire_schedules(core: Option<TriggerCore>, stop: CancellationToken) {
    if let Some(core) = core {
        Box::pin(core.run(stop)).await;
    }
}

/// Removes old rows while this process serves.
async fn sweep(sweeper: Option<Sweeper>, stop: CancellationToken) {
    if let Some(sweeper) = sweeper {
        Box::pin(sweeper.run(stop)).await;
    }
}

/// Sends the outbox while this process serves.
async fn send_beside(sender: Option<Sender>, stop: CancellationToken) {
    if let Some(sender) = sender {
        Box::pin(sender.run(stop)).await;
    }
}

/// Prints what has started, and its address.
fn announce(args: &ServeArgs, max: u32, url: Option<String>, lang: Lang) {
    if args.quiet {
        return;
    }
    let pid = std::process::id();
    out::eprint_line(&match lang {
        Lang::En => format!(
            "serving as process {pid}, {} at once; TERM or Ctrl-C ends it",
            out::count(usize::try_from(max).unwrap_or(usize::MAX), "job")
        ),
        Lang::Zh => format!("服务进程 {pid} 已启动，最多同时 {max} 个作业；TERM 或 Ctrl-C 结束"),
    });
    if let Some(url) = url {
        out::eprint_line(&match lang {
            Lang::En => format!("console, API, health and metrics on {url}"),
            Lang::Zh => format!("控制台、API、健康检查与指标：{url}"),
        });
    }
}

/// Starts to answer requests; if no user can log in, prints how to create the first one.
async fn let_in(front: Front, house: Arc<ApiState>, lang: Lang) -> Result<Attended> {
    if let Some(address) = front.address() {
        invite(&house, address, lang).await?;
    }
    Ok(front.attend(house)?)
}

/// Prints how the first user is created; only the user who started this process can know. Printed
/// also with --quiet: without it no login is possible.
async fn invite(house: &ApiState, address: std::net::SocketAddr, lang: Lang) -> Result<()> {
    let Some(secret) = house.porter.setup_secret().await? else { return Ok(()) };
    let place = match house.app.config.http.public_url.trim_end_matches('/') {
        "" => format!("{}://{address}", house.app.config.http.scheme()),
        url => url.to_owned(),
    };
    let secret = secret.expose_secret();
    out::eprint_line(&match lang {
        Lang::En => format!(
            "nobody can log in yet. Make the first user at {place}/#/setup with this secret, within 24 \
             hours:\n    {secret}\nprocession user setup-secret makes another"
        ),
        Lang::Zh => format!(
            "还没有用户。请在 24 小时内打开 {place}/#/setup，用以下密钥创建第一个用户：\n    {secret}\n\
             如需另一个密钥：procession user setup-secret"
        ),
    });
    Ok(())
}

fn set_node(node: &mut config::NodeSettings, args: &ServeArgs) -> Result<()> {
    node.duty = config::Duty::Serve;
    if let Some(name) = &args.name {
        node.name.clone_from(name);
    }
    if !args.roles.is_empty() {
        node.roles.clone_from(&args.roles);
    }
    if !args.labels.is_empty() {
        node.labels.clone_from(&args.labels);
    }
    node.check().map_err(|error| BadInput(error.to_string()).into())
}

pub(super) async fn watch(mut news: mpsc::UnboundedReceiver<Served>, global: &Global, quiet: bool) {
    while let Some(item) = news.recv().await {
        if global.json {
            out::print_line(&as_json(&item));
        } else if !quiet {
            out::eprint_line(&format!("{} {}", item.at, words(&item, global.language())));
        }
    }
}

/// One line per event, for programs.
fn as_json(item: &Served) -> String {
    let status = match &item.what {
        BatchOutcome::Ended(status) => Some(status.as_str()),
        BatchOutcome::Taken
        | BatchOutcome::TakenOver
        | BatchOutcome::GivenBack
        | BatchOutcome::Lost
        | BatchOutcome::CastOut(_) => None,
    };
    let reason = match &item.what {
        BatchOutcome::CastOut(message) => Some(message),
        BatchOutcome::Taken
        | BatchOutcome::TakenOver
        | BatchOutcome::Ended(_)
        | BatchOutcome::GivenBack
        | BatchOutcome::Lost => None,
    };
    json!({
        "at": item.at.to_string(), "batch_no": item.batch_no, "group": item.group,
        "event": item.what.as_str(), "status": status, "reason": reason,
    })
    .to_string()
}

fn words(item: &Served, lang: Lang) -> String {
    let (no, group) = (&item.batch_no, &item.group);
    let name = match lang {
        Lang::En => format!("batch {no} of group {group}"),
        Lang::Zh => format!("批次 {no}（作业组 {group}）"),
    };
    let what = match &item.what {
        BatchOutcome::Taken => lang.select("taken", "已接手").to_owned(),
        BatchOutcome::TakenOver => {
            lang.select("taken over: its process is dead", "已接管：原进程已失效").to_owned()
        }
        BatchOutcome::Ended(status) => ended(*status, lang),
        BatchOutcome::GivenBack => lang
            .select("given back; another process goes on with it", "已交还，由其他进程继续")
            .to_owned(),
        BatchOutcome::Lost => {
            lang.select("is another process's now", "现由其他进程负责").to_owned()
        }
        BatchOutcome::CastOut(message) => match lang {
            Lang::En => format!("cannot be gone on with: {message}"),
            Lang::Zh => format!("无法继续：{message}"),
        },
    };
    format!("{name}: {}", out::brief(&what, 300))
}

fn ended(status: BatchStatus, lang: Lang) -> String {
    match lang {
        Lang::En => format!("ended {status}"),
        Lang::Zh => format!("已结束，{status}"),
    }
}
