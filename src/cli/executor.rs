//! `executor`: runs this process as an executor of an XXL-JOB admin, until it is stopped.

use crate::api::executor::{ExecutorEndpoint, ExecutorRequestLimits};
use crate::api::{Attended, Door, ListenerSetting, ListenerTls};
use crate::app::executor::ExecutorWords;
use crate::app::{App, EmptyDatabase};
use crate::cli::run::{Signalled, stop_on_signal};
use crate::cli::serve::{Works, watch};
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::config::Duty;
use crate::domain::text::lang::Lang;
use crate::engine::xxl::executor::Executor;
use anyhow::Result;
use clap::Args;
use secrecy::SecretString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Arguments of `executor`.
#[derive(Args)]
#[command(
    after_help = "The token, xxl.job.accessToken of the admin, comes from PROCESSION_XXL_TOKEN or from \
                        --token-file, and has 16 characters or more. How to set the admin up: docs/xxl-job.md"
)]
pub(super) struct ExecutorArgs {
    /// Addresses of the admin, as its executors have them: http://xxl.example:8080/xxl-job-admin
    #[arg(
        long = "admin",
        value_name = "URL[,URL]",
        env = "PROCESSION_XXL_ADMIN",
        required = true,
        value_delimiter = ','
    )]
    admins: Vec<String>,
    /// Name of the executor, as the admin's page of executors has it
    #[arg(long = "appname", value_name = "NAME", env = "PROCESSION_XXL_APPNAME")]
    app_name: String,
    /// Where the admin's requests are answered: an IP address and a port (0: any free one)
    #[arg(
        long,
        value_name = "ADDR",
        env = "PROCESSION_XXL_LISTEN",
        default_value = "127.0.0.1:9999"
    )]
    listen: SocketAddr,
    /// The URL at which the admin reaches this process [default: http:// (https:// with http.tls_cert) and what
    /// --listen says]
    #[arg(long, value_name = "URL", env = "PROCESSION_XXL_ADDRESS")]
    address: Option<String>,
    /// File with the token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Version of the admin, 2.2 to 3.5 [default: found out]
    #[arg(long, value_name = "VERSION")]
    admin_version: Option<String>,
    /// Run batches in this process too, as `serve` does; without it, some `serve` has to
    #[arg(long)]
    serve: bool,
    /// Do not tell of each batch that is taken and ends
    #[arg(short, long)]
    quiet: bool,
}

/// What helps when the port is taken.
const DOOR: ListenerSetting = ListenerSetting {
    setting: "--listen",
    cure: "give another address (--listen ADDR, port 0 for any free one)",
};
/// How long the last answers may take: what an admin waits for one.
const LAST_ANSWERS: Duration = Duration::from_secs(3);
/// Interval of clock measurements, where no dispatcher measures.
const CLOCK: Duration = Duration::from_secs(30);

pub(super) async fn executor(global: &Global, args: &ExecutorArgs) -> Result<VerbResult> {
    let mut config = global.config()?;
    if args.serve {
        config.node.duty = Duty::Serve;
    }
    let token = token(args.token_file.as_deref())?;
    let tls = config
        .http
        .listener_files()
        .map(|files| ListenerTls::load_files(files.for_everyone()))
        .transpose()?;
    let scheme = config.http.scheme();
    let door = Door::open_as(DOOR, args.listen).await?.with_tls(tls);
    let words = ExecutorWords {
        admins: args.admins.clone(),
        app_name: args.app_name.clone(),
        address: address(args, scheme, door.address())?,
        token: token.clone(),
        version: args.admin_version.clone(),
        tls: config.executors.client_files(),
    };
    let plan = words.check()?;
    warn_of_clear_listener(scheme, door.address());
    for warning in config.protected_files().warn_of_open_modes() {
        tracing::warn!("{warning}");
    }
    let app = App::open(config, EmptyDatabase::Prepare).await?;
    app.server_now().await?;
    let executor = Arc::new(app.executor(plan));
    let works = match args.serve {
        true => Some(Works::from_app(&app).await?),
        false => None,
    };
    if !args.quiet {
        announce(args, &words.address, global.language());
    }
    let desk = ExecutorEndpoint::new(executor.clone(), &token, ExecutorRequestLimits::default());
    let attended = door.staffed(desk.router(), LAST_ANSWERS);
    let stop = CancellationToken::new();
    let all = attend(&app, works, &executor, attended, &stop, global, args);
    tokio::select! {
        () = all => {}
        never = stop_on_signal(&stop, Signalled::Serve, global.language()) => match never {},
    }
    app.close().await;
    Ok(VerbResult::Well)
}

/// Runs everything concurrently, until it is stopped and the last ends are reported.
async fn attend(
    app: &App,
    works: Option<Works>,
    executor: &Executor,
    attended: Attended,
    stop: &CancellationToken,
    global: &Global,
    args: &ExecutorArgs,
) {
    let over = CancellationToken::new();
    let (tells, news) = mpsc::unbounded_channel();
    let leave = async {
        // First the executor is deregistered, then requests are no longer answered.
        executor.keep_registered(stop).await;
        attended.close().await;
        executor.close().await;
    };
    let work = async {
        match works {
            Some(works) => Box::pin(works.run(stop, tells)).await,
            None => {
                drop(tells);
                keep_time(app, stop).await;
            }
        }
    };
    let all = async {
        tokio::join!(leave, work, executor.keep_refused(stop));
        over.cancel();
    };
    let followed = executor.keep_following(&over);
    let told = executor.keep_telling(&over);
    tokio::join!(all, followed, told, watch(news, global, args.quiet));
}

/// Measures the database's clock where no dispatcher does.
async fn keep_time(app: &App, stop: &CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(CLOCK) => {}
        }
        if let Err(error) = app.server_now().await {
            tracing::debug!(error = format!("{error:#}"), "the database's clock cannot be seen");
        }
    }
}

/// The token: never an argument, which every user of the machine can read.
fn token(file: Option<&Path>) -> Result<SecretString> {
    let text = match file {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| BadInput(format!("--token-file {}: {error}", file.display())))?,
        None => std::env::var("PROCESSION_XXL_TOKEN").unwrap_or_default(),
    };
    Ok(SecretString::from(text.trim().to_owned()))
}

/// The address sent to the admin.
fn address(args: &ExecutorArgs, scheme: &str, door: SocketAddr) -> Result<String> {
    match &args.address {
        Some(address) => Ok(address.clone()),
        None if door.ip().is_unspecified() => Err(BadInput(format!(
            "--listen {door} is every address of this machine; say which one the admin is to use: \
             --address {scheme}://HOST:{}",
            door.port()
        ))
        .into()),
        None => Ok(format!("{scheme}://{door}/")),
    }
}

/// Warns of what an attacker on the network could do.
fn warn_of_clear_listener(scheme: &str, address: SocketAddr) {
    if scheme == "http" && !address.ip().is_loopback() {
        tracing::warn!(
            "--listen {address} can be reached from other machines without TLS: one on the way could read the token and \
             start jobs; set http.tls_cert and http.tls_key"
        );
    }
}

fn announce(args: &ExecutorArgs, address: &str, lang: Lang) {
    let (name, admins) = (&args.app_name, args.admins.join(", "));
    out::eprint_line(&match lang {
        Lang::En => {
            format!("executor {name} of {admins}, reached at {address}; TERM or Ctrl-C ends it")
        }
        Lang::Zh => {
            format!(
                "执行器 {name} 已启动：调度中心 {admins}，注册地址 {address};TERM 或 Ctrl-C 结束"
            )
        }
    });
    if !args.serve {
        out::eprint_line(lang.select(
            "batches are run by processes that serve (procession serve), or here with --serve",
            "批次由服务进程(procession serve)运行；加 --serve 则由本进程运行",
        ));
    }
}
