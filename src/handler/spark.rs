//! SPARK: an application on a standalone cluster, through the REST submission server of its master;
//! with `master`, `spark-submit` on this node.
//!
//! The master gives a driver its id and takes two submissions for two drivers. So the key of the
//! attempt is on the command line of the driver, where the worker's page about its log shows it.

use crate::domain::job::application::ApplicationReport;
use crate::domain::job::application::spark::{
    ApplicationIdentity, ListedDriver, MasterListing, SubmissionAnswer, create_request,
    driver_class, find_cause, is_launched_with, is_python, read_application_link, read_log_piece,
    read_stages,
};
use crate::domain::job::outcome::{AttemptOutcome, Stream};
use crate::domain::job::{AfterCrash, BodyPart, JobKind, Takes};
use crate::handler::cluster_api::{ClusterAnswer, ClusterApi, RequestBody};
use crate::handler::remote_engine::{
    ApplicationLogPiece, ApplicationOrder, FailureCause, Lookup, RemoteEngine, Submission,
};
use crate::handler::{AttemptTask, Context, WorkerHandler, remote_application, spark_submit};
use futures_util::future::BoxFuture;
use reqwest::Method;

/// The SPARK handler.
pub(crate) struct SparkHandler;

/// Number of drivers whose command lines are read to find one.
const DRIVERS_READ: usize = 50;
/// Bytes of a log that are read at once.
const LOG_PIECE: u64 = 256 * 1024;
/// Bytes in which a driver's command line must be.
const COMMAND: u64 = 64 * 1024;

impl WorkerHandler for SparkHandler {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "SPARK",
            about: "Runs an application on a Spark cluster.",
            needs: &[BodyPart::Application],
            may_have: &[BodyPart::Params],
            takes: Takes::Elsewhere,
            after_crash: AfterCrash::StartsAgain,
            ..JobKind::PLAIN
        }
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        match task.job.is_submitted() {
            true => Box::pin(remote_application::run(self, task, ctx)),
            false => Box::pin(spark_submit::run(task, ctx)),
        }
    }

    fn end_orphan<'a>(
        &'a self,
        task: &'a AttemptTask,
        ctx: &'a Context,
    ) -> BoxFuture<'a, AttemptOutcome> {
        match task.job.is_submitted() {
            true => Box::pin(remote_application::end_orphan(self, task, ctx)),
            false => Box::pin(spark_submit::end_orphan(task, ctx)),
        }
    }
}

impl RemoteEngine for SparkHandler {
    fn name(&self) -> &'static str {
        "Spark"
    }

    /// A master has no page about a driver.
    fn link(&self, api: &ClusterApi, _id: &str) -> String {
        api.ui_link("").unwrap_or_else(|| api.link(""))
    }

    fn check_order<'a>(
        &'a self,
        api: &'a ClusterApi,
        order: &'a ApplicationOrder<'a>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let call = order.call;
            if is_python(&call.file) && api.ui_link("").is_none() {
                let host = &api.host;
                return Err(format!("a Python file needs the ui_url of host {host}; add it there"));
            }
            let files =
                [&call.file].into_iter().chain(&call.spark.jars).chain(&call.spark.py_files);
            let missing = files.into_iter().find(|file| spark_submit::is_missing(file));
            match missing.filter(|_| api.is_here()) {
                Some(file) => Err(format!("file {file} is not on this machine, where Spark is")),
                None => Ok(()),
            }
        })
    }

    fn submit<'a>(
        &'a self,
        api: &'a ClusterApi,
        order: &'a ApplicationOrder<'a>,
        _ctx: &'a Context,
    ) -> BoxFuture<'a, Submission> {
        Box::pin(async move {
            let mut master = None;
            if is_python(&order.call.file) {
                match read_listing(api).await {
                    Ok(listing) => master = listing.map(|listing| listing.url),
                    Err(cause) => return Submission::Refused(cause),
                }
            }
            create_driver(api, order, master.as_deref()).await
        })
    }

    fn find<'a>(
        &'a self,
        api: &'a ClusterApi,
        order: &'a ApplicationOrder<'a>,
    ) -> BoxFuture<'a, Result<Lookup, String>> {
        Box::pin(find_driver(api, order))
    }

    fn read_state<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<ApplicationReport>, String>> {
        Box::pin(async move { read_status(api, id).await?.read_report() })
    }

    fn read_progress<'a>(
        &'a self,
        api: &'a ClusterApi,
        order: &'a ApplicationOrder<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(read_progress(api, order))
    }

    fn cancel<'a>(&'a self, api: &'a ClusterApi, id: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let path = format!("v1/submissions/kill/{id}");
            let sent = api.send(Method::POST, &path, None).await.map_err(|lost| lost.cause)?;
            let answer = parse_answer(api, &sent)?;
            if answer.success { Ok(()) } else { Err(answer.cause()) }
        })
    }

    /// The executors of a driver end after it.
    fn is_gone<'a>(
        &'a self,
        api: &'a ClusterApi,
        order: &'a ApplicationOrder<'a>,
    ) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async move {
            let listing = read_listing(api).await?;
            Ok(listing.is_none_or(|listing| listing.active_application(&order.name).is_none()))
        })
    }

    fn read_failure<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
        error_log: &'a str,
    ) -> BoxFuture<'a, Option<FailureCause>> {
        Box::pin(async move {
            if let Some(sentence) = find_cause(error_log) {
                return Some(FailureCause { sentence, stack: String::new() });
            }
            let answer = read_status(api, id).await.ok()?;
            let stack = answer.message.clone()?;
            Some(FailureCause { sentence: answer.cause(), stack })
        })
    }

    fn read_log<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
        stream: Stream,
        offset: u64,
    ) -> BoxFuture<'a, Result<Option<ApplicationLogPiece>, String>> {
        Box::pin(async move {
            let Some(listing) = read_listing(api).await? else { return Ok(None) };
            let Some(worker) = read_status(api, id).await?.worker_id else { return Ok(None) };
            let part = LogPart { driver: id, stream, offset, length: LOG_PIECE };
            read_log(api, &listing, &worker, part).await
        })
    }
}

fn parse_answer(api: &ClusterApi, answer: &ClusterAnswer) -> Result<SubmissionAnswer, String> {
    SubmissionAnswer::parse(answer.status, &answer.body)
        .map_err(|fault| format!("host {} answered with {fault}", api.host))
}

async fn read_status(api: &ClusterApi, id: &str) -> Result<SubmissionAnswer, String> {
    let path = format!("v1/submissions/status/{id}");
    let answer = api.send(Method::GET, &path, None).await.map_err(|lost| lost.cause)?;
    parse_answer(api, &answer)
}

/// What the master's web page lists; `None` when its address is not known.
async fn read_listing(api: &ClusterApi) -> Result<Option<MasterListing>, String> {
    let Some(page) = api.get_ui("json/").await? else { return Ok(None) };
    MasterListing::parse(&page.body).map(Some).map_err(|fault| format!("ui_url: {fault}"))
}

async fn create_driver(
    api: &ClusterApi,
    order: &ApplicationOrder<'_>,
    master: Option<&str>,
) -> Submission {
    let who = ApplicationIdentity { name: &order.name, key: &order.key };
    let body = RequestBody::json(&create_request(order.call, &order.args, who, master));
    let sent = match api.send(Method::POST, "v1/submissions/create", Some(body)).await {
        Ok(sent) => sent,
        Err(lost) if lost.may_have_arrived => return Submission::Lost(lost.cause),
        Err(lost) => return Submission::Refused(lost.cause),
    };
    match parse_answer(api, &sent) {
        Ok(answer) => match (answer.success, &answer.submission_id) {
            (true, Some(id)) => Submission::Accepted(id.clone()),
            (true, None) => Submission::Lost("Spark answered without an id".to_owned()),
            (false, _) => Submission::Refused(answer.cause()),
        },
        // A proxy in between answers so when it has lost the answer.
        Err(cause) if sent.status >= 500 || sent.is_success() => Submission::Lost(cause),
        Err(cause) => Submission::Refused(cause),
    }
}

/// Looks for the driver whose command line carries the key.
async fn find_driver(api: &ClusterApi, order: &ApplicationOrder<'_>) -> Result<Lookup, String> {
    let Some(listing) = read_listing(api).await? else {
        let cause = format!("host {} has no ui_url, so its drivers cannot be listed", api.host);
        return Ok(Lookup::Undecidable(cause));
    };
    let class = driver_class(order.call);
    let (mut waiting, mut unread) = (None, None);
    for driver in listing.drivers_of(class).into_iter().take(DRIVERS_READ) {
        match is_driver_of(api, &listing, &driver, &order.key).await? {
            Some(true) => return Ok(Lookup::Found(driver.id)),
            Some(false) => {}
            None if driver.has_never_run() => {}
            None if driver.may_begin() => waiting = Some(driver.id),
            None => unread = Some(driver.id),
        }
    }
    if let Some(id) = listing.only_driver(&order.name, class) {
        return Ok(Lookup::Found(id));
    }
    let has_application = listing.has_application(&order.name);
    Ok(match (waiting, unread) {
        (Some(id), _) => return Err(format!("whose driver {id} is shows when it begins")),
        (None, Some(id)) => {
            Lookup::Undecidable(format!("whose driver {id} is cannot be read from its worker"))
        }
        (None, None) if has_application => {
            let name = &order.name;
            Lookup::Undecidable(format!("Spark lists application {name}, and no driver of it"))
        }
        (None, None) => Lookup::Absent,
    })
}

/// Whether the driver's command line carries the key; `None` when it cannot be read.
async fn is_driver_of(
    api: &ClusterApi,
    listing: &MasterListing,
    driver: &ListedDriver,
    key: &str,
) -> Result<Option<bool>, String> {
    let Some(worker) = driver.worker.as_deref() else { return Ok(None) };
    let part = LogPart { driver: &driver.id, stream: Stream::Stderr, offset: 0, length: COMMAND };
    let begin = read_log(api, listing, worker, part).await?;
    let begin = begin.filter(|piece| piece.text.contains('\n'));
    Ok(begin.map(|piece| is_launched_with(&piece.text, key)))
}

/// A part of a driver's log.
struct LogPart<'a> {
    driver: &'a str,
    stream: Stream,
    offset: u64,
    length: u64,
}

/// Reads from a worker, directly or through the master as its reverse proxy; `None` when the worker
/// has no such log or cannot be called.
async fn read_log(
    api: &ClusterApi,
    listing: &MasterListing,
    worker: &str,
    part: LogPart<'_>,
) -> Result<Option<ApplicationLogPiece>, String> {
    let name = if part.stream == Stream::Stdout { "stdout" } else { "stderr" };
    let path = format!(
        "log/?driverId={}&logType={name}&offset={}&byteLength={}",
        part.driver, part.offset, part.length
    );
    let Some(address) = listing.worker_address(worker) else { return Ok(None) };
    let answer = match api.get_named(address, &path).await? {
        Some(answer) => Some(answer),
        None => api.get_ui(&format!("proxy/{worker}/{path}")).await?,
    };
    let answer = answer.filter(ClusterAnswer::is_success);
    let piece = answer.as_ref().and_then(|answer| read_log_piece(&answer.body));
    Ok(piece.map(|piece| ApplicationLogPiece {
        text: piece.text.to_owned(),
        end: piece.end,
        total: piece.total,
    }))
}

/// Reads the stages from the web page of the running application.
async fn read_progress(api: &ClusterApi, order: &ApplicationOrder<'_>) -> Option<String> {
    let listing = read_listing(api).await.ok()??;
    let id = listing.active_application(&order.name)?;
    let page = api.get_ui(&format!("app/?appId={id}")).await.ok()??;
    let path = format!("api/v1/applications/{id}/stages");
    let answer = match read_application_link(&page.body) {
        Some(address) => api.get_named(address, &path).await.ok()?,
        None => None,
    };
    let answer = match answer {
        Some(answer) => answer,
        None => api.get_ui(&format!("proxy/{id}/{path}")).await.ok()??,
    };
    Some(format!("{id}: {}", read_stages(&answer.body)?))
}
